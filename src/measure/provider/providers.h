/* The providers that --provider chooses, all in one table. */
#ifndef TALLY_PROVIDERS_H
#define TALLY_PROVIDERS_H

#include "provider/provider.h"

/* The table: a provider's name, and its part of the option's help, which the rows make together;
 * "": only for tests, not shown.  The provider's file defines tally_provider_NAME_ops.  The first
 * row is the default. */
#define TALLY_PROVIDERS(PROVIDER) \
	PROVIDER(kernel, "kernel (the default)") \
	PROVIDER(simulated, ", or simulated: the command runs on a\n" \
			    "simulated CPU, several times slower (docs/simulated.md)") \
	PROVIDER(scripted, "")

#define TALLY_PROVIDER_HELPED(name, help) help
#define TALLY_PROVIDER_HELP TALLY_PROVIDERS(TALLY_PROVIDER_HELPED)

#define TALLY_PROVIDER_DECLARE(name, help) \
	extern const struct tally_provider_ops tally_provider_##name##_ops;
TALLY_PROVIDERS(TALLY_PROVIDER_DECLARE)

/* Finds a provider by the argument of --provider: "NAME", "NAME:ARGUMENT", or NULL for the default.
 * It has all capabilities in `needs` (bits, or 0).  Returns NULL if there is none. */
const struct tally_provider_ops *tally_provider_find(const char *text, unsigned needs);

/* Sets an error that lists the providers.  Returns -EINVAL. */
int tally_provider_unknown(const char *text, struct tally_error *err);

/* Makes the provider that `text` names; `ops` is what tally_provider_find() returned for it.
 * `simulated` and its strings must outlive the provider.  Returns 0 or -errno. */
int tally_provider_make(const struct tally_provider_ops *ops, const char *text,
			const struct tally_simulated_options *simulated,
			struct tally_provider **out, struct tally_error *err);

#endif
