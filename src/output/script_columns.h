/* A sample's contents in `script --json` and `--csv`, except frames: one key or column for each
 * field. */
#ifndef TALLY_OUTPUT_SCRIPT_COLUMNS_H
#define TALLY_OUTPUT_SCRIPT_COLUMNS_H

#include "base/buffer.h"
#include "recording/recording.h"

#include <stdbool.h>
#include <stdint.h>

/* The sample that tally_recording_next() returned last. */
struct tally_script_cell {
	struct tally_recording *recording;
	const struct tally_recorded_event *event;
	const struct tally_record *record;
	const char *trace;    /* a tracepoint's text */
	uint64_t wall_offset; /* tally_script_wall_offset() */
	bool nanoseconds;     /* show wall-clock time in nanoseconds */
};

struct tally_script_column {
	uint32_t field; /* enum tally_script_field that selects it */
	const char *name;
	uint64_t needs; /* present if attr.sample_type has one of these bits; 0: always */
	int64_t (*signed_number)(const struct tally_script_cell *cell);
	uint64_t (*number)(const struct tally_script_cell *cell);
	/* exactly one of these three is set */
	void (*text)(const struct tally_script_cell *cell, struct tally_buffer *out);
};

/* In the order of CSV's columns; a NULL name ends the table. */
extern const struct tally_script_column tally_script_columns[];

static inline bool tally_script_column_is_there(const struct tally_script_column *column,
						const struct tally_sample *sample)
{
	return !column->needs || sample->type & column->needs;
}

#endif
