/* Opens a file and finds the addresses of each unit's code, before any unit is compiled. */
#include "object/object.h"
#include "symbol/lines_state.h"

#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>

static int compare_ranges(const void *a, const void *b)
{
	const struct tally_dwarf_range *left = a, *right = b;
	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return left->end < right->end ? -1 : left->end > right->end;
}

/* Reads the addresses of the executable sections.  A separate debug file also has these sections'
 * headers. */
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
		struct tally_dwarf_range range = { header.sh_addr, end };
		if (tally_vector_push(&lines->program.code.ranges, range) < 0)
			return -ENOMEM;
	}
	struct tally_dwarf_range *ranges = lines->program.code.ranges.items;
	size_t count = lines->program.code.ranges.count, kept = 0;
	if (count == 0)
		return 0;
	qsort(ranges, count, sizeof(*ranges), compare_ranges);
	for (size_t i = 1; i < count; i++) {
		if (ranges[i].start > ranges[kept].end)
			ranges[++kept] = ranges[i];
		else if (ranges[i].end > ranges[kept].end)
			ranges[kept].end = ranges[i].end;
	}
	lines->program.code.ranges.count = kept + 1;
	return 0;
}

static int add_range(const struct tally_lines *lines, struct tally_nested *nested, uint64_t start,
		     uint64_t end, uint32_t unit)
{
	if (start >= end || !tally_lines_is_code(&lines->program.code, start))
		return 0;
	return tally_vector_push(&nested->ranges, (struct tally_nested_range){ start, end, unit });
}

/* Adds the ranges in the units' roots. has_ranges[i]: unit i's root has some. */
static int add_root_ranges(struct tally_lines *lines, struct tally_dwarf_scratch *scratch,
			   struct tally_nested *nested, bool *has_ranges)
{
	for (uint32_t i = 0; i < lines->file.units.count; i++) {
		const struct tally_dwarf_unit *unit = &lines->file.units.items[i];
		if (unit->tag != DW_TAG_compile_unit && unit->tag != DW_TAG_skeleton_unit)
			continue;
		scratch->ranges.count = 0;
		if (tally_dwarf_unit_ranges(scratch, unit) < 0)
			return -ENOMEM;
		for (size_t k = 0; k < scratch->ranges.count; k++)
			if (add_range(lines, nested, scratch->ranges.items[k].start,
				      scratch->ranges.items[k].end, i) < 0)
				return -ENOMEM;
		has_ranges[i] = scratch->ranges.count > 0;
	}
	return 0;
}

/* Adds one set of .debug_aranges; the cursor's end is the set's end. */
static int add_aranges_set(struct tally_lines *lines, struct tally_nested *nested,
			   const bool *has_ranges, struct tally_dwarf_cursor *cursor,
			   const uint8_t *begin, uint8_t offset_size)
{
	uint16_t version = tally_dwarf_u16(cursor);
	uint64_t offset = tally_dwarf_fixed(cursor, offset_size);
	unsigned address_size = tally_dwarf_u8(cursor), segment_size = tally_dwarf_u8(cursor);
	const struct tally_dwarf_unit *unit = tally_dwarf_unit_at(&lines->file, offset);
	if (cursor->failed || version != 2 || segment_size ||
	    (address_size != 4 && address_size != 8) || !unit || unit->offset != offset)
		return 0;
	uint32_t index = (uint32_t)(unit - lines->file.units.items);
	if (has_ranges[index])
		return 0;
	size_t header = (size_t)(cursor->at - begin);
	tally_dwarf_skip(cursor,
			 (2 * address_size - header % (2 * address_size)) % (2 * address_size));
	while (cursor->at < cursor->end) {
		uint64_t start = tally_dwarf_fixed(cursor, address_size);
		uint64_t size = tally_dwarf_fixed(cursor, address_size);
		if (!cursor->failed && add_range(lines, nested, start, start + size, index) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int add_aranges(struct tally_lines *lines, struct tally_nested *nested,
		       const bool *has_ranges)
{
	struct tally_dwarf_cursor cursor = tally_dwarf_cursor_at(&lines->file, TALLY_DWARF_ARANGES,
								 0);
	while (!cursor.failed && cursor.at < cursor.end) {
		struct tally_dwarf_cursor set = cursor;
		uint8_t offset_size;
		if (!tally_dwarf_enter_length(&set, &offset_size))
			return 0;
		const uint8_t *begin = cursor.at;
		cursor.at = set.end;
		if (add_aranges_set(lines, nested, has_ranges, &set, begin, offset_size) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int read_index(struct tally_lines *lines, struct tally_dwarf_scratch *scratch)
{
	struct tally_nested nested = { 0 };
	bool *has_ranges = calloc(lines->file.units.count + 1, sizeof(*has_ranges));
	int rc = has_ranges ? add_root_ranges(lines, scratch, &nested, has_ranges) : -ENOMEM;
	if (rc == 0)
		rc = add_aranges(lines, &nested, has_ranges);
	if (rc == 0)
		rc = tally_nested_flatten(&nested);
	lines->index.count = 0;
	for (size_t i = 0; rc == 0 && i < nested.items.count; i++)
		rc = tally_vector_push(&lines->index, nested.items.items[i]);
	tally_nested_release(&nested);
	free(has_ranges);
	return rc;
}

static int read_file(struct tally_lines *lines, struct tally_dwarf_scratch *scratch)
{
	tally_dwarf_file_init(&lines->file, lines->source, false);
	/* The common file first: the roots have strings there. */
	if (read_code(lines) < 0 ||
	    tally_dwarf_open_supplement(&lines->file, scratch, &lines->program.is_partial) < 0 ||
	    tally_dwarf_read_units(&lines->file, scratch, NULL) < 0 ||
	    read_index(lines, scratch) < 0)
		return -ENOMEM;
	lines->program.path = tally_object_path(lines->object);
	for (size_t i = 0; i < lines->file.units.count; i++)
		if (lines->file.units.items[i].dwo_name) {
			tally_dwarf_package_open(&lines->program.package, lines->program.path);
			break;
		}
	return 0;
}

int tally_lines_open(struct tally_lines *lines)
{
	struct tally_dwarf_scratch *scratch = calloc(1, sizeof(*scratch));
	int rc = scratch ? read_file(lines, scratch) : -ENOMEM;
	if (scratch)
		tally_dwarf_scratch_release(scratch);
	free(scratch);
	if (rc < 0)
		tally_lines_close(lines);
	else
		lines->is_open = true;
	return rc;
}

void tally_lines_close(struct tally_lines *lines)
{
	tally_dwarf_package_release(&lines->program.package);
	tally_dwarf_file_release(&lines->file);
	tally_vector_release(&lines->program.code.ranges);
	lines->is_open = false;
}
