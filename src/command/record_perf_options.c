#include "command/record_perf_options.h"

#include "command/record_request.h"

#include <errno.h>

int record_take_perf_option(int id, struct tally_error *err)
{
#define ROW(id_, letter_, name_, kind_, argument_, instead_) [RECORD_PERF_##id_ - RECORD_PERF_FIRST] = { name_, instead_ },
	static const struct { const char *name, *instead; } options[] = { RECORD_PERF_OPTIONS(ROW) };
#undef ROW
	size_t at = (size_t)(id - RECORD_PERF_FIRST);
	if (id < RECORD_PERF_FIRST || at >= sizeof(options) / sizeof(options[0]))
		return 0;
	if (!options[at].instead)
		return 1;
	return tally_error_set(err, -EINVAL, "--%s is perf's alone: %s", options[at].name, options[at].instead);
}
