/* A JIT's dump.  Its index of places must agree with a search; fuzz_unwind unwinds with its
 * rules. */
#include "symbol/jit_dump.h"
#include "symbol/symbol.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns the latest of the first `limit` places that holds the address. */
static const struct tally_jit_place *look_at_all(const struct tally_jit_dump *dump,
						 uint64_t address, size_t limit)
{
	for (size_t i = limit; i-- > 0;) {
		const struct tally_jit_place *place = &dump->places.items[i];
		if (address - place->address < dump->functions.items[place->function].size)
			return place;
	}
	return NULL;
}

static void check_place(const struct tally_jit_dump *dump, size_t at)
{
	const struct tally_jit_place *place = &dump->places.items[at];
	const struct tally_jit_function *function = &dump->functions.items[place->function];
	if (at && place->time_ns < place[-1].time_ns)
		abort();
	const uint64_t addresses[] = { place->address, place->address + function->size - 1,
				       place->address - 1 };
	const size_t limits[] = { at, at + 1, dump->places.count };
	for (unsigned i = 0; i < 9; i++)
		if (tally_jit_dump_find(dump, addresses[i / 3], limits[i % 3]) !=
		    look_at_all(dump, addresses[i / 3], limits[i % 3]))
			abort();
}

static void check_function(const struct tally_jit_dump *dump,
			   const struct tally_jit_function *function)
{
	volatile uint8_t sum = 0;
	for (uint64_t i = 0; i < function->size; i += 64)
		sum = (uint8_t)(sum + function->bytes[i]);
	for (size_t i = 0; i < function->eh_frame_size; i += 64)
		sum = (uint8_t)(sum + function->eh_frame[i]);
	const struct tally_jit_line *line = tally_jit_dump_line(dump, function->base +
									      function->size - 1);
	if (!strlen(function->name) || tally_jit_dump_function(dump, function->base) != function ||
	    tally_jit_dump_function(dump, function->base + function->size - 1) != function ||
	    (line && line->file && !*line->file))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tally_jit_dump *dump;
	struct tally_symbols *symbols;
	/* A copy, so that the sanitizer sees reads behind it. */
	uint8_t *bytes = malloc(size ? size : 1);
	if (!bytes)
		return 0;
	memcpy(bytes, data, size);
	if (!tally_jit_dump_read(bytes, size, &dump, NULL)) {
		for (size_t i = 0; i < dump->places.count && i < 200; i++)
			check_place(dump, i);
		for (size_t i = 0; i < dump->functions.count; i++)
			check_function(dump, &dump->functions.items[i]);
		if (!tally_jit_dump_symbols(dump, &symbols))
			tally_symbols_free(symbols);
		tally_jit_dump_free(dump);
	}
	free(bytes);
	return 0;
}
