/* Scenarios: a machine, its tasks' work, and the events to measure, in a text that reads like
 * prose.
 *
 * docs/sim.md describes the language.  The parser is pure: bytes in, structures out.  Events to
 * measure stay text here, since their names depend on the machine; the code that plays the scenario
 * parses them (scenario_play.h plays everything else). */
#ifndef TALLY_SIM_SCENARIO_H
#define TALLY_SIM_SCENARIO_H

#include "sim/sim.h"

enum {
	SCENARIO_NONE = -1,
	SCENARIO_CPUS_MAX = 4096,
	SCENARIO_ITEMS_MAX = 65536,
	SCENARIO_DEPTH_MAX = 16
};

/* The range of addresses in which functions are placed, one after another. */
#define SCENARIO_CODE 0x401000u
#define SCENARIO_CODE_END 0x1400000u
#define SCENARIO_KERNEL 0xffffffff81200000u
#define SCENARIO_KERNEL_END 0xffffffff82200000u

struct scenario_place {
	unsigned line, column; /* counted from 1 */
};

struct scenario_mix {
	const char *name;
	uint32_t per_kilo[SIM_METRICS];
};

struct scenario_function {
	const char *name;
	uint64_t address;
	uint32_t size;
	int caller; /* a function, or SCENARIO_NONE */
	bool is_kernel;
};

enum scenario_step_kind {
	/* `amount` instructions, or `ns`, of mix in function, called from `from` */
	SCENARIO_RUN,
	SCENARIO_GUEST,      /* the same in a guest; is_kernel: in the guest's kernel */
	SCENARIO_SYSCALL,    /* `ns` in the kernel, in function or in none */
	SCENARIO_FAULT,      /* `amount` page faults from address on; from_disk */
	SCENARIO_SLEEP,      /* for `ns` */
	SCENARIO_YIELD,
	SCENARIO_HIT,        /* `amount` hits of the tracepoint `text` */
	SCENARIO_MARK,       /* scenario:mark with amount and text */
	/* `amount` accesses (`access` as in tally_breakpoint) of 4 bytes at address */
	SCENARIO_TOUCH,
	SCENARIO_FORK,       /* `amount` new tasks of program */
	SCENARIO_THREAD,
	SCENARIO_WAIT,       /* for all its children */
	SCENARIO_EXEC,       /* with comm `text` */
	SCENARIO_COMM,       /* sets comm to `text` */
	SCENARIO_PIN,        /* to cpu; SCENARIO_NONE: to none */
	SCENARIO_PRIVILEGES, /* drops them */
	SCENARIO_EXIT,       /* with the code `amount` */
	SCENARIO_REPEAT,     /* `amount` times, up to the end at `other` */
	SCENARIO_END         /* of the repeat at `other` */
};

struct scenario_step {
	enum scenario_step_kind kind;
	uint64_t amount, ns, address;
	int mix, function, from, program, cpu;
	unsigned other, access;
	bool is_kernel, from_disk;
	const char *text;
};

/* A sequence of steps.  A `task` runs from the start, a `program` when it is forked or started as a
 * thread. */
struct scenario_program {
	const char *name;
	bool is_task, is_unprivileged;
	int cpu; /* it is pinned to this CPU from the start; or SCENARIO_NONE */
	int like; /* the program whose steps it copies; or SCENARIO_NONE */
	struct scenario_step *steps;
	unsigned step_count, step_capacity;
};

struct scenario_happening {
	uint64_t at_ns; /* ns since the start */
	unsigned cpu;
	bool online;
};

/* The parts of the output, in the text's order. */
enum scenario_part_kind { SCENARIO_SAY, SCENARIO_COUNT, SCENARIO_SAMPLE };

struct scenario_part {
	enum scenario_part_kind kind;
	struct scenario_place place;
	const char *text;            /* the text to print; or the events … */
	struct scenario_place events_place;
	/* … of this task and others of its name; SCENARIO_NONE: of CPUs */
	int program;
	int cpu;                     /* the CPU; SCENARIO_NONE: all */
	bool is_inherited, is_pinned, is_exclusive;
	/* for samples */
	bool is_frequency;
	uint64_t rate;               /* a period, or samples per second */
	bool has_stacks;
	unsigned pages;              /* pages of the ring */
	uint64_t read_every_ns;      /* UINT64_MAX: only at the end */
};

struct scenario {
	struct sim_config machine; /* the scenario owns the string `model` */
	uint64_t stop_ns;          /* ns since the start */
	struct scenario_mix *mixes;
	struct scenario_function *functions;
	struct scenario_program *programs;
	struct scenario_happening *happenings;
	struct scenario_part *parts;
	unsigned mix_count, function_count, program_count, happening_count, part_count;
	unsigned mix_capacity, function_capacity, program_capacity, happening_capacity,
		part_capacity;
	struct scenario_text *texts; /* owns the strings */
};

struct scenario_error {
	struct scenario_place place;
	char message[256]; /* the mistake, or the expectation; no full stop */
};

/* Parses a scenario.  Returns 0, -22 (EINVAL) with *error set, or -12 (ENOMEM). */
int scenario_parse(const char *text, size_t length, struct scenario **out,
		   struct scenario_error *error);
void scenario_free(struct scenario *scenario);

#endif
