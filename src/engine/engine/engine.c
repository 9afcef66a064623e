/* The engine's life: its memory, deferred freeing, its settings.
 *
 * Deferred freeing.  A hit may still use an event or a ring that was taken off every list: a hit
 * that was interrupted on this CPU, or one on another CPU.  engine_retire() keeps the object until
 * every CPU has been outside of any hit once.  host->run_on() brings the question to each CPU.  So
 * the check for hits is in that CPU's program order: all list changes come before it, and a hit
 * that begins later finds the lists without the retired object.  Hits pay nothing for that, not
 * even a fence.  A CPU that is offline has no hits.
 *
 * run_pending() is not a hit, but it keeps interrupts off, so that run_on() doesn't find it
 * half-way either.  If a hit has queued an event, run_pending() still needs the event's task and
 * parent.  These are retired after the event: the oldest is freed first, and freeing an event takes
 * it off the pending list. */
#include "engine/engine_state.h"

/* Asking a CPU costs an interrupt there.  So on a machine with more than REAP_AT_ONCE CPUs, retired
 * objects are collected until there are as many as CPUs, and then share one round of questions:
 * each costs one question, however many CPUs there are.  One surface call asks at most ASKS_AT_ONCE
 * CPUs. */
#define REAP_AT_ONCE 16u
#define ASKS_AT_ONCE 64u

void *engine_allocate(struct tally_engine *engine, size_t size)
{
	void *memory = engine->host.allocate(engine->host.host, size);
	if (memory)
		engine->statistics.bytes += size;
	return memory;
}

void engine_release(struct tally_engine *engine, void *memory, size_t size)
{
	if (!memory)
		return;
	engine->statistics.bytes -= size;
	engine->host.release(engine->host.host, memory, size);
}

void engine_retire(struct tally_engine *engine, struct engine_retired *retired,
		   void (*free)(struct tally_engine *engine, struct engine_retired *retired))
{
	retired->free = free;
	retired->next = NULL;
	*engine->retired_end = retired;
	engine->retired_end = &retired->next;
	engine->retired_count++;
}

struct quiet_question {
	struct tally_engine *engine;
	bool quiet;
};

static void ask_quiet(void *argument)
{
	struct quiet_question *question = argument;
	const struct engine_cpu *cpu = engine_this_cpu(question->engine);
	question->quiet = !__atomic_load_n(&cpu->walks, __ATOMIC_RELAXED) &&
			  !__atomic_load_n(&cpu->hits, __ATOMIC_RELAXED);
}

static bool cpu_is_quiet(struct tally_engine *engine, unsigned cpu)
{
	struct quiet_question question = { .engine = engine };
	if (engine->host.run_on(engine->host.host, cpu, ask_quiet, &question))
		return true;
	return question.quiet;
}

static void depart(struct tally_engine *engine)
{
	engine->departing = engine->retired;
	engine->retired = NULL;
	engine->retired_end = &engine->retired;
	engine->retired_count = engine->cpus_seen = 0;
}

static void free_departing(struct tally_engine *engine)
{
	struct engine_retired *retired = engine->departing;
	engine->departing = NULL;
	while (retired) {
		struct engine_retired *next = retired->next;
		retired->free(engine, retired);
		retired = next;
	}
}

static bool is_due(const struct tally_engine *engine)
{
	unsigned cpus = engine->host.cpus;
	return engine->retired_count >= (cpus > REAP_AT_ONCE ? cpus : 1);
}

/* All objects in `departing` were retired before the round of questions began.  Objects that are
 * retired meanwhile, also by freeing these, are in the next round. */
/* Frees the retired objects whose time has come. */
static void reap(struct tally_engine *engine)
{
	unsigned asks = ASKS_AT_ONCE;
	if (!engine->departing) {
		if (!is_due(engine))
			return;
		depart(engine);
	}
	for (; engine->cpus_seen < engine->host.cpus; engine->cpus_seen++)
		if (!asks-- || !cpu_is_quiet(engine, engine->cpus_seen))
			return;
	free_departing(engine);
}

int engine_copy_in(struct tally_engine *engine, void *to, const void *from, size_t size)
{
	if (engine->host.copy_in)
		return engine->host.copy_in(engine->host.host, to, from, size);
	__builtin_memcpy(to, from, size);
	return 0;
}

int engine_copy_out(struct tally_engine *engine, void *to, const void *from, size_t size)
{
	if (engine->host.copy_out)
		return engine->host.copy_out(engine->host.host, to, from, size);
	__builtin_memcpy(to, from, size);
	return 0;
}

bool engine_capable(struct tally_engine *engine, enum tally_engine_capability capability)
{
	return !engine->host.capable || engine->host.capable(engine->host.host, capability);
}

uintptr_t engine_lock(struct tally_engine *engine, struct engine_lock *lock)
{
	uintptr_t state = engine->host.irq_save(engine->host.host);
	while (__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE))
		if (engine->host.relax)
			engine->host.relax(engine->host.host);
	return state;
}

void engine_unlock(struct tally_engine *engine, struct engine_lock *lock, uintptr_t state)
{
	__atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
	engine->host.irq_restore(engine->host.host, state);
}

void engine_enter(struct tally_engine *engine)
{
	engine->host.lock(engine->host.host);
}

void engine_leave(struct tally_engine *engine)
{
	reap(engine);
	engine->host.unlock(engine->host.host);
}

/* --- settings ------------------------------------------------------------- */

static const struct setting {
	const char *name;
	size_t offset;
	long least, most;
} settings[] = {
	{ "perf_event_paranoid", offsetof(struct engine_settings, paranoid), INT32_MIN, INT32_MAX },
	{ "perf_event_max_sample_rate", offsetof(struct engine_settings, max_sample_rate), 1,
	  INT32_MAX },
	{ "perf_event_mlock_kb", offsetof(struct engine_settings, mlock_kb), INT32_MIN, INT32_MAX },
	{ "perf_event_max_stack", offsetof(struct engine_settings, max_stack), 0,
	  ENGINE_STACK_LIMIT },
	{ "perf_event_max_contexts_per_stack",
	  offsetof(struct engine_settings, max_contexts_per_stack), 0, 1000 },
	{ "perf_user_access", offsetof(struct engine_settings, user_access), 0, 1 },
};

static const struct setting *find_setting(const char *name)
{
	for (unsigned i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		const char *a = settings[i].name, *b = name;
		while (*a && *a == *b)
			a++, b++;
		if (*a == *b)
			return &settings[i];
	}
	return NULL;
}

static long *setting_of(struct tally_engine *engine, const struct setting *setting)
{
	return (long *)(void *)((char *)&engine->settings + setting->offset);
}

int tally_engine_sysctl_get(struct tally_engine *engine, const char *name, long *value)
{
	const struct setting *setting = find_setting(name);
	if (!setting)
		return -ENGINE_ENOENT;
	*value = *setting_of(engine, setting);
	return 0;
}

static int set_setting(struct tally_engine *engine, const struct setting *setting, long value)
{
	bool of_stacks = setting->offset == offsetof(struct engine_settings, max_stack) ||
			 setting->offset ==
				 offsetof(struct engine_settings, max_contexts_per_stack);
	if (value < setting->least || value > setting->most)
		return -ENGINE_EINVAL;
	if (of_stacks && engine->stack_users) /* their buffers have the old size */
		return -ENGINE_EBUSY;
	*setting_of(engine, setting) = value;
	engine_throttle_rate(engine);
	return 0;
}

int tally_engine_sysctl_set(struct tally_engine *engine, const char *name, long value)
{
	const struct setting *setting = find_setting(name);
	if (!setting)
		return -ENGINE_ENOENT;
	engine_enter(engine);
	int error = set_setting(engine, setting, value);
	engine_leave(engine);
	return error;
}

void tally_engine_statistics(struct tally_engine *engine, struct tally_engine_statistics *out)
{
	*out = engine->statistics;
	for (unsigned cpu = 0; cpu < engine->host.cpus; cpu++)
		for (unsigned level = 0; level < TALLY_LEVELS; level++)
			out->hits_dropped[level] += engine->cpus[cpu].dropped[level];
}

/* --- life ----------------------------------------------------------------- */

__attribute__((weak)) int tally_engine_hardware_init(struct tally_engine *engine)
{
	(void)engine;
	return 0;
}

static int register_pmus(struct tally_engine *engine)
{
	int error = engine_software_register(engine);
	if (!error)
		error = engine_tracepoint_register(engine);
	if (!error)
		error = engine_breakpoint_register(engine);
	return error;
}

static void init_cpus(struct tally_engine *engine)
{
	for (unsigned i = 0; i < engine->host.cpus; i++) {
		struct engine_cpu *cpu = &engine->cpus[i];
		cpu->number = i;
		cpu->up = engine_cpu_online(engine, i);
		engine_context_init(&cpu->context, engine, NULL, (int)i);
	}
}

struct tally_engine *tally_engine_new(const struct tally_engine_host *host)
{
	struct tally_engine *engine = host->allocate(host->host, sizeof(*engine));
	if (!engine)
		return NULL;
	engine->host = *host;
	engine->statistics.bytes = sizeof(*engine);
	engine->next_type = TALLY_TYPE_MAX;
	engine->settings = (struct engine_settings){ .paranoid = 2,
						     .max_sample_rate = 100000,
						     .mlock_kb = 516,
						     .max_stack = ENGINE_STACK_MAX,
						     .max_contexts_per_stack = 8 };
	engine_throttle_rate(engine);
	engine_list_init(&engine->tasks);
	engine_list_init(&engine->breakpoints);
	engine->retired_end = &engine->retired;
	engine->cpus = engine_allocate(engine, host->cpus * sizeof(*engine->cpus));
	if (engine->cpus) {
		init_cpus(engine);
		if (!register_pmus(engine)) {
			tally_engine_hardware_init(engine);
			return engine;
		}
	}
	tally_engine_free(engine);
	return NULL;
}

void tally_engine_free(struct tally_engine *engine)
{
	struct tally_engine_host host = engine->host;
	if (engine->cpus)
		engine_tracepoint_unregister(engine);
	while (engine->departing || engine->retired) { /* no other code runs any more */
		if (!engine->departing)
			depart(engine);
		free_departing(engine);
	}
	for (unsigned i = 0; engine->cpus && i < host.cpus; i++)
		engine_release(engine, engine->cpus[i].breakpoints,
			       host.breakpoint_slots * sizeof(*engine->cpus[i].breakpoints));
	engine_release(engine, engine->cpus, host.cpus * sizeof(*engine->cpus));
	host.release(host.host, engine, sizeof(*engine));
}
