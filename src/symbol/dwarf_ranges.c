/* Addresses of code: a low and a high end, or a list of ranges (.debug_ranges, .debug_rnglists). */
#include "symbol/dwarf_reader.h"

#include <dwarf.h>
#include <errno.h>

struct list {
	struct tally_dwarf_scratch *scratch;
	const struct tally_dwarf_unit *unit;
	size_t left; /* entries that may still be added */
};

static int add(struct list *list, uint64_t start, uint64_t end)
{
	if (start >= end || list->left == 0)
		return 0;
	list->left--;
	if (tally_vector_push(&list->scratch->ranges, (struct tally_dwarf_range){ start, end }) < 0)
		return -ENOMEM;
	return 0;
}

static int read_old_list(struct list *list, uint64_t offset)
{
	const struct tally_dwarf_unit *unit = list->unit;
	const struct tally_dwarf_unit *owner = unit->skeleton ? unit->skeleton : unit;
	if (unit->skeleton && __builtin_add_overflow(offset, owner->ranges_base, &offset))
		return 0;
	struct tally_dwarf_cursor cursor = tally_dwarf_cursor_at(owner->file, TALLY_DWARF_RANGES,
								 offset);
	unsigned size = unit->address_size;
	uint64_t highest = size == 8 ? UINT64_MAX : ((uint64_t)1 << 8 * size) - 1;
	uint64_t base = unit->low_pc;
	while (list->left > 0) {
		uint64_t start = tally_dwarf_fixed(&cursor, size);
		uint64_t end = tally_dwarf_fixed(&cursor, size);
		if (cursor.failed || (start == 0 && end == 0))
			return 0;
		if (start == highest)
			base = end;
		else if (add(list, base + start, base + end) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Reads one entry.  Returns 1, 0 at the end or at damage, or -ENOMEM. */
static int read_entry(struct list *list, struct tally_dwarf_cursor *cursor, uint64_t *base)
{
	const struct tally_dwarf_unit *unit = list->unit;
	unsigned size = unit->address_size;
	uint64_t start = 0, end = 0;
	bool is_there = true, is_base = false;
	uint8_t kind = tally_dwarf_u8(cursor);
	switch (kind) {
	case DW_RLE_base_addressx:
		is_base = true;
		is_there = tally_dwarf_indexed_address(unit, tally_dwarf_uleb(cursor), &start);
		break;
	case DW_RLE_base_address:
		is_base = true;
		start = tally_dwarf_fixed(cursor, size);
		break;
	case DW_RLE_startx_endx:
		is_there = tally_dwarf_indexed_address(unit, tally_dwarf_uleb(cursor), &start);
		is_there = tally_dwarf_indexed_address(unit, tally_dwarf_uleb(cursor), &end) &&
			   is_there;
		break;
	case DW_RLE_startx_length:
		is_there = tally_dwarf_indexed_address(unit, tally_dwarf_uleb(cursor), &start);
		end = start + tally_dwarf_uleb(cursor);
		break;
	case DW_RLE_offset_pair:
		start = *base + tally_dwarf_uleb(cursor);
		end = *base + tally_dwarf_uleb(cursor);
		break;
	case DW_RLE_start_end:
		start = tally_dwarf_fixed(cursor, size);
		end = tally_dwarf_fixed(cursor, size);
		break;
	case DW_RLE_start_length:
		start = tally_dwarf_fixed(cursor, size);
		end = start + tally_dwarf_uleb(cursor);
		break;
	default: /* DW_RLE_end_of_list, and unknown kinds */
		return 0;
	}
	if (cursor->failed)
		return 0;
	if (is_base)
		*base = is_there ? start : UINT64_MAX;
	else if (is_there && add(list, start, end) < 0)
		return -ENOMEM;
	return 1;
}

static int read_list(struct list *list, const struct tally_dwarf_value *value)
{
	const struct tally_dwarf_unit *unit = list->unit;
	uint64_t offset = value->number;
	if (value->form == DW_FORM_rnglistx) {
		if (__builtin_mul_overflow(offset, unit->offset_size, &offset) ||
		    __builtin_add_overflow(offset, unit->rnglists_base, &offset))
			return 0;
		struct tally_dwarf_cursor index = tally_dwarf_cursor_at(
			unit->file, TALLY_DWARF_RNGLISTS, offset);
		offset = tally_dwarf_fixed(&index, unit->offset_size) + unit->rnglists_base;
		if (index.failed)
			return 0;
	}
	struct tally_dwarf_cursor cursor = tally_dwarf_cursor_at(unit->file, TALLY_DWARF_RNGLISTS,
								 offset);
	uint64_t base = unit->low_pc;
	int rc = 1;
	while (rc == 1 && list->left > 0)
		rc = read_entry(list, &cursor, &base);
	return rc < 0 ? rc : 0;
}

static bool is_constant(uint16_t form)
{
	return form == DW_FORM_data1 || form == DW_FORM_data2 || form == DW_FORM_data4 ||
	       form == DW_FORM_data8 || form == DW_FORM_udata || form == DW_FORM_sdata ||
	       form == DW_FORM_implicit_const;
}

int tally_dwarf_read_extent(struct tally_dwarf_scratch *scratch,
			    const struct tally_dwarf_unit *unit,
			    const struct tally_dwarf_extent *extent, size_t limit)
{
	struct list list = { scratch, unit, limit };
	if (extent->ranges.form) {
		/* Before version 4, the data forms were offsets. */
		return unit->version >= 5 ? read_list(&list, &extent->ranges)
					  : read_old_list(&list, extent->ranges.number);
	}
	uint64_t low, high;
	if (!extent->low_pc.form || !extent->high_pc.form ||
	    !tally_dwarf_address(unit, &extent->low_pc, &low))
		return 0;
	if (is_constant(extent->high_pc.form))
		return add(&list, low, low + extent->high_pc.number);
	return tally_dwarf_address(unit, &extent->high_pc, &high) ? add(&list, low, high) : 0;
}

int tally_dwarf_unit_ranges(struct tally_dwarf_scratch *scratch,
			    const struct tally_dwarf_unit *unit)
{
	return tally_dwarf_read_extent(scratch, unit, &unit->extent, SIZE_MAX);
}
