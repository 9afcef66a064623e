/* Decides which objects are worth fetching names for, and fetches their debug files from debuginfod
 * servers.  Used in this room only. */
#ifndef TALLY_PROFILE_FETCH_NAMES_H
#define TALLY_PROFILE_FETCH_NAMES_H

#include "profile/profile.h"

/* Fetches missing files for objects without names or lines, most samples first, before any place is
 * named.  The stacks of `rows` consist of `places`.  Fetched files stay with the names' objects; a
 * file that no server has is noted in the names' gaps.  Returns 0 or -ENOMEM. */
int tally_fetch_names(struct tally_names *names, const struct tally_row_table *rows,
		      const struct tally_place_table *places);

/* After all places are named: notes the objects in which many samples have no function name.  For
 * few samples their rows in a report say enough.  Returns 0 or -ENOMEM. */
int tally_note_nameless(struct tally_profile *profile);

#endif
