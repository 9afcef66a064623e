/* The content of the cache on the disk: a blob of symbols, or a blob's whole file under the right
 * name.
 *
 * Byte 0 even: the rest is a blob of symbols.  Its table must find its own entries, and pack to a
 * blob that reads back the same.  Odd: the rest is a file. */
#include "fuzz.h"

#include "base/buffer.h"
#include "object/cache.h"
#include "symbol/symbol.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check(const struct tally_symbols *symbols)
{
	size_t count;
	const struct tally_symbol *list = tally_symbols_list(symbols, &count);
	for (size_t i = 0; i < count; i++)
		if (list[i].start > list[i].end || (i && list[i].start < list[i - 1].start) ||
		    strlen(list[i].name) == SIZE_MAX)
			abort();
	if (count)
		tally_symbols_find(symbols, list[count - 1].start);
}

static void look_at_symbols(const uint8_t *data, size_t size)
{
	struct tally_symbols *symbols, *again;
	struct tally_buffer packed = { 0 };
	uint8_t *copy = malloc(size ? size : 1);
	if (!copy)
		abort();
	memcpy(copy, data, size);
	if (tally_symbols_unpack(copy, size, 0x1000, &symbols) == 0) {
		check(symbols);
		if (tally_symbols_pack(symbols, 0x1000, &packed) == 0) {
			size_t count, count_again;
			if (tally_symbols_unpack(packed.bytes, packed.length, 0x1000, &again) < 0)
				abort();
			tally_symbols_list(symbols, &count);
			tally_symbols_list(again, &count_again);
			if (count != count_again)
				abort();
			tally_symbols_free(again);
		}
		tally_symbols_free(symbols);
	}
	tally_buffer_release(&packed);
	free(copy);
}

/* Returns one folder for all inputs; it stays behind in /tmp. */
static const char *folder(void)
{
	static char path[] = "/tmp/tally-fuzz-XXXXXX";
	static bool is_made;
	if (!is_made && !mkdtemp(path))
		abort();
	is_made = true;
	return path;
}

static int see_entry(void *context, const struct tally_cache_entry *entry)
{
	(void)context;
	if (strlen(entry->kind) > TALLY_CACHE_KIND_MAX ||
	    strlen(entry->object_path) >= TALLY_CACHE_PATH_MAX)
		abort();
	return 0;
}

static void look_at_file(const uint8_t *data, size_t size)
{
	const struct tally_cache_key key = { .id = { .size = 4,
						     .bytes = { 0xde, 0xad, 0xbe, 0xef } },
					     .kind = "symbols",
					     .version = 1 };
	struct tally_disk_cache *cache = tally_cache_open_at(folder(), 1 << 20);
	struct tally_cache_blob blob;
	char path[128];
	snprintf(path, sizeof(path), "%s/deadbeef.symbols.0.blob", folder());
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (!cache || fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
	if (tally_cache_get(cache, &key, &blob)) {
		look_at_symbols(blob.bytes, blob.size);
		tally_cache_blob_release(&blob);
	}
	tally_cache_list(cache, see_entry, NULL);
	tally_cache_close(cache);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	(*data & 1 ? look_at_file : look_at_symbols)(data + 1, size - 1);
	return 0;
}
