/* --provider, and the options of the simulated one: the same for every command that counts. */
#ifndef TALLY_COMMAND_SIMULATED_OPTIONS_H
#define TALLY_COMMAND_SIMULATED_OPTIONS_H

#include "command/command.h"
#include "event/event.h"
#include "provider/provider.h"
#include "provider/simulated.h"
#include "session/session.h"

/* Rows of an option table. `member` is the name of the provider. */
#define TALLY_PROVIDER_OPTION(type, member) \
	{ 0, "provider", TALLY_ARGUMENT_REQUIRED, "NAME", TALLY_PROVIDER_HELP, \
	  TALLY_TEXT(type, member) }

/* `member` is the request's struct tally_simulated_options. */
#define TALLY_SIMULATED_OPTIONS(type, member) \
	{ 0, "sim-cpu", TALLY_ARGUMENT_REQUIRED, "NAME|FILE", \
	  "the CPU to simulate; by default one with this machine's caches", \
	  TALLY_TEXT(type, member.cpu) }, \
	{ 0, "region", TALLY_ARGUMENT_NONE, NULL, \
	  "only between the program's tally_roi_begin() and tally_roi_end()\n" \
	  "(tally/roi.h), simulated", \
	  TALLY_SET(type, member.region) }, \
	{ 0, "toggle", TALLY_ARGUMENT_REQUIRED, "FUNCTION", \
	  "only while FUNCTION runs, simulated; repeatable", \
	  TALLY_TAKE_MEMBER(simulated_take_toggle, type, member) }

/* Adds --toggle's function. Returns 0, or -EINVAL: the name is empty or long, or too many. */
tally_take_option simulated_take_toggle;

/* Returns a message if options of a simulated CPU were given for a provider without one; else
 * NULL. */
const char *simulated_conflict(const struct tally_simulated_options *options,
			       const struct tally_provider_ops *provider);

/* Checks that the provider can measure the target: some measure only a command that tally starts.
 * Returns 0 or -EINVAL. */
int provider_check_target(const struct tally_provider_ops *provider,
			  const struct tally_target *target, struct tally_error *err);

/* Returns 0, or -EINVAL with an alternative for the first event that the provider can never
 * count. */
int provider_check_events(const struct tally_provider_ops *provider,
			  const struct tally_event_list *events, struct tally_error *err);

#endif
