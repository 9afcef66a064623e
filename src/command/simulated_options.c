/* Refuses what the simulated PMU can't do: its options without it, targets other than a command,
 * and some events. */
#include "command/simulated_options.h"

#include <errno.h>
#include <string.h>

bool simulated_is_meant(const char *provider_name)
{
	return provider_name && !strcmp(provider_name, "simulated");
}

const char *simulated_conflict(const struct tally_simulated_options *options,
			       const char *provider_name)
{
	if (simulated_is_meant(provider_name))
		return NULL;
	if (options->region || options->function_count)
		return "--region and --toggle need --provider simulated";
	return options->cpu ? "--sim-cpu needs --provider simulated" : NULL;
}

int simulated_take_toggle(void *request, const struct tally_option *option, const char *value,
			  struct tally_error *err)
{
	struct tally_simulated_options *options = tally_option_member(request, option);
	size_t length = strlen(value);
	if (!length || length > TALLY_SIMULATED_FUNCTION_NAME)
		return tally_error_set(err, -EINVAL,
				       "--toggle: a function's name has 1 to %d bytes",
				       TALLY_SIMULATED_FUNCTION_NAME);
	if (options->function_count == TALLY_SIMULATED_FUNCTIONS)
		return tally_error_set(err, -EINVAL, "--toggle: at most %d functions",
				       TALLY_SIMULATED_FUNCTIONS);
	options->functions[options->function_count++] = value;
	return 0;
}

int simulated_check_target(const struct tally_target *target, struct tally_error *err)
{
	const char *what = NULL;
	if (tally_target_has_tasks(target))
		what = "a program that runs already can't be simulated (-p, -t)";
	else if (target->all || target->has_cpu_list)
		what = "whole CPUs can't be simulated (-a, -C)";
	else if (!target->command)
		what = "only a command can be simulated";
	if (!what)
		return 0;
	tally_error_set(err, -EINVAL, "%s", what);
	tally_error_hint(
		err, "give a command: it is simulated from its start, with its children");
	return -EINVAL;
}

int simulated_check_events(const struct tally_event_list *events, struct tally_error *err)
{
	for (size_t i = 0; i < events->count; i++) {
		const char *hint, *reason = tally_simulated_refuses(&events->items[i].attr, &hint);
		if (!reason)
			continue;
		tally_error_set(err, -EINVAL, "'%s': %s", events->items[i].name, reason);
		if (hint)
			tally_error_hint(err, "%s", hint);
		return -EINVAL;
	}
	return 0;
}
