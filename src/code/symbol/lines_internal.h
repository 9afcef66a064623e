/* The parts of lines.h: DWARF's bytes, its line programs, one unit compiled, what the cache keeps. */
#ifndef TALLY_SYMBOL_LINES_INTERNAL_H
#define TALLY_SYMBOL_LINES_INTERNAL_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/map.h"
#include "base/reader.h"
#include "base/vector.h"
#include "symbol/symbol_internal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_dwarf_scratch;
struct tally_lines_blob;
struct tally_object;

/* Reads DWARF's sections, units, abbreviations and attributes.
 *
 * Source: the DWARF Debugging Information Format, versions 2 to 5, and GNU's extensions (split
 * DWARF before version 5, dwz).  All bytes are untrusted: readers are bounded and their errors
 * stick; an offset is checked where it is used.  An open file doesn't change, and several threads
 * may read it; a struct tally_dwarf_scratch belongs to one thread.
 */

enum tally_dwarf_section {
	TALLY_DWARF_INFO,
	TALLY_DWARF_ABBREV,
	TALLY_DWARF_STR,
	TALLY_DWARF_LINE_STR,
	TALLY_DWARF_STR_OFFSETS,
	TALLY_DWARF_ADDR,
	TALLY_DWARF_RANGES,
	TALLY_DWARF_RNGLISTS,
	TALLY_DWARF_LINE,
	TALLY_DWARF_ARANGES,
	TALLY_DWARF_SECTIONS,
};

struct tally_dwarf_bytes {
	const uint8_t *bytes;
	uint64_t size;
	/* strings that begin below this offset end with a NUL inside the section */
	uint64_t terminated;
};

/* ---- files and units ---- */

/* An attribute's value, not yet interpreted. */
struct tally_dwarf_value {
	uint16_t form;
	uint64_t number;  /* constant, offset, index or address; 0 for blocks */
	const char *text; /* DW_FORM_string */
};

/* The attributes that give the addresses of a DIE's code; form 0: absent. */
struct tally_dwarf_extent {
	struct tally_dwarf_value low_pc, high_pc, ranges;
};

struct tally_dwarf_range {
	uint64_t start, end;
};

/* The data in a unit's header and root DIE; strings live as long as its file. */
struct tally_dwarf_unit {
	struct tally_dwarf_file *file;
	uint64_t offset;    /* of its header in .debug_info */
	uint64_t first_die; /* offset of its root DIE */
	uint64_t end;
	uint64_t abbrev_offset;
	uint8_t version, address_size, offset_size, type;
	bool has_lines;
	uint16_t tag; /* of the root DIE; 0: damaged */
	uint64_t str_offsets_base, addr_base, rnglists_base;
	/* base of DW_AT_ranges in a split unit before version 5 */
	uint64_t ranges_base;
	uint64_t low_pc;      /* base of range lists */
	struct tally_dwarf_extent extent;
	uint64_t line_offset;
	uint64_t dwo_id;
	const char *name, *directory, *dwo_name; /* NULL: none */
	/* For a split unit: the unit in the program that it belongs to, whose addresses and lines
	 * it uses. */
	const struct tally_dwarf_unit *skeleton;
};

struct tally_dwarf_file {
	/* a reference, or NULL when the sections belong to another file */
	struct tally_object *object;
	struct tally_dwarf_bytes sections[TALLY_DWARF_SECTIONS];
	bool swap;
	bool is_split; /* .dwo or .dwp */
	TALLY_VECTOR(struct tally_dwarf_unit) units; /* sorted by offset */
	struct tally_dwarf_file *supplement; /* dwz's common file; owned */
};

/* Finds the sections of an object: ".debug_info" …, or ".debug_info.dwo" … with `is_split`.  Takes
 * a reference. */
void tally_dwarf_file_init(struct tally_dwarf_file *file, struct tally_object *object,
			   bool is_split);
void tally_dwarf_file_release(struct tally_dwarf_file *file);

/* Finds the units and reads their roots; `skeleton` is the one of a .dwo file, otherwise NULL.
 * Returns 0 or -ENOMEM. */
int tally_dwarf_read_units(struct tally_dwarf_file *file, struct tally_dwarf_scratch *scratch,
			   const struct tally_dwarf_unit *skeleton);

/* Reads one unit's header and root at an offset of .debug_info.  `contribution` adjusts offsets in
 * a .dwp file and is NULL elsewhere.  Returns false at damage or for a type unit, which is not
 * needed here; sets the unit's offset and end even then. */
struct tally_dwarf_contribution {
	uint64_t abbrev, str_offsets, rnglists;
};
bool tally_dwarf_read_unit(struct tally_dwarf_file *file, struct tally_dwarf_scratch *scratch,
			   uint64_t offset, const struct tally_dwarf_contribution *contribution,
			   const struct tally_dwarf_unit *skeleton, struct tally_dwarf_unit *unit);

/* Returns the unit that contains an offset of .debug_info, or NULL. */
const struct tally_dwarf_unit *tally_dwarf_unit_at(const struct tally_dwarf_file *file,
						   uint64_t offset);

/* Returns a reader of a section that stands at `offset`, and has failed if that is not inside. */
struct tally_reader tally_dwarf_reader_at(const struct tally_dwarf_file *file,
					  enum tally_dwarf_section section, uint64_t offset);

/* Reads the length at the start of a unit or table and sets the reader's end to its end.  Returns
 * false when that is past the reader's end. *offset_size: 8 for the 64-bit format, otherwise 4. */
bool tally_dwarf_enter_length(struct tally_reader *reader, uint8_t *offset_size);

/* ---- abbreviations ---- */

struct tally_dwarf_attribute {
	uint16_t name, form;
	uint8_t size; /* bytes of the value in a DIE, or one of the constants below */
	int64_t constant; /* DW_FORM_implicit_const */
};

enum { TALLY_DWARF_SIZE_VARIES = 0xfe, TALLY_DWARF_SIZE_UNKNOWN = 0xff };

/* Returns the size in bytes of a form's value in a unit's DIEs, or one of the constants above. */
uint8_t tally_dwarf_form_size(uint64_t form, const struct tally_dwarf_unit *unit);

struct tally_dwarf_abbrev {
	uint64_t code;
	uint32_t first, count;  /* attributes */
	uint32_t size;          /* bytes of all values; UINT32_MAX: varies or unknown */
	/* offset in the values of a DW_FORM_ref4 to the next sibling; UINT32_MAX: none */
	uint32_t sibling_at;
	uint16_t tag;
	bool has_children;
	bool has_code;       /* has DW_AT_low_pc or DW_AT_ranges */
	bool is_declaration; /* has DW_AT_declaration */
};

struct tally_dwarf_abbrevs {
	const struct tally_dwarf_file *file;
	uint64_t offset;
	uint8_t version, address_size, offset_size; /* which the sizes are for */
	bool is_dense; /* code = index + 1 */
	bool is_used;
	TALLY_VECTOR(struct tally_dwarf_abbrev) list; /* sorted by code */
	TALLY_VECTOR(struct tally_dwarf_attribute) attributes;
};

enum { TALLY_DWARF_ABBREVS_KEPT = 256 };

/* The working memory of one reading thread.
 *
 * Compilers give each unit its own abbreviations, lines and range lists, so a file is read about
 * once.  A crafted file may make all its units share one large table, or let the tables overlap.
 * So all reading is charged, in bytes, to a budget that is in proportion to the file. */
struct tally_dwarf_scratch {
	struct tally_dwarf_abbrevs kept[TALLY_DWARF_ABBREVS_KEPT];
	struct tally_dwarf_abbrevs root; /* only the first abbreviation, for the unit's root */
	TALLY_VECTOR(struct tally_dwarf_range) ranges;
	bool out_of_memory;
	bool is_exhausted; /* something was not read, because the budget was used up */
	uint64_t budget;   /* bytes that may still be read */
};

/* Adds what reading a file may cost, with dwz's common file. */
void tally_dwarf_allow(struct tally_dwarf_scratch *scratch, const struct tally_dwarf_file *file);

/* Charges bytes to the budget.  Returns false if it is used up. */
static inline bool tally_dwarf_charge(struct tally_dwarf_scratch *scratch, uint64_t bytes)
{
	if (__builtin_expect(bytes > scratch->budget, 0)) {
		scratch->budget = 0;
		scratch->is_exhausted = true;
		return false;
	}
	scratch->budget -= bytes;
	return true;
}

void tally_dwarf_scratch_release(struct tally_dwarf_scratch *scratch);
/* Drops everything that belongs to a file that will be closed. */
void tally_dwarf_scratch_forget(struct tally_dwarf_scratch *scratch,
				const struct tally_dwarf_file *file);

/* Returns a unit's table, valid until the next call for another unit; NULL without memory. */
const struct tally_dwarf_abbrevs *tally_dwarf_abbrevs_of(struct tally_dwarf_scratch *scratch,
							 const struct tally_dwarf_unit *unit);

/* Fills `out` (zeroed or filled before) with at most `limit` abbreviations, unless it has them
 * already; SIZE_MAX reads all.  Returns 0 or -ENOMEM. */
int tally_dwarf_abbrevs_read(struct tally_dwarf_scratch *scratch, struct tally_dwarf_abbrevs *out,
			     const struct tally_dwarf_unit *unit, size_t limit);
void tally_dwarf_abbrevs_release(struct tally_dwarf_abbrevs *abbrevs);

const struct tally_dwarf_abbrev *tally_dwarf_abbrevs_search(
	const struct tally_dwarf_abbrevs *abbrevs, uint64_t code);

static inline const struct tally_dwarf_abbrev *tally_dwarf_abbrev_of(
	const struct tally_dwarf_abbrevs *abbrevs, uint64_t code)
{
	if (__builtin_expect(abbrevs->is_dense, 1))
		return code - 1 < abbrevs->list.count ? &abbrevs->list.items[code - 1] : NULL;
	return tally_dwarf_abbrevs_search(abbrevs, code);
}

/* ---- attributes ---- */

/* Skips a value.  Returns false at an unknown form or at the end of the bytes. */
bool tally_dwarf_skip_value(struct tally_reader *reader, const struct tally_dwarf_unit *unit,
			    const struct tally_dwarf_attribute *attribute);
bool tally_dwarf_read_value(struct tally_reader *reader, const struct tally_dwarf_unit *unit,
			    const struct tally_dwarf_attribute *attribute,
			    struct tally_dwarf_value *value);

/* Interpret a value in its unit.  Return NULL or false when the form doesn't fit, or when the value
 * points to something that isn't there. */
const char *tally_dwarf_string(const struct tally_dwarf_unit *unit,
			       const struct tally_dwarf_value *value);

/* Finds the DIE that a value refers to: its unit, and its offset in that unit's .debug_info. */
bool tally_dwarf_reference(const struct tally_dwarf_unit *unit,
			   const struct tally_dwarf_value *value,
			   const struct tally_dwarf_unit **other, uint64_t *offset);

/* Appends the addresses of a DIE's code to scratch->ranges, at most `limit` entries.  Returns 0 or
 * -ENOMEM. */
int tally_dwarf_read_extent(struct tally_dwarf_scratch *scratch,
			    const struct tally_dwarf_unit *unit,
			    const struct tally_dwarf_extent *extent, size_t limit);

/* Appends the addresses of a unit's code by its root; nothing when the root doesn't give any. */
int tally_dwarf_unit_ranges(struct tally_dwarf_scratch *scratch,
			    const struct tally_dwarf_unit *unit);

/* Line number programs. */

/* Holds from `address` up to the next row of its sequence. */
struct tally_dwarf_row {
	uint64_t address;
	uint32_t file; /* index in the program's own file table */
	uint32_t line, column;
};

struct tally_dwarf_sequence {
	uint64_t start, end;
	size_t first, count; /* rows, ascending, each at another address */
};

struct tally_dwarf_source {
	const char *name;
	uint64_t directory;
};

struct tally_dwarf_lines {
	uint8_t version;
	/* from version 5 on, [0] is the compilation's directory */
	TALLY_VECTOR(const char *) directories;
	TALLY_VECTOR(struct tally_dwarf_source) sources;
	TALLY_VECTOR(struct tally_dwarf_row) rows;
	TALLY_VECTOR(struct tally_dwarf_sequence) sequences;
};

/* Runs a unit's program; `lines` may have been used before.  Damage ends the program; the rows
 * before it are kept.  Returns 0 or -ENOMEM. */
int tally_dwarf_lines_read(struct tally_dwarf_scratch *scratch, struct tally_dwarf_lines *lines,
			   const struct tally_dwarf_unit *unit);
/* Reads the tables of directories and files alone. */
int tally_dwarf_lines_read_tables(struct tally_dwarf_scratch *scratch,
				  struct tally_dwarf_lines *lines,
				  const struct tally_dwarf_unit *unit);
void tally_dwarf_lines_release(struct tally_dwarf_lines *lines);

/* Returns a file's path, joined with its directory and the unit's, in the arena; NULL when there is
 * no such file, or without memory. */
const char *tally_dwarf_source_path(const struct tally_dwarf_lines *lines,
				    const struct tally_dwarf_unit *unit, uint64_t file,
				    struct tally_arena *arena);

/* Other files of an object's DWARF: split units (.dwo, packed in a .dwp), and dwz's common file,
 * which has what several objects share.
 *
 * The files' names come from the untrusted object, so each opened file must prove that it belongs:
 * by the id of the split unit, or by the build-id of the common file. */

/* A package of split units: OBJECT.dwp.  It doesn't change once open. */
struct tally_dwarf_package {
	struct tally_dwarf_file file; /* object NULL: there is no package */
	const uint8_t *slots, *rows, *columns, *offsets;
	uint32_t slot_count, row_count, column_count;
	uint16_t version;
};

void tally_dwarf_package_open(struct tally_dwarf_package *package, const char *object_path);
void tally_dwarf_package_release(struct tally_dwarf_package *package);

/* The split part of a unit. */
struct tally_dwarf_split {
	/* a .dwo file, which the caller closes; unused for a unit in a package */
	struct tally_dwarf_file file;
	const struct tally_dwarf_unit *unit; /* NULL: not found */
	struct tally_dwarf_unit packed;
};

/* Finds the split part of a skeleton: in the package, or in a .dwo file where the unit was compiled
 * or beside the object.  Returns 0 (even when there is none) or -ENOMEM. */
int tally_dwarf_split_open(struct tally_dwarf_split *split, struct tally_dwarf_scratch *scratch,
			   const struct tally_dwarf_unit *skeleton,
			   struct tally_dwarf_package *package, const char *object_path);
void tally_dwarf_split_release(struct tally_dwarf_split *split,
			       struct tally_dwarf_scratch *scratch);

/* Opens file->supplement and reads its units.  Sets *missing to the path of a supplement that the
 * file names and that is not found (it lies in the file), or to NULL.  Returns 0 or -ENOMEM. */
int tally_dwarf_open_supplement(struct tally_dwarf_file *file, struct tally_dwarf_scratch *scratch,
				const char **missing);

/* A compiled unit: everything that a compile unit says of addresses, in a few flat arrays.
 *
 * Addresses are 32-bit distances from `base`.  The arrays contain no pointers and are the same in
 * memory and in a cache.  A cache may be damaged, so code that uses a number in them as an index
 * checks it.
 */

/* The addresses of the program's code.  DWARF of other addresses belongs to code that the linker
 * removed. */
struct tally_lines_code {
	TALLY_VECTOR(struct tally_dwarf_range) ranges; /* ascending, disjoint */
};

/* Data that all units of a program share; it doesn't change while they are compiled. */
struct tally_lines_program {
	struct tally_lines_code code;
	struct tally_dwarf_package package;
	const char *path;   /* of the object */
	const char *missing; /* path of dwz's common file, if it was not found; NULL */
	bool is_changeable;  /* dwz's common file is not this user's or root's */
};

/* Returns how many bytes all names of a file of this size may have.  Names may overlap in a crafted
 * string table; honest ones take less than the file, whose sections may be compressed. */
static inline uint64_t tally_lines_names_max(uint64_t file_size)
{
	return (1 << 20) + 16 * file_size;
}

bool tally_lines_is_code(const struct tally_lines_code *code, uint64_t address);

enum {
	TALLY_LINES_NONE = UINT32_MAX, /* no node, no name */
	TALLY_LINES_NO_FILE = UINT16_MAX,
	TALLY_LINES_GAP = UINT16_MAX - 1, /* a row's file: the table has no line from here on */
	TALLY_LINES_FILES_MAX = UINT16_MAX - 1,
	/* functions at one address; what is inlined deeper belongs to the last of them */
	TALLY_LINES_INLINED_MAX = 128,
	TALLY_LINES_NAME_MAX = 1 << 16, /* bytes; a string of this length or more is no name */
};

struct tally_lines_row {
	uint32_t line;
	uint16_t column, file;
};

/* A function, or an inlined copy of one. */
struct tally_lines_node {
	uint32_t parent; /* node that it is inlined into; lower than its own index */
	uint32_t name;
	uint32_t call_line;
	uint16_t call_column, call_file;
};

struct tally_lines_unit {
	uint64_t base;
	uint32_t row_count, range_count, node_count, name_count, file_count;
	const uint32_t *row_starts; /* ascending */
	const struct tally_lines_row *rows;
	const uint32_t *range_starts; /* ascending */
	const uint32_t *range_nodes;  /* the innermost node from there on, or TALLY_LINES_NONE */
	const struct tally_lines_node *nodes;
	/* Strings of a compiled unit.  A unit from a cache has offsets into the cache's strings
	 * instead. */
	const char *const *names, *const *files;
	const uint32_t *name_offsets, *file_offsets;
	/* by name: the file that declares the function, or TALLY_LINES_NO_FILE */
	const uint16_t *name_sources;
	struct tally_arena arena; /* owns the arrays of a compiled unit */
	bool is_partial; /* something that belongs to it wasn't found or read: don't cache it */
	bool is_refused; /* it was not read whole, because the file exceeds its budget */
	/* a file that belongs to it is not this user's or root's: don't cache it */
	bool is_changeable;
};

/* Return a unit's string, or NULL; `blob` is the cache's blob, which the unit may come from. */
const char *tally_lines_unit_name(const struct tally_lines_unit *unit,
				  const struct tally_lines_blob *blob, uint32_t index);
const char *tally_lines_unit_file(const struct tally_lines_unit *unit,
				  const struct tally_lines_blob *blob, uint32_t index);

/* The file tables of a unit other than the one that is being compiled. */
struct tally_lines_tables {
	const struct tally_dwarf_unit *unit; /* NULL: none */
	struct tally_dwarf_lines lines;
};

enum { TALLY_LINES_TABLES_KEPT = 64 };

/* The working memory of one compiling thread. */
struct tally_lines_scratch {
	struct tally_dwarf_scratch dwarf;
	struct tally_dwarf_abbrevs abbrevs; /* of the current unit */
	struct tally_dwarf_lines lines;
	struct tally_nested nested;
	struct tally_map names_by_origin; /* address of a DIE's bytes → index into `names` */
	TALLY_VECTOR(const char *) names;
	TALLY_VECTOR(uint16_t) name_sources;
	TALLY_VECTOR(const char *) files;
	struct tally_lines_tables tables[TALLY_LINES_TABLES_KEPT];
	/* indexed by the line table's file: 0, or 1 + index into `files` */
	TALLY_VECTOR(uint16_t) file_index;
	TALLY_VECTOR(struct tally_lines_node) nodes;
	TALLY_VECTOR(uint16_t) depths; /* by node: functions that it is inlined into */
	TALLY_VECTOR(uint32_t) around; /* by depth: the node around the current DIE */
	TALLY_VECTOR(uint32_t) row_starts;
	TALLY_VECTOR(struct tally_lines_row) rows;
	struct tally_arena *arena; /* of the unit that is being compiled */
};

void tally_lines_scratch_release(struct tally_lines_scratch *scratch);

/* Compiles a unit with its split part.  Returns 0 or -ENOMEM; the caller releases the unit in both
 * cases. */
int tally_lines_compile(struct tally_lines_scratch *scratch, const struct tally_dwarf_unit *unit,
			struct tally_lines_program *program, struct tally_lines_unit *out);
void tally_lines_unit_release(struct tally_lines_unit *unit);

/* Returns the index of the last of `count` ascending numbers that is not above `value`;
 * TALLY_LINES_NONE when there is none. */
uint32_t tally_lines_last_at(const uint32_t *ascending, uint32_t count, uint32_t value);

/* Compiled units as bytes, for the cache on disk.
 *
 * The bytes are used in place, and only where an address needs them.  They may be damaged: every
 * offset and count is checked against the blob's size where it is used.  Damage gives wrong answers
 * at worst.
 */

enum { TALLY_LINES_CACHE_VERSION = 2 };

/* The parts of a blob. */
struct tally_lines_blob {
	const uint8_t *bytes; /* NULL: no blob; aligned to 8 */
	uint64_t size;
	uint32_t unit_count, index_count;
	const struct tally_nested_item *index;
	const uint64_t *units; /* offset of each unit, or 0 */
	const char *strings;   /* the last byte is 0 */
	uint64_t strings_size;
};

/* Opens a blob.  Returns false when the bytes are no blob, or when it was made from a file of
 * another size. */
bool tally_lines_blob_open(struct tally_lines_blob *blob, const void *bytes, uint64_t size,
			   uint64_t source_size);

/* Gets a unit of the blob, in place.  Returns false when the blob lacks it. */
bool tally_lines_blob_unit(const struct tally_lines_blob *blob, uint32_t index,
			   struct tally_lines_unit *out);

/* Returns a string of one of the blob's units, or NULL. */
const char *tally_lines_blob_text(const struct tally_lines_blob *blob, uint32_t offset);

/* Makes a blob; units[i] is NULL for a unit that is not kept.  Units without names of their own
 * take them from `old`, the blob that they came from. buffer->failed is set without memory. */
void tally_lines_blob_write(struct tally_buffer *buffer, uint64_t source_size,
			    const struct tally_nested_item *index, size_t index_count,
			    const struct tally_lines_unit *const *units, size_t unit_count,
			    const struct tally_lines_blob *old);

#endif
