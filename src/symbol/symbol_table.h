/* Building a table of symbols: what the readers of elf_symbols.c, plt.c, kallsyms.c and perf_map.c
 * have in common.  Of this room alone. */
#ifndef TALLY_SYMBOL_SYMBOL_TABLE_H
#define TALLY_SYMBOL_SYMBOL_TABLE_H

#include "base/arena.h"
#include "symbol/symbol.h"

#include <elf.h>
#include <stdbool.h>

enum tally_symbol_binding {
	TALLY_SYMBOL_LOCAL,
	TALLY_SYMBOL_GLOBAL,
	TALLY_SYMBOL_WEAK,
};

/* A symbol as its source has it. */
struct tally_symbol_entry {
	uint64_t start, end; /* end == start: of unknown size */
	/* where its section ends: what has no size ends there at the latest; 0: no limit */
	uint64_t limit;
	const char *name;
	uint32_t order;      /* among entries at one address: as in the file */
	uint16_t module;     /* 1-based index of the modules; 0: none */
	uint8_t binding;
	bool is_function; /* said to be one, rather than known by its section alone */
	bool is_label;    /* of its file alone, without type and size */
};

struct tally_symbols_builder {
	struct tally_symbol_entry *entries;
	size_t count, capacity;
	struct tally_arena names; /* those that lie in no file */
	const char **modules;
	size_t module_count, module_capacity;
	struct tally_object *objects[2]; /* references: names lie in their string tables */
	/* modules lie apart: a module's last symbol doesn't reach to the next module */
	bool is_kernel;
};

/* 0 or -ENOMEM.  The name must live as long as the table: in `names` or in one of the objects. */
int tally_symbols_add(struct tally_symbols_builder *builder,
		      const struct tally_symbol_entry *entry);

/* By address, then as in the file. */
void tally_symbols_sort(struct tally_symbols_builder *builder);

/* True when `b` is the better name for an address that both have: perf's order of preference. */
bool tally_symbol_is_better(const struct tally_symbol_entry *a, const struct tally_symbol_entry *b);

/* Sorts, gives the sizeless their ends and chooses one symbol of each address.  Releases the
 * builder, whether it succeeds or not. */
int tally_symbols_finish(struct tally_symbols_builder *builder, struct tally_symbols **out,
			 struct tally_error *err);

/* A table of symbols that are sorted and chosen already, to be filled in; then
 * tally_symbols_nest().  0 or -ENOMEM. */
int tally_symbols_new(size_t count, struct tally_symbol **list, struct tally_symbols **out);

/* Finds which symbols lie in others. */
void tally_symbols_nest(struct tally_symbols *symbols);

void tally_symbols_abandon(struct tally_symbols_builder *builder);

/* plt.c: NAME@plt for the slots of an object's procedure linkage table.  0 or -ENOMEM.  `builder`
 * holds the functions by now: those that a slot for an indirect function (IRELATIVE) is named for;
 * it is sorted. */
int tally_symbols_add_plt(struct tally_symbols_builder *builder, const struct tally_object *object);

/* elf_symbols.c: symbol tables' entries, of either class and byte order. */
struct tally_symtab {
	const uint8_t *bytes;
	size_t count;
	const char *names; /* ends in NUL, if names_size isn't 0 */
	size_t names_size;
	bool is_64bit, is_swapped;
};

/* False when there is no such section or it isn't sound. */
bool tally_symtab_open(const struct tally_object *object, const char *section,
		       struct tally_symtab *out);

/* The entry at index < count. */
void tally_symtab_entry(const struct tally_symtab *table, size_t index, Elf64_Sym *out);

/* "" when the offset is out of bounds. */
const char *tally_symtab_name(const struct tally_symtab *table, const Elf64_Sym *entry);

#endif
