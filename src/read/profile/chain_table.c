/* The hash ("NH"): pairs of words, each added to a random word, are multiplied and summed in 128
 * bits.  Two such sums with different random words are folded into 64 bits each.  For any two
 * chains, the chance that they agree in one of the sums is 2^-64, over all choices of the random
 * words.  Other hashes feed each product into the next multiplication; this one has no such
 * dependency and needs about a cycle a word. */
#include "profile/profile_internal.h"

#include "base/huge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

__extension__ typedef unsigned __int128 wide;

enum { FIRST_CAPACITY = 1024 };

static uint64_t fold(uint64_t a, uint64_t b)
{
	wide product = (wide)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

int tally_chain_table_init(struct tally_chain_table *table)
{
	*table = (struct tally_chain_table){ .capacity = FIRST_CAPACITY };
	table->slots = calloc(table->capacity, sizeof(*table->slots));
	if (!table->slots)
		return -ENOMEM;
	if (getrandom(table->random, sizeof(table->random), GRND_NONBLOCK) !=
	    sizeof(table->random)) {
		/* A machine that has just started has no randomness yet; the time has to do. */
		struct timespec now;
		clock_gettime(CLOCK_MONOTONIC, &now);
		uint64_t seed = (uint64_t)now.tv_nsec ^ (uint64_t)(uintptr_t)table->slots;
		for (size_t i = 0; i < sizeof(table->random) / sizeof(table->random[0]); i++)
			table->random[i] = seed = fold(seed ^ 0x9e3779b97f4a7c15ull,
						       0xd1342543de82ef95ull + 2 * i);
	}
	return 0;
}

void tally_chain_table_release(struct tally_chain_table *table)
{
	free(table->slots);
	table->slots = NULL;
	table->count = table->capacity = 0;
}

struct sums {
	wide first, second;
};

static inline struct sums sum_block(const uint64_t *random, const uint64_t *words, size_t count)
{
	struct sums sums = { 0, 0 };
	size_t i = 0;
	for (; i + 2 <= count; i += 2) {
		sums.first += (wide)(words[i] + random[i]) * (words[i + 1] + random[i + 1]);
		sums.second += (wide)(words[i] + random[i + 2]) * (words[i + 1] + random[i + 3]);
	}
	if (i < count) {
		sums.first += (wide)(words[i] + random[i]) * random[i + 1];
		sums.second += (wide)(words[i] + random[i + 2]) * random[i + 3];
	}
	return sums;
}

struct tally_chain_hash tally_chain_table_hash(const struct tally_chain_table *table,
					       const uint64_t *words, size_t count,
					       uint64_t meaning, uint64_t more)
{
	const uint64_t *random = table->random, *last = &table->random[TALLY_CHAIN_BLOCK + 4];
	uint64_t a = fold(meaning ^ last[0], count ^ last[1]) + more;
	uint64_t b = fold(more ^ last[2], count ^ last[3]) + meaning;
	do {
		size_t block = count < TALLY_CHAIN_BLOCK ? count : TALLY_CHAIN_BLOCK;
		struct sums sums = sum_block(random, words, block);
		a = fold((uint64_t)sums.first ^ a, (uint64_t)(sums.first >> 64) ^ last[0]) ^ a;
		b = fold((uint64_t)sums.second ^ b, (uint64_t)(sums.second >> 64) ^ last[2]) ^ b;
		words += block;
		count -= block;
	} while (count);
	return (struct tally_chain_hash){ .key = a, .check = (uint32_t)(b ^ b >> 32) };
}

uint32_t tally_chain_table_find(const struct tally_chain_table *table, struct tally_chain_hash hash)
{
	size_t mask = table->capacity - 1;
	for (size_t at = hash.key & mask;; at = (at + 1) & mask) {
		const struct tally_chain_slot *slot = &table->slots[at];
		if (!slot->row)
			return UINT32_MAX;
		if (slot->key == hash.key && slot->check == hash.check)
			return slot->row - 1;
	}
}

static void put(struct tally_chain_slot *slots, size_t capacity, struct tally_chain_slot slot)
{
	size_t at = slot.key & (capacity - 1);
	while (slots[at].row)
		at = (at + 1) & (capacity - 1);
	slots[at] = slot;
}

int tally_chain_table_reserve(struct tally_chain_table *table, size_t count)
{
	size_t capacity = table->capacity;
	while (capacity / 3 * 2 < count)
		capacity *= 2;
	if (capacity == table->capacity)
		return 0;
	struct tally_chain_slot *slots = tally_huge_calloc(capacity, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < table->capacity; i++)
		if (table->slots[i].row)
			put(slots, capacity, table->slots[i]);
	free(table->slots);
	table->slots = slots;
	table->capacity = capacity;
	return 0;
}

int tally_chain_table_add(struct tally_chain_table *table, struct tally_chain_hash hash,
			  uint32_t row)
{
	if (tally_chain_table_is_full(table, 1) &&
	    tally_chain_table_reserve(table, table->capacity) < 0)
		return -ENOMEM;
	table->count++;
	put(table->slots, table->capacity,
	    (struct tally_chain_slot){ .key = hash.key, .check = hash.check, .row = row + 1 });
	return 0;
}

void tally_chain_table_clear(struct tally_chain_table *table)
{
	memset(table->slots, 0, table->capacity * sizeof(*table->slots));
	table->count = 0;
}
