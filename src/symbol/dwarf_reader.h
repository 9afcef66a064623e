/* DWARF as bytes: sections, units, abbreviations, attributes.  Of this room alone.
 *
 * Source: the DWARF Debugging Information Format, versions 2 to 5, and GNU's extensions (split
 * DWARF before version 5, dwz).  All bytes are untrusted: cursors are bounded and their errors
 * stick; an offset is checked where it is used.  A file that is open is not changed any more, and
 * may be read by several threads; a struct tally_dwarf_scratch is one thread's.
 */
#ifndef TALLY_SYMBOL_DWARF_READER_H
#define TALLY_SYMBOL_DWARF_READER_H

#include "base/arena.h"
#include "base/vector.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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
	uint64_t terminated; /* strings that begin below are ended by a NUL inside the section */
};

/* ---- cursors ---- */

struct tally_dwarf_cursor {
	const uint8_t *at, *end;
	bool swap;
	bool failed; /* read past the end: this and all later values are 0 */
};

static inline bool tally_dwarf_need(struct tally_dwarf_cursor *cursor, uint64_t size)
{
	if (__builtin_expect((uint64_t)(cursor->end - cursor->at) >= size, 1))
		return true;
	cursor->at = cursor->end;
	cursor->failed = true;
	return false;
}

static inline void tally_dwarf_skip(struct tally_dwarf_cursor *cursor, uint64_t size)
{
	if (tally_dwarf_need(cursor, size))
		cursor->at += size;
}

static inline uint8_t tally_dwarf_u8(struct tally_dwarf_cursor *cursor)
{
	return tally_dwarf_need(cursor, 1) ? *cursor->at++ : 0;
}

#define TALLY_DWARF_DEFINE_READ(name, type, swapped) \
	static inline type name(struct tally_dwarf_cursor *cursor) \
	{ \
		type value; \
		if (!tally_dwarf_need(cursor, sizeof(value))) \
			return 0; \
		memcpy(&value, cursor->at, sizeof(value)); \
		cursor->at += sizeof(value); \
		return cursor->swap ? swapped(value) : value; \
	}

TALLY_DWARF_DEFINE_READ(tally_dwarf_u16, uint16_t, __builtin_bswap16)
TALLY_DWARF_DEFINE_READ(tally_dwarf_u32, uint32_t, __builtin_bswap32)
TALLY_DWARF_DEFINE_READ(tally_dwarf_u64, uint64_t, __builtin_bswap64)

uint64_t tally_dwarf_long_uleb(struct tally_dwarf_cursor *cursor);
int64_t tally_dwarf_sleb(struct tally_dwarf_cursor *cursor);

static inline uint64_t tally_dwarf_uleb(struct tally_dwarf_cursor *cursor)
{
	if (__builtin_expect(cursor->at < cursor->end && *cursor->at < 0x80, 1))
		return *cursor->at++;
	return tally_dwarf_long_uleb(cursor);
}

/* An unsigned value of 1, 2, 3, 4 or 8 bytes. */
uint64_t tally_dwarf_fixed(struct tally_dwarf_cursor *cursor, unsigned size);

/* A string in place; NULL when it doesn't end before the cursor does. */
const char *tally_dwarf_text(struct tally_dwarf_cursor *cursor);

/* The length that begins a unit or table: the cursor ends where it does; false when that is past
 * its end. *offset_size: 8 for the 64-bit format, else 4. */
bool tally_dwarf_enter_length(struct tally_dwarf_cursor *cursor, uint8_t *offset_size);

/* ---- files and units ---- */

/* An attribute's value as it stands. */
struct tally_dwarf_value {
	uint16_t form;
	uint64_t number;  /* constant, offset, index or address as it stands; 0 for blocks */
	const char *text; /* DW_FORM_string */
};

/* The attributes that say where the code of a DIE is; form 0: absent. */
struct tally_dwarf_extent {
	struct tally_dwarf_value low_pc, high_pc, ranges;
};

struct tally_dwarf_range {
	uint64_t start, end;
};

/* What the root of a unit says; strings live as long as its file. */
struct tally_dwarf_unit {
	struct tally_dwarf_file *file;
	uint64_t offset;    /* of its header, in .debug_info */
	uint64_t first_die; /* of its root */
	uint64_t end;
	uint64_t abbrev_offset;
	uint8_t version, address_size, offset_size, type;
	bool has_lines;
	uint16_t tag; /* of the root; 0: damaged */
	uint64_t str_offsets_base, addr_base, rnglists_base;
	/* what DW_AT_ranges of a split unit before version 5 is relative to */
	uint64_t ranges_base;
	uint64_t low_pc;      /* what range lists are relative to */
	struct tally_dwarf_extent extent;
	uint64_t line_offset;
	uint64_t dwo_id;
	const char *name, *directory, *dwo_name; /* NULL: none */
	/* Of a split unit: the unit in the program that it belongs to, whose addresses and lines it
	 * uses. */
	const struct tally_dwarf_unit *skeleton;
};

struct tally_dwarf_file {
	/* a reference, or NULL where the sections are somebody else's */
	struct tally_object *object;
	struct tally_dwarf_bytes sections[TALLY_DWARF_SECTIONS];
	bool swap;
	bool is_split; /* .dwo or .dwp */
	TALLY_VECTOR(struct tally_dwarf_unit) units; /* by offset */
	struct tally_dwarf_file *supplement; /* dwz's common file; owned */
};

struct tally_dwarf_scratch;

/* Sections of an object, named ".debug_info" … or, `is_split`, ".debug_info.dwo" ….  Takes a
 * reference. */
void tally_dwarf_file_init(struct tally_dwarf_file *file, struct tally_object *object,
			   bool is_split);
void tally_dwarf_file_release(struct tally_dwarf_file *file);

/* Finds the units and reads their roots; `skeleton` is that of a .dwo's, else NULL.  0 or
 * -ENOMEM. */
int tally_dwarf_read_units(struct tally_dwarf_file *file, struct tally_dwarf_scratch *scratch,
			   const struct tally_dwarf_unit *skeleton);

/* One unit at an offset of .debug_info, its root read; `contribution` moves offsets in a .dwp, and
 * is NULL elsewhere.  Sets offset and end even where it returns false (damage, or a type unit,
 * which is of no use here). */
struct tally_dwarf_contribution {
	uint64_t abbrev, str_offsets, rnglists;
};
bool tally_dwarf_read_unit(struct tally_dwarf_file *file, struct tally_dwarf_scratch *scratch,
			   uint64_t offset, const struct tally_dwarf_contribution *contribution,
			   const struct tally_dwarf_unit *skeleton, struct tally_dwarf_unit *unit);

/* The unit that holds an offset of .debug_info, or NULL. */
const struct tally_dwarf_unit *tally_dwarf_unit_at(const struct tally_dwarf_file *file,
						   uint64_t offset);

struct tally_dwarf_cursor tally_dwarf_cursor_at(const struct tally_dwarf_file *file,
						enum tally_dwarf_section section, uint64_t offset);

/* ---- abbreviations ---- */

struct tally_dwarf_attribute {
	uint16_t name, form;
	uint8_t size; /* of the value in a DIE; or one of the below */
	int64_t constant; /* DW_FORM_implicit_const */
};

enum { TALLY_DWARF_SIZE_VARIES = 0xfe, TALLY_DWARF_SIZE_UNKNOWN = 0xff };

/* How many bytes a value of a form takes in a unit's DIEs, or one of the above. */
uint8_t tally_dwarf_form_size(uint64_t form, const struct tally_dwarf_unit *unit);

struct tally_dwarf_abbrev {
	uint64_t code;
	uint32_t first, count;  /* attributes */
	uint32_t size;          /* of all values; UINT32_MAX: it varies, or isn't known */
	/* where in the values a DW_FORM_ref4 to the next sibling lies; UINT32_MAX: it doesn't */
	uint32_t sibling_at;
	uint16_t tag;
	bool has_children;
	bool has_code;       /* DW_AT_low_pc or DW_AT_ranges */
	bool is_declaration; /* DW_AT_declaration */
};

struct tally_dwarf_abbrevs {
	const struct tally_dwarf_file *file;
	uint64_t offset;
	uint8_t version, address_size, offset_size; /* that sizes are for */
	bool is_dense; /* code = index + 1 */
	bool is_used;
	TALLY_VECTOR(struct tally_dwarf_abbrev) list; /* by code */
	TALLY_VECTOR(struct tally_dwarf_attribute) attributes;
};

enum { TALLY_DWARF_ABBREVS_KEPT = 256 };

/* What one thread needs while it reads. */
struct tally_dwarf_scratch {
	struct tally_dwarf_abbrevs kept[TALLY_DWARF_ABBREVS_KEPT];
	struct tally_dwarf_abbrevs root; /* the first abbreviation alone */
	TALLY_VECTOR(struct tally_dwarf_range) ranges;
	bool out_of_memory;
};

void tally_dwarf_scratch_release(struct tally_dwarf_scratch *scratch);
/* Keeps nothing of a file that goes. */
void tally_dwarf_scratch_forget(struct tally_dwarf_scratch *scratch,
				const struct tally_dwarf_file *file);

/* The table of a unit, until the next call for another unit; NULL when memory is out. */
const struct tally_dwarf_abbrevs *tally_dwarf_abbrevs_of(struct tally_dwarf_scratch *scratch,
							 const struct tally_dwarf_unit *unit);

/* Fills `out` (zeroed or filled before): at most `limit` abbreviations, all of them for SIZE_MAX. 0
 * or -ENOMEM. */
int tally_dwarf_abbrevs_read(struct tally_dwarf_abbrevs *out, const struct tally_dwarf_unit *unit,
			     size_t limit);
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

/* Reads past a value; false at a form that isn't known or at the end of the bytes. */
bool tally_dwarf_skip_value(struct tally_dwarf_cursor *cursor, const struct tally_dwarf_unit *unit,
			    const struct tally_dwarf_attribute *attribute);
bool tally_dwarf_read_value(struct tally_dwarf_cursor *cursor, const struct tally_dwarf_unit *unit,
			    const struct tally_dwarf_attribute *attribute,
			    struct tally_dwarf_value *value);

/* What a value means in its unit; NULL or false where it means nothing, or what it points to isn't
 * there. */
const char *tally_dwarf_string(const struct tally_dwarf_unit *unit,
			       const struct tally_dwarf_value *value);
bool tally_dwarf_address(const struct tally_dwarf_unit *unit, const struct tally_dwarf_value *value,
			 uint64_t *address);
bool tally_dwarf_indexed_address(const struct tally_dwarf_unit *unit, uint64_t index,
				 uint64_t *address);
/* Another DIE: its unit and its offset in that unit's .debug_info. */
bool tally_dwarf_reference(const struct tally_dwarf_unit *unit,
			   const struct tally_dwarf_value *value,
			   const struct tally_dwarf_unit **other, uint64_t *offset);

/* The code of a DIE, appended to scratch->ranges: at most `limit` entries.  0 or -ENOMEM. */
int tally_dwarf_read_extent(struct tally_dwarf_scratch *scratch,
			    const struct tally_dwarf_unit *unit,
			    const struct tally_dwarf_extent *extent, size_t limit);

/* The code of a unit by its root; nothing where it doesn't say. */
int tally_dwarf_unit_ranges(struct tally_dwarf_scratch *scratch,
			    const struct tally_dwarf_unit *unit);

#endif
