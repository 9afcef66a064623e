/* What the formats have in common.  For export_*.c. */
#ifndef TALLY_OUTPUT_EXPORT_PARTS_H
#define TALLY_OUTPUT_EXPORT_PARTS_H

#include "output/export.h"

int tally_export_pprof(const struct tally_samples *samples, uint32_t event,
		       struct tally_buffer *out);
int tally_export_firefox(const struct tally_samples *samples, uint32_t event,
			 struct tally_buffer *out);
int tally_export_speedscope(const struct tally_samples *samples, uint32_t event,
			    struct tally_buffer *out);
int tally_export_chrome(const struct tally_samples *samples, uint32_t event,
			struct tally_buffer *out);

/* The samples of one event in one thread: `items[first] … [first + count)` of `order`, in order of
 * time. */
struct tally_export_thread {
	uint32_t thread; /* of the recording's tasks.threads */
	size_t first, count;
	uint64_t weight;
};

struct tally_export_threads {
	uint32_t *order; /* indexes of samples */
	/* the heaviest first */
	struct { struct tally_export_thread *items; size_t count, capacity; } threads;
};

/* 0 or -ENOMEM; to be released in any case. */
int tally_export_threads_make(const struct tally_samples *samples, uint32_t event,
			      struct tally_export_threads *out);
void tally_export_threads_release(struct tally_export_threads *threads);

/* By function: the source file that its code is in (string id of the names), TALLY_STRING_NONE
 * where it is not known.  NULL when memory is out; to be freed. */
uint32_t *tally_export_files(const struct tally_samples *samples);

/* Whether the event's periods are ns of time. */
bool tally_export_is_time(const struct tally_samples *samples, uint32_t event);
const char *tally_export_event_name(const struct tally_samples *samples, uint32_t event);
const struct tally_thread *tally_export_task(const struct tally_samples *samples, uint32_t thread,
					     const char **comm);

#endif
