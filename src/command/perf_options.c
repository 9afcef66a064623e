/* perf's options that tally lacks: accepted if they request what tally does anyway, otherwise
 * refused with an alternative. */
#include "command/stat_perf_options.h"

#include <errno.h>
#include <stddef.h>

struct row {
	const char *name, *instead;
};

static int take(const struct row *rows, int count, int at, struct tally_error *err)
{
	if (at < 0 || at >= count)
		return 0;
	if (!rows[at].instead)
		return 1;
	return tally_error_set(err, -EINVAL, "--%s is not an option of tally's: %s", rows[at].name,
			       rows[at].instead);
}

#define ROW(id_, letter_, name_, kind_, argument_, instead_) { name_, instead_ },
#define COUNT(rows) ((int)(sizeof(rows) / sizeof((rows)[0])))

int stat_take_perf_option(int id, struct tally_error *err)
{
	static const struct row rows[] = { STAT_PERF_OPTIONS(ROW) };
	return take(rows, COUNT(rows), id - STAT_PERF_FIRST, err);
}
