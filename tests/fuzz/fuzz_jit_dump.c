/* A JIT's dump.  Its index of places must agree with a search, and what a growing dump tells must not
 * depend on the pieces.  Its rules are compiled; fuzz_unwind unwinds with them. */
#include "fuzz.h"

#include "symbol/jit_dump.h"
#include "symbol/symbol.h"
#include "task/jit.h"
#include "unwind/unwind.h"

#include <stdlib.h>
#include <string.h>

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

/* Reads in pieces of at least `step` bytes, each from memory of its own; NULL: it is of no use. */
static struct tally_jit_growth *grow(const uint8_t *data, size_t size, size_t step)
{
	struct tally_jit_growth *growth = tally_jit_growth_new();
	size_t at = 0, to = 0, read, wanted;
	int result = growth ? 0 : -1;
	while (!result && to < size) {
		to = size - to < step ? size : to + step;
		uint8_t *piece = malloc(to - at + 1);
		if (!piece)
			break;
		memcpy(piece, data + at, to - at);
		result = tally_jit_growth_read(growth, piece, to - at, &read, &wanted);
		free(piece);
		if (!result && read > to - at)
			abort();
		at += result ? 0 : read;
	}
	if (result) {
		tally_jit_growth_free(growth);
		return NULL;
	}
	return growth;
}

static void look_up_rules(const struct tally_jit_grown *grown)
{
	struct tally_unwind_table *table = grown->function->eh_frame_size
						   ? tally_jit_table(grown->function,
								     grown->machine)
						   : NULL;
	if (table)
		tally_unwind_table_has_rule(table, TALLY_JIT_RULES_AT + grown->offset);
	tally_unwind_table_free(table);
}

/* What is found must not depend on the pieces. */
static void check_growth(const struct tally_jit_dump *dump, const uint8_t *data, size_t size)
{
	enum { PLACES = 50 };
	struct tally_jit_growth *whole = grow(data, size, size),
				*pieces = grow(data, size, size % 61 + 1);
	if (!whole != !pieces)
		abort();
	for (size_t i = 0; whole && i < dump->places.count && i < PLACES; i++) {
		const struct tally_jit_place *place = &dump->places.items[i];
		const uint64_t times[] = { place->time_ns, place->time_ns - 1, UINT64_MAX };
		for (unsigned j = 0; j < 3; j++) {
			struct tally_jit_grown one, other;
			bool is_found = tally_jit_growth_find(whole, place->address, times[j],
							      &one);
			if (is_found !=
			    tally_jit_growth_find(pieces, place->address, times[j], &other))
				abort();
			if (is_found &&
			    (one.number != other.number || one.offset >= one.function->size ||
			     one.code_at != other.code_at || one.code_at >= size))
				abort();
			if (is_found && !j)
				look_up_rules(&one);
		}
	}
	tally_jit_growth_free(whole);
	tally_jit_growth_free(pieces);
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
		check_growth(dump, data, size);
		if (!tally_jit_dump_symbols(dump, &symbols))
			tally_symbols_free(symbols);
		tally_jit_dump_free(dump);
	}
	free(bytes);
	return 0;
}
