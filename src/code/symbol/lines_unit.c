/* Compiles a unit: packs its line table and its functions. */
#include "symbol/lines_internal.h"

#include "base/binary_search.h"
#include "object/object.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool tally_lines_is_code(const struct tally_lines_code *code, uint64_t address)
{
	size_t behind = tally_search(i, 0, code->ranges.count,
				     code->ranges.items[i].start > address);
	return behind > 0 && address < code->ranges.items[behind - 1].end;
}

void tally_lines_scratch_release(struct tally_lines_scratch *scratch)
{
	tally_dwarf_scratch_release(&scratch->dwarf);
	tally_dwarf_abbrevs_release(&scratch->abbrevs);
	tally_dwarf_lines_release(&scratch->lines);
	tally_nested_release(&scratch->nested);
	tally_map_release(&scratch->names_by_origin);
	tally_vector_release(&scratch->names);
	tally_vector_release(&scratch->name_sources);
	for (size_t i = 0; i < TALLY_LINES_TABLES_KEPT; i++)
		tally_dwarf_lines_release(&scratch->tables[i].lines);
	tally_vector_release(&scratch->files);
	tally_vector_release(&scratch->file_index);
	tally_vector_release(&scratch->nodes);
	tally_vector_release(&scratch->depths);
	tally_vector_release(&scratch->around);
	tally_vector_release(&scratch->row_starts);
	tally_vector_release(&scratch->rows);
}

/* Returns the unit's index of a file in its line table, or TALLY_LINES_NO_FILE. */
static uint16_t lines_file(struct tally_lines_scratch *scratch,
			   const struct tally_dwarf_unit *lines_unit, uint64_t file)
{
	/* Before version 5, file 0 means "no file". */
	if (file >= scratch->file_index.count || (scratch->lines.version < 5 && file == 0))
		return TALLY_LINES_NO_FILE;
	uint16_t *index = &scratch->file_index.items[file];
	if (*index == 0) {
		const char *path = tally_dwarf_source_path(&scratch->lines, lines_unit, file,
							   scratch->arena);
		if (!path || scratch->files.count >= TALLY_LINES_FILES_MAX ||
		    !tally_dwarf_charge(&scratch->dwarf, strlen(path)) ||
		    tally_vector_push(&scratch->files, path) < 0)
			return TALLY_LINES_NO_FILE;
		*index = (uint16_t)scratch->files.count;
	}
	return *index - 1;
}

static int compare_sequences(const void *a, const void *b)
{
	const struct tally_dwarf_sequence *left = a, *right = b;
	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	if (left->first < right->first)
		return -1;
	return left->first > right->first;
}

/* ---- packing ---- */

struct packing {
	struct tally_lines_scratch *scratch;
	const struct tally_dwarf_unit *unit; /* its line table is packed */
	uint64_t base;
	bool out_of_memory;
};

static void pack_row(struct packing *packing, uint64_t address, const struct tally_lines_row *row)
{
	struct tally_lines_scratch *scratch = packing->scratch;
	size_t count = scratch->rows.count;
	if (address - packing->base > UINT32_MAX)
		return;
	uint32_t start = (uint32_t)(address - packing->base);
	if (count && scratch->row_starts.items[count - 1] == start)
		scratch->rows.count = scratch->row_starts.count = --count;
	if (tally_vector_push(&scratch->rows, *row) < 0 ||
	    tally_vector_push(&scratch->row_starts, start) < 0)
		packing->out_of_memory = true;
}

static uint16_t column_of(uint64_t column)
{
	if (column > UINT16_MAX)
		return 0;
	return (uint16_t)column;
}

enum { ROW_COST = 8 }; /* bytes of budget for a row that is kept */

/* Packs the rows of all sequences, ascending, with a gap behind each.  If sequences overlap, the
 * one that begins first wins. */
static void pack_rows(struct packing *packing, const struct tally_lines_code *code)
{
	struct tally_lines_scratch *scratch = packing->scratch;
	static const struct tally_lines_row GAP = { .file = TALLY_LINES_GAP };
	uint64_t done = 0;
	scratch->rows.count = scratch->row_starts.count = 0;
	for (size_t i = 0; i < scratch->lines.sequences.count && !packing->out_of_memory; i++) {
		const struct tally_dwarf_sequence *sequence = &scratch->lines.sequences.items[i];
		if (sequence->end <= done || !tally_lines_is_code(code, sequence->start))
			continue;
		const struct tally_dwarf_row *rows = scratch->lines.rows.items + sequence->first;
		for (size_t k = 0; k < sequence->count; k++) {
			uint64_t end = sequence->end;
			if (k + 1 < sequence->count)
				end = rows[k + 1].address;
			if (end <= done)
				continue;
			struct tally_lines_row row = {
				.line = rows[k].line,
				.column = column_of(rows[k].column),
				.file = lines_file(scratch, packing->unit, rows[k].file),
			};
			if (!tally_dwarf_charge(&scratch->dwarf, ROW_COST))
				return;
			pack_row(packing, rows[k].address < done ? done : rows[k].address, &row);
		}
		done = sequence->end;
		pack_row(packing, done, &GAP);
	}
}

/* Copies one of the scratch's arrays into the unit's arena. */
static const void *keep(struct packing *packing, const void *items, size_t count, size_t size)
{
	void *kept = tally_arena_alloc(packing->scratch->arena, count * size + 1);
	if (!kept)
		packing->out_of_memory = true;
	else if (count)
		memcpy(kept, items, count * size);
	return kept;
}

static void keep_ranges(struct packing *packing, struct tally_lines_unit *out)
{
	const struct tally_nested *nested = &packing->scratch->nested;
	size_t count = nested->items.count;
	while (count && nested->items.items[count - 1].start - packing->base > UINT32_MAX)
		count--;
	uint32_t *starts = tally_arena_array(&out->arena, count + 1, sizeof(*starts));
	uint32_t *nodes = tally_arena_array(&out->arena, count + 1, sizeof(*nodes));
	if (!starts || !nodes) {
		packing->out_of_memory = true;
		return;
	}
	for (size_t i = 0; i < count; i++) {
		starts[i] = (uint32_t)(nested->items.items[i].start - packing->base);
		nodes[i] = nested->items.items[i].id;
	}
	out->range_count = (uint32_t)count;
	out->range_starts = starts;
	out->range_nodes = nodes;
}

static int pack(struct packing *packing, const struct tally_lines_code *code,
		struct tally_lines_unit *out)
{
	struct tally_lines_scratch *scratch = packing->scratch;
	if (tally_nested_flatten(&scratch->nested) < 0)
		return -ENOMEM;
	packing->base = UINT64_MAX;
	for (size_t i = scratch->lines.sequences.count; i-- > 0;)
		if (tally_lines_is_code(code, scratch->lines.sequences.items[i].start))
			packing->base = scratch->lines.sequences.items[i].start;
	if (scratch->nested.items.count && scratch->nested.items.items[0].start < packing->base)
		packing->base = scratch->nested.items.items[0].start;
	out->base = packing->base;
	pack_rows(packing, code);
	keep_ranges(packing, out);
	out->row_count = (uint32_t)scratch->rows.count;
	out->node_count = (uint32_t)scratch->nodes.count;
	out->name_count = (uint32_t)scratch->names.count;
	out->file_count = (uint32_t)scratch->files.count;
	out->row_starts = keep(packing, scratch->row_starts.items, out->row_count,
			       sizeof(*out->row_starts));
	out->rows = keep(packing, scratch->rows.items, out->row_count, sizeof(*out->rows));
	out->nodes = keep(packing, scratch->nodes.items, out->node_count, sizeof(*out->nodes));
	out->names = keep(packing, scratch->names.items, out->name_count, sizeof(*out->names));
	out->name_sources = keep(packing, scratch->name_sources.items, out->name_count,
				 sizeof(*out->name_sources));
	out->files = keep(packing, scratch->files.items, out->file_count, sizeof(*out->files));
	if (packing->out_of_memory)
		return -ENOMEM;
	return 0;
}

static int read_lines(struct tally_lines_scratch *scratch, const struct tally_dwarf_unit *unit)
{
	if (tally_dwarf_lines_read(&scratch->dwarf, &scratch->lines, unit) < 0)
		return -ENOMEM;
	if (scratch->lines.sequences.count) /* qsort() must not get NULL */
		qsort(scratch->lines.sequences.items, scratch->lines.sequences.count,
		      sizeof(*scratch->lines.sequences.items), compare_sequences);
	scratch->files.count = 0;
	scratch->file_index.count = 0;
	size_t count = scratch->lines.sources.count;
	if (tally_vector_reserve(&scratch->file_index, count + 1) < 0)
		return -ENOMEM;
	memset(scratch->file_index.items, 0, (count + 1) * sizeof(*scratch->file_index.items));
	scratch->file_index.count = count;
	return 0;
}

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

enum {
	HOPS_MAX = 16,       /* references from a copy to its name */
	DEPTH_MAX = 1 << 16, /* nesting of DIEs */
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

static bool read_function(struct tally_reader *reader, const struct tally_dwarf_unit *unit,
			  const struct tally_dwarf_attribute *attributes, uint32_t count,
			  struct function *function)
{
	*function = (struct function){ 0 };
	for (uint32_t i = 0; i < count; i++) {
		struct tally_dwarf_value *place = place_of(function, attributes[i].name);
		if (place && !tally_dwarf_read_value(reader, unit, &attributes[i], place))
			return false;
		if (!place && !tally_dwarf_skip_value(reader, unit, &attributes[i]))
			return false;
	}
	return true;
}

/* ---- names ---- */

static bool read_at(struct walk *walk, const struct tally_dwarf_unit *unit, uint64_t offset,
		    struct function *function)
{
	const struct tally_dwarf_abbrevs *abbrevs = &walk->scratch->abbrevs;
	if (unit != walk->unit)
		abbrevs = tally_dwarf_abbrevs_of(&walk->scratch->dwarf, unit);
	struct tally_reader reader = tally_dwarf_reader_at(unit->file, TALLY_DWARF_INFO, offset);
	if (!abbrevs || reader.failed)
		return false;
	reader.end = reader.start + unit->end;
	const uint8_t *start = reader.at;
	uint64_t code = tally_reader_uleb(&reader);
	if (!code)
		return false;
	const struct tally_dwarf_abbrev *abbrev = tally_dwarf_abbrev_of(abbrevs, code);
	return abbrev &&
	       read_function(&reader, unit, abbrevs->attributes.items + abbrev->first,
			     abbrev->count, function) &&
	       tally_dwarf_charge(&walk->scratch->dwarf,
				  abbrev->count + (uint64_t)(reader.at - start));
}

/* Results from a function's own DIE and the DIEs that it refers to. */
struct named {
	const char *name; /* NULL: no DIE has one */
	bool is_external;
	/* the unit whose table of files has `file`; NULL: no DIE names a file */
	const struct tally_dwarf_unit *declaring;
	uint64_t file;
};

static void note_declaration(struct named *named, const struct tally_dwarf_unit *unit,
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
		note_declaration(named, unit, &function);
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
	if (tally_dwarf_lines_read_tables(&scratch->dwarf, &kept->lines, unit) < 0) {
		scratch->dwarf.out_of_memory = true;
		return NULL;
	}
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
		return lines_file(scratch, walk->lines_unit, named->file);
	const struct tally_dwarf_lines *lines = tables_of(scratch, unit);
	const char *path = NULL;
	if (lines && (lines->version >= 5 || named->file))
		path = tally_dwarf_source_path(lines, unit, named->file, scratch->arena);
	if (!path || scratch->files.count >= TALLY_LINES_FILES_MAX ||
	    !tally_dwarf_charge(&scratch->dwarf, strlen(path)))
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
	note_declaration(&named, unit, function);
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
		if (tally_vector_push(
			    &scratch->nested.ranges,
			    (struct tally_nested_range){ range->start, range->end,
							 (uint32_t)scratch->nodes.count }) < 0)
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
	uint16_t depth = 0;
	if (is_inlined && around != TALLY_LINES_NONE)
		depth = scratch->depths.items[around] + 1;
	if (depth == TALLY_LINES_INLINED_MAX)
		return around;
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
			node.call_file = lines_file(scratch, walk->lines_unit,
						    function->call_file.number);
	}
	if (scratch->nodes.count >= TALLY_LINES_NONE - 1 ||
	    tally_vector_push(&scratch->nodes, node) < 0 ||
	    tally_vector_push(&scratch->depths, depth) < 0) {
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
static bool pass(struct tally_reader *reader, const struct walk *walk,
		 const struct tally_dwarf_abbrev *abbrev, bool *is_subtree_passed)
{
	*is_subtree_passed = false;
	if (abbrev->has_children && abbrev->sibling_at != UINT32_MAX && is_codeless(abbrev)) {
		struct tally_reader at = *reader;
		tally_reader_skip(&at, abbrev->sibling_at);
		uint64_t sibling = walk->unit->offset + tally_reader_u32(&at);
		if (!at.failed && sibling < walk->unit->end &&
		    sibling > tally_reader_offset(reader)) {
			tally_reader_seek(reader, sibling);
			*is_subtree_passed = true;
			return true;
		}
	}
	if (abbrev->size != UINT32_MAX) {
		tally_reader_skip(reader, abbrev->size);
		return !reader->failed;
	}
	const struct tally_dwarf_attribute *attributes = walk->scratch->abbrevs.attributes.items +
							 abbrev->first;
	if (!tally_dwarf_charge(&walk->scratch->dwarf, abbrev->count))
		return false;
	for (uint32_t i = 0; i < abbrev->count; i++)
		if (!tally_dwarf_skip_value(reader, walk->unit, &attributes[i]))
			return false;
	return true;
}

static void walk_dies(struct walk *walk)
{
	struct tally_lines_scratch *scratch = walk->scratch;
	const struct tally_dwarf_abbrevs *abbrevs = &scratch->abbrevs;
	struct tally_reader reader = tally_dwarf_reader_at(walk->unit->file, TALLY_DWARF_INFO,
							   walk->unit->first_die);
	reader.end = reader.start + walk->unit->end;
	uint32_t around = TALLY_LINES_NONE;
	while (reader.at < reader.end && !scratch->dwarf.out_of_memory) {
		uint64_t code = tally_reader_uleb(&reader);
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
			if (!tally_dwarf_charge(&scratch->dwarf, abbrev->count) ||
			    !read_function(&reader, walk->unit,
					   abbrevs->attributes.items + abbrev->first, abbrev->count,
					   &function))
				return;
			inside = add_function(walk, &function,
					      abbrev->tag == DW_TAG_inlined_subroutine, around);
		} else {
			if (!pass(&reader, walk, abbrev, &is_subtree_passed))
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

/* Finds the functions of a unit: scratch->nodes, their names, and the nodes' ranges.  `copy_names`:
 * the file will be closed before the unit is released.  Returns 0 or -ENOMEM. */
static int lines_walk(struct tally_lines_scratch *scratch, const struct tally_dwarf_unit *unit,
		      const struct tally_lines_code *code, bool copy_names)
{
	forget_names(&scratch->names_by_origin);
	scratch->names.count = scratch->name_sources.count = scratch->nodes.count =
		scratch->depths.count = scratch->around.count = scratch->nested.ranges.count = 0;
	for (size_t i = 0; i < TALLY_LINES_TABLES_KEPT; i++)
		scratch->tables[i].unit = NULL; /* a unit that was split may be gone */
	if (tally_dwarf_abbrevs_read(&scratch->dwarf, &scratch->abbrevs, unit, SIZE_MAX) < 0)
		return -ENOMEM;
	if (!tally_dwarf_charge(&scratch->dwarf, unit->end - unit->offset))
		return 0;
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
	if (scratch->dwarf.out_of_memory)
		return -ENOMEM;
	return 0;
}

/* Finds the functions of a unit, which may be in a file of their own. */
static int walk_functions(struct tally_lines_scratch *scratch, const struct tally_dwarf_unit *unit,
			  struct tally_lines_program *program, struct tally_lines_unit *out)
{
	if (!unit->dwo_name)
		return lines_walk(scratch, unit, &program->code, false);
	struct tally_dwarf_split split;
	if (tally_dwarf_split_open(&split, &scratch->dwarf, unit, &program->package,
				   program->path) < 0)
		return -ENOMEM;
	/* Without the split file, the skeleton's own functions must do; -fsplit-dwarf-inlining puts
	 * some there. */
	out->is_partial = out->is_partial || !split.unit;
	const struct tally_object *companion = split.file.object;
	if (split.unit == &split.packed)
		companion = program->package.file.object;
	struct tally_object_identity identity;
	out->is_changeable |= split.unit && !tally_object_identity(companion, &identity);
	int rc = lines_walk(scratch, split.unit ? split.unit : unit, &program->code,
			    split.unit && split.unit != &split.packed);
	scratch->abbrevs.is_used = false; /* another file may get the same address */
	tally_dwarf_split_release(&split, &scratch->dwarf);
	return rc;
}

int tally_lines_compile(struct tally_lines_scratch *scratch, const struct tally_dwarf_unit *unit,
			struct tally_lines_program *program, struct tally_lines_unit *out)
{
	*out = (struct tally_lines_unit){ .is_partial = program->missing != NULL,
					  .is_changeable = program->is_changeable };
	scratch->arena = &out->arena;
	if (read_lines(scratch, unit) < 0 || walk_functions(scratch, unit, program, out) < 0)
		return -ENOMEM;
	struct packing packing = { .scratch = scratch, .unit = unit };
	int rc = pack(&packing, &program->code, out);
	out->is_refused = scratch->dwarf.is_exhausted;
	out->is_partial = out->is_partial || out->is_refused;
	return rc;
}

void tally_lines_unit_release(struct tally_lines_unit *unit)
{
	tally_arena_release(&unit->arena);
	*unit = (struct tally_lines_unit){ 0 };
}

uint32_t tally_lines_last_at(const uint32_t *ascending, uint32_t count, uint32_t value)
{
	size_t behind = tally_search(i, 0, count, ascending[i] > value);
	if (!behind)
		return TALLY_LINES_NONE;
	return (uint32_t)behind - 1;
}

const char *tally_lines_unit_name(const struct tally_lines_unit *unit,
				  const struct tally_lines_blob *blob, uint32_t index)
{
	if (index >= unit->name_count)
		return NULL;
	const char *name;
	if (unit->names)
		name = unit->names[index];
	else
		name = tally_lines_blob_text(blob, unit->name_offsets[index]);
	if (name && strnlen(name, TALLY_LINES_NAME_MAX) < TALLY_LINES_NAME_MAX)
		return name;
	return NULL;
}

const char *tally_lines_unit_file(const struct tally_lines_unit *unit,
				  const struct tally_lines_blob *blob, uint32_t index)
{
	if (index >= unit->file_count)
		return NULL;
	if (unit->files)
		return unit->files[index];
	return tally_lines_blob_text(blob, unit->file_offsets[index]);
}
