/* Cache events: CACHE[-OPERATION][-RESULT], in the kernel's names and perf's many spellings.
 *
 * The operations of each cache are those of perf's table.  The kernel allows more, but no machine
 * counts them. */
#include "event/event_internal.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

enum { SPELLINGS_MAX = 5, READ = 1 << TALLY_CACHE_OP_READ, WRITE = 1 << TALLY_CACHE_OP_WRITE,
       PREFETCH = 1 << TALLY_CACHE_OP_PREFETCH };

/* The first spelling is printed. */
static const struct {
	const char *spellings[SPELLINGS_MAX];
	unsigned operations;
} caches[TALLY_CACHE_MAX] = {
	[TALLY_CACHE_L1D] = { { "L1-dcache", "l1-d", "l1d", "L1-data" }, READ | WRITE | PREFETCH },
	[TALLY_CACHE_L1I] = { { "L1-icache", "l1-i", "l1i", "L1-instruction" }, READ | PREFETCH },
	[TALLY_CACHE_LL] = { { "LLC", "L2" }, READ | WRITE | PREFETCH },
	[TALLY_CACHE_DTLB] = { { "dTLB", "d-tlb", "Data-TLB" }, READ | WRITE | PREFETCH },
	[TALLY_CACHE_ITLB] = { { "iTLB", "i-tlb", "Instruction-TLB" }, READ },
	[TALLY_CACHE_BPU] = { { "branch", "branches", "bpu", "btb", "bpc" }, READ },
	[TALLY_CACHE_NODE] = { { "node" }, READ | WRITE | PREFETCH },
};

static const char *const operations[TALLY_CACHE_OP_MAX][SPELLINGS_MAX] = {
	[TALLY_CACHE_OP_READ] = { "load", "loads", "read" },
	[TALLY_CACHE_OP_WRITE] = { "store", "stores", "write" },
	[TALLY_CACHE_OP_PREFETCH] = { "prefetch", "prefetches", "speculative-read",
				      "speculative-load" },
};

static const char *const results[TALLY_CACHE_RESULT_MAX][SPELLINGS_MAX] = {
	[TALLY_CACHE_RESULT_ACCESS] = { "refs", "Reference", "ops", "access" },
	[TALLY_CACHE_RESULT_MISS] = { "misses", "miss" },
};

/* The names as listed: a row for each cache, a column for each operation × result. */
#define ROW(cache) \
	{ { cache "-loads", cache "-load-misses" }, { cache "-stores", cache "-store-misses" }, \
	  { cache "-prefetches", cache "-prefetch-misses" } }
static const char *const names[TALLY_CACHE_MAX][TALLY_CACHE_OP_MAX][TALLY_CACHE_RESULT_MAX] = {
	[TALLY_CACHE_L1D] = ROW("L1-dcache"), [TALLY_CACHE_L1I] = ROW("L1-icache"),
	[TALLY_CACHE_LL] = ROW("LLC"),        [TALLY_CACHE_DTLB] = ROW("dTLB"),
	[TALLY_CACHE_ITLB] = ROW("iTLB"),     [TALLY_CACHE_BPU] = ROW("branch"),
	[TALLY_CACHE_NODE] = ROW("node"),
};

#define WORDS(what) \
	{ \
		{ what ": reads", what ": reads that miss" }, \
			{ what ": writes", what ": writes that miss" }, \
		{ \
			what ": prefetches", what ": prefetches that miss" \
		} \
	}
static const char
	*const descriptions[TALLY_CACHE_MAX][TALLY_CACHE_OP_MAX][TALLY_CACHE_RESULT_MAX] = {
		[TALLY_CACHE_L1D] = WORDS("level 1 data cache"),
		[TALLY_CACHE_L1I] = WORDS("level 1 instruction cache"),
		[TALLY_CACHE_LL] = WORDS("last-level cache"),
		[TALLY_CACHE_DTLB] = WORDS("data TLB"),
		[TALLY_CACHE_ITLB] = WORDS("instruction TLB"),
		[TALLY_CACHE_BPU] = WORDS("branch predictor"),
		[TALLY_CACHE_NODE] = WORDS("memory of the own NUMA node"),
	};

const char *tally_cache_name(uint64_t config)
{
	uint64_t cache = config & 0xff, op = config >> 8 & 0xff, result = config >> 16;
	bool is_one = cache < TALLY_CACHE_MAX && op < TALLY_CACHE_OP_MAX &&
		      result < TALLY_CACHE_RESULT_MAX;
	if (is_one && caches[cache].operations & 1u << op)
		return names[cache][op][result];
	return NULL;
}

const char *tally_cache_name_at(size_t index, uint64_t *config, const char **description)
{
	for (unsigned cache = 0; cache < TALLY_CACHE_MAX; cache++)
		for (unsigned op = 0; op < TALLY_CACHE_OP_MAX; op++)
			for (unsigned result = 0; result < TALLY_CACHE_RESULT_MAX; result++) {
				if (!(caches[cache].operations & 1u << op) || index-- > 0)
					continue;
				*config = cache | op << 8 | result << 16;
				*description = descriptions[cache][op][result];
				return names[cache][op][result];
			}
	return NULL;
}

/* Returns the length of the longest spelling that `text` begins with, up to '-' or the end. */
static size_t spelled(const char *text, const char *const *spellings)
{
	size_t longest = 0;
	for (unsigned i = 0; i < SPELLINGS_MAX && spellings[i]; i++) {
		size_t length = strlen(spellings[i]);
		if (length > longest && !strncasecmp(text, spellings[i], length) &&
		    (text[length] == '-' || !text[length]))
			longest = length;
	}
	return longest;
}

static int set_once(int *part, int value)
{
	if (*part >= 0)
		return -ENOENT;
	*part = value;
	return 0;
}

/* Takes one "-part".  Returns -ENOENT if it is neither operation nor result, or a repeated one. */
static int take_part(const char **text, int *op, int *result)
{
	for (int i = 0; i < TALLY_CACHE_OP_MAX; i++) {
		size_t length = spelled(*text, operations[i]);
		if (!length)
			continue;
		*text += length;
		return set_once(op, i);
	}
	for (int i = 0; i < TALLY_CACHE_RESULT_MAX; i++) {
		size_t length = spelled(*text, results[i]);
		if (!length)
			continue;
		*text += length;
		return set_once(result, i);
	}
	return -ENOENT;
}

int tally_cache_config(const char *name, uint64_t *config)
{
	int cache = -1, op = -1, result = -1;
	const char *at = name;
	for (int i = 0; i < TALLY_CACHE_MAX && cache < 0; i++) {
		size_t length = spelled(name, caches[i].spellings);
		if (!length)
			continue;
		cache = i;
		at += length;
	}
	if (cache < 0)
		return -ENOENT;
	while (*at == '-') {
		at++;
		if (take_part(&at, &op, &result) < 0)
			return -ENOENT;
	}
	if (*at)
		return -ENOENT;
	if (op < 0)
		op = TALLY_CACHE_OP_READ;
	if (result < 0)
		result = TALLY_CACHE_RESULT_ACCESS;
	if (!(caches[cache].operations & 1u << op))
		return -EINVAL;
	*config = (uint64_t)cache | (uint64_t)op << 8 | (uint64_t)result << 16;
	return 0;
}
