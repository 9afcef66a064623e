/* One function of a profile, instruction by instruction: what annotate shows.
 *
 * A sample counts for the instruction that its address is in; of clocks and other software events
 * that is the one that was next when the interrupt came.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_ANNOTATION_H
#define TALLY_PROFILE_ANNOTATION_H

#include "base/strings.h"
#include "profile/hot_functions.h"
#include "profile/profile.h"
#include "symbol/disassembler.h"

/* Which instruction a sample names. */
enum tally_sample_aim {
	TALLY_AIM_EXACT, /* the one that did it: tracepoints, faults, precise hardware events */
	TALLY_AIM_NEXT,  /* the one that was next when a clock's interrupt came */
	TALLY_AIM_SKID,  /* one some way behind it */
};

struct tally_annotated_line {
	uint32_t file; /* string id */
	uint32_t line; /* never 0 */
	struct tally_annotation_weight weight;
	uint32_t instructions; /* how many are its own; 0 without a disassembly */
};

struct tally_annotated_instruction {
	uint64_t address; /* where the code lies in its file; of JITs and kernels: where it lay */
	uint32_t size;
	/* string id; of jumps and calls that tell where they go: without that operand */
	uint32_t text;
	enum tally_instruction_kind kind;
	uint64_t target;      /* of jumps and calls */
	/* the instruction that `target` is; UINT32_MAX: none of this function */
	uint32_t destination;
	uint32_t
		target_name; /* string id, "memcpy" or "main+0x12"; NONE: not known.  Also of what `text` refers to. */
	uint32_t label;       /* of what is jumped to: 1 …; 0: nobody does */
	uint32_t line;        /* of lines; UINT32_MAX: not known */
	/* string id of the function that was inlined there; NONE: it is the function's own */
	uint32_t inlined;
	struct tally_annotation_weight weight;
};

struct tally_annotation {
	const char *function, *object, *event; /* the latter two are the profile's */
	struct tally_annotation_weight weight, total; /* the function's, and all of the event */
	uint64_t start, end;    /* as shown */
	enum tally_sample_aim aim;
	char missing[768], hint[512]; /* why there are no instructions; "" when there are */
	/* by address */
	struct { struct tally_annotated_instruction *items; size_t count, capacity; } instructions;
	/* by file, line */
	struct { struct tally_annotated_line *items; size_t count, capacity; } lines;
	uint32_t main_file;     /* that of the function itself; NONE: not known */
	int64_t object_time_s;  /* when its file was changed last; 0: not known */
	bool is_rebuilt;        /* that file is another build than the recorded one */
	/* bytes of its code that the kernel wrote over meanwhile: as they were in the end */
	size_t poked;
	const char *no_lines;   /* why there may be no lines; NULL: for want of debug information */
	uint32_t labels;
	struct tally_strings strings;
};

struct tally_annotation_options {
	bool is_intel;      /* x86's other syntax */
	bool no_code;       /* lines alone */
};

/* Where the code or libLLVM isn't to be had there are lines alone, and `missing` says why. */
int tally_annotation_make(struct tally_profile *profile, uint32_t event,
			  const struct tally_hot_function *hot,
			  const struct tally_annotation_options *options,
			  struct tally_annotation *out, struct tally_error *err);
void tally_annotation_release(struct tally_annotation *annotation);

/* Of the function, 0…100: by period where samples have one. */
double tally_annotation_percent(const struct tally_annotation *annotation,
				const struct tally_annotation_weight *weight);
double tally_annotation_total_percent(const struct tally_annotation *annotation);

/* How far these may be off, with 95 % confidence, in percentage points (share_error.h). */
double tally_annotation_error(const struct tally_annotation *annotation,
			      const struct tally_annotation_weight *weight);
double tally_annotation_total_error(const struct tally_annotation *annotation);

#endif
