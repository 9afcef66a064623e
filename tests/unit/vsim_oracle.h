/* The simulated CPU as in a textbook: sets of lines with the times of their last use, or marks;
 * TLBs with the times at which pages came; two-bit counters.  It filters nothing, keeps no order,
 * and searches everything each time.  The fast model must agree with it. */
#ifndef TALLY_TEST_VSIM_ORACLE_H
#define TALLY_TEST_VSIM_ORACLE_H

#include "valgrind/vsim_predictor.h"

#include <stdlib.h>

struct oracle_line {
	uint64_t number, used; /* used 0: empty */
	bool marked;
};

/* Which line of a set is replaced: the least recently used, the first that came, or the first not
 * used recently. */
enum oracle_policy { ORACLE_LRU, ORACLE_FIFO, ORACLE_NRU };

struct oracle_cache {
	struct oracle_line *lines;
	struct vsim_cache_geometry geometry;
	enum oracle_policy policy;
};

struct oracle_slot {
	uint64_t sure, last;
	unsigned repeats;
};

struct oracle {
	struct vsim_geometry geometry;
	uint64_t now;
	struct oracle_cache l1d, l1i, l2, llc, dtlb, itlb, stlb;
	uint64_t history, path;
	int *counters, *by_branch;
	struct vsim_tagged *by_long_history;
	struct oracle_slot slots[1 << VSIM_TARGET_SLOT_BITS];
	uint64_t *targets;
	uint64_t returns[VSIM_RETURN_DEPTH_MAX];
	unsigned return_count;
};

static struct oracle_cache oracle_cache(struct vsim_cache_geometry geometry,
					enum oracle_policy policy)
{
	return (struct oracle_cache){ calloc((size_t)geometry.sets * geometry.ways + 1,
					     sizeof(struct oracle_line)),
				      geometry, policy };
}

static int *oracle_numbers(size_t count, int value)
{
	int *numbers = malloc(count * sizeof(*numbers));
	for (size_t i = 0; i < count; i++)
		numbers[i] = value;
	return numbers;
}

static struct oracle *oracle_new(const struct vsim_geometry *geometry)
{
	struct oracle *oracle = calloc(1, sizeof(*oracle));
	size_t counters = (size_t)1 << geometry->history_bits,
	       targets = (size_t)1 << geometry->target_bits;
	oracle->geometry = *geometry;
	oracle->l1d = oracle_cache(geometry->l1d, ORACLE_NRU);
	oracle->l1i = oracle_cache(geometry->l1i, ORACLE_NRU);
	oracle->l2 = oracle_cache(geometry->l2, ORACLE_LRU);
	oracle->llc = oracle_cache(geometry->llc, ORACLE_LRU);
	oracle->stlb = oracle_cache(geometry->stlb, ORACLE_LRU);
	oracle->dtlb = oracle_cache(geometry->dtlb, ORACLE_FIFO);
	oracle->itlb = oracle_cache(geometry->itlb, ORACLE_FIFO);
	oracle->counters = oracle_numbers(counters, 1);
	oracle->by_long_history = calloc(counters / 4, sizeof(*oracle->by_long_history));
	for (size_t i = 0; i < counters / 4; i++)
		oracle->by_long_history[i].counter = 1;
	oracle->by_branch = oracle_numbers(counters / 4, 1);
	oracle->targets = malloc(targets * sizeof(*oracle->targets));
	for (size_t i = 0; i < targets; i++)
		oracle->targets[i] = VSIM_NONE;
	for (size_t i = 0; i < 1 << VSIM_TARGET_SLOT_BITS; i++)
		oracle->slots[i] = (struct oracle_slot){ VSIM_NONE, VSIM_NONE, 0 };
	for (size_t i = 0; i < VSIM_RETURN_DEPTH_MAX; i++)
		oracle->returns[i] = VSIM_NONE;
	return oracle;
}

static void oracle_free(struct oracle *oracle)
{
	struct oracle_cache *caches[] = { &oracle->l1d,  &oracle->l1i,  &oracle->l2,  &oracle->llc,
					  &oracle->dtlb, &oracle->itlb, &oracle->stlb };
	for (size_t i = 0; i < sizeof(caches) / sizeof(caches[0]); i++)
		free(caches[i]->lines);
	free(oracle->counters), free(oracle->by_long_history), free(oracle->by_branch),
		free(oracle->targets);
	free(oracle);
}

static struct oracle_line *oracle_unmarked(struct oracle_line *set, unsigned ways)
{
	for (unsigned way = 0; way < ways; way++)
		if (!set[way].marked)
			return &set[way];
	return NULL;
}

static struct oracle_line *oracle_victim(const struct oracle_cache *cache, struct oracle_line *set)
{
	struct oracle_line *oldest = set, *unmarked = oracle_unmarked(set, cache->geometry.ways);
	if (cache->policy == ORACLE_NRU && unmarked)
		return unmarked;
	for (unsigned way = 0; way < cache->geometry.ways; way++) {
		if (cache->policy == ORACLE_NRU)
			set[way].marked = false;
		else if (set[way].used < oldest->used)
			oldest = &set[way];
	}
	return oldest;
}

/* Uses a line.  Returns whether it was present; afterwards it is.  The outer levels compare 31 bits
 * besides the set's. */
static bool oracle_use(struct oracle *oracle, struct oracle_cache *cache, uint64_t number)
{
	unsigned ways = cache->geometry.ways;
	if (cache->policy == ORACLE_LRU)
		number %= cache->geometry.sets * (1ull << 31);
	struct oracle_line *set = cache->lines + number % cache->geometry.sets * ways,
			   *found = NULL;
	oracle->now++;
	for (struct oracle_line *line = set; line < set + ways && !found; line++)
		if (line->used && line->number == number)
			found = line;
	bool there = found;
	if (!there) {
		found = oracle_victim(cache, set);
		found->number = number;
		found->used = oracle->now;
	}
	if (cache->policy == ORACLE_LRU)
		found->used = oracle->now;
	found->marked = true;
	return there;
}

static unsigned oracle_outer(struct oracle *oracle, uint64_t line, bool store)
{
	unsigned happened = 0;
	if (oracle->geometry.l2.ways) {
		happened |= 1u << (store ? VSIM_L2_STORES : VSIM_L2_LOADS);
		if (oracle_use(oracle, &oracle->l2, line))
			return happened;
		happened |= 1u << (store ? VSIM_L2_STORE_MISSES : VSIM_L2_LOAD_MISSES);
	}
	if (oracle->geometry.llc.ways) {
		happened |= 1u << (store ? VSIM_LLC_STORES : VSIM_LLC_LOADS);
		if (!oracle_use(oracle, &oracle->llc, line))
			happened |= 1u << (store ? VSIM_LLC_STORE_MISSES : VSIM_LLC_LOAD_MISSES);
	}
	return happened;
}

static bool oracle_walks(struct oracle *oracle, uint64_t page)
{
	return !oracle->geometry.stlb.ways || !oracle_use(oracle, &oracle->stlb, page);
}

static unsigned oracle_data(struct oracle *oracle, uint64_t address, unsigned size, bool store)
{
	uint64_t line_bytes = oracle->geometry.line_bytes, page_bytes = oracle->geometry.page_bytes;
	unsigned happened = 0;
	for (uint64_t line = address / line_bytes; line <= (address + size - 1) / line_bytes;
	     line++) {
		uint64_t page = line * line_bytes / page_bytes;
		if (!oracle_use(oracle, &oracle->dtlb, page)) {
			happened |= 1u << (store ? VSIM_DTLB_STORE_MISSES : VSIM_DTLB_LOAD_MISSES);
			if (oracle_walks(oracle, page))
				happened |= 1u << (store ? VSIM_DTLB_STORE_WALKS
							 : VSIM_DTLB_LOAD_WALKS);
		}
		if (!oracle_use(oracle, &oracle->l1d, line))
			happened |= 1u << (store ? VSIM_L1D_STORE_MISSES : VSIM_L1D_LOAD_MISSES) |
				    oracle_outer(oracle, line, store);
	}
	return happened;
}

static unsigned oracle_fetch(struct oracle *oracle, uint64_t address)
{
	uint64_t line = address / oracle->geometry.line_bytes,
		 page = address / oracle->geometry.page_bytes;
	unsigned happened = 0;
	if (!oracle_use(oracle, &oracle->itlb, page))
		happened |= 1u << VSIM_ITLB_MISSES |
			    (oracle_walks(oracle, page) ? 1u << VSIM_ITLB_WALKS : 0);
	if (!oracle_use(oracle, &oracle->l1i, line))
		happened |= 1u << VSIM_L1I_MISSES | oracle_outer(oracle, line, false);
	return happened;
}

static bool oracle_certain(int counter)
{
	return counter == 0 || counter == 3;
}

static void oracle_learn(int *counter, bool taken)
{
	if (taken && *counter < 3)
		++*counter;
	else if (!taken && *counter > 0)
		--*counter;
}

static uint64_t oracle_context(uint64_t ip, uint64_t history, unsigned bits)
{
	uint64_t high = history << (64 - bits);
	return ip ^ high ^ high >> 31;
}

static unsigned oracle_conditional(struct oracle *oracle, uint64_t ip, bool taken)
{
	unsigned bits = oracle->geometry.history_bits;
	uint64_t latest = oracle->history & ((1ull << vsim_history_outcomes(bits)) - 1);
	int *counter = &oracle->counters[vsim_hash(ip, bits) ^ latest];
	uint64_t context = vsim_long_context(ip, oracle->history, bits - 2);
	struct vsim_tagged *second = &oracle->by_long_history[context / 256];
	int *third = &oracle->by_branch[vsim_hash(ip, bits - 2)];
	bool known = second->tag == context % 256;
	int believed = known ? second->counter : *third;
	if (oracle_certain(*counter))
		believed = *counter;
	bool guess = believed >= 2;
	if (*counter != (taken ? 3 : 0)) {
		int value = second->counter;
		oracle_learn(&value, taken);
		if (known)
			second->counter = (uint8_t)value;
		else if (guess != taken)
			*second = (struct vsim_tagged){ (uint8_t)(context % 256), taken ? 2 : 1 };
		oracle_learn(third, taken);
	}
	oracle_learn(counter, taken);
	oracle->history = oracle->history << 1 | taken;
	return guess == taken ? 0 : 1u << VSIM_CONDITIONAL_MISSES;
}

static unsigned oracle_indirect(struct oracle *oracle, uint64_t ip, uint64_t target)
{
	struct oracle_slot *slot = &oracle->slots[vsim_hash(ip, VSIM_TARGET_SLOT_BITS)];
	uint64_t *learnt =
		&oracle->targets[vsim_hash(oracle_context(ip, oracle->path, VSIM_TARGET_HISTORY),
					   oracle->geometry.target_bits)];
	uint64_t guess = slot->sure != VSIM_NONE ? slot->sure : *learnt;
	if (slot->sure != target) {
		*learnt = target;
		oracle->path = oracle->path << 4 ^ vsim_hash(target, 4);
		slot->repeats = target == slot->last ? slot->repeats + 1 : 0;
		slot->last = target;
		slot->sure = slot->repeats >= VSIM_TARGET_REPEATS ? target : VSIM_NONE;
	}
	return guess == target ? 0 : 1u << VSIM_INDIRECT_MISSES;
}

/* The latest entry is at the end.  The oldest is lost when there is no room; entries never pushed
 * keep their old value. */
static void oracle_call(struct oracle *oracle, uint64_t return_address)
{
	oracle->returns[oracle->return_count++ % oracle->geometry.return_depth] = return_address;
}

static unsigned oracle_return(struct oracle *oracle, uint64_t target)
{
	uint64_t guess = oracle->returns[--oracle->return_count % oracle->geometry.return_depth];
	return guess == target ? 0 : 1u << VSIM_RETURN_MISSES;
}

#endif
