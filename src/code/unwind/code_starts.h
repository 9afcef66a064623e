/* x86-64: finds where functions begin in code without rules and symbols.  Pure. */
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
	uint64_t *likely; /* more bits, less certain; part of the same memory */
};

/* Reads the code once.  Returns 0 or -ENOMEM.  The caller releases *out. */
int tally_code_starts_find(const uint8_t *code, size_t size, uint64_t address,
			   struct tally_code_starts *out);
void tally_code_starts_release(struct tally_code_starts *starts);

/* Finds the last beginning up to an address, at most `reach` bytes before it.  *end is the next one
 * behind it, at most 2 * `reach` bytes farther, or the code's end.  Returns false when there is
 * none. */
bool tally_code_starts_around(const struct tally_code_starts *starts, uint64_t address,
			      size_t reach, uint64_t *start, uint64_t *end);

/* The same with likely beginnings: good for names, not for unwinding. */
bool tally_code_starts_likely(const struct tally_code_starts *starts, uint64_t address,
			      size_t reach, uint64_t *start, uint64_t *end);

#endif
