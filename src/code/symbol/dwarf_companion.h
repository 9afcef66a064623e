/* Other files of an object's DWARF: split units (.dwo, packed in a .dwp), and dwz's common file,
 * which has what several objects share.  Internal to this folder.
 *
 * The files' names come from the untrusted object, so each opened file must prove that it belongs:
 * by the id of the split unit, or by the build-id of the common file. */
#ifndef TALLY_SYMBOL_DWARF_COMPANION_H
#define TALLY_SYMBOL_DWARF_COMPANION_H

#include "symbol/dwarf_reader.h"

/* A package of split units: OBJECT.dwp.  It doesn't change once open. */
struct tally_dwarf_package {
	struct tally_dwarf_file file; /* object NULL: there is no package */
	const uint8_t *slots, *rows, *columns, *offsets;
	uint32_t slot_count, row_count, column_count;
	uint16_t version;
};

void tally_dwarf_package_open(struct tally_dwarf_package *package, const char *object_path);
void tally_dwarf_package_release(struct tally_dwarf_package *package);

/* The split part of a unit. */
struct tally_dwarf_split {
	/* a .dwo file, which the caller closes; unused for a unit in a package */
	struct tally_dwarf_file file;
	const struct tally_dwarf_unit *unit; /* NULL: not found */
	struct tally_dwarf_unit packed;
};

/* Finds the split part of a skeleton: in the package, or in a .dwo file where the unit was compiled
 * or beside the object.  Returns 0 (even when there is none) or -ENOMEM. */
int tally_dwarf_split_open(struct tally_dwarf_split *split, struct tally_dwarf_scratch *scratch,
			   const struct tally_dwarf_unit *skeleton,
			   struct tally_dwarf_package *package, const char *object_path);
void tally_dwarf_split_release(struct tally_dwarf_split *split,
			       struct tally_dwarf_scratch *scratch);

/* Opens file->supplement and reads its units.  Sets *missing to the path of a supplement that the
 * file names and that is not found (it lies in the file), or to NULL.  Returns 0 or -ENOMEM. */
int tally_dwarf_open_supplement(struct tally_dwarf_file *file, struct tally_dwarf_scratch *scratch,
				const char **missing);

#endif
