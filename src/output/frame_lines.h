/* The lines that `script` prints for addresses of stacks, each made once.
 *
 * A recording of 500 MB is 5 GB of text, of a few thousand different lines.  So a line is made when
 * its place is first met and kept; a frame costs a probe of a small cache, by the raw address and
 * the state of its process's mappings, and a copy.  What misses there (mappings change, another
 * address came to the slot) is looked up in its mappings again, and found by its place.
 *
 *     \t    7f3c11a0 step (inlined)
 *     \t    7f3c11a0 main+0x20 (/usr/bin/program)
 *
 * Not thread-safe.
 */
#ifndef TALLY_OUTPUT_FRAME_LINES_H
#define TALLY_OUTPUT_FRAME_LINES_H

#include "base/arena.h"
#include "base/map.h"
#include "naming/names.h"

/* Bytes behind a line's last that may be read, and are to be writable where it is copied to: copies
 * go by whole vectors, without a branch for each length. */
enum { TALLY_FRAME_LINE_SLACK = 64 };

/* What a line has besides the address. */
enum tally_frame_parts {
	TALLY_FRAME_SYMBOL = 1 << 0,
	TALLY_FRAME_OFFSET = 1 << 1, /* of a symbol */
	TALLY_FRAME_OBJECT = 1 << 2,
	TALLY_FRAME_SOURCE = 1 << 3, /* "\n  file.c:12" behind it, where it is known */
	/* of an address that heads no stack: the symbol's function alone, at the innermost line */
	TALLY_FRAME_ALONE = 1 << 4,
	/* None of that text, but: */
	/* an object for each function, with what is asked for, and a comma behind each */
	TALLY_FRAME_JSON = 1 << 5,
	TALLY_FRAME_NAMES = 1 << 6,  /* their names, with a ';' behind each */
	/* what is asked for of the innermost as CSV's cells, with a comma behind each */
	TALLY_FRAME_CELLS = 1 << 7,
	TALLY_FRAME_ADDRESS = 1 << 8, /* asks JSON for it */
	TALLY_FRAME_USUAL = TALLY_FRAME_SYMBOL | TALLY_FRAME_OFFSET | TALLY_FRAME_OBJECT,
};

struct tally_frame_line {
	/* whole lines: of what was inlined there, then of the symbol's function */
	const char *text;
	uint32_t length;
	uint32_t symbol; /* where in `text` " main+0x20 (/usr/bin/program)\n" begins */
};

struct tally_frame_lines_slot {
	uint64_t address, space;
	struct tally_frame_line line;
};

/* of the cache: 256 KiB, which stay in a core's second level */
enum { TALLY_FRAME_LINES_BITS = 13 };

struct tally_frame_lines {
	struct tally_names *names;
	unsigned parts; /* enum tally_frame_parts */
	struct tally_frame_lines_slot *cache;
	struct tally_map index; /* hash of place → made */
	struct {
		struct {
			struct tally_place place;
			struct tally_frame_line line;
		} * items;
		size_t count, capacity;
	} made;
	struct tally_arena arena;
	size_t bytes; /* of text in `arena` */
	/* beyond, all is dropped and made anew: addresses may be garbage without end */
	size_t bytes_max;
};

/* `names` must outlive the lines.  0 or -ENOMEM. */
int tally_frame_lines_init(struct tally_frame_lines *lines, struct tally_names *names,
			   unsigned parts);
void tally_frame_lines_release(struct tally_frame_lines *lines);

/* What an address means depends on: whose mappings it is looked up in, their state (a struct
 * tally_process's generation: the kernel's or the process's), and whether a byte before it is
 * looked up, as for return addresses. */
static inline uint64_t tally_frame_space(uint64_t generation, bool kernel, bool before)
{
	return generation << 2 | (uint64_t)kernel << 1 | before;
}

static inline struct tally_frame_lines_slot *tally_frame_lines_slot(
	const struct tally_frame_lines *lines, uint64_t space, uint64_t address)
{
	return &lines->cache[(address ^ space << 20) * 0x9e3779b97f4a7c15ull >>
			     (64 - TALLY_FRAME_LINES_BITS)];
}

/* Makes or finds the line that the cache doesn't hold. */
const struct tally_frame_line *tally_frame_lines_make(struct tally_frame_lines *lines, uint32_t pid,
						      uint64_t space, uint64_t address);

/* The line of a process's `address` now.  Valid until the next call; NULL when memory is out. */
static inline const struct tally_frame_line *tally_frame_line(struct tally_frame_lines *lines,
							      uint32_t pid, uint64_t space,
							      uint64_t address)
{
	const struct tally_frame_lines_slot *slot = tally_frame_lines_slot(lines, space, address);
	if (__builtin_expect(slot->address == address && slot->space == space, 1))
		return &slot->line;
	return tally_frame_lines_make(lines, pid, space, address);
}

#endif
