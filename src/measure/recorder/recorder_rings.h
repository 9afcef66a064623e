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

/* Makes room for a ring for each CPU (and those that may come online) or thread.  Returns 0 or
 * -ENOMEM. */
int tally_recorder_make_rings(struct tally_recorder_rings *rings);
/* Chooses the sizes by the options and the budget.  `copies_bytes`: ring size for stack copies;
 * 0: unknown. */
struct tally_recorder_ring_sizes tally_recorder_choose_rings(
	const struct tally_recorder_rings *rings, bool has_copies, size_t copies_bytes);
/* Directs `handle` to the ring.  The first handle creates the ring, with fewer pages when so many
 * can't be had. */
int tally_recorder_join_ring(struct tally_recorder_rings *rings, struct tally_ring *ring,
			     int handle, int cpu, size_t *pages, struct tally_error *err);
void tally_recorder_report_small_rings(const struct tally_recorder_rings *rings);

/* Notes how far the kernel has written the sample rings, and sets found_bytes. */
void tally_recorder_note_heads(struct tally_recorder_rings *rings);
/* Returns a number that grows with each byte that is read. */
uint64_t tally_recorder_bytes_read(const struct tally_recorder_rings *rings);
void tally_recorder_close_rings(struct tally_recorder_rings *rings);

#endif
