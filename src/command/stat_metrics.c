/* tally stat -M: from names of metrics to the events that they need.
 *
 * The events of a metric that one PMU of CPUs counts become one weak group: they are counted at the
 * same time if they fit.  A metric whose events are all in a group that is there already uses that
 * one.  Other events (times, software, uncore) stand alone, once each. */
#include "base/suggest.h"
#include "base/text.h"
#include "command/stat_command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { METRICS_MAX = 256, USES_MAX = 1024 };

/* The names of -M's metrics, each once. */
struct names {
	const char *items[METRICS_MAX];
	size_t count;
};

/* --- finding -------------------------------------------------------------- */

static bool is_in_group(const struct tally_metric_definition *d, const char *group)
{
	size_t length = strlen(group);
	for (const char *at = d->group; *at;) {
		size_t own = strcspn(at, ";");
		if (own == length && !strncasecmp(at, group, own))
			return true;
		at += own + (at[own] == ';');
	}
	return false;
}

static int add_name(const struct stat_command *stat, const char *name, struct names *names,
		    struct tally_error *err)
{
	size_t found = tally_metric_set_find(&stat->metric_set, name, SIZE_MAX);
	const char *own = stat->metric_set.definitions.items[found].name;
	for (size_t i = 0; i < names->count; i++)
		if (!strcmp(names->items[i], own))
			return 0;
	if (names->count == METRICS_MAX)
		return tally_error_set(err, -E2BIG, "-M: more than %d metrics", METRICS_MAX);
	names->items[names->count++] = own;
	return 0;
}

/* Adds the metric, or those of the group, of this name.  Returns how many, or -errno. */
static int add_named(const struct stat_command *stat, const char *name, struct names *names,
		     struct tally_error *err)
{
	const struct tally_metric_set *set = &stat->metric_set;
	int result, count = 0;
	if (tally_metric_set_find(set, name, SIZE_MAX) != SIZE_MAX) {
		result = add_name(stat, name, names, err);
		return result < 0 ? result : 1;
	}
	for (size_t i = set->definitions.count; i--;) {
		const struct tally_metric_definition *d = &set->definitions.items[i];
		if (d->is_passed_over || !is_in_group(d, name))
			continue;
		result = add_name(stat, d->name, names, err);
		if (result < 0)
			return result;
		count++;
	}
	return count;
}

static int no_metric(const struct tally_metric_set *set, const char *name, struct tally_error *err)
{
	const char *nearest = NULL;
	unsigned least = 2 + (unsigned)strlen(name) / 6;
	for (size_t i = 0; i < set->definitions.count; i++) {
		unsigned distance = tally_edit_distance(name, set->definitions.items[i].name);
		if (distance <= least) {
			least = distance;
			nearest = set->definitions.items[i].name;
		}
	}
	tally_error_set(err, -ENOENT, "there is no metric '%.100s'", name);
	if (nearest)
		tally_error_hint(err, "did you mean '%.100s'?", nearest);
	else
		tally_error_hint(err, "'tally list metrics' shows them; --metrics-dir adds perf's, "
				      "--metrics-file your own");
	return -ENOENT;
}

static int find_metrics(struct stat_command *stat, struct names *names, struct tally_error *err)
{
	bool has_usual = false;
	for (const char *at = stat->metric_names; *at;) {
		size_t length = strcspn(at, ",");
		const char *name = tally_arena_copy(&stat->arena, at, length);
		if (!name)
			return tally_error_set(err, -ENOMEM, "out of memory");
		at += length + (at[length] == ',');
		int count = add_named(stat, name, names, err);
		if (!count && !has_usual) {
			has_usual = metric_sources_load_usual(&stat->metric_sources,
							      &stat->metric_set);
			count = add_named(stat, name, names, err);
		}
		if (!count)
			return no_metric(&stat->metric_set, name, err);
		if (count < 0)
			return count;
	}
	return 0;
}

/* --- joining the events of stat ------------------------------------------- */

/* True if the CPUs' own PMUs count the event. */
static bool is_of_cores(const struct stat_command *stat, const struct tally_event *event)
{
	const struct tally_pmu *pmu = tally_event_pmu(&event->attr, &stat->catalogue);
	if (event->kind == TALLY_EVENT_HARDWARE || event->kind == TALLY_EVENT_CACHE ||
	    event->kind == TALLY_EVENT_RAW || event->kind == TALLY_EVENT_VENDOR)
		return true;
	if (event->kind != TALLY_EVENT_PMU || !pmu)
		return false;
	return pmu->is_core || !strcmp(pmu->name, "cpu") || !strncmp(pmu->name, "armv8", 5);
}

/* The PMU of the event's cores; NULL: one of all cores, or of none. */
static const struct tally_pmu *core_of(const struct stat_command *stat,
				       const struct tally_event *event)
{
	const struct tally_pmu *pmu = tally_event_pmu(&event->attr, &stat->catalogue);
	if (pmu && pmu->is_core)
		return pmu;
	return NULL;
}

static bool is_same(const struct tally_event *a, const struct tally_event *b)
{
	return a->attr.type == b->attr.type && a->attr.config == b->attr.config &&
	       a->attr.config1 == b->attr.config1 && a->attr.config2 == b->attr.config2 &&
	       a->attr.flags == b->attr.flags;
}

/* Finds an event among those of one group (or of none); SIZE_MAX: it isn't there. */
static size_t find_in(const struct tally_event_list *list, int group,
		      const struct tally_event *event)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].group == group && is_same(&list->items[i], event))
			return i;
	return SIZE_MAX;
}

/* Returns the group that has all the metric's events of cores; or a new one's number. */
static int find_group(const struct stat_command *stat, const struct metric_events *parsed)
{
	for (int group = 0; group < stat->events.group_count; group++) {
		bool has_all = true;
		for (size_t i = 0; i < parsed->events.count && has_all; i++)
			has_all = !is_of_cores(stat, &parsed->events.items[i]) ||
				  find_in(&stat->events, group, &parsed->events.items[i]) !=
					  SIZE_MAX;
		if (has_all)
			return group;
	}
	return stat->events.group_count;
}

static int append(struct stat_command *stat, const struct tally_event *event,
		  struct tally_error *err)
{
	struct tally_event_list *list = &stat->events;
	struct tally_event *items = list->items;
	if (list->count == list->capacity) {
		items = reallocarray(items, 2 * list->capacity + 16, sizeof(*items));
		if (!items)
			return tally_error_set(err, -ENOMEM, "out of memory");
		list->items = items;
		list->capacity = 2 * list->capacity + 16;
	}
	items[list->count++] = *event;
	return 0;
}

/* Intel's perf metrics need slots as the leader of their group. */
static bool is_slots(const struct tally_event *event)
{
	return !strcmp(event->name, "slots") || strstr(event->name, "/slots/");
}

static int join(struct stat_command *stat, struct tally_metric_use *use,
		struct metric_events *parsed, struct tally_error *err)
{
	size_t count = parsed->events.count, *places, cores = 0, leader = SIZE_MAX;
	places = tally_arena_array(&stat->arena, count + 1, sizeof(*places));
	use->rows = tally_arena_array(&stat->arena, use->plan.events.count + 1, sizeof(*use->rows));
	if (!places || !use->rows)
		return tally_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++) {
		bool is_core = is_of_cores(stat, &parsed->events.items[i]);
		cores += is_core;
		if (is_core && leader == SIZE_MAX && is_slots(&parsed->events.items[i]))
			leader = i;
	}
	int core_group = TALLY_EVENT_NO_GROUP;
	/* A simulated PMU has a counter for each event. */
	if (cores > 1 && !(stat->provider_ops->capabilities & TALLY_PROVIDER_SIMULATED_TIME))
		core_group = find_group(stat, parsed);
	/* the leader, then the others: once around */
	size_t start = leader == SIZE_MAX ? 0 : leader;
	for (size_t turn = 0; turn < 2 * count; turn++) {
		size_t i = (start + turn) % count;
		struct tally_event *event = &parsed->events.items[i];
		/* Members of a group are adjacent: first those of the group, then the others. */
		bool is_core = is_of_cores(stat, event);
		if (is_core != (turn < count))
			continue;
		event->group = is_core ? core_group : TALLY_EVENT_NO_GROUP;
		event->weak_group = event->group >= 0;
		places[i] = find_in(&stat->events, event->group, event);
		if (places[i] != SIZE_MAX)
			continue;
		places[i] = stat->events.count;
		int result = append(stat, event, err);
		if (result < 0)
			return result;
		if (event->group >= stat->events.group_count)
			stat->events.group_count = event->group + 1;
	}
	/* Several PMUs count one event: their rows are adjacent, since they were parsed so. */
	for (size_t i = 0; i < use->plan.events.count; i++) {
		use->rows[i] = parsed->ranges[i];
		if (parsed->ranges[i].count)
			use->rows[i].first = places[parsed->ranges[i].first];
	}
	return 0;
}

/* --- several types of cores ----------------------------------------------- */

/* Keeps what `core` counts, and events that are not of cores, such as times.  Returns 1; 0 if an
 * event is of other cores; -ENOMEM. */
static int keep_core(struct stat_command *stat, const struct tally_pmu *core,
		     struct metric_events *parsed, size_t plan_events)
{
	for (size_t i = 0; i < plan_events; i++) {
		struct tally_metric_rows *range = &parsed->ranges[i];
		for (size_t at = range->first; at < range->first + range->count; at++) {
			struct tally_event_list one = { 0 };
			const struct tally_event *found = NULL;
			one.items = malloc(sizeof(*one.items));
			if (!one.items)
				return -ENOMEM;
			one.items[0] = parsed->events.items[at];
			one.count = one.capacity = 1;
			if (tally_event_split_by_core(&one, &stat->catalogue, &stat->arena) < 0) {
				tally_event_list_release(&one);
				return -ENOMEM;
			}
			for (size_t k = 0; k < one.count && !found; k++)
				if (!core_of(stat, &one.items[k]) ||
				    core_of(stat, &one.items[k]) == core)
					found = &one.items[k];
			if (found)
				parsed->events.items[at] = *found;
			bool is_other = !found;
			tally_event_list_release(&one);
			if (is_other)
				return 0;
		}
	}
	return 1;
}

static bool has_core_events(const struct stat_command *stat, const struct metric_events *parsed)
{
	for (size_t i = 0; i < parsed->events.count; i++)
		if (is_of_cores(stat, &parsed->events.items[i]))
			return true;
	return false;
}

/* Adds a metric, of one type of cores or (NULL) of all.  Returns 1 if there are several types, so
 * that each needs its own; 0 or -errno. */
static int add_use(struct stat_command *stat, const char *name, const struct tally_pmu *core,
		   struct tally_error *err)
{
	struct tally_metric_uses *uses = &stat->metrics;
	const struct metric_places places = { .set = &stat->metric_set,
					      .catalogue = &stat->catalogue,
					      .provider = stat->provider_ops,
					      .arena = &stat->arena };
	struct tally_metric_use use = { .name = name, .label = name };
	struct metric_events parsed = { 0 };
	if (uses->count == USES_MAX)
		return tally_error_set(err, -E2BIG, "-M: more than %d metrics", USES_MAX);
	int result = metric_use_prepare(&places, &use, &parsed, err);
	bool is_split = result >= 0 && !use.unavailable && !core &&
			tally_catalogue_core_types(&stat->catalogue) > 1 &&
			has_core_events(stat, &parsed);
	bool is_other = false;
	if (core && result >= 0) {
		result = keep_core(stat, core, &parsed, use.plan.events.count);
		is_other = !result;
		use.label = tally_arena_printf(&stat->arena, "%s/%s/", core->name, name);
		if (result < 0 || !use.label)
			result = tally_error_set(err, -ENOMEM, "out of memory");
	}
	if (result >= 0 && !use.unavailable && !is_split && !is_other)
		result = join(stat, &use, &parsed, err);
	if (result >= 0 && !is_split && !is_other)
		uses->items[uses->count++] = use;
	else
		tally_metric_plan_release(&use.plan);
	tally_event_list_release(&parsed.events);
	if (result < 0)
		return result;
	return is_split;
}

/* Adds a metric; with several types of cores one for each, since their ratios must not be mixed. */
static int add_uses(struct stat_command *stat, const char *name, struct tally_error *err)
{
	int result = add_use(stat, name, NULL, err);
	if (result <= 0)
		return result;
	for (size_t i = 0; i < stat->catalogue.pmu_count && result >= 0; i++)
		if (stat->catalogue.pmus[i].is_core)
			result = add_use(stat, name, &stat->catalogue.pmus[i], err);
	return result;
}

int stat_add_metrics(struct stat_command *stat, struct tally_error *err)
{
	struct tally_metric_uses *uses = &stat->metrics;
	struct names names = { .count = 0 };
	uses->items = tally_arena_array(&stat->arena, USES_MAX, sizeof(*uses->items));
	if (!uses->items)
		return tally_error_set(err, -ENOMEM, "out of memory");
	int result = metric_sources_load(&stat->metric_sources, &stat->metric_set, err);
	if (result >= 0)
		result = find_metrics(stat, &names, err);
	bool is_core_wide = stat->target.all && !stat->target.has_cpu_list;
	metric_machine_read(&uses->machine, is_core_wide, &stat->arena);
	for (size_t i = 0; i < names.count && result >= 0; i++)
		result = add_uses(stat, names.items[i], err);
	stat->view.metrics = uses;
	return tally_error_of(result);
}

void stat_release_metrics(struct stat_command *stat)
{
	for (size_t i = 0; i < stat->metrics.count; i++)
		tally_metric_plan_release(&stat->metrics.items[i].plan);
	tally_metric_set_release(&stat->metric_set);
}
