/* Common parts of report_*.c and live_sums.c, and for them alone.
 *
 * Rows of the profile come under roots: the report's keys that concern the whole sample, such as
 * command, process, thread and CPU.  Functions have codes in the order of their names and objects;
 * equal ones share a code, but inlined ones have codes of their own.  Frames have keys: the
 * report's keys that concern a frame (symbol, object, source).  A function has the same key where
 * it was inlined and where it was not.  A root and a key together make an entry.
 *
 * For trees, an entry's nodes are found by their codes.  In a report with sources a function has
 * several keys, so its frames have a code for each key, above the functions' own codes (code_max).
 * A branch is shown by its plain code.
 */
#ifndef TALLY_REPORT_INTERNAL_H
#define TALLY_REPORT_INTERNAL_H

#include "profile/stacks.h"
#include "report/report.h"

static const uint32_t TALLY_REPORT_NONE = UINT32_MAX;

struct tally_report_root {
	/* as in an entry; 0: not a key of the report, or one of a frame */
	uint32_t key[TALLY_SORT_KEYS];
};

struct tally_report_key {
	uint32_t object, symbol, file, line; /* string ids of names; 0: not a key of the report */
};

/* The distinct keys of a place's frames. */
struct tally_place_keys {
	uint32_t leaf; /* of the innermost frame */
	/* the others: key_lists.items[list] … [list + more) */
	uint32_t list, more;
};

/* One function with the key that is a symbol, and one that is inlined; TALLY_REPORT_NONE: there is
 * none. */
struct tally_key_functions {
	uint32_t own, inlined;
};

/* Sets the entry's inlining, and its function if it has a symbol. */
static inline void tally_report_set_inlining(struct tally_report_entry *entry,
					     const struct tally_key_functions *functions)
{
	entry->inlining = TALLY_INLINED_NONE;
	if (functions->inlined == TALLY_REPORT_NONE)
		return;
	entry->inlining = TALLY_INLINED_ALL;
	if (functions->own == TALLY_REPORT_NONE)
		return;
	entry->inlining = TALLY_INLINED_SOME;
	entry->function = functions->own;
}

/* An entry before it is in the report. */
struct tally_report_met {
	struct tally_report_entry entry;
	uint32_t root, key;
	uint32_t shown; /* its index in the report; TALLY_REPORT_NONE: hidden */
};

struct tally_report_builder {
	const struct tally_profile *profile;
	const struct tally_report_options *options;
	struct tally_report *report;

	uint32_t *code_of_function; /* by function of the names: 1 … code_max */
	uint32_t *function_of_code; /* one function that has the code */
	/* by function: string id of the name to show if objects are no key */
	uint32_t *symbol_of_function;
	/* head_max: highest code with sources; code_max without sources */
	uint32_t code_max, head_max;
	uint32_t *key_of_code;      /* TALLY_REPORT_NONE: heads no entry; up to head_max */
	/* by frame of the names: its code with source; NULL: the function's code */
	uint32_t *head_of_frame;
	uint32_t *plain_of_code;    /* code of the function; NULL: they are the same */
	/* key 0 is that of samples without any address */
	struct { struct tally_report_key *items; size_t count, capacity; } keys;
	struct tally_place_keys *keys_of_place;
	struct { uint32_t *items; size_t count, capacity; } key_lists;
	struct tally_key_functions *functions_of_key;
	uint32_t *root_of_class;    /* by the class's place among those of the event */
	struct { struct tally_report_root *items; size_t count, capacity; } roots;
	/* the event's rows, by root; in the profile's order within a root */
	uint32_t *rows;
	/* by root: index of its first row in `rows`; one more at the end */
	size_t *root_rows;

	struct { struct tally_report_met *items; size_t count, capacity; } met;
	/* by index in `rows`: number of the leaf's entry in `met`; only if trees need it */
	uint32_t *leaf_entry;
	uint64_t least;             /* minimum weight of a branch */
	size_t branches;
};

/* Makes codes and keys.  Returns 0 or -ENOMEM. */
int tally_report_make_keys(struct tally_report_builder *builder);
void tally_report_release_keys(struct tally_report_builder *builder);

/* Makes roots, and sorts the event's rows by root.  Returns 0 or -ENOMEM. */
int tally_report_make_roots(struct tally_report_builder *builder);
void tally_report_release_roots(struct tally_report_builder *builder);

/* Returns the code of a place's frame, which is its entry's. */
static inline uint32_t tally_report_frame_head(const struct tally_report_builder *builder,
					       uint32_t place, uint32_t number)
{
	uint32_t frame = builder->profile->names[place].first + number;
	if (builder->head_of_frame)
		return builder->head_of_frame[frame];
	return builder->code_of_function[builder->profile->recording->names.frames.items[frame]
						 .function];
}

static inline uint32_t tally_report_frame_key(const struct tally_report_builder *builder,
					      uint32_t place, uint32_t number)
{
	return builder->key_of_code[tally_report_frame_head(builder, place, number)];
}

/* Return the source of frame `number` of a place as an interned string of the names: the last part
 * of the file's path, and with the line "x.c:12".  Without a known line, "f+12" or
 * "libc.so.6[1a2b]", as in perf.  TALLY_STRING_NONE when memory is out. */
uint32_t tally_report_source_file(const struct tally_profile *profile, uint32_t place,
				  uint32_t number);
uint32_t tally_report_source_line(const struct tally_profile *profile, uint32_t place,
				  uint32_t number);

static inline uint32_t tally_report_plain_code(const struct tally_report_builder *builder,
					       uint32_t code)
{
	return builder->plain_of_code ? builder->plain_of_code[code] : code;
}

/* Makes the trees of the report's entries.  Returns 0 or -ENOMEM. */
int tally_report_make_trees(struct tally_report_builder *builder);

/* Sorts siblings, heaviest first; equal ones keep their order. */
struct tally_branch_node *tally_report_sort_branches(struct tally_branch_node *first);

#endif
