/* Finds a provider in the table (provider.h) by the name that the user typed, and makes it. */
#include "provider/provider.h"

#include "base/buffer.h"

#include <errno.h>
#include <string.h>

static const struct {
	const struct tally_provider_ops *ops;
	const char *help;
} providers[] = {
#define ROW(name, help) { &tally_provider_##name##_ops, help },
	TALLY_PROVIDERS(ROW)
#undef ROW
};

enum { COUNT = sizeof(providers) / sizeof(providers[0]) };

static bool is_name_of(const struct tally_provider_ops *ops, const char *text)
{
	size_t length = strlen(ops->name);
	if (strncmp(text, ops->name, length))
		return false;
	return text[length] == (ops->takes_argument ? ':' : '\0');
}

const struct tally_provider_ops *tally_provider_find(const char *text, unsigned needs)
{
	if (!text)
		return providers[0].ops;
	for (size_t i = 0; i < COUNT; i++) {
		const struct tally_provider_ops *ops = providers[i].ops;
		if (is_name_of(ops, text) && (ops->capabilities & needs) == needs)
			return ops;
	}
	return NULL;
}

const struct tally_provider_ops *tally_provider_substitute(unsigned needs)
{
	const struct tally_provider_ops *ops = tally_provider_find("process", needs);
	if (ops && ops->lack && *ops->lack())
		return NULL;
	return ops;
}

int tally_provider_unknown(const char *text, struct tally_error *err)
{
	struct tally_buffer names = { 0 };
	const char *last = NULL;
	for (size_t i = 0; i < COUNT; i++) {
		if (!providers[i].help[0])
			continue;
		if (last)
			tally_buffer_printf(&names, "%s%s", names.length ? ", " : "", last);
		last = providers[i].ops->name;
	}
	tally_buffer_printf(&names, "%s%s", names.length ? " or " : "", last);
	tally_error_set(err, -EINVAL, "no provider '%s': use %s", text,
			tally_buffer_string(&names));
	tally_buffer_release(&names);
	return -EINVAL;
}

int tally_provider_make(const struct tally_provider_ops *ops, const char *text,
			const struct tally_simulated_options *simulated,
			struct tally_provider **out, struct tally_error *err)
{
	struct tally_provider_choice choice = { .simulated = simulated };
	if (ops->takes_argument)
		choice.argument = text + strlen(ops->name) + 1;
	return ops->make(&choice, out, err);
}
