/* Metrics: expressions, sets, plans, figures. */
#include "test.h"

#include "command/stat_command.h"
#include "metric/metric.h"

#include <errno.h>
#include <math.h>

struct metric_test {
	struct tally_arena arena;
	struct tally_metric_set set;
	struct tally_error err;
};

static int set_up(void **state)
{
	struct metric_test *t = calloc(1, sizeof(*t));
	*state = t;
	return tally_metric_set_init(&t->set, "GenuineIntel-6-8E-A");
}

static int tear_down(void **state)
{
	struct metric_test *t = *state;
	tally_metric_set_release(&t->set);
	tally_arena_release(&t->arena);
	free(t);
	return 0;
}

static const struct tally_metric_machine machine = { .cpus = 8,
						     .cpus_online = 4,
						     .cores = 2,
						     .dies = 1,
						     .packages = 1,
						     .smt_on = 1,
						     .tsc_hz = NAN,
						     .slots = NAN,
						     .cpuid = "GenuineIntel-6-8E-A" };

/* The value where every name is worth 10 for its first letter 'a', 20 for 'b', …; 'n' has none. */
static double value_of(struct metric_test *t, const char *text)
{
	const struct tally_metric_expression *expression;
	struct tally_metric_name_value values[16];
	if (tally_metric_parse(text, &t->arena, &expression, &t->err) < 0)
		fail_msg("%s: %s", text, t->err.message);
	for (size_t i = 0; i < tally_metric_name_count(expression); i++) {
		char first = tally_metric_name(expression, i)[0];
		values[i] = (struct tally_metric_name_value){ 10 * (first - 'a' + 1), 2 };
		if (first == 'n')
			values[i] = (struct tally_metric_name_value){ NAN, 0 };
	}
	return tally_metric_evaluate(expression, values, &machine);
}

static void is_worth(struct metric_test *t, const char *text, double expected)
{
	double value = value_of(t, text);
	if (isnan(expected) ? !isnan(value) : fabs(value - expected) > 1e-9 * fabs(expected))
		fail_msg("%s is %.17g, not %.17g", text, value, expected);
}

static void operators_have_perfs_precedence(void **state)
{
	struct metric_test *t = *state;
	is_worth(t, "1 + 2 * 3", 7);
	is_worth(t, "(1 + 2) * 3", 9);
	is_worth(t, "10 - 4 - 3", 3);
	is_worth(t, "2 * 12 / 3 % 5", 3);
	is_worth(t, "1 < 2", 1);
	is_worth(t, "1 + 1 > 2", 0);
	is_worth(t, "6 & 3 | 8 ^ 1", 2 | 9);
	is_worth(t, "-2 * -3", 6);
	is_worth(t, "!0 + !5", 1);
	is_worth(t, "1.5e3 + 1e-3", 1500.001);
	is_worth(t, "a * b", 200);
}

static void functions_are_perfs(void **state)
{
	struct metric_test *t = *state;
	is_worth(t, "min(3, a)", 3);
	is_worth(t, "max(3, a)", 10);
	is_worth(t, "d_ratio(a, b)", 0.5);
	is_worth(t, "d_ratio(a, 0)", 0);
	is_worth(t, "1 if #smt_on else 2", 1);
	is_worth(t, "1 if 0 else 2 if 0 else 3", 3);
	is_worth(t, "#num_cpus / #num_cpus_online + #num_cores", 4);
	is_worth(t, "has_event(a) + has_event(n)", 1);
	is_worth(t, "source_count(a)", 2);
	is_worth(t, "strcmp_cpuid_str(GenuineIntel\\-6\\-8E)", 1);
	is_worth(t, "strcmp_cpuid_str('GenuineIntel-6-(8E|9E)-.*')", 1);
	is_worth(t, "strcmp_cpuid_str('G+++++++++++++++++++++++++++++++++++++++++++++++')", 0);
	is_worth(t, "strcmp_cpuid_str('(((G{9}){9}){9}){9}')", 0);
	is_worth(t, "strcmp_cpuid_str(0x410fd493) | 2", 2);
	/* as in perf's files, where the constant has either case */
	is_worth(t,
		 "(a.B / 2 * (1 + b.C / b.D) if #core_wide < 1 else (a.B / 2 if #SMT_on else n))",
		 10);
	is_worth(t, "topdown\\-fe\\-bound / (topdown\\-fe\\-bound + topdown\\-x) - 0 * slots", 0.5);
	is_worth(t, "(cstate_core@c3\\-residency@ / msr@tsc@) * 100", 100 * 30.0 / 130);
}

static void what_has_no_value_never_becomes_a_number(void **state)
{
	struct metric_test *t = *state;
	is_worth(t, "a / 0", NAN);
	is_worth(t, "0 / 0", NAN);
	is_worth(t, "1 / (a - a) + 1", NAN);
	is_worth(t, "5 % 0", NAN);
	is_worth(t, "1e300 * 1e300", NAN);
	is_worth(t, "n + 1", NAN);
	is_worth(t, "max(n, 1)", NAN);
	is_worth(t, "a if n else b", NAN);
	is_worth(t, "a if 1 else n", 10);
	is_worth(t, "a / 0 if 0 else b", 20);
	is_worth(t, "#system_tsc_freq", NAN);
	is_worth(t, "1e999", NAN);
	is_worth(t, "(0 - 9e17) % -1", 0);
}

static void name_is(struct metric_test *t, const char *text, const char *expected)
{
	const struct tally_metric_expression *expression;
	if (tally_metric_parse(text, &t->arena, &expression, &t->err) < 0)
		fail_msg("%s: %s", text, t->err.message);
	assert_int_equal(tally_metric_name_count(expression), 1);
	assert_string_equal(tally_metric_name(expression, 0), expected);
}

static void names_are_as_e_takes_them(void **state)
{
	struct metric_test *t = *state;
	name_is(t, "INST_RETIRED.ANY:k", "INST_RETIRED.ANY:k");
	name_is(t, "cpu@event\\=0x3c\\,umask\\=0x1@", "cpu/event=0x3c,umask=0x1/");
	name_is(t, "topdown\\-fe\\-bound", "topdown-fe-bound");
	name_is(t, "'L1-dcache-loads'", "L1-dcache-loads");
	name_is(t, "\"cpu/event=0x3c,umask=1/\" + 1", "cpu/event=0x3c,umask=1/");
	name_is(t, "2 * uncore_imc_0@cas_count_read@", "uncore_imc_0/cas_count_read/");
	name_is(t, "ifoo + ifoo", "ifoo");
}

static void refused(struct metric_test *t, const char *text, int code, const char *part,
		    int position)
{
	const struct tally_metric_expression *expression;
	int result = tally_metric_parse(text, &t->arena, &expression, &t->err);
	if (result != code || !strstr(t->err.message, part) || t->err.position != position)
		fail_msg("%s: %d, at %d: %s", text, result, t->err.position, t->err.message);
}

static void mistakes_are_pointed_at(void **state)
{
	struct metric_test *t = *state;
	refused(t, "", -EINVAL, "is missing", 0);
	refused(t, "1 +", -EINVAL, "is missing", 3);
	refused(t, "a b", -EINVAL, "an operator is missing", 2);
	refused(t, "(1", -EINVAL, "')' is missing", 2);
	refused(t, "1 if 2", -EINVAL, "'else' is missing", 6);
	refused(t, "min(1)", -EINVAL, "second argument", 5);
	refused(t, "sqrt(2)", -EINVAL, "no such function", 0);
	refused(t, "1 + #nothing", -EINVAL, "no such constant", 4);
	refused(t, "'open", -EINVAL, "not closed", 0);
	refused(t, "1 $ 2", -EINVAL, "no meaning", 2);
	refused(t, "else", -EINVAL, "missing before", 0);
}

static void nesting_and_length_are_limited(void **state)
{
	struct metric_test *t = *state;
	const struct tally_metric_expression *expression;
	static char text[400000];
	memset(text, '(', 100000);
	assert_int_equal(tally_metric_parse(text, &t->arena, &expression, &t->err), -E2BIG);
	memset(text, '-', 100000);
	assert_int_equal(tally_metric_parse(text, &t->arena, &expression, &t->err), -E2BIG);
	for (size_t i = 0; i < 100000; i++)
		memcpy(text + 2 * i, "1+", 2);
	strcpy(text + 200000, "1");
	assert_int_equal(tally_metric_parse(text, &t->arena, &expression, &t->err), -E2BIG);
	text[0] = 0;
	for (size_t i = 0; i < 1000; i++)
		strcat(text, "1 if 0 else ");
	strcat(text, "2");
	assert_int_equal(tally_metric_parse(text, &t->arena, &expression, &t->err), -E2BIG);
}

/* --- sets and plans ------------------------------------------------------- */

static int add_file(struct metric_test *t, const char *text)
{
	return tally_metric_set_add_file(&t->set, "file", text, strlen(text), &t->err);
}

static double figure(struct metric_test *t, const char *name, const double *values)
{
	struct tally_metric_plan plan;
	struct tally_metric_name_value each[16];
	size_t definition = tally_metric_set_find(&t->set, name, SIZE_MAX);
	assert_true(definition != SIZE_MAX);
	if (tally_metric_plan_make(&t->set, definition, &t->arena, &plan, &t->err) < 0)
		fail_msg("%s: %s", name, t->err.message);
	for (size_t i = 0; i < plan.events.count; i++)
		each[i] = (struct tally_metric_name_value){ values[i], 1 };
	double value = tally_metric_plan_evaluate(&plan, each, &machine);
	tally_metric_plan_release(&plan);
	return value;
}

static void a_users_file_is_read(void **state)
{
	struct metric_test *t = *state;
	assert_int_equal(add_file(t, "# comment\n\n  my-ipc = instructions / cycles  # insn, mine\n"
				     "twice=2*'my-ipc'\n"
				     "per-cpu = cycles / #num_cpus # Hz"),
			 0);
	size_t at = tally_metric_set_find(&t->set, "my-ipc", SIZE_MAX);
	assert_string_equal(t->set.definitions.items[at].unit, "insn");
	assert_string_equal(t->set.definitions.items[at].description, "mine");
	assert_string_equal(t->set.definitions.items[at].expression, "instructions / cycles");
	assert_true(figure(t, "twice", (double[]){ 30, 10 }) == 6);
	assert_true(figure(t, "per-cpu", (double[]){ 16 }) == 2);
}

static void a_users_metric_may_use_the_one_that_it_replaces(void **state)
{
	struct metric_test *t = *state;
	assert_int_equal(add_file(t, "ipc = 100 * ipc # %\n"), 0);
	assert_true(figure(t, "ipc", (double[]){ 30, 10 }) == 300);
	assert_true(figure(t, "IPC", (double[]){ 30, 10 }) == 300);
}

static void wrong_file(struct metric_test *t, const char *text, const char *message)
{
	if (add_file(t, text) != -EINVAL || !strstr(t->err.message, message))
		fail_msg("%s: %s", text, t->err.message);
}

static void a_wrong_file_is_named_with_its_line(void **state)
{
	struct metric_test *t = *state;
	wrong_file(t, "\nx 1\n", "file:2: '=' must follow");
	wrong_file(t, "= 1\n", "file:1: a metric's name is missing");
	wrong_file(t, "a1 = 1\na1 = 2\n", "file:2: this metric is defined twice");
	wrong_file(t, "a2 = 1 +  # x\n", "file:1: a number");
	wrong_file(t, "a3 =\n", "at column 1");
}

static int plan_result(struct metric_test *t, const char *name)
{
	struct tally_metric_plan plan;
	int result = tally_metric_plan_make(&t->set, tally_metric_set_find(&t->set, name, SIZE_MAX),
					    &t->arena, &plan, &t->err);
	tally_metric_plan_release(&plan);
	return result;
}

static void cycles_of_metrics_are_errors(void **state)
{
	struct metric_test *t = *state;
	assert_int_equal(add_file(t, "own = own + 1\na = b\nb = c + c\nc = 2 * a\nd = b\n"), 0);
	assert_int_equal(plan_result(t, "own"), -ELOOP);
	assert_int_equal(plan_result(t, "a"), -ELOOP);
	assert_int_equal(plan_result(t, "d"), -ELOOP);
	assert_non_null(strstr(t->err.message, "defined by itself"));
}

/* Each metric uses the one before twice: 2^60 paths, but 60 steps. */
static void metrics_in_metrics_are_computed_once(void **state)
{
	struct metric_test *t = *state;
	char text[4096] = "m0 = cycles\n";
	for (int i = 1; i <= 60; i++)
		sprintf(text + strlen(text), "m%d = (m%d + m%d) / 2\n", i, i - 1, i - 1);
	assert_int_equal(add_file(t, text), 0);
	assert_true(figure(t, "m60", (double[]){ 7 }) == 7);
	text[0] = 0;
	for (int i = 61; i <= 90; i++)
		sprintf(text + strlen(text), "m%d = m%d\n", i, i - 1);
	assert_int_equal(add_file(t, text), 0);
	assert_int_equal(plan_result(t, "m90"), -E2BIG);
}

static void every_builtin_metric_can_be_planned(void **state)
{
	struct metric_test *t = *state;
	size_t count;
	const struct tally_metric_definition *table = tally_metric_table(&count);
	for (size_t i = 0; i < count; i++) {
		struct tally_metric_plan plan;
		if (tally_metric_plan_make(&t->set, i, &t->arena, &plan, &t->err) < 0)
			fail_msg("%s: %s", t->set.definitions.items[i].name, t->err.message);
		assert_true(plan.events.count > 0);
		assert_true(table[i].description[0] && table[i].source[0] && table[i].unit[0]);
		tally_metric_plan_release(&plan);
	}
}

static void the_first_definition_with_its_events_is_used(void **state)
{
	struct metric_test *t = *state;
	struct tally_metric_plan plan;
	size_t first = tally_metric_set_find(&t->set, "frontend-bound", SIZE_MAX);
	assert_int_equal(tally_metric_plan_make(&t->set, first, &t->arena, &plan, &t->err), 0);
	assert_string_equal(plan.events.items[0], "cpu/slots/");
	assert_true(tally_metric_plan_pass_over(&t->set, &plan, 0));
	tally_metric_plan_release(&plan);
	size_t second = tally_metric_set_find(&t->set, "frontend-bound", SIZE_MAX);
	assert_int_equal(tally_metric_plan_make(&t->set, second, &t->arena, &plan, &t->err), 0);
	assert_string_equal(plan.events.items[0], "cpu/topdown-fetch-bubbles/");
	tally_metric_plan_release(&plan);
	/* 100 fetch bubbles in 400 slots */
	assert_true(figure(t, "frontend-bound", (double[]){ 100, 400 }) == 25);
}

/* The counts of a CPU, by the end of the events' names. */
struct known {
	const char *end;
	double value;
};

static double figure_from(struct metric_test *t, const char *name, const struct known *known)
{
	struct tally_metric_plan plan;
	double values[16];
	size_t at = tally_metric_set_find(&t->set, name, SIZE_MAX);
	assert_int_equal(tally_metric_plan_make(&t->set, at, &t->arena, &plan, &t->err), 0);
	for (size_t i = 0; i < plan.events.count; i++) {
		const struct known *k = known;
		while (k->end && !strstr(plan.events.items[i], k->end))
			k++;
		if (!k->end)
			fail_msg("%s needs %s", name, plan.events.items[i]);
		values[i] = k->value;
	}
	tally_metric_plan_release(&plan);
	return figure(t, name, values);
}

/* Passes over the definitions in use, as if the CPU lacked their events. */
static void next_cpu(struct metric_test *t)
{
	static const char *const names[] = { "frontend-bound", "backend-bound", "bad-speculation",
					     "retiring" };
	for (size_t i = 0; i < 4; i++) {
		size_t at = tally_metric_set_find(&t->set, names[i], SIZE_MAX);
		t->set.definitions.items[at].is_passed_over = true;
	}
}

static void parts_are(struct metric_test *t, const struct known *known, double frontend,
		      double backend, double bad, double retiring)
{
	assert_true(fabs(figure_from(t, "frontend-bound", known) - frontend) < 1e-9);
	assert_true(fabs(figure_from(t, "backend-bound", known) - backend) < 1e-9);
	assert_true(fabs(figure_from(t, "bad-speculation", known) - bad) < 1e-9);
	assert_true(fabs(figure_from(t, "retiring", known) - retiring) < 1e-9);
	assert_true(fabs(frontend + backend + bad + retiring - 100) < 1e-9);
}

/* Yasin's four parts are all slots, on each kind of CPU. */
static void parts_of_topdown_add_up_to_all_slots(void **state)
{
	struct metric_test *t = *state;
	static const struct known perf_metrics[] = {
		{ "/slots/", 400 },   { "fe-bound", 60 }, { "be-bound", 100 },
		{ "bad-spec", 40 },   { "retiring", 200 }, { NULL, 0 }
	};
	parts_are(t, perf_metrics, 15, 25, 10, 50);
	next_cpu(t);
	static const struct known slots[] = {
		{ "total-slots", 400 },    { "fetch-bubbles", 60 },  { "slots-issued", 235 },
		{ "slots-retired", 200 },  { "recovery-bubbles", 5 }, { NULL, 0 }
	};
	parts_are(t, slots, 15, 25, 10, 50);
	next_cpu(t); /* Zen 4 is passed over on this CPU */
	static const struct known arm[] = {
		{ "stall_slot_frontend", 0 }, { "stall_slot_backend", 0 }, { "cpu_cycles", 100 },
		{ "stall_slot", 160 },        { "op_retired", 200 },       { "op_spec", 240 },
		{ NULL, 0 }
	};
	assert_true(isnan(figure_from(t, "retiring", arm))); /* #slots is unknown */
}

static void zen_4_is_recognized(void **state)
{
	(void)state;
	const char *pattern = "AuthenticAMD-25-[136-9A-F][[:xdigit:]]";
	assert_true(tally_metric_cpu_matches(pattern, "AuthenticAMD-25-11-1"));
	assert_true(tally_metric_cpu_matches(pattern, "AuthenticAMD-25-61-2"));
	assert_false(tally_metric_cpu_matches(pattern, "AuthenticAMD-25-1-1"));  /* Zen 3 */
	assert_false(tally_metric_cpu_matches(pattern, "AuthenticAMD-25-21-0")); /* Zen 3 */
	assert_false(tally_metric_cpu_matches(pattern, "AuthenticAMD-25-50-0")); /* Zen 3 */
	assert_false(tally_metric_cpu_matches(pattern, "AuthenticAMD-26-44-0")); /* Zen 5 */
	assert_false(tally_metric_cpu_matches(pattern, ""));
	/* patterns of perf's maps for other architectures */
	assert_true(tally_metric_cpu_matches("0x004[bcd][[:xdigit:]]{4}", "0x004c1234"));
	assert_true(tally_metric_cpu_matches("0x489-0x8000000000000007-0x[[:xdigit:]]+",
					     "0x489-0x8000000000000007-0x20"));
}

/* --- perf's files --------------------------------------------------------- */

static void perfs_metrics_and_events_are_read(void **state)
{
	struct metric_test *t = *state;
	const char *text =
		"[{\"MetricName\": \"tma_x\", \"MetricExpr\": \"INST_RETIRED.ANY / "
		"CPU_CLK_UNHALTED.THREAD\", \"ScaleUnit\": \"100%\", \"MetricGroup\": "
		"\"TopdownL1;Default\", \"BriefDescription\": \"what\"},"
		"{\"EventName\": \"INST_RETIRED.ANY\", \"EventCode\": \"0x00\", \"UMask\": "
		"\"0x1\"},"
		"{\"EventName\": \"L2.MISS\", \"EventCode\": \"0x24\", \"UMask\": \"0x3f\", "
		"\"CounterMask\": \"2\", \"Invert\": \"0\", \"MSRIndex\": \"0x1a6,0x1a7\", "
		"\"MSRValue\": \"0x10\"},"
		"{\"EventName\": \"UNC_M\", \"EventCode\": \"0x4\", \"Unit\": \"iMC\"},"
		"{\"ArchStdEvent\": \"CPU_CYCLES\"}, 5]";
	if (tally_metric_set_add_json(&t->set, "x.json", text, strlen(text), &t->err) < 0)
		fail_msg("%s", t->err.message);
	size_t at = tally_metric_set_find(&t->set, "tma_x", SIZE_MAX);
	assert_true(at != SIZE_MAX);
	assert_string_equal(t->set.definitions.items[at].unit, "%");
	assert_true(figure(t, "tma_x", (double[]){ 1, 4 }) == 25);
	assert_string_equal(tally_metric_set_event(&t->set, "inst_retired.any"), "cpu/event=0xc0/");
	assert_string_equal(tally_metric_set_event(&t->set, "L2.MISS"),
			    "cpu/event=0x24,umask=0x3f,cmask=2,offcore_rsp=0x10/");
	assert_string_equal(tally_metric_set_event(&t->set, "UNC_M"), "uncore_imc/event=0x4/");
	assert_string_equal(tally_metric_set_event(&t->set, "cpu/L2.MISS,edge=1/"),
			    "cpu/event=0x24,umask=0x3f,cmask=2,offcore_rsp=0x10,edge=1/");
	assert_string_equal(tally_metric_set_event(&t->set, "INST_RETIRED.ANY:k"),
			    "cpu/event=0xc0/k");
	assert_string_equal(tally_metric_set_event(&t->set, "cycles:u"), "cycles:u");
}

static void broken_json_is_named(void **state)
{
	struct metric_test *t = *state;
	assert_int_equal(tally_metric_set_add_json(&t->set, "x.json", "[{", 2, &t->err), -EINVAL);
	assert_non_null(strstr(t->err.message, "x.json"));
}

static void a_map_names_the_cpus_folder(void **state)
{
	(void)state;
	const char *map = "Family-model,Version,Filename,EventType\n"
			  "GenuineIntel-6-56,v1,broadwellde,core\n"
			  "GenuineIntel-6-(8E|9E),v1,skylake,core\n"
			  "0x00000000410fd0c0,v1,arm/cortex-a76-n1,core\n"
			  "GenuineIntel-6-55-[01234],v1,../../etc,core\n";
	char folder[64];
	assert_int_equal(tally_metric_map_find(map, strlen(map), "GenuineIntel-6-8E-A", folder,
					       sizeof(folder)),
			 0);
	assert_string_equal(folder, "skylake");
	assert_int_equal(tally_metric_map_find(map, strlen(map), "0x00000000410fd0c0", folder,
					       sizeof(folder)),
			 0);
	assert_string_equal(folder, "arm/cortex-a76-n1");
	assert_int_equal(tally_metric_map_find(map, strlen(map), "GenuineIntel-6-55-4", folder,
					       sizeof(folder)),
			 -ENOENT);
	assert_int_equal(tally_metric_map_find(map, strlen(map), "", folder, sizeof(folder)),
			 -ENOENT);
}

/* --- figures -------------------------------------------------------------- */

#define ROW(config_, value_, ...) \
	{ \
		.name = #config_, .unit = "", .scale = 1, .type = TALLY_TYPE_HARDWARE, \
		.config = TALLY_HW_##config_, .pass = -1, .value = (value_), .source = "kernel", \
		__VA_ARGS__ \
	}

static void figure_of(struct metric_test *t, const char *name, struct tally_event_count *rows,
		      size_t count, struct tally_metric_figure *out)
{
	struct tally_metric_rows ranges[] = { { 0, 1 }, { 1, 1 } };
	struct tally_metric_use use = { .label = name, .rows = ranges };
	struct tally_metric_uses uses = {
		.items = &use, .count = 1, .machine = machine, .stride = count
	};
	struct tally_count_table table = { .rows = rows, .count = count };
	assert_int_equal(tally_metric_plan_make(&t->set,
						tally_metric_set_find(&t->set, name, SIZE_MAX),
						&t->arena, &use.plan, &t->err),
			 0);
	tally_metric_figure_of(&uses, 0, &table, rows, 0, out);
	tally_metric_plan_release(&use.plan);
}

static void a_ratio_of_different_times_says_so(void **state)
{
	struct metric_test *t = *state;
	struct tally_metric_figure figure;
	struct tally_event_count together[] = {
		ROW(INSTRUCTIONS, 30, .was_scaled = true, .group = 1, .running_ns = 5),
		ROW(CPU_CYCLES, 10, .was_scaled = true, .group = 1, .running_ns = 5)
	};
	figure_of(t, "ipc", together, 2, &figure);
	assert_true(figure.value == 3 && figure.is_scaled && !figure.is_mixed && !figure.note);
	struct tally_event_count apart[] = {
		ROW(INSTRUCTIONS, 30, .was_scaled = true, .group = -1, .running_ns = 5),
		ROW(CPU_CYCLES, 10, .was_scaled = true, .group = -1, .running_ns = 5)
	};
	figure_of(t, "ipc", apart, 2, &figure);
	assert_true(figure.value == 3 && figure.is_mixed);
	assert_string_equal(figure.note, "its events were not counted at the same time");
	struct tally_event_count whole[] = { ROW(INSTRUCTIONS, 30), ROW(CPU_CYCLES, 10) };
	figure_of(t, "ipc", whole, 2, &figure);
	assert_true(!figure.is_scaled && !figure.is_mixed && !figure.note);
}

static void a_missing_event_is_named_and_never_zero(void **state)
{
	struct metric_test *t = *state;
	struct tally_metric_figure figure;
	struct tally_event_count rows[] = { ROW(INSTRUCTIONS, 30),
					    ROW(CPU_CYCLES, 0, .state = TALLY_COUNT_NOT_SUPPORTED,
						.reason = "no PMU") };
	figure_of(t, "ipc", rows, 2, &figure);
	assert_true(isnan(figure.value));
	assert_string_equal(figure.note, "CPU_CYCLES: no PMU");
	struct tally_event_count zero[] = { ROW(INSTRUCTIONS, 30), ROW(CPU_CYCLES, 0) };
	figure_of(t, "ipc", zero, 2, &figure);
	assert_true(isnan(figure.value));
	assert_non_null(strstr(figure.note, "divided by zero"));
}

/* --- types of cores ------------------------------------------------------- */

static struct tally_format_term terms[] = { { "event", 0, 0xff }, { "umask", 0, 0xff00 } };
static struct tally_pmu_alias core_events[] = {
	{ "slots", "event=0x00,umask=0x4", "", 1 },
	{ "topdown-retiring", "event=0x00,umask=0x80", "", 1 },
	{ "topdown-bad-spec", "event=0x00,umask=0x81", "", 1 },
	{ "topdown-fe-bound", "event=0x00,umask=0x82", "", 1 },
	{ "topdown-be-bound", "event=0x00,umask=0x83", "", 1 },
};

/* Alder Lake: cpu_core has the type RAW. */
static struct tally_pmu hybrid_pmus[] = {
	{ "cpu_atom", 10, "16-23", terms, 2, NULL, 0, true },
	{ "cpu_core", 4, "0-15", terms, 2, core_events, 5, true },
};

static void metrics_are_of_one_type_of_cores(void **state)
{
	struct stat_command stat = { .provider_ops = tally_provider_kernel()->ops,
				     .metric_names = "ipc,retiring,cpi",
				     .metric_sources.file = "/dev/null" };
	struct metric_test *t = *state;
	assert_int_equal(tally_catalogue_init(&stat.catalogue), 0);
	stat.catalogue.has_tools = true;
	stat.catalogue.pmus = hybrid_pmus;
	stat.catalogue.pmu_count = 2;
	if (stat_add_metrics(&stat, &t->err) < 0)
		fail_msg("%s", t->err.message);
	static const char *const labels[] = { "cpu_atom/ipc/", "cpu_core/ipc/",
					      "cpu_core/retiring/", "cpu_atom/cpi/",
					      "cpu_core/cpi/" };
	static const char *const events[] = { "cpu_atom/instructions/",
					      "cpu_atom/cycles/",
					      "cpu_core/instructions/",
					      "cpu_core/cycles/",
					      "cpu_core/slots/",
					      "cpu_core/topdown-retiring/",
					      "cpu_core/topdown-bad-spec/",
					      "cpu_core/topdown-fe-bound/",
					      "cpu_core/topdown-be-bound/" };
	static const int groups[] = { 0, 0, 1, 1, 2, 2, 2, 2, 2 };
	assert_int_equal(stat.metrics.count, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_string_equal(stat.metrics.items[i].label, labels[i]);
		assert_null(stat.metrics.items[i].unavailable);
	}
	assert_int_equal(stat.events.count, 9);
	for (size_t i = 0; i < 9; i++) {
		assert_string_equal(stat.events.items[i].name, events[i]);
		assert_int_equal(stat.events.items[i].group, groups[i]);
	}
	/* cycles / instructions of the same rows */
	assert_int_equal(stat.metrics.items[4].rows[0].first, 3);
	assert_int_equal(stat.metrics.items[4].rows[1].first, 2);
	stat_release_metrics(&stat);
	tally_event_list_release(&stat.events);
	tally_catalogue_release(&stat.catalogue);
	tally_arena_release(&stat.arena);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(operators_have_perfs_precedence),
		TEST(functions_are_perfs),
		TEST(what_has_no_value_never_becomes_a_number),
		TEST(names_are_as_e_takes_them),
		TEST(mistakes_are_pointed_at),
		TEST(nesting_and_length_are_limited),
		TEST(a_users_file_is_read),
		TEST(a_users_metric_may_use_the_one_that_it_replaces),
		TEST(a_wrong_file_is_named_with_its_line),
		TEST(cycles_of_metrics_are_errors),
		TEST(metrics_in_metrics_are_computed_once),
		TEST(every_builtin_metric_can_be_planned),
		TEST(the_first_definition_with_its_events_is_used),
		TEST(parts_of_topdown_add_up_to_all_slots),
		TEST(zen_4_is_recognized),
		TEST(perfs_metrics_and_events_are_read),
		TEST(broken_json_is_named),
		TEST(a_map_names_the_cpus_folder),
		TEST(a_ratio_of_different_times_says_so),
		TEST(a_missing_event_is_named_and_never_zero),
		TEST(metrics_are_of_one_type_of_cores),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
