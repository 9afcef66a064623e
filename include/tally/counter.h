/* libtally: counting events of the calling thread (and of the threads and processes that it starts)
 * in perf_event's terms.
 *
 *     char error[256];
 *     struct tally_counter *counter = tally_counter_open("instructions:u", error, sizeof(error));
 *     struct tally_count count;
 *     tally_counter_read(counter, &count);
 *
 * tally_counter_open_with() opens a counter of one thread alone, which is read faster.  Only one
 * thread at a time may use a counter.  Counters are made with perf_event_open(2). */
#ifndef TALLY_COUNTER_H
#define TALLY_COUNTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tally_counter; /* opaque */

struct tally_count {
	/* the count, scaled to the whole time if the counter was shared: see `running_ns` */
	uint64_t value;
	uint64_t raw;        /* the count as measured */
	uint64_t enabled_ns; /* how long the counter was switched on, in ns */
	/* how long it really counted, in ns; if less than enabled_ns, `value` is an estimate */
	uint64_t running_ns;
};

/* Opens one event by an expression of `tally stat -e` ("cycles:u", "r1a8", "task-clock",
 * "syscalls:sys_enter_read").  It counts from now on: this thread, and the threads and processes
 * that it starts later.  On a machine with several types of cores, an event that names no PMU counts
 * on one type alone, and `running_ns` is the time there: open one counter for each type, by its PMU's
 * name ("cpu_core/cycles/u", "cpu_atom/cycles/u").  Returns NULL, with a sentence in `error` (may be NULL) and errno set, if
 * that fails.  The caller owns the counter. */
struct tally_counter *tally_counter_open(const char *event, char *error, size_t error_size);

struct tally_counter_options {
	size_t size; /* sizeof(struct tally_counter_options): later versions have more members */
	/* Counts only the calling thread, not what it starts later.  Then a hardware event is read
	 * without a system call, where kernel and CPU permit it: see tally_counter_read_way(). */
	bool this_thread_only;
};

/* Like tally_counter_open().  `options` may be NULL.  errno is EINVAL if `size` is 0, or if a
 * member is set that this version of the library does not know. */
struct tally_counter *tally_counter_open_with(const char *event,
					      const struct tally_counter_options *options,
					      char *error, size_t error_size);

/* Returns the event's name as `tally stat` prints it.  The text lives as long as the counter. */
const char *tally_counter_name(const struct tally_counter *counter);

/* Read the counter, set it to zero, switch it on or off.  Return 0, or -1 with errno set. */
int tally_counter_read(struct tally_counter *counter, struct tally_count *count);
int tally_counter_reset(struct tally_counter *counter);
int tally_counter_enable(struct tally_counter *counter);
int tally_counter_disable(struct tally_counter *counter);

/* Reads the count alone: `value` of tally_counter_read(), by the fastest way.  Returns 0, or -1
 * with errno set. */
int tally_counter_value(struct tally_counter *counter, uint64_t *value);

/* Returns how the calling thread reads this counter now: "user page (rdpmc)", "user page (rdpmc);
 * times by read(2)" (tally_counter_value() alone reads the page), or "read(2): " and the reason.
 * `ns` (may be NULL) gets the measured time of one tally_counter_value(): the median of nine batches
 * of 100, measured in this call.  That takes a millisecond at most.  The text lives until the next
 * call for this counter.
 *
 * A page is read in a few ns: the instruction rdpmc (x86-64), mrs (arm64) or csrr (riscv64), and
 * loads (perf_event_open(2), "MMAP layout").  read(2) takes some 500 ns.  Each read chooses: the page
 * if the following holds, otherwise read(2).
 *
 * The counter is of one thread (`this_thread_only`), and that thread reads it.
 *
 * The event is on a hardware counter now.  Software events, tracepoints and breakpoints are on none,
 * nor is an event that waits for a counter or counts only on another kind of core.  Intel's topdown
 * events are parts of a register.
 *
 * The kernel permits it: /sys/bus/event_source/devices/cpu/rdpmc is 1 or 2 (x86-64);
 * kernel.perf_user_access was 1 when the counter was opened (arm64), or is not 0 (riscv64).  On arm64
 * the library asks for 64 bits, and if the kernel refuses, for 32.
 *
 * On a machine with several kinds of cores, the thread was pinned to one kind (sched_setaffinity(2))
 * when it opened the counter.  It must stay there.
 *
 * Each counter maps one page, which counts as locked memory (RLIMIT_MEMLOCK).  The processor may
 * execute the instruction a little before or after its neighbours, so counts of a few dozen
 * instructions are not exact.  If the administrator forbids user reads while a program makes them,
 * or a pinned thread leaves its kind of cores, the program dies of SIGSEGV or SIGILL. */
const char *tally_counter_read_way(struct tally_counter *counter, double *ns);

/* Closes the counter.  NULL is allowed. */
void tally_counter_close(struct tally_counter *counter);

#ifdef __cplusplus
}
#endif

#endif
