/* Compares `script`'s text with a simple printer, which formats each field of each sample with
 * printf and looks each address up anew. */
#include "test.h"

#include "base/digits.h"
#include "output/output.h"
#include "output/output_internal.h"
#include "profile_fixture.h"
#include "random.h"

#include <inttypes.h>

/* ---- the plain printer --------------------------------------------------- */

static void plain_head(struct tally_recording *recording, const struct tally_recorded_event *event,
		       int width, const struct tally_sample *sample, struct tally_buffer *out)
{
	char buffer[16];
	const char *comm = tally_tasks_comm(&recording->tasks, sample->pid, sample->tid, buffer);
	tally_buffer_printf(out, tally_recording_has_stacks(&event->attr) ? "%s " : "%16s ", comm);
	if (sample->type & TALLY_SAMPLE_TID)
		tally_buffer_printf(out, "%5d ", (int)sample->tid);
	if (sample->type & TALLY_SAMPLE_CPU)
		tally_buffer_printf(out, "[%03u] ", sample->cpu);
	if (sample->type & TALLY_SAMPLE_TIME)
		tally_buffer_printf(out, "%5" PRIu64 ".%06" PRIu64 ": ", sample->time / 1000000000,
				    sample->time % 1000000000 / 1000);
	bool has_period = sample->type & TALLY_SAMPLE_PERIOD;
	tally_buffer_printf(out, "%10" PRIu64 " ",
			    has_period ? sample->period : event->attr.sample_period);
	tally_buffer_printf(out, "%*s: ", width, event->name);
}

static void plain_symbol(struct tally_names *names, const struct tally_place *place,
			 unsigned beyond, struct tally_buffer *out)
{
	uint64_t offset;
	uint32_t function = tally_names_function(names, place, &offset);
	if (function == UINT32_MAX || names->functions.items[function].name == TALLY_STRING_NONE)
		tally_buffer_text(out, " [unknown]");
	else
		tally_buffer_printf(out, " %s+0x%" PRIx64, tally_names_text(names, function),
				    offset + beyond);
	char map[TALLY_PERF_MAP_PATH_BYTES];
	tally_buffer_printf(out, " (%s)", tally_names_mapped_object(names, function, map));
}

static void plain_chain(struct tally_recording *recording, struct tally_buffer *out)
{
	tally_buffer_char(out, '\n');
	for (size_t i = 0; i < recording->chain.count; i++) {
		const struct tally_chain_frame *frame = &recording->chain.items[i];
		uint64_t shown = frame->kernel || frame->place.file == TALLY_FILE_NONE ?
					 frame->address :
					 frame->place.address + frame->before;
		tally_buffer_printf(out, "\t%16" PRIx64, shown);
		plain_symbol(&recording->names, &frame->place, frame->before, out);
		tally_buffer_char(out, '\n');
	}
}

static void plain_sample(struct tally_recording *recording, int width,
			 const struct tally_raw_record *raw, const struct tally_record *record,
			 struct tally_buffer *out)
{
	assert_int_equal(tally_recording_chain(recording, raw, record), 0);
	plain_head(recording, raw->event, width, &record->sample, out);
	if (tally_recording_has_stacks(&raw->event->attr)) {
		plain_chain(recording, out);
	} else if (recording->chain.count) {
		const struct tally_chain_frame *leaf = &recording->chain.items[0];
		tally_buffer_printf(out, " %16" PRIx64, leaf->address);
		plain_symbol(&recording->names, &leaf->place, 0, out);
	}
	tally_buffer_char(out, '\n');
}

/* ---- random recordings --------------------------------------------------- */

static uint64_t random_address(uint64_t *seed)
{
	uint64_t any = next_random(seed);
	switch (any >> 40 & 7) {
	case 0: return any >> 56 & 1 ? 0 : any % 4096;
	case 1: return any;
	case 2: return 0xffffffff81000000u + any % 0x100000;
	case 3: return TALLY_CONTEXT_KERNEL;
	case 4: return any >> 50 & 1 ? TALLY_CONTEXT_USER : TALLY_CONTEXT_MAX + any % 4095;
	default: return CODE + any % 0x2000;
	}
}

/* Adds a mapping of `pid`: the process whose perf map names its code, or another one. */
static void put_map(struct profile_fixture *fixture, uint32_t pid, uint64_t start, uint64_t length,
		    const char *path)
{
	uint64_t words[10] = {
		fixture_ids_of(pid, pid), start, length, 0x3000, 0, 0, fixture_ids_of(pid, pid),
		++fixture->time_ns,       0,     1
	};
	strncpy((char *)&words[4], path, 15);
	fixture_put_words(fixture, TALLY_RECORD_MMAP, TALLY_MISC_USER, words, 10);
}

static void put_fork(struct profile_fixture *fixture, uint32_t parent, uint32_t child)
{
	uint64_t words[7] = { (uint64_t)parent << 32 | child,
			      (uint64_t)parent << 32 | child,
			      ++fixture->time_ns,
			      fixture_ids_of(parent, parent),
			      fixture->time_ns,
			      0,
			      1 };
	fixture_put_words(fixture, TALLY_RECORD_FORK, 0, words, 7);
}

static void put_ksymbol(struct profile_fixture *fixture, uint64_t address, bool gone,
			const char *name)
{
	uint64_t words[8] = { address,
			      0x8000 | 1ull << 32 | (uint64_t)gone << 48,
			      0,
			      0,
			      fixture_ids_of(UINT32_MAX, 0),
			      ++fixture->time_ns,
			      0,
			      1 };
	strncpy((char *)&words[2], name, 15);
	fixture_put_words(fixture, TALLY_RECORD_KSYMBOL, 0, words, 8);
}

static void put_sample(struct profile_fixture *fixture, uint64_t *seed, uint32_t pid, bool stacks)
{
	uint64_t any = next_random(seed), words[48], count = 0;
	uint32_t tid = any & 7 ? pid + (uint32_t)(any >> 8 & 3) : UINT32_MAX;
	fixture->time_ns += any % 3 ? any % 5000000 : any >> 24;
	words[count++] = 1;
	words[count++] = random_address(seed);
	words[count++] = fixture_ids_of(pid, tid);
	words[count++] = ++fixture->time_ns;
	words[count++] = any >> 20 & 15 ? any >> 16 & 7 : any >> 24 & 1023;
	words[count++] = any >> 30 & 3 ? any >> 44 : any;
	if (stacks) {
		uint64_t depth = any >> 12 & 31;
		words[count++] = depth;
		for (uint64_t i = 0; i < depth; i++)
			words[count++] = random_address(seed);
	}
	fixture_put_words(fixture, TALLY_RECORD_SAMPLE,
			  any >> 60 & 1 ? TALLY_MISC_USER : TALLY_MISC_KERNEL, words, count);
}

static void make_random(struct profile_fixture *fixture, uint64_t *seed, bool stacks)
{
	static const char *const names[] = { "a", "with spaces in", "", "fifteen letters" };
	static const char *const paths[] = { "//anon", "/no/such/file", "[heap]", "//anon" };
	*fixture = (struct profile_fixture){ 0 };
	fixture_map(fixture);
	for (unsigned i = 0; i < 3000; i++) {
		uint64_t any = next_random(seed);
		uint32_t pid = fixture_pid() + 16 * (any >> 16 & 3);
		switch (any & 63) {
		case 0: fixture_comm(fixture, pid, names[any >> 32 & 3]); break;
		case 1:
			put_map(fixture, pid, CODE + (any >> 40 & 0xf00), 0x800,
				paths[any >> 32 & 3]);
			break;
		case 2: put_map(fixture, pid, CODE, 0x2000, "//anon"); break;
		case 3: put_fork(fixture, pid, pid + 16); break;
		case 4:
			put_ksymbol(fixture, 0xffffffff81000000u + (any >> 48 & 0xf0000),
				    any >> 40 & 1, names[any >> 32 & 3]);
			break;
		default: put_sample(fixture, seed, pid, stacks);
		}
	}
	fixture_finish(fixture, 0, 0);
}

/* Changes the fixture's attributes so that samples have no chains. */
static void drop_chains(const struct profile_fixture *fixture)
{
	uint64_t entry_size, attrs_offset, attrs_size, sample_type;
	memcpy(&entry_size, fixture->bytes + 16, 8);
	memcpy(&attrs_offset, fixture->bytes + 24, 8);
	memcpy(&attrs_size, fixture->bytes + 32, 8);
	assert_int_equal(attrs_size, 2 * entry_size);
	for (unsigned i = 0; i < 2; i++) {
		char *at = fixture->bytes + attrs_offset + i * entry_size + 24;
		memcpy(&sample_type, at, 8);
		assert_int_equal(sample_type, PROFILE_SAMPLE_TYPE);
		sample_type &= ~(uint64_t)TALLY_SAMPLE_CALLCHAIN;
		memcpy(at, &sample_type, 8);
	}
}

static size_t compare(const struct profile_fixture *fixture)
{
	struct tally_recording *recording;
	struct tally_script *script;
	struct tally_raw_record raw;
	struct tally_record record;
	struct tally_buffer fast = { 0 }, plain = { 0 };
	size_t samples = 0, bytes = 0;
	assert_int_equal(
		tally_recording_open_memory(fixture->bytes, fixture->size, &recording, NULL), 0);
	assert_int_equal(tally_script_new(recording, NULL, &script, NULL), 0);
	while (tally_recording_next(recording, &raw, &record, NULL) > 0) {
		if (record.header.type != TALLY_RECORD_SAMPLE)
			continue;
		tally_buffer_clear(&plain);
		if (samples++ % 100 == 0)
			tally_buffer_clear(&fast);
		size_t before = fast.length;
		plain_sample(recording, 6, &raw, &record, &plain);
		assert_int_equal(tally_script_sample(script, &raw, &record, &fast, NULL), 0);
		assert_int_equal(strlen(fast.bytes), fast.length);
		assert_string_equal(fast.bytes + before, plain.bytes);
		bytes += plain.length;
	}
	assert_in_range(samples, 2500, 3000);
	tally_script_free(script);
	tally_buffer_release(&fast);
	tally_buffer_release(&plain);
	tally_recording_close(recording);
	return bytes;
}

static void text_is_the_plain_printer_s(void **state)
{
	(void)state;
	uint64_t seed = 88172645463325252u;
	fixture_write_map();
	for (unsigned i = 0; i < 6; i++) {
		struct profile_fixture fixture;
		make_random(&fixture, &seed, i % 3 > 0);
		if (i % 3 == 0)
			drop_chains(&fixture);
		assert_in_range(compare(&fixture), 200000, 10000000);
		free(fixture.bytes);
	}
	fixture_remove_map();
}

/* Endless garbage addresses don't fill the memory. */
static void lines_are_bounded(void **state)
{
	(void)state;
	struct tally_tasks tasks = { 0 };
	struct tally_names names;
	struct tally_frame_lines lines;
	tally_names_init(&names, &tasks);
	names.options.no_inlines = true;
	assert_int_equal(tally_frame_lines_init(&lines, &names,
						TALLY_FRAME_SYMBOL | TALLY_FRAME_OFFSET |
							TALLY_FRAME_OBJECT),
			 0);
	lines.bytes_max = 1 << 20;
	for (uint64_t address = 1; address < 100000; address++) {
		char expected[64];
		const struct tally_frame_line *line = tally_frame_line(&lines, 1, 0,
								       address * 4099);
		assert_non_null(line);
		snprintf(expected, sizeof(expected), "\t%16" PRIx64 " [unknown] ([unknown])\n",
			 address * 4099);
		assert_int_equal(line->length, strlen(expected));
		assert_memory_equal(line->text, expected, line->length);
		assert_in_range(lines.bytes, 1, (1 << 20) + 1000);
	}
	tally_frame_lines_release(&lines);
	tally_names_release(&names);
	tally_tasks_release(&tasks);
}

static void expect_digits(uint64_t value)
{
	for (size_t width = 0; width < 24; width += 5) {
		char expected[64], text[64];
		snprintf(expected, sizeof(expected), "%*" PRIu64, (int)width, value);
		*tally_put_decimal(text, value, width) = '\0';
		assert_string_equal(text, expected);
		snprintf(expected, sizeof(expected), "%*" PRIx64, (int)width, value);
		*tally_put_hexadecimal(text, value, width) = '\0';
		assert_string_equal(text, expected);
	}
}

static void digits_are_printf_s(void **state)
{
	(void)state;
	uint64_t seed = 42, power = 1;
	for (unsigned i = 0; i < 20; i++, power *= 10) {
		expect_digits(power - 1);
		expect_digits(power);
		expect_digits(power + 1);
	}
	for (unsigned bit = 0; bit < 64; bit++) {
		expect_digits((1ull << bit) - 1);
		expect_digits(1ull << bit);
		for (unsigned i = 0; i < 200; i++)
			expect_digits(next_random(&seed) >> bit);
	}
	expect_digits(UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(digits_are_printf_s),
		cmocka_unit_test(lines_are_bounded),
		cmocka_unit_test(text_is_the_plain_printer_s),
	};
	return cmocka_run_group_tests_name("script", tests, NULL, NULL);
}
