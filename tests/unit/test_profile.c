#include "test.h"

#include "base/buffer.h"
#include "base/vector.h"
#include "profile/profile.h"
#include "recording/recording.h"

#include "profile_fixture.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

static uint64_t period_with(const struct tally_profile_filter *filter, uint32_t event)
{
	struct profile_fixture fixture;
	uint64_t samples, period;
	fixture_usual(&fixture);
	struct tally_profile *profile = fixture_profile(&fixture, filter);
	tally_profile_totals(profile, event, &samples, &period);
	fixture_release(&fixture, profile);
	return period;
}

static void every_sample_counts_once(void **state)
{
	(void)state;
	assert_int_equal(period_with(NULL, 0), 75);
	assert_int_equal(period_with(NULL, 1), 100);
}

static void a_backslash_makes_a_pattern_s_letters_ordinary(void **state)
{
	(void)state;
	assert_true(tally_list_has("operator\\*", "operator*"));
	assert_false(tally_list_has("operator\\*", "operator+"));
	assert_true(tally_list_has("x,a\\,b\\?\\\\", "a,b?\\"));
	assert_false(tally_list_has("a\\,b", "a"));
	assert_true(tally_list_has("*\\*", "a**"));
	assert_true(tally_list_has("a?b", "a\xc3\xa9" "b"));
	assert_false(tally_list_has("a??b", "a\xc3\xa9" "b"));
	assert_true(tally_list_has("a\\", "a\\"));
	char quoted[16];
	tally_list_quote("a*?,\\b", quoted);
	assert_string_equal(quoted, "a\\*\\?\\,\\\\b");
	assert_true(tally_list_has(quoted, "a*?,\\b"));
}

static void filters_take_what_they_name(void **state)
{
	char pid[16], tids[32];
	(void)state;
	snprintf(pid, sizeof(pid), "%u", fixture_pid());
	snprintf(tids, sizeof(tids), "1,%u", fixture_pid());
	const struct { struct tally_profile_filter filter; uint64_t period; } cases[] = {
		{ { .comms = "alpha" }, 55 },
		{ { .comms = "beta,alpha" }, 75 },
		{ { .comms = "alph" }, 0 },
		{ { .comms = "al*" }, 55 },
		{ { .comms = "*a*h?,nobody" }, 55 },
		{ { .comms = "?alpha*" }, 0 },
		{ { .comms = "b*,al*a" }, 75 },
		{ { .pids = pid }, 75 },
		{ { .tids = "101" }, 20 },
		{ { .tids = tids }, 55 },
		{ { .tids = "100-101" }, 20 },
		{ { .cpus = "1" }, 25 },
		{ { .cpus = "7,0-1" }, 75 },
		{ { .cpus = "7,2-3" }, 0 },
		{ { .symbols = "leaf" }, 70 },
		{ { .symbols = "loop,main" }, 5 },
		{ { .objects = "nothing" }, 0 },
		{ { .comms = "alpha", .cpus = "1" }, 5 },
		{ { .time = "0.000000005," }, 65 },
		{ { .time = ",0.000000004" }, 10 },
		{ { .time = "0.000000005,0.000000006" }, 60 },
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(period_with(&cases[i].filter, 0), cases[i].period);
}

/* Returns the chosen times from 1000 to 2000, as text. */
static const char *times_of(const char *asked, struct tally_buffer *out)
{
	struct tally_ranges ranges = { 0 };
	out->length = 0;
	bool is_sound = !tally_time_ranges_parse(&ranges, asked, 1000, 2000, NULL);
	if (!is_sound)
		tally_buffer_text(out, "none");
	for (size_t i = 0; is_sound && i < ranges.count; i++)
		tally_buffer_printf(out, "%s%" PRIu64 "-%" PRIu64, i ? " " : "",
				    ranges.items[i].first, ranges.items[i].last);
	tally_vector_release(&ranges);
	return tally_buffer_string(out);
}

static void shares_of_the_time_meet_and_do_not_overlap(void **state)
{
	const char *const cases[][2] = {
		{ "10%", "1000-1099" },
		{ "10%/2", "1100-1199" },
		{ "10%/10", "1900-2000" },
		{ "100%", "1000-2000" },
		{ "0%-10%", "1000-1099" },
		{ "90%-100%", "1900-2000" },
		{ "33.3%-66.6%", "1333-1665" },
		{ "10%/3,10%", "1000-1099 1200-1299" },
		{ "20%-30%,10%-20%", "1100-1299" },
		{ "10%-30%,20%-40%", "1100-1399" },
		{ "5%,", "1000-1049" },
		{ "10%/0", "none" },
		{ "10%/11", "none" },
		{ "10%/1.5", "none" },
		{ "110%", "none" },
		{ "20%-10%", "none" },
		{ "0%", "none" },
		{ "0%/1", "none" },
		{ "10%-", "none" },
		{ "-10%", "none" },
		{ "10% 20%", "none" },
		{ "%", "none" },
		{ "10%/99999999999999999999", "none" },
		{ ",10%", "none" },
		{ "10%,1,2", "none" },
		{ "1,2", "1000000000-2000000000" },
		{ "0.000000005,", "5-18446744073709551615" },
		{ ",0.5", "0-500000000" },
		{ "3,4 1,2", "1000000000-2000000000 3000000000-4000000000" },
		{ ",", "0-18446744073709551615" },
		{ "2,1", "none" },
		{ "1", "none" },
		{ "1,2,3", "none" },
		{ "", "none" },
		{ "18446744079,", "none" },
	};
	struct tally_buffer out = { 0 };
	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(times_of(cases[i][0], &out), cases[i][1]);
	tally_buffer_release(&out);
}

static void a_recording_without_times_has_no_shares_of_them(void **state)
{
	struct profile_fixture fixture;
	struct tally_error err = TALLY_ERROR_NONE;
	const struct tally_profile_filter half = { .time = "50%" };
	(void)state;
	fixture_usual(&fixture);
	struct tally_profile *profile = fixture_profile(&fixture, NULL);
	assert_int_equal(tally_recording_filter(profile->recording, &half, &err), -ENODATA);
	assert_non_null(strstr(err.message, "'50%'"));
	assert_non_null(strstr(err.hint, "seconds"));
	fixture_release(&fixture, profile);
}

static void expect_meant(const char *typed, const char *const *candidates, const char *wanted)
{
	struct tally_meant_name meant = { .typed = typed };
	for (; *candidates; candidates++)
		tally_meant_name_try(&meant, *candidates);
	assert_string_equal(meant.name, wanted ? wanted : "");
	assert_int_equal(meant.nearness != TALLY_NEAR_NOT, wanted != NULL);
}

static void a_name_s_end_or_part_or_letters_tell_what_was_meant(void **state)
{
	static const char *const names[] = { "runner", "ns::holder<int>::walk",
					     "ns::holder<int>::run", "A<B::C>::rum", NULL };
	(void)state;
	expect_meant("run", names, "ns::holder<int>::run");
	expect_meant("RUN", names, "runner");
	expect_meant("holder<int>::walk", names, "ns::holder<int>::walk");
	expect_meant("wlak", names, "ns::holder<int>::walk");
	expect_meant("ruum", names, "A<B::C>::rum");
	expect_meant("runer", names, "runner");
	expect_meant("C>::rum", names, "A<B::C>::rum");
	expect_meant("something else", names, NULL);
	expect_meant("", names, NULL);
}

enum { CHAIN_LIMIT = 127, CHAIN_MOST = CHAIN_LIMIT + 73 };

/* Adds a chain of `frames` frames: loop calling itself, `outermost` last.  With `branches`, a
 * branch that is not a call follows. */
static void put_chain(struct profile_fixture *fixture, size_t frames, uint64_t outermost,
		      bool branches)
{
	uint64_t words[8 + CHAIN_MOST + 4] = { 1,
					       LOOP,
					       fixture_ids_of(fixture_pid(), 101),
					       ++fixture->time_ns,
					       0,
					       1,
					       frames + 1,
					       TALLY_CONTEXT_USER };
	size_t count = 8;
	for (size_t i = 0; i < frames; i++)
		words[count++] = (i + 1 < frames ? LOOP : outermost) + 8;
	if (branches) {
		words[count++] = 1;
		words[count++] = LOOP;
		words[count++] = LEAF;
		words[count++] = 0;
	}
	fixture_put_words(fixture, TALLY_RECORD_SAMPLE, TALLY_MISC_USER, words, count);
}

static bool is_marked(const struct tally_profile *profile, size_t row)
{
	const uint8_t *end, *stack = tally_row_stack(&profile->rows, row, &end);
	uint32_t place = UINT32_MAX;
	while (stack < end)
		place = tally_stack_next_place(&stack);
	return profile->places.places.items[place].address == TALLY_PLACE_CUT;
}

struct chain_case {
	size_t frames;
	uint64_t outermost;
	bool is_marked;
};

static void expect_marks(const struct chain_case *cases, size_t count, bool branches)
{
	struct profile_fixture fixture = { 0 };
	uint64_t marked = 0;
	fixture_write_map_of("_start");
	fixture_comm(&fixture, 101, "deep");
	fixture_map(&fixture);
	for (size_t i = 0; i < count; i++)
		put_chain(&fixture, cases[i].frames, cases[i].outermost, branches);
	fixture_finish(&fixture, branches ? TALLY_SAMPLE_BRANCH_STACK : 0, 0);
	struct tally_profile *profile = fixture_profile(&fixture, NULL);
	assert_int_equal(profile->rows.rows.count, count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(is_marked(profile, i), cases[i].is_marked);
		marked += cases[i].is_marked;
	}
	assert_int_equal(profile->recording->counts.chains_full, marked);
	fixture_release(&fixture, profile);
	fixture_write_map();
}

static void a_chain_of_just_the_limit_is_cut_unless_it_begins_where_programs_do(void **state)
{
	static const struct chain_case cases[] = {
		{ CHAIN_LIMIT - 1, LOOP, false },
		{ CHAIN_LIMIT, LOOP, true },
		{ CHAIN_LIMIT, WORK, true },
		{ CHAIN_LIMIT, MAIN, false },
		{ CHAIN_LIMIT + 1, LOOP, true },
		{ CHAIN_LIMIT + 1, MAIN, false },
		/* A longer chain shows that the limit was another one, also for the chains after
		 * it. */
		{ CHAIN_LIMIT + 2, LOOP, false },
		{ CHAIN_LIMIT, LEAF, false },
	};
	const size_t count = sizeof(cases) / sizeof(cases[0]);
	(void)state;
	expect_marks(cases, count, false);
	expect_marks(cases, count, true);
}

/* ---- what lies at addresses of data -------------------------------------- */

volatile int data_twin[32] __attribute__((aligned(64))) = { 1 };

enum {
	TWIN_HEAP = 0x20000000,
	TWIN_ONE = 0x40000000,
	TWIN_TWO = 0x60000000,
	TWIN_BYTES = 0x10000000
};

/* Finds where a variable of the running program is in its file. */
static int find_in_file(struct dl_phdr_info *info, size_t size, void *context)
{
	uint64_t *place = context, address = *place - info->dlpi_addr;
	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
		    address - segment->p_vaddr < segment->p_filesz)
			*place = address - segment->p_vaddr + segment->p_offset;
	}
	return 1; /* the program comes first */
}

/* Adds a mapping from the beginning of the program's file, or of anonymous memory (NULL). */
static void put_data_map(struct profile_fixture *fixture, uint32_t pid, uint64_t start,
			 const char *path)
{
	uint64_t words[5 + 32] = { fixture_ids_of(pid, pid), start, TWIN_BYTES };
	size_t room = (path ? strlen(path) / 8 : 0) + 1;
	if (path)
		memcpy(&words[4], path, strlen(path));
	else
		memcpy(&words[4], "[heap]", 6);
	uint64_t *id = &words[4 + room];
	id[0] = fixture_ids_of(pid, pid);
	id[1] = ++fixture->time_ns;
	id[3] = 1;
	fixture_put_words(fixture, TALLY_RECORD_MMAP, TALLY_MISC_USER | TALLY_MISC_MMAP_DATA, words,
			  8 + room);
}

static void put_access(struct profile_fixture *fixture, uint32_t pid, uint64_t address)
{
	uint64_t words[] = { 1,
			     LEAF,
			     fixture_ids_of(pid, pid),
			     ++fixture->time_ns,
			     address,
			     0,
			     1,
			     2,
			     TALLY_CONTEXT_USER,
			     LEAF };
	fixture_put_words(fixture, TALLY_RECORD_SAMPLE, TALLY_MISC_USER, words, sizeof(words) / 8);
}

/* Returns how many of the facts have this text. */
static unsigned count_texts(const struct tally_profile *profile, enum tally_sort_key key,
			    const char *wanted)
{
	unsigned count = 0;
	for (size_t i = 0; i < profile->facts.facts.count; i++) {
		uint32_t text = *tally_fact(&profile->facts.facts.items[i], key);
		count += !strcmp(tally_strings_text(&profile->recording->names.strings, text),
				 wanted);
	}
	return count;
}

static void link_to_self(char *folder, const char *name, char path[96])
{
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	assert_true(length > 0);
	self[length] = '\0';
	snprintf(path, 96, "%s/%s", folder, name);
	assert_int_equal(symlink(self, path), 0);
}

static struct tally_profile *twins(struct profile_fixture *fixture, const char *one,
				   const char *two, uint64_t place)
{
	const uint32_t pids[] = { fixture_pid(), fixture_pid() + 1 };
	const struct tally_profile_options options = {
		.facts = TALLY_SORT_BIT(TALLY_SORT_DATA_SYMBOL) |
			 TALLY_SORT_BIT(TALLY_SORT_CACHELINE),
	};
	struct tally_recording *recording;
	struct tally_profile *profile;
	put_data_map(fixture, pids[0], TWIN_ONE, one);
	put_data_map(fixture, pids[0], TWIN_TWO, two);
	put_access(fixture, pids[0], TWIN_ONE + place + 4);
	put_access(fixture, pids[0], TWIN_TWO + place + 4);
	put_access(fixture, pids[0], TWIN_ONE + place + 64 + 4); /* only in this process */
	for (unsigned i = 0; i < 2; i++) {
		put_data_map(fixture, pids[i], TWIN_HEAP, NULL);
		put_access(fixture, pids[i], TWIN_HEAP + 8);
	}
	put_access(fixture, pids[1], TWIN_HEAP + 1032);
	fixture_finish(fixture, TALLY_SAMPLE_ADDR, 0);
	assert_int_equal(
		tally_recording_open_memory(fixture->bytes, fixture->size, &recording, NULL), 0);
	assert_int_equal(tally_profile_new(recording, &options, &profile, NULL), 0);
	return profile;
}

static void expect_twins(const char *first, const char *second, bool is_called_alike)
{
	char folder[] = "/tmp/tally-twins-XXXXXX", folders[2][64], paths[2][96], text[3][200];
	struct profile_fixture fixture = { 0 };
	uint64_t place = (uintptr_t)data_twin;
	dl_iterate_phdr(find_in_file, &place);
	assert_true(place < TWIN_BYTES);
	assert_non_null(mkdtemp(folder));
	for (unsigned i = 0; i < 2; i++) {
		snprintf(folders[i], sizeof(folders[i]), "%s/%u", folder, i);
		assert_int_equal(mkdir(folders[i], 0700), 0);
		link_to_self(folders[i], i ? second : first, paths[i]);
	}
	struct tally_profile *profile = twins(&fixture, paths[0], paths[1], place);
	for (unsigned i = 0; i < 2; i++) {
		if (is_called_alike)
			snprintf(text[i], sizeof(text[i]), "data_twin+0x4 (%s at 0x", paths[i]);
		else
			snprintf(text[i], sizeof(text[i]), "data_twin+0x4 (%s)",
				 i ? second : first);
		unsigned found = 0;
		for (size_t j = 0; j < profile->facts.facts.count; j++) {
			uint32_t id = *tally_fact(&profile->facts.facts.items[j],
						  TALLY_SORT_DATA_SYMBOL);
			found += !strncmp(
				tally_strings_text(&profile->recording->names.strings, id), text[i],
				strlen(text[i]));
		}
		assert_int_equal(found, 1);
		snprintf(text[2], sizeof(text[2]), "0x%016" PRIx64 " (pid %" PRIu32 ")",
			 (uint64_t)TWIN_HEAP, fixture_pid() + i);
		assert_int_equal(count_texts(profile, TALLY_SORT_CACHELINE, text[2]), 1);
		unlink(paths[i]);
		rmdir(folders[i]);
	}
	assert_int_equal(count_texts(profile, TALLY_SORT_DATA_SYMBOL, "data_twin+0x44"), 1);
	snprintf(text[0], sizeof(text[0]), "0x%016" PRIx64, (uint64_t)TWIN_HEAP + 1024);
	assert_int_equal(count_texts(profile, TALLY_SORT_CACHELINE, text[0]), 1);
	rmdir(folder);
	fixture_release(&fixture, profile);
}

static void what_objects_call_alike_and_processes_have_at_one_address_is_told_apart(void **state)
{
	(void)state;
	expect_twins("one.so", "two.so", false);
	expect_twins("same.so", "same.so", true);
}

/* Checks the hint of a profile that such a filter makes empty. */
static void expect_hint(const struct tally_profile_filter *filter, const char *wanted)
{
	struct profile_fixture fixture = { 0 };
	struct tally_error err = TALLY_ERROR_NONE;
	fixture_usual(&fixture);
	struct tally_profile *profile = fixture_profile(&fixture, filter);
	uint32_t event;
	assert_int_equal(tally_profile_event(profile, NULL, &event, &err), -ENOENT);
	assert_non_null(strstr(err.message, "passes the filters"));
	assert_non_null(strstr(err.hint, wanted));
	fixture_release(&fixture, profile);
}

static void a_filter_that_no_function_passes_tells_which_was_meant(void **state)
{
	(void)state;
	expect_hint(&(struct tally_profile_filter){ .symbols = "laef" },
		    "did you mean --symbol 'leaf'?");
	expect_hint(&(struct tally_profile_filter){ .symbols = "oop" },
		    "did you mean --symbol 'loop'?");
	expect_hint(&(struct tally_profile_filter){ .symbols = "leaf", .objects = "perf" },
		    "did you mean --dso 'perf.map'");
	/* the function has no samples of its own */
	expect_hint(&(struct tally_profile_filter){ .symbols = "mian" }, "--percent-limit 0");
	expect_hint(&(struct tally_profile_filter){ .symbols = "nothing like it" },
		    "--percent-limit 0");
	expect_hint(&(struct tally_profile_filter){ .symbols = "laef", .comms = "nobody" },
		    "its commands are");
}

static void an_event_is_found_by_name_and_number(void **state)
{
	struct profile_fixture fixture;
	struct tally_error err = TALLY_ERROR_NONE;
	uint32_t event = 9;
	(void)state;
	fixture_usual(&fixture);
	struct tally_profile *profile = fixture_profile(&fixture, NULL);
	assert_int_equal(tally_profile_event(profile, "faults", &event, NULL), 0);
	assert_int_equal(event, 1);
	assert_int_equal(tally_profile_event(profile, "0", &event, NULL), 0);
	assert_int_equal(event, 0);
	assert_int_equal(tally_profile_event(profile, NULL, &event, NULL), 0);
	assert_int_equal(event, 0);
	assert_int_equal(tally_profile_event(profile, "cycles", &event, &err), -ENOENT);
	assert_non_null(strstr(err.hint, "clock, faults"));
	fixture_release(&fixture, profile);
}

static void a_tracepoint_is_found_without_its_system(void **state)
{
	const struct tally_attr tracepoint = { .type = TALLY_TYPE_TRACEPOINT },
				clock = { .type = TALLY_TYPE_SOFTWARE };
	const struct tally_recorded_event events[] = {
		{ .name = "sched:sched_switch", .attr = tracepoint },
		{ .name = "mine:hit:u", .attr = tracepoint },
		{ .name = "yours:hit", .attr = tracepoint },
		{ .name = "cpu-clock:u", .attr = clock },
	};
	(void)state;
	assert_int_equal(tally_event_find(events, 4, "sched_switch"), 0);
	assert_int_equal(tally_event_find(events, 4, "mine:hit"), 4);
	assert_int_equal(tally_event_find(events, 4, "hit"), 4); /* ambiguous */
	assert_int_equal(tally_event_find(events, 2, "hit"), 1);
	assert_int_equal(tally_event_find(events, 4, "u"), 4);
	assert_int_equal(tally_event_find(events, 4, "cpu-clock"), 3);
}

static void what_is_amiss_is_told_and_counted(void **state)
{
	struct profile_fixture fixture;
	struct tally_buffer warnings = { 0 };
	(void)state;
	fixture_usual(&fixture);
	struct tally_profile *profile = fixture_profile(&fixture, NULL);
	tally_profile_warnings(profile->recording, &warnings);
	assert_non_null(strstr(warnings.bytes, "7 records were lost"));
	assert_non_null(strstr(warnings.bytes, "1 malformed line of perf maps was skipped"));
	tally_buffer_release(&warnings);
	fixture_release(&fixture, profile);
}

static void a_map_of_another_user_is_not_believed(void **state)
{
	struct profile_fixture fixture;
	char path[64];
	(void)state;
	fixture_map_path(path);
	if (geteuid() || chown(path, 65534, 65534) < 0) {
		print_message("SKIP: needs root\n");
		skip();
	}
	fixture_usual(&fixture);
	struct tally_profile *profile = fixture_profile(&fixture, NULL);
	uint32_t function = tally_profile_function(profile, 0);
	assert_string_equal(tally_names_text(&profile->recording->names, function), "[unknown]");
	assert_int_equal(profile->recording->names.gaps.distrusted_maps, 1);
	assert_int_equal(chown(path, 0, 0), 0);
	fixture_release(&fixture, profile);
}

static void a_map_that_is_a_link_is_not_followed(void **state)
{
	struct profile_fixture fixture;
	char path[64], moved[80];
	(void)state;
	fixture_map_path(path);
	snprintf(moved, sizeof(moved), "%s.moved", path);
	assert_int_equal(rename(path, moved), 0);
	assert_int_equal(symlink(moved, path), 0);
	fixture_usual(&fixture);
	struct tally_profile *profile = fixture_profile(&fixture, NULL);
	assert_string_equal(
		tally_names_text(&profile->recording->names, tally_profile_function(profile, 0)),
		"[unknown]");
	fixture_release(&fixture, profile);
	assert_int_equal(rename(moved, path), 0);
}

/* {clock,faults}:S: a sample of the leader contains what each member has counted so far. */
static void a_group_gives_each_event_what_it_counted(void **state)
{
	struct profile_fixture fixture = { 0 };
	uint64_t samples, period;
	(void)state;
	fixture_comm(&fixture, fixture_pid(), "alpha");
	fixture_map(&fixture);
	for (uint64_t i = 1; i <= 3; i++) {
		/* IDENTIFIER IP TID TIME CPU PERIOD, READ: nr {value, id}…, CALLCHAIN: nr */
		uint64_t words[] = { 1,
				     LEAF,
				     fixture_ids_of(fixture_pid(), fixture_pid()),
				     ++fixture.time_ns,
				     0,
				     999,
				     3,
				     100 * i,
				     1,
				     i == 2 ? 7 : 7 * i,
				     2,
				     5,
				     77,
				     1,
				     TALLY_CONTEXT_USER };
		words[9] = i == 1 || i == 2 ? 7 : 20;
		fixture_put_words(&fixture, TALLY_RECORD_SAMPLE, TALLY_MISC_USER, words, 15);
	}
	fixture_finish(&fixture, TALLY_SAMPLE_READ, TALLY_FORMAT_GROUP | TALLY_FORMAT_ID);
	struct tally_profile *profile = fixture_profile(&fixture, NULL);
	tally_profile_totals(profile, 0, &samples, &period);
	assert_int_equal(samples, 3);
	assert_int_equal(period, 300);
	tally_profile_totals(profile, 1, &samples, &period);
	assert_int_equal(samples, 2); /* no counts between the first and the second */
	assert_int_equal(period, 20);
	assert_int_equal(profile->recording->counts.unknown_ids, 3);
	fixture_release(&fixture, profile);
}

static void a_marker_that_nobody_defined_is_no_context(void **state)
{
	struct profile_fixture fixture = { 0 };
	const uint64_t stack[] = { LEAF + 8, (uint64_t)-56, MAIN + 8 };
	(void)state;
	fixture_comm(&fixture, fixture_pid(), "alpha");
	fixture_map(&fixture);
	fixture_sample(&fixture, 1, fixture_pid(), 0, 1, stack, 3);
	fixture_finish(&fixture, 0, 0);
	struct tally_profile *profile = fixture_profile(&fixture, NULL);
	assert_int_equal(profile->places.places.count, 2);
	fixture_release(&fixture, profile);
}

/* Returns the address of a kernel function, as root sees it. */
static uint64_t kernel_address(const char *wanted)
{
	char line[512], name[256];
	unsigned long long address;
	uint64_t found = 0;
	FILE *file = fopen("/proc/kallsyms", "r");
	while (file && !found && fgets(line, sizeof(line), file))
		if (sscanf(line, "%llx %*c %255s", &address, name) == 2 && !strcmp(name, wanted))
			found = address;
	if (file)
		fclose(file);
	return found;
}

static void kernel_mmap(struct profile_fixture *fixture, uint64_t start)
{
	struct {
		uint64_t ids, start, length, offset;
		char name[24];
		uint64_t trailer[4];
	} mmap = { UINT32_MAX, start, 0x1000000, start, "[kernel.kallsyms]_text",
		   { 0, ++fixture->time_ns, 0, 1 } };
	fixture_put_words(fixture, TALLY_RECORD_MMAP, TALLY_MISC_KERNEL, (const uint64_t *)&mmap,
			  sizeof(mmap) / 8);
}

/* A recording made before a reboot: KASLR has moved the kernel. */
static void a_kernel_that_has_moved_is_named_all_the_same(void **state)
{
	struct profile_fixture fixture = { 0 };
	const uint64_t shift = 0x5600000, text = kernel_address("_text"),
		       function = kernel_address("vfs_read");
	(void)state;
	if (!text || !function) {
		print_message("SKIP: kallsyms hides its addresses\n");
		skip();
	}
	const uint64_t words[] = { 1,
				   function + shift + 4,
				   fixture_ids_of(fixture_pid(), fixture_pid()),
				   5,
				   0,
				   1,
				   2,
				   TALLY_CONTEXT_KERNEL,
				   function + shift + 4 };
	kernel_mmap(&fixture, text + shift);
	fixture_put_words(&fixture, TALLY_RECORD_SAMPLE, TALLY_MISC_KERNEL, words, 9);
	fixture_finish(&fixture, 0, 0);
	struct tally_profile *profile = fixture_profile(&fixture, NULL);
	const char *name = tally_names_text(&profile->recording->names,
					    tally_profile_function(profile, 0));
	assert_non_null(strstr(name, "vfs_read"));
	fixture_release(&fixture, profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_sample_counts_once),
		cmocka_unit_test(a_backslash_makes_a_pattern_s_letters_ordinary),
		cmocka_unit_test(filters_take_what_they_name),
		cmocka_unit_test(shares_of_the_time_meet_and_do_not_overlap),
		cmocka_unit_test(a_recording_without_times_has_no_shares_of_them),

		cmocka_unit_test(a_name_s_end_or_part_or_letters_tell_what_was_meant),
		cmocka_unit_test(a_filter_that_no_function_passes_tells_which_was_meant),
		cmocka_unit_test(
			what_objects_call_alike_and_processes_have_at_one_address_is_told_apart),
		cmocka_unit_test(
			a_chain_of_just_the_limit_is_cut_unless_it_begins_where_programs_do),
		cmocka_unit_test(an_event_is_found_by_name_and_number),
		cmocka_unit_test(a_tracepoint_is_found_without_its_system),
		cmocka_unit_test(what_is_amiss_is_told_and_counted),
		cmocka_unit_test(a_map_of_another_user_is_not_believed),
		cmocka_unit_test(a_map_that_is_a_link_is_not_followed),
		cmocka_unit_test(a_group_gives_each_event_what_it_counted),
		cmocka_unit_test(a_kernel_that_has_moved_is_named_all_the_same),
		cmocka_unit_test(a_marker_that_nobody_defined_is_no_context),
	};
	return cmocka_run_group_tests_name("profile", tests, fixture_set_up_map,
					   fixture_tear_down_map);
}
