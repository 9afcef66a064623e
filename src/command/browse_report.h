/* A report browsed on the terminal. */
#ifndef TALLY_COMMAND_BROWSE_REPORT_H
#define TALLY_COMMAND_BROWSE_REPORT_H

#include "browse/browse.h"
#include "report/report.h"
#include "view/view.h"

struct tally_browse_request {
	/* how the recording was opened; `annotate` opens it likewise */
	const struct tally_view_options *view;
	struct tally_report_options report; /* initial options */
	bool errors; /* show sampling errors on narrow screens as well */
};

/* Returns when the user leaves: 0 or -ENOMEM. */
int tally_browse_report(struct tally_screen *screen, const struct tally_profile *profile,
			const struct tally_browse_request *request);

#endif
