/* Puts a report's rows in order. */
#include "base/extremes.h"
#include "event/event.h"
#include "stat/stat.h"

#include <stdlib.h>
#include <string.h>

const char *tally_stat_part_name(enum tally_count_by by)
{
	static const char *const names[] = {
		[TALLY_COUNT_BY_CPU] = "cpu",   [TALLY_COUNT_BY_CORE] = "core",
		[TALLY_COUNT_BY_DIE] = "die",   [TALLY_COUNT_BY_SOCKET] = "socket",
		[TALLY_COUNT_BY_NODE] = "node", [TALLY_COUNT_BY_THREAD] = "thread",
	};
	return names[by];
}

bool tally_stat_part_is_sum(enum tally_count_by by)
{
	return by != TALLY_COUNT_BY_NOTHING && by != TALLY_COUNT_BY_CPU &&
	       by != TALLY_COUNT_BY_THREAD;
}

bool tally_stat_has_cgroups(const struct tally_stat_report *report)
{
	for (size_t i = 0; i < report->table.count; i++)
		if (report->table.rows[i].cgroup)
			return true;
	return false;
}

static int largest_first(const void *a, const void *b)
{
	const struct tally_stat_row *x = a, *y = b;
	if (x->index != y->index)
		return tally_compare_u64(x->index, y->index);
	if (x->count->value != y->count->value)
		return x->count->value > y->count->value ? -1 : 1;
	return x->part < y->part ? -1 : x->part > y->part;
}

/* A tool event belongs to no part; like perf, shows it with the first. */
static bool is_of_whole(const struct tally_event_count *row, size_t part)
{
	return part && row->type == TALLY_TYPE_TOOL;
}

/* With one row per thread, threads that ended before they could be counted are hidden as well. */
static bool is_hidden(const struct tally_stat_view *view, const struct tally_stat_report *report,
		      const struct tally_event_count *row)
{
	bool is_nothing = row->state == TALLY_COUNT_OK || (row->state == TALLY_COUNT_NOT_COUNTED &&
							   report->by == TALLY_COUNT_BY_THREAD);
	return view->hides_zero && is_nothing && row->value == 0;
}

struct tally_stat_row *tally_stat_rows(const struct tally_stat_view *view,
				       const struct tally_stat_report *report, size_t *count)
{
	size_t events = report->table.count, all = events * report->part_count;
	bool by_event = report->by == TALLY_COUNT_BY_CPU || report->by == TALLY_COUNT_BY_THREAD;
	struct tally_stat_row *rows = calloc(all + 1, sizeof(*rows));
	*count = 0;
	for (size_t i = 0; rows && i < all; i++) {
		size_t part = i / events, event = i % events;
		if (by_event) {
			part = i % report->part_count;
			event = i / report->part_count;
		}
		struct tally_stat_row *row = &rows[*count];
		*row = (struct tally_stat_row){ .part = &report->parts[part],
						.table = report->table,
						.index = event };
		row->table.rows += part * events;
		row->count = &row->table.rows[event];
		if (report->by)
			row->table.cpu_count = row->part->cpus;
		*count += !is_hidden(view, report, row->count) && !is_of_whole(row->count, part);
	}
	if (rows && report->by == TALLY_COUNT_BY_THREAD)
		qsort(rows, *count, sizeof(*rows), largest_first);
	return rows;
}

struct tally_stat_metric *tally_stat_metrics(const struct tally_stat_view *view,
					     const struct tally_stat_report *report, size_t *count)
{
	const struct tally_metric_uses *uses = view->metrics;
	bool by_metric = report->by == TALLY_COUNT_BY_CPU || report->by == TALLY_COUNT_BY_THREAD;
	size_t turns = 1, parts = report->part_count;
	*count = 0;
	if (!uses || !uses->count || !parts)
		return NULL;
	if (uses->stride && report->table.count > uses->stride)
		turns = report->table.count / uses->stride;
	size_t all = uses->count * turns;
	struct tally_stat_metric *metrics = calloc(all * parts, sizeof(*metrics));
	*count = all * parts;
	for (size_t i = 0; metrics && i < all * parts; i++) {
		size_t part = i / all, at = i % all;
		if (by_metric) {
			part = i % parts;
			at = i / parts;
		}
		struct tally_count_table table = report->table;
		table.rows += part * report->table.count;
		metrics[i].part = &report->parts[part];
		tally_metric_figure_of(uses, at % uses->count, &table, report->table.rows,
				       at / uses->count, &metrics[i].figure);
	}
	return metrics;
}
