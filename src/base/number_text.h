/* Numbers as people read them: "1,234,567".  What programs read (CSV, JSON, perf script's layout)
 * has digits alone. */
#ifndef TALLY_BASE_NUMBER_TEXT_H
#define TALLY_BASE_NUMBER_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum { TALLY_NUMBER_TEXT = 32 };

/* Gives `out`. */
const char *tally_number_text(uint64_t number, char out[TALLY_NUMBER_TEXT]);

/* The same as an argument of printf(3): holds until the block ends. */
#define tally_number(number) tally_number_text((number), (char[TALLY_NUMBER_TEXT]){ 0 })

/* "-1234.5678" → "-1,234.5678" */
void tally_number_group(const char *digits, char *out, size_t size);

#endif
