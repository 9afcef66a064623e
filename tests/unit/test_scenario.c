/* Scenarios: the parser's results and the positions of its errors, the player's effect on the
 * machine, and an engine's PMUs and tracepoints in event expressions. */
#include "test.h"

#include "event/event.h"
#include "provider/engine_provider.h"
#include "sim/scenario_play.h"
#include "simulation/simulation.h"

#include <errno.h>

#define HEAD \
	"machine x86, 2 cpus\nmix m has ipc 2, 200 branches\nfunction f\nfunction g called by f\n"

static struct scenario *good(const char *text)
{
	struct scenario *scenario;
	struct scenario_error error = { 0 };
	int code = scenario_parse(text, strlen(text), &scenario, &error);
	if (code)
		print_message("# line %u: %s\n", error.place.line, error.message);
	assert_int_equal(code, 0);
	return scenario;
}

static void numbers_times_and_names_are_as_written(void **state)
{
	(void)state;
	struct scenario *s = good(
		"machine arm64 with 3 cpus, 1_500 MHz, tick 250us, slice 1.5 ms, seed 9, balanced "
		"# comment\n"
		"mix a has ipc 1.25, 7 dTLB-load-misses\n"
		"function main of 2K bytes\nfunction leaf called by main\nkernel function entry\n"
		"task t on cpu 2 unprivileged:\n"
		"  run 1.5M instructions of a in leaf\n  run 20us of a in leaf from main\n"
		"  touch 0x602000 to-write 3 times\nend\n"
		"stop after 2 s\n");
	assert_string_equal(s->machine.model, "arm64");
	assert_int_equal(s->machine.cpus, 3);
	assert_int_equal(s->machine.megahertz, 1500);
	assert_int_equal(s->machine.tick_ns, 250000);
	assert_int_equal(s->machine.slice_ns, 1500000);
	assert_true(s->machine.balance);
	assert_int_equal(s->mixes[0].per_kilo[SIM_CYCLES], 800);
	assert_int_equal(s->mixes[0].per_kilo[SIM_DTLB_LOAD_MISSES], 7);
	assert_int_equal(s->functions[0].size, 2000);
	assert_int_equal(s->functions[1].caller, 0);
	assert_int_equal(s->functions[1].address, s->functions[0].address + 2000);
	assert_true(s->functions[2].is_kernel && s->functions[2].address == SCENARIO_KERNEL);
	const struct scenario_program *t = &s->programs[0];
	assert_true(t->is_task && t->is_unprivileged && t->cpu == 2 && t->step_count == 3);
	assert_int_equal(t->steps[0].amount, 1500000);
	assert_int_equal(t->steps[1].ns, 20000);
	assert_int_equal(t->steps[1].from, 0);
	assert_true(t->steps[2].access == TALLY_BREAKPOINT_W && t->steps[2].amount == 3);
	assert_int_equal(s->stop_ns, 2000000000);
	scenario_free(s);
}

static void repeats_know_their_ends(void **state)
{
	(void)state;
	struct scenario *s = good(
		HEAD "task t\nrepeat 2 times\nyield\nrepeat 3 times\nyield\nend\nend\nend\n");
	const struct scenario_program *t = &s->programs[0];
	assert_int_equal(t->step_count, 6);
	assert_int_equal(t->steps[0].other, 5);
	assert_int_equal(t->steps[2].other, 4);
	assert_int_equal(t->steps[4].other, 2);
	scenario_free(s);
}

static void a_program_may_be_named_before_it_stands(void **state)
{
	(void)state;
	struct scenario *s = good(
		HEAD "count cycles of t with children pinned\ntask t\nfork p 4 times\nend\n"
		     "task u like t on cpu 1\nprogram p\nyield\nend\n");
	assert_int_equal(s->parts[0].program, 0);
	assert_true(s->parts[0].is_inherited && s->parts[0].is_pinned && !s->parts[0].is_exclusive);
	assert_int_equal(s->programs[0].steps[0].program, 2);
	assert_int_equal(s->programs[1].steps[0].program, 2);
	assert_int_equal(s->programs[1].steps[0].amount, 4);
	assert_int_equal(s->programs[1].cpu, 1);
	scenario_free(s);
}

static void sampling_is_told_in_its_own_words(void **state)
{
	(void)state;
	struct scenario *s = good(
		HEAD
		"task t\nyield\nend\nsample {cycles,branches}:S of t every 10K with stacks into 8 "
		"pages\n"
		"sample cpu-clock of cpu 1 99 times a second, read at the end\n"
		"sample scenario:mark of everything each hit, read every 3ms\n");
	assert_string_equal(s->parts[0].text, "{cycles,branches}:S");
	assert_true(s->parts[0].rate == 10000 && !s->parts[0].is_frequency &&
		    s->parts[0].has_stacks && s->parts[0].pages == 8);
	assert_true(s->parts[1].cpu == 1 && s->parts[1].program < 0 && s->parts[1].is_frequency &&
		    s->parts[1].rate == 99);
	assert_true(s->parts[1].read_every_ns == UINT64_MAX);
	assert_true(s->parts[2].cpu < 0 && s->parts[2].rate == 1 &&
		    s->parts[2].read_every_ns == 3000000);
	scenario_free(s);
}

static void a_mistake_has_its_place(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		unsigned line, column;
		const char *message;
	} rows[] = {
		{ "", 1, 1, "expected 'machine MODEL" },
		{ "mix", 1, 1, "first of all" },
		{ "machine x87", 1, 9, "expected a model" },
		{ "machine x86 9000 cpus", 1, 13, "1 to 4096 cpus" },
		{ "machine x86, vhe", 1, 9, "arm64 machine alone" },
		{ "machine x86\nmachine x86", 2, 1, "one machine" },
		{ HEAD "mix m has ipc 1", 5, 5, "a mix 'm' already" },
		{ HEAD "mix n has 3 bananas", 5, 13, "expected cycles, branches" },
		{ HEAD "mix n has ipc 0", 5, 15, "instructions per cycle" },
		{ HEAD "mix n has 0 cycles", 5, 19, "take cycles" },
		{ HEAD "function h called by h", 5, 22, "a function that stands above" },
		{ HEAD "kernel function h called by f", 5, 30, "kernel functions call only kernel functions" },
		{ HEAD "task t on cpu 2", 5, 15, "from 0 to 1" },
		{ HEAD "task t\nrun 5 of m in f", 6, 7, "expected 'instructions', not 'of'" },
		{ HEAD "task t\nrun 99999999999999999999 instructions of m in f", 6, 5,
		  "expected how much" },
		{ HEAD "task t\nsleep 5", 6, 7, "a time like 5ms" },
		{ HEAD "task t\nsleep 0ms", 6, 7, "more than nothing" },
		{ HEAD "task t\nsleep 2000000 s", 6, 7, "at most an hour" },
		{ HEAD "task t\nyield now", 6, 7, "the end of the line" },
		{ HEAD "task t\ndance", 6, 1, "expected what the task does" },
		{ HEAD "task t\nfork t\nend", 6, 6, "'t' is a task of its own" },
		{ HEAD "task t\nyield", 7, 1, "expected 'end' of task 't'" },
		{ HEAD "task a-name-that-is-too-long", 5, 6, "at most 15 characters" },
		{ HEAD "task t like t", 5, 13, "a task that stands above" },
		{ HEAD "say hello", 5, 5, "in quotation marks" },
		{ HEAD "say \"hello", 5, 5, "has no other on this line" },
		{ HEAD "task t\nend\nsample cycles of t", 7, 19, "'every N', 'each hit'" },
		{ HEAD "task t\nend\nsample cycles of t every 5 into 3 pages", 7, 33,
		  "a power of two" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct scenario *scenario;
		struct scenario_error error = { 0 };
		assert_int_equal(
			scenario_parse(rows[i].text, strlen(rows[i].text), &scenario, &error), -22);
		if (error.place.line != rows[i].line || error.place.column != rows[i].column ||
		    !strstr(error.message, rows[i].message))
			print_message("# %s\n# %u:%u %s\n", rows[i].text, error.place.line,
				      error.place.column, error.message);
		assert_null(scenario);
		assert_non_null(strstr(error.message, rows[i].message));
		assert_int_equal(error.place.line, rows[i].line);
		assert_int_equal(error.place.column, rows[i].column);
	}
}

/* --- an engine's names in event expressions ------------------------------- */

struct fixture {
	struct sim_machine *machine;
	struct tally_catalogue catalogue;
	struct tally_arena arena;
	struct tally_event_list list;
	struct tally_error error;
};

static void set_up(struct fixture *f, const char *model)
{
	const struct sim_config config = { .cpus = 4, .model = model };
	*f = (struct fixture){ .machine = sim_new(&config) };
	assert_non_null(f->machine);
	assert_int_equal(tally_engine_catalogue(&f->catalogue, sim_engine(f->machine), &f->error),
			 0);
}

static void tear_down(struct fixture *f)
{
	tally_event_list_release(&f->list);
	tally_arena_release(&f->arena);
	tally_catalogue_release(&f->catalogue);
	sim_free(f->machine);
}

static const struct tally_event *parsed(struct fixture *f, const char *text)
{
	int code = tally_event_parse(text, &f->catalogue, &f->arena, &f->list, &f->error);
	if (code < 0)
		print_message("# %s\n", f->error.message);
	assert_true(code >= 0);
	return &f->list.items[f->list.count - 1];
}

static void a_registered_pmu_is_found_as_the_kernels(void **state)
{
	(void)state;
	struct fixture f;
	set_up(&f, "x86");
	assert_int_equal(parsed(&f, "cycles")->attr.type, TALLY_TYPE_HARDWARE);
	const struct tally_event *raw = parsed(&f, "cpu/event=0x2e,umask=0x41,edge/");
	assert_int_equal(raw->attr.type, TALLY_TYPE_RAW);
	assert_int_equal(raw->attr.config, 0x4412e);
	assert_int_equal(parsed(&f, "cpu/cache-references/")->attr.config, 0x4f2e);
	assert_int_equal(parsed(&f, "cpu/cpu-cycles,cmask=2/u")->attr.config, 0x200003c);
	assert_int_equal(
		tally_event_parse("cpu/nonsense=1/", &f.catalogue, &f.arena, &f.list, &f.error),
		-ENOENT);
	tear_down(&f);
}

static void one_core_types_pmu_names_its_cpus(void **state)
{
	(void)state;
	struct fixture f;
	set_up(&f, "big.LITTLE");
	unsigned seen = 0;
	for (size_t i = 0; i < f.catalogue.pmu_count; i++) {
		const struct tally_pmu *pmu = &f.catalogue.pmus[i];
		bool is_big = !strcmp(pmu->name, "armv8_cortex_a72"),
		     is_little = !strcmp(pmu->name, "armv8_cortex_a53");
		const char *cpus = is_little ? "2-3" : "";
		assert_string_equal(pmu->cpus, is_big ? "0-1" : cpus);
		seen += is_big + is_little;
	}
	assert_int_equal(seen, 2);
	uint32_t big = parsed(&f, "armv8_cortex_a72/inst_retired/")->attr.type;
	assert_int_not_equal(parsed(&f, "armv8_cortex_a53/inst_retired/")->attr.type, big);
	assert_int_equal(parsed(&f, "armv8_cortex_a53/event=0x11,long/")->attr.config1, 1);
	tear_down(&f);
}

static void registered_tracepoints_are_sorted_and_found(void **state)
{
	(void)state;
	struct fixture f;
	set_up(&f, "none");
	assert_true(f.catalogue.tracepoint_count >= 5);
	for (size_t i = 1; i < f.catalogue.tracepoint_count; i++) {
		const struct tally_tracepoint_name *a = &f.catalogue.tracepoints[i - 1],
						   *b = &f.catalogue.tracepoints[i];
		int order = strcmp(a->system, b->system);
		assert_true(order < 0 || (!order && strcmp(a->name, b->name) < 0));
	}
	const struct tally_event *event = parsed(&f, "sched:sched_switch");
	assert_int_equal(event->attr.type, TALLY_TYPE_TRACEPOINT);
	assert_int_not_equal(event->attr.config, 0);
	size_t before = f.list.count;
	parsed(&f, "sched:*");
	assert_int_equal(f.list.count, before + 4);
	assert_int_equal(
		tally_event_parse("cpu/event=1/", &f.catalogue, &f.arena, &f.list, &f.error),
		-ENOENT);
	tear_down(&f);
}

/* --- what comes of it ----------------------------------------------------- */

struct results {
	struct tally_event_count rows[8];
	unsigned count;
	uint64_t samples, lost, lost_reported;
	unsigned told;
};

static void take(void *context, const struct tally_simulation_result *result)
{
	struct results *results = context;
	for (size_t i = 0; i < result->row_count && results->count < 8; i++)
		results->rows[results->count++] = result->rows[i];
	results->samples += result->samples;
	results->lost += result->lost;
	results->lost_reported += result->lost_reported;
}

static void hear(void *context, uint64_t ns, const char *text)
{
	struct results *results = context;
	(void)ns, (void)text;
	results->told++;
}

static struct results simulate(const char *text, bool explains)
{
	struct results results = { 0 };
	struct scenario *scenario = good(text);
	struct tally_simulation_summary summary;
	struct tally_error error = TALLY_ERROR_NONE;
	const struct tally_simulation_options options = { .scenario = scenario,
							  .scenario_name = "test",
							  .result = take,
							  .on_message = explains ? hear : NULL,
							  .context = &results };
	int code = tally_simulation_run(&options, &summary, &error);
	if (code)
		print_message("# %s\n", error.message);
	assert_int_equal(code, 0);
	scenario_free(scenario);
	return results;
}

static void counts_are_what_the_scenario_says(void **state)
{
	(void)state;
	struct results r = simulate(
		HEAD
		"task t\nrun 1M instructions of m in g\nfault 3 pages\nsleep 1 ms\nend\n"
		"count {cycles:u,instructions:u,branches:u},page-faults,context-switches of t\n",
		false);
	assert_int_equal(r.count, 5);
	assert_int_equal(r.rows[0].raw, 500000);
	assert_int_equal(r.rows[1].raw, 1000000);
	assert_int_equal(r.rows[2].raw, 200000);
	assert_int_equal(r.rows[3].raw, 3);
	assert_int_equal(r.rows[4].raw, 1);
	assert_string_equal(r.rows[0].source, "sim");
}

static void kept_and_lost_are_all(void **state)
{
	(void)state;
	for (unsigned every = 1; every <= 64; every *= 4) {
		char text[600];
		snprintf(
			text, sizeof(text),
			HEAD
			"task t on cpu 0\nrepeat 3K times\nmark \"x\"\nrun 1 us of m in f\nend\n"
			"end\n"
			"sample scenario:mark of t each hit into 1 page, read every %u00us\n"
			"count scenario:mark of t\n",
			every);
		struct results r = simulate(text, false);
		assert_int_equal(r.rows[0].raw, 3000);
		assert_int_equal(r.samples + r.lost, 3000);
		assert_true(r.lost_reported <= r.lost);
	}
}

static void a_pinned_event_without_a_counter_is_no_zero(void **state)
{
	(void)state;
	struct results r = simulate(
		HEAD "task t\nrun 1M instructions of m in g\nend\n"
		     "count branches,branch-misses,cache-misses,cache-references of t pinned\n"
		     "count L1-dcache-loads of t pinned\n",
		true);
	assert_int_equal(r.count, 5);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(r.rows[i].state, TALLY_COUNT_OK);
	assert_int_equal(r.rows[4].state, TALLY_COUNT_NOT_COUNTED);
	assert_true(r.told > 0);
}

static void a_cpu_that_goes_takes_no_task_along(void **state)
{
	(void)state;
	struct results r = simulate(
		"machine x86, 3 cpus, balanced\nmix m has ipc 1\nfunction f\n"
		"program w\nrun 2M instructions of m in f\nend\n"
		"task t\nfork w 6 times\nwait\nend\n"
		"at 1 ms cpu 2 goes offline\nat 2 ms cpu 0 goes offline\n"
		"at 3 ms cpu 2 goes online\n"
		"at 3 ms cpu 1 goes offline\ncount instructions:u of t with children\n",
		false);
	assert_int_equal(r.rows[0].raw, 12000000);
	assert_false(r.rows[0].was_scaled);
}

/* Both tasks run on one CPU by turns: a task preempted in its guest takes the guest with it. */
static void a_guest_that_is_preempted_counts_for_its_task_alone(void **state)
{
	(void)state;
	static const char *const hosts[] = { "vhe", "non-vhe" };
	for (unsigned i = 0; i < 2; i++) {
		char text[600];
		snprintf(text, sizeof(text),
			 "machine arm64 with 1 cpus, tick 1 ms, %s\nmix m has ipc 1\nfunction f\n"
			 "task virtual on cpu 0\nguest 20M instructions of m in f\nend\n"
			 "task plain on cpu 0\nrun 20M instructions of m in f\nend\n"
			 "count instructions:G,instructions:H,context-switches of virtual\n"
			 "count instructions:G,instructions:H,context-switches of plain\n",
			 hosts[i]);
		struct results r = simulate(text, false);
		assert_int_equal(r.rows[0].raw, 20000000);
		assert_int_equal(r.rows[1].raw, 0);
		assert_true(r.rows[2].raw > 5);
		assert_int_equal(r.rows[3].raw, 0);
		assert_int_equal(r.rows[4].raw, 20000000);
		assert_true(r.rows[5].raw > 5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_times_and_names_are_as_written),
		cmocka_unit_test(repeats_know_their_ends),
		cmocka_unit_test(a_program_may_be_named_before_it_stands),
		cmocka_unit_test(sampling_is_told_in_its_own_words),
		cmocka_unit_test(a_mistake_has_its_place),
		cmocka_unit_test(a_registered_pmu_is_found_as_the_kernels),
		cmocka_unit_test(one_core_types_pmu_names_its_cpus),
		cmocka_unit_test(registered_tracepoints_are_sorted_and_found),
		cmocka_unit_test(counts_are_what_the_scenario_says),
		cmocka_unit_test(kept_and_lost_are_all),
		cmocka_unit_test(a_pinned_event_without_a_counter_is_no_zero),
		cmocka_unit_test(a_cpu_that_goes_takes_no_task_along),
		cmocka_unit_test(a_guest_that_is_preempted_counts_for_its_task_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
