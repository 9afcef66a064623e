/* What fuzzers share. */
#ifndef TALLY_TEST_FUZZ_H
#define TALLY_TEST_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Called by libFuzzer, or by replay.c with each file of a corpus. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Ends the run as a crash unless `holds`. */
static inline void require(bool holds)
{
	if (!holds)
		abort();
}

#endif
