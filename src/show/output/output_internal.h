/* The lines that `script` prints for the addresses of stacks; each is made once.
 *
 * A recording of 500 MB gives 5 GB of text but only a few thousand different lines. So a line is
 * made and kept when its place is first met. After that, a frame costs a probe of a small cache (by
 * the raw address and the state of its process's mappings) and a copy. After a miss, the address is
 * resolved in its process's mappings again, and the line is found by its place.
 *
 *     \t    7f3c11a0 step (inlined)
 *     \t    7f3c11a0 main+0x20 (/usr/bin/program)
 *
 * Not thread-safe.
 */
#ifndef TALLY_OUTPUT_INTERNAL_H
#define TALLY_OUTPUT_INTERNAL_H

#include "base/arena.h"
#include "base/map.h"
#include "naming/naming.h"

/* Bytes after a line that copying may read, and that must be writable at the destination: copies
 * move whole vectors to avoid a branch for each length. */
enum { TALLY_FRAME_LINE_SLACK = 64 };

/* Parts of a line besides the address. */
enum tally_frame_parts {
	TALLY_FRAME_SYMBOL = 1 << 0,
	TALLY_FRAME_OFFSET = 1 << 1, /* of a symbol */
	TALLY_FRAME_OBJECT = 1 << 2,
	TALLY_FRAME_SOURCE = 1 << 3, /* "\n  file.c:12" after it, if known */
	/* For an address outside a stack: only the symbol's function, with the innermost source
	 * line. */
	TALLY_FRAME_ALONE = 1 << 4,
	/* Other formats than that text: */
	/* a JSON object for each function with the requested parts, each followed by a comma */
	TALLY_FRAME_JSON = 1 << 5,
	TALLY_FRAME_NAMES = 1 << 6,  /* the functions' names, each followed by ';' */
	/* the innermost function's requested parts as CSV cells, each followed by a comma */
	TALLY_FRAME_CELLS = 1 << 7,
	TALLY_FRAME_ADDRESS = 1 << 8, /* JSON: include the address */
};

struct tally_frame_line {
	/* whole lines: the inlined functions, then the symbol's function */
	const char *text;
	uint32_t length;
	uint32_t symbol; /* offset in `text` of " main+0x20 (/usr/bin/program)\n" */
};

struct tally_frame_lines_slot {
	uint64_t address, space;
	struct tally_frame_line line;
};

/* log2 of the cache's slots: 256 KiB, which fits in a core's second-level cache */
enum { TALLY_FRAME_LINES_BITS = 13 };

struct tally_frame_lines {
	struct tally_names *names;
	unsigned parts; /* bits of enum tally_frame_parts */
	struct tally_frame_lines_slot *cache;
	struct tally_map index; /* hash of a place → index in `made` */
	struct {
		struct {
			struct tally_place place;
			struct tally_frame_line line;
		} * items;
		size_t count, capacity;
	} made;
	struct tally_arena arena;
	size_t bytes; /* bytes of text in `arena` */
	/* at this size all lines are dropped: corrupt addresses may be endless */
	size_t bytes_max;
};

/* `names` must outlive the lines. Returns 0 or -ENOMEM. */
int tally_frame_lines_init(struct tally_frame_lines *lines, struct tally_names *names,
			   unsigned parts);
void tally_frame_lines_release(struct tally_frame_lines *lines);

/* Combines everything that an address's meaning depends on: the state of the mappings (the
 * generation of a struct tally_process, the kernel's or the process's own), and whether the address
 * is a return address, so that the byte before it decides. */
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

/* Makes or finds a line that the cache doesn't hold. */
const struct tally_frame_line *tally_frame_lines_make(struct tally_frame_lines *lines, uint32_t pid,
						      uint64_t space, uint64_t address);

/* Returns the line of `address` in a process, with its current mappings. Valid until the next call.
 * NULL: out of memory. */
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
