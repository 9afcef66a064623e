/* Finds separate debug files, in the places that gdb's manual lists ("Debugging Information in
 * Separate Files"). */
#include "base/environment.h"
#include "base/input_limits.h"
#include "base/unpack.h"
#include "object/object.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEBUG_ROOT "/usr/lib/debug"

/* CRC-32 (IEEE 802.3, as in gdb's manual), eight bytes at a time: debug files are hundreds of
 * megabytes. */
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
		crc = table[7][crc & 0xff] ^ table[6][crc >> 8 & 0xff] ^
		      table[5][crc >> 16 & 0xff] ^ table[4][crc >> 24] ^ table[3][bytes[4]] ^
		      table[2][bytes[5]] ^ table[1][bytes[6]] ^ table[0][bytes[7]];
	}
	while (size-- > 0)
		crc = crc >> 8 ^ table[0][(crc ^ *bytes++) & 0xff];
	return ~crc;
}

/* Opens a file.  With a root, symbolic links can't lead out of it: it may be a container's file
 * system. */
static int open_below(const char *root, const char *path, struct tally_object **out)
{
	if (!root)
		return tally_object_open(AT_FDCWD, path, out, NULL);
	int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;
	int rc = tally_object_open_in_root(root_fd, path, out, NULL);
	close(root_fd);
	return rc;
}

static struct tally_object *open_candidate(const char *root, const char *path, int *lack)
{
	struct tally_object *found = NULL;
	int rc = open_below(root, path, &found);
	if (rc == -ENOMEM)
		*lack = rc;
	if (rc < 0)
		return NULL;
	return found;
}

static struct tally_object *if_wanted(struct tally_object *found, const struct tally_build_id *id)
{
	if (found && !tally_build_id_equal(id, tally_object_build_id(found))) {
		tally_object_unref(found);
		return NULL;
	}
	return found;
}

/* ---- by build-id --------------------------------------------------------- */

bool tally_search_kept_path(const struct tally_object_search *search,
			    const struct tally_build_id *id, const char *name, char *path)
{
	char hex[2 * TALLY_BUILD_ID_MAX + 1];
	const char *root = search->build_ids ? search->build_ids : tally_environment("HOME");
	if (id->size < 2 || !root)
		return false;
	tally_build_id_format(id, hex);
	int length = snprintf(path, PATH_MAX, "%s%s/.build-id/%.2s/%s/%s", root,
			      search->build_ids ? "" : "/.debug", hex, hex + 2, name);
	return length < PATH_MAX && access(path, R_OK) == 0;
}

static struct tally_object *open_debug_by_build_id(const char *root,
						   const struct tally_build_id *id, int *lack)
{
	char hex[2 * TALLY_BUILD_ID_MAX + 1], path[sizeof(DEBUG_ROOT) + 32 + sizeof(hex)];
	if (id->size < 2)
		return NULL;
	tally_build_id_format(id, hex);
	snprintf(path, sizeof(path), DEBUG_ROOT "/.build-id/%.2s/%s.debug", hex, hex + 2);
	return if_wanted(open_candidate(root, path, lack), id);
}

struct tally_object *tally_search_by_build_id(const struct tally_object_search *search,
					      const struct tally_build_id *id)
{
	static const char *const NAMES[] = { "elf", "vdso" };
	struct tally_object *found = NULL;
	char path[PATH_MAX];
	int lack;
	for (size_t i = 0; !found && i < sizeof(NAMES) / sizeof(*NAMES); i++)
		if (tally_search_kept_path(search, id, NAMES[i], path))
			found = if_wanted(open_candidate(NULL, path, &lack), id);
	if (!found && search->root)
		found = open_debug_by_build_id(search->root, id, &lack);
	if (found)
		return found;
	return open_debug_by_build_id(NULL, id, &lack);
}

int tally_search_open(const struct tally_object_search *search, const char *path,
		      struct tally_object **out)
{
	return open_below(search->root, path, out);
}

/* ---- by link ------------------------------------------------------------- */

/* True if `found` is the object's debug file: equal build-ids, where both have one, and an equal
 * checksum. */
static bool belongs(const struct tally_object *object, const struct tally_object *found,
		    uint32_t crc)
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
	return strchr(*name, '/') == NULL; /* a plain name: a path could lead out of the folder */
}

/* Returns the path as seen from the root, when the root contains it. */
static const char *path_below(const char *root, const char *path)
{
	char *real = NULL;
	if (root)
		real = realpath(root, NULL);
	size_t length = 0;
	if (real && real[1])
		length = strlen(real);
	bool is_below = length && !strncmp(path, real, length) && path[length] == '/';
	free(real);
	if (is_below)
		return path + length;
	return path;
}

static struct tally_object *open_by_debuglink(const struct tally_object *object, const char *root,
					      int *lack)
{
	static const char *const PLACES[][2] = { { "", "" },
						 { "", "/.debug" },
						 { DEBUG_ROOT, "" } };
	const char *name;
	uint32_t crc;
	if (!read_debuglink(object, &name, &crc))
		return NULL;
	/* A debug file lies beside the file itself, not beside a symbolic link to it. */
	char *real = NULL;
	if (!root)
		real = realpath(tally_object_path(object), NULL);
	const char *path = real;
	if (!path)
		path = path_below(root, tally_object_path(object));
	const char *slash = strrchr(path, '/');
	struct tally_object *found = NULL;
	for (size_t i = 0; slash && !found && i < sizeof(PLACES) / sizeof(PLACES[0]); i++) {
		char candidate[PATH_MAX];
		if (snprintf(candidate, sizeof(candidate), "%s%.*s%s/%s", PLACES[i][0],
			     (int)(slash - path), path, PLACES[i][1], name) >= PATH_MAX)
			continue;
		found = open_candidate(root, candidate, lack);
		if (found && !belongs(object, found, crc)) {
			tally_object_unref(found);
			found = NULL;
		}
	}
	free(real);
	return found;
}

/* ---- what is in the object itself ---------------------------------------- */

static struct tally_object *open_debugdata(const struct tally_object *object, int *lack)
{
	struct tally_section section;
	struct tally_object *found = NULL;
	uint8_t *bytes;
	size_t size;
	if (tally_object_section(object, ".symtab", &section) ||
	    !tally_object_section(object, ".gnu_debugdata", &section) || !section.bytes)
		return NULL;
	int rc = tally_unpack(section.bytes, section.size,
			      (size_t)tally_input_limit(TALLY_INPUT_MINIDEBUGINFO), &bytes, &size);
	if (rc == -EFBIG)
		tally_input_note(TALLY_INPUT_MINIDEBUGINFO, tally_object_path(object));
	if (!rc) {
		rc = tally_object_open_memory(tally_object_path(object), bytes, size, &found, NULL);
		free(bytes);
	}
	if (rc == -ENOPKG || rc == -ENOMEM)
		*lack = rc;
	if (rc < 0)
		return NULL;
	tally_object_identify_by(found, object);
	return found;
}

/* ---- all of them --------------------------------------------------------- */

struct tally_object *tally_search_debug(const struct tally_object_search *search,
					const struct tally_object *object, int *lack)
{
	static const struct tally_object_search PLAIN;
	const struct tally_build_id *id = tally_object_build_id(object);
	char path[PATH_MAX];
	int unasked;
	if (!lack)
		lack = &unasked;
	*lack = 0;
	if (!search)
		search = &PLAIN;
	const char *const roots[] = { search->root, NULL };
	struct tally_object *found = NULL;
	for (size_t i = !search->root; !found && i < 2; i++) {
		found = open_debug_by_build_id(roots[i], id, lack);
		if (!found)
			found = open_by_debuglink(object, roots[i], lack);
	}
	if (!found && tally_search_kept_path(search, id, "debug", path))
		found = if_wanted(open_candidate(NULL, path, lack), id);
	if (found)
		return found;
	return open_debugdata(object, lack);
}
