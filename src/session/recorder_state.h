/* What the recorder's files share; of no use outside of them. */
#ifndef TALLY_SESSION_RECORDER_STATE_H
#define TALLY_SESSION_RECORDER_STATE_H

#include "base/buffer.h"
#include "base/map.h"
#include "base/strings.h"
#include "machine/loaded_modules.h"
#include "session/record_excerpt.h"
#include "session/record_outer.h"
#include "session/recorder.h"
#include "task/endings.h"
#include "task/perf_maps.h"

/* One event of the recording; the last one is the side-band dummy. */
struct tally_record_source {
	struct tally_attr attr;    /* as opened */
	struct tally_attr written; /* as the file has it: stacks unwound */
	const struct tally_event *event; /* NULL for the side-band */
	const char *name;
	int cgroup_fd; /* -1: of no control group */
	bool unwinds; /* its samples carry stack copies that are unwound while draining */
	/* they carry the register that completes a chain, while draining, by a leaf's caller */
	bool completes;
	struct { uint64_t *items; size_t count, capacity; } ids;
};

struct tally_record_handle {
	int handle;
	uint32_t ring;   /* which of the rings it writes to */
	uint32_t source;
	uint32_t copy_bytes; /* one of several sizes of which one is on; 0: there is but this one */
};

/* How much of each stack is copied: record_copy.c. */
enum { TALLY_RECORD_COPY_SIZES = 4 };
struct tally_record_copies {
	uint32_t sizes[TALLY_RECORD_COPY_SIZES]; /* rising; events are open for each */
	unsigned count, now;                     /* count 0: the size is fixed */
	/* Stacks with the size in force since it is: of which the copy was too short, or their
	 * task's first, or of which the next smaller size would have done. */
	uint64_t stacks, cut, new, small;
	uint64_t lost_before; /* status.lost, when it came into force */
	unsigned highest;     /* not to grow beyond: larger copies lost samples */
	unsigned switches;
};

enum { TALLY_RECORD_CHAINS = 64 };

/* When to look at the rings by itself: record_pace.c.  Zero-initialised is a recording's start. */
struct tally_record_pace {
	uint64_t last_ns, lost;
	/* after a loss: until when, and how long that was meant to be */
	uint64_t until_ns, span_ns;
	uint64_t elapsed_ns;        /* before the last pass */
	uint64_t longest_ns;        /* before the last pass or the one before it */
	/* in which a ring was full, at the last pass that told; 0: not known */
	double fill_ns;
};

enum {
	TALLY_RECORD_MENDED_WORDS = 136,
	TALLY_RECORD_MENDED_REGISTERS = 3,
	TALLY_RECORD_MENDED_BYTES = 512
};

struct tally_record_ring_sizes {
	size_t sample_pages, side_pages;
};

/* Build-ids of files that the tasks know no more: record_build_ids.c. */
struct tally_record_forgotten {
	struct tally_strings paths;
	struct { struct tally_build_id *items; size_t count, capacity; } ids; /* by the path's id */
};

/* record_modules.c: the kernel's. */
struct tally_record_modules {
	struct tally_loaded_modules known, now; /* recorded; as read last */
	uint64_t folders; /* of /sys/module, then */
	/* when to read them next; when the last pass began, or the recording */
	uint64_t look_at, pass_ns;
};

/* record_trigger.c: what asks for the next file. */
struct tally_record_triggers {
	struct tally_ring *rings; /* by CPU of the target's */
	size_t count;
	struct { int *items; size_t count, capacity; } handles;
};

enum tally_record_cpu_state {
	TALLY_RECORD_CPU_ONLINE,
	TALLY_RECORD_CPU_OFFLINE,
	TALLY_RECORD_CPU_GIVEN_UP, /* came back, and could not be recorded */
};

struct tally_record_cpu {
	unsigned number;
	enum tally_record_cpu_state state;
};

/* Which tasks have inherited their events, while they are opened on others: record_inherited.c. */
struct tally_record_inherited {
	/* Keys are of a task and a ring. */
	struct tally_map opened_ns; /* when the task's events that write to the ring were open */
	struct tally_map from;      /* the task has inherited those from its maker */
	struct { struct tally_record_task *items; size_t count, capacity; } forks;
	/* by side ring: how far its forks are known; the recorder's arena */
	uint64_t *read_to;
};

/* The chain that was mended last, and what it was mended by: hits of one place come in rows.
 * record_stack.c. */
struct tally_record_mended {
	uint64_t space; /* of the process's mappings; 0: none */
	uint32_t pid;
	size_t words, stack_size; /* of the chain, and of the stack's top */
	uint64_t chain[TALLY_RECORD_MENDED_WORDS], registers[TALLY_RECORD_MENDED_REGISTERS];
	uint8_t stack[TALLY_RECORD_MENDED_BYTES];
	bool is_mended;
	struct tally_user_stack_inner inner;
};

struct tally_recorder {
	struct tally_provider *provider;
	struct tally_target *target;
	struct tally_record_options options;
	struct tally_spawn *spawn;
	struct tally_buffer *notes; /* lines for the user, while opening */
	struct tally_arena arena;
	struct tally_record_inherited inherited;
	/* threads of the target's child processes that this user may not record */
	size_t refused_descendants;

	struct tally_record_source *sources;
	size_t source_count; /* with the side-band */
	struct tally_recorded_event *recorded; /* the same, as the writer takes them */
	/* In the order of opening; of the side-band apart, which is on from the start. */
	struct { struct tally_record_handle *items; size_t count, capacity; } handles, side_handles;
	struct tally_ring *rings, *side_rings; /* one a CPU, or one a thread (options.per_thread) */
	struct tally_record_cpu *ring_cpus;
	size_t ring_count, ring_capacity; /* capacity: more CPUs may come online */
	struct tally_record_ring_sizes ring_sizes;
	struct tally_record_triggers triggers;
	uint64_t online_at; /* when to look for CPUs that came or went */
	uint64_t lost_closed; /* samples, by events that are closed */
	bool is_enabled;
	struct tally_map source_of_id;
	bool unwinds, completes; /* any of the sources does */
	struct tally_record_copies copies;
	enum tally_call_graph call_graph;
	char call_graph_text[256];

	struct tally_tasks tasks;
	struct tally_endings endings;
	struct tally_objects objects;
	struct tally_record_forgotten forgotten;
	struct tally_record_modules modules;
	uint64_t gone_at; /* when to look who ended untold */
	struct tally_perf_maps perf_maps; /* of what is recorded here and now (objects.is_live) */
	struct tally_unwind_chain *chains[TALLY_RECORD_CHAINS]; /* by thread; NULL: none yet */
	struct tally_record_frames frames; /* of the stack unwound last */
	struct tally_record_mended mended;
	struct tally_record_outer *outer; /* NULL: stacks that were cut stay so */
	struct tally_perfdata_writer *writer;
	struct tally_record_excerpt *excerpt; /* NULL: there is none */
	bool pipe;
	int output_fd;
	struct tally_record_status status;
	uint64_t lost_told; /* by LOST records of the sample rings */
	uint64_t found_bytes; /* in the ring that had most, at the last pass */
	uint64_t start_ns;
	uint64_t first_sample_ns, last_sample_ns; /* of this file */
	uint64_t file_start_ns, file_samples; /* when it was begun, and status.samples then */
	struct tally_buffer history;          /* a flight recorder's side-band since `tasks` */
	int wait_status;
	struct rusage command_used; /* with what it waited for */
	bool command_ended;
};

/* recorder.c */
uint64_t tally_record_now_ns(void);
void tally_record_describe_sources(struct tally_recorder *recorder);
void tally_record_fill_status(struct tally_recorder *recorder);
/* How many signals asked for the end; *asked_next: whether one asked for the next file. */
unsigned tally_record_take_signals(struct tally_recorder *recorder, struct tally_signals *signals,
				   bool *asked_next);

/* record_attributes.c: completes attributes, chooses the call graph. */
int tally_record_make_sources(struct tally_recorder *recorder,
			      const struct tally_event_list *events, struct tally_error *err);
/* The source whose samples stand for waits, or NULL. */
const struct tally_record_source *tally_record_off_cpu(const struct tally_recorder *recorder);

/* record_open.c: opens the events and their rings; ids are filled in. */
int tally_record_open(struct tally_recorder *recorder, struct tally_error *err);
void tally_record_close(struct tally_recorder *recorder);
/* The events of a CPU that came online, into its ring, as they are on the others. */
int tally_record_open_cpu(struct tally_recorder *recorder, size_t ring, struct tally_error *err);
/* Enables or disables what was opened disabled; from one of the handles on. */
int tally_record_enable_from(struct tally_recorder *recorder, size_t first, bool enable,
			     struct tally_error *err);
int tally_record_enable(struct tally_recorder *recorder, bool enable, struct tally_error *err);

/* record_rings.c: room for a ring for each CPU (and those that may come online), or thread.  0 or
 * -ENOMEM. */
int tally_record_make_rings(struct tally_recorder *recorder);
/* Sizes by what was asked for and by the budget. */
struct tally_record_ring_sizes tally_record_choose_rings(const struct tally_recorder *recorder);
/* When its reader is woken, and copies that leave room in a ring. */
void tally_record_set_wakeups(struct tally_recorder *recorder,
			      const struct tally_record_ring_sizes *sizes);
/* Sends `handle` to the ring, which it founds when it is the first: with fewer pages where so many
 * can't be had. */
int tally_record_join_ring(struct tally_recorder *recorder, struct tally_ring *ring, int handle,
			   int cpu, size_t *pages, struct tally_error *err);
void tally_record_tell_of_small_rings(struct tally_recorder *recorder,
				      const struct tally_record_ring_sizes *sizes);

/* record_copy.c: the ring in which the largest copies have room for long enough, at the rates asked
 * for: up to 32 MiB; 0 where these are not known. */
size_t tally_record_copies_ring_bytes(const struct tally_recorder *recorder);
/* Which sizes of copies there are to be with rings of so many bytes; the smallest is in force. */
void tally_record_copies_init(struct tally_recorder *recorder, size_t ring_bytes);
/* Is the source one whose copies have several sizes? */
bool tally_record_has_copies(const struct tally_recorder *recorder,
			     const struct tally_record_source *source);
/* Notes what became of a stack: `needed` bytes of copy for all of it, UINT64_MAX where they did not
 * do. */
enum tally_record_stack_fate {
	TALLY_RECORD_STACK_WHOLE,
	TALLY_RECORD_STACK_CUT,
	TALLY_RECORD_STACK_NEW
};
void tally_record_copies_note(struct tally_recorder *recorder, const struct tally_sample *sample,
			      enum tally_record_stack_fate fate, uint64_t needed);
/* After a pass: goes over to larger or smaller copies where that is better. */
int tally_record_copies_adapt(struct tally_recorder *recorder, struct tally_error *err);

/* record_synthesize.c: records of what is there before the first event: kernel, processes, threads,
 * maps. */
int tally_record_synthesize(struct tally_recorder *recorder, struct tally_error *err);
/* The same of what is known by now: a file in which the recording goes on begins with it. */
int tally_record_write_tasks(struct tally_recorder *recorder, struct tally_error *err);

/* record_flight.c: side-band of a flight recorder, kept. */
int tally_record_keep(struct tally_recorder *recorder, const void *bytes, size_t size,
		      struct tally_error *err);
/* Writes what is known of the tasks, the side-band kept, and what the rings hold that no dump has
 * had. */
int tally_record_dump_rings(struct tally_recorder *recorder, struct tally_error *err);

/* Takes a side-band record into `tasks`. */
int tally_record_take_task(struct tally_recorder *recorder, const struct tally_record *record,
			   struct tally_error *err);

/* record_file.c: ends the file, and goes on in the next. */
int tally_record_next_file(struct tally_recorder *recorder, struct tally_error *err);

/* record_trigger.c: opens options.switch_events; whether one was hit since it was asked last. */
int tally_record_open_triggers(struct tally_recorder *recorder, struct tally_error *err);
bool tally_record_triggered(struct tally_recorder *recorder);
void tally_record_close_triggers(struct tally_recorder *recorder);

/* record_hotplug.c: of CPUs that come and go, for who records the whole machine.  To be called
 * after a pass; true when the handles to wait for are others. */
bool tally_record_follows_cpus(const struct tally_recorder *recorder);
bool tally_record_check_online(struct tally_recorder *recorder, int hotplug_fd);
/* What that does with the list of those that are online. */
bool tally_record_set_online(struct tally_recorder *recorder, const struct tally_cpu_list *online);

/* record_control.c: does what was asked for. */
enum tally_record_wish {
	TALLY_RECORD_WISH_NONE,
	TALLY_RECORD_WISH_STOP,
	TALLY_RECORD_WISH_NEXT_FILE
};
int tally_record_obey(struct tally_recorder *recorder, const struct tally_control_command *command,
		      enum tally_record_wish *wish, struct tally_error *err);
void tally_record_say(const struct tally_recorder *recorder, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* True when the command is what is recorded, not the clock for other targets. */
static inline bool tally_record_follows_command(const struct tally_recorder *recorder)
{
	return recorder->target->command && !recorder->target->all &&
	       !tally_target_has_tasks(recorder->target);
}

/* Its name; NULL where it is not what is recorded. */
static inline const char *tally_record_command(const struct tally_recorder *recorder)
{
	return tally_record_follows_command(recorder) ? recorder->target->command[0] : NULL;
}

/* record_inherited.c: the task's events that write to the ring are open.  0 or -ENOMEM. */
int tally_record_note_opened(struct tally_recorder *recorder, pid_t tid, size_t ring);
/* Looks which tasks were made by such tasks.  0 or -ENOMEM. */
int tally_record_look_for_inherited(struct tally_recorder *recorder);
bool tally_record_has_inherited(const struct tally_recorder *recorder, pid_t tid, size_t ring);
bool tally_record_has_inherited_all(const struct tally_recorder *recorder, pid_t tid);
void tally_record_forget_inherited(struct tally_recorder *recorder);

/* record_lost.c: after the last drain.  The kernel tells of lost samples when there is room again:
 * what was lost after that is asked for and written.  0, or what writing gave. */
uint64_t tally_record_lost_by(const struct tally_recorder *recorder,
			      const struct tally_record_handle *opened);
int tally_record_count_lost(struct tally_recorder *recorder, struct tally_error *err);

/* record_wait.c: which rings to wait for; a ring whose founder has ended is waited for by another
 * event of it. */
struct tally_record_waits {
	struct tally_wait_item *items; /* handle -1: all events of the ring have ended */
	struct { bool side; uint32_t ring; size_t next; } *places;
	size_t count, ended;
	size_t triggers; /* behind these in `items`: handles of the triggers' rings */
};
int tally_record_waits_init(struct tally_record_waits *waits,
			    const struct tally_recorder *recorder);
void tally_record_waits_update(struct tally_record_waits *waits,
			       const struct tally_recorder *recorder);
void tally_record_waits_release(struct tally_record_waits *waits);

/* record_pace.c: after a pass that found so many bytes in the fullest ring: ms until the next is
 * due, although nothing wakes the recorder; -1: none is (within TALLY_RECORD_PACE_MS_MAX). */
enum { TALLY_RECORD_PACE_MS_MAX = 200 };
int tally_record_pace_ms(struct tally_record_pace *pace, uint64_t now_ns, uint64_t lost,
			 uint64_t found_bytes, uint64_t ring_bytes);

/* record_drain.c: one pass over all rings; `last`: whatever is there.  0, or what writing gave. */
int tally_record_drain(struct tally_recorder *recorder, bool last, struct tally_error *err);
/* Writes whole records, none of which is a sample. */
int tally_record_put(struct tally_recorder *recorder, const void *records, size_t size,
		     struct tally_error *err);
/* One record of a sample ring, whose size is its header's. */
int tally_record_write(struct tally_recorder *recorder, const void *bytes, struct tally_error *err);

/* record_live.c: a sample for options.take_sample. */
int tally_record_give_sample(struct tally_recorder *recorder, const void *bytes, size_t size,
			     struct tally_error *err);

/* record_stack.c: a sample of a source that unwinds or completes, as the file is to have it, into
 * `out` (64 KiB).  Its size, or -EBADMSG. */
long tally_record_rewrite_sample(struct tally_recorder *recorder,
				 const struct tally_record_source *source, const void *bytes,
				 size_t size, void *out);

/* record_features.c: what stands behind the data. */
int tally_record_features(struct tally_recorder *recorder, struct tally_error *err);
/* record_build_ids.c: of these, the build-ids. */
int tally_record_build_ids(struct tally_recorder *recorder, struct tally_buffer *bytes,
			   struct tally_error *err);
/* After a pass: of the files that nobody has mapped any more, all but the last are forgotten. */
int tally_record_forget_files(struct tally_recorder *recorder, struct tally_error *err);
void tally_record_forgotten_release(struct tally_record_forgotten *forgotten);

/* record_modules.c: reads which are loaded now; the lowest start above an address, UINT64_MAX where
 * there is none. */
int tally_record_read_modules(struct tally_recorder *recorder, struct tally_error *err);
uint64_t tally_record_module_above(const struct tally_recorder *recorder, uint64_t address);
/* Before a pass reads samples: modules that were loaded since. */
int tally_record_look_at_modules(struct tally_recorder *recorder, uint64_t now_ns,
				 struct tally_error *err);
void tally_record_modules_release(struct tally_record_modules *modules);

/* record_ended.c: before the end of a pass, once a minute: tasks that are there no more have
 * ended. */
int tally_record_end_gone(struct tally_recorder *recorder, uint64_t now_ns,
			  struct tally_error *err);
/* record_machine.c: of these, what the kernel shows of the machine. */
int tally_record_machine_features(struct tally_recorder *recorder, struct tally_buffer *bytes,
				  struct tally_error *err);

/* Closes files that were not used for long, when too many are open. */
static inline void tally_record_trim_objects(struct tally_recorder *recorder)
{
	static const struct tally_objects_budget budget = { .bytes = 32 << 20,
							    .mapped = 1 << 30,
							    .objects = 512 };
	if (recorder->objects.is_live)
		tally_objects_trim(&recorder->objects, &budget);
}

/* The source that wrote a record, by its id. */
struct tally_record_source *tally_record_source_of(struct tally_recorder *recorder,
						   const void *bytes, size_t size);

static inline struct tally_record_source *tally_record_side_band(struct tally_recorder *recorder)
{
	return &recorder->sources[recorder->source_count - 1];
}

static inline bool tally_record_samples_kernel(const struct tally_recorder *recorder)
{
	for (size_t i = 0; i + 1 < recorder->source_count; i++)
		if (!(recorder->sources[i].attr.flags & TALLY_ATTR_EXCLUDE_KERNEL))
			return true;
	return false;
}

#endif
