/* Shared by the export formats. For export_*.c. */
#ifndef TALLY_EXPORT_INTERNAL_H
#define TALLY_EXPORT_INTERNAL_H

#include "export/export.h"

#define TALLY_EXPORT_DECLARE(name, suffix, opened, compressed, is_signed) \
	int tally_export_##name(const struct tally_samples *samples, uint32_t event, \
				struct tally_buffer *out);
TALLY_EXPORT_FORMATS(TALLY_EXPORT_DECLARE)
#undef TALLY_EXPORT_DECLARE

/* The samples of one event in one thread: `order[first]` to `order[first + count - 1]`, sorted by
 * time. */
struct tally_export_thread {
	uint32_t thread; /* index in the recording's tasks.threads */
	size_t first, count;
	uint64_t weight;
};

/* The samples of one event by thread, and what formats write with them. */
struct tally_export_threads {
	const struct tally_samples *samples;
	bool is_time;    /* tally_export_is_time() */
	uint32_t *files; /* tally_export_files() */
	uint32_t *order; /* indices of samples */
	/* the heaviest thread first */
	struct { struct tally_export_thread *items; size_t count, capacity; } threads;
};

/* Returns 0 or -ENOMEM. The caller releases `out` in either case. */
int tally_export_threads_make(const struct tally_samples *samples, uint32_t event,
			      struct tally_export_threads *out);
void tally_export_threads_release(struct tally_export_threads *threads);

/* Returns the source file of each function (string id of the names); TALLY_STRING_NONE: unknown.
 * The caller frees the array. NULL: out of memory. */
uint32_t *tally_export_files(const struct tally_samples *samples);

/* True if the event's periods are ns of time. */
bool tally_export_is_time(const struct tally_samples *samples, uint32_t event);
const char *tally_export_event_name(const struct tally_samples *samples, uint32_t event);
const struct tally_thread *tally_export_task(const struct tally_samples *samples, uint32_t thread,
					     const char **comm);

#endif
