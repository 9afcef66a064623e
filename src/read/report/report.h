/* Rows → entries and call trees; annotation; the sums of top. */
#ifndef TALLY_REPORT_H
#define TALLY_REPORT_H

#include "base/strings.h"
#include "profile/profile.h"
#include "symbol/symbol.h"

/* A profile, summed by keys: the rows of `tally report`, and the call tree below each.
 *
 * `self` counts samples in a function itself, `total` samples in it or in anything that it called.
 * Each sample counts once for each distinct key in its stack, even in a deep recursion.  Entries
 * are functions of the source: one that was inlined into others is an entry as well, and its
 * samples are not in the `self` of the functions around it.  The copies of a function, inlined or
 * not, are one entry.
 */

enum tally_tree_order {
	TALLY_TREE_NONE,
	TALLY_TREE_CALLER, /* from the caller down: the callees of the entry */
	TALLY_TREE_CALLEE  /* from the callee up: the callers of the entry */
};

struct tally_report_options {
	bool by[TALLY_SORT_KEYS];
	bool children; /* show totals, and rows for functions that were never the leaf */
	bool by_self;  /* sort by self; false: by total */
	enum tally_tree_order tree;
	/* rows with a lower total (without children: self) are left out and counted */
	double percent_min;
	double tree_percent_min; /* lighter branches are left out, except within rounding */
	/* for live sums: leave out idle samples; a profile has its own option */
	bool leaves_out_idle;
	size_t limit;            /* maximum number of rows; 0: all */
	uint32_t event;
};

/* A frame in an entry's call tree.  Siblings are sorted by weight, then by name. */
struct tally_branch_node {
	uint32_t function; /* index into the names' functions */
	uint64_t weight;   /* period of everything below, including itself */
	struct tally_branch_node *child, *sibling;
};

/* Which of an entry's sampled copies were inlined (TALLY_FRAME_INLINED). */
enum tally_inlining { TALLY_INLINED_NONE, TALLY_INLINED_SOME, TALLY_INLINED_ALL };

struct tally_report_entry {
	/* in the terms of profile.h; 0 for keys that the report is not sorted by */
	uint32_t key[TALLY_SORT_KEYS];
	/* index into the names' functions: one of the entry's; its symbol unless all were inlined */
	uint32_t function;
	enum tally_inlining inlining;
	uint64_t self, total;          /* periods */
	uint64_t self_samples, total_samples;
	uint64_t self_longest, total_longest; /* in a report of waits: the longest wait, ns */
	struct tally_branch_node *tree; /* first branch, or NULL */
};

struct tally_report {
	struct tally_arena arena;
	/* sorted, heaviest first */
	struct { struct tally_report_entry *items; size_t count, capacity; } entries;
	size_t hidden; /* entries left out by percent_min and limit */
	uint64_t period, samples;
	bool is_saturated; /* sums ended at the limit (base/weight_sum.h): they are not exact */
	struct tally_left_out idle; /* left out as idle; not part of the sums above */
	bool of_waits; /* periods are times that tasks waited; entries have the longest wait */
	double spread; /* of the samples' periods: see struct tally_share */
	bool trees_cut; /* the trees were too large: branches are missing */
	size_t comms, threads; /* number of distinct ones in this event */
};

/* Returns the sampling error of a part of the report with this period and number of samples, in
 * percentage points. */
static inline double tally_report_error(const struct tally_report *report, uint64_t period,
					uint64_t samples)
{
	const struct tally_share share = { .part = (double)period,
					   .whole = (double)report->period,
					   .part_samples = samples,
					   .samples = report->samples,
					   .spread = report->spread };
	return tally_share_error(&share);
}

/* Makes the report.  Returns 0 or -ENOMEM. */
int tally_report_build(const struct tally_profile *profile,
		       const struct tally_report_options *options, struct tally_report *report);
void tally_report_release(struct tally_report *report);

/* One function of a profile, instruction by instruction: the data behind `tally annotate`.
 *
 * A sample counts for the instruction that its address is in.  If that is the next instruction to
 * run when the interrupt came, it counts for the one before (naming/naming.h).  Not thread-safe.
 */

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

/* The 95 % confidence error of these shares in percentage points (profile.h). */
double tally_annotation_error(const struct tally_annotation *annotation,
			      const struct tally_annotation_weight *weight);
double tally_annotation_total_error(const struct tally_annotation *annotation);

/* Live samples, summed by thread and function or by stack, and slowly forgotten: the data behind
 * `tally top`.
 *
 * A sample weighs its period when it comes, and less with each decay.  Threads and functions whose
 * samples have faded are dropped, so memory depends on what runs now, not on all that ever ran.
 * Not thread-safe.
 */

struct tally_live_sum {
	uint32_t event, pid, tid;
	uint32_t comm;     /* string id in the tasks' strings: the thread's last name */
	/* the leaf, as indices into the names' functions: by the source, and by its symbol */
	uint32_t function, symbol;
	/* range in `frames`: the functions of the stack, inlined ones included, leaf first; count
	 * 0: without stacks */
	uint32_t first, count;
	double weight, samples;
};

/* The functions of a place that was named: functions.items[first] … [first + count), innermost
 * first. */
struct tally_live_place {
	uint32_t first, count;
};

struct tally_live_sums {
	struct tally_names *names;
	/* with stacks: leave out the frames of runtimes that functions of a language called */
	bool joins_runtimes;
	bool with_stacks; /* keep sums by call chain; set before the first sample */
	/* number of innermost frames to keep of a chain, not counting inlined ones; 0: all */
	uint32_t frames_max;
	struct { struct tally_live_sum *items; size_t count, capacity; } sums;
	struct { uint32_t *items; size_t count, capacity; } frames;
	/* hash of event, tid and functions → index into `sums`; equal hashes take the next free
	 * key */
	struct tally_map index;
	struct tally_runtimes runtimes;
	struct { bool *items; size_t count, capacity; } left_out; /* used by _add */
	/* the places that were named, and their functions; emptied from time to time */
	struct tally_place_table places;
	struct { struct tally_live_place *items; size_t count, capacity; } named;
	struct { uint32_t *items; size_t count, capacity; } functions;
};

/* Adds a sample of event number `event` (the caller numbers events).  `has_skid`: the event's
 * samples point to the instruction behind the one that caused them.  The tasks of `names` must be as
 * they were when the sample was taken.  Returns 0 or -ENOMEM. */
int tally_live_sums_add(struct tally_live_sums *sums, uint32_t event, bool has_skid,
			const struct tally_record *sample);

/* Multiplies all weights by `factor`; 0 starts afresh.  Returns 0 or -ENOMEM. */
int tally_live_sums_decay(struct tally_live_sums *sums, double factor);

/* Makes the entries of options->event like tally_report_build(), with these
 * differences.  `percent_min` applies to the weight that entries are sorted by, since a screen has
 * no room for all callers.  `children` and `tree` need stacks, and a tree always has all that
 * passes through its entry.  Returns 0 or -ENOMEM. */
int tally_live_sums_report(const struct tally_live_sums *sums,
			   const struct tally_report_options *options, struct tally_report *report);

void tally_live_sums_release(struct tally_live_sums *sums);

/* Hints on how to get names that runtimes don't give by default: the names of JIT code and of
 * interpreted functions. */

enum tally_hint_form {
	TALLY_HINT_WITH_SHARES,
	TALLY_HINT_WITHOUT_SHARES, /* for a profile that lacks some of its samples */
	TALLY_HINT_BRIEF,          /* fits on a line of a terminal */
};

/* Appends a line (with its newline) if at least 5 % of the samples lack names that their runtime
 * can give.  The line names the program and says how to start it, or which command makes the
 * running program write its names; then it begins with "hint: ", except for the brief form.  If
 * there is no way, it says so; the brief form says nothing.  Returns 0 or -ENOMEM. */
int tally_profile_jit_hint(const struct tally_profile *profile, enum tally_hint_form form,
			   struct tally_buffer *out);

/* The same for live samples, in the brief form. */
int tally_live_jit_hint(const struct tally_live_sums *live, struct tally_buffer *out);

/* A profile summed as perf's report sums it: for perf mode.
 *
 * It differs from the report above where perf does.  Entries are symbols of the files' tables,
 * without inlined functions.  Code without a symbol is an entry for each address.  A tree has the
 * chains of all samples that the entry is part of: whole chains of those in the function itself, and
 * for the others the rest of the chain from the entry on.  The samples and periods are those of the
 * profile's rows.
 */

enum tally_perf_key {
	TALLY_PERF_PID, /* the thread: perf calls it so */
	TALLY_PERF_COMM,
	TALLY_PERF_OBJECT,
	TALLY_PERF_SYMBOL,
	TALLY_PERF_IPC, /* a column without values: perf has it beside symbols */
	TALLY_PERF_LINE,
	TALLY_PERF_FILE,
	TALLY_PERF_CPU,
	TALLY_PERF_TRACE,
	TALLY_PERF_KEYS
};

/* What entries are sorted by: these sums, largest first, or a key, smallest first. */
enum tally_perf_order {
	TALLY_PERF_BY_OVERHEAD = TALLY_PERF_KEYS,
	TALLY_PERF_BY_CHILDREN,
	TALLY_PERF_BY_SAMPLES,
	TALLY_PERF_BY_PERIOD,
	TALLY_PERF_ORDERS
};

enum { TALLY_PERF_ORDERS_MAX = 16 };

struct tally_perf_sums_options {
	uint32_t event;
	uint32_t members; /* number of events from this one on that are summed beside each other */
	bool by[TALLY_PERF_KEYS];
	uint8_t order[TALLY_PERF_ORDERS_MAX]; /* enum tally_perf_key or tally_perf_order */
	unsigned order_count;
	bool children;   /* callers are entries, too */
	bool chains;     /* entries have trees */
	bool from_caller; /* trees begin with the outermost caller */
	uint32_t frames_max; /* frames of a chain, in the tree's order; 0: all */
	/* Comma-separated names, which samples must match to be in an entry; NULL: all do.  All
	 * samples count for the sums of the event. */
	const char *comms, *objects, *symbols, *pids, *tids;
	const char *symbol_part; /* entries' symbols contain this; NULL: any */
	bool no_unknown; /* leave out code without a symbol */
};

/* A symbol, or an address without one. */
struct tally_perf_symbol {
	uint32_t function; /* index into the names' functions; its object also without a name */
	uint32_t object;   /* string id of the names: the object's name without its folder */
	bool is_named;
	uint64_t address;  /* without a name: in the file, or in memory */
	/* the first symbol with this start and name of an object of this name: perf makes one entry
	 * of them */
	uint32_t entry;
};

/* A node of an entry's tree.  Its frames are one line each. */
struct tally_perf_node {
	uint64_t hit, children_hit; /* periods: of chains that end here, and of those that go on */
	uint64_t count, children_count; /* the same as numbers of samples */
	uint32_t *frames;  /* indices into `symbols`, in the tree's order */
	size_t frame_count;
	struct tally_perf_node *child, *sibling, *parent; /* in the order in which perf meets them */
};

struct tally_perf_weight {
	uint64_t self, total; /* periods */
	uint64_t self_samples, total_samples;
};

struct tally_perf_entry {
	/* by key: thread's number, string id of the tasks, string id of the names, index into
	 * `symbols`, 0, string ids of the names, CPU, string id of the names; 0: no key */
	uint32_t key[TALLY_PERF_KEYS];
	bool is_kernel;  /* perf shows the symbol with [k] */
	uint32_t thread; /* of the first sample */
	struct tally_perf_weight *weights; /* of each member */
	size_t depth;    /* frames of the longest chain */
	/* of the first member; without frames: its children are the first nodes; or NULL */
	struct tally_perf_node *tree;
};

struct tally_perf_sums {
	struct tally_arena arena;
	struct { struct tally_perf_entry *items; size_t count, capacity; } entries;
	struct { struct tally_perf_symbol *items; size_t count, capacity; } symbols;
	uint32_t members;
	/* of each member: all its samples, and those that match the lists */
	struct tally_perf_event_sum {
		uint64_t samples, period, shown_samples, shown_period;
	} *events;
};

/* Makes the sums.  Returns 0 or -ENOMEM.  Release `sums` in both cases. */
int tally_perf_sums_build(const struct tally_profile *profile,
			  const struct tally_perf_sums_options *options,
			  struct tally_perf_sums *sums);
void tally_perf_sums_release(struct tally_perf_sums *sums);

/* Returns the symbol's name, with its version; NULL: it has none. */
const char *tally_perf_symbol_name(const struct tally_profile *profile,
				   const struct tally_perf_symbol *symbol);

#endif
