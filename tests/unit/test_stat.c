/* `stat` with scripted counts: cases that this machine's PMU, or its lack of one, can't show. */
#include "test.h"

#include "counting/counter_fit.h"
#include "counting/stat_run.h"
#include "event/event.h"
#include "provider/scripted.h"
#include "stat/stat.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

struct stat_test {
	struct tally_arena arena;
	struct tally_catalogue catalogue;
	struct tally_event_list events;
	struct tally_provider *provider;
	struct tally_target target;
	struct tally_stat_options options;
	const struct tally_stat_view_ops *ops;
	struct tally_buffer text;
	struct tally_stat_view view;
	struct tally_event_count rows[16]; /* rows of the last report; their strings are freed */
	int status;
	enum tally_count_by by;
};

static void keep(void *context, const struct tally_stat_report *report)
{
	struct stat_test *t = context;
	t->ops->show(&t->view, report);
	for (size_t i = 0; i < report->table.count && i < 16; i++)
		t->rows[i] = report->table.rows[i];
}

static char *true_command[] = { (char[]){ "true" }, NULL };

static int setup(void **state)
{
	struct stat_test *t = calloc(1, sizeof(*t));
	t->target.command = true_command;
	t->options.runs = 1;
	t->ops = &tally_stat_view_table;
	t->view.separator = ",";
	*state = t;
	return tally_catalogue_init(&t->catalogue);
}

static int teardown(void **state)
{
	struct stat_test *t = *state;
	if (t->provider)
		t->provider->ops->release(t->provider);
	tally_event_list_release(&t->events);
	tally_catalogue_release(&t->catalogue);
	tally_target_release(&t->target);
	tally_buffer_release(&t->text);
	tally_arena_release(&t->arena);
	free(t);
	return 0;
}

static const char *run(struct stat_test *t, const char *script, const char *events)
{
	struct tally_error err = TALLY_ERROR_NONE;
	if (tally_provider_scripted_parse(script, &t->provider, &err) < 0)
		fail_msg("%s", err.message);
	if (tally_event_parse(events, &t->catalogue, &t->arena, &t->events, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(tally_target_resolve(&t->target, &err), 0);
	t->options.counting = (struct tally_counting_options){ .provider = t->provider,
							       .events = t->events.items,
							       .event_count = t->events.count,
							       .target = &t->target,
							       .by = t->by };
	t->options.target = &t->target;
	t->options.on_report = keep;
	t->options.context = t;
	t->view.out = &t->text;
	if (tally_stat_run(&t->options, &t->status, &err) < 0)
		fail_msg("%s", err.message);
	return tally_buffer_string(&t->text);
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no '%s' in:\n%s", part, text);
}

static void lacks(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("unexpected '%s' in:\n%s", part, text);
}

static void counts_and_ratios_are_shown(void **state)
{
	const char *text = run(*state,
			       "cycles 1000000\ninstructions 2310000\nL1-dcache-loads 500000\n"
			       "L1-dcache-load-misses 12500\n",
			       "cycles,instructions,L1-dcache-loads,L1-dcache-load-misses");
	has(text, "2,310,000");
	has(text, "2.31 insn per cycle, CPI 0.43");
	has(text, "2.50 % of all L1-dcache accesses");
	has(text, "(scripted)"); /* nothing is presented as hardware's */
}

/* Returns the state of the first of `count` events that existed for 1 ms, of a command that used
 * `used_ns`. */
static enum tally_count_state covered(struct stat_test *t, size_t count, uint64_t used_ns)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_resource_usage usage = { .user_ns = used_ns };
	struct tally_counting counting;
	struct tally_buffer events = { 0 };
	for (size_t i = 0; i < count; i++)
		tally_buffer_printf(&events, "%scycles", i ? "," : "");
	if (!t->provider)
		assert_int_equal(tally_provider_scripted_parse("cycles 1000000/1000000/1000000",
							       &t->provider, &err),
				 0);
	assert_int_equal(tally_event_parse(tally_buffer_string(&events), &t->catalogue, &t->arena,
					   &t->events, &err),
			 0);
	struct tally_counting_options options = { .provider = t->provider,
						  .events = t->events.items,
						  .event_count = t->events.count,
						  .target = &t->target,
						  .command_pid = getpid() };
	assert_int_equal(t->events.count, count);
	assert_int_equal(tally_counting_open(&options, &counting, &err), 0);
	tally_counting_read(&counting, &usage);
	assert_int_equal(counting.rows[0].state, TALLY_COUNT_OK);
	tally_counting_check_coverage(&counting, &usage);
	enum tally_count_state state = counting.rows[0].state;
	tally_counting_release(&counting);
	tally_event_list_release(&t->events);
	t->events = (struct tally_event_list){ 0 };
	tally_buffer_release(&events);
	return state;
}

static void what_hundreds_of_events_cost_at_exec_is_no_drop(void **state)
{
	assert_int_equal(covered(*state, 1, 3500000), TALLY_COUNT_OK);
	assert_int_equal(covered(*state, 1, 8000000), TALLY_COUNT_WITHHELD);
	assert_int_equal(covered(*state, 700, 8000000), TALLY_COUNT_OK);
	assert_int_equal(covered(*state, 700, 30000000), TALLY_COUNT_WITHHELD);
}

static void scaled_values_say_so(void **state)
{
	struct stat_test *t = *state;
	const char *text = run(t, "cycles 630/1000/630", "cycles");
	has(text, "1,000");
	has(text, "(63 % of the time, scaled)");
	assert_true(fabs(t->rows[0].value - 1000) < 1e-9);
	assert_int_equal(t->rows[0].raw, 630);
}

static void never_running_is_not_counted(void **state)
{
	struct stat_test *t = *state;
	const char *text = run(t, "cycles 0/1000/0\ninstructions 5", "cycles,instructions");
	has(text, "<not counted>");
	has(text, "was never scheduled");
	lacks(text, "per cycle");
}

static void an_uncountable_event_drags_no_other_down(void **state)
{
	struct stat_test *t = *state;
	const char *text = run(
		t, "cycles 77\nLLC-loads refuse ENOENT\nbranches 5\nbus-cycles refuse EBUSY",
		"{LLC-loads,cycles,branches},bus-cycles");
	has(text, "<not supported>");
	has(text, "# this CPU has no such event");
	has(text, "# another user holds the counter");
	/* it leads the group now, and the group's values are in the right rows */
	assert_int_equal(t->rows[1].value, 77);
	assert_int_equal(t->rows[2].value, 5);
}

static void a_pinned_event_in_error_is_not_counted(void **state)
{
	const char *text = run(*state, "cycles error", "cycles");
	has(text, "<not counted>");
	has(text, "lost its counter");
}

static void a_strong_group_that_does_not_fit_says_so(void **state)
{
	struct stat_test *t = *state;
	const char *text = run(t, "counters 2\ncycles 1\ninstructions 2\nbranches 3",
			       "{cycles,instructions,branches}");
	has(text, "# does not fit into its group");
	assert_int_equal(t->rows[1].value, 2);
	assert_int_equal(t->rows[2].state, TALLY_COUNT_NOT_SUPPORTED);
}

static void a_weak_group_that_does_not_fit_is_opened_singly(void **state)
{
	struct stat_test *t = *state;
	run(t, "counters 2\ncycles 1/1000/500\ninstructions 2\nbranches 3",
	    "{cycles,instructions,branches}:W");
	assert_int_equal(t->rows[0].value, 2);
	assert_int_equal(t->rows[1].value, 2);
	assert_int_equal(t->rows[2].value, 3);
	assert_false(t->rows[2].was_scaled);
}

/* ---- events and counters --------------------------------------------------- */

static void parse(struct stat_test *t, const char *script, const char *events)
{
	struct tally_error err = TALLY_ERROR_NONE;
	if (tally_provider_scripted_parse(script, &t->provider, &err) < 0)
		fail_msg("%s", err.message);
	if (tally_event_parse(events, &t->catalogue, &t->arena, &t->events, &err) < 0)
		fail_msg("%s", err.message);
}

#define SIX_EVENTS \
	"cycles 1\ninstructions 2\nbranches 3\nbranch-misses 4\ncache-misses 5\npage-faults 6\n"

static void a_group_that_never_fits_is_found_before_the_run(void **state)
{
	struct stat_test *t = *state;
	struct tally_unfit_group group;
	parse(t, "counters 3\n" SIX_EVENTS,
	      "{cycles,branches},{cycles,instructions,branches,branch-misses,page-faults},cycles");
	assert_int_equal(tally_fit_check_group(t->provider, t->events.items, t->events.count, 0,
					       false, &group),
			 1);
	assert_int_equal(group.first, 2);
	assert_int_equal(group.count, 5);
	assert_int_equal(group.fitting, 3);
	assert_false(group.is_accepted);
	assert_false(group.was_split);
	assert_true(t->events.items[2].group >= 0);
	const char *text = tally_fit_group_text(&group, t->events.items, 1, &t->arena);
	has(text, "{cycles,instructions,branches,branch-misses,page-faults}");
	has(text, "3 of its 5 events");
	has(text, "--split-groups");
	/* the kernel refuses the group by itself: the watchdog has no part in it */
	lacks(text, "watchdog");
	assert_int_equal(tally_fit_check_group(t->provider, t->events.items, t->events.count, 7,
					       false, &group),
			 0);
}

static void a_group_that_opens_and_is_never_counted_names_the_causes(void **state)
{
	struct stat_test *t = *state;
	struct tally_unfit_group group;
	parse(t, "counters 3 held 1\n" SIX_EVENTS, "{cycles,instructions,branches}");
	assert_int_equal(tally_fit_check_group(t->provider, t->events.items, 3, 0, true, &group),
			 1);
	assert_int_equal(group.fitting, 2);
	assert_true(group.is_accepted);
	assert_true(group.was_split);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(t->events.items[i].group, TALLY_EVENT_NO_GROUP);
	has(tally_fit_group_text(&group, t->events.items, 1, &t->arena), "kernel.nmi_watchdog=0");
	const char *text = tally_fit_group_text(&group, t->events.items, 0, &t->arena);
	lacks(text, "watchdog");
	has(text, "another user holds them");
}

static void find_passes(struct stat_test *t, struct tally_count_passes *passes)
{
	struct tally_error err = TALLY_ERROR_NONE;
	assert_int_equal(tally_count_passes_find(t->provider, t->events.items, t->events.count,
						 passes, &err),
			 0);
}

static void assert_passes(struct stat_test *t, const char *script, const char *events,
			  const char *expected)
{
	struct tally_count_passes passes;
	char text[64] = "";
	parse(t, script, events);
	find_passes(t, &passes);
	for (size_t i = 0; i < t->events.count; i++)
		strcat(text, (const char *[]){ "*", "0", "1", "2", "3" }[passes.pass_of[i] + 1]);
	assert_string_equal(text, expected);
	tally_count_passes_release(&passes);
	tally_event_list_release(&t->events);
	t->provider->ops->release(t->provider);
	t->provider = NULL;
}

static void passes_fill_the_counters_and_keep_groups_together(void **state)
{
	struct stat_test *t = *state;
	assert_passes(t, "counters 8\n" SIX_EVENTS, "cycles,instructions,branches,page-faults",
		      "0*0*");
	assert_passes(t, "counters 2\n" SIX_EVENTS,
		      "cycles,branches,branch-misses,cache-misses,page-faults", "0011*");
	/* instructions are in every pass */
	assert_passes(t, "counters 2\n" SIX_EVENTS, "cycles,instructions,branches", "0*1");
	/* unless there is no room beside them */
	assert_passes(t, "counters 2\n" SIX_EVENTS, "instructions,{cycles,branches}", "011");
	/* a later event fills a gap */
	assert_passes(t, "counters 3\n" SIX_EVENTS,
		      "{cycles,branches},{branch-misses,cache-misses},cycles", "00110");
	assert_passes(t, "counters 3 held 1\n" SIX_EVENTS, "cycles,branches,branch-misses", "001");
	/* what can't be opened is in every pass, and has its reason there */
	assert_passes(t, "counters 1\n" SIX_EVENTS "LLC-loads refuse ENOENT",
		      "cycles,LLC-loads,branches", "0*1");
	/* an event without a free counter doesn't keep others away */
	assert_passes(t, "counters 1 held 1\n" SIX_EVENTS, "cycles,branches", "01");
}

/* Runs with passes.  Returns what tally_stat_run() returns. */
static int run_passes(struct stat_test *t, const char *script, const char *events, double maximum,
		      struct tally_error *err)
{
	struct tally_count_passes passes;
	parse(t, script, events);
	find_passes(t, &passes);
	assert_int_equal(tally_target_resolve(&t->target, err), 0);
	t->options.counting = (struct tally_counting_options){ .provider = t->provider,
							       .events = t->events.items,
							       .event_count = t->events.count,
							       .target = &t->target,
							       .passes = &passes };
	t->options.target = &t->target;
	t->options.on_report = keep;
	t->options.context = t;
	t->options.max_difference = maximum;
	t->view.out = &t->text;
	int result = tally_stat_run(&t->options, &t->status, err);
	tally_count_passes_release(&passes);
	return result;
}

static void passes_are_merged_and_their_agreement_is_shown(void **state)
{
	struct stat_test *t = *state;
	struct tally_error err = TALLY_ERROR_NONE;
	assert_int_equal(run_passes(t,
				    "counters 2\ncycles 1000\ninstructions 2000\n"
				    "instructions 2020\nbranches 300\n",
				    "cycles,instructions,branches", 0, &err),
			 0);
	assert_int_equal(t->rows[0].value, 1000);
	assert_int_equal(t->rows[1].value, 2010);
	assert_int_equal(t->rows[2].value, 300);
	const char *text = tally_buffer_string(&t->text);
	has(text, "once for each of 2 sets");
	has(text, "instructions differs");
	has(text, "by 1.0 %");
	lacks(text, "interrupted");
}

static void ratios_of_different_passes_are_marked(void **state)
{
	struct stat_test *t = *state;
	struct tally_error err = TALLY_ERROR_NONE;
	assert_int_equal(run_passes(t,
				    "counters 2\ncycles 1000\ninstructions 2000\nbranches 300\n"
				    "branch-misses 3\n",
				    "cycles,instructions,branches,branch-misses", 0, &err),
			 0);
	const char *text = tally_buffer_string(&t->text);
	has(text, " ~1.00 % of all branches");
	has(text, " 2.00 insn per cycle"); /* instructions were in both */
	has(text, "~: the ratio");
}

static void different_work_in_the_passes_is_an_error(void **state)
{
	static const char script[] = "counters 2\ncycles 1000\ninstructions 2000\n"
				     "instructions 2200\nbranches 300\n";
	struct stat_test *t = *state;
	struct tally_error err = TALLY_ERROR_NONE;
	assert_true(run_passes(t, script, "cycles,instructions,branches", 0, &err) < 0);
	has(err.message, "instructions differs by 9.1 % (2000 to 2200; the limit is 5 %)");
	has(err.hint, "--max-difference");
	assert_int_equal(t->text.length, 0); /* no table */
}

static void a_difference_that_chance_explains_is_none(void **state)
{
	/* runs of -r in turns: pass 0 has 2000 and 2500, pass 1 has 2250 and 2600 */
	static const char script[] = "counters 2\ncycles 1000\ninstructions 2000\n"
				     "instructions 2250\ninstructions 2500\ninstructions 2600\n"
				     "branches 300\n";
	struct stat_test *t = *state;
	struct tally_error err = TALLY_ERROR_NONE;
	t->options.runs = 2;
	assert_int_equal(run_passes(t, script, "cycles,instructions,branches", 0.01, &err), 0);
	has(tally_buffer_string(&t->text), "by 7.2 %");
}

static void a_group_is_read_with_its_leaders_times(void **state)
{
	struct stat_test *t = *state;
	run(t, "cycles 100/1000/500\ninstructions 300", "{cycles,instructions}");
	assert_int_equal(t->rows[0].value, 200);
	assert_int_equal(t->rows[1].value, 600);
}

static void no_pmu_is_told_once_below_and_shortly_on_each_row(void **state)
{
	const char *text = run(*state, "page-faults 3\n* refuse ENOENT",
			       "page-faults,cycles,instructions");
	has(text, "cycles                # no hardware counters here");
	has(text, "note: no hardware counters");
}

static void notes_are_no_wider_than_the_terminal(void **state)
{
	struct stat_test *t = *state;
	t->view.columns = 60;
	const char *note = strstr(run(t, "page-faults 3\n* refuse ENOENT", "page-faults,cycles"),
				  " note:");
	assert_non_null(note);
	for (; *note; note += strcspn(note, "\n") + 1)
		assert_true(strcspn(note, "\n") <= 60);
}

/* B8 */
static void user_only_is_noted_on_the_name_and_once_below(void **state)
{
	struct stat_test *t = *state;
	const char *text = run(t, "privilege user\ncycles 9\ninstructions 18\ntask-clock 5000",
			       "cycles,instructions:p,task-clock");
	has(text, "cycles:u");
	has(text, "instructions:pu");
	has(text, "2.00 insn per cycle");
	lacks(text, "task-clock:u"); /* a clock has no modes */
	has(text, "note: only user mode is counted (:u)");
}

static void what_user_only_empties_is_taken_from_resource_usage(void **state)
{
	struct stat_test *t = *state;
	const char *text = run(t, "privilege user\ncontext-switches 0\ncpu-migrations 0\ncycles 4",
			       "context-switches,cpu-migrations,cycles");
	has(text, "(wait4)");
	assert_int_equal(t->rows[0].state, TALLY_COUNT_OK);
	assert_string_equal(t->rows[0].source, "wait4");
	assert_int_equal(t->rows[1].state, TALLY_COUNT_WITHHELD);
	has(text, "<withheld>");
}

static void an_asked_for_user_only_switch_count_is_not_0_either(void **state)
{
	struct stat_test *t = *state;
	run(t, "context-switches 0\ncpu-migrations 0", "context-switches:u,cpu-migrations:u");
	assert_string_equal(t->rows[0].source, "wait4");
	assert_int_equal(t->rows[1].state, TALLY_COUNT_WITHHELD);
}

static void an_empty_user_only_tracepoint_is_withheld(void **state)
{
	struct stat_test *t = *state;
	struct tally_error err = TALLY_ERROR_NONE;
	t->target.command = true_command;
	struct tally_event event = { .kind = TALLY_EVENT_TRACEPOINT,
				     .name = "sched:sched_switch",
				     .unit = "",
				     .scale = 1,
				     .attr = { .type = TALLY_TYPE_TRACEPOINT, .config = 42 },
				     .group = -1 };
	t->events.items = malloc(sizeof(event));
	t->events.items[0] = event;
	t->events.count = t->events.capacity = 1;
	const char *text = run(t, "privilege user\ntracepoint:42 0\ncycles 3", "cycles");
	(void)err;
	has(text, "sched:sched_switch:u");
	assert_int_equal(t->rows[0].state, TALLY_COUNT_WITHHELD);
	assert_int_equal(t->rows[1].value, 3);
}

static void refusal_altogether_falls_back_to_resource_usage(void **state)
{
	struct stat_test *t = *state;
	const char *text = run(t, "* refuse ENOSYS",
			       "task-clock,page-faults,context-switches,cpu-migrations,cycles");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(t->rows[i].state, TALLY_COUNT_OK);
		assert_string_equal(t->rows[i].source, "wait4");
	}
	assert_true(t->rows[1].value > 0);
	assert_int_equal(t->rows[3].state, TALLY_COUNT_NOT_SUPPORTED);
	assert_int_equal(t->rows[4].state, TALLY_COUNT_NOT_SUPPORTED);
	has(text, "(wait4)");
	has(text, "note: perf_event_open(2) is missing");
}

static void repeated_runs_give_mean_and_sigma(void **state)
{
	struct stat_test *t = *state;
	t->options.runs = 3;
	const char *text = run(t, "cycles 90\ncycles 100\ncycles 110", "cycles");
	assert_true(fabs(t->rows[0].value - 100) < 1e-9);
	assert_int_equal(t->rows[0].spread.count, 3);
	has(text, "±");
	has(text, "10.00 %");
	has(text, "mean ± σ of 3 runs");
}

static void runs_that_did_not_count_are_left_out_of_the_mean(void **state)
{
	struct stat_test *t = *state;
	t->options.runs = 3;
	run(t, "cycles 90\ncycles 0/100/0\ncycles 110", "cycles");
	assert_true(fabs(t->rows[0].value - 100) < 1e-9);
	assert_int_equal(t->rows[0].spread.count, 2);
}

static void cpus_are_summed_each_with_its_own_scale(void **state)
{
	struct stat_test *t = *state;
	struct tally_error err = TALLY_ERROR_NONE;
	assert_int_equal(tally_target_set_cpus(&t->target, "0,1", &err), 0);
	run(t, "cycles@0 100/1000/1000\ncycles@1 100/1000/100", "cycles");
	assert_true(fabs(t->rows[0].value - 1100) < 1e-9);
}

static void an_event_refused_on_one_cpu_is_counted_on_the_others(void **state)
{
	struct stat_test *t = *state;
	struct tally_error err = TALLY_ERROR_NONE;
	assert_int_equal(tally_target_set_cpus(&t->target, "0,1", &err), 0);
	run(t, "cycles@0 refuse ENOENT\ncycles@1 7", "cycles");
	assert_int_equal(t->rows[0].value, 7);
	assert_int_equal(t->rows[0].state, TALLY_COUNT_OK);
}

static void a_pmu_is_opened_on_its_own_cpus_alone(void **state)
{
	struct stat_test *t = *state;
	struct tally_error err = TALLY_ERROR_NONE;
	static const char *const cpus[] = { "1" };
	struct tally_counting counting;
	assert_int_equal(tally_target_set_cpus(&t->target, "0-1", &err), 0);
	run(t, "cycles 7", "cycles");
	t->options.counting.event_cpus = cpus;
	assert_int_equal(tally_counting_open(&t->options.counting, &counting, &err), 0);
	tally_counting_read(&counting, NULL);
	assert_int_equal(counting.rows[0].value, 7); /* not 14 */
	tally_counting_release(&counting);
}

struct core_row {
	enum tally_count_state state;
	double value;
	bool was_scaled;
	uint64_t enabled_ns;
};

/* Counts cycles on one type of cores and instructions on another, of a task. */
static void check_cores(struct stat_test *t, const char *script, const char *events, size_t types,
			struct core_row first, struct core_row second)
{
	static const uint32_t cores[] = { 8, 9 };
	const struct core_row wanted[] = { first, second };
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_counting counting;
	struct tally_pid_list tids = { .items = (pid_t[]){ 1 }, .count = 1 };
	run(t, script, events);
	t->options.counting.command_pid = 0;
	t->options.counting.event_cores = cores;
	t->options.counting.core_types = types;
	t->target.tids = tids;
	assert_int_equal(tally_counting_open(&t->options.counting, &counting, &err), 0);
	tally_counting_enable(&counting);
	tally_counting_read(&counting, NULL);
	for (size_t i = 0; i < t->events.count; i++) {
		assert_int_equal(counting.rows[i].state, wanted[i].state);
		assert_true(fabs(counting.rows[i].value - wanted[i].value) < 1e-6);
		assert_int_equal(counting.rows[i].was_scaled, wanted[i].was_scaled);
		assert_int_equal(counting.rows[i].enabled_ns, wanted[i].enabled_ns);
		if (wanted[i].state == TALLY_COUNT_OK)
			assert_int_equal(counting.rows[i].task_ns, 100000);
	}
	tally_counting_release(&counting);
	t->target.tids = (struct tally_pid_list){ 0 };
}

static void time_on_other_cores_is_no_multiplexing(void **state)
{
	check_cores(*state, "cycles 100/100000/25000\ninstructions 300/100000/75000",
		    "cycles,instructions", 2,
		    (struct core_row){ TALLY_COUNT_OK, 100, false, 25000 },
		    (struct core_row){ TALLY_COUNT_OK, 300, false, 75000 });
}

static void types_of_cores_that_share_counters_are_scaled_by_their_part_of_the_time(void **state)
{
	check_cores(*state, "cycles 100/100000/10000\ninstructions 300/100000/30000",
		    "cycles,instructions", 2, (struct core_row){ TALLY_COUNT_OK, 250, true, 25000 },
		    (struct core_row){ TALLY_COUNT_OK, 750, true, 75000 });
}

static void a_task_that_was_never_on_these_cores_counts_0_there(void **state)
{
	check_cores(*state, "cycles 0/100000/0\ninstructions 300/100000/100000",
		    "cycles,instructions", 2, (struct core_row){ TALLY_COUNT_OK, 0, false, 0 },
		    (struct core_row){ TALLY_COUNT_OK, 300, false, 100000 });
}

static void no_0_is_shown_if_the_cores_are_not_known(void **state)
{
	check_cores(*state, "cycles 0/100000/0", "cycles", 2,
		    (struct core_row){ TALLY_COUNT_NOT_COUNTED, 0, false, 0 },
		    (struct core_row){ 0 });
}

static void one_type_of_cores_whose_events_share_counters_is_marked(void **state)
{
	static const uint32_t cores[] = { 8, 8 };
	struct stat_test *t = *state;
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_counting counting;
	struct tally_pid_list tids = { .items = (pid_t[]){ 1 }, .count = 1 };
	run(t, "cycles 100/100000/25000\ninstructions 300/100000/20000", "cycles,instructions");
	t->options.counting.command_pid = 0;
	t->options.counting.event_cores = cores;
	t->options.counting.core_types = 2;
	t->target.tids = tids;
	assert_int_equal(tally_counting_open(&t->options.counting, &counting, &err), 0);
	tally_counting_enable(&counting);
	tally_counting_read(&counting, NULL);
	assert_non_null(counting.rows[0].reason);
	assert_true(strstr(counting.rows[0].reason, "at least") != NULL);
	assert_true(strstr(counting.rows[1].reason, "at least") != NULL);
	assert_int_equal(counting.rows[1].value, 375);
	tally_counting_release(&counting);
	t->target.tids = (struct tally_pid_list){ 0 };
}

static void a_type_of_cores_that_shares_counters_has_the_time_that_others_leave(void **state)
{
	static const uint32_t cores[] = { 8, 8, 9 };
	struct stat_test *t = *state;
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_counting counting;
	struct tally_pid_list tids = { .items = (pid_t[]){ 1 }, .count = 1 };
	run(t, "cycles 100/100000/25000\ninstructions 200/100000/20000\nbranches 7/100000/50000",
	    "cycles,instructions,branches");
	t->options.counting.command_pid = 0;
	t->options.counting.event_cores = cores;
	t->options.counting.core_types = 2;
	t->target.tids = tids;
	assert_int_equal(tally_counting_open(&t->options.counting, &counting, &err), 0);
	tally_counting_enable(&counting);
	tally_counting_read(&counting, NULL);
	assert_int_equal(counting.rows[0].value, 200);
	assert_int_equal(counting.rows[1].value, 500);
	assert_int_equal(counting.rows[2].value, 7);
	assert_false(counting.rows[2].was_scaled);
	tally_counting_release(&counting);
	t->target.tids = (struct tally_pid_list){ 0 };
}

static void one_type_of_cores_alone_is_not_scaled(void **state)
{
	check_cores(*state, "cycles 100/100000/25000", "cycles", 2,
		    (struct core_row){ TALLY_COUNT_OK, 100, false, 25000 }, (struct core_row){ 0 });
}

static void intervals_give_differences(void **state)
{
	struct stat_test *t = *state;
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_counting counting;
	run(t, "cycles 100/1000/1000 150/2000/1500 150/3000/1500 150/3000/1500", "cycles");
	t->options.counting.command_pid = 0;
	/* A task added by hand: the command is over. */
	struct tally_pid_list tids = { .items = (pid_t[]){ 1 }, .count = 1 };
	t->target.tids = tids;
	assert_int_equal(tally_counting_open(&t->options.counting, &counting, &err), 0);
	tally_counting_enable(&counting);
	tally_counting_read(&counting, NULL);
	assert_int_equal(counting.rows[0].value, 100);
	tally_counting_read(&counting, NULL);
	assert_int_equal(counting.rows[0].value, 100); /* 50 in half of the time */
	tally_counting_read(&counting, NULL);
	assert_int_equal(counting.rows[0].state, TALLY_COUNT_NOT_COUNTED);
	tally_counting_read(&counting, NULL);
	assert_int_equal(counting.rows[0].state, TALLY_COUNT_OK); /* the task slept: a true 0 */
	assert_int_equal(counting.rows[0].value, 0);
	tally_counting_release(&counting);
	t->target.tids = (struct tally_pid_list){ 0 };
}

static void counts_are_taken_apart_by_cpu(void **state)
{
	struct stat_test *t = *state;
	struct tally_error err = TALLY_ERROR_NONE;
	assert_int_equal(tally_target_set_cpus(&t->target, "0-1", &err), 0);
	t->target.command = NULL;
	t->options.timeout_ms = 1;
	t->ops = &tally_stat_view_csv;
	t->view.names_columns = true;
	t->by = TALLY_COUNT_BY_CPU;
	const char *text = run(
		t,
		"cycles@0 10\ncycles@1 630/1000/630\ninstructions@0 20\n"
		"instructions@1 refuse ENOENT",
		"cycles,instructions");
	has(text, "# tally-stat-csv 1: cpu,value,unit,event,running-ns");
	has(text, "\nCPU0,10,,cycles,");
	has(text, "\nCPU1,1000,,cycles,630,63.00,");
	has(text, "\nCPU0,20,,instructions,1000000,100.00,2.000000,insn per cycle,scripted,\n");
	has(text, "\nCPU0,,,,,,0.500000,CPI,,\n");
	has(text, "\nCPU1,<not counted>,,instructions,"); /* it was opened on CPU 0 */
}

static void a_tool_s_time_stands_once(void **state)
{
	struct stat_test *t = *state;
	t->target.all = true;
	t->by = TALLY_COUNT_BY_CPU;
	t->catalogue.has_tools = true;
	t->ops = &tally_stat_view_csv;
	const char *text = run(t, "cycles 10\n", "duration_time,cycles,user_time");
	const char *first = strstr(text, "ns,duration_time");
	assert_non_null(first);
	assert_null(strstr(first + 1, "ns,duration_time"));
	has(text, "only for the command");
	assert_int_equal(t->rows[0].state, TALLY_COUNT_OK);
}

static void cpu_list(struct tally_cpu_list *list, const char *text)
{
	tally_cpu_list_release(list);
	assert_int_equal(tally_cpu_list_parse(text, list, NULL), 0);
}

static void what_a_cpu_counted_before_it_went_is_kept(void **state)
{
	struct stat_test *t = *state;
	struct tally_counting counting;
	struct tally_cpu_list online = { 0 };
	const char *notes[TALLY_STAT_NOTES_MAX];
	t->target.command = NULL;
	t->target.all = true;
	t->options.timeout_ms = 1;
	run(t,
	    "cycles@0 100/1 200/2 300/3 400/4\ncycles@1 1\ncycles@1 1000/1000 1700/2000\n"
	    "cycles@1 5/7\ncycles@2 50",
	    "cycles");
	t->options.counting.by = TALLY_COUNT_BY_CPU;
	tally_cpu_list_release(&t->target.cpus);
	assert_int_equal(tally_cpu_list_parse("0-1", &t->target.cpus, NULL), 0);
	assert_int_equal(tally_counting_open(&t->options.counting, &counting, NULL), 0);
	tally_counting_enable(&counting);
	tally_counting_read(&counting, NULL);
	assert_int_equal(counting.rows[1].value, 1000);
	cpu_list(&online, "0-1");
	assert_false(tally_counting_set_online(&counting, &online));
	cpu_list(&online, "0"); /* read once more: 1700 */
	assert_true(tally_counting_set_online(&counting, &online));
	tally_counting_read(&counting, NULL);
	assert_int_equal(counting.rows[1].value, 700);
	assert_int_equal(counting.rows[1].state, TALLY_COUNT_OK);
	cpu_list(&online, "0-2"); /* CPU 1 returns and counts from 0, and another CPU comes */
	assert_true(tally_counting_set_online(&counting, &online));
	assert_int_equal(counting.part_count, 3);
	assert_string_equal(counting.parts[2].label, "CPU2");
	tally_counting_read(&counting, NULL);
	assert_int_equal(counting.rows[1].value, 5);
	assert_int_equal(counting.rows[2].value, 50);
	tally_counting_total(&counting, NULL);
	assert_int_equal(counting.rows[1].value, 1705);
	size_t count = tally_counting_notes(&counting, &t->arena, notes, TALLY_STAT_NOTES_MAX);
	assert_true(count >= 2);
	has(notes[count - 2], "CPU 1 went offline");
	has(notes[count - 1], "CPUs 1-2 came online");
	tally_counting_release(&counting);
	tally_cpu_list_release(&online);
}

static void of_a_list_of_cpus_no_others_are_counted_that_come(void **state)
{
	struct stat_test *t = *state;
	struct tally_counting counting;
	struct tally_cpu_list online = { 0 };
	t->target.command = NULL;
	assert_int_equal(tally_target_set_cpus(&t->target, "0", NULL), 0);
	t->options.timeout_ms = 1;
	run(t, "cycles 100", "cycles");
	assert_int_equal(tally_counting_open(&t->options.counting, &counting, NULL), 0);
	cpu_list(&online, "0-3");
	assert_false(tally_counting_set_online(&counting, &online));
	assert_int_equal(counting.handles.scope_count, 1);
	tally_counting_release(&counting);
	tally_cpu_list_release(&online);
}

static void csv_has_perfs_columns_and_empty_for_missing(void **state)
{
	struct stat_test *t = *state;
	t->ops = &tally_stat_view_csv;
	t->view.names_columns = true;
	const char *text = run(t, "cycles 500/1000/500\ninstructions 2000\nbranches refuse ENOENT",
			       "cycles,instructions,branches");
	has(text,
	    "# tally-stat-csv 1: "
	    "value,unit,event,running-ns,running-percent,metric,metric-unit,source,note\n");
	has(text, "\n1000,,cycles,500,50.00,,,scripted,\n");
	has(text, "\n2000,,instructions,1000000,100.00,2.000000,insn per cycle,scripted,"
		  "the metric is of counts that were not taken together\n");
	has(text, "\n,,,,,0.500000,CPI,,\n");
	has(text, "\n<not supported>,,branches,,,,,,this CPU has no such event\n");
}

static void json_is_versioned_and_missing_is_null(void **state)
{
	struct stat_test *t = *state;
	t->ops = &tally_stat_view_json;
	const char *text = run(t, "cycles 500/1000/500\nbranches refuse ENOENT", "cycles,branches");
	has(text, "{\"schema\":\"tally-stat\",\"version\":1,");
	has(text,
	    "{\"name\":\"cycles\",\"state\":\"counted\",\"value\":1000,\"unit\":\"\","
	    "\"sigma\":null,");
	has(text, "\"raw\":500,\"enabled_ns\":1000,\"running_ns\":500,\"scaled\":true,");
	has(text, "\"source\":\"scripted\"");
	has(text, "{\"name\":\"branches\",\"state\":\"not-supported\",\"value\":null,");
	has(text, "\"source\":null");
}

static void numbers_have_thousands_separators(void **state)
{
	(void)state;
	char text[64];
	tally_stat_number(1234567.5, 2, text, sizeof(text));
	assert_string_equal(text, "1,234,567.50");
	tally_stat_number(999, 0, text, sizeof(text));
	assert_string_equal(text, "999");
	tally_stat_number(1000, 0, text, sizeof(text));
	assert_string_equal(text, "1,000");
	tally_stat_number(-123456, 0, text, sizeof(text));
	assert_string_equal(text, "-123,456");
}

static void a_script_that_makes_no_sense_names_its_line(void **state)
{
	(void)state;
	struct tally_provider *provider;
	static const char *const bad[] = {
		"cycles",   "cycles 1\nnosuch 3", "cycles refuse EWHAT", "cycles 1/2/x",
		"counters", "privilege king",     "hardware:x 3",        "cycles 1 2 bad"
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct tally_error err = TALLY_ERROR_NONE;
		assert_true(tally_provider_scripted_parse(bad[i], &provider, &err) < 0);
		assert_memory_equal(err.message, "script line ", 12);
	}
}

static void proc_texts_are_parsed(void **state)
{
	(void)state;
	struct tally_resource_usage usage = { 0 };
	uint64_t number;
	assert_true(tally_proc_stat_parse(
		"42 (a) b) (c)) S 1 2 3 4 5 6 100 10 20 2 7 8 1 1 20 0 1 0 5", 10000000, &usage));
	assert_int_equal(usage.minor_faults, 110);
	assert_int_equal(usage.major_faults, 22);
	assert_int_equal(usage.user_ns, 80000000);
	assert_int_equal(usage.system_ns, 90000000);
	assert_false(tally_proc_stat_parse("42 (a) S 1 2", 1, &usage));
	assert_false(tally_proc_stat_parse("", 1, &usage));
	assert_true(tally_proc_key_number("Name:\tx\nvoluntary_ctxt_switches:\t17\n",
					  "voluntary_ctxt_switches", &number));
	assert_int_equal(number, 17);
	assert_true(tally_proc_key_number("ctxt 5", "ctxt", &number));
	assert_int_equal(number, 5);
	assert_false(tally_proc_key_number("nonvoluntary_ctxt_switches: 3",
					   "voluntary_ctxt_switches", &number));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(counts_and_ratios_are_shown),
		CASE(what_hundreds_of_events_cost_at_exec_is_no_drop),
		CASE(scaled_values_say_so),
		CASE(never_running_is_not_counted),
		CASE(an_uncountable_event_drags_no_other_down),
		CASE(a_pinned_event_in_error_is_not_counted),
		CASE(a_strong_group_that_does_not_fit_says_so),
		CASE(a_weak_group_that_does_not_fit_is_opened_singly),
		CASE(a_group_that_never_fits_is_found_before_the_run),
		CASE(a_group_that_opens_and_is_never_counted_names_the_causes),
		CASE(passes_fill_the_counters_and_keep_groups_together),
		CASE(passes_are_merged_and_their_agreement_is_shown),
		CASE(ratios_of_different_passes_are_marked),
		CASE(different_work_in_the_passes_is_an_error),
		CASE(a_difference_that_chance_explains_is_none),
		CASE(a_group_is_read_with_its_leaders_times),
		CASE(no_pmu_is_told_once_below_and_shortly_on_each_row),
		CASE(notes_are_no_wider_than_the_terminal),
		CASE(user_only_is_noted_on_the_name_and_once_below),
		CASE(what_user_only_empties_is_taken_from_resource_usage),
		CASE(an_asked_for_user_only_switch_count_is_not_0_either),
		CASE(an_empty_user_only_tracepoint_is_withheld),
		CASE(refusal_altogether_falls_back_to_resource_usage),
		CASE(repeated_runs_give_mean_and_sigma),
		CASE(runs_that_did_not_count_are_left_out_of_the_mean),
		CASE(cpus_are_summed_each_with_its_own_scale),
		CASE(an_event_refused_on_one_cpu_is_counted_on_the_others),
		CASE(a_pmu_is_opened_on_its_own_cpus_alone),
		CASE(time_on_other_cores_is_no_multiplexing),
		CASE(types_of_cores_that_share_counters_are_scaled_by_their_part_of_the_time),
		CASE(a_task_that_was_never_on_these_cores_counts_0_there),
		CASE(no_0_is_shown_if_the_cores_are_not_known),
		CASE(one_type_of_cores_whose_events_share_counters_is_marked),
		CASE(a_type_of_cores_that_shares_counters_has_the_time_that_others_leave),
		CASE(one_type_of_cores_alone_is_not_scaled),
		CASE(intervals_give_differences),
		CASE(counts_are_taken_apart_by_cpu),
		CASE(a_tool_s_time_stands_once),
		CASE(what_a_cpu_counted_before_it_went_is_kept),
		CASE(of_a_list_of_cpus_no_others_are_counted_that_come),
		CASE(csv_has_perfs_columns_and_empty_for_missing),
		CASE(json_is_versioned_and_missing_is_null),
		cmocka_unit_test(numbers_have_thousands_separators),
		cmocka_unit_test(a_script_that_makes_no_sense_names_its_line),
		cmocka_unit_test(proc_texts_are_parsed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
