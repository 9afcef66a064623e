/* A file's sections and units, and the attributes of the units' roots. */
#include "symbol/dwarf_reader.h"

#include "object/object.h"

#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

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

struct tally_dwarf_cursor tally_dwarf_cursor_at(const struct tally_dwarf_file *file,
						enum tally_dwarf_section section, uint64_t offset)
{
	const struct tally_dwarf_bytes *bytes = &file->sections[section];
	struct tally_dwarf_cursor cursor = { .swap = file->swap };
	if (offset > bytes->size || !bytes->bytes) {
		static const uint8_t NOTHING[1];
		cursor.at = cursor.end = NOTHING;
		cursor.failed = true;
		return cursor;
	}
	cursor.at = bytes->bytes + offset;
	cursor.end = bytes->bytes + bytes->size;
	return cursor;
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
	bool is_new = unit->version >= 5;
	/* Without an attribute, the section (or the contribution) has a single table, which begins
	 * behind its header. */
	uint64_t str_offsets_header = is_new ? (unit->offset_size == 8 ? 16 : 8) : 0;
	uint64_t rnglists_header = is_new ? (unit->offset_size == 8 ? 20 : 12) : 0;
	unit->str_offsets_base = root->str_offsets_base.form ? root->str_offsets_base.number
							     : str_offsets_header;
	unit->rnglists_base = root->rnglists_base.form ? root->rnglists_base.number
						       : rnglists_header;
	if (contribution) {
		unit->str_offsets_base += contribution->str_offsets;
		unit->rnglists_base += contribution->rnglists;
	}
	unit->addr_base = root->addr_base.form ? root->addr_base.number : is_new ? 8 : 0;
	unit->ranges_base = root->ranges_base.number;
	unit->extent = root->extent;
	unit->has_lines = root->lines.form != 0;
	unit->line_offset = root->lines.number;
	if (root->dwo_id.form)
		unit->dwo_id = root->dwo_id.number;
	unit->name = tally_dwarf_string(unit, &root->name);
	unit->directory = tally_dwarf_string(unit, &root->directory);
	unit->dwo_name = tally_dwarf_string(unit, &root->dwo_name);
	if (!root->extent.low_pc.form ||
	    !tally_dwarf_address(unit, &root->extent.low_pc, &unit->low_pc))
		unit->low_pc = unit->skeleton ? unit->skeleton->low_pc : 0;
}

static const struct tally_dwarf_abbrev *root_abbrev(struct tally_dwarf_scratch *scratch,
						    const struct tally_dwarf_unit *unit,
						    uint64_t code,
						    const struct tally_dwarf_attribute **attributes)
{
	/* The root's abbreviation is nearly always the table's first, so read only that one. */
	const struct tally_dwarf_abbrevs *table = &scratch->root;
	if (tally_dwarf_abbrevs_read(&scratch->root, unit, 1) < 0)
		scratch->out_of_memory = true;
	else if (table->list.count == 0 || table->list.items[0].code != code)
		table = tally_dwarf_abbrevs_of(scratch, unit);
	const struct tally_dwarf_abbrev *abbrev = table ? tally_dwarf_abbrevs_search(table, code)
							: NULL;
	if (abbrev)
		*attributes = table->attributes.items + abbrev->first;
	return abbrev;
}

static bool read_root(struct tally_dwarf_scratch *scratch, struct tally_dwarf_cursor *cursor,
		      const struct tally_dwarf_contribution *contribution,
		      struct tally_dwarf_unit *unit)
{
	const struct tally_dwarf_attribute *attributes;
	uint64_t code = tally_dwarf_uleb(cursor);
	const struct tally_dwarf_abbrev *abbrev = code ? root_abbrev(scratch, unit, code,
								     &attributes)
						       : NULL;
	if (!abbrev)
		return false;
	struct root root = { 0 };
	for (uint32_t i = 0; i < abbrev->count; i++) {
		struct tally_dwarf_value *place = place_of(&root, attributes[i].name);
		if (place ? !tally_dwarf_read_value(cursor, unit, &attributes[i], place)
			  : !tally_dwarf_skip_value(cursor, unit, &attributes[i]))
			return false;
	}
	unit->tag = abbrev->tag;
	apply_root(unit, &root, contribution);
	return true;
}

/* Reads the header.  The cursor then stands at the root, and its end is the unit's. */
static bool read_header(struct tally_dwarf_cursor *cursor, struct tally_dwarf_unit *unit)
{
	if (!tally_dwarf_enter_length(cursor, &unit->offset_size))
		return false;
	unit->end = (uint64_t)(cursor->end - unit->file->sections[TALLY_DWARF_INFO].bytes);
	uint16_t version = tally_dwarf_u16(cursor);
	if (version < 2 || version > 5)
		return false;
	unit->version = (uint8_t)version;
	if (version == 5) {
		unit->type = tally_dwarf_u8(cursor);
		unit->address_size = tally_dwarf_u8(cursor);
		unit->abbrev_offset = tally_dwarf_fixed(cursor, unit->offset_size);
		if (unit->type == DW_UT_skeleton || unit->type == DW_UT_split_compile)
			unit->dwo_id = tally_dwarf_u64(cursor);
	} else {
		unit->type = DW_UT_compile;
		unit->abbrev_offset = tally_dwarf_fixed(cursor, unit->offset_size);
		unit->address_size = tally_dwarf_u8(cursor);
	}
	unit->first_die = (uint64_t)(cursor->at - unit->file->sections[TALLY_DWARF_INFO].bytes);
	return !cursor->failed && (unit->address_size == 4 || unit->address_size == 8) &&
	       unit->type != DW_UT_type && unit->type != DW_UT_split_type;
}

bool tally_dwarf_read_unit(struct tally_dwarf_file *file, struct tally_dwarf_scratch *scratch,
			   uint64_t offset, const struct tally_dwarf_contribution *contribution,
			   const struct tally_dwarf_unit *skeleton, struct tally_dwarf_unit *unit)
{
	*unit = (struct tally_dwarf_unit){ .file = file, .offset = offset, .skeleton = skeleton,
					   .end = file->sections[TALLY_DWARF_INFO].size };
	struct tally_dwarf_cursor cursor = tally_dwarf_cursor_at(file, TALLY_DWARF_INFO, offset);
	if (cursor.failed || !read_header(&cursor, unit))
		return false;
	if (contribution)
		unit->abbrev_offset += contribution->abbrev;
	return read_root(scratch, &cursor, contribution, unit);
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
