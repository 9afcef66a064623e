#include "machine/bpf_types.h"

#include "base/reader.h"

#include <string.h>

enum { MAGIC = 0xeb9f };

/* Bytes that follow a type's three words, by its kind: once, and for each of its members. */
static const struct { uint8_t once, each; } EXTRA[] = {
	[1] = { 4, 0 },  /* INT */
	[3] = { 12, 0 }, /* ARRAY */
	[4] = { 0, 12 }, /* STRUCT */
	[5] = { 0, 12 }, /* UNION */
	[6] = { 0, 8 },  /* ENUM */
	[13] = { 0, 8 }, /* FUNC_PROTO */
	[14] = { 4, 0 }, /* VAR */
	[15] = { 0, 12 }, /* DATASEC */
	[17] = { 4, 0 }, /* DECL_TAG */
	[19] = { 0, 12 }, /* ENUM64 */
};
enum { KINDS = 20 }; /* FLOAT, TYPE_TAG and the others in between have none */

static const char *name_at(const char *names, size_t size, uint32_t offset)
{
	return offset && offset < size && memchr(names + offset, 0, size - offset) ? names + offset
										   : NULL;
}

void tally_bpf_type_names(const void *types, size_t size, const uint32_t *ids, size_t count,
			  const char **names)
{
	struct tally_reader header, reader;
	tally_reader_init(&header, types, size, false);
	bool is_btf = tally_reader_u16(&header) == MAGIC;
	tally_reader_u16(&header); /* version, flags */
	uint32_t header_size = tally_reader_u32(&header), types_at = tally_reader_u32(&header);
	uint32_t types_size = tally_reader_u32(&header), names_at = tally_reader_u32(&header);
	uint32_t names_size = tally_reader_u32(&header);
	memset(names, 0, count * sizeof(*names));
	if (header.failed || !is_btf || header_size > size || types_at > size - header_size ||
	    types_size > size - header_size - types_at || names_at > size - header_size ||
	    names_size > size - header_size - names_at)
		return;
	const char *all = (const char *)types + header_size + names_at;
	tally_reader_init(&reader, (const char *)types + header_size + types_at, types_size, false);
	for (uint32_t id = 1; tally_reader_left(&reader); id++) {
		uint32_t name = tally_reader_u32(&reader), info = tally_reader_u32(&reader),
			 kind = info >> 24 & 0x1f;
		tally_reader_u32(&reader); /* its size, or the id of another type */
		if (reader.failed || kind >= KINDS)
			return;
		tally_reader_bytes(&reader,
				   EXTRA[kind].once + (size_t)EXTRA[kind].each * (info & 0xffff));
		for (size_t i = 0; i < count; i++)
			if (ids[i] == id)
				names[i] = name_at(all, names_size, name);
	}
}
