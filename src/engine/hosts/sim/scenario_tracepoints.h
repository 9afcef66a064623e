/* The tracepoint that a scenario's tasks hit with `mark`. */
#ifndef TALLY_SIM_SCENARIO_TRACEPOINTS_H
#define TALLY_SIM_SCENARIO_TRACEPOINTS_H

#include "tally/tracepoint.h"

TALLY_TRACE_CLASS(mark,
	TALLY_PROTO(const char *text, int64_t value),
	TALLY_ARGS(text, value),
	TALLY_FIELDS(TALLY_FIELD(int64_t, value), TALLY_STRING(text, text)),
	TALLY_ASSIGN(entry->value = value;),
	TALLY_PRINT("%s value=%lld", __get_str(text), (long long)REC->value))
TALLY_TRACE_EVENT(mark, mark)
TALLY_TRACE_GROUP(scenario, mark)

#endif
