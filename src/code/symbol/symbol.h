/* Addresses → functions; code → text. */
#ifndef TALLY_SYMBOL_H
#define TALLY_SYMBOL_H

#include "base/error.h"
#include "object/object.h"
#include "symbol/lines.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_buffer;
struct tally_disassembler;
struct tally_object;

/* Finds the function at an address: sorted tables of symbols from an ELF object, kallsyms or a
 * JIT's perf map.
 *
 * Pure: tables are built from an object or from text.  Lookups take addresses in the object
 * ("st_value" addresses), or raw addresses for the kernel and JITs.  Immutable once built.
 */

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

/* Go's table of functions and lines (.gopclntab), which stripped programs keep.  Reads the formats
 * of Go 1.2, 1.16, 1.18 and 1.20 (see TALLY_GO_1_2).  Pure. */

struct tally_go_table {
	const uint8_t *bytes;
	size_t size;
	bool swap;
	uint32_t version; /* TALLY_GO_1_2 … */
	uint8_t quantum;  /* bytes of the smallest instruction */
	uint8_t word;     /* bytes of a pointer */
	uint64_t text;    /* address that entries are relative to, from 1.18 on; may be set later */
	uint64_t count;   /* of functions */
	/* offsets of the parts in `bytes` */
	uint64_t functions, data, names, units, files, values;
	uint64_t file_count; /* 1.2 only */
	/* Trees of inlined functions, from 1.18 on; NULL: unknown. */
	const uint8_t *trees;
	size_t trees_size;
};

/* Reads the head of a table.  Returns false when it is damaged. */
bool tally_go_table_open(struct tally_go_table *table, const uint8_t *bytes, size_t size,
			 bool swap);

/* Returns the offset and sets the size of the part with the functions' addresses (up to 1.16).  A
 * program loader relocates them.  Size 0: there is no such part. */
uint64_t tally_go_table_addresses(const struct tally_go_table *table, uint64_t *size);

struct tally_go_function {
	uint64_t start, end;
	uint64_t offset;  /* of its data in the bytes */
	const char *name; /* in the bytes; "" when it is damaged */
};

/* Reads the function at index < count.  Returns false when it is damaged. */
bool tally_go_table_function(const struct tally_go_table *table, uint64_t index,
			     struct tally_go_function *out);

/* Finds the function that holds an address.  Returns false when there is none. */
bool tally_go_table_find(const struct tally_go_table *table, uint64_t address,
			 struct tally_go_function *out);

enum { TALLY_GO_FRAMES_MAX = 64 };

/* Writes the frames at an address, innermost first: inlined functions, then the one that holds the
 * code.  The texts lie in the table.  Returns their number; 0: no function holds the address. */
size_t tally_go_table_frames(const struct tally_go_table *table, uint64_t address,
			     struct tally_line_frame frames[TALLY_GO_FRAMES_MAX]);

/* go_object.c: opens the table of an object.  Returns 1; 0 when there is none or it is damaged;
 * -ENOMEM.  Sets *copy to memory that the table needs and the caller frees, or to NULL. */
int tally_go_object_open(const struct tally_object *object, struct tally_go_table *table,
			 uint8_t **copy);

/* Symbols that simpleperf stores in its recordings: section 128, FILE, of its record_file_format.h
 * (AOSP, system/extras).
 *
 *     for each file: u32 size of the rest | path, NUL | u32 type | u64 min_vaddr | u32 count
 *                    each symbol: u64 address, u32 length, name, NUL
 *                    of a dex file: u32 count, u64 offsets
 *                    of an ELF file, since 2018: u64 offset of min_vaddr in the file
 *
 * Pure: bytes in, tables out. */

enum tally_simpleperf_kind {
	TALLY_SIMPLEPERF_KERNEL,
	TALLY_SIMPLEPERF_MODULE,
	TALLY_SIMPLEPERF_ELF,
	TALLY_SIMPLEPERF_DEX,
	TALLY_SIMPLEPERF_MAP, /* code of a JIT */
};

struct tally_simpleperf_file {
	const char *path;
	uint32_t kind;        /* an enum tally_simpleperf_kind, or a kind that is newer */
	uint64_t min_address; /* ELF: the lowest executable address, as linked */
	uint32_t symbol_count;
	const uint8_t *rest; /* the symbols and what follows them */
	size_t rest_size;
};

/* Gets the file at *offset of the section and moves *offset behind it.  Returns 1, 0 at the end, or
 * -EBADMSG.  The path points into the section. */
int tally_simpleperf_next(const void *section, size_t size, size_t *offset,
			  struct tally_simpleperf_file *out);

/* Makes a table of a file's symbols; the section must outlive it.  `min_offset` gets the offset of
 * min_address in an ELF file; UINT64_MAX: unknown.  Returns 0, -EBADMSG or -ENOMEM. */
int tally_symbols_from_simpleperf(const struct tally_simpleperf_file *file, uint64_t *min_offset,
				  struct tally_symbols **out);

/* Disassembles machine code and finds jump targets, with libLLVM, which is loaded on first use.
 *
 * Pure except for loading the library: bytes in, text out; the bytes are untrusted.  The
 * environment's TALLY_LIBLLVM names the library, for machines where it has another name.  Only one
 * thread at a time may use a disassembler.
 */

enum tally_instruction_kind {
	TALLY_INSTRUCTION_PLAIN,
	TALLY_INSTRUCTION_JUMP, /* may go to `target` */
	TALLY_INSTRUCTION_CALL, /* goes to `target` and returns */
	TALLY_INSTRUCTION_DATA, /* bytes that are no valid instruction */
};

enum { TALLY_INSTRUCTION_TEXT_MAX = 192 };

struct tally_instruction {
	enum tally_instruction_kind kind;
	uint32_t size;      /* bytes; never 0 */
	uint64_t target;    /* address, for jumps and calls */
	/* fixed address that it reads, writes or computes; 0: none */
	uint64_t reference;
	/* "addq $1, %rax": mnemonic, blank, operands.  For jumps and calls the target's address
	 * begins at `operand` and goes on to the end; otherwise `operand` is the text's length. */
	char text[TALLY_INSTRUCTION_TEXT_MAX];
	size_t operand;
};

/* Opens a disassembler for an ELF machine (EM_X86_64 …).  `is_intel` chooses x86's other syntax.
 * Returns 0; -ENOTSUP when the library or this file lacks the machine; -ENOENT with a hint without
 * the library. */
int tally_disassembler_open(unsigned machine, bool is_64bit, bool is_big_endian, bool is_intel,
			    struct tally_disassembler **out, struct tally_error *err);

/* Disassembles the first instruction of `available` bytes (never 0) that lie at `address`. */
void tally_disassemble(struct tally_disassembler *disassembler, const uint8_t *bytes,
		       size_t available, uint64_t address, struct tally_instruction *out);

void tally_disassembler_close(struct tally_disassembler *disassembler); /* accepts NULL */

#endif
