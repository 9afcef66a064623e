/* Which objects are worth looking for names of, and debug files from debuginfod servers for them.
 * Of this room alone. */
#ifndef TALLY_PROFILE_FETCH_NAMES_H
#define TALLY_PROFILE_FETCH_NAMES_H

#include "profile/profile.h"

/* Fetches what lacks names or lines, most samples first, before anything is named; rows are of
 * stacks of `places`.  What came is kept with the names' objects, and where nothing comes it is
 * noted in the names' gaps.  0, or -ENOMEM. */
int tally_fetch_names(struct tally_names *names, const struct tally_row_table *rows,
		      const struct tally_place_table *places);

/* After all was named: notes which objects many samples are in whose functions have no names: where
 * they are few, their rows say enough.  0, or -ENOMEM. */
int tally_note_nameless(struct tally_profile *profile);

#endif
