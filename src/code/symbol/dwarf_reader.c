/* Values of attributes: skips them, reads them, and interprets them in their unit. */
#include "symbol/lines_internal.h"

#include "base/input_limits.h"
#include "object/object.h"

#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

bool tally_dwarf_enter_length(struct tally_reader *reader, uint8_t *offset_size)
{
	uint64_t length = tally_reader_u32(reader);
	*offset_size = 4;
	if (length == 0xffffffff) {
		length = tally_reader_u64(reader);
		*offset_size = 8;
	} else if (length >= 0xfffffff0) {
		return false;
	}
	if (!tally_reader_need(reader, length))
		return false;
	reader->end = reader->at + length;
	return !reader->failed;
}

/* Returns the size of a block, which stands in front of it, and moves the reader behind that
 * size. */
static uint64_t enter_block(struct tally_reader *reader, uint16_t form)
{
	switch (form) {
	case DW_FORM_block1:
		return tally_reader_u8(reader);
	case DW_FORM_block2:
		return tally_reader_u16(reader);
	case DW_FORM_block4:
		return tally_reader_u32(reader);
	default:
		return tally_reader_uleb(reader);
	}
}

/* Gets the real form of an indirect attribute, which stands in the DIE. */
static bool resolve_indirect(struct tally_reader *reader, const struct tally_dwarf_unit *unit,
			     struct tally_dwarf_attribute *attribute)
{
	uint64_t form = tally_reader_uleb(reader);
	if (form == DW_FORM_indirect || form == DW_FORM_implicit_const || form > UINT16_MAX)
		return false;
	attribute->form = (uint16_t)form;
	attribute->size = tally_dwarf_form_size(form, unit);
	return !reader->failed;
}

bool tally_dwarf_skip_value(struct tally_reader *reader, const struct tally_dwarf_unit *unit,
			    const struct tally_dwarf_attribute *attribute)
{
	if (__builtin_expect(attribute->size < TALLY_DWARF_SIZE_VARIES, 1)) {
		tally_reader_skip(reader, attribute->size);
		return !reader->failed;
	}
	struct tally_dwarf_value value;
	return tally_dwarf_read_value(reader, unit, attribute, &value);
}

bool tally_dwarf_read_value(struct tally_reader *reader, const struct tally_dwarf_unit *unit,
			    const struct tally_dwarf_attribute *attribute,
			    struct tally_dwarf_value *value)
{
	struct tally_dwarf_attribute indirect;
	if (attribute->form == DW_FORM_indirect) {
		indirect = *attribute;
		if (!resolve_indirect(reader, unit, &indirect))
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
		value->number = (uint64_t)tally_reader_sleb(reader);
		break;
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		value->number = tally_reader_uleb(reader);
		break;
	case DW_FORM_string:
		value->text = tally_reader_string(reader);
		break;
	case DW_FORM_block:
	case DW_FORM_block1:
	case DW_FORM_block2:
	case DW_FORM_block4:
	case DW_FORM_exprloc:
		tally_reader_skip(reader, enter_block(reader, attribute->form));
		break;
	default:
		if (attribute->size >= TALLY_DWARF_SIZE_VARIES)
			return false;
		value->number = tally_reader_fixed(reader, attribute->size);
	}
	return !reader->failed;
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
	struct tally_reader reader = tally_dwarf_reader_at(unit->file, TALLY_DWARF_STR_OFFSETS,
							   offset);
	uint64_t at = tally_reader_fixed(&reader, unit->offset_size);
	if (reader.failed)
		return NULL;
	return string_at(unit->file, TALLY_DWARF_STR, at);
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

static bool dwarf_indexed_address(const struct tally_dwarf_unit *unit, uint64_t index,
				  uint64_t *address)
{
	const struct tally_dwarf_unit *owner = unit;
	if (unit->skeleton)
		owner = unit->skeleton;
	uint64_t offset;
	if (__builtin_mul_overflow(index, owner->address_size, &offset) ||
	    __builtin_add_overflow(offset, owner->addr_base, &offset))
		return false;
	struct tally_reader reader = tally_dwarf_reader_at(owner->file, TALLY_DWARF_ADDR, offset);
	*address = tally_reader_fixed(&reader, owner->address_size);
	return !reader.failed;
}

static bool dwarf_address(const struct tally_dwarf_unit *unit,
			  const struct tally_dwarf_value *value, uint64_t *address)
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
		return dwarf_indexed_address(unit, value->number, address);
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

/* Abbreviation tables, decoded once for all DIEs that use them.
 *
 * Most DIEs are skipped.  So the table stores what helps to skip them: the sum of the values'
 * sizes, when all are fixed, and the position of the reference to the next sibling.
 */

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
			   const struct tally_dwarf_unit *unit, struct tally_reader *reader)
{
	uint64_t size = 0;
	bool is_fixed = true;
	for (;;) {
		uint64_t name = tally_reader_uleb(reader);
		uint64_t form = tally_reader_uleb(reader);
		if ((name == 0 && form == 0) || reader->failed)
			break;
		struct tally_dwarf_attribute attribute = {
			.name = name > UINT16_MAX ? 0 : (uint16_t)name,
			.form = form > UINT16_MAX ? 0 : (uint16_t)form,
			.size = tally_dwarf_form_size(form, unit),
			.constant = form == DW_FORM_implicit_const ? tally_reader_sleb(reader) : 0,
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
	if (left->first < right->first)
		return -1;
	return left->first > right->first;
}

/* Honest files take up to four times their size. */
void tally_dwarf_allow(struct tally_dwarf_scratch *scratch, const struct tally_dwarf_file *file)
{
	uint64_t size = 0;
	for (unsigned i = 0; i < TALLY_DWARF_SECTIONS; i++)
		size += file->sections[i].size;
	scratch->budget += tally_input_limit_unpacked(TALLY_INPUT_DWARF, size);
	if (file->supplement)
		tally_dwarf_allow(scratch, file->supplement);
}

enum { ABBREV_COST = 4 }; /* bytes of budget for a byte of abbreviations, which become larger */

static bool is_table_of(const struct tally_dwarf_abbrevs *abbrevs,
			const struct tally_dwarf_unit *unit)
{
	return abbrevs->is_used && abbrevs->file == unit->file &&
	       abbrevs->offset == unit->abbrev_offset && abbrevs->version == unit->version &&
	       abbrevs->address_size == unit->address_size &&
	       abbrevs->offset_size == unit->offset_size;
}

int tally_dwarf_abbrevs_read(struct tally_dwarf_scratch *scratch, struct tally_dwarf_abbrevs *out,
			     const struct tally_dwarf_unit *unit, size_t limit)
{
	if (is_table_of(out, unit))
		return 0;
	out->file = unit->file;
	out->offset = unit->abbrev_offset;
	out->version = unit->version;
	out->address_size = unit->address_size;
	out->offset_size = unit->offset_size;
	out->is_dense = true;
	out->is_used = false;
	out->list.count = out->attributes.count = 0;
	/* a table without attributes needs an address for the pointers to its first ones */
	if (tally_vector_reserve(&out->attributes, 1) < 0)
		return -ENOMEM;
	struct tally_reader reader = tally_dwarf_reader_at(unit->file, TALLY_DWARF_ABBREV,
							   unit->abbrev_offset);
	bool is_sorted = true;
	uint64_t last = 0;
	while (out->list.count < limit) {
		const uint8_t *start = reader.at;
		struct tally_dwarf_abbrev abbrev = {
			.code = tally_reader_uleb(&reader),
			.first = (uint32_t)out->attributes.count,
			.size = UINT32_MAX,
			.sibling_at = UINT32_MAX,
		};
		if (abbrev.code == 0)
			break;
		uint64_t tag = tally_reader_uleb(&reader);
		abbrev.tag = 0;
		if (tag <= UINT16_MAX)
			abbrev.tag = (uint16_t)tag;
		abbrev.has_children = tally_reader_u8(&reader) != 0;
		if (read_attributes(out, &abbrev, unit, &reader) < 0)
			return -ENOMEM;
		if (reader.failed || !tally_dwarf_charge(scratch, ABBREV_COST * (uint64_t)(reader.at - start)))
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
	if (low < abbrevs->list.count && abbrevs->list.items[low].code == code)
		return &abbrevs->list.items[low];
	return NULL;
}

const struct tally_dwarf_abbrevs *tally_dwarf_abbrevs_of(struct tally_dwarf_scratch *scratch,
							 const struct tally_dwarf_unit *unit)
{
	uint64_t hash = (unit->abbrev_offset ^ (uintptr_t)unit->file >> 4) * 0x9e3779b97f4a7c15ull;
	struct tally_dwarf_abbrevs *kept = &scratch->kept[(hash >> 32) % TALLY_DWARF_ABBREVS_KEPT];
	if (tally_dwarf_abbrevs_read(scratch, kept, unit, SIZE_MAX) < 0) {
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
	if (scratch->root.file == file)
		scratch->root.is_used = false;
}

/* A file's sections and units, and the attributes of the units' roots. */

static void load_section(struct tally_dwarf_file *file, enum tally_dwarf_section section,
			 const char *name)
{
	struct tally_section loaded;
	char full_name[40];
	snprintf(full_name, sizeof(full_name), "%s%s", name, file->is_split ? ".dwo" : "");
	if (!tally_object_section(file->object, full_name, &loaded) || !loaded.bytes)
		return;
	struct tally_dwarf_bytes *bytes = &file->sections[section];
	*bytes = (struct tally_dwarf_bytes){ .bytes = loaded.bytes, .size = loaded.size };
	if (section == TALLY_DWARF_STR || section == TALLY_DWARF_LINE_STR) {
		const uint8_t *last = memrchr(loaded.bytes, 0, loaded.size);
		bytes->terminated = last ? (uint64_t)(last - loaded.bytes) + 1 : 0;
	}
}

void tally_dwarf_file_init(struct tally_dwarf_file *file, struct tally_object *object,
			   bool is_split)
{
	static const char *const NAMES[TALLY_DWARF_SECTIONS] = {
		[TALLY_DWARF_INFO] = ".debug_info",
		[TALLY_DWARF_ABBREV] = ".debug_abbrev",
		[TALLY_DWARF_STR] = ".debug_str",
		[TALLY_DWARF_LINE_STR] = ".debug_line_str",
		[TALLY_DWARF_STR_OFFSETS] = ".debug_str_offsets",
		[TALLY_DWARF_ADDR] = ".debug_addr",
		[TALLY_DWARF_RANGES] = ".debug_ranges",
		[TALLY_DWARF_RNGLISTS] = ".debug_rnglists",
		[TALLY_DWARF_LINE] = ".debug_line",
		[TALLY_DWARF_ARANGES] = ".debug_aranges",
	};
	*file = (struct tally_dwarf_file){
		.object = tally_object_ref(object),
		.swap = tally_object_is_swapped(object),
		.is_split = is_split,
	};
	for (unsigned i = 0; i < TALLY_DWARF_SECTIONS; i++)
		load_section(file, i, NAMES[i]);
}

void tally_dwarf_file_release(struct tally_dwarf_file *file)
{
	if (file->supplement) {
		tally_dwarf_file_release(file->supplement);
		free(file->supplement);
	}
	tally_vector_release(&file->units);
	tally_object_unref(file->object);
	*file = (struct tally_dwarf_file){ 0 };
}

struct tally_reader tally_dwarf_reader_at(const struct tally_dwarf_file *file,
					  enum tally_dwarf_section section, uint64_t offset)
{
	static const uint8_t NOTHING[1];
	const struct tally_dwarf_bytes *bytes = &file->sections[section];
	struct tally_reader reader;
	const uint8_t *start = bytes->bytes;
	if (!start) {
		start = NOTHING;
		offset = UINT64_MAX;
	}
	tally_reader_init(&reader, start, bytes->size, file->swap);
	tally_reader_seek(&reader, offset);
	return reader;
}

/* The root's attributes before interpretation: a base may stand behind the values that need it. */
struct root {
	struct tally_dwarf_value name, directory, dwo_name;
	struct tally_dwarf_value str_offsets_base, addr_base, rnglists_base, ranges_base;
	struct tally_dwarf_value lines, dwo_id;
	struct tally_dwarf_extent extent;
};

static struct tally_dwarf_value *place_of(struct root *root, uint16_t name)
{
	switch (name) {
	case DW_AT_name:
		return &root->name;
	case DW_AT_comp_dir:
		return &root->directory;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		return &root->dwo_name;
	case DW_AT_GNU_dwo_id:
		return &root->dwo_id;
	case DW_AT_str_offsets_base:
		return &root->str_offsets_base;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		return &root->addr_base;
	case DW_AT_rnglists_base:
		return &root->rnglists_base;
	case DW_AT_GNU_ranges_base:
		return &root->ranges_base;
	case DW_AT_stmt_list:
		return &root->lines;
	case DW_AT_low_pc:
		return &root->extent.low_pc;
	case DW_AT_high_pc:
		return &root->extent.high_pc;
	case DW_AT_ranges:
		return &root->extent.ranges;
	default:
		return NULL;
	}
}

static void apply_root(struct tally_dwarf_unit *unit, const struct root *root,
		       const struct tally_dwarf_contribution *contribution)
{
	/* Without an attribute, the section (or the contribution) has a single table, which begins
	 * behind its header. */
	bool is_wide = unit->offset_size == 8;
	unit->str_offsets_base = unit->rnglists_base = unit->addr_base = 0;
	if (unit->version >= 5) {
		unit->str_offsets_base = is_wide ? 16 : 8;
		unit->rnglists_base = is_wide ? 20 : 12;
		unit->addr_base = 8;
	}
	if (root->str_offsets_base.form)
		unit->str_offsets_base = root->str_offsets_base.number;
	if (root->rnglists_base.form)
		unit->rnglists_base = root->rnglists_base.number;
	if (root->addr_base.form)
		unit->addr_base = root->addr_base.number;
	if (contribution) {
		unit->str_offsets_base += contribution->str_offsets;
		unit->rnglists_base += contribution->rnglists;
	}
	unit->ranges_base = root->ranges_base.number;
	unit->extent = root->extent;
	unit->has_lines = root->lines.form != 0;
	unit->line_offset = root->lines.number;
	if (root->dwo_id.form)
		unit->dwo_id = root->dwo_id.number;
	unit->name = tally_dwarf_string(unit, &root->name);
	unit->directory = tally_dwarf_string(unit, &root->directory);
	unit->dwo_name = tally_dwarf_string(unit, &root->dwo_name);
	if (!root->extent.low_pc.form || !dwarf_address(unit, &root->extent.low_pc, &unit->low_pc))
		unit->low_pc = unit->skeleton ? unit->skeleton->low_pc : 0;
}

static const struct tally_dwarf_abbrev *root_abbrev(struct tally_dwarf_scratch *scratch,
						    const struct tally_dwarf_unit *unit,
						    uint64_t code,
						    const struct tally_dwarf_attribute **attributes)
{
	/* The root's abbreviation is nearly always the table's first, so read only that one. */
	const struct tally_dwarf_abbrevs *table = &scratch->root;
	if (tally_dwarf_abbrevs_read(scratch, &scratch->root, unit, 1) < 0)
		scratch->out_of_memory = true;
	else if (table->list.count == 0 || table->list.items[0].code != code)
		table = tally_dwarf_abbrevs_of(scratch, unit);
	if (!table)
		return NULL;
	const struct tally_dwarf_abbrev *abbrev = tally_dwarf_abbrevs_search(table, code);
	if (abbrev)
		*attributes = table->attributes.items + abbrev->first;
	return abbrev;
}

static bool read_root(struct tally_dwarf_scratch *scratch, struct tally_reader *reader,
		      const struct tally_dwarf_contribution *contribution,
		      struct tally_dwarf_unit *unit)
{
	const struct tally_dwarf_attribute *attributes;
	uint64_t code = tally_reader_uleb(reader);
	if (!code)
		return false;
	const struct tally_dwarf_abbrev *abbrev = root_abbrev(scratch, unit, code, &attributes);
	if (!abbrev || !tally_dwarf_charge(scratch, abbrev->count))
		return false;
	struct root root = { 0 };
	for (uint32_t i = 0; i < abbrev->count; i++) {
		struct tally_dwarf_value *place = place_of(&root, attributes[i].name);
		if (place && !tally_dwarf_read_value(reader, unit, &attributes[i], place))
			return false;
		if (!place && !tally_dwarf_skip_value(reader, unit, &attributes[i]))
			return false;
	}
	unit->tag = abbrev->tag;
	apply_root(unit, &root, contribution);
	return true;
}

/* Reads the header.  The reader then stands at the root, and its end is the unit's. */
static bool read_header(struct tally_reader *reader, struct tally_dwarf_unit *unit)
{
	if (!tally_dwarf_enter_length(reader, &unit->offset_size))
		return false;
	unit->end = (uint64_t)(reader->end - reader->start);
	uint16_t version = tally_reader_u16(reader);
	if (version < 2 || version > 5)
		return false;
	unit->version = (uint8_t)version;
	if (version == 5) {
		unit->type = tally_reader_u8(reader);
		unit->address_size = tally_reader_u8(reader);
		unit->abbrev_offset = tally_reader_fixed(reader, unit->offset_size);
		if (unit->type == DW_UT_skeleton || unit->type == DW_UT_split_compile)
			unit->dwo_id = tally_reader_u64(reader);
	} else {
		unit->type = DW_UT_compile;
		unit->abbrev_offset = tally_reader_fixed(reader, unit->offset_size);
		unit->address_size = tally_reader_u8(reader);
	}
	unit->first_die = tally_reader_offset(reader);
	return !reader->failed && (unit->address_size == 4 || unit->address_size == 8) &&
	       unit->type != DW_UT_type && unit->type != DW_UT_split_type;
}

bool tally_dwarf_read_unit(struct tally_dwarf_file *file, struct tally_dwarf_scratch *scratch,
			   uint64_t offset, const struct tally_dwarf_contribution *contribution,
			   const struct tally_dwarf_unit *skeleton, struct tally_dwarf_unit *unit)
{
	*unit = (struct tally_dwarf_unit){ .file = file,
					   .offset = offset,
					   .skeleton = skeleton,
					   .end = file->sections[TALLY_DWARF_INFO].size };
	struct tally_reader reader = tally_dwarf_reader_at(file, TALLY_DWARF_INFO, offset);
	if (reader.failed || !read_header(&reader, unit))
		return false;
	if (contribution)
		unit->abbrev_offset += contribution->abbrev;
	return read_root(scratch, &reader, contribution, unit);
}

int tally_dwarf_read_units(struct tally_dwarf_file *file, struct tally_dwarf_scratch *scratch,
			   const struct tally_dwarf_unit *skeleton)
{
	uint64_t offset = 0, size = file->sections[TALLY_DWARF_INFO].size;
	while (offset < size) {
		struct tally_dwarf_unit unit;
		bool is_good = tally_dwarf_read_unit(file, scratch, offset, NULL, skeleton, &unit);
		if (scratch->out_of_memory)
			return -ENOMEM;
		offset = unit.end;
		if (is_good && tally_vector_push(&file->units, unit) < 0)
			return -ENOMEM;
	}
	return 0;
}

const struct tally_dwarf_unit *tally_dwarf_unit_at(const struct tally_dwarf_file *file,
						   uint64_t offset)
{
	size_t low = 0, high = file->units.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (file->units.items[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || offset >= file->units.items[low - 1].end)
		return NULL;
	return &file->units.items[low - 1];
}

/* Addresses of code: a low and a high end, or a list of ranges (.debug_ranges, .debug_rnglists). */

enum { RANGE_COST = 32 }; /* bytes of budget for a range that is kept */

struct list {
	struct tally_dwarf_scratch *scratch;
	const struct tally_dwarf_unit *unit;
	size_t left; /* entries that may still be added */
};

static int add(struct list *list, uint64_t start, uint64_t end)
{
	if (start >= end || list->left == 0 || !tally_dwarf_charge(list->scratch, RANGE_COST))
		return 0;
	list->left--;
	if (tally_vector_push(&list->scratch->ranges, (struct tally_dwarf_range){ start, end }) < 0)
		return -ENOMEM;
	return 0;
}

static int read_old_list(struct list *list, uint64_t offset)
{
	const struct tally_dwarf_unit *unit = list->unit;
	const struct tally_dwarf_unit *owner = unit;
	if (unit->skeleton)
		owner = unit->skeleton;
	if (unit->skeleton && __builtin_add_overflow(offset, owner->ranges_base, &offset))
		return 0;
	struct tally_reader reader = tally_dwarf_reader_at(owner->file, TALLY_DWARF_RANGES, offset);
	unsigned size = unit->address_size;
	uint64_t highest = UINT64_MAX;
	if (size != 8)
		highest = ((uint64_t)1 << 8 * size) - 1;
	uint64_t base = unit->low_pc;
	while (list->left > 0 && tally_dwarf_charge(list->scratch, 2 * size)) {
		uint64_t start = tally_reader_fixed(&reader, size);
		uint64_t end = tally_reader_fixed(&reader, size);
		if (reader.failed || (start == 0 && end == 0))
			return 0;
		if (start == highest)
			base = end;
		else if (add(list, base + start, base + end) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Reads one entry.  Returns 1, 0 at the end or at damage, or -ENOMEM. */
static int read_entry(struct list *list, struct tally_reader *reader, uint64_t *base)
{
	const struct tally_dwarf_unit *unit = list->unit;
	unsigned size = unit->address_size;
	uint64_t start = 0, end = 0;
	bool is_there = true, is_base = false;
	uint8_t kind = tally_reader_u8(reader);
	switch (kind) {
	case DW_RLE_base_addressx:
		is_base = true;
		is_there = dwarf_indexed_address(unit, tally_reader_uleb(reader), &start);
		break;
	case DW_RLE_base_address:
		is_base = true;
		start = tally_reader_fixed(reader, size);
		break;
	case DW_RLE_startx_endx:
		is_there = dwarf_indexed_address(unit, tally_reader_uleb(reader), &start);
		is_there = dwarf_indexed_address(unit, tally_reader_uleb(reader), &end) && is_there;
		break;
	case DW_RLE_startx_length:
		is_there = dwarf_indexed_address(unit, tally_reader_uleb(reader), &start);
		end = start + tally_reader_uleb(reader);
		break;
	case DW_RLE_offset_pair:
		start = *base + tally_reader_uleb(reader);
		end = *base + tally_reader_uleb(reader);
		break;
	case DW_RLE_start_end:
		start = tally_reader_fixed(reader, size);
		end = tally_reader_fixed(reader, size);
		break;
	case DW_RLE_start_length:
		start = tally_reader_fixed(reader, size);
		end = start + tally_reader_uleb(reader);
		break;
	default: /* DW_RLE_end_of_list, and unknown kinds */
		return 0;
	}
	if (reader->failed)
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
		struct tally_reader index = tally_dwarf_reader_at(unit->file, TALLY_DWARF_RNGLISTS,
								  offset);
		offset = tally_reader_fixed(&index, unit->offset_size) + unit->rnglists_base;
		if (index.failed)
			return 0;
	}
	struct tally_reader reader = tally_dwarf_reader_at(unit->file, TALLY_DWARF_RNGLISTS,
							   offset);
	uint64_t base = unit->low_pc;
	int rc = 1;
	while (rc == 1 && list->left > 0 && tally_dwarf_charge(list->scratch, 1))
		rc = read_entry(list, &reader, &base);
	if (rc < 0)
		return rc;
	return 0;
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
		if (unit->version >= 5)
			return read_list(&list, &extent->ranges);
		return read_old_list(&list, extent->ranges.number);
	}
	uint64_t low, high;
	if (!extent->low_pc.form || !extent->high_pc.form ||
	    !dwarf_address(unit, &extent->low_pc, &low))
		return 0;
	if (is_constant(extent->high_pc.form))
		return add(&list, low, low + extent->high_pc.number);
	if (!dwarf_address(unit, &extent->high_pc, &high))
		return 0;
	return add(&list, low, high);
}

int tally_dwarf_unit_ranges(struct tally_dwarf_scratch *scratch,
			    const struct tally_dwarf_unit *unit)
{
	return tally_dwarf_read_extent(scratch, unit, &unit->extent, SIZE_MAX);
}
