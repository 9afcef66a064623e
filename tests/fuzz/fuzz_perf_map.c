/* A JIT's perf map; the same text as kallsyms, and as a mangled name. */
#include "fuzz.h"

#include "symbol/symbol.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void check(struct tally_symbols *symbols, size_t size, bool may_overlap)
{
	size_t count;
	const struct tally_symbol *list = tally_symbols_list(symbols, &count);
	for (size_t i = 0; i < count; i++) {
		if (list[i].start >= list[i].end || !list[i].name[0] ||
		    tally_symbols_find(symbols, list[i].start) != &list[i])
			abort();
		if (i > 0 &&
		    list[i].start < (may_overlap ? list[i - 1].start + 1 : list[i - 1].end))
			abort();
		const char *module = tally_symbol_module(symbols, &list[i]);
		if (module && strlen(module) > size)
			abort();
	}
	tally_symbols_free(symbols);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tally_symbols *symbols = NULL;
	size_t skipped;
	/* No NUL follows: readers must respect the length. */
	char *text = malloc(size ? size : 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	if (tally_symbols_from_perf_map(text, size, &skipped, &symbols, NULL) == 0)
		check(symbols, size, false);
	if (tally_symbols_from_kallsyms(text, size, &symbols, NULL) == 0)
		check(symbols, size, true);
	char *name = strndup(text, size < 4096 ? size : 4096);
	if (name) {
		free(tally_demangle(name));
		free(tally_demangle_signature(name));
	}
	free(name);
	free(text);
	return 0;
}
