/* A blob is a header, units, an index of addresses, the offsets of the units, and strings.  Each
 * part begins at a multiple of 8 bytes, so that it can be used in place.  The writer fills in the
 * header last. */
#include "symbol/lines_internal.h"

#include "base/map.h"
#include "base/strings.h"

#include <stdlib.h>

struct header {
	uint32_t order; /* in this machine's byte order */
	uint32_t unit_count, index_count, zero;
	uint64_t source_size;
	uint64_t index, units, strings, strings_size; /* offsets */
};

enum { ORDER = 0x6c6e3031 };

struct unit_header {
	uint64_t base;
	uint32_t row_count, range_count, node_count, name_count, file_count, zero;
};

/* ---- reading ---- */

static const void *part(const struct tally_lines_blob *blob, uint64_t offset, uint64_t count,
			uint64_t size)
{
	if (offset % 8 || offset > blob->size || count > (blob->size - offset) / size)
		return NULL;
	return blob->bytes + offset;
}

bool tally_lines_blob_open(struct tally_lines_blob *blob, const void *bytes, uint64_t size,
			   uint64_t source_size)
{
	struct header header;
	*blob = (struct tally_lines_blob){ .bytes = bytes, .size = size };
	if (size < sizeof(header))
		return false;
	memcpy(&header, bytes, sizeof(header));
	if (header.order != ORDER || header.source_size != source_size || header.strings_size == 0)
		return false;
	blob->unit_count = header.unit_count;
	blob->index_count = header.index_count;
	blob->strings_size = header.strings_size;
	blob->index = part(blob, header.index, header.index_count, sizeof(*blob->index));
	blob->units = part(blob, header.units, header.unit_count, sizeof(*blob->units));
	blob->strings = part(blob, header.strings, header.strings_size, 1);
	return blob->index && blob->units && blob->strings &&
	       blob->strings[blob->strings_size - 1] == '\0';
}

bool tally_lines_blob_unit(const struct tally_lines_blob *blob, uint32_t index,
			   struct tally_lines_unit *out)
{
	struct unit_header header;
	if (index >= blob->unit_count || blob->units[index] == 0)
		return false;
	const uint8_t *at = part(blob, blob->units[index], 1, sizeof(header));
	if (!at)
		return false;
	memcpy(&header, at, sizeof(header));
	*out = (struct tally_lines_unit){
		.base = header.base,
		.row_count = header.row_count,
		.range_count = header.range_count,
		.node_count = header.node_count,
		.name_count = header.name_count,
		.file_count = header.file_count,
	};
	uint64_t size = sizeof(header) +
			(uint64_t)header.row_count *
				(sizeof(*out->row_starts) + sizeof(*out->rows)) +
			(uint64_t)header.range_count *
				(sizeof(*out->range_starts) + sizeof(*out->range_nodes)) +
			(uint64_t)header.node_count * sizeof(*out->nodes) +
			((uint64_t)header.name_count + header.file_count) * sizeof(uint32_t) +
			(uint64_t)header.name_count * sizeof(*out->name_sources);
	if (!part(blob, blob->units[index], size, 1))
		return false;
	out->row_starts = (const void *)(at + sizeof(header));
	out->rows = (const void *)(out->row_starts + out->row_count);
	out->range_starts = (const void *)(out->rows + out->row_count);
	out->range_nodes = out->range_starts + out->range_count;
	out->nodes = (const void *)(out->range_nodes + out->range_count);
	out->name_offsets = (const void *)(out->nodes + out->node_count);
	out->file_offsets = out->name_offsets + out->name_count;
	out->name_sources = (const void *)(out->file_offsets + out->file_count);
	return true;
}

const char *tally_lines_blob_text(const struct tally_lines_blob *blob, uint32_t offset)
{
	if (offset >= blob->strings_size)
		return NULL;
	return blob->strings + offset;
}

/* ---- writing ---- */

/* The strings of a blob.  Equal names mostly have the same address in the object, which is compared
 * first; paths are separate strings in each unit. */
struct pool {
	struct tally_buffer bytes;
	struct tally_map by_address;
	struct tally_strings texts;
	uint32_t *offsets; /* by id in `texts` */
	size_t offset_count;
	bool failed;
};

static uint32_t append(struct pool *pool, const char *text)
{
	size_t offset = pool->bytes.length;
	if (offset > UINT32_MAX - 1) {
		pool->failed = true;
		return TALLY_LINES_NONE;
	}
	tally_buffer_append(&pool->bytes, text, strlen(text) + 1);
	return (uint32_t)offset;
}

static uint32_t add_name(struct pool *pool, const char *text)
{
	if (!text)
		return TALLY_LINES_NONE;
	bool is_new;
	uint64_t *offset = tally_map_put(&pool->by_address, (uintptr_t)text, &is_new);
	if (!offset) {
		pool->failed = true;
		return TALLY_LINES_NONE;
	}
	if (is_new)
		*offset = append(pool, text);
	return (uint32_t)*offset;
}

static uint32_t add_path(struct pool *pool, const char *text)
{
	if (!text)
		return TALLY_LINES_NONE;
	size_t before = pool->texts.count;
	uint32_t id = tally_strings_intern(&pool->texts, text);
	if (id == TALLY_STRING_NONE) {
		pool->failed = true;
		return TALLY_LINES_NONE;
	}
	if (pool->texts.count == before)
		return pool->offsets[id];
	if (id >= pool->offset_count) {
		size_t count = 2 * pool->offset_count + 64;
		uint32_t *offsets = realloc(pool->offsets, count * sizeof(*offsets));
		if (!offsets) {
			pool->failed = true;
			return TALLY_LINES_NONE;
		}
		pool->offsets = offsets;
		pool->offset_count = count;
	}
	return pool->offsets[id] = append(pool, text);
}

static void release(struct pool *pool)
{
	tally_buffer_release(&pool->bytes);
	tally_map_release(&pool->by_address);
	tally_strings_release(&pool->texts);
	free(pool->offsets);
}

static void align(struct tally_buffer *buffer)
{
	static const uint8_t ZEROES[8];
	tally_buffer_append(buffer, ZEROES, (8 - buffer->length % 8) % 8);
}

static void append_array(struct tally_buffer *buffer, const void *items, size_t count, size_t size)
{
	if (count)
		tally_buffer_append(buffer, items, count * size);
}

static void write_unit(struct tally_buffer *buffer, struct pool *pool,
		       const struct tally_lines_unit *unit, const struct tally_lines_blob *old)
{
	struct unit_header header = {
		.base = unit->base,
		.row_count = unit->row_count,
		.range_count = unit->range_count,
		.node_count = unit->node_count,
		.name_count = unit->name_count,
		.file_count = unit->file_count,
	};
	tally_buffer_append(buffer, &header, sizeof(header));
	append_array(buffer, unit->row_starts, unit->row_count, sizeof(*unit->row_starts));
	append_array(buffer, unit->rows, unit->row_count, sizeof(*unit->rows));
	append_array(buffer, unit->range_starts, unit->range_count, sizeof(*unit->range_starts));
	append_array(buffer, unit->range_nodes, unit->range_count, sizeof(*unit->range_nodes));
	append_array(buffer, unit->nodes, unit->node_count, sizeof(*unit->nodes));
	for (uint32_t i = 0; i < unit->name_count; i++) {
		uint32_t offset = add_name(pool, tally_lines_unit_name(unit, old, i));
		tally_buffer_append(buffer, &offset, sizeof(offset));
	}
	for (uint32_t i = 0; i < unit->file_count; i++) {
		uint32_t offset = add_path(pool, tally_lines_unit_file(unit, old, i));
		tally_buffer_append(buffer, &offset, sizeof(offset));
	}
	append_array(buffer, unit->name_sources, unit->name_count, sizeof(*unit->name_sources));
}

void tally_lines_blob_write(struct tally_buffer *buffer, uint64_t source_size,
			    const struct tally_nested_item *index, size_t index_count,
			    const struct tally_lines_unit *const *units, size_t unit_count,
			    const struct tally_lines_blob *old)
{
	struct header header = { .order = ORDER, .unit_count = (uint32_t)unit_count,
				 .index_count = (uint32_t)index_count, .source_size = source_size };
	struct pool pool = { .bytes.maximum = tally_lines_names_max(source_size) };
	uint64_t *offsets = calloc(unit_count + 1, sizeof(*offsets));
	tally_buffer_append(buffer, &header, sizeof(header));
	for (size_t i = 0; offsets && i < unit_count; i++) {
		if (!units[i])
			continue;
		align(buffer);
		offsets[i] = buffer->length;
		write_unit(buffer, &pool, units[i], old);
	}
	align(buffer);
	header.index = buffer->length;
	for (size_t i = 0; i < index_count; i++) {
		/* Write the padding as well, so that equal contents give equal bytes. */
		uint64_t item[2] = { index[i].start, 0 };
		memcpy(&item[1], &index[i].id, sizeof(index[i].id));
		_Static_assert(sizeof(item) == sizeof(*index), "an item is two words");
		tally_buffer_append(buffer, item, sizeof(item));
	}
	header.units = buffer->length;
	if (offsets)
		tally_buffer_append(buffer, offsets, unit_count * sizeof(*offsets));
	header.strings = buffer->length;
	tally_buffer_char(&pool.bytes, '\0'); /* ensures that there is a last byte */
	tally_buffer_append(buffer, pool.bytes.bytes, pool.bytes.length);
	header.strings_size = pool.bytes.length;
	if (!offsets || pool.failed || pool.bytes.failed)
		buffer->failed = true;
	if (!buffer->failed)
		memcpy(buffer->bytes, &header, sizeof(header));
	release(&pool);
	free(offsets);
}
