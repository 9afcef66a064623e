/* Walks a unit's DIEs and finds its functions and what was inlined into them.
 *
 * A large program has millions of DIEs: types, variables, parameters, call sites.  Only functions
 * and inlined copies matter here.  The walk skips all others by their abbreviation's size, and
 * skips the whole subtree of a DIE that can't contain code when the compiler says where it ends.
 * The walk goes over the bytes once, in order; its depth grows a vector, not the machine stack.
 *
 * A name may be far away: an inlined copy refers to the abstract function, that refers to a
 * declaration in a class, and each may be in another unit or another file.  A function is usually
 * inlined many times, so the name found for a DIE is kept by the DIE's address.
 */
#include "symbol/lines_unit.h"

#include <dwarf.h>
#include <errno.h>

enum {
	HOPS_MAX = 16,       /* references from a copy to its name */
	DEPTH_MAX = 1 << 16, /* nesting of DIEs */
	/* files in the tables of other units, read for one unit: more are a trap */
	SOURCES_MAX = 1 << 22,
};

struct walk {
	struct tally_lines_scratch *scratch;
	const struct tally_dwarf_unit *unit;
	const struct tally_dwarf_unit *lines_unit; /* its line table has the files */
	const struct tally_lines_code *code;
	bool copy_names;
	size_t ranges_left;
};

/* The attributes of a function's DIE that are needed. */
struct function {
	struct tally_dwarf_extent extent;
	struct tally_dwarf_value name, linkage_name, origin;
	struct tally_dwarf_value decl_file, external;
	struct tally_dwarf_value call_file, call_line, call_column;
};

static struct tally_dwarf_value *place_of(struct function *function, uint16_t name)
{
	switch (name) {
	case DW_AT_low_pc:
		return &function->extent.low_pc;
	case DW_AT_high_pc:
		return &function->extent.high_pc;
	case DW_AT_ranges:
		return &function->extent.ranges;
	case DW_AT_name:
		return &function->name;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		return &function->linkage_name;
	case DW_AT_abstract_origin:
	case DW_AT_specification:
		return &function->origin;
	case DW_AT_decl_file:
		return &function->decl_file;
	case DW_AT_external:
		return &function->external;
	case DW_AT_call_file:
		return &function->call_file;
	case DW_AT_call_line:
		return &function->call_line;
	case DW_AT_call_column:
		return &function->call_column;
	default:
		return NULL;
	}
}

static bool read_function(struct tally_dwarf_cursor *cursor, const struct tally_dwarf_unit *unit,
			  const struct tally_dwarf_attribute *attributes, uint32_t count,
			  struct function *function)
{
	*function = (struct function){ 0 };
	for (uint32_t i = 0; i < count; i++) {
		struct tally_dwarf_value *place = place_of(function, attributes[i].name);
		if (place ? !tally_dwarf_read_value(cursor, unit, &attributes[i], place)
			  : !tally_dwarf_skip_value(cursor, unit, &attributes[i]))
			return false;
	}
	return true;
}

/* ---- names ---- */

static bool read_at(struct walk *walk, const struct tally_dwarf_unit *unit, uint64_t offset,
		    struct function *function)
{
	const struct tally_dwarf_abbrevs *abbrevs = unit == walk->unit
							    ? &walk->scratch->abbrevs
							    : tally_dwarf_abbrevs_of(
								      &walk->scratch->dwarf, unit);
	struct tally_dwarf_cursor cursor = tally_dwarf_cursor_at(unit->file, TALLY_DWARF_INFO,
								 offset);
	if (!abbrevs || cursor.failed)
		return false;
	cursor.end = unit->file->sections[TALLY_DWARF_INFO].bytes + unit->end;
	uint64_t code = tally_dwarf_uleb(&cursor);
	const struct tally_dwarf_abbrev *abbrev = code ? tally_dwarf_abbrev_of(abbrevs, code)
						       : NULL;
	return abbrev && read_function(&cursor, unit, abbrevs->attributes.items + abbrev->first,
				       abbrev->count, function);
}

/* What a chain of DIEs says of a function. */
struct named {
	const char *name; /* NULL: nothing */
	bool is_external;
	/* the unit whose table of files `file` is of; NULL: no DIE says who declares it */
	const struct tally_dwarf_unit *declaring;
	uint64_t file;
};

static void see_declaration(struct named *named, const struct tally_dwarf_unit *unit,
			    const struct function *function)
{
	named->is_external |= function->external.form && function->external.number;
	if (!named->declaring && function->decl_file.form) {
		named->declaring = unit;
		named->file = function->decl_file.number;
	}
}

/* Sets the name to that of the DIE that a function refers to: the first linkage name on the way,
 * otherwise the first plain name. */
static void follow(struct walk *walk, const struct tally_dwarf_unit *unit, uint64_t offset,
		   struct named *named)
{
	for (unsigned hop = 0; hop < HOPS_MAX; hop++) {
		struct function function;
		if (!read_at(walk, unit, offset, &function))
			break;
		see_declaration(named, unit, &function);
		const char *linkage = tally_dwarf_string(unit, &function.linkage_name);
		if (linkage) {
			named->name = linkage;
			return;
		}
		if (!named->name)
			named->name = tally_dwarf_string(unit, &function.name);
		if (!function.origin.form ||
		    !tally_dwarf_reference(unit, &function.origin, &unit, &offset))
			break;
	}
}

/* The table of files of a unit that isn't the one that is walked; NULL: none, or too many were
 * read. */
static const struct tally_dwarf_lines *tables_of(struct tally_lines_scratch *scratch,
						 const struct tally_dwarf_unit *unit)
{
	struct tally_lines_tables *kept =
		&scratch->tables[tally_hash64((uintptr_t)unit) % TALLY_LINES_TABLES_KEPT];
	if (kept->unit == unit)
		return &kept->lines;
	kept->unit = NULL;
	if (!scratch->sources_left)
		return NULL;
	if (tally_dwarf_lines_read_tables(&kept->lines, unit) < 0) {
		scratch->dwarf.out_of_memory = true;
		return NULL;
	}
	size_t count = kept->lines.sources.count + 1;
	scratch->sources_left -= count < scratch->sources_left ? count : scratch->sources_left;
	kept->unit = unit;
	return &kept->lines;
}

static uint16_t source_of(struct walk *walk, const struct named *named)
{
	struct tally_lines_scratch *scratch = walk->scratch;
	const struct tally_dwarf_unit *unit = named->declaring;
	if (named->is_external || !unit)
		return TALLY_LINES_NO_FILE;
	bool is_own = unit == walk->unit ||
		      (unit->file == walk->lines_unit->file && unit->has_lines &&
		       unit->line_offset == walk->lines_unit->line_offset);
	if (is_own)
		return tally_lines_file(scratch, walk->lines_unit, named->file);
	const struct tally_dwarf_lines *lines = tables_of(scratch, unit);
	const char *path = lines && (lines->version >= 5 || named->file)
				   ? tally_dwarf_source_path(lines, unit, named->file,
							     scratch->arena)
				   : NULL;
	if (!path || scratch->files.count >= TALLY_LINES_FILES_MAX)
		return TALLY_LINES_NO_FILE;
	if (tally_vector_push(&scratch->files, path) < 0) {
		scratch->dwarf.out_of_memory = true;
		return TALLY_LINES_NO_FILE;
	}
	return (uint16_t)(scratch->files.count - 1);
}

static uint32_t add_name(struct walk *walk, const struct named *named)
{
	struct tally_lines_scratch *scratch = walk->scratch;
	const char *name = named->name;
	if (!name || !*name)
		return TALLY_LINES_NONE;
	/* Without copying, the length is not checked here: most names are in no answer, and reading
	 * them would load pages that nothing else needs. */
	if (walk->copy_names &&
	    !(name = tally_arena_copy(scratch->arena, name, strnlen(name, TALLY_LINES_NAME_MAX))))
		scratch->dwarf.out_of_memory = true;
	else if (tally_vector_push(&scratch->names, name) < 0 ||
		 tally_vector_push(&scratch->name_sources, source_of(walk, named)) < 0)
		scratch->dwarf.out_of_memory = true;
	return (uint32_t)scratch->names.count - 1;
}

static uint32_t name_of(struct walk *walk, const struct function *function)
{
	const struct tally_dwarf_unit *unit = walk->unit, *other;
	struct named named = { .name = tally_dwarf_string(unit, &function->linkage_name) };
	uint64_t offset;
	see_declaration(&named, unit, function);
	if (named.name || !function->origin.form ||
	    !tally_dwarf_reference(unit, &function->origin, &other, &offset)) {
		named.is_external |= named.name && function->origin.form;
		if (!named.name)
			named.name = tally_dwarf_string(unit, &function->name);
		return add_name(walk, &named);
	}
	uintptr_t die = (uintptr_t)(other->file->sections[TALLY_DWARF_INFO].bytes + offset);
	bool is_new;
	uint64_t *kept = tally_map_put(&walk->scratch->names_by_origin, die, &is_new);
	if (!kept) {
		walk->scratch->dwarf.out_of_memory = true;
		return TALLY_LINES_NONE;
	}
	if (is_new) {
		follow(walk, other, offset, &named);
		if (!named.name)
			named.name = tally_dwarf_string(unit, &function->name);
		*kept = add_name(walk, &named);
	}
	return (uint32_t)*kept;
}

/* ---- the walk ---- */

static uint16_t column_of(uint64_t column)
{
	return column > UINT16_MAX ? 0 : (uint16_t)column;
}

/* Adds the ranges of the next node.  Returns how many. */
static size_t add_ranges(struct walk *walk, const struct function *function)
{
	struct tally_lines_scratch *scratch = walk->scratch;
	scratch->dwarf.ranges.count = 0;
	if (tally_dwarf_read_extent(&scratch->dwarf, walk->unit, &function->extent,
				    walk->ranges_left) < 0)
		scratch->dwarf.out_of_memory = true;
	walk->ranges_left -= scratch->dwarf.ranges.count;
	size_t added = 0;
	for (size_t i = 0; i < scratch->dwarf.ranges.count; i++) {
		const struct tally_dwarf_range *range = &scratch->dwarf.ranges.items[i];
		if (!tally_lines_is_code(walk->code, range->start))
			continue;
		if (tally_vector_push(&scratch->nested.ranges, (struct tally_nested_range){
			    range->start, range->end, (uint32_t)scratch->nodes.count }) < 0)
			scratch->dwarf.out_of_memory = true;
		added++;
	}
	return added;
}

/* Adds a node for a function that has code, or for an inlined copy (which may have no code and yet
 * contain other copies).  Returns the node around the DIE's children. */
static uint32_t add_function(struct walk *walk, const struct function *function, bool is_inlined,
			     uint32_t around)
{
	struct tally_lines_scratch *scratch = walk->scratch;
	if (add_ranges(walk, function) == 0 && !is_inlined)
		return TALLY_LINES_NONE;
	struct tally_lines_node node = {
		.parent = is_inlined ? around : (uint32_t)TALLY_LINES_NONE,
		.name = name_of(walk, function),
		.call_file = TALLY_LINES_NO_FILE,
	};
	if (is_inlined) {
		node.call_line = (uint32_t)function->call_line.number;
		node.call_column = column_of(function->call_column.number);
		if (function->call_file.form)
			node.call_file = tally_lines_file(scratch, walk->lines_unit,
							  function->call_file.number);
	}
	if (scratch->nodes.count >= TALLY_LINES_NONE - 1 ||
	    tally_vector_push(&scratch->nodes, node) < 0) {
		scratch->dwarf.out_of_memory = true;
		return TALLY_LINES_NONE;
	}
	return (uint32_t)scratch->nodes.count - 1;
}

/* True for DIEs that have no code below them.  Classes, and functions without code, can contain
 * functions. */
static bool is_codeless(const struct tally_dwarf_abbrev *abbrev)
{
	switch (abbrev->tag) {
	case DW_TAG_subprogram:
		return abbrev->is_declaration;
	case DW_TAG_enumeration_type:
	case DW_TAG_array_type:
	case DW_TAG_subroutine_type:
	case DW_TAG_call_site:
	case DW_TAG_GNU_call_site:
	case DW_TAG_formal_parameter:
	case DW_TAG_variable:
	case DW_TAG_GNU_formal_parameter_pack:
		return true;
	default:
		return false;
	}
}

/* Skips the values of a DIE that isn't needed, or its whole subtree. */
static bool pass(struct tally_dwarf_cursor *cursor, const struct walk *walk,
		 const struct tally_dwarf_abbrev *abbrev, bool *is_subtree_passed)
{
	const uint8_t *values = cursor->at;
	*is_subtree_passed = false;
	if (abbrev->has_children && abbrev->sibling_at != UINT32_MAX && is_codeless(abbrev)) {
		struct tally_dwarf_cursor at = *cursor;
		tally_dwarf_skip(&at, abbrev->sibling_at);
		uint64_t sibling = walk->unit->offset + tally_dwarf_u32(&at);
		const uint8_t *next = walk->unit->file->sections[TALLY_DWARF_INFO].bytes + sibling;
		if (!at.failed && sibling < walk->unit->end && next > values) {
			cursor->at = next;
			*is_subtree_passed = true;
			return true;
		}
	}
	if (abbrev->size != UINT32_MAX) {
		tally_dwarf_skip(cursor, abbrev->size);
		return !cursor->failed;
	}
	const struct tally_dwarf_attribute *attributes = walk->scratch->abbrevs.attributes.items +
							 abbrev->first;
	for (uint32_t i = 0; i < abbrev->count; i++)
		if (!tally_dwarf_skip_value(cursor, walk->unit, &attributes[i]))
			return false;
	return true;
}

static void walk_dies(struct walk *walk)
{
	struct tally_lines_scratch *scratch = walk->scratch;
	const struct tally_dwarf_abbrevs *abbrevs = &scratch->abbrevs;
	struct tally_dwarf_cursor cursor =
		tally_dwarf_cursor_at(walk->unit->file, TALLY_DWARF_INFO, walk->unit->first_die);
	cursor.end = walk->unit->file->sections[TALLY_DWARF_INFO].bytes + walk->unit->end;
	uint32_t around = TALLY_LINES_NONE;
	while (cursor.at < cursor.end && !scratch->dwarf.out_of_memory) {
		uint64_t code = tally_dwarf_uleb(&cursor);
		if (code == 0) {
			if (scratch->around.count == 0)
				return;
			around = scratch->around.items[--scratch->around.count];
			continue;
		}
		const struct tally_dwarf_abbrev *abbrev = tally_dwarf_abbrev_of(abbrevs, code);
		if (!abbrev)
			return;
		uint32_t inside = around;
		bool is_subtree_passed = false;
		if (abbrev->tag == DW_TAG_inlined_subroutine ||
		    (abbrev->tag == DW_TAG_subprogram && abbrev->has_code)) {
			struct function function;
			if (!read_function(&cursor, walk->unit,
					   abbrevs->attributes.items + abbrev->first, abbrev->count,
					   &function))
				return;
			inside = add_function(walk, &function,
					      abbrev->tag == DW_TAG_inlined_subroutine, around);
		} else {
			if (!pass(&cursor, walk, abbrev, &is_subtree_passed))
				return;
			if (abbrev->tag == DW_TAG_subprogram)
				inside = TALLY_LINES_NONE;
		}
		if (!abbrev->has_children || is_subtree_passed)
			continue;
		if (scratch->around.count >= DEPTH_MAX)
			return;
		if (tally_vector_push(&scratch->around, around) < 0)
			scratch->dwarf.out_of_memory = true;
		around = inside;
	}
}

static void forget_names(struct tally_map *map)
{
	/* A unit with very many names must not make all later units clear as much memory. */
	if (map->capacity > 1 << 14)
		tally_map_release(map);
	else if (map->capacity)
		memset(map->slots, 0, map->capacity * sizeof(*map->slots));
	map->count = 0;
}

int tally_lines_walk(struct tally_lines_scratch *scratch, const struct tally_dwarf_unit *unit,
		     const struct tally_lines_code *code, bool copy_names)
{
	forget_names(&scratch->names_by_origin);
	scratch->names.count = scratch->name_sources.count = scratch->nodes.count =
		scratch->around.count = scratch->nested.ranges.count = 0;
	scratch->sources_left = SOURCES_MAX;
	for (size_t i = 0; i < TALLY_LINES_TABLES_KEPT; i++)
		scratch->tables[i].unit = NULL; /* a unit that was split may be gone */
	if (tally_dwarf_abbrevs_read(&scratch->abbrevs, unit, SIZE_MAX) < 0)
		return -ENOMEM;
	struct walk walk = {
		.scratch = scratch,
		.unit = unit,
		.lines_unit = unit->skeleton ? unit->skeleton : unit,
		.code = code,
		.copy_names = copy_names,
		/* A range list belongs to one DIE, or to a few: more entries than the unit has
		 * bytes are an attack. */
		.ranges_left = 4096 + (size_t)(unit->end - unit->offset),
	};
	walk_dies(&walk);
	return scratch->dwarf.out_of_memory ? -ENOMEM : 0;
}
