/* Finds which code was at an address at a given time, while code comes, moves and is overwritten.
 *
 * Places are intervals of addresses, ordered by time.  A lookup wants the latest place, among those
 * up to a time, that contains an address.  Two simpler structures don't do.  A sorted array that is
 * updated as time goes on would need 100,000 insertions, and could not answer for the past.  Pieces
 * of the address space, each with a history, take space quadratic in the nesting.
 *
 * So this is a balanced tree by start address, stored as a sorted array (the root of a range is its
 * middle).  Each node has the furthest end and the latest place of its range, so a search skips
 * every range that can't reach the address or can't beat the best place found. */
#include "symbol/jit_dump.h"

#include "base/radix_sort.h"

#include <stdlib.h>

struct node {
	uint64_t start, end; /* addresses of the place */
	uint64_t furthest;   /* highest end in the node's range */
	uint32_t order;      /* position of the place by time */
	uint32_t latest, earliest; /* of the orders in the node's range */
};

struct tally_jit_index {
	struct node *nodes;
	size_t count;
};

/* The recursion's depth is the logarithm of the count. */
static void sum_up(struct node *nodes, size_t count)
{
	struct node *root = &nodes[count / 2];
	root->furthest = root->end;
	root->latest = root->earliest = root->order;
	const struct { struct node *nodes; size_t count; } halves[] = {
		{ nodes, count / 2 }, { root + 1, count - count / 2 - 1 },
	};
	for (unsigned i = 0; i < 2; i++) {
		if (!halves[i].count)
			continue;
		sum_up(halves[i].nodes, halves[i].count);
		const struct node *half = &halves[i].nodes[halves[i].count / 2];
		root->furthest = half->furthest > root->furthest ? half->furthest : root->furthest;
		root->latest = half->latest > root->latest ? half->latest : root->latest;
		root->earliest = half->earliest < root->earliest ? half->earliest : root->earliest;
	}
}

static void fill(struct tally_jit_index *index, const struct tally_jit_dump *dump, size_t first,
		 const struct tally_radix_item *sorted)
{
	for (size_t i = 0; i < index->count; i++) {
		uint32_t order = (uint32_t)first + sorted[i].index;
		const struct tally_jit_place *place = &dump->places.items[order];
		index->nodes[i] = (struct node){
			.start = place->address,
			.order = order,
			.end = place->address + dump->functions.items[place->function].size
		};
	}
	if (index->count)
		sum_up(index->nodes, index->count);
}

struct tally_jit_index *tally_jit_index_new(const struct tally_jit_dump *dump, size_t first)
{
	struct tally_jit_index *index = calloc(1, sizeof(*index));
	size_t count = dump->places.count - first;
	struct tally_radix_item *keys = calloc(2 * count + 1, sizeof(*keys));
	if (index)
		index->nodes = calloc(count + 1, sizeof(*index->nodes));
	if (!index || !index->nodes || !keys) {
		free(keys);
		tally_jit_index_free(index);
		return NULL;
	}
	index->count = count;
	for (size_t i = 0; i < count; i++)
		keys[i] = (struct tally_radix_item){ dump->places.items[first + i].address,
						     (uint32_t)i };
	fill(index, dump, first, tally_radix_sort(keys, keys + count, count));
	free(keys);
	return index;
}

/* `best` is 1 + the order of the best place so far; 0: none yet. */
static size_t find(const struct node *nodes, size_t count, uint64_t address, size_t limit,
		   size_t best)
{
	while (count) {
		const struct node *root = &nodes[count / 2];
		if (root->furthest <= address || root->latest < best || root->earliest >= limit)
			break;
		if (root->start > address) {
			count /= 2;
			continue;
		}
		if (address < root->end && root->order < limit && root->order + (size_t)1 > best)
			best = root->order + (size_t)1;
		best = find(nodes, count / 2, address, limit, best);
		nodes = root + 1;
		count -= count / 2 + 1;
	}
	return best;
}

const struct tally_jit_place *tally_jit_index_find(const struct tally_jit_index *index,
						   const struct tally_jit_dump *dump,
						   uint64_t address, size_t limit)
{
	size_t best = find(index->nodes, index->count, address, limit, 0);
	return best ? &dump->places.items[best - 1] : NULL;
}

void tally_jit_index_free(struct tally_jit_index *index)
{
	if (index)
		free(index->nodes);
	free(index);
}
