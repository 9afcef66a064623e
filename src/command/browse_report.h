/* A report browsed on the terminal. */
#ifndef TALLY_COMMAND_BROWSE_REPORT_H
#define TALLY_COMMAND_BROWSE_REPORT_H

#include "output/screen.h"
#include "profile/report_model.h"

/* Until the user leaves.  `options` are what it begins with; `errors`: sampling errors where there is little room, too;
 * `input` is the recording, for who annotates it.  0, or -ENOMEM. */
int tally_browse_report(struct tally_screen *screen, const struct tally_profile *profile,
			const struct tally_report_options *options, bool errors, const char *input);

#endif
