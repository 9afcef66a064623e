/* Finds the function at an address: sorted tables of symbols from an ELF object, kallsyms or a
 * JIT's perf map.
 *
 * Pure: tables are built from an object or from text.  Lookups take addresses in the object
 * ("st_value" addresses), or raw addresses for the kernel and JITs.  Immutable once built.
 */
#ifndef TALLY_SYMBOL_H
#define TALLY_SYMBOL_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_buffer;
struct tally_object;

struct tally_symbol {
	uint64_t start;
	/* first address behind it; for an unknown size, the next symbol's start */
	uint64_t end;
	const char *name;     /* as in the file (mangled); lives as long as the table */
	bool is_sized;        /* false: `end` is only a limit; the function may end before it */
	bool is_label;        /* local, without type and size: it may be inside of a function */
};

struct tally_symbols; /* a table */

/* Builds a table of functions from .symtab of the debug file or the object, .dynsym, and
 * synthesized NAME@plt for PLT slots (.plt, .plt.sec, .plt.got).  `debug` is the separate debug
 * file or NULL.  The table holds references of its own, so the caller may unref both objects.  An
 * object without symbols gives an empty table, not an error. */
int tally_symbols_from_object(const struct tally_object *object, const struct tally_object *debug,
			      struct tally_symbols **out, struct tally_error *err);

/* Builds a table of data symbols: variables, tables, labels in sections without code. */
int tally_symbols_of_data(const struct tally_object *object, const struct tally_object *debug,
			  struct tally_symbols **out, struct tally_error *err);

/* Gets the value of a symbol in .symtab by name, of any type.  Returns false when there is none. */
bool tally_symbols_value_in(const struct tally_object *object, const char *name, uint64_t *value);

/* A symbol, and the source file found for it. */
struct tally_symbol_source {
	const char *name;
	uint64_t start;
	/* result: "a.c", as given to the compiler; NULL: unknown.  Lies in the object */
	const char *source;
	uint32_t function; /* the caller's number */
};

/* Finds the symbols' source files by .symtab (STT_FILE), to tell local functions of one name apart.
 */
void tally_symbols_find_sources(const struct tally_object *object, const struct tally_object *debug,
				struct tally_symbol_source *wanted, size_t count);

/* Builds a table of the functions in /proc/kallsyms text, modules' included ("name [module]"; see
 * tally_symbol_module()).  Returns -EPERM when every address is 0 (kptr_restrict). */
int tally_symbols_from_kallsyms(const char *text, size_t length, struct tally_symbols **out,
				struct tally_error *err);

/* Builds a table from a perf map (lines "START SIZE name", hex).  Malformed lines are skipped and
 * counted.  If lines overlap, the later one wins. */
int tally_symbols_from_perf_map(const char *text, size_t length, size_t *skipped,
				struct tally_symbols **out, struct tally_error *err);

/* Returns the innermost symbol that contains `address`, or NULL. */
const struct tally_symbol *tally_symbols_find(const struct tally_symbols *symbols,
					      uint64_t address);

/* The same, faster for many addresses in ascending order; *cursor is 0 at first. */
const struct tally_symbol *tally_symbols_find_next(const struct tally_symbols *symbols,
						   uint64_t address, size_t *cursor);

/* Returns the kernel module of a kallsyms symbol ("ext4"), or NULL. */
const char *tally_symbol_module(const struct tally_symbols *symbols,
				const struct tally_symbol *symbol);

/* Returns all symbols, sorted by address. */
const struct tally_symbol *tally_symbols_list(const struct tally_symbols *symbols, size_t *count);

/* Packs a table into bytes.  Addresses become relative to `base`; symbols of kernel modules are
 * left out.  Returns -ERANGE when addresses are below `base` or too far apart, -ENOMEM; `out` is
 * invalid then. */
int tally_symbols_pack(const struct tally_symbols *symbols, uint64_t base,
		       struct tally_buffer *out);

/* Unpacks a table; `bytes`, which contains the names, must outlive it.  Returns -EBADMSG when they
 * are damaged, -ENOMEM. */
int tally_symbols_unpack(const void *bytes, size_t size, uint64_t base, struct tally_symbols **out);

void tally_symbols_free(struct tally_symbols *symbols);

/* Demangles C++ (Itanium), Rust (legacy and v0), D and OCaml.  Returns the readable name, malloc'd,
 * or NULL when the name isn't mangled.  Names are as perf prints them: C++ without parameters
 * ("ns::f"), Rust without its hash.  "@plt" and "@@VERSION" stay. */
char *tally_demangle(const char *name);

/* The same with C++'s parameters, which tell overloads apart ("ns::f(int)"), without the return
 * type. */
char *tally_demangle_signature(const char *name);

enum tally_mangled_variant {
	TALLY_MANGLED_PLAIN,
	TALLY_MANGLED_COMPLETE,  /* constructor or destructor of a complete object */
	TALLY_MANGLED_BASE,      /* … of a base-class subobject */
	TALLY_MANGLED_DELETING,  /* destructor that also frees the object */
	/* legacy Rust mangling; instances of a generic function differ only in their hash */
	TALLY_MANGLED_RUST_HASH,
};

/* Tells what distinguishes a mangled name from others with the same readable form.  For
 * TALLY_MANGLED_RUST_HASH, *hash (may be NULL) points to its 17 letters "h0123456789abcdef" in the
 * name. */
enum tally_mangled_variant tally_mangled_variant(const char *name, const char **hash);

#endif
