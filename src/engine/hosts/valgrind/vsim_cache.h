/* Cache sets, and which line of a set is replaced.
 *
 * struct vsim_cache, for the outer levels, replaces the least recently used line; each set is kept
 * in the order of use.  A line is identified by a key of 32 bits, so that a set of 16 fits one line
 * of the host's cache and takes four comparisons.  The key holds the 31 bits above those that
 * select the set.  Lines that differ only in higher bits are confused.  With 1,024 sets of 64
 * bytes, they are 2^47 bytes apart; in the most extreme cache that a user can configure, 2^35.
 * The tests' model does the same.
 *
 * struct vsim_first, for the first level, replaces a line that was not used recently.  Each use
 * marks the line.  The first line without a mark is replaced; when all have marks, all marks are
 * cleared first.  First-level caches of CPUs do about the same.  On recorded accesses (gzip, xz,
 * SQLite, Python, gcc) its misses are within 3 % of LRU's, except for SQLite: 0.028 % instead of
 * 0.024 for data, 1.3 % instead of 1.4 for code.  Lines used in rotation push each other out as
 * with LRU.  The reason to use it: a use of a marked line changes nothing, and most of the lines in
 * use are marked.  With LRU, only one line in each set can be used without a change.  MIT. */
#ifndef TALLY_VALGRIND_VSIM_CACHE_H
#define TALLY_VALGRIND_VSIM_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { VSIM_KEYS_AT_ONCE = 8 };
#define VSIM_ABSENT UINT32_MAX

/* Returns the way whose key is `key`, or VSIM_ABSENT.  `stride` is a multiple of VSIM_KEYS_AT_ONCE,
 * and the keys are aligned to 32 bytes. */
static inline uint32_t vsim_find(const uint32_t *keys, uint32_t stride, uint32_t key)
{
#ifdef __SSE2__
	const __m128i wanted = _mm_set1_epi32((int)key);
	for (uint32_t way = 0; way < stride; way += VSIM_KEYS_AT_ONCE) {
		__m128i low = _mm_cmpeq_epi32(_mm_load_si128((const __m128i *)(keys + way)),
					      wanted);
		__m128i high = _mm_cmpeq_epi32(_mm_load_si128((const __m128i *)(keys + way + 4)),
					       wanted);
		/* two bits for each way */
		int equal = _mm_movemask_epi8(_mm_packs_epi32(low, high));
		if (equal)
			return way + (uint32_t)__builtin_ctz((unsigned)equal) / 2;
	}
#else
	for (uint32_t way = 0; way < stride; way++)
		if (keys[way] == key)
			return way;
#endif
	return VSIM_ABSENT;
}

/* Makes `key` the first of the set.  It is in `way`, or replaces what is there; the keys before it
 * move back by one.  This always writes the whole set: loops whose length depends on the way cost
 * more, through wrong predictions of the host's branches. */
static inline void vsim_move_to_front(uint32_t *keys, uint32_t stride, uint32_t way, uint32_t key)
{
#ifdef __SSE2__
	const __m128i last = _mm_set1_epi32((int)way), four = _mm_set1_epi32(4);
	__m128i place = _mm_add_epi32(_mm_set1_epi32((int)stride - 4), _mm_set_epi32(3, 2, 1, 0)),
		stay, here;
	for (uint32_t at = stride - 4; at; at -= 4) {
		__m128i before = _mm_loadu_si128((const __m128i *)(keys + at - 1));
		here = _mm_load_si128((const __m128i *)(keys + at));
		stay = _mm_cmpgt_epi32(place, last);
		_mm_store_si128(
			(__m128i *)(keys + at),
			_mm_or_si128(_mm_and_si128(stay, here), _mm_andnot_si128(stay, before)));
		place = _mm_sub_epi32(place, four);
	}
	here = _mm_load_si128((const __m128i *)keys);
	stay = _mm_cmpgt_epi32(place, last);
	__m128i before = _mm_or_si128(_mm_slli_si128(here, 4), _mm_cvtsi32_si128((int)key));
	_mm_store_si128((__m128i *)keys,
			_mm_or_si128(_mm_and_si128(stay, here), _mm_andnot_si128(stay, before)));
#else
	(void)stride;
	for (; way; way--)
		keys[way] = keys[way - 1];
	keys[0] = key;
#endif
}

struct vsim_cache {
	uint32_t *keys;      /* sets × stride; 0: empty */
	uint64_t set_mask;
	uint32_t set_bits, way_count /* 0: no such cache */, stride;
};

/* Returns the key of `line`, never 0. */
static inline uint32_t vsim_cache_key(const struct vsim_cache *cache, uint64_t line)
{
	return (uint32_t)(line >> cache->set_bits) << 1 | 1;
}

static inline uint32_t *vsim_cache_set(const struct vsim_cache *cache, uint64_t line)
{
	return cache->keys + (line & cache->set_mask) * cache->stride;
}

/* Makes `line` the most recently used line of its set, in place of the least recently used one if
 * it was absent.  Returns true if it was present. */
static inline bool vsim_cache_use(const struct vsim_cache *cache, uint64_t line)
{
	uint32_t *keys = vsim_cache_set(cache, line), key = vsim_cache_key(cache, line);
	uint32_t way = vsim_find(keys, cache->stride, key);
	bool there = way != VSIM_ABSENT;
	if (!there)
		way = cache->way_count - 1;
	vsim_move_to_front(keys, cache->stride, way, key);
	return there;
}

struct vsim_first {
	uint32_t *keys;      /* sets × stride: lower halves of the line numbers */
	uint64_t *lines;     /* sets × stride: the line numbers; VSIM_NONE: empty */
	uint64_t *marks;     /* one word for each set, one bit for each way */
	uint64_t set_mask, all; /* `all`: the marks of all ways */
	uint32_t way_count, stride;
};

/* Returns the way that holds `line`, or VSIM_ABSENT. */
static inline uint32_t vsim_first_find(const struct vsim_first *first, uint64_t set, uint64_t line)
{
	const uint64_t *lines = first->lines + set * first->stride;
	uint32_t way = vsim_find(first->keys + set * first->stride, first->stride, (uint32_t)line);
	if (way == VSIM_ABSENT || __builtin_expect(lines[way] == line, 1))
		return way;
	/* The key matched a line with the same lower half, or an empty way. */
	for (way = 0; way < first->way_count; way++)
		if (lines[way] == line)
			return way;
	return VSIM_ABSENT;
}

#endif
