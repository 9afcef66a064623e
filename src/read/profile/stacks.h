/* Rows of stacks with their weights: folded text, sorting, call trees. */
#ifndef TALLY_PROFILE_STACKS_H
#define TALLY_PROFILE_STACKS_H

#include "base/error.h"
#include "base/map.h"
#include "base/strings.h"
#include "naming/naming.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_place_table;

/* Distinct (class, stack) with their samples and periods.
 *
 * A stack is a string of bytes: the numbers of its places, leaf first, in LEB128, with small
 * numbers in one byte.  Places are numbered in the order in which they are met, so most frames take
 * one or two bytes.  Not thread-safe.
 */

enum { TALLY_PLACE_BYTES_MAX = 5, TALLY_CLASSES_MAX = 1 << 24 };

/* 24 bytes, since there may be millions. */
struct tally_row {
	uint64_t samples, period;
	/* start of its bytes; they end where the next row's begin: see tally_row_stack() */
	uint64_t stack : 40;
	uint64_t class : 24;
};

struct tally_row_slot {
	uint32_t hash;
	uint32_t row; /* number of the row, + 1; 0: the slot is free */
};

struct tally_row_table {
	struct { struct tally_row *items; size_t count, capacity; } rows;
	struct { uint8_t *items; size_t count, capacity; } stacks;
	struct tally_row_slot *slots;
	size_t capacity; /* of slots: a power of two, or 0 */
};

/* Hashes a class and a stack for _put. */
uint32_t tally_row_table_hash(uint32_t class, const uint8_t *stack, size_t size);

/* Prefetches the memory that _put will read. */
static inline void tally_row_table_prefetch(const struct tally_row_table *table, uint32_t hash)
{
	if (table->capacity)
		__builtin_prefetch(&table->slots[hash & (table->capacity - 1)], 1);
}

/* True if the table has to grow before it can take `more` rows. */
static inline bool tally_row_table_is_full(const struct tally_row_table *table, size_t more)
{
	return (table->rows.count + more) * 3 > table->capacity * 2;
}

/* Makes room for this many rows, and bytes of their stacks, in all.  Returns 0 or -ENOMEM. */
int tally_row_table_reserve(struct tally_row_table *table, size_t rows, size_t stack_bytes);

/* Returns the row of a class and a stack, made without samples when it is new; UINT32_MAX when
 * memory is out. */
uint32_t tally_row_table_put(struct tally_row_table *table, uint32_t hash, uint32_t class,
			     const uint8_t *stack, size_t size);

/* Returns the bytes of a row's stack, up to `*end`.  A row of samples without any address has
 * none. */
static inline const uint8_t *tally_row_stack(const struct tally_row_table *table, size_t row,
					     const uint8_t **end)
{
	const struct tally_row *rows = table->rows.items;
	uint64_t start = rows[row].stack,
		 next = row + 1 < table->rows.count ? rows[row + 1].stack : table->stacks.count;
	if (start == next) /* `items` may be NULL */
		return *end = NULL;
	*end = table->stacks.items + next;
	return table->stacks.items + start;
}

/* Frees what only _put needs. */
void tally_row_table_finish(struct tally_row_table *table);
void tally_row_table_release(struct tally_row_table *table);

/* Appends a place's number to a stack's bytes. */
static inline uint8_t *tally_stack_put_place(uint8_t *at, uint32_t place)
{
	for (; place >= 0x80; place >>= 7)
		*at++ = (uint8_t)(place | 0x80);
	*at++ = (uint8_t)place;
	return at;
}

/* Returns the next place of a stack, and moves `*at` past it. */
static inline uint32_t tally_stack_next_place(const uint8_t **at)
{
	uint32_t place = *(*at)++;
	if (place < 0x80)
		return place;
	place &= 0x7f;
	for (unsigned shift = 7;; shift += 7) {
		uint32_t byte = *(*at)++;
		place |= (byte & 0x7f) << shift;
		if (byte < 0x80)
			return place;
	}
}

/* Returns the last place of a stack that begins at `start`, and moves `*end` before it.  There must
 * be one. */
static inline uint32_t tally_stack_last_place(const uint8_t *start, const uint8_t **end)
{
	const uint8_t *at = *end - 1;
	uint32_t place = *at;
	for (; at > start && at[-1] >= 0x80; at--)
		place = place << 7 | (at[-1] & 0x7f);
	*end = at;
	return place;
}

/* Sets the heat of the late places, which are leaves of rows.  Returns 0 or -ENOMEM. */
int tally_row_table_heat(const struct tally_row_table *table, struct tally_place_table *places);

/* Distinct stacks with their weights: the data that `fold` prints, that a flame graph draws, and
 * that folded text and `perf script` text are read into.
 *
 * Frames and threads are interned; their ids are indices into the arrays.  Not thread-safe.
 */

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

/* Sorts stacks, so that a call tree can be made from them.
 *
 * A stack is a sequence of codes, outermost frame first; codes are 1 … code_max.  Sorted stacks
 * have their common beginnings next to each other, so that call_tree.c can read the nodes in
 * preorder, with siblings in the order of their codes.  Stacks are grouped under roots (threads,
 * commands, entries of a report), and only sorted within a root.  Not thread-safe.
 */

struct tally_packed_stack {
	uint64_t at;     /* index of its first word */
	uint32_t frames;
	uint32_t item;   /* the caller's number for it */
};

struct tally_sorted_word {
	uint64_t word;
	uint32_t stack;
};

struct tally_packed_root {
	uint32_t root;
	uint32_t first; /* index of its first stack */
};

struct tally_stack_sort {
	unsigned bits, per_word; /* bits of a code; codes in a word */
	struct { uint64_t *items; size_t count, capacity; } words;
	struct { struct tally_packed_stack *items; size_t count, capacity; } stacks;
	struct { struct tally_packed_root *items; size_t count, capacity; } roots;
	struct tally_sorted_word *keys, *scratch; /* used by tally_stack_sort_run() */
	size_t room;
};

void tally_stack_sort_init(struct tally_stack_sort *sort, uint32_t code_max);
void tally_stack_sort_release(struct tally_stack_sort *sort);

/* Makes room for this many stacks with this many frames in all, so that adding them copies nothing.
 * Returns 0 or -ENOMEM. */
int tally_stack_sort_reserve(struct tally_stack_sort *sort, size_t stacks, size_t frames);

/* Begins a root: stacks added from now on belong to it.  Each root may come only once.  Returns 0
 * or -ENOMEM. */
int tally_stack_sort_root(struct tally_stack_sort *sort, uint32_t root);

/* Adds a stack under the last root, one code at a time: at most `frames_max` calls of _put between
 * _begin (returns 0 or -ENOMEM) and _end (the same). */
struct tally_stack_packer {
	uint64_t *at, word;
	unsigned shift; /* bit position of the last code in `word` */
	uint32_t frames;
};

int tally_stack_sort_begin(struct tally_stack_sort *sort, struct tally_stack_packer *packer,
			   size_t frames_max);

static inline void tally_stack_sort_put(const struct tally_stack_sort *sort,
					struct tally_stack_packer *packer, uint32_t code)
{
	packer->shift -= sort->bits;
	packer->word |= (uint64_t)code << packer->shift;
	packer->frames++;
	if (packer->shift >= sort->bits)
		return;
	*packer->at++ = packer->word;
	packer->word = 0;
	packer->shift = 64;
}

int tally_stack_sort_end(struct tally_stack_sort *sort, const struct tally_stack_packer *packer,
			 uint32_t item);

/* Sorts the stacks [first, first + count): sort->keys has them in order.  Returns 0 or -ENOMEM. */
int tally_stack_sort_run(struct tally_stack_sort *sort, size_t first, size_t count);

/* Returns the number of outermost frames that two stacks have in common. */
static inline uint32_t tally_stack_sort_common(const struct tally_stack_sort *sort,
					       const struct tally_packed_stack *a,
					       const struct tally_packed_stack *b)
{
	const uint64_t *x = &sort->words.items[a->at], *y = &sort->words.items[b->at];
	uint32_t frames = a->frames < b->frames ? a->frames : b->frames;
	uint32_t words = (frames + sort->per_word - 1) / sort->per_word, i = 0;
	while (i < words && x[i] == y[i])
		i++;
	if (i == words)
		return frames;
	uint32_t common = i * sort->per_word + (unsigned)__builtin_clzll(x[i] ^ y[i]) / sort->bits;
	return common < frames ? common : frames;
}

static inline uint32_t tally_stack_sort_code(const struct tally_stack_sort *sort,
					     const struct tally_packed_stack *stack, uint32_t frame)
{
	uint64_t word = sort->words.items[stack->at + frame / sort->per_word];
	unsigned above = frame % sort->per_word * sort->bits;
	return (uint32_t)(word << above >> (64 - sort->bits));
}

/* A call tree in preorder, made from sorted stacks. */

/* A node's first child is the next node; its next sibling is at `end`.  Siblings are in the order
 * of their codes.  16 bytes, since there are many: five for each distinct stack of random calls. */
struct tally_call_node {
	uint64_t total; /* weight of all stacks that pass through here or end here */
	uint32_t code;  /* the frame's code; for a root: its number */
	uint32_t end;   /* index after the last descendant */
};

/* Roots follow one another, each with the tree of its stacks below it. */
struct tally_call_tree {
	struct { struct tally_call_node *items; size_t count, capacity; } nodes;
};

/* Makes room for this many stacks with this many frames in all.  Returns 0 or -ENOMEM. */
int tally_call_tree_reserve(struct tally_stack_sort *sort, size_t stacks, size_t frames);

/* tally_stack_sort_begin() for a stack with a weight.  The weight goes into the word before the
 * stack's first one: both are read together, and anywhere else it would be one more cache miss.
 * Returns 0 or -ENOMEM. */
int tally_call_tree_begin(struct tally_stack_sort *sort, struct tally_stack_packer *packer,
			  size_t frames_max, uint64_t weight);

/* Sorts the stacks that were added with weights, and makes a tree of them.  Leaves out nodes (not
 * roots) whose total is below `least`; their weight stays in the nodes above them.  Returns 0 or
 * -ENOMEM. */
int tally_call_tree_build(struct tally_call_tree *tree, struct tally_stack_sort *sort,
			  uint64_t least);
void tally_call_tree_release(struct tally_call_tree *tree);

#endif
