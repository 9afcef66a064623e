/* Frames of compiled methods that were found by their code, remembered for a while: inside this
 * room but for its life. */
#ifndef TALLY_UNWIND_CODE_MEMO_H
#define TALLY_UNWIND_CODE_MEMO_H

#include "unwind/code_frame.h"

enum { TALLY_CODE_MEMO_BYTES = 16 };

struct tally_code_memo;

struct tally_code_memo *tally_code_memo_new(void); /* NULL: no memory */
void tally_code_memo_free(struct tally_code_memo *memo); /* NULL is fine */

/* Forgets everything.  Code may be replaced by other code that has the same bytes at an address. */
void tally_code_memo_clear(struct tally_code_memo *memo);

/* The answer for an address of a space (tally_unwind_request) with these TALLY_CODE_MEMO_BYTES of
 * code: true, and *is_found, and the frame where that is true.  False where nothing is
 * remembered. */
bool tally_code_memo_get(const struct tally_code_memo *memo, uint64_t space, uint64_t address,
			 const uint8_t *code, bool *is_found, struct tally_code_frame *frame);
void tally_code_memo_put(struct tally_code_memo *memo, uint64_t space, uint64_t address,
			 const uint8_t *code, bool is_found, const struct tally_code_frame *frame);

#endif
