/* libtally: how often a part of a program runs, and what it costs there: time and events, by name.
 *
 *     void parse(void)
 *     {
 *             TALLY_REGION("parse");
 *             …
 *     }
 *
 *     $ TALLY_REPORT=table ./program
 *
 * TALLY_REGION() measures to the end of its block, in C (by the compilers' `cleanup` attribute) and
 * in C++.  tally_region_begin() and tally_region_end() do the same for other languages.  Regions
 * nest.  Each thread measures on its own; figures of a name are those of all threads.
 *
 * A region's *total* includes the regions within it, its *self* does not.  If a region is entered
 * again before it ends, on the same thread, the inner calls count as calls, and their time belongs to
 * the outermost one.
 *
 * Environment:
 *     TALLY_REPORT=table|json   writes the figures at exit, to standard error
 *     TALLY_REPORT=json:FILE    … or to a file, which is replaced
 *     TALLY_EVENTS=a,b,…        counts these events (at most 8), as one group of each thread; by
 *                               default cycles:u,instructions:u, or task-clock:u,page-faults:u where
 *                               there are no hardware counters.  "none" measures only the time.
 *     TALLY_SUBTRACT=1          subtracts what measuring costs, as measured at the first region
 *
 * Beginning and ending a region reads the events twice: a few ns an event where user code can read
 * hardware counters (tally_group_read_way()), otherwise a system call each time.  No memory is
 * allocated after a thread's first use of a name.  Threads merge their figures when they end.  A
 * process that was forked starts with no figures.  A program that ends by _exit(2) or a signal writes
 * no report. */
#ifndef TALLY_REGION_H
#define TALLY_REGION_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Begins a region of the calling thread.  `name` is copied at its first use; it must not be NULL. */
void tally_region_begin(const char *name);

/* Ends the region.  Regions of this thread that began later and have not ended, end too; they, and
 * an end without a beginning, count as mismatches in the report. */
void tally_region_end(const char *name);

/* One figure of a region: its time, or an event. */
struct tally_region_figure {
	const char *event;  /* "time", or an event as `tally stat` prints it */
	const char *unit;   /* "ns", or "" for a number */
	double total, self; /* of all calls */
	/* of one call; those within a call of the same region don't count */
	double mean, deviation, max;
	/* Of one call, from a histogram: at most 3.2 % beside the true value. */
	double p50, p99;
	uint64_t measured; /* calls that the figures are of */
	uint64_t scaled;   /* of these: the counters were shared, so the count is an estimate */
};

/* Stores the first `size` figures of the region of this name, and its calls (`calls` may be NULL).
 * They include regions that have ended so far, on all threads.  Returns the number of figures,
 * or -1 with errno set: ENOENT if there is no such region, ENOMEM.  The texts live as long as the
 * program. */
long tally_region_read(const char *name, struct tally_region_figure *figures, size_t size,
		       uint64_t *calls);

/* Writes all regions to a descriptor: `format` is "table" or "json".  Returns 0, or -1 with errno
 * set. */
int tally_region_report(int fd, const char *format);

#if defined(__cplusplus)
}

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

#define TALLY_REGION_JOIN(a, b) a##b
#define TALLY_REGION_NAMED(name, line) ::tally::region TALLY_REGION_JOIN(tally_region_, line)(name)
#define TALLY_REGION(name) TALLY_REGION_NAMED(name, __LINE__)

#else

static inline void tally_region_leave(const char *const *name)
{
	tally_region_end(*name);
}

#define TALLY_REGION_JOIN(a, b) a##b
#define TALLY_REGION_NAMED(name, line) \
	const char *const TALLY_REGION_JOIN(tally_region_, line) \
		__attribute__((cleanup(tally_region_leave), unused)) = (tally_region_begin(name), \
									(name))
#define TALLY_REGION(name) TALLY_REGION_NAMED(name, __LINE__)

#endif

#endif
