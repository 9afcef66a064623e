/* read(2) on an emulated event: by the engine of its thread, or from the pool's values where the engine
 * doesn't know all. */
#include "process/process_interface.h"

#include <errno.h>
#include <string.h>

static void add_values(struct interface_values *sum, const struct interface_values *more)
{
	sum->count += more->count;
	sum->enabled_ns += more->enabled_ns;
	sum->running_ns += more->running_ns;
	sum->lost += more->lost;
}

/* Brings the entries of an event and of those that inherited it up to date. */
static void publish(struct interface_turn *turn, struct interface_event *event)
{
	if (turn->interface)
		interface_ask_event(event, event->serial, turn->interface,
				    interface_call_of(turn, INTERFACE_PUBLISH));
	if (!interface_inherits(event))
		return;
	for (unsigned i = 0; i < interface_pool->events_used; i++) {
		struct interface_event *child = &interface_pool->events[i];
		uint64_t serial = interface_heir_serial(child, event);
		if (serial && turn->interface)
			interface_ask_event(child, serial, turn->interface,
					    interface_call_of(turn, INTERFACE_PUBLISH));
	}
}

static void add_child(struct interface_values *sum, const struct interface_event *child)
{
	add_values(sum, &child->own);
	add_values(sum, &child->before);
}

/* The engine alone knows all of such an event's values. */
static bool is_plain(const struct interface_event *event)
{
	return !interface_inherits(event) && !event->goes_on &&
	       !interface_pool->events[event->leader - 1].goes_on;
}

static struct interface_values sum_of(const struct interface_event *event)
{
	struct interface_values sum = event->own;
	add_values(&sum, &event->children);
	add_values(&sum, &event->before);
	for (unsigned i = 0; interface_inherits(event) && i < interface_pool->events_used; i++) {
		const struct interface_event *child = &interface_pool->events[i];
		if (interface_is_heir(child, event))
			add_child(&sum, child);
	}
	return sum;
}

/* A thread that was killed while it moved values never ends that: then these are what there is. */
static struct interface_values values_of(const struct interface_event *event)
{
	enum { TRIES = 1000 };
	struct interface_values sum = { 0 };
	for (unsigned i = 0; i < TRIES; i++) {
		uint32_t moves = __atomic_load_n(&event->moves, __ATOMIC_SEQ_CST);
		bool waits = __atomic_load_n(&event->moving, __ATOMIC_SEQ_CST) != 0;
		sum = sum_of(event);
		if (!waits && !__atomic_load_n(&event->moving, __ATOMIC_SEQ_CST) &&
		    moves == __atomic_load_n(&event->moves, __ATOMIC_SEQ_CST))
			break;
		process_call(SYS_sched_yield);
	}
	return sum;
}

static unsigned put_times(uint64_t *words, uint64_t format, const struct interface_values *values)
{
	unsigned n = 0;
	if (format & TALLY_FORMAT_TOTAL_TIME_ENABLED)
		words[n++] = values->enabled_ns;
	if (format & TALLY_FORMAT_TOTAL_TIME_RUNNING)
		words[n++] = values->running_ns;
	return n;
}

static unsigned put_ids(uint64_t *words, uint64_t format, const struct interface_event *event,
			const struct interface_values *values)
{
	unsigned n = 0;
	if (format & TALLY_FORMAT_ID)
		words[n++] = event->id;
	if (format & TALLY_FORMAT_LOST)
		words[n++] = values->lost;
	return n;
}

/* Returns the member of the group that comes after `event`, or NULL. */
struct interface_event *interface_next_member(const struct interface_event *event)
{
	struct interface_event *next = NULL;
	for (unsigned i = 0; i < interface_pool->events_used; i++) {
		struct interface_event *other = &interface_pool->events[i];
		if (interface_is_used(other) && other->leader == event->leader && !other->parent &&
		    other->order > event->order && (!next || other->order < next->order))
			next = other;
	}
	return next;
}

static unsigned members(const struct interface_event *leader)
{
	unsigned count = 0;
	for (const struct interface_event *at = leader; at; at = interface_next_member(at))
		count++;
	return count;
}

/* Inherited groups must have the members that the original has now. */
static bool heirs_are_alike(const struct interface_event *leader)
{
	for (unsigned i = 0; i < interface_pool->events_used; i++) {
		const struct interface_event *child = &interface_pool->events[i];
		if (interface_is_heir(child, leader) && child->generation != leader->generation)
			return false;
	}
	return true;
}

/* The words of read(2) from the pool: for events whose thread has ended, and for inherited ones. */
static long compose(struct interface_turn *turn, struct interface_event *event, uint64_t *words,
		    size_t size)
{
	uint64_t format = event->read_format;
	bool group = format & TALLY_FORMAT_GROUP;
	struct interface_event *first = group ? &interface_pool->events[event->leader - 1] : event;
	unsigned times = !!(format & TALLY_FORMAT_TOTAL_TIME_ENABLED) +
			 !!(format & TALLY_FORMAT_TOTAL_TIME_RUNNING);
	unsigned each = 1 + !!(format & TALLY_FORMAT_ID) + !!(format & TALLY_FORMAT_LOST);
	unsigned count = group ? members(first) : 1, n = 0;
	if (group && !heirs_are_alike(first))
		return -ECHILD;
	if (size < (group + times + (size_t)count * each) * sizeof(*words))
		return -ENOSPC;
	if ((group + times + (size_t)count * each) * sizeof(*words) > INTERFACE_ANSWER)
		return -ENOMEM;
	for (struct interface_event *at = first; at;
	     at = group ? interface_next_member(at) : NULL) {
		publish(turn, at);
		struct interface_values values = values_of(at);
		if (at == first && group)
			words[n++] = count;
		if (at == first && group)
			n += put_times(&words[n], format, &values);
		words[n++] = values.count;
		if (!group)
			n += put_times(&words[n], format, &values);
		n += put_ids(&words[n], format, at, &values);
	}
	return (long)(n * sizeof(*words));
}

/* Puts the words into the thread's part: a stack may be small. */
static long read_event(struct interface_turn *turn, struct interface_event *event, size_t size)
{
	struct process_interface *interface = turn->interface;
	struct interface_call *call = interface_call_of(turn, INTERFACE_READ);
	call->arguments[0] = (int64_t)(size < INTERFACE_ANSWER ? size : INTERFACE_ANSWER);
	int error = interface_ask_event(event, event->serial, interface, call);
	if (error || (call->result > 0 && !is_plain(event)))
		return compose(turn, event, interface->words, size);
	if (call->result > 0)
		memcpy(interface->words, call->answer, (size_t)call->result);
	return call->result;
}

long interface_read(int fd, void *bytes, size_t size)
{
	struct interface_turn turn;
	interface_begin(&turn);
	struct interface_event *event = interface_event_of(fd);
	long length = -EBADF;
	if (event && turn.interface)
		length = read_event(&turn, event, size);
	if (length > 0 && interface_copy_out(bytes, turn.interface->words, (size_t)length))
		length = -EFAULT;
	interface_end(&turn);
	return length;
}
