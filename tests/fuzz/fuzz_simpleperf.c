/* simpleperf's section of symbols, from any bytes. */
#include "fuzz.h"

#include "symbol/symbol.h"

#include <stdlib.h>
#include <string.h>

static void check(const struct tally_symbols *symbols)
{
	size_t count;
	const struct tally_symbol *list = tally_symbols_list(symbols, &count);
	for (size_t i = 0; i < count; i++)
		if (list[i].start >= list[i].end || !list[i].name[0] ||
		    (i && list[i].start <= list[i - 1].start))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tally_simpleperf_file file;
	struct tally_symbols *symbols;
	size_t at = 0, before = 0;
	uint64_t offset;
	/* Ends at the end of its memory. */
	uint8_t *exact = malloc(size ? size : 1);
	if (!exact)
		return 0;
	memcpy(exact, data, size);
	while (tally_simpleperf_next(exact, size, &at, &file) > 0) {
		if (at <= before || at > size || strlen(file.path) > size)
			abort();
		before = at;
		if (tally_symbols_from_simpleperf(&file, &offset, &symbols) == 0) {
			check(symbols);
			tally_symbols_free(symbols);
		}
	}
	free(exact);
	return 0;
}
