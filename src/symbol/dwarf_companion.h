/* The other files of an object's DWARF: split units' (.dwo, packed in a .dwp), and the one that dwz
 * has put there what several objects have in common.  Of this room alone.
 *
 * Their names are the object's word, so that what is opened must prove that it belongs: by the id
 * of the split unit, by the build-id of the common file. */
#ifndef TALLY_SYMBOL_DWARF_COMPANION_H
#define TALLY_SYMBOL_DWARF_COMPANION_H

#include "symbol/dwarf_reader.h"

/* A package of split units: OBJECT.dwp.  Not changed once open. */
struct tally_dwarf_package {
	struct tally_dwarf_file file; /* object NULL: there is none */
	const uint8_t *slots, *rows, *columns, *offsets;
	uint32_t slot_count, row_count, column_count;
	uint16_t version;
};

void tally_dwarf_package_open(struct tally_dwarf_package *package, const char *object_path);
void tally_dwarf_package_release(struct tally_dwarf_package *package);

/* The part of a unit that lies elsewhere. */
struct tally_dwarf_split {
	/* of a .dwo: closed by the caller; nothing for a package's */
	struct tally_dwarf_file file;
	const struct tally_dwarf_unit *unit; /* NULL: not found */
	struct tally_dwarf_unit packed;
};

/* Finds the split part of a skeleton, in the package or in a .dwo: where the unit was compiled, or
 * beside the object. 0 (also when there is none), or -ENOMEM. */
int tally_dwarf_split_open(struct tally_dwarf_split *split, struct tally_dwarf_scratch *scratch,
			   const struct tally_dwarf_unit *skeleton,
			   struct tally_dwarf_package *package, const char *object_path);
void tally_dwarf_split_release(struct tally_dwarf_split *split,
			       struct tally_dwarf_scratch *scratch);

/* Opens file->supplement, and reads its units.  *is_missing: it should be there, and isn't.  0 or
 * -ENOMEM. */
int tally_dwarf_open_supplement(struct tally_dwarf_file *file, struct tally_dwarf_scratch *scratch,
				bool *is_missing);

#endif
