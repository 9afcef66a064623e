/* Interning functions: the common part of single lookups (names.c) and lookups of many places
 * (names_resolve.c).  Used in this room only. */
#ifndef TALLY_NAMING_NAME_FUNCTIONS_H
#define TALLY_NAMING_NAME_FUNCTIONS_H

#include "naming/names.h"

struct tally_name_table;
struct tally_packed_place;
struct tally_symbol;

/* Returns the file whose table has the names of a place: a file id, TALLY_FILE_KERNEL, or
 * TALLY_FILE_NONE if no table is needed. */
uint32_t tally_names_file(const struct tally_names *names, const struct tally_place *place);

/* Returns the function of a place without a table: in no file, or in code that the kernel named in
 * a record.  Sets `offset` to the place's distance from its start. */
uint32_t tally_names_plain_function(struct tally_names *names, const struct tally_place *place,
				    uint64_t *offset);

/* Returns the function of a place with the table's symbol.  If `symbol` is NULL, the function is
 * known only by its start (UINT64_MAX: not known). */
uint32_t tally_names_symbol_function(struct tally_names *names, struct tally_name_table *table,
				     uint32_t file, const struct tally_place *place,
				     const struct tally_symbol *symbol, uint64_t start);

/* Returns the index of the function, added when new; UINT32_MAX when memory is out.  Sets its
 * `bare` and `plain` names. */
uint32_t tally_names_intern_function(struct tally_names *names, uint32_t file,
				     struct tally_function function);

/* True if the function is the kernel's and its name is in a sorted list.  A name ends before a dot:
 * "mwait_idle_with_hints.constprop.0". */
bool tally_names_is_kernels(const struct tally_names *names, uint32_t function,
			    const char *const *sorted, size_t count);

/* Returns the string id of the readable form of `text`.  `text` must live as long as `texts`: a
 * pointer is demangled only once. */
uint32_t tally_names_intern_text(struct tally_names *names, struct tally_map *texts,
				 const char *text);

/* In names_recorded.c: return the recording's own name of a place (NULL: it has none), its
 * function's code, and its function. */
const struct tally_packed_place *tally_names_recorded_place(struct tally_names *names,
							    const struct tally_place *place);
struct tally_packed_code;
const struct tally_packed_code *tally_names_recorded_code(struct tally_names *names,
							  const struct tally_place *place);
uint32_t tally_names_recorded_function(struct tally_names *names, const struct tally_place *place,
				       const struct tally_packed_place *packed, uint64_t *offset);

/* Returns the build-id of a file, from the recording or from the file itself; size 0: not known. */
struct tally_build_id tally_names_build_id(struct tally_names *names, uint32_t file);

/* True if names need debug information, and not only symbols. */
static inline bool tally_names_reads_lines(const struct tally_names *names)
{
	return !names->options.no_inlines || names->options.wants_lines;
}

/* In names_resolve.c: tally_names_resolve() for places that the recording has no names for. */
int tally_names_resolve_by_files(struct tally_names *names, const struct tally_place *places,
				 size_t count, struct tally_place_name *out);

#endif
