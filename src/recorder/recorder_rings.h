/* The rings of a recording: on each CPU, or for each thread (options.per_thread), one for samples
 * and one for the side-band. */
#ifndef TALLY_RECORDER_RINGS_H
#define TALLY_RECORDER_RINGS_H

#include "recorder/recorder_session.h"

struct tally_recorder_ring_sizes {
	size_t sample_pages, side_pages;
};

enum tally_recorder_cpu_state {
	TALLY_RECORDER_CPU_ONLINE,
	TALLY_RECORDER_CPU_OFFLINE,
	TALLY_RECORDER_CPU_GIVEN_UP, /* came online again, but could not be recorded */
};

struct tally_recorder_cpu {
	unsigned number;
	enum tally_recorder_cpu_state state;
};

struct tally_recorder_rings {
	struct tally_recorder_session *session;
	struct tally_ring *samples, *sides;
	struct tally_recorder_cpu *cpus;
	size_t count, capacity; /* capacity is larger because more CPUs may come online */
	struct tally_recorder_ring_sizes sizes;
	uint64_t found_bytes; /* bytes in the fullest ring at the last pass */
	uint64_t online_at; /* next time to look for CPUs that came online or went offline */
};

#endif
