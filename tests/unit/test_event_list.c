/* `tally list` in its three forms.  G1. */
#include "test.h"

#include "../event_fixture.h"
#include "output/output.h"

static const char format[] =
	"name: sched_switch\nID: 316\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
	"\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
	"\tfield:__data_loc char[] name;\toffset:24;\tsize:4;\tsigned:1;\n"
	"\tfield:void * work;\toffset:32;\tsize:8;\tsigned:0;\n"
	"\nprint fmt: \"field:x y;\", REC->prev_comm\n";

static const struct tally_listed_event events[] = {
	{ .kind = TALLY_EVENT_HARDWARE,
	  .name = "branch-instructions",
	  .alias = "branches",
	  .description = "retired branches",
	  .unavailable = "no PMU" },
	{ .kind = TALLY_EVENT_HARDWARE,
	  .name = "instructions",
	  .description = "retired",
	  .unavailable = "no PMU" },
	{ .kind = TALLY_EVENT_PMU,
	  .name = "power/energy-pkg/",
	  .parent = "power",
	  .pmu = &fixture_pmus[1],
	  .pmu_event = &fixture_power_events[0] },
	{ .kind = TALLY_EVENT_PMU,
	  .name = "cpu/event=VALUE,.../",
	  .parent = "cpu",
	  .pmu = &fixture_pmus[0],
	  .is_form = true },
	{ .kind = TALLY_EVENT_TRACEPOINT, .name = "irq:entry", .parent = "irq" },
	{ .kind = TALLY_EVENT_TRACEPOINT, .name = "sched:\033[31mswitch", .parent = "sched" },
	{ .kind = TALLY_EVENT_TRACEPOINT, .name = "sched:wakeup", .parent = "sched" },
};

static const struct tally_event_listing listing = { events, FIXTURE_COUNT(events), NULL };

static char *text(struct tally_event_list_style style)
{
	struct tally_buffer out = { 0 };
	tally_event_list_text(&listing, &style, &out);
	assert_false(out.failed);
	return out.bytes;
}

static void pipe_has_an_event_per_line_its_name_first(void **state)
{
	(void)state;
	char *out = text((struct tally_event_list_style){ .columns = 80 });
	size_t i = 0;
	for (char *rest = out, *line; (line = strsep(&rest, "\n")) && *line; i++) {
		if (i != 5) /* the name that contains characters to clean */
			assert_int_equal(strncmp(line, events[i].name, strlen(events[i].name)), 0);
		assert_true(line[strlen(line) - 1] != ' ');
	}
	assert_int_equal(i, FIXTURE_COUNT(events));
	free(out);
	out = text((struct tally_event_list_style){ .columns = 80 });
	assert_non_null(strstr(out, "branch-instructions OR branches "));
	assert_non_null(strstr(out, "retired branches (not here: no PMU)\n"));
	assert_non_null(strstr(out, "event=0x02 , in Joules"));
	assert_non_null(strstr(
		out,
		"terms: event (config:0-7,32-35), umask (config:8-15), edge (config:18), ldlat "
		"(config1:0-15)"));
	free(out);
}

static void no_form_sends_others_escapes_to_a_terminal(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		char *out = text((struct tally_event_list_style){
			.terminal = i & 1, .summary = i & 2, .columns = 80 });
		assert_null(strchr(out, '\033'));
		free(out);
	}
}

static void shared_reason_is_said_once_on_a_terminal(void **state)
{
	(void)state;
	char *out = text((struct tally_event_list_style){ .terminal = true, .columns = 80 });
	const char *first = strstr(out, "no PMU");
	assert_non_null(first);
	assert_null(strstr(first + 1, "no PMU"));
	free(out);
}

static void shared_reason_is_said_once_in_a_pipe_and_each_line_marked(void **state)
{
	(void)state;
	const struct tally_listed_event mixed[] = {
		{ .name = "a", .unavailable = "no PMU" },
		{ .name = "b", .unavailable = "no PMU" },
		{ .name = "c", .unavailable = "too old" },
		{ .name = "d" },
		{ .name = "e", .unavailable = "too old" },
		{ .kind = TALLY_EVENT_CACHE, .name = "f", .unavailable = "too old" },
	};
	const char *const ends[] = { "(not here: no PMU)",  "(not here)",
				     "(not here: too old)", "[hardware event]",
				     "(not here: too old)", "(not here: too old)" };
	const struct tally_event_listing some = { mixed, FIXTURE_COUNT(mixed), NULL };
	struct tally_buffer out = { 0 };
	size_t i = 0;
	tally_event_list_text(&some, &(struct tally_event_list_style){ .columns = 80 }, &out);
	for (char *rest = out.bytes, *line; (line = strsep(&rest, "\n")) && *line; i++)
		assert_string_equal(line + strlen(line) - strlen(ends[i]), ends[i]);
	assert_int_equal(i, FIXTURE_COUNT(ends));
	tally_buffer_release(&out);
}

static void descriptions_keep_their_column_on_a_terminal(void **state)
{
	(void)state;
	const struct tally_listed_event row = {
		.name = "short", .description = "one two three four five six seven"
	};
	const struct tally_event_listing some = { &row, 1, NULL };
	const struct { unsigned columns; const char *text;
	} cases[] = {
		{ 61, "  short                     one two three four five six seven\n" },
		{ 60,
		  "  short                     one two three four five six\n"
		  "                            seven\n" },
		{ 52,
		  "  short                     one two three four five\n"
		  "                            six seven\n" },
		/* too narrow for columns: the terminal breaks the line */
		{ 51, "  short                     one two three four five six seven\n" },
	};
	for (size_t i = 0; i < FIXTURE_COUNT(cases); i++) {
		struct tally_buffer out = { 0 };
		tally_event_list_text(&some,
				      &(struct tally_event_list_style){
					      .terminal = true, .columns = cases[i].columns },
				      &out);
		assert_string_equal(strchr(out.bytes, '\n') + 1, cases[i].text);
		tally_buffer_release(&out);
	}
}

static void summary_counts_tracepoints_by_system(void **state)
{
	(void)state;
	char *out = text((struct tally_event_list_style){
		.terminal = true, .summary = true, .columns = 80 });
	assert_non_null(strstr(out, "tracepoints (3)"));
	assert_non_null(strstr(out, "irq (1)"));
	assert_non_null(strstr(out, "sched (2)"));
	assert_null(strstr(out, "sched:wakeup"));
	free(out);
	out = text(
		(struct tally_event_list_style){ .terminal = true, .summary = true, .columns = 1 });
	assert_non_null(strstr(out, "sched (2)\n")); /* the narrowest terminal */
	free(out);
}

static void format_text_gives_the_events_own_fields(void **state)
{
	(void)state;
	struct tally_arena arena = TALLY_ARENA_INIT;
	struct tally_listed_event event = { 0 };
	assert_int_equal(tally_event_list_fields(format, &arena, &event), 0);
	assert_int_equal(event.field_count, 3);
	assert_string_equal(event.fields[0].name, "prev_comm");
	assert_string_equal(event.fields[0].type, "char[16]");
	assert_int_equal(event.fields[0].offset, 8);
	assert_int_equal(event.fields[0].size, 16);
	assert_string_equal(event.fields[1].name, "name");
	assert_string_equal(event.fields[1].type, "__data_loc char[]");
	assert_true(event.fields[1].is_signed);
	assert_string_equal(event.fields[2].type, "void *");
	tally_arena_release(&arena);
}

static void json_says_what_can_not_be_counted(void **state)
{
	(void)state;
	struct tally_buffer out = { 0 };
	tally_event_list_json(&listing, &out);
	assert_non_null(strstr(out.bytes, "\"version\": 1"));
	assert_non_null(strstr(out.bytes, "\"alias\": \"branches\""));
	assert_non_null(strstr(out.bytes, "\"unavailable\": \"no PMU\""));
	assert_non_null(strstr(out.bytes, "\"unit\": \"Joules\""));
	assert_non_null(strstr(out.bytes, "\"bits\": \"0-7,32-35\""));
	assert_non_null(strstr(out.bytes, "\"system\": \"sched\""));
	tally_buffer_release(&out);
}

static int list(const char *arguments)
{
	char command[512];
	snprintf(command, sizeof(command),
		 "\"${TALLY_BUILD_ROOT:-build}/tally\" list %s >/dev/null 2>&1", arguments);
	int status = system(command);
	return status < 0 ? status : status >> 8;
}

static void nothing_found_is_a_failure(void **state)
{
	(void)state;
	assert_int_equal(list("sw"), 0);
	assert_int_equal(list("hw branches"), 0);
	assert_int_equal(list("sw --json"), 0);
	assert_int_equal(list("branch-instr -j"), 0);
	assert_int_equal(list("'cpu-c*k'"), 0);
	assert_int_equal(list("sw branches"), 1);
	assert_int_equal(list("no-such-event"), 1);
	assert_int_equal(list("--no-such-option"), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pipe_has_an_event_per_line_its_name_first),
		cmocka_unit_test(no_form_sends_others_escapes_to_a_terminal),
		cmocka_unit_test(shared_reason_is_said_once_on_a_terminal),
		cmocka_unit_test(shared_reason_is_said_once_in_a_pipe_and_each_line_marked),
		cmocka_unit_test(descriptions_keep_their_column_on_a_terminal),
		cmocka_unit_test(summary_counts_tracepoints_by_system),
		cmocka_unit_test(format_text_gives_the_events_own_fields),
		cmocka_unit_test(json_says_what_can_not_be_counted),
		cmocka_unit_test(nothing_found_is_a_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
