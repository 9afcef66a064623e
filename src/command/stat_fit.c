/* The events of `stat` and the counters: groups that can't be counted, and the passes of
 * --no-multiplex. */
#include "base/text.h"
#include "command/stat_command.h"
#include "machine/machine.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* The presets' groups are small and weak: trying them would only cost time. */
static bool may_be_unfit(const struct stat_command *stat)
{
	return stat->event_expressions || stat->is_unscaled || stat->splits_groups;
}

/* Programs that parse -x or -j on stderr get nothing else there; rows have their reasons. */
static void say_group(const struct stat_command *stat, const char *text)
{
	bool is_read = !stat->output_path && stat->ops != &tally_stat_view_table &&
		       !isatty(STDERR_FILENO);
	if (!is_read)
		tally_say("%s", text);
}

/* Names the groups that don't fit.  With --no-multiplex, each event of a group must be counted in one
 * run: a group that stays whole is an error. */
static int check_groups(struct stat_command *stat, struct tally_error *err)
{
	struct tally_event *events = stat->events.items;
	struct tally_unfit_group group = { 0 };
	int nmi_watchdog = -1, result;
	if (tally_provider_can(stat->provider, TALLY_PROVIDER_THIS_MACHINE))
		nmi_watchdog = tally_sysctl_read("kernel/nmi_watchdog");
	for (size_t from = 0;
	     (result = tally_fit_check_group(stat->provider, events, stat->events.count, from,
					     stat->splits_groups, &group)) > 0;
	     from = group.first + group.count) {
		const char *text = tally_fit_group_text(&group, events, nmi_watchdog, &stat->arena);
		text = tally_text_or(text, "a group can't be counted at once");
		if (stat->is_unscaled && !group.was_split) {
			stat->is_misused = true;
			return tally_error_set(err, -EINVAL, "%s", text);
		}
		say_group(stat, text);
	}
	if (result < 0)
		return tally_error_set(err, result, "out of memory");
	return 0;
}

int stat_fit_events(struct stat_command *stat, struct tally_error *err)
{
	if (!tally_fit_can_try(stat->provider_ops) || !may_be_unfit(stat))
		return 0;
	int result = check_groups(stat, err);
	if (result >= 0 && stat->is_unscaled)
		result = tally_count_passes_find(stat->provider, stat->events.items,
						 stat->events.count, &stat->passes, err);
	return result;
}
