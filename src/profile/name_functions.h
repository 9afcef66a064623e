/* Interning functions: what one lookup (names.c) and many at once (names_resolve.c) have in common.
 * Of this room alone. */
#ifndef TALLY_PROFILE_NAME_FUNCTIONS_H
#define TALLY_PROFILE_NAME_FUNCTIONS_H

#include "profile/names.h"

struct tally_name_table;
struct tally_packed_place;
struct tally_symbol;

/* Whose table has the names of a place: a file's, TALLY_FILE_KERNEL, or TALLY_FILE_NONE where no
 * table is asked. */
uint32_t tally_names_file(const struct tally_names *names, const struct tally_place *place);

/* The function of a place whose file has no table: nowhere, or code that the kernel named in a
 * record; and how far from its start the place is. */
uint32_t tally_names_plain_function(struct tally_names *names, const struct tally_place *place,
				    uint64_t *offset);

/* The function of a place by its symbol of the table; where that is NULL, by where the function
 * begins all the same (UINT64_MAX: not known). */
uint32_t tally_names_symbol_function(struct tally_names *names, struct tally_name_table *table,
				     uint32_t file, const struct tally_place *place,
				     const struct tally_symbol *symbol, uint64_t start);

/* The index of the function; UINT32_MAX when memory is out.  `plain` is filled in. */
uint32_t tally_names_intern_function(struct tally_names *names, uint32_t file,
				     struct tally_function function);

/* The string id of the readable form of `text`, which lives as long as `texts`: each pointer is
 * demangled once. */
uint32_t tally_names_intern_text(struct tally_names *names, struct tally_map *texts,
				 const char *text);

/* names_packed.c: what the recording itself says of a place, or NULL; of its function's code; and
 * its function. */
const struct tally_packed_place *tally_names_packed_place(struct tally_names *names,
							  const struct tally_place *place);
struct tally_packed_code;
const struct tally_packed_code *tally_names_packed_code(struct tally_names *names,
							const struct tally_place *place);
uint32_t tally_names_packed_function(struct tally_names *names, const struct tally_place *place,
				     const struct tally_packed_place *packed, uint64_t *offset);

/* … and the build-id of a file, as the recording or the file itself tells it; size 0: none does. */
struct tally_build_id tally_names_build_id(struct tally_names *names, uint32_t file);

/* names_resolve.c: tally_names_resolve() for places that the recording says nothing of. */
int tally_names_resolve_by_files(struct tally_names *names, const struct tally_place *places,
				 size_t count, struct tally_place_name *out);

#endif
