/* address → source line and the functions that were inlined there, from an object's DWARF.
 *
 * What an object says of a compile unit is read when an address of the unit is asked for first, and
 * kept.  DWARF 2 to 5, split (.dwo, .dwp) and shared between files (dwz).  No process is started.
 * The file's bytes are untrusted: what is damaged gives no answer, or less of one.  Of objects that
 * aren't linked yet (ET_REL) nothing is known.
 *
 * One thread at a time uses a `struct tally_lines`, and its object; it may start threads of its own
 * while it reads many units.
 */
#ifndef TALLY_SYMBOL_LINES_H
#define TALLY_SYMBOL_LINES_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct tally_disk_cache;
struct tally_object;
struct tally_lines; /* one object's lines and inlined functions */

/* One function at an address.  The innermost frame's file, line and column are those of the
 * address; the others' are those of the call to the frame before it, which was inlined. */
struct tally_line_frame {
	/* linkage name (mangled) if there is one, else its name; NULL: not known */
	const char *function;
	const char *file;     /* directory joined, as the compiler had it; NULL: not known */
	uint32_t line, column; /* 0: not known */
};

/* Innermost first; the last is the function that holds the code, all before it are inlined.  count
 * 0: there is no debug information for the address. */
struct tally_line_answer {
	const struct tally_line_frame *frames;
	uint32_t count;
};

/* Takes references to the objects.  `debug` is the separate debug file or NULL.  Reads next to
 * nothing yet: an object without debug information is no error.  0 or -ENOMEM. */
int tally_lines_new(struct tally_object *object, struct tally_object *debug,
		    struct tally_lines **out, struct tally_error *err);

/* Lets answers come from the cache, which must outlive `lines`; before anything is asked.  NULL: no
 * cache. */
void tally_lines_use_cache(struct tally_lines *lines, struct tally_disk_cache *cache);

/* Answers for `count` addresses in the object (st_value), in ascending order; best asked for all at
 * once.  The frames live as long as `lines`; their memory grows with the addresses asked for.  0 or
 * -ENOMEM. */
int tally_lines_find(struct tally_lines *lines, const uint64_t *addresses, size_t count,
		     struct tally_line_answer *answers);

/* Puts what was read since into the cache, for the next run; does nothing without a cache or
 * without news. */
void tally_lines_keep(struct tally_lines *lines);

void tally_lines_free(struct tally_lines *lines); /* NULL is fine */

#endif
