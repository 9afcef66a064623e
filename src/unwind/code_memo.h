/* Remembers the frames of compiled methods that were found by their code.  Internal to src/unwind,
 * except for tally_code_memo_new(), _free() and _clear(). */
#ifndef TALLY_UNWIND_CODE_MEMO_H
#define TALLY_UNWIND_CODE_MEMO_H

#include "unwind/code_frame.h"

enum { TALLY_CODE_MEMO_BYTES = 16 };

struct tally_code_memo;

struct tally_code_memo *tally_code_memo_new(void); /* NULL: no memory */
void tally_code_memo_free(struct tally_code_memo *memo); /* NULL is fine */

/* Forgets everything.  To be called now and then, because code may be replaced by other code that
 * has the same bytes at an address. */
void tally_code_memo_clear(struct tally_code_memo *memo);

/* Looks up an address of a space (tally_unwind_request) with these TALLY_CODE_MEMO_BYTES of code.
 * Returns false when nothing is remembered.  Otherwise sets *is_found, and *frame if a frame was
 * found. */
bool tally_code_memo_get(const struct tally_code_memo *memo, uint64_t space, uint64_t address,
			 const uint8_t *code, bool *is_found, struct tally_code_frame *frame);
void tally_code_memo_put(struct tally_code_memo *memo, uint64_t space, uint64_t address,
			 const uint8_t *code, bool is_found, const struct tally_code_frame *frame);

#endif
