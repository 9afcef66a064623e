/* x86-64: where functions begin in code that neither rules nor symbols tell of.  Pure. */
#ifndef TALLY_UNWIND_CODE_STARTS_H
#define TALLY_UNWIND_CODE_STARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A bit for each byte of code. */
struct tally_code_starts {
	uint64_t address; /* of the code's first byte */
	size_t size;
	uint64_t *bits;
};

/* Reads the code once.  0, or -ENOMEM.  tally_code_starts_release() frees what *out has. */
int tally_code_starts_find(const uint8_t *code, size_t size, uint64_t address,
			   struct tally_code_starts *out);
void tally_code_starts_release(struct tally_code_starts *starts);

/* The last beginning up to an address, at most `reach` bytes before it, and the next one behind the
 * address (or where the code ends).  False: there is none. */
bool tally_code_starts_around(const struct tally_code_starts *starts, uint64_t address,
			      size_t reach, uint64_t *start, uint64_t *end);

#endif
