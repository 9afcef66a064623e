/* libtally: samples of an event as they happen, from the ring that the kernel writes them to.
 *
 *     struct tally_event_ring *ring = tally_event_ring_open("cpu-clock:u", NULL, error,
 *                                                           sizeof(error));
 *     while (tally_event_ring_wait(ring, 1000) > 0)
 *             while ((header = tally_event_ring_next(ring)))
 *                     if (!tally_event_ring_decode(ring, header, &record) &&
 *                         header->type == TALLY_RECORD_SAMPLE)
 *                             printf("%" PRIx64 "\n", record.sample.ip);
 *
 * A program learns of samples in four ways: it waits as above; it looks now and then; its own
 * poll(2) waits for tally_event_ring_fd(); or a signal comes (tally_event_ring_signal()).
 *
 * Nothing is copied: a record stays in the kernel's ring until the next call of
 * tally_event_ring_next().  Only one thread at a time may use a ring; it need not be the sampled
 * thread.  A child of fork(2) does not have its parent's rings: in the child,
 * tally_event_ring_next() returns NULL, calls that can fail do so with ECHILD, and only
 * tally_event_ring_close() has an effect (on the child).
 *
 * A signal handler may call the functions marked "[signal]", unless it has interrupted a call for
 * the same ring. */
#ifndef TALLY_RING_H
#define TALLY_RING_H

#include "tally/record.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tally_event_ring; /* opaque */

/* Options.  Zero in a member selects its default. */
struct tally_event_ring_options {
	size_t size; /* sizeof(struct tally_event_ring_options); later versions add members */
	int32_t pid; /* the thread to sample; 0: the calling one */
	/* pages of the ring, a power of two; 0: 64, or fewer if locked memory is short */
	uint32_t pages;
	uint64_t period;    /* take a sample after every `period` events, … */
	uint64_t frequency; /* … or take `frequency` samples a second; 0 in both: 1000 a second */
	/* TALLY_SAMPLE_… bits; 0: IP, TID, TIME, CPU, and PERIOD if it may vary */
	uint64_t fields;
	/* wake who waits after so many samples; 0: when the ring is half full */
	uint32_t wakeup_samples;
	/* the addresses of a call chain, at most; 0: the kernel's limit
	 * (kernel.perf_event_max_stack, usually 127) */
	uint16_t chain_max;
	bool chain;    /* adds the call chain to `fields`: the kernel follows frame pointers */
	bool disabled; /* sample nothing before tally_event_ring_enable() or _refresh() */
};

/* Opens an event by an expression of tally_counter_open(), and samples it from now on.  If the
 * expression names several events, separated by commas, the first is sampled, the others are
 * counted with it as a group, and each sample has the counts of all (`sample.read` of struct
 * tally_record; in the order of the expression, `read.stride` words apart).  `options` may be NULL.
 * Returns NULL, with a sentence in `error` (may be NULL) and errno set, if that fails; errno is
 * EINVAL if `size` is 0, or if a member is set that this version of the library does not know.  The
 * caller owns the ring. */
struct tally_event_ring *tally_event_ring_open(const char *event,
					       const struct tally_event_ring_options *options,
					       char *error, size_t error_size);

/* Return the number of events, and the name of one as `tally stat` prints it; NULL if `index` is
 * not below the number.  The text lives as long as the ring. */
size_t tally_event_ring_size(const struct tally_event_ring *ring);
const char *tally_event_ring_name(const struct tally_event_ring *ring, size_t index);

/* Returns the attribute of the sampled event as it was opened, which determines the layout of its
 * records; `sample_period` is the one that was in force when the record that was read last was
 * written.  It lives as long as the ring. */
const struct tally_attr *tally_event_ring_attr(const struct tally_event_ring *ring);

/* --- waiting --------------------------------------------------------------- */

/* Waits until the ring is half full, or has `wakeup_samples` more samples, or for `timeout_ms` (-1:
 * for ever).  Returns 1 if there are records, 0 if none came in that time, or -1 with errno set:
 * EINTR for a signal, EPIPE if the sampled thread has ended and all records were read. */
int tally_event_ring_wait(struct tally_event_ring *ring, int timeout_ms);

/* Returns a descriptor for the program's own poll(2), select(2) or epoll(7), or -1 with errno
 * ENOTSUP if the events don't come from the kernel.  It belongs to the ring: only poll it.
 *
 * POLLIN says that the ring was half full, or `wakeup_samples` samples came, since the last look
 * (perf_poll() in kernel/events/core.c): the look itself clears it, whether or not the ring was
 * read.  So treat it as edge-triggered, also without EPOLLET: read all records each time.  One
 * descriptor should be in one poll set only.  POLLHUP says that the sampled thread has ended, and
 * stays. */
int tally_event_ring_fd(const struct tally_event_ring *ring);

/* Sends `signo` to the calling thread at each sample from now on; 0 stops that.  Install a handler
 * with SA_SIGINFO first, or block the signal and take it by sigwaitinfo(2) or signalfd(2).  Returns
 * 0, or -1 with errno set: EINVAL for no signal, ENOTSUP if the provider of the events can't.
 *
 * A real-time signal (SIGRTMIN and above) is queued: one for each sample.  Others, SIGIO included,
 * merge while one is pending.  If the queue is full (RLIMIT_SIGPENDING), the kernel sends
 * SIGIO without a descriptor instead.  Its default action ends the program, so have a handler for
 * SIGIO that reads all rings.  (perf_event_open(2),
 * "Signal notification"; F_SETSIG in fcntl(2).) */
int tally_event_ring_signal(struct tally_event_ring *ring, int signo);

enum tally_event_ring_reason {
	TALLY_EVENT_RING_NONE,   /* the signal is not of this ring */
	TALLY_EVENT_RING_SAMPLE, /* POLL_IN: a sample was taken */
	TALLY_EVENT_RING_END /* POLL_HUP: the last sample of tally_event_ring_refresh() was taken */
};

/* Says why a signal came: `info` is the handler's siginfo_t.  A program with several rings asks
 * each.  [signal] */
enum tally_event_ring_reason tally_event_ring_reason(const struct tally_event_ring *ring,
						     const void *info);

/* --- reading --------------------------------------------------------------- */

/* Returns the next record, which is valid until the next call; NULL if all were read.  To look
 * without waiting, just call it.  [signal] */
const struct tally_record_header *tally_event_ring_next(struct tally_event_ring *ring);

/* tally_record_decode() for the record that tally_event_ring_next() returned last.  [signal] */
int tally_event_ring_decode(const struct tally_event_ring *ring,
			    const struct tally_record_header *header, struct tally_record *record);

/* Takes a decoded record, which is valid during the call.  Returns false to stop. */
typedef bool tally_event_ring_function(void *context, const struct tally_record *record);

/* Calls `function` for each record until it returns false; the records behind that one stay in the
 * ring.  Records of types that this library does not know are left out.  Returns the number of
 * calls, or -1 with errno set: EBADMSG for a damaged record, which counts as read.  [signal] */
long tally_event_ring_each(struct tally_event_ring *ring, tally_event_ring_function *function,
			   void *context);

/* Returns the number of samples that found no room in the ring, by the LOST records read so far.
 * The kernel writes such a record with the next sample that finds room.  [signal] */
uint64_t tally_event_ring_lost(const struct tally_event_ring *ring);

/* Reads from the kernel how many samples have found no room so far (PERF_FORMAT_LOST).  Returns 0,
 * or -1 with errno set: ENOTSUP before Linux 6.0.  [signal] */
int tally_event_ring_lost_now(struct tally_event_ring *ring, uint64_t *lost);

/* --- control --------------------------------------------------------------- */

/* Start and stop sampling.  Return 0, or -1 with errno set.  [signal] */
int tally_event_ring_enable(struct tally_event_ring *ring);
int tally_event_ring_disable(struct tally_event_ring *ring);

/* Takes `samples` (1 to INT32_MAX) more samples, starting now if sampling is off, then stops.  The
 * signal of the last one has the reason TALLY_EVENT_RING_END; poll(2) and tally_event_ring_wait()
 * don't tell the end, so let `wakeup_samples` divide `samples`.  A later call adds to the remaining
 * number.  Returns 0, or -1 with errno set.  [signal] */
int tally_event_ring_refresh(struct tally_event_ring *ring, uint32_t samples);

/* Changes the period of a ring that was opened with one, or the frequency of the others.  The count
 * towards the next sample begins anew.  Samples that happen during the call are counted as lost.
 * Returns 0, or -1 with errno set: EINVAL for 0 or a value that the kernel refuses; EAGAIN if the
 * ring holds samples of 16 periods already: read them first; ENOTSUP for a software event, tracepoint
 * or breakpoint that was opened with a period of 1, or with PERIOD among `fields`: the kernel makes a
 * sample of every hit.  [signal] */
int tally_event_ring_set_period(struct tally_event_ring *ring, uint64_t period);

/* Closes the ring.  NULL is allowed. */
void tally_event_ring_close(struct tally_event_ring *ring);

#ifdef __cplusplus
}
#endif

#endif
