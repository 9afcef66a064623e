/* Distinct stacks with their weights: what `fold` prints, what a flame graph draws, what folded text and
 * `perf script` text are read into.
 *
 * Frames and threads are interned: ids index the arrays.  A stack is stored once per (thread, frames), its weight
 * summed.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_STACKS_H
#define TALLY_PROFILE_STACKS_H

#include "base/error.h"
#include "base/map.h"
#include "base/strings.h"

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
	uint32_t object; /* "libc.so.6", "[kernel.kallsyms]"; TALLY_STRING_NONE when not known */
	enum tally_frame_kind kind;
};

struct tally_thread_label {
	uint32_t comm; /* string id */
	uint32_t pid, tid; /* 0 when not known (folded text) */
};

struct tally_stack {
	uint32_t thread;
	uint32_t frame_count;
	size_t first_frame; /* in frame_ids: root first */
	uint64_t weight;    /* samples, or the sum of periods */
	uint64_t samples;   /* 0 when not known */
};

struct tally_stacks {
	struct tally_strings strings;
	struct { struct tally_frame *items; size_t count, capacity; } frames;
	struct { struct tally_thread_label *items; size_t count, capacity; } threads;
	struct { struct tally_stack *items; size_t count, capacity; } stacks;
	struct { uint32_t *items; size_t count, capacity; } frame_ids;
	struct tally_map frame_index, thread_index, stack_index;
	uint64_t total_weight, total_samples;
	char event[128]; /* "cpu-clock", "" when not known */
	char unit[32];   /* of weight: "samples", "ns", "events" */
	char title[256];
};

/* Ids, or UINT32_MAX when memory is out. */
uint32_t tally_stacks_frame(struct tally_stacks *stacks, const char *name, const char *object,
			    enum tally_frame_kind kind);
uint32_t tally_stacks_thread(struct tally_stacks *stacks, const char *comm, uint32_t pid, uint32_t tid);

/* Adds weight to a stack (root first).  0 or -ENOMEM. */
int tally_stacks_add(struct tally_stacks *stacks, uint32_t thread, const uint32_t *frames, size_t count,
		     uint64_t weight, uint64_t samples);

void tally_stacks_release(struct tally_stacks *stacks);

/* Folded text: "comm;root;…;leaf WEIGHT" a line; `_[k]` `_[j]` `_[i]` suffixes give the kind.
 * Told from `perf script` text by its first lines (tally_stacks_read_text does). */
int tally_stacks_read_folded(struct tally_stacks *stacks, const char *text, size_t length, struct tally_error *err);
int tally_stacks_read_perf_script(struct tally_stacks *stacks, const char *text, size_t length,
				  struct tally_error *err);
int tally_stacks_read_text(struct tally_stacks *stacks, const char *text, size_t length, struct tally_error *err);

#endif
