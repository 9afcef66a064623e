/* The reader of untrusted bytes: bounds, sticking errors, byte order, LEB128. */
#include "test.h"

#include "base/reader.h"

static void reader_never_leaves_its_bytes(void **state)
{
	(void)state;
	const uint8_t bytes[] = { 1, 0, 0, 0, 'h', 'i', 0, 0xe5, 0x8e, 0x26, 0x7f, 0xff };
	struct tally_reader reader;
	tally_reader_init(&reader, bytes, sizeof(bytes), false);
	assert_int_equal(tally_reader_u32(&reader), 1);
	assert_string_equal(tally_reader_string(&reader), "hi");
	assert_int_equal(tally_reader_uleb(&reader), 624485); /* DWARF 5, figure 7.6's example */
	assert_int_equal(tally_reader_sleb(&reader), -1);
	assert_false(reader.failed);
	assert_int_equal(tally_reader_u16(&reader), 0);
	assert_true(reader.failed);
	assert_int_equal(tally_reader_left(&reader), 0);
}

static void a_failed_reader_gives_nothing_more(void **state)
{
	(void)state;
	const uint8_t bytes[] = { 1, 2, 3, 0 };
	struct tally_reader reader;
	tally_reader_init(&reader, bytes, sizeof(bytes), false);
	assert_int_equal(tally_reader_u64(&reader), 0);
	assert_true(reader.failed);
	assert_int_equal(tally_reader_u8(&reader), 0);
	assert_int_equal(tally_reader_uleb(&reader), 0);
	assert_int_equal(tally_reader_sleb(&reader), 0);
	assert_null(tally_reader_bytes(&reader, 0));
	assert_null(tally_reader_string(&reader));
	tally_reader_seek(&reader, 0);
	assert_int_equal(tally_reader_u8(&reader), 0);
	assert_int_equal(tally_reader_left(&reader), 0);

	tally_reader_init(&reader, bytes, sizeof(bytes), false);
	tally_reader_seek(&reader, 5);
	assert_true(reader.failed);
}

static void reader_swaps_values_of_any_size(void **state)
{
	(void)state;
	const uint8_t bytes[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct tally_reader reader;
	bool is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	const struct {
		unsigned size;
		uint64_t little, big;
	} values[] = {
		{ 1, 0x01, 0x01 },
		{ 2, 0x0201, 0x0102 },
		{ 3, 0x030201, 0x010203 },
		{ 4, 0x04030201, 0x01020304 },
		{ 5, 0, 0 }, /* no such value: skipped */
		{ 8, 0x0807060504030201, 0x0102030405060708 },
	};
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		tally_reader_init(&reader, bytes, sizeof(bytes), is_big);
		assert_int_equal(tally_reader_fixed(&reader, values[i].size), values[i].little);
		tally_reader_init(&reader, bytes, sizeof(bytes), !is_big);
		assert_int_equal(tally_reader_fixed(&reader, values[i].size), values[i].big);
		assert_int_equal(tally_reader_offset(&reader), values[i].size);
		tally_reader_init(&reader, bytes, values[i].size - 1, false);
		assert_int_equal(tally_reader_fixed(&reader, values[i].size), 0);
		assert_true(reader.failed);
	}
}

static void padded_strings_end_in_their_field(void **state)
{
	(void)state;
	const char bytes[] = "name\0\0\0\0next";
	struct tally_reader reader;
	tally_reader_init(&reader, bytes, sizeof(bytes), false);
	assert_string_equal(tally_reader_padded_string(&reader, 8), "name");
	assert_null(tally_reader_padded_string(&reader, 4)); /* its NUL is behind the field */
	assert_true(reader.failed);
	tally_reader_init(&reader, bytes, 7, false);
	assert_null(tally_reader_padded_string(&reader, 8));
}

/* ---- LEB128 -------------------------------------------------------------- */

struct leb {
	const char *bytes;
	uint64_t is_unsigned;
	int64_t is_signed;
};

static void leb128_has_the_values_of_the_standard(void **state)
{
	(void)state;
	/* DWARF 5, figures C.1 and 7.7, and the ends of the 64 bits */
	static const struct leb values[] = {
		{ "\x02", 2, 2 },
		{ "\x7f", 127, -1 },
		{ "\x7e", 126, -2 },
		{ "\x40", 64, -64 },
		{ "\x3f", 63, 63 },
		{ "\xff\x00", 127, 127 },
		{ "\x81\x7f", 16257, -127 },
		{ "\x80\x01", 128, 128 },
		{ "\x80\x7f", 16256, -128 },
		{ "\x81\x01", 129, 129 },
		{ "\xff\x7e", 16255, -129 },
		{ "\xb9\x64", 12857, -3527 },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", UINT64_MAX, -1 },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00", INT64_MAX, INT64_MAX },
		{ "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f", (uint64_t)1 << 63, INT64_MIN },
	};
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct tally_reader reader;
		const char *bytes = values[i].bytes;
		size_t length = 1;
		while (bytes[length - 1] & 0x80)
			length++;
		tally_reader_init(&reader, bytes, length, false);
		assert_int_equal(tally_reader_uleb(&reader), values[i].is_unsigned);
		assert_int_equal(tally_reader_left(&reader), 0);
		tally_reader_init(&reader, bytes, length, false);
		assert_int_equal(tally_reader_sleb(&reader), values[i].is_signed);
		assert_int_equal(tally_reader_left(&reader), 0);
		assert_false(reader.failed);
		for (size_t cut = 0; cut < length; cut++) {
			tally_reader_init(&reader, bytes, cut, false);
			assert_int_equal(tally_reader_uleb(&reader), 0);
			assert_true(reader.failed);
			tally_reader_init(&reader, bytes, cut, false);
			assert_int_equal(tally_reader_sleb(&reader), 0);
			assert_true(reader.failed);
		}
	}
}

static void leb128_may_be_padded_to_any_length(void **state)
{
	(void)state;
	enum { LONGEST = 1000 };
	uint8_t bytes[LONGEST];
	for (size_t length = 2; length <= LONGEST; length++) {
		struct tally_reader reader;
		memset(bytes, 0x80, length);
		bytes[0] = 0x85;
		bytes[length - 1] = 0;
		tally_reader_init(&reader, bytes, length, false);
		assert_int_equal(tally_reader_uleb(&reader), 5);
		assert_int_equal(tally_reader_offset(&reader), length);
		tally_reader_seek(&reader, 0);
		assert_int_equal(tally_reader_sleb(&reader), 5);
		memset(bytes, 0xff, length);
		bytes[0] = 0xfb;
		bytes[length - 1] = 0x7f;
		tally_reader_seek(&reader, 0);
		assert_int_equal(tally_reader_sleb(&reader), -5);
		assert_int_equal(tally_reader_offset(&reader), length);
		assert_false(reader.failed);
	}
}

static void leb128_drops_bits_beyond_64(void **state)
{
	(void)state;
	const uint8_t bytes[] = {
		0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0xfe, 0x7f
	};
	struct tally_reader reader;
	tally_reader_init(&reader, bytes, sizeof(bytes), false);
	assert_int_equal(tally_reader_uleb(&reader), 1);
	assert_int_equal(tally_reader_left(&reader), 0);
	tally_reader_seek(&reader, 0);
	assert_int_equal(tally_reader_sleb(&reader), 1);
	assert_false(reader.failed);
}

static void leb128_of_32_bits_fails_beyond(void **state)
{
	(void)state;
	const uint8_t bytes[] = { 0xff, 0xff, 0xff, 0xff, 0x0f, 0x80, 0x80, 0x80, 0x80, 0x10, 1 };
	struct tally_reader reader;
	tally_reader_init(&reader, bytes, sizeof(bytes), false);
	assert_int_equal(tally_reader_uleb32(&reader), UINT32_MAX);
	assert_false(reader.failed);
	tally_reader_uleb32(&reader);
	assert_true(reader.failed);
	assert_int_equal(tally_reader_u8(&reader), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reader_never_leaves_its_bytes),
		cmocka_unit_test(a_failed_reader_gives_nothing_more),
		cmocka_unit_test(reader_swaps_values_of_any_size),
		cmocka_unit_test(padded_strings_end_in_their_field),
		cmocka_unit_test(leb128_has_the_values_of_the_standard),
		cmocka_unit_test(leb128_may_be_padded_to_any_length),
		cmocka_unit_test(leb128_drops_bits_beyond_64),
		cmocka_unit_test(leb128_of_32_bits_fails_beyond),
	};
	return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
