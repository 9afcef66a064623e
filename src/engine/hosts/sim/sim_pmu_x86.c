/* An x86-like PMU: 4 or 8 general counters, each event on those that its constraint allows, and 3
 * fixed ones (instructions, cycles, reference cycles); 48 bits wide; an NMI on overflow.
 *
 * Placing events is a matching problem: with constraints that overlap without containing one
 * another, first-come placement would refuse groups that fit.  So an added event is placed by an
 * augmenting path, which may move other events; these are stopped, and started again in their new
 * places. */
#include "sim/sim_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIXED = 32, FIXED_COUNTERS = 3, PLACES = FIXED + FIXED_COUNTERS, WIDTH = 48, SKID = 6 };
#define VALUE_MASK ((1ull << WIDTH) - 1)
#define PERIOD_MAX \
	(1ull << (WIDTH - 2)) /* the count since may be larger, but never looks negative */
#define USER_FIXED (1 << 30)

struct encoding {
	uint32_t event; /* event | umask << 8 */
	enum sim_metric metric;
	uint64_t general; /* general counters, of 8, that may count it */
	int fixed;        /* fixed counter, or -1 */
};

static const struct encoding encodings[] = {
	{ 0x003c, SIM_CYCLES, 0xff, 1 },
	{ 0x00c0, SIM_INSTRUCTIONS, 0xff, 0 },
	{ 0x4f2e, SIM_CACHE_REFERENCES, 0xff, -1 },
	{ 0x412e, SIM_CACHE_MISSES, 0xff, -1 },
	{ 0x00c4, SIM_BRANCHES, 0xff, -1 },
	{ 0x00c5, SIM_BRANCH_MISSES, 0xff, -1 },
	{ 0x013c, SIM_BUS_CYCLES, 0xff, -1 },
	{ 0x019c, SIM_STALLED_FRONTEND, 0x0f, -1 },
	{ 0x01a2, SIM_STALLED_BACKEND, 0x04, -1 },
	{ 0x0300, SIM_REFERENCE_CYCLES, 0x00, 2 },
	{ 0x81d0, SIM_L1D_LOADS, 0x0f, -1 },
	{ 0x0151, SIM_L1D_LOAD_MISSES, 0x03, -1 },
	{ 0x82d0, SIM_L1D_STORES, 0x0f, -1 },
	{ 0x0283, SIM_L1I_LOAD_MISSES, 0x0c, -1 },
	{ 0x0108, SIM_DTLB_LOAD_MISSES, 0x06, -1 },
	{ 0x0185, SIM_ITLB_LOAD_MISSES, 0x0a, -1 },
};
enum { ENCODINGS = sizeof(encodings) / sizeof(encodings[0]) };

static const enum sim_metric generic[TALLY_HW_MAX] = {
	SIM_CYCLES,          SIM_INSTRUCTIONS,     SIM_CACHE_REFERENCES, SIM_CACHE_MISSES,
	SIM_BRANCHES,        SIM_BRANCH_MISSES,    SIM_BUS_CYCLES,       SIM_STALLED_FRONTEND,
	SIM_STALLED_BACKEND, SIM_REFERENCE_CYCLES,
};

static const struct { uint32_t config; enum sim_metric metric;
} caches[] = {
	{ TALLY_CACHE_L1D | TALLY_CACHE_OP_READ << 8 | TALLY_CACHE_RESULT_ACCESS << 16,
	  SIM_L1D_LOADS },
	{ TALLY_CACHE_L1D | TALLY_CACHE_OP_READ << 8 | TALLY_CACHE_RESULT_MISS << 16,
	  SIM_L1D_LOAD_MISSES },
	{ TALLY_CACHE_L1D | TALLY_CACHE_OP_WRITE << 8 | TALLY_CACHE_RESULT_ACCESS << 16,
	  SIM_L1D_STORES },
	{ TALLY_CACHE_L1I | TALLY_CACHE_OP_READ << 8 | TALLY_CACHE_RESULT_MISS << 16,
	  SIM_L1I_LOAD_MISSES },
	{ TALLY_CACHE_LL | TALLY_CACHE_OP_READ << 8 | TALLY_CACHE_RESULT_ACCESS << 16,
	  SIM_CACHE_REFERENCES },
	{ TALLY_CACHE_LL | TALLY_CACHE_OP_READ << 8 | TALLY_CACHE_RESULT_MISS << 16,
	  SIM_CACHE_MISSES },
	{ TALLY_CACHE_DTLB | TALLY_CACHE_OP_READ << 8 | TALLY_CACHE_RESULT_MISS << 16,
	  SIM_DTLB_LOAD_MISSES },
	{ TALLY_CACHE_ITLB | TALLY_CACHE_OP_READ << 8 | TALLY_CACHE_RESULT_MISS << 16,
	  SIM_ITLB_LOAD_MISSES },
	{ TALLY_CACHE_BPU | TALLY_CACHE_OP_READ << 8 | TALLY_CACHE_RESULT_ACCESS << 16,
	  SIM_BRANCHES },
	{ TALLY_CACHE_BPU | TALLY_CACHE_OP_READ << 8 | TALLY_CACHE_RESULT_MISS << 16,
	  SIM_BRANCH_MISSES },
};
enum { CACHES = sizeof(caches) / sizeof(caches[0]) };

struct x86 { /* machine->pmu */
	struct tally_engine_pmu pmu;
	struct sim_machine *machine;
	unsigned general; /* number of general counters */
	struct x86_cpu {
		struct tally_pmu_event *events[PLACES]; /* in the order in which they were added */
		unsigned count, committed; /* events from `committed` on belong to an open group */
		bool grouping;
		struct tally_pmu_event *at[PLACES]; /* the event programmed on each counter */
	} *cpus;
};

static const struct tally_engine_pmu_term formats[] = {
	{ "event", "config:0-7" }, { "umask", "config:8-15" },  { "edge", "config:18" },
	{ "inv", "config:23" },    { "cmask", "config:24-31" }, { NULL, NULL },
};
static const struct tally_engine_pmu_term aliases[] = {
	{ "cpu-cycles", "event=0x3c" },
	{ "instructions", "event=0xc0" },
	{ "cache-references", "event=0x2e,umask=0x4f" },
	{ "cache-misses", "event=0x2e,umask=0x41" },
	{ "branch-instructions", "event=0xc4" },
	{ "branch-misses", "event=0xc5" },
	{ "bus-cycles", "event=0x3c,umask=0x01" },
	{ "ref-cycles", "event=0x00,umask=0x03" },
	{ NULL, NULL },
};

static struct x86_cpu *here(const struct tally_engine_pmu *pmu)
{
	struct x86 *x86 = pmu->driver;
	return &x86->cpus[x86->machine->cpu->number];
}

static struct sim_counter *counter_of(const struct tally_pmu_event *event)
{
	struct x86 *x86 = event->pmu->driver;
	return &x86->machine->cpu->counters[event->index];
}

/* --- which counters ------------------------------------------------------- */

static const struct encoding *encoding_of(uint64_t config)
{
	for (unsigned i = 0; i < ENCODINGS; i++)
		if (encodings[i].event == (config & 0xffff))
			return &encodings[i];
	return NULL;
}

/* Returns the event's possible places as bits: general counters, and a fixed one. */
static uint64_t places_of(const struct x86 *x86, const struct tally_pmu_event *event)
{
	const struct encoding *encoding = encoding_of(event->config);
	uint64_t general = (1ull << x86->general) - 1;
	if (!encoding)
		return general;
	general &= encoding->general;
	/* A fixed counter can't count edges or compare. */
	if (encoding->fixed >= 0 && !(event->config & 0xff840000u))
		general |= 1ull << (FIXED + encoding->fixed);
	return general;
}

struct matching {
	uint64_t places[PLACES]; /* possible places of each event */
	int at[PLACES];          /* the event at each place, or -1 */
};

/* Finds a place for `event`: a free one, or one whose event can move, along an augmenting path.
 * Fixed counters first, since they are of least use to others. */
static bool place(struct matching *matching, unsigned event, uint64_t *seen)
{
	for (int p = PLACES - 1; p >= 0; p--)
		if (matching->places[event] >> p & 1 && matching->at[p] < 0) {
			matching->at[p] = (int)event;
			return true;
		}
	for (int p = PLACES - 1; p >= 0; p--) {
		if (!(matching->places[event] >> p & 1) || *seen >> p & 1)
			continue;
		*seen |= 1ull << p;
		if (place(matching, (unsigned)matching->at[p], seen)) {
			matching->at[p] = (int)event;
			return true;
		}
	}
	return false;
}

/* Finds a place for each of the events.  Returns false if they don't fit together.  With `keep`,
 * events keep their places if possible. */
static bool match(const struct x86 *x86, struct tally_pmu_event *const *events, unsigned count,
		  bool keep, struct matching *matching)
{
	for (unsigned p = 0; p < PLACES; p++)
		matching->at[p] = -1;
	for (unsigned i = 0; i < count; i++) {
		matching->places[i] = places_of(x86, events[i]);
		if (keep && events[i]->index >= 0)
			matching->at[events[i]->index] = (int)i;
	}
	for (unsigned i = 0; i < count; i++) {
		uint64_t seen = 0;
		if ((!keep || events[i]->index < 0) && !place(matching, i, &seen))
			return false;
	}
	return true;
}

/* --- programming ---------------------------------------------------------- */

static void x86_read(struct tally_pmu_event *event)
{
	if (event->index < 0)
		return;
	/* Sign-extended, as user code reads it: it counts up from -period. */
	uint64_t value = (uint64_t)((int64_t)(counter_of(event)->value << (64 - WIDTH)) >>
				    (64 - WIDTH));
	int64_t delta = (int64_t)((value - event->previous) << (64 - WIDTH)) >> (64 - WIDTH);
	event->previous = value;
	tally_engine_pmu_count(event, (uint64_t)delta);
}

static void program(struct tally_pmu_event *event)
{
	struct sim_counter *counter = counter_of(event);
	tally_engine_period_elapsed(event);
	uint64_t left = PERIOD_MAX;
	if (event->sample_period && (uint64_t)event->period_left < left)
		left = (uint64_t)event->period_left;
	event->previous = -left;
	counter->value = -left & VALUE_MASK;
	counter->until = left;
}

static uint32_t modes_of(const struct tally_attr *attr)
{
	uint32_t user = 1u << TALLY_MODE_USER, kernel = 1u << TALLY_MODE_KERNEL;
	uint32_t guest_user = 1u << TALLY_MODE_GUEST_USER,
		 guest_kernel = 1u << TALLY_MODE_GUEST_KERNEL;
	uint32_t modes = user | kernel | guest_user | guest_kernel;
	if (attr->flags & TALLY_ATTR_EXCLUDE_USER)
		modes &= ~(user | guest_user);
	if (attr->flags & TALLY_ATTR_EXCLUDE_KERNEL)
		modes &= ~(kernel | guest_kernel);
	if (attr->flags & TALLY_ATTR_EXCLUDE_HOST)
		modes &= ~(user | kernel);
	if (attr->flags & TALLY_ATTR_EXCLUDE_GUEST)
		modes &= ~(guest_user | guest_kernel);
	return modes;
}

static void x86_start(struct tally_pmu_event *event, unsigned flags)
{
	struct x86 *x86 = event->pmu->driver;
	struct sim_cpu *cpu = x86->machine->cpu;
	if (event->index < 0 || !(event->state & TALLY_HES_STOPPED))
		return;
	if (flags & TALLY_EF_RELOAD)
		program(event);
	const struct encoding *encoding = encoding_of(event->config);
	struct sim_counter *counter = counter_of(event);
	event->state = 0;
	counter->metric = encoding ? encoding->metric : SIM_CYCLES;
	/* an unknown encoding counts nothing */
	counter->modes = encoding ? modes_of(event->attr) : 0;
	counter->counting = true;
	if ((unsigned)event->index >= cpu->counters_used)
		cpu->counters_used = (unsigned)event->index + 1;
	tally_engine_user_page_changed(event);
	sim_cpu_rearm(cpu);
}

static void x86_stop(struct tally_pmu_event *event, unsigned flags)
{
	if (event->index >= 0 && !(event->state & TALLY_HES_STOPPED)) {
		counter_of(event)->counting = false;
		event->state |= TALLY_HES_STOPPED;
	}
	if ((flags & TALLY_EF_UPDATE) && !(event->state & TALLY_HES_UPTODATE)) {
		x86_read(event);
		event->state |= TALLY_HES_UPTODATE;
	}
}

/* Moves events to the places of the matching.  All that move are stopped before any is started. */
static void apply(struct x86 *x86, struct x86_cpu *cpu, const struct matching *matching,
		  unsigned start_from)
{
	bool restart[PLACES] = { false };
	int index[PLACES];
	for (int p = 0; p < PLACES; p++)
		if (matching->at[p] >= 0)
			index[matching->at[p]] = p;
	for (unsigned i = 0; i < cpu->count; i++) {
		struct tally_pmu_event *event = cpu->events[i];
		if (event->index == index[i])
			continue;
		if (event->index >= 0) {
			restart[i] = !(event->state & TALLY_HES_STOPPED);
			x86_stop(event, TALLY_EF_UPDATE);
			x86->machine->cpu->counters[event->index].until = SIM_NEVER;
			cpu->at[event->index] = NULL;
			event->index = -1;
		}
	}
	for (unsigned i = 0; i < cpu->count; i++) {
		struct tally_pmu_event *event = cpu->events[i];
		if (event->index >= 0)
			continue;
		event->index = index[i];
		cpu->at[index[i]] = event;
		if (event->attr->flags & TALLY_ATTR_AUX_OUTPUT)
			tally_engine_aux_output_id(event, (uint64_t)event->index);
		if (restart[i] || (i >= start_from && event->words[0]))
			x86_start(event, TALLY_EF_RELOAD);
		event->words[0] = 0;
	}
}

static int place_added(struct tally_engine_pmu *pmu, struct x86_cpu *cpu)
{
	struct matching matching;
	if (!match(pmu->driver, cpu->events, cpu->count, true, &matching))
		return -EAGAIN;
	apply(pmu->driver, cpu, &matching, cpu->committed);
	cpu->committed = cpu->count;
	return 0;
}

static int x86_add(struct tally_pmu_event *event, unsigned flags)
{
	struct x86_cpu *cpu = here(event->pmu);
	if (cpu->count == PLACES)
		return -EAGAIN;
	event->state = TALLY_HES_UPTODATE | TALLY_HES_STOPPED;
	event->index = -1;
	event->words[0] = flags & TALLY_EF_START; /* start it once it has a place */
	cpu->events[cpu->count++] = event;
	if (cpu->grouping)
		return 0;
	int code = place_added(event->pmu, cpu);
	if (code)
		cpu->count--;
	return code;
}

static void x86_del(struct tally_pmu_event *event, unsigned flags)
{
	struct x86 *x86 = event->pmu->driver;
	struct x86_cpu *cpu = here(event->pmu);
	unsigned i = 0;
	x86_stop(event, flags | TALLY_EF_UPDATE);
	while (i < cpu->count && cpu->events[i] != event)
		i++;
	if (i == cpu->count)
		return;
	if (i < cpu->committed)
		cpu->committed--;
	memmove(&cpu->events[i], &cpu->events[i + 1], (--cpu->count - i) * sizeof(cpu->events[0]));
	if (event->index >= 0) {
		x86->machine->cpu->counters[event->index].until = SIM_NEVER;
		cpu->at[event->index] = NULL;
	}
	event->index = -1;
	tally_engine_user_page_changed(event);
}

static void x86_group_start(struct tally_engine_pmu *pmu)
{
	here(pmu)->grouping = true;
}

static int x86_group_commit(struct tally_engine_pmu *pmu)
{
	struct x86_cpu *cpu = here(pmu);
	int code = place_added(pmu, cpu);
	if (!code)
		cpu->grouping = false;
	return code;
}

static void x86_group_cancel(struct tally_engine_pmu *pmu)
{
	struct x86_cpu *cpu = here(pmu);
	cpu->grouping = false;
	cpu->count = cpu->committed; /* del will then find nothing to do */
}

/* --- opening -------------------------------------------------------------- */

static int config_of_metric(enum sim_metric metric, struct tally_pmu_event *event)
{
	for (unsigned i = 0; i < ENCODINGS; i++)
		if (encodings[i].metric == metric) {
			event->config = encodings[i].event;
			return 0;
		}
	return -ENOENT;
}

static bool x86_metric_of(uint32_t type, uint64_t config, enum sim_metric *metric)
{
	if (type == TALLY_TYPE_HARDWARE && config < TALLY_HW_MAX) {
		*metric = generic[config];
		return true;
	}
	for (unsigned i = 0; type == TALLY_TYPE_HW_CACHE && i < CACHES; i++)
		if (caches[i].config == config) {
			*metric = caches[i].metric;
			return true;
		}
	return false;
}

static int decode(const struct tally_engine_pmu *pmu, struct tally_pmu_event *event)
{
	const struct tally_attr *attr = event->attr;
	enum sim_metric metric;
	if (attr->type == TALLY_TYPE_HARDWARE && attr->config >= TALLY_HW_MAX)
		return -EINVAL;
	if (attr->type == TALLY_TYPE_HW_CACHE &&
	    ((attr->config & 0xff) >= TALLY_CACHE_MAX ||
	     (attr->config >> 8 & 0xff) >= TALLY_CACHE_OP_MAX ||
	     (attr->config >> 16 & 0xff) >= TALLY_CACHE_RESULT_MAX))
		return -EINVAL;
	if (x86_metric_of(attr->type, attr->config, &metric))
		return config_of_metric(metric, event);
	if (attr->type != pmu->type)
		return -ENOENT;
	event->config = attr->config & 0xffffffffu;
	return 0;
}

/* Would the group, with this event, fit on a CPU without other events? */
static bool group_fits(struct x86 *x86, struct tally_pmu_event *event)
{
	struct tally_pmu_event *events[PLACES];
	unsigned count = 0;
	for (struct tally_pmu_event *member = tally_engine_group_first(event); member;
	     member = tally_engine_group_next(event, member)) {
		if (member->pmu != &x86->pmu && member != event)
			continue;
		if (count == PLACES)
			return false;
		events[count++] = member;
	}
	struct matching matching;
	return match(x86, events, count, false, &matching);
}

static int x86_event_init(struct tally_engine_pmu *pmu, struct tally_pmu_event *event)
{
	int code = decode(pmu, event);
	if (code)
		return code;
	event->index = -1;
	if (!group_fits(pmu->driver, event))
		return -EINVAL;
	return 0;
}

static int x86_user_index(const struct tally_pmu_event *event)
{
	if (event->index < 0 || (event->state & TALLY_HES_STOPPED) || !event->of_task)
		return -1;
	if (event->index >= FIXED)
		return USER_FIXED | (event->index - FIXED);
	return event->index;
}

static void x86_user_page(const struct tally_pmu_event *event, struct tally_user_page *page)
{
	page->pmc_width = WIDTH;
	if (event->of_task)
		page->capabilities |= TALLY_CAP_USER_RDPMC;
}

static bool x86_aux_output_match(const struct tally_pmu_event *event,
				 const struct tally_pmu_event *aux)
{
	(void)event;
	return strcmp(aux->pmu->name, "trace") == 0;
}

static const struct tally_engine_pmu_ops ops = {
	.event_init = x86_event_init,
	.add = x86_add,
	.del = x86_del,
	.start = x86_start,
	.stop = x86_stop,
	.read = x86_read,
	.group_start = x86_group_start,
	.group_commit = x86_group_commit,
	.group_cancel = x86_group_cancel,
	.user_index = x86_user_index,
	.aux_output_match = x86_aux_output_match,
	.user_page = x86_user_page,
};

/* --- the machine's side --------------------------------------------------- */

/* The interrupt: finds the counter, folds its count in, and checks whether a period is over. */
/* True if two counters with precise sampling overflowed with the same instruction: their one record
 * can't tell whose it is, and is dropped for both. */
static bool collided(struct sim_cpu *cpu, struct x86_cpu *own, struct tally_pmu_event *event)
{
	bool lost = event->words[1];
	event->words[1] = false;
	for (unsigned i = 0; i < PLACES; i++) {
		struct tally_pmu_event *other = own->at[i];
		if (!other || other == event || cpu->counters[i].until != 0 ||
		    !other->sample_period || !tally_attr_precise(other->attr))
			continue;
		other->words[1] = true; /* for its own call */
		lost = true;
	}
	return lost;
}

/* Returns true if this overflow gives no sample. */
static bool goes_elsewhere(struct sim_machine *machine, struct sim_cpu *cpu,
			   struct tally_pmu_event *event)
{
	struct x86 *x86 = machine->pmu;
	if (event->attr->flags & TALLY_ATTR_AUX_OUTPUT) {
		sim_tracer_note(machine, 1ull << 63 | (unsigned)event->index);
		return true;
	}
	if (!tally_attr_precise(event->attr) || !collided(cpu, &x86->cpus[cpu->number], event))
		return false;
	tally_engine_lost_samples(event, 1);
	return true;
}

static void x86_overflow(struct sim_machine *machine, struct sim_cpu *cpu, unsigned index,
			 const struct tally_engine_regs *regs)
{
	struct x86 *x86 = machine->pmu;
	struct tally_pmu_event *event = x86->cpus[cpu->number].at[index];
	if (!event || (event->state & TALLY_HES_STOPPED))
		return;
	x86_read(event);
	if (!event->sample_period) {
		program(event);
		return;
	}
	bool over = tally_engine_period_elapsed(event);
	program(event);
	tally_engine_user_page_changed(event);
	if (!over || goes_elsewhere(machine, cpu, event))
		return;
	struct tally_engine_hit hit = { .period = event->last_period };
	struct tally_engine_regs seen = *regs;
	if (tally_attr_precise(event->attr)) {
		hit.has_exact_ip = true;
		hit.exact_ip = regs->ip;
	} else {
		seen.ip += 4 * SKID; /* an imprecise interrupt arrives some instructions late */
	}
	if (tally_engine_overflow(event, &hit, &seen))
		x86_stop(event, 0);
}

static int init(struct sim_machine *machine, unsigned general)
{
	struct x86 *x86 = calloc(1, sizeof(*x86));
	if (!x86)
		return -ENOMEM;
	machine->pmu = x86;
	x86->machine = machine;
	x86->general = general;
	x86->cpus = calloc(machine->config.cpus, sizeof(*x86->cpus));
	if (!x86->cpus)
		return -ENOMEM;
	x86->pmu = (struct tally_engine_pmu){
		.name = "cpu",
		.type = TALLY_TYPE_RAW,
		.scope = TALLY_SCOPE_HARDWARE,
		.capabilities = TALLY_PMU_GENERIC | TALLY_PMU_AUX_OUTPUT,
		.ops = &ops,
		.formats = formats,
		.events = aliases,
		.driver = x86,
	};
	return tally_engine_pmu_register(machine->engine, &x86->pmu);
}

static int init_4(struct sim_machine *machine)
{
	return init(machine, 4);
}

static int init_8(struct sim_machine *machine)
{
	return init(machine, 8);
}

static void x86_release(struct sim_machine *machine)
{
	struct x86 *x86 = machine->pmu;
	if (machine->engine)
		tally_engine_pmu_unregister(machine->engine, &x86->pmu);
	free(x86->cpus);
	free(x86);
}

static int x86_user_counter(struct sim_machine *machine, unsigned index, uint64_t *value)
{
	unsigned place = index;
	if (index & USER_FIXED)
		place = FIXED + (index & 0xff);
	if (place >= PLACES)
		return -EINVAL;
	sim_cpu_advance(machine->cpu);
	*value = machine->cpu->counters[place].value & VALUE_MASK;
	return 0;
}

const struct sim_pmu_model sim_pmu_x86 = {
	.name = "x86",
	.architecture = &sim_x86_64,
	.raw_instructions = 0xc0,
	.level = TALLY_LEVEL_NMI,
	.counters = 4,
	.init = init_4,
	.release = x86_release,
	.overflow = x86_overflow,
	.user_counter = x86_user_counter,
	.metric_of = x86_metric_of,
};
const struct sim_pmu_model sim_pmu_x86_8 = {
	.name = "x86-8",
	.architecture = &sim_x86_64,
	.raw_instructions = 0xc0,
	.level = TALLY_LEVEL_NMI,
	.counters = 8,
	.init = init_8,
	.release = x86_release,
	.overflow = x86_overflow,
	.user_counter = x86_user_counter,
	.metric_of = x86_metric_of,
};
