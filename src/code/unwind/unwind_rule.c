/* Compiles rules from DWARF's programs to the form that a step needs.
 *
 * A row of DWARF's table has a rule for every register, of seven kinds.  A program that runs from
 * the function's start computes the row.  It takes a microsecond, for a step of two additions and
 * two loads.  Yet compilers have few habits.  Nearly every row is "CFA = register + offset; the
 * return address and up to six registers are saved at fixed distances below it".  An object of
 * fifty thousand functions has a few hundred distinct rows.  So when a function is hit, its program
 * runs once, to its end.  Each row becomes a struct tally_unwind_rule and is interned.  Then a
 * lookup is two binary searches, and only addresses that were not met before need one
 * (unwind_internal.h).
 *
 * Three habits use expressions, and two of them fit into the same form:
 *
 * - The PLT's entries are 16 bytes, and the CFA is 8 bytes higher behind the push in their middle.
 *   One rule for all entries computes (rip & 15) >= 11.  is_plt() recognises it byte by byte.
 * - Functions that realign their stack save registers at distances from rbp, and the CFA's value in
 *   a word there.  The rule loads the CFA, and saved words count from rbp.
 * - Signal trampolines fetch every register from the context that the kernel pushed.  There is one
 *   trampoline in a process.  Its row is kept as it is (TALLY_RULE_ROW) and interpreted, like every
 *   other row that does not fit.
 *
 * All rows of i386, whose words have 4 bytes, are interpreted: such programs are few.
 *
 * Whole objects are not compiled: a profile meets only a few per cent of a large object's
 * functions.
 */
#include "unwind/unwind_internal.h"

#include "base/binary_search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 8, OP_BREG0 = 0x70, OP_BREG31 = 0x8f, OP_DEREF = 0x06 };

/* Rows of one object.  The limit is for forged files: their other functions are interpreted. */
enum { ROWS_MAX = 1 << 24 };

/* ---- from a row to a rule ------------------------------------------------ */

/* True if the expression is DW_OP_bregN and an offset, with at most one operation behind it.  Sets
 * *then to that operation, or to 0. */
static bool is_register_and_offset(const struct tally_cfi_row *row,
				   const struct tally_cfi_rule *rule, uint8_t *reg, int64_t *offset,
				   uint8_t *then)
{
	struct tally_reader reader;
	tally_reader_init(&reader, row->section->bytes + rule->value, rule->size, false);
	uint8_t opcode = tally_reader_u8(&reader);
	*offset = tally_reader_sleb(&reader);
	if (reader.failed || opcode < OP_BREG0 || opcode > OP_BREG31 ||
	    tally_reader_left(&reader) > 1)
		return false;
	*reg = opcode - OP_BREG0;
	*then = 0;
	if (tally_reader_left(&reader))
		*then = tally_reader_u8(&reader);
	return true;
}

/* True if the CFA is the PLT's expression as GNU ld writes it: breg7 8; breg16 0; lit15; and;
 * lit11; ge; lit3; shl; plus.  With IBT the lit11 is lit9 or lit10.  Sets *from to its number. */
static bool is_plt(const struct tally_cfi_row *row, uint8_t *from)
{
	static const uint8_t BEFORE[] = { 0x77, 8, 0x80, 0, 0x3f, 0x1a },
			     BEHIND[] = { 0x2a, 0x33, 0x24, 0x22 };
	const uint8_t *expression = row->section->bytes + row->cfa.value;
	enum { SIZE = sizeof(BEFORE) + 1 + sizeof(BEHIND), LIT0 = 0x30, LIT15 = 0x3f };
	if (row->section->machine == TALLY_UNWIND_ARM64 || row->cfa.size != SIZE ||
	    memcmp(expression, BEFORE, sizeof(BEFORE)) != 0 ||
	    memcmp(expression + sizeof(BEFORE) + 1, BEHIND, sizeof(BEHIND)) != 0)
		return false;
	uint8_t literal = expression[sizeof(BEFORE)];
	*from = literal - LIT0;
	return literal >= LIT0 && literal <= LIT15;
}

static bool put_cfa(const struct tally_cfi_row *row, struct tally_unwind_rule *rule)
{
	int64_t offset = row->cfa.value;
	uint8_t then = OP_DEREF;
	rule->cfa_register = row->cfa.reg;
	if (row->cfa.kind == TALLY_CFI_EXPRESSION && is_plt(row, &rule->plt_from)) {
		rule->kind = TALLY_RULE_PLT;
		rule->cfa_register = TALLY_UNWIND_RSP;
		offset = WORD;
	} else if (row->cfa.kind == TALLY_CFI_EXPRESSION) {
		if (!is_register_and_offset(row, &row->cfa, &rule->cfa_register, &offset, &then) ||
		    then != OP_DEREF)
			return false;
		rule->cfa_is_loaded = true;
	} else if (row->cfa.kind != TALLY_CFI_REGISTER) {
		return false;
	}
	rule->cfa_offset = (int32_t)offset;
	return offset == rule->cfa_offset;
}

static bool to_word(int64_t offset, int16_t *word)
{
	*word = (int16_t)(offset / WORD);
	return offset % WORD == 0 && offset / WORD == *word &&
	       *word != TALLY_RULE_RETURN_IN_REGISTER;
}

static bool put_saved(struct tally_unwind_rule *rule, unsigned reg, uint8_t base, int64_t offset)
{
	if (rule->saved_count == TALLY_RULE_SAVED_MAX ||
	    (rule->saved_count > 0 && rule->base_register != base))
		return false;
	rule->base_register = base;
	rule->saved_register[rule->saved_count] = (uint8_t)reg;
	return to_word(offset, &rule->saved_word[rule->saved_count++]);
}

static bool put_register(const struct tally_cfi_row *row, unsigned reg,
			 struct tally_unwind_rule *rule)
{
	const struct tally_cfi_rule *from = &row->registers[reg];
	uint8_t base, then;
	int64_t offset;
	switch (from->kind) {
	case TALLY_CFI_UNSPECIFIED:
	case TALLY_CFI_SAME_VALUE:
		return true;
	case TALLY_CFI_OFFSET:
		return put_saved(rule, reg, TALLY_RULE_BASE_IS_CFA, from->value);
	case TALLY_CFI_EXPRESSION:
		return is_register_and_offset(row, from, &base, &offset, &then) && then == 0 &&
		       base < tally_unwind_layout(row->section->machine)->count &&
		       put_saved(rule, reg, base, offset);
	}
	return false;
}

static bool put_return(const struct tally_cfi_row *row, const struct tally_unwind_layout *layout,
		       struct tally_unwind_rule *rule)
{
	const struct tally_cfi_rule *from = &row->registers[layout->return_register];
	rule->return_word = TALLY_RULE_RETURN_IN_REGISTER;
	if (from->kind == TALLY_CFI_OFFSET)
		return to_word(from->value, &rule->return_word);
	/* A leaf of arm64 still has it in x30.  On x86-64 the column is pc itself, which holds no
	 * return address. */
	bool is_kept = from->kind == TALLY_CFI_UNSPECIFIED || from->kind == TALLY_CFI_SAME_VALUE;
	return is_kept && layout->return_register != layout->pc;
}

/* Makes the compact form of a row.  Returns false when there is none. */
static bool rule_of_row(const struct tally_cfi_row *row, struct tally_unwind_rule *rule)
{
	const struct tally_unwind_layout *layout = tally_unwind_layout(row->section->machine);
	memset(rule, 0, sizeof(*rule));
	if (row->registers[row->return_register].kind == TALLY_CFI_UNDEFINED) {
		rule->kind = TALLY_RULE_OUTERMOST;
		return true;
	}
	rule->kind = TALLY_RULE_SAVED;
	rule->base_register = TALLY_RULE_BASE_IS_CFA;
	if (layout->word != WORD || row->is_signal_frame ||
	    row->return_register != layout->return_register ||
	    row->registers[layout->sp].kind != TALLY_CFI_UNSPECIFIED || !put_cfa(row, rule) ||
	    !put_return(row, layout, rule))
		return false;
	uint64_t others = row->ruled & ~(1ull << layout->return_register | 1ull << layout->sp |
					 1ull << layout->pc);
	for (; others; others &= others - 1)
		if (!put_register(row, (unsigned)__builtin_ctzll(others), rule))
			return false;
	return true;
}

/* ---- functions ----------------------------------------------------------- */

static int add_rule(struct tally_unwind_rules *rules, const struct tally_unwind_rule *rule,
		    uint32_t *id)
{
	struct tally_unwind_rule *copy = tally_arena_alloc(&rules->arena, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, rule, sizeof(*copy)); /* with its padding: rules are compared by bytes */
	*id = (uint32_t)rules->rules.count;
	return tally_vector_push(&rules->rules, copy);
}

static int intern_rule(struct tally_unwind_rules *rules, const struct tally_unwind_rule *rule,
		       uint32_t *id)
{
	uint64_t words[sizeof(*rule) / sizeof(uint64_t)], key = 0;
	_Static_assert(sizeof(words) == sizeof(*rule), "rules are hashed by words");
	memcpy(words, rule, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		key = tally_hash64(key ^ words[i]);
	for (;; key++) {
		bool added;
		uint64_t *slot = tally_map_put(&rules->known, key, &added);
		if (!slot)
			return -ENOMEM;
		*id = (uint32_t)*slot;
		if (added) {
			/* If add_rule() fails, this slot names no rule or another one.  The
			 * comparison below skips it. */
			*slot = rules->rules.count;
			return add_rule(rules, rule, id);
		}
		if (*slot < rules->rules.count &&
		    memcmp(rules->rules.items[*slot], rule, sizeof(*rule)) == 0)
			return 0;
	}
}

const struct tally_unwind_rule *tally_unwind_rules_of_frame(struct tally_unwind_rules *rules,
							    const struct tally_code_frame *frame)
{
	struct tally_unwind_rule rule;
	uint32_t id;
	int64_t cfa = (int64_t)frame->return_at + WORD;
	memset(&rule, 0, sizeof(rule)); /* padding must be 0: rules are compared by bytes */
	rule.kind = TALLY_RULE_CODE;
	rule.cfa_register = TALLY_UNWIND_RSP;
	rule.cfa_offset = (int32_t)cfa;
	if (frame->is_linked) {
		rule.cfa_register = TALLY_UNWIND_RBP;
		rule.cfa_offset = 2 * WORD;
	}
	if (frame->has_base)
		rule.cfa_register = frame->base;
	rule.cfa_is_loaded = frame->is_loaded;
	if (frame->is_loaded) {
		rule.cfa_offset = frame->loaded_at;
		rule.cfa_added = (int16_t)cfa;
	}
	rule.lost = frame->lost;
	rule.return_word = -1;
	rule.base_register = TALLY_RULE_BASE_IS_CFA;
	int64_t fp_at = frame->fp_at - cfa;
	bool saves_fp = frame->is_linked || frame->saves_fp;
	uint8_t fp_base = TALLY_RULE_BASE_IS_CFA;
	if (frame->is_linked)
		fp_at = -2 * WORD;
	if (frame->fp_is_apart) {
		fp_base = frame->fp_base;
		fp_at = frame->fp_at;
	}
	if ((frame->is_loaded && rule.cfa_added != cfa) ||
	    (saves_fp && !put_saved(&rule, TALLY_UNWIND_RBP, fp_base, fp_at)))
		return NULL;
	if (intern_rule(rules, &rule, &id) < 0)
		return NULL;
	return rules->rules.items[id];
}

static int add_row(struct tally_unwind_rules *rules, const struct tally_cfi_row *row, uint32_t *id)
{
	struct tally_unwind_rule rule;
	if (rule_of_row(row, &rule))
		return intern_rule(rules, &rule, id);
	struct tally_cfi_row *copy = tally_arena_alloc(&rules->arena, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	*copy = *row;
	memset(&rule, 0, sizeof(rule));
	rule.kind = TALLY_RULE_ROW;
	rule.row = copy;
	return add_rule(rules, &rule, id);
}

static int push_row(struct tally_unwind_rules *rules, uint64_t start, uint32_t rule)
{
	struct tally_compiled_row row = { .start = (uint32_t)start, .rule = rule };
	if (rules->rows.count >= ROWS_MAX)
		return -ENOMEM;
	return tally_vector_push(&rules->rows, row);
}

static int compile_rows(struct tally_unwind_rules *rules, const struct tally_function_index *index,
			const struct tally_unwind_function *function)
{
	static const struct tally_unwind_rule BAD = { .kind = TALLY_RULE_BAD };
	struct tally_cfi_program program;
	uint32_t rule, last = UINT32_MAX;
	uint64_t reached = function->start;
	bool is_started = tally_function_index_start(index, function, &program);
	while (is_started && tally_cfi_program_next(&program)) {
		if (add_row(rules, &program.row, &rule) < 0)
			return -ENOMEM;
		if (rule != last && push_row(rules, program.row_start - function->start, rule) < 0)
			return -ENOMEM;
		last = rule;
		reached = program.row_end;
	}
	if (is_started && !program.bad)
		return 0;
	/* The rows before the malformed instruction are valid. */
	if (reached - function->start >= function->size)
		return 0;
	if (intern_rule(rules, &BAD, &rule) < 0)
		return -ENOMEM;
	return push_row(rules, reached - function->start, rule);
}

static int compile_function(struct tally_unwind_rules *rules,
			    const struct tally_function_index *index,
			    const struct tally_unwind_function *function,
			    struct tally_compiled_function *out)
{
	size_t first = rules->rows.count;
	if (compile_rows(rules, index, function) < 0) {
		rules->rows.count = first;
		return -ENOMEM;
	}
	out->size = function->size;
	out->first = (uint32_t)first;
	out->count = (uint32_t)(rules->rows.count - first);
	return 0;
}

static const struct tally_unwind_rule *find_row(const struct tally_unwind_rules *rules,
						const struct tally_function_index *index,
						size_t position, uint64_t start, uint64_t address,
						struct tally_rule_range *range)
{
	const struct tally_compiled_function *function = &rules->functions[position];
	uint64_t offset = address - start;
	const struct tally_compiled_row *rows = &rules->rows.items[function->first];
	/* the first row begins where the function does */
	size_t next_row = tally_search(i, 1, function->count, rows[i].start > offset);
	range->start = start + rows[next_row - 1].start;
	range->end = start + (next_row < function->count ? rows[next_row].start : function->size);
	/* functions of forged files may overlap */
	uint64_t next = tally_function_index_next(index, position);
	if (next < range->end)
		range->end = next;
	return rules->rules.items[rows[next_row - 1].rule];
}

void tally_unwind_rules_renumber(struct tally_unwind_rules *rules)
{
	free(rules->functions);
	rules->functions = NULL;
}

/* Finds the rule of an address in a function that is already compiled; NULL if there is none.  The
 * function's description was found good when it was compiled, and is not read again. */
static const struct tally_unwind_rule *find_compiled(const struct tally_unwind_rules *rules,
						     const struct tally_function_index *index,
						     uint64_t address,
						     struct tally_rule_range *range)
{
	size_t position;
	uint64_t start;
	if (!rules->functions || !tally_function_index_below(index, address, &position, &start))
		return NULL;
	const struct tally_compiled_function *compiled = &rules->functions[position];
	bool is_inside = compiled->count && address - start < compiled->size;
	if (!is_inside)
		return NULL;
	return find_row(rules, index, position, start, address, range);
}

const struct tally_unwind_rule *tally_unwind_rules_find(struct tally_unwind_rules *rules,
							struct tally_function_index *index,
							uint64_t address,
							struct tally_rule_range *range,
							bool *is_failed)
{
	*is_failed = false;
	const struct tally_unwind_rule *known = find_compiled(rules, index, address, range);
	if (known)
		return known;
	struct tally_unwind_function function;
	size_t position;
	bool is_anew, is_found = tally_function_index_find(index, address, &position, &function,
							   &is_anew);
	if (is_anew)
		tally_unwind_rules_renumber(rules);
	if (!is_found)
		return NULL;
	*is_failed = true;
	if (!rules->functions)
		/* untouched pages take no memory */
		rules->functions = calloc(index->count, sizeof(*rules->functions));
	if (!rules->functions)
		return NULL;
	struct tally_compiled_function *compiled = &rules->functions[position];
	if (!compiled->count && compile_function(rules, index, &function, compiled) < 0)
		return NULL;
	*is_failed = false;
	return find_row(rules, index, position, function.start, address, range);
}

size_t tally_unwind_rules_bytes(const struct tally_unwind_rules *rules,
				const struct tally_function_index *index)
{
	return (rules->functions ? index->count * sizeof(*rules->functions) : 0) +
	       rules->rows.capacity * sizeof(*rules->rows.items) +
	       rules->rules.capacity * sizeof(*rules->rules.items) +
	       tally_map_bytes(&rules->known) + tally_arena_bytes(&rules->arena);
}

void tally_unwind_rules_release(struct tally_unwind_rules *rules)
{
	free(rules->functions);
	tally_vector_release(&rules->rows);
	tally_vector_release(&rules->rules);
	tally_map_release(&rules->known);
	tally_arena_release(&rules->arena);
}
