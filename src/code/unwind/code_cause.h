/* Finds which instruction took the time that a late sample tells of.  Pure.
 *
 * An interrupt is taken between two instructions, so a sample has the address of the next one to
 * run.  The time went to the one that ended before it. */
#ifndef TALLY_UNWIND_CODE_CAUSE_H
#define TALLY_UNWIND_CODE_CAUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True if tally_code_causes() knows the machine's instructions (`machine`: e_machine). */
bool tally_code_has_causes(unsigned machine, bool is_big_endian);

/* A sampled instruction. */
struct tally_code_sample {
	uint64_t offset; /* from the function's first instruction */
	uint8_t heat;    /* binary logarithm of the samples' weight */
	/* result: the offset of the instruction that is charged; `offset` itself where none before
	 * it can be blamed, or where no instruction begins */
	uint64_t cause;
	bool is_jump;    /* result: that is a jump */
};

/* `code` is a whole function of `size` bytes.  Sets the causes of the samples, which are in
 * ascending order.  Returns 0 or -ENOMEM. */
int tally_code_causes(unsigned machine, const uint8_t *code, size_t size,
		      struct tally_code_sample *samples, size_t count);

#endif
