/* Lines of a JIT's dump.  Internal to this folder. */
#ifndef TALLY_SYMBOL_JIT_LINES_H
#define TALLY_SYMBOL_JIT_LINES_H

#include "base/reader.h"
#include "symbol/jit_dump.h"

/* Appends the entries of a DEBUG_INFO; the reader stands behind the code's address.  Returns 0 or
 * -ENOMEM. */
int tally_jit_lines_read(struct tally_jit_dump *dump, struct tally_reader *reader,
			 const struct tally_jit_function *function, uint64_t address);

/* Removes what JITs add to lines' addresses for perf's sake.  Call it when all functions have been
 * read. */
void tally_jit_lines_put_back(struct tally_jit_dump *dump);

#endif
