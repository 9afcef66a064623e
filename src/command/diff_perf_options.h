/* Options of `perf diff` that tally lacks; see record_perf_options.h. */
#ifndef TALLY_COMMAND_DIFF_PERF_OPTIONS_H
#define TALLY_COMMAND_DIFF_PERF_OPTIONS_H

#include "base/error.h"

#define DIFF_PERF_OPTIONS(X) \
	X(FORCE, 'f', "force", NONE, NULL, NULL) \
	X(VERBOSE, 'v', "verbose", NONE, NULL, NULL) \
	X(BASELINE, 'b', "baseline-only", NONE, NULL, \
	  "-j tells by `presence` which rows both sides have") \
	X(DUMP, 'D', "dump-raw-trace", NONE, NULL, "tally script --records shows every record") \
	X(FORMULA, 'F', "formula", NONE, NULL, \
	  "CHANGE is the new share less the old one (docs/diff.md)") \
	X(ORDER, 'o', "order", REQUIRED, "N", \
	  "rows are sorted by the size of their change; -j has all of them") \
	X(PERIOD, 'p', "period", NONE, NULL, "--normalize time compares periods; -j has them") \
	X(QUIET, 'q', "quiet", NONE, NULL, "2>/dev/null hides warnings") \
	X(SEPARATOR, 't', "field-separator", REQUIRED, "SEP", "-j is for programs (docs/diff.md)") \
	X(CYCLES, 0, "cycles-hist", NONE, NULL, \
	  "tally report -b --sort srcline_from,srcline_to,cycles has the cycles between branches") \
	X(PERCENTAGE, 0, "percentage", REQUIRED, "relative|absolute", \
	  "shares are of the samples that pass the filters") \
	X(STREAM, 0, "stream", NONE, NULL, \
	  "tally flamegraph --diff OLD -o diff.html NEW compares stacks")

enum { DIFF_PERF_FIRST = 1000, DIFF_PERF_BEFORE = DIFF_PERF_FIRST - 1,
#define ROW(id_, ...) DIFF_PERF_##id_,
       DIFF_PERF_OPTIONS(ROW)
#undef ROW
};

/* Returns 1 if the option is accepted, 0 if `id` is another option, -EINVAL with an alternative. */
int diff_take_perf_option(int id, struct tally_error *err);

#endif
