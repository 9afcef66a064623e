/* Takes bytes as the sections of DWARF, or as a cache of their content.
 *
 * Byte 0: bit 0 means a cache, bit 1 the other byte order.  For sections, eight lengths of 16 bits
 * follow, in the order of SECTIONS, then their bytes; the last section has the rest.  All addresses
 * below 4 GiB count as code. */
#include "fuzz.h"

#include "symbol/lines_internal.h"

#include <stdlib.h>

static const enum tally_dwarf_section SECTIONS[] = {
	TALLY_DWARF_ABBREV,      TALLY_DWARF_STR,  TALLY_DWARF_LINE_STR,
	TALLY_DWARF_STR_OFFSETS, TALLY_DWARF_ADDR, TALLY_DWARF_RANGES,
	TALLY_DWARF_RNGLISTS,    TALLY_DWARF_LINE, TALLY_DWARF_INFO,
};
enum { LENGTHS = sizeof(SECTIONS) / sizeof(SECTIONS[0]) - 1 };

static void check_text(const char *text)
{
	if (text && strlen(text) == SIZE_MAX)
		abort();
}

/* Reads everything that answers use. */
static void look(const struct tally_lines_unit *unit, const struct tally_lines_blob *blob,
		 bool is_ours)
{
	for (uint32_t i = 0; i < unit->row_count; i++) {
		if (is_ours && i && unit->row_starts[i] <= unit->row_starts[i - 1])
			abort();
		check_text(tally_lines_unit_file(unit, blob, unit->rows[i].file));
	}
	for (uint32_t i = 0; i < unit->range_count; i++) {
		if (is_ours && i && unit->range_starts[i] <= unit->range_starts[i - 1])
			abort();
		if (is_ours && unit->range_nodes[i] != TALLY_LINES_NONE &&
		    unit->range_nodes[i] >= unit->node_count)
			abort();
	}
	for (uint32_t i = 0; i < unit->node_count; i++) {
		const struct tally_lines_node *node = &unit->nodes[i];
		if (is_ours && node->parent != TALLY_LINES_NONE && node->parent >= i)
			abort();
		check_text(tally_lines_unit_name(unit, blob, node->name));
		check_text(tally_lines_unit_file(unit, blob, node->call_file));
	}
	if (unit->row_count)
		tally_lines_last_at(unit->row_starts, unit->row_count,
				    unit->row_starts[unit->row_count / 2]);
}

static void look_at_blob(const void *bytes, size_t size, const struct tally_lines_unit *from)
{
	struct tally_lines_blob blob;
	if (!tally_lines_blob_open(&blob, bytes, size, 7)) {
		if (from)
			abort();
		return;
	}
	for (uint32_t i = 0; i < blob.unit_count; i++) {
		struct tally_lines_unit unit;
		if (tally_lines_blob_unit(&blob, i, &unit))
			look(&unit, &blob, from != NULL);
		else if (from)
			abort();
	}
}

static void round_trip(const struct tally_lines_unit *unit)
{
	struct tally_buffer buffer = { 0 };
	struct tally_nested_item item = { unit->base, 0 };
	tally_lines_blob_write(&buffer, 7, &item, 1, &unit, 1, NULL);
	if (!buffer.failed)
		look_at_blob(buffer.bytes, buffer.length, unit);
	tally_buffer_release(&buffer);
}

static void compile_all(struct tally_dwarf_file *file, struct tally_lines_scratch *scratch)
{
	struct tally_lines_program program = { .path = "fuzz" };
	if (tally_vector_push(&program.code.ranges,
			      (struct tally_dwarf_range){ 0, (uint64_t)1 << 32 }) < 0)
		abort();
	tally_dwarf_allow(&scratch->dwarf, file);
	if (tally_dwarf_read_units(file, &scratch->dwarf, NULL) < 0)
		abort();
	for (size_t i = 0; i < file->units.count; i++) {
		struct tally_dwarf_unit *unit = &file->units.items[i];
		scratch->dwarf.ranges.count = 0;
		if (unit->end <= unit->offset || unit->first_die > unit->end ||
		    tally_dwarf_unit_ranges(&scratch->dwarf, unit) < 0)
			abort();
		unit->dwo_name = NULL; /* without other files */
		struct tally_lines_unit compiled;
		if (tally_lines_compile(scratch, unit, &program, &compiled) < 0)
			abort();
		look(&compiled, NULL, true);
		round_trip(&compiled);
		tally_lines_unit_release(&compiled);
	}
	tally_vector_release(&program.code.ranges);
}

static void read_sections(const uint8_t *data, size_t size, bool swap)
{
	struct tally_dwarf_file file = { .swap = swap };
	uint8_t *copies[LENGTHS + 1];
	if (size < 2 * LENGTHS)
		return;
	const uint8_t *lengths = data;
	data += (size_t)2 * LENGTHS;
	size -= (size_t)2 * LENGTHS;
	for (unsigned i = 0; i <= LENGTHS; i++) {
		size_t length = i < LENGTHS ? (size_t)(lengths[2 * i] | lengths[2 * i + 1] << 8)
					    : size;
		if (length > size)
			length = size;
		/* One allocation each, so that reads beyond a section are seen. */
		copies[i] = malloc(length + 1);
		if (!copies[i])
			abort();
		memcpy(copies[i] + 1, data, length);
		data += length;
		size -= length;
		uint64_t terminated = length;
		while (terminated && copies[i][terminated])
			terminated--;
		file.sections[SECTIONS[i]] = (struct tally_dwarf_bytes){ copies[i] + 1, length,
									 terminated };
	}
	struct tally_lines_scratch *scratch = calloc(1, sizeof(*scratch));
	if (!scratch)
		abort();
	compile_all(&file, scratch);
	tally_lines_scratch_release(scratch);
	free(scratch);
	tally_dwarf_file_release(&file);
	for (unsigned i = 0; i <= LENGTHS; i++)
		free(copies[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	if (!(data[0] & 1)) {
		read_sections(data + 1, size - 1, data[0] & 2);
		return 0;
	}
	void *copy = aligned_alloc(64, (size + 63) / 64 * 64);
	if (!copy)
		abort();
	memcpy(copy, data + 1, size - 1);
	look_at_blob(copy, size - 1, NULL);
	free(copy);
	return 0;
}
