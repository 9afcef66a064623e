/* The last whole stack of a thread, to end the next walk where it meets it: inside this room;
 * unwind_chain.c. */
#ifndef TALLY_UNWIND_UNWIND_CHAIN_H
#define TALLY_UNWIND_UNWIND_CHAIN_H

#include "unwind/unwind_walk.h"

enum { TALLY_CHAIN_FRAMES = 512, TALLY_CHAIN_WORDS = 1024 };

/* What the rest of a walk depends on, but for the words of the stack. */
struct tally_chain_frame {
	uint64_t pc, sp;
	uint64_t fp;        /* where needs_fp */
	/* of the chain's words, those below are this step's and those of the frames outside of
	 * it */
	uint32_t words_end;
	bool needs_fp;
};

struct tally_chain_word {
	uint64_t address, value;
};

/* A frame of the walk under way, before its step. */
struct tally_chain_step {
	uint64_t pc, sp, fp, known;
	const struct tally_unwind_rule *rule;
	bool is_exact;
};

struct tally_unwind_chain {
	uint64_t space;
	uint32_t frame_count, word_count;
	/* Of the walk under way. */
	/* the frames below this one may be met: their words are the new copy's, and they are not
	 * passed yet */
	uint32_t at;
	struct tally_chain_frame frames[TALLY_CHAIN_FRAMES]; /* outermost first, as are the words */
	struct tally_chain_word words[TALLY_CHAIN_WORDS];
	struct tally_chain_step steps[TALLY_CHAIN_FRAMES]; /* leaf first */
};

/* The request's chain where it can be used, prepared for the walk; else NULL. */
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
			.is_exact = walk->is_exact
		};
}

/* Has the walk come to a frame of the chain, with all that decides on what is outside of it being
 * the same?  Then the frames from this one on are the chain's first frames: their number; else
 * 0. */
static inline size_t tally_unwind_chain_meet(struct tally_unwind_chain *chain,
					     const struct tally_unwind_walk *walk)
{
	uint64_t sp = tally_unwind_get(walk, TALLY_UNWIND_RSP);
	while (chain->at && chain->frames[chain->at - 1].sp < sp)
		chain->at--;
	const struct tally_chain_frame *frame = chain->at ? &chain->frames[chain->at - 1] : NULL;
	if (!frame || frame->sp != sp || frame->pc != tally_unwind_get(walk, TALLY_UNWIND_RIP) ||
	    walk->is_exact || !tally_unwind_knows(walk, TALLY_UNWIND_RSP))
		return 0;
	bool has_fp = tally_unwind_knows(walk, TALLY_UNWIND_RBP) &&
		      tally_unwind_get(walk, TALLY_UNWIND_RBP) == frame->fp;
	return !frame->needs_fp || has_fp ? chain->at : 0;
}

/* After a walk that went to the outermost frame: `count` of its steps were noted, behind which the
 * chain's first `met` frames follow. */
void tally_unwind_chain_learn(struct tally_unwind_chain *chain, struct tally_unwind_walk *walk,
			      size_t count, size_t met);

#endif
