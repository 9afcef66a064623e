/* Distinct stacks with their weights: what `fold` prints, what a flame graph draws, what folded
 * text and `perf script` text are read into.
 *
 * Frames and threads are interned: ids index the arrays.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_STACKS_H
#define TALLY_PROFILE_STACKS_H

#include "base/error.h"
#include "base/map.h"
#include "base/strings.h"
#include "profile/row_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum tally_frame_kind {
	TALLY_FRAME_PROGRAM, /* the main executable, or not known */
	TALLY_FRAME_LIBRARY,
	TALLY_FRAME_KERNEL,
	TALLY_FRAME_JIT,
	TALLY_FRAME_INLINED,
	TALLY_FRAME_KINDS
};

struct tally_frame {
	uint32_t name;   /* string ids in `strings` */
	uint32_t full; /* the name with all parameters, which is the same in recordings that have no
			* other function of the name; TALLY_STRING_NONE: not known, of text, or not
			* asked for */
	uint32_t object; /* "libc.so.6", "[kernel.kallsyms]"; TALLY_STRING_NONE when not known */
	enum tally_frame_kind kind;
	/* of what has no symbol: which build of its object it is of, or TALLY_BUILD_UNKNOWN; of the
	 * others 0 */
	uint64_t build;
};

enum { TALLY_BUILD_UNKNOWN = 1 };

struct tally_thread_label {
	uint32_t comm; /* string id */
	uint32_t pid, tid; /* 0 when not known (folded text) */
};

struct tally_frame_list {
	uint32_t *items; /* ids */
	size_t count, capacity;
};

/* What one number in a stack stands for: frames that were inlined in one another, the innermost
 * first. */
struct tally_step {
	uint32_t first, count; /* in step_frames */
};

/* A stack is a row: its class is the thread, its period the weight (samples, or the sum of
 * periods), its samples are 0 when not known.  Its bytes are steps, leaf first, where `steps` has
 * any, else frames; tally_stacks_frames() gives them as frames. */
struct tally_stacks {
	struct tally_strings strings;
	struct { struct tally_frame *items; size_t count, capacity; } frames;
	struct { struct tally_thread_label *items; size_t count, capacity; } threads;
	struct tally_row_table rows;
	struct { struct tally_step *items; size_t count, capacity; } steps;
	struct tally_frame_list step_frames;
	struct tally_map frame_index, thread_index, tids;
	/* a thread that calls exec has a label before and one behind it, and is one */
	uint32_t thread_count;
	uint64_t total_weight, total_samples;
	char event[128]; /* "cpu-clock", "" when not known */
	char unit[32];   /* of weight: "samples", "ns", "events" */
	char title[256];
	bool with_full_names; /* set before: frames have them, so that they can be matched */
	bool by_line; /* set before: functions' names end in the source line that was sampled, or called: "work x.c:12" */

	/* What the text readers left out; malformed lines are no error as long as something was
	 * read. */
	uint64_t lines_read, lines_skipped;
	uint64_t first_line_skipped; /* counted from 1; 0: none */
	uint64_t other_samples;      /* of events other than `event` */
	char other_event[128];       /* the first of these */
};

/* What an object's name tells of its frames: "[kernel.kallsyms]", "/lib/modules/…", "vmlinux" are
 * the kernel's, "libc.so.6" and "[vdso]" a library's, "perf-PID.map", "[JIT] tid 7",
 * "jitted-7-0.so" and "//anon" JIT code; all else is the program. */
enum tally_frame_kind tally_frame_kind_of_object(const char *object);

/* Whether code of such an object is the kernel's, but runs in user mode: "[vdso]", 32-bit ARM's
 * "[vectors]". */
bool tally_object_is_user_page(const char *object);

/* The part of an object's path behind the last slash, a "(deleted)" kept. */
const char *tally_object_basename(const char *object);

/* Ids, or UINT32_MAX when memory is out. */
uint32_t tally_stacks_frame(struct tally_stacks *stacks, const char *name, const char *object,
			    enum tally_frame_kind kind);
uint32_t tally_stacks_thread(struct tally_stacks *stacks, const char *comm, uint32_t pid,
			     uint32_t tid);

/* Adds weight to a stack (root first), which is made when it is new.  0 or -ENOMEM. */
int tally_stacks_add(struct tally_stacks *stacks, uint32_t thread, const uint32_t *frames,
		     size_t count, uint64_t weight, uint64_t samples);

/* The frames of a row, root first.  0 or -ENOMEM. */
int tally_stacks_frames(const struct tally_stacks *stacks, size_t row,
			struct tally_frame_list *frames);

void tally_stacks_release(struct tally_stacks *stacks);

/* A text reader keeps the samples of one event: of stacks->event where the caller wrote a name
 * there ("cycles" stands for "cycles:u" too), else of the first that it meets.  A sample's period
 * is its weight where the text has one.
 *
 * Folded text: "comm;root;…;leaf WEIGHT" a line; `_[k]` `_[j]` `_[i]` suffixes give the kind.
 * Told from `perf script` text by its first lines (tally_stacks_read_text does). */
int tally_stacks_read_folded(struct tally_stacks *stacks, const char *text, size_t length,
			     struct tally_error *err);
/* `perf script` text in any of perf 6.1's layouts that name comm, pid or tid, and addresses with
 * symbols. */
int tally_stacks_read_perf_script(struct tally_stacks *stacks, const char *text, size_t length,
				  struct tally_error *err);
bool tally_text_is_perf_script(const char *text, size_t length);
int tally_stacks_read_text(struct tally_stacks *stacks, const char *text, size_t length,
			   struct tally_error *err);

/* text_names.c: frames whose names are symbols get readable ones.  Nothing may be added afterwards.
 * 0 or -ENOMEM. */
int tally_stacks_make_readable(struct tally_stacks *stacks);

#endif
