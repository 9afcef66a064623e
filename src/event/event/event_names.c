/* The names that the kernel's ABI fixes (hardware, software and cache events), and perf's tool
 * events. */
#include "event/event_internal.h"

#include <errno.h>
#include <string.h>

#define HARDWARE(config, name, alias, text) \
	{ TALLY_EVENT_HARDWARE, name, alias, text, TALLY_TYPE_HARDWARE, TALLY_HW_##config, NULL }
#define SOFTWARE(config, name, alias, text) \
	{ TALLY_EVENT_SOFTWARE, name, alias, text, TALLY_TYPE_SOFTWARE, TALLY_SW_##config, NULL }

#define TOOL(config, name, text) \
	{ \
		TALLY_EVENT_TOOL, name, NULL, text, TALLY_TYPE_TOOL, TALLY_TOOL_##config, NULL \
	}

static const struct tally_named_event fixed[] = {
	HARDWARE(CPU_CYCLES, "cpu-cycles", "cycles",
		 "core cycles; their rate follows the CPU's frequency"),
	HARDWARE(INSTRUCTIONS, "instructions", NULL, "retired instructions"),
	HARDWARE(CACHE_REFERENCES, "cache-references", NULL,
		 "accesses to the last-level cache, usually"),
	HARDWARE(CACHE_MISSES, "cache-misses", NULL,
		 "accesses that missed the last-level cache, usually"),
	HARDWARE(BRANCH_INSTRUCTIONS, "branch-instructions", "branches",
		 "retired branch instructions"),
	HARDWARE(BRANCH_MISSES, "branch-misses", NULL, "mispredicted branches"),
	HARDWARE(BUS_CYCLES, "bus-cycles", NULL, "bus cycles"),
	HARDWARE(STALLED_CYCLES_FRONTEND, "stalled-cycles-frontend", "idle-cycles-frontend",
		 "cycles in which no instruction was issued"),
	HARDWARE(STALLED_CYCLES_BACKEND, "stalled-cycles-backend", "idle-cycles-backend",
		 "cycles in which nothing retired"),
	HARDWARE(REF_CPU_CYCLES, "ref-cycles", NULL,
		 "cycles at a constant rate, whatever the frequency"),
	SOFTWARE(CPU_CLOCK, "cpu-clock", NULL, "time on a CPU, by the CPU's timer"),
	SOFTWARE(TASK_CLOCK, "task-clock", NULL, "time that the task ran"),
	SOFTWARE(PAGE_FAULTS, "page-faults", "faults", "page faults"),
	SOFTWARE(CONTEXT_SWITCHES, "context-switches", "cs", "switches to another task"),
	SOFTWARE(CPU_MIGRATIONS, "cpu-migrations", "migrations", "moves to another CPU"),
	SOFTWARE(PAGE_FAULTS_MIN, "minor-faults", NULL, "page faults served from memory"),
	SOFTWARE(PAGE_FAULTS_MAJ, "major-faults", NULL, "page faults that waited for storage"),
	SOFTWARE(ALIGNMENT_FAULTS, "alignment-faults", NULL,
		 "unaligned accesses that the kernel mended"),
	SOFTWARE(EMULATION_FAULTS, "emulation-faults", NULL,
		 "instructions that the kernel emulated"),
	SOFTWARE(DUMMY, "dummy", NULL, "counts nothing; carries side-band records"),
	SOFTWARE(BPF_OUTPUT, "bpf-output", NULL, "what BPF programs send"),
	SOFTWARE(CGROUP_SWITCHES, "cgroup-switches", NULL, "switches to a task of another cgroup"),
	TOOL(DURATION_TIME, "duration_time", "time that has passed (tally stat)"),
	TOOL(USER_TIME, "user_time", "CPU time of a command or of tasks in user mode (tally stat)"),
	TOOL(SYSTEM_TIME, "system_time",
	     "CPU time of a command or of tasks in the kernel (tally stat)"),
};

enum { FIXED = sizeof(fixed) / sizeof(fixed[0]) };

int tally_catalogue_init(struct tally_catalogue *catalogue)
{
	*catalogue = (struct tally_catalogue){ .arena = TALLY_ARENA_INIT };
	size_t caches = 0;
	uint64_t config;
	const char *description, *name;
	while (tally_cache_name_at(caches, &config, &description))
		caches++;
	catalogue->named = tally_arena_array(&catalogue->arena, FIXED + caches,
					     sizeof(*catalogue->named));
	if (!catalogue->named)
		return -ENOMEM;
	memcpy(catalogue->named, fixed, sizeof(fixed));
	for (size_t i = 0; (name = tally_cache_name_at(i, &config, &description)); i++)
		catalogue->named[FIXED + i] = (struct tally_named_event){
			.kind = TALLY_EVENT_CACHE, .name = name, .description = description,
			.type = TALLY_TYPE_HW_CACHE, .config = config,
		};
	catalogue->named_count = FIXED + caches;
	return 0;
}

void tally_catalogue_release(struct tally_catalogue *catalogue)
{
	if (catalogue->release)
		catalogue->release(catalogue->context);
	tally_arena_release(&catalogue->arena);
	*catalogue = (struct tally_catalogue){ .arena = TALLY_ARENA_INIT };
}

const struct tally_named_event *tally_catalogue_named(const struct tally_catalogue *catalogue,
						      const char *name)
{
	for (size_t i = 0; i < catalogue->named_count; i++) {
		const struct tally_named_event *event = &catalogue->named[i];
		if (!strcmp(event->name, name) || (event->alias && !strcmp(event->alias, name)))
			return event;
	}
	return NULL;
}

const char *tally_event_kind_text(enum tally_event_kind kind)
{
	static const char *const texts[TALLY_EVENT_KINDS] = {
		[TALLY_EVENT_HARDWARE] = "hardware", [TALLY_EVENT_SOFTWARE] = "software",
		[TALLY_EVENT_CACHE] = "cache", [TALLY_EVENT_PMU] = "pmu", [TALLY_EVENT_RAW] = "raw",
		[TALLY_EVENT_BREAKPOINT] = "breakpoint", [TALLY_EVENT_TRACEPOINT] = "tracepoint",
		[TALLY_EVENT_VENDOR] = "vendor", [TALLY_EVENT_TOOL] = "tool",
	};
	if ((unsigned)kind < TALLY_EVENT_KINDS)
		return texts[kind];
	return "unknown";
}

/* Returns the name that perf prints: for two hardware events the alias ("cycles", "branches"), for
 * all others the first name. */
static const char *printed_name(const struct tally_named_event *event)
{
	bool second = event->kind == TALLY_EVENT_HARDWARE &&
		      (event->config == TALLY_HW_CPU_CYCLES ||
		       event->config == TALLY_HW_BRANCH_INSTRUCTIONS);
	if (second)
		return event->alias;
	return event->name;
}

static const char *breakpoint_name(const struct tally_attr *attr, struct tally_arena *arena)
{
	return tally_arena_printf(
		arena, "mem:0x%llx/%llu:%s%s%s", (unsigned long long)attr->config1,
		(unsigned long long)attr->config2,
		attr->bp_type & TALLY_BREAKPOINT_R ? "r" : "",
		attr->bp_type & TALLY_BREAKPOINT_W ? "w" : "",
		attr->bp_type & TALLY_BREAKPOINT_X ? "x" : "");
}

bool tally_event_fixed(const char *name, uint32_t *type, uint64_t *config)
{
	for (size_t i = 0; i < FIXED; i++)
		if (!strcmp(fixed[i].name, name) ||
		    (fixed[i].alias && !strcmp(fixed[i].alias, name))) {
			*type = fixed[i].type;
			*config = fixed[i].config;
			return true;
		}
	*type = TALLY_TYPE_HW_CACHE;
	return !tally_cache_config(name, config);
}

const char *tally_event_fixed_name(uint32_t type, uint64_t config)
{
	const char *cache = NULL;
	if (type == TALLY_TYPE_HW_CACHE)
		cache = tally_cache_name(config);
	if (cache)
		return cache;
	for (size_t i = 0; i < FIXED; i++)
		if (fixed[i].type == type && fixed[i].config == config)
			return printed_name(&fixed[i]);
	return NULL;
}

const char *tally_event_name_of(const struct tally_attr *attr,
				const struct tally_catalogue *catalogue, struct tally_arena *arena)
{
	const char *name = tally_event_fixed_name(attr->type, attr->config);
	if (name)
		return name;
	for (size_t i = 0;
	     catalogue && attr->type == TALLY_TYPE_TRACEPOINT && i < catalogue->tracepoint_count;
	     i++)
		if (catalogue->tracepoints[i].id == attr->config)
			return tally_arena_printf(arena, "%s:%s", catalogue->tracepoints[i].system,
						  catalogue->tracepoints[i].name);
	unsigned long long config = attr->config;
	if (attr->type == TALLY_TYPE_RAW)
		return tally_arena_printf(arena, "r%llx", config);
	if (attr->type == TALLY_TYPE_BREAKPOINT)
		return breakpoint_name(attr, arena);
	for (size_t i = 0; catalogue && i < catalogue->pmu_count; i++)
		if (catalogue->pmus[i].type == attr->type && attr->type >= TALLY_TYPE_MAX)
			return tally_arena_printf(arena, "%s/config=0x%llx/",
						  catalogue->pmus[i].name, config);
	return tally_arena_printf(arena, "type %u config 0x%llx", attr->type, config);
}
