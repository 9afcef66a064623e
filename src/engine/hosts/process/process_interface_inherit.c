/* Inheritance: a thread or process that is made while its maker has events with attr.inherit.
 *
 * The new thread opens an event of its own for each, with the same id and in the same group, when
 * it begins.  The pool's entry of such an event names the original: whoever reads that adds the
 * values of all.  When the thread ends, its values go to the original's `children`. */
#include "process/process_interface.h"

#include <errno.h>
#include <string.h>

/* Returns the original of an event that this task hands on, or NULL. */
static struct interface_event *original_of(unsigned index, int32_t parent, uint64_t limit)
{
	struct interface_event *event = &interface_pool->events[index], *original = event;
	if (!interface_is_used(event) || event->tid != parent || event->order >= limit ||
	    !(event->flags & TALLY_ATTR_INHERIT))
		return NULL;
	if (event->parent)
		original = &interface_pool->events[event->parent - 1];
	if (!interface_is_used(original))
		return NULL;
	return original;
}

bool interface_inherits_any(int32_t parent, uint64_t limit)
{
	for (unsigned i = 0; i < interface_pool->events_used; i++)
		if (original_of(i, parent, limit))
			return true;
	return false;
}

/* Returns the descriptor of this thread's event that inherited `leader`, or -1. */
static int leader_here(const struct process_interface *interface, uint32_t leader)
{
	for (unsigned i = 0; i < interface_pool->events_used; i++) {
		const struct interface_event *event = &interface_pool->events[i];
		if (interface_is_used(event) && event->parent == leader &&
		    event->tid == interface->thread->tid)
			return event->descriptor;
	}
	return -1;
}

/* Opens an event with these attributes for this thread, in its entry in the pool.  `leader`: in the
 * engine, or -1. */
static int open_here(struct process_interface *interface, struct interface_event *event,
		     const struct interface_event *like, int leader, bool enabled)
{
	struct interface_call *call = &interface->call;
	struct tally_attr attr = like->attr;
	attr.size = sizeof(attr);
	attr.flags &= ~TALLY_ATTR_DISABLED;
	if (!enabled)
		attr.flags |= TALLY_ATTR_DISABLED;
	memset(call, 0, offsetof(struct interface_call, text));
	memcpy(call->text, &attr, sizeof(attr));
	call->operation = INTERFACE_OPEN_EVENT;
	call->arguments[0] = like->cpu;
	call->arguments[1] = leader;
	call->event = (uint32_t)(event - interface_pool->events);
	call->event_id = like->id;
	interface->inherits = true;
	interface_execute(interface, call);
	interface->inherits = false;
	return call->result < 0 ? (int)call->result : 0;
}

static void inherit(struct process_interface *interface, struct interface_event *original)
{
	struct interface_event *event = interface_event_new();
	uint32_t number = (uint32_t)(original - interface_pool->events) + 1;
	int leader = -1;
	if (!event)
		return;
	if (original->leader != number)
		leader = leader_here(interface, original->leader);
	event->parent = number;
	event->parent_serial = original->serial;
	event->leader = (uint32_t)(event - interface_pool->events) + 1;
	event->generation = original->generation;
	event->order = original->order;
	if (open_here(interface, event, original, leader,
		      __atomic_load_n(&original->enabled, __ATOMIC_SEQ_CST)))
		interface_event_free(event, event->serial);
}

void interface_inherit(struct process_interface *interface, uint64_t limit)
{
	const struct process_thread *thread = interface->thread;
	bool is_thread = thread->identity.parent_pid == thread->pid;
	/* in the order of opening: leaders come before their members */
	for (uint64_t last = 0;;) {
		struct interface_event *next = NULL;
		for (unsigned i = 0; i < interface_pool->events_used; i++) {
			struct interface_event *original = original_of(
				i, thread->identity.parent_tid, limit);
			if (original && original->order >= last &&
			    (!next || original->order < next->order))
				next = original;
		}
		if (!next)
			return;
		last = next->order + 1;
		if (is_thread || !(next->flags & TALLY_ATTR_INHERIT_THREAD))
			inherit(interface, next);
	}
}

static void fold_values(struct interface_values *to, const struct interface_values *from)
{
	__atomic_fetch_add(&to->count, from->count, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&to->enabled_ns, from->enabled_ns, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&to->running_ns, from->running_ns, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&to->lost, from->lost, __ATOMIC_SEQ_CST);
}

void interface_fold(struct interface_event *event)
{
	struct interface_event *original = &interface_pool->events[event->parent - 1];
	struct interface_values *to = &original->children;
	uint64_t serial = event->serial;
	/* the original may be closed */
	if (!interface_is_heir(event, original)) {
		interface_event_free(event, serial);
		return;
	}
	interface_move_begin(original);
	fold_values(to, &event->own);
	fold_values(to, &event->before);
	interface_event_free(event, serial);
	interface_move_end(original);
	interface_wake(original);
}

/* --- exec ----------------------------------------------------------------- */

static void end_at_exec(struct interface_event *event)
{
	uint32_t number = (uint32_t)(event - interface_pool->events) + 1;
	if (event->leader != number)
		interface_pool->events[event->leader - 1].generation++;
	event->leader = number;
	__atomic_store_n(&event->gone, 1, __ATOMIC_SEQ_CST);
	if (event->parent)
		interface_fold(event);
}

static uint64_t count_of(const struct tally_attr *attr, const struct tally_plan_usage *usage)
{
	bool in_user = !(attr->flags & TALLY_ATTR_EXCLUDE_USER);
	if (attr->type != TALLY_TYPE_SOFTWARE)
		return 0;
	switch (attr->config) {
	case TALLY_SW_CPU_CLOCK:
	case TALLY_SW_TASK_CLOCK:
		return usage->cpu_ns;
	case TALLY_SW_PAGE_FAULTS:
		return in_user ? usage->minor_faults + usage->major_faults : 0;
	case TALLY_SW_PAGE_FAULTS_MIN:
		return in_user ? usage->minor_faults : 0;
	case TALLY_SW_PAGE_FAULTS_MAJ:
		return in_user ? usage->major_faults : 0;
	case TALLY_SW_CONTEXT_SWITCHES:
		return attr->flags & TALLY_ATTR_EXCLUDE_KERNEL ? 0 : usage->switches;
	default:
		return 0;
	}
}

/* What happened since the last program called execve(2): the dynamic linker's work. */
static void add_loading(const struct process_interface *interface, struct interface_event *event,
			const struct tally_plan_usage *loading)
{
	if (event->cpu != -1 && event->cpu != (int32_t)interface->on_cpu)
		return;
	event->before.count += count_of(&event->attr, loading);
	event->before.enabled_ns += loading->cpu_ns;
	event->before.running_ns += loading->cpu_ns;
}

static void go_on(struct process_interface *interface, struct interface_event *event,
		  const struct tally_plan_usage *loading)
{
	uint32_t number = (uint32_t)(event - interface_pool->events) + 1;
	const struct interface_event *leader = &interface_pool->events[event->leader - 1];
	int group = -1;
	if (event->leader != number && leader->tid == event->tid)
		group = leader->descriptor;
	if (event->parent && interface_pool->events[event->parent - 1].leader != event->parent)
		group = leader_here(interface, interface_pool->events[event->parent - 1].leader);
	struct interface_event *original = event;
	if (event->parent)
		original = &interface_pool->events[event->parent - 1];
	interface_move_begin(original);
	event->before.count += event->own.count;
	event->before.enabled_ns += event->own.enabled_ns;
	event->before.running_ns += event->own.running_ns;
	event->before.lost += event->own.lost;
	event->own = (struct interface_values){ 0 };
	interface_move_end(original);
	event->goes_on = true;
	bool enabled = event->enabled || event->attr.flags & TALLY_ATTR_ENABLE_ON_EXEC;
	event->attr.flags &= ~TALLY_ATTR_ENABLE_ON_EXEC;
	event->descriptor = -1;
	if (__atomic_exchange_n(&event->deferred, 0, __ATOMIC_SEQ_CST))
		__atomic_fetch_sub(&interface_pool->deferrals, 1, __ATOMIC_SEQ_CST);
	if (open_here(interface, event, event, group, enabled))
		__atomic_store_n(&event->gone, 1, __ATOMIC_SEQ_CST);
	else
		interface_restore(interface, event);
	if (enabled)
		add_loading(interface, event, loading);
}

/* The records of an execution: the program's name and what is mapped. */
static void tell_program(struct process_interface *interface)
{
	enum { GET_NAME = 16 };
	char comm[16] = { 0 };
	process_call(SYS_prctl, GET_NAME, comm);
	tally_engine_comm_exec(interface->task, comm);
	interface->maps.count = 0;
	if (interface->mapping_events)
		interface_maps_read(interface, true);
}

static void restore_outputs(struct process_interface *interface)
{
	for (unsigned i = 0; i < interface_pool->events_used; i++) {
		const struct interface_event *event = &interface_pool->events[i];
		if (interface_is_used(event) && !event->gone &&
		    event->tid == interface->thread->tid)
			interface_restore_output(interface, event);
	}
}

void interface_defer(struct interface_event *event, enum interface_deferral what)
{
	if (!__atomic_fetch_or(&event->deferred, what, __ATOMIC_SEQ_CST))
		__atomic_fetch_add(&interface_pool->deferrals, 1, __ATOMIC_SEQ_CST);
}

static void open_deferred(struct process_interface *interface, struct interface_event *event)
{
	uint32_t number = (uint32_t)(event - interface_pool->events) + 1;
	int leader = -1;
	if (event->leader != number)
		leader = interface_pool->events[event->leader - 1].descriptor;
	if (open_here(interface, event, event, leader, event->enabled))
		__atomic_store_n(&event->gone, 1, __ATOMIC_SEQ_CST);
	else
		interface_restore(interface, event);
}

static void change_deferred(struct process_interface *interface,
			    const struct interface_event *event, unsigned long request)
{
	struct interface_call *call = &interface->call;
	memset(call, 0, offsetof(struct interface_call, text));
	call->operation = INTERFACE_IOCTL;
	call->descriptor = event->descriptor;
	call->arguments[0] = (int64_t)request;
	interface_execute(interface, call);
}

void interface_take_deferred(struct process_interface *interface)
{
	if (!__atomic_load_n(&interface_pool->deferrals, __ATOMIC_SEQ_CST))
		return;
	interface_look_for_tracer(interface);
	for (unsigned i = 0; i < interface_pool->events_used; i++) {
		struct interface_event *event = &interface_pool->events[i];
		if (!interface_is_used(event) || event->tid != interface->thread->tid ||
		    !event->deferred)
			continue;
		uint32_t what = __atomic_exchange_n(&event->deferred, 0, __ATOMIC_SEQ_CST);
		__atomic_fetch_sub(&interface_pool->deferrals, 1, __ATOMIC_SEQ_CST);
		if (what & INTERFACE_DEFERS_OPEN)
			open_deferred(interface, event);
		if (what & INTERFACE_DEFERS_RESET)
			change_deferred(interface, event, TALLY_IOC_RESET);
		if (what & INTERFACE_DEFERS_STATE && event->enabled)
			change_deferred(interface, event, TALLY_IOC_ENABLE);
		else if (what & INTERFACE_DEFERS_STATE)
			change_deferred(interface, event, TALLY_IOC_DISABLE);
	}
}

void interface_go_on(struct process_interface *interface, const struct tally_plan_usage *loading)
{
	const struct process_thread *thread = interface->thread;
	for (uint64_t last = 0;;) {
		struct interface_event *next = NULL;
		for (unsigned i = 0; i < interface_pool->events_used; i++) {
			struct interface_event *event = &interface_pool->events[i];
			if (interface_is_used(event) && !event->gone && event->pid == thread->pid &&
			    event->order >= last && (!next || event->order < next->order))
				next = event;
		}
		if (!next)
			break;
		last = next->order + 1;
		if (next->tid != thread->tid || next->attr.flags & TALLY_ATTR_REMOVE_ON_EXEC)
			end_at_exec(next);
		else
			go_on(interface, next, loading);
	}
	if (!interface->open_events)
		return;
	restore_outputs(interface);
	tell_program(interface);
}
