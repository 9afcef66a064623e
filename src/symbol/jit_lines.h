/* The lines of a JIT's dump.  Of this room alone. */
#ifndef TALLY_SYMBOL_JIT_LINES_H
#define TALLY_SYMBOL_JIT_LINES_H

#include "base/reader.h"
#include "symbol/jit_dump.h"

/* Appends the entries of a DEBUG_INFO, which the reader is at behind the code's address.  0 or
 * -ENOMEM. */
int tally_jit_lines_read(struct tally_jit_dump *dump, struct tally_reader *reader,
			 const struct tally_jit_function *function, uint64_t address);

/* Takes away what JITs add to lines' addresses for perf's sake; when all functions are there. */
void tally_jit_lines_put_back(struct tally_jit_dump *dump);

#endif
