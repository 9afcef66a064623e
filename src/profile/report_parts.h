/* What a report is put together from.  For report_*.c.
 *
 * Rows of the profile come under roots (what of command, process, thread and CPU the report is
 * sorted by); functions have codes in the order of their names and objects, equal ones one code,
 * and places have keys: what of symbol, object and source the report is sorted by.  A root and a
 * key make an entry.
 *
 * Where trees are made, an entry's nodes are found by their codes.  With sources a function has
 * several keys, so there its frames have a code for each, above the functions' own (code_max): what
 * is shown of a branch is the plain code's.
 */
#ifndef TALLY_PROFILE_REPORT_PARTS_H
#define TALLY_PROFILE_REPORT_PARTS_H

#include "profile/call_tree.h"
#include "profile/report_model.h"

/* Each frame of a stack may head a tree of all the frames below it: 8,000 frames in a record of 64
 * KiB, which nobody's program has, would take 32 million branches. */
enum { TALLY_BRANCHES_MAX = 4 << 20 };

static const uint32_t TALLY_REPORT_NONE = UINT32_MAX;

struct tally_report_root {
	uint32_t key[TALLY_SORT_KEYS]; /* as an entry's: 0 what is not sorted by, or is a frame's */
};

struct tally_report_key {
	uint32_t object, symbol, file, line; /* string ids of names, 0 what is not sorted by */
};

/* An entry on its way into the report. */
struct tally_report_met {
	struct tally_report_entry entry;
	uint32_t root, key;
	uint32_t shown; /* where it stands in the report; TALLY_REPORT_NONE: hidden */
};

struct tally_report_builder {
	const struct tally_profile *profile;
	const struct tally_report_options *options;
	struct tally_report *report;

	uint32_t *code_of_function; /* by function of names: 1 … code_max */
	uint32_t *function_of_code; /* one of those that have it */
	uint32_t *symbol_of_code;   /* string id: what it is called where objects are no key */
	/* head_max: of codes with sources; code_max where there are none */
	uint32_t code_max, head_max;
	uint32_t *key_of_code;      /* TALLY_REPORT_NONE: heads no entry; up to head_max */
	uint32_t *key_of_place;
	uint32_t *head_of_place;    /* code of its symbol's frame; NULL: the function's */
	uint32_t *plain_of_code;    /* NULL: the same */
	/* 0: of samples without any address */
	struct { struct tally_report_key *items; size_t count, capacity; } keys;
	uint32_t *root_of_class;    /* TALLY_REPORT_NONE: of another event */
	struct { struct tally_report_root *items; size_t count, capacity; } roots;
	/* the event's, by root; those of a root in the profile's order */
	uint32_t *rows;
	/* by root: where its rows begin in `rows`; one more at the end */
	size_t *root_rows;

	struct { struct tally_report_met *items; size_t count, capacity; } met;
	/* by place in `rows`: number of the leaf's entry in `met`; where trees need it */
	uint32_t *leaf_entry;
	uint64_t least;             /* weight of a branch */
	size_t branches;
};

/* Codes and keys.  0 or -ENOMEM. */
int tally_report_make_keys(struct tally_report_builder *builder);
void tally_report_release_keys(struct tally_report_builder *builder);

/* Roots, and the event's rows by root.  0 or -ENOMEM. */
int tally_report_make_roots(struct tally_report_builder *builder);
/* Sets what a root is sorted by of facts, by their number in a class.  0 or -ENOMEM. */
int tally_report_set_facts(const struct tally_report_builder *builder, uint32_t number,
			   struct tally_report_root *root);
void tally_report_release_roots(struct tally_report_builder *builder);

/* A place's source as an interned string of names: its file's last part, with the line "x.c:12";
 * where the line is not known "f+12" or "libc.so.6[1a2b]", as perf has it.  TALLY_STRING_NONE when
 * memory is out. */
uint32_t tally_report_source_file(const struct tally_profile *profile, uint32_t place);
uint32_t tally_report_source_line(const struct tally_profile *profile, uint32_t place);

static inline uint32_t tally_report_plain_code(const struct tally_report_builder *builder,
					       uint32_t code)
{
	return builder->plain_of_code ? builder->plain_of_code[code] : code;
}

/* Fills `met`.  0 or -ENOMEM. */
int tally_report_sum_rows(struct tally_report_builder *builder);

/* Packs the stacks of rows. */
struct tally_report_packer {
	const struct tally_report_builder *builder;
	struct tally_stack_sort sort;
	uint32_t *code_of_place; /* of its only frame; 0: it has several */
	uint32_t frames_max;     /* of a place */
	bool heads;              /* symbols' frames have the codes of entries */
};

/* 0 or -ENOMEM; released in both cases. */
int tally_report_packer_init(struct tally_report_packer *packer,
			     const struct tally_report_builder *builder, bool heads);
void tally_report_packer_release(struct tally_report_packer *packer);

/* Adds a row's stack to packer->sort: all of it from the outermost frame, or from the leaf's caller
 * upwards. 0 or -ENOMEM. */
int tally_report_packer_add(struct tally_report_packer *packer, uint32_t row, bool from_leaf);

/* Trees of the report's entries.  0 or -ENOMEM. */
int tally_report_make_trees(struct tally_report_builder *builder);

/* A node that heads an entry, or one of several whose branches are one; with the weight that goes
 * its way. */
struct tally_report_place {
	uint32_t node, end; /* end: the node's */
	uint32_t shown;     /* the entry in the report */
	uint64_t weight;
};

/* The branches below the nodes of one entry; with `callers` (by node: the node above) those above.
 * 0 or -ENOMEM. */
int tally_report_make_branches(struct tally_report_builder *builder,
			       const struct tally_call_tree *tree, const uint32_t *callers,
			       const struct tally_report_place *places, size_t count);

/* A branch more, first in `*list`; NULL when memory is out. */
struct tally_branch_node *tally_report_add_branch(struct tally_report_builder *builder,
						  struct tally_branch_node **list, uint32_t code,
						  uint64_t weight);
/* Heaviest first; equal ones in the order that they have. */
struct tally_branch_node *tally_report_sort_branches(struct tally_branch_node *first);

#endif
