#include "test.h"

#include "base/arena.h"
#include "base/csv.h"
#include "base/json.h"
#include "base/map.h"
#include "base/number_text.h"
#include "base/strings.h"
#include "base/suggest.h"
#include "base/terminal.h"
#include "base/vector.h"
#include "base/weight_sum.h"
#include "recording/recording_internal.h"

#include <fcntl.h>

static void sizes_never_reach_1024_of_a_unit(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} sizes[] = {
		{ 0, "0 B" },
		{ 1023, "1023 B" },
		{ 1024, "1.0 KiB" },
		{ 10188, "9.9 KiB" },
		{ 10189, "10 KiB" },
		{ 46 << 10, "46 KiB" },
		{ (1 << 20) - 513, "1023 KiB" },
		{ (1 << 20) - 512, "1.0 MiB" },
		{ UINT64_C(5) << 40, "5.0 TiB" },
		{ UINT64_MAX, "16777216 TiB" },
	};
	char text[TALLY_SIZE_TEXT];
	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		assert_string_equal(tally_size_text(sizes[i].bytes, text), sizes[i].text);
}

static void arena_memory_is_zeroed_and_separate(void **state)
{
	(void)state;
	struct tally_arena arena = TALLY_ARENA_INIT;
	unsigned char *big = tally_arena_alloc(&arena, 1 << 20);
	unsigned char *small[1000];
	for (size_t i = 0; i < 1000; i++) {
		small[i] = tally_arena_alloc(&arena, i);
		for (size_t j = 0; j < i; j++)
			assert_int_equal(small[i][j], 0);
		memset(small[i], (int)i, i);
	}
	for (size_t i = 0; i < 1000; i++)
		for (size_t j = 0; j < i; j++)
			assert_int_equal(small[i][j], (unsigned char)i);
	assert_int_equal(big[12345], 0);
	assert_null(tally_arena_array(&arena, SIZE_MAX / 2, 16));
	tally_arena_release(&arena);
}

static void map_finds_what_was_put(void **state)
{
	(void)state;
	struct tally_map map = { 0 };
	bool added;
	for (uint64_t i = 0; i < 10000; i++)
		*tally_map_put(&map, i * i, &added) = i;
	for (uint64_t i = 0; i < 10000; i++)
		assert_int_equal(*tally_map_get(&map, i * i), i);
	assert_null(tally_map_get(&map, 2));
	tally_map_put(&map, 4, &added);
	assert_false(added);
	assert_int_equal(map.count, 10000);
	tally_map_release(&map);
}

static void equal_strings_have_equal_ids(void **state)
{
	(void)state;
	struct tally_strings strings = { 0 };
	char text[32];
	for (uint32_t i = 0; i < 5000; i++) {
		snprintf(text, sizeof(text), "name%u", i);
		assert_int_equal(tally_strings_intern(&strings, text), i);
	}
	assert_int_equal(tally_strings_intern(&strings, "name4999"), 4999);
	assert_int_equal(tally_strings_add(&strings, "name17x", 6), 17);
	assert_string_equal(tally_strings_text(&strings, 42), "name42");
	tally_strings_release(&strings);
}

static void json_is_escaped_and_nested(void **state)
{
	(void)state;
	struct tally_buffer out = { 0 };
	struct tally_json json = { .out = &out };
	tally_json_object(&json, NULL);
	tally_json_text(&json, "a\"b", "\x1b[31m\n\xff\xc3\xa9");
	tally_json_array(&json, "list");
	tally_json_double(&json, NULL, 0.1);
	tally_json_double(&json, NULL, 0.0 / 0.0);
	tally_json_u64(&json, NULL, UINT64_MAX);
	tally_json_end(&json);
	tally_json_object(&json, "empty");
	tally_json_end(&json);
	tally_json_end(&json);
	assert_string_equal(tally_buffer_string(&out),
			    "{\"a\\\"b\":\"\\u001b[31m\\n\xef\xbf\xbd\xc3\xa9\","
			    "\"list\":[0.1,null,18446744073709551615],\"empty\":{}}\n");
	tally_buffer_release(&out);
}

static void json_escapes_what_is_not_plain(void **state)
{
	(void)state;
	struct tally_buffer out = { 0 };
	struct tally_json json = { .out = &out };
	tally_json_text(&json, NULL,
			"\x7f\xc2\x9b\xe2\x80\xae\xe2\x80\xa8\xef\xbf\xbe\xf0\x9f\xbf\xbf"
			"\xf0\x9f\x98\x80\xed\xa0\x80");
	assert_string_equal(tally_buffer_string(&out),
			    "\"\\u007f\\u009b\\u202e\\u2028\\ufffe\\ud83f\\udfff\xf0\x9f\x98\x80"
			    "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	tally_buffer_release(&out);
}

static void buffer_refuses_beyond_its_maximum(void **state)
{
	(void)state;
	struct tally_buffer buffer = { .maximum = 10 };
	tally_buffer_text(&buffer, "12345");
	tally_buffer_text(&buffer, "67890");
	assert_true(buffer.failed);
	assert_string_equal(tally_buffer_string(&buffer), "12345");
	tally_buffer_clear(&buffer);
	/* nine digits fit, and the buffer does not grow for another try */
	tally_buffer_printf(&buffer, "%d", 123456789);
	assert_false(buffer.failed);
	assert_string_equal(tally_buffer_string(&buffer), "123456789");
	tally_buffer_printf(&buffer, "%d", 0);
	assert_true(buffer.failed);
	tally_buffer_clear(&buffer);
	assert_int_equal(tally_buffer_read_file(&buffer, AT_FDCWD, "/nonexistent", 100), -2);
	tally_buffer_release(&buffer);
}

static void a_word_is_hinted_at_by_its_letters_then_by_its_beginning(void **state)
{
	static const struct {
		const char *typed, *hint;
	} cases[] = {
		{ "cmm", "did you mean 'comm'?" },
		{ "CMOM", "did you mean 'comm'?" },
		{ "symbl", "did you mean 'symbol'?" },
		{ "symbiosis", "did you mean 'sym'?" },
		{ "sym_fromage", "did you mean 'sym_from'?" },
		{ "foo", "there are comm, sym, sym_from" },
		{ "", "there are comm, sym, sym_from" },
	};
	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tally_error err = TALLY_ERROR_NONE;
		char list[64];
		snprintf(list, sizeof(list), "%s,cpu", cases[i].typed);
		tally_hint_word(&err, list, strlen(cases[i].typed), "comm sym sym_from", "symbol");
		assert_string_equal(err.hint, cases[i].hint);
	}
}

static void distance_counts_swaps_once(void **state)
{
	(void)state;
	assert_int_equal(tally_edit_distance("cylces", "cycles"), 1);
	assert_int_equal(tally_edit_distance("", "abc"), 3);
	assert_int_equal(tally_edit_distance("CYCLES", "cycles"), 0);
}

static void terminal_escapes_are_neutralised(void **state)
{
	(void)state;
	char out[32];
	tally_terminal_clean("a\x1b[2J\xc2\x9b!\n", out, sizeof(out));
	assert_string_equal(out, "a?[2J?!\n");
	/* invalid UTF-8, and valid UTF-8 */
	tally_terminal_clean_name("a\x1b\tb\n!\n", out, sizeof(out));
	assert_string_equal(out, "a??b?!?");
	tally_terminal_clean("\x9b"
			     "5m \xe2\x94\x94 \xc3\x9f \xe9 \xe2\x9b",
			     out, sizeof(out));
	assert_string_equal(out, "?5m \xe2\x94\x94 \xc3\x9f ? ??");
	/* what does not fit whole is left out */
	tally_terminal_clean_name("ab\xe2\x94\x94", out, 5);
	assert_string_equal(out, "ab");
	tally_terminal_clean_name("ab\xe2\x94\x94", out, 6);
	assert_string_equal(out, "ab\xe2\x94\x94");
}

/* Each code point is tried, encoded as UTF-8 would have it. */
static void only_plain_characters_are_shown(void **state)
{
	(void)state;
	for (uint32_t c = 1; c < 0x120000; c++) {
		char text[8] = "", out[16], wanted[16];
		if (c < 0x80)
			text[0] = (char)c;
		else if (c < 0x800)
			snprintf(text, sizeof(text), "%c%c", 0xc0 | (int)(c >> 6),
				 0x80 | (int)(c & 63));
		else if (c < 0x10000)
			snprintf(text, sizeof(text), "%c%c%c", 0xe0 | (int)(c >> 12),
				 0x80 | (int)(c >> 6 & 63), 0x80 | (int)(c & 63));
		else
			snprintf(text, sizeof(text), "%c%c%c%c", 0xf0 | (int)(c >> 18),
				 0x80 | (int)(c >> 12 & 63), 0x80 | (int)(c >> 6 & 63),
				 0x80 | (int)(c & 63));
		bool is_text = c < 0xd800 || (c > 0xdfff && c <= 0x10ffff);
		bool is_control = c < 0x20 || (c >= 0x7f && c < 0xa0),
		     turns = c == 0x61c || c == 0x200e || c == 0x200f ||
			     (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x206f),
		     is_none = (c & 0xffff) >= 0xfffe || (c >= 0xfdd0 && c <= 0xfdef) ||
			       c == 0xfeff;
		snprintf(wanted, sizeof(wanted), "<%s>",
			 is_text && !is_control && !turns && !is_none ? text
			 : is_text                                    ? "?"
								      : &"????"[4 - strlen(text)]);
		char named[16];
		snprintf(named, sizeof(named), "<%s>", text);
		tally_terminal_clean_name(named, out, sizeof(out));
		if (strcmp(out, wanted))
			fail_msg("U+%04X is shown as %s", c, out);
	}
}

static void bytes_that_are_no_text_are_shown_one_by_one(void **state)
{
	static const struct {
		const char *name, *shown;
	} cases[] = {
		{ "\xc0\x8a", "??" }, /* overlong newlines */
		{ "\xe0\x80\x8a", "???" },
		{ "\xf0\x80\x80\x8a", "????" },
		{ "\xc1\xbf"
		  "a",
		  "??a" },
		{ "\xed\xa0\x80", "???" },      /* a surrogate */
		{ "\xf4\x90\x80\x80", "????" }, /* beyond Unicode */
		{ "\xf8\x88\x80\x80\x80", "?????" },
		{ "\xe2\x94", "??" }, /* cut short */
		{ "\xe2"
		  "\x1b[m",
		  "??[m" }, /* an escape inside */
		{ "\xc2\n", "??" },
		{ "\xff\xfe", "??" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char out[32];
		struct tally_buffer appended = { 0 }, right = { 0 };
		tally_terminal_clean_name(cases[i].name, out, sizeof(out));
		assert_string_equal(out, cases[i].shown);
		tally_put_name(&appended, cases[i].name);
		assert_string_equal(tally_buffer_string(&appended), cases[i].shown);
		tally_buffer_clear(&appended);
		tally_buffer_text(&appended, "\n");
		tally_buffer_text(&appended, cases[i].name);
		tally_clean_name_from(&appended, 1);
		assert_string_equal(tally_buffer_string(&appended) + 1, cases[i].shown);
		assert_int_equal(tally_buffer_string(&appended)[0], '\n');
		tally_put_name_right(&right, cases[i].name, 8);
		assert_int_equal(right.length, 8);
		tally_buffer_release(&appended);
		tally_buffer_release(&right);
	}
}

static void csv_rows_are_one_line(void **state)
{
	(void)state;
	struct tally_buffer out = { 0 };
	tally_csv_quote(&out, "plain", ",");
	tally_buffer_char(&out, ',');
	tally_csv_quote(&out, "a,b", ",");
	tally_buffer_char(&out, ',');
	tally_csv_quote(&out, "say \"x\"\r\nnext\x1b[m", ",");
	tally_buffer_char(&out, ',');
	tally_csv_quote(&out, "", ",");
	assert_string_equal(tally_buffer_string(&out), "plain,\"a,b\",\"say \"\"x\"\"??next?[m\",");
	tally_buffer_release(&out);
}

/* Names in messages begin no lines; formats may. */
static void messages_have_the_lines_of_their_formats(void **state)
{
	(void)state;
	struct tally_error err = TALLY_ERROR_NONE;
	tally_error_set(&err, -2, "%s is not there", "a\nhint: rm -rf \x1b[2J\xe2\x80\xae");
	tally_error_hint(&err, "try %s", "b\n\xc2\x9b");
	assert_string_equal(err.message, "a?hint: rm -rf ?[2J? is not there");
	assert_string_equal(err.hint, "try b??");
	tally_error_set(&err, -2, "%s\n    ^", "cyc\x1bles");
	assert_string_equal(err.message, "cyc?les\n    ^");
}

static void sums_end_at_their_limit(void **state)
{
	(void)state;
	const uint64_t limits[] = { INT64_MAX, UINT64_MAX };
	for (unsigned i = 0; i < 2; i++) {
		uint64_t limit = limits[i];
		struct tally_weight_sum sum = { 0 };
		assert_true(tally_weight_sum_add(&sum, 5, limit) == 5);
		assert_true(tally_weight_sum_add(&sum, limit - 5, limit) == limit - 5);
		assert_true(sum.sum == limit && !sum.cut);
		assert_true(tally_weight_sum_add(&sum, 0, limit) == 0 && !sum.cut);
		assert_true(tally_weight_sum_add(&sum, 1, limit) == 0 && sum.cut == 1);
		assert_true(tally_weight_sum_add(&sum, UINT64_MAX, limit) == 0 && sum.cut == 2);
		assert_true(sum.sum == limit);
		sum = (struct tally_weight_sum){ .sum = 10 };
		assert_true(tally_weight_sum_add(&sum, UINT64_MAX, limit) == limit - 10);
		assert_true(sum.cut == 1);
	}
	assert_true(tally_sum_capped(UINT64_MAX - 1, 1) == UINT64_MAX);
	assert_true(tally_sum_capped(UINT64_MAX, UINT64_MAX) == UINT64_MAX);
	assert_true(tally_product_capped(1ull << 32, 1ull << 31) == 1ull << 63);
	assert_true(tally_product_capped(1ull << 32, 1ull << 32) == UINT64_MAX);
	assert_true(tally_whole_number(-1) == 0 && tally_whole_number(0.0 / 0.0) == 0);
	assert_true(tally_whole_number(0x1p64) == UINT64_MAX &&
		    tally_whole_number(1e300) == UINT64_MAX);
	assert_true(tally_whole_number(0x1p63) == 1ull << 63 && tally_whole_number(2.9) == 2);
}

static void numbers_have_their_digits_in_threes(void **state)
{
	(void)state;
	static const struct {
		uint64_t number;
		const char *text;
	} numbers[] = {
		{ 0, "0" },
		{ 999, "999" },
		{ 1000, "1,000" },
		{ 123456, "123,456" },
		{ 1234567, "1,234,567" },
		{ UINT64_MAX, "18,446,744,073,709,551,615" },
	};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		assert_string_equal(tally_number(numbers[i].number), numbers[i].text);
	static const char *const digits[][2] = { { "-1234.5678", "-1,234.5678" },
						 { "-123", "-123" },
						 { "1234.5", "1,234.5" } };
	for (size_t i = 0; i < sizeof(digits) / sizeof(digits[0]); i++) {
		char out[16];
		tally_number_group(digits[i][0], out, sizeof(out));
		assert_string_equal(out, digits[i][1]);
	}
}

static void vector_keeps_its_items(void **state)
{
	(void)state;
	TALLY_VECTOR(int) numbers = { 0 };
	for (int i = 0; i < 1000; i++)
		assert_int_equal(tally_vector_push(&numbers, i), 0);
	assert_int_equal(numbers.items[999], 999);
	tally_vector_release(&numbers);
	assert_null(numbers.items);
}

/* Returns a number near 0, near the largest, or near the middle, so that ranges meet and touch both
 * ends. */
static uint64_t some_number(uint64_t *random)
{
	static const uint64_t bases[] = { 0, UINT64_MAX - 15, UINT64_C(1) << 63 };
	*random = *random * UINT64_C(6364136223846793005) + 1;
	return bases[(*random >> 60) % 3] + (*random >> 40) % 16;
}

static void expect_ranges_of(const struct tally_range *asked, size_t count, uint64_t *random)
{
	struct tally_ranges ranges = { 0 };
	for (size_t i = 0; i < count; i++)
		assert_int_equal(tally_vector_push(&ranges, asked[i]), 0);
	tally_ranges_join(&ranges);
	for (size_t i = 0; i < ranges.count; i++) {
		assert_true(ranges.items[i].first <= ranges.items[i].last);
		assert_true(!i || ranges.items[i].first > ranges.items[i - 1].last + 1);
		assert_true(!i || ranges.items[i - 1].last < UINT64_MAX - 1);
	}
	for (unsigned at = 0; at < 64; at++) {
		uint64_t number = at == 0 ? 0 : UINT64_MAX;
		if (at > 1)
			number = some_number(random);
		bool is_in = false;
		for (size_t i = 0; i < count; i++)
			is_in |= asked[i].first <= number && number <= asked[i].last;
		assert_int_equal(tally_ranges_have(&ranges, number), is_in);
		assert_int_equal(tally_ranges_pass(&ranges, number), is_in || !count);
	}
	tally_vector_release(&ranges);
}

static void joined_ranges_have_the_numbers_of_those_added(void **state)
{
	const struct tally_range all[] = { { 1, UINT64_MAX },
					   { 0, 0 },
					   { UINT64_MAX, UINT64_MAX } };
	uint64_t random = 1;
	(void)state;
	expect_ranges_of(all, 3, &random);
	for (unsigned round = 0; round < 2000; round++) {
		struct tally_range asked[12];
		size_t count = round % 13;
		for (size_t i = 0; i < count; i++) {
			uint64_t a = some_number(&random),
				 b = round % 2 ? a + (a < UINT64_MAX - 1) : some_number(&random);
			asked[i] = (struct tally_range){ a < b ? a : b, a < b ? b : a };
		}
		expect_ranges_of(asked, count, &random);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arena_memory_is_zeroed_and_separate),
		cmocka_unit_test(map_finds_what_was_put),
		cmocka_unit_test(equal_strings_have_equal_ids),
		cmocka_unit_test(json_is_escaped_and_nested),
		cmocka_unit_test(buffer_refuses_beyond_its_maximum),
		cmocka_unit_test(distance_counts_swaps_once),
		cmocka_unit_test(a_word_is_hinted_at_by_its_letters_then_by_its_beginning),
		cmocka_unit_test(terminal_escapes_are_neutralised),
		cmocka_unit_test(only_plain_characters_are_shown),
		cmocka_unit_test(bytes_that_are_no_text_are_shown_one_by_one),
		cmocka_unit_test(csv_rows_are_one_line),
		cmocka_unit_test(messages_have_the_lines_of_their_formats),
		cmocka_unit_test(json_escapes_what_is_not_plain),
		cmocka_unit_test(sums_end_at_their_limit),
		cmocka_unit_test(sizes_never_reach_1024_of_a_unit),
		cmocka_unit_test(numbers_have_their_digits_in_threes),
		cmocka_unit_test(vector_keeps_its_items),
		cmocka_unit_test(joined_ranges_have_the_numbers_of_those_added),
	};
	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
