/* Records other than samples, in the format of `perf script --show-…-events`. */
#ifndef TALLY_OUTPUT_SCRIPT_EVENTS_H
#define TALLY_OUTPUT_SCRIPT_EVENTS_H

#include "output/script_text.h"

/* Kinds of records, by perf's names. */
enum tally_script_events {
	TALLY_SCRIPT_MMAP = 1 << 0,
	TALLY_SCRIPT_TASK = 1 << 1,
	TALLY_SCRIPT_SWITCH = 1 << 2,
	TALLY_SCRIPT_NAMESPACE = 1 << 3,
	TALLY_SCRIPT_CGROUP = 1 << 4,
	TALLY_SCRIPT_LOST = 1 << 5,
	TALLY_SCRIPT_BPF = 1 << 6,
	TALLY_SCRIPT_TEXT_POKE = 1 << 7,
	TALLY_SCRIPT_ROUND = 1 << 8
};

/* Appends the record that tally_recording_next() returned last if `shown` has its kind. Returns
 * like tally_script_sample(). */
int tally_script_event(struct tally_recording *recording, struct tally_script *script,
		       const struct tally_raw_record *raw, const struct tally_record *record,
		       unsigned shown, struct tally_buffer *out, struct tally_error *err);

#endif
