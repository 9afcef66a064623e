/* Takes a step by a row of DWARF's table.  This interpreter serves rows that have no compact form,
 * and is the reference for those that have one. */
#include "unwind/unwind_internal.h"

#include <string.h>

static enum tally_expression_result run_expression(struct tally_unwind_walk *walk,
						   const struct tally_cfi_rule *rule,
						   const uint64_t *initial, uint64_t *value)
{
	/* Addresses in expressions (DW_OP_addr) are the object's. */
	if (tally_unwind_locate(walk))
		walk->frame.bias = tally_unwind_lookup_address(walk) - walk->place.address;
	const struct tally_cfi_section *section = walk->row->section;
	return tally_expression_run(section->bytes + rule->value, rule->size, &walk->frame, initial,
				    value);
}

static enum tally_expression_result compute_cfa(struct tally_unwind_walk *walk, uint64_t *cfa)
{
	const struct tally_cfi_rule *rule = &walk->row->cfa;
	if (rule->kind == TALLY_CFI_EXPRESSION)
		return run_expression(walk, rule, NULL, cfa);
	if (rule->kind != TALLY_CFI_REGISTER || !tally_unwind_knows(walk, rule->reg))
		return TALLY_EXPRESSION_BAD;
	*cfa = tally_unwind_get(walk, rule->reg) + (uint64_t)rule->value;
	return TALLY_EXPRESSION_OK;
}

/* Computes the caller's value of a register. */
static enum tally_expression_result apply_rule(struct tally_unwind_walk *walk, unsigned reg,
					       uint64_t cfa, uint64_t *value)
{
	const struct tally_cfi_rule *rule = &walk->row->registers[reg];
	enum tally_expression_result result = TALLY_EXPRESSION_OK;
	uint64_t address = cfa + (uint64_t)rule->value;
	unsigned from = reg;
	if (rule->kind == TALLY_CFI_REGISTER)
		from = rule->reg;
	switch (rule->kind) {
	case TALLY_CFI_UNSPECIFIED:
		if (reg == walk->layout->sp) {
			*value = cfa;
			return TALLY_EXPRESSION_OK;
		}
		/* fall through */
	case TALLY_CFI_SAME_VALUE:
	case TALLY_CFI_REGISTER:
		*value = tally_unwind_get(walk, from);
		if (tally_unwind_knows(walk, from))
			return TALLY_EXPRESSION_OK;
		return TALLY_EXPRESSION_BAD;
	case TALLY_CFI_VAL_OFFSET:
		*value = address;
		return TALLY_EXPRESSION_OK;
	case TALLY_CFI_EXPRESSION:
		result = run_expression(walk, rule, &cfa, &address);
		/* fall through */
	case TALLY_CFI_OFFSET:
		if (result == TALLY_EXPRESSION_OK &&
		    !tally_unwind_load_saved(walk, reg, address, value))
			result = TALLY_EXPRESSION_UNREADABLE;
		return result;
	case TALLY_CFI_VAL_EXPRESSION:
		return run_expression(walk, rule, &cfa, value);
	}
	return TALLY_EXPRESSION_BAD; /* undefined: the value is lost */
}

static bool stop_for(struct tally_unwind_walk *walk, enum tally_expression_result result)
{
	if (result == TALLY_EXPRESSION_UNREADABLE)
		return tally_unwind_stop_at_missed(walk);
	return tally_unwind_stop(walk, TALLY_UNWIND_BAD_RULES);
}

bool tally_unwind_step_by_row(struct tally_unwind_walk *walk)
{
	const struct tally_cfi_row *row = walk->row;
	const struct tally_unwind_layout *layout = walk->layout;
	uint64_t cfa = 0, registers[TALLY_UNWIND_REGISTERS] = { 0 }, known = 0;
	unsigned column = row->return_register;
	if (row->registers[column].kind == TALLY_CFI_UNDEFINED)
		return tally_unwind_stop(walk, TALLY_UNWIND_COMPLETE);
	/* The kernel's rules for arm64's trampoline describe a frame record, which restores only
	 * x29 and x30. */
	if (row->is_signal_frame && layout->has_signed_returns &&
	    tally_unwind_is_at_sigreturn(walk))
		return tally_unwind_step_over_signal(walk);
	/* A step by a frame record leaves sp unknown. */
	if (row->cfa.kind == TALLY_CFI_REGISTER && row->cfa.reg == layout->sp &&
	    !tally_unwind_knows(walk, layout->sp))
		return tally_unwind_step_by_frame_pointer(walk);
	enum tally_expression_result result = compute_cfa(walk, &cfa);
	if (result == TALLY_EXPRESSION_OK)
		result = apply_rule(walk, column, cfa, &registers[column]);
	if (result != TALLY_EXPRESSION_OK)
		return stop_for(walk, result);
	for (unsigned reg = 0; reg < layout->count; reg++)
		if (apply_rule(walk, reg, cfa, &registers[reg]) == TALLY_EXPRESSION_OK)
			known |= 1ull << reg;
	registers[layout->pc] = registers[column] & walk->return_mask;
	known |= 1ull << layout->pc;
	if (!(known >> layout->sp & 1))
		return tally_unwind_stop(walk, TALLY_UNWIND_BAD_RULES);
	walk->is_by_pointer = false;
	return tally_unwind_enter(walk, registers, known, row->is_signal_frame);
}
