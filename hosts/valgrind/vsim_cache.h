/* Sets of ways, and which of them gives way.
 *
 * struct vsim_cache, of the outer levels, replaces what was least recently used: a set is in the
 * order of use.  A line is known by a key of 32 bits, so that a set of 16 is one line of the host's
 * and four comparisons: the 31 bits above those that choose the set.  What differs further up alone
 * would be taken for the same: addresses 2^47 bytes apart for 1,024 sets of 64 bytes, 2^35 in the
 * oddest cache that can be asked for; the tests' model does so too.
 *
 * struct vsim_first, of the first level, replaces what was not used recently: a line that is used
 * is marked; the first without a mark gives way; when all have one, all lose it before.  CPUs'
 * first levels do about that.  On recorded accesses (gzip, xz, SQLite, Python, gcc) it misses
 * within 3 % as often as LRU does, but for SQLite: of data 0.028 % instead of 0.024, of code 1.3 %
 * instead of 1.4.  Lines that come in turn push each other out as with LRU.  What it is here for:
 * using a marked line changes nothing, and most of the lines in use are marked, where LRU has one
 * line a set whose use changes nothing.  MIT. */
#ifndef TALLY_VALGRIND_VSIM_CACHE_H
#define TALLY_VALGRIND_VSIM_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { VSIM_KEYS_AT_ONCE = 8 };
#define VSIM_ABSENT UINT32_MAX

/* The way of `stride` keys, a multiple of VSIM_KEYS_AT_ONCE and aligned to 32 bytes, that is
 * `key`. */
static inline uint32_t vsim_find(const uint32_t *keys, uint32_t stride, uint32_t key)
{
#ifdef __SSE2__
	const __m128i wanted = _mm_set1_epi32((int)key);
	for (uint32_t way = 0; way < stride; way += VSIM_KEYS_AT_ONCE) {
		__m128i low = _mm_cmpeq_epi32(_mm_load_si128((const __m128i *)(keys + way)),
					      wanted);
		__m128i high = _mm_cmpeq_epi32(_mm_load_si128((const __m128i *)(keys + way + 4)),
					       wanted);
		int equal = _mm_movemask_epi8(_mm_packs_epi32(low, high)); /* two bits a way */
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

/* Makes `key`, which is in `way` or takes its place, the first one; those before it come after it.
 * All of the set is written, whichever way it was: loops that end somewhere else each time cost
 * more in wrong guesses of the host's. */
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
	uint32_t set_bits, way_count /* 0: there is no such cache */, stride;
};

/* Never 0. */
static inline uint32_t vsim_cache_key(const struct vsim_cache *cache, uint64_t line)
{
	return (uint32_t)(line >> cache->set_bits) << 1 | 1;
}

static inline uint32_t *vsim_cache_set(const struct vsim_cache *cache, uint64_t line)
{
	return cache->keys + (line & cache->set_mask) * cache->stride;
}

/* Makes `line` the most recently used one of its set; the least recently used one gives way.  True:
 * it was there. */
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
	uint32_t *keys;      /* sets × stride: the lines' lower halves */
	uint64_t *lines;     /* likewise: the lines themselves; VSIM_NONE: empty */
	uint64_t *marks;     /* by set, a bit for each way */
	uint64_t set_mask, all; /* marks of all ways */
	uint32_t way_count, stride;
};

/* Where `line` is, or VSIM_ABSENT. */
static inline uint32_t vsim_first_find(const struct vsim_first *first, uint64_t set, uint64_t line)
{
	const uint64_t *lines = first->lines + set * first->stride;
	uint32_t way = vsim_find(first->keys + set * first->stride, first->stride, (uint32_t)line);
	if (way == VSIM_ABSENT || __builtin_expect(lines[way] == line, 1))
		return way;
	/* Another of the same lower half, or an empty one. */
	for (way = 0; way < first->way_count; way++)
		if (lines[way] == line)
			return way;
	return VSIM_ABSENT;
}

#endif
