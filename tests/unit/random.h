/* Random numbers that are the same in each run: xorshift of 64 and of 32 bits.  The state must not
 * be 0. */
#ifndef TALLY_TEST_RANDOM_H
#define TALLY_TEST_RANDOM_H

#include <stdint.h>

static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

static inline uint32_t next_random32(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	return *state ^= *state << 5;
}

#endif
