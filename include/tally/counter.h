/* libtally: counting events of the calling thread (and of what it starts) in perf_event's terms.
 *
 *     char error[256];
 *     struct tally_counter *counter = tally_counter_open("instructions:u", error, sizeof(error));
 *     struct tally_count count;
 *     tally_counter_read(counter, &count);
 *
 * A counter is used by one thread at a time.  perf_event_open(2) is what stands behind it.
 */
#ifndef TALLY_COUNTER_H
#define TALLY_COUNTER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tally_counter; /* opaque */

struct tally_count {
	/* scaled to the whole time where the counter was shared: see `running_ns` */
	uint64_t value;
	uint64_t raw;             /* as counted */
	uint64_t enabled_ns;      /* how long the counter was switched on */
	/* how long it really counted; less than enabled_ns: `value` is an estimate */
	uint64_t running_ns;
};

/* Opens one event by an expression as `tally stat -e` takes it ("cycles:u", "r1a8", "task-clock",
 * "syscalls:sys_enter_read"), counting from now on: this thread, and threads and processes that it
 * starts later.  NULL with a sentence in `error` (may be NULL) and errno set.  Owned by the
 * caller. */
struct tally_counter *tally_counter_open(const char *event, char *error, size_t error_size);

/* The event's name as `tally stat` prints it; lives as long as the counter. */
const char *tally_counter_name(const struct tally_counter *counter);

/* 0, or -1 with errno set. */
int tally_counter_read(struct tally_counter *counter, struct tally_count *count);
int tally_counter_reset(struct tally_counter *counter);
int tally_counter_enable(struct tally_counter *counter);
int tally_counter_disable(struct tally_counter *counter);

/* NULL is fine. */
void tally_counter_close(struct tally_counter *counter);

#ifdef __cplusplus
}
#endif

#endif
