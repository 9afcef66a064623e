/* A report browsed on the terminal. */
#ifndef TALLY_COMMAND_BROWSE_REPORT_H
#define TALLY_COMMAND_BROWSE_REPORT_H

#include "command/command.h"
#include "browse/screen.h"
#include "report/report_model.h"

enum { TALLY_BROWSE_GIVEN_MAX = 16 };

struct tally_browse_request {
	const char *input; /* path of the recording */
	struct tally_report_options report; /* initial options */
	bool errors; /* show sampling errors on narrow screens as well */
	/* Options that selected samples and names for this profile; `annotate` gets the same
	 * ones. */
	struct {
		const struct tally_option *option;
		const char *value;
	} given[TALLY_BROWSE_GIVEN_MAX];
	unsigned given_count;
};

/* Adds an option for `annotate`; a later value replaces an earlier one. */
void tally_browse_give(struct tally_browse_request *request, const struct tally_option *table,
		       int id, const char *value);

/* Returns when the user leaves: 0 or -ENOMEM. */
int tally_browse_report(struct tally_screen *screen, const struct tally_profile *profile,
			const struct tally_browse_request *request);

#endif
