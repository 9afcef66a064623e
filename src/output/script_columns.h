/* What `script --json` and `--csv` tell of a sample, but for its frames: a key or a column for
 * each. */
#ifndef TALLY_OUTPUT_SCRIPT_COLUMNS_H
#define TALLY_OUTPUT_SCRIPT_COLUMNS_H

#include "base/buffer.h"
#include "recording/recording.h"

#include <stdbool.h>
#include <stdint.h>

/* A sample that tally_recording_next() just gave. */
struct tally_script_cell {
	struct tally_recording *recording;
	const struct tally_recorded_event *event;
	const struct tally_record *record;
	const char *trace;    /* what a tracepoint said */
	uint64_t wall_offset; /* tally_script_wall_offset() */
	bool nanoseconds;     /* of the wall's time */
};

struct tally_script_column {
	uint32_t field; /* enum tally_script_field, by which it is asked for */
	const char *name;
	uint64_t needs; /* it is there when attr.sample_type has one of these bits; 0: always */
	int64_t (*signed_number)(const struct tally_script_cell *cell);
	uint64_t (*number)(const struct tally_script_cell *cell);
	/* of these three one is set */
	void (*text)(const struct tally_script_cell *cell, struct tally_buffer *out);
};

/* In the order of CSV's columns; a NULL name ends them. */
extern const struct tally_script_column tally_script_columns[];

static inline bool tally_script_column_is_there(const struct tally_script_column *column,
						const struct tally_sample *sample)
{
	return !column->needs || sample->type & column->needs;
}

#endif
