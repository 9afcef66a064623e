/* A strip is a line of cells; a cell's height is the share of its time that was used. */
#include "output/output.h"

#include "base/extremes.h"
#include "base/number_text.h"
#include "base/terminal.h"
#include "base/vector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MIN = 60, LABEL_WIDTH = 22, FIGURE_WIDTH = 12, LEVELS = 8, NAME_MAX_BYTES = 16 };

struct strip {
	double *cells;  /* ns of running time, or number of marks */
	double total;
	uint32_t id;    /* CPU, or index of the thread */
	uint32_t event; /* event of the marks */
	double order;   /* sort key, the largest first */
};

struct strips {
	struct strip *items;
	size_t count, capacity;
};

struct chart {
	const struct tally_activity *activity;
	const struct tally_timeline_view *view;
	struct tally_buffer *out;
	unsigned width;     /* number of cells */
	double cell_ns;
};

static const char *colour(const struct chart *chart, const char *code)
{
	if (chart->view->colours)
		return code;
	return "";
}

static struct strip *strip_of(struct strips *strips, struct tally_map *index, uint64_t key,
			      const struct chart *chart)
{
	bool added;
	uint64_t *slot = tally_map_put(index, key, &added);
	if (!slot)
		return NULL;
	if (added) {
		struct strip strip = { .cells = calloc(chart->width, sizeof(double)),
				       .id = (uint32_t)key,
				       .event = (uint32_t)(key >> 32) };
		*slot = strips->count;
		if (!strip.cells || tally_vector_push(strips, strip) < 0) {
			free(strip.cells);
			return NULL;
		}
	}
	return &strips->items[*slot];
}

static void release_strips(struct strips *strips, struct tally_map *index)
{
	for (size_t i = 0; i < strips->count; i++)
		free(strips->items[i].cells);
	tally_vector_release(strips);
	tally_map_release(index);
}

/* Adds an interval to the cells that it overlaps. */
static void fill(const struct chart *chart, struct strip *strip, uint64_t start, uint64_t end)
{
	uint64_t first = chart->activity->first;
	double from = start > first ? (double)(start - first) : 0,
	       to = end > first ? (double)(end - first) : 0;
	strip->total += to - from;
	for (unsigned cell = (unsigned)(from / chart->cell_ns);
	     cell < chart->width && cell * chart->cell_ns < to; cell++) {
		double left = tally_max_double(from, cell * chart->cell_ns),
		       right = tally_min_double(to, (cell + 1) * chart->cell_ns);
		if (right > left)
			strip->cells[cell] += right - left;
	}
}

static int gather_ran(const struct chart *chart, bool by_cpu, struct strips *strips,
		      struct tally_map *index)
{
	for (size_t i = 0; i < chart->activity->ran.count; i++) {
		const struct tally_ran *ran = &chart->activity->ran.items[i];
		if (by_cpu && ran->cpu == UINT32_MAX)
			continue;
		struct strip *strip = strip_of(strips, index, by_cpu ? ran->cpu : ran->thread,
					       chart);
		if (!strip)
			return -ENOMEM;
		fill(chart, strip, ran->start, ran->end);
		if (by_cpu)
			strip->order = -(double)strip->id;
		else
			strip->order = strip->total;
	}
	return 0;
}

/* Makes strips of marks by event and thread; the caller sets `order` later. */
static int gather_marks(const struct chart *chart, struct strips *strips, struct tally_map *index)
{
	for (size_t i = 0; i < chart->activity->marks.count; i++) {
		const struct tally_mark *mark = &chart->activity->marks.items[i];
		struct strip *strip = strip_of(strips, index,
					       (uint64_t)mark->event << 32 | mark->thread, chart);
		if (!strip)
			return -ENOMEM;
		double at = (double)(mark->time - chart->activity->first) / chart->cell_ns;
		strip->cells[at < chart->width ? (unsigned)at : chart->width - 1]++;
		strip->total++;
	}
	return 0;
}

static int by_order(const void *left, const void *right)
{
	const struct strip *a = left, *b = right;
	if (a->order < b->order)
		return 1;
	if (a->order > b->order)
		return -1;
	if (a->id < b->id)
		return -1;
	return a->id > b->id;
}

/* ---- drawing ------------------------------------------------------------- */

static void put_cells(const struct chart *chart, const struct strip *strip, double full)
{
	static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char ascii[] = " .:-=+*%#";
	for (unsigned cell = 0; cell < chart->width; cell++) {
		double share = 0;
		if (full > 0)
			share = strip->cells[cell] / full;
		unsigned level;
		if (share >= 1)
			level = LEVELS;
		else
			level = 1 + (unsigned)(share * (LEVELS - 1));
		if (share <= 0)
			level = 0;
		if (chart->view->ascii)
			tally_buffer_char(chart->out, ascii[level]);
		else
			tally_buffer_text(chart->out, blocks[level]);
	}
}

static void put_label(const struct chart *chart, const char *text)
{
	char clean[LABEL_WIDTH];
	tally_terminal_clean_name(text, clean, sizeof(clean));
	tally_buffer_printf(chart->out, "%-*s ", LABEL_WIDTH - 1, clean);
}

/* Draws ticks such as "0.25 s", with as many digits as tell neighbours apart. */
static void put_axis(const struct chart *chart)
{
	double span = (double)(chart->activity->last - chart->activity->first), step = 1;
	static const double factors[] = { 1, 2, 5, 10 };
	unsigned f = 0;
	while (10 * step <= span / 4)
		step *= 10;
	while (f < 3 && span / (step * factors[f]) > chart->width / 10.0)
		f++;
	step *= factors[f];
	const char *unit = "us";
	double scale = 1e3;
	if (span >= 1e9) {
		unit = "s";
		scale = 1e9;
	} else if (span >= 1e6) {
		unit = "ms";
		scale = 1e6;
	}
	int digits = 0;
	for (double unit_step = step; unit_step < scale * 0.999; unit_step *= 10)
		digits++;
	unsigned at = 0;
	put_label(chart, "");
	tally_buffer_text(chart->out, colour(chart, "\x1b[2m"));
	for (unsigned tick = 0; tick * step < span; tick++) {
		char text[32];
		unsigned where = (unsigned)(tick * step / chart->cell_ns);
		int length = snprintf(text, sizeof(text), "%s%.*f %s",
				      chart->view->ascii ? "|" : "╷", digits, tick * step / scale,
				      unit);
		/* the sign takes three bytes but one column */
		unsigned shown = (unsigned)length - (chart->view->ascii ? 0 : 2);
		if (where < at || where + shown > chart->width)
			continue;
		tally_buffer_printf(chart->out, "%*s%s", (int)(where - at), "", text);
		at = where + shown;
	}
	tally_buffer_printf(chart->out, "%s\n", colour(chart, "\x1b[0m"));
}

static void put_cpus(const struct chart *chart, const struct strips *strips)
{
	double span = (double)(chart->activity->last - chart->activity->first);
	for (size_t i = 0; i < strips->count; i++) {
		const struct strip *strip = &strips->items[i];
		char label[32];
		snprintf(label, sizeof(label), "CPU %u", strip->id);
		put_label(chart, label);
		tally_buffer_text(chart->out, colour(chart, "\x1b[36m"));
		put_cells(chart, strip, chart->cell_ns);
		tally_buffer_printf(chart->out, "%s %6.1f %%\n", colour(chart, "\x1b[0m"),
				    100 * strip->total / span);
	}
}

static void put_marks_of(const struct chart *chart, const struct strips *marks, uint32_t thread)
{
	size_t events;
	const struct tally_recorded_event *named = tally_perfdata_events(
		chart->activity->recording->data, &events);
	for (size_t i = 0; i < marks->count; i++) {
		const struct strip *strip = &marks->items[i];
		double most = 1;
		char label[64];
		if (strip->id != thread)
			continue;
		for (unsigned cell = 0; cell < chart->width; cell++)
			most = tally_max_double(most, strip->cells[cell]);
		const char *name = named[strip->event].name,
			   *colon = strlen(name) > LABEL_WIDTH - 3 ? strchr(name, ':') : NULL;
		snprintf(label, sizeof(label), "  %s", colon && colon[1] ? colon + 1 : name);
		put_label(chart, label);
		tally_buffer_text(chart->out, colour(chart, "\x1b[33m"));
		put_cells(chart, strip, most);
		tally_buffer_printf(chart->out, "%s %8.0f x\n", colour(chart, "\x1b[0m"),
				    strip->total);
	}
}

static void put_task_label(const struct chart *chart, uint32_t thread)
{
	const struct tally_thread *task = &chart->activity->recording->tasks.threads.items[thread];
	char name[NAME_MAX_BYTES + 1], label[96];
	tally_terminal_clean_name(tally_activity_comm(chart->activity, thread), name, sizeof(name));
	snprintf(label, sizeof(label), "%s %u", name, task->tid);
	put_label(chart, label);
}

static void put_tasks(const struct chart *chart, const struct strips *strips,
		      const struct strips *marks)
{
	for (size_t i = 0; i < strips->count && i < chart->view->tasks; i++) {
		const struct strip *strip = &strips->items[i];
		put_task_label(chart, strip->id);
		tally_buffer_text(chart->out, colour(chart, "\x1b[32m"));
		put_cells(chart, strip, chart->cell_ns);
		tally_buffer_printf(chart->out, "%s %8.3f s\n", colour(chart, "\x1b[0m"),
				    strip->total / 1e9);
		put_marks_of(chart, marks, strip->id);
	}
	size_t more = 0;
	if (strips->count > chart->view->tasks)
		more = strips->count - chart->view->tasks;
	if (more)
		tally_buffer_printf(chart->out, "%s%s task%s%s\n", colour(chart, "\x1b[2m"),
				    tally_number(more),
				    more == 1 ? " more; -n shows it" : "s more; -n shows them",
				    colour(chart, "\x1b[0m"));
}

/* Appends tasks that have marks but no running time. */
static int add_marked_tasks(const struct chart *chart, const struct strips *marks,
			    struct strips *tasks, struct tally_map *index)
{
	for (size_t i = 0; i < marks->count; i++)
		if (!strip_of(tasks, index, marks->items[i].id, chart))
			return -ENOMEM;
	return 0;
}

static void put_head(const struct chart *chart, size_t tasks)
{
	static const char *const sources[] = { "by its context switches", "by sched:sched_switch",
					       "by samples: cells show their share" };
	const struct tally_activity *activity = chart->activity;
	tally_buffer_printf(chart->out, "%s%.3f s of %s task%s", colour(chart, "\x1b[1m"),
			    (double)(activity->last - activity->first) / 1e9, tally_number(tasks),
			    tasks == 1 ? "" : "s");
	if (activity->cpu_count) /* 0: unknown from samples */
		tally_buffer_printf(chart->out, " on %u CPU%s", activity->cpu_count,
				    activity->cpu_count == 1 ? "" : "s");
	tally_buffer_printf(chart->out, ", %s%s\n\n",
			    activity->ran.count ? sources[activity->source] : "by events",
			    colour(chart, "\x1b[0m"));
}

int tally_timeline_text(const struct tally_activity *activity,
			const struct tally_timeline_view *view, struct tally_buffer *out)
{
	unsigned columns = view->columns;
	if (view->columns < COLUMNS_MIN)
		columns = COLUMNS_MIN;
	struct chart chart = { .activity = activity,
			       .view = view,
			       .out = out,
			       .width = columns - LABEL_WIDTH - FIGURE_WIDTH };
	struct strips cpus = { 0 }, tasks = { 0 }, marks = { 0 };
	struct tally_map cpu_index = { 0 }, task_index = { 0 }, mark_index = { 0 };
	uint64_t span = 1;
	if (activity->last > activity->first)
		span = activity->last - activity->first;
	chart.cell_ns = (double)span / chart.width;
	int result = gather_ran(&chart, true, &cpus, &cpu_index);
	if (result)
		goto out;
	result = gather_ran(&chart, false, &tasks, &task_index);
	if (result)
		goto out;
	result = gather_marks(&chart, &marks, &mark_index);
	if (result)
		goto out;
	result = add_marked_tasks(&chart, &marks, &tasks, &task_index);
	if (result)
		goto out;
	if (cpus.count)
		qsort(cpus.items, cpus.count, sizeof(*cpus.items), by_order);
	if (tasks.count)
		qsort(tasks.items, tasks.count, sizeof(*tasks.items), by_order);
	put_head(&chart, tasks.count);
	put_axis(&chart);
	if (view->cpus_wanted)
		put_cpus(&chart, &cpus);
	if (view->cpus_wanted && view->tasks_wanted)
		tally_buffer_char(out, '\n');
	if (view->tasks_wanted)
		put_tasks(&chart, &tasks, &marks);
out:
	release_strips(&cpus, &cpu_index);
	release_strips(&tasks, &task_index);
	release_strips(&marks, &mark_index);
	if (result || out->failed)
		return -ENOMEM;
	return 0;
}
