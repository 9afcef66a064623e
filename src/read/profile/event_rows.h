/* The rows and classes of each event of a profile: a recording may have thousands of events, and a
 * view of one must not look at the rows of all. */
#ifndef TALLY_PROFILE_EVENT_ROWS_H
#define TALLY_PROFILE_EVENT_ROWS_H

#include <stddef.h>
#include <stdint.h>

struct tally_profile;

/* Zero-initialised has no events. */
struct tally_event_rows {
	uint32_t events;
	uint32_t *rows, *classes; /* numbers, by event, then ascending */
	uint32_t *positions;      /* by class: its place among those of its event */
	size_t *row_starts, *class_starts; /* by event, and one more */
	size_t *merged_threads;   /* by event: entries of the profile's merged_threads */
};

struct tally_numbers {
	const uint32_t *items;
	size_t count;
};

/* Fills an empty index from a profile that does not change any more.  Returns 0 or -ENOMEM; the
 * caller releases the index in both cases. */
int tally_event_rows_make(const struct tally_profile *profile, struct tally_event_rows *index);
void tally_event_rows_release(struct tally_event_rows *index);

/* Return the numbers of an event's rows and classes, ascending. */
struct tally_numbers tally_event_rows(const struct tally_event_rows *index, uint32_t event);
struct tally_numbers tally_event_classes(const struct tally_event_rows *index, uint32_t event);

#endif
