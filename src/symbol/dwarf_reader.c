/* Values of attributes: skips them, reads them, and interprets them in their unit. */
#include "symbol/dwarf_reader.h"

#include <dwarf.h>

uint64_t tally_dwarf_long_uleb(struct tally_dwarf_cursor *cursor)
{
	uint64_t value = 0;
	for (unsigned shift = 0;; shift += 7) {
		uint8_t byte = tally_dwarf_u8(cursor);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return cursor->failed ? 0 : value;
	}
}

int64_t tally_dwarf_sleb(struct tally_dwarf_cursor *cursor)
{
	uint64_t value = 0;
	for (unsigned shift = 0;; shift += 7) {
		uint8_t byte = tally_dwarf_u8(cursor);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (byte & 0x40 && shift + 7 < 64)
			value |= ~(uint64_t)0 << (shift + 7);
		return cursor->failed ? 0 : (int64_t)value;
	}
}

uint64_t tally_dwarf_fixed(struct tally_dwarf_cursor *cursor, unsigned size)
{
	switch (size) {
	case 1:
		return tally_dwarf_u8(cursor);
	case 2:
		return tally_dwarf_u16(cursor);
	case 3: {
		uint64_t a = tally_dwarf_u8(cursor), b = tally_dwarf_u8(cursor),
			 c = tally_dwarf_u8(cursor);
		bool is_big = (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) != cursor->swap;
		return is_big ? a << 16 | b << 8 | c : c << 16 | b << 8 | a;
	}
	case 4:
		return tally_dwarf_u32(cursor);
	case 8:
		return tally_dwarf_u64(cursor);
	default:
		tally_dwarf_skip(cursor, size);
		return 0;
	}
}

const char *tally_dwarf_text(struct tally_dwarf_cursor *cursor)
{
	const uint8_t *end = memchr(cursor->at, 0, (size_t)(cursor->end - cursor->at));
	if (!end) {
		cursor->at = cursor->end;
		cursor->failed = true;
		return NULL;
	}
	const char *text = (const char *)cursor->at;
	cursor->at = end + 1;
	return text;
}

bool tally_dwarf_enter_length(struct tally_dwarf_cursor *cursor, uint8_t *offset_size)
{
	uint64_t length = tally_dwarf_u32(cursor);
	*offset_size = 4;
	if (length == 0xffffffff) {
		length = tally_dwarf_u64(cursor);
		*offset_size = 8;
	} else if (length >= 0xfffffff0) {
		return false;
	}
	if (cursor->failed || length > (uint64_t)(cursor->end - cursor->at))
		return false;
	cursor->end = cursor->at + length;
	return true;
}

/* Returns the size of a block, which stands in front of it, and moves the cursor behind that
 * size. */
static uint64_t enter_block(struct tally_dwarf_cursor *cursor, uint16_t form)
{
	switch (form) {
	case DW_FORM_block1:
		return tally_dwarf_u8(cursor);
	case DW_FORM_block2:
		return tally_dwarf_u16(cursor);
	case DW_FORM_block4:
		return tally_dwarf_u32(cursor);
	default:
		return tally_dwarf_uleb(cursor);
	}
}

/* Gets the real form of an indirect attribute, which stands in the DIE. */
static bool resolve_indirect(struct tally_dwarf_cursor *cursor, const struct tally_dwarf_unit *unit,
			     struct tally_dwarf_attribute *attribute)
{
	uint64_t form = tally_dwarf_uleb(cursor);
	if (form == DW_FORM_indirect || form == DW_FORM_implicit_const || form > UINT16_MAX)
		return false;
	attribute->form = (uint16_t)form;
	attribute->size = tally_dwarf_form_size(form, unit);
	return !cursor->failed;
}

bool tally_dwarf_skip_value(struct tally_dwarf_cursor *cursor, const struct tally_dwarf_unit *unit,
			    const struct tally_dwarf_attribute *attribute)
{
	if (__builtin_expect(attribute->size < TALLY_DWARF_SIZE_VARIES, 1)) {
		tally_dwarf_skip(cursor, attribute->size);
		return !cursor->failed;
	}
	struct tally_dwarf_value value;
	return tally_dwarf_read_value(cursor, unit, attribute, &value);
}

bool tally_dwarf_read_value(struct tally_dwarf_cursor *cursor, const struct tally_dwarf_unit *unit,
			    const struct tally_dwarf_attribute *attribute,
			    struct tally_dwarf_value *value)
{
	struct tally_dwarf_attribute indirect;
	if (attribute->form == DW_FORM_indirect) {
		indirect = *attribute;
		if (!resolve_indirect(cursor, unit, &indirect))
			return false;
		attribute = &indirect;
	}
	*value = (struct tally_dwarf_value){ .form = attribute->form };
	switch (attribute->form) {
	case DW_FORM_flag_present:
		value->number = 1;
		break;
	case DW_FORM_implicit_const:
		value->number = (uint64_t)attribute->constant;
		break;
	case DW_FORM_sdata:
		value->number = (uint64_t)tally_dwarf_sleb(cursor);
		break;
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		value->number = tally_dwarf_uleb(cursor);
		break;
	case DW_FORM_string:
		value->text = tally_dwarf_text(cursor);
		break;
	case DW_FORM_block:
	case DW_FORM_block1:
	case DW_FORM_block2:
	case DW_FORM_block4:
	case DW_FORM_exprloc:
		tally_dwarf_skip(cursor, enter_block(cursor, attribute->form));
		break;
	default:
		if (attribute->size >= TALLY_DWARF_SIZE_VARIES)
			return false;
		value->number = tally_dwarf_fixed(cursor, attribute->size);
	}
	return !cursor->failed;
}

static const char *string_at(const struct tally_dwarf_file *file, enum tally_dwarf_section section,
			     uint64_t offset)
{
	if (!file || offset >= file->sections[section].terminated)
		return NULL;
	return (const char *)file->sections[section].bytes + offset;
}

static const char *indexed_string(const struct tally_dwarf_unit *unit, uint64_t index)
{
	uint64_t offset;
	if (__builtin_mul_overflow(index, unit->offset_size, &offset) ||
	    __builtin_add_overflow(offset, unit->str_offsets_base, &offset))
		return NULL;
	struct tally_dwarf_cursor cursor = tally_dwarf_cursor_at(unit->file,
								 TALLY_DWARF_STR_OFFSETS, offset);
	uint64_t at = tally_dwarf_fixed(&cursor, unit->offset_size);
	return cursor.failed ? NULL : string_at(unit->file, TALLY_DWARF_STR, at);
}

const char *tally_dwarf_string(const struct tally_dwarf_unit *unit,
			       const struct tally_dwarf_value *value)
{
	switch (value->form) {
	case DW_FORM_string:
		return value->text;
	case DW_FORM_strp:
		return string_at(unit->file, TALLY_DWARF_STR, value->number);
	case DW_FORM_line_strp:
		return string_at(unit->file, TALLY_DWARF_LINE_STR, value->number);
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_strp_sup:
		return string_at(unit->file->supplement, TALLY_DWARF_STR, value->number);
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
		return indexed_string(unit, value->number);
	default:
		return NULL;
	}
}

bool tally_dwarf_indexed_address(const struct tally_dwarf_unit *unit, uint64_t index,
				 uint64_t *address)
{
	const struct tally_dwarf_unit *owner = unit->skeleton ? unit->skeleton : unit;
	uint64_t offset;
	if (__builtin_mul_overflow(index, owner->address_size, &offset) ||
	    __builtin_add_overflow(offset, owner->addr_base, &offset))
		return false;
	struct tally_dwarf_cursor cursor = tally_dwarf_cursor_at(owner->file, TALLY_DWARF_ADDR,
								 offset);
	*address = tally_dwarf_fixed(&cursor, owner->address_size);
	return !cursor.failed;
}

bool tally_dwarf_address(const struct tally_dwarf_unit *unit, const struct tally_dwarf_value *value,
			 uint64_t *address)
{
	switch (value->form) {
	case DW_FORM_addr:
		*address = value->number;
		return true;
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_addr_index:
		return tally_dwarf_indexed_address(unit, value->number, address);
	default:
		return false;
	}
}

bool tally_dwarf_reference(const struct tally_dwarf_unit *unit,
			   const struct tally_dwarf_value *value,
			   const struct tally_dwarf_unit **other, uint64_t *offset)
{
	const struct tally_dwarf_file *file = unit->file;
	switch (value->form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		*offset = unit->offset + value->number;
		*other = unit;
		return value->number < unit->end - unit->offset && *offset >= unit->first_die;
	case DW_FORM_ref_addr:
		break;
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
		file = file->supplement;
		break;
	default:
		return false;
	}
	*offset = value->number;
	if (file == unit->file && *offset >= unit->first_die && *offset < unit->end)
		*other = unit;
	else
		*other = file ? tally_dwarf_unit_at(file, *offset) : NULL;
	return *other && *offset >= (*other)->first_die;
}
