/* Shared by the recorder's files; internal to them. */
#ifndef TALLY_RECORDER_STATE_H
#define TALLY_RECORDER_STATE_H

#include "base/buffer.h"
#include "base/map.h"
#include "base/strings.h"
#include "machine/loaded_modules.h"
#include "recorder/recorder_excerpt.h"
#include "recorder/recorder_outer.h"
#include "recorder/recorder.h"
#include "task/endings.h"
#include "task/perf_maps.h"

/* One event of the recording; the last one is the side-band's dummy event. */
struct tally_recorder_source {
	struct tally_attr attr;    /* as opened */
	struct tally_attr written; /* as in the file, with stacks unwound */
	const struct tally_event *event; /* NULL: the side-band */
	const char *name;
	int cgroup_fd; /* -1: no cgroup */
	bool unwinds; /* its samples have stack copies that are unwound while draining */
	/* its samples have a register, or a part of the stack, that gives the leaf's caller while
	 * draining */
	bool completes;
	struct { uint64_t *items; size_t count, capacity; } ids;
};

struct tally_recorder_handle {
	int handle;
	uint32_t ring;   /* index of the ring that it writes to */
	uint32_t source;
	/* size of its copies if there are several sizes (only one is on); otherwise 0 */
	uint32_t copy_bytes;
};

/* The number of bytes of each stack that are copied: recorder_copies.c. */
enum { TALLY_RECORDER_COPY_SIZES = 4 };
struct tally_recorder_copies {
	uint32_t sizes[TALLY_RECORDER_COPY_SIZES]; /* ascending; each has open events */
	unsigned count, now; /* now: index of the size in use; count 0: the size is fixed */
	/* Stacks since the size came into use: the total; cut by it; cut, but only for lack of an
	 * earlier snapshot of the task; short enough for the next smaller size. */
	uint64_t stacks, cut, new, small;
	uint64_t lost_before; /* status.lost when the size came into use */
	unsigned highest;     /* largest index to use: larger copies lost samples */
	unsigned switches;
};

enum { TALLY_RECORDER_CHAINS = 64 };

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

enum {
	TALLY_RECORDER_MENDED_WORDS = 136,
	TALLY_RECORDER_MENDED_REGISTERS = 3,
	TALLY_RECORDER_MENDED_BYTES = 512
};

/* A sample whose stack may be completed in a later pass: recorder_stacks.c. */
struct tally_recorder_held {
	const struct tally_recorder_source *source;
	uint8_t *bytes; /* of the record, as the ring had them */
	size_t size;
	uint64_t *addresses, *stack_pointers; /* of the frames in its copy */
	size_t frames;
	uint32_t tid;
	uint64_t time_ns;
	uint64_t pass; /* in which it was read */
};
/* All held samples. */
struct tally_recorder_holds {
	struct tally_recorder_held *items;
	size_t count;
	uint64_t pass;
	uint64_t last_pass_ns; /* all records of the last pass are older */
	bool is_open;          /* a pass is in progress, and it is not the last one */
	/* a thread whose whole stack was seen at news_ns: its older samples can be written; 0:
	 * none */
	uint32_t news_tid;
	uint64_t news_ns;
};

struct tally_recorder_ring_sizes {
	size_t sample_pages, side_pages;
};

/* Build-ids of files that the tasks have forgotten: recorder_tasks.c. */
struct tally_recorder_forgotten {
	struct tally_strings paths;
	/* indexed by the path's id */
	struct { struct tally_build_id *items; size_t count, capacity; } ids;
};

/* Kernel modules: recorder_synthesis.c. */
struct tally_recorder_modules {
	struct tally_loaded_modules known, now; /* known: recorded; now: as last read */
	uint64_t folders; /* number of folders in /sys/module at that time */
	/* look_at: next time to read; pass_ns: start of the last pass, or of the recording */
	uint64_t look_at, pass_ns;
};

/* Events that start the next file: recorder_triggers.c. */
struct tally_recorder_triggers {
	struct tally_ring *rings; /* by CPU of the target */
	size_t count;
	struct { int *items; size_t count, capacity; } handles;
};

enum tally_recorder_cpu_state {
	TALLY_RECORDER_CPU_ONLINE,
	TALLY_RECORDER_CPU_OFFLINE,
	TALLY_RECORDER_CPU_GIVEN_UP, /* came online again, but could not be recorded */
};

struct tally_recorder_cpu {
	unsigned number;
	enum tally_recorder_cpu_state state;
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

/* The last mended chain, with the fields that it was made from.  Hits of one place come in a row,
 * so the next sample is often the same.  recorder_stacks.c. */
struct tally_recorder_mended {
	uint64_t space; /* generation of the process's mappings; 0: none */
	uint32_t pid;
	size_t words, stack_size; /* of the chain, and of the copied top of the stack */
	uint64_t chain[TALLY_RECORDER_MENDED_WORDS], registers[TALLY_RECORDER_MENDED_REGISTERS];
	uint8_t stack[TALLY_RECORDER_MENDED_BYTES];
	bool is_mended;
	struct tally_user_stack_inner inner;
};

struct tally_recorder {
	struct tally_provider *provider;
	struct tally_target *target;
	struct tally_recorder_options options;
	struct tally_spawn *spawn;
	struct tally_buffer *notes; /* lines for the user, while opening */
	struct tally_arena arena;
	struct tally_recorder_inherited inherited;
	/* threads of the target's child processes that this user must not record */
	size_t refused_descendants;

	struct tally_recorder_source *sources;
	size_t source_count; /* including the side-band */
	struct tally_recorded_event *recorded; /* the sources, as the writer takes them */
	/* In the order of opening.  The side-band's are separate: they are on from the start. */
	struct {
		struct tally_recorder_handle *items;
		size_t count, capacity;
	} handles, side_handles;
	/* one per CPU, or one per thread (options.per_thread) */
	struct tally_ring *rings, *side_rings;
	struct tally_recorder_cpu *ring_cpus;
	size_t ring_count, ring_capacity; /* capacity is larger because more CPUs may come online */
	struct tally_recorder_ring_sizes ring_sizes;
	struct tally_recorder_triggers triggers;
	uint64_t online_at; /* next time to look for CPUs that came online or went offline */
	uint64_t lost_closed; /* samples lost by events that are closed now */
	bool is_enabled;
	struct tally_map source_of_id;
	bool unwinds, completes; /* at least one source does */
	struct tally_recorder_copies copies;
	enum tally_call_graph call_graph;
	char call_graph_text[256];

	struct tally_tasks tasks;
	struct tally_endings endings;
	struct tally_objects objects;
	struct tally_recorder_forgotten forgotten;
	struct tally_recorder_modules modules;
	uint64_t gone_at; /* next time to look for tasks whose EXIT was lost */
	struct tally_perf_maps perf_maps; /* only for a live recording (objects.is_live) */
	struct tally_unwind_chain *chains[TALLY_RECORDER_CHAINS]; /* by thread; NULL: none yet */
	struct tally_recorder_frames frames;                      /* of the last unwound stack */
	struct tally_recorder_mended mended;
	struct tally_recorder_outer *outer; /* NULL: cut stacks stay cut */
	struct tally_recorder_holds holds;
	struct tally_perfdata_writer *writer;
	struct tally_recorder_excerpt *excerpt; /* NULL: none */
	bool pipe;
	int output_fd;
	struct tally_recorder_status status;
	uint64_t lost_told; /* samples lost according to LOST records of the sample rings */
	uint64_t found_bytes; /* bytes in the fullest ring at the last pass */
	uint64_t start_ns;
	uint64_t first_sample_ns, last_sample_ns; /* of the current file */
	uint64_t file_start_ns, file_samples; /* its start, and status.samples at that time */
	struct tally_buffer history; /* a flight recorder's side-band records since `tasks` */
	int wait_status;
	struct rusage command_used; /* including its children that were waited for */
	bool command_ended;
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
	return recorder->target->command && !recorder->target->all &&
	       !tally_target_has_tasks(recorder->target);
}

/* Returns the command's name; NULL if something else is recorded. */
static inline const char *tally_recorder_command(const struct tally_recorder *recorder)
{
	return tally_recorder_follows_command(recorder) ? recorder->target->command[0] : NULL;
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
/* Holds a sample, with its frames in recorder->frames.  Returns 0 or -ENOMEM. */
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
	if (recorder->objects.is_live)
		tally_objects_trim(&recorder->objects, &budget);
}

/* Returns the source that wrote a record, by its id. */
struct tally_recorder_source *tally_recorder_source_of(struct tally_recorder *recorder,
						       const void *bytes, size_t size);

static inline struct tally_recorder_source *tally_recorder_side_band(
	struct tally_recorder *recorder)
{
	return &recorder->sources[recorder->source_count - 1];
}

static inline bool tally_recorder_samples_kernel(const struct tally_recorder *recorder)
{
	for (size_t i = 0; i + 1 < recorder->source_count; i++)
		if (!(recorder->sources[i].attr.flags & TALLY_ATTR_EXCLUDE_KERNEL))
			return true;
	return false;
}

#endif
