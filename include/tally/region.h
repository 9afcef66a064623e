/* libtally: regions, named parts of a program, and the time and events of their calls.
 *
 *     void parse(const char *text)
 *     {
 *             TALLY_REGION("parse");
 *             …
 *     }
 *
 * or tally_region_begin("parse"); … tally_region_end("parse").  Then
 *
 *     TALLY_REPORT=table ./program
 *
 * prints, when the program exits, for each region: its calls, and for wall time and each event the
 * total, self (the total without the regions inside), mean, sigma, p50, p99 and maximum.  Without
 * TALLY_REPORT nothing is printed, and regions are measured for tally_region_read().
 *
 * These variables of the environment are read when the first region begins:
 *
 *     TALLY_REPORT=table, =json     print to the standard error; table:FILE, json:FILE replace FILE
 *                                   instead (%p in FILE is the process's id, %% is %)
 *     TALLY_EVENTS=EVENTS           events as of `tally stat -e`, not the usual ones; "wall": wall
 *                                   time alone; "cpu-time": the thread's CPU time, without
 *                                   perf_event_open(2)
 *     TALLY_OVERHEAD=subtract       take what begin and end cost off all figures
 *
 * Events: the usual ones are those of `tally stat`.  Software events are counted as one group,
 * other events as one more, {a,b} as a group of its own (tally/group.h).  An event that the kernel
 * refuses is left out, and the report says why.  If the user has too few rights for an event, it
 * is counted in user mode ("cycles:u"), or left out if it is 0 there.  Without task-clock,
 * cpu-time takes its place.  If hardware counters are shared, figures are scaled, marked by "~",
 * and have no ratios (IPC): ratios are of counters that ran during all of the region's calls.
 * Times are in ns, other events are counts.
 *
 * Figures: sums, self and maximum are exact.  p50 and p99 come from a log-linear histogram; they
 * are at most 1/64 (1.6 %) from the exact percentile, as in HdrHistogram with 32 parts of each
 * power of two.  A call inside a call of the same region (recursion) is counted, but only the
 * outermost has figures, so that time is not counted twice.  Self is of all calls.  A child
 * region's self and total are of its own; a parent's total includes what its children's begin and
 * end cost.
 *
 * Overhead: when the first region begins, empty regions are measured.  The report says what an
 * empty region measures of itself ("empty"), and what begin and end together cost the region
 * around it ("pair").  TALLY_OVERHEAD=subtract takes the first from each call, and the second for
 * each region that ended inside it.  No figure goes below 0.
 *
 * Threads: each thread has regions of its own, which the report sums up by name.  A thread's
 * figures stay when it ends.  Begin and end take no lock.  They allocate nothing, except for a
 * thread's first region and a region's first call on a thread, which also open events.
 *
 * Signal handlers may use regions that their thread has used before.  If a handler interrupts
 * begin or end, its regions are ignored, and the report says how many.  A handler must not leave
 * by siglongjmp(3).
 *
 * Names are copied and compared by their text, so they need not be literals.  A process has at
 * most 256 names; regions beyond are measured as "(other regions)".  A thread has at most 512 open
 * regions; deeper ones are counted, not measured.
 *
 * Mistakes are counted and told in the report.  An end whose region is not open is ignored.  An
 * end whose region is not the innermost closes the regions inside, which then have no figures.  A
 * region that is open when the report is made has no figures of that call.
 *
 * Processes: a child of fork(2) starts with no figures, and prints only its own; an end for a
 * begin before the fork is ignored.  A program that ends by _exit(2), quick_exit(3), a signal or
 * execve(2) prints nothing.  A child of vfork(2) must not use regions.
 *
 * The report is written after main() and the functions of atexit(3), by the library's destructor.
 * If descriptor 2 is closed by then, or is no longer the file that it was at the first region,
 * nothing is written to it.  In a set-user-ID program, and for root in another user's place
 * (sudo), the variables are ignored.  C99, C++. */
#ifndef TALLY_REGION_H
#define TALLY_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Begin and end a region of the calling thread.  NULL as the name of the end: the innermost open
 * region.  Errors are counted; see above.  errno does not change. */
void tally_region_begin(const char *name);
void tally_region_end(const char *name);

struct tally_region_options {
	size_t size; /* sizeof(struct tally_region_options): later versions have more members */
	const char *events;     /* as TALLY_EVENTS; NULL: the usual ones */
	bool subtract_overhead; /* as TALLY_OVERHEAD=subtract */
};

/* Chooses events and overhead.  Call it before the first region begins.  The variables of the
 * environment win.  Returns 0, or -1 with errno set: EINVAL for `size` of 0 or unknown members, EBUSY
 * after the first region, ENOMEM. */
int tally_region_configure(const struct tally_region_options *options);

/* The figures of one event in one region, summed over all threads. */
struct tally_region_figures {
	uint64_t calls;     /* calls that have ended */
	uint64_t recursive; /* the part of them inside another call of the region */
	uint64_t open;      /* calls that have not ended */
	/* calls with a figure: outermost ones, while the event was counted */
	uint64_t measured;
	uint64_t scaled;    /* measured calls with a shared counter: their figure is an estimate */
	uint64_t total;     /* sum of the measured calls: ns for times, otherwise a count */
	uint64_t self;      /* the same without the regions inside; of all calls */
	uint64_t max;       /* the largest call */
	uint64_t p50, p99;  /* percentiles of the measured calls, at most 1/64 off */
	double mean, sigma; /* of the measured calls; sigma of the sample (n − 1) */
	uint64_t
		empty; /* the figure of an empty region: the overhead of a call in its own figure */
	uint64_t pair; /* the overhead of begin and end in the figure of the region around them */
	double share;  /* 0…1: how much of the time the event was counted */
};

/* Reads the figures of an event ("wall", "cycles"; NULL: "wall") in a region.  "cycles" finds
 * "cycles:u", too.  Other threads may be
 * measuring meanwhile.  `size` is sizeof(struct tally_region_figures).  Returns 0, or -1 with errno
 * set: ENOENT if there is no such region or event, EINVAL if `size` is smaller than the structure was
 * in the first version. */
int tally_region_read(const char *region, const char *event, struct tally_region_figures *figures,
		      size_t size);

/* Return the names of the regions, in the order of their first calls, and of the events; NULL if
 * `index` is too large.  Index 0 of the events is "wall".  The text lives as long as the process. */
const char *tally_region_name(size_t index);
const char *tally_region_event(size_t index);

/* Returns why events are missing, one line; "" if none is.  The text lives as long as the process. */
const char *tally_region_missing(void);

/* Writes the report so far to a descriptor, as "table" or "json".  Returns 0, or -1 with errno set:
 * EINVAL for another format, ENOENT if no region has begun, or an error of write(2). */
int tally_region_report(int fd, const char *format);

#ifdef __cplusplus
}
#endif

/* Begins a region that ends with the enclosing block: by return, break, goto, and in C++ by an
 * exception.  `name` must stay as it is until then.  A line has one at most.  GCC and clang. */
#define TALLY_REGION(name) TALLY_REGION_NAMED(name, __LINE__)
#define TALLY_REGION_JOIN(a, b) a##b

#if defined(__cplusplus)
namespace tally
{
/* Measures from its definition to the end of the block. */
class region
{
      public:
	explicit region(const char *name) : name_(name)
	{
		tally_region_begin(name);
	}
	~region()
	{
		tally_region_end(name_);
	}
	region(const region &) = delete;
	region &operator=(const region &) = delete;

      private:
	const char *name_;
};
} // namespace tally

#define TALLY_REGION_NAMED(name, line) ::tally::region TALLY_REGION_JOIN(tally_region_, line)(name)
#else
static inline void tally_region_leave(const char *const *name)
{
	tally_region_end(*name);
}
#define TALLY_REGION_NAMED(name, line) \
	const char *const TALLY_REGION_JOIN(tally_region_, line) \
		__attribute__((cleanup(tally_region_leave), unused)) = (tally_region_begin(name), \
									(name))
#endif

#endif
