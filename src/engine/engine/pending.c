/* Work that a hit can't do itself: wake-ups, signals, disabling.
 *
 * Each CPU has a list of events with pending work.  The `pending` bits of an event say what to do.
 * The first that sets `pending_queued` puts the event on this CPU's list, at the head.  Only hits
 * of the same CPU compete for the head, and each of them ends before the one that it interrupted
 * goes on, so the exchange fails at most once per level.  The drain takes the whole list at once.
 * For each event it reads the link to the next, clears `pending_queued`, and only then reads the
 * bits: a hit in between finds the event off the list and puts it on the new one.
 *
 * The drain runs with interrupts off.  So when another CPU comes with run_on(), no drain is
 * half-way, and draining there takes a queued event off the list before it is freed. */
#include "engine/engine_state.h"

#define SIGNAL_IO 29
#define SIGNAL_TRAP 5
#define TRAP_PERF 6

void engine_event_pend(struct engine_event *event, uint32_t what)
{
	struct tally_engine *engine = event->engine;

	__atomic_fetch_or(&event->pending, what, __ATOMIC_RELEASE);
	if (__atomic_exchange_n(&event->pending_queued, 1, __ATOMIC_ACQ_REL))
		return;
	struct engine_cpu *cpu = engine_this_cpu(engine);
	__atomic_store_n(&event->pending_cpu, cpu->number, __ATOMIC_RELAXED);
	struct engine_event *first = __atomic_load_n(&cpu->pending, __ATOMIC_RELAXED);
	do
		event->pending_next = first;
	while (!__atomic_compare_exchange_n(&cpu->pending, &first, event, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED));
	engine->host.pend(engine->host.host);
}

/* Like the kernel's fasync: without F_SETOWN there is no signal. */
static void signal_owner(struct engine_event *event)
{
	struct tally_engine *engine = event->engine;
	const struct tally_engine_file *file = event->parent ? event->parent->file : event->file;

	if (!file || !(file->flags & ENGINE_FILE_ASYNC) || !file->owner || !engine->host.signal)
		return;
	struct tally_engine_signal signal = {
		.number = file->signal_number ? file->signal_number : SIGNAL_IO,
		.code = event->pending_code,
		.fd = file->signal_fd,
		.owner = file->owner,
		.owner_type = file->owner_type,
	};
	engine->host.signal(engine->host.host, &signal);
}

static void signal_trap(struct engine_event *event)
{
	struct tally_engine *engine = event->engine;

	if (!engine->host.signal || !event->task || event->task->exited)
		return;
	struct tally_engine_signal signal = {
		.number = SIGNAL_TRAP,
		.code = TRAP_PERF,
		.fd = -1,
		.task = event->task,
		.data = event->attr.sig_data,
		.type = event->attr.type,
		.address = event->pending_address,
	};
	engine->host.signal(engine->host.host, &signal);
}

static void run_one(struct engine_event *event, struct engine_cpu *cpu)
{
	uint32_t what = __atomic_exchange_n(&event->pending, 0, __ATOMIC_ACQ_REL);

	/* If it is on this CPU no more, scheduling it out has disabled it. */
	if (what & ENGINE_PENDING_DISABLE && event->state == ENGINE_EVENT_ACTIVE &&
	    event->on_cpu == (int)cpu->number)
		engine_event_disable_here(event);
	if (what & ENGINE_PENDING_WAKEUP)
		engine_ring_wakeup(event);
	if (what & ENGINE_PENDING_SIGNAL)
		signal_owner(event);
	if (what & ENGINE_PENDING_SIGTRAP)
		signal_trap(event);
}

/* Interrupts are off, or the CPU is offline. */
static void drain(struct engine_cpu *cpu)
{
	struct engine_event *event = __atomic_exchange_n(&cpu->pending, NULL, __ATOMIC_ACQUIRE);

	while (event) {
		struct engine_event *next = event->pending_next;
		__atomic_store_n(&event->pending_queued, 0, __ATOMIC_RELEASE);
		run_one(event, cpu);
		event = next;
	}
}

void tally_engine_run_pending(struct tally_engine *engine)
{
	uintptr_t state = engine->host.irq_save(engine->host.host);
	drain(engine_this_cpu(engine));
	engine->host.irq_restore(engine->host.host, state);
}

static void drain_here(void *engine)
{
	drain(engine_this_cpu(engine));
}

void engine_event_unpend(struct engine_event *event)
{
	struct tally_engine *engine = event->engine;

	while (__atomic_load_n(&event->pending_queued, __ATOMIC_ACQUIRE)) {
		/* nothing is left to wake or signal */
		__atomic_store_n(&event->pending, 0, __ATOMIC_RELAXED);
		unsigned cpu = __atomic_load_n(&event->pending_cpu, __ATOMIC_RELAXED);
		/* No code runs on an offline CPU: its list may be changed from here. */
		if (engine->host.run_on(engine->host.host, cpu, drain_here, engine) < 0)
			drain(&engine->cpus[cpu]);
	}
}
