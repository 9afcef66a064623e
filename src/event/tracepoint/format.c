/* Parses the format file line by line:
 *
 *     name: sched_switch
 *     ID: 314
 *     format:
 *      field:unsigned short common_type; offset:0; size:2; signed:0;
 *
 *      field:char prev_comm[16]; offset:8; size:16; signed:0;
 *      field:__data_loc char[] comm; offset:24; size:4; signed:0;
 *
 *     print fmt: "comm=%s", REC->prev_comm
 *
 * The empty line separates the common fields from the event's own.  Brackets follow the name or the
 * type.  Old kernels lack `signed`; old __data_loc words had two bytes (no length).
 */
#include "tracepoint/tracepoint.h"

#include "base/arena.h"
#include "base/characters.h"
#include "base/text.h"
#include "base/vector.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct line {
	const char *start, *end;
};

struct format_parser {
	struct tally_arena *arena;
	const char *start, *at, *end;
	TALLY_VECTOR(struct tally_tracepoint_field) fields;
	unsigned long_bytes;
	struct tally_error *err;
};

/* Allocated in the arena, which it owns. */
struct tracepoint_owner {
	struct tally_tracepoint tracepoint;
	struct tally_arena arena;
};

static int bad(struct format_parser *parser, const char *at, const char *what)
{
	tally_error_set(parser->err, -EBADMSG, "not a tracepoint's format: %s", what);
	if (parser->err)
		parser->err->position = (int)(at - parser->start);
	return -EBADMSG;
}

static bool next_line(struct format_parser *parser, struct line *line)
{
	if (parser->at >= parser->end)
		return false;
	line->start = parser->at;
	line->end = tally_line_end(parser->at, parser->end);
	parser->at = line->end + (line->end < parser->end);
	while (line->start < line->end && isspace((unsigned char)*line->start))
		line->start++;
	while (line->end > line->start && isspace((unsigned char)line->end[-1]))
		line->end--;
	return true;
}

/* If `line` begins with the word, moves it behind the word and returns true. */
static bool skip_word(struct line *line, const char *word)
{
	size_t length = strlen(word);
	if ((size_t)(line->end - line->start) < length || memcmp(line->start, word, length) != 0)
		return false;
	line->start += length;
	while (line->start < line->end && isspace((unsigned char)*line->start))
		line->start++;
	return true;
}

/* Reads a number.  The text is NUL-terminated, so strtoul() stops in time. */
static bool take_number(struct line *line, uint32_t *value)
{
	if (line->start >= line->end || !isdigit((unsigned char)*line->start))
		return false;
	char *end;
	unsigned long number = strtoul(line->start, &end, 0);
	line->start = end;
	*value = (uint32_t)number;
	return number <= UINT32_MAX;
}

static bool contains(const char *text, const char *word)
{
	return strstr(text, word) != NULL;
}

unsigned tally_tracepoint_type_bytes(const char *type, size_t length, unsigned long_bytes)
{
	while (length > 0 && isspace((unsigned char)type[length - 1]))
		length--;
	static const struct {
		const char *name;
		uint8_t bytes;
	} sizes[] = {
		{ "u8", 1 },  { "s8", 1 },    { "char", 1 },     { "bool", 1 }, { "u16", 2 },
		{ "s16", 2 }, { "short", 2 }, { "u32", 4 },      { "s32", 4 },  { "int", 4 },
		{ "u64", 8 }, { "s64", 8 },   { "unsigned", 4 },
	};
	if (length >= 4 && memcmp(type + length - 4, "long", 4) == 0) {
		if (memmem(type, length, "long long", 9))
			return 8;
		return long_bytes;
	}
	size_t word = length;
	while (word > 0 && tally_is_word_char(type[word - 1]))
		word--;
	while (word < length && type[word] == '_')
		word++;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (strlen(sizes[i].name) == length - word &&
		    memcmp(sizes[i].name, type + word, length - word) == 0)
			return sizes[i].bytes;
	return 0;
}

/* Sets the size of an array's elements: from the length in brackets, otherwise from the type's
 * name.  "nid_t nid[3]; size:4" (f2fs) gives an element's size as the array's. */
static void set_element_bytes(struct format_parser *parser, struct tally_tracepoint_field *field,
			      uint32_t count, size_t base_length)
{
	if (!field->is_array && field->place == TALLY_FIELD_FIXED)
		field->element_bytes = field->size_bytes;
	else if (count > 0 && field->size_bytes % count == 0)
		field->element_bytes = field->size_bytes / count;
	else
		field->element_bytes = tally_tracepoint_type_bytes(field->type, base_length,
								   parser->long_bytes);
	if (field->element_bytes == 0 && count > 1)
		field->element_bytes = field->size_bytes;
}

/* Splits "unsigned long args[6]" or "__data_loc char[] name" into type, name and the number in
 * brackets. */
static int parse_declaration(struct format_parser *parser, struct line declaration,
			     struct tally_tracepoint_field *field, uint32_t *count,
			     size_t *base_length)
{
	const char *start = declaration.start, *end = declaration.end;
	const char *brackets = NULL, *brackets_end = NULL;
	if (end > start && end[-1] == ']') {
		brackets_end = end;
		while (end > start && *--end != '[')
			;
		brackets = end;
	}
	while (end > start && isspace((unsigned char)end[-1]))
		end--;
	const char *name = end;
	while (name > start && tally_is_word_char(name[-1]))
		name--;
	const char *type_end = name;
	while (type_end > start && isspace((unsigned char)type_end[-1]))
		type_end--;
	if (name == end || type_end == start)
		return bad(parser, start, "a field lacks its type or name");
	*base_length = (size_t)(type_end - start);
	if (!brackets && type_end[-1] == ']') {
		brackets_end = type_end;
		const char *base_end = type_end;
		while (base_end > start && *--base_end != '[')
			;
		*base_length = (size_t)(base_end - start);
		brackets = base_end;
	}
	field->name = tally_arena_copy(parser->arena, name, (size_t)(end - name));
	if (brackets)
		field->type = tally_arena_printf(parser->arena, "%.*s%.*s", (int)*base_length,
						 start, (int)(brackets_end - brackets), brackets);
	else
		field->type = tally_arena_copy(parser->arena, start, *base_length);
	if (!field->name || !field->type)
		return -ENOMEM;
	field->is_array = brackets != NULL;
	*count = 0;
	if (brackets) {
		struct line inside = { brackets + 1, brackets_end };
		if (!take_number(&inside, count))
			*count = 0;
	}
	return 0;
}

static void classify(struct tally_tracepoint_field *field)
{
	if (strncmp(field->type, "__data_loc", 10) == 0)
		field->place = TALLY_FIELD_DATA_LOC;
	else if (strncmp(field->type, "__rel_loc", 9) == 0)
		field->place = TALLY_FIELD_REL_LOC;
	if (field->place != TALLY_FIELD_FIXED && field->size_bytes == 2)
		field->is_array = field->is_string = true;
	if (field->is_array && (contains(field->type, "char") || contains(field->type, "u8") ||
				contains(field->type, "s8")))
		field->is_string = true;
	field->is_pointer = contains(field->type, "*");
	field->is_long = contains(field->type, "long");
}

static int parse_field(struct format_parser *parser, struct line line)
{
	struct tally_tracepoint_field field = { 0 };
	if (parser->fields.count >= TALLY_TRACEPOINT_FIELDS_MAX)
		return bad(parser, line.start, "too many fields");
	const char *semicolon = memchr(line.start, ';', (size_t)(line.end - line.start));
	if (!semicolon)
		return bad(parser, line.start, "a field's declaration doesn't end");
	struct line declaration = { line.start, semicolon };
	uint32_t count = 0, is_signed = 0;
	size_t base_length;
	int error = parse_declaration(parser, declaration, &field, &count, &base_length);
	if (error < 0)
		return error;
	line.start = semicolon;
	if (!skip_word(&line, ";") || !skip_word(&line, "offset:") ||
	    !take_number(&line, &field.offset) || !skip_word(&line, ";") ||
	    !skip_word(&line, "size:") || !take_number(&line, &field.size_bytes) ||
	    !skip_word(&line, ";"))
		return bad(parser, line.start, "a field lacks its offset or size");
	if (skip_word(&line, "signed:") && !take_number(&line, &is_signed))
		return bad(parser, line.start, "a field's sign is not a number");
	field.is_signed = is_signed != 0;
	classify(&field);
	set_element_bytes(parser, &field, count, base_length);
	return tally_vector_push(&parser->fields, field);
}

/* Parses the lines after "format:", up to "print fmt:". */
static int parse_body(struct format_parser *parser, struct tally_tracepoint *tracepoint)
{
	struct line line;
	bool is_common = true;
	while (next_line(parser, &line)) {
		if (line.start == line.end) {
			if (is_common && parser->fields.count > 0)
				tracepoint->common_count = parser->fields.count;
			is_common = is_common && parser->fields.count == 0;
			continue;
		}
		if (skip_word(&line, "print fmt:")) {
			/* Takes everything to the text's end: a print format may contain
			 * newlines. */
			tracepoint->print_format = line.start;
			return 0;
		}
		if (!skip_word(&line, "field:") && !skip_word(&line, "field special:"))
			return bad(parser, line.start, "neither a field nor a print format");
		int error = parse_field(parser, line);
		if (error < 0)
			return error;
	}
	return 0;
}

static int parse_head(struct format_parser *parser, struct tally_tracepoint *tracepoint)
{
	struct line line;
	if (!next_line(parser, &line) || !skip_word(&line, "name:") || line.start == line.end)
		return bad(parser, parser->start, "it doesn't begin with a name");
	tracepoint->name = tally_arena_copy(parser->arena, line.start,
					    (size_t)(line.end - line.start));
	if (!tracepoint->name)
		return -ENOMEM;
	if (!next_line(parser, &line) || !skip_word(&line, "ID:") ||
	    !take_number(&line, &tracepoint->id))
		return bad(parser, parser->at, "it has no ID");
	if (!next_line(parser, &line) || !skip_word(&line, "format:"))
		return bad(parser, parser->at, "it has no fields");
	return 0;
}

static int parse_all(struct format_parser *parser, struct tally_tracepoint *tracepoint)
{
	int error = parse_head(parser, tracepoint);
	if (error == 0)
		error = parse_body(parser, tracepoint);
	if (error < 0)
		return error;
	struct tally_tracepoint_field *fields =
		tally_arena_array(parser->arena, parser->fields.count, sizeof(*fields));
	if (!fields)
		return -ENOMEM;
	if (parser->fields.count > 0)
		memcpy(fields, parser->fields.items, parser->fields.count * sizeof(*fields));
	tracepoint->fields = fields;
	tracepoint->field_count = parser->fields.count;
	if (tracepoint->common_count == 0) {
		/* Without an empty line all fields are common ones. */
		tracepoint->common_count = parser->fields.count;
	}
	return 0;
}

int tally_tracepoint_parse(const char *text, size_t length,
			   const struct tally_tracepoint_machine *machine,
			   struct tally_tracepoint **out, struct tally_error *err)
{
	*out = NULL;
	if (length > TALLY_TRACEPOINT_TEXT_MAX)
		return tally_error_set(err, -EBADMSG,
				       "a tracepoint's format of %zu bytes is too long", length);
	struct tally_arena arena = TALLY_ARENA_INIT;
	struct tracepoint_owner *owner = tally_arena_alloc(&arena, sizeof(*owner));
	char *copy = tally_arena_copy(&arena, text, length);
	if (!owner || !copy) {
		tally_arena_release(&arena);
		return tally_error_set(err, -ENOMEM, "no memory for a tracepoint's format");
	}
	struct tally_tracepoint *tracepoint = &owner->tracepoint;
	tracepoint->text = copy;
	tracepoint->text_length = length;
	tracepoint->print_format = "";
	tracepoint->long_bytes = machine && machine->long_bytes == 4 ? 4 : 8;
	tracepoint->swap = machine && machine->swap;
	struct format_parser parser = { .arena = &arena,
					.start = copy,
					.at = copy,
					.end = copy + length,
					.long_bytes = tracepoint->long_bytes,
					.err = err };
	int error = parse_all(&parser, tracepoint);
	tally_vector_release(&parser.fields);
	if (error < 0) {
		tally_arena_release(&arena);
		if (error == -ENOMEM)
			tally_error_set(err, error, "no memory for a tracepoint's format");
		return error;
	}
	owner->arena = arena;
	*out = tracepoint;
	return 0;
}

void tally_tracepoint_free(struct tally_tracepoint *tracepoint)
{
	if (!tracepoint)
		return;
	struct tally_arena arena = ((struct tracepoint_owner *)tracepoint)->arena;
	tally_arena_release(&arena);
}

const struct tally_tracepoint_field *tally_tracepoint_field(
	const struct tally_tracepoint *tracepoint, const char *name)
{
	for (size_t i = 0; i < tracepoint->field_count; i++)
		if (strcmp(tracepoint->fields[i].name, name) == 0)
			return &tracepoint->fields[i];
	return NULL;
}

/* Reads values from an event's raw bytes.  Each access is checked against their size. */

bool tally_tracepoint_u64(const struct tally_tracepoint *tracepoint,
			  const struct tally_tracepoint_field *field, const void *raw, size_t size,
			  uint64_t *value)
{
	return tally_tracepoint_number(tracepoint, raw, size, field->offset, field->size_bytes,
				       value);
}

bool tally_tracepoint_bytes(const struct tally_tracepoint *tracepoint,
			    const struct tally_tracepoint_field *field, const void *raw,
			    size_t size, const void **bytes, size_t *length)
{
	size_t offset = field->offset, count = field->size_bytes;
	if (field->place != TALLY_FIELD_FIXED) {
		uint64_t word;
		if (!tally_tracepoint_u64(tracepoint, field, raw, size, &word))
			return false;
		offset = word & 0xffff;
		if (field->place == TALLY_FIELD_REL_LOC)
			offset += (size_t)field->offset + field->size_bytes;
		if (offset > size)
			return false;
		count = (word >> 16) & 0xffff;
		if (field->size_bytes == 2)
			count = size - offset;
	} else if (count == 0 && offset <= size) {
		count = size - offset; /* a flexible array: the rest of the record */
	}
	if (offset > size || count > size - offset)
		return false;
	*bytes = (const uint8_t *)raw + offset;
	*length = count;
	return true;
}
