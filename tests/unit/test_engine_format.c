/* SPEC part E in the engine: its format texts, and records as our parser reads them with these
 * formats. */
#include "shop_fixture.h"

#include "base/buffer.h"
#include "tracepoint/tracepoint.h"

void shop_order_from_cpp(uint64_t id); /* targets/shop_use.cpp */

/* --- the format ----------------------------------------------------------- */

static char *format_of(const struct tally_trace_event *event)
{
	long length = tally_trace_format(event, NULL, 0);
	assert_true(length > 0);
	char *text = malloc((size_t)length + 1);
	assert_int_equal(tally_trace_format(event, text, (size_t)length + 1), length);
	assert_int_equal(strlen(text), length);
	return text;
}

static struct tally_tracepoint *parse(const struct tally_trace_event *event)
{
	char *text = format_of(event);
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_tracepoint *parsed;
	if (tally_tracepoint_parse(text, strlen(text), NULL, &parsed, &err) < 0)
		fail_msg("%s: %s", text, err.message);
	free(text);
	return parsed;
}

static void format_is_that_of_tracefs(void **state)
{
	(void)state;
	struct shop shop;
	start(&shop, 1);
	char *text = format_of(&tally_trace_event_order_placed);
	assert_string_equal(
		text,
		"name: order_placed\nID: 1\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
		"\n"
		"\tfield:uint64_t id;\toffset:8;\tsize:8;\tsigned:0;\n"
		"\tfield:int32_t customer;\toffset:16;\tsize:4;\tsigned:1;\n"
		"\tfield:__data_loc char[] article;\toffset:20;\tsize:4;\tsigned:1;\n"
		"\tfield:__data_loc uint64_t[] parts;\toffset:24;\tsize:4;\tsigned:0;\n"
		"\tfield:__data_loc char[] same;\toffset:28;\tsize:4;\tsigned:1;\n"
		"\n"
		"print fmt: \"id=%llu customer=%d article=%s bytes=%u\", "
		"(unsigned long long)REC->id, REC->customer, __get_str(article), "
		"__get_dynamic_array_len(parts)\n");
	free(text);
	text = format_of(&tally_trace_event_every_kind);
	assert_non_null(
		strstr(text, "__print_symbolic(REC->state, { 0, \"open\" }, { 7, \"closed\" })"));
	assert_non_null(strstr(text, "{ 4, \"urgent\" }"));
	assert_non_null(strstr(text, "\tfield:char who[8];\toffset:56;\tsize:8;\tsigned:1;\n"));
	assert_non_null(strstr(text, "\tfield:int16_t three[3];"));
	free(text);
	end(&shop);
}

/* A text that does not fit is cut, and ends with NUL. */
static void format_is_written_as_snprintf_does(void **state)
{
	(void)state;
	struct shop shop;
	start(&shop, 1);
	char small[16];
	memset(small, 'z', sizeof(small));
	long length = tally_trace_format(&tally_trace_event_order_placed, small, 10);
	assert_true(length > 500);
	assert_string_equal(small, "name: ord");
	assert_int_equal(small[10], 'z');
	end(&shop);
}

static void format_that_tools_could_not_read_is_einval(void **state)
{
	(void)state;
	struct shop shop;
	start(&shop, 1);
	assert_int_equal(tally_trace_register(shop.engine, &tally_trace_group_unreadable), -EINVAL);
	assert_int_equal(tally_trace_event_unreadable.id, 0);
	end(&shop);
}

static void e1_dynamic_fields_are_offset_and_size(void **state)
{
	(void)state;
	struct shop shop;
	uint32_t size = 0;
	start(&shop, 1);
	struct sampled sampled = sample(&shop, &tally_trace_event_order_placed, TALLY_SAMPLE_RAW);
	place_order(77);
	TALLY_TRACE(order_placed, 78, 1, NULL, NULL, 0);
	struct tally_tracepoint *parsed = parse(&tally_trace_event_order_placed);
	const void *raw = next_raw(&sampled, &size), *bytes;
	size_t length;
	uint64_t number;
	const struct tally_tracepoint_field *list = tally_tracepoint_field(parsed, "parts");
	const struct tally_tracepoint_field *article = tally_tracepoint_field(parsed, "article");
	assert_true(tally_tracepoint_u64(parsed, tally_tracepoint_field(parsed, "id"), raw, size,
					 &number));
	assert_int_equal(number, 77);
	assert_true(tally_tracepoint_bytes(parsed, article, raw, size, &bytes, &length));
	assert_string_equal(bytes, "blue pen");
	assert_true(tally_tracepoint_bytes(parsed, tally_tracepoint_field(parsed, "same"), raw,
					   size, &bytes, &length));
	assert_string_equal(bytes, "blue pen");
	assert_true(tally_tracepoint_bytes(parsed, list, raw, size, &bytes, &length));
	assert_int_equal(length, sizeof(parts));
	assert_memory_equal(bytes, parts, sizeof(parts));
	/* Elements are aligned in the record, so that programs may read them in place. */
	assert_int_equal(((const uint8_t *)bytes - (const uint8_t *)raw) % 8, 0);

	raw = next_raw(&sampled, &size);
	assert_true(tally_tracepoint_bytes(parsed, article, raw, size, &bytes, &length));
	assert_string_equal(bytes, "(null)");
	assert_true(tally_tracepoint_bytes(parsed, list, raw, size, &bytes, &length));
	assert_int_equal(length, 0);
	tally_tracepoint_free(parsed);
	finish(&shop, &sampled);
	end(&shop);
}

/* --- text: the listener's line and our printer's are the same -------------------- */

static void check_text(struct shop *shop, struct tally_trace_event *event, void (*hits)(void))
{
	struct lines lines = { .count = 0 };
	struct tally_trace_listener *listener;
	struct sampled sampled = sample(shop, event, TALLY_SAMPLE_RAW);
	assert_int_equal(tally_trace_listen(event, keep_line, &lines, &listener), 0);
	hits();
	struct tally_tracepoint *parsed = parse(event);
	struct tally_print *print;
	assert_int_equal(tally_print_compile(parsed, &print, NULL), 0);
	assert_int_equal(tally_print_means(print), TALLY_PRINT_COMPILED);
	const void *raw;
	uint32_t size = 0;
	unsigned count = 0;
	struct tally_buffer ours = { 0 };
	for (; (raw = next_raw(&sampled, &size)); count++) {
		tally_buffer_clear(&ours);
		tally_print_event(print, raw, size, NULL, &ours);
		assert_true(count < lines.count);
		if (ours.length != strlen(lines.text[count]) ||
		    memcmp(ours.bytes, lines.text[count], ours.length))
			fail_msg("line: %s\n tool: %.*s", lines.text[count], (int)ours.length,
				 (const char *)ours.bytes);
	}
	assert_int_equal(count, lines.count);
	assert_true(count > 0);
	tally_buffer_release(&ours);
	tally_print_free(print);
	tally_tracepoint_free(parsed);
	tally_trace_unlisten(listener);
	finish(shop, &sampled);
}

static void hit_orders(void)
{
	place_order(1);
	TALLY_TRACE(order_placed, UINT64_MAX, INT32_MIN, "", NULL, 0);
	shop_order_from_cpp(3);
}

static void hit_every_kind(void)
{
	static const int64_t numbers[] = { 0,   1,     -1,        5,         127,      128,
					   255, 32768, INT32_MIN, INT64_MIN, INT64_MAX };
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		TALLY_TRACE(every_kind, numbers[i], i & 1 ? SHOP_CLOSED : SHOP_OPEN, &numbers[i],
			    /* an array without NUL ends at its size */
			    i & 1 ? "whole---" : "part\0xx");
	TALLY_TRACE(every_kind, 9, (enum shop_state)3, NULL, "12345678");
}

static void e1_lines_are_what_tools_make_of_the_record(void **state)
{
	(void)state;
	struct shop shop;
	start(&shop, 1);
	check_text(&shop, &tally_trace_event_order_placed, hit_orders);
	check_text(&shop, &tally_trace_event_every_kind, hit_every_kind);
	end(&shop);
}

static void lines_have_the_declared_text(void **state)
{
	(void)state;
	struct shop shop;
	struct lines lines = { .count = 0 };
	struct tally_trace_listener *listener;
	start(&shop, 1);
	assert_int_equal(
		tally_trace_listen(&tally_trace_event_order_placed, keep_line, &lines, &listener),
		0);
	place_order(12);
	tally_trace_unlisten(listener);
	place_order(13);
	assert_int_equal(lines.count, 1);
	assert_string_equal(lines.text[0], "id=12 customer=-5 article=blue pen bytes=24");
	/* Arrays are printed as the kernel does; tools differ from each other. */
	assert_int_equal(
		tally_trace_listen(&tally_trace_event_bulk_sent, keep_line, &lines, &listener), 0);
	TALLY_TRACE(bulk_sent, 3);
	tally_trace_unlisten(listener);
	assert_string_equal(lines.text[1], "size=3 bytes={0x78,0x78,0x78}");
	end(&shop);
}

static void count_line(void *data, const struct tally_trace_line *line)
{
	size_t *length = data;
	*length = line->length;
	assert_int_equal(line->text[line->length], 0);
}

static void a_line_too_long_is_cut(void **state)
{
	(void)state;
	struct shop shop;
	struct tally_trace_listener *listener;
	size_t length = 0;
	start(&shop, 1);
	char *long_name = malloc(8000);
	memset(long_name, 'n', 8000);
	long_name[3990] = '\0';
	assert_int_equal(
		tally_trace_listen(&tally_trace_event_order_placed, count_line, &length, &listener),
		0);
	TALLY_TRACE(order_placed, 1, 1, long_name, parts, 3); /* the cut is after the name */
	assert_in_range(length, 4000, TALLY_TRACE_LINE_MAX - 1);
	tally_trace_unlisten(listener);
	free(long_name);
	end(&shop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(format_is_that_of_tracefs),
		cmocka_unit_test(format_is_written_as_snprintf_does),
		cmocka_unit_test(format_that_tools_could_not_read_is_einval),
		cmocka_unit_test(e1_dynamic_fields_are_offset_and_size),
		cmocka_unit_test(e1_lines_are_what_tools_make_of_the_record),
		cmocka_unit_test(lines_have_the_declared_text),
		cmocka_unit_test(a_line_too_long_is_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
