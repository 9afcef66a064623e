/* A report browsed on the terminal. */
#ifndef TALLY_COMMAND_BROWSE_REPORT_H
#define TALLY_COMMAND_BROWSE_REPORT_H

#include "command/command.h"
#include "browse/screen.h"
#include "report/report_model.h"

struct tally_browse_request {
	const char *input; /* path of the recording */
	struct tally_report_options report; /* initial options */
	bool errors; /* show sampling errors on narrow screens as well */
	/* what selected samples and names for this profile; `annotate` gets the same */
	const struct tally_profile_filter *filter;
	const struct tally_name_sources *names;
};

/* Returns when the user leaves: 0 or -ENOMEM. */
int tally_browse_report(struct tally_screen *screen, const struct tally_profile *profile,
			const struct tally_browse_request *request);

#endif
