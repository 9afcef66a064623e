/* Uses the linker's table in place while it proves sound; the first contradiction replaces it by an
 * array of all functions in the section.  Look-ups serve both forms. */
#include "unwind/unwind_internal.h"

#include "base/binary_search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PAIR = 8, HEADER_VERSION = 1, PE_DATAREL_SDATA4 = 0x3b, PE_OMIT = 0xff };

/* ---- the linker's table -------------------------------------------------- */

static int64_t read_s32(const uint8_t *bytes)
{
	int32_t value;
	memcpy(&value, bytes, sizeof(value));
	return value;
}

static uint64_t linker_start(const struct tally_function_index *index, size_t position)
{
	return index->linker_address + (uint64_t)read_s32(index->linker + position * PAIR);
}

/* True if the starts ascend without duplicates, as a binary search requires. */
static bool is_sorted(const uint8_t *pairs, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (read_s32(pairs + (i - 1) * PAIR) >= read_s32(pairs + i * PAIR))
			return false;
	return true;
}

/* Takes the linker's table into use.  Returns false when it is not sound.  The layout is that of
 * the Linux Standard Base 5.0, "The .eh_frame_hdr section": version, three encodings, the pointer
 * to .eh_frame, the count, the table. */
static bool use_linker_table(struct tally_function_index *index,
			     const struct tally_cfi_section *linker)
{
	struct tally_reader reader;
	tally_reader_init(&reader, linker->bytes, linker->size, false);
	uint8_t version = tally_reader_u8(&reader), frame = tally_reader_u8(&reader);
	uint8_t count_encoding = tally_reader_u8(&reader), table = tally_reader_u8(&reader);
	if (reader.failed || version != HEADER_VERSION || count_encoding == PE_OMIT ||
	    table != PE_DATAREL_SDATA4)
		return false;
	uint64_t address = tally_cfi_pointer_read(linker, &reader, frame);
	uint64_t count = tally_cfi_pointer_read(linker, &reader, count_encoding);
	if (reader.failed || address != index->section.address || count == 0 ||
	    count > tally_reader_left(&reader) / PAIR || count > UINT32_MAX ||
	    !is_sorted(reader.at, count))
		return false;
	index->linker = reader.at;
	index->linker_address = linker->address;
	index->count = count;
	return true;
}

static bool read_linker_function(const struct tally_function_index *index, size_t position,
				 struct tally_unwind_function *function)
{
	uint64_t start = linker_start(index, position);
	uint64_t at = index->linker_address +
		      (uint64_t)read_s32(index->linker + position * PAIR + 4);
	uint64_t offset = at - index->section.address;
	struct tally_cfi_entry entry, common;
	struct tally_cfi_cie cie;
	struct tally_cfi_fde fde;
	if (offset >= index->section.size ||
	    !tally_cfi_entry_read(&index->section, offset, &entry) || entry.kind != TALLY_CFI_FDE ||
	    !tally_cfi_entry_read(&index->section, entry.cie, &common) ||
	    !tally_cfi_cie_read(&index->section, &common, &cie) ||
	    !tally_cfi_fde_read(&index->section, &entry, &cie, &fde) || fde.start != start ||
	    fde.end - fde.start > UINT32_MAX)
		return false;
	*function = (struct tally_unwind_function){ .start = start,
						    .size = (uint32_t)(fde.end - start),
						    .entry = (uint32_t)offset };
	return true;
}

/* True if the section has no more functions than the table.  Hops from length to length: 2 ns an
 * entry. */
static bool is_complete(struct tally_function_index *index)
{
	struct tally_cfi_entry entry;
	size_t found = 0;
	if (index->linker_is_complete)
		return true;
	for (size_t at = 0; tally_cfi_entry_read(&index->section, at, &entry); at = entry.end)
		found += entry.kind == TALLY_CFI_FDE;
	index->linker_is_complete = found <= index->count;
	return index->linker_is_complete;
}

/* ---- the section itself -------------------------------------------------- */

struct cies {
	struct tally_cfi_cie *items;
	size_t count, capacity;
};

static const struct tally_cfi_cie *find_cie(const struct cies *cies, uint32_t offset)
{
	size_t at = tally_search(i, 0, cies->count, cies->items[i].offset >= offset);
	if (at < cies->count && cies->items[at].offset == offset)
		return &cies->items[at];
	return NULL;
}

/* Reads all CIEs.  They come out sorted, because the scan goes by ascending offsets. */
static int read_cies(const struct tally_cfi_section *section, struct cies *cies)
{
	struct tally_cfi_entry entry;
	for (size_t at = 0; tally_cfi_entry_read(section, at, &entry); at = entry.end) {
		struct tally_cfi_cie cie;
		if (tally_cfi_cie_read(section, &entry, &cie) && tally_vector_push(cies, cie) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* True if the linker kept the function.  In .debug_frame it leaves the FDEs of functions that it
 * dropped, at address 0. */
static bool is_kept(const struct tally_cfi_fde *fde)
{
	return fde->start != 0 && fde->end - fde->start <= UINT32_MAX;
}

static int read_functions(struct tally_function_index *index, const struct cies *cies)
{
	struct tally_cfi_entry entry;
	for (size_t at = 0; tally_cfi_entry_read(&index->section, at, &entry); at = entry.end) {
		const struct tally_cfi_cie *cie = NULL;
		if (entry.kind == TALLY_CFI_FDE)
			cie = find_cie(cies, entry.cie);
		struct tally_cfi_fde fde;
		if (!cie || !tally_cfi_fde_read(&index->section, &entry, cie, &fde) ||
		    !is_kept(&fde))
			continue;
		struct tally_unwind_function function = { .start = fde.start,
							  .size = (uint32_t)(fde.end - fde.start),
							  .entry = entry.offset };
		if (tally_vector_push(&index->functions, function) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int compare_functions(const void *a, const void *b)
{
	const struct tally_unwind_function *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->entry < y->entry)
		return -1;
	return x->entry > y->entry;
}

/* Sorts by start and keeps one function for each start: the first in the section, which a linear
 * search would find. */
static void sort_functions(struct tally_function_index *index)
{
	struct tally_unwind_function *items = index->functions.items;
	size_t count = index->functions.count, kept = 0;
	if (count == 0)
		return;
	qsort(items, count, sizeof(*items), compare_functions);
	for (size_t i = 1; i < count; i++)
		if (items[i].start != items[kept].start)
			items[++kept] = items[i];
	index->functions.count = index->count = kept + 1;
}

/* Drops the linker's table and reads the section.  Returns 0 or -ENOMEM. */
static int read_section(struct tally_function_index *index)
{
	struct cies cies = { 0 };
	index->linker = NULL;
	index->functions.count = index->count = 0;
	int result = read_cies(&index->section, &cies);
	if (!result)
		result = read_functions(index, &cies);
	sort_functions(index);
	tally_vector_release(&cies);
	return result;
}

/* ---- both ---------------------------------------------------------------- */

int tally_function_index_init(struct tally_function_index *index,
			      const struct tally_cfi_section *section,
			      const struct tally_cfi_section *linker)
{
	*index = (struct tally_function_index){ .section = *section };
	if (linker && use_linker_table(index, linker))
		return 0;
	return read_section(index);
}

void tally_function_index_release(struct tally_function_index *index)
{
	tally_vector_release(&index->functions);
}

bool tally_function_index_at(const struct tally_function_index *index, size_t position,
			     struct tally_unwind_function *function)
{
	if (index->linker)
		return read_linker_function(index, position, function);
	*function = index->functions.items[position];
	return true;
}

static uint64_t start_at(const struct tally_function_index *index, size_t position)
{
	if (index->linker)
		return linker_start(index, position);
	return index->functions.items[position].start;
}

/* Returns the number of functions that start at or below the address. */
static size_t upper_bound(const struct tally_function_index *index, uint64_t address)
{
	return tally_search(i, 0, index->count, start_at(index, i) > address);
}

bool tally_function_index_below(const struct tally_function_index *index, uint64_t address,
				size_t *position, uint64_t *start)
{
	size_t below = upper_bound(index, address);
	if (below == 0)
		return false;
	*position = below - 1;
	*start = start_at(index, below - 1);
	return true;
}

uint64_t tally_function_index_next(const struct tally_function_index *index, size_t position)
{
	if (position + 1 >= index->count)
		return UINT64_MAX;
	return start_at(index, position + 1);
}

bool tally_function_index_find(struct tally_function_index *index, uint64_t address,
			       size_t *position, struct tally_unwind_function *function,
			       bool *is_anew)
{
	*is_anew = false;
	for (;;) {
		size_t below = upper_bound(index, address);
		bool is_right = below == 0 || tally_function_index_at(index, below - 1, function);
		if (below > 0 && is_right && address - function->start < function->size) {
			*position = below - 1;
			return true;
		}
		if (!index->linker || (is_right && is_complete(index)))
			return false;
		*is_anew = true;
		read_section(index); /* on -ENOMEM: use what was read */
	}
}

bool tally_function_index_start(const struct tally_function_index *index,
				const struct tally_unwind_function *function,
				struct tally_cfi_program *program)
{
	struct tally_cfi_entry entry, common;
	struct tally_cfi_cie cie;
	struct tally_cfi_fde fde;
	return tally_cfi_entry_read(&index->section, function->entry, &entry) &&
	       tally_cfi_entry_read(&index->section, entry.cie, &common) &&
	       tally_cfi_cie_read(&index->section, &common, &cie) &&
	       tally_cfi_fde_read(&index->section, &entry, &cie, &fde) &&
	       tally_cfi_program_start(program, &index->section, &cie, &fde);
}
