/* The recorder, and the functions of its parts; internal to this room. */
#ifndef TALLY_RECORDER_STATE_H
#define TALLY_RECORDER_STATE_H

#include "recorder/recorder_stacks.h"

/* State for choosing when to look at the rings without being woken: recorder_waits.c.  All 0 at the
 * start of a recording. */
struct tally_recorder_pace {
	uint64_t last_ns, lost;
	/* after a loss: the end of the early looks, and their duration */
	uint64_t until_ns, span_ns;
	uint64_t elapsed_ns;        /* between the last two passes */
	uint64_t longest_ns;        /* the larger one of the last two values of elapsed_ns */
	/* time in which a ring fills, by the last pass that found room in it; 0: unknown */
	double fill_ns;
};

/* Events that start the next file: recorder_triggers.c. */
struct tally_recorder_triggers {
	struct tally_ring *rings; /* by CPU of the target */
	size_t count;
	struct { int *items; size_t count, capacity; } handles;
};

/* The tasks that inherited events while events were being opened: recorder_inherited.c. */
struct tally_recorder_inherited {
	/* The maps' keys combine a task and a ring. */
	struct tally_map opened_ns; /* time when the task's events for this ring were open */
	struct tally_map from;      /* the task has inherited its events for this ring */
	struct { struct tally_record_task *items; size_t count, capacity; } forks;
	/* by side ring: how far its forks were read; in the recorder's arena */
	uint64_t *read_to;
};

struct tally_recorder {
	struct tally_recorder_session session;
	struct tally_recorder_events events;
	struct tally_recorder_rings rings;
	struct tally_recorder_triggers triggers;
	struct tally_recorder_inherited inherited;
	struct tally_recorder_tasks tasks;
	struct tally_recorder_stacks stacks;
	struct tally_recorder_output output;
};

/* recorder.c */
uint64_t tally_recorder_now_ns(void);
void tally_recorder_describe_sources(struct tally_recorder *recorder);
void tally_recorder_fill_status(struct tally_recorder *recorder);
/* Takes all pending signals.  Returns how many asked for the end; sets *asked_next if one asked for
 * the next file. */
unsigned tally_recorder_take_signals(struct tally_recorder *recorder, struct tally_signals *signals,
				     bool *asked_next);

/* recorder_attributes.c: completes the attributes and chooses the call graph. */
int tally_recorder_make_sources(struct tally_recorder *recorder,
				const struct tally_event_list *events, struct tally_error *err);
/* Returns the source whose samples stand for waits, or NULL. */
const struct tally_recorder_source *tally_recorder_off_cpu(const struct tally_recorder *recorder);

/* recorder_events.c: opens the events and their rings, and fills in the ids. */
int tally_recorder_open(struct tally_recorder *recorder, struct tally_error *err);
void tally_recorder_close(struct tally_recorder *recorder);
/* Opens the events of a CPU that came online, with its ring, as on the other CPUs. */
int tally_recorder_open_cpu(struct tally_recorder *recorder, size_t ring, struct tally_error *err);
/* Enables or disables the events that were opened disabled: from the handle `first` on, or all. */
int tally_recorder_enable_from(struct tally_recorder *recorder, size_t first, bool enable,
			       struct tally_error *err);
int tally_recorder_enable(struct tally_recorder *recorder, bool enable, struct tally_error *err);

/* recorder_rings.c: makes room for a ring for each CPU (and those that may come online) or thread.
 * Returns 0 or -ENOMEM. */
int tally_recorder_make_rings(struct tally_recorder *recorder);
/* Chooses the sizes by the options and the budget. */
struct tally_recorder_ring_sizes tally_recorder_choose_rings(const struct tally_recorder *recorder);
/* Sets when the reader is woken, and limits copies so that several fit in a ring. */
void tally_recorder_set_wakeups(struct tally_recorder *recorder,
				const struct tally_recorder_ring_sizes *sizes);
/* Directs `handle` to the ring.  The first handle creates the ring, with fewer pages when so many
 * can't be had. */
int tally_recorder_join_ring(struct tally_recorder *recorder, struct tally_ring *ring, int handle,
			     int cpu, size_t *pages, struct tally_error *err);
void tally_recorder_tell_of_small_rings(struct tally_recorder *recorder,
					const struct tally_recorder_ring_sizes *sizes);

/* recorder_copies.c: returns the ring size in which the largest copies fit for long enough at the
 * requested rates, up to 32 MiB; 0 for unknown rates. */
size_t tally_recorder_copies_ring_bytes(const struct tally_recorder *recorder);
/* Chooses the sizes of copies for rings of this size, and starts with the smallest. */
void tally_recorder_copies_init(struct tally_recorder *recorder, size_t ring_bytes);
/* True if the source's copies have several sizes. */
bool tally_recorder_has_copies(const struct tally_recorder *recorder,
			       const struct tally_recorder_source *source);
/* Notes the fate of a stack.  `needed`: bytes of copy that would contain all of it; UINT64_MAX:
 * more than the copy has. */
enum tally_recorder_stack_fate {
	TALLY_RECORDER_STACK_WHOLE,
	TALLY_RECORDER_STACK_CUT,
	TALLY_RECORDER_STACK_NEW
};
void tally_recorder_copies_note(struct tally_recorder *recorder, const struct tally_sample *sample,
				enum tally_recorder_stack_fate fate, uint64_t needed);
/* After a pass: switches to larger or smaller copies if that is better. */
int tally_recorder_copies_adapt(struct tally_recorder *recorder, struct tally_error *err);

/* recorder_synthesis.c: writes records of the state before the first event: kernel, processes,
 * threads, mappings. */
int tally_recorder_synthesize(struct tally_recorder *recorder, struct tally_error *err);
/* The same for the current state of tasks, for the beginning of a further file. */
int tally_recorder_write_tasks(struct tally_recorder *recorder, struct tally_error *err);

/* recorder_files.c: keeps a side-band record of a flight recorder. */
int tally_recorder_keep(struct tally_recorder *recorder, const void *bytes, size_t size,
			struct tally_error *err);
/* Writes the tasks, the kept side-band records, and the rings' records that no dump has yet. */
int tally_recorder_dump_rings(struct tally_recorder *recorder, struct tally_error *err);

/* Applies a side-band record to `tasks`. */
int tally_recorder_take_task(struct tally_recorder *recorder, const struct tally_record *record,
			     struct tally_error *err);

/* recorder_files.c: ends the file and continues in the next one. */
int tally_recorder_next_file(struct tally_recorder *recorder, struct tally_error *err);

/* recorder_triggers.c: opens options.switch_events.  tally_recorder_triggered(): true if one was hit
 * since the last call. */
int tally_recorder_open_triggers(struct tally_recorder *recorder, struct tally_error *err);
bool tally_recorder_triggered(struct tally_recorder *recorder);
void tally_recorder_close_triggers(struct tally_recorder *recorder);

/* recorder_hotplug.c: handles CPUs that go offline and come online, when the whole machine is
 * recorded.  Call _check_online() after a pass; it returns true when the handles to wait for have
 * changed. */
bool tally_recorder_follows_cpus(const struct tally_recorder *recorder);
bool tally_recorder_check_online(struct tally_recorder *recorder, int hotplug_fd);

void tally_recorder_say(const struct tally_recorder *recorder, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* True if the command is recorded; false if it only determines the time for other targets. */
static inline bool tally_recorder_follows_command(const struct tally_recorder *recorder)
{
	return recorder->session.target->command && !recorder->session.target->all &&
	       !tally_target_has_tasks(recorder->session.target);
}

/* Returns the command's name; NULL if something else is recorded. */
static inline const char *tally_recorder_command(const struct tally_recorder *recorder)
{
	return tally_recorder_follows_command(recorder) ? recorder->session.target->command[0] : NULL;
}

/* recorder_inherited.c: notes that the task's events for this ring are open.  Returns 0 or
 * -ENOMEM. */
int tally_recorder_note_opened(struct tally_recorder *recorder, pid_t tid, size_t ring);
/* Finds the tasks that were created by such tasks.  Returns 0 or -ENOMEM. */
int tally_recorder_look_for_inherited(struct tally_recorder *recorder);
bool tally_recorder_has_inherited(const struct tally_recorder *recorder, pid_t tid, size_t ring);
bool tally_recorder_has_inherited_all(const struct tally_recorder *recorder, pid_t tid);
void tally_recorder_forget_inherited(struct tally_recorder *recorder);

/* recorder_events.c: call tally_recorder_count_lost() after the last drain.  The kernel reports lost
 * samples when there is room again.  This reads the number of later losses from the events and
 * writes it.  Returns 0 or an error of writing. */
uint64_t tally_recorder_lost_by(const struct tally_recorder *recorder,
				const struct tally_recorder_handle *opened);
int tally_recorder_count_lost(struct tally_recorder *recorder, struct tally_error *err);

/* recorder_waits.c: the rings to wait for.  If the first event of a ring has ended, another of its
 * events takes its place. */
struct tally_recorder_waits {
	struct tally_wait_item *items; /* handle -1: all events of the ring have ended */
	struct { bool side; uint32_t ring; size_t next; } *places;
	size_t count, ended;
	size_t triggers; /* number of handles of the triggers' rings, behind these in `items` */
};
int tally_recorder_waits_init(struct tally_recorder_waits *waits,
			      const struct tally_recorder *recorder);
void tally_recorder_waits_update(struct tally_recorder_waits *waits,
				 const struct tally_recorder *recorder);
void tally_recorder_waits_release(struct tally_recorder_waits *waits);

/* recorder_waits.c: returns the ms until the next pass is due even if nothing wakes the recorder; -1:
 * not within TALLY_RECORDER_PACE_MS_MAX.  Call it after a pass, with the bytes that it found in the
 * fullest ring. */
enum { TALLY_RECORDER_PACE_MS_MAX = 200 };
int tally_recorder_pace_ms(struct tally_recorder_pace *pace, uint64_t now_ns, uint64_t lost,
			   uint64_t found_bytes, uint64_t ring_bytes);

/* recorder_drain.c: makes one pass over all rings; `last`: take everything.  Returns 0 or an error of
 * writing. */
int tally_recorder_drain(struct tally_recorder *recorder, bool last, struct tally_error *err);
/* Writes whole records, no samples among them. */
int tally_recorder_put(struct tally_recorder *recorder, const void *records, size_t size,
		       struct tally_error *err);
/* Writes one record of a sample ring; its header has its size. */
int tally_recorder_write(struct tally_recorder *recorder, const void *bytes,
			 struct tally_error *err);

/* Writes a rewritten sample of `written` bytes; an -errno there counts as a lost sample. */
int tally_recorder_put_sample(struct tally_recorder *recorder, const void *bytes, long written,
			      struct tally_error *err);

/* recorder_stacks.c: true if a sample may be held. */
bool tally_recorder_can_hold(const struct tally_recorder *recorder,
			     const struct tally_sample *sample);
/* Holds a sample, with its frames in recorder->stacks.frames.  Returns 0 or -ENOMEM. */
int tally_recorder_hold(struct tally_recorder *recorder, const struct tally_recorder_source *source,
			const void *bytes, size_t size, const struct tally_sample *sample);
/* Notes that a whole stack of the sample's thread was seen. */
void tally_recorder_held_news(struct tally_recorder *recorder, const struct tally_sample *sample);
/* Writes the older samples of that thread. */
int tally_recorder_write_told(struct tally_recorder *recorder, struct tally_error *err);
/* At the end of a pass: writes the samples that an earlier pass held, except those that may wait
 * for more; `all`: writes every held sample. */
int tally_recorder_write_held(struct tally_recorder *recorder, bool all, struct tally_error *err);
/* True if a sample of an earlier pass is still held: then no round may end. */
bool tally_recorder_holds_on(const struct tally_recorder *recorder);
void tally_recorder_holds_release(struct tally_recorder_holds *holds);

/* recorder_stacks.c: writes a sample of a source that unwinds stacks or mends chains to `out` (64
 * KiB), in the file's form.  Returns its size, 0 if it is held now, or -EBADMSG. */
long tally_recorder_rewrite_sample(struct tally_recorder *recorder,
				   const struct tally_recorder_source *source, const void *bytes,
				   size_t size, void *out);
/* Does the same for a held sample.  Returns 0 if it stays held. */
long tally_recorder_rewrite_held(struct tally_recorder *recorder,
				 const struct tally_recorder_held *held, bool can_wait, void *out);

/* recorder_features.c: writes the features behind the data. */
int tally_recorder_features(struct tally_recorder *recorder, struct tally_error *err);
/* recorder_tasks.c: makes the feature BUILD_ID. */
int tally_recorder_build_ids(struct tally_recorder *recorder, struct tally_buffer *bytes,
			     struct tally_error *err);
/* After a pass: forgets files that no process maps any more, except the most recent. */
int tally_recorder_forget_files(struct tally_recorder *recorder, struct tally_error *err);
void tally_recorder_forgotten_release(struct tally_recorder_forgotten *forgotten);

/* Before a pass reads samples: records the modules that were loaded since. */
int tally_recorder_look_at_modules(struct tally_recorder *recorder, uint64_t now_ns,
				   struct tally_error *err);
void tally_recorder_modules_release(struct tally_recorder_modules *modules);

/* recorder_tasks.c: near the end of a pass, once a minute, ends the tasks that no longer exist. */
int tally_recorder_end_gone(struct tally_recorder *recorder, uint64_t now_ns,
			    struct tally_error *err);

/* When too many files are open, closes those not used for longest. */
static inline void tally_recorder_trim_objects(struct tally_recorder *recorder)
{
	static const struct tally_objects_budget budget = { .bytes = 32 << 20,
							    .mapped = 1 << 30,
							    .objects = 512 };
	if (recorder->tasks.objects.is_live)
		tally_objects_trim(&recorder->tasks.objects, &budget);
}

/* Returns the source that wrote a record, by its id. */
struct tally_recorder_source *tally_recorder_source_of(struct tally_recorder *recorder,
						       const void *bytes, size_t size);

static inline struct tally_recorder_source *tally_recorder_side_band(
	struct tally_recorder *recorder)
{
	return &recorder->events.sources[recorder->events.source_count - 1];
}

static inline bool tally_recorder_samples_kernel(const struct tally_recorder *recorder)
{
	for (size_t i = 0; i + 1 < recorder->events.source_count; i++)
		if (!(recorder->events.sources[i].attr.flags & TALLY_ATTR_EXCLUDE_KERNEL))
			return true;
	return false;
}

#endif
