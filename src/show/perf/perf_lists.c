/* Texts of perf's small commands: the events and build-ids of a recording, and the events of this
 * machine. */
#include "perf/perf.h"

#include "abi/abi.h"
#include "base/reader.h"
#include "base/terminal.h"
#include "output/output.h"
#include "perfdata/perfdata.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- perf evlist --------------------------------------------------------- */

static void put_trace_fields(const struct tally_perfdata *data, const struct tally_attr *attr,
			     struct tally_buffer *out)
{
	struct tally_arena arena = TALLY_ARENA_INIT;
	struct tally_listed_event event = { .kind = TALLY_EVENT_TRACEPOINT };
	const char *format;
	size_t length;
	bool is_there = tally_perfdata_tracepoint_format(data, attr->config, &format, &length);
	const char *text = NULL;
	if (is_there)
		text = tally_arena_printf(&arena, "%.*s", (int)length, format);
	if (text && !tally_event_list_fields(text, &arena, &event))
		for (size_t i = 0; i < event.field_count; i++) {
			tally_buffer_text(out, i ? "," : ": trace_fields: ");
			/* an array's name has its length behind it */
			tally_buffer_printf(out, "%.*s", (int)strcspn(event.fields[i].name, "["),
					    event.fields[i].name);
		}
	tally_arena_release(&arena);
}

static void put_event(const struct tally_perfdata *data, const struct tally_recorded_event *event,
		      const struct tally_perf_evlist *options, struct tally_buffer *out)
{
	tally_put_name(out, event->name);
	if (options->verbose) {
		struct tally_buffer text = { 0 };
		tally_attr_text(&event->attr, ": ", &text);
		if (text.length > 2)
			tally_buffer_printf(out, ": %s", tally_buffer_string(&text) + 2);
		out->failed |= text.failed;
		tally_buffer_release(&text);
	} else if (options->frequency) {
		tally_buffer_printf(out, ": sample_%s=%" PRIu64,
				    event->attr.flags & TALLY_ATTR_FREQ ? "freq" : "period",
				    event->attr.sample_period);
	}
	if (options->trace_fields && event->attr.type == TALLY_TYPE_TRACEPOINT)
		put_trace_fields(data, &event->attr, out);
	else if (options->trace_fields)
		tally_buffer_text(out, ": (not a tracepoint)");
}

size_t tally_perf_group_of(const struct tally_perfdata *data, size_t leader, const char **name)
{
	struct tally_feature_bytes groups = tally_perfdata_feature(data, TALLY_FEATURE_GROUP_DESC);
	struct tally_reader reader;
	struct tally_feature_group group;
	uint32_t count = 0;
	tally_reader_init(&reader, groups.bytes, groups.size, false);
	if (groups.bytes)
		count = tally_reader_u32(&reader);
	for (uint32_t i = 0; i < count && tally_feature_read_group(&reader, &group); i++)
		if (group.leader_index == leader && group.member_count > 1) {
			*name = group.name;
			return group.member_count;
		}
	*name = NULL;
	return 1;
}

void tally_perf_evlist_text(const struct tally_perfdata *data,
			    const struct tally_perf_evlist *options, struct tally_buffer *out)
{
	size_t count, members = 1;
	const struct tally_recorded_event *events = tally_perfdata_events(data, &count);
	bool has_tracepoint = false;
	for (size_t i = 0; i < count; i += members) {
		const char *name;
		members = options->groups ? tally_perf_group_of(data, i, &name) : 1;
		if (members > 1)
			tally_buffer_char(out, '{');
		for (size_t k = i; k < i + members && k < count; k++) {
			if (k > i)
				tally_buffer_char(out, ',');
			put_event(data, &events[k], options, out);
			has_tracepoint |= events[k].attr.type == TALLY_TYPE_TRACEPOINT;
		}
		tally_buffer_text(out, members > 1 ? "}\n" : "\n");
	}
	if (has_tracepoint && !options->trace_fields)
		tally_buffer_text(out, "# Tip: use 'perf evlist --trace-fields' to show fields for "
				       "tracepoint events\n");
}

/* ---- perf buildid-list --------------------------------------------------- */

void tally_perf_build_ids_text(const struct tally_perfdata *data, const bool *shown,
			       struct tally_buffer *out)
{
	size_t count;
	const struct tally_recorded_build_id *ids = tally_perfdata_build_ids(data, &count);
	for (size_t i = 0; i < count; i++) {
		if (shown && !shown[i])
			continue;
		for (unsigned k = 0; k < ids[i].size; k++)
			tally_buffer_printf(out, "%02x", ids[i].bytes[k]);
		tally_buffer_char(out, ' ');
		tally_put_name(out, ids[i].filename);
		tally_buffer_char(out, '\n');
	}
}

/* ---- perf list ----------------------------------------------------------- */

static const char *const kinds[TALLY_EVENT_KINDS] = {
	[TALLY_EVENT_HARDWARE] = "Hardware event",
	[TALLY_EVENT_SOFTWARE] = "Software event",
	[TALLY_EVENT_TOOL] = "Tool event",
	[TALLY_EVENT_CACHE] = "Hardware cache event",
	[TALLY_EVENT_PMU] = "Kernel PMU event",
	[TALLY_EVENT_RAW] = "Raw hardware event descriptor",
	[TALLY_EVENT_BREAKPOINT] = "Hardware breakpoint",
	[TALLY_EVENT_TRACEPOINT] = "Tracepoint event",
};

/* perf's forms of events that stand for many. */
static const struct {
	enum tally_event_kind kind;
	const char *text;
} forms[] = {
	{ TALLY_EVENT_RAW, "rNNN" },
	{ TALLY_EVENT_RAW, "cpu/t1=v1[,t2=v2,t3 ...]/modifier" },
	{ TALLY_EVENT_BREAKPOINT, "mem:<addr>[/len][:access]" },
};

/* perf's order: kinds as listed, names of a kind by strcmp(), but tools' in the order of the
 * table. */
static int by_name(const void *left, const void *right)
{
	const struct tally_listed_event *a = *(const struct tally_listed_event *const *)left;
	const struct tally_listed_event *b = *(const struct tally_listed_event *const *)right;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->kind == TALLY_EVENT_TOOL)
		return (a > b) - (a < b);
	return strcmp(a->name, b->name);
}

static void put_listed(const char *name, const char *alias, enum tally_event_kind kind,
		       const struct tally_perf_list *options, struct tally_buffer *out)
{
	struct tally_buffer text = { 0 };
	if (options->names_only) {
		tally_put_name(out, name);
		tally_buffer_char(out, ' ');
		return;
	}
	tally_put_name(&text, name);
	if (alias)
		tally_buffer_printf(&text, " OR %s", alias);
	tally_buffer_printf(out, "  %-50s [%s]\n", tally_buffer_string(&text), kinds[kind]);
	out->failed |= text.failed;
	tally_buffer_release(&text);
}

void tally_perf_list_text(const struct tally_event_listing *listing,
			  const struct tally_perf_list *options, struct tally_buffer *out)
{
	const struct tally_listed_event **sorted = calloc(listing->count + 1, sizeof(*sorted));
	size_t count = 0;
	if (!sorted) {
		out->failed = true;
		return;
	}
	for (size_t i = 0; i < listing->count; i++) {
		const struct tally_listed_event *event = &listing->events[i];
		/* perf has no kind of its own for vendors' names, and lists no PMU's terms */
		bool is_shown = !event->unavailable || event->kind == TALLY_EVENT_RAW;
		if (kinds[event->kind] && is_shown &&
		    !(event->is_form && event->kind == TALLY_EVENT_PMU && !event->pmu_event))
			sorted[count++] = event;
	}
	qsort(sorted, count, sizeof(*sorted), by_name);
	for (size_t i = 0; i < count; i++) {
		const struct tally_listed_event *event = sorted[i];
		bool is_of_many = event->kind == TALLY_EVENT_RAW ||
				  event->kind == TALLY_EVENT_BREAKPOINT;
		for (size_t k = 0; is_of_many && k < sizeof(forms) / sizeof(forms[0]); k++)
			if (forms[k].kind == event->kind)
				put_listed(forms[k].text, NULL, event->kind, options, out);
		if (!is_of_many)
			put_listed(event->name, event->alias, event->kind, options, out);
	}
	free(sorted);
}
