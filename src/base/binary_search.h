/* Binary search. */
#ifndef TALLY_BASE_BINARY_SEARCH_H
#define TALLY_BASE_BINARY_SEARCH_H

#include <stddef.h>

/* Returns the first index of [low, high) for which `holds` is true; `high` if there is none.
 * `holds` is an expression of `i`, and true for all indices behind that one:
 *
 *     size_t at = tally_search(i, 0, count, items[i].address >= address);
 */
#define tally_search(i, low, high, holds) \
	__extension__({ \
		size_t search_low = (low), search_high = (high); \
		while (search_low < search_high) { \
			size_t i = search_low + (search_high - search_low) / 2; \
			if (holds) \
				search_high = i; \
			else \
				search_low = i + 1; \
		} \
		search_low; \
	})

#endif
