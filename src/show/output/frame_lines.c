/* Makes the line of a place as text, JSON, names or CSV cells, and keeps it in an arena.  When the
 * lines take too much memory, all are forgotten. */
#include "output/output_internal.h"

#include "base/buffer.h"
#include "base/csv.h"
#include "base/digits.h"
#include "base/json.h"
#include "base/terminal.h"
#include "base/vector.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 64 << 20 };

static void forget_cache(struct tally_frame_lines *lines)
{
	/* all ones: no generation has this value */
	memset(lines->cache, 0xff, sizeof(*lines->cache) << TALLY_FRAME_LINES_BITS);
}

int tally_frame_lines_init(struct tally_frame_lines *lines, struct tally_names *names,
			   unsigned parts)
{
	*lines = (struct tally_frame_lines){ .names = names,
					     .parts = parts,
					     .bytes_max = BYTES_MAX };
	lines->cache = aligned_alloc(64, sizeof(*lines->cache) << TALLY_FRAME_LINES_BITS);
	if (!lines->cache)
		return -ENOMEM;
	forget_cache(lines);
	return 0;
}

void tally_frame_lines_release(struct tally_frame_lines *lines)
{
	free(lines->cache);
	tally_map_release(&lines->index);
	tally_vector_release(&lines->made);
	tally_arena_release(&lines->arena);
	*lines = (struct tally_frame_lines){ 0 };
}

static void forget_all(struct tally_frame_lines *lines)
{
	forget_cache(lines);
	tally_map_release(&lines->index);
	tally_vector_release(&lines->made);
	tally_arena_release(&lines->arena);
	lines->bytes = 0;
}

/* ---- text ---------------------------------------------------------------- */

static void put_hexadecimal(struct tally_buffer *out, uint64_t value, size_t width)
{
	char text[2 * TALLY_DIGITS_MAX];
	tally_buffer_append(out, text, (size_t)(tally_put_hexadecimal(text, value, width) - text));
}

/* Like perf: offsets in the file for user addresses, plain addresses for the kernel. */
static void put_address(struct tally_buffer *out, const struct tally_place *place)
{
	tally_buffer_char(out, '\t');
	put_hexadecimal(out, place->address + place->before, 16);
}

static void put_function(struct tally_buffer *out, const struct tally_frame_lines *lines,
			 uint32_t function, uint64_t offset)
{
	const struct tally_names *names = lines->names;
	if (!(lines->parts & TALLY_FRAME_SYMBOL))
		return;
	tally_buffer_char(out, ' ');
	tally_put_name(out, tally_names_text(names, function));
	if (lines->parts & TALLY_FRAME_OFFSET && function < names->functions.count &&
	    names->functions.items[function].name != TALLY_STRING_NONE) {
		tally_buffer_append(out, "+0x", 3);
		put_hexadecimal(out, offset, 0);
	}
}

static const char *source_of(const struct tally_names *names, const struct tally_place_frame *frame)
{
	if (!frame->line || frame->file == TALLY_STRING_NONE)
		return NULL;
	return tally_strings_text(&names->strings, frame->file);
}

/* Like perf: without a known line, the object's name and the address in it, so that each frame of a
 * mapped object has two lines. */
static void put_source(struct tally_buffer *out, const struct tally_frame_lines *lines,
		       const struct tally_place *place, const struct tally_place_frame *frame)
{
	const char *file, *object;
	char map[TALLY_PERF_MAP_PATH_BYTES];
	if (!(lines->parts & TALLY_FRAME_SOURCE))
		return;
	file = source_of(lines->names, frame);
	object = tally_names_mapped_object(lines->names, frame->function, map);
	if (file) {
		tally_buffer_text(out, "\n  ");
		tally_put_name(out, tally_object_basename(file));
		tally_buffer_printf(out, ":%u", frame->line);
	} else if (strcmp(object, "[unknown]") != 0) {
		tally_buffer_text(out, "\n  ");
		tally_put_name(out, tally_object_basename(object));
		tally_buffer_printf(out, "[%" PRIx64 "]", place->address + place->before);
	}
}

static void put_json_source(struct tally_json *json, const struct tally_names *names,
			    const struct tally_place_frame *frame)
{
	const char *file = source_of(names, frame);
	tally_json_text(json, "file", file);
	if (file)
		tally_json_u64(json, "line", frame->line);
	else
		tally_json_null(json, "line");
}

/* Returns the first of the name's frames to show: without inlined functions, only the last. */
static uint32_t first_shown(const struct tally_names *names, const struct tally_place_name *name)
{
	if (names->options.no_inlines)
		return name->count - 1;
	return 0;
}

/* Puts {"address":"0x1139","function":"main","offset":32,"object":"/usr/bin/program",
 * "file":"a.c","line":3,"inlined":false}, in one line. */
static void put_json(struct tally_buffer *out, const struct tally_frame_lines *lines,
		     const struct tally_place *place, const struct tally_place_name *name)
{
	struct tally_names *names = lines->names;
	char map[TALLY_PERF_MAP_PATH_BYTES];
	const char *object = tally_names_mapped_object(
		names, names->frames.items[name->first + name->count - 1].function, map);
	for (uint32_t i = first_shown(names, name); i < name->count; i++) {
		const struct tally_place_frame *frame = &names->frames.items[name->first + i];
		const struct tally_place_frame *source = frame;
		if (names->options.no_inlines)
			source = &names->frames.items[name->first];
		const char *function = NULL;
		bool named = names->functions.items[frame->function].name != TALLY_STRING_NONE;
		if (named)
			function = tally_names_text(names, frame->function);
		struct tally_json json = { .out = out };
		char address[24];
		snprintf(address, sizeof(address), "0x%" PRIx64, place->address + place->before);
		tally_json_object(&json, NULL);
		if (lines->parts & TALLY_FRAME_ADDRESS)
			tally_json_text(&json, "address", address);
		if (lines->parts & TALLY_FRAME_SYMBOL)
			tally_json_text(&json, "function", function);
		if (lines->parts & TALLY_FRAME_OFFSET && named)
			tally_json_u64(&json, "offset", name->offset + place->before);
		else if (lines->parts & TALLY_FRAME_OFFSET)
			tally_json_null(&json, "offset");
		if (lines->parts & TALLY_FRAME_OBJECT)
			tally_json_text(&json, "object", object);
		if (lines->parts & TALLY_FRAME_SOURCE)
			put_json_source(&json, names, source);
		tally_json_bool(&json, "inlined", i + 1 < name->count);
		tally_json_end(&json);
		if (!out->failed)
			out->bytes[out->length - 1] = ','; /* replaces the newline */
	}
}

/* main,32,/usr/bin/program,a.c:3, */
static void put_cells(struct tally_buffer *out, const struct tally_frame_lines *lines,
		      const struct tally_place *place, const struct tally_place_name *name)
{
	const struct tally_names *names = lines->names;
	char map[TALLY_PERF_MAP_PATH_BYTES];
	const struct tally_place_frame *source = &names->frames.items[name->first];
	uint32_t symbol = source[name->count - 1].function, function = source->function;
	if (names->options.no_inlines)
		function = symbol;
	const char *file = source_of(names, source);
	if (lines->parts & TALLY_FRAME_SYMBOL) {
		tally_csv_quote(out, tally_names_text(names, function), ",");
		tally_buffer_char(out, ',');
	}
	if (lines->parts & TALLY_FRAME_OFFSET) {
		if (names->functions.items[symbol].name != TALLY_STRING_NONE)
			tally_buffer_printf(out, "%" PRIu64, name->offset + place->before);
		tally_buffer_char(out, ',');
	}
	if (lines->parts & TALLY_FRAME_OBJECT) {
		tally_csv_quote(out, tally_names_mapped_object(names, symbol, map), ",");
		tally_buffer_char(out, ',');
	}
	if (lines->parts & TALLY_FRAME_SOURCE) {
		struct tally_buffer text = { 0 };
		if (file)
			tally_buffer_printf(&text, "%s:%u", file, source->line);
		tally_csv_quote(out, tally_buffer_string(&text), ",");
		tally_buffer_char(out, ',');
		out->failed |= text.failed;
		tally_buffer_release(&text);
	}
}

static void put_names(struct tally_buffer *out, const struct tally_names *names,
		      const struct tally_place_name *name)
{
	for (uint32_t i = first_shown(names, name); i < name->count; i++) {
		tally_buffer_text(
			out,
			tally_names_text(names, names->frames.items[name->first + i].function));
		tally_buffer_char(out, ';');
	}
}

/* Like perf: inlined functions get the offset from the start of the function around them. */
static void put_text(struct tally_buffer *out, const struct tally_frame_lines *lines,
		     const struct tally_place *place, const struct tally_place_name *name,
		     bool is_one, size_t *symbol)
{
	const struct tally_names *names = lines->names;
	char map[TALLY_PERF_MAP_PATH_BYTES];
	const struct tally_place_frame *frames = &names->frames.items[name->first],
				       *last = &frames[name->count - 1];
	for (uint32_t i = 0; !is_one && i + 1 < name->count; i++) {
		put_address(out, place);
		put_function(out, lines, frames[i].function, name->offset + place->before);
		put_source(out, lines, place, &frames[i]);
		tally_buffer_text(out, " (inlined)\n");
	}
	put_address(out, place);
	*symbol = out->length;
	put_function(out, lines, last->function, name->offset + place->before);
	if (lines->parts & TALLY_FRAME_OBJECT) {
		tally_buffer_text(out, " (");
		tally_put_name(out, tally_names_mapped_object(names, last->function, map));
		tally_buffer_char(out, ')');
	}
	put_source(out, lines, place, is_one ? frames : last);
	tally_buffer_char(out, '\n');
}

static int put_place(struct tally_buffer *out, const struct tally_frame_lines *lines,
		     const struct tally_place *place, size_t *symbol)
{
	struct tally_names *names = lines->names;
	size_t frames = names->frames.count;
	bool is_one = names->options.no_inlines || lines->parts & TALLY_FRAME_ALONE;
	bool has_lines = lines->parts & TALLY_FRAME_SOURCE;
	struct tally_place_frame only = { .file = TALLY_STRING_NONE };
	struct tally_place_name name = { .count = 1 };
	*symbol = 0;
	if (is_one && !has_lines) { /* needs no debug information */
		only.function = tally_names_function(names, place, &name.offset);
		if (only.function == UINT32_MAX || tally_vector_push(&names->frames, only) < 0)
			return -ENOMEM;
		name.first = (uint32_t)names->frames.count - 1;
	} else {
		/* Source lines need the inlined functions even when those are not shown. */
		bool no_inlines = names->options.no_inlines;
		names->options.no_inlines &= !has_lines;
		int result = tally_names_resolve(names, place, 1, &name);
		names->options.no_inlines = no_inlines;
		if (result < 0)
			return -ENOMEM;
	}
	if (lines->parts & TALLY_FRAME_JSON)
		put_json(out, lines, place, &name);
	else if (lines->parts & TALLY_FRAME_NAMES)
		put_names(out, names, &name);
	else if (lines->parts & TALLY_FRAME_CELLS)
		put_cells(out, lines, place, &name);
	else
		put_text(out, lines, place, &name, is_one, symbol);
	names->frames.count = frames; /* the frames were needed for the text only */
	if (out->failed)
		return -ENOMEM;
	return 0;
}

static int make_line(struct tally_frame_lines *lines, const struct tally_place *place,
		     struct tally_frame_line *line)
{
	struct tally_buffer text = { .maximum = UINT32_MAX / 2 };
	size_t symbol;
	char *kept = NULL;
	if (!put_place(&text, lines, place, &symbol))
		kept = tally_arena_alloc(&lines->arena, text.length + TALLY_FRAME_LINE_SLACK);
	if (kept) {
		memcpy(kept, text.bytes, text.length);
		*line = (struct tally_frame_line){ kept, (uint32_t)text.length, (uint32_t)symbol };
		lines->bytes += text.length + TALLY_FRAME_LINE_SLACK + sizeof(*lines->made.items);
	}
	tally_buffer_release(&text);
	if (!kept)
		return -ENOMEM;
	return 0;
}

/* ---- by place ------------------------------------------------------------ */

static int line_of_place(struct tally_frame_lines *lines, const struct tally_place *place,
			 struct tally_frame_line *line)
{
	uint64_t key = tally_hash64(place->address << 1 | place->before) ^
		       ((uint64_t)place->file << 32 | place->file);
	for (;; key++) { /* if another place has the key, try the next one */
		bool added;
		uint64_t *slot = tally_map_put(&lines->index, key, &added);
		if (!slot)
			return -ENOMEM;
		if (!added) {
			const struct tally_place *there = &lines->made.items[*slot].place;
			if (there->address != place->address || there->file != place->file ||
			    there->before != place->before)
				continue;
			*line = lines->made.items[*slot].line;
			return 0;
		}
		*slot = lines->made.count;
		if (tally_vector_reserve(&lines->made, lines->made.count + 1) < 0 ||
		    make_line(lines, place, line) < 0)
			return -ENOMEM;
		lines->made.items[lines->made.count].place = *place;
		lines->made.items[lines->made.count++].line = *line;
		return 0;
	}
}

const struct tally_frame_line *tally_frame_lines_make(struct tally_frame_lines *lines, uint32_t pid,
						      uint64_t space, uint64_t address)
{
	bool before = space & 1, kernel = space & 2;
	struct tally_place place = tally_place_of(lines->names->tasks, pid, kernel,
						  address - before);
	struct tally_frame_lines_slot *slot = tally_frame_lines_slot(lines, space, address);
	struct tally_frame_line line;
	place.before = before;
	if (lines->bytes > lines->bytes_max)
		forget_all(lines);
	if (line_of_place(lines, &place, &line) < 0) {
		forget_all(lines); /* an entry of the index may point to a line that was not made */
		return NULL;
	}
	*slot = (struct tally_frame_lines_slot){ address, space, line };
	return &slot->line;
}
