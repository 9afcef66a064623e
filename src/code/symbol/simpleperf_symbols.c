/* One function takes the next file of the section; another makes a table of that file's symbols.
 * So the symbols of a file stay unread until its table is needed. */
#include "symbol/symbol.h"

#include "base/reader.h"
#include "symbol/symbol_internal.h"

#include <errno.h>

enum { SYMBOL_BYTES_MIN = 13 /* address, length, NUL */ };

struct one {
	uint64_t address;
	uint32_t length;
	const char *name;
};

static bool take_symbol(struct tally_reader *reader, struct one *out)
{
	out->address = tally_reader_u64(reader);
	out->length = tally_reader_u32(reader);
	out->name = tally_reader_string(reader);
	return !reader->failed;
}

int tally_simpleperf_next(const void *section, size_t size, size_t *offset,
			  struct tally_simpleperf_file *out)
{
	struct tally_reader reader;
	if (*offset >= size)
		return 0;
	tally_reader_init(&reader, (const uint8_t *)section + *offset, size - *offset, false);
	uint32_t rest = tally_reader_u32(&reader);
	const void *body = tally_reader_bytes(&reader, rest);
	if (!body)
		return -EBADMSG;
	*offset += sizeof(rest) + rest;
	tally_reader_init(&reader, body, rest, false);
	*out = (struct tally_simpleperf_file){ .path = tally_reader_string(&reader) };
	out->kind = tally_reader_u32(&reader);
	out->min_address = tally_reader_u64(&reader);
	out->symbol_count = tally_reader_u32(&reader);
	out->rest = reader.at;
	out->rest_size = tally_reader_left(&reader);
	if (reader.failed || out->symbol_count > out->rest_size / SYMBOL_BYTES_MIN)
		return -EBADMSG;
	return 1;
}

int tally_symbols_from_simpleperf(const struct tally_simpleperf_file *file, uint64_t *min_offset,
				  struct tally_symbols **out)
{
	struct tally_symbols_builder builder = { 0 };
	struct tally_reader reader;
	struct one one;
	tally_reader_init(&reader, file->rest, file->rest_size, false);
	for (uint32_t i = 0; i < file->symbol_count; i++) {
		struct tally_symbol_entry entry = { .order = i,
						    .binding = TALLY_SYMBOL_GLOBAL,
						    .is_function = true };
		if (!take_symbol(&reader, &one)) {
			tally_symbols_abandon(&builder);
			return -EBADMSG;
		}
		entry.start = one.address;
		entry.name = one.name;
		if (!*one.name || __builtin_add_overflow(one.address, one.length, &entry.end))
			continue;
		if (tally_symbols_add(&builder, &entry) < 0) {
			tally_symbols_abandon(&builder);
			return -ENOMEM;
		}
	}
	bool has_offset = file->kind == TALLY_SIMPLEPERF_ELF &&
			  tally_reader_left(&reader) >= sizeof(*min_offset);
	*min_offset = UINT64_MAX;
	if (has_offset)
		*min_offset = tally_reader_u64(&reader);
	return tally_symbols_finish(&builder, out, NULL);
}
