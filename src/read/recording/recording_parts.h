/* Parts of a recording (recording.h) whose members only this room uses: the recorded machine, records
 * between the file and tally_recording_next(), filters, and what the recording carries. */
#ifndef TALLY_RECORDING_PARTS_H
#define TALLY_RECORDING_PARTS_H

#include "abi/arch.h"
#include "base/map.h"
#include "naming/kernel_identity.h"
#include "naming/text_pokes.h"
#include "perfdata/order.h"
#include "recording/deferred_chains.h"
#include "recording/sample_filter.h"
#include "task/endings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_packed_jits;
struct tally_packed_stacks;
struct tally_recording;

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

#endif
