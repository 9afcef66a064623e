/* A report as text and as JSON (schema in docs/report-json.md). */
#ifndef TALLY_OUTPUT_REPORT_TEXT_H
#define TALLY_OUTPUT_REPORT_TEXT_H

#include "base/buffer.h"
#include "base/json.h"
#include "report/report_model.h"

struct tally_report_view {
	unsigned columns; /* terminal width; 0: unlimited */
	bool colours;
	bool ascii; /* no box-drawing characters */
	bool errors; /* show columns of sampling errors */
	const char *hint; /* printed below the head, with escapes neutralised; NULL: none */
};

void tally_report_text(const struct tally_profile *profile, const struct tally_report *report,
		       const struct tally_report_options *options,
		       const struct tally_report_view *view, struct tally_buffer *out);

/* Appends what was measured and how, without a newline. */
void tally_report_head(const struct tally_profile *profile, const struct tally_report *report,
		       const struct tally_report_options *options,
		       const struct tally_report_view *view, struct tally_buffer *out);

/* Writes one object for one event's report. */
void tally_report_json(const struct tally_profile *profile, const struct tally_report *report,
		       const struct tally_report_options *options, struct tally_json *json);

#endif
