/* Sizes in bytes, for people. */
#ifndef TALLY_BASE_SIZE_TEXT_H
#define TALLY_BASE_SIZE_TEXT_H

#include <stdint.h>

enum { TALLY_SIZE_TEXT = 32 };

/* Writes "512 B", "8.4 KiB" or "46 MiB" to `out`, and returns `out`. */
const char *tally_size_text(uint64_t bytes, char out[TALLY_SIZE_TEXT]);

#endif
