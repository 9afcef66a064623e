/* Reads parts 6 and 9 side by side: part 6 has the code, its rows and targets, part 9 the frames
 * between a row's innermost and outermost ones.  Reading checks that all lists are sorted, because
 * look-ups use binary search. */
#include "naming/packed.h"

#include "base/binary_search.h"
#include "base/reader.h"
#include "base/vector.h"
#include "perfdata/perfdata.h"

#include <errno.h>
#include <stdlib.h>

/* ---- reading ------------------------------------------------------------- */

static bool tables_fit(const struct tally_packed_codes *codes)
{
	return tally_own_tables_fit(codes->codes.count * sizeof(*codes->codes.items) +
					    codes->rows.count * sizeof(*codes->rows.items) +
					    codes->frames.count * sizeof(*codes->frames.items) +
					    codes->targets.count * sizeof(*codes->targets.items),
				    codes->tables_max);
}

/* Adds the frames between the innermost one and the function itself.  Older recordings don't have
 * them. */
static int read_around(const struct tally_packed_names *names, struct tally_reader *around,
		       struct tally_packed_codes *codes, struct tally_packed_code_row *row)
{
	uint64_t left = 0;
	if (tally_reader_left(around))
		left = tally_reader_uleb(around);
	for (; left; left--) {
		struct tally_line_frame frame = {
			.function = tally_packed_names_string(names, around)
		};
		if (around->failed)
			return -EBADMSG;
		if (!tables_fit(codes))
			return -EFBIG;
		if (tally_vector_push(&codes->frames, frame) < 0)
			return -ENOMEM;
		row->count++;
	}
	if (around->failed)
		return -EBADMSG;
	return 0;
}

/* Adds the frames of a row. */
static int read_frames(const struct tally_packed_names *names, struct tally_reader *reader,
		       struct tally_reader *around, const char *main_file,
		       struct tally_packed_codes *codes, struct tally_packed_code_row *row)
{
	struct tally_line_frame inner = { .file = tally_packed_names_string(names, reader) };
	inner.line = tally_reader_uleb32(reader);
	inner.function = tally_packed_names_string(names, reader);
	row->first = codes->frames.count;
	row->count = 1;
	if (tally_vector_push(&codes->frames, inner) < 0)
		return -ENOMEM;
	if (reader->failed)
		return -EBADMSG;
	if (!inner.function)
		return 0;
	int result = read_around(names, around, codes, row);
	row->count++;
	if (result)
		return result;
	return tally_vector_push(&codes->frames, ((struct tally_line_frame){ .file = main_file }));
}

static int read_rows(const struct tally_packed_names *names, struct tally_reader *reader,
		     struct tally_reader *around, struct tally_packed_codes *codes,
		     struct tally_packed_code *code)
{
	uint64_t offset = 0;
	code->first_row = codes->rows.count;
	for (uint64_t left = tally_reader_uleb(reader); left; left--) {
		uint64_t step = tally_reader_uleb(reader);
		struct tally_packed_code_row row;
		int result = read_frames(names, reader, around, code->main_file, codes, &row);
		if (result)
			return result;
		if (step >= code->size - offset || (!step && code->row_count))
			return -EBADMSG;
		offset += step;
		row.offset = (uint32_t)offset;
		if (!tables_fit(codes))
			return -EFBIG;
		if (tally_vector_push(&codes->rows, row) < 0)
			return -ENOMEM;
		code->row_count++;
	}
	return 0;
}

static int read_targets(const struct tally_packed_names *names, struct tally_reader *reader,
			struct tally_packed_codes *codes, struct tally_packed_code *code)
{
	uint64_t address = 0;
	code->first_target = codes->targets.count;
	for (uint64_t left = tally_reader_uleb(reader); left; left--) {
		uint64_t step = tally_reader_uleb(reader);
		struct tally_packed_code_target target = { .address = address + step };
		target.offset = tally_reader_uleb(reader);
		target.name = tally_packed_names_string(names, reader);
		if (reader->failed || !target.name || target.address < address ||
		    (!step && code->target_count))
			return -EBADMSG;
		address = target.address;
		if (!tables_fit(codes))
			return -EFBIG;
		if (tally_vector_push(&codes->targets, target) < 0)
			return -ENOMEM;
		code->target_count++;
	}
	return 0;
}

static int read_code(const struct tally_packed_names *names, struct tally_reader *reader,
		     struct tally_reader *around, struct tally_packed_codes *codes)
{
	struct tally_packed_code code = { .function = tally_reader_uleb32(reader) };
	const struct tally_packed_code *last = NULL;
	if (codes->codes.count)
		last = &codes->codes.items[codes->codes.count - 1];
	code.start = tally_reader_uleb(reader);
	uint64_t size = tally_reader_uleb(reader), shown = tally_reader_uleb(reader);
	code.shown = tally_packed_step(shown);
	code.machine = tally_reader_uleb32(reader);
	uint64_t flags = tally_reader_uleb(reader);
	code.is_64bit = flags & 1;
	code.is_big_endian = flags >> 1 & 1;
	if (size && size < UINT32_MAX)
		code.bytes = tally_reader_bytes(reader, (size_t)size);
	code.size = (size_t)size;
	code.main_file = tally_packed_names_string(names, reader);
	if (reader->failed || !code.bytes || code.function >= names->functions.count ||
	    code.start + size < size || (last && code.function <= last->function))
		return -EBADMSG;
	int result = read_rows(names, reader, around, codes, &code);
	if (result)
		return result;
	result = read_targets(names, reader, codes, &code);
	if (result)
		return result;
	if (reader->failed)
		return -EBADMSG;
	return tally_vector_push(&codes->codes, code);
}

int tally_packed_codes_read(const void *section, size_t size,
			    const struct tally_packed_names *names, struct tally_packed_codes **out)
{
	struct tally_packed_codes *codes = *out = calloc(1, sizeof(*codes));
	struct tally_reader reader, around;
	if (!codes)
		return -ENOMEM;
	codes->tables_max = tally_own_tables_max(size);
	int result = tally_own_feature_get(section, size, TALLY_OWN_CODE, &codes->text);
	int has_around = 0;
	if (result > 0)
		has_around = tally_own_feature_get(section, size, TALLY_OWN_AROUND, &codes->around);
	if (has_around < 0)
		result = has_around;
	if (result > 0) {
		tally_reader_init(&reader, codes->text.bytes, codes->text.length, false);
		tally_reader_init(&around, tally_buffer_string(&codes->around),
				  codes->around.length, false);
		for (result = 0; !result && tally_reader_left(&reader);)
			result = read_code(names, &reader, &around, codes);
		if (!result)
			result = 1;
	}
	if (result > 0)
		return 1;
	tally_packed_codes_free(codes);
	*out = NULL;
	return result;
}

void tally_packed_codes_free(struct tally_packed_codes *codes)
{
	if (!codes)
		return;
	tally_buffer_release(&codes->text);
	tally_buffer_release(&codes->around);
	tally_vector_release(&codes->codes);
	tally_vector_release(&codes->rows);
	tally_vector_release(&codes->frames);
	tally_vector_release(&codes->targets);
	free(codes);
}

/* ---- looking up ---------------------------------------------------------- */

const struct tally_packed_code *tally_packed_code_find(const struct tally_packed_codes *codes,
						       uint32_t function)
{
	const struct tally_packed_code *items = codes->codes.items;
	size_t at = tally_search(i, 0, codes->codes.count, items[i].function >= function);
	if (at == codes->codes.count || items[at].function != function)
		return NULL;
	return &items[at];
}

const struct tally_packed_code_row *tally_packed_code_row(const struct tally_packed_codes *codes,
							  const struct tally_packed_code *code,
							  uint64_t offset)
{
	if (!code->row_count || offset >= code->size)
		return NULL;
	const struct tally_packed_code_row *rows = codes->rows.items + code->first_row;
	size_t behind = tally_search(i, 0, code->row_count, rows[i].offset > offset);
	if (!behind)
		return NULL;
	return &rows[behind - 1];
}

const struct tally_packed_code_target *tally_packed_code_target(
	const struct tally_packed_codes *codes, const struct tally_packed_code *code,
	uint64_t address)
{
	if (!code->target_count)
		return NULL;
	const struct tally_packed_code_target *targets = codes->targets.items + code->first_target;
	size_t at = tally_search(i, 0, code->target_count, targets[i].address >= address);
	if (at == code->target_count || targets[at].address != address)
		return NULL;
	return &targets[at];
}
