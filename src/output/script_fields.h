/* The fields that `script` shows of a sample: perf script's -F (perf-script(1), FIELDS).
 *
 * Each type of event (hardware, software, tracepoints …) has its own set: "-F trace:time,trace -F
 * sw:comm". A list without a type applies to all types. A requested field that an event's samples
 * lack is an error; a default field that they lack is left out.
 */
#ifndef TALLY_OUTPUT_SCRIPT_FIELDS_H
#define TALLY_OUTPUT_SCRIPT_FIELDS_H

#include "base/error.h"
#include "output/script_clock.h"
#include "perfdata/perfdata.h"

#include <stdbool.h>
#include <stdint.h>

enum tally_script_field {
	TALLY_FIELD_COMM = 1 << 0,
	TALLY_FIELD_TID = 1 << 1,
	TALLY_FIELD_PID = 1 << 2,
	TALLY_FIELD_TIME = 1 << 3,
	TALLY_FIELD_CPU = 1 << 4,
	TALLY_FIELD_EVENT = 1 << 5,
	TALLY_FIELD_TRACE = 1 << 6,
	TALLY_FIELD_IP = 1 << 7,
	TALLY_FIELD_SYMBOL = 1 << 8,
	TALLY_FIELD_OFFSET = 1 << 9,
	TALLY_FIELD_OBJECT = 1 << 10,
	TALLY_FIELD_ADDR = 1 << 11,
	TALLY_FIELD_LINE = 1 << 12,
	TALLY_FIELD_PERIOD = 1 << 13,
	TALLY_FIELD_REGS_INTR = 1 << 14,
	TALLY_FIELD_REGS_USER = 1 << 15,
	TALLY_FIELD_BRANCHES = 1 << 16,
	TALLY_FIELD_BRANCH_SYMBOLS = 1 << 17,
	TALLY_FIELD_FLAGS = 1 << 18,
	TALLY_FIELD_PHYS_ADDR = 1 << 19,
	TALLY_FIELD_WEIGHT = 1 << 20,
	TALLY_FIELD_MISC = 1 << 21,
	TALLY_FIELD_CGROUP = 1 << 22,
	TALLY_FIELD_DATA_PAGE_SIZE = 1 << 23,
	TALLY_FIELD_CODE_PAGE_SIZE = 1 << 24,
	TALLY_FIELD_DATA_SOURCE = 1 << 25,
	TALLY_FIELD_LATENCY = 1 << 26,
	TALLY_FIELD_BPF_OUTPUT = 1 << 27,
	TALLY_FIELD_WALL_TIME = 1 << 28,
	TALLY_FIELD_STACK = 1 << 29 /* CSV: the stack's names in one column */
};

/* The output format; each has its own default fields. */
enum tally_script_layout { TALLY_SCRIPT_TEXT, TALLY_SCRIPT_JSON, TALLY_SCRIPT_CSV };

/* perf_event's types; dynamic PMUs' events are OTHER. */
enum { TALLY_SCRIPT_TYPE_OTHER = 6, TALLY_SCRIPT_TYPES };

struct tally_script_fields {
	enum tally_script_layout layout;
	bool no_stacks; /* show only the sampled address */
	struct tally_script_clock *clock; /* NULL: the recording's clock, in microseconds */
	struct tally_script_type_fields {
		uint32_t shown;
		/* fields in `shown` that were requested by name and so must exist */
		uint32_t asked;
		/* -F was given: tracepoints then show no stacks by default */
		bool is_set;
	} types[TALLY_SCRIPT_TYPES];
};

/* Sets the defaults, without -F. */
void tally_script_fields_init(struct tally_script_fields *fields, enum tally_script_layout layout);

/* Parses one "[TYPE:]FIELD,…" or "[TYPE:]+FIELD,-FIELD,…". Returns 0 or -EINVAL. */
int tally_script_fields_parse(struct tally_script_fields *fields, const char *text,
			      struct tally_error *err);

/* Stores which fields to show of an event's samples. Returns 0, or -ENODATA if they lack a
 * requested field. */
int tally_script_fields_of(const struct tally_script_fields *fields,
			   const struct tally_recorded_event *event, uint32_t *shown,
			   struct tally_error *err);

#endif
