/* Tables of an object for the program loader.  They are found without section headers, too. */
#ifndef TALLY_OBJECT_DYNAMIC_H
#define TALLY_OBJECT_DYNAMIC_H

#include "object/object.h"

/* Gets the dynamic symbol table and its names by way of PT_DYNAMIC.  Returns false when there is
 * none. */
bool tally_object_dynamic_symbols(const struct tally_object *object, struct tally_section *symbols,
				  struct tally_section *strings);

/* Gets the dynamic relocations (Elf64_Rela, Elf32_Rela).  Returns false when there are none. */
bool tally_object_relocations(const struct tally_object *object, struct tally_section *out);

#endif
