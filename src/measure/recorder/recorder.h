/* Recording: opens events on a target and drains their rings into a perf.data file.
 *
 *     rings ──drain──▶ (stacks unwound) ──▶ perfdata writer
 *
 * Side-band records (mappings, commands, forks, exits) have rings of their own, on a dummy event
 * per CPU.  A pass notes the heads of the sample rings, drains the side-band up to that moment,
 * then reads the samples up to the noted heads.  So everything that was mapped when a sample was
 * taken is known when its stack is unwound, without a queue.
 */
#ifndef TALLY_RECORDER_H
#define TALLY_RECORDER_H

#include "base/buffer.h"
#include "event/event.h"
#include "machine/machine.h"
#include "perfdata/perfdata.h"
#include "provider/provider.h"
#include "session/ring.h"
#include "session/session.h"
#include "task/task.h"

#include <stdbool.h>

enum tally_call_graph {
	/* STACK; FP for events that sample each hit, and on machines that tally can't unwind */
	TALLY_CALL_GRAPH_AUTO,
	TALLY_CALL_GRAPH_NONE,
	TALLY_CALL_GRAPH_FP,    /* the kernel follows frame pointers */
	TALLY_CALL_GRAPH_STACK, /* copies of the stack, unwound while draining */
	TALLY_CALL_GRAPH_LBR,   /* the CPU's branch records */
};

/* When to continue in a new file. */
struct tally_recorder_rotation {
	bool is_wanted; /* at least when SIGUSR2 arrives */
	uint64_t bytes;            /* size of a file; 0: no limit */
	double seconds;            /* time of a file; 0: no limit */
};

/* A time range to sample in, from the start of the recording. */
struct tally_recorder_range {
	double start_s, end_s;
};

struct tally_jit_files;
struct tally_perf_maps;
struct tally_recorder_status;

/* A new option takes effect in one part of the recorder (recorder_state.h), which reads it from its
 * session.  The events hold what is opened or sampled (recorder_attributes.c), the rings hold sizes
 * and waits, the stacks hold call chains, the tasks hold mappings, and the output holds what is
 * written.  The loop has code only for options that switch or end the recording. */
struct tally_recorder_options {
	double frequency;      /* Hz, for events without a period */
	uint64_t period;       /* 0: use the frequency */
	/* by the user: fail rather than lower it when the kernel allows less */
	bool rate_given;
	enum tally_call_graph call_graph;
	uint32_t stack_bytes;  /* 0: chosen by the ring's size */
	bool keep_stacks;      /* write the copies, for unwinding later */
	size_t ring_bytes;     /* per CPU; 0: chosen by default and budget */
	double delay_s, duration_s; /* 0: none */
	/* ranges to sample in, ascending, from delay_s on; NULL: sample until the end */
	const struct tally_recorder_range *ranges;
	size_t range_count;
	bool starts_off;       /* sample nothing until switched on (control) */
	bool no_inherit;       /* without future children and threads */
	/* one ring for each thread of the target instead of each CPU; with no_inherit */
	bool per_thread;
	bool running_time;     /* readings in samples have times */
	bool no_bpf_events;    /* no records of BPF programs */
	uint64_t sample_type;  /* TALLY_SAMPLE_*: fields besides those always recorded */
	/* TALLY_ATTR_NAMESPACES, …: records besides mappings, commands, forks, exits */
	uint64_t side_band;
	/* TALLY_ATTR_EXCLUDE_USER or _KERNEL, for all events; 0: as each event says */
	uint64_t exclude;
	/* TALLY_ATTR_EXCLUDE_CALLCHAIN_USER or _KERNEL, for all call graphs */
	uint64_t exclude_chain;
	/* frames of a call chain; 0: all, up to the limit of the machine's setting */
	uint16_t max_stack;
	/* masks of registers to sample; 0: none */
	uint64_t registers_intr, registers_user;
	uint64_t branches;     /* branch_sample_type of the branch stacks to record; 0: none */
	/* rings keep the youngest records, which are read only at the end and at a switch */
	bool overwrite;
	struct tally_recorder_rotation next_file;
	/* their hits start the next file, like SIGUSR2; NULL: none */
	const struct tally_event_list *switch_events;
	uint64_t max_bytes;    /* file size that ends the recording; 0: no limit */
	int compression_level;
	bool keeps_excerpt; /* for tally_recorder_take_excerpt(); only for recordings in one file */
	struct tally_control *control; /* open; commands when to sample; NULL: none */
	/* Called when the file is complete and may be renamed.  Sets *fd to the next file's
	 * descriptor.  Returns -errno with a message on failure. */
	int (*next_output)(void *context, const struct tally_recorder_status *status, int *fd,
			   struct tally_error *err);
	/* Gets the samples as they come, each with its event's index in the list; no sample is
	 * written.  Returns 0, or -ENOMEM to end the recording.  For events whose stacks need no
	 * unwinding, with tally_recorder_begin() and _look(). */
	int (*take_sample)(void *context, size_t event, const struct tally_record *sample);
	/* passes lines for the user during the recording; may be NULL */
	void (*say)(void *context, const char *line);
	void *context;
	char **argv;           /* the command line after "tally", for CMDLINE */
	int argc;
};

/* The state of a recording, for the progress line and the closing words. */
struct tally_recorder_status {
	double seconds;
	uint64_t samples, lost, bytes, throttled;
	uint64_t weight;          /* sum of the samples' periods, if one event alone samples */
	uint64_t file_samples;    /* in the current file */
	uint64_t stacks;          /* unwound by the recorder */
	uint64_t stacks_cut;      /* of `stacks`: the copy ended before the stack */
	/* of `stacks_cut`: the kernel copied less than the event asked for */
	uint64_t stacks_ended;
	/* of `stacks`: the copy was too short, and the rest came from the task's memory */
	uint64_t stacks_completed;
	uint64_t stacks_deep;     /* of `stacks`: more frames than are kept */
	uint64_t stacks_lost;     /* of `stacks`: ended where the caller is unknown */
	double own_cpu_s;         /* the recorder's user and system time */
};

struct tally_recorder; /* see recorder_state.h */

/* Opens everything; nothing is counted yet.  `events` as parsed: their attributes are completed
 * here.  `target` is resolved.  `notes` collects lines for the user ("ring shrunk to …"). */
int tally_recorder_new(struct tally_provider *provider, const struct tally_event_list *events,
		       struct tally_target *target, const struct tally_recorder_options *options,
		       int output_fd, bool pipe, struct tally_spawn *spawn,
		       struct tally_buffer *notes, struct tally_recorder **out,
		       struct tally_error *err);

enum tally_recorder_end {
	TALLY_RECORDER_END_COMMAND,  /* the command, or all recorded tasks, ended */
	TALLY_RECORDER_END_SIGNAL,   /* SIGINT, SIGTERM, SIGHUP */
	TALLY_RECORDER_END_DURATION, /* also the size limit, or a command by --control */
	TALLY_RECORDER_END_OUTPUT,   /* writing failed; everything written before is kept */
};

/* Runs until the end.  Calls `progress` (may be NULL) about twice a second.  Signals other than
 * SIGCHLD end the recording; the recorder passes them on to the command, unless the command got
 * them directly.  The error is set with END_OUTPUT and for failures (-errno). */
int tally_recorder_run(struct tally_recorder *recorder, struct tally_signals *signals,
		       void (*progress)(void *context, const struct tally_recorder_status *status),
		       void *context, enum tally_recorder_end *end, struct tally_error *err);

/* For callers with a loop of their own (options.take_sample).  _begin switches the events on and lets
 * the command begin; then _look must be called every 100 ms or so to empty the rings.  Return 0 or
 * -errno. */
int tally_recorder_begin(struct tally_recorder *recorder, struct tally_error *err);
int tally_recorder_look(struct tally_recorder *recorder, struct tally_recorder_status *status,
			struct tally_error *err);
/* Returns the tasks, owned by the recorder; at a sample they have the state for it. */
struct tally_tasks *tally_recorder_tasks(struct tally_recorder *recorder);

/* Writes the features behind the data.  Returns 0 or -errno. */
int tally_recorder_finish(struct tally_recorder *recorder, struct tally_recorder_status *status,
			  struct tally_error *err);

/* Adds tally's own section (naming/packed.h) to the finished recording; not in a pipe.
 * Returns 0, or -errno with the recording unchanged. */
int tally_recorder_add_own(struct tally_recorder *recorder, const void *bytes, size_t size,
			   struct tally_recorder_status *status, struct tally_error *err);

/* Move the held perf maps, and the dumps of JITs, to `out`, which the caller releases. */
void tally_recorder_take_perf_maps(struct tally_recorder *recorder, struct tally_perf_maps *out);
void tally_recorder_take_jit_files(struct tally_recorder *recorder, struct tally_jit_files *out);

/* Moves the excerpt that names the places (recorder/recorder_excerpt.h) to `out`, which the caller
 * releases.  It is empty when there is no excerpt; then the whole recording must be read. */
void tally_recorder_take_excerpt(struct tally_recorder *recorder, struct tally_buffer *out);

/* Call it once the recording has finished.  Moves files that were only reachable through the
 * recorded processes (in a container, a chroot) to `out`, like fetched files.  Returns 0 or
 * -ENOMEM. */
int tally_recorder_take_files(struct tally_recorder *recorder, struct tally_objects *out);

/* In such a loop, and after the end: waits until a descriptor (-1: none) is readable.  Returns 1; 0
 * after `timeout_ms`; -EINTR when a signal asks for the end.  Notes that the command has ended. */
int tally_recorder_watch(struct tally_recorder *recorder, struct tally_signals *signals, int fd,
			 int timeout_ms);

/* After the end: waits until the command ends; tells it to end if the time was up.  A further
 * signal stops the wait: returns -EINTR, and the command goes on. */
int tally_recorder_wait(struct tally_recorder *recorder, struct tally_signals *signals,
			enum tally_recorder_end end);

/* Returns one line about how call graphs are made; NULL if there is nothing to say. */
const char *tally_recorder_call_graph_text(const struct tally_recorder *recorder);

/* Returns the size of the stack copies at the end, in bytes; 0: there are none. */
uint32_t tally_recorder_copy_bytes(const struct tally_recorder *recorder);

/* Gets wait4(2)'s status of the command.  Returns false when it has not ended, or there is no
 * command. */
bool tally_recorder_command_ended(const struct tally_recorder *recorder, int *wait_status);

/* Gets the CPU time that the samples stand for, and the time that the command and its children
 * used, in seconds.  Returns false when the two can't be compared: the command has not ended, the
 * event was not a clock, or the recording covered other tasks as well or only part of the time. */
bool tally_recorder_coverage(const struct tally_recorder *recorder, double *sampled_s,
			     double *used_s);

/* If the command has ended and a process that it started has not, returns its number and sets
 * `name`; otherwise 0. */
pid_t tally_recorder_survivor(const struct tally_recorder *recorder,
			      char name[TALLY_PROC_COMM_MAX]);

/* Call it before _free, when all is done.  If closing takes the kernel long, leaves it to a
 * separate process. */
void tally_recorder_close_apart(struct tally_recorder *recorder);

void tally_recorder_free(struct tally_recorder *recorder);

#endif
