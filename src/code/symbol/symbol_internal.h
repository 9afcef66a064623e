/* Tables of symbols while they are read. */
#ifndef TALLY_SYMBOL_INTERNAL_H
#define TALLY_SYMBOL_INTERNAL_H

#include "base/arena.h"
#include "base/vector.h"
#include "symbol/symbol.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

/* Builds a table of symbols: shared by elf_symbols.c, plt.c, kallsyms.c and perf_map.c.  Internal
 * to this folder. */

enum tally_symbol_binding {
	TALLY_SYMBOL_LOCAL,
	TALLY_SYMBOL_GLOBAL,
	TALLY_SYMBOL_WEAK,
};

/* A symbol as read from its source. */
struct tally_symbol_entry {
	uint64_t start, end; /* end == start: unknown size */
	/* end of its section, where a symbol of unknown size ends at the latest; 0: no limit */
	uint64_t limit;
	const char *name;
	uint32_t order;      /* position in the file, among entries at one address */
	uint16_t module;     /* 1-based index of its module; 0: none */
	uint8_t binding;
	bool is_function; /* marked as a function, not just in a code section */
	bool is_label;    /* local, without type and size */
	bool is_open;     /* `end` was guessed */
};

struct tally_symbols_builder {
	struct tally_symbol_entry *entries;
	size_t count, capacity;
	struct tally_arena names; /* owns the names that are in no file */
	const char **modules;
	size_t module_count, module_capacity;
	struct tally_object *objects[2]; /* references: names lie in their string tables */
	/* Names may overlap in a crafted string table.  Bytes of all names of an object's symbols
	 * so far, and at most. */
	uint64_t name_bytes, name_bytes_max;
	/* modules are apart: a module's last symbol doesn't extend to the next module */
	bool is_kernel;
};

/* Adds a symbol.  Its name must live as long as the table: in `names` or in one of the objects.
 * Returns 0 or -ENOMEM. */
int tally_symbols_add(struct tally_symbols_builder *builder,
		      const struct tally_symbol_entry *entry);

/* Sorts by address, then by position in the file. */
void tally_symbols_sort(struct tally_symbols_builder *builder);

/* Counts a name of an object.  Returns 0; -EFBIG if the object's names exceed their maximum. */
int tally_symbols_charge(struct tally_symbols_builder *builder, const char *name);

/* Returns the entry with the best name of an address that all have, by perf's order of
 * preference. */
const struct tally_symbol_entry *tally_symbols_best(const struct tally_symbol_entry *entries,
						    size_t count);

/* Sorts, ends symbols of unknown size, and keeps one symbol for each address.  Always releases the
 * builder, even on failure. */
int tally_symbols_finish(struct tally_symbols_builder *builder, struct tally_symbols **out,
			 struct tally_error *err);

/* Makes an empty table for `count` symbols that are already sorted and chosen.  The caller fills it
 * and then calls tally_symbols_nest().  Returns 0 or -ENOMEM. */
int tally_symbols_new(size_t count, struct tally_symbol **list, struct tally_symbols **out);

/* Finds each symbol's outer symbol. */
void tally_symbols_nest(struct tally_symbols *symbols);

void tally_symbols_abandon(struct tally_symbols_builder *builder);

/* plt.c: adds NAME@plt for the slots of an object's procedure linkage table.  The builder must have
 * the functions already, since slots for indirect functions (IRELATIVE) take their names; it gets
 * sorted.  Returns 0, -EFBIG or -ENOMEM. */
int tally_symbols_add_plt(struct tally_symbols_builder *builder, const struct tally_object *object);

/* elf_symbols.c: an ELF symbol table, of either class and byte order. */
struct tally_symtab {
	const uint8_t *bytes;
	size_t count;
	const char *names; /* ends with a NUL unless names_size is 0 */
	size_t names_size;
	bool is_64bit, is_swapped;
};

/* Finds a symbol table.  Returns false when there is no such section or it is damaged. */
bool tally_symtab_open(const struct tally_object *object, const char *section,
		       struct tally_symtab *out);

/* Reads the entry at index < count. */
void tally_symtab_entry(const struct tally_symtab *table, size_t index, Elf64_Sym *out);

/* Returns an entry's name; "" when the offset is out of bounds. */
const char *tally_symtab_name(const struct tally_symtab *table, const Elf64_Sym *entry);

/* Flattens nested ranges into a list: from each address on, the innermost range.  Internal to this
 * folder. */

enum { TALLY_NESTED_NONE = UINT32_MAX };

struct tally_nested_range {
	uint64_t start, end; /* start < end */
	uint32_t id;
};

/* Holds from `start` up to the next item's start. */
struct tally_nested_item {
	uint64_t start;
	uint32_t id; /* TALLY_NESTED_NONE: no range */
};

struct tally_nested {
	/* input; of equal ranges the outer one comes first */
	TALLY_VECTOR(struct tally_nested_range) ranges;
	TALLY_VECTOR(struct tally_nested_item) items;    /* output, ascending */
	TALLY_VECTOR(struct tally_nested_range) working;
};

/* Makes the items from the ranges, which it reorders.  If two ranges overlap and neither contains
 * the other, the one that begins later wins.  Returns 0 or -ENOMEM. */
int tally_nested_flatten(struct tally_nested *nested);
void tally_nested_release(struct tally_nested *nested);

#endif
