/* Parses a scenario's lines at the left margin: the machine, mixes, functions, tasks, and
 * measurements. */
#include "sim/scenario_parser.h"

#include "sim/sim_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const metric_names[SIM_METRICS] = {
	[SIM_CYCLES] = "cycles",
	[SIM_INSTRUCTIONS] = "instructions",
	[SIM_CACHE_REFERENCES] = "cache-references",
	[SIM_CACHE_MISSES] = "cache-misses",
	[SIM_BRANCHES] = "branches",
	[SIM_BRANCH_MISSES] = "branch-misses",
	[SIM_BUS_CYCLES] = "bus-cycles",
	[SIM_STALLED_FRONTEND] = "stalled-cycles-frontend",
	[SIM_STALLED_BACKEND] = "stalled-cycles-backend",
	[SIM_REFERENCE_CYCLES] = "ref-cycles",
	[SIM_L1D_LOADS] = "L1-dcache-loads",
	[SIM_L1D_LOAD_MISSES] = "L1-dcache-load-misses",
	[SIM_L1D_STORES] = "L1-dcache-stores",
	[SIM_L1I_LOAD_MISSES] = "L1-icache-load-misses",
	[SIM_DTLB_LOAD_MISSES] = "dTLB-load-misses",
	[SIM_ITLB_LOAD_MISSES] = "iTLB-load-misses",
};

/* --- the machine ---------------------------------------------------------- */

static int machine_number(struct scenario_parser *parser)
{
	static const char what[] =
		"'N cpus', 'N MHz', 'tick TIME', 'slice TIME', 'seed N', 'balanced', 'vhe' or "
		"'non-vhe'";
	struct sim_config *config = &parser->scenario->machine;
	uint64_t number;
	struct scenario_word first = parser->word;
	int code = scenario_number(parser, what, 1, 100000, &number);
	if (code)
		return code;
	if (scenario_skip(parser, "cpus") || scenario_skip(parser, "cpu")) {
		if (number > SCENARIO_CPUS_MAX) {
			parser->word = first;
			return scenario_fail(parser, "a machine has 1 to %d cpus",
					     SCENARIO_CPUS_MAX);
		}
		config->cpus = (unsigned)number;
		return 0;
	}
	if (!scenario_skip(parser, "MHz"))
		return scenario_expected(parser, "'cpus' or 'MHz'");
	config->megahertz = (uint32_t)number;
	return 0;
}

static int machine_clause(struct scenario_parser *parser)
{
	struct sim_config *config = &parser->scenario->machine;
	if (scenario_skip(parser, "tick"))
		return scenario_time(parser, &config->tick_ns);
	if (scenario_skip(parser, "slice"))
		return scenario_time(parser, &config->slice_ns);
	if (scenario_skip(parser, "seed"))
		return scenario_number(parser, "a seed", 0, UINT64_MAX / 4, &config->seed);
	if (scenario_skip(parser, "balanced"))
		config->balance = true;
	else if (scenario_skip(parser, "vhe"))
		config->virtualisation = SIM_VHE;
	else if (scenario_skip(parser, "non-vhe"))
		config->virtualisation = SIM_NON_VHE;
	else
		return machine_number(parser);
	return 0;
}

static int machine_line(struct scenario_parser *parser)
{
	struct sim_config *config = &parser->scenario->machine;
	if (parser->has_machine)
		return scenario_fail(parser, "there is one machine, and it is described above");
	parser->has_machine = true;
	scenario_next(parser);
	struct scenario_word word = parser->word;
	char models[256];
	sim_pmu_describe(models, sizeof(models));
	int code = scenario_name(parser, models, &config->model);
	if (code)
		return code;
	const struct sim_pmu_model *model = sim_pmu_model(config->model);
	if (!model) {
		parser->word = word;
		return scenario_expected(parser, models);
	}
	scenario_skip(parser, "with");
	while (parser->word.length) {
		code = machine_clause(parser);
		if (code)
			return code;
	}
	if (config->virtualisation != SIM_NOT_VIRTUAL && !model->hosts_guests) {
		parser->word = word;
		return scenario_fail(parser, "guests run on an arm64 machine alone");
	}
	if (config->cpus < model->core_types) {
		parser->word = word;
		return scenario_fail(parser, "%u core types need %u cpus at least",
				     model->core_types, model->core_types);
	}
	return scenario_done(parser);
}

/* --- mixes and functions -------------------------------------------------- */

/* Parses "ipc 1.25" into cycles per 1000 instructions. */
static int ipc(struct scenario_parser *parser, struct scenario_mix *mix)
{
	char digits[16];
	const struct scenario_word *word = &parser->word;
	snprintf(digits, sizeof(digits), "%.*s", word->length < 15 ? (int)word->length : 15,
		 word->start);
	char *end;
	double value = word->is_quoted ? 0 : strtod(digits, &end);
	if (!(value >= 0.001 && value <= 100) || *end)
		return scenario_expected(parser, "instructions per cycle, like 1.25");
	mix->per_kilo[SIM_CYCLES] = (uint32_t)(1000 / value + 0.5);
	scenario_next(parser);
	return 0;
}

static int mix_item(struct scenario_parser *parser, struct scenario_mix *mix)
{
	uint64_t number;
	if (scenario_skip(parser, "ipc"))
		return ipc(parser, mix);
	int code = scenario_number(
		parser, "how many in 1000 instructions, like '200 branches', or 'ipc 1.25'", 0,
		1000000, &number);
	for (unsigned m = 0; !code && m < SIM_METRICS; m++)
		if (m != SIM_INSTRUCTIONS && m != SIM_REFERENCE_CYCLES &&
		    scenario_skip(parser, metric_names[m])) {
			mix->per_kilo[m] = (uint32_t)number;
			return 0;
		}
	if (code)
		return code;
	return scenario_expected(parser,
				 "cycles, branches, branch-misses, cache-references, cache-misses, "
				 "L1-dcache-loads or another that docs/sim.md lists");
}

static int mix_line(struct scenario_parser *parser)
{
	struct scenario *scenario = parser->scenario;
	struct scenario_mix mix = { .per_kilo = { [SIM_CYCLES] = 1000 } };
	scenario_next(parser);
	for (unsigned i = 0; i < scenario->mix_count; i++)
		if (scenario_is(parser, scenario->mixes[i].name))
			return scenario_fail(parser, "there is a mix '%s' already",
					     scenario->mixes[i].name);
	int code = scenario_name(parser, "a name for the mix", &mix.name);
	if (code)
		return code;
	code = scenario_need(parser, "has");
	if (code)
		return code;
	do
		code = mix_item(parser, &mix);
	while (!code && parser->word.length);
	if (code)
		return code;
	if (!mix.per_kilo[SIM_CYCLES])
		return scenario_fail(parser, "instructions take cycles");
	code = scenario_done(parser);
	if (code)
		return code;
	code = scenario_grow(parser, (void **)&scenario->mixes, scenario->mix_count,
			     &scenario->mix_capacity, sizeof(mix));
	if (!code)
		scenario->mixes[scenario->mix_count++] = mix;
	return code;
}

static int function_clause(struct scenario_parser *parser, struct scenario_function *function)
{
	uint64_t number;
	if (scenario_skip(parser, "called")) {
		int code = scenario_need(parser, "by");
		if (code)
			return code;
		return scenario_find_function(parser, &function->caller);
	}
	if (!scenario_skip(parser, "of"))
		return scenario_expected(parser, "'called by FUNCTION' or 'of N bytes'");
	int code = scenario_number(parser, "a size", 64, 1 << 20, &number);
	function->size = (uint32_t)(number & ~15u);
	if (code)
		return code;
	return scenario_need(parser, "bytes");
}

static int place_function(struct scenario_parser *parser, struct scenario_function *function)
{
	uint64_t *next = &parser->next_code, end = SCENARIO_CODE_END;
	if (function->is_kernel) {
		next = &parser->next_kernel;
		end = SCENARIO_KERNEL_END;
	}
	if (function->size > end - *next)
		return scenario_fail(parser, "there is no room for more functions");
	function->address = *next;
	*next += function->size;
	return 0;
}

static int function_line(struct scenario_parser *parser, bool is_kernel)
{
	struct scenario *scenario = parser->scenario;
	struct scenario_function function = { .size = 1024,
					      .caller = SCENARIO_NONE,
					      .is_kernel = is_kernel };
	scenario_next(parser);
	for (unsigned i = 0; i < scenario->function_count; i++)
		if (scenario_is(parser, scenario->functions[i].name))
			return scenario_fail(parser, "there is a function '%s' already",
					     scenario->functions[i].name);
	int code = scenario_name(parser, "a name for the function", &function.name);
	while (!code && parser->word.length)
		code = function_clause(parser, &function);
	if (code)
		return code;
	code = scenario_done(parser);
	if (code)
		return code;
	if (function.caller >= 0 && scenario->functions[function.caller].is_kernel != is_kernel)
		return scenario_fail(
			parser,
			"kernel functions call only kernel functions, "
			"user functions only user functions");
	code = place_function(parser, &function);
	if (code)
		return code;
	code = scenario_grow(parser, (void **)&scenario->functions, scenario->function_count,
			     &scenario->function_capacity, sizeof(function));
	if (!code)
		scenario->functions[scenario->function_count++] = function;
	return code;
}

/* --- tasks, happenings ---------------------------------------------------- */

static int find_program(struct scenario_parser *parser, int *out)
{
	const struct scenario *scenario = parser->scenario;
	for (*out = 0; *out < (int)scenario->program_count; ++*out)
		if (scenario_is(parser, scenario->programs[*out].name)) {
			scenario_next(parser);
			return 0;
		}
	return scenario_expected(parser, "the name of a task that stands above");
}

static int program_line(struct scenario_parser *parser, bool is_task)
{
	struct scenario *scenario = parser->scenario;
	struct scenario_program program = { .is_task = is_task,
					    .cpu = SCENARIO_NONE,
					    .like = SCENARIO_NONE };
	uint64_t number;
	int code = 0;
	scenario_next(parser);
	for (unsigned i = 0; i < scenario->program_count; i++)
		if (scenario_is(parser, scenario->programs[i].name))
			return scenario_fail(parser, "there is a task '%s' already",
					     scenario->programs[i].name);
	if (parser->word.length > 15)
		return scenario_fail(parser, "a task's name has at most 15 characters");
	code = scenario_name(parser, "a name for the task", &program.name);
	if (!code && scenario_skip(parser, "like"))
		code = find_program(parser, &program.like);
	if (!code && scenario_skip(parser, "on")) {
		code = scenario_need(parser, "cpu");
		if (!code)
			code = scenario_number(parser, "a cpu's number", 0,
					       scenario->machine.cpus - 1, &number);
		program.cpu = code ? SCENARIO_NONE : (int)number;
	}
	if (!code)
		program.is_unprivileged = scenario_skip(parser, "unprivileged");
	if (!code)
		code = scenario_done(parser);
	if (!code)
		code = scenario_grow(parser, (void **)&scenario->programs, scenario->program_count,
				     &scenario->program_capacity, sizeof(program));
	if (code)
		return code;
	scenario->programs[scenario->program_count++] = program;
	if (program.like < 0)
		parser->program = &scenario->programs[scenario->program_count - 1];
	return 0;
}

static int happening_line(struct scenario_parser *parser)
{
	struct scenario *scenario = parser->scenario;
	struct scenario_happening happening = { 0 };
	uint64_t number = 0;
	scenario_next(parser);
	int code = scenario_time(parser, &happening.at_ns);
	if (code)
		return code;
	code = scenario_need(parser, "cpu");
	if (code)
		return code;
	code = scenario_number(parser, "a cpu's number", 0, scenario->machine.cpus - 1, &number);
	if (code)
		return code;
	happening.cpu = (unsigned)number;
	code = scenario_need(parser, "goes");
	if (code)
		return code;
	happening.online = scenario_skip(parser, "online");
	if (!happening.online && !scenario_skip(parser, "offline"))
		return scenario_expected(parser, "'offline' or 'online'");
	code = scenario_done(parser);
	if (code)
		return code;
	code = scenario_grow(parser, (void **)&scenario->happenings, scenario->happening_count,
			     &scenario->happening_capacity, sizeof(happening));
	if (!code)
		scenario->happenings[scenario->happening_count++] = happening;
	return code;
}

/* --- measurements --------------------------------------------------------- */

static int events_and_target(struct scenario_parser *parser, struct scenario_part *part)
{
	uint64_t number;
	scenario_next(parser);
	part->events_place = (struct scenario_place){ parser->line, parser->word.column };
	int code = scenario_name(parser, "events, like cycles,instructions or {a,b}", &part->text);
	if (!code)
		code = scenario_need(parser, "of");
	if (code)
		return code;
	if (scenario_skip(parser, "everything"))
		return 0;
	if (!scenario_skip(parser, "cpu"))
		return scenario_refer(parser, SCENARIO_ITEMS_MAX, parser->scenario->part_count);
	code = scenario_number(parser, "a cpu's number", 0, parser->scenario->machine.cpus - 1,
			       &number);
	part->cpu = code ? SCENARIO_NONE : (int)number;
	return code;
}

static int shared_clause(struct scenario_parser *parser, struct scenario_part *part,
			 const char *expected)
{
	if (scenario_skip(parser, "pinned"))
		part->is_pinned = true;
	else if (scenario_skip(parser, "exclusive"))
		part->is_exclusive = true;
	else if (scenario_is(parser, "with")) {
		scenario_next(parser);
		if (part->kind == SCENARIO_SAMPLE && scenario_skip(parser, "stacks"))
			part->has_stacks = true;
		else if (scenario_skip(parser, "children"))
			part->is_inherited = true;
		else if (part->kind == SCENARIO_SAMPLE)
			return scenario_expected(parser, "'children' or 'stacks'");
		else
			return scenario_expected(parser, "'children'");
	} else {
		return scenario_expected(parser, expected);
	}
	return 0;
}

static int count_line(struct scenario_parser *parser, struct scenario_part *part)
{
	int code = events_and_target(parser, part);
	while (!code && parser->word.length)
		code = shared_clause(parser, part, "'with children', 'pinned' or 'exclusive'");
	return code;
}

static int rate_clause(struct scenario_parser *parser, struct scenario_part *part)
{
	static const char what[] = "'every N', 'each hit' or 'N times a second'";
	if (scenario_skip(parser, "every"))
		return scenario_number(parser, "a period", 1, 1ull << 62, &part->rate);
	if (scenario_skip(parser, "each")) {
		part->rate = 1;
		return scenario_need(parser, "hit");
	}
	int code = scenario_number(parser, what, 1, 1000000, &part->rate);
	part->is_frequency = true;
	if (!code)
		code = scenario_need(parser, "times");
	if (!code)
		code = scenario_need(parser, "a");
	if (code)
		return code;
	return scenario_need(parser, "second");
}

static int ring_clause(struct scenario_parser *parser, struct scenario_part *part)
{
	uint64_t number;
	struct scenario_word word = parser->word;
	int code = scenario_number(parser, "pages of the ring, a power of two", 1, 4096, &number);
	if (!code && number & (number - 1)) {
		parser->word = word;
		code = scenario_fail(parser, "a ring's pages are a power of two");
	}
	part->pages = (unsigned)number;
	if (!code && !scenario_skip(parser, "pages"))
		code = scenario_need(parser, "page");
	return code;
}

static int sample_clause(struct scenario_parser *parser, struct scenario_part *part)
{
	if (scenario_skip(parser, "into"))
		return ring_clause(parser, part);
	if (!scenario_skip(parser, "read"))
		return shared_clause(
			parser, part,
			"'with stacks', 'with children', 'into N pages', 'read every TIME', "
			"'read at the end', 'pinned' or 'exclusive'");
	if (scenario_skip(parser, "every"))
		return scenario_time(parser, &part->read_every_ns);
	int code = scenario_need(parser, "at");
	part->read_every_ns = UINT64_MAX;
	if (!code)
		code = scenario_need(parser, "the");
	if (code)
		return code;
	return scenario_need(parser, "end");
}

static int sample_line(struct scenario_parser *parser, struct scenario_part *part)
{
	part->pages = 64;
	part->read_every_ns = 10000000;
	int code = events_and_target(parser, part);
	if (!code)
		code = rate_clause(parser, part);
	while (!code && parser->word.length)
		code = sample_clause(parser, part);
	return code;
}

static int part_line(struct scenario_parser *parser, enum scenario_part_kind kind)
{
	struct scenario *scenario = parser->scenario;
	struct scenario_part part = { .kind = kind, .place = { parser->line, parser->word.column },
				      .program = SCENARIO_NONE, .cpu = SCENARIO_NONE };
	int code;
	if (kind == SCENARIO_SAY) {
		scenario_next(parser);
		code = scenario_text(parser, "what to say, in quotation marks", &part.text);
	} else if (kind == SCENARIO_COUNT) {
		code = count_line(parser, &part);
	} else {
		code = sample_line(parser, &part);
	}
	if (!code)
		code = scenario_done(parser);
	if (!code)
		code = scenario_grow(parser, (void **)&scenario->parts, scenario->part_count,
				     &scenario->part_capacity, sizeof(part));
	if (!code)
		scenario->parts[scenario->part_count++] = part;
	return code;
}

/* --- the whole ------------------------------------------------------------ */

static int stop_line(struct scenario_parser *parser)
{
	scenario_next(parser);
	int code = scenario_need(parser, "after");
	if (!code)
		code = scenario_time(parser, &parser->scenario->stop_ns);
	if (code)
		return code;
	return scenario_done(parser);
}

static int outer_line(struct scenario_parser *parser)
{
	if (scenario_is(parser, "machine"))
		return machine_line(parser);
	if (!parser->has_machine)
		return scenario_expected(parser, "'machine MODEL, …' first of all");
	if (scenario_is(parser, "mix"))
		return mix_line(parser);
	if (scenario_is(parser, "function"))
		return function_line(parser, false);
	if (scenario_skip(parser, "kernel")) {
		if (scenario_is(parser, "function"))
			return function_line(parser, true);
		return scenario_expected(parser, "'function'");
	}
	if (scenario_is(parser, "task") || scenario_is(parser, "program"))
		return program_line(parser, scenario_is(parser, "task"));
	if (scenario_is(parser, "at"))
		return happening_line(parser);
	if (scenario_is(parser, "count"))
		return part_line(parser, SCENARIO_COUNT);
	if (scenario_is(parser, "sample"))
		return part_line(parser, SCENARIO_SAMPLE);
	if (scenario_is(parser, "say"))
		return part_line(parser, SCENARIO_SAY);
	if (scenario_is(parser, "stop"))
		return stop_line(parser);
	return scenario_expected(
		parser,
		"a line that begins with machine, mix, function, kernel function, task, program, "
		"at, count, sample, say or stop");
}

static int lines(struct scenario_parser *parser)
{
	while (parser->at < parser->end) {
		const char *newline = memchr(parser->at, '\n', (size_t)(parser->end - parser->at));
		parser->line++;
		parser->line_start = parser->at;
		parser->line_end = newline ? newline : parser->end;
		scenario_next(parser);
		int code = 0;
		if (parser->word.length || parser->word.is_quoted) {
			if (parser->program)
				code = scenario_step(parser);
			else
				code = outer_line(parser);
		}
		if (code)
			return code;
		parser->at = newline ? newline + 1 : parser->end;
	}
	parser->line++;
	parser->word = (struct scenario_word){ .start = "", .column = 1 };
	if (parser->program)
		return scenario_fail(parser, "expected 'end' of %s '%s', and the text ends",
				     parser->program->is_task ? "task" : "program",
				     parser->program->name);
	if (parser->has_machine)
		return 0;
	return scenario_fail(parser, "expected 'machine MODEL, …', and the text ends");
}

/* In the text's order: a program that is copied is above its copy, so it is complete. */
static int copy_steps(struct scenario *scenario)
{
	for (unsigned i = 0; i < scenario->program_count; i++) {
		struct scenario_program *to = &scenario->programs[i];
		if (to->like < 0)
			continue;
		const struct scenario_program *from = &scenario->programs[to->like];
		if (!from->step_count)
			continue;
		to->steps = malloc(from->step_count * sizeof(*to->steps));
		if (!to->steps)
			return -ENOMEM;
		memcpy(to->steps, from->steps, from->step_count * sizeof(*to->steps));
		to->step_count = from->step_count;
	}
	return 0;
}

static int resolve(struct scenario_parser *parser)
{
	struct scenario *scenario = parser->scenario;
	for (unsigned i = 0; i < parser->reference_count; i++) {
		const struct scenario_reference *reference = &parser->references[i];
		unsigned found = 0;
		parser->word = reference->word;
		parser->line = reference->line;
		while (found < scenario->program_count &&
		       !scenario_is(parser, scenario->programs[found].name))
			found++;
		if (found == scenario->program_count)
			return scenario_fail(parser, "there is no task or program '%.*s'",
					     (int)reference->word.length, reference->word.start);
		bool is_task = scenario->programs[found].is_task;
		if (reference->program == SCENARIO_ITEMS_MAX && !is_task)
			return scenario_fail(
				parser,
				"'%s' is a program; measure the task that starts it, 'with "
				"children'",
				scenario->programs[found].name);
		if (reference->program == SCENARIO_ITEMS_MAX)
			scenario->parts[reference->step].program = (int)found;
		else if (is_task)
			return scenario_fail(
				parser, "'%s' is a task of its own; only a program can be started",
				scenario->programs[found].name);
		else
			scenario->programs[reference->program].steps[reference->step].program =
				(int)found;
	}
	return copy_steps(scenario);
}

int scenario_parse(const char *text, size_t length, struct scenario **out,
		   struct scenario_error *error)
{
	struct scenario_parser parser = { .error = error,
					  .at = text,
					  .end = text + length,
					  .next_code = SCENARIO_CODE,
					  .next_kernel = SCENARIO_KERNEL };
	*out = NULL;
	parser.scenario = calloc(1, sizeof(*parser.scenario));
	if (!parser.scenario)
		return -ENOMEM;
	parser.scenario->machine = (struct sim_config){ .cpus = 1, .model = "none" };
	parser.scenario->stop_ns = 60000000000u;
	int code = lines(&parser);
	if (!code)
		code = resolve(&parser);
	free(parser.references);
	if (code)
		scenario_free(parser.scenario);
	else
		*out = parser.scenario;
	return code;
}
