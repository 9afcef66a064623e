/* The kernel's modules by their own files: lines and what is inlined, and names where kallsyms
 * can't tell them.  Of this room alone; one thread at a time uses the modules of a table. */
#ifndef TALLY_PROFILE_KERNEL_MODULES_H
#define TALLY_PROFILE_KERNEL_MODULES_H

#include "object/module.h"
#include "profile/name_tables.h"

struct tally_kernel_modules;
struct tally_line_answer;

/* The symbol of a place in a module, whose symbol by kallsyms is given (NULL: none), by the
 * module's file where kallsyms doesn't know it, or where files are asked for; else as given. */
const struct tally_symbol *tally_kernel_module_symbol(const struct tally_names *names,
						      struct tally_name_table *table,
						      const struct tally_place *place,
						      const struct tally_symbol *symbol);

/* The file that has the code of a module's symbol, linked where the module lay; NULL: it is not
 * here, or the symbol is the kernel's own. */
const struct tally_object *tally_kernel_module_object(const struct tally_names *names,
						      struct tally_name_table *table,
						      const struct tally_symbol *symbol);

/* The module that lies at an address by the recording's own records; false: none that they tell
 * of. */
bool tally_kernel_module_recorded(const struct tally_names *names, uint64_t address,
				  char name[TALLY_MODULE_NAME_BYTES]);

/* Answers for those of the places that are in modules whose files have lines.  `addresses` are the
 * table's, rising; `symbols` may be NULL in places.  0 or -ENOMEM. */
int tally_kernel_module_lines(const struct tally_names *names, struct tally_name_table *table,
			      const uint64_t *addresses, const struct tally_symbol *const *symbols,
			      size_t count, struct tally_line_answer *answers);

/* The module that has the symbol; NULL: none of those whose files were read. */
const char *tally_kernel_module_name(const struct tally_kernel_modules *modules,
				     const struct tally_symbol *symbol);

void tally_kernel_modules_free(struct tally_kernel_modules *modules); /* NULL is fine */

#endif
