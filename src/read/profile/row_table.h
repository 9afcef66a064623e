/* Distinct (class, stack) with their samples and periods.
 *
 * A stack is a string of bytes: the numbers of its places, leaf first, in LEB128, with small
 * numbers in one byte.  Places are numbered in the order in which they are met, so most frames take
 * one or two bytes.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_ROW_TABLE_H
#define TALLY_PROFILE_ROW_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TALLY_PLACE_BYTES_MAX = 5, TALLY_CLASSES_MAX = 1 << 24 };

/* 24 bytes, since there may be millions. */
struct tally_row {
	uint64_t samples, period;
	/* start of its bytes; they end where the next row's begin: see tally_row_stack() */
	uint64_t stack : 40;
	uint64_t class : 24;
};

struct tally_row_slot {
	uint32_t hash;
	uint32_t row; /* number of the row, + 1; 0: the slot is free */
};

struct tally_row_table {
	struct { struct tally_row *items; size_t count, capacity; } rows;
	struct { uint8_t *items; size_t count, capacity; } stacks;
	struct tally_row_slot *slots;
	size_t capacity; /* of slots: a power of two, or 0 */
};

/* Hashes a class and a stack for _put. */
uint32_t tally_row_table_hash(uint32_t class, const uint8_t *stack, size_t size);

/* Prefetches the memory that _put will read. */
static inline void tally_row_table_prefetch(const struct tally_row_table *table, uint32_t hash)
{
	if (table->capacity)
		__builtin_prefetch(&table->slots[hash & (table->capacity - 1)], 1);
}

/* True if the table has to grow before it can take `more` rows. */
static inline bool tally_row_table_is_full(const struct tally_row_table *table, size_t more)
{
	return (table->rows.count + more) * 3 > table->capacity * 2;
}

/* Makes room for this many rows, and bytes of their stacks, in all.  Returns 0 or -ENOMEM. */
int tally_row_table_reserve(struct tally_row_table *table, size_t rows, size_t stack_bytes);

/* Returns the row of a class and a stack, made without samples when it is new; UINT32_MAX when
 * memory is out. */
uint32_t tally_row_table_put(struct tally_row_table *table, uint32_t hash, uint32_t class,
			     const uint8_t *stack, size_t size);

/* Returns the bytes of a row's stack, up to `*end`.  A row of samples without any address has
 * none. */
static inline const uint8_t *tally_row_stack(const struct tally_row_table *table, size_t row,
					     const uint8_t **end)
{
	const struct tally_row *rows = table->rows.items;
	uint64_t start = rows[row].stack,
		 next = row + 1 < table->rows.count ? rows[row + 1].stack : table->stacks.count;
	if (start == next) /* `items` may be NULL */
		return *end = NULL;
	*end = table->stacks.items + next;
	return table->stacks.items + start;
}

/* Frees what only _put needs. */
void tally_row_table_finish(struct tally_row_table *table);
void tally_row_table_release(struct tally_row_table *table);

/* Appends a place's number to a stack's bytes. */
static inline uint8_t *tally_stack_put_place(uint8_t *at, uint32_t place)
{
	for (; place >= 0x80; place >>= 7)
		*at++ = (uint8_t)(place | 0x80);
	*at++ = (uint8_t)place;
	return at;
}

/* Returns the next place of a stack, and moves `*at` past it. */
static inline uint32_t tally_stack_next_place(const uint8_t **at)
{
	uint32_t place = *(*at)++;
	if (place < 0x80)
		return place;
	place &= 0x7f;
	for (unsigned shift = 7;; shift += 7) {
		uint32_t byte = *(*at)++;
		place |= (byte & 0x7f) << shift;
		if (byte < 0x80)
			return place;
	}
}

/* Returns the last place of a stack that begins at `start`, and moves `*end` before it.  There must
 * be one. */
static inline uint32_t tally_stack_last_place(const uint8_t *start, const uint8_t **end)
{
	const uint8_t *at = *end - 1;
	uint32_t place = *at;
	for (; at > start && at[-1] >= 0x80; at--)
		place = place << 7 | (at[-1] & 0x7f);
	*end = at;
	return place;
}

struct tally_place_table;
/* Sets the heat of the late places, which are leaves of rows.  Returns 0 or -ENOMEM. */
int tally_row_table_heat(const struct tally_row_table *table, struct tally_place_table *places);

#endif
