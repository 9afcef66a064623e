/* Compares a call chain with the one before it, and visits only what is new.  The outer frames are
 * mostly the same.
 *
 *     struct tally_chain_news news = tally_chain_news_of(&last, words, count, is_kernel_mode);
 *     while (tally_chain_news_next(&news, &last, &address)) … news.walk.kernel, news.walk.is_return
 *     tally_last_chain_set(&last, &news, words, count);
 *
 * An address is old if, from there outwards, the chain has the same words as the last one, in the
 * same context, and if both chains had that context's innermost address before it.  Inline, because
 * recordings contain hundreds of millions of words.
 */
#ifndef TALLY_TASK_LAST_CHAIN_H
#define TALLY_TASK_LAST_CHAIN_H

#include "abi/chain_walk.h"
#include "base/vector.h"

#include <errno.h>
#include <string.h>

/* The last chain.  Zero-initialised is none; setting words.count to 0 forgets it. */
struct tally_last_chain {
	TALLY_VECTOR(uint64_t) words;
	size_t innermost;      /* index of the first address of the last context */
	bool innermost_kernel; /* true: the last context is the kernel's */
};

struct tally_chain_news {
	struct tally_chain_walk walk;
	const uint64_t *words;
	size_t from;             /* from this index on, the words equal the last chain's */
	ptrdiff_t was_innermost; /* the last chain's `innermost`, as an index into this chain */
	size_t innermost;
	bool innermost_kernel;
};

/* Returns how many of the outermost words are the same as in the last chain. */
static inline size_t tally_last_chain_common(const struct tally_last_chain *last,
					     const uint64_t *words, size_t count)
{
	size_t common = 0, most = count < last->words.count ? count : last->words.count;
	if (!most)
		return 0;
	const uint64_t *a = last->words.items + last->words.count, *b = words + count;
	while (common < most && a[-1 - (ptrdiff_t)common] == b[-1 - (ptrdiff_t)common])
		common++;
	return common;
}

/* `kernel`: the context of the words before the first marker. */
static inline struct tally_chain_news tally_chain_news_of(const struct tally_last_chain *last,
							  const uint64_t *words, size_t count,
							  bool kernel)
{
	return (struct tally_chain_news){
		.walk = { .at = words, .end = words + count, .kernel = kernel },
		.words = words,
		.from = count - tally_last_chain_common(last, words, count),
		.was_innermost = (ptrdiff_t)(last->innermost + count - last->words.count),
	};
}

/* Gets the next new address, leaf first.  Returns false when there are no more. */
static inline bool tally_chain_news_next(struct tally_chain_news *news,
					 const struct tally_last_chain *last, uint64_t *address)
{
	if (!tally_chain_walk_next(&news->walk, address))
		return false;
	size_t at = (size_t)(news->walk.at - news->words) - 1;
	if (!news->walk.is_return) {
		news->innermost = at;
		news->innermost_kernel = news->walk.kernel;
		return true;
	}
	return at < news->from || (ptrdiff_t)at <= news->was_innermost ||
	       news->walk.kernel != last->innermost_kernel;
}

/* Makes this the last chain; call it when the walk has reached its end.  Returns 0 or -ENOMEM. */
static inline int tally_last_chain_set(struct tally_last_chain *last,
				       const struct tally_chain_news *news, const uint64_t *words,
				       size_t count)
{
	if (tally_vector_reserve(&last->words, count) < 0)
		return -ENOMEM;
	memcpy(last->words.items, words, count * sizeof(*words));
	last->words.count = count;
	last->innermost = news->innermost;
	last->innermost_kernel = news->innermost_kernel;
	return 0;
}

#endif
