/* A dump that grows is the same as a whole one (jit_dump.c), but that its bytes go as soon as they
 * are read.  Functions before the first one with unwind rules are left out: a JIT that writes none
 * costs no memory.
 *
 * Places are indexed in two parts.  The first is large and seldom made; the other has the places
 * since then and is made anew for each lookup behind new places.
 */
#include "symbol/jit_growth.h"

#include "base/arena.h"
#include "base/vector.h"
#include "symbol/jit_dump_parser.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LATER_PLACES = 4096 };

struct tally_jit_growth {
	struct tally_jit_parser parser; /* first: keep() has its address */
	bool has_header, swap, has_rules;
	uint64_t at;           /* of the next byte in the dump */
	const uint8_t *window; /* the bytes that are read now: from `window_at` on */
	uint64_t window_at;
	struct tally_arena rules;
	size_t rules_bytes;
	const uint8_t *last_rules; /* the last that were kept */
	size_t last_rules_size;
	/* the parser's rules that wait for their LOAD, between two calls */
	struct {
		uint8_t *items;
		size_t count, capacity;
	} pending;
	struct {
		uint64_t *items;
		size_t count, capacity;
	} code_at; /* by function */
	struct tally_jit_index *first, *later;
	size_t first_count, indexed; /* places in the first part, in both */
};

/* Many functions have the rules of the one before. */
static const uint8_t *keep_rules(struct tally_jit_growth *growth, const uint8_t *rules, size_t size)
{
	if (growth->last_rules && size == growth->last_rules_size &&
	    !memcmp(rules, growth->last_rules, size))
		return growth->last_rules;
	growth->last_rules = (const uint8_t *)tally_arena_copy(&growth->rules, (const char *)rules,
							       size);
	growth->last_rules_size = size;
	growth->rules_bytes += size;
	return growth->last_rules;
}

static int keep(struct tally_jit_parser *parser, struct tally_jit_function *function)
{
	struct tally_jit_growth *growth = (struct tally_jit_growth *)parser;
	growth->has_rules |= function->eh_frame_size > 0;
	if (!growth->has_rules)
		return 1;
	uint64_t code_at = function->bytes ? growth->window_at +
						     (uint64_t)(function->bytes - growth->window)
					   : 0;
	function->name = "";
	function->bytes = NULL;
	function->eh_frame = function->eh_frame_size ? keep_rules(growth, function->eh_frame,
								  function->eh_frame_size)
						     : NULL;
	if ((function->eh_frame_size && !function->eh_frame) ||
	    tally_vector_push(&growth->code_at, code_at) < 0)
		return -ENOMEM;
	return 0;
}

struct tally_jit_growth *tally_jit_growth_new(void)
{
	struct tally_jit_growth *growth = calloc(1, sizeof(*growth));
	struct tally_jit_dump *dump = calloc(1, sizeof(*dump));
	if (!growth || !dump) {
		free(growth);
		free(dump);
		return NULL;
	}
	growth->parser.dump = dump;
	growth->parser.keep = keep;
	return growth;
}

void tally_jit_growth_free(struct tally_jit_growth *growth)
{
	if (!growth)
		return;
	tally_jit_dump_free(growth->parser.dump);
	tally_map_release(&growth->parser.function_of_number);
	tally_arena_release(&growth->rules);
	tally_vector_release(&growth->pending);
	tally_vector_release(&growth->code_at);
	tally_jit_index_free(growth->first);
	tally_jit_index_free(growth->later);
	free(growth);
}

/* ---- reading ------------------------------------------------------------- */

static int read_header(struct tally_jit_growth *growth, const uint8_t *bytes, size_t size,
		       size_t *read, size_t *wanted)
{
	struct tally_error why = { 0 };
	struct tally_reader reader;
	uint32_t total = 0;
	*wanted = TALLY_JIT_HEADER_BYTES;
	if (size < TALLY_JIT_HEADER_BYTES)
		return 0;
	tally_reader_init(&reader, bytes, size, false);
	if (!tally_jit_parser_header(growth->parser.dump, &reader, &total, &why))
		return why.code;
	*wanted = total;
	growth->swap = reader.swap;
	growth->has_header = total <= size;
	*read = growth->has_header ? total : 0;
	return 0;
}

/* The rules that wait for their LOAD are among the bytes that go. */
static int keep_pending(struct tally_jit_growth *growth)
{
	struct tally_jit_parser *parser = &growth->parser;
	size_t size = parser->eh_frame ? parser->eh_frame_size : 0;
	parser->debug = (struct tally_reader){ 0 };
	if (!size || parser->eh_frame == growth->pending.items)
		return 0;
	if (tally_vector_reserve(&growth->pending, size) < 0)
		return -ENOMEM;
	memcpy(growth->pending.items, parser->eh_frame, size);
	growth->pending.count = size;
	parser->eh_frame = growth->pending.items;
	return 0;
}

static bool is_too_large(const struct tally_jit_growth *growth)
{
	const struct tally_jit_dump *dump = growth->parser.dump;
	return dump->functions.count > TALLY_JIT_GROWTH_FUNCTIONS_MAX ||
	       dump->places.count > TALLY_JIT_GROWTH_PLACES_MAX ||
	       growth->rules_bytes > TALLY_JIT_GROWTH_RULES_MAX;
}

static size_t next_record(const struct tally_jit_growth *growth, const uint8_t *bytes, size_t size)
{
	struct tally_reader reader;
	tally_reader_init(&reader, bytes, size, growth->swap);
	tally_reader_u32(&reader); /* its type */
	uint32_t total = tally_reader_u32(&reader);
	return reader.failed || total < TALLY_JIT_PREFIX_BYTES ? 0 : total;
}

int tally_jit_growth_read(struct tally_jit_growth *growth, const void *bytes, size_t size,
			  size_t *read, size_t *wanted)
{
	size_t head = 0, records = 0;
	*read = *wanted = 0;
	if (!growth->has_header) {
		int result = read_header(growth, bytes, size, &head, wanted);
		if (result < 0 || !growth->has_header)
			return result;
	}
	growth->window = (const uint8_t *)bytes + head;
	growth->window_at = growth->at + head;
	int result = tally_jit_parser_records(&growth->parser, growth->window, size - head,
					      growth->swap, &records);
	if (!result)
		result = keep_pending(growth);
	*read = head + records;
	*wanted = next_record(growth, growth->window + records, size - *read);
	growth->at += *read;
	return !result && is_too_large(growth) ? -EFBIG : result;
}

void tally_jit_growth_skip(struct tally_jit_growth *growth, size_t size)
{
	growth->at += size;
	growth->parser.eh_frame = NULL;
	growth->parser.eh_frame_size = 0;
}

size_t tally_jit_growth_places(const struct tally_jit_growth *growth)
{
	return growth->parser.dump->places.count;
}

size_t tally_jit_growth_bytes(const struct tally_jit_growth *growth)
{
	enum { INDEX_BYTES = 40 };
	const struct tally_jit_dump *dump = growth->parser.dump;
	return sizeof(*growth) + dump->functions.capacity * sizeof(*dump->functions.items) +
	       dump->places.capacity * (sizeof(*dump->places.items) + INDEX_BYTES) +
	       growth->code_at.capacity * sizeof(*growth->code_at.items) +
	       tally_map_bytes(&growth->parser.function_of_number) +
	       tally_arena_bytes(&growth->rules) + growth->pending.capacity;
}

/* ---- looking up ---------------------------------------------------------- */

/* False: no memory. */
static bool make_index(struct tally_jit_growth *growth)
{
	const struct tally_jit_dump *dump = growth->parser.dump;
	size_t count = dump->places.count;
	if (growth->indexed == count)
		return true;
	tally_jit_index_free(growth->later);
	growth->later = NULL;
	if (count - growth->first_count > growth->first_count / 4 + LATER_PLACES) {
		tally_jit_index_free(growth->first);
		growth->first = tally_jit_index_new(dump, 0);
		growth->first_count = growth->first ? count : 0;
	} else {
		growth->later = tally_jit_index_new(dump, growth->first_count);
	}
	bool is_made = growth->first_count == count || growth->later;
	growth->indexed = is_made ? count : growth->first_count;
	return is_made;
}

bool tally_jit_growth_find(struct tally_jit_growth *growth, uint64_t address, uint64_t time_ns,
			   struct tally_jit_grown *out)
{
	const struct tally_jit_dump *dump = growth->parser.dump;
	const struct tally_jit_place *place = NULL;
	if (!dump->places.count || !make_index(growth))
		return false;
	size_t limit = dump->has_cycle_times ? dump->places.count
					     : tally_jit_dump_places_at(dump, time_ns);
	if (growth->later)
		place = tally_jit_index_find(growth->later, dump, address, limit);
	if (!place && growth->first)
		place = tally_jit_index_find(growth->first, dump, address, limit);
	if (!place)
		return false;
	*out = (struct tally_jit_grown){
		.function = &dump->functions.items[place->function],
		.number = place->function,
		.offset = address - place->address,
		.code_at = growth->code_at.items[place->function],
		.machine = dump->machine,
	};
	return true;
}
