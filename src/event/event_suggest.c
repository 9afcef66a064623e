/* Suggests the nearest name for an unknown one.  Runs only on failure, since it may load all
 * names. */
#include "event/event_parser.h"

#include "base/suggest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void tally_event_nearest_init(struct tally_event_nearest *nearest, const char *typed)
{
	size_t third = strlen(typed) / 3;
	*nearest = (struct tally_event_nearest){ .typed = typed };
	nearest->distance = (third < 1 ? 1 : third > 5 ? 5 : (unsigned)third) + 1;
}

void tally_event_nearest_try(struct tally_event_nearest *nearest, const char *candidate)
{
	size_t a = strlen(candidate), b = strlen(nearest->typed);
	if ((a > b ? a - b : b - a) >= nearest->distance) /* each insertion costs 1 */
		return;
	unsigned distance = tally_edit_distance(nearest->typed, candidate);
	if (distance >= nearest->distance)
		return;
	nearest->distance = distance;
	snprintf(nearest->best, sizeof(nearest->best), "%s", candidate);
}

void tally_event_nearest_hint(const struct tally_event_nearest *nearest,
			      struct tally_event_parser *parser, const char *otherwise)
{
	if (nearest->best[0])
		tally_error_hint(parser->err, "did you mean '%s'?", nearest->best);
	else
		tally_error_hint(parser->err, "%s", otherwise);
}

static void try_tracepoints(struct tally_event_nearest *nearest, struct tally_event_parser *parser)
{
	struct tally_catalogue *catalogue = parser->catalogue;
	char name[128];
	if (!catalogue->tracepoint_count && catalogue->load_tracepoints)
		catalogue->load_tracepoints(catalogue, catalogue->context, NULL);
	for (size_t i = 0; i < catalogue->tracepoint_count; i++) {
		const struct tally_tracepoint_name *t = &catalogue->tracepoints[i];
		unsigned before = nearest->distance;
		/* "sched_switch" suggests "sched:sched_switch" */
		tally_event_nearest_try(nearest, t->name);
		snprintf(name, sizeof(name), "%s:%s", t->system, t->name);
		if (nearest->distance < before)
			snprintf(nearest->best, sizeof(nearest->best), "%s", name);
		else
			tally_event_nearest_try(nearest, name);
	}
}

static void try_pmus(struct tally_event_nearest *nearest, struct tally_event_parser *parser)
{
	struct tally_catalogue *catalogue = parser->catalogue;
	char name[256];
	if (catalogue->load_pmus)
		catalogue->load_pmus(catalogue, catalogue->context, NULL, NULL);
	for (size_t i = 0; i < catalogue->pmu_count; i++)
		for (size_t j = 0; j < catalogue->pmus[i].event_count; j++) {
			tally_event_nearest_try(nearest, catalogue->pmus[i].events[j].name);
			snprintf(name, sizeof(name), "%s/%s/", catalogue->pmus[i].name,
				 catalogue->pmus[i].events[j].name);
			tally_event_nearest_try(nearest, name);
		}
}

int tally_event_tool_alone(struct tally_event_parser *parser, size_t position, const char *name)
{
	tally_event_fail(
		parser, -EINVAL, position,
		"'%.200s' is a time that 'tally stat' takes: it can't be recorded, nor simulated",
		name);
	tally_error_hint(parser->err, "cpu-clock and task-clock are times that are sampled");
	return -EINVAL;
}

int tally_event_unknown(struct tally_event_parser *parser, size_t position, const char *name)
{
	struct tally_event_nearest nearest;
	tally_event_fail(parser, -ENOENT, position, "there is no event '%.200s'", name);
	if (tally_event_is_glob(name)) {
		tally_error_hint(
			parser->err,
			"only tracepoints are taken by patterns, with their system: 'SYSTEM:%.200s', or '*:%.200s'",
			name, name);
		return -ENOENT;
	}
	tally_event_nearest_init(&nearest, name);
	for (size_t i = 0; i < parser->catalogue->named_count; i++) {
		tally_event_nearest_try(&nearest, parser->catalogue->named[i].name);
		if (parser->catalogue->named[i].alias)
			tally_event_nearest_try(&nearest, parser->catalogue->named[i].alias);
	}
	try_pmus(&nearest, parser);
	try_tracepoints(&nearest, parser);
	tally_event_nearest_hint(&nearest, parser, "'tally list' shows the events of this machine");
	return -ENOENT;
}
