/* Reads DWARF's sections, units, abbreviations and attributes.  Internal to this folder.
 *
 * Source: the DWARF Debugging Information Format, versions 2 to 5, and GNU's extensions (split
 * DWARF before version 5, dwz).  All bytes are untrusted: readers are bounded and their errors
 * stick; an offset is checked where it is used.  An open file doesn't change, and several threads
 * may read it; a struct tally_dwarf_scratch belongs to one thread.
 */
#ifndef TALLY_SYMBOL_DWARF_READER_H
#define TALLY_SYMBOL_DWARF_READER_H

#include "base/arena.h"
#include "base/reader.h"
#include "base/vector.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_object;

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

struct tally_dwarf_scratch;

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

#endif
