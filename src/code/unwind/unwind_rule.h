/* Rules in the form that a step needs, and the functions compiled to them.  Internal to
 * src/unwind. */
#ifndef TALLY_UNWIND_RULE_H
#define TALLY_UNWIND_RULE_H

#include "base/arena.h"
#include "base/map.h"
#include "unwind/code_frame.h"
#include "unwind/function_index.h"

enum tally_unwind_rule_kind {
	TALLY_RULE_UNMAPPED,  /* nothing is mapped there */
	/* mapped, but its file is not known or not an object of this machine */
	TALLY_RULE_NO_TABLE,
	TALLY_RULE_NONE,      /* the object has no rules there */
	TALLY_RULE_BAD,       /* the rules are malformed */
	TALLY_RULE_OUTERMOST, /* the frame has no caller */
	TALLY_RULE_SWITCHED,  /* the frame's caller is on another stack */
	TALLY_RULE_GO_TO_C,   /* Go calls C: the caller is on the goroutine's stack */
	TALLY_RULE_C_TO_GO,   /* C calls Go: the caller is on the thread's stack */
	TALLY_RULE_SAVED,     /* CFA, return address, saved registers */
	TALLY_RULE_CODE,      /* the same, made from the code: true if a call left the address */
	/* the same, with a CFA that is 8 bytes higher in the second half of the PLT's entry */
	TALLY_RULE_PLT,
	TALLY_RULE_ROW,       /* the forms above can't express it: `row` */
};

/* More than any compiler saves: rbx rbp r12–r15; x19–x30. */
enum { TALLY_RULE_SAVED_MAX = 12 };

/* Values that name no register or word: saved words count from the CFA; the return address is still
 * in its register. */
enum { TALLY_RULE_BASE_IS_CFA = 0xff, TALLY_RULE_RETURN_IN_REGISTER = INT16_MIN };

/* A register that is not listed keeps its value.  Words are 8 bytes. */
struct tally_unwind_rule {
	uint8_t kind;
	uint8_t cfa_register;
	/* the CFA is the word stored at register + offset, + cfa_added */
	bool cfa_is_loaded;
	/* TALLY_RULE_PLT: from this offset in a 16-byte entry on, the CFA is 8 bytes higher */
	uint8_t plt_from;
	int32_t cfa_offset;
	/* the return address is at CFA + 8 × this, or TALLY_RULE_RETURN_IN_REGISTER */
	int16_t return_word;
	/* saved_word counts from the CFA, or from a register (rbp in a realigned stack) */
	uint8_t base_register;
	uint8_t saved_count;
	int16_t cfa_added; /* to a loaded CFA, in bytes */
	uint16_t lost;     /* bit n: the caller's value of register n is unknown */
	union {
		struct {
			uint8_t saved_register[TALLY_RULE_SAVED_MAX];
			int16_t saved_word[TALLY_RULE_SAVED_MAX];
		};
		const struct tally_cfi_row *row;
	};
};

/* A compiled function: `count` rows, from `first` on.  `count` is 0 while it is not compiled. */
struct tally_compiled_function {
	uint32_t first, count;
	uint32_t size; /* of the function, in bytes */
};

struct tally_compiled_row {
	uint32_t start; /* offset from the function's start, in bytes */
	uint32_t rule;
};

/* The functions of one index that were hit, compiled.  Rules never move: pointers to them stay
 * valid. */
struct tally_unwind_rules {
	/* by position in the index; NULL: none compiled yet */
	struct tally_compiled_function *functions;
	TALLY_VECTOR(struct tally_compiled_row) rows;
	/* distinct, except for TALLY_RULE_ROW */
	TALLY_VECTOR(const struct tally_unwind_rule *) rules;
	struct tally_map known;                               /* hash → rule */
	struct tally_arena arena;
};

/* Addresses in the object that share one rule: [start, end). */
struct tally_rule_range {
	uint64_t start, end;
};

/* Finds the rule at an address in the object, and sets *range to the addresses around it that the
 * rule holds for.  Compiles the function on its first use.  Returns NULL, and leaves *range as it
 * is, when the index has no function there or when memory is out; in the second case it sets
 * *is_failed. */
const struct tally_unwind_rule *tally_unwind_rules_find(struct tally_unwind_rules *rules,
							struct tally_function_index *index,
							uint64_t address,
							struct tally_rule_range *range,
							bool *is_failed);

/* Returns the rule of a frame that the code describes, or NULL when the rule has no compact form or
 * memory is out. */
const struct tally_unwind_rule *tally_unwind_rules_of_frame(struct tally_unwind_rules *rules,
							    const struct tally_code_frame *frame);

/* Drops the compiled functions: the index was read anew, and its positions mean other functions. */
void tally_unwind_rules_renumber(struct tally_unwind_rules *rules);

/* Returns the heap memory that the rules take, in bytes.  `index` is the one that they belong
 * to. */
size_t tally_unwind_rules_bytes(const struct tally_unwind_rules *rules,
				const struct tally_function_index *index);

void tally_unwind_rules_release(struct tally_unwind_rules *rules);

#endif
