/* What a hit can't do where it is: wake-ups, signals, disabling.
 *
 * Each CPU has a list of events that ask for something.  An event says what in its `pending` bits,
 * and who sets `pending_queued` first puts it on this CPU's list, at the head: only hits of the
 * same CPU compete for the head, each of which runs to its end within the one that it interrupts,
 * so the exchange fails at most once a level.  The drain takes the whole list at once, lets go of
 * an event (`pending_queued` off) before it looks at its bits, and reads where the list goes on
 * before that: a hit in between finds the event off the list and puts it on the new one.
 *
 * The drain runs with interrupts off.  So where another CPU comes by run_on(), nobody is half-way,
 * and draining there is how a queued event is got off the list before it is freed. */
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

/* Like the kernel's fasync: without F_SETOWN nobody is told. */
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

	/* Where it is not on this CPU any more, scheduling it out has disabled it. */
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

/* Interrupts are off, or the CPU is. */
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
		/* nobody is left to be told */
		__atomic_store_n(&event->pending, 0, __ATOMIC_RELAXED);
		unsigned cpu = __atomic_load_n(&event->pending_cpu, __ATOMIC_RELAXED);
		/* Nothing runs on a CPU that went away: its list may be touched from here. */
		if (engine->host.run_on(engine->host.host, cpu, drain_here, engine) < 0)
			drain(&engine->cpus[cpu]);
	}
}
