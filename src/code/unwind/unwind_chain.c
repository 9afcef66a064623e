/* Ends a walk where it meets the stack before.
 *
 * A thread that is sampled 20,000 times a second has, of fifty frames, forty-five in common with
 * the sample before.  Walking them again is slow for a reason that no better code removes: another
 * CPU wrote the copy of the stack, each step waits for a word of it, and only then knows where the
 * next word lies.  But the last walk knows where the words *were*.  So this file keeps the
 * outermost part of the last whole stack: its frames, and the words of the stack that led from one
 * to the next.  It first compares the new copy's words at these addresses; the CPU can load them
 * all at once.  Then the walk goes on as usual, up to a frame that the kept chain has as well.
 *
 * Nothing is guessed: the result is what the whole walk would give.  A step is a function of the
 * rules at pc (which hold as long as the space is the same), of the registers that they name, and
 * of the words that they load.  Take two walks at the same pc, with the same values in all
 * registers that the rest of the walk reads before it restores them.  If they also find the same
 * words wherever they load, then by induction each further step is the same.  These registers and
 * words are known, because the rest was walked once:
 *
 *     frame      rule                              needs    words
 *     …
 *     parse()    CFA = rsp + 64                    sp       return address
 *     realign()  CFA = rbp + 16, rbp at CFA − 16   sp, rbp  return address; rbp if needed outside
 *     run()      CFA = rsp + 48, rbp at CFA − 16   sp       return address, rbp
 *     main()     CFA = rbp + 16, …                 sp, rbp  return address
 *     _start()   outermost                         sp       none
 *
 * "Needs" is before the step.  Read the table upwards: a frame needs rbp when its own rule computes
 * with it, or when it passes rbp on to a frame that needs it.  run() doesn't need rbp: it restores
 * it.  A saved register that no outer frame needs may differ; in code without frame pointers most
 * are of that kind.
 *
 * Compilers' rules compute with no registers other than rsp and rbp (and r10, in the first
 * instructions of functions that realign their stack).  A step that does, and every step other than
 * by a compiled rule or a frame pointer (by expressions, over signals), ends the chain: it is kept
 * from the outermost frame up to there.  A frame that was interrupted is never met.
 *
 * A load also depends on where the copy begins and ends.  All kept words were loaded, and each must
 * be within the new copy to be the same.  Steps that went on after a load failed are not kept.
 *
 * So a chain stays true for ever, in its space.  The chain of another thread, or an old one, is
 * less useful but not wrong.  tests/unit/test_unwind_chain.c compares with whole walks, on random
 * stacks with random changes.
 */
#include "unwind/unwind_internal.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = TALLY_UNWIND_WORD, STEP_WORDS = 3, FETCHED_BYTES = 2048 };

/* A word farther from pc than this is not taken for a return address. */
#define NEAR_BYTES ((uint64_t)256 << 20)

struct tally_unwind_chain *tally_unwind_chain_new(void)
{
	return calloc(1, sizeof(struct tally_unwind_chain));
}

void tally_unwind_chain_free(struct tally_unwind_chain *chain)
{
	free(chain);
}

static bool holds(const struct tally_unwind_frame *frame, const struct tally_chain_word *word)
{
	uint64_t offset = word->address - frame->stack_address, value;
	if (offset > frame->stack_size || frame->stack_size - offset < WORD)
		return false;
	memcpy(&value, frame->stack + offset, WORD);
	return value == word->value;
}

/* Prefetches the rules of the new frames, those below `end`.  Their return addresses are among the
 * words of the stack there; most words are none.  The walk would need the rules one after the
 * other; this fetches them all at once. */
static void fetch_rules(const struct tally_unwind_walk *walk, uint64_t end)
{
	const struct tally_unwind_request *request = walk->request;
	uint64_t pc = tally_unwind_get(walk, walk->layout->pc),
		 size = end - walk->frame.stack_address, word;
	if (!request->cache)
		return;
	if (size > FETCHED_BYTES)
		size = FETCHED_BYTES;
	if (size > request->stack_size)
		size = request->stack_size;
	for (uint64_t at = 0; at + WORD <= size; at += WORD) {
		memcpy(&word, request->stack + at, WORD);
		if (word - pc + NEAR_BYTES < 2 * NEAR_BYTES)
			__builtin_prefetch(tally_unwind_cache_region(request->cache, word - 1,
								     request->space));
	}
}

struct tally_unwind_chain *tally_unwind_chain_begin(const struct tally_unwind_walk *walk)
{
	const struct tally_unwind_request *request = walk->request;
	struct tally_unwind_chain *chain = request->chain;
	if (!chain || request->is_interpreted ||
	    walk->layout != tally_unwind_layout(TALLY_UNWIND_X86_64))
		return NULL;
	if (request->cache)
		__builtin_prefetch(tally_unwind_cache_region(
			request->cache, tally_unwind_lookup_address(walk), request->space));
	if (chain->space != request->space)
		chain->frame_count = chain->word_count = 0;
	chain->space = request->space;
	uint32_t held = 0;
	while (held < chain->word_count && holds(&walk->frame, &chain->words[held]))
		held++;
	chain->at = chain->frame_count;
	while (chain->at && chain->frames[chain->at - 1].words_end > held)
		chain->at--;
	fetch_rules(walk, chain->at ? chain->frames[chain->at - 1].sp : UINT64_MAX);
	return chain;
}

/* The words that a step loaded, and the values that matter to the frames outside. */
struct account {
	struct tally_chain_word words[STEP_WORDS];
	unsigned count;
	uint64_t cfa, back, fp;
	bool needs_fp;
};

static bool load(struct tally_unwind_frame *frame, struct account *account, uint64_t address,
		 uint64_t *value)
{
	if (!tally_unwind_load(frame, address, WORD, value))
		return false;
	account->words[account->count++] = (struct tally_chain_word){ address, *value };
	return true;
}

/* Accounts for the frame pointer that the step restores or leaves as it is.  Returns false where
 * the step can't be part of a chain. */
static bool account_fp(struct tally_unwind_frame *frame, const struct tally_chain_step *step,
		       const struct tally_unwind_rule *rule, struct account *account)
{
	unsigned i = 0;
	while (i < rule->saved_count && rule->saved_register[i] != TALLY_UNWIND_RBP)
		i++;
	bool is_kept = i == rule->saved_count,
	     is_from_fp = !is_kept && rule->base_register == TALLY_UNWIND_RBP;
	account->needs_fp |= is_kept || is_from_fp;
	account->fp = step->fp;
	if (is_kept)
		return true;
	uint64_t base = account->cfa;
	if (is_from_fp)
		base = step->fp;
	return (is_from_fp || rule->base_register == TALLY_RULE_BASE_IS_CFA) &&
	       load(frame, account, base + (uint64_t)(rule->saved_word[i] * WORD), &account->fp);
}

/* Accounts for a step by a rule.  Returns false where the step can't be part of a chain. */
static bool account_rule(struct tally_unwind_frame *frame, const struct tally_chain_step *step,
			 const struct tally_unwind_rule *rule, bool is_fp_needed,
			 struct account *account)
{
	bool is_from_fp = rule->cfa_register == TALLY_UNWIND_RBP;
	if (rule->return_word == TALLY_RULE_RETURN_IN_REGISTER ||
	    (!is_from_fp && rule->cfa_register != TALLY_UNWIND_RSP))
		return false;
	account->needs_fp = is_from_fp;
	account->cfa = step->sp;
	if (is_from_fp)
		account->cfa = step->fp;
	account->cfa += (uint64_t)(int64_t)rule->cfa_offset;
	if (rule->kind == TALLY_RULE_PLT && (step->pc & 15) >= rule->plt_from)
		account->cfa += WORD;
	if (rule->cfa_is_loaded && !load(frame, account, account->cfa, &account->cfa))
		return false;
	account->cfa += (uint64_t)(int64_t)rule->cfa_added;
	if (!load(frame, account, account->cfa + (uint64_t)(rule->return_word * WORD),
		  &account->back))
		return false;
	if (is_fp_needed && !account_fp(frame, step, rule, account))
		return false;
	return !account->needs_fp || step->known >> TALLY_UNWIND_RBP & 1;
}

/* Accounts for a step.  `outside` is the frame that it led to, NULL for the outermost.  Returns
 * false where the step can't be part of a chain. */
static bool account_step(struct tally_unwind_frame *frame, const struct tally_chain_step *step,
			 const struct tally_unwind_chain_frame *outside, struct account *account)
{
	static const struct tally_unwind_rule BY_POINTER = {
		.kind = TALLY_RULE_SAVED,
		.cfa_register = TALLY_UNWIND_RBP,
		.cfa_offset = 2 * WORD,
		.return_word = -1,
		.base_register = TALLY_RULE_BASE_IS_CFA,
		.saved_count = 1,
		.saved_register = { TALLY_UNWIND_RBP },
		.saved_word = { -2 },
	};
	const struct tally_unwind_rule *rule = step->rule;
	*account = (struct account){ 0 };
	if (step->is_exact || !(step->known >> TALLY_UNWIND_RSP & 1))
		return false;
	if (!outside && rule->kind == TALLY_RULE_OUTERMOST)
		return true;
	/* The bytes of code without rules may have told that it is outermost, or that it returns
	 * from a signal. */
	if (rule->kind == TALLY_RULE_NO_TABLE || (rule->kind == TALLY_RULE_NONE && outside))
		rule = &BY_POINTER;
	else if (rule->kind != TALLY_RULE_SAVED && rule->kind != TALLY_RULE_PLT &&
		 rule->kind != TALLY_RULE_CODE)
		return false;
	if (!account_rule(frame, step, rule, outside && outside->needs_fp, account))
		return false;
	if (!outside)
		return account->back == 0;
	return account->cfa == outside->sp && account->back == outside->pc &&
	       (!outside->needs_fp || account->fp == outside->fp);
}

void tally_unwind_chain_learn(struct tally_unwind_chain *chain, struct tally_unwind_walk *walk,
			      size_t count, size_t met)
{
	struct account account;
	if (count > TALLY_CHAIN_FRAMES)
		return;
	uint32_t frames = (uint32_t)met, words = met ? chain->frames[met - 1].words_end : 0;
	for (; count > 0 && frames < TALLY_CHAIN_FRAMES; count--) {
		const struct tally_chain_step *step = &chain->steps[count - 1];
		if (!account_step(&walk->frame, step, frames ? &chain->frames[frames - 1] : NULL,
				  &account) ||
		    account.count > TALLY_CHAIN_WORDS - words)
			break;
		memcpy(&chain->words[words], account.words, account.count * sizeof(*account.words));
		words += account.count;
		chain->frames[frames++] = (struct tally_unwind_chain_frame){
			.pc = step->pc,
			.sp = step->sp,
			.fp = step->fp,
			.words_end = words,
			.needs_fp = account.needs_fp,
			.is_by_pointer = step->is_by_pointer,
			.is_made_up = step->is_made_up
		};
	}
	chain->frame_count = frames;
	chain->word_count = words;
}
