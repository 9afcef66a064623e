/* Recording: events opened on a target, rings drained into a perf.data file.
 *
 *     rings ──drain──▶ (stacks unwound) ──▶ perfdata writer
 *
 * Side-band records (maps, commands, forks, exits) have rings of their own, on a dummy event per
 * CPU.  A pass notes the heads of the sample rings, drains the side-band up to that moment, then
 * reads the samples up to the noted heads: whatever was mapped when a sample was taken is known
 * when its stack is unwound, without a queue.
 */
#ifndef TALLY_SESSION_RECORDER_H
#define TALLY_SESSION_RECORDER_H

#include "base/buffer.h"
#include "event/event.h"
#include "perfdata/perfdata.h"
#include "provider/provider.h"
#include "session/control_fifo.h"
#include "session/ring.h"
#include "session/signals.h"
#include "session/spawn.h"
#include "session/target.h"
#include "task/objects.h"
#include "task/tasks.h"

#include <stdbool.h>

enum tally_call_graph {
	/* STACK; FP where each hit is taken, and on machines that tally can't unwind */
	TALLY_CALL_GRAPH_AUTO,
	TALLY_CALL_GRAPH_NONE,
	TALLY_CALL_GRAPH_FP,    /* the kernel follows frame pointers */
	TALLY_CALL_GRAPH_STACK, /* copies of the stack, unwound while draining */
	TALLY_CALL_GRAPH_LBR,   /* the CPU's branch records */
};

/* When to go on in a new file. */
struct tally_record_rotation {
	bool is_wanted; /* at least when SIGUSR2 asks for it */
	uint64_t bytes;            /* of a file; 0: however many */
	double seconds;            /* 0: for ever */
};

/* A time to sample in, since the start. */
struct tally_record_range {
	double start_s, end_s;
};

struct tally_perf_maps;
struct tally_record_status;

struct tally_record_options {
	double frequency;      /* Hz, where no period was given */
	uint64_t period;       /* 0: by frequency */
	/* by the user: refused rather than lowered when the kernel allows less */
	bool rate_given;
	enum tally_call_graph call_graph;
	uint32_t stack_bytes;  /* 0: by the ring's size */
	bool keep_stacks;      /* write the copies, unwound later */
	size_t ring_bytes;     /* per CPU; 0: by default and budget */
	double delay_s, duration_s; /* 0: none */
	/* to sample in, one behind the other, from delay_s on; NULL: to the end */
	const struct tally_record_range *ranges;
	size_t range_count;
	bool starts_off;       /* nothing is sampled until it is switched on (control) */
	bool no_inherit;       /* without the children and threads to come */
	/* a ring for each thread of the target's, not for each CPU; with no_inherit */
	bool per_thread;
	bool running_time;     /* values that samples carry have times */
	bool no_bpf_events;    /* no records of BPF programs */
	uint64_t sample_type;  /* TALLY_SAMPLE_*: more of each sample than is always taken */
	/* TALLY_ATTR_NAMESPACES and the like: more records than of maps, commands, forks, exits */
	uint64_t side_band;
	/* TALLY_ATTR_EXCLUDE_USER or _KERNEL: of all events; 0: as each says */
	uint64_t exclude;
	/* TALLY_ATTR_EXCLUDE_CALLCHAIN_USER or _KERNEL: of all call graphs */
	uint64_t exclude_chain;
	/* frames of a call chain; 0: all, or as many as the machine's setting lets the kernel
	 * make */
	uint16_t max_stack;
	/* masks of registers that samples carry; 0: none */
	uint64_t registers_intr, registers_user;
	uint64_t branches;     /* branch_sample_type of the branch stacks to take; 0: none */
	/* rings keep the youngest records, which are read at the end and at a switch alone */
	bool overwrite;
	struct tally_record_rotation next_file;
	/* whose hits ask for the next file as SIGUSR2 does; NULL: none */
	const struct tally_event_list *switch_events;
	uint64_t max_bytes;    /* of a file, that end the recording; 0: none do */
	int compression_level;
	bool keeps_excerpt;    /* for tally_recorder_take_excerpt(); of a recording in one file */
	struct tally_control *control; /* who says when to sample, open; NULL: nobody does */
	/* The file is complete and may be renamed: *fd gets the next one's descriptor.  -errno with
	 * a message. */
	int (*next_output)(void *context, const struct tally_record_status *status, int *fd,
			   struct tally_error *err);
	/* Gets the samples as they come, each with the place of its event in the list; none is
	 * written.  -ENOMEM ends it.  For events without stacks to unwind, with
	 * tally_recorder_begin() and _look(). */
	int (*take_sample)(void *context, size_t event, const struct tally_record *sample);
	/* what the user should know meanwhile; may be NULL */
	void (*say)(void *context, const char *line);
	void *context;
	char **argv;           /* the command line behind "tally", for CMDLINE */
	int argc;
};

/* How a recording stands; for the progress line and the closing words. */
struct tally_record_status {
	double seconds;
	uint64_t samples, lost, bytes, throttled;
	uint64_t file_samples;    /* of the file that is written now */
	uint64_t stacks;          /* unwound here */
	uint64_t stacks_cut;      /* of these: the copy ended before the stack did */
	uint64_t stacks_ended;    /* of stacks_cut: the kernel copied less than it was asked for */
	/* of these: it did, and the rest was taken from the task's memory */
	uint64_t stacks_completed;
	uint64_t stacks_deep;     /* of these: longer than what is kept of one */
	uint64_t stacks_lost;     /* of these: ended where nothing tells the caller */
	double own_cpu_s;         /* recorder's user and system time */
	uint64_t wakeups;
};

struct tally_recorder; /* see recorder_state.h */

/* Opens everything; nothing counts yet.  `events` as parsed: attributes are completed here.  The
 * target is resolved.  `notes` collects lines that the user should see ("ring shrunk to …"). */
int tally_recorder_new(struct tally_provider *provider, const struct tally_event_list *events,
		       struct tally_target *target, const struct tally_record_options *options,
		       int output_fd, bool pipe, struct tally_spawn *spawn,
		       struct tally_buffer *notes, struct tally_recorder **out,
		       struct tally_error *err);

enum tally_record_end {
	TALLY_RECORD_END_COMMAND,  /* the command, or all tasks recorded, ended */
	TALLY_RECORD_END_SIGNAL,   /* SIGINT, SIGTERM, SIGHUP */
	TALLY_RECORD_END_DURATION, /* or the size that was asked for, or who controls it */
	TALLY_RECORD_END_OUTPUT,   /* writing failed: what came before is kept */
};

/* Runs until the end.  `progress` (may be NULL) is called about twice a second.  Signals other than
 * SIGCHLD end the recording; the command is told of those that it did not get by itself.  The error
 * is set with END_OUTPUT and for failures (-errno). */
int tally_recorder_run(struct tally_recorder *recorder, struct tally_signals *signals,
		       void (*progress)(void *context, const struct tally_record_status *status),
		       void *context, enum tally_record_end *end, struct tally_error *err);

/* For who has a loop of their own (options.take_sample): switches on, from then on a look every 100
 * ms or so empties the rings. 0 or -errno. */
int tally_recorder_begin(struct tally_recorder *recorder, struct tally_error *err);
int tally_recorder_look(struct tally_recorder *recorder, struct tally_record_status *status,
			struct tally_error *err);
/* The tasks as they are when a sample is given; the recorder's. */
struct tally_tasks *tally_recorder_tasks(struct tally_recorder *recorder);

/* Writes what stands behind the data.  0 or -errno. */
int tally_recorder_finish(struct tally_recorder *recorder, struct tally_record_status *status,
			  struct tally_error *err);

/* Adds tally's own section (profile/packed_names.h) to the finished recording; not in a pipe.  0,
 * or -errno: the recording is as it was. */
int tally_recorder_add_own(struct tally_recorder *recorder, const void *bytes, size_t size,
			   struct tally_record_status *status, struct tally_error *err);

/* The perf maps that were held, from then on the caller's to release. */
void tally_recorder_take_perf_maps(struct tally_recorder *recorder, struct tally_perf_maps *out);

/* What of the recording names its places (session/record_excerpt.h), from then on the caller's to
 * release; empty where there is no such excerpt, and the whole has to be read. */
void tally_recorder_take_excerpt(struct tally_recorder *recorder, struct tally_buffer *out);

/* Once it has finished: the files that were had by way of the recorded processes alone (of a
 * container, a chroot), as those that were fetched.  0 or -ENOMEM. */
int tally_recorder_take_files(struct tally_recorder *recorder, struct tally_objects *out);

/* After the end: waits until a descriptor is readable: 1; 0 after `timeout_ms`; -EINTR when a
 * signal asks for the end. */
int tally_recorder_watch(struct tally_recorder *recorder, struct tally_signals *signals, int fd,
			 int timeout_ms);

/* After the end: waits until the command ends, asking it to where the time was up.  A further
 * signal ends the wait: -EINTR, and the command goes on. */
int tally_recorder_wait(struct tally_recorder *recorder, struct tally_signals *signals,
			enum tally_record_end end);

/* What the call graphs are made of, as told in a line; NULL without. */
const char *tally_recorder_call_graph_text(const struct tally_recorder *recorder);

/* wait4(2)'s status of the command; false when it has not ended, or there is none. */
bool tally_recorder_command_ended(const struct tally_recorder *recorder, int *wait_status);

/* How much of the CPU time that the command and its children used the samples stand for, in
 * seconds; false where that can't be told: it has not ended, or something else than a clock was
 * sampled, or others, or a part of the time. */
bool tally_recorder_coverage(const struct tally_recorder *recorder, double *sampled_s,
			     double *used_s);

/* Before _free, when all is done: where closing takes the kernel long, it is left to a process of
 * its own. */
void tally_recorder_close_apart(struct tally_recorder *recorder);

void tally_recorder_free(struct tally_recorder *recorder);

#endif
