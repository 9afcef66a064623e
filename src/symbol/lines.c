/* Lines and inlined functions, from the outside in.
 *
 * A large program's debug information is a thousand times what a profile needs of it, so nothing is read that wasn't
 * asked for.  A unit's root says where its code is: all roots are read (not .debug_aranges, which some compilers leave
 * out; it is asked for units whose roots say nothing).  The units that were hit are then compiled (lines_unit.c): once,
 * whole, since other addresses of a hit unit are soon asked for too.  Units don't depend on each other, so that many
 * are compiled by several threads, each with a scratch of its own; the result is the same whoever did it.
 */
#include "symbol/lines.h"

#include "object/object.h"
#include "symbol/lines_state.h"

#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>

int tally_lines_new(struct tally_object *object, struct tally_object *debug, struct tally_lines **out,
		    struct tally_error *err)
{
	struct tally_lines *lines = calloc(1, sizeof(*lines));
	if (!lines)
		return tally_error_set(err, -ENOMEM, "out of memory for the lines of %s", tally_object_path(object));
	lines->object = tally_object_ref(object);
	lines->debug = debug ? tally_object_ref(debug) : NULL;
	*out = lines;
	return 0;
}

void tally_lines_free(struct tally_lines *lines)
{
	if (!lines)
		return;
	for (size_t i = 0; lines->units && i < lines->file.units.count; i++)
		tally_lines_unit_release(&lines->units[i].compiled);
	free(lines->units);
	tally_vector_release(&lines->program.code.ranges);
	tally_vector_release(&lines->index);
	tally_dwarf_package_release(&lines->program.package);
	tally_dwarf_file_release(&lines->file);
	tally_arena_release(&lines->frames);
	tally_object_unref(lines->object);
	tally_object_unref(lines->debug);
	free(lines);
}

/* ---- which unit has an address ---- */

static int compare_ranges(const void *a, const void *b)
{
	const struct tally_dwarf_range *left = a, *right = b;
	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return left->end < right->end ? -1 : left->end > right->end;
}

/* The executable sections; a separate debug file has their headers too. */
static int read_code(struct tally_lines *lines)
{
	Elf *elf = tally_object_elf(lines->object);
	Elf_Scn *scn = NULL;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr header;
		uint64_t end;
		if (!gelf_getshdr(scn, &header) || !(header.sh_flags & SHF_EXECINSTR) ||
		    !(header.sh_flags & SHF_ALLOC) || header.sh_size == 0 ||
		    __builtin_add_overflow(header.sh_addr, header.sh_size, &end))
			continue;
		if (tally_vector_push(&lines->program.code.ranges, (struct tally_dwarf_range){ header.sh_addr, end }) < 0)
			return -ENOMEM;
	}
	if (lines->program.code.ranges.count == 0)
		return 0;
	qsort(lines->program.code.ranges.items, lines->program.code.ranges.count, sizeof(*lines->program.code.ranges.items), compare_ranges);
	size_t kept = 0;
	for (size_t i = 1; i < lines->program.code.ranges.count; i++) {
		struct tally_dwarf_range *last = &lines->program.code.ranges.items[kept];
		const struct tally_dwarf_range *range = &lines->program.code.ranges.items[i];
		if (range->start > last->end)
			lines->program.code.ranges.items[++kept] = *range;
		else if (range->end > last->end)
			last->end = range->end;
	}
	lines->program.code.ranges.count = kept + 1;
	return 0;
}

static int add_range(const struct tally_lines *lines, struct tally_nested *nested, uint64_t start, uint64_t end,
		     uint32_t unit)
{
	if (start >= end || !tally_lines_is_code(&lines->program.code, start))
		return 0;
	return tally_vector_push(&nested->ranges, (struct tally_nested_range){ start, end, unit });
}

static int add_root_ranges(struct tally_lines *lines, struct tally_dwarf_scratch *scratch,
			   struct tally_nested *nested)
{
	for (uint32_t i = 0; i < lines->file.units.count; i++) {
		const struct tally_dwarf_unit *unit = &lines->file.units.items[i];
		if (unit->tag != DW_TAG_compile_unit && unit->tag != DW_TAG_skeleton_unit)
			continue;
		scratch->ranges.count = 0;
		if (tally_dwarf_unit_ranges(scratch, unit) < 0)
			return -ENOMEM;
		for (size_t k = 0; k < scratch->ranges.count; k++)
			if (add_range(lines, nested, scratch->ranges.items[k].start, scratch->ranges.items[k].end,
				      i) < 0)
				return -ENOMEM;
		lines->units[i].has_ranges = scratch->ranges.count > 0;
	}
	return 0;
}

/* One set of .debug_aranges; the cursor ends where it does. */
static int add_aranges_set(struct tally_lines *lines, struct tally_nested *nested, struct tally_dwarf_cursor *cursor,
			   const uint8_t *begin, uint8_t offset_size)
{
	uint16_t version = tally_dwarf_u16(cursor);
	uint64_t offset = tally_dwarf_fixed(cursor, offset_size);
	unsigned address_size = tally_dwarf_u8(cursor), segment_size = tally_dwarf_u8(cursor);
	const struct tally_dwarf_unit *unit = tally_dwarf_unit_at(&lines->file, offset);
	if (cursor->failed || version != 2 || segment_size || (address_size != 4 && address_size != 8) || !unit ||
	    unit->offset != offset)
		return 0;
	uint32_t index = (uint32_t)(unit - lines->file.units.items);
	if (lines->units[index].has_ranges)
		return 0;
	size_t header = (size_t)(cursor->at - begin);
	tally_dwarf_skip(cursor, (2 * address_size - header % (2 * address_size)) % (2 * address_size));
	while (cursor->at < cursor->end) {
		uint64_t start = tally_dwarf_fixed(cursor, address_size);
		uint64_t size = tally_dwarf_fixed(cursor, address_size);
		if (!cursor->failed && add_range(lines, nested, start, start + size, index) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int add_aranges(struct tally_lines *lines, struct tally_nested *nested)
{
	struct tally_dwarf_cursor cursor = tally_dwarf_cursor_at(&lines->file, TALLY_DWARF_ARANGES, 0);
	while (!cursor.failed && cursor.at < cursor.end) {
		struct tally_dwarf_cursor set = cursor;
		uint8_t offset_size;
		if (!tally_dwarf_enter_length(&set, &offset_size))
			return 0;
		const uint8_t *begin = cursor.at;
		cursor.at = set.end;
		if (add_aranges_set(lines, nested, &set, begin, offset_size) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int read_index(struct tally_lines *lines, struct tally_dwarf_scratch *scratch)
{
	struct tally_nested nested = { 0 };
	if (read_code(lines) < 0 || tally_dwarf_read_units(&lines->file, scratch, NULL) < 0 ||
	    tally_dwarf_open_supplement(&lines->file, scratch, &lines->program.is_partial) < 0)
		return -ENOMEM;
	lines->units = calloc(lines->file.units.count + 1, sizeof(*lines->units));
	int rc = lines->units ? 0 : -ENOMEM;
	if (rc == 0)
		rc = add_root_ranges(lines, scratch, &nested);
	if (rc == 0)
		rc = add_aranges(lines, &nested);
	if (rc == 0)
		rc = tally_nested_flatten(&nested);
	for (size_t i = 0; rc == 0 && i < nested.items.count; i++)
		rc = tally_vector_push(&lines->index, nested.items.items[i]);
	tally_nested_release(&nested);
	return rc;
}

/* Finds the units, when an address is asked for first. */
static int prepare(struct tally_lines *lines)
{
	if (lines->is_ready)
		return 0;
	struct tally_section info;
	struct tally_object *source = lines->object;
	if (lines->debug && tally_object_section(lines->debug, ".debug_info", &info) && info.bytes)
		source = lines->debug;
	tally_dwarf_file_init(&lines->file, source, false);
	struct tally_dwarf_scratch *scratch = calloc(1, sizeof(*scratch));
	int rc = scratch ? read_index(lines, scratch) : -ENOMEM;
	bool is_split = false;
	for (size_t i = 0; i < lines->file.units.count && !is_split; i++)
		is_split = lines->file.units.items[i].dwo_name != NULL;
	lines->program.path = tally_object_path(lines->object);
	if (rc == 0 && is_split)
		tally_dwarf_package_open(&lines->program.package, lines->program.path);
	if (scratch)
		tally_dwarf_scratch_release(scratch);
	free(scratch);
	if (rc < 0) {
		/* Another call tries again. */
		free(lines->units);
		lines->units = NULL;
		tally_vector_release(&lines->program.code.ranges);
		tally_vector_release(&lines->index);
		tally_dwarf_file_release(&lines->file);
		return rc;
	}
	lines->is_ready = true;
	return 0;
}

/* ---- answers ---- */

/* What an answer depends on: addresses with the same have the same. */
struct spot {
	const struct tally_lines_unit *unit;
	uint32_t row, node;
};

static struct spot spot_of(const struct tally_lines_unit *unit, uint64_t address)
{
	struct spot spot = { unit, TALLY_LINES_NONE, TALLY_LINES_NONE };
	uint64_t distance = address - unit->base;
	if (address < unit->base || distance > UINT32_MAX)
		return spot;
	spot.row = tally_lines_last_at(unit->row_starts, unit->row_count, (uint32_t)distance);
	if (spot.row != TALLY_LINES_NONE && unit->rows[spot.row].file == TALLY_LINES_GAP)
		spot.row = TALLY_LINES_NONE;
	uint32_t range = tally_lines_last_at(unit->range_starts, unit->range_count, (uint32_t)distance);
	if (range != TALLY_LINES_NONE && unit->range_nodes[range] < unit->node_count)
		spot.node = unit->range_nodes[range];
	return spot;
}

static const char *file_text(const struct tally_lines_unit *unit, uint16_t file)
{
	return file < unit->file_count ? unit->files[file] : NULL;
}

/* -ENOMEM, or 0. */
static int make_answer(struct tally_lines *lines, const struct spot *spot, struct tally_line_answer *answer)
{
	const struct tally_lines_unit *unit = spot->unit;
	*answer = (struct tally_line_answer){ 0 };
	uint32_t count = spot->row != TALLY_LINES_NONE ? 1 : 0;
	if (spot->node != TALLY_LINES_NONE) {
		count = 1;
		for (uint32_t node = spot->node; unit->nodes[node].parent < node; node = unit->nodes[node].parent)
			count++;
	}
	if (count == 0)
		return 0;
	struct tally_line_frame *frames = tally_arena_array(&lines->frames, count, sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	if (spot->row != TALLY_LINES_NONE) {
		const struct tally_lines_row *row = &unit->rows[spot->row];
		frames[0] = (struct tally_line_frame){ NULL, file_text(unit, row->file), row->line, row->column };
	}
	uint32_t node = spot->node;
	for (uint32_t i = 0; node != TALLY_LINES_NONE && i < count; i++) {
		const struct tally_lines_node *its = &unit->nodes[node];
		frames[i].function = its->name < unit->name_count ? unit->names[its->name] : NULL;
		if (i + 1 < count)
			frames[i + 1] = (struct tally_line_frame){ NULL, file_text(unit, its->call_file),
								   its->call_line, its->call_column };
		node = its->parent;
	}
	*answer = (struct tally_line_answer){ frames, count };
	return 0;
}

static int answer_all(struct tally_lines *lines, const uint64_t *addresses, const uint32_t *units, size_t count,
		      struct tally_line_answer *answers)
{
	struct spot last = { 0 };
	struct tally_line_answer answer = { 0 };
	for (size_t i = 0; i < count; i++) {
		answers[i] = (struct tally_line_answer){ 0 };
		if (units[i] == TALLY_LINES_NONE)
			continue;
		struct spot spot = spot_of(&lines->units[units[i]].compiled, addresses[i]);
		bool is_same = last.unit == spot.unit && last.row == spot.row && last.node == spot.node;
		if (!is_same && make_answer(lines, &spot, &answer) < 0)
			return -ENOMEM;
		last = spot;
		answers[i] = answer;
	}
	return 0;
}

/* The unit of each address, and a list of those that aren't compiled yet. */
static int choose_units(struct tally_lines *lines, const uint64_t *addresses, size_t count, uint32_t *units,
			struct tally_lines_wanted *wanted)
{
	size_t at = 0;
	for (size_t i = 0; i < count; i++) {
		if (at && lines->index.items[at - 1].start > addresses[i])
			at = 0; /* not ascending, as it should be */
		while (at < lines->index.count && lines->index.items[at].start <= addresses[i])
			at++;
		units[i] = at ? lines->index.items[at - 1].id : (uint32_t)TALLY_LINES_NONE;
		if (units[i] == TALLY_LINES_NONE || lines->units[units[i]].state != TALLY_LINES_UNREAD)
			continue;
		lines->units[units[i]].state = TALLY_LINES_WANTED;
		if (tally_vector_push(wanted, units[i]) < 0)
			return -ENOMEM;
	}
	return 0;
}

int tally_lines_find(struct tally_lines *lines, const uint64_t *addresses, size_t count,
		     struct tally_line_answer *answers)
{
	int rc = prepare(lines);
	uint32_t *units = rc == 0 ? malloc((count + 1) * sizeof(*units)) : NULL;
	if (!units)
		return -ENOMEM;
	struct tally_lines_wanted wanted = { 0 };
	rc = choose_units(lines, addresses, count, units, &wanted);
	if (rc == 0)
		rc = tally_lines_compile_wanted(lines, &wanted);
	/* What wasn't compiled may be asked for again. */
	for (size_t i = 0; i < wanted.count; i++)
		if (lines->units[wanted.items[i]].state == TALLY_LINES_WANTED)
			lines->units[wanted.items[i]].state = TALLY_LINES_UNREAD;
	if (rc == 0)
		rc = answer_all(lines, addresses, units, count, answers);
	tally_vector_release(&wanted);
	free(units);
	return rc;
}
