/* Keeps the last whole stack of a thread, so that the next walk ends where it meets it.  Internal
 * to src/unwind; unwind_chain.c explains it. */
#ifndef TALLY_UNWIND_CHAIN_H
#define TALLY_UNWIND_CHAIN_H

#include "unwind/unwind_walk.h"

enum { TALLY_CHAIN_FRAMES = 512, TALLY_CHAIN_WORDS = 1024 };

/* A frame with the registers that the rest of a walk depends on. */
struct tally_unwind_chain_frame {
	uint64_t pc, sp;
	uint64_t fp;        /* if needs_fp */
	/* the chain's words below this index belong to this step and to the frames outside of it */
	uint32_t words_end;
	bool needs_fp;
	bool is_by_pointer; /* how it was reached, on which is_made_up depends */
	bool is_made_up;    /* tally_unwind_is_made_up(); only the outermost can be */
};

struct tally_chain_word {
	uint64_t address, value;
};

/* A frame of the walk under way, before its step. */
struct tally_chain_step {
	uint64_t pc, sp, fp, known;
	const struct tally_unwind_rule *rule;
	bool is_exact, is_by_pointer, is_made_up;
};

struct tally_unwind_chain {
	uint64_t space;
	uint32_t frame_count, word_count;
	/* For the walk under way: the frames below this index may be met.  Their words are equal in
	 * the new copy, and the walk has not passed them. */
	uint32_t at;
	struct tally_unwind_chain_frame frames[TALLY_CHAIN_FRAMES]; /* outermost first, as are the words */
	struct tally_chain_word words[TALLY_CHAIN_WORDS];
	struct tally_chain_step steps[TALLY_CHAIN_FRAMES]; /* leaf first */
};

/* Prepares the request's chain for the walk.  Returns NULL where a chain can't be used. */
struct tally_unwind_chain *tally_unwind_chain_begin(const struct tally_unwind_walk *walk);

static inline void tally_unwind_chain_note(struct tally_unwind_chain *chain,
					   const struct tally_unwind_walk *walk, size_t at)
{
	if (at < TALLY_CHAIN_FRAMES)
		chain->steps[at] = (struct tally_chain_step){
			.pc = tally_unwind_get(walk, TALLY_UNWIND_RIP),
			.sp = tally_unwind_get(walk, TALLY_UNWIND_RSP),
			.fp = tally_unwind_get(walk, TALLY_UNWIND_RBP),
			.known = walk->frame.known,
			.rule = walk->rule,
			.is_exact = walk->is_exact,
			.is_by_pointer = walk->is_by_pointer,
			.is_made_up = walk->is_made_up
		};
}

/* Returns how many of the chain's frames make up the rest of the walk, the current frame included.
 * Returns 0 unless the current frame is one of the chain, and everything that decides on the frames
 * outside of it is the same. */
static inline size_t tally_unwind_chain_meet(struct tally_unwind_chain *chain,
					     const struct tally_unwind_walk *walk)
{
	uint64_t sp = tally_unwind_get(walk, TALLY_UNWIND_RSP);
	while (chain->at && chain->frames[chain->at - 1].sp < sp)
		chain->at--;
	if (!chain->at)
		return 0;
	const struct tally_unwind_chain_frame *frame = &chain->frames[chain->at - 1];
	if (frame->sp != sp || frame->pc != tally_unwind_get(walk, TALLY_UNWIND_RIP) ||
	    walk->is_exact || walk->is_by_pointer != frame->is_by_pointer ||
	    !tally_unwind_knows(walk, TALLY_UNWIND_RSP))
		return 0;
	bool has_fp = tally_unwind_knows(walk, TALLY_UNWIND_RBP) &&
		      tally_unwind_get(walk, TALLY_UNWIND_RBP) == frame->fp;
	if (!frame->needs_fp || has_fp)
		return chain->at;
	return 0;
}

/* Keeps the stack of a walk that reached the outermost frame.  `count` of its steps were noted; the
 * chain's first `met` frames are the rest. */
void tally_unwind_chain_learn(struct tally_unwind_chain *chain, struct tally_unwind_walk *walk,
			      size_t count, size_t met);

#endif
