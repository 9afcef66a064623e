/* One function of a profile, instruction by instruction: the data behind `tally annotate`.
 *
 * A sample counts for the instruction that its address is in.  If that is the next instruction to
 * run when the interrupt came, it counts for the one before (naming/causes.h).  Not thread-safe.
 */
#ifndef TALLY_REPORT_ANNOTATION_H
#define TALLY_REPORT_ANNOTATION_H

#include "base/strings.h"
#include "profile/hot_functions.h"
#include "profile/profile.h"
#include "symbol/disassembler.h"

/* Which instruction a sample's address names. */
enum tally_sample_aim {
	/* the instruction that caused it: tracepoints, faults, precise hardware events */
	TALLY_AIM_EXACT,
	TALLY_AIM_NEXT,  /* the next instruction when a clock's interrupt came */
	TALLY_AIM_SKID,  /* an instruction some way behind the cause */
};

struct tally_annotated_line {
	uint32_t file; /* string id */
	uint32_t line; /* never 0 */
	struct tally_annotation_weight weight;
	/* of code that was inlined at this line of the annotated function; not in `weight` */
	struct tally_annotation_weight inlined;
	/* number of instructions that belong to the line; 0 without a disassembly */
	uint32_t instructions;
};

/* Where samples are: a line of the annotated function, and the line of the innermost inlined code;
 * the same if nothing is inlined there. */
struct tally_annotated_path {
	uint32_t own, inner; /* indices into `lines`; `own` is UINT32_MAX if it is not known */
	struct tally_annotation_weight weight;
};

/* Returns the path's line of the annotated function if it is known, else the inner one. */
static inline uint32_t tally_annotated_own(const struct tally_annotated_path *path)
{
	return path->own == UINT32_MAX ? path->inner : path->own;
}

struct tally_annotated_instruction {
	/* address as linked, as in the file's symbol table; for JIT code and kernels: as in
	 * memory */
	uint64_t address;
	uint32_t size;
	/* string id; for jumps and calls with a known target: without that operand */
	uint32_t text;
	enum tally_instruction_kind kind;
	/* target of a jump or call, or the address that another operand refers to; 0: none */
	uint64_t target;
	/* index of the instruction at `target`; UINT32_MAX: not in this function */
	uint32_t destination;
	/* string id of the name of `target`, such as "memcpy" or "main+0x12"; TALLY_STRING_NONE:
	 * not known */
	uint32_t target_name;
	uint32_t label;       /* number of a jump's target, from 1; 0: no jump leads here */
	uint32_t line;        /* index into `lines`; UINT32_MAX: not known */
	/* for inlined code: the annotated function's line that leads there; else as `line` */
	uint32_t own;
	/* string id of the function that was inlined here; TALLY_STRING_NONE: the function's own
	 * code */
	uint32_t inlined;
	struct tally_annotation_weight weight;
	/* instructions before this one that are left out, since they are not of the function */
	uint32_t left_out;
	bool is_other; /* it will be left out */
};

struct tally_annotation {
	const char *function, *object, *event; /* they belong to the profile */
	const char *inlined_into; /* the symbol whose code it is; NULL: the function's own */
	struct tally_annotation_weight weight, total; /* the function's, and the whole event's */
	bool is_saturated; /* sums ended at the limit (base/weight_sum.h): they are not exact */
	/* part of `weight` that is not in functions that were inlined into it */
	struct tally_annotation_weight self;
	double whole_self; /* percent of the event that all copies of the function have so */
	uint64_t start, end;    /* addresses as shown */
	enum tally_sample_aim aim;
	bool is_charged;        /* samples count for the instruction before their address */
	/* why there are no instructions, and what to do; "" when there are some */
	char missing[768], hint[512];
	/* sorted by address */
	struct { struct tally_annotated_instruction *items; size_t count, capacity; } instructions;
	/* sorted by file and line; the function's own file comes first */
	struct { struct tally_annotated_line *items; size_t count, capacity; } lines;
	/* the heaviest first */
	struct { struct tally_annotated_path *items; size_t count, capacity; } paths;
	/* string id of the function's own source file; TALLY_STRING_NONE: not known */
	uint32_t main_file;
	/* last change of the object's file, seconds since the epoch; 0: not known */
	int64_t object_time_s;
	bool is_rebuilt;        /* the object's file is another build than the recorded one */
	/* bytes of the code that the kernel changed while it was recorded; shown as they were at
	 * the end */
	size_t poked;
	const char *no_lines;   /* why there may be no lines; NULL: debug information is missing */
	uint32_t labels;
	struct tally_strings strings;
};

struct tally_annotation_options {
	bool is_intel;      /* Intel's syntax for x86 instead of AT&T's */
	bool no_code;       /* source lines only */
};

/* Annotates one function.  If the code or libLLVM is not available, `out` has only lines, and
 * `missing` says why.  Returns 0 or -ENOMEM with a message.  Release `out` in both cases. */
int tally_annotation_make(struct tally_profile *profile, uint32_t event,
			  const struct tally_hot_function *hot,
			  const struct tally_annotation_options *options,
			  struct tally_annotation *out, struct tally_error *err);
void tally_annotation_release(struct tally_annotation *annotation);

/* Shares in percent, 0…100: of `weight` in the function, and of the function in the event.  By
 * period where samples have periods, else by number of samples. */
double tally_annotation_percent(const struct tally_annotation *annotation,
				const struct tally_annotation_weight *weight);
double tally_annotation_total_percent(const struct tally_annotation *annotation);

/* The 95 % confidence error of these shares in percentage points (share_error.h). */
double tally_annotation_error(const struct tally_annotation *annotation,
			      const struct tally_annotation_weight *weight);
double tally_annotation_total_error(const struct tally_annotation *annotation);

#endif
