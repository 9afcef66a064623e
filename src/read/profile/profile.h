/* A recording, aggregated: distinct (event, thread, CPU, stack) with their samples and periods.
 *
 * A hash of a sample's whole chain finds its row.  Only a new chain becomes a stack of places, and
 * only the distinct places are named.  Nothing is kept per sample.  Report, fold and flame graphs
 * all use this model.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_H
#define TALLY_PROFILE_H

#include "base/buffer.h"
#include "naming/place_table.h"
#include "recording/recording.h"
#include "profile/event_rows.h"
#include "profile/row_table.h"
#include "profile/sample_facts.h"
#include "profile/stacks.h"

/* The properties that samples share besides their stacks. */
struct tally_class {
	uint32_t event;  /* index into the recording's events */
	uint32_t thread; /* index into tasks.threads; UINT32_MAX: threads are merged */
	uint32_t comm;   /* string id in tasks.strings: the thread's name at that time */
	uint32_t cpu;    /* UINT32_MAX: not known, or CPUs are merged */
	/* string id in tasks.strings of the cgroup's path; 0: cgroups are merged */
	uint32_t cgroup;
	/* number of the samples' other facts in profile->facts, as far as they are needed; 0:
	 * none */
	uint32_t facts;
	/* string id in tasks.strings of the cgroup's namespace as perf writes it, device and inode;
	 * 0: merged */
	uint32_t cgroup_id;
	uint32_t is_idle_task; /* 1: the samples are of the idle task (tally_tasks_is_idle()) */
	/* the end of the wait, or the number of the waking (off_cpu.h); 0 in a finished profile */
	uint32_t waker;
};

struct tally_profile_options {
	struct tally_profile_filter filter;
	bool merge_threads, merge_cpus; /* merge them, for fewer rows */
	/* merge addresses in no file; chains without frame pointers have very many of them */
	bool merge_unknown;
	bool by_cgroup, by_cgroup_id; /* keep cgroups apart; keep namespaces of cgroups apart */
	uint64_t facts;   /* set of the keys (sort_keys.h) whose values keep samples apart */
	bool of_branches; /* rows are branches with period 1; their stacks are the targets */
	/* periods are the costs of the samples' accesses (PERF_SAMPLE_WEIGHT), at least 1 */
	bool by_cost;
	bool leaves_out_idle; /* leave out samples of idle CPUs (idle.h) */
	/* stacks of waits lose the scheduler's frames, and the longest wait is noted
	 * (wait_stacks.h) */
	bool arranges_waits;
	bool shows_scheduler; /* with arranges_waits: keep the scheduler's frames */
	/* with arranges_waits: stacks of waits go on with the stacks that ended them */
	bool with_wakers;
	/* leave out the frames of runtimes that functions of a language called
	 * (language_frames.h) */
	bool joins_runtimes;
	bool hides_functions; /* don't report functions without names */
	uint64_t time_quantum_ns; /* resolution of times as a sort key, ns; 0: 100 ms */
	/* With merge_threads: only places and their names are needed.  Rows have only an event and
	 * a leaf, and tasks are forgotten when they end, so that memory depends on the number of
	 * places only. */
	bool only_places;
	/* a second thread helps after this many samples; 0: for long recordings, if there are
	 * enough CPUs */
	uint64_t split_samples;
	/* Called from time to time with the share read, 0…1; may be NULL. */
	void (*progress)(void *context, double share);
	void *context;
};

/* How much the periods of an event's samples vary (share_error.h). */
struct tally_period_spread {
	double sum, squares; /* sum of periods, and of their squares */
	uint64_t samples;
};

struct tally_left_out {
	uint64_t samples, period;
};

struct tally_profile {
	struct tally_recording *recording;
	struct { struct tally_class *items; size_t count, capacity; } classes;
	struct tally_row_table rows;     /* stacks consist of `places`, leaf first */
	struct tally_event_rows by_event;
	struct tally_place_table places;
	struct tally_place_name *names;  /* by place: its frames in recording->names */
	/* set of (event, thread) of samples whose threads are merged */
	struct tally_map merged_threads;
	/* by event; all 0 without samples */
	struct { struct tally_period_spread *items; size_t count, capacity; } spreads;
	struct tally_fact_table facts;
	bool has_stacks;
	bool of_branches; /* rows count branches in `samples` and `period` */
	bool of_costs;    /* periods are the costs of accesses */
	struct tally_profile_filter asked; /* the filter that the samples passed */
	/* set of functions whose samples a filter left out, for a hint */
	struct tally_map leaves_left_out;
	/* longest wait by row, ns; rows beyond `count` have none */
	struct { uint64_t *items; size_t count, capacity; } longest;
	bool notes_longest;
	/* with_wakers: waited time by the kind of its end */
	struct { uint64_t woken_ns, preempted_ns, unknown_ns; } wakers;
	/* by event: left out as idle */
	struct { struct tally_left_out *items; size_t count, capacity; } idle;
	/* samples left out because of their leaf; recording->counts.filtered has those left out
	 * before */
	size_t filtered;
};

/* Reads the whole recording, or the part that the options (NULL: defaults) select.  Takes ownership
 * of `recording`, also when it fails; it is released with the profile.  Returns 0, or -errno with a
 * message. */
int tally_profile_new(struct tally_recording *recording,
		      const struct tally_profile_options *options, struct tally_profile **out,
		      struct tally_error *err);
void tally_profile_free(struct tally_profile *profile);

/* For callers that name places while a recording is read: fetches the debug files of the hottest
 * objects beforehand, if the recording's sources ask for it.  To find them, it reads the
 * recording's file once more; `facts` in the options is ignored.  Returns 0, -ESPIPE when the
 * recording can't be read twice, or another -errno. */
int tally_recording_fetch_names(struct tally_recording *recording,
				const struct tally_profile_options *options,
				struct tally_error *err);

/* Returns the function that the place is in by the source: the innermost one that was inlined
 * there, or else the symbol's function. */
static inline uint32_t tally_profile_function(const struct tally_profile *profile, uint32_t place)
{
	return profile->recording->names.frames.items[profile->names[place].first].function;
}

/* Returns the function of the place's symbol, even if other functions were inlined there. */
static inline uint32_t tally_profile_symbol(const struct tally_profile *profile, uint32_t place)
{
	const struct tally_place_name *name = &profile->names[place];
	return profile->recording->names.frames.items[name->first + name->count - 1].function;
}

/* Sums the samples and periods of one event. */
void tally_profile_totals(const struct tally_profile *profile, uint32_t event, uint64_t *samples,
			  uint64_t *period);

/* Returns the `spread` (struct tally_share) of one event's samples. */
double tally_profile_spread(const struct tally_profile *profile, uint32_t event);

/* Counts the commands and threads with samples of the event.  Returns 0 or -ENOMEM. */
int tally_profile_count_tasks(const struct tally_profile *profile, uint32_t event, size_t *comms,
			      size_t *threads);

/* Finds the event by a name or a number ("0"); NULL: the first event with samples.  Returns 0, or
 * -ENOENT with a list of the names. */
int tally_profile_event(const struct tally_profile *profile, const char *name, uint32_t *event,
			struct tally_error *err);

/* Makes the stacks of one event, for fold and flame graphs.  Moves the profile's rows into `out`,
 * which must have none; the profile is left without rows.  `by_thread`: keep threads apart, else
 * merge them by comm.  `by_period`: weights are periods, else numbers of samples.  Returns 0 or
 * -ENOMEM. */
int tally_profile_stacks(struct tally_profile *profile, uint32_t event, bool by_thread,
			 bool by_period, struct tally_stacks *out);

/* Appends all that limits the trust in the recording, one line each ("12 records were lost …"), for
 * stderr; nothing if all is well. */
void tally_profile_warnings(const struct tally_recording *recording, struct tally_buffer *out);

/* True if the kernel followed frame pointers to make the recording's user chains. */
bool tally_profile_follows_frame_pointers(const struct tally_profile *profile);

/* Sets the recording's counts.chains_unstarted: of the shown samples with chains made by the
 * kernel, those whose outermost function is not the start of a program or thread.  The profile must
 * have its names and rows. */
void tally_profile_count_unstarted(struct tally_profile *profile);

/* Appends tally's own section with the known names of the profile's places and of `others` (of the
 * same recording; NULL: none), and with the profile's stacks; nothing if there are none.  The
 * profile's recording must have been prepared (tally_recording_prepare_packing).  `places` and
 * `known` (both may be NULL) get the number of places in a file or the kernel, and how many of them
 * are named in the section.  Returns 0 or -ENOMEM. */
int tally_make_name_section(struct tally_profile *profile, const struct tally_place_table *others,
		     struct tally_buffer *out, size_t *places, size_t *known);

#endif
