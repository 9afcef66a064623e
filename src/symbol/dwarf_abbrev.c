/* Abbreviation tables, decoded once for all DIEs that use them.
 *
 * Most DIEs are skipped.  So the table stores what helps to skip them: the sum of the values'
 * sizes, when all are fixed, and the position of the reference to the next sibling.
 */
#include "symbol/dwarf_reader.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

uint8_t tally_dwarf_form_size(uint64_t form, const struct tally_dwarf_unit *unit)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_flag:
	case DW_FORM_ref1:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return unit->address_size;
	case DW_FORM_ref_addr:
		return unit->version == 2 ? unit->address_size : unit->offset_size;
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_sec_offset:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return unit->offset_size;
	case DW_FORM_string:
	case DW_FORM_block:
	case DW_FORM_block1:
	case DW_FORM_block2:
	case DW_FORM_block4:
	case DW_FORM_exprloc:
	case DW_FORM_sdata:
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
	case DW_FORM_indirect:
		return TALLY_DWARF_SIZE_VARIES;
	default:
		return TALLY_DWARF_SIZE_UNKNOWN;
	}
}

static int read_attributes(struct tally_dwarf_abbrevs *out, struct tally_dwarf_abbrev *abbrev,
			   const struct tally_dwarf_unit *unit, struct tally_dwarf_cursor *cursor)
{
	uint64_t size = 0;
	bool is_fixed = true;
	for (;;) {
		uint64_t name = tally_dwarf_uleb(cursor);
		uint64_t form = tally_dwarf_uleb(cursor);
		if ((name == 0 && form == 0) || cursor->failed)
			break;
		struct tally_dwarf_attribute attribute = {
			.name = name > UINT16_MAX ? 0 : (uint16_t)name,
			.form = form > UINT16_MAX ? 0 : (uint16_t)form,
			.size = tally_dwarf_form_size(form, unit),
			.constant = form == DW_FORM_implicit_const ? tally_dwarf_sleb(cursor) : 0,
		};
		if (name == DW_AT_sibling && form == DW_FORM_ref4 && is_fixed)
			abbrev->sibling_at = (uint32_t)size;
		abbrev->has_code = abbrev->has_code || name == DW_AT_low_pc || name == DW_AT_ranges;
		abbrev->is_declaration = abbrev->is_declaration || name == DW_AT_declaration;
		is_fixed = is_fixed && attribute.size < TALLY_DWARF_SIZE_VARIES;
		size += attribute.size;
		if (tally_vector_push(&out->attributes, attribute) < 0)
			return -ENOMEM;
	}
	abbrev->count = (uint32_t)(out->attributes.count - abbrev->first);
	if (is_fixed && size < UINT32_MAX)
		abbrev->size = (uint32_t)size;
	return 0;
}

static int compare_codes(const void *a, const void *b)
{
	const struct tally_dwarf_abbrev *left = a, *right = b;
	if (left->code != right->code)
		return left->code < right->code ? -1 : 1;
	return left->first < right->first ? -1 : left->first > right->first;
}

int tally_dwarf_abbrevs_read(struct tally_dwarf_abbrevs *out, const struct tally_dwarf_unit *unit,
			     size_t limit)
{
	out->file = unit->file;
	out->offset = unit->abbrev_offset;
	out->version = unit->version;
	out->address_size = unit->address_size;
	out->offset_size = unit->offset_size;
	out->is_dense = true;
	out->is_used = false;
	out->list.count = out->attributes.count = 0;
	struct tally_dwarf_cursor cursor =
		tally_dwarf_cursor_at(unit->file, TALLY_DWARF_ABBREV, unit->abbrev_offset);
	bool is_sorted = true;
	uint64_t last = 0;
	while (out->list.count < limit) {
		struct tally_dwarf_abbrev abbrev = {
			.code = tally_dwarf_uleb(&cursor),
			.first = (uint32_t)out->attributes.count,
			.size = UINT32_MAX,
			.sibling_at = UINT32_MAX,
		};
		if (abbrev.code == 0)
			break;
		uint64_t tag = tally_dwarf_uleb(&cursor);
		abbrev.tag = tag > UINT16_MAX ? 0 : (uint16_t)tag;
		abbrev.has_children = tally_dwarf_u8(&cursor) != 0;
		if (read_attributes(out, &abbrev, unit, &cursor) < 0)
			return -ENOMEM;
		if (cursor.failed)
			break;
		out->is_dense = out->is_dense && abbrev.code == out->list.count + 1;
		is_sorted = is_sorted && abbrev.code > last;
		last = abbrev.code;
		if (tally_vector_push(&out->list, abbrev) < 0)
			return -ENOMEM;
	}
	if (!is_sorted)
		qsort(out->list.items, out->list.count, sizeof(*out->list.items), compare_codes);
	out->is_used = true;
	return 0;
}

void tally_dwarf_abbrevs_release(struct tally_dwarf_abbrevs *abbrevs)
{
	tally_vector_release(&abbrevs->list);
	tally_vector_release(&abbrevs->attributes);
	abbrevs->is_used = false;
}

const struct tally_dwarf_abbrev *tally_dwarf_abbrevs_search(
	const struct tally_dwarf_abbrevs *abbrevs, uint64_t code)
{
	size_t low = 0, high = abbrevs->list.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (abbrevs->list.items[middle].code < code)
			low = middle + 1;
		else
			high = middle;
	}
	return low < abbrevs->list.count && abbrevs->list.items[low].code == code
		       ? &abbrevs->list.items[low]
		       : NULL;
}

const struct tally_dwarf_abbrevs *tally_dwarf_abbrevs_of(struct tally_dwarf_scratch *scratch,
							 const struct tally_dwarf_unit *unit)
{
	uint64_t hash = (unit->abbrev_offset ^ (uintptr_t)unit->file >> 4) * 0x9e3779b97f4a7c15ull;
	struct tally_dwarf_abbrevs *kept = &scratch->kept[(hash >> 32) % TALLY_DWARF_ABBREVS_KEPT];
	if (kept->is_used && kept->file == unit->file && kept->offset == unit->abbrev_offset &&
	    kept->version == unit->version && kept->address_size == unit->address_size &&
	    kept->offset_size == unit->offset_size)
		return kept;
	if (tally_dwarf_abbrevs_read(kept, unit, SIZE_MAX) < 0) {
		scratch->out_of_memory = true;
		return NULL;
	}
	return kept;
}

void tally_dwarf_scratch_release(struct tally_dwarf_scratch *scratch)
{
	for (size_t i = 0; i < TALLY_DWARF_ABBREVS_KEPT; i++)
		tally_dwarf_abbrevs_release(&scratch->kept[i]);
	tally_dwarf_abbrevs_release(&scratch->root);
	tally_vector_release(&scratch->ranges);
}

void tally_dwarf_scratch_forget(struct tally_dwarf_scratch *scratch,
				const struct tally_dwarf_file *file)
{
	for (size_t i = 0; i < TALLY_DWARF_ABBREVS_KEPT; i++)
		if (scratch->kept[i].file == file)
			scratch->kept[i].is_used = false;
}
