/* Bytes, as people read them. */
#ifndef TALLY_BASE_SIZE_TEXT_H
#define TALLY_BASE_SIZE_TEXT_H

#include <stdint.h>

enum { TALLY_SIZE_TEXT = 32 };

/* "512 B", "8.4 KiB", "46 MiB"; gives `out`. */
const char *tally_size_text(uint64_t bytes, char out[TALLY_SIZE_TEXT]);

#endif
