/* The fields that `script` shows of a sample: perf script's -F (perf-script(1), FIELDS).
 *
 * Each type of event (hardware, software, tracepoints …) has its own set: "-F trace:time,trace -F
 * sw:comm". A list without a type applies to all types. A requested field that an event's samples
 * lack is an error; a default field that they lack is left out.
 */
#ifndef TALLY_OUTPUT_SCRIPT_FIELDS_H
#define TALLY_OUTPUT_SCRIPT_FIELDS_H

#include "base/buffer.h"
#include "base/error.h"
#include "output/script_clock.h"
#include "recording/recording.h"

#include <stdbool.h>
#include <stdint.h>

/* Fields that layouts treat in a special way; script_fields.c has the others.  Columns are in the
 * order of the bits. */
enum tally_script_field {
	TALLY_FIELD_COMM = 1 << 0,
	TALLY_FIELD_PID = 1 << 1,
	TALLY_FIELD_TID = 1 << 2,
	TALLY_FIELD_CPU = 1 << 3,
	TALLY_FIELD_TIME = 1 << 4,
	TALLY_FIELD_EVENT = 1 << 5,
	TALLY_FIELD_PERIOD = 1 << 6,
	TALLY_FIELD_TRACE = 1 << 7,
	TALLY_FIELD_MISC = 1 << 8,
	TALLY_FIELD_WALL_TIME = 1 << 9,
	TALLY_FIELD_FLAGS = 1 << 10,
	TALLY_FIELD_STACK = 1 << 11, /* CSV: the stack's names in one column */
	TALLY_FIELD_IP = 1 << 12,
	TALLY_FIELD_SYMBOL = 1 << 13,
	TALLY_FIELD_OFFSET = 1 << 14,
	TALLY_FIELD_OBJECT = 1 << 15,
	TALLY_FIELD_LINE = 1 << 16,
	TALLY_FIELDS_SPECIAL = 17 /* number of these bits */
};

/* The sample that tally_recording_next() returned last. */
struct tally_script_cell {
	struct tally_recording *recording;
	const struct tally_recorded_event *event;
	const struct tally_record *record;
	const char *trace;    /* a tracepoint's text */
	uint64_t wall_offset; /* tally_script_wall_offset() */
	bool nanoseconds;     /* show wall-clock time in nanoseconds */
	/* In text: the fields shown, and the width of the widest data_src so far. */
	uint32_t shown;
	size_t *source_width;
};

/* The spot of a field's text: before or after the sample's address or stack. */
enum tally_script_spot {
	TALLY_SPOT_NONE, /* in the line's head or the stack, or not in text */
	TALLY_SPOT_BEFORE,
	TALLY_SPOT_AFTER,
	TALLY_SPOT_END
};

struct tally_script_row {
	const char *name; /* in -F; NULL: one more column of the field above */
	uint32_t bit;     /* 0: accepted but never shown */
	/* attr.sample_type must have one of these bits; 0: no requirement */
	uint64_t sample_type;
	const char *attribute; /* perf's name for it, for an error; NULL: lacking it is no error */

	/* JSON's key and CSV's column, and its value: at most one of these functions is set.  NULL:
	 * there is none. */
	const char *column;
	int64_t (*signed_number)(const struct tally_script_cell *cell);
	uint64_t (*number)(const struct tally_script_cell *cell);
	void (*text)(const struct tally_script_cell *cell, struct tally_buffer *out);

	/* In perf's layout.  `put` NULL: the number, in 16 columns.  A row with a column but
	 * without a function above uses the text of `put`, without blanks around it. */
	enum tally_script_spot spot;
	void (*put)(const struct tally_script_cell *cell, struct tally_buffer *out);
	bool has_lines; /* `put` puts whole lines, in which all text is printable */
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

/* In the order of the bits: stores the rows of the columns, or of the fields at a spot.  `out` has
 * room for TALLY_SCRIPT_ROWS_MAX.  Returns their number. */
enum { TALLY_SCRIPT_ROWS_MAX = 40 };
size_t tally_script_columns(const struct tally_script_row **out);
size_t tally_script_spot_rows(enum tally_script_spot spot, const struct tally_script_row **out);

/* Appends the text of a row's column, or the text of a row in perf's layout. */
void tally_script_column_text(const struct tally_script_row *row,
			      const struct tally_script_cell *cell, struct tally_buffer *out);
void tally_script_row_text(const struct tally_script_row *row, const struct tally_script_cell *cell,
			   struct tally_buffer *out);

enum { TALLY_SCRIPT_MISC_SIZE = 6 };
/* Writes the field misc, "U " or "KE ", without a NUL: the CPU mode, then flags that depend on the
 * record's type. They say that a sample's address is exact (E), that a mapping is of data (M), that
 * a comm comes from exec (E), that a switch is out (S), and that the task was preempted (Sp). */
void tally_script_misc(char *at, const struct tally_record_header *header);

#endif
