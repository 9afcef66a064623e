/* The choice of the provider for a command's events.
 *
 * --provider decides.  Without it the kernel's perf events are used.  If the kernel refuses them
 * altogether, as in many containers, and the target is a command alone, the process provider takes
 * their place: it counts and samples inside the program (docs/process.md). */
#ifndef TALLY_COMMAND_PROVIDER_CHOICE_H
#define TALLY_COMMAND_PROVIDER_CHOICE_H

#include "provider/provider.h"
#include "session/session.h"

struct provider_choice {
	const struct tally_provider_ops *ops; /* NULL: there is no provider of that name */
	/* errno with which the kernel refuses perf events, or TALLY_PROBE_KILLED; 0: it allows them,
	 * or need not be asked */
	int refusal;
	bool is_instead;  /* `ops` takes the place of the kernel's perf events */
	bool is_runnable; /* the command's program was found */
	/* why no other provider takes the kernel's place, with the way out; code 0: one does, or
	 * there is no refusal */
	struct tally_error obstacle;
};

/* Chooses a provider that has the capabilities in `needs`.  `name`: --provider's argument, or NULL.
 * `target`: whose events are asked for.  `kernel_option`: an option that the user gave and that only
 * the kernel's perf events can satisfy ("--off-cpu"), or NULL.  Never fails: a name that no provider
 * has sets ops to NULL. */
void provider_choose(struct provider_choice *choice, const char *name, unsigned needs,
		     const struct tally_target *target, const char *kernel_option);

/* Writes the line that tells the user of a choice that the user did not make.  `activity`:
 * "counting", "sampling".  Returns false if there is nothing to tell. */
bool provider_choice_note(const struct provider_choice *choice, const char *activity, char *out,
			  size_t size);

/* For commands that can do nothing then: if the kernel refuses perf events and a provider that would
 * take their place can't be used for this command, sets the obstacle's error and returns its -errno.
 * Otherwise returns 0. */
int provider_choice_check(const struct provider_choice *choice, struct tally_error *err);

/* After a failure to find or use an event of a provider that takes the kernel's place: adds the
 * reason why the kernel is not asked, and what can be measured. */
void provider_choice_explain(const struct provider_choice *choice, struct tally_error *err);

#endif
