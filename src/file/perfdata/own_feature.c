/* Writes and reads the section's parts with zstd.  Before a part is unpacked, the sizes that all
 * parts announce are added up: a small section must not unpack to a huge one. */
#include "perfdata/perfdata.h"

#include "base/input_limits.h"
#include "base/reader.h"
#include "base/weight_sum.h"

#include <errno.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

static const char MAGIC[8] = "TALLY255";
/* Level 3 of zstd.  With level 1 the names of 20,000 places take a quarter more space; with level 9
 * a twentieth less, and five times as long. */
enum { VERSION = 1, LEVEL = 3 };
static const uint64_t PART_BYTES_MAX = 256 << 20; /* unpacked */
static const char SECTION[] = "the recording's own section";

static void put_u32(struct tally_buffer *out, uint32_t value)
{
	const uint8_t bytes[4] = { (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
				   (uint8_t)(value >> 24) };
	tally_buffer_append(out, bytes, sizeof(bytes));
}

static void put_u64(struct tally_buffer *out, uint64_t value)
{
	put_u32(out, (uint32_t)value);
	put_u32(out, (uint32_t)(value >> 32));
}

void tally_own_put_number(struct tally_buffer *out, uint64_t value)
{
	uint8_t bytes[10];
	size_t length = 0;
	do {
		bytes[length++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		value >>= 7;
	} while (value);
	tally_buffer_append(out, bytes, length);
}

void tally_own_feature_begin(struct tally_buffer *out)
{
	tally_buffer_append(out, MAGIC, sizeof(MAGIC));
	put_u32(out, VERSION);
	put_u32(out, 0);
}

void tally_own_feature_add(struct tally_buffer *out, enum tally_own_part type, const void *bytes,
			   size_t size)
{
	struct tally_buffer packed = { 0 };
	ZSTD_CCtx *context = ZSTD_createCCtx();
	size_t bound = ZSTD_compressBound(size), stored = 0;
	void *room = NULL;
	if (context && !ZSTD_isError(bound))
		room = tally_buffer_room(&packed, bound);
	if (room && size <= PART_BYTES_MAX) {
		ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, LEVEL);
		ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
		stored = ZSTD_compress2(context, room, bound, bytes, size);
	}
	ZSTD_freeCCtx(context);
	if (stored && !ZSTD_isError(stored)) {
		put_u32(out, type);
		put_u32(out, 0);
		put_u64(out, stored);
		put_u64(out, size);
		tally_buffer_append(out, room, stored);
	} else {
		out->failed = true;
	}
	tally_buffer_release(&packed);
}

static bool is_host_big_endian(void)
{
	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
}

static int unpack(const void *bytes, size_t stored, uint64_t size, struct tally_buffer *out)
{
	if (size > PART_BYTES_MAX)
		return -EBADMSG;
	out->maximum = (size_t)PART_BYTES_MAX + 1;
	char *room = tally_buffer_room(out, (size_t)size + 1);
	if (!room)
		return -ENOMEM;
	size_t got = ZSTD_decompress(room, (size_t)size, bytes, stored);
	if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
		return -ENOMEM;
	if (ZSTD_isError(got) || got != size)
		return -EBADMSG;
	out->length = (size_t)size;
	return 1;
}

void tally_own_put_step(struct tally_buffer *out, uint64_t step)
{
	uint64_t number = step << 1;
	if (step >> 63)
		number = ~number;
	tally_own_put_number(out, number);
}

/* True if the section's parts unpack to more than honest ones do. */
static bool unpacks_too_much(struct tally_reader reader, size_t size)
{
	uint64_t sum = 0, most = tally_input_limit_unpacked(TALLY_INPUT_SECTION, size);
	while (tally_reader_left(&reader) && sum <= most) {
		tally_reader_u64(&reader); /* its type */
		uint64_t stored = tally_reader_u64(&reader), unpacked = tally_reader_u64(&reader);
		if (stored > size || !tally_reader_bytes(&reader, (size_t)stored))
			return false; /* damaged: nothing behind it is read */
		sum = tally_sum_capped(sum, unpacked);
	}
	if (sum > most)
		tally_input_note(TALLY_INPUT_SECTION, SECTION);
	return sum > most;
}

uint64_t tally_own_tables_max(size_t section_size)
{
	return tally_input_limit_unpacked(TALLY_INPUT_TABLES, section_size);
}

bool tally_own_tables_fit(uint64_t bytes, uint64_t bytes_max)
{
	if (bytes > bytes_max)
		tally_input_note(TALLY_INPUT_TABLES, SECTION);
	return bytes <= bytes_max;
}

int tally_own_feature_get(const void *section, size_t size, enum tally_own_part type,
			  struct tally_buffer *out)
{
	struct tally_reader reader;
	tally_reader_init(&reader, section, size, is_host_big_endian());
	const void *magic = tally_reader_bytes(&reader, sizeof(MAGIC));
	uint32_t version = tally_reader_u32(&reader);
	tally_reader_u32(&reader);
	if (reader.failed || memcmp(magic, MAGIC, sizeof(MAGIC)))
		return -EBADMSG;
	if (version != VERSION)
		return -ENOTSUP;
	if (unpacks_too_much(reader, size))
		return -EFBIG;
	while (tally_reader_left(&reader)) {
		uint32_t found = tally_reader_u32(&reader);
		tally_reader_u32(&reader);
		uint64_t stored = tally_reader_u64(&reader), unpacked = tally_reader_u64(&reader);
		const void *bytes = NULL;
		if (stored <= size)
			bytes = tally_reader_bytes(&reader, (size_t)stored);
		if (!bytes)
			return -EBADMSG;
		if (found == type)
			return unpack(bytes, (size_t)stored, unpacked, out);
	}
	return 0;
}
