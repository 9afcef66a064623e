/* A report as text, and as JSON (schema in docs/report-json.md). */
#ifndef TALLY_OUTPUT_REPORT_TEXT_H
#define TALLY_OUTPUT_REPORT_TEXT_H

#include "base/buffer.h"
#include "base/json.h"
#include "report/report_model.h"

struct tally_report_view {
	unsigned columns; /* 0: lines as long as they are */
	bool colours;
	bool ascii; /* no box-drawing characters */
	bool errors; /* what percentages may be off by, in columns of their own */
	const char *hint; /* stands below the head, with escapes neutralised; NULL: none */
};

void tally_report_text(const struct tally_profile *profile, const struct tally_report *report,
		       const struct tally_report_options *options,
		       const struct tally_report_view *view, struct tally_buffer *out);

/* What was measured, and under which circumstances: a line without its end. */
void tally_report_head(const struct tally_profile *profile, const struct tally_report *report,
		       const struct tally_report_options *options,
		       const struct tally_report_view *view, struct tally_buffer *out);

/* One object for one event's report. */
void tally_report_json(const struct tally_profile *profile, const struct tally_report *report,
		       const struct tally_report_options *options, struct tally_json *json);

#endif
