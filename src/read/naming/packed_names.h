/* The names that a recording carries: its sampled places with their functions, inlined frames and
 * source lines.
 *
 * A reader with these names needs no binaries, and sees the names of the time when they were
 * packed, even if files have changed since.  Only the sampled places are there; an address between
 * them is unknown.  docs/file-format.md has the layout.  Pure: bytes in, tables out; the bytes are
 * untrusted.  Not thread-safe.
 */
#ifndef TALLY_NAMING_PACKED_NAMES_H
#define TALLY_NAMING_PACKED_NAMES_H

#include "base/buffer.h"
#include "base/map.h"
#include "naming/names.h"

struct tally_place_table;

struct tally_packed_function {
	const char *name;   /* as in the symbol table or DWARF, not demangled; NULL: no symbol */
	const char *object; /* a path, "[kernel.kallsyms]" or "[nf_tables]" */
	uint64_t start;     /* UINT64_MAX: not known */
	enum tally_frame_kind kind;
	/* source file that distinguishes it from others of its name, such as "a.c"; NULL:
	 * unknown */
	const char *source;
	const char *declared; /* path of the file that declares it; NULL: not known */
	/* its index among the names' functions, once it has one; else UINT32_MAX */
	uint32_t known;
};

struct tally_packed_frame {
	uint32_t function;
	const char *file; /* NULL: not known */
	uint32_t line;
};

struct tally_packed_place {
	uint64_t address;
	uint64_t offset;       /* distance from the start of its symbol */
	uint32_t first, count; /* range of frames, innermost first; count is never 0 */
	/* for a late place: as in struct tally_place_name, and the range of its frames; none: it
	 * is not charged to another instruction */
	int64_t moved;
	uint32_t late_first, late_count;
	uint8_t before;
};

enum { TALLY_PACKED_INHERITED = 2 }; /* beside 1 for the kernel */

/* An object with places: a file, known by its path and what else records say of it, or the
 * kernel. */
struct tally_packed_object {
	bool is_kernel, is_inherited; /* is_inherited: a fork copied the memory */
	const char *path;
	uint32_t pid, major, minor;
	uint64_t inode, inode_generation;
	struct tally_build_id build_id; /* size 0: not known */
	uint32_t first, count;          /* its places, sorted by address and `before` */
};

struct tally_packed_names {
	/* `text` holds the strings, each with a NUL at its end */
	struct tally_buffer text, scratch;
	struct { const char **items; size_t count, capacity; } strings;
	struct { struct tally_packed_function *items; size_t count, capacity; } functions;
	struct { struct tally_packed_frame *items; size_t count, capacity; } frames;
	struct { struct tally_packed_place *items; size_t count, capacity; } places;
	struct { struct tally_packed_object *items; size_t count, capacity; } objects;
	/* objects whose inlined functions are missing, and the file that is missing */
	struct { struct tally_packed_partial { const char *object, *companion; } *items;
		 size_t count, capacity; } partial;
	struct tally_map object_index; /* hash of an object's path and ids → its number */
	/* by file id of the tasks: number + 1; 0: not looked up; UINT32_MAX: none */
	struct { uint32_t *items; size_t count, capacity; } object_of_file;
	uint32_t kernel; /* number of the kernel's object; UINT32_MAX: none */
	uint64_t tables_max; /* bytes */
};

/* Reads the names in tally's own section.  Returns 1, 0 if it has no names, -EBADMSG, -ENOTSUP
 * (written by a newer tally), -EFBIG (above a limit, noted) or -ENOMEM.  If `out` isn't NULL, the caller frees it. */
int tally_packed_names_read(const void *section, size_t size, struct tally_packed_names **out);
void tally_packed_names_free(struct tally_packed_names *packed); /* NULL is allowed */

struct tally_reader;
/* Reads the number of a string, counted from 1.  Returns NULL for 0, which is no string. */
const char *tally_packed_names_string(const struct tally_packed_names *packed,
				      struct tally_reader *reader);

/* Returns the packed place, or NULL.  `file` is from tally_names_file(). */
const struct tally_packed_place *tally_packed_names_find(struct tally_packed_names *packed,
							 const struct tally_tasks *tasks,
							 uint32_t file,
							 const struct tally_place *place);

/* Returns the packed object of a file, or NULL. */
const struct tally_packed_object *tally_packed_names_object(struct tally_packed_names *packed,
							    const struct tally_tasks *tasks,
							    uint32_t file);

/* Returns the step that tally_own_put_step() wrote as this number. */
static inline uint64_t tally_packed_step(uint64_t number)
{
	if (number & 1)
		return ~(number >> 1);
	return number >> 1;
}

#endif
