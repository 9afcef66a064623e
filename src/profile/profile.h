/* A recording, aggregated: distinct (event, thread, CPU, stack) with their samples and periods.
 *
 * A sample's chain is looked up whole; what was not seen before becomes a stack of places, and only
 * the distinct places are named.  Nothing is kept per sample.  One model feeds report, fold and
 * flame graphs.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_PROFILE_H
#define TALLY_PROFILE_PROFILE_H

#include "base/buffer.h"
#include "profile/place_table.h"
#include "profile/recording.h"
#include "profile/row_table.h"
#include "profile/sample_facts.h"
#include "profile/stacks.h"

/* What samples have in common but for their stacks. */
struct tally_class {
	uint32_t event;  /* index into the recording's events */
	uint32_t thread; /* of tasks.threads; UINT32_MAX where threads were not told apart */
	uint32_t comm;   /* string id in tasks.strings: what the thread was called then */
	uint32_t cpu;    /* UINT32_MAX where it is not known, or CPUs were not told apart */
	/* string id in tasks.strings of its path; 0 unless cgroups were told apart */
	uint32_t cgroup;
	/* what else samples say of those that were asked for: of profile->facts; 0: nothing */
	uint32_t facts;
	uint32_t cgroup_id; /* … of its namespace, as perf writes it: device and inode; likewise */
	/* who ended the wait, or which waking it is (off_cpu.h); 0 in a finished profile */
	uint32_t waker;
};

struct tally_profile_options {
	struct tally_profile_filter filter;
	bool merge_threads, merge_cpus; /* don't tell them apart: fewer rows */
	/* nor addresses that are in no file, of which chains without frame pointers have any
	 * number */
	bool merge_unknown;
	bool by_cgroup, by_cgroup_id; /* tell cgroups apart; namespaces of cgroups */
	/* tell these apart (sample_facts.h); with TALLY_FACT_BRANCH rows are branches */
	unsigned facts;
	bool by_cost; /* periods are what samples' accesses cost (PERF_SAMPLE_WEIGHT), at least 1 */
	bool leaves_out_idle; /* samples of idle CPUs (idle.h) */
	/* without the scheduler's frames, and the longest is noted (wait_stacks.h) */
	bool arranges_waits;
	bool shows_scheduler; /* with arranges_waits: its frames stay */
	bool with_wakers;     /* with arranges_waits: stacks of waits go on with who ended them */
	bool hides_functions; /* nobody is told which have no names */
	uint64_t time_quantum_ns; /* times are told apart by so much; 0: 100 ms */
	/* And their names, with merge_threads: rows are of event and leaf alone, and whoever has
	 * ended is forgotten, so that memory goes with the places. */
	bool only_places;
	/* a second thread helps from this one on; 0: of long recordings, where there are CPUs for
	 * it */
	uint64_t split_samples;
	/* Called now and then with the share read, 0…1; NULL: nobody. */
	void (*progress)(void *context, double share);
	void *context;
};

/* How far the periods of an event's samples spread (share_error.h). */
struct tally_period_spread {
	double sum, squares; /* of periods, and of their squares */
	uint64_t samples;
};

struct tally_left_out {
	uint64_t samples, period;
};

struct tally_profile {
	struct tally_recording *recording;
	struct { struct tally_class *items; size_t count, capacity; } classes;
	struct tally_row_table rows;     /* stacks are of `places`, leaf first */
	struct tally_place_table places;
	struct tally_place_name *names;  /* by place: frames of recording->names */
	/* event and thread of samples whose threads are not told apart: a set */
	struct tally_map merged_threads;
	/* by event; 0 where it has no samples */
	struct { struct tally_period_spread *items; size_t count, capacity; } spreads;
	struct tally_fact_table facts;
	bool has_stacks;
	bool of_branches; /* `samples` and periods of rows are numbers of branches */
	bool of_costs;    /* periods are what accesses cost */
	struct tally_profile_filter asked; /* what the samples passed */
	struct tally_map leaves_left_out; /* functions, for a hint: a set */
	struct { uint64_t *items; size_t count, capacity; } longest; /* ns, by row; beyond: 0 */
	bool notes_longest;
	/* who ended waits, with_wakers */
	struct { uint64_t woken_ns, preempted_ns, unknown_ns; } wakers;
	/* by event: left out as idle */
	struct { struct tally_left_out *items; size_t count, capacity; } idle;
	/* samples left out for their leaf; recording->counts.filtered has those left out before */
	size_t filtered;
};

/* Reads the whole recording, or what of it the options (NULL: none) take.  Takes it over: released
 * with the profile. */
int tally_profile_new(struct tally_recording *recording,
		      const struct tally_profile_options *options, struct tally_profile **out,
		      struct tally_error *err);
void tally_profile_free(struct tally_profile *profile);

/* For who names places while a recording is read: fetches what the hottest objects' names lack, if
 * the recording's sources ask for it, by reading its file once more before; of the options, facts
 * don't matter.  -ESPIPE: it can't be read twice. */
int tally_recording_fetch_names(struct tally_recording *recording,
				const struct tally_profile_options *options,
				struct tally_error *err);

/* The function of a place that its symbol names, whatever was inlined there. */
static inline uint32_t tally_profile_function(const struct tally_profile *profile, uint32_t place)
{
	const struct tally_place_name *name = &profile->names[place];
	return profile->recording->names.frames.items[name->first + name->count - 1].function;
}

/* Samples and period of one event. */
void tally_profile_totals(const struct tally_profile *profile, uint32_t event, uint64_t *samples,
			  uint64_t *period);

/* struct tally_share's `spread` of one event's samples. */
double tally_profile_spread(const struct tally_profile *profile, uint32_t event);

/* How many commands and threads the event's samples are of. */
int tally_profile_count_tasks(const struct tally_profile *profile, uint32_t event, size_t *comms,
			      size_t *threads);

/* The event that a name or a number ("0") means; -ENOENT with the list of names.  NULL: the first
 * that has samples. */
int tally_profile_event(const struct tally_profile *profile, const char *name, uint32_t *event,
			struct tally_error *err);

/* The stacks of one event, for fold and flame graphs, into `out`, which has none: the profile's
 * rows are taken over, and are the profile's no more.  `by_thread`: threads apart, else merged by
 * comm.  `by_period`: weights are periods, else samples. */
int tally_profile_stacks(struct tally_profile *profile, uint32_t event, bool by_thread,
			 bool by_period, struct tally_stacks *out);

/* Everything a reader should know of how far to trust this, one line each ("12 records were lost
 * …"), or "" — for stderr. */
void tally_profile_warnings(const struct tally_recording *recording, struct tally_buffer *out);

/* True when the kernel made the recording's chains of user code. */
bool tally_profile_follows_frame_pointers(const struct tally_profile *profile);

/* Sets counts.chains_unstarted of the recording: of the samples shown that the kernel made chains
 * of, those whose outermost function is no start of a program or thread.  The profile has its
 * names, and its rows. */
void tally_profile_count_unstarted(struct tally_profile *profile);

#endif
