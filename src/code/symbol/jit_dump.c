/* Reads JIT dumps, whole ones and those that grow.
 *
 * A function has an optional DEBUG_INFO (lines) and an optional UNWINDING_INFO, then a LOAD with
 * name and code; the two belong to this LOAD.  A MOVE has a new address for the number in a LOAD.
 * No record says when code is freed; other code is later put in its place.
 *
 * Two quirks of JITs are corrected.  V8 and its imitators add 0x40 to the addresses of lines,
 * because perf puts an ELF header in front of the code before it reads them: when every function's
 * first line is that far in, all lines are moved back.  And V8 of Node.js 16 to 20 writes file
 * names from freed memory; its names are repaired.
 */
#include "symbol/jit_dump.h"

#include "base/arena.h"
#include "base/binary_search.h"
#include "base/map.h"
#include "base/reader.h"
#include "base/vector.h"
#include "symbol/symbol_internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TALLY_JIT_HEADER_BYTES = 40, TALLY_JIT_PREFIX_BYTES = 16 };

struct tally_jit_parser {
	struct tally_jit_dump *dump;
	struct tally_reader reader; /* reads a record's body */
	struct tally_map function_of_number;
	/* the last DEBUG_INFO, until its LOAD comes; no bytes: none */
	struct tally_reader debug;
	const uint8_t *eh_frame; /* of the last UNWINDING_INFO, until its LOAD comes */
	size_t eh_frame_size;
	uint64_t time_ns, last_ns, base;
	bool is_unordered;
	/* Optional: for a reader whose bytes don't stay.  Copies what the function needs of them.
	 * Returns 0, 1 to leave the function out, or -ENOMEM.  Lines are not read then, and places
	 * come in the order of the records. */
	int (*keep)(struct tally_jit_parser *parser, struct tally_jit_function *function);
};

/* Lines of a JIT's dump, and a repair of V8's file names.
 *
 * V8 of Node.js 16 to 20 copies the name of the function's script, frees the copy, and then writes
 * it, entry by entry. malloc has overwritten the name's beginning, as a rule two words, with
 * anything, NULs included; only the length is right.  (Names of Node's own scripts are not copied,
 * and are whole.  A copy sometimes stays whole as well.)
 *
 * So a name's length comes from where the next entry begins, which is recognised by an address
 * inside the code.  A damaged name is taken to be that of the function's own script, which ends the
 * function's name ("JS:*name FILE:LINE:COLUMN"), if it has the same length.  Otherwise there is no
 * file, and so no line: a wrong one would be worse.  (For code inlined from another script V8 also
 * writes the function's own script, damaged or not.  Those lines are wrong, and nothing in the dump
 * shows it.)
 */

/* perf puts code behind an ELF header of this size, so JITs add it to the lines' addresses. */
enum { ELF_HEADER_BYTES = 0x40, ENTRY_BYTES = 16, LINES_MAX = 1 << 24 };

/* Means "the same as before"; the format has it since 2021. */
static const char SAME_FILE[] = "\xff";

/* True for UTF-8 without control characters.  Overwritten names hardly ever pass. */
static bool is_readable(const char *text)
{
	const uint8_t *at = (const uint8_t *)text;
	while (*at) {
		unsigned more;
		if (*at < 0x80)
			more = 0;
		else if (*at >> 5 == 6)
			more = 1;
		else if (*at >> 4 == 14)
			more = 2;
		else if (*at >> 3 == 30)
			more = 3;
		else
			return false;
		if (*at < 0x20 || *at == 0x7f)
			return false;
		for (at++; more; more--, at++)
			if (*at >> 6 != 2)
				return false;
	}
	return at != (const uint8_t *)text;
}

/* Returns where the file ends in "JS:*name FILE:LINE:COLUMN", V8's form of a function's name; NULL
 * for other names. */
static const char *end_of_file(const char *name)
{
	const char *end = name + strlen(name);
	for (int numbers = 0; numbers < 2; numbers++) {
		const char *digits = end;
		while (digits > name && isdigit((unsigned char)digits[-1]))
			digits--;
		if (digits == end || digits == name || digits[-1] != ':')
			return NULL;
		end = digits - 1;
	}
	if (!memchr(name, ' ', (size_t)(end - name)))
		return NULL;
	return end;
}

struct walk {
	struct tally_jit_dump *dump;
	struct tally_reader *reader;
	const struct tally_jit_function *function;
	uint64_t address;
	const char *file_end; /* in the function's name; NULL: the name is not V8's */
	const char *own;      /* the function's own file, once it was used */
};

static bool is_entry(struct walk *walk, size_t at)
{
	if (at + ENTRY_BYTES >= (size_t)(walk->reader->end - walk->reader->start))
		return false;
	tally_reader_seek(walk->reader, at);
	uint64_t offset = tally_reader_u64(walk->reader) - walk->address;
	return offset <= walk->function->size + ELF_HEADER_BYTES &&
	       tally_reader_u32(walk->reader) < LINES_MAX;
}

/* Finds where the entry behind the name at `from` begins; 0: not found. */
static size_t find_next(struct walk *walk, size_t from)
{
	const uint8_t *bytes = walk->reader->start;
	size_t end = (size_t)(walk->reader->end - bytes),
	       at = from + strlen((const char *)bytes + from) + 1;
	while (at + ENTRY_BYTES < end && (bytes[at - 1] || !is_entry(walk, at)))
		at++;
	if (at + ENTRY_BYTES >= end)
		return 0;
	return at;
}

/* ---- files of V8's ------------------------------------------------------- */

/* Returns the function's own file if it can have this length; NULL otherwise, and without
 * memory. */
static const char *own_file(struct walk *walk, size_t length)
{
	struct tally_jit_dump *dump = walk->dump;
	const char *name = walk->function->name, *start = walk->file_end - length;
	if (walk->own && strlen(walk->own) == length)
		return walk->own;
	if (!length || (size_t)(walk->file_end - name) <= length || start[-1] != ' ')
		return NULL;
	char *file = strndup(start, length);
	if (file && tally_vector_push(&dump->files, file) < 0) {
		free(file);
		file = NULL;
	}
	walk->own = file;
	return file;
}

/* Returns the file that the bytes stand for; NULL: unknown. */
static const char *file_of_bytes(struct walk *walk, const char *bytes, size_t length)
{
	/* an overwritten name contains pointers, which have NULs */
	bool is_name = length >= sizeof(void *) && strlen(bytes) == length && is_readable(bytes);
	if (is_name && strpbrk(bytes, "/:"))
		return bytes;
	return own_file(walk, length);
}

/* ---- entries ------------------------------------------------------------- */

/* Gets the last entry's file.  Zeros may pad the record behind the name, and may also have
 * overwritten the name's end. */
static const char *last_file(struct walk *walk, size_t at)
{
	const char *bytes = (const char *)walk->reader->start + at;
	size_t room = (size_t)(walk->reader->end - walk->reader->start) - at, length = room;
	while (length && !bytes[length - 1])
		length--;
	for (size_t most = length + 2 * sizeof(uint64_t); length < room && length <= most;
	     length++) {
		const char *file = file_of_bytes(walk, bytes, length);
		if (file)
			return file;
	}
	return NULL;
}

/* Gets the file of an entry, whose name begins at `at`.  Returns false when what follows can't be
 * read. */
static bool read_file(struct walk *walk, size_t at, bool is_last, const char **file)
{
	const char *bytes = (const char *)walk->reader->start + at;
	bool is_whole = !walk->file_end && is_readable(bytes);
	if (walk->file_end && is_last) {
		*file = last_file(walk, at);
		return false;
	}
	size_t next;
	*file = NULL;
	if (is_whole) {
		next = at + strlen(bytes) + 1;
		*file = bytes;
	} else {
		next = find_next(walk, at);
		if (walk->file_end && next)
			*file = file_of_bytes(walk, bytes, next - at - 1);
	}
	tally_reader_seek(walk->reader, next);
	return next;
}

/* Appends the entries of a DEBUG_INFO; the reader stands behind the code's address.  Returns 0 or
 * -ENOMEM. */
static int jit_lines_read(struct tally_jit_dump *dump, struct tally_reader *reader,
			  const struct tally_jit_function *function, uint64_t address)
{
	struct walk walk = { .dump = dump,
			     .reader = reader,
			     .function = function,
			     .address = address,
			     .file_end = end_of_file(function->name) };
	uint64_t count = tally_reader_u64(reader);
	const char *last = NULL;
	bool goes_on = true;
	for (uint64_t i = 0; i < count && goes_on && tally_reader_left(reader) > ENTRY_BYTES; i++) {
		struct tally_jit_line line = { .offset = tally_reader_u64(reader) - address };
		line.line = tally_reader_u32(reader);
		line.column = tally_reader_u32(reader);
		size_t name_at = tally_reader_offset(reader);
		line.file = tally_reader_string(reader);
		if (line.offset > function->size + ELF_HEADER_BYTES || !line.file)
			break;
		if (!strcmp(line.file, SAME_FILE))
			line.file = last;
		else
			goes_on = read_file(&walk, name_at, i + 1 == count, &line.file);
		last = line.file;
		if (tally_vector_push(&dump->lines, line) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Removes what JITs add to lines' addresses for perf's sake.  Call it when all functions have been
 * read. */
static void jit_lines_put_back(struct tally_jit_dump *dump)
{
	for (size_t i = 0; i < dump->lines.count; i++)
		if (dump->lines.items[i].offset < ELF_HEADER_BYTES)
			return;
	for (size_t i = 0; i < dump->lines.count; i++)
		dump->lines.items[i].offset -= ELF_HEADER_BYTES;
}

/* Finds which code was at an address at a given time, while code comes, moves and is overwritten.
 *
 * Places are intervals of addresses, ordered by time.  A lookup wants the latest place, among those
 * up to a time, that contains an address.  Two simpler structures don't do.  A sorted array that is
 * updated as time goes on would need 100,000 insertions, and could not answer for the past.  Pieces
 * of the address space, each with a history, take space quadratic in the nesting.
 *
 * So this is a balanced tree by start address, stored as a sorted array (the root of a range is its
 * middle).  Each node has the furthest end and the latest place of its range, so a search skips
 * every range that can't reach the address or can't beat the best place found. */

struct node {
	uint64_t start, end;       /* addresses of the place */
	uint64_t furthest;         /* highest end in the node's range */
	uint32_t order;            /* position of the place by time */
	uint32_t latest, earliest; /* of the orders in the node's range */
};

struct tally_jit_index {
	struct node *nodes;
	size_t count;
};

/* The recursion's depth is the logarithm of the count. */
static void sum_up(struct node *nodes, size_t count)
{
	struct node *root = &nodes[count / 2];
	root->furthest = root->end;
	root->latest = root->earliest = root->order;
	const struct {
		struct node *nodes;
		size_t count;
	} halves[] = {
		{ nodes, count / 2 },
		{ root + 1, count - count / 2 - 1 },
	};
	for (unsigned i = 0; i < 2; i++) {
		if (!halves[i].count)
			continue;
		sum_up(halves[i].nodes, halves[i].count);
		const struct node *half = &halves[i].nodes[halves[i].count / 2];
		if (half->furthest > root->furthest)
			root->furthest = half->furthest;
		if (half->latest > root->latest)
			root->latest = half->latest;
		if (half->earliest < root->earliest)
			root->earliest = half->earliest;
	}
}

static void fill(struct tally_jit_index *index, const struct tally_jit_dump *dump, size_t first,
		 const struct tally_radix_item *sorted)
{
	for (size_t i = 0; i < index->count; i++) {
		uint32_t order = (uint32_t)first + sorted[i].index;
		const struct tally_jit_place *place = &dump->places.items[order];
		index->nodes[i] = (struct node){
			.start = place->address,
			.order = order,
			.end = place->address + dump->functions.items[place->function].size
		};
	}
	if (index->count)
		sum_up(index->nodes, index->count);
}

static void jit_index_free(struct tally_jit_index *index)
{
	if (index)
		free(index->nodes);
	free(index);
}

struct tally_jit_index *tally_jit_index_new(const struct tally_jit_dump *dump, size_t first)
{
	struct tally_jit_index *index = calloc(1, sizeof(*index));
	size_t count = dump->places.count - first;
	struct tally_radix_item *keys = calloc(2 * count + 1, sizeof(*keys));
	if (index)
		index->nodes = calloc(count + 1, sizeof(*index->nodes));
	if (!index || !index->nodes || !keys) {
		free(keys);
		jit_index_free(index);
		return NULL;
	}
	index->count = count;
	for (size_t i = 0; i < count; i++)
		keys[i] = (struct tally_radix_item){ dump->places.items[first + i].address,
						     (uint32_t)i };
	fill(index, dump, first, tally_radix_sort(keys, keys + count, count));
	free(keys);
	return index;
}

/* `best` is 1 + the order of the best place so far; 0: none yet. */
static size_t find(const struct node *nodes, size_t count, uint64_t address, size_t limit,
		   size_t best)
{
	while (count) {
		const struct node *root = &nodes[count / 2];
		if (root->furthest <= address || root->latest < best || root->earliest >= limit)
			break;
		if (root->start > address) {
			count /= 2;
			continue;
		}
		if (address < root->end && root->order < limit && root->order + (size_t)1 > best)
			best = root->order + (size_t)1;
		best = find(nodes, count / 2, address, limit, best);
		nodes = root + 1;
		count -= count / 2 + 1;
	}
	return best;
}

static const struct tally_jit_place *jit_index_find(const struct tally_jit_index *index,
						    const struct tally_jit_dump *dump,
						    uint64_t address, size_t limit)
{
	size_t best = find(index->nodes, index->count, address, limit, 0);
	if (!best)
		return NULL;
	return &dump->places.items[best - 1];
}

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
	int result = jit_lines_read(dump, &parser->debug, function, address);
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
	if (function.size)
		function.bytes = tally_reader_bytes(reader, function.size);
	if (reader->failed || !function.size || dump->functions.count >= UINT32_MAX - 1 ||
	    dump->lines.count >= UINT32_MAX / 2)
		return 1;
	if (!*function.name)
		function.name = "[JIT]";
	function.eh_frame = parser->eh_frame;
	function.eh_frame_size = parser->eh_frame_size;
	int result;
	if (parser->keep)
		result = parser->keep(parser, &function);
	else
		result = add_lines(parser, &function, address);
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

/* Notes a move of a function that was left out: its code lies over other code now. */
static int add_unkept(struct tally_jit_parser *parser, uint64_t address, uint64_t size)
{
	struct tally_jit_dump *dump = parser->dump;
	struct tally_jit_function function = { .name = "", .base = parser->base, .size = size };
	if (!size || dump->functions.count >= UINT32_MAX - 1)
		return 1;
	int result = parser->keep(parser, &function);
	if (result < 0)
		return result;
	if (result)
		return 0;
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
	if (reader->failed || !function)
		return 1;
	return add_place(parser, (uint32_t)*function, address);
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

/* Reads the whole records that `bytes` begin with, and sets *read to their bytes.  Returns 0 or
 * -ENOMEM: a dump that ends within a record is no error, since it may still be written. */
static int jit_parser_records(struct tally_jit_parser *parser, const uint8_t *bytes, size_t size,
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
	if (result < 0)
		return result;
	return 0;
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

/* Returns the bytes of the record that begins with these bytes; 0 if there is no whole header of
 * one. */
static uint32_t next_record(const uint8_t *bytes, size_t size, bool swap)
{
	struct tally_reader reader;
	tally_reader_init(&reader, bytes, size, swap);
	tally_reader_u32(&reader); /* its type */
	uint32_t total = tally_reader_u32(&reader);
	if (reader.failed || total < TALLY_JIT_PREFIX_BYTES)
		return 0;
	return total;
}

/* Reads the dump's header, and sets *total to its bytes.  Returns false when this is no dump, or
 * one of an unknown version. */
static bool jit_parser_header(struct tally_jit_dump *dump, struct tally_reader *reader,
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

bool tally_jit_extent_go_on(struct tally_jit_extent *extent, const void *bytes, size_t size)
{
	struct tally_jit_dump unused = { 0 };
	struct tally_error why;
	struct tally_reader reader;
	uint64_t at = 0;
	uint32_t total = 0;
	if (!extent->has_header) {
		tally_reader_init(&reader, bytes, size, false);
		if (!jit_parser_header(&unused, &reader, &total, &why))
			return false;
		extent->has_header = true;
		extent->swap = reader.swap;
		at = total;
	}
	bool is_record = at > 0;
	while (at < size && size - at >= TALLY_JIT_PREFIX_BYTES) {
		total = next_record((const uint8_t *)bytes + at, size - at, extent->swap);
		if (!total)
			break;
		is_record = true;
		at += total;
	}
	extent->at += at;
	return is_record;
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
	if (parser.dump && !jit_parser_header(parser.dump, &header, &total, &why)) {
		tally_jit_dump_free(parser.dump);
		if (err)
			*err = why;
		return why.code;
	}
	if (!parser.dump)
		goto no_memory;
	if (total <= size) {
		size_t read;
		if (jit_parser_records(&parser, (const uint8_t *)bytes + total, size - total,
				       header.swap, &read) < 0)
			goto no_memory;
		parser.dump->damaged += read < size - total;
	}
	if (parser.is_unordered && sort_places(parser.dump) < 0)
		goto no_memory;
	jit_lines_put_back(parser.dump);
	parser.dump->index = tally_jit_index_new(parser.dump, 0);
	if (!parser.dump->index)
		goto no_memory;
	tally_map_release(&parser.function_of_number);
	*out = parser.dump;
	return 0;
no_memory:
	tally_map_release(&parser.function_of_number);
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
	jit_index_free(dump->index);
	free(dump);
}

/* ---- looking up ---------------------------------------------------------- */

size_t tally_jit_dump_places_at(const struct tally_jit_dump *dump, uint64_t time_ns)
{
	return tally_search(i, 0, dump->places.count, dump->places.items[i].time_ns > time_ns);
}

const struct tally_jit_place *tally_jit_dump_find(const struct tally_jit_dump *dump,
						  uint64_t address, size_t limit)
{
	return jit_index_find(dump->index, dump, address, limit);
}

const struct tally_jit_function *tally_jit_dump_function(const struct tally_jit_dump *dump,
							 uint64_t address)
{
	size_t behind = tally_search(i, 0, dump->functions.count,
				     dump->functions.items[i].base > address);
	if (!behind)
		return NULL;
	const struct tally_jit_function *function = &dump->functions.items[behind - 1];
	if (address - function->base >= function->size)
		return NULL;
	return function;
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
	if (best && best->file)
		return best;
	return NULL;
}

int tally_jit_dump_symbols(const struct tally_jit_dump *dump, struct tally_symbols **out)
{
	struct tally_symbol *list;
	int result = tally_symbols_new(dump->functions.count, &list, out);
	if (result)
		return result;
	for (size_t i = 0; i < dump->functions.count; i++) {
		const struct tally_jit_function *function = &dump->functions.items[i];
		list[i] = (struct tally_symbol){ function->base, function->base + function->size,
						 function->name };
	}
	tally_symbols_nest(*out);
	return 0;
}

/* A dump that grows is read like a whole one, but its bytes are dropped as soon as they are read.
 * So only what lookups need is copied.  Functions before the first one with unwind rules are left
 * out: a JIT that writes no rules costs no memory.
 *
 * Places are indexed in two parts.  The first is large and is seldom made anew.  The second has the
 * places that were added since; the next lookup after new places makes it anew.
 */

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

/* Many functions have the same rules as the function before them: these are kept once. */
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
	uint64_t code_at = 0;
	if (function->bytes)
		code_at = growth->window_at + (uint64_t)(function->bytes - growth->window);
	function->name = "";
	function->bytes = NULL;
	if (function->eh_frame_size)
		function->eh_frame = keep_rules(growth, function->eh_frame,
						function->eh_frame_size);
	else
		function->eh_frame = NULL;
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
	jit_index_free(growth->first);
	jit_index_free(growth->later);
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
	if (!jit_parser_header(growth->parser.dump, &reader, &total, &why))
		return why.code;
	*wanted = total;
	growth->swap = reader.swap;
	growth->has_header = total <= size;
	*read = growth->has_header ? total : 0;
	return 0;
}

/* Copies the rules that wait for their LOAD, since the bytes that they lie in are dropped. */
static int keep_pending(struct tally_jit_growth *growth)
{
	struct tally_jit_parser *parser = &growth->parser;
	size_t size = 0;
	if (parser->eh_frame)
		size = parser->eh_frame_size;
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
	int result = jit_parser_records(&growth->parser, growth->window, size - head, growth->swap,
					&records);
	if (!result)
		result = keep_pending(growth);
	*read = head + records;
	*wanted = next_record(growth->window + records, size - *read, growth->swap);
	growth->at += *read;
	if (!result && is_too_large(growth))
		return -EFBIG;
	return result;
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

/* Returns false when memory is out. */
static bool make_index(struct tally_jit_growth *growth)
{
	const struct tally_jit_dump *dump = growth->parser.dump;
	size_t count = dump->places.count;
	if (growth->indexed == count)
		return true;
	jit_index_free(growth->later);
	growth->later = NULL;
	if (count - growth->first_count > growth->first_count / 4 + LATER_PLACES) {
		jit_index_free(growth->first);
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
	size_t limit = dump->places.count;
	if (!dump->has_cycle_times)
		limit = tally_jit_dump_places_at(dump, time_ns);
	if (growth->later)
		place = jit_index_find(growth->later, dump, address, limit);
	if (!place && growth->first)
		place = jit_index_find(growth->first, dump, address, limit);
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
