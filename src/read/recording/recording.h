/* A recording being read: its records in order of time, and which of its samples count. */
#ifndef TALLY_RECORDING_H
#define TALLY_RECORDING_H

#include "abi/abi.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/map.h"
#include "base/weight_sum.h"
#include "base/word_list.h"
#include "naming/naming.h"
#include "perfdata/perfdata.h"
#include "recording/recording_internal.h"
#include "task/task.h"
#include "task/user_stack.h"
#include "tracepoint/tracepoint.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_names;
struct tally_packed_jits;
struct tally_packed_stacks;
struct tally_recording;

/* Selects samples by event, thread, CPU, command and time, before their stacks are read.  Also
 * limits the frames of a stack.
 *
 * The lists, given as text, are parsed once into sets.  A recording with a filter gives only the
 * selected samples (tally_recording_filter() in recording.h).  Filters by object and symbol need
 * the leaf's name, so profile.h applies them.  Not thread-safe.
 */

/* Zero-initialised, it selects all samples.  Lists are comma-separated; NULL: any.  Numbers may be
 * ranges ("0,4-7"); CPUs are as in machine.h. */
struct tally_profile_filter {
	const char *event; /* name or number */
	const char *comms, *pids, *tids, *cpus;
	const char *time; /* as in recording_internal.h */
	bool time_since_first; /* seconds in `time` are counted from the recording's first sample */
	const char *objects, *symbols; /* of the leaf: see tally_profile_new() */
	uint32_t frames_max; /* number of innermost frames to keep of each stack; 0: all */
};

struct tally_sample_filter {
	struct tally_ranges pids, tids, cpus, times; /* empty: any; times in ns */
	const char *comms, *event;
	/* from the first range to the last; 0 and UINT64_MAX: no limit */
	uint64_t time_start_ns, time_end_ns;
	/* number of names when `event` was searched among them (tally_perfdata_names_known()) */
	uint64_t names_seen;
	size_t event_index;    /* SIZE_MAX: not found yet */
	uint64_t needed;       /* bits of attr.sample_type: the fields that it reads */
	bool takes_all;
};

/* Parses the lists; keeps references to the texts.  Returns 0, -EINVAL with a message that names
 * the malformed number, or -ENOMEM; -ENODATA if no event of the recording has the CPUs, tasks or
 * times that it selects by, or if times are relative to the recording's start or length and these
 * are not known. */
int tally_sample_filter_init(struct tally_sample_filter *filter,
			     const struct tally_profile_filter *asked,
			     const struct tally_perfdata *data, struct tally_error *err);
void tally_sample_filter_release(struct tally_sample_filter *filter);

/* True if the filter selects the sample.  `tasks` must be as they are at its time; `event` is one
 * of `data`'s. */
bool tally_sample_filter_passes(struct tally_sample_filter *filter,
				const struct tally_perfdata *data, const struct tally_tasks *tasks,
				const struct tally_recorded_event *event,
				const struct tally_sample *sample);

/* Parses "0,4-7" and adds the numbers to a set.  Returns 0, -EINVAL or -ENOMEM. */
int tally_numbers_parse(struct tally_ranges *numbers, const char *text, struct tally_error *err);
/* The same for a list of CPUs. */
int tally_filter_cpus_parse(struct tally_ranges *cpus, const char *text, struct tally_error *err);

/* True if the filter's objects and symbols select a function of the names.  UINT32_MAX (memory was
 * out) is never selected. */
bool tally_function_passes(const struct tally_profile_filter *filter,
			   const struct tally_names *names, uint32_t function);

/* Writes a list that matches only this word.  `list` has room for twice the word's bytes and a
 * NUL. */
void tally_list_quote(const char *word, char *list);

/* Finds an event by its name, as any view shows it, or by its number; returns `count` if there is
 * none.  "page-faults" also means "page-faults:u", which it became if the kernel's part was not permitted.  "sched_switch" means
 * the tracepoint of that name if there is only one. */
size_t tally_event_find(const struct tally_recorded_event *events, size_t count, const char *name);

/* Sets an error with a list of the existing events.  Returns -ENOENT. */
int tally_event_not_found(const struct tally_perfdata *data, const char *name,
			  struct tally_error *err);

/* Gets the times of the first and the last sample.  Returns false if the recording does not have
 * them: from a pipe, or from perf without build-ids. */
bool tally_recorded_times(const struct tally_perfdata *data, uint64_t *first_ns, uint64_t *last_ns);

/* Parts of a recording (recording.h) whose members only this room uses: the recorded machine, records
 * between the file and tally_recording_next(), filters, and what the recording carries. */

/* recorded_machine.c: the recorded machine and its kernel. */
struct tally_recorded_machine {
	enum tally_arch arch; /* as far as known */
	/* from the records of its maps, if the recording has neither its build-id nor its
	 * release */
	struct {
		bool is_another; /* another kernel than the running one was recorded */
		bool is_located; /* the address of one of its symbols was compared already */
		char release[TALLY_KERNEL_RELEASE_BYTES]; /* "": not known */
	} kernel;
	size_t build_ids_applied; /* so many of the list in the file */
	struct tally_text_pokes text_pokes; /* up to the end of the filter's time range */
};

/* recording.c: records between the file and tally_recording_next(). */
struct tally_record_flow {
	struct tally_order *order;
	/* ended processes; their maps are freed some time later */
	struct tally_endings endings;
	struct tally_deferred_chains deferred;
	/* the sample whose group is being given */
	struct {
		struct tally_raw_record raw;
		struct tally_record record;
		/* index of the next value to give; none is left at record.sample.read.count */
		uint64_t next;
		struct tally_map last_values; /* event id → value in its last sample */
	} group;
	/* see tally_recording_on_change() */
	struct {
		int (*call)(void *context);
		void *context;
	} before_change;
};

/* Set by tally_recording_filter(). */
struct tally_recording_filter {
	struct tally_sample_filter samples;
	uint32_t frames_max; /* number of innermost frames to keep of a stack; 0: all */
	/* command → how much of it was left out; for tally_recording_is_empty() */
	struct tally_map left_out;
};

/* Stacks and JIT dumps in tally's own section. */
struct tally_recording_carried {
	const void *section; /* before its stacks are read; NULL: none, or read */
	size_t section_size;
	struct tally_packed_stacks *stacks; /* NULL: none */
	/* filled while reading, to be packed; NULL: not needed */
	struct tally_packed_stacks *noted;
	/* JIT dumps, read when the first is wanted; NULL: none */
	struct tally_packed_jits *jits;
	bool jits_are_read;
};

/* recorded_machine.c: applies the build-ids that the file, or the pipe so far, has announced since the
 * last call.  Returns 0 or -ENOMEM. */
int tally_recording_apply_build_ids(struct tally_recording *recording);

/* Finds out the machine by the features that the file, or the pipe so far, has. */
void tally_recording_find_machine(struct tally_recording *recording);

/* Takes a MMAP or MMAP2 record.  If the recording has neither the kernel's build-id nor its release,
 * the records of its maps tell whether it may be the running kernel. */
void tally_recording_check_kernel(struct tally_recording *recording,
				  const struct tally_record *record);

/* Keeps a change to the kernel's code, if the record is one.  Returns 0 or -ENOMEM. */
int tally_recording_keep_text_poke(struct tally_recording *recording,
				   const struct tally_record *record);

/* A recording being read: its records in order of time, the tasks as they were at that time, and
 * samples' stacks as places.
 *
 * All views of a recording use this: script directly, record by record; report and flame graphs
 * through profile.h.  Not thread-safe.
 */

/* One address of a sample's stack. */
struct tally_chain_frame {
	uint64_t address;         /* raw: the sampled ip, or a return address */
	struct tally_place place; /* of the call: `before` bytes before the return address */
	uint8_t before;           /* 1 for return addresses, 0 for sampled ones */
	bool kernel;
};

struct tally_recording_counts {
	uint64_t records, samples;
	uint64_t filtered;      /* samples left out by the filter */
	uint64_t lost;          /* records that didn't fit in a ring, from LOST and LOST_SAMPLES */
	uint64_t throttled;
	uint64_t undecodable;   /* records with malformed fields; skipped */
	uint64_t stat_counts;   /* STAT records, from `perf stat record`, which takes no samples */
	struct { /* hardware traces (AUX areas), which tally does not decode */
		uint64_t bytes;
		uint32_t type;  /* kind of trace, from AUXTRACE_INFO */
		bool is_told;   /* there is an AUXTRACE_INFO */
	} trace;
	uint64_t unknown;       /* records of undefined types; skipped */
	uint64_t unknown_ids;   /* values in groups with the id of no event; left out */
	uint64_t guests;        /* samples of code in guests */
	uint64_t stacks;        /* user stacks unwound here */
	uint64_t stacks_cut;    /* part of `stacks`: the copy ended before the stack */
	uint64_t stacks_lost;   /* part of `stacks`: they ended where nothing told the caller */
	struct tally_cut_stacks {
		/* part of stacks_cut: the kernel could not copy as much as requested; a larger
		 * option won't help */
		uint64_t ended;
		uint64_t bytes;     /* copy size that would have sufficed for the others */
		bool is_at_least;   /* `bytes` is only a lower bound */
	} cut;
	uint64_t stacks_32bit;  /* user stacks that can't be unwound here: of 32-bit programs */
	uint64_t stacks_foreign; /* … of machines whose unwind rules aren't known */
	uint64_t chains_cut;    /* samples given whose stack was cut when tally recorded it */
	uint64_t chains_deep;   /* part of chains_cut: they had more frames than tally keeps */
	/* part of chains_cut: the kernel could not copy as much as requested */
	uint64_t chains_ended;
	/* samples given whose stack was unwound while recording, and ended where nothing told the
	 * caller */
	uint64_t chains_lost;
	uint64_t chains_astray; /* the same for chains that the kernel made by frame pointers */
	uint64_t chains;        /* samples given with a chain and without a stack copy */
	/* part of `chains`: the outermost function starts no thread
	 * (tally_profile_count_unstarted) */
	uint64_t chains_unstarted;
	/* part of `chains`: as long as the kernel makes chains, with callers left out */
	uint64_t chains_full;
	uint32_t chain_limit;   /* the length of these chains */
	uint64_t first_time, last_time; /* of the samples given, ns */
};

/* The stack of the sample given last, and what is known of stacks (recording_chain.c). */
struct tally_recording_chain {
	struct tally_chain_frame *items; /* see tally_recording_chain() */
	size_t count, capacity;
	/* the chain that the recording made for the sample */
	struct { uint64_t *items; size_t count, capacity; } made;
	bool is_full; /* the sample counts in counts.chains_full */
	/* some chains are longer than the default limit, so the recorded kernel had another
	 * limit */
	bool has_longer;
	/* number of samples, given or left out, that have a stack copy or the register with their
	 * leaf's caller */
	uint64_t stacks;
	/* thread → top of its stack, known from stacks that were unwound to the end */
	struct tally_map stack_tops;
	/* what tally_recording_has_skid() said of the attribute of the last event */
	struct tally_recorded_skid {
		uint64_t config, flags;
		uint32_t type;
		bool is_known, has_skid;
	} skid;
};

/* By event: the weights that views have summed; see tally_recording_weigh(). */
struct tally_recording_sums {
	struct tally_weight_sum *items;
	size_t count, capacity;
	/* set by callers whose readers have signed numbers: sums end at 2^63 - 1, not 2^64 - 1 */
	bool are_signed;
};

/* Set by callers before the first record is read. */
struct tally_recording_options {
	bool leaves_only; /* stacks are not needed: they are not read */
	/* samples are wanted as they were written: see tally_recording_next() */
	bool keep_groups;
	/* for trees: a cut stack gets TALLY_PLACE_CUT as its outermost frame */
	bool marks_cut;
};

struct tally_recording {
	struct tally_perfdata *data;
	char *path; /* as opened; NULL: opened from memory */
	struct tally_tasks tasks;
	struct tally_names names;
	struct tally_recording_options options;
	struct tally_recording_counts counts;
	struct tally_recorded_machine machine;
	struct tally_record_flow flow;
	struct tally_recording_filter filter;
	struct tally_recording_carried carried;
	struct tally_recording_chain chain;
	struct tally_off_cpu off_cpu;
	struct tally_recording_sums sums;
};

/* Opens a recording; `path` "-" is stdin.  Returns 0, or -errno with a message. */
int tally_recording_open(const char *path, struct tally_recording **out, struct tally_error *err);
/* The same for bytes in memory, which must outlive the recording. */
int tally_recording_open_memory(const void *bytes, size_t size, struct tally_recording **out,
				struct tally_error *err);
void tally_recording_close(struct tally_recording *recording);

/* Leaves out samples that don't pass the filter, and frames beyond its `frames_max`.  Its objects
 * and symbols are ignored here.  The texts must outlive the recording.  Returns 0, -EINVAL, -ENOENT
 * (a file has no such event; for a pipe, next() reports this at the end), -ENODATA (the recording
 * has no times to take shares of) or -ENOMEM. */
int tally_recording_filter(struct tally_recording *recording,
			   const struct tally_profile_filter *filter, struct tally_error *err);

/* Reads the next record.  Returns 1, 0 at the end, or -errno with a message.  `record` is decoded
 * for the kernel's types; user types (64 and up) only have their header.  Maps and comms are
 * applied first.  Both records are valid until the next call.
 *
 * Some samples are changed unless `keep_groups` is set:
 *
 * - A sample with counts of a group (PERF_SAMPLE_READ: "{a,b}:S") is given once for each event that
 *   counted since its last sample.  The count is the period.
 * - A sample with branch records of calls, or with the register that holds the leaf's caller, gets
 *   a chain made from them (recording_chain.c).
 * - A sample whose user stack comes in a later record is given after that record
 *   (deferred_chains.c).
 * - A sample of an off-CPU event has as its period the time until its task came back.  It is left
 *   out if that is not known (recording_internal.h).
 * - Chains are cut down to `frames_max`.  Stack copies are cut down in chain() and addresses(), and
 *   counted separately.
 */
int tally_recording_next(struct tally_recording *recording, struct tally_raw_record *raw,
			 struct tally_record *record, struct tally_error *err);

/* For callers that keep samples for a while: `call` (NULL: none) is called before maps or names of
 * tasks change.  It returns 0 or -ENOMEM. */
void tally_recording_on_change(struct tally_recording *recording, int (*call)(void *context),
			       void *context);

/* For callers that keep chains: finds the block of the file (perfdata.h) that holds the chain of the
 * sample that next() just gave.  Returns false if there is none: the chain is valid only until the
 * next record.  `block` may be NULL with true: the chain is valid until the recording is closed. */
bool tally_recording_block(const struct tally_recording *recording, const uint64_t *chain,
			   struct tally_block **block);
/* Drops a block that the caller held. */
void tally_recording_drop(struct tally_recording *recording, struct tally_block *block);

/* For callers that keep no indices of threads: forgets those that have ended, not only
 * processes. */
void tally_recording_forget_threads(struct tally_recording *recording);

/* True if the event's samples point to the instruction behind the one that caused them: clocks, and
 * hardware events that aren't precise. */
bool tally_recording_has_skid(const struct tally_recording *recording,
			      const struct tally_attr *attr);

/* True if the sample's leaf is such an address; the place of the leaf is then late (naming.h).
 * False for all samples if the names' sources say raw_addresses. */
bool tally_recording_is_late(struct tally_recording *recording, const struct tally_raw_record *raw,
			     const struct tally_record *record);

/* Makes the stack of the sample that next() just gave: frames in recording->chain, leaf first.
 * Returns 0 or -ENOMEM. */
int tally_recording_chain(struct tally_recording *recording, const struct tally_raw_record *raw,
			  const struct tally_record *record);

/* The same without places: the frames' `place` is not set, and no frame marks a cut stack.  Returns
 * 1 if the stack is cut, 0 if not, or -ENOMEM. */
int tally_recording_addresses(struct tally_recording *recording, const struct tally_raw_record *raw,
			      const struct tally_record *record);

/* Makes the sample's chain from its branch records, if they are of calls (attr.branch_sample_type
 * CALL_STACK).  The recording owns the chain, which is valid until the next sample.  Returns 0 or
 * -ENOMEM. */
int tally_recording_branch_chain(struct tally_recording *recording, const struct tally_attr *attr,
				 struct tally_sample *sample);

/* Tells whether the kernel left callers out of a sample's chain because it reached the maximum
 * length.  The chain must be as the kernel made it, and at least that long (tally_chain_limit()).
 * Returns 1, 0 or -ENOMEM. */
int tally_recording_ends_at_limit(struct tally_recording *recording, const struct tally_attr *attr,
				  const struct tally_record *record);

/* Cuts a sample's chain down to the recording's frames_max, which must be set. */
void tally_recording_shorten(struct tally_recording *recording, struct tally_record *record);

/* Adds the leaf's caller to a sample's chain, if a register holds it
 * (tally_user_stack_has_inner()).  The recording owns the chain, which is valid until the next
 * sample.  Returns 0 or -ENOMEM. */
int tally_recording_complete_chain(struct tally_recording *recording, const struct tally_attr *attr,
				   struct tally_sample *sample);

/* Notes that a filter left out a sample or record of a command (TALLY_STRING_NONE: not known). */
void tally_recording_leave_out(struct tally_recording *recording, uint32_t comm);

/* Sets the error that says why there is nothing to show, and what to do.  Returns -ENOENT.
 * `left_out`: samples that a view's own filters left out, in addition to counts.filtered. */
int tally_recording_is_empty(const struct tally_recording *recording, uint64_t left_out,
			     struct tally_error *err);

/* Appends a hardware trace's size and kind ("2.0 MiB of Intel PT trace (AUX data)"). */
void tally_recording_put_trace(const struct tally_recording_counts *counts,
			       struct tally_buffer *out);

/* Appends how the trace can be decoded. */
void tally_recording_put_decoder(const struct tally_recording_counts *counts,
				 struct tally_buffer *out);

/* Appends the recorded command ("make -j8") as one line, from the recorder's command line: the part
 * after "--".  Appends nothing if there is none. */
void tally_recording_command(const struct tally_recording *recording, struct tally_buffer *out);

/* Adds the weight of a sample to the sum of its event (an index into the events), and sets it to what
 * of it fits (base/weight_sum.h).  Views that sum weights call this for each sample that they show,
 * once, before they use the weight.  Returns 0 or -ENOMEM. */
int tally_recording_weigh(struct tally_recording *recording, uint32_t event, uint64_t *weight);

/* True if a sum of the event ended at the limit: its sums and shares are not exact.  _weights_cut
 * returns the number of samples that count for less or nothing. */
bool tally_recording_is_saturated(const struct tally_recording *recording, uint32_t event);
uint64_t tally_recording_weights_cut(const struct tally_recording *recording, uint32_t event);

/* From now on, unwound stacks are noted for tally_make_name_section(), and names stay mangled.
 * Returns 0 or -ENOMEM. */
int tally_recording_prepare_packing(struct tally_recording *recording);

/* Returns the stacks that were noted; NULL: none were to be. */
const struct tally_packed_stacks *tally_recording_noted_stacks(
	const struct tally_recording *recording);

/* True if the event's periods are ns: of a clock, or of measured waits. */
bool tally_recording_weighs_time(const struct tally_recording *recording,
				 const struct tally_recorded_event *event);

/* True for the name of a function without a caller, where programs and threads begin: in glibc,
 * musl, Go and the kernel. */
bool tally_is_start(const char *name);

/* True if samples of the event have stacks. */
bool tally_recording_has_stacks(const struct tally_attr *attr);

/* Texts of tracepoints.  A recording's formats are compiled at the first sample of each event.  Not
 * thread-safe. */

struct tally_trace_format {
	struct tally_tracepoint *tracepoint;
	struct tally_print *print; /* NULL: its format was not recorded */
};

/* The name of a kernel address, for %pS. */
struct tally_trace_name {
	uint64_t address, start;
	uint64_t generation; /* of the kernel's mappings */
	const char *text; /* NULL: not known */
};

enum { TALLY_TRACE_NAMES_BITS = 9 };

struct tally_event_text {
	struct tally_recording *recording;
	struct { struct tally_trace_format *items; size_t count, capacity; } formats;
	/* the format of each tracepoint's number, and of each event, plus 1: many events may be of
	 * one tracepoint */
	struct tally_map by_number;
	struct { uint32_t *items; size_t count, capacity; } by_event;
	struct tally_trace_name names[1 << TALLY_TRACE_NAMES_BITS]; /* by address; 0 is none */
	struct tally_printk printk; /* from the tracing data at printk_source */
	const uint8_t *printk_source;
	bool failed; /* memory was out, so a string may be missing */
};

/* To begin, zero the memory and set `recording`. */
void tally_event_text_release(struct tally_event_text *trace);

/* Returns the tracepoint of event number `index`; NULL: it is none, or its format was not recorded. */
const struct tally_tracepoint *tally_event_text_tracepoint(
	struct tally_event_text *trace, const struct tally_recorded_event *event, size_t index);

/* Appends the text of a sample of event number `index`.  Failures show in `out` or in `failed`. */
void tally_event_text_put(struct tally_event_text *trace, const struct tally_recorded_event *event,
			  size_t index, const struct tally_sample *sample,
			  struct tally_buffer *out);

#endif
