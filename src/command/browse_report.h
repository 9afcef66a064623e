/* A report browsed on the terminal. */
#ifndef TALLY_COMMAND_BROWSE_REPORT_H
#define TALLY_COMMAND_BROWSE_REPORT_H

#include "command/command.h"
#include "browse/screen.h"
#include "report/report_model.h"

enum { TALLY_BROWSE_GIVEN_MAX = 16 };

struct tally_browse_request {
	const char *input; /* the recording */
	struct tally_report_options report; /* what it begins with */
	bool errors; /* sampling errors where there is little room, too */
	/* Options of samples and names by which the profile was made: an annotation from here is
	 * made by them, too. */
	struct {
		const struct tally_option *option;
		const char *value;
	} given[TALLY_BROWSE_GIVEN_MAX];
	unsigned given_count;
};

/* An option for an annotation; the last one of several holds. */
void tally_browse_give(struct tally_browse_request *request, const struct tally_option *table,
		       int id, const char *value);

/* Until the user leaves.  0, or -ENOMEM. */
int tally_browse_report(struct tally_screen *screen, const struct tally_profile *profile,
			const struct tally_browse_request *request);

#endif
