/* The tables behind names: a mapped file's symbols, lines and inlined functions, read when the file
 * is hit first.  Of this room alone. */
#ifndef TALLY_PROFILE_NAME_TABLES_H
#define TALLY_PROFILE_NAME_TABLES_H

#include "object/cache.h"
#include "profile/kernel_identity.h"
#include "profile/names.h"
#include "symbol/symbol.h"

struct tally_kernel_modules;
struct tally_lines;

struct tally_name_table {
	struct tally_symbols *symbols; /* NULL: none */
	struct tally_lines *lines;     /* NULL: none */
	const struct tally_jit_dump *dump; /* of a JIT, whose code this is; NULL: none */
	struct tally_symbols *data;    /* variables, once they were asked for */
	/* the kernel's of the cache, when `symbols` had to be read after all */
	struct tally_symbols *kept;
	/* the kernel's, those whose files were looked for; NULL: none yet */
	struct tally_kernel_modules *modules;
	struct tally_cache_blob blob;  /* where names of the cache lie */
	/* what symbols and lines call things → string id of the readable name */
	struct tally_map texts;
	bool is_open, is_read, lines_tried, data_tried;
	bool is_jit, is_kernel; /* addresses are raw ones */
	bool is_partial; /* the kernel without its modules */
	/* `symbols` are the recording's (listed_names.h), and no file of this machine has others */
	bool is_listed;
	uint64_t listed_shift; /* of those: their addresses above offsets in the file */
	bool is_vmlinux; /* the kernel's symbols are those of its file */
	/* there are none of the kernel, for the reasons of struct tally_names_gaps */
	bool differs, hidden;
	uint32_t object; /* string id */
	enum tally_frame_kind kind;
};

/* The table of a file, or of the kernel (TALLY_FILE_KERNEL): made, but nothing large read yet.
 * NULL when memory is out.  Valid until a table of another file is asked for. */
struct tally_name_table *tally_name_table_of(struct tally_names *names, uint32_t file);

/* The object of a file, opened; NULL: none (the kernel, JIT code, what is missing).  Valid like the
 * table. */
struct tally_object_entry *tally_name_table_entry(struct tally_names *names, uint32_t file);

/* Reads symbols, and with `lines` the objects' lines, unless it was done before.  Threads may do
 * this for different files at a time; `entry` is the file's.  0 or -ENOMEM. */
int tally_name_table_read(struct tally_names *names, struct tally_name_table *table,
			  struct tally_object_entry *entry, bool lines);

/* Where the table's symbols have a place; false: nowhere. */
bool tally_name_table_address(const struct tally_names *names, const struct tally_name_table *table,
			      const struct tally_object_entry *entry,
			      const struct tally_place *place, uint64_t *address);

/* The symbol of a call at `address`, `before` bytes before where it returns to; NULL: none.
 * `entry` is the file's. */
const struct tally_symbol *tally_name_table_called(const struct tally_name_table *table,
						   struct tally_object_entry *entry,
						   uint64_t address, uint32_t before,
						   size_t *cursor);

/* Where the function at an address begins and ends by the unwind rules of its file, which a
 * stripped program still has; false: they don't tell.  The start alone, or UINT64_MAX. */
bool tally_name_table_bounds(const struct tally_name_table *table, struct tally_object_entry *entry,
			     uint64_t address, uint64_t *start, uint64_t *end);
uint64_t tally_name_table_start(const struct tally_name_table *table,
				struct tally_object_entry *entry, uint64_t address);

/* Whose the place and its symbol (NULL: none) are: the table's object, or one of the kernel's
 * modules.  A symbol of a module that has moved since the recording is taken away. */
uint32_t tally_name_table_object(struct tally_names *names, const struct tally_name_table *table,
				 const struct tally_place *place,
				 const struct tally_symbol **symbol);

/* kernel_object.c: the recorded kernel's vmlinux, looked for once: by the name that was asked for,
 * by build-id, by release; `names->vmlinux_shift` is set with it.  NULL: none. */
struct tally_object_entry *tally_kernel_object(struct tally_names *names);
/* That file is this one, from now on the names'; NULL: there is none.  Where none was found
 * before. */
void tally_kernel_object_use(struct tally_names *names, struct tally_object *object);

/* perf's MMAP of the kernel has the address of the symbol "_text" as its file offset, and the
 * symbol in its name; NULL when the recording has none. */
const struct tally_mapping *tally_kernel_reference(const struct tally_names *names,
						   const char **symbol);

/* The recorded kernel's release: the running one's where nothing says otherwise; "": not known. */
const char *tally_kernel_release(const struct tally_names *names,
				 char release[TALLY_KERNEL_RELEASE_BYTES]);

/* The build-id of the kernel that runs here. */
bool tally_kernel_running_build_id(struct tally_build_id *id);

/* Reads an object's symbols, from the cache where they are kept. */
int tally_name_table_read_object(const struct tally_names *names, struct tally_name_table *table,
				  struct tally_object_entry *entry);

/* kernel_names.c: reads the kernel's symbols, from the cache, kallsyms or vmlinux.  Nothing else of
 * `names` than what is told of the kernel is touched: other files may be read at the same time. */
int tally_kernel_names_read(struct tally_names *names, struct tally_name_table *table);

/* Makes sure that the symbols reach to `address`: the cache has the kernel's alone, not its
 * modules'. */
void tally_kernel_names_reach(struct tally_names *names, struct tally_name_table *table,
			      uint64_t address);

/* Something of the table has no name: if for want of the kernel's, that is worth a line.  Its
 * modules' files may have named all there is. */
static inline void tally_name_table_lacks(struct tally_names *names,
					  const struct tally_name_table *table)
{
	names->gaps.kernel_differs |= table->differs;
	names->gaps.kernel_hidden |= table->hidden;
}

void tally_name_table_release(struct tally_name_table *table);

#endif
