/* Sets of sort keys that fit the report of any recording, as numbers: a bit for each key.  Keys
 * that few recordings have are left out: branches have a report of their own, and values are
 * rare. */
#ifndef TALLY_TEST_SORT_KEY_SETS_H
#define TALLY_TEST_SORT_KEY_SETS_H

#include "profile/profile.h"

enum {
	FACTS = TALLY_SORT_FRAMES_START - TALLY_SORT_BRANCHES_START,
	SORT_KEY_SETS = 1 << (TALLY_SORT_KEYS - FACTS)
};

static inline void choose_sort_keys(unsigned set, bool by[TALLY_SORT_KEYS])
{
	for (unsigned key = 0; key < TALLY_SORT_KEYS; key++) {
		bool is_of_facts = key >= TALLY_SORT_BRANCHES_START &&
				   key < TALLY_SORT_FRAMES_START;
		by[key] = !is_of_facts && set & 1;
		set >>= is_of_facts ? 0 : 1;
	}
}

#endif
