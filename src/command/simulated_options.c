/* Refuses what a provider can't do: options of a simulated CPU without one, targets other than a
 * command, and some events. */
#include "command/simulated_options.h"

#include <errno.h>
#include <string.h>

const char *simulated_conflict(const struct tally_simulated_options *options,
			       const struct tally_provider_ops *provider)
{
	if (provider->capabilities & TALLY_PROVIDER_CPU_MODEL)
		return NULL;
	if (options->region || options->function_count)
		return "--region and --toggle need --provider simulated";
	if (options->cpu)
		return "--sim-cpu needs --provider simulated";
	return NULL;
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

int provider_check_target(const struct tally_provider_ops *provider,
			  const struct tally_target *target, struct tally_error *err)
{
	const char *treatment = provider->treatment;
	if (provider->capabilities & TALLY_PROVIDER_ANY_TARGET)
		return 0;
	if (tally_target_has_tasks(target))
		tally_error_set(err, -EINVAL, "a program that runs already can't be %s (-p, -t)",
				treatment);
	else if (target->all || target->has_cpu_list)
		tally_error_set(err, -EINVAL, "whole CPUs can't be %s (-a, -C)", treatment);
	else if (!target->command)
		tally_error_set(err, -EINVAL, "only a command can be %s", treatment);
	else
		return 0;
	tally_error_hint(err, "give a command: it is %s from its start, with its children",
			 treatment);
	return -EINVAL;
}

int provider_check_events(const struct tally_provider_ops *provider,
			  const struct tally_event_list *events, struct tally_error *err)
{
	if (!provider->refuses)
		return 0;
	for (size_t i = 0; i < events->count; i++) {
		const char *hint, *reason = NULL;
		if (events->items[i].kind != TALLY_EVENT_TOOL)
			reason = provider->refuses(&events->items[i].attr, &hint);
		if (!reason)
			continue;
		tally_error_set(err, -EINVAL, "'%s': %s", events->items[i].name, reason);
		if (hint)
			tally_error_hint(err, "%s", hint);
		return -EINVAL;
	}
	return 0;
}
