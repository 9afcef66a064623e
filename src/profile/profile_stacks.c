/* A profile's stacks by name: what fold prints and flame graphs draw. */
#include "profile/profile.h"

#include "base/vector.h"

#include <errno.h>
#include <stdio.h>

static const char *frame_text(const struct tally_names *names, const struct tally_node *node, char *buffer,
			      size_t size)
{
	if (names->functions.items[node->function].name != TALLY_STRING_NONE)
		return tally_names_plain_text(names, node->function);
	const char *object = tally_names_short_object(names, node->function);
	snprintf(buffer, size, object[0] == '[' ? "%s" : "[%s]", object);
	return buffer;
}

int tally_profile_stacks(const struct tally_profile *profile, uint32_t event, bool by_thread, bool by_period,
			 struct tally_stacks *out)
{
	const struct tally_names *names = &profile->recording->names;
	const struct tally_tasks *tasks = &profile->recording->tasks;
	TALLY_VECTOR(uint32_t) path = { 0 };
	char buffer[512];
	int result = 0;
	for (size_t i = 0; !result && i < profile->rows.count; i++) {
		const struct tally_row *row = &profile->rows.items[i];
		const struct tally_thread *task = &tasks->threads.items[row->thread];
		uint32_t thread, depth = 0;
		if (row->event != event)
			continue;
		thread = tally_stacks_thread(out, tally_strings_text(&tasks->strings, row->comm),
					     by_thread ? task->pid : 0, by_thread ? task->tid : 0);
		for (uint32_t node = row->leaf; node != TALLY_NODE_NONE; node = profile->nodes.items[node].caller)
			depth++;
		result = tally_vector_reserve(&path, depth + 1);
		for (uint32_t node = row->leaf, at = depth; !result && node != TALLY_NODE_NONE;
		     node = profile->nodes.items[node].caller) {
			const struct tally_node *n = &profile->nodes.items[node];
			path.items[--at] = tally_stacks_frame(out, frame_text(names, n, buffer, sizeof(buffer)),
							      tally_names_short_object(names, n->function),
							      names->functions.items[n->function].kind);
			if (path.items[at] == UINT32_MAX)
				result = -ENOMEM;
		}
		if (!result && thread == UINT32_MAX)
			result = -ENOMEM;
		if (!result)
			result = tally_stacks_add(out, thread, path.items, depth,
						  by_period ? row->period : row->samples, row->samples);
	}
	tally_vector_release(&path);
	return result;
}
