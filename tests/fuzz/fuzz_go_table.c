/* Go's table of functions and lines.  The first two bytes (little-endian) tell how many bytes at
 * the end are trees of inlined functions. */
#include "fuzz.h"

#include "symbol/symbol.h"

#include <stdlib.h>
#include <string.h>

static volatile size_t sink;

static void look(const struct tally_go_table *table, uint64_t address)
{
	struct tally_line_frame frames[TALLY_GO_FRAMES_MAX];
	size_t count = tally_go_table_frames(table, address, frames);
	if (count > TALLY_GO_FRAMES_MAX)
		abort();
	for (size_t i = 0; i < count; i++)
		sink += strlen(frames[i].function) + (frames[i].file ? strlen(frames[i].file) : 0);
}

static void read_table(const uint8_t *bytes, size_t size, size_t trees, bool swap)
{
	struct tally_go_table table;
	uint64_t addresses;
	if (!tally_go_table_open(&table, bytes, size - trees, swap))
		return;
	uint64_t at = tally_go_table_addresses(&table, &addresses);
	if (at > size)
		abort();
	table.trees = bytes + size - trees;
	table.trees_size = trees;
	for (uint64_t i = 0; i < table.count && i < 64; i++) {
		struct tally_go_function function;
		if (!tally_go_table_function(&table, i, &function))
			continue;
		sink += strlen(function.name);
		for (uint64_t step = 0; step < 4; step++)
			look(&table, function.start + step * 16);
		look(&table, function.end - 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	size_t trees = (size_t)(data[0] | data[1] << 8);
	size -= 2;
	uint8_t *bytes = malloc(size ? size : 1); /* no byte follows */
	if (!bytes)
		return 0;
	memcpy(bytes, data + 2, size);
	read_table(bytes, size, trees < size ? trees : 0, false);
	read_table(bytes, size, trees < size ? trees : 0, true);
	free(bytes);
	return 0;
}
