/* Finding the separate debug file, as gdb's manual has it ("Debugging Information in Separate Files"). */
#include "object/object.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEBUG_ROOT "/usr/lib/debug"

/* CRC-32 (IEEE 802.3, as in gdb's manual), eight bytes at a time: debug files are hundreds of megabytes. */
static uint32_t crc32(const uint8_t *bytes, size_t size)
{
	uint32_t table[8][256];
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
		table[0][i] = crc;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int k = 1; k < 8; k++)
			table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 0xff];

	uint32_t crc = ~0u;
	for (; size >= 8; bytes += 8, size -= 8) {
		crc ^= (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
		       (uint32_t)bytes[3] << 24;
		crc = table[7][crc & 0xff] ^ table[6][crc >> 8 & 0xff] ^ table[5][crc >> 16 & 0xff] ^
		      table[4][crc >> 24] ^ table[3][bytes[4]] ^ table[2][bytes[5]] ^ table[1][bytes[6]] ^
		      table[0][bytes[7]];
	}
	while (size-- > 0)
		crc = crc >> 8 ^ table[0][(crc ^ *bytes++) & 0xff];
	return ~crc;
}

/* root_fd AT_FDCWD: this machine's own root. */
static struct tally_object *open_candidate(int root_fd, const char *path)
{
	struct tally_object *found = NULL;
	int rc = root_fd == AT_FDCWD ? tally_object_open(AT_FDCWD, path, &found, NULL)
				     : tally_object_open_in_root(root_fd, path, &found, NULL);
	return rc < 0 ? NULL : found;
}

static struct tally_object *open_by_build_id(const struct tally_object *object, int root_fd)
{
	const struct tally_build_id *id = tally_object_build_id(object);
	if (id->size < 2)
		return NULL;
	char hex[2 * TALLY_BUILD_ID_MAX + 1], path[PATH_MAX];
	tally_build_id_format(id, hex);
	snprintf(path, sizeof(path), DEBUG_ROOT "/.build-id/%.2s/%s.debug", hex, hex + 2);
	struct tally_object *found = open_candidate(root_fd, path);
	if (found && !tally_build_id_equal(id, tally_object_build_id(found))) {
		tally_object_unref(found);
		return NULL;
	}
	return found;
}

/* The file that belongs to the object: by build-id, which says it for certain, else by checksum. */
static bool belongs(const struct tally_object *object, const struct tally_object *found, uint32_t crc)
{
	const struct tally_build_id *ours = tally_object_build_id(object);
	const struct tally_build_id *theirs = tally_object_build_id(found);
	if (ours->size && theirs->size && !tally_build_id_equal(ours, theirs))
		return false;
	size_t size;
	const uint8_t *bytes = tally_object_image(found, &size);
	return crc32(bytes, size) == crc;
}

static bool read_debuglink(const struct tally_object *object, const char **name, uint32_t *crc)
{
	struct tally_section link;
	if (!tally_object_section(object, ".gnu_debuglink", &link) || !link.bytes)
		return false;
	size_t length = strnlen((const char *)link.bytes, link.size);
	size_t at = (length + 1 + 3) & ~(size_t)3;
	if (length == 0 || length == link.size || at + sizeof(*crc) > link.size)
		return false;
	*name = (const char *)link.bytes;
	memcpy(crc, link.bytes + at, sizeof(*crc));
	if (tally_object_is_swapped(object))
		*crc = __builtin_bswap32(*crc);
	return strchr(*name, '/') == NULL; /* a name, not a way out of the directory */
}

static struct tally_object *open_by_debuglink(const struct tally_object *object, int root_fd)
{
	const char *name;
	uint32_t crc;
	if (!read_debuglink(object, &name, &crc))
		return NULL;
	/* Links are laid beside the file itself, not beside what points to it. */
	char *real = root_fd == AT_FDCWD ? realpath(tally_object_path(object), NULL) : NULL;
	const char *path = real ? real : tally_object_path(object);
	const char *slash = strrchr(path, '/');
	int directory_length = slash ? (int)(slash - path) : 0;

	static const char *const PLACES[][2] = { { "", "" }, { "", "/.debug" }, { DEBUG_ROOT, "" } };
	struct tally_object *found = NULL;
	for (size_t i = 0; slash && !found && i < sizeof(PLACES) / sizeof(PLACES[0]); i++) {
		char candidate[PATH_MAX];
		int length = snprintf(candidate, sizeof(candidate), "%s%.*s%s/%s", PLACES[i][0], directory_length,
				      path, PLACES[i][1], name);
		if (length < 0 || (size_t)length >= sizeof(candidate))
			continue;
		found = open_candidate(root_fd, candidate);
		if (found && !belongs(object, found, crc)) {
			tally_object_unref(found);
			found = NULL;
		}
	}
	free(real);
	return found;
}

struct tally_object *tally_object_open_debug(const struct tally_object *object)
{
	return tally_object_open_debug_in_root(object, AT_FDCWD);
}

struct tally_object *tally_object_open_debug_in_root(const struct tally_object *object, int root_fd)
{
	struct tally_object *found = open_by_build_id(object, root_fd);
	return found ? found : open_by_debuglink(object, root_fd);
}
