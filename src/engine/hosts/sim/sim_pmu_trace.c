/* A PMU that traces, beside the machine's counting PMU: it writes a word of 8 bytes into an AUX
 * area for each branch (SPEC D4).
 *
 * The words are the numbers of the event's branches, from 1, so that a reader sees at once which
 * are missing.  Like Intel PT, there is one per CPU, it can't be on without an area, and it
 * interrupts when its buffer ends or the watermark is passed; in between it reports nothing.  It
 * writes around an area that is mapped read-only, and reports when the event stops that all of the
 * area may be new.
 *
 * config is a gap: after that many branches one is not recorded, as if a tracer's own queue
 * overflowed (0: never); then the AUX record is PARTIAL.  For events of the x86-like PMU with
 * aux_output, a word is written at each overflow instead of a sample. */
#include "sim/sim_state.h"

#include <errno.h>
#include <stdlib.h>

enum { WORD = 8, PARTIAL = 4, TRUNCATED = 1 };

struct tracer {
	struct tally_engine_pmu pmu;
	struct sim_machine *machine;
	struct tracer_cpu {
		struct tally_pmu_event *event; /* the event added on this CPU */
		struct tally_engine_aux aux;   /* valid while it isn't stopped */
		size_t written;                /* bytes since the area was begun */
		uint64_t flags;
		uint64_t counted; /* the part of the counter's value that has been written */
	} *cpus;
};

static const struct tally_engine_pmu_term formats[] = { { "gap", "config:0-31" }, { NULL, NULL } };
static const struct tally_engine_pmu_term aliases[] = { { "branches", "gap=0" }, { NULL, NULL } };

static struct tracer *tracer_of(const struct tally_pmu_event *event)
{
	return event->pmu->driver;
}

static struct tracer_cpu *here(const struct tally_pmu_event *event)
{
	struct tracer *tracer = tracer_of(event);
	return &tracer->cpus[tracer->machine->cpu->number];
}

static struct sim_counter *counter_of(const struct tally_pmu_event *event)
{
	return &tracer_of(event)->machine->cpu->counters[SIM_TRACE_COUNTER];
}

static uint64_t *numbered(struct tally_pmu_event *event)
{
	return &event->words[0];
}

/* --- the area ------------------------------------------------------------- */

/* Returns false if there is no room. */
static bool write_word(struct tracer_cpu *cpu, uint64_t word)
{
	struct tally_engine_aux *aux = &cpu->aux;
	if (!aux->overwrite && cpu->written + WORD > aux->room)
		return false;
	uint64_t at = aux->head;
	if (!aux->overwrite)
		at += cpu->written;
	*(uint64_t *)(void *)((char *)aux->area + at % aux->area_size) = word;
	cpu->written += WORD;
	if (aux->overwrite)
		aux->head += WORD;
	return true;
}

/* Adds the counts since the last flush to the event, and writes one word of trace for each. */
static void flush(struct tally_pmu_event *event)
{
	struct tracer_cpu *cpu = here(event);
	uint64_t value = counter_of(event)->value, more = value - cpu->counted;
	cpu->counted = value;
	tally_engine_pmu_count(event, more);
	while (more--) {
		uint64_t number = ++*numbered(event);
		if (event->attr->config && number % (event->attr->config + 1) == 0)
			cpu->flags |= PARTIAL;
		else if (!write_word(cpu, number))
			cpu->flags |= TRUNCATED;
	}
}

static int begin(struct tally_pmu_event *event)
{
	struct tracer_cpu *cpu = here(event);
	cpu->written = 0;
	cpu->flags = 0;
	return tally_engine_aux_begin(event, &cpu->aux);
}

/* Ends the stretch.  Returns true if the trace may go on. */
static bool end(struct tally_pmu_event *event)
{
	struct tracer_cpu *cpu = here(event);
	bool whole = !(cpu->flags & TRUNCATED);
	size_t written = cpu->aux.area_size;
	if (written > cpu->written)
		written = cpu->written;
	tally_engine_aux_end(event, &cpu->aux, written, cpu->flags);
	return whole;
}

/* Sets the next interrupt: at the watermark, or with the first word that finds no room. */
static void set_interrupt(struct tally_pmu_event *event)
{
	const struct tally_engine_aux *aux = &here(event)->aux;
	uint64_t mark = event->attr->aux_watermark;
	if (!mark)
		mark = aux->area_size / 2;
	uint64_t words = (mark + WORD - 1) / WORD;
	if (words > aux->room / WORD)
		words = aux->room / WORD + 1;
	counter_of(event)->until = aux->overwrite ? SIM_NEVER : words;
}

/* --- the operations ------------------------------------------------------- */

static uint32_t modes_of(uint64_t flags)
{
	uint32_t modes = 0;
	if (!(flags & TALLY_ATTR_EXCLUDE_USER))
		modes |= 1u << TALLY_MODE_USER;
	if (!(flags & TALLY_ATTR_EXCLUDE_KERNEL))
		modes |= 1u << TALLY_MODE_KERNEL;
	if (!(flags & TALLY_ATTR_EXCLUDE_HV))
		modes |= 1u << TALLY_MODE_HYPERVISOR;
	return modes;
}

static int trace_event_init(struct tally_engine_pmu *pmu, struct tally_pmu_event *event)
{
	if (event->attr->type != pmu->type)
		return -ENOENT;
	if (event->attr->config > UINT32_MAX)
		return -EINVAL;
	if (event->attr->sample_type & TALLY_SAMPLE_BRANCH_STACK)
		return -EOPNOTSUPP;
	event->index = -1;
	event->state = TALLY_HES_STOPPED | TALLY_HES_UPTODATE;
	return 0;
}

static void trace_start(struct tally_pmu_event *event, unsigned flags)
{
	struct sim_cpu *cpu = tracer_of(event)->machine->cpu;
	struct sim_counter *counter = counter_of(event);
	(void)flags;
	if (!(event->state & TALLY_HES_STOPPED) || begin(event))
		return;
	tally_engine_itrace_started(event);
	here(event)->counted = counter->value;
	counter->metric = SIM_BRANCHES;
	counter->modes = modes_of(event->attr->flags);
	counter->counting = true;
	cpu->counters_used = SIM_COUNTERS_MAX;
	event->state = 0;
	set_interrupt(event);
	sim_cpu_rearm(cpu);
}

static void halt(struct tally_pmu_event *event)
{
	counter_of(event)->counting = false;
	counter_of(event)->until = SIM_NEVER;
	event->state = TALLY_HES_STOPPED | TALLY_HES_UPTODATE;
}

static void trace_stop(struct tally_pmu_event *event, unsigned flags)
{
	(void)flags;
	if (event->state & TALLY_HES_STOPPED)
		return;
	flush(event);
	halt(event);
	end(event);
}

static int trace_add(struct tally_pmu_event *event, unsigned flags)
{
	struct tracer_cpu *cpu = here(event);
	if (cpu->event)
		return -EAGAIN;
	if (flags & TALLY_EF_START) {
		trace_start(event, flags);
		if (event->state & TALLY_HES_STOPPED)
			return -EINVAL; /* there is no area, or no room in it */
	}
	cpu->event = event;
	event->index = SIM_TRACE_COUNTER;
	return 0;
}

static void trace_del(struct tally_pmu_event *event, unsigned flags)
{
	trace_stop(event, flags);
	if (here(event)->event == event)
		here(event)->event = NULL;
	event->index = -1;
}

/* The count is known only when the event stops: reading it now would end the stretch. */
static void trace_read(struct tally_pmu_event *event)
{
	(void)event;
}

static int trace_aux_setup(struct tally_pmu_event *event, void *area, size_t pages, bool overwrite)
{
	(void)event, (void)area, (void)pages, (void)overwrite;
	return 0; /* it needs no tables of its own */
}

static const struct tally_engine_pmu_ops ops = {
	.event_init = trace_event_init,
	.add = trace_add,
	.del = trace_del,
	.start = trace_start,
	.stop = trace_stop,
	.read = trace_read,
	.aux_setup = trace_aux_setup,
};

/* --- the machine's side --------------------------------------------------- */

void sim_tracer_overflow(struct sim_machine *machine, struct sim_cpu *cpu)
{
	struct tracer *tracer = machine->tracer;
	struct tally_pmu_event *event = tracer->cpus[cpu->number].event;
	if (!event || (event->state & TALLY_HES_STOPPED))
		return;
	flush(event);
	if (!end(event) || begin(event)) {
		halt(event); /* the engine disables it */
		return;
	}
	set_interrupt(event);
}

void sim_tracer_note(struct sim_machine *machine, uint64_t word)
{
	struct tracer_cpu *cpu = &machine->tracer->cpus[machine->cpu->number];
	if (!cpu->event || (cpu->event->state & TALLY_HES_STOPPED))
		return;
	flush(cpu->event);
	if (!write_word(cpu, word))
		cpu->flags |= TRUNCATED;
}

int sim_tracer_init(struct sim_machine *machine)
{
	struct tracer *tracer = calloc(1, sizeof(*tracer));
	machine->tracer = tracer;
	if (!tracer)
		return -ENOMEM;
	tracer->machine = machine;
	tracer->cpus = calloc(machine->config.cpus, sizeof(*tracer->cpus));
	if (!tracer->cpus)
		return -ENOMEM;
	tracer->pmu = (struct tally_engine_pmu){
		.name = "trace", .scope = TALLY_SCOPE_SOFTWARE, /* it uses no counter */
		.capabilities = TALLY_PMU_AUX | TALLY_PMU_ITRACE, .ops = &ops, .formats = formats,
		.events = aliases, .driver = tracer,
	};
	return tally_engine_pmu_register(machine->engine, &tracer->pmu);
}

void sim_tracer_release(struct sim_machine *machine)
{
	struct tracer *tracer = machine->tracer;
	if (!tracer)
		return;
	if (machine->engine)
		tally_engine_pmu_unregister(machine->engine, &tracer->pmu);
	free(tracer->cpus);
	free(tracer);
}
