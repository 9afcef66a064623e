/* Parses and opens events with the provider that tally_library_provider() chooses.  Two small
 * functions turn results into errno and messages into the caller's buffer. */
#include "library/library_events.h"

#include "provider/provider.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct tally_provider *tally_library_provider(void)
{
	return tally_provider_kernel();
}

int tally_library_events_parse(struct tally_library_events *events, const char *expression,
			       struct tally_error *err)
{
	if (!events->provider)
		events->provider = tally_library_provider();
	int result = tally_catalogue_init(&events->catalogue);
	if (result < 0)
		return tally_error_set(err, result, "out of memory");
	result = events->provider->ops->catalogue(events->provider, &events->catalogue, err);
	if (!result)
		result = tally_event_parse(expression, &events->catalogue, &events->arena,
					   &events->list, err);
	return result;
}

int tally_library_events_open(struct tally_library_events *events, size_t index, int pid, int group,
			      struct tally_error *err)
{
	struct tally_event *event = &events->list.items[index];
	event->attr.size = sizeof(event->attr);
	int handle = events->provider->ops->open(events->provider, &event->attr, pid, -1, group, 0);
	if (handle < 0)
		tally_provider_open_error(event, handle, pid, -1, NULL, err);
	return handle;
}

void tally_library_events_release(struct tally_library_events *events)
{
	tally_event_list_release(&events->list);
	tally_catalogue_release(&events->catalogue);
	tally_arena_release(&events->arena);
}

int tally_library_options(void *chosen, size_t known, const void *options, struct tally_error *err)
{
	size_t size;
	if (!options)
		return 0;
	memcpy(&size, options, sizeof(size));
	if (size < sizeof(size))
		return tally_error_set(err, -EINVAL,
				       "the options have no size: set it to the sizeof of the "
				       "structure");
	const uint8_t *bytes = options;
	for (size_t i = known; i < size; i++)
		if (bytes[i])
			return tally_error_set(err, -EINVAL,
					       "the options have members that this libtally does "
					       "not know");
	memcpy(chosen, options, size < known ? size : known);
	return 0;
}

int tally_library_result(int result)
{
	if (result >= 0)
		return 0;
	errno = -result;
	return -1;
}

void tally_library_fail(int result, const struct tally_error *err, char *error, size_t error_size)
{
	if (error && error_size)
		snprintf(error, error_size, "%s%s%s", err->message, err->hint[0] ? "; " : "",
			 err->hint);
	errno = -result;
}
