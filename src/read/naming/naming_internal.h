/* The sources of names: tables of files, the kernel and its modules. */
#ifndef TALLY_NAMING_INTERNAL_H
#define TALLY_NAMING_INTERNAL_H

#include "naming/naming.h"
#include "object/cache.h"
#include "object/object.h"
#include "symbol/symbol.h"

struct tally_kernel_modules;
struct tally_line_answer;
struct tally_lines;

/* The tables behind names: a mapped file's symbols, lines and inlined functions, read on the first
 * access to the file.  Used in this room only. */

struct tally_name_table {
	struct tally_symbols *symbols; /* NULL: none */
	struct tally_lines *lines;     /* NULL: none */
	const struct tally_jit_dump *dump; /* the dump of the JIT that made this code; NULL: none */
	struct tally_symbols *data;    /* variables, read on first use */
	/* for the kernel: the cached symbols, when kallsyms had to be read after all */
	struct tally_symbols *kept;
	/* for the kernel: the modules whose files were searched for; NULL: none yet */
	struct tally_kernel_modules *modules;
	struct tally_cache_blob blob;  /* holds the names that come from the cache */
	/* names of symbols and lines → string id of the readable name */
	struct tally_map texts;
	bool is_open, is_read, lines_tried, data_tried;
	bool is_refusal_noted; /* in the names' gaps */
	size_t sources_found; /* of so many functions, the symbol table's source files are known */
	bool is_memory; /* no file's: code that a process made in its own memory, or a guest's */
	bool is_jit, is_kernel; /* addresses are not offsets in a file */
	bool is_partial; /* the kernel's symbols without those of modules */
	/* `symbols` are the recording's own list; no file is read */
	bool is_listed;
	/* with is_listed: the symbols' addresses minus the offsets in the file */
	uint64_t listed_shift;
	/* the kernel has no symbols, for the reasons in struct tally_names_gaps */
	bool differs, hidden;
	uint32_t object; /* string id */
	enum tally_frame_kind kind;
};

/* Returns the table of a file, or of the kernel (TALLY_FILE_KERNEL); nothing large is read yet.
 * NULL when memory is out.  Valid until the table of another file is made. */
struct tally_name_table *tally_name_table_of(struct tally_names *names, uint32_t file);

/* Returns the opened object of a file; NULL: none (the kernel without vmlinux, JIT code, missing
 * files).  Valid as long as the table. */
struct tally_object_entry *tally_name_table_entry(struct tally_names *names, uint32_t file);

/* Reads the symbols, and with `lines` the object's lines, unless that was done before.  Several
 * threads may call this for different files at the same time; `entry` is the file's.  Returns 0 or
 * -ENOMEM. */
int tally_name_table_read(struct tally_names *names, struct tally_name_table *table,
			  struct tally_object_entry *entry, bool lines);

/* Converts a place to an address in the terms of the table's symbols.  Returns false if it has
 * none. */
bool tally_name_table_address(const struct tally_names *names, const struct tally_name_table *table,
			      const struct tally_object_entry *entry,
			      const struct tally_place *place, uint64_t *address);

/* Returns the symbol of the function that made a call.  `address` lies in the call, `before` bytes
 * before the return address.  NULL: none.  `entry` is the file's. */
const struct tally_symbol *tally_name_table_called(const struct tally_name_table *table,
						   struct tally_object_entry *entry,
						   uint64_t address, uint32_t before,
						   size_t *cursor);

/* Returns the symbol of the function that holds an address (NULL: none), and sets *end (may be NULL)
 * to the function's end. */
const struct tally_symbol *tally_name_table_symbol(const struct tally_name_table *table,
						   struct tally_object_entry *entry,
						   uint64_t address, uint64_t *end);

/* For code without a symbol.  _extent finds the bounds of the function at an address, by its file's
 * unwind rules or its code, and returns false if these don't tell.  _start returns the start of the
 * function, else the address itself, or the place's if the file is missing.  It returns UINT64_MAX
 * for kernels, JITs and code without a file. */
bool tally_name_table_extent(const struct tally_name_table *table, struct tally_object_entry *entry,
			     uint64_t address, uint64_t *start, uint64_t *end);
uint64_t tally_name_table_start(const struct tally_name_table *table,
				struct tally_object_entry *entry, const struct tally_place *place,
				uint64_t address);

/* Returns the object of a place and its symbol (NULL: none): the table's own, or a kernel module's.
 * Clears the symbol of a module that has moved since the recording. */
uint32_t tally_name_table_object(struct tally_names *names, const struct tally_name_table *table,
				 const struct tally_place *place,
				 const struct tally_symbol **symbol);

/* Returns perf's MMAP of the kernel, which has the address of the symbol "_text" as its file offset
 * and the symbol at the end of its name.  NULL: the recording has none. */
const struct tally_mapping *tally_kernel_reference(const struct tally_names *names,
						   const char **symbol);

/* Returns the recorded kernel's release; without one in the recording, the running kernel's if that
 * may be the recorded one.  "": not known. */
const char *tally_kernel_release(const struct tally_names *names,
				 char release[TALLY_KERNEL_RELEASE_BYTES]);

/* Sets the running kernel's build-id.  Returns false if it is not known. */
bool tally_kernel_running_build_id(struct tally_build_id *id);

/* Reads an object's symbols, from the cache if they are there.  Returns 0 or -ENOMEM. */
int tally_name_table_read_object(const struct tally_names *names, struct tally_name_table *table,
				  struct tally_object_entry *entry);

/* In kernel_names.c: reads the kernel's symbols from the cache, kallsyms or vmlinux.  Changes only
 * the kernel's part of `names`, so that other threads may read other files at the same time. */
int tally_kernel_names_read(struct tally_names *names, struct tally_name_table *table);

/* Makes sure that the symbols reach to `address`: the cache has no symbols of modules. */
void tally_kernel_names_reach(struct tally_names *names, struct tally_name_table *table,
			      uint64_t address);

/* Call this when a place of the table has no name: notes why the kernel's symbols are missing, if
 * they are.  It is not noted earlier, because the modules' own files may name all places. */
static inline void tally_name_table_lacks(struct tally_names *names,
					  const struct tally_name_table *table)
{
	names->gaps.kernel_differs |= table->differs;
	names->gaps.kernel_hidden |= table->hidden;
}

void tally_name_table_release(struct tally_name_table *table);

/* Kernel modules, read from their own files: lines, inlined functions, and names that kallsyms
 * doesn't have.  Used in this room only.  One thread at a time may use the modules of a table. */

/* Returns the symbol of a place.  `symbol` is the one by kallsyms (NULL: none).  If the place is in
 * a module, the module's file is used when kallsyms has no symbol, or when names->sources.modules
 * asks for files; otherwise returns `symbol`. */
const struct tally_symbol *tally_kernel_module_symbol(const struct tally_names *names,
						      struct tally_name_table *table,
						      const struct tally_place *place,
						      const struct tally_symbol *symbol);

/* Returns the file with the code of a module's symbol, linked to the module's address; NULL: it is
 * not here, or the symbol is the kernel's own. */
const struct tally_object *tally_kernel_module_object(const struct tally_names *names,
						      struct tally_name_table *table,
						      const struct tally_symbol *symbol);

/* Finds the module at an address by the recording's own records.  Returns false if they have none
 * there. */
bool tally_kernel_module_recorded(const struct tally_names *names, uint64_t address,
				  char name[TALLY_MODULE_NAME_BYTES]);

/* Fills in the answers for places in modules whose files have lines.  `addresses` are in the
 * table's terms and ascending; `symbols` may have NULLs.  Returns 0 or -ENOMEM. */
int tally_kernel_module_lines(const struct tally_names *names, struct tally_name_table *table,
			      const uint64_t *addresses, const struct tally_symbol *const *symbols,
			      size_t count, struct tally_line_answer *answers);

/* Returns the name of the module with the symbol; NULL: no module whose file was read has it. */
const char *tally_kernel_module_name(const struct tally_kernel_modules *modules,
				     const struct tally_symbol *symbol);

void tally_kernel_modules_free(struct tally_kernel_modules *modules); /* NULL is allowed */

#endif
