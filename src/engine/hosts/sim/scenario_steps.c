/* Parses a scenario's lines within a task: its steps. */
#include "sim/scenario_parser.h"

#include <string.h>

static unsigned number_of_program(const struct scenario_parser *parser)
{
	return (unsigned)(parser->program - parser->scenario->programs);
}

/* Parses "N instructions of MIX in FUNCTION [from FUNCTION]", or a time instead of instructions. */
static int work(struct scenario_parser *parser, struct scenario_step *step)
{
	int code = 0;
	if (scenario_is_time(parser)) {
		code = scenario_time(parser, &step->ns);
	} else {
		code = scenario_number(parser, "how much, like '10M instructions' or '5 ms'", 1,
				       1ull << 48, &step->amount);
		if (!code)
			code = scenario_need(parser, "instructions");
	}
	if (code)
		return code;
	code = scenario_need(parser, "of");
	if (code)
		return code;
	code = scenario_find_mix(parser, &step->mix);
	if (code)
		return code;
	code = scenario_need(parser, "in");
	if (code)
		return code;
	struct scenario_word word = parser->word;
	code = scenario_find_function(parser, &step->function);
	if (code)
		return code;
	if (scenario_skip(parser, "from"))
		code = scenario_find_function(parser, &step->from);
	if (!code && step->from >= 0 &&
	    parser->scenario->functions[step->from].is_kernel !=
		    parser->scenario->functions[step->function].is_kernel) {
		parser->word = word;
		code = scenario_fail(
			parser,
			"kernel functions call only kernel functions, "
			"user functions only user functions");
	}
	return code;
}

static int run(struct scenario_parser *parser, struct scenario_step *step)
{
	int code = work(parser, step);
	if (!code)
		step->is_kernel = parser->scenario->functions[step->function].is_kernel;
	return code;
}

static int guest(struct scenario_parser *parser, struct scenario_step *step)
{
	if (parser->scenario->machine.virtualisation == SIM_NOT_VIRTUAL)
		return scenario_fail(parser, "guests need a machine that is 'vhe' or 'non-vhe'");
	step->is_kernel = scenario_skip(parser, "kernel");
	return work(parser, step);
}

static int syscall_of(struct scenario_parser *parser, struct scenario_step *step)
{
	struct scenario_word word;
	int code = scenario_time(parser, &step->ns);
	if (code || !scenario_skip(parser, "in"))
		return code;
	word = parser->word;
	code = scenario_find_function(parser, &step->function);
	if (!code && !parser->scenario->functions[step->function].is_kernel) {
		parser->word = word;
		code = scenario_fail(parser, "a system call runs in a kernel function");
	}
	return code;
}

static int fault(struct scenario_parser *parser, struct scenario_step *step)
{
	int code = scenario_number(parser, "a number of pages", 1, 1000000, &step->amount);
	if (!code && !scenario_skip(parser, "pages"))
		code = scenario_need(parser, "page");
	if (!code && scenario_skip(parser, "at"))
		code = scenario_number(parser, "an address", 4096, 1ull << 47, &step->address);
	if (!code && scenario_skip(parser, "from")) {
		step->from_disk = true;
		code = scenario_need(parser, "disk");
	}
	return code;
}

static int times(struct scenario_parser *parser, struct scenario_step *step)
{
	step->amount = 1;
	if (!parser->word.length)
		return 0;
	int code = scenario_number(parser, "how many times", 1, 1ull << 32, &step->amount);
	if (!code && !scenario_skip(parser, "times"))
		code = scenario_need(parser, "time");
	return code;
}

static int hit(struct scenario_parser *parser, struct scenario_step *step)
{
	static const char *const known[] = { "syscalls:sys_enter_getppid" };
	struct scenario_word word = parser->word;
	int code = scenario_name(parser, "a tracepoint", &step->text);
	if (!code && strcmp(step->text, known[0])) {
		parser->word = word;
		return scenario_fail(
			parser,
			"a task can hit only %s (or use 'mark'); "
			"other tracepoints are hit as tasks run",
			known[0]);
	}
	if (code)
		return code;
	return times(parser, step);
}

static int mark(struct scenario_parser *parser, struct scenario_step *step)
{
	int code = scenario_text(parser, "a text in quotation marks", &step->text);
	if (!code && parser->word.length)
		code = scenario_number(parser, "a number", 0, INT64_MAX, &step->amount);
	return code;
}

static int touch(struct scenario_parser *parser, struct scenario_step *step)
{
	static const struct { const char *name; unsigned access;
	} accesses[] = {
		{ "to-read", TALLY_BREAKPOINT_R },
		{ "to-write", TALLY_BREAKPOINT_W },
		{ "to-execute", TALLY_BREAKPOINT_X },
	};
	int code = scenario_number(parser, "an address", 4096, 1ull << 47, &step->address);
	for (unsigned i = 0; !code && !step->access; i++) {
		if (i == sizeof(accesses) / sizeof(accesses[0]))
			return scenario_expected(parser, "'to-read', 'to-write' or 'to-execute'");
		if (scenario_skip(parser, accesses[i].name))
			step->access = accesses[i].access;
	}
	if (code)
		return code;
	return times(parser, step);
}

static int start(struct scenario_parser *parser, struct scenario_step *step)
{
	int code = scenario_refer(parser, number_of_program(parser), parser->program->step_count);
	if (code)
		return code;
	return times(parser, step);
}

static int named(struct scenario_parser *parser, struct scenario_step *step)
{
	if (parser->word.length > 15)
		return scenario_fail(parser, "a command's name has at most 15 characters");
	return scenario_name(parser, "a name", &step->text);
}

static int pin(struct scenario_parser *parser, struct scenario_step *step)
{
	uint64_t number;
	int code = scenario_need(parser, "to");
	if (!code)
		code = scenario_need(parser, "cpu");
	if (!code)
		code = scenario_number(parser, "a cpu's number", 0,
				       parser->scenario->machine.cpus - 1, &number);
	step->cpu = code ? SCENARIO_NONE : (int)number;
	return code;
}

static int drop(struct scenario_parser *parser, struct scenario_step *step)
{
	(void)step;
	return scenario_need(parser, "privileges");
}

static int leave(struct scenario_parser *parser, struct scenario_step *step)
{
	if (parser->word.length)
		return scenario_number(parser, "an exit code", 0, 255, &step->amount);
	return 0;
}

static int sleep_for(struct scenario_parser *parser, struct scenario_step *step)
{
	return scenario_time(parser, &step->ns);
}

static int repeat(struct scenario_parser *parser, struct scenario_step *step)
{
	int code = times(parser, step);
	if (!code && parser->depth == SCENARIO_DEPTH_MAX)
		return scenario_fail(parser, "repeats can be nested at most %d deep",
				     SCENARIO_DEPTH_MAX);
	if (!code)
		parser->open[parser->depth++] = parser->program->step_count;
	return code;
}

static int nothing(struct scenario_parser *parser, struct scenario_step *step)
{
	(void)parser, (void)step;
	return 0;
}

static const struct {
	const char *word;
	enum scenario_step_kind kind;
	int (*parse)(struct scenario_parser *parser, struct scenario_step *step);
} verbs[] = {
	{ "run", SCENARIO_RUN, run },
	{ "guest", SCENARIO_GUEST, guest },
	{ "syscall", SCENARIO_SYSCALL, syscall_of },
	{ "fault", SCENARIO_FAULT, fault },
	{ "sleep", SCENARIO_SLEEP, sleep_for },
	{ "yield", SCENARIO_YIELD, nothing },
	{ "hit", SCENARIO_HIT, hit },
	{ "mark", SCENARIO_MARK, mark },
	{ "touch", SCENARIO_TOUCH, touch },
	{ "fork", SCENARIO_FORK, start },
	{ "thread", SCENARIO_THREAD, start },
	{ "wait", SCENARIO_WAIT, nothing },
	{ "exec", SCENARIO_EXEC, named },
	{ "comm", SCENARIO_COMM, named },
	{ "pin", SCENARIO_PIN, pin },
	{ "unpin", SCENARIO_PIN, nothing },
	{ "drop", SCENARIO_PRIVILEGES, drop },
	{ "exit", SCENARIO_EXIT, leave },
	{ "repeat", SCENARIO_REPEAT, repeat },
};

/* Parses the end of the innermost repeat, or of the task. */
static int end(struct scenario_parser *parser, struct scenario_step *step)
{
	if (!parser->depth)
		return 0;
	unsigned first = parser->open[--parser->depth];
	if (first + 1 == parser->program->step_count)
		return scenario_fail(parser, "there is nothing to repeat");
	step->other = first;
	parser->program->steps[first].other = parser->program->step_count;
	return 0;
}

static int parse_verb(struct scenario_parser *parser, struct scenario_step *step)
{
	for (unsigned i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (scenario_skip(parser, verbs[i].word)) {
			step->kind = verbs[i].kind;
			return verbs[i].parse(parser, step);
		}
	return scenario_expected(
		parser,
		"what the task does (run, syscall, fault, sleep, yield, hit, mark, touch, fork, "
		"thread, wait, exec, comm, pin, unpin, drop, exit, repeat, guest) or 'end'");
}

int scenario_step(struct scenario_parser *parser)
{
	struct scenario_program *program = parser->program;
	struct scenario_step step = { .mix = SCENARIO_NONE,
				      .function = SCENARIO_NONE,
				      .from = SCENARIO_NONE,
				      .program = SCENARIO_NONE,
				      .cpu = SCENARIO_NONE,
				      .kind = SCENARIO_END };
	bool is_end = scenario_skip(parser, "end"), ends_task = is_end && !parser->depth;
	int code;
	if (is_end)
		code = end(parser, &step);
	else
		code = parse_verb(parser, &step);
	if (code)
		return code;
	code = scenario_done(parser);
	if (code)
		return code;
	if (ends_task) {
		parser->program = NULL;
		return 0;
	}
	code = scenario_grow(parser, (void **)&program->steps, program->step_count,
			     &program->step_capacity, sizeof(step));
	if (code)
		return code;
	program->steps[program->step_count++] = step;
	return 0;
}
