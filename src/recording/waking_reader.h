/* Reads samples of wakings: the task that was woken, and a number for the task and stack that woke
 * it.  Only off_cpu.c uses this. */
#ifndef TALLY_PROFILE_WAKING_READER_H
#define TALLY_PROFILE_WAKING_READER_H

#include "base/map.h"
#include "recording/recording.h"
#include "tracepoint/format.h"

struct tally_waking {
	/* number of the waking task and its stack, from 1; 0: the sample doesn't say which task it
	 * woke */
	uint32_t number;
	uint32_t woken; /* tid of the task that was woken */
	bool in_interrupt;
};

struct tally_waking_reader {
	const struct tally_recording *recording;
	struct tally_tracepoint *tracepoint;
	const struct tally_tracepoint_field *pid, *flags;
	bool was_looked_for;      /* for the format */
	struct tally_map numbers; /* hash of task and stack → number */
	/* tid → number of the last waking << 32 | its time in units of 2^16 ns */
	struct tally_map last;
};

/* Reads a sample of a waking.  Returns 0 or -ENOMEM. */
int tally_waking_read(struct tally_waking_reader *reader, const struct tally_recorded_event *event,
		      const struct tally_sample *sample, struct tally_waking *out);

/* Returns the number of the waking of a task just before it left its CPU: a waker may come while
 * the task is about to leave, and then its waking is recorded first.  0: there was none. */
uint32_t tally_waking_before(const struct tally_waking_reader *reader, uint32_t tid, uint64_t time);

void tally_waking_reader_release(struct tally_waking_reader *reader);

#endif
