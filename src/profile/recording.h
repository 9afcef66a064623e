/* A recording being read: records in order of time, the tasks as they were, samples' stacks as
 * places.
 *
 * Everything that shows a recording goes through here: script record by record, report and flame
 * graphs through profile.h.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_RECORDING_H
#define TALLY_PROFILE_RECORDING_H

#include "abi/arch.h"
#include "base/buffer.h"
#include "perfdata/order.h"
#include "perfdata/perfdata.h"
#include "profile/deferred_chains.h"
#include "profile/kernel_identity.h"
#include "profile/names.h"
#include "profile/off_cpu.h"
#include "profile/packed_stacks.h"
#include "profile/sample_filter.h"
#include "profile/text_pokes.h"
#include "task/endings.h"
#include "task/tasks.h"
#include "task/user_stack.h"

/* One address of a sample's stack. */
struct tally_chain_frame {
	uint64_t address;         /* raw: the sampled ip, or a return address */
	struct tally_place place; /* of the call: `before` bytes before a return address */
	uint8_t before;           /* 1 for return addresses, 0 for sampled ones */
	bool kernel;
};

struct tally_recording_counts {
	uint64_t records, samples;
	uint64_t filtered;      /* of the samples: those that the filter left out */
	uint64_t lost;          /* records that didn't fit in a ring: LOST and LOST_SAMPLES */
	uint64_t lost_records;  /* how many LOST records told so */
	uint64_t throttled;
	uint64_t undecodable;   /* records whose fields don't fit; skipped */
	uint64_t stat_counts;   /* STAT records: of perf stat record, which takes no samples */
	struct { /* what a CPU traced (AUX areas), which tally does not decode */
		uint64_t bytes;
		uint32_t type;  /* of AUXTRACE_INFO: whose trace it is */
		bool is_told;   /* there is such a record */
	} trace;
	uint64_t unknown;       /* record types that nobody defined; skipped */
	uint64_t unknown_ids;   /* values of groups whose id no event has; left out */
	uint64_t stacks;        /* user stacks unwound here */
	uint64_t stacks_cut;    /* of these: ended for want of bytes */
	uint64_t stacks_lost;   /* of these: ended where nothing tells the caller */
	struct tally_cut_stacks {
		uint64_t too_large; /* of stacks_cut: no copy can be large enough */
		/* of stacks_cut: the kernel copied less than it was asked for, more isn't to be
		 * had */
		uint64_t ended;
		uint64_t bytes;     /* what would have sufficed for the others */
		bool is_at_least;   /* … as far as it is known */
	} cut;
	uint64_t stacks_32bit;  /* user stacks that nobody unwinds here: of 32-bit programs, */
	uint64_t stacks_foreign; /* of machines whose rules aren't known */
	uint64_t chains_cut;    /* samples given whose stack was cut when tally recorded it */
	uint64_t chains_ended;  /* of these: the kernel copied less than it was asked for */
	/* samples given whose stack ended, then, where nothing told the caller */
	uint64_t chains_lost;
	uint64_t chains_astray; /* the same of those that the kernel made by frame pointers */
	uint64_t chains;        /* samples given that have a chain, and no copy of the stack */
	uint64_t chains_unstarted; /* of these, set by tally_profile_count_unstarted() */
	/* of these: as long as the kernel makes any, and callers left out */
	uint64_t chains_full;
	uint32_t chain_limit;   /* … which is so long */
	uint64_t first_time, last_time; /* of the samples given, ns */
};

struct tally_recording {
	struct tally_perfdata *data;
	char *path; /* as it was opened; NULL: of memory */
	struct tally_order *order;
	struct tally_tasks tasks;
	/* of processes: their maps are given back some time after (recording.c) */
	struct tally_endings endings;
	struct tally_names names;
	enum tally_arch arch; /* of the recorded machine, as far as it is told */
	struct { struct tally_chain_frame *items; size_t count, capacity; } chain;
	/* of the sample given last */
	struct { uint64_t *items; size_t count, capacity; } made_chain;
	struct tally_recording_counts counts;
	struct { /* by its maps' records, where neither its build-id nor its release is told */
		bool is_another; /* than the running one */
		bool is_located; /* the address of a symbol of it was looked at */
		char release[TALLY_KERNEL_RELEASE_BYTES]; /* "": not known */
	} kernel;
	size_t build_ids_seen;
	struct tally_map stack_tops; /* thread → where its stack ends, told by whole ones */
	struct { /* user stacks, by samples that carry a copy, or tell of their leaf's caller */
		uint64_t samples; /* given or left out so far */
		/* tally's own section, not looked at yet; NULL: none, or read */
		const void *section;
		size_t section_size;
		/* what the recording says of them; NULL: nothing */
		struct tally_packed_stacks *packed;
		/* made by who wants to pack them: filled in; NULL: nobody */
		struct tally_packed_stacks *noted;
	} stacks;
	/* set by who draws trees: a cut stack gets TALLY_PLACE_CUT for its outermost frame */
	bool marks_cut;
	bool is_chain_full; /* of the sample given last: counts.chains_full */
	/* than the usual limit, where an attribute has none: the kernel's was another one */
	bool has_longer_chains;
	bool leaves_only; /* set by who wants no stacks: they are not looked at */
	struct tally_sample_filter filter; /* by tally_recording_filter() */
	uint32_t frames_max; /* by the same: so many of a stack's innermost frames; 0: all */
	/* set by who wants samples as they were written: see tally_recording_next */
	bool keep_groups;
	/* set by who keeps samples for a while: called before maps or names of tasks change */
	struct {
		int (*call)(void *context); /* NULL: nobody; 0 or -ENOMEM */
		void *context;
	} before_change;
	struct tally_deferred_chains deferred;
	struct tally_off_cpu off_cpu;
	struct tally_text_pokes text_pokes; /* up to the end of the filter's time */
	/* by command: how much of it the filters left out; for tally_recording_is_empty() */
	struct tally_map left_out;
	struct tally_map last_values; /* by event id: what its last sample read */
	struct {
		struct tally_raw_record raw;
		struct tally_record record;
		uint64_t next; /* value to give; none is left at record.sample.read.count */
	} group;
};

/* `path` "-" is stdin. */
int tally_recording_open(const char *path, struct tally_recording **out, struct tally_error *err);
/* The same over bytes in memory, which must outlive the recording. */
int tally_recording_open_memory(const void *bytes, size_t size, struct tally_recording **out,
				struct tally_error *err);
void tally_recording_close(struct tally_recording *recording);

/* From now on other samples than these, and frames beyond its `frames_max`, are left out; objects
 * and symbols are not looked at.  The texts must outlive the recording.  0; -EINVAL, -ENOENT (no
 * such event in a file: in a pipe next() tells so at the end), -ENODATA (no times to take shares
 * of) or -ENOMEM. */
int tally_recording_filter(struct tally_recording *recording,
			   const struct tally_profile_filter *filter, struct tally_error *err);

/* The next record: 1, 0 at the end, -errno.  `record` is decoded for the kernel's types; user types
 * (64 and up) have their header alone.  Maps and comms are applied before it is given.  Both are
 * valid until the next call.
 *
 * A sample that carries counts (PERF_SAMPLE_READ: "{a,b}:S") is given once for each event that
 * counted since its last sample, as that event's, with what it counted for a period; with
 * `keep_groups` once, as it was written.  One with branch records of calls, or with the register
 * that tells a leaf's caller, has a chain that is made with them (recording_made_chains.c), and one
 * whose user stack comes later is given then (deferred_chains.c), but for `keep_groups`.  Those of
 * an off-CPU event have the time until their task came back for a period, unless it never did, or
 * they are wanted as they were written (off_cpu.h).  Chains are cut down to `frames_max`; the
 * copied stacks behind them in chain() and addresses(), counted apart. */
int tally_recording_next(struct tally_recording *recording, struct tally_raw_record *raw,
			 struct tally_record *record, struct tally_error *err);

/* The stack of the sample that next() just gave: frames leaf first, in recording->chain.  0 or
 * -ENOMEM. */
int tally_recording_chain(struct tally_recording *recording, const struct tally_raw_record *raw,
			  const struct tally_record *record);

/* The same for who needs no places: the frames' `place` is not set, and nothing marks a cut stack,
 * but for the answer: 1. 0 or -ENOMEM. */
int tally_recording_addresses(struct tally_recording *recording, const struct tally_raw_record *raw,
			      const struct tally_record *record);

/* Gives a sample the stack that its branch records tell, where they are of calls
 * (attr.branch_sample_type CALL_STACK): its chain is then words of the recording's, valid until the
 * next sample.  0 or -ENOMEM. */
int tally_recording_branch_chain(struct tally_recording *recording, const struct tally_attr *attr,
				 struct tally_sample *sample);

/* Whether a sample has such a stack. */
bool tally_recording_has_branch_chain(const struct tally_attr *attr,
				      const struct tally_sample *sample);

/* Whether the kernel left callers out of a sample's chain, since it had as many frames as the
 * kernel puts into one.  The chain must be as the kernel made it, and as long as that
 * (tally_chain_limit()).  1, 0 or -ENOMEM. */
int tally_recording_ends_at_limit(struct tally_recording *recording, const struct tally_attr *attr,
				  const struct tally_record *record);

/* Cuts a sample's chain down to the recording's frames_max, which is set. */
void tally_recording_shorten(struct tally_recording *recording, struct tally_record *record);

/* Completes a sample's chain by its leaf's caller, where it tells (tally_user_stack_has_inner()):
 * as above. */
int tally_recording_complete_chain(struct tally_recording *recording, const struct tally_attr *attr,
				   struct tally_sample *sample);

/* What the recording says of the user stack of the sample given last; false: nothing. */
bool tally_recording_find_packed(struct tally_recording *recording,
				 struct tally_unwound_stack *stack, struct tally_packed_need *need);

/* Notes that something of a command's (TALLY_STRING_NONE: nobody's) was left out by a filter. */
void tally_recording_leave_out(struct tally_recording *recording, uint32_t comm);

/* Why there is nothing to show, and what would be: -ENOENT.  `left_out`: samples that a view's own
 * filters left out, besides those of counts.filtered. */
int tally_recording_is_empty(const struct tally_recording *recording, uint64_t left_out,
			     struct tally_error *err);

/* The command that was recorded ("make -j8") as one line, by the recorder's command line; its last
 * part behind "--" where there is one.  Nothing is appended where the recording doesn't tell. */
void tally_recording_command(const struct tally_recording *recording, struct tally_buffer *out);

/* From now on unwound stacks are noted in `stacks.noted`, for tally_pack_names(); names are as
 * files have them.  0 or -ENOMEM. */
int tally_recording_prepare_packing(struct tally_recording *recording);

/* True when the event's periods are ns: of a clock, or waits that were measured. */
bool tally_recording_tells_time(const struct tally_recording *recording,
				const struct tally_recorded_event *event);

/* True for a function that has no caller: where programs and threads begin, with glibc, musl, in
 * Go, and in the kernel. */
bool tally_is_start(const char *name);

/* True when the recording's samples carry stacks. */
bool tally_recording_has_stacks(const struct tally_attr *attr);

#endif
