/* Does an object keep frame pointers?  Told from its rules, without looking at code.
 *
 * `push %rbp; mov %rsp,%rbp` shows in the rules as: CFA = rbp + 16, rbp saved at CFA − 16.  Functions that realign
 * their stack keep the pair too, but say so by an expression (rbp saved where rbp points).  A compiler that
 * was told to omit frame pointers uses that pair only in functions with alloca and the like.
 */
#include "unwind/unwind_machine.h"
#include "unwind/unwind_table.h"

enum { RBP_SLOT = -16, CFA_ABOVE_RBP = 16, CFA_AT_ENTRY = 8, OP_BREG_RBP = 0x76 };

/* Of a hundred functions that have a frame, so many keep it in rbp where frame pointers are kept.  Measured: whoever
 * tells the compiler to keep them has 99 (node) or 100, whoever doesn't at most 8 (libc, python, git, rustc, LLVM,
 * static programs; 25 of four functions).  Perf 6.1 has 85: a library without them is linked in, whose callers
 * would be lost.
 */
enum { ENOUGH_PERCENT = 90 };

/* rbp is saved where rbp points: DW_OP_breg6 0. */
static bool is_saved_at_rbp(const struct tally_cfi_row *row)
{
	const struct tally_cfi_rule *rule = &row->registers[TALLY_UNWIND_RBP];
	if (rule->kind != TALLY_CFI_EXPRESSION || rule->size != 2)
		return false;
	const uint8_t *expression = row->section->bytes + rule->value;
	return expression[0] == OP_BREG_RBP && expression[1] == 0;
}

static bool keeps_frame_pointer(const struct tally_cfi_row *row)
{
	const struct tally_cfi_rule *rule = &row->registers[TALLY_UNWIND_RBP];
	if (row->cfa.kind == TALLY_CFI_REGISTER && row->cfa.reg == TALLY_UNWIND_RBP)
		return row->cfa.value == CFA_ABOVE_RBP && rule->kind == TALLY_CFI_OFFSET &&
		       rule->value == RBP_SLOT;
	return is_saved_at_rbp(row);
}

static bool is_at_entry(const struct tally_cfi_row *row)
{
	return row->cfa.kind == TALLY_CFI_REGISTER && row->cfa.reg == TALLY_UNWIND_RSP &&
	       row->cfa.value == CFA_AT_ENTRY;
}

enum frame_kind { FRAME_NONE, FRAME_WITHOUT_POINTER, FRAME_WITH_POINTER };

/* A piece that doesn't begin as a function does (the cold part of one, PLT, a signal's trampoline) counts for none,
 * and so does a function that never has a frame. */
static enum frame_kind classify(struct tally_cfi_program *program)
{
	enum frame_kind kind = FRAME_NONE;
	bool is_first = true;
	for (; tally_cfi_program_next(program); is_first = false) {
		const struct tally_cfi_row *row = &program->row;
		if (is_first && (!is_at_entry(row) || row->is_signal_frame ||
				 row->registers[row->return_register].kind == TALLY_CFI_UNDEFINED))
			return FRAME_NONE;
		if (keeps_frame_pointer(row))
			return FRAME_WITH_POINTER;
		if (!is_at_entry(row))
			kind = FRAME_WITHOUT_POINTER;
	}
	return program->bad ? FRAME_NONE : kind;
}

static bool is_in_earlier_index(struct tally_unwind_table *table, unsigned index, uint64_t start)
{
	struct tally_unwind_function function;
	const struct tally_function_index *first = tally_unwind_table_find(table, start, &function);
	return first && first < &table->indexes[index];
}

/* A function that the linker's table is wrong about makes it worthless: the section is read instead. */
static void check_index(struct tally_unwind_table *table, unsigned i)
{
	struct tally_function_index *index = &table->indexes[i];
	struct tally_unwind_function function;
	for (size_t j = 0; index->linker && j < index->count; j++)
		if (!tally_function_index_at(index, j, &function)) {
			tally_function_index_read(index); /* out of memory: what was read until then */
			tally_unwind_rules_renumber(&table->rules[i]);
		}
}

bool tally_unwind_table_uses_frame_pointers(struct tally_unwind_table *table, size_t *functions,
					    size_t *with_frame_pointer)
{
	size_t with = 0, total = 0;
	struct tally_cfi_program program;
	bool is_x86 = tally_unwind_layout(table->machine) == tally_unwind_layout(TALLY_UNWIND_X86_64);
	for (unsigned i = 0; is_x86 && i < table->index_count; i++) {
		const struct tally_function_index *index = &table->indexes[i];
		check_index(table, i);
		for (size_t j = 0; j < index->count; j++) {
			struct tally_unwind_function function;
			if (!tally_function_index_at(index, j, &function) ||
			    (i > 0 && is_in_earlier_index(table, i, function.start)) ||
			    !tally_function_index_start(index, &function, &program))
				continue;
			enum frame_kind kind = classify(&program);
			total += kind != FRAME_NONE;
			with += kind == FRAME_WITH_POINTER;
		}
	}
	if (functions)
		*functions = total;
	if (with_frame_pointer)
		*with_frame_pointer = with;
	return total > 0 && with * 100 >= total * ENOUGH_PERCENT;
}
