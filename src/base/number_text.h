/* Numbers for people: "1,234,567".  Output for programs (CSV, JSON, perf script's layout) has only
 * digits. */
#ifndef TALLY_BASE_NUMBER_TEXT_H
#define TALLY_BASE_NUMBER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TALLY_NUMBER_TEXT = 32 };

/* Writes the number to `out`, and returns `out`. */
const char *tally_number_text(uint64_t number, char out[TALLY_NUMBER_TEXT]);

/* The same as an argument of printf(3).  The text is valid until the block ends. */
#define tally_number(number) tally_number_text((number), (char[TALLY_NUMBER_TEXT]){ 0 })

/* "-1234.5678" → "-1,234.5678" */
void tally_number_group(const char *digits, char *out, size_t size);

/* Sizes in bytes, for people. */

enum { TALLY_SIZE_TEXT = 32 };

/* Writes "512 B", "8.4 KiB" or "46 MiB" to `out`, and returns `out`. */
const char *tally_size_text(uint64_t bytes, char out[TALLY_SIZE_TEXT]);

/* Parses a size such as "4096", "512M" or "2g" (K, M, G: powers of 1024).  `text` has `length`
 * characters.  Returns false for anything else, and above 2^64 − 1. */
bool tally_size_parse(const char *text, size_t length, uint64_t *bytes);

#endif
