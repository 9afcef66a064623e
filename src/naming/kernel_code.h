/* The machine code of a kernel function.  Only function_code.c uses this. */
#ifndef TALLY_PROFILE_KERNEL_CODE_H
#define TALLY_PROFILE_KERNEL_CODE_H

#include "naming/function_code.h"

struct tally_line_answer;
struct tally_name_table;
struct tally_object;
struct tally_symbol;

/* Finds the code of a symbol of the kernel's table, or of a module's own.  `symbol` NULL: there is
 * no symbol, and so no code.  Returns 0 or -ENOMEM. */
int tally_kernel_code_find(struct tally_names *names, struct tally_name_table *table,
			   const struct tally_symbol *symbol, struct tally_function_code *code);

/* Sets the machine that the recorded kernel's code is for. */
void tally_kernel_code_machine(const struct tally_names *names, struct tally_function_code *code);

/* In function_code.c: sets `missing`, why there is no code. */
void tally_code_because(struct tally_function_code *code, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Sets `code` to at most `size` bytes at an address of the object, with the object's machine. */
void tally_code_of_object(struct tally_function_code *code, const struct tally_object *object,
			  uint64_t address, uint64_t size);

#endif
