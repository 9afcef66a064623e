#include "event/event.h"

#include <errno.h>
#include <string.h>

int tally_event_assign_cgroups(struct tally_event_list *list, const char *names,
			       struct tally_arena *arena, size_t *turns, struct tally_error *err)
{
	bool is_first = !*turns;
	if (!list->count) {
		tally_error_set(err, -EINVAL, "-G '%s': no events were named before it", names);
		tally_error_hint(err,
				 "a cgroup is for the events ahead of it: -e EVENTS -G CGROUP");
		return -EINVAL;
	}
	for (const char *at = names;; at++) {
		size_t length = strcspn(at, ",");
		const char *name = length ? tally_arena_printf(arena, "%.*s", (int)length, at)
					  : NULL;
		if (length && !name)
			return tally_error_set(err, -ENOMEM, "out of memory");
		if (*turns >= list->count) {
			tally_error_set(err, -EINVAL,
					"-G '%s': there are more cgroups than events before them",
					names);
			tally_error_hint(err,
					 "each cgroup is for one event: -e cycles,cycles -G a,b");
			return -EINVAL;
		}
		list->items[(*turns)++].cgroup = name;
		at += length;
		if (!*at)
			break;
	}
	for (size_t i = 1; is_first && *turns == 1 && i < list->count; i++)
		list->items[i].cgroup = list->items[0].cgroup;
	return 0;
}
