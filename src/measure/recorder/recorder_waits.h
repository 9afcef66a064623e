/* When the next pass comes: the handles that wake the recorder, and the time after which it looks
 * by itself. */
#ifndef TALLY_RECORDER_WAITS_H
#define TALLY_RECORDER_WAITS_H

#include "recorder/recorder_events.h"
#include "recorder/recorder_triggers.h"

/* The rings to wait for.  If the first event of a ring has ended, another of its events takes its
 * place. */
struct tally_recorder_waits {
	struct tally_wait_item *items; /* handle -1: all events of the ring have ended */
	struct {
		bool side;
		uint32_t ring;
		size_t next;
	} * places;
	size_t count, ended;
	size_t triggers; /* number of handles of the triggers' rings, behind these in `items` */
};
int tally_recorder_waits_init(struct tally_recorder_waits *waits,
			      const struct tally_recorder_rings *rings,
			      const struct tally_recorder_triggers *triggers);
void tally_recorder_waits_update(struct tally_recorder_waits *waits,
				 const struct tally_recorder_events *events);
void tally_recorder_waits_release(struct tally_recorder_waits *waits);

/* State for choosing when to look at the rings without being woken.  All 0 at the start of a
 * recording. */
struct tally_recorder_pace {
	uint64_t last_ns, lost;
	/* after a loss: the end of the early looks, and their duration */
	uint64_t until_ns, span_ns;
	uint64_t elapsed_ns; /* between the last two passes */
	uint64_t longest_ns; /* the larger one of the last two values of elapsed_ns */
	/* time in which a ring fills, by the last pass that found room in it; 0: unknown */
	double fill_ns;
};

/* Returns the ms until the next pass is due even if nothing wakes the recorder; -1: not within
 * TALLY_RECORDER_PACE_MS_MAX.  Call it after a pass, with the bytes that it found in the fullest
 * ring. */
enum { TALLY_RECORDER_PACE_MS_MAX = 200 };
int tally_recorder_pace_ms(struct tally_recorder_pace *pace, uint64_t now_ns, uint64_t lost,
			   uint64_t found_bytes, uint64_t ring_bytes);

#endif
