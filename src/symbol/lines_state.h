/* Internals of an object's lines. */
#ifndef TALLY_SYMBOL_LINES_STATE_H
#define TALLY_SYMBOL_LINES_STATE_H

#include "object/cache.h"
#include "symbol/lines.h"
#include "symbol/lines_cache.h"
#include "symbol/lines_unit.h"

enum tally_lines_unit_state { TALLY_LINES_UNREAD, TALLY_LINES_WANTED, TALLY_LINES_COMPILED };

struct tally_lines_slot {
	uint8_t state; /* enum tally_lines_unit_state */
	struct tally_lines_unit compiled;
};

struct tally_lines {
	struct tally_object *object, *debug;
	/* whichever of the two has debug information; NULL: neither */
	struct tally_object *source;
	struct tally_arena frames;
	/* The index, once the first query came; from the file or from the cache. */
	bool is_indexed;
	TALLY_VECTOR(struct tally_nested_item) index; /* address → unit */
	struct tally_lines_slot *units;
	size_t unit_count;
	/* The file, once a unit must be compiled. */
	bool is_open;
	struct tally_dwarf_file file; /* has `unit_count` units */
	struct tally_lines_program program;
	struct tally_disk_cache *cache; /* NULL: none */
	struct tally_cache_blob cached;
	struct tally_lines_blob blob; /* in `cached` */
	bool has_news; /* some units are not in the cache */
};

struct tally_lines_wanted { uint32_t *items; size_t count, capacity; }; /* a vector of units */

/* Opens the file and fills the members above: its units and the index.  Returns 0 or -ENOMEM. */
int tally_lines_open(struct tally_lines *lines);
void tally_lines_close(struct tally_lines *lines);

/* Compiles units, in several threads where that is faster.  Returns 0 or -ENOMEM. */
int tally_lines_compile_wanted(struct tally_lines *lines, struct tally_lines_wanted *wanted);

#endif
