/* Debug files from debuginfod servers, for the objects that most of a profile is in.  Of this room alone. */
#ifndef TALLY_PROFILE_FETCH_NAMES_H
#define TALLY_PROFILE_FETCH_NAMES_H

#include "profile/profile.h"

/* Fetches what lacks names or lines, most samples first, before anything is named.  Where nothing comes it is noted in
 * the names' gaps.  0, or -ENOMEM. */
int tally_fetch_names(struct tally_profile *profile);

#endif
