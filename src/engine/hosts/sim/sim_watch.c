/* Compares each watched event with what it was after the last happening, and tells the difference. */
#include "sim/sim_watch.h"

#include "engine/engine_state.h"
#include "sim/sim_state.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WATCHED_MAX = 512, TEXT_MAX = 512 };

struct watched {
	struct engine_event *event;
	unsigned part;
	const char *name, *target;
	bool in_error, is_on, was_on, reported;
	unsigned children;
	uint64_t folded; /* sum of ended children's counts when last reported */
};

struct sim_watch {
	struct sim_machine *machine;
	sim_watch_report *report;
	void *context;
	struct watched items[WATCHED_MAX];
	unsigned count;
};

static unsigned children_of(const struct engine_event *event)
{
	unsigned count = 0;
	for (const struct engine_list *link = event->children.next;
	     link && link != &event->children; link = link->next)
		count++;
	return count;
}

static void say(struct sim_watch *watch, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void say(struct sim_watch *watch, const char *format, ...)
{
	char text[TEXT_MAX];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	watch->report(watch->context, text);
}

static void look_at_error(struct sim_watch *watch, struct watched *item)
{
	bool in_error = item->event->state == ENGINE_EVENT_ERROR;
	if (in_error && !item->in_error)
		say(watch,
		    "pinned %s of %s found no counter free: it is in error, and a read gives "
		    "end-of-file",
		    item->name, item->target);
	item->in_error = in_error;
}

/* The children of all events of a part come and go together: the first event reports them. */
static void look_at_children(struct sim_watch *watch, struct watched *item, bool is_first)
{
	unsigned children = children_of(item->event);
	uint64_t folded = item->event->child_count;
	if (children > item->children && is_first)
		say(watch,
		    "a task was born below %s and inherited its events: %u children count along",
		    item->target, children);
	if (folded != item->folded)
		say(watch, "a child of %s is gone: its %llu %s are folded back, %llu so far",
		    item->target, (unsigned long long)(folded - item->folded), item->name,
		    (unsigned long long)folded);
	item->children = children;
	item->folded = folded;
}

static void append(char *text, const char *separator, const char *name)
{
	size_t used = strlen(text);
	snprintf(text + used, TEXT_MAX / 3 - used, "%s%s", used ? separator : "", name);
}

/* Reports which events of a part count now, if their context is on a CPU. */
static void look_at_turns(struct sim_watch *watch, unsigned first, unsigned end)
{
	char on[TEXT_MAX / 3] = "", off[TEXT_MAX / 3] = "";
	bool changed = false, reported = watch->items[first].reported;
	for (unsigned i = first; i < end; i++) {
		struct watched *item = &watch->items[i];
		if (!item->event->context || !item->event->context->running)
			return;
		item->is_on = item->event->state == ENGINE_EVENT_ACTIVE;
		changed |= item->is_on != item->was_on;
		if (item->is_on || item->event->state == ENGINE_EVENT_INACTIVE)
			append(item->is_on ? on : off, ", ", item->name);
	}
	if (!on[0])
		return;
	watch->items[first].reported |= changed && off[0];
	if (changed && off[0])
		say(watch, "%s of %s: %s %s; no counter for %s",
		    reported ? "rotation" : "first turn", watch->items[first].target, on,
		    reported ? "count now" : "count", off);
	for (unsigned i = first; i < end; i++)
		watch->items[i].was_on = watch->items[i].is_on;
}

static void look(struct sim_machine *machine)
{
	struct sim_watch *watch = machine->watch;
	for (unsigned first = 0, end; first < watch->count; first = end) {
		for (end = first;
		     end < watch->count && watch->items[end].part == watch->items[first].part;
		     end++) {
			look_at_error(watch, &watch->items[end]);
			look_at_children(watch, &watch->items[end], end == first);
		}
		look_at_turns(watch, first, end);
	}
}

struct sim_watch *sim_watch_new(struct sim_machine *machine, sim_watch_report *report,
				void *context)
{
	struct sim_watch *watch = calloc(1, sizeof(*watch));
	if (!watch)
		return NULL;
	watch->machine = machine;
	watch->report = report;
	watch->context = context;
	machine->watch = watch;
	machine->after = look;
	return watch;
}

int sim_watch_add(struct sim_watch *watch, int fd, unsigned part, const char *event,
		  const char *target)
{
	struct tally_engine_file *file;
	int code = tally_engine_poll(watch->machine->engine, fd, &file);
	if (code < 0)
		return code;
	if (watch->count == WATCHED_MAX)
		return -ENOMEM;
	watch->items[watch->count++] = (struct watched){
		.event = file->event, .part = part, .name = event, .target = target
	};
	return 0;
}

void sim_watch_free(struct sim_watch *watch)
{
	if (!watch)
		return;
	watch->machine->after = NULL;
	watch->machine->watch = NULL;
	free(watch);
}
