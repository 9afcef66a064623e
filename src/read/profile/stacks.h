/* Distinct stacks with their weights: the data that `fold` prints, that a flame graph draws, and
 * that folded text and `perf script` text are read into.
 *
 * Frames and threads are interned; their ids are indices into the arrays.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_STACKS_H
#define TALLY_PROFILE_STACKS_H

#include "naming/frame_kind.h"
#include "base/error.h"
#include "base/map.h"
#include "base/strings.h"
#include "profile/row_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_frame {
	uint32_t name;   /* string id in `strings` */
	/* string id of the name with all parameters, which is the same in every recording of the
	 * function; TALLY_STRING_NONE: not known, as in text, or not needed */
	uint32_t full;
	uint32_t object; /* "libc.so.6", "[kernel.kallsyms]"; TALLY_STRING_NONE: not known */
	enum tally_frame_kind kind;
	/* for functions without a symbol: the build of their object, or TALLY_BUILD_UNKNOWN;
	 * otherwise 0 */
	uint64_t build;
};

enum { TALLY_BUILD_UNKNOWN = 1 };

/* The unit of weights that folded text gives as fractions, such as "0.25". */
#define TALLY_MILLIONTHS "millionths"

struct tally_thread_label {
	uint32_t comm; /* string id */
	uint32_t pid, tid; /* 0: not known (folded text) */
};

struct tally_frame_list {
	uint32_t *items; /* ids */
	size_t count, capacity;
};

/* The frames that one number in a stack stands for: functions inlined into one another, innermost
 * first. */
struct tally_step {
	uint32_t first, count; /* range in step_frames */
};

/* Each stack is a row: its class is the thread, its period the weight (samples, or the sum of
 * periods); `samples` is 0 if not known.  Its bytes are numbers of steps, leaf first, or numbers of
 * frames if `steps` is empty. tally_stacks_frames() returns the frames. */
struct tally_stacks {
	struct tally_strings strings;
	struct { struct tally_frame *items; size_t count, capacity; } frames;
	struct { struct tally_thread_label *items; size_t count, capacity; } threads;
	struct tally_row_table rows;
	struct { struct tally_step *items; size_t count, capacity; } steps;
	struct tally_frame_list step_frames;
	struct tally_map frame_index, thread_index, tids;
	/* a thread that calls exec has two labels, before and after, but counts once */
	uint32_t thread_count;
	uint64_t total_weight, total_samples;
	/* weights that were cut because the total ended at its limit (base/weight_sum.h); 0: the
	 * sums are exact */
	uint64_t weights_cut;
	char event[1024]; /* "cpu-clock"; "": not known */
	/* unit of weights: "samples", "ns", "events"; or TALLY_MILLIONTHS of what text counts */
	char unit[32];
	char title[256];
	/* set beforehand: give frames their full names, so that they can be matched */
	bool with_full_names;
	/* set beforehand: keep apart the tiers in which a JIT compiled a function */
	bool keeps_tiers;
	/* set beforehand: names end in the source line that was sampled, or that made the call:
	 * "work x.c:12" */
	bool by_line;

	/* Lines and samples that the text readers left out.  Malformed lines are no error as long
	 * as something was read. */
	uint64_t lines_read, lines_skipped;
	uint64_t first_line_skipped; /* counted from 1; 0: none */
	uint64_t other_samples;      /* samples of events other than `event` */
	char other_event[1024];      /* the first of these events */
};

/* Return ids, added when new; UINT32_MAX when memory is out. */
uint32_t tally_stacks_frame(struct tally_stacks *stacks, const char *name, const char *object,
			    enum tally_frame_kind kind);
uint32_t tally_stacks_thread(struct tally_stacks *stacks, const char *comm, uint32_t pid,
			     uint32_t tid);

/* Adds weight to a stack (root first), which is added when new.  Returns 0 or -ENOMEM. */
int tally_stacks_add(struct tally_stacks *stacks, uint32_t thread, const uint32_t *frames,
		     size_t count, uint64_t weight, uint64_t samples);

/* Gets the frames of a row, root first.  Returns 0 or -ENOMEM. */
int tally_stacks_frames(const struct tally_stacks *stacks, size_t row,
			struct tally_frame_list *frames);

void tally_stacks_release(struct tally_stacks *stacks);

/* The text readers keep the samples of one event: the one that the caller named in stacks->event
 * ("cycles" also means "cycles:u"), or else the first one in the text.  If the text has periods,
 * they are the weights.
 *
 * Folded text has a line "comm;root;…;leaf WEIGHT" for each stack; the suffixes `_[k]` `_[j]`
 * `_[i]` give the kind of a frame. tally_stacks_read_text() tells it from `perf script` text by the
 * first lines.  All return 0, or -errno with a message.
 */
int tally_stacks_read_folded(struct tally_stacks *stacks, const char *text, size_t length,
			     struct tally_error *err);
/* Reads `perf script` text in any layout of perf 6.1 that has comm, pid or tid, and addresses with
 * symbols. */
int tally_stacks_read_perf_script(struct tally_stacks *stacks, const char *text, size_t length,
				  struct tally_error *err);
bool tally_text_is_perf_script(const char *text, size_t length);
int tally_stacks_read_text(struct tally_stacks *stacks, const char *text, size_t length,
			   struct tally_error *err);

/* In text_names.c: demangles frames whose names are symbols.  Nothing may be added afterwards.
 * Returns 0 or -ENOMEM. */
int tally_stacks_make_readable(struct tally_stacks *stacks);

#endif
