/* Samples of wakings: who was woken, and which task and stack did it, as a number.  For
 * off_cpu.c alone. */
#ifndef TALLY_PROFILE_WAKING_READER_H
#define TALLY_PROFILE_WAKING_READER_H

#include "base/map.h"
#include "profile/recording.h"
#include "tracepoint/format.h"

struct tally_waking {
	uint32_t
		/* from 1: the waking task and its stack; 0: the sample doesn't tell who was
		 * woken */
		number;
	uint32_t woken; /* tid */
	bool in_interrupt;
};

struct tally_waking_reader {
	const struct tally_recording *recording;
	struct tally_tracepoint *tracepoint;
	const struct tally_tracepoint_field *pid, *flags;
	bool was_looked_for;      /* the format */
	struct tally_map numbers; /* hash of task and stack → number */
	struct tally_map
		/* tid → number of the last waking, and when in units of 2^16 ns: number << 32 |
		 * time */
		last;
};

/* 0 or -ENOMEM. */
int tally_waking_read(struct tally_waking_reader *reader, const struct tally_recorded_event *event,
		      const struct tally_sample *sample, struct tally_waking *out);

/* The number of who woke the task a moment before it left its CPU: a waker may come while it is
 * about to, and is told of first. 0: nobody did. */
uint32_t tally_waking_before(const struct tally_waking_reader *reader, uint32_t tid, uint64_t time);

void tally_waking_reader_release(struct tally_waking_reader *reader);

#endif
