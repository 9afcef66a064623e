/* Finds the source line of an address and the functions inlined there, in an object's DWARF.  For
 * code that this doesn't describe, Go's own table is asked, which stripped programs keep.
 *
 * A compile unit is read at the first query for one of its addresses, and kept.  Handles DWARF 2 to
 * 5, split (.dwo, .dwp) and shared between files (dwz).  Starts no process.  The file's bytes are
 * untrusted: damaged parts give no answer or an incomplete one.  Objects that aren't linked
 * (ET_REL) give no answers.
 *
 * Only one thread at a time may use a `struct tally_lines` and its object.  It may start threads of
 * its own to read many units.
 */
#ifndef TALLY_SYMBOL_LINES_H
#define TALLY_SYMBOL_LINES_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_disk_cache;
struct tally_object;
struct tally_lines; /* one object's lines and inlined functions */

/* One function at an address.  The innermost frame has the file, line and column of the address;
 * each outer frame has those of its call to the inlined frame before it. */
struct tally_line_frame {
	/* linkage name (mangled), otherwise the plain name; NULL: unknown */
	const char *function;
	const char *file; /* joined with its directory, as the compiler wrote it; NULL: unknown */
	uint32_t line, column; /* 0: unknown */
	/* The file that declares a function without external linkage, joined with its directory:
	 * another file may have a function of the same name.  NULL: external linkage, or
	 * unknown. */
	const char *source;
};

/* Innermost frame first.  The last frame is the function that contains the code; all before it are
 * inlined. count 0: there is no debug information for the address. */
struct tally_line_answer {
	const struct tally_line_frame *frames;
	uint32_t count;
};

/* Prepares an object's lines and takes references to the objects.  `debug` is the separate debug
 * file or NULL.  Hardly reads anything yet, so an object without debug information is no error.
 * Returns 0 or -ENOMEM. */
int tally_lines_new(struct tally_object *object, struct tally_object *debug,
		    struct tally_lines **out, struct tally_error *err);

/* Lets answers come from the cache, which must outlive `lines`.  Call it before the first query.
 * NULL: no cache. */
void tally_lines_use_cache(struct tally_lines *lines, struct tally_disk_cache *cache);

/* Answers for `count` addresses in the object (st_value), in ascending order.  One call for all
 * addresses is fastest.  The frames live as long as `lines`; their memory grows with the number of
 * addresses.  Returns 0 or -ENOMEM. */
int tally_lines_find(struct tally_lines *lines, const uint64_t *addresses, size_t count,
		     struct tally_line_answer *answers);

/* Returns the path of a companion file (dwz's common file, a .dwo) that the answers so far lacked
 * because it was not found, as the object has it; NULL: none.  Names of inlined functions are
 * missing then. */
const char *tally_lines_missing(const struct tally_lines *lines);

/* True if some of the file was not read: its units share so much that reading it would take more
 * than a multiple of its size. */
bool tally_lines_is_refused(const struct tally_lines *lines);

/* Stores newly compiled units in the cache for the next run.  Does nothing without a cache or
 * without new units. */
void tally_lines_keep(struct tally_lines *lines);

void tally_lines_free(struct tally_lines *lines); /* accepts NULL */

#endif
