/* Asks the kernel once, by the cheapest event, whether it refuses perf events.  Then it looks whether
 * the provider that needs none can be used for the command. */
#include "command/provider_choice.h"

#include "machine/machine.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Returns the letters of an errno ("EPERM"), or what happens instead of an answer. */
static const char *refusal_name(int refusal)
{
	if (refusal == TALLY_PROBE_KILLED)
		return "a filter kills the caller";
	return strerrorname_np(refusal);
}

static bool is_command_alone(const struct tally_target *target)
{
	return target->command && !target->all && !target->has_cpu_list &&
	       !tally_target_has_tasks(target);
}

static void refuse_option(struct provider_choice *choice, const char *option,
			  const struct tally_provider_ops *ops)
{
	tally_error_set(&choice->obstacle, -EACCES, "%s needs the kernel's perf events", option);
	tally_error_hint(&choice->obstacle,
			 "without %s the command can be sampled, by the %s provider; 'tally doctor' "
			 "tells how to open the kernel's events",
			 option, ops->name);
}

/* Returns the provider that takes the kernel's place, or NULL. */
static const struct tally_provider_ops *substitute(struct provider_choice *choice, unsigned needs,
						   const struct tally_target *target,
						   const char *kernel_option)
{
	char path[PATH_MAX];
	const struct tally_provider_ops *ops = tally_provider_substitute(needs);
	if (!ops)
		return NULL;
	if (kernel_option) {
		refuse_option(choice, kernel_option, ops);
		return NULL;
	}
	choice->is_runnable = !tally_spawn_find(target->command[0], path, sizeof(path));
	if (choice->is_runnable && ops->check_program &&
	    ops->check_program(path, &choice->obstacle) < 0)
		return NULL;
	return ops;
}

void provider_choose(struct provider_choice *choice, const char *name, unsigned needs,
		     const struct tally_target *target, const char *kernel_option)
{
	*choice = (struct provider_choice){ .ops = tally_provider_find(name, needs),
					    .obstacle = TALLY_ERROR_NONE };
	if (name || !is_command_alone(target))
		return;
	choice->refusal = tally_probe_refusal();
	if (!choice->refusal)
		return;
	const struct tally_provider_ops *other = substitute(choice, needs, target, kernel_option);
	choice->is_instead = other != NULL;
	if (other)
		choice->ops = other;
}

bool provider_choice_note(const struct provider_choice *choice, const char *activity, char *out,
			  size_t size)
{
	if (!choice->is_instead || !choice->is_runnable)
		return false;
	snprintf(out, size,
		 "the kernel refuses perf events here (%s): %s with the %s provider, inside the program",
		 refusal_name(choice->refusal), activity, choice->ops->name);
	return true;
}

int provider_choice_check(const struct provider_choice *choice, struct tally_error *err)
{
	const struct tally_error *obstacle = &choice->obstacle;
	if (!obstacle->code)
		return 0;
	tally_error_set(err, obstacle->code, "%s; the kernel refuses perf events here (%s)",
			obstacle->message, refusal_name(choice->refusal));
	tally_error_hint(err, "%s", obstacle->hint);
	return err->code;
}

void provider_choice_explain(const struct provider_choice *choice, struct tally_error *err)
{
	char hint[sizeof(err->hint)];
	if (!choice->is_instead)
		return;
	memcpy(hint, err->hint, sizeof(hint));
	if (!hint[0])
		snprintf(hint, sizeof(hint), "'tally list --provider %s' shows what it has",
			 choice->ops->name);
	tally_error_hint(err,
			 "%s; the kernel refuses perf events here (%s), and 'tally doctor' tells how "
			 "to open them",
			 hint, refusal_name(choice->refusal));
}
