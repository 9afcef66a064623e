/* Scenarios: a machine, what its tasks do, and what is to be measured, as a text that reads like
 * prose.
 *
 * docs/sim.md is the language.  The parser is pure: bytes in, structures out.  Events to measure
 * stay text here, since what can be named is the machine's matter; who plays the scenario parses
 * them (scenario_play.h plays the rest).
 */
#ifndef TALLY_SIM_SCENARIO_H
#define TALLY_SIM_SCENARIO_H

#include "sim/sim.h"

enum {
	SCENARIO_NONE = -1,
	SCENARIO_CPUS_MAX = 4096,
	SCENARIO_ITEMS_MAX = 65536,
	SCENARIO_DEPTH_MAX = 16
};

/* Where functions lie, one behind the other. */
#define SCENARIO_CODE 0x401000u
#define SCENARIO_CODE_END 0x1400000u
#define SCENARIO_KERNEL 0xffffffff81200000u
#define SCENARIO_KERNEL_END 0xffffffff82200000u

struct scenario_place {
	unsigned line, column; /* from 1 */
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
	/* amount instructions, or ns, of mix in function, called from `from` */
	SCENARIO_RUN,
	SCENARIO_GUEST,      /* the same as a guest; is_kernel: its kernel */
	SCENARIO_SYSCALL,    /* ns in the kernel, in function or nowhere */
	SCENARIO_FAULT,      /* amount pages at address; from_disk */
	SCENARIO_SLEEP,      /* ns */
	SCENARIO_YIELD,
	SCENARIO_HIT,        /* amount hits of the tracepoint `text` */
	SCENARIO_MARK,       /* scenario:mark with amount and text */
	/* amount accesses (`access` as tally_breakpoint) of 4 bytes at address */
	SCENARIO_TOUCH,
	SCENARIO_FORK,       /* amount tasks of program */
	SCENARIO_THREAD,
	SCENARIO_WAIT,       /* for all of its children */
	SCENARIO_EXEC,       /* text */
	SCENARIO_COMM,       /* text */
	SCENARIO_PIN,        /* to cpu, or SCENARIO_NONE: anywhere */
	SCENARIO_PRIVILEGES, /* dropped */
	SCENARIO_EXIT,       /* amount: its code */
	SCENARIO_REPEAT,     /* amount times up to the end at `other` */
	SCENARIO_END         /* of the repeat at `other` */
};

struct scenario_step {
	enum scenario_step_kind kind;
	struct scenario_place place;
	uint64_t amount, ns, address;
	int mix, function, from, program, cpu;
	unsigned other, access;
	bool is_kernel, from_disk;
	const char *text;
};

/* What a task does.  A `task` runs from the start, a `program` when it is forked or started as a
 * thread. */
struct scenario_program {
	const char *name;
	bool is_task, is_unprivileged;
	int cpu; /* starts there, pinned; or SCENARIO_NONE */
	int like; /* does what that one does; or SCENARIO_NONE */
	struct scenario_step *steps;
	unsigned step_count, step_capacity;
};

struct scenario_happening {
	uint64_t at_ns; /* since the start */
	unsigned cpu;
	bool online;
};

/* What the output consists of, in the text's order. */
enum scenario_part_kind { SCENARIO_SAY, SCENARIO_COUNT, SCENARIO_SAMPLE };

struct scenario_part {
	enum scenario_part_kind kind;
	struct scenario_place place;
	const char *text;            /* what is said; or the events … */
	struct scenario_place events_place;
	/* … of this task and the others of its name; SCENARIO_NONE: of CPUs */
	int program;
	int cpu;                     /* this one, or SCENARIO_NONE: all */
	bool is_inherited, is_pinned, is_exclusive;
	/* of samples */
	bool is_frequency;
	uint64_t rate;               /* a period, or samples a second */
	bool has_stacks;
	unsigned pages;              /* of the ring */
	uint64_t read_every_ns;      /* UINT64_MAX: at the end alone */
};

struct scenario {
	struct sim_config machine; /* model is a string of its own */
	uint64_t stop_ns;          /* since the start */
	struct scenario_mix *mixes;
	struct scenario_function *functions;
	struct scenario_program *programs;
	struct scenario_happening *happenings;
	struct scenario_part *parts;
	unsigned mix_count, function_count, program_count, happening_count, part_count;
	unsigned mix_capacity, function_capacity, program_capacity, happening_capacity,
		part_capacity;
	struct scenario_text *texts; /* the strings */
};

struct scenario_error {
	struct scenario_place place;
	char message[256]; /* what is wrong, or what was expected; no full stop */
};

/* 0; -22 (EINVAL): *error says where and why; -12: no memory. */
int scenario_parse(const char *text, size_t length, struct scenario **out,
		   struct scenario_error *error);
void scenario_free(struct scenario *scenario);

const char *scenario_metric_name(enum sim_metric metric);

#endif
