/* The names that a recording carries: its sampled places with their functions, inlined frames and
 * source lines.
 *
 * Whoever has the recording needs no binaries then, and what is shown is what was true when it was
 * made, though files may have changed since.  Only the sampled places are there: an address between
 * them is not known.  docs/file-format.md has the layout.  Pure: bytes in, tables out; the bytes
 * are untrusted.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_PACKED_NAMES_H
#define TALLY_PROFILE_PACKED_NAMES_H

#include "base/buffer.h"
#include "base/map.h"
#include "profile/names.h"

struct tally_place_table;
struct tally_profile;

struct tally_packed_function {
	const char *name;   /* as symbol table or DWARF have it, not demangled; NULL: no symbol */
	const char *object; /* where it is: a path, "[kernel.kallsyms]", "[nf_tables]" */
	uint64_t start;     /* UINT64_MAX: not known */
	enum tally_frame_kind kind;
	const char *source; /* what tells it from others of its name: "a.c"; NULL: not told */
	/* its number among the names' functions, once it has one; else UINT32_MAX */
	uint32_t known;
};

struct tally_packed_frame {
	uint32_t function;
	const char *file; /* NULL: not known */
	uint32_t line;
};

struct tally_packed_place {
	uint64_t address;
	uint64_t offset;       /* from the start of its symbol */
	uint32_t first, count; /* frames, innermost first; count is never 0 */
	uint8_t before;
};

/* What places are in: a file by path and what else records tell of it, or the kernel. */
struct tally_packed_object {
	bool is_kernel;
	const char *path;
	uint32_t pid, major, minor;
	uint64_t inode, inode_generation;
	struct tally_build_id build_id; /* size 0: not known */
	uint32_t first, count;          /* its places, by address and `before` */
};

struct tally_packed_names {
	struct tally_buffer text, scratch; /* strings end in NUL within `text` */
	struct { const char **items; size_t count, capacity; } strings;
	struct { struct tally_packed_function *items; size_t count, capacity; } functions;
	struct { struct tally_packed_frame *items; size_t count, capacity; } frames;
	struct { struct tally_packed_place *items; size_t count, capacity; } places;
	struct { struct tally_packed_object *items; size_t count, capacity; } objects;
	struct tally_map object_index; /* by a hash of what an object is told by → its number */
	/* by the tasks' file id: number + 1, NONE */
	struct { uint32_t *items; size_t count, capacity; } object_of_file;
	uint32_t kernel; /* the kernel's object; UINT32_MAX: none */
};

/* Reads tally's own section.  1; 0 where it has no names; -EBADMSG, -ENOTSUP (a newer tally's),
 * -ENOMEM.  `out` is to be freed where it isn't NULL. */
int tally_packed_names_read(const void *section, size_t size, struct tally_packed_names **out);
void tally_packed_names_free(struct tally_packed_names *packed); /* NULL is fine */

/* The packed place, or NULL.  `file` as tally_names_file() has it. */
const struct tally_packed_place *tally_packed_names_find(struct tally_packed_names *packed,
							 const struct tally_tasks *tasks,
							 uint32_t file,
							 const struct tally_place *place);

/* What is told of the object of a file, or NULL. */
const struct tally_packed_object *tally_packed_names_object(struct tally_packed_names *packed,
							    const struct tally_tasks *tasks,
							    uint32_t file);

/* Appends what tally's own section says of the profile's places and of `others` (of the same
 * recording; NULL: none), as far as they are known, and of its stacks; nothing where there is none.
 * The profile must be of a recording that was prepared for it (tally_recording_prepare_packing).
 * `places` and `known` (may be NULL) get how many there are that a file or the kernel has, and of
 * how many something is said.  0 or -ENOMEM. */
int tally_pack_names(struct tally_profile *profile, const struct tally_place_table *others,
		     struct tally_buffer *out, size_t *places, size_t *known);

#endif
