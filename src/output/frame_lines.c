#include "output/frame_lines.h"

#include "base/buffer.h"
#include "base/digits.h"
#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 256 << 20 };

static void forget_cache(struct tally_frame_lines *lines)
{
	memset(lines->cache, 0xff, sizeof(*lines->cache) << TALLY_FRAME_LINES_BITS); /* no generation is all ones */
}

int tally_frame_lines_init(struct tally_frame_lines *lines, struct tally_names *names)
{
	*lines = (struct tally_frame_lines){ .names = names, .bytes_max = BYTES_MAX };
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

/* ---- text ---------------------------------------------------------------------------------------------- */

static void put_hexadecimal(struct tally_buffer *out, uint64_t value, size_t width)
{
	char text[2 * TALLY_DIGITS_MAX];
	tally_buffer_append(out, text, (size_t)(tally_put_hexadecimal(text, value, width) - text));
}

/* perf shows offsets in the file for user addresses, the kernel's own as they are. */
static void put_address(struct tally_buffer *out, const struct tally_place *place)
{
	tally_buffer_char(out, '\t');
	put_hexadecimal(out, place->address + place->before, 16);
}

static void put_function(struct tally_buffer *out, const struct tally_names *names, uint32_t function,
			 uint64_t offset)
{
	tally_buffer_char(out, ' ');
	tally_buffer_text(out, tally_names_text(names, function));
	if (function < names->functions.count && names->functions.items[function].name != TALLY_STRING_NONE) {
		tally_buffer_append(out, "+0x", 3);
		put_hexadecimal(out, offset, 0);
	}
}

/* perf gives inlined functions the offset from the start of the one that they are in. */
static int put_place(struct tally_buffer *out, struct tally_names *names, const struct tally_place *place,
		     size_t *symbol)
{
	struct tally_place_name name = { .count = 1 };
	uint32_t function = UINT32_MAX;
	if (names->no_inlines)
		function = tally_names_function(names, place, &name.offset);
	else if (!tally_names_resolve(names, place, 1, &name))
		function = names->frames.items[name.first + name.count - 1].function;
	if (function == UINT32_MAX)
		return -ENOMEM;
	for (uint32_t i = 0; i + 1 < name.count; i++) {
		put_address(out, place);
		put_function(out, names, names->frames.items[name.first + i].function, name.offset + place->before);
		tally_buffer_text(out, " (inlined)\n");
	}
	put_address(out, place);
	*symbol = out->length;
	put_function(out, names, function, name.offset + place->before);
	tally_buffer_text(out, " (");
	tally_buffer_text(out, tally_names_object(names, function));
	tally_buffer_text(out, ")\n");
	return out->failed ? -ENOMEM : 0;
}

static int make_line(struct tally_frame_lines *lines, const struct tally_place *place, struct tally_frame_line *line)
{
	struct tally_buffer text = { .maximum = UINT32_MAX / 2 };
	size_t symbol;
	char *kept = NULL;
	if (!put_place(&text, lines->names, place, &symbol))
		kept = tally_arena_alloc(&lines->arena, text.length + TALLY_FRAME_LINE_SLACK);
	if (kept) {
		memcpy(kept, text.bytes, text.length);
		*line = (struct tally_frame_line){ kept, (uint32_t)text.length, (uint32_t)symbol };
		lines->bytes += text.length + TALLY_FRAME_LINE_SLACK + sizeof(*lines->made.items);
	}
	tally_buffer_release(&text);
	return kept ? 0 : -ENOMEM;
}

/* ---- by place ------------------------------------------------------------------------------------------ */

static int line_of_place(struct tally_frame_lines *lines, const struct tally_place *place,
			 struct tally_frame_line *line)
{
	uint64_t key = tally_hash64(place->address << 1 | place->before) ^ ((uint64_t)place->file << 32 | place->file);
	for (;; key++) { /* a key that another place holds: the next one */
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
		if (tally_vector_reserve(&lines->made, lines->made.count + 1) < 0 || make_line(lines, place, line) < 0)
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
	struct tally_place place = tally_place_of(lines->names->tasks, pid, kernel, address - before);
	struct tally_frame_lines_slot *slot = tally_frame_lines_slot(lines, space, address);
	struct tally_frame_line line;
	place.before = before;
	if (lines->bytes > lines->bytes_max)
		forget_all(lines);
	if (line_of_place(lines, &place, &line) < 0) {
		forget_all(lines); /* an entry of the index may stand for nothing */
		return NULL;
	}
	*slot = (struct tally_frame_lines_slot){ address, space, line };
	return &slot->line;
}
