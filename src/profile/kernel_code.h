/* The machine code of a kernel's function.  For function_code.c. */
#ifndef TALLY_PROFILE_KERNEL_CODE_H
#define TALLY_PROFILE_KERNEL_CODE_H

#include "profile/function_code.h"

struct tally_line_answer;
struct tally_name_table;
struct tally_object;
struct tally_symbol;

/* Of the symbol (NULL: there is none, and no code), which is the kernel's table's, or a module's
 * own.  0 or -ENOMEM. */
int tally_kernel_code_find(struct tally_names *names, struct tally_name_table *table,
			   const struct tally_symbol *symbol, struct tally_function_code *code);

/* What machine the recorded kernel's code is for. */
void tally_kernel_code_machine(const struct tally_names *names, struct tally_function_code *code);

/* function_code.c: why there is no code. */
void tally_code_because(struct tally_function_code *code, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Whose code it is, and `size` bytes of it at an address of the object's. */
void tally_code_of_object(struct tally_function_code *code, const struct tally_object *object,
			  uint64_t address, uint64_t size);

#endif
