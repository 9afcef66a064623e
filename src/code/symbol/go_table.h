/* Go's table of functions and lines (.gopclntab), which stripped programs keep.  Reads the formats
 * of Go 1.2, 1.16, 1.18 and 1.20 (see TALLY_GO_1_2).  Pure; internal to this folder. */
#ifndef TALLY_SYMBOL_GO_TABLE_H
#define TALLY_SYMBOL_GO_TABLE_H

#include "object/object.h"
#include "symbol/lines.h"

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

#endif
