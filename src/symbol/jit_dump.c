/* Reads the records of a JIT's dump.
 *
 * A function has an optional DEBUG_INFO (lines) and an optional UNWINDING_INFO, then a LOAD with
 * name and code; the two belong to this LOAD.  A MOVE has a new address for the number in a LOAD.
 * No record says when code is freed; other code is later put in its place (jit_index.c).
 *
 * Two quirks of JITs are corrected.  V8 and its imitators add 0x40 to the addresses of lines,
 * because perf puts an ELF header in front of the code before it reads them: when every function's
 * first line is that far in, all lines are moved back.  And V8 of Node.js 16 to 20 writes file
 * names from freed memory: jit_lines.c.
 */
#include "symbol/jit_dump.h"

#include "base/radix_sort.h"
#include "base/vector.h"
#include "symbol/jit_dump_parser.h"
#include "symbol/jit_lines.h"
#include "symbol/symbol_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC = 0x4a695444, VERSION = 1, FLAG_CYCLES = 1 };
enum { RECORD_LOAD, RECORD_MOVE, RECORD_DEBUG_INFO, RECORD_CLOSE, RECORD_UNWINDING_INFO };

/* Returns 0, 1 when the record makes no sense, or -ENOMEM.  The functions below do the same. */
static int add_place(struct tally_jit_parser *parser, uint32_t function, uint64_t address)
{
	struct tally_jit_dump *dump = parser->dump;
	uint64_t end;
	if (__builtin_add_overflow(address, dump->functions.items[function].size, &end))
		return 1;
	if (parser->keep && parser->time_ns < parser->last_ns)
		parser->time_ns = parser->last_ns;
	struct tally_jit_place place = { .time_ns = parser->time_ns,
					 .address = address,
					 .function = function };
	parser->is_unordered |= parser->time_ns < parser->last_ns;
	parser->last_ns = parser->time_ns;
	return tally_vector_push(&dump->places, place);
}

static int add_lines(struct tally_jit_parser *parser, struct tally_jit_function *function,
		     uint64_t address)
{
	struct tally_jit_dump *dump = parser->dump;
	size_t first = dump->lines.count;
	if (!parser->debug.start || tally_reader_u64(&parser->debug) != address)
		return 0;
	int result = tally_jit_lines_read(dump, &parser->debug, function, address);
	function->first_line = (uint32_t)first;
	function->line_count = (uint32_t)(dump->lines.count - first);
	return result;
}

static int read_load(struct tally_jit_parser *parser)
{
	struct tally_reader *reader = &parser->reader;
	struct tally_jit_dump *dump = parser->dump;
	struct tally_jit_function function = { .base = parser->base };
	tally_reader_u64(reader); /* pid, tid */
	tally_reader_u64(reader); /* address of its mapping */
	uint64_t address = tally_reader_u64(reader), number;
	function.size = tally_reader_u64(reader);
	number = tally_reader_u64(reader);
	function.name = tally_reader_string(reader);
	function.bytes = function.size ? tally_reader_bytes(reader, function.size) : NULL;
	if (reader->failed || !function.size || dump->functions.count >= UINT32_MAX - 1 ||
	    dump->lines.count >= UINT32_MAX / 2)
		return 1;
	if (!*function.name)
		function.name = "[JIT]";
	function.eh_frame = parser->eh_frame;
	function.eh_frame_size = parser->eh_frame_size;
	int result = parser->keep ? parser->keep(parser, &function)
				  : add_lines(parser, &function, address);
	if (result == 1)
		return 0;
	uint64_t *slot = tally_map_put(&parser->function_of_number, number, NULL);
	if (result < 0 || !slot || tally_vector_push(&dump->functions, function) < 0)
		return -ENOMEM;
	*slot = dump->functions.count - 1;
	/* + 1: a return address behind a function's end must not fall into the next one */
	parser->base += function.size + 1;
	return add_place(parser, (uint32_t)*slot, address);
}

/* Code that the dump needs not have lies over other code now. */
static int add_unkept(struct tally_jit_parser *parser, uint64_t address, uint64_t size)
{
	struct tally_jit_dump *dump = parser->dump;
	struct tally_jit_function function = { .name = "", .base = parser->base, .size = size };
	if (!size || dump->functions.count >= UINT32_MAX - 1)
		return 1;
	int result = parser->keep(parser, &function);
	if (result)
		return result < 0 ? result : 0;
	if (tally_vector_push(&dump->functions, function) < 0)
		return -ENOMEM;
	return add_place(parser, (uint32_t)(dump->functions.count - 1), address);
}

static int read_move(struct tally_jit_parser *parser)
{
	struct tally_reader *reader = &parser->reader;
	tally_reader_u64(reader); /* pid, tid */
	tally_reader_u64(reader); /* address of its mapping */
	tally_reader_u64(reader); /* the old address */
	uint64_t address = tally_reader_u64(reader), size = tally_reader_u64(reader);
	const uint64_t *function = tally_map_get(&parser->function_of_number,
						 tally_reader_u64(reader));
	if (!reader->failed && !function && parser->keep)
		return add_unkept(parser, address, size);
	return reader->failed || !function ? 1 : add_place(parser, (uint32_t)*function, address);
}

static int read_unwinding(struct tally_jit_parser *parser)
{
	struct tally_reader *reader = &parser->reader;
	uint64_t size = tally_reader_u64(reader), index_size = tally_reader_u64(reader);
	tally_reader_u64(reader); /* how much of it the process has mapped */
	const uint8_t *bytes = tally_reader_bytes(reader, size);
	if (reader->failed || index_size > size)
		return 1;
	parser->eh_frame = bytes;
	parser->eh_frame_size = size - index_size;
	return 0;
}

static int read_record(struct tally_jit_parser *parser, uint32_t type)
{
	int result = 0;
	switch (type) {
	case RECORD_LOAD:
		result = read_load(parser);
		parser->debug = (struct tally_reader){ 0 };
		parser->eh_frame = NULL;
		parser->eh_frame_size = 0;
		return result;
	case RECORD_MOVE:
		return read_move(parser);
	case RECORD_DEBUG_INFO:
		parser->debug = parser->reader;
		return 0;
	case RECORD_UNWINDING_INFO:
		return read_unwinding(parser);
	default: /* CLOSE, and records that newer versions may add */
		return 0;
	}
}

int tally_jit_parser_records(struct tally_jit_parser *parser, const uint8_t *bytes, size_t size,
			     bool swap, size_t *read)
{
	size_t at = 0;
	int result = 0;
	while (result >= 0 && size - at >= TALLY_JIT_PREFIX_BYTES) {
		tally_reader_init(&parser->reader, bytes + at, TALLY_JIT_PREFIX_BYTES, swap);
		uint32_t type = tally_reader_u32(&parser->reader),
			 total = tally_reader_u32(&parser->reader);
		parser->time_ns = tally_reader_u64(&parser->reader);
		if (total < TALLY_JIT_PREFIX_BYTES || total > size - at)
			break;
		tally_reader_init(&parser->reader, bytes + at + TALLY_JIT_PREFIX_BYTES,
				  total - TALLY_JIT_PREFIX_BYTES, swap);
		result = read_record(parser, type);
		parser->dump->damaged += result == 1;
		at += total;
	}
	*read = at;
	return result < 0 ? result : 0;
}

static int sort_places(struct tally_jit_dump *dump)
{
	size_t count = dump->places.count;
	struct tally_radix_item *keys = calloc(2 * count + 1, sizeof(*keys));
	struct tally_jit_place *places = calloc(count + 1, sizeof(*places));
	if (!keys || !places) {
		free(keys);
		free(places);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++)
		keys[i] = (struct tally_radix_item){ dump->places.items[i].time_ns, (uint32_t)i };
	const struct tally_radix_item *sorted = tally_radix_sort(keys, keys + count, count);
	for (size_t i = 0; i < count; i++)
		places[i] = dump->places.items[sorted[i].index];
	free(keys);
	free(dump->places.items);
	dump->places.items = places;
	dump->places.capacity = count + 1;
	return 0;
}

bool tally_jit_parser_header(struct tally_jit_dump *dump, struct tally_reader *reader,
			     uint32_t *total, struct tally_error *err)
{
	uint32_t magic = tally_reader_u32(reader);
	if (magic != MAGIC && magic != __builtin_bswap32(MAGIC)) {
		tally_error_set(err, -EBADMSG, "this is no dump of a JIT");
		return false;
	}
	reader->swap = magic != MAGIC;
	uint32_t version = tally_reader_u32(reader);
	*total = tally_reader_u32(reader);
	dump->machine = tally_reader_u32(reader);
	tally_reader_u32(reader);
	dump->pid = tally_reader_u32(reader);
	tally_reader_u64(reader); /* start time, on an unspecified clock */
	dump->has_cycle_times = tally_reader_u64(reader) & FLAG_CYCLES;
	if (!reader->failed && version != VERSION)
		tally_error_set(
			err, -ENOTSUP,
			"the JIT's dump is of version %u: version %d is what tally can read",
			version, VERSION);
	else if (reader->failed || *total < TALLY_JIT_HEADER_BYTES)
		tally_error_set(err, -EBADMSG, "the JIT's dump has no whole header");
	else
		return true;
	return false;
}

int tally_jit_dump_read(const void *bytes, size_t size, struct tally_jit_dump **out,
			struct tally_error *err)
{
	struct tally_error why = { 0 };
	struct tally_jit_parser parser = { .dump = calloc(1, sizeof(*parser.dump)) };
	struct tally_reader header;
	uint32_t total = 0;
	*out = NULL;
	tally_reader_init(&header, bytes, size, false);
	if (parser.dump && !tally_jit_parser_header(parser.dump, &header, &total, &why)) {
		tally_jit_dump_free(parser.dump);
		if (err)
			*err = why;
		return why.code;
	}
	int result = parser.dump ? 0 : -ENOMEM;
	if (!result && total <= size) {
		size_t read;
		result = tally_jit_parser_records(&parser, (const uint8_t *)bytes + total,
						  size - total, header.swap, &read);
		parser.dump->damaged += !result && read < size - total;
	}
	if (!result && parser.is_unordered)
		result = sort_places(parser.dump);
	if (!result) {
		tally_jit_lines_put_back(parser.dump);
		parser.dump->index = tally_jit_index_new(parser.dump, 0);
		result = parser.dump->index ? 0 : -ENOMEM;
	}
	tally_map_release(&parser.function_of_number);
	if (!result) {
		*out = parser.dump;
		return 0;
	}
	tally_jit_dump_free(parser.dump);
	return tally_error_set(err, -ENOMEM, "out of memory for a JIT's dump");
}

void tally_jit_dump_free(struct tally_jit_dump *dump)
{
	if (!dump)
		return;
	for (size_t i = 0; i < dump->files.count; i++)
		free(dump->files.items[i]);
	tally_vector_release(&dump->files);
	tally_vector_release(&dump->functions);
	tally_vector_release(&dump->places);
	tally_vector_release(&dump->lines);
	tally_jit_index_free(dump->index);
	free(dump);
}

/* ---- looking up ---------------------------------------------------------- */

size_t tally_jit_dump_places_at(const struct tally_jit_dump *dump, uint64_t time_ns)
{
	size_t low = 0, high = dump->places.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (dump->places.items[middle].time_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct tally_jit_place *tally_jit_dump_find(const struct tally_jit_dump *dump,
						  uint64_t address, size_t limit)
{
	return tally_jit_index_find(dump->index, dump, address, limit);
}

const struct tally_jit_function *tally_jit_dump_function(const struct tally_jit_dump *dump,
							 uint64_t address)
{
	size_t low = 0, high = dump->functions.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (dump->functions.items[middle].base <= address)
			low = middle + 1;
		else
			high = middle;
	}
	const struct tally_jit_function *function = low ? &dump->functions.items[low - 1] : NULL;
	return function && address - function->base < function->size ? function : NULL;
}

const struct tally_jit_line *tally_jit_dump_line(const struct tally_jit_dump *dump,
						 uint64_t address)
{
	const struct tally_jit_function *function = tally_jit_dump_function(dump, address);
	const struct tally_jit_line *best = NULL;
	for (uint32_t i = 0; function && i < function->line_count; i++) {
		const struct tally_jit_line *line = &dump->lines.items[function->first_line + i];
		if (line->offset <= address - function->base &&
		    (!best || line->offset >= best->offset))
			best = line;
	}
	return best && best->file ? best : NULL;
}

int tally_jit_dump_symbols(const struct tally_jit_dump *dump, struct tally_symbols **out)
{
	struct tally_symbol *list;
	int result = tally_symbols_new(dump->functions.count, &list, out);
	for (size_t i = 0; !result && i < dump->functions.count; i++) {
		const struct tally_jit_function *function = &dump->functions.items[i];
		list[i] = (struct tally_symbol){ function->base, function->base + function->size,
						 function->name };
	}
	if (!result)
		tally_symbols_nest(*out);
	return result;
}
