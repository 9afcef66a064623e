/* Line number programs (DWARF 5, 6.2): a header with tables of directories and files, then a
 * program for a machine with a few registers.  Running the program makes a table of addresses.
 *
 * Rows that repeat the previous line are left out; the last of several rows at one address is kept,
 * because a lookup takes the last row at or before an address. */
#include "symbol/lines_internal.h"

#include <dwarf.h>
#include <errno.h>

struct program {
	struct tally_dwarf_lines *lines;
	const struct tally_dwarf_unit *unit;
	struct tally_reader reader;
	uint8_t offset_size, address_size;
	uint8_t min_instruction, max_operations, line_range, opcode_base;
	int8_t line_base;
	const uint8_t *lengths; /* number of operands of the standard opcodes, from opcode 1 on */
	/* Effects of each special opcode. */
	uint32_t steps[256];
	int32_t lines_by[256];
	/* The machine's registers. */
	uint64_t address, operation;
	uint32_t file, line, column;
	size_t first; /* first row of the current sequence */
	bool out_of_memory;
};

static void reset(struct program *program)
{
	program->address = program->operation = 0;
	program->file = program->line = 1;
	program->column = 0;
	program->first = program->lines->rows.count;
}

static void advance(struct program *program, uint64_t steps)
{
	if (program->max_operations <= 1) {
		program->address += steps * program->min_instruction;
		return;
	}
	/* Instructions with several operations (VLIW): only whole instructions move the address. */
	uint64_t operation = program->operation + steps;
	program->address += operation / program->max_operations * program->min_instruction;
	program->operation = operation % program->max_operations;
}

static void end_sequence(struct program *program)
{
	struct tally_dwarf_lines *lines = program->lines;
	size_t count = lines->rows.count - program->first;
	uint64_t start = 0;
	if (count)
		start = lines->rows.items[program->first].address;
	if (count == 0 || program->address <= lines->rows.items[lines->rows.count - 1].address)
		lines->rows.count = program->first;
	else if (tally_vector_push(&lines->sequences,
				   (struct tally_dwarf_sequence){ start, program->address,
								  program->first, count }) < 0)
		program->out_of_memory = true;
	program->first = lines->rows.count;
}

static inline void emit(struct program *program)
{
	struct tally_dwarf_lines *lines = program->lines;
	struct tally_dwarf_row row = { program->address, program->file, program->line,
				       program->column };
	if (lines->rows.count > program->first) {
		struct tally_dwarf_row *last = &lines->rows.items[lines->rows.count - 1];
		if (last->address == row.address) {
			*last = row;
			return;
		}
		if (last->file == row.file && last->line == row.line &&
		    last->column == row.column && last->address < row.address)
			return;
		if (last->address > row.address) {
			/* The address must not decrease.  End the sequence here; the row before has
			 * no known end. */
			lines->rows.count--;
			uint64_t address = program->address;
			program->address = last->address;
			end_sequence(program);
			program->address = address;
		}
	}
	if (tally_vector_push(&lines->rows, row) < 0)
		program->out_of_memory = true;
}

static void run_extended(struct program *program)
{
	uint64_t length = tally_reader_uleb(&program->reader);
	if (length == 0 || !tally_reader_need(&program->reader, length))
		return;
	struct tally_reader reader = program->reader;
	reader.end = program->reader.at += length;
	switch (tally_reader_u8(&reader)) {
	case DW_LNE_end_sequence:
		end_sequence(program);
		reset(program);
		break;
	case DW_LNE_set_address:
		if (length - 1 <= 8)
			program->address = tally_reader_fixed(&reader, (unsigned)(length - 1));
		program->operation = 0;
		break;
	case DW_LNE_define_file: {
		struct tally_dwarf_source source = { .name = tally_reader_string(&reader) };
		source.directory = tally_reader_uleb(&reader);
		if (source.name && tally_vector_push(&program->lines->sources, source) < 0)
			program->out_of_memory = true;
		break;
	}
	default: /* discriminators and unknown opcodes */
		break;
	}
}

static void run_standard(struct program *program, uint8_t opcode)
{
	struct tally_reader *reader = &program->reader;
	switch (opcode) {
	case DW_LNS_copy:
		emit(program);
		break;
	case DW_LNS_advance_pc:
		advance(program, tally_reader_uleb(reader));
		break;
	case DW_LNS_advance_line:
		program->line += (uint32_t)tally_reader_sleb(reader);
		break;
	case DW_LNS_set_file:
		program->file = (uint32_t)tally_reader_uleb(reader);
		break;
	case DW_LNS_set_column:
		program->column = (uint32_t)tally_reader_uleb(reader);
		break;
	case DW_LNS_const_add_pc:
		advance(program, program->steps[255]);
		break;
	case DW_LNS_fixed_advance_pc:
		program->address += tally_reader_u16(reader);
		program->operation = 0;
		break;
	/* Flags that we don't need, and opcodes of later versions: the header gives their number of
	 * operands. */
	default:
		for (unsigned i = 0; i < program->lengths[opcode - 1]; i++)
			tally_reader_uleb(reader);
	}
}

static void run(struct program *program)
{
	struct tally_reader *reader = &program->reader;
	for (unsigned opcode = program->opcode_base; opcode < 256; opcode++) {
		unsigned adjusted = opcode - program->opcode_base;
		program->steps[opcode] = 0;
		program->lines_by[opcode] = program->line_base;
		if (!program->line_range)
			continue;
		program->steps[opcode] = adjusted / program->line_range;
		program->lines_by[opcode] += (int)(adjusted % program->line_range);
	}
	reset(program);
	while (reader->at < reader->end && !program->out_of_memory) {
		uint8_t opcode = *reader->at++;
		if (opcode >= program->opcode_base) {
			advance(program, program->steps[opcode]);
			program->line += (uint32_t)program->lines_by[opcode];
			emit(program);
		} else if (opcode == 0) {
			run_extended(program);
		} else {
			run_standard(program, opcode);
		}
	}
	program->lines->rows.count = program->first; /* drops a sequence without an end */
}

/* ---- the tables before the program ---- */

static int read_old_tables(struct program *program)
{
	struct tally_reader *reader = &program->reader;
	struct tally_dwarf_lines *lines = program->lines;
	if (tally_vector_push(&lines->directories, program->unit->directory) < 0)
		return -ENOMEM;
	for (;;) {
		const char *name = tally_reader_string(reader);
		if (!name || !*name)
			break;
		if (tally_vector_push(&lines->directories, name) < 0)
			return -ENOMEM;
	}
	/* Files are counted from 1. */
	if (tally_vector_push(&lines->sources, (struct tally_dwarf_source){ 0 }) < 0)
		return -ENOMEM;
	for (;;) {
		const char *name = tally_reader_string(reader);
		if (!name || !*name)
			return 0;
		struct tally_dwarf_source source = { name, tally_reader_uleb(reader) };
		tally_reader_uleb(reader); /* time */
		tally_reader_uleb(reader); /* size */
		if (tally_vector_push(&lines->sources, source) < 0)
			return -ENOMEM;
	}
}

struct entry_format {
	unsigned count;
	struct {
		uint64_t content;
		struct tally_dwarf_attribute attribute;
	} fields[255];
};

static void read_format(struct program *program, const struct tally_dwarf_unit *unit,
			struct entry_format *format)
{
	format->count = tally_reader_u8(&program->reader);
	for (unsigned i = 0; i < format->count; i++) {
		format->fields[i].content = tally_reader_uleb(&program->reader);
		uint64_t form = tally_reader_uleb(&program->reader);
		format->fields[i].attribute = (struct tally_dwarf_attribute){
			.form = form > UINT16_MAX ? 0 : (uint16_t)form,
			.size = tally_dwarf_form_size(form, unit),
		};
	}
}

static bool read_entry(struct program *program, const struct tally_dwarf_unit *unit,
		       const struct entry_format *format, struct tally_dwarf_source *entry)
{
	*entry = (struct tally_dwarf_source){ 0 };
	for (unsigned i = 0; i < format->count; i++) {
		struct tally_dwarf_value value;
		if (!tally_dwarf_read_value(&program->reader, unit, &format->fields[i].attribute,
					    &value))
			return false;
		if (format->fields[i].content == DW_LNCT_path)
			entry->name = tally_dwarf_string(unit, &value);
		else if (format->fields[i].content == DW_LNCT_directory_index)
			entry->directory = value.number;
	}
	return true;
}

static int read_new_tables(struct program *program)
{
	struct tally_dwarf_lines *lines = program->lines;
	/* The table has its own size of offsets and addresses, which may differ from the unit's. */
	struct tally_dwarf_unit unit = *program->unit;
	unit.offset_size = program->offset_size;
	unit.address_size = program->address_size;
	for (unsigned table = 0; table < 2; table++) {
		struct entry_format format;
		read_format(program, &unit, &format);
		uint64_t count = tally_reader_uleb(&program->reader);
		for (uint64_t i = 0; i < count && program->reader.at < program->reader.end; i++) {
			struct tally_dwarf_source entry;
			const uint8_t *start = program->reader.at;
			/* If an entry took no bytes, nothing would bound the count. */
			if (!read_entry(program, &unit, &format, &entry) ||
			    program->reader.at == start)
				return 0;
			if (table == 0 && tally_vector_push(&lines->directories, entry.name) < 0)
				return -ENOMEM;
			if (table == 1 && tally_vector_push(&lines->sources, entry) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

/* Reads the header up to the tables; `program_start` is where the program begins. */
static bool read_header(struct program *program, const uint8_t **program_start)
{
	struct tally_reader *reader = &program->reader;
	if (reader->failed || !tally_dwarf_enter_length(reader, &program->offset_size))
		return false;
	uint16_t version = tally_reader_u16(reader);
	if (version < 2 || version > 5)
		return false;
	program->lines->version = (uint8_t)version;
	program->address_size = program->unit->address_size;
	if (version >= 5) {
		program->address_size = tally_reader_u8(reader);
		tally_reader_u8(reader); /* size of segment selectors */
	}
	uint64_t length = tally_reader_fixed(reader, program->offset_size);
	if (!tally_reader_need(reader, length))
		return false;
	*program_start = reader->at + length;
	program->min_instruction = tally_reader_u8(reader);
	program->max_operations = 1;
	if (version >= 4)
		program->max_operations = tally_reader_u8(reader);
	tally_reader_u8(reader); /* default_is_stmt */
	program->line_base = (int8_t)tally_reader_u8(reader);
	program->line_range = tally_reader_u8(reader);
	program->opcode_base = tally_reader_u8(reader);
	if (program->opcode_base == 0)
		return false;
	program->lengths = reader->at;
	tally_reader_skip(reader, program->opcode_base - 1u);
	return !reader->failed;
}

/* Fills `program`, whose reader is then at the program itself.  1; 0 where there is none, or the
 * header is damaged; -ENOMEM. */
static int read_tables(struct tally_dwarf_scratch *scratch, struct tally_dwarf_lines *lines,
		       const struct tally_dwarf_unit *unit, struct program *program)
{
	lines->directories.count = lines->sources.count = lines->rows.count =
		lines->sequences.count = 0;
	if (!unit->has_lines)
		return 0;
	program->lines = lines;
	program->unit = unit;
	program->reader = tally_dwarf_reader_at(unit->file, TALLY_DWARF_LINE, unit->line_offset);
	const uint8_t *start, *header = program->reader.at;
	if (!read_header(program, &start) ||
	    !tally_dwarf_charge(scratch, (uint64_t)(start - header)))
		return 0;
	/* The tables must not extend into the program. */
	const uint8_t *end = program->reader.end;
	program->reader.end = program->reader.at;
	if (start > program->reader.at)
		program->reader.end = start;
	int result;
	if (lines->version >= 5)
		result = read_new_tables(program);
	else
		result = read_old_tables(program);
	if (result < 0)
		return -ENOMEM;
	tally_reader_init(&program->reader, start, (size_t)(end - start), unit->file->swap);
	return 1;
}

int tally_dwarf_lines_read(struct tally_dwarf_scratch *scratch, struct tally_dwarf_lines *lines,
			   const struct tally_dwarf_unit *unit)
{
	struct program program = { 0 };
	int result = read_tables(scratch, lines, unit, &program);
	if (result < 0)
		return result;
	if (!result || !tally_dwarf_charge(scratch, tally_reader_left(&program.reader)))
		return 0;
	run(&program);
	if (program.out_of_memory)
		return -ENOMEM;
	return 0;
}

int tally_dwarf_lines_read_tables(struct tally_dwarf_scratch *scratch,
				  struct tally_dwarf_lines *lines,
				  const struct tally_dwarf_unit *unit)
{
	struct program program = { 0 };
	int result = read_tables(scratch, lines, unit, &program);
	if (result < 0)
		return result;
	return 0;
}

void tally_dwarf_lines_release(struct tally_dwarf_lines *lines)
{
	tally_vector_release(&lines->directories);
	tally_vector_release(&lines->sources);
	tally_vector_release(&lines->rows);
	tally_vector_release(&lines->sequences);
}

/* Longer strings are no paths. */
enum { PATH_MAX_BYTES = 16384 };

const char *tally_dwarf_source_path(const struct tally_dwarf_lines *lines,
				    const struct tally_dwarf_unit *unit, uint64_t file,
				    struct tally_arena *arena)
{
	if (file >= lines->sources.count || !lines->sources.items[file].name)
		return NULL;
	const struct tally_dwarf_source *source = &lines->sources.items[file];
	const char *parts[3] = { NULL, NULL, source->name };
	if (source->name[0] != '/') {
		if (source->directory < lines->directories.count)
			parts[1] = lines->directories.items[source->directory];
		if (!parts[1] || parts[1][0] != '/')
			parts[0] = unit->directory;
		if (parts[1] && source->directory == 0)
			parts[0] = NULL; /* directory 0 is the unit's */
	}
	size_t length = 0;
	for (unsigned i = 0; i < 3; i++) {
		size_t part = 0;
		if (parts[i])
			part = strnlen(parts[i], PATH_MAX_BYTES);
		if (part == PATH_MAX_BYTES)
			return NULL;
		length += part + 1;
	}
	char *path = tally_arena_alloc(arena, length);
	char *at = path;
	for (unsigned i = 0; path && i < 3; i++) {
		if (!parts[i] || !parts[i][0])
			continue;
		if (at > path && at[-1] != '/')
			*at++ = '/';
		size_t part = strlen(parts[i]);
		memcpy(at, parts[i], part);
		at += part;
	}
	return path;
}
