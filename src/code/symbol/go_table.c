/* The format is that of Go's package debug/gosym and of runtime/symtab.go.
 *
 * The table has the functions' addresses in ascending order, each with the offset of the function's
 * data: its name, and offsets of sequences that give a value (line, file, inlined function) for
 * each address of the function.  A sequence has pairs of differences: to the value before, and to
 * the address before.
 *
 *     1.2   addresses, and all offsets relative to the table's first byte
 *     1.16  each part (names, files, sequences, functions) is apart; files by compilation unit
 *     1.18  addresses are 32-bit offsets from the program's first function
 *     1.20  a function's data have the line where it begins; inlined calls have another format
 */
#include "symbol/symbol.h"

#include "base/binary_search.h"
#include "base/reader.h"

#include <string.h>

enum { HEADER_BYTES = 8, QUANTUM_AT = 6, WORD_AT = 7 };
enum { INLINED_INDEX = 2, INLINED_TREE = 3 }; /* PCDATA_InlTreeIndex, FUNCDATA_InlTree */

static struct tally_reader reader_at(const struct tally_go_table *table, uint64_t offset)
{
	struct tally_reader reader;
	tally_reader_init(&reader, table->bytes, table->size, table->swap);
	tally_reader_seek(&reader, offset);
	return reader;
}

/* Returns the text at an offset from a part of the table, or NULL. */
static const char *text_at(const struct tally_go_table *table, uint64_t part, uint64_t offset)
{
	struct tally_reader reader = reader_at(table, part);
	tally_reader_skip(&reader, offset);
	return tally_reader_string(&reader);
}

static bool has_small_entries(const struct tally_go_table *table)
{
	return table->version == TALLY_GO_1_18 || table->version == TALLY_GO_1_20;
}

static unsigned entry_size(const struct tally_go_table *table)
{
	if (has_small_entries(table))
		return 4;
	return table->word;
}

static uint64_t entry_at(const struct tally_go_table *table, uint64_t index)
{
	unsigned size = entry_size(table);
	struct tally_reader reader = reader_at(table, table->functions + index * 2 * size);
	uint64_t entry = tally_reader_fixed(&reader, size);
	if (has_small_entries(table))
		return table->text + entry;
	return entry;
}

static void read_parts(struct tally_go_table *table, struct tally_reader *reader)
{
	table->count = tally_reader_fixed(reader, table->word);
	if (table->version == TALLY_GO_1_2) {
		table->functions = tally_reader_offset(reader);
		/* The addresses end with that behind the last function; then comes the offset of
		 * the files. */
		tally_reader_skip(reader, (table->count * 2 + 1) * table->word);
		table->files = tally_reader_u32(reader);
		struct tally_reader files = reader_at(table, table->files);
		table->file_count = tally_reader_u32(&files);
		return;
	}
	tally_reader_fixed(reader, table->word); /* files */
	if (has_small_entries(table))
		table->text = tally_reader_fixed(reader, table->word);
	table->names = tally_reader_fixed(reader, table->word);
	table->units = tally_reader_fixed(reader, table->word);
	table->files = tally_reader_fixed(reader, table->word);
	table->values = tally_reader_fixed(reader, table->word);
	table->functions = table->data = tally_reader_fixed(reader, table->word);
}

bool tally_go_table_open(struct tally_go_table *table, const uint8_t *bytes, size_t size, bool swap)
{
	*table = (struct tally_go_table){ .bytes = bytes, .size = size, .swap = swap };
	struct tally_reader reader = reader_at(table, 0);
	table->version = tally_reader_u32(&reader);
	tally_reader_skip(&reader, 2);
	table->quantum = tally_reader_u8(&reader);
	table->word = tally_reader_u8(&reader);
	bool is_known = table->version == TALLY_GO_1_2 || table->version == TALLY_GO_1_16 ||
			has_small_entries(table);
	if (reader.failed || !is_known || (table->word != 4 && table->word != 8))
		return false;
	read_parts(table, &reader);
	/* The limit keeps sums of offsets below 2^64. */
	uint64_t pair = 2 * entry_size(table);
	return !reader.failed && table->count && table->count <= size / pair &&
	       table->functions <= size && table->count * pair <= size - table->functions &&
	       table->names <= size && table->units <= size && table->files <= size &&
	       table->values <= size;
}

uint64_t tally_go_table_addresses(const struct tally_go_table *table, uint64_t *size)
{
	*size = 0;
	if (!has_small_entries(table))
		*size = (table->count * 2 + 1) * table->word;
	return table->functions;
}

bool tally_go_table_function(const struct tally_go_table *table, uint64_t index,
			     struct tally_go_function *out)
{
	unsigned size = entry_size(table);
	struct tally_reader reader = reader_at(table, table->functions + index * 2 * size + size);
	uint64_t offset = tally_reader_fixed(&reader, size);
	if (reader.failed || offset > table->size - table->data)
		return false;
	out->start = entry_at(table, index);
	out->end = entry_at(table, index + 1);
	out->offset = table->data + offset;
	reader = reader_at(table, out->offset);
	tally_reader_skip(&reader, size);
	const char *name = text_at(table, table->names, tally_reader_u32(&reader));
	out->name = "";
	if (name && !reader.failed)
		out->name = name;
	return out->end > out->start;
}

bool tally_go_table_find(const struct tally_go_table *table, uint64_t address,
			 struct tally_go_function *out)
{
	uint64_t behind = tally_search(i, 0, table->count, entry_at(table, i) > address);
	return behind && tally_go_table_function(table, behind - 1, out) && address < out->end;
}

/* ---- values by address --------------------------------------------------- */

/* A function's data. */
struct data {
	uint32_t files, lines; /* offsets of sequences */
	uint32_t unit;         /* index of its compilation unit's first file */
	uint32_t inlined;      /* offset of the sequence of indices in the tree; 0: none */
	uint32_t tree;         /* offset of the tree; UINT32_MAX: none */
};

static void read_data(const struct tally_go_table *table, uint64_t offset, struct data *data)
{
	struct tally_reader reader = reader_at(table, offset);
	*data = (struct data){ .tree = UINT32_MAX };
	tally_reader_skip(&reader, entry_size(table) + 4 * 4); /* … name, arguments, frame, sp */
	data->files = tally_reader_u32(&reader);
	data->lines = tally_reader_u32(&reader);
	uint32_t pcdata = tally_reader_u32(&reader);
	if (table->version != TALLY_GO_1_2)
		data->unit = tally_reader_u32(&reader);
	if (!has_small_entries(table) || !table->trees)
		return;
	if (table->version == TALLY_GO_1_20)
		tally_reader_skip(&reader, 4); /* the line where it begins */
	tally_reader_skip(&reader, 3);
	uint8_t funcdata = tally_reader_u8(&reader);
	struct tally_reader lists = reader;
	tally_reader_skip(&lists, INLINED_INDEX * 4);
	if (pcdata > INLINED_INDEX)
		data->inlined = tally_reader_u32(&lists);
	lists = reader;
	tally_reader_skip(&lists, (uint64_t)pcdata * 4 + INLINED_TREE * 4);
	if (funcdata > INLINED_TREE)
		data->tree = tally_reader_u32(&lists);
	if (lists.failed)
		data->tree = UINT32_MAX;
}

static int32_t zigzag(uint64_t value)
{
	uint32_t low = (uint32_t)value;
	return (int32_t)(low & 1 ? ~(low >> 1) : low >> 1);
}

/* Returns the value of a sequence at an address, or -1. */
static int32_t value_at(const struct tally_go_table *table, uint32_t sequence, uint64_t start,
			uint64_t address)
{
	struct tally_reader reader = reader_at(table, table->values);
	int32_t value = -1;
	uint64_t at = start;
	tally_reader_skip(&reader, sequence);
	for (bool is_first = true; at <= address; is_first = false) {
		uint64_t difference = tally_reader_uleb(&reader);
		if (reader.failed || (!difference && !is_first))
			return -1;
		value = (int32_t)((uint32_t)value + (uint32_t)zigzag(difference));
		at += (uint32_t)tally_reader_uleb(&reader) * (uint64_t)table->quantum;
	}
	if (reader.failed)
		return -1;
	return value;
}

/* ---- lines and inlined functions ----------------------------------------- */

static const char *file_name(const struct tally_go_table *table, const struct data *data,
			     int32_t number)
{
	if (number < 0)
		return NULL;
	struct tally_reader reader;
	if (table->version == TALLY_GO_1_2) {
		if (!number || (uint64_t)number >= table->file_count)
			return NULL;
		reader = reader_at(table, table->files + (uint64_t)number * 4);
		uint32_t offset = tally_reader_u32(&reader);
		if (reader.failed)
			return NULL;
		return text_at(table, 0, offset);
	}
	reader = reader_at(table, table->units);
	tally_reader_skip(&reader, ((uint64_t)data->unit + (uint32_t)number) * 4);
	uint32_t offset = tally_reader_u32(&reader);
	if (reader.failed || offset == UINT32_MAX)
		return NULL;
	return text_at(table, table->files, offset);
}

static void set_line(const struct tally_go_table *table, const struct data *data, int32_t file,
		     int32_t line, struct tally_line_frame *frame)
{
	frame->file = file_name(table, data, file);
	frame->line = 0;
	if (frame->file && line > 0)
		frame->line = (uint32_t)line;
}

static void set_line_at(const struct tally_go_table *table, const struct data *data,
			uint64_t start, uint64_t address, struct tally_line_frame *frame)
{
	set_line(table, data, value_at(table, data->files, start, address),
		 value_at(table, data->lines, start, address), frame);
}

/* An inlined call. */
struct inlined {
	const char *name;
	/* The call: its place in the code (1.20), or its file, line, and the call around it. */
	uint32_t place;
	int32_t file, line, parent;
};

static bool read_inlined(const struct tally_go_table *table, const struct data *data,
			 int32_t index, struct inlined *out)
{
	bool is_new = table->version == TALLY_GO_1_20;
	struct tally_reader reader;
	tally_reader_init(&reader, table->trees, table->trees_size, table->swap);
	tally_reader_skip(&reader, data->tree);
	tally_reader_skip(&reader, (uint64_t)index * (is_new ? 16 : 20));
	*out = (struct inlined){ .parent = -1, .file = -1 };
	if (is_new) {
		tally_reader_skip(&reader, 4);
	} else {
		out->parent = (int16_t)tally_reader_u16(&reader);
		tally_reader_skip(&reader, 2);
		out->file = (int32_t)tally_reader_u32(&reader);
		out->line = (int32_t)tally_reader_u32(&reader);
	}
	out->name = text_at(table, table->names, tally_reader_u32(&reader));
	out->place = tally_reader_u32(&reader);
	return !reader.failed && out->name && *out->name;
}

size_t tally_go_table_frames(const struct tally_go_table *table, uint64_t address,
			     struct tally_line_frame frames[TALLY_GO_FRAMES_MAX])
{
	struct tally_go_function function;
	struct data data;
	size_t count = 0;
	if (!tally_go_table_find(table, address, &function) || !*function.name)
		return 0;
	read_data(table, function.offset, &data);
	frames[0] = (struct tally_line_frame){ 0 };
	set_line_at(table, &data, function.start, address, &frames[0]);
	int32_t index = -1;
	if (data.inlined && data.tree != UINT32_MAX)
		index = value_at(table, data.inlined, function.start, address);
	while (index >= 0 && count + 1 < TALLY_GO_FRAMES_MAX) {
		struct inlined inlined;
		if (!read_inlined(table, &data, index, &inlined))
			break;
		frames[count++].function = inlined.name;
		frames[count] = (struct tally_line_frame){ 0 };
		uint64_t call = function.start + inlined.place;
		if (table->version == TALLY_GO_1_20) {
			set_line_at(table, &data, function.start, call, &frames[count]);
			index = value_at(table, data.inlined, function.start, call);
		} else {
			set_line(table, &data, inlined.file, inlined.line, &frames[count]);
			index = inlined.parent;
		}
	}
	frames[count++].function = function.name;
	return count;
}
