/* Recordings, in files and from pipes, of either byte order.
 *
 * COMPRESSED records are unpacked into their records, which are packed again at the end; so are the
 * parts of tally's own section.  The result has a file's parts in this order: header, attributes,
 * their ids, records, table of feature sections, mark of tally's section, feature sections. */
#include "mutate.h"

#include "perfdata/perfdata.h"
#include "perfdata/perfdata_internal.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum {
	HEADER_BYTES = sizeof(struct tally_disk_header),
	PIPE_BYTES = sizeof(struct tally_disk_pipe_header),
	SECTION_BYTES = sizeof(struct tally_disk_section),
	RECORD_BYTES = sizeof(struct tally_record_header),
	OWN_HEAD = 16,  /* "TALLY255", version, 0 */
	PART_HEAD = 24, /* type, 0, stored, unpacked */
	UNPACKED_MAX = 4 << 20,
	PACKED_MAX = TALLY_RECORD_SIZE_ALIGNED - 64, /* bytes of a COMPRESSED record */
};

enum { FEATURES_AT = offsetof(struct tally_disk_header, features) };

struct recording {
	struct bytes header;
	bool is_pipe;
	struct pieces attrs; /* flag: unused; tag: position of the ids in `ids` */
	struct pieces ids;
	struct pieces records;  /* flag: packed; tag: type of the COMPRESSED record */
	struct pieces features; /* tag: number */
	struct pieces own;      /* flag: stored as is; tag: type of the part */
	bool has_own;
};

/* ---- taking apart -------------------------------------------------------- */

static bool begins_like_one(struct mutation *mutation, struct bytes input)
{
	uint64_t magic;
	if (input.size < PIPE_BYTES)
		return false;
	memcpy(&magic, input.at, sizeof(magic));
	mutation->swap = magic == TALLY_PERFDATA_MAGIC_SWAPPED;
	return magic == TALLY_PERFDATA_MAGIC || mutation->swap;
}

static bool fits(struct bytes input, uint64_t offset, uint64_t size)
{
	return offset <= input.size && size <= input.size - offset;
}

/* Reads a section's place; returns its bytes, none if it is beyond the end. */
static struct bytes section_at(struct mutation *mutation, struct bytes input, size_t at)
{
	uint64_t offset = mutate_get(mutation, input.at + at, 8),
		 size = mutate_get(mutation, input.at + at + 8, 8);
	return fits(input, offset, size) ? mutate_copy(mutation, input.at + offset, (size_t)size)
					 : (struct bytes){ 0 };
}

static void read_attrs(struct mutation *mutation, struct bytes input, struct recording *out)
{
	size_t entry = (size_t)mutate_get(mutation, input.at + 16, 8);
	struct bytes attrs = section_at(mutation, input, 24);
	if (entry < SECTION_BYTES + 8)
		return;
	for (size_t at = 0; attrs.size - at >= entry; at += entry) {
		struct bytes attr = { attrs.at + at, entry - SECTION_BYTES };
		uint64_t offset = mutate_get(mutation, attr.at + attr.size, 8),
			 size = mutate_get(mutation, attr.at + attr.size + 8, 8);
		struct bytes ids = { 0 };
		if (fits(input, offset, size))
			ids = (struct bytes){ input.at + offset, (size_t)size };
		pieces_add(mutation, &out->attrs,
			   (struct piece){ mutate_copy(mutation, attr.at, attr.size),
					   (uint32_t)out->ids.count, false });
		pieces_add(mutation, &out->ids,
			   (struct piece){ mutate_copy(mutation, ids.at, ids.size), 0, false });
	}
}

/* Splits bytes into records.  Bytes that are no record become the last piece.  Returns the number
 * of bytes that were used: without `is_whole`, the last piece is left to the caller. */
static size_t read_records(struct mutation *mutation, struct bytes data, uint32_t packed_by,
			   bool is_whole, struct pieces *out);

/* Unpacks one COMPRESSED record, behind the bytes that the records before it left. */
static void unpack(struct mutation *mutation, ZSTD_DCtx *stream, struct bytes record, uint32_t type,
		   struct bytes *left, struct pieces *out)
{
	size_t head = RECORD_BYTES, size = record.size - head, got;
	if (type == TALLY_RECORD_COMPRESSED2 && size >= 8) {
		uint64_t meant = mutate_get(mutation, record.at + head, 8);
		head += 8;
		size = meant < size - 8 ? (size_t)meant : size - 8;
	}
	ZSTD_inBuffer input = { record.at + head, size, 0 };
	do {
		uint8_t *room = mutate_alloc(mutation, 1 << 16);
		ZSTD_outBuffer output = { room, 1 << 16, 0 };
		got = ZSTD_decompressStream(stream, &output, &input);
		*left = mutate_join(mutation, *left, (struct bytes){ room, output.pos });
		if (!output.pos)
			break;
	} while (!ZSTD_isError(got) && left->size < UNPACKED_MAX);
	size_t used = read_records(mutation, *left, type, false, out);
	left->at += used;
	left->size -= used;
}

/* The bytes behind a record that belong to it. */
static size_t payload_of(struct mutation *mutation, struct bytes record, size_t room)
{
	uint32_t type = (uint32_t)mutate_get(mutation, record.at, 4);
	uint64_t size = 0;
	if (type == TALLY_RECORD_AUXTRACE && record.size >= RECORD_BYTES + 8)
		size = mutate_get(mutation, record.at + RECORD_BYTES, 8);
	else if (type == TALLY_RECORD_HEADER_TRACING_DATA && record.size >= RECORD_BYTES + 4)
		size = mutate_get(mutation, record.at + RECORD_BYTES, 4);
	return size <= room ? (size_t)size : 0;
}

static size_t read_records(struct mutation *mutation, struct bytes data, uint32_t packed_by,
			   bool is_whole, struct pieces *out)
{
	ZSTD_DCtx *stream = NULL;
	struct bytes left = { 0 };
	size_t at = 0, size;
	for (; data.size - at >= RECORD_BYTES; at += size) {
		size = (size_t)mutate_get(mutation, data.at + at + 6, 2);
		if (size < RECORD_BYTES || size > data.size - at)
			break;
		uint32_t type = (uint32_t)mutate_get(mutation, data.at + at, 4);
		struct bytes record = { data.at + at, size };
		bool is_packed = type == TALLY_RECORD_COMPRESSED ||
				 type == TALLY_RECORD_COMPRESSED2;
		if (is_packed && !packed_by) {
			if (!stream && !(stream = ZSTD_createDCtx()))
				abort();
			unpack(mutation, stream, record, type, &left, out);
			continue;
		}
		size += payload_of(mutation, record, data.size - at - size);
		record = mutate_copy(mutation, record.at, size);
		pieces_add(mutation, out, (struct piece){ record, packed_by, packed_by != 0 });
	}
	ZSTD_freeDCtx(stream);
	if (is_whole && at < data.size) {
		struct bytes rest = mutate_copy(mutation, data.at + at, data.size - at);
		pieces_add(mutation, out, (struct piece){ rest, 0, false });
	}
	return at;
}

static void read_own(struct mutation *mutation, struct bytes section, struct recording *out)
{
	bool swap = mutation->swap;
	out->has_own = true;
	mutation->swap = false; /* little-endian in any recording */
	for (size_t at = OWN_HEAD; section.size > at && section.size - at >= PART_HEAD;) {
		uint32_t type = (uint32_t)mutate_get(mutation, section.at + at, 4);
		uint64_t stored = mutate_get(mutation, section.at + at + 8, 8),
			 size = mutate_get(mutation, section.at + at + 16, 8);
		at += PART_HEAD;
		if (stored > section.size - at)
			break;
		struct bytes part = { mutate_alloc(mutation, UNPACKED_MAX > size ? size : 1),
				      size };
		bool is_damaged = size > UNPACKED_MAX ||
				  ZSTD_decompress(part.at, size, section.at + at, stored) != size;
		if (is_damaged)
			part = mutate_copy(mutation, section.at + at, stored);
		pieces_add(mutation, &out->own, (struct piece){ part, type, is_damaged });
		at += stored;
	}
	mutation->swap = swap;
}

static void read_features(struct mutation *mutation, struct bytes input, struct recording *out)
{
	uint64_t at = mutate_get(mutation, input.at + 40, 8) +
		      mutate_get(mutation, input.at + 48, 8);
	for (unsigned i = 0; i < TALLY_FEATURE_MAX; i++) {
		uint64_t set = mutate_get(mutation, input.at + FEATURES_AT + i / 64 * 8, 8);
		if (!(set >> i % 64 & 1))
			continue;
		if (!fits(input, at, SECTION_BYTES))
			return;
		pieces_add(mutation, &out->features,
			   (struct piece){ section_at(mutation, input, at), i, false });
		at += SECTION_BYTES;
	}
	if (fits(input, at, sizeof(struct tally_disk_own)) &&
	    !memcmp(input.at + at, TALLY_DISK_OWN_MARK, 8))
		read_own(mutation, section_at(mutation, input, at + 8), out);
}

static bool take_apart(struct mutation *mutation, struct bytes input, struct recording *out)
{
	*out = (struct recording){ 0 };
	if (!begins_like_one(mutation, input))
		return false;
	out->is_pipe = mutate_get(mutation, input.at + 8, 8) == PIPE_BYTES;
	size_t head = out->is_pipe ? PIPE_BYTES : HEADER_BYTES;
	if (input.size < head)
		return false;
	out->header = mutate_copy(mutation, input.at, head);
	struct bytes data = { input.at + PIPE_BYTES, input.size - PIPE_BYTES };
	if (!out->is_pipe) {
		read_attrs(mutation, input, out);
		data = section_at(mutation, input, 40);
		read_features(mutation, input, out);
	}
	read_records(mutation, data, 0, true, &out->records);
	return true;
}

/* ---- putting together ---------------------------------------------------- */

/* Makes the size in a record's header that of its bytes, less its payload. */
static void settle_record(struct mutation *mutation, struct piece *piece)
{
	struct bytes record = piece->bytes;
	if (record.size < RECORD_BYTES || mutate_once_in(mutation, 100))
		return;
	record = piece->bytes = mutate_copy(mutation, record.at, record.size);
	uint32_t type = (uint32_t)mutate_get(mutation, record.at, 4);
	if (type == TALLY_RECORD_AUXTRACE || type == TALLY_RECORD_HEADER_TRACING_DATA)
		return;
	if (record.size <= TALLY_RECORD_SIZE_MAX)
		mutate_put(mutation, record.at + 6, 2, record.size);
}

static void add_packed(struct mutation *mutation, ZSTD_CCtx *stream, struct bytes records,
		       uint32_t type, struct pieces *out)
{
	size_t head = type == TALLY_RECORD_COMPRESSED2 ? RECORD_BYTES + 8 : RECORD_BYTES;
	ZSTD_inBuffer input = { records.at, records.size, 0 };
	size_t left;
	do {
		struct bytes record = { mutate_alloc(mutation, head + PACKED_MAX + 8), head };
		ZSTD_outBuffer output = { record.at + head, PACKED_MAX, 0 };
		left = ZSTD_compressStream2(stream, &output, &input, ZSTD_e_flush);
		if (ZSTD_isError(left))
			abort();
		record.size += output.pos;
		if (type == TALLY_RECORD_COMPRESSED2) {
			mutate_put(mutation, record.at + RECORD_BYTES, 8, output.pos);
			record.size = (record.size + 7) & ~(size_t)7;
		}
		mutate_put(mutation, record.at, 4, type);
		mutate_put(mutation, record.at + 6, 2, record.size);
		pieces_add(mutation, out, (struct piece){ record, 0, false });
	} while (left || input.pos < input.size);
}

static struct bytes write_records(struct mutation *mutation, struct pieces *records)
{
	ZSTD_CCtx *stream = NULL;
	struct pieces all = { 0 };
	for (size_t i = 0; i < records->count; i++)
		settle_record(mutation, &records->items[i]);
	for (size_t i = 0, end; i < records->count; i = end) {
		end = i + 1;
		if (!records->items[i].flag) {
			pieces_add(mutation, &all, records->items[i]);
			continue;
		}
		while (end < records->count && records->items[end].flag &&
		       !mutate_once_in(mutation, 16))
			end++;
		if (!stream && !(stream = ZSTD_createCCtx()))
			abort();
		const struct pieces run = { records->items + i, end - i, end - i };
		struct bytes bytes = pieces_join(mutation, &run);
		add_packed(mutation, stream, bytes, records->items[i].tag, &all);
	}
	ZSTD_freeCCtx(stream);
	return pieces_join(mutation, &all);
}

static struct bytes write_own(struct mutation *mutation, const struct pieces *parts)
{
	struct tally_buffer out = { 0 };
	tally_own_feature_begin(&out);
	for (size_t i = 0; i < parts->count; i++) {
		const struct piece *part = &parts->items[i];
		uint8_t head[PART_HEAD] = { 0 };
		if (!part->flag) {
			tally_own_feature_add(&out, part->tag, part->bytes.at, part->bytes.size);
			continue;
		}
		mutate_put(mutation, head, 4, part->tag);
		mutate_put(mutation, head + 8, 8, part->bytes.size);
		mutate_put(mutation, head + 16, 8, mutate_random(mutation, 1 << 20));
		tally_buffer_append(&out, head, sizeof(head));
		tally_buffer_append(&out, part->bytes.at, part->bytes.size);
	}
	if (out.failed)
		abort();
	struct bytes copy = mutate_copy(mutation, out.bytes, out.length);
	tally_buffer_release(&out);
	return copy;
}

/* Appends bytes to the file, and puts their place `at` into `table`. */
static void add_section(struct mutation *mutation, struct pieces *file, size_t *size,
			uint8_t *table, struct bytes bytes)
{
	mutate_put(mutation, table, 8, *size);
	mutate_put(mutation, table + 8, 8, bytes.size);
	pieces_add(mutation, file, (struct piece){ bytes, 0, false });
	*size += bytes.size;
}

static struct bytes write_file(struct mutation *mutation, struct recording *parts)
{
	struct pieces file = { 0 };
	uint8_t *header = parts->header.at;
	struct bytes attrs = { 0 };
	size_t size = HEADER_BYTES, entry = 0;
	pieces_add(mutation, &file, (struct piece){ parts->header, 0, false });
	for (size_t i = 0; i < parts->attrs.count; i++) {
		struct piece *attr = &parts->attrs.items[i];
		/* all have the size of the first */
		entry = entry ? entry : attr->bytes.size + SECTION_BYTES;
		struct bytes row = { mutate_alloc(mutation, entry), entry };
		size_t copied = attr->bytes.size < entry - SECTION_BYTES ? attr->bytes.size
									 : entry - SECTION_BYTES;
		memcpy(row.at, attr->bytes.at, copied);
		if (attr->tag < parts->ids.count)
			add_section(mutation, &file, &size, row.at + entry - SECTION_BYTES,
				    parts->ids.items[attr->tag].bytes);
		attrs = mutate_join(mutation, attrs, row);
	}
	if (entry)
		mutate_put(mutation, header + 16, 8, entry);
	add_section(mutation, &file, &size, header + 24, attrs);
	add_section(mutation, &file, &size, header + 40, write_records(mutation, &parts->records));
	memset(header + FEATURES_AT, 0, TALLY_FEATURE_MAX / 8);
	struct bytes table = { mutate_alloc(mutation, (TALLY_FEATURE_MAX + 2) * SECTION_BYTES), 0 };
	struct pieces sections = { 0 };
	for (unsigned number = 0; number < TALLY_FEATURE_MAX; number++)
		for (size_t i = 0; i < parts->features.count; i++)
			if (parts->features.items[i].tag == number) {
				header[FEATURES_AT + number / 64 * 8 +
				       (mutation->swap ? 7 - number % 64 / 8 : number % 64 / 8)] |=
					(uint8_t)(1u << number % 8);
				pieces_add(mutation, &sections, parts->features.items[i]);
				break;
			}
	table.size = sections.count * SECTION_BYTES;
	if (parts->has_own) {
		memcpy(table.at + table.size, TALLY_DISK_OWN_MARK, 8);
		table.size += sizeof(struct tally_disk_own);
		pieces_add(mutation, &sections,
			   (struct piece){ write_own(mutation, &parts->own), 0, false });
	}
	pieces_add(mutation, &file, (struct piece){ table, 0, false });
	size += table.size;
	for (size_t i = 0; i < sections.count; i++)
		add_section(mutation, &file, &size,
			    table.at + i * SECTION_BYTES +
				    (parts->has_own && i + 1 == sections.count ? 8 : 0),
			    sections.items[i].bytes);
	return pieces_join(mutation, &file);
}

/* ---- changes ------------------------------------------------------------- */

static struct piece *any_of(struct mutation *mutation, struct pieces *pieces)
{
	return pieces->count ? &pieces->items[mutate_random(mutation, pieces->count)] : NULL;
}

static void change_bytes(struct mutation *mutation, struct piece *piece)
{
	if (piece)
		piece->bytes = mutate_bytes(mutation, piece->bytes);
}

/* A record of any type, with bytes of another one. */
static void add_record(struct mutation *mutation, struct pieces *records)
{
	static const uint32_t user_types = TALLY_RECORD_USER_MAX - TALLY_RECORD_USER_START;
	const struct piece *model = any_of(mutation, records);
	struct bytes bytes = model ? model->bytes : mutate_copy(mutation, "\0\0\0\0\0\0\0\0", 8);
	size_t size = RECORD_BYTES + 8 * mutate_random(mutation, 12);
	struct piece piece = { { mutate_alloc(mutation, size), size },
			       TALLY_RECORD_COMPRESSED,
			       model && model->flag };
	memcpy(piece.bytes.at, bytes.at, bytes.size < size ? bytes.size : size);
	uint64_t type = mutate_random(mutation, TALLY_RECORD_KERNEL_MAX + user_types);
	if (type >= TALLY_RECORD_KERNEL_MAX)
		type += TALLY_RECORD_USER_START - TALLY_RECORD_KERNEL_MAX;
	mutate_put(mutation, piece.bytes.at, 4, type);
	pieces_insert(mutation, records, mutate_random(mutation, records->count + 1), piece);
}

/* Changes a record's body, and leaves its header alone. */
static void change_body(struct mutation *mutation, struct piece *piece)
{
	if (!piece || piece->bytes.size <= RECORD_BYTES)
		return;
	struct bytes head = { piece->bytes.at, RECORD_BYTES };
	struct bytes body = { piece->bytes.at + RECORD_BYTES, piece->bytes.size - RECORD_BYTES };
	piece->bytes = mutate_join(mutation, head, mutate_bytes(mutation, body));
}

static void change_head(struct mutation *mutation, struct piece *piece)
{
	if (!piece || piece->bytes.size < RECORD_BYTES)
		return;
	piece->bytes = mutate_copy(mutation, piece->bytes.at, piece->bytes.size);
	if (mutate_once_in(mutation, 2))
		mutate_put(mutation, piece->bytes.at, 4,
			   mutate_random(mutation, TALLY_RECORD_USER_MAX + 1));
	else
		mutate_number(mutation, (struct bytes){ piece->bytes.at + 4, 2 });
}

static void pack_some(struct mutation *mutation, struct pieces *records)
{
	if (!records->count)
		return;
	size_t first = mutate_random(mutation, records->count);
	size_t count = 1 + mutate_random(mutation, records->count - first);
	uint32_t type = mutate_once_in(mutation, 2) ? TALLY_RECORD_COMPRESSED
						    : TALLY_RECORD_COMPRESSED2;
	for (size_t i = first; i < first + count; i++) {
		records->items[i].flag = !records->items[i].flag;
		records->items[i].tag = type;
	}
}

static void change_features(struct mutation *mutation, struct recording *parts,
			    const struct recording *other)
{
	struct piece *feature;
	switch (mutate_random(mutation, 4)) {
	case 0:
		pieces_shuffle(mutation, &parts->features, other ? &other->features : NULL);
		break;
	case 1:
		if ((feature = any_of(mutation, &parts->features)))
			feature->tag = (uint32_t)mutate_random(mutation,
							       TALLY_FEATURE_KNOWN_MAX + 4);
		break;
	default:
		change_bytes(mutation, any_of(mutation, &parts->features));
	}
}

static void change_own(struct mutation *mutation, struct recording *parts,
		       const struct recording *other)
{
	struct piece *part;
	bool swap = mutation->swap;
	mutation->swap = false;
	switch (mutate_random(mutation, 5)) {
	case 0:
		pieces_shuffle(mutation, &parts->own, other ? &other->own : NULL);
		break;
	case 1:
		if ((part = any_of(mutation, &parts->own)))
			part->tag = (uint32_t)mutate_random(mutation, TALLY_OWN_PARTIAL + 2);
		break;
	default:
		change_bytes(mutation, any_of(mutation, &parts->own));
	}
	mutation->swap = swap;
}

static void change_attrs(struct mutation *mutation, struct recording *parts,
			 const struct recording *other)
{
	struct piece *attr = any_of(mutation, &parts->attrs);
	/* The ids of another recording's attributes are not in this one. */
	const struct pieces *others = other && parts->ids.count ? &other->attrs : NULL;
	switch (mutate_random(mutation, 5)) {
	case 0:
		pieces_shuffle(mutation, &parts->attrs, others);
		break;
	case 1:
		change_bytes(mutation, any_of(mutation, &parts->ids));
		break;
	case 2:
		pieces_shuffle(mutation, &parts->ids, NULL);
		break;
	default:
		if (!attr)
			return;
		attr->bytes = mutate_copy(mutation, attr->bytes.at, attr->bytes.size);
		mutate_number(mutation, attr->bytes);
	}
}

static void change(struct mutation *mutation, struct recording *parts,
		   const struct recording *other)
{
	unsigned kind = (unsigned)mutate_random(mutation, 16);
	if (kind < 2)
		change_attrs(mutation, parts, other);
	else if (kind < 5 && !parts->is_pipe)
		change_features(mutation, parts, other);
	else if (kind < 8 && parts->has_own)
		change_own(mutation, parts, other);
	else if (kind < 11)
		pieces_shuffle(mutation, &parts->records, other ? &other->records : NULL);
	else if (kind < 12)
		pack_some(mutation, &parts->records);
	else if (kind < 13)
		add_record(mutation, &parts->records);
	else if (kind < 14)
		change_head(mutation, any_of(mutation, &parts->records));
	else
		change_body(mutation, any_of(mutation, &parts->records));
}

struct bytes mutate_recording(struct mutation *mutation, struct bytes input, struct bytes other)
{
	struct recording parts, others;
	bool has_other = other.size && take_apart(mutation, other, &others);
	if (!take_apart(mutation, input, &parts))
		return (struct bytes){ 0 };
	parts.has_own |= has_other && others.has_own && !parts.is_pipe;
	for (size_t turns = 1 + mutate_random(mutation, 4); turns-- > 0;)
		change(mutation, &parts, has_other ? &others : NULL);
	struct bytes result = { 0 };
	if (parts.is_pipe)
		result = mutate_join(mutation, parts.header,
				     write_records(mutation, &parts.records));
	else
		result = write_file(mutation, &parts);
	if (mutate_once_in(mutation, 12))
		mutate_number(mutation, mutate_once_in(mutation, 2)
						? (struct bytes){ result.at, parts.header.size }
						: result);
	if (mutate_once_in(mutation, 40))
		result.size = mutate_random(mutation, result.size + 1);
	return result;
}
