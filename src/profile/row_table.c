#include "profile/row_table.h"

#include "base/map.h"
#include "base/vector.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash_of(uint32_t class, const uint8_t *stack, size_t size)
{
	uint64_t hash = class + ((uint64_t)size << 32), word;
	for (; size >= sizeof(word); size -= sizeof(word), stack += sizeof(word)) {
		memcpy(&word, stack, sizeof(word));
		hash = tally_hash64(hash ^ word);
	}
	word = 0;
	memcpy(&word, stack, size);
	return tally_hash64(hash ^ word);
}

static const uint8_t *stack_of(const struct tally_row_table *table, const struct tally_row *row)
{
	return table->stacks.items + row->stack;
}

static int grow(struct tally_row_table *table)
{
	size_t capacity = table->capacity ? table->capacity * 2 : 1024, mask = capacity - 1;
	uint32_t *slots = calloc(capacity, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < table->rows.count; i++) {
		const struct tally_row *row = &table->rows.items[i];
		size_t at = hash_of(row->class, stack_of(table, row), row->stack_bytes) & mask;
		while (slots[at])
			at = (at + 1) & mask;
		slots[at] = (uint32_t)i + 1;
	}
	free(table->slots);
	table->slots = slots;
	table->capacity = capacity;
	return 0;
}

static bool is_row(const struct tally_row_table *table, uint32_t row, uint32_t class, const uint8_t *stack, size_t size)
{
	const struct tally_row *there = &table->rows.items[row];
	return there->class == class && there->stack_bytes == size &&
	       (!size || !memcmp(stack_of(table, there), stack, size));
}

uint32_t tally_row_table_put(struct tally_row_table *table, uint32_t class, const uint8_t *stack, size_t size)
{
	struct tally_row row = { .stack = table->stacks.count, .stack_bytes = (uint32_t)size, .class = class };
	if ((table->rows.count + 1) * 4 > table->capacity * 3 && grow(table) < 0)
		return UINT32_MAX;
	size_t mask = table->capacity - 1, at = hash_of(class, stack, size) & mask;
	for (; table->slots[at]; at = (at + 1) & mask)
		if (is_row(table, table->slots[at] - 1, class, stack, size))
			return table->slots[at] - 1;
	if (size > UINT32_MAX || table->rows.count >= UINT32_MAX - 2 ||
	    tally_vector_reserve(&table->stacks, table->stacks.count + size) < 0 ||
	    tally_vector_push(&table->rows, row) < 0)
		return UINT32_MAX;
	if (size)
		memcpy(table->stacks.items + table->stacks.count, stack, size);
	table->stacks.count += size;
	table->slots[at] = (uint32_t)table->rows.count;
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
