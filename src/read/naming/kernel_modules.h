/* Kernel modules, read from their own files: lines, inlined functions, and names that kallsyms
 * doesn't have.  Used in this room only.  One thread at a time may use the modules of a table. */
#ifndef TALLY_NAMING_KERNEL_MODULES_H
#define TALLY_NAMING_KERNEL_MODULES_H

#include "object/module.h"
#include "naming/name_tables.h"

struct tally_kernel_modules;
struct tally_line_answer;

/* Returns the symbol of a place.  `symbol` is the one by kallsyms (NULL: none).  If the place is in
 * a module, the module's file is used when kallsyms has no symbol, or when names->sources.modules
 * asks for files; otherwise returns `symbol`. */
const struct tally_symbol *tally_kernel_module_symbol(const struct tally_names *names,
						      struct tally_name_table *table,
						      const struct tally_place *place,
						      const struct tally_symbol *symbol);

/* Returns the file with the code of a module's symbol, linked to the module's address; NULL: it is
 * not here, or the symbol is the kernel's own. */
const struct tally_object *tally_kernel_module_object(const struct tally_names *names,
						      struct tally_name_table *table,
						      const struct tally_symbol *symbol);

/* Finds the module at an address by the recording's own records.  Returns false if they have none
 * there. */
bool tally_kernel_module_recorded(const struct tally_names *names, uint64_t address,
				  char name[TALLY_MODULE_NAME_BYTES]);

/* Fills in the answers for places in modules whose files have lines.  `addresses` are in the
 * table's terms and ascending; `symbols` may have NULLs.  Returns 0 or -ENOMEM. */
int tally_kernel_module_lines(const struct tally_names *names, struct tally_name_table *table,
			      const uint64_t *addresses, const struct tally_symbol *const *symbols,
			      size_t count, struct tally_line_answer *answers);

/* Returns the name of the module with the symbol; NULL: no module whose file was read has it. */
const char *tally_kernel_module_name(const struct tally_kernel_modules *modules,
				     const struct tally_symbol *symbol);

void tally_kernel_modules_free(struct tally_kernel_modules *modules); /* NULL is allowed */

#endif
