/* An engine's part of the catalogue.  It is filled at once, since no file has to be read. */
#include "provider/engine_catalogue.h"

#include "event/event.h"
#include "machine/sysfs.h"
#include "tally/tracepoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t count_terms(const struct tally_engine_pmu_term *terms)
{
	size_t count = 0;
	while (terms && terms[count].name)
		count++;
	return count;
}

/* Returns a PMU's CPUs as "0-3,6"; "" if it counts on all of them. */
static const char *cpu_text(struct tally_arena *arena, const struct tally_engine_pmu *pmu)
{
	const char *text = "";
	unsigned bits = pmu->cpus ? pmu->cpu_words * 64 : 0;
	for (unsigned first = 0, last; first < bits && text; first = last + 1) {
		for (; first < bits && !(pmu->cpus[first / 64] >> first % 64 & 1); first++)
			;
		for (last = first; last < bits && pmu->cpus[last / 64] >> last % 64 & 1; last++)
			;
		if (first == last)
			break;
		const char *comma = *text ? "," : "";
		text = last - first == 1 ? tally_arena_printf(arena, "%s%s%u", text, comma, first)
					 : tally_arena_printf(arena, "%s%s%u-%u", text, comma,
							      first, last - 1);
	}
	return text;
}

/* Only a heterogeneous PMU's mask says where its events count: the mask of another PMU lists all
 * CPUs of the machine, and restricts nothing. */
static int add_pmu(struct tally_arena *arena, const struct tally_engine_pmu *from,
		   struct tally_pmu *to)
{
	size_t formats = count_terms(from->formats), events = count_terms(from->events), used = 0;
	struct tally_format_term *terms = tally_arena_array(arena, formats, sizeof(*terms));
	struct tally_pmu_alias *aliases = tally_arena_array(arena, events, sizeof(*aliases));
	const char *cpus = from->capabilities & TALLY_PMU_HETEROGENEOUS ? cpu_text(arena, from)
									: "";
	*to = (struct tally_pmu){
		tally_arena_string(arena, from->name), from->type, cpus, terms, 0, aliases, events
	};
	if (!terms || !aliases || !cpus || !to->name)
		return -ENOMEM;
	for (size_t i = 0; i < formats; i++) {
		terms[used].name = tally_arena_string(arena, from->formats[i].name);
		if (!terms[used].name)
			return -ENOMEM;
		used += tally_sysfs_format_parse(from->formats[i].value, &terms[used].field,
						 &terms[used].mask);
	}
	to->term_count = used;
	for (size_t i = 0; i < events; i++) {
		aliases[i] = (struct tally_pmu_alias){
			tally_arena_string(arena, from->events[i].name),
			tally_arena_string(arena, from->events[i].value), "", 1
		};
		if (!aliases[i].name || !aliases[i].terms)
			return -ENOMEM;
	}
	return 0;
}

static int add_pmus(struct tally_catalogue *catalogue, struct tally_engine *engine)
{
	const struct tally_engine_pmu *pmu = NULL;
	size_t count = 0;
	int code = 0;
	while ((pmu = tally_engine_pmu_next(engine, pmu)))
		count++;
	catalogue->pmus = tally_arena_array(&catalogue->arena, count, sizeof(*catalogue->pmus));
	if (!catalogue->pmus)
		return -ENOMEM;
	while (!code && (pmu = tally_engine_pmu_next(engine, pmu)))
		code = add_pmu(&catalogue->arena, pmu, &catalogue->pmus[catalogue->pmu_count++]);
	return code;
}

static int compare(const void *a, const void *b)
{
	const struct tally_tracepoint_name *x = a, *y = b;
	int order = strcmp(x->system, y->system);
	return order ? order : strcmp(x->name, y->name);
}

static int add_tracepoints(struct tally_catalogue *catalogue, struct tally_engine *engine)
{
	const struct tally_trace_event *event = NULL;
	size_t count = 0;
	while ((event = tally_trace_next(engine, event)))
		count++;
	struct tally_tracepoint_name *names = tally_arena_array(&catalogue->arena, count,
								sizeof(*names));
	if (!names)
		return -ENOMEM;
	catalogue->tracepoints = names;
	for (; (event = tally_trace_next(engine, event)); names++) {
		*names = (struct tally_tracepoint_name){
			tally_arena_string(&catalogue->arena, event->group),
			tally_arena_string(&catalogue->arena, event->name), event->id
		};
		if (!names->system || !names->name)
			return -ENOMEM;
		catalogue->tracepoint_count++;
	}
	qsort(catalogue->tracepoints, count, sizeof(*names), compare);
	if (!count)
		catalogue->tracepoints_unavailable =
			"no tracepoints are registered with this engine";
	return 0;
}

int tally_engine_catalogue(struct tally_catalogue *catalogue, struct tally_engine *engine,
			   struct tally_error *err)
{
	int code = catalogue->named ? 0 : tally_catalogue_init(catalogue);
	if (!code)
		code = add_pmus(catalogue, engine);
	if (!code)
		code = add_tracepoints(catalogue, engine);
	return code ? tally_error_set(err, -ENOMEM, "no memory left for the names of events") : 0;
}
