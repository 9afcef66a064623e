/* address → function: sorted tables of symbols, from an ELF object, kallsyms or a JIT's perf map.
 *
 * Pure over what it is handed: tables are built from an object or from text; lookups take addresses
 * in the object ("st_value" addresses; the raw address for the kernel and JIT).  Immutable once
 * built.
 */
#ifndef TALLY_SYMBOL_SYMBOL_H
#define TALLY_SYMBOL_SYMBOL_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_buffer;
struct tally_object;

struct tally_symbol {
	uint64_t start;
	/* first address behind; where the size is unknown, the next symbol's start */
	uint64_t end;
	const char *name;     /* as in the file (mangled); lives as long as the table */
};

struct tally_symbols; /* a table */

/* .symtab of the debug file or the object, .dynsym, synthesized NAME@plt for PLT slots (.plt,
 * .plt.sec, .plt.got).  `debug` is the separate debug file or NULL.  Takes what it needs; both
 * objects may be unref'd afterwards.  An object without symbols gives an empty table, not an
 * error. */
int tally_symbols_from_object(const struct tally_object *object, const struct tally_object *debug,
			      struct tally_symbols **out, struct tally_error *err);

/* The same of data: variables, tables, the labels of sections without code. */
int tally_symbols_of_data(const struct tally_object *object, const struct tally_object *debug,
			  struct tally_symbols **out, struct tally_error *err);

/* The value of the symbol of a name in .symtab, whatever it stands for; false when there is
 * none. */
bool tally_symbols_value_in(const struct tally_object *object, const char *name, uint64_t *value);

/* A symbol of which the source file is asked for. */
struct tally_symbol_source {
	const char *name;
	uint64_t start;
	const char *source; /* found: "a.c", as the compiler was called; NULL: the tables don't say.
			       Lies in the object */
};

/* Local functions of one name are told apart by the file that .symtab says they are of (STT_FILE).
 */
void tally_symbols_find_sources(const struct tally_object *object, const struct tally_object *debug,
				struct tally_symbol_source *wanted, size_t count);

/* /proc/kallsyms text: functions, modules' too ("name [module]" gives module()).  -EPERM when every
 * address is 0 (kptr_restrict). */
int tally_symbols_from_kallsyms(const char *text, size_t length, struct tally_symbols **out,
				struct tally_error *err);

/* A perf map ("START SIZE name" a line, hex); malformed lines are skipped and counted. Later lines
 * win. */
int tally_symbols_from_perf_map(const char *text, size_t length, size_t *skipped,
				struct tally_symbols **out, struct tally_error *err);

/* The symbol that holds `address`, or NULL. */
const struct tally_symbol *tally_symbols_find(const struct tally_symbols *symbols,
					      uint64_t address);

/* The same, quicker where many addresses are asked for in ascending order; *cursor is 0 at
 * first. */
const struct tally_symbol *tally_symbols_find_next(const struct tally_symbols *symbols,
						   uint64_t address, size_t *cursor);

/* The kernel module of a kallsyms symbol ("ext4"), or NULL. */
const char *tally_symbol_module(const struct tally_symbols *symbols,
				const struct tally_symbol *symbol);

/* All symbols, sorted by address. */
const struct tally_symbol *tally_symbols_list(const struct tally_symbols *symbols, size_t *count);

/* A table as bytes, to be kept and read again: addresses relative to `base`, a kernel's without its
 * modules.  -ERANGE when they lie before it or too far apart, -ENOMEM; `out` is of no use then. */
int tally_symbols_pack(const struct tally_symbols *symbols, uint64_t base,
		       struct tally_buffer *out);

/* The table again; `bytes`, where its names lie, must outlive it.  -EBADMSG when they are damaged,
 * -ENOMEM. */
int tally_symbols_unpack(const void *bytes, size_t size, uint64_t base, struct tally_symbols **out);

void tally_symbols_free(struct tally_symbols *symbols);

/* C++ (Itanium), Rust (legacy and v0), D: the readable name, malloc'd; NULL when it isn't mangled.
 * As perf prints them: C++ without parameters ("ns::f"), Rust without its hash.  "@plt" and
 * "@@VERSION" stay. */
char *tally_demangle(const char *name);

/* The same with C++'s parameters, that tell overloads apart ("ns::f(int)"); without the type of
 * what it returns. */
char *tally_demangle_signature(const char *name);

enum tally_mangled_variant {
	TALLY_MANGLED_PLAIN,
	TALLY_MANGLED_COMPLETE,  /* a constructor or destructor of a whole object, */
	TALLY_MANGLED_BASE,      /* … of one that others derive from, */
	TALLY_MANGLED_DELETING,  /* … of one whose memory it frees */
	TALLY_MANGLED_RUST_HASH, /* a function of Rust's older mangling, which has no types of its
				    instances */
};

/* What tells a mangled name from others that read alike.  Of TALLY_MANGLED_RUST_HASH, *hash (may be
 * NULL) points to the 17 letters "h0123456789abcdef" in it. */
enum tally_mangled_variant tally_mangled_variant(const char *name, const char **hash);

#endif
