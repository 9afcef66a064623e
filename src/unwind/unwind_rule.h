/* A row of the rules in the form that a step needs, and functions compiled to it: inside this
 * room. */
#ifndef TALLY_UNWIND_UNWIND_RULE_H
#define TALLY_UNWIND_UNWIND_RULE_H

#include "base/arena.h"
#include "base/map.h"
#include "unwind/code_frame.h"
#include "unwind/function_index.h"

enum tally_unwind_rule_kind {
	TALLY_RULE_UNMAPPED,  /* nothing is mapped there */
	/* mapped, but its file is not known or not an object of this machine */
	TALLY_RULE_NO_TABLE,
	TALLY_RULE_NONE,      /* the object has no rules there */
	TALLY_RULE_BAD,       /* the rules make no sense */
	TALLY_RULE_OUTERMOST, /* nothing is to be found above */
	TALLY_RULE_SAVED,     /* CFA, return address, what is saved where */
	/* the same, with a CFA that is 8 bytes higher in the entry's second half */
	TALLY_RULE_PLT,
	TALLY_RULE_ROW,       /* what the forms above can't say: `row` */
};

/* More than any compiler saves: rbx rbp r12–r15; x19–x30. */
enum { TALLY_RULE_SAVED_MAX = 12 };

/* No register: a base or a return word. */
enum { TALLY_RULE_BASE_IS_CFA = 0xff, TALLY_RULE_RETURN_IN_REGISTER = INT16_MIN };

/* What is not named keeps its value.  Words are 8 bytes. */
struct tally_unwind_rule {
	uint8_t kind;
	uint8_t cfa_register;
	bool cfa_is_loaded;    /* the CFA is not register + offset, but what is stored there */
	/* TALLY_RULE_PLT: the first byte of a 16-byte entry behind its push */
	uint8_t plt_from;
	int32_t cfa_offset;
	/* the return address is at CFA + 8 × this, or still in its register */
	int16_t return_word;
	/* what saved_word counts from: the CFA, or a register (a realigned stack's rbp) */
	uint8_t base_register;
	uint8_t saved_count;
	union {
		struct {
			uint8_t saved_register[TALLY_RULE_SAVED_MAX];
			int16_t saved_word[TALLY_RULE_SAVED_MAX];
		};
		const struct tally_cfi_row *row;
	};
};

/* Of a function that was compiled: `count` of the rows from `first` on; 0: it was not yet. */
struct tally_compiled_function {
	uint32_t first, count;
	uint32_t size; /* of the function */
};

struct tally_compiled_row {
	uint32_t start; /* from its function's */
	uint32_t rule;
};

/* The functions of one index that were hit.  Rules keep their place: pointers to them stay good. */
struct tally_unwind_rules {
	struct tally_compiled_function *functions; /* by position in the index; NULL: none yet */
	TALLY_VECTOR(struct tally_compiled_row) rows;
	TALLY_VECTOR(const struct tally_unwind_rule *) rules; /* distinct, but for TALLY_RULE_ROW */
	struct tally_map known;                               /* hash → rule */
	struct tally_arena arena;
};

/* Addresses in the object that have one rule: [start, end). */
struct tally_rule_range {
	uint64_t start, end;
};

/* The rule at an address in the object, and for which addresses around it it holds; NULL when the
 * index has no function there, or when memory is out (then *is_failed), and then `range` is left as
 * it is. */
const struct tally_unwind_rule *tally_unwind_rules_find(struct tally_unwind_rules *rules,
							struct tally_function_index *index,
							uint64_t address,
							struct tally_rule_range *range,
							bool *is_failed);

/* The rule of a frame that code tells of; NULL when it has no compact form, or memory is out. */
const struct tally_unwind_rule *tally_unwind_rules_of_frame(struct tally_unwind_rules *rules,
							    const struct tally_code_frame *frame);

/* The compact form of a row; false when it has none. */
bool tally_unwind_rule_of_row(const struct tally_cfi_row *row, struct tally_unwind_rule *rule);

/* The index was read anew: positions mean other functions. */
void tally_unwind_rules_renumber(struct tally_unwind_rules *rules);

/* The heap's memory that they take, of the index's functions. */
size_t tally_unwind_rules_bytes(const struct tally_unwind_rules *rules,
				const struct tally_function_index *index);

void tally_unwind_rules_release(struct tally_unwind_rules *rules);

#endif
