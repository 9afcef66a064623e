/* libtally: counting events of the calling thread (and of the threads and processes that it starts)
 * in perf_event's terms.
 *
 *     char error[256];
 *     struct tally_counter *counter = tally_counter_open("instructions:u", error, sizeof(error));
 *     struct tally_count count;
 *     tally_counter_read(counter, &count);
 *
 * Only one thread at a time may use a counter.  Counters are made with perf_event_open(2). */
#ifndef TALLY_COUNTER_H
#define TALLY_COUNTER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tally_counter; /* opaque */

struct tally_count {
	/* the count, scaled to the whole time if the counter was shared: see `running_ns` */
	uint64_t value;
	uint64_t raw;             /* the count as measured */
	uint64_t enabled_ns;      /* how long the counter was switched on, in ns */
	/* how long it really counted, in ns; if less than enabled_ns, `value` is an estimate */
	uint64_t running_ns;
};

/* Opens one event by an expression of `tally stat -e` ("cycles:u", "r1a8", "task-clock",
 * "syscalls:sys_enter_read").  It counts from now on: this thread, and the threads and processes
 * that it starts later.  Returns NULL, with a sentence in `error` (may be NULL) and errno set, if
 * that fails.  The caller owns the counter. */
struct tally_counter *tally_counter_open(const char *event, char *error, size_t error_size);

/* Returns the event's name as `tally stat` prints it.  The text lives as long as the counter. */
const char *tally_counter_name(const struct tally_counter *counter);

/* Read the counter, set it to zero, switch it on or off.  Return 0, or -1 with errno set. */
int tally_counter_read(struct tally_counter *counter, struct tally_count *count);
int tally_counter_reset(struct tally_counter *counter);
int tally_counter_enable(struct tally_counter *counter);
int tally_counter_disable(struct tally_counter *counter);

/* Closes the counter.  NULL is allowed. */
void tally_counter_close(struct tally_counter *counter);

#ifdef __cplusplus
}
#endif

#endif
