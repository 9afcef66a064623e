/* The events that `stat` counts: named ones or presets. */
#include "command/stat_command.h"
#include "session/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct preset {
	enum tally_event_kind kind;
	uint32_t type;
	uint64_t config;
	const char *name;
	/* events whose ratio is shown are counted together; −1: software, never scaled */
	int group;
};

#define CACHE_OF(level, op, result) \
	TALLY_EVENT_CACHE, TALLY_TYPE_HW_CACHE, \
		(uint64_t)TALLY_CACHE_##level | (uint64_t)TALLY_CACHE_OP_##op << 8 | \
			(uint64_t)TALLY_CACHE_RESULT_##result << 16
#define CACHE(level, result) CACHE_OF(level, READ, result)
#define HARDWARE(name) TALLY_EVENT_HARDWARE, TALLY_TYPE_HARDWARE, TALLY_HW_##name
#define SOFTWARE(name) TALLY_EVENT_SOFTWARE, TALLY_TYPE_SOFTWARE, TALLY_SW_##name

static const struct preset standard[] = {
	{ SOFTWARE(TASK_CLOCK), "task-clock", -1 },
	{ SOFTWARE(CONTEXT_SWITCHES), "context-switches", -1 },
	{ SOFTWARE(CPU_MIGRATIONS), "cpu-migrations", -1 },
	{ SOFTWARE(PAGE_FAULTS), "page-faults", -1 },
	{ HARDWARE(CPU_CYCLES), "cycles", 0 },
	{ HARDWARE(INSTRUCTIONS), "instructions", 0 },
	{ HARDWARE(BRANCH_INSTRUCTIONS), "branches", 1 },
	{ HARDWARE(BRANCH_MISSES), "branch-misses", 1 },
};

static const struct preset detailed[] = {
	{ CACHE(L1D, ACCESS), "L1-dcache-loads", 2 },
	{ CACHE(L1D, MISS), "L1-dcache-load-misses", 2 },
	{ CACHE(LL, ACCESS), "LLC-loads", 3 },
	{ CACHE(LL, MISS), "LLC-load-misses", 3 },
	{ CACHE(DTLB, ACCESS), "dTLB-loads", 4 },
	{ CACHE(DTLB, MISS), "dTLB-load-misses", 4 },
	{ CACHE(ITLB, ACCESS), "iTLB-loads", 5 },
	{ CACHE(ITLB, MISS), "iTLB-load-misses", 5 },
};

/* What perf adds for one -d, two and three. */
static const struct preset perf_detailed[] = {
	{ CACHE(L1D, ACCESS), "L1-dcache-loads", 2 },
	{ CACHE(L1D, MISS), "L1-dcache-load-misses", 2 },
	{ CACHE(LL, ACCESS), "LLC-loads", 3 },
	{ CACHE(LL, MISS), "LLC-load-misses", 3 },
	{ CACHE(L1I, ACCESS), "L1-icache-loads", 4 },
	{ CACHE(L1I, MISS), "L1-icache-load-misses", 4 },
	{ CACHE(DTLB, ACCESS), "dTLB-loads", 5 },
	{ CACHE(DTLB, MISS), "dTLB-load-misses", 5 },
	{ CACHE(ITLB, ACCESS), "iTLB-loads", 6 },
	{ CACHE(ITLB, MISS), "iTLB-load-misses", 6 },
	{ CACHE_OF(L1D, PREFETCH, ACCESS), "L1-dcache-prefetches", 7 },
	{ CACHE_OF(L1D, PREFETCH, MISS), "L1-dcache-prefetch-misses", 7 },
};
static const size_t perf_details[] = { 0, 4, 10, 12 }; /* rows for that many -d */

static int add_presets(struct stat_command *stat, const struct preset *presets, size_t count,
		       int first_group, struct tally_error *err)
{
	struct tally_event_list *list = &stat->events;
	struct tally_event *items = reallocarray(list->items, list->count + count, sizeof(*items));
	if (!items)
		return tally_error_set(err, -ENOMEM, "out of memory");
	list->items = items;
	list->capacity = list->count + count;
	for (size_t i = 0; i < count; i++) {
		const struct preset *p = &presets[i];
		struct tally_event event = { .kind = p->kind,
					     .name = p->name,
					     .unit = "",
					     .scale = 1,
					     .attr = { .type = p->type, .config = p->config },
					     .group = TALLY_EVENT_NO_GROUP,
					     .weak_group = p->group >= 0 };
		if (p->group >= 0)
			event.group = first_group + p->group;
		if (p->kind != TALLY_EVENT_SOFTWARE) /* as for parsed names */
			event.attr.flags = TALLY_ATTR_EXCLUDE_GUEST;
		/* Whole CPUs are measured by the CPU's clock: a CPU runs all the time, a task does
		 * not. */
		if (stat->target.all && p->type == TALLY_TYPE_SOFTWARE &&
		    p->config == TALLY_SW_TASK_CLOCK) {
			event.name = "cpu-clock";
			event.attr.config = TALLY_SW_CPU_CLOCK;
		}
		items[list->count++] = event;
		if (event.group >= list->group_count)
			list->group_count = event.group + 1;
	}
	return 0;
}

/* True if the user named what is counted, in place of the presets. */
static bool names_events(const struct stat_command *stat)
{
	return stat->event_expressions || stat->metric_names;
}

static int add_usual_presets(struct stat_command *stat, struct tally_error *err)
{
	int result = 0;
	if (!names_events(stat))
		result = add_presets(stat, standard, sizeof(standard) / sizeof(standard[0]), 0,
				     err);
	const struct preset *more = detailed;
	size_t count = sizeof(detailed) / sizeof(detailed[0]);
	if (stat->is_perf) {
		more = perf_detailed;
		count = perf_details[stat->detail < 3 ? stat->detail : 3];
	}
	if (result >= 0 && stat->detail)
		result = add_presets(stat, more, count, stat->events.group_count, err);
	return result;
}

static int add_presets_of_provider(struct stat_command *stat, struct tally_error *err)
{
	const struct tally_provider_ops *provider = stat->provider_ops;
	int result = 0;
	if (!names_events(stat))
		result = tally_event_parse(provider->standard_events, &stat->catalogue, &stat->arena,
					   &stat->events, err);
	if (result >= 0 && stat->detail)
		result = tally_event_parse(provider->detailed_events, &stat->catalogue, &stat->arena,
					   &stat->events, err);
	for (size_t i = 0; provider->prepare_count && i < stat->events.count; i++)
		provider->prepare_count(&stat->events.items[i]);
	return result;
}

/* --for-each-cgroup: repeats all events for each cgroup. */
static int repeat_in_cgroups(struct stat_command *stat, const char *names, struct tally_error *err)
{
	struct tally_event_list *list = &stat->events;
	size_t own = list->count, cgroups = 1;
	int groups = list->group_count;
	for (const char *at = names; *at; at++)
		cgroups += *at == ',';
	struct tally_event *items = reallocarray(list->items, own * cgroups + 1, sizeof(*items));
	if (!items)
		return tally_error_set(err, -ENOMEM, "out of memory");
	list->items = items;
	list->capacity = own * cgroups + 1;
	list->count = 0;
	for (size_t turn = 0; turn < cgroups;
	     turn++, names += strcspn(names, ","), names += *names == ',') {
		const char *name = tally_arena_printf(&stat->arena, "%.*s",
						      (int)strcspn(names, ","), names);
		if (!name)
			return tally_error_set(err, -ENOMEM, "out of memory");
		if (!*name)
			return tally_error_set(err, -EINVAL, "--for-each-cgroup: a name is empty");
		for (size_t i = 0; i < own; i++) {
			struct tally_event *event = &items[list->count++];
			*event = items[i];
			event->cgroup = name;
			if (event->group >= 0)
				event->group = items[i].group % (groups ? groups : 1) +
					       (int)turn * groups;
		}
	}
	list->group_count = groups * (int)cgroups;
	return 0;
}

static int take_expressions(struct stat_command *stat, struct tally_error *err)
{
	size_t turns = 0;
	int result = 0;
	for (size_t i = 0; i < stat->expression_count && result >= 0; i++) {
		const struct stat_expression *e = &stat->expressions[i];
		size_t first = stat->events.count;
		if (e->kind == STAT_EVENTS)
			result = tally_event_parse(e->text, &stat->catalogue, &stat->arena,
						   &stat->events, err);
		else
			result = tally_event_assign_cgroups(&stat->events, e->text, &stat->arena,
							    &turns, err);
		if (result >= 0 && e->filter)
			result = tally_event_filter_assign(&stat->events, first, e->filter, err);
	}
	return result;
}

/* Finds the PMUs of a machine with several types of cores. */
static int load_core_types(struct tally_catalogue *catalogue, struct tally_error *err)
{
	if (!catalogue->load_pmus || !tally_sysfs_has_core_types(NULL))
		return 0;
	return catalogue->load_pmus(catalogue, catalogue->context, NULL, err);
}

/* On a machine with several types of cores, counts events that name no PMU on each type. */
static int split_by_core(struct stat_command *stat, struct tally_error *err)
{
	struct tally_catalogue *catalogue = &stat->catalogue;
	if (!stat->has_catalogue)
		return 0;
	int result = load_core_types(catalogue, err);
	if (result < 0)
		return result;
	if (tally_event_split_by_core(&stat->events, catalogue, &stat->arena) < 0)
		return tally_error_set(err, -ENOMEM, "out of memory");
	return 0;
}

/* The user has not asked for a provider that takes the kernel's place, and may not know that it lacks
 * some events: their rows tell.  It is an error if it has none of them. */
static bool rows_tell_refusals(const struct stat_command *stat)
{
	const struct tally_provider_ops *provider = stat->provider_ops;
	if (!stat->choice.is_instead)
		return false;
	for (size_t i = 0; i < stat->events.count && provider->refuses; i++)
		if (stat->events.items[i].kind == TALLY_EVENT_TOOL ||
		    !provider->refuses(&stat->events.items[i].attr, NULL))
			return true;
	return stat->metric_names;
}

int stat_parse_events(struct stat_command *stat, struct tally_error *err)
{
	struct tally_catalogue *catalogue = &stat->catalogue;
	int result = 0;
	const struct tally_provider_ops *provider = stat->provider_ops;
	bool has_core_types = provider->capabilities & TALLY_PROVIDER_THIS_MACHINE &&
			      tally_sysfs_has_core_types(NULL);
	if (names_events(stat) || provider->standard_events || has_core_types) {
		result = tally_catalogue_init(catalogue);
		stat->has_catalogue = result >= 0;
		if (result < 0)
			return tally_error_set(err, result, "out of memory");
		catalogue->has_tools = !(provider->capabilities & TALLY_PROVIDER_SIMULATED_TIME);
		result = provider->catalogue(stat->provider, catalogue, err);
	}
	bool has_names = result >= 0;
	if (stat->metric_names && result >= 0)
		result = load_core_types(catalogue, err);
	if (stat->metric_names && result >= 0)
		result = stat_add_metrics(stat, err);
	if (names_events(stat) && result >= 0)
		result = take_expressions(stat, err);
	if (result >= 0 && !rows_tell_refusals(stat))
		result = provider_check_events(provider, &stat->events, err);
	stat->is_misused = has_names && result < 0 && result != -ENOMEM;
	if (result < 0 && result != -ENOMEM)
		provider_choice_explain(&stat->choice, err);
	if (stat->counts_nothing || result < 0)
		return result;
	if (provider->standard_events)
		result = add_presets_of_provider(stat, err);
	else
		result = add_usual_presets(stat, err);
	if (result < 0)
		return result;
	if (!names_events(stat))
		result = take_expressions(stat, err);
	if (result >= 0)
		result = split_by_core(stat, err);
	stat->metrics.stride = stat->events.count;
	if (result >= 0 && stat->each_cgroup)
		result = repeat_in_cgroups(stat, stat->each_cgroup, err);
	stat->is_misused = result < 0 && result != -ENOMEM;
	return result;
}

int stat_find_event_cpus(struct stat_command *stat, struct tally_error *err)
{
	struct tally_counting_options *counting = &stat->options.counting;
	if (!stat->has_catalogue)
		return 0;
	counting->core_types = tally_catalogue_core_types(&stat->catalogue);
	if (tally_event_places(&stat->events, &stat->catalogue, &stat->arena, &counting->event_cpus,
			       &counting->event_cores) < 0)
		return tally_error_set(err, -ENOMEM, "out of memory");
	return 0;
}
