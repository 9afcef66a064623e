/* What a recording carries for its views: names, code, JIT dumps, stacks. */
#ifndef TALLY_NAMING_PACKED_H
#define TALLY_NAMING_PACKED_H

#include "base/buffer.h"
#include "base/map.h"
#include "naming/naming.h"
#include "symbol/lines.h"
#include "task/task.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_jit_dump;
struct tally_packed_jits;
struct tally_packer;
struct tally_place_table;
struct tally_reader;

/* The names that a recording carries: its sampled places with their functions, inlined frames and
 * source lines.
 *
 * A reader with these names needs no binaries, and sees the names of the time when they were
 * packed, even if files have changed since.  Only the sampled places are there; an address between
 * them is unknown.  docs/file-format.md has the layout.  Pure: bytes in, tables out; the bytes are
 * untrusted.  Not thread-safe.
 */

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

/* The machine code that a recording carries for the functions with most samples, so that they can
 * be annotated on machines that have neither their program nor its source. docs/file-format.md has
 * the layout (parts 6 and 9).  Pure: bytes in, tables out; the bytes are untrusted.  Not
 * thread-safe. */

/* The source of the code from `offset` to the next row's. */
struct tally_packed_code_row {
	uint32_t offset;
	/* Its frames: codes->frames.items[first] … [first + count), innermost first.  The last one
	 * is the function itself.  Only the innermost one has a line, and the file of the line;
	 * the names are mangled. */
	uint32_t count;
	size_t first;
};

/* A symbol at an address that the code refers to. */
struct tally_packed_code_target {
	uint64_t address;
	uint64_t offset; /* from the start of the symbol */
	const char *name; /* mangled */
};

struct tally_packed_code {
	uint32_t function;    /* index of the packed function */
	uint64_t start;       /* in the terms of its symbol table */
	uint64_t shown;       /* added to addresses to show them */
	const uint8_t *bytes; /* valid as long as the packed names */
	size_t size;
	unsigned machine;     /* e_machine */
	bool is_64bit, is_big_endian;
	const char *main_file; /* source file of the function itself; NULL: not known */
	size_t first_row, row_count, first_target, target_count;
};

struct tally_packed_codes {
	struct tally_buffer text, around;
	/* sorted by function */
	struct { struct tally_packed_code *items; size_t count, capacity; } codes;
	struct { struct tally_packed_code_row *items; size_t count, capacity; } rows;
	struct { struct tally_line_frame *items; size_t count, capacity; } frames;
	/* sorted by address within a code */
	struct { struct tally_packed_code_target *items; size_t count, capacity; } targets;
	uint64_t tables_max; /* bytes */
};

/* Reads parts 6 and 9 of a section; `names` has the section's strings and functions.  Returns 1, 0
 * if there is no part 6, -EBADMSG, -ENOTSUP or -ENOMEM.  If `out` isn't NULL, free it before the
 * names. */
int tally_packed_codes_read(const void *section, size_t size,
			    const struct tally_packed_names *names,
			    struct tally_packed_codes **out);
void tally_packed_codes_free(struct tally_packed_codes *codes); /* NULL is allowed */

/* Returns the function's code; NULL: there is none. */
const struct tally_packed_code *tally_packed_code_find(const struct tally_packed_codes *codes,
						       uint32_t function);

/* Returns the row of a byte of the code; NULL: not known. */
const struct tally_packed_code_row *tally_packed_code_row(const struct tally_packed_codes *codes,
							  const struct tally_packed_code *code,
							  uint64_t offset);

/* Returns the target at an address; NULL: not known. */
const struct tally_packed_code_target *tally_packed_code_target(
	const struct tally_packed_codes *codes, const struct tally_packed_code *code,
	uint64_t address);

/* Addresses of JIT code over time, as the recording has them (docs/file-format.md).  It is
 * taken from JIT dumps (symbol/jit_dump.h), and serves to find the code that an address belongs to.
 * The names are among the packed names; the code itself is not here.
 *
 * The bytes are untrusted.  Not thread-safe.
 */

/* Adds a part with the tasks' dumps to a section that was begun; nothing if there are no dumps.  A
 * failure is kept in `section`. */
void tally_packed_jits_write(const struct tally_tasks *tasks, struct tally_buffer *section);

/* Reads the dumps in tally's own section.  Returns 0; -EBADMSG, -ENOTSUP (written by a newer tally),
 * -EFBIG (above a limit, noted) or -ENOMEM. */
int tally_packed_jits_new(const void *section, size_t size, struct tally_packed_jits **out);
void tally_packed_jits_free(struct tally_packed_jits *jits); /* NULL is allowed */

/* Makes the dump for a file of the tasks, in time linear in its size.  Returns 1 (the caller frees
 * `out`), 0 if there is none, -EBADMSG, -EFBIG or -ENOMEM. */
int tally_packed_jits_find(const struct tally_packed_jits *jits, const struct tally_tasks *tasks,
			   uint32_t file, struct tally_jit_dump **out);

/* Call chains of samples with a stack copy, as the recording has them (docs/file-format.md).  They
 * were unwound where the programs were, so that a reader doesn't need the programs.
 *
 * Samples with a copy are numbered from 0 in the order of time.  The chains are collected while a
 * recording is read, or read from its section.  The bytes are untrusted.  Not thread-safe.
 */

/* A user stack, leaf first. */
struct tally_unwound_stack {
	const uint64_t *addresses;
	const bool *is_exact; /* by address; false: it is a return address */
	uint32_t count;
	bool is_cut;      /* the copy ended before the stack did */
	bool is_complete; /* it was unwound to its end */
};

struct tally_packed_chain {
	size_t first;
	uint32_t count;
	bool is_cut, is_complete;
};

/* The copy size that a cut stack would have needed; see tally_user_stack_needed(). */
struct tally_packed_need {
	uint32_t bytes; /* UINT32_MAX: at least that many */
	bool is_at_most;
};

struct tally_packed_stacks {
	struct { uint64_t *items; size_t count, capacity; } addresses;
	struct { bool *items; size_t count, capacity; } is_exact;
	struct { struct tally_packed_chain *items; size_t count, capacity; } chains;
	/* by sample: chain + 1; 0: none */
	struct { uint32_t *items; size_t count, capacity; } samples;
	/* by sample; only as far as any is cut */
	struct { struct tally_packed_need *items; size_t count, capacity; } needs;
	struct tally_map index; /* hash of a chain → its number */
};

/* Reads the chains from tally's own section.  Returns 1, 0 if it has none, -EBADMSG, -ENOTSUP or
 * -ENOMEM.  If `out` isn't NULL, the caller frees it. */
int tally_packed_stacks_read(const void *section, size_t size, struct tally_packed_stacks **out);
void tally_packed_stacks_free(struct tally_packed_stacks *stacks); /* NULL is allowed */

/* Gets the stack of a sample.  Returns false if the recording doesn't have it.  `out` is valid
 * until the next _note. */
bool tally_packed_stacks_at(const struct tally_packed_stacks *stacks, uint64_t sample,
			    struct tally_unwound_stack *out, struct tally_packed_need *need);

/* Notes the stack of a sample.  Earlier samples that were not noted have none.  Returns 0 or
 * -ENOMEM. */
int tally_packed_stacks_note(struct tally_packed_stacks *stacks, uint64_t sample,
			     const struct tally_unwound_stack *stack,
			     struct tally_packed_need need);

/* Adds the chains to a section.  A failure is kept in `section`. */
void tally_packed_stacks_write(const struct tally_packed_stacks *stacks,
			       struct tally_buffer *section);

#endif
