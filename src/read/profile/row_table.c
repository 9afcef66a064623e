/* A hash table with open addressing and linear probing finds rows while they are added.  Its slots
 * are freed when the last row is there. */
#include "profile/stacks.h"

#include "base/extremes.h"
#include "base/huge.h"
#include "base/map.h"
#include "base/vector.h"
#include "base/weight_sum.h"
#include "naming/naming.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

uint32_t tally_row_table_hash(uint32_t class, const uint8_t *stack, size_t size)
{
	uint64_t hash = class + ((uint64_t)size << 32), word;
	for (; size >= sizeof(word); size -= sizeof(word), stack += sizeof(word)) {
		memcpy(&word, stack, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 29;
	}
	word = 0;
	if (size)
		memcpy(&word, stack, size);
	return (uint32_t)tally_hash64(hash ^ word);
}

static void put_slot(struct tally_row_slot *slots, size_t capacity, struct tally_row_slot slot)
{
	size_t at = slot.hash & (capacity - 1);
	while (slots[at].row)
		at = (at + 1) & (capacity - 1);
	slots[at] = slot;
}

static int reserve_slots(struct tally_row_table *table, size_t rows)
{
	size_t capacity = table->capacity;
	if (!capacity)
		capacity = 1024;
	while (capacity / 3 * 2 < rows)
		capacity *= 2;
	if (capacity == table->capacity)
		return 0;
	struct tally_row_slot *slots = tally_huge_calloc(capacity, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < table->capacity; i++)
		if (table->slots[i].row)
			put_slot(slots, capacity, table->slots[i]);
	free(table->slots);
	table->slots = slots;
	table->capacity = capacity;
	return 0;
}

int tally_row_table_reserve(struct tally_row_table *table, size_t rows, size_t stack_bytes)
{
	if (reserve_slots(table, rows) < 0 || tally_vector_reserve(&table->rows, rows) < 0 ||
	    tally_vector_reserve(&table->stacks, stack_bytes) < 0)
		return -ENOMEM;
	return 0;
}

static bool is_row(const struct tally_row_table *table, uint32_t row, uint32_t class,
		   const uint8_t *stack, size_t size)
{
	const uint8_t *end, *there = tally_row_stack(table, row, &end);
	return table->rows.items[row].class == class && (size_t)(end - there) == size &&
	       (!size || !memcmp(there, stack, size));
}

uint32_t tally_row_table_put(struct tally_row_table *table, uint32_t hash, uint32_t class,
			     const uint8_t *stack, size_t size)
{
	const uint64_t bytes_max = (uint64_t)1 << 40;
	struct tally_row row = { .stack = table->stacks.count & (bytes_max - 1),
				 .class = class & (TALLY_CLASSES_MAX - 1) };
	if (tally_row_table_is_full(table, 1) &&
	    reserve_slots(table, tally_max_u64(table->capacity, 1)) < 0)
		return UINT32_MAX;
	size_t mask = table->capacity - 1, at = hash & mask;
	for (; table->slots[at].row; at = (at + 1) & mask)
		if (table->slots[at].hash == hash &&
		    is_row(table, table->slots[at].row - 1, class, stack, size))
			return table->slots[at].row - 1;
	if (table->stacks.count + size >= bytes_max || class >= TALLY_CLASSES_MAX ||
	    table->rows.count >= UINT32_MAX - 2 ||
	    tally_vector_reserve(&table->stacks, table->stacks.count + size) < 0 ||
	    tally_vector_push(&table->rows, row) < 0)
		return UINT32_MAX;
	if (size)
		memcpy(table->stacks.items + table->stacks.count, stack, size);
	table->stacks.count += size;
	table->slots[at] = (struct tally_row_slot){ .hash = hash,
						    .row = (uint32_t)table->rows.count };
	return (uint32_t)table->rows.count - 1;
}

void tally_row_table_finish(struct tally_row_table *table)
{
	free(table->slots);
	table->slots = NULL;
	table->capacity = 0;
}

void tally_row_table_release(struct tally_row_table *table)
{
	tally_row_table_finish(table);
	tally_vector_release(&table->rows);
	tally_vector_release(&table->stacks);
}

int tally_row_table_heat(const struct tally_row_table *table, struct tally_place_table *places)
{
	size_t count = places->places.count;
	uint64_t *weights = calloc(count + 1, sizeof(*weights));
	if (!weights)
		return -ENOMEM;
	for (size_t i = 0; i < table->rows.count; i++) {
		const struct tally_row *row = &table->rows.items[i];
		const uint8_t *end, *stack = tally_row_stack(table, i, &end);
		uint64_t weight = row->period ? row->period : row->samples;
		uint32_t leaf = stack == end ? UINT32_MAX : tally_stack_next_place(&stack);
		if (leaf < count)
			weights[leaf] = tally_sum_capped(weights[leaf], weight);
	}
	for (size_t i = 0; i < count; i++)
		if (places->places.items[i].is_late && weights[i])
			places->places.items[i].heat = (uint8_t)(63 - __builtin_clzll(weights[i]));
	free(weights);
	return 0;
}
