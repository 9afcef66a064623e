/* Machines with several types of cores (Intel's hybrid CPUs, Arm's big.LITTLE): each type has a PMU
 * of its own, which counts on its cores alone, and no event counts on all.
 *
 * So an event that names no PMU (cycles, L1-dcache-loads, r1a8) becomes one event a type:
 * cpu_core/cycles/ and cpu_atom/cycles/.  For generic events the kernel takes the PMU's type in the
 * upper half of attr.config (perf_event_open(2), "extended hardware type"), for raw ones in
 * attr.type.  A group becomes one group a type, since a group must be on one PMU: ratios are of one
 * type, too. */
#include "event/event_internal.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { EXTENDED_TYPE_SHIFT = 32 };

static bool is_generic(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_HARDWARE || attr->type == TALLY_TYPE_HW_CACHE;
}

size_t tally_catalogue_core_types(const struct tally_catalogue *catalogue)
{
	size_t count = 0;
	for (size_t i = 0; i < catalogue->pmu_count; i++)
		count += catalogue->pmus[i].is_core;
	return count;
}

const struct tally_pmu *tally_event_pmu(const struct tally_attr *attr,
					const struct tally_catalogue *catalogue)
{
	uint32_t type = attr->type;
	if (is_generic(attr))
		type = (uint32_t)(attr->config >> EXTENDED_TYPE_SHIFT);
	for (size_t i = 0; type >= TALLY_TYPE_RAW && i < catalogue->pmu_count; i++)
		if (catalogue->pmus[i].type == type)
			return &catalogue->pmus[i];
	return NULL;
}

void tally_event_set_core(struct tally_attr *attr, const struct tally_pmu *core)
{
	if (is_generic(attr))
		attr->config |= (uint64_t)core->type << EXTENDED_TYPE_SHIFT;
	else
		attr->type = core->type;
}

/* True for an event that every type of core may count, and that names none.  The type RAW does not
 * tell: cpu_core has it, too. */
static bool is_of_any_core(const struct tally_event *event)
{
	return (is_generic(&event->attr) && !(event->attr.config >> EXTENDED_TYPE_SHIFT)) ||
	       event->kind == TALLY_EVENT_RAW;
}

/* "cycles:u" → "cpu_core/cycles/u", "cycles/period=100/u" → "cpu_core/cycles,period=100/u". */
static const char *name_on(const struct tally_pmu *core, const char *name,
			   struct tally_arena *arena)
{
	int length = (int)strcspn(name, ":/");
	const char *rest = name + length;
	if (*rest == '/')
		return tally_arena_printf(arena, "%s/%.*s,%s", core->name, length, name, rest + 1);
	if (*rest)
		rest++;
	return tally_arena_printf(arena, "%s/%.*s/%s", core->name, length, name, rest);
}

struct split {
	const struct tally_catalogue *catalogue;
	struct tally_arena *arena;
	struct tally_event_list made;
};

static bool must_split(const struct split *split, const struct tally_event *events, size_t count)
{
	const struct tally_pmu *first = NULL;
	for (size_t i = 0; i < count; i++) {
		const struct tally_pmu *pmu = tally_event_pmu(&events[i].attr, split->catalogue);
		if (is_of_any_core(&events[i]))
			return true;
		if (!pmu || !pmu->is_core)
			continue;
		if (first && first != pmu)
			return true;
		first = pmu;
	}
	return false;
}

static bool is_on_a_core(const struct split *split, const struct tally_event *event)
{
	const struct tally_pmu *pmu = tally_event_pmu(&event->attr, split->catalogue);
	return is_of_any_core(event) || (pmu && pmu->is_core);
}

/* Appends the part of a group that counts on the cores of one type, as group number `group`. */
static int add_part(struct split *split, const struct tally_event *events, size_t count,
		    const struct tally_pmu *core, int group)
{
	for (size_t i = 0; i < count; i++) {
		struct tally_event event = events[i];
		bool is_any = is_of_any_core(&event);
		if (!is_any && tally_event_pmu(&event.attr, split->catalogue) != core)
			continue;
		if (is_any) {
			tally_event_set_core(&event.attr, core);
			if (event.kind == TALLY_EVENT_RAW)
				event.kind = TALLY_EVENT_PMU;
			event.name = name_on(core, event.name, split->arena);
		}
		event.group = group;
		if (!event.name || tally_vector_push(&split->made, event) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Appends the events of a group that count on all cores, such as software events.  They leave the
 * group, whose leader would let them count on its cores alone. */
static int add_others(struct split *split, const struct tally_event *events, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct tally_event event = events[i];
		event.group = TALLY_EVENT_NO_GROUP;
		if (!is_on_a_core(split, &event) && tally_vector_push(&split->made, event) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int add_group(struct split *split, const struct tally_event *events, size_t count)
{
	bool splits = must_split(split, events, count);
	int group = events->group;
	for (size_t i = 0; !splits && i < count; i++) {
		struct tally_event event = events[i];
		const struct tally_pmu *pmu = tally_event_pmu(&event.attr, split->catalogue);
		/* a PMU's event that was given by its name alone */
		if (pmu && pmu->is_core && !strchr(event.name, '/'))
			event.name = name_on(pmu, event.name, split->arena);
		if (!event.name || tally_vector_push(&split->made, event) < 0)
			return -ENOMEM;
	}
	if (splits && add_others(split, events, count) < 0)
		return -ENOMEM;
	for (size_t i = 0; splits && i < split->catalogue->pmu_count; i++) {
		size_t before = split->made.count;
		const struct tally_pmu *pmu = &split->catalogue->pmus[i];
		if (pmu->is_core && add_part(split, events, count, pmu, group) < 0)
			return -ENOMEM;
		if (split->made.count > before && group >= 0)
			group = split->made.group_count++;
	}
	return 0;
}

int tally_event_split_by_core(struct tally_event_list *list,
			      const struct tally_catalogue *catalogue, struct tally_arena *arena)
{
	struct split split = { catalogue, arena, { .group_count = list->group_count } };
	if (tally_catalogue_core_types(catalogue) < 2)
		return 0;
	for (size_t first = 0, count; first < list->count; first += count) {
		const struct tally_event *events = &list->items[first];
		for (count = 1; events->group >= 0 && first + count < list->count &&
				events[count].group == events->group;)
			count++;
		if (add_group(&split, events, count) < 0) {
			tally_event_list_release(&split.made);
			return -ENOMEM;
		}
	}
	tally_event_list_release(list);
	*list = split.made;
	return 0;
}

int tally_event_places(const struct tally_event_list *list, const struct tally_catalogue *catalogue,
		       struct tally_arena *arena, const char *const **cpus, const uint32_t **cores)
{
	const char **places = tally_arena_array(arena, list->count + 1, sizeof(*places));
	uint32_t *types = tally_arena_array(arena, list->count + 1, sizeof(*types));
	if (!places || !types)
		return -ENOMEM;
	bool has_types = tally_catalogue_core_types(catalogue) > 1;
	for (size_t i = 0; i < list->count; i++) {
		const struct tally_pmu *pmu = tally_event_pmu(&list->items[i].attr, catalogue);
		if (!pmu)
			continue;
		places[i] = pmu->cpus;
		if (has_types && pmu->is_core)
			types[i] = pmu->type;
	}
	*cpus = places;
	*cores = types;
	return 0;
}
