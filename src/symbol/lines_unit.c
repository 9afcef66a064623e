/* Compiles a unit: packs its line table and its functions. */
#include "symbol/lines_unit.h"

#include "symbol/lines_cache.h"

#include <errno.h>
#include <stdlib.h>

bool tally_lines_is_code(const struct tally_lines_code *code, uint64_t address)
{
	size_t low = 0, high = code->ranges.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (code->ranges.items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && address < code->ranges.items[low - 1].end;
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
	tally_vector_release(&scratch->around);
	tally_vector_release(&scratch->row_starts);
	tally_vector_release(&scratch->rows);
}

uint16_t tally_lines_file(struct tally_lines_scratch *scratch,
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
	return left->first < right->first ? -1 : left->first > right->first;
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
			uint64_t end = k + 1 < sequence->count ? rows[k + 1].address
							       : sequence->end;
			if (end <= done)
				continue;
			struct tally_lines_row row = {
				.line = rows[k].line,
				.column = rows[k].column > UINT16_MAX ? 0
								      : (uint16_t)rows[k].column,
				.file = tally_lines_file(scratch, packing->unit, rows[k].file),
			};
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
	return packing->out_of_memory ? -ENOMEM : 0;
}

static int read_lines(struct tally_lines_scratch *scratch, const struct tally_dwarf_unit *unit)
{
	if (tally_dwarf_lines_read(&scratch->lines, unit) < 0)
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

/* Finds the functions of a unit, which may be in a file of their own. */
static int walk_functions(struct tally_lines_scratch *scratch, const struct tally_dwarf_unit *unit,
			  struct tally_lines_program *program, struct tally_lines_unit *out)
{
	if (!unit->dwo_name)
		return tally_lines_walk(scratch, unit, &program->code, false);
	struct tally_dwarf_split split;
	if (tally_dwarf_split_open(&split, &scratch->dwarf, unit, &program->package,
				   program->path) < 0)
		return -ENOMEM;
	/* Without the split file, the skeleton's own functions must do; -fsplit-dwarf-inlining puts
	 * some there. */
	out->is_partial = out->is_partial || !split.unit;
	int rc = tally_lines_walk(scratch, split.unit ? split.unit : unit, &program->code,
				  split.unit && split.unit != &split.packed);
	tally_dwarf_split_release(&split, &scratch->dwarf);
	return rc;
}

int tally_lines_compile(struct tally_lines_scratch *scratch, const struct tally_dwarf_unit *unit,
			struct tally_lines_program *program, struct tally_lines_unit *out)
{
	*out = (struct tally_lines_unit){ .is_partial = program->is_partial };
	scratch->arena = &out->arena;
	if (read_lines(scratch, unit) < 0 || walk_functions(scratch, unit, program, out) < 0)
		return -ENOMEM;
	struct packing packing = { .scratch = scratch, .unit = unit };
	return pack(&packing, &program->code, out);
}

void tally_lines_unit_release(struct tally_lines_unit *unit)
{
	tally_arena_release(&unit->arena);
	*unit = (struct tally_lines_unit){ 0 };
}

uint32_t tally_lines_last_at(const uint32_t *ascending, uint32_t count, uint32_t value)
{
	uint32_t low = 0, high = count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (ascending[middle] <= value)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : (uint32_t)TALLY_LINES_NONE;
}

const char *tally_lines_unit_name(const struct tally_lines_unit *unit,
				  const struct tally_lines_blob *blob, uint32_t index)
{
	if (index >= unit->name_count)
		return NULL;
	const char *name = unit->names ? unit->names[index]
				       : tally_lines_blob_text(blob, unit->name_offsets[index]);
	return name && strnlen(name, TALLY_LINES_NAME_MAX) < TALLY_LINES_NAME_MAX ? name : NULL;
}

const char *tally_lines_unit_file(const struct tally_lines_unit *unit,
				  const struct tally_lines_blob *blob, uint32_t index)
{
	if (index >= unit->file_count)
		return NULL;
	return unit->files ? unit->files[index]
			   : tally_lines_blob_text(blob, unit->file_offsets[index]);
}
