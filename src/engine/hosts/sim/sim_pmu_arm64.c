/* PMUv3, as arm64 Linux drives it: six event counters of 32 or 64 bits and a cycle counter of 64;
 * two chained 32-bit counters for an event that wants 64 bits; filters by exception level, which
 * differ in meaning from attr's exclude_*, so that the difference is made up at guest entry and
 * exit (SPEC F); counters that user code reads (config1 bits 0 and 1).
 *
 * big.LITTLE has two of these PMUs, each with its own type and CPUs. */
#include "sim/sim_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTERS = 6, CYCLE = 31, PLACES = 32, LONG = 1, USER_ACCESS = 2 /* bits of config1 */ };
enum { EL0 = 1, EL1 = 2, EL2 = 4 };

struct arm_pmu {
	struct tally_engine_pmu pmu;
	struct sim_machine *machine;
	uint64_t cpus[16];
	bool long_counters; /* counters have 64 bits */
};

struct arm { /* machine->pmu */
	struct arm_pmu pmus[2];
	unsigned count;
	struct arm_cpu {
		struct tally_pmu_event *at[PLACES]; /* a chained event is at its even counter */
		uint32_t used;                      /* places taken, with the odd ones of chains */
	} *cpus;
};

static const struct { uint16_t event; enum sim_metric metric;
} encodings[] = {
	{ 0x01, SIM_L1I_LOAD_MISSES },  { 0x02, SIM_ITLB_LOAD_MISSES },
	{ 0x03, SIM_L1D_LOAD_MISSES },  { 0x04, SIM_L1D_LOADS },
	{ 0x05, SIM_DTLB_LOAD_MISSES }, { 0x08, SIM_INSTRUCTIONS },
	{ 0x10, SIM_BRANCH_MISSES },    { 0x11, SIM_CYCLES },
	{ 0x1d, SIM_BUS_CYCLES },       { 0x21, SIM_BRANCHES },
	{ 0x23, SIM_STALLED_FRONTEND }, { 0x24, SIM_STALLED_BACKEND },
};
enum { ENCODINGS = sizeof(encodings) / sizeof(encodings[0]) };

static const uint16_t generic[TALLY_HW_MAX] = {
	/* 0: no such event */
	[TALLY_HW_CPU_CYCLES] = 0x11,
	[TALLY_HW_INSTRUCTIONS] = 0x08,
	[TALLY_HW_CACHE_REFERENCES] = 0x04,
	[TALLY_HW_CACHE_MISSES] = 0x03,
	[TALLY_HW_BRANCH_INSTRUCTIONS] = 0x21,
	[TALLY_HW_BRANCH_MISSES] = 0x10,
	[TALLY_HW_BUS_CYCLES] = 0x1d,
	[TALLY_HW_STALLED_CYCLES_FRONTEND] = 0x23,
	[TALLY_HW_STALLED_CYCLES_BACKEND] = 0x24,
};

static const struct { uint32_t config; uint16_t event;
} caches[] = {
	{ TALLY_CACHE_L1D | TALLY_CACHE_RESULT_ACCESS << 16, 0x04 },
	{ TALLY_CACHE_L1D | TALLY_CACHE_RESULT_MISS << 16, 0x03 },
	{ TALLY_CACHE_L1I | TALLY_CACHE_RESULT_MISS << 16, 0x01 },
	{ TALLY_CACHE_DTLB | TALLY_CACHE_RESULT_MISS << 16, 0x05 },
	{ TALLY_CACHE_ITLB | TALLY_CACHE_RESULT_MISS << 16, 0x02 },
	{ TALLY_CACHE_BPU | TALLY_CACHE_RESULT_ACCESS << 16, 0x21 },
	{ TALLY_CACHE_BPU | TALLY_CACHE_RESULT_MISS << 16, 0x10 },
};
enum { CACHES = sizeof(caches) / sizeof(caches[0]) };

static const struct tally_engine_pmu_term formats[] = {
	{ "event", "config:0-15" },
	{ "long", "config1:0" },
	{ "rdpmc", "config1:1" },
	{ NULL, NULL },
};
static const struct tally_engine_pmu_term aliases[] = {
	{ "cpu_cycles", "event=0x11" },    { "inst_retired", "event=0x08" },
	{ "l1d_cache", "event=0x04" },     { "l1d_cache_refill", "event=0x03" },
	{ "br_retired", "event=0x21" },    { "br_mis_pred", "event=0x10" },
	{ "bus_cycles", "event=0x1d" },    { "stall_frontend", "event=0x23" },
	{ "stall_backend", "event=0x24" }, { NULL, NULL },
};

static struct arm_pmu *pmu_of(const struct tally_pmu_event *event)
{
	return event->pmu->driver;
}

static struct arm_cpu *cpu_state(const struct sim_cpu *cpu)
{
	struct arm *arm = cpu->machine->pmu;
	return &arm->cpus[cpu->number];
}

static bool wants_long(const struct tally_attr *attr)
{
	return attr->config1 & LONG;
}

static bool wants_user_access(const struct tally_attr *attr)
{
	return attr->config1 & USER_ACCESS;
}

/* True if the event uses two 32-bit counters: the odd one counts the overflows of the even one. */
static bool chained(const struct tally_pmu_event *event)
{
	return event->index != CYCLE && wants_long(event->attr) &&
	       !wants_user_access(event->attr) && !pmu_of(event)->long_counters;
}

/* Returns the width of the value that is programmed and read.  The cycle counter also overflows at
 * 32 bits unless the event wants 64. */
static unsigned width_of(const struct tally_pmu_event *event)
{
	bool can = event->index == CYCLE || pmu_of(event)->long_counters;
	if (chained(event) || (can && wants_long(event->attr)))
		return 64;
	return 32;
}

static uint64_t mask_of(unsigned width)
{
	if (width == 64)
		return ~0ull;
	return (1ull << width) - 1;
}

/* --- exception levels: SPEC F --------------------------------------------- */

/* Returns the filter that is programmed while the host runs. */
static unsigned levels_of(const struct sim_machine *machine, const struct tally_attr *attr)
{
	unsigned levels = EL0 | EL1;
	uint64_t flags = attr->flags;
	if (machine->config.virtualisation == SIM_VHE) {
		if (!(flags & (TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HOST)))
			levels |= EL2;
		if (flags & TALLY_ATTR_EXCLUDE_GUEST)
			levels &= ~EL1;
		if (flags & TALLY_ATTR_EXCLUDE_HOST)
			levels &= ~EL0;
	} else if (!(flags & (TALLY_ATTR_EXCLUDE_HV | TALLY_ATTR_EXCLUDE_HOST))) {
		levels |= EL2;
	}
	if (flags & TALLY_ATTR_EXCLUDE_KERNEL)
		levels &= ~EL1;
	if (flags & TALLY_ATTR_EXCLUDE_USER)
		levels &= ~EL0;
	return levels;
}

/* Returns the modes in which it counts.  Guest entry and exit change EL0 on VHE, the whole counter
 * otherwise, and only for events that distinguish host and guest. */
static uint32_t modes_of(const struct sim_machine *machine, const struct tally_attr *attr,
			 bool in_guest)
{
	unsigned levels = levels_of(machine, attr);
	bool vhe = machine->config.virtualisation == SIM_VHE;
	bool not_host = attr->flags & TALLY_ATTR_EXCLUDE_HOST,
	     not_guest = attr->flags & TALLY_ATTR_EXCLUDE_GUEST;
	bool excluded = in_guest ? not_guest : not_host;
	if (vhe) {
		levels &= ~(unsigned)EL0;
		if (!(attr->flags & TALLY_ATTR_EXCLUDE_USER) && !excluded)
			levels |= EL0;
	} else if (excluded) {
		return 0;
	}
	uint32_t modes = 0;
	if (levels & EL0)
		modes |= 1u << TALLY_MODE_USER | 1u << TALLY_MODE_GUEST_USER;
	if (levels & EL1)
		modes |= 1u << TALLY_MODE_GUEST_KERNEL;
	if (levels & EL1 && !vhe)
		modes |= 1u << TALLY_MODE_KERNEL;
	if (levels & EL2 && vhe)
		modes |= 1u << TALLY_MODE_KERNEL;
	else if (levels & EL2)
		modes |= 1u << TALLY_MODE_HYPERVISOR;
	if (machine->config.virtualisation == SIM_IN_GUEST)
		modes &= ~(1u << TALLY_MODE_HYPERVISOR); /* EL2 is never counted within a guest */
	return modes;
}

/* --- programming ---------------------------------------------------------- */

static struct sim_counter *counter_of(const struct tally_pmu_event *event)
{
	return &pmu_of(event)->machine->cpu->counters[event->index];
}

static void arm_read(struct tally_pmu_event *event)
{
	if (event->index < 0)
		return;
	unsigned width = width_of(event);
	uint64_t value = counter_of(event)->value & mask_of(width);
	uint64_t delta = (value - event->previous) & mask_of(width);
	event->previous = value;
	tally_engine_pmu_count(event, delta);
}

/* Programs the counter to -left, so that it counts up to its top.  At most half the range, so that
 * the interrupt may be late. */
static void program(struct tally_pmu_event *event)
{
	struct sim_counter *counter = counter_of(event);
	uint64_t most = mask_of(width_of(event)) >> 1;
	tally_engine_period_elapsed(event);
	uint64_t left = most;
	if (event->sample_period && (uint64_t)event->period_left < most)
		left = (uint64_t)event->period_left;
	event->previous = -left;
	counter->value = -left & mask_of(width_of(event));
	counter->until = left;
}

static void arm_start(struct tally_pmu_event *event, unsigned flags)
{
	struct sim_machine *machine = pmu_of(event)->machine;
	struct sim_cpu *cpu = machine->cpu;
	if (event->index < 0 || !(event->state & TALLY_HES_STOPPED))
		return;
	if (flags & TALLY_EF_RELOAD)
		program(event);
	struct sim_counter *counter = counter_of(event);
	event->state = 0;
	event->words[1] = false; /* an event that this PMU doesn't know counts nothing */
	counter->modes = 0;
	for (unsigned i = 0; i < ENCODINGS; i++)
		if (encodings[i].event == event->config) {
			event->words[1] = true;
			counter->metric = encodings[i].metric;
			counter->modes = modes_of(machine, event->attr, cpu->in_guest);
		}
	counter->counting = true;
	if ((unsigned)event->index >= cpu->counters_used)
		cpu->counters_used = (unsigned)event->index + 1;
	tally_engine_user_page_changed(event);
	sim_cpu_rearm(cpu);
}

static void arm_stop(struct tally_pmu_event *event, unsigned flags)
{
	(void)flags; /* the driver always folds the count in */
	if (event->index < 0 || (event->state & TALLY_HES_STOPPED))
		return;
	counter_of(event)->counting = false;
	arm_read(event);
	event->state |= TALLY_HES_STOPPED | TALLY_HES_UPTODATE;
}

/* Returns a free place, given those in use; -1: none. */
static int choose(const struct arm_pmu *own, const struct tally_attr *attr, uint64_t config,
		  uint32_t used, uint32_t *takes)
{
	if (config == 0x11) {
		*takes = 1u << CYCLE;
		if (!(used & *takes))
			return CYCLE;
		/* Without long counters, user code can read 64 bits from no other counter. */
		if (wants_long(attr) && wants_user_access(attr) && !own->long_counters)
			return -1;
	}
	bool pair = wants_long(attr) && !wants_user_access(attr) && !own->long_counters;
	for (int i = 0; i < COUNTERS; i += pair ? 2 : 1) {
		*takes = (pair ? 3u : 1u) << i;
		if (!(used & *takes))
			return i;
	}
	return -1;
}

static int arm_add(struct tally_pmu_event *event, unsigned flags)
{
	struct arm_cpu *cpu = cpu_state(pmu_of(event)->machine->cpu);
	uint32_t takes;
	int index = choose(pmu_of(event), event->attr, event->config, cpu->used, &takes);
	if (index < 0)
		return -EAGAIN;
	cpu->used |= takes;
	cpu->at[index] = event;
	event->index = index;
	event->words[0] = takes;
	event->state = TALLY_HES_STOPPED | TALLY_HES_UPTODATE;
	if (flags & TALLY_EF_START)
		arm_start(event, TALLY_EF_RELOAD);
	return 0;
}

static void arm_del(struct tally_pmu_event *event, unsigned flags)
{
	struct sim_cpu *cpu = pmu_of(event)->machine->cpu;
	if (event->index < 0)
		return;
	arm_stop(event, flags | TALLY_EF_UPDATE);
	cpu_state(cpu)->at[event->index] = NULL;
	cpu_state(cpu)->used &= ~(uint32_t)event->words[0];
	cpu->counters[event->index].until = SIM_NEVER;
	event->index = -1;
	tally_engine_user_page_changed(event);
}

/* --- opening -------------------------------------------------------------- */

/* Returns the event's number; 0: the PMU has no such event. */
static uint16_t number_of(uint32_t type, uint64_t config)
{
	if (type == TALLY_TYPE_HARDWARE && config < TALLY_HW_MAX)
		return generic[config];
	for (unsigned i = 0; type == TALLY_TYPE_HW_CACHE && i < CACHES; i++)
		if (caches[i].config == config)
			return caches[i].event;
	return 0;
}

static bool arm_metric_of(uint32_t type, uint64_t config, enum sim_metric *metric)
{
	uint16_t number = number_of(type, config);
	for (unsigned i = 0; i < ENCODINGS; i++)
		if (number && encodings[i].event == number) {
			*metric = encodings[i].metric;
			return true;
		}
	return false;
}

static int decode(const struct arm_pmu *own, struct tally_pmu_event *event)
{
	const struct tally_attr *attr = event->attr;
	switch (attr->type) {
	case TALLY_TYPE_HARDWARE:
		if (attr->config >= TALLY_HW_MAX)
			return -EINVAL;
		break;
	case TALLY_TYPE_HW_CACHE:
		if ((attr->config & 0xff) >= TALLY_CACHE_MAX ||
		    (attr->config >> 8 & 0xff) >= TALLY_CACHE_OP_MAX ||
		    (attr->config >> 16 & 0xff) >= TALLY_CACHE_RESULT_MAX)
			return -EINVAL;
		break;
	default:
		if (attr->type != TALLY_TYPE_RAW && attr->type != own->pmu.type)
			return -ENOENT;
		event->config = attr->config & 0xffff;
		return 0;
	}
	event->config = number_of(attr->type, attr->config);
	if (!event->config)
		return -ENOENT;
	return 0;
}

static bool group_fits(struct arm_pmu *own, struct tally_pmu_event *event)
{
	uint32_t used = 0, takes;
	for (struct tally_pmu_event *member = tally_engine_group_first(event); member;
	     member = tally_engine_group_next(event, member)) {
		if (member->pmu != &own->pmu && member != event)
			continue;
		if (choose(own, member->attr, member->config, used, &takes) < 0)
			return false;
		used |= takes;
	}
	return true;
}

static int arm_event_init(struct tally_engine_pmu *pmu, struct tally_pmu_event *event)
{
	struct arm_pmu *own = pmu->driver;
	const struct tally_attr *attr = event->attr;
	if (event->cpu >= 0 && !(own->cpus[event->cpu / 64] >> event->cpu % 64 & 1))
		return -ENOENT;
	if (attr->sample_type & TALLY_SAMPLE_BRANCH_STACK)
		return -EOPNOTSUPP;
	int code = decode(own, event);
	if (code)
		return code;
	if (attr->flags & TALLY_ATTR_EXCLUDE_IDLE)
		return -EOPNOTSUPP;
	if (wants_user_access(attr)) {
		if (!event->of_task)
			return -EINVAL;
		if (wants_long(attr) && event->config != 0x11 && !own->long_counters)
			return -EOPNOTSUPP;
	}
	event->index = -1;
	if (!group_fits(own, event))
		return -EINVAL;
	return 0;
}

static int arm_user_index(const struct tally_pmu_event *event)
{
	long access = 0;
	tally_engine_sysctl_get(event->engine, "perf_user_access", &access);
	if (!access || event->index < 0 || (event->state & TALLY_HES_STOPPED) ||
	    !wants_user_access(event->attr))
		return -1;
	/* With several kinds of cores, only an event opened by the PMU's own type can be read. */
	if ((pmu_of(event)->pmu.capabilities & TALLY_PMU_HETEROGENEOUS) &&
	    event->attr->type != pmu_of(event)->pmu.type)
		return -1;
	return event->index;
}

static void arm_user_page(const struct tally_pmu_event *event, struct tally_user_page *page)
{
	pmu_of(event)->machine->cpu->selector = 0;
	if (wants_user_access(event->attr))
		page->capabilities |= TALLY_CAP_USER_RDPMC;
	page->pmc_width = 32;
	if (wants_user_access(event->attr) && wants_long(event->attr))
		page->pmc_width = 64;
}

static const struct tally_engine_pmu_ops ops = {
	.event_init = arm_event_init,
	.add = arm_add,
	.del = arm_del,
	.start = arm_start,
	.stop = arm_stop,
	.read = arm_read,
	.user_index = arm_user_index,
	.user_page = arm_user_page,
};

/* --- the machine's side --------------------------------------------------- */

static void arm_overflow(struct sim_machine *machine, struct sim_cpu *cpu, unsigned index,
			 const struct tally_engine_regs *regs)
{
	struct tally_pmu_event *event = cpu_state(cpu)->at[index];
	(void)machine;
	if (!event || (event->state & TALLY_HES_STOPPED))
		return;
	arm_read(event);
	bool over = event->sample_period && tally_engine_period_elapsed(event);
	program(event);
	tally_engine_user_page_changed(event);
	struct tally_engine_hit hit = { .period = event->last_period };
	if (over && tally_engine_overflow(event, &hit, regs))
		arm_stop(event, 0);
}

static void arm_guest(struct sim_machine *machine, struct sim_cpu *cpu, bool entering)
{
	struct arm_cpu *own = cpu_state(cpu);
	for (unsigned i = 0; i < PLACES; i++) {
		struct tally_pmu_event *event = own->at[i];
		if (event && !(event->state & TALLY_HES_STOPPED) && event->words[1])
			cpu->counters[i].modes = modes_of(machine, event->attr, entering);
	}
}

/* Returns what mrs reads: for a counter opened with 32 bits, the upper half is whatever it
 * holds. */
static int arm_user_counter(struct sim_machine *machine, unsigned index, uint64_t *value)
{
	long access = 0;
	tally_engine_sysctl_get(machine->engine, "perf_user_access", &access);
	if (index >= PLACES)
		return -EINVAL;
	struct tally_pmu_event *event = cpu_state(machine->cpu)->at[index];
	if (!access || !event || !wants_user_access(event->attr))
		return -1; /* EPERM: it traps */
	sim_cpu_advance(machine->cpu);
	*value = machine->cpu->counters[index].value;
	return 0;
}

static int add_pmu(struct sim_machine *machine, const char *name, unsigned first, unsigned last,
		   bool long_counters, unsigned capabilities)
{
	struct arm *arm = machine->pmu;
	struct arm_pmu *own = &arm->pmus[arm->count];
	own->machine = machine;
	own->long_counters = long_counters;
	for (unsigned cpu = first; cpu <= last && cpu < 64 * 16; cpu++)
		own->cpus[cpu / 64] |= 1ull << cpu % 64;
	own->pmu = (struct tally_engine_pmu){
		.name = name,
		.scope = TALLY_SCOPE_HARDWARE,
		.capabilities = TALLY_PMU_GENERIC | capabilities,
		.ops = &ops,
		.formats = formats,
		.events = aliases,
		.driver = own,
		.cpus = own->cpus,
		.cpu_words = 16,
	};
	int code = tally_engine_pmu_register(machine->engine, &own->pmu);
	if (!code)
		arm->count++;
	return code;
}

static int prepare(struct sim_machine *machine)
{
	struct arm *arm = calloc(1, sizeof(*arm));
	machine->pmu = arm;
	if (!arm)
		return -ENOMEM;
	arm->cpus = calloc(machine->config.cpus, sizeof(*arm->cpus));
	if (!arm->cpus)
		return -ENOMEM;
	return 0;
}

static int init_64(struct sim_machine *machine)
{
	int code = prepare(machine);
	if (code)
		return code;
	return add_pmu(machine, "armv8_pmuv3", 0, machine->config.cpus - 1, true, 0);
}

static int init_32(struct sim_machine *machine)
{
	int code = prepare(machine);
	if (code)
		return code;
	return add_pmu(machine, "armv8_pmuv3", 0, machine->config.cpus - 1, false, 0);
}

/* The first half of the CPUs are big, and twice as fast. */
static int init_big_little(struct sim_machine *machine)
{
	unsigned half = machine->config.cpus / 2;
	int code = prepare(machine);
	if (code)
		return code;
	if (!half)
		return -EINVAL;
	for (unsigned i = 0; i < half; i++)
		machine->cpus[i].megahertz *= 2;
	code = add_pmu(machine, "armv8_cortex_a72", 0, half - 1, false, TALLY_PMU_HETEROGENEOUS);
	if (code)
		return code;
	return add_pmu(machine, "armv8_cortex_a53", half, machine->config.cpus - 1, false,
		       TALLY_PMU_HETEROGENEOUS);
}

static void arm_release(struct sim_machine *machine)
{
	struct arm *arm = machine->pmu;
	for (unsigned i = 0; i < arm->count && machine->engine; i++)
		tally_engine_pmu_unregister(machine->engine, &arm->pmus[i].pmu);
	free(arm->cpus);
	free(arm);
}

const struct sim_pmu_model sim_pmu_arm64 = {
	.name = "arm64",
	.architecture = &sim_aarch64,
	.hosts_guests = true,
	.raw_instructions = 0x08,
	.level = TALLY_LEVEL_HARDIRQ,
	.counters = COUNTERS,
	.init = init_64,
	.release = arm_release,
	.overflow = arm_overflow,
	.guest = arm_guest,
	.user_counter = arm_user_counter,
	.metric_of = arm_metric_of,
};
const struct sim_pmu_model sim_pmu_arm64_32 = {
	.name = "arm64-32",
	.architecture = &sim_aarch64,
	.hosts_guests = true,
	.raw_instructions = 0x08,
	.level = TALLY_LEVEL_HARDIRQ,
	.counters = COUNTERS,
	.init = init_32,
	.release = arm_release,
	.overflow = arm_overflow,
	.guest = arm_guest,
	.user_counter = arm_user_counter,
	.metric_of = arm_metric_of,
};
const struct sim_pmu_model sim_pmu_big_little = {
	.name = "big.LITTLE",
	.architecture = &sim_aarch64,
	.core_types = 2,
	.raw_instructions = 0x08,
	.level = TALLY_LEVEL_HARDIRQ,
	.counters = COUNTERS,
	.init = init_big_little,
	.release = arm_release,
	.overflow = arm_overflow,
	.guest = arm_guest,
	.user_counter = arm_user_counter,
	.metric_of = arm_metric_of,
};
