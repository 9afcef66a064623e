#include "random.h"
#include "test.h"

#include "base/buffer.h"
#include "tracepoint/tracepoint.h"
#include "tracepoint/tracepoint_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>

enum { RAW_MAX = 8192, EVENTS_PER_FORMAT = 100 };

static const char *corpus_path(void)
{
	static char path[4096];
	const char *root = getenv("TALLY_SOURCE_ROOT");
	snprintf(path, sizeof(path), "%s/tests/corpus/tracepoint", root ? root : "../..");
	return path;
}

static struct tally_tracepoint *load(const char *name, struct tally_buffer *text)
{
	char path[4608];
	struct tally_tracepoint *tracepoint;
	struct tally_error err = TALLY_ERROR_NONE;
	snprintf(path, sizeof(path), "%s/%s", corpus_path(), name);
	tally_buffer_clear(text);
	assert_int_equal(tally_buffer_read_file(text, AT_FDCWD, path, 1 << 20), 0);
	if (tally_tracepoint_parse(text->bytes, text->length, NULL, &tracepoint, &err) < 0)
		fail_msg("%s: %s", name, err.message);
	return tracepoint;
}

/* Makes a format with these fields (declarations of 8 bytes each, from offset 8) and print
 * format. */
static struct tally_tracepoint *make(const char *fields, const char *print_format, bool swap)
{
	struct tally_buffer text = { 0 };
	struct tally_tracepoint *tracepoint;
	struct tally_tracepoint_machine machine = { .swap = swap };
	tally_buffer_printf(
		&text,
		"name: made\nID: 7\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n%s\n"
		"print fmt: %s\n",
		fields, print_format);
	struct tally_error err = TALLY_ERROR_NONE;
	if (tally_tracepoint_parse(text.bytes, text.length, &machine, &tracepoint, &err) < 0)
		fail_msg("%s", err.message);
	tally_buffer_release(&text);
	return tracepoint;
}

#define FIELD(declaration, offset, size, is_signed) \
	"\tfield:" declaration ";\toffset:" #offset ";\tsize:" #size ";\tsigned:" #is_signed ";\n"

static const char *const usual_fields = FIELD("u64 v", 8, 8, 0) FIELD("s16 h", 16, 2, 1)
	FIELD("u8 b", 18, 1, 0) FIELD("char text[8]", 24, 8, 0)
		FIELD("__data_loc u32[] list", 32, 4, 0) FIELD("int i", 36, 4, 1)
			FIELD("__rel_loc char[] name", 40, 4, 0);

static const char *function_name(void *context, uint64_t address, uint64_t *start)
{
	(void)context;
	*start = 0x1000;
	return address >= 0x1000 && address < 0x2000 ? "do_work" : NULL;
}

static const char *kernel_string(void *context, uint64_t address)
{
	(void)context;
	return address == 0x1234 ? "idle" : NULL;
}

/* Prints `raw` (64 bytes) by `print_format` over the usual fields.  `why` gets what was not
 * understood. */
static void expect_printed(const char *print_format, const void *raw, const char *expected,
			   struct tally_error *why)
{
	struct tally_tracepoint *tracepoint = make(usual_fields, print_format, false);
	struct tally_print *print;
	struct tally_buffer out = { 0 };
	struct tally_print_names names = { .function = function_name, .string = kernel_string };
	assert_int_equal(tally_print_compile(tracepoint, &print, why), 0);
	tally_print_event(print, raw, 64, &names, &out);
	assert_string_equal(tally_buffer_string(&out), expected);
	assert_int_equal(tally_print_means(print), TALLY_PRINT_COMPILED);
	tally_buffer_release(&out);
	tally_print_free(print);
	tally_tracepoint_free(tracepoint);
}

static void expect_text(const char *print_format, const void *raw, const char *expected)
{
	struct tally_error why = TALLY_ERROR_NONE;
	expect_printed(print_format, raw, expected, &why);
	assert_string_equal(why.message, "");
}

/* The same, for formats with arguments that only the kernel knows. */
static void expect_kept(const char *print_format, const void *raw, const char *expected)
{
	expect_printed(print_format, raw, expected, NULL);
}

static void put_usual(uint8_t *raw, uint64_t v, int16_t h, uint8_t b, int32_t i)
{
	memset(raw, 0, 64);
	memcpy(raw + 8, &v, 8);
	memcpy(raw + 16, &h, 2);
	raw[18] = b;
	memcpy(raw + 24, "abcdefgh", 8);
	memcpy(raw + 36, &i, 4);
	uint32_t list = 48 | 8 << 16, name = 12 | 5 << 16; /* name: 44 + 12 = 56 */
	memcpy(raw + 32, &list, 4);
	memcpy(raw + 40, &name, 4);
	uint32_t items[2] = { 5, 0xffffffff };
	memcpy(raw + 48, items, 8);
	memcpy(raw + 56, "eth0", 5);
}

static void kernel_strings_are_found_by_address(void **state)
{
	(void)state;
	static const char text[] = "0xffffffff82522888 : \"second: \\\"x\\\"\\n\"\nnothing\n"
				   "0xffffffff82522880 : \"first\"\n0x10";
	struct tally_printk printk;
	assert_int_equal(tally_printk_parse(&printk, text, sizeof(text) - 1), 0);
	assert_int_equal(printk.count, 2);
	assert_string_equal(tally_printk_find(&printk, 0xffffffff82522880), "first");
	assert_string_equal(tally_printk_find(&printk, 0xffffffff82522888), "second: \\\"x\\\"");
	assert_null(tally_printk_find(&printk, 0xffffffff82522881));
	assert_null(tally_printk_find(&printk, 0x10));
	tally_printk_release(&printk);
	assert_null(tally_printk_find(&printk, 0x10));
}

/* SPEC E1: fields are parsed. */
static void fields_are_as_declared(void **state)
{
	(void)state;
	struct tally_buffer text = { 0 };
	struct tally_tracepoint *tracepoint = load("sched.sched_switch", &text);
	assert_string_equal(tracepoint->name, "sched_switch");
	assert_int_equal(tracepoint->common_count, 4);
	assert_int_equal(tracepoint->field_count, 11);
	const struct tally_tracepoint_field *field = tally_tracepoint_field(tracepoint,
									    "prev_comm");
	assert_string_equal(field->type, "char[16]");
	assert_int_equal(field->offset, 8);
	assert_int_equal(field->size_bytes, 16);
	assert_int_equal(field->element_bytes, 1);
	assert_true(field->is_string);
	field = tally_tracepoint_field(tracepoint, "prev_state");
	assert_true(field->is_long && field->is_signed && !field->is_array);
	assert_non_null(tally_tracepoint_field(tracepoint, "common_pid"));
	assert_null(tally_tracepoint_field(tracepoint, "nothing"));
	tally_tracepoint_free(tracepoint);

	tracepoint = load("sched.sched_process_exec", &text);
	field = tally_tracepoint_field(tracepoint, "filename");
	assert_string_equal(field->type, "__data_loc char[]");
	assert_int_equal(field->place, TALLY_FIELD_DATA_LOC);
	assert_int_equal(field->element_bytes, 1);
	tally_tracepoint_free(tracepoint);

	tracepoint = load("raw_syscalls.sys_enter", &text);
	field = tally_tracepoint_field(tracepoint, "args");
	assert_string_equal(field->type, "unsigned long[6]");
	assert_int_equal(field->element_bytes, 8);
	tally_tracepoint_free(tracepoint);
	tally_buffer_release(&text);
}

static void attributes_and_old_formats_are_understood(void **state)
{
	(void)state;
	struct tally_tracepoint *tracepoint = make(
		"\tfield:const char __attribute__((user)) * "
		"filename;\toffset:8;\tsize:8;\tsigned:0;\n"
		"\tfield:unsigned long old[NR];\toffset:16;\tsize:32;\n"
		"\tfield:nid_t nid[3];\toffset:48;\tsize:4;\tsigned:0;\n",
		"\"%s\", REC->filename", false);
	const struct tally_tracepoint_field *field = tally_tracepoint_field(tracepoint, "filename");
	assert_true(field->is_pointer);
	assert_string_equal(field->type, "const char __attribute__((user)) *");
	field = tally_tracepoint_field(tracepoint, "nid");
	assert_int_equal(field->element_bytes, 4);
	field = tally_tracepoint_field(tracepoint, "old");
	assert_true(field->is_array);
	assert_int_equal(field->element_bytes, 8);
	tally_tracepoint_free(tracepoint);
}

static void malformed_formats_are_refused_with_their_place(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"",
		"name:\n",
		"name: a\n",
		"name: a\nID: x\nformat:\n",
		"name: a\nID: 99999999999\nformat:\n",
		"name: a\nID: 1\nformat:\n\tfield:int;\toffset:0;\tsize:4;\n",
		"name: a\nID: 1\nformat:\n\tfield:int x\toffset:0\n",
		"name: a\nID: 1\nformat:\n\tfield:int x;\toffset:-1;\tsize:4;\n",
		"name: a\nID: 1\nformat:\n\tfield:int x;\toffset:0;\tsize:4;\tsigned:x;\n",
		"name: a\nID: 1\nformat:\n\tsomething\n",
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct tally_tracepoint *tracepoint;
		struct tally_error err = TALLY_ERROR_NONE;
		assert_int_equal(
			tally_tracepoint_parse(texts[i], strlen(texts[i]), NULL, &tracepoint, &err),
			-EBADMSG);
		assert_null(tracepoint);
		assert_in_range(err.position, 0, strlen(texts[i]));
	}
}

static void values_are_read_within_their_bounds(void **state)
{
	(void)state;
	struct tally_tracepoint *tracepoint = make(usual_fields, "\"\"", false);
	uint8_t raw[64];
	put_usual(raw, 77, -2, 200, -5);
	const struct tally_tracepoint_field *h = tally_tracepoint_field(tracepoint, "h");
	const struct tally_tracepoint_field *list = tally_tracepoint_field(tracepoint, "list");
	const struct tally_tracepoint_field *name = tally_tracepoint_field(tracepoint, "name");
	uint64_t value;
	const void *bytes;
	size_t length;
	assert_true(tally_tracepoint_u64(tracepoint, h, raw, 64, &value));
	assert_int_equal(value, 0xfffe);
	assert_false(tally_tracepoint_u64(tracepoint, h, raw, 17, &value));
	assert_true(tally_tracepoint_bytes(tracepoint, list, raw, 64, &bytes, &length));
	assert_int_equal(length, 8);
	assert_true(tally_tracepoint_number(tracepoint, bytes, length, 4, 4, &value));
	assert_int_equal(value, 0xffffffff);
	assert_false(tally_tracepoint_number(tracepoint, bytes, length, 8, 4, &value));
	assert_true(tally_tracepoint_bytes(tracepoint, name, raw, 64, &bytes, &length));
	assert_int_equal(length, 5);
	assert_string_equal(bytes, "eth0");
	assert_false(tally_tracepoint_bytes(tracepoint, name, raw, 60, &bytes, &length));
	assert_true(tally_tracepoint_bytes(tracepoint, tally_tracepoint_field(tracepoint, "text"),
					   raw, 64, &bytes, &length));
	assert_int_equal(length, 8);
	tally_tracepoint_free(tracepoint);
}

static void other_byte_order_is_swapped(void **state)
{
	(void)state;
	struct tally_tracepoint *tracepoint =
		make(usual_fields, "\"%llu %d %s\", REC->v, REC->i, __get_str(name)", true);
	uint8_t raw[64] = { [15] = 77, [39] = 5, [40] = 0, [41] = 5, [42] = 0, [43] = 12 };
	memcpy(raw + 56, "eth0", 5);
	struct tally_print *print;
	struct tally_buffer out = { 0 };
	assert_int_equal(tally_print_compile(tracepoint, &print, NULL), 0);
	tally_print_event(print, raw, sizeof(raw), NULL, &out);
	assert_string_equal(tally_buffer_string(&out), "77 5 eth0");
	tally_buffer_release(&out);
	tally_print_free(print);
	tally_tracepoint_free(tracepoint);
}

/* SPEC E1: decoded to text. */
static void expressions_follow_c(void **state)
{
	(void)state;
	uint8_t raw[64];
	put_usual(raw, 10, 3, 0x41, -1);
	expect_text("\"plain 100%%\\n\\\"\"", raw, "plain 100%\n\"");
	expect_text("\"%llu\", REC->v - 3 + 2", raw, "9");
	expect_text("\"%llu\", REC->v & (1 | 4)", raw, "0");
	expect_text("\"%llu\", 1 + REC->v * 2 << 1", raw, "42");
	expect_text("\"%s\", REC->v == 1 ? \"a\" : REC->v == 10 ? \"b\" : \"c\"", raw, "b");
	expect_text(
		"\"%s%s\", !REC->v ? \"x\" : \"\", __builtin_expect(!!(REC->v), 1) ? \"y\" : \"z\"",
		raw, "y");
	expect_text("\"%d\", (REC->h == 3 ? 1 : 2) + 3", raw, "4");
	expect_text("\"%c%c\", REC->b, REC->b + 1", raw, "AB");
	expect_text("\"[%c%c%c%d]\", REC->h ? 'F' : ' ', !REC->h ? 'S' : ' ', '\\'', '\\n'", raw,
		    "[F '10]");
	expect_text(
		"\"%u %zu %lu\", sizeof(u64), sizeof(REC->h), (unsigned long)sizeof(unsigned int)",
		raw, "8 2 4");
	expect_text(
		"\"%u %u\", ((u32 *)__get_dynamic_array(list))[0], "
		"((u8 *)__get_dynamic_array(list))[0]",
		raw, "5 5");
	expect_text("\"%u\", __get_dynamic_array_len(list) / sizeof(u32)", raw, "2");
	expect_text("\"%llu %llu\", REC->v / 0, REC->v % 0", raw, "0 0");
	expect_text("\"%x\", (u8)(REC->i) | (unsigned short)REC->i", raw, "ffff");
	expect_text("\"%d\", (int)-1 - ~0", raw, "0");
	expect_text("\"tab\tin it %llu\", (REC)->v", raw, "tab\tin it 10");
}

static void strings_and_tables_are_printed(void **state)
{
	(void)state;
	uint8_t raw[64];
	put_usual(raw, 0x1234, 3, 5, 2);
	expect_text(
		"\"[%s][%10s][%-10s][%.3s]\", REC->text, __get_rel_str(name), __get_str(name), "
		"REC->text",
		raw, "[abcdefgh][      eth0][eth0      ][abc]");
	expect_text("\"%.*s|%*s\", 2, __get_str(name), 6, __get_str(name)", raw, "et|  eth0");
	expect_text("\"%s\", REC->v", raw, "idle");
	expect_text("\"%s %s\", __print_flags(REC->b, \"|\", { 1, \"A\" }, { 1 << 1, \"B\" }), "
		    "__print_flags(REC->h, \", \", { 1, \"A\" }, { 1 << 1, \"B\" })",
		    raw, "A|0x4 A, B");
	expect_text("\"%s %s\", __print_symbolic(REC->i, { 1, \"one\" }, { 2, \"t\" \"wo\" }), "
		    "__print_symbolic(REC->b, { })",
		    raw, "two 0x5");
	expect_text(
		"\"%s\", REC->b > 4 ? __print_flags(REC->b, \"|\", { 4, \"four\" }) : "
		"__get_str(name)",
		raw, "four|0x1");
	expect_text(
		"\"%s|%s\", __print_hex(__get_dynamic_array(list), 5), __print_hex_str(REC->text, "
		"2)",
		raw, "05 00 00 00 ff|6162");
	expect_text("\"%s\", __print_array(__get_dynamic_array(list), 2, sizeof(u32))", raw,
		    "5 4294967295");
	expect_text("\"%s %s\", __get_bitmask(list), __get_cpumask(list)", raw,
		    "ffffffff,00000005 0,2,32-63");
}

static void pointers_and_addresses_are_printed(void **state)
{
	(void)state;
	uint8_t raw[64];
	put_usual(raw, 0x1234, 3, 5, 0);
	expect_text("\"%pS %ps %p %p\", (void *)REC->v, REC->v, REC->v, REC->i", raw,
		    "do_work+0x234 do_work 0x1234 (nil)");
	expect_text("\"%pS\", REC->b", raw, "0x5");
	expect_text("\"%pI4 %pi4 %pI6c\", REC->i, &REC->i, REC->text", raw,
		    "0.0.0.0 000.000.000.000 INVALIDIPv6");
	expect_text("\"%*ph\", 3, __get_dynamic_array(list)", raw, "05 00 00");
	uint8_t sockets[64] = { [32] = 48, [34] = 16, [48] = 2, [50] = 0x1f, 0x90, 127, 0, 0, 1 };
	expect_text("\"%pISpc\", __get_sockaddr(list)", sockets, "127.0.0.1:8080");
}

/* The expected text is perf 6.1's for such an event. */
static void sched_switch_reads_as_in_perf(void **state)
{
	(void)state;
	struct tally_buffer text = { 0 }, out = { 0 };
	struct tally_tracepoint *tracepoint = load("sched.sched_switch", &text);
	struct tally_print *print;
	uint8_t raw[64] = { 0 };
	memcpy(raw + 8, "perf", 4);
	memcpy(raw + 40, "swapper/0", 9);
	uint32_t pid = 6303, priority = 120;
	uint64_t state_bits = 8;
	memcpy(raw + 24, &pid, 4);
	memcpy(raw + 28, &priority, 4);
	memcpy(raw + 32, &state_bits, 8);
	memcpy(raw + 60, &priority, 4);
	assert_int_equal(tally_print_compile(tracepoint, &print, NULL), 0);
	tally_print_event(print, raw, sizeof(raw), NULL, &out);
	assert_string_equal(tally_buffer_string(&out),
			    "prev_comm=perf prev_pid=6303 prev_prio=120 prev_state=t ==> "
			    "next_comm=swapper/0 next_pid=0 next_prio=120");
	tally_print_free(print);
	tally_tracepoint_free(tracepoint);
	tally_buffer_release(&text);
	tally_buffer_release(&out);
}

static void beyond_the_compiler_fields_are_printed(void **state)
{
	(void)state;
	static const char *const formats[] = {
		"\"%d\"",
		"\"%d\", REC->missing",
		"\"%y\", REC->v",
		"no string",
		"\"open",
		"\"%d\", ((REC->v)",
		"\"%d\", 1 ? (2",
		"\"%d\", REC->v->id",
		"\"%d %d\", sizeof(struct page) + REC->v, REC->b",
		"\"%d\", jiffies(REC->v) + 1",
		"\"%s\", ({ int x = REC->v; x++; x; })",
		"\"%d\", ({ while (1); REC->v; })",
		"\"%s\", REC->v + 1",
		"\"%d\", REC->v ? 2",
		"\"%d\", REC->v REC->v",
		"",
	};
	uint8_t raw[64];
	put_usual(raw, 10, -3, 255, -1);
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		struct tally_tracepoint *tracepoint = make(usual_fields, formats[i], false);
		struct tally_print *print;
		struct tally_buffer out = { 0 };
		struct tally_error why = TALLY_ERROR_NONE;
		assert_int_equal(tally_print_compile(tracepoint, &print, &why), 0);
		assert_int_equal(tally_print_means(print), TALLY_PRINT_FIELDS);
		assert_int_equal(why.code, -EBADMSG);
		tally_print_event(print, raw, sizeof(raw), NULL, &out);
		assert_string_equal(tally_buffer_string(&out),
				    "[FAILED TO PARSE] v=10 h=-3 b=255 text=abcdefgh "
				    "list=ARRAY[05, 00, 00, 00, ff, ff, ff, ff] i=-1 name=eth0");
		tally_buffer_release(&out);
		tally_print_free(print);
		tally_tracepoint_free(tracepoint);
	}
}

/* Deep or long expressions end in an error, not in a stack overflow. */
static void depth_is_bounded(void **state)
{
	(void)state;
	static const char *const pieces[] = {
		"(", "-", "1?", "REC->v+(", "REC->v+", "~(u8)", "!("
	};
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct tally_buffer format = { 0 };
		tally_buffer_text(&format, "\"%d\", ");
		for (unsigned n = 0; n < 20000; n++)
			tally_buffer_text(&format, pieces[i]);
		tally_buffer_text(&format, "1");
		struct tally_tracepoint *tracepoint = make(usual_fields, format.bytes, false);
		struct tally_print *print;
		assert_int_equal(tally_print_compile(tracepoint, &print, NULL), 0);
		assert_int_equal(tally_print_means(print), TALLY_PRINT_FIELDS);
		tally_print_free(print);
		tally_tracepoint_free(tracepoint);
		tally_buffer_release(&format);
	}
}

static void numbers_are_printf_s(void **state)
{
	(void)state;
	static const char *const flags[] = { "", "-", "0", "#", "#0", "+", " ", "-#", "+0" };
	static const char *const widths[] = { "", "1", "4", "17", ".0", ".5", "9.4", "3.20" };
	static const char *const kinds[] = { "hhd", "hd", "d", "ld", "lld", "hhu", "u",
					     "lx",  "x",  "X", "o",  "llo", "zu" };
	uint64_t seed = 88172645463325252u;
	for (size_t f = 0; f < 9; f++)
		for (size_t w = 0; w < 8; w++)
			for (size_t k = 0; k < 13; k++)
				for (unsigned n = 0; n < 4; n++) {
					char spec[32], format[64], expected[64];
					uint8_t raw[64];
					uint64_t value = n == 0 ? 0
								: next_random(&seed) >> 8 * (n - 1);
					snprintf(spec, sizeof(spec), "%%%s%s%s", flags[f],
						 widths[w], kinds[k]);
					snprintf(format, sizeof(format), "\"%s\", REC->v", spec);
					put_usual(raw, value, 0, 0, 0);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
					snprintf(expected, sizeof(expected), spec, value);
#pragma GCC diagnostic pop
					expect_text(format, raw, expected);
				}
}

/* Gives dynamic fields data of their own behind the fixed part: some text, some a socket
 * address. */
static size_t put_dynamic(const struct tally_tracepoint_field *field, uint8_t *raw, size_t end,
			  uint64_t *seed)
{
	size_t length = next_random(seed) % 40;
	for (size_t i = 0; i < length; i++)
		raw[end + i] = next_random(seed) % 8 ? (uint8_t)next_random(seed) : 0;
	if (length > 2 && next_random(seed) % 3 == 0) {
		raw[end] = next_random(seed) % 2 ? 2 : 10;
		raw[end + 1] = 0;
	} else if (next_random(seed) % 2) {
		length = (size_t)sprintf((char *)raw + end, "a/path%u",
					 (unsigned)next_random(seed)) +
			 1;
	}
	if (length)
		raw[end + length - 1] = 0;
	size_t offset = end - (field->place == TALLY_FIELD_REL_LOC
				       ? field->offset + field->size_bytes
				       : 0);
	uint32_t word = (uint32_t)(offset | length << 16);
	memcpy(raw + field->offset, &word, 4);
	return (end + length + 8) & ~(size_t)7;
}

static uint64_t interesting_number(uint64_t *seed, bool small)
{
	uint64_t any = next_random(seed);
	switch (small ? 3 : any >> 32 & 7) {
	case 0: return 0;
	case 1: return UINT64_MAX;
	case 2: return 1ull << (any & 63);
	case 3: return any % 20;
	case 4: return any & 0xffff;
	default: return any;
	}
}

/* Makes a valid event for a trusting reader: terminated strings, dynamic data inside the event. */
static size_t make_event(const struct tally_tracepoint *tracepoint, uint8_t *raw, uint64_t *seed,
			 bool small)
{
	size_t end = 8;
	memset(raw, 0, RAW_MAX);
	for (size_t i = 0; i < tracepoint->field_count; i++)
		if (tracepoint->fields[i].offset + tracepoint->fields[i].size_bytes > end)
			end = tracepoint->fields[i].offset + tracepoint->fields[i].size_bytes;
	end = (end + 7) & ~(size_t)7;
	for (size_t i = 0; i < tracepoint->field_count; i++) {
		const struct tally_tracepoint_field *field = &tracepoint->fields[i];
		uint64_t number = interesting_number(seed, small);
		if (field->place != TALLY_FIELD_FIXED)
			end = put_dynamic(field, raw, end, seed);
		else if (!field->is_array && field->size_bytes <= 8)
			memcpy(raw + field->offset, &number, field->size_bytes);
		else
			for (size_t j = 0; j + 1 < field->size_bytes; j++)
				raw[field->offset + j] = (uint8_t)(next_random(seed) % 4
									   ? next_random(seed)
									   : 0);
	}
	uint16_t id = (uint16_t)tracepoint->id;
	memcpy(raw, &id, 2);
	return end;
}

/* ---- all tracepoints of the kernel that runs ----------------------------- */

static void for_each_of_this_kernel(void (*function)(const char *system,
						     const struct tally_tracepoint *tracepoint,
						     unsigned *count),
				    unsigned *count)
{
	static const char *const roots[] = { "/sys/kernel/tracing/events",
					     "/sys/kernel/debug/tracing/events" };
	struct tally_buffer text = { 0 };
	glob_t found = { 0 };
	for (unsigned i = 0; i < 2 && !found.gl_pathc; i++) {
		char pattern[64];
		globfree(&found);
		snprintf(pattern, sizeof(pattern), "%s/*/*/format", roots[i]);
		glob(pattern, 0, NULL, &found);
	}
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct tally_tracepoint *tracepoint;
		const char *system = strstr(found.gl_pathv[i], "/events/") + strlen("/events/");
		char name[64];
		tally_buffer_clear(&text);
		if (tally_buffer_read_file(&text, AT_FDCWD, found.gl_pathv[i], 1 << 20) < 0)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(system, "/"), system);
		if (tally_tracepoint_parse(text.bytes, text.length, NULL, &tracepoint, NULL) < 0)
			fail_msg("%s is not parsed", found.gl_pathv[i]);
		function(name, tracepoint, count);
		tally_tracepoint_free(tracepoint);
	}
	globfree(&found);
	tally_buffer_release(&text);
}

/* Compares what the program prints before and after it was shortened. */
static void compare_fused(const char *system, const struct tally_tracepoint *tracepoint,
			  unsigned *shorter)
{
	static uint8_t raw[RAW_MAX];
	struct tally_arena arena = { 0 };
	struct tally_print_source source;
	struct tally_print_program plain, fused;
	struct tally_buffer expected = { 0 }, got = { 0 };
	uint64_t seed = 0x9e3779b97f4a7c15u + tracepoint->id;
	(void)system;
	if (!tally_print_parse(tracepoint, &arena, &source, NULL) &&
	    !tally_print_generate(tracepoint, &source, &arena, &plain, NULL)) {
		fused = plain;
		assert_int_equal(tally_print_fuse(tracepoint, &fused, &arena), 0);
		assert_true(fused.count <= plain.count);
		*shorter += fused.count < plain.count;
		for (unsigned i = 0; i < EVENTS_PER_FORMAT; i++) {
			size_t size = make_event(tracepoint, raw, &seed, i % 2);
			if (i % 3 == 0)
				size = next_random(&seed) % (size + 1);
			tally_buffer_clear(&expected);
			tally_buffer_clear(&got);
			tally_print_run(tracepoint, &plain, raw, size, NULL, &expected);
			tally_print_run(tracepoint, &fused, raw, size, NULL, &got);
			assert_string_equal(tally_buffer_string(&got),
					    tally_buffer_string(&expected));
			assert_int_equal(got.length, expected.length);
		}
	}
	tally_arena_release(&arena);
	tally_buffer_release(&expected);
	tally_buffer_release(&got);
}

static void shorter_programs_print_the_same(void **state)
{
	(void)state;
	DIR *directory = opendir(corpus_path());
	struct tally_buffer text = { 0 };
	unsigned shorter = 0;
	assert_non_null(directory);
	for (const struct dirent *entry; (entry = readdir(directory));) {
		if (entry->d_name[0] == '.')
			continue;
		struct tally_tracepoint *tracepoint = load(entry->d_name, &text);
		compare_fused("", tracepoint, &shorter);
		tally_tracepoint_free(tracepoint);
	}
	assert_in_range(shorter, 40, 1000);
	closedir(directory);
	tally_buffer_release(&text);
	for_each_of_this_kernel(compare_fused, &shorter);
}

/* Conversions at the limits of a single instruction. */
static void fused_numbers_are_printf_s(void **state)
{
	(void)state;
	static const char *const specs[] = { "x",     "lx",   "08x",  "016lx", "8x",  "16lx",
					     "hhx",   "hx",   "d",    "ld",    "lld", "5d",
					     "16d",   "hhd",  "hd",   "u",     "lu",  "05u",
					     "016lu", "16lu", "3hhu", "7hu" };
	uint64_t seed = 88172645463325252u;
	for (size_t k = 0; k < sizeof(specs) / sizeof(specs[0]); k++)
		for (unsigned n = 0; n < 200; n++) {
			char spec[64], format[128], expected[64];
			uint8_t raw[64];
			uint64_t value = (1ull << n % 64) - (n >= 64);
			if (n >= 128)
				value = next_random(&seed) >> n % 64;
			if (n % 2)
				value = -value;
			snprintf(spec, sizeof(spec), "a prefix of thirty-two letters: %%%s",
				 specs[k]);
			snprintf(format, sizeof(format), "\"%s|%s\", REC->v",
				 spec + (n % 3 ? 0 : 30), "");
			put_usual(raw, value, 0, 0, 0);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			int length = snprintf(expected, sizeof(expected), spec + (n % 3 ? 0 : 30),
					      value);
#pragma GCC diagnostic pop
			snprintf(expected + length, sizeof(expected) - (size_t)length, "|");
			expect_text(format, raw, expected);
		}
}

static void where_libtraceevent_errs_c_holds(void **state)
{
	(void)state;
	struct tally_buffer text = { 0 }, out = { 0 };
	struct tally_tracepoint *tracepoint = load("timer.timer_start", &text);
	struct tally_print *print;
	uint8_t raw[64] = { 0 };
	const struct tally_tracepoint_field *flags = tally_tracepoint_field(tracepoint, "flags");
	uint32_t value = 0x00080000 | 3;
	memcpy(raw + flags->offset, &value, 4);
	assert_int_equal(tally_print_compile(tracepoint, &print, NULL), 0);
	tally_print_event(print, raw, sizeof(raw), NULL, &out);
	assert_string_equal(tally_buffer_string(&out),
			    "timer=(nil) function=0x0 expires=0 [timeout=0] bucket_expiry=0 "
			    "cpu=3 idx=0 flags=D");
	tally_print_free(print);
	tally_tracepoint_free(tracepoint);
	tally_buffer_release(&text);
	tally_buffer_release(&out);
}

/* What only the kernel can compute is printed as such; nothing that the event holds is lost. */
static void what_the_kernel_knows_is_shown_as_such(void **state)
{
	(void)state;
	uint8_t raw[64];
	put_usual(raw, 3, -2, 5, -1);
	raw[28] = 0; /* text: abcd */
	expect_kept("\"wait %u run %u\", jiffies_to_msecs(REC->v), REC->b", raw,
		    "wait jiffies_to_msecs(3) run 5");
	expect_kept("\"%s|\", nvme_disk_name(p, REC->h, REC->b + 1, REC->text, __get_str(name))", raw,
		    "nvme_disk_name(p, -2, 6, abcd, eth0)|");
	expect_kept("\"%s\", decode(__get_buf(500), \"a\", __get_dynamic_array(list), (u8)REC->i)", raw,
		    "decode(__get_buf(500), a, ARRAY[05, 00, 00, 00, ff, ff, ff, ff], -1)");
	expect_kept("\"%s\", __get_stacktrace(list)", raw,
		    "__get_stacktrace(ARRAY[05, 00, 00, 00, ff, ff, ff, ff])");
	expect_kept("\"%s\", REC->v ? dev_name(REC->b) : \"none\"", raw, "dev_name(5)");
	expect_kept("\"reason %s\", reset_reasons[REC->v]", raw, "reason reset_reasons[3]");
	expect_kept("\"pid=%d\", no_arguments()", raw, "pid=no_arguments()");
	expect_kept("\"page=%p pfn=%llu\", (struct page *)0x1000 + REC->v * sizeof(struct page), REC->v", raw,
		    "page=? pfn=3");
	expect_kept("\"%llu %s\", REC->v, ({ static const char *a[] = { \"x,\", \")\" }; a[REC->v]; })", raw,
		    "3 ?");
	expect_kept("\"%*d|%d\", jiffies(1) + 1, 7, 8", raw, "?|8");
}

/* C that older and newer kernels leave in their formats. */
static void more_of_c_is_understood(void **state)
{
	(void)state;
	uint8_t raw[64];
	put_usual(raw, 300, -2, 5, -1);
	expect_text("\"now=%llu\", (unsigned long long)(((ktime_t) { .tv64 = REC->v }).tv64)", raw,
		    "now=300");
	expect_text("\"%d/%llu\", ({ int __UNIQUE_ID_x_921 = (REC->v); int __UNIQUE_ID_y_922 = (128); "
		    "((__UNIQUE_ID_x_921) < (__UNIQUE_ID_y_922) ? (__UNIQUE_ID_x_921) : "
		    "(__UNIQUE_ID_y_922)); }), REC->v", raw, "128/300");
	expect_text("\"%u\", ({ typeof(REC->v) a = (REC->v); u8 b = a; do { if (!(1)) stop(\";\"); } while "
		    "(0); a + b; })", raw, "344");
	expect_text("\"%u\", ({ int a = ({ int a = 3; a * 2; }); a + 1; })", raw, "7");
	expect_text("\"%u %u\", REC->b ?: 7, (REC->b - 5) ?: 7", raw, "5 7");
	expect_text("\"0x%x\", (__builtin_constant_p(REC->v) ? (REC->v & 0xff) << 8 | REC->v >> 8 : "
		    "__fswab16(REC->v))", raw, "0x2c01");
	expect_text("\"%llu.%09llu\", __print_ns_to_secs(REC->v * 10000000), "
		    "__print_ns_without_secs(REC->v * 10000000 + 1)", raw, "3.000000001");
	expect_text("\"%s\", __print_dynamic_array(list, sizeof(u32))", raw, "5 4294967295");
	expect_text("\"nothing\", ", raw, "nothing");
	expect_text("\"name=\"%s\" id=%d\", __get_str(name), REC->b", raw, "name=\"eth0\" id=5");
	expect_text("\"\"%s\"\", __get_str(name)", raw, "\"eth0\"");
	expect_text("\"%d \" \"%d\" , 1, 2", raw, "1 2");
}

/* A format and an event decide how much is printed, so it has a limit. */
static void texts_are_cut_with_a_word(void **state)
{
	(void)state;
	struct tally_buffer format = { 0 }, out = { 0 };
	uint8_t raw[64];
	put_usual(raw, 1, 2, 3, 4);
	tally_buffer_char(&format, '"');
	for (unsigned i = 0; i < 1000; i++)
		tally_buffer_text(&format, "%10000000d");
	tally_buffer_char(&format, '"');
	for (unsigned i = 0; i < 1000; i++)
		tally_buffer_text(&format, ",1");
	struct tally_tracepoint *tracepoint = make(usual_fields, tally_buffer_string(&format), false);
	struct tally_print *print;
	assert_int_equal(tally_print_compile(tracepoint, &print, NULL), 0);
	assert_int_equal(tally_print_means(print), TALLY_PRINT_COMPILED);
	tally_buffer_text(&out, "before ");
	tally_print_event(print, raw, sizeof(raw), NULL, &out);
	assert_int_equal(out.length, strlen("before ") + TALLY_PRINT_TEXT_MAX);
	assert_memory_equal(out.bytes, "before      ", 12);
	assert_string_equal(out.bytes + out.length - 16, "  [LINE TOO BIG]");
	tally_print_free(print);
	tally_tracepoint_free(tracepoint);
	tally_buffer_release(&format);
	tally_buffer_release(&out);
}

/* The same where the fields are printed: they may overlap. */
static void fields_are_cut_with_a_word(void **state)
{
	(void)state;
	struct tally_buffer fields = { 0 }, out = { 0 };
	static uint8_t raw[60000];
	for (unsigned i = 0; i < 200; i++)
		tally_buffer_printf(&fields,
				    "\tfield:char f%u[60000];\toffset:0;\tsize:60000;\tsigned:0;\n", i);
	raw[0] = 1;
	struct tally_tracepoint *tracepoint = make(tally_buffer_string(&fields), "none", false);
	tally_buffer_text(&out, "before");
	tally_print_fields(tracepoint, raw, sizeof(raw), &out);
	assert_int_equal(out.length, strlen("before") + TALLY_PRINT_TEXT_MAX);
	assert_string_equal(out.bytes + out.length - strlen("[LINE TOO BIG]"), "[LINE TOO BIG]");
	tally_tracepoint_free(tracepoint);
	tally_buffer_release(&fields);
	tally_buffer_release(&out);
}

/* Repeats a piece of text between two others; returns the bytes that compiling takes. */
static size_t memory_of(const char *before, const char *piece, const char *after)
{
	struct tally_buffer format = { 0 };
	struct tally_arena arena = { 0 };
	struct tally_print_source source;
	struct tally_print_program program;
	tally_buffer_text(&format, before);
	while (format.length < 1000000)
		tally_buffer_text(&format, piece);
	tally_buffer_text(&format, after);
	struct tally_tracepoint *tracepoint = make(usual_fields, tally_buffer_string(&format), false);
	if (!tally_print_parse(tracepoint, &arena, &source, NULL))
		tally_print_generate(tracepoint, &source, &arena, &program, NULL);
	size_t taken = tally_arena_bytes(&arena);
	tally_arena_release(&arena);
	tally_tracepoint_free(tracepoint);
	tally_buffer_release(&format);
	return taken;
}

static void compiling_takes_little_memory(void **state)
{
	(void)state;
	static const char *const texts[][3] = {
		{ "\"%s\", ", "\"a\" ", "" },
		{ "\"\" ", "\"a\" ", ", 1" },
		{ "\"%s\"", ", ({ int a = REC->v; a + a; })", "" },
		{ "\"%s\"", ", f(REC->b, ({ int x = 1; int y = x + x; y; }))", "" },
		{ "\"%s\", f(", "1,", "1)" },
		{ "\"%s\", __print_symbolic(REC->v", ",{1,\"a\"}", ")" },
		{ "\"%s\"", ",REC->h->b", "" },
		{ "\"%s\", ({ ", "int a = 1; ", "a; })" },
		{ "\"", "%d", "\", 1" },
		{ "\"%d\"", ",1", "" },
		{ "\"%d\", ", "(a b ", "" },
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_in_range(memory_of(texts[i][0], texts[i][1], texts[i][2]), 0, 16 << 20);
}

/* Variables that are used twice, in variables that are used twice. */
static void doubled_variables_end(void **state)
{
	(void)state;
	uint8_t raw[64];
	put_usual(raw, 1, 2, 3, 4);
	for (unsigned constant = 0; constant < 2; constant++)
		for (unsigned count = 8; count <= 16; count += 8) {
			struct tally_buffer format = { 0 };
			tally_buffer_printf(&format, "\"%%d %%llu\", ({ u64 v0 = (%s); ",
					    constant ? "1" : "REC->v");
			for (unsigned i = 1; i < count; i++)
				tally_buffer_printf(&format, "u64 v%u = v%u + v%u; ", i, i - 1,
						    i - 1);
			tally_buffer_printf(&format, "v%u; }), REC->v", count - 1);
			if (constant || count == 8) {
				expect_text(format.bytes, raw, count == 8 ? "128 1" : "32768 1");
			} else {
				struct tally_tracepoint *tracepoint = make(usual_fields, format.bytes,
									   false);
				struct tally_print *print;
				assert_int_equal(tally_print_compile(tracepoint, &print, NULL), 0);
				assert_int_equal(tally_print_means(print), TALLY_PRINT_FIELDS);
				tally_print_free(print);
				tally_tracepoint_free(tracepoint);
			}
			tally_buffer_release(&format);
		}
}

static void formats_with_too_many_fields_are_refused(void **state)
{
	(void)state;
	struct tally_buffer text = { 0 };
	struct tally_tracepoint *tracepoint;
	struct tally_error err = TALLY_ERROR_NONE;
	tally_buffer_text(&text, "name: made\nID: 7\nformat:\n");
	for (unsigned i = 0; i <= TALLY_TRACEPOINT_FIELDS_MAX; i++)
		tally_buffer_printf(&text, "\tfield:int f%u;\toffset:8;\tsize:4;\n", i);
	assert_int_equal(tally_tracepoint_parse(text.bytes, text.length, NULL, &tracepoint, &err),
			 -EBADMSG);
	assert_non_null(strstr(err.message, "too many fields"));
	tally_buffer_release(&text);
}

/* Of a kernel's own formats, only those with statements print their fields. */
static void check_compiled(const char *system, const struct tally_tracepoint *tracepoint,
			   unsigned *compiled)
{
	struct tally_print *print;
	struct tally_error why = TALLY_ERROR_NONE;
	assert_int_equal(tally_print_compile(tracepoint, &print, &why), 0);
	bool is_compiled = tally_print_means(print) == TALLY_PRINT_COMPILED;
	if (!is_compiled && !strstr(tracepoint->print_format, "({"))
		fail_msg("%s:%s: %s", system, tracepoint->name, why.message);
	*compiled += is_compiled;
	tally_print_free(print);
}

static void formats_of_this_kernel_are_compiled(void **state)
{
	(void)state;
	unsigned compiled = 0;
	for_each_of_this_kernel(check_compiled, &compiled);
	if (!compiled)
		skip(); /* only root may read tracefs */
	print_message("# %u tracepoints\n", compiled);
}

static void formats_of_the_corpus_are_compiled(void **state)
{
	(void)state;
	DIR *directory = opendir(corpus_path());
	struct tally_buffer text = { 0 };
	unsigned compiled = 0;
	assert_non_null(directory);
	for (const struct dirent *entry; (entry = readdir(directory));) {
		if (entry->d_name[0] == '.')
			continue;
		struct tally_tracepoint *tracepoint = load(entry->d_name, &text);
		check_compiled(entry->d_name, tracepoint, &compiled);
		tally_tracepoint_free(tracepoint);
	}
	assert_in_range(compiled, 40, 1000);
	closedir(directory);
	tally_buffer_release(&text);
}

/* Random bytes of any size: nothing outside them is read (the sanitizers check). */
static void any_bytes_are_safe(void **state)
{
	(void)state;
	DIR *directory = opendir(corpus_path());
	assert_non_null(directory);
	struct tally_buffer text = { 0 };
	uint64_t seed = 42;
	for (const struct dirent *entry; (entry = readdir(directory));) {
		if (entry->d_name[0] == '.')
			continue;
		struct tally_tracepoint *tracepoint = load(entry->d_name, &text);
		struct tally_print *print;
		assert_int_equal(tally_print_compile(tracepoint, &print, NULL), 0);
		for (size_t size = 0; size < 150; size++) {
			uint8_t *raw = malloc(size ? size : 1);
			struct tally_buffer out = { .maximum = 1 << 16 };
			for (size_t i = 0; i < size; i++)
				raw[i] = (uint8_t)(next_random(&seed) % 3
							   ? next_random(&seed) % size
							   : 0xff);
			tally_print_event(print, raw, size, NULL, &out);
			tally_print_fields(tracepoint, raw, size, &out);
			tally_buffer_release(&out);
			free(raw);
		}
		tally_print_free(print);
		tally_tracepoint_free(tracepoint);
	}
	closedir(directory);
	tally_buffer_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_as_declared),
		cmocka_unit_test(attributes_and_old_formats_are_understood),
		cmocka_unit_test(malformed_formats_are_refused_with_their_place),
		cmocka_unit_test(values_are_read_within_their_bounds),
		cmocka_unit_test(other_byte_order_is_swapped),
		cmocka_unit_test(expressions_follow_c),
		cmocka_unit_test(strings_and_tables_are_printed),
		cmocka_unit_test(pointers_and_addresses_are_printed),
		cmocka_unit_test(sched_switch_reads_as_in_perf),
		cmocka_unit_test(beyond_the_compiler_fields_are_printed),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(what_the_kernel_knows_is_shown_as_such),
		cmocka_unit_test(more_of_c_is_understood),
		cmocka_unit_test(texts_are_cut_with_a_word),
		cmocka_unit_test(fields_are_cut_with_a_word),
		cmocka_unit_test(compiling_takes_little_memory),
		cmocka_unit_test(doubled_variables_end),
		cmocka_unit_test(formats_with_too_many_fields_are_refused),
		cmocka_unit_test(formats_of_this_kernel_are_compiled),
		cmocka_unit_test(formats_of_the_corpus_are_compiled),
		cmocka_unit_test(numbers_are_printf_s),
		cmocka_unit_test(shorter_programs_print_the_same),
		cmocka_unit_test(fused_numbers_are_printf_s),
		cmocka_unit_test(where_libtraceevent_errs_c_holds),
		cmocka_unit_test(any_bytes_are_safe),
		cmocka_unit_test(kernel_strings_are_found_by_address),
	};
	return cmocka_run_group_tests_name("tracepoint", tests, NULL, NULL);
}
