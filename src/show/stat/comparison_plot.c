/* Plots the runs of both sides of a comparison: how often each value occurred, one line for each
 * side, over the same axis. */
#include "base/characters.h"
#include "base/terminal.h"
#include "base/text.h"
#include "stat/stat.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COLUMNS_MAX = 60, COLUMNS_MIN = 20, RUNS_MIN = 5 };

/* Counts the values by column.  Returns the largest number. */
static unsigned count_values(const struct tally_saved_row *row, double low, double high,
			     unsigned columns, unsigned *counts)
{
	unsigned most = 0;
	memset(counts, 0, columns * sizeof(*counts));
	for (size_t i = 0; i < row->values.count; i++) {
		double place = (row->values.items[i] - low) / (high - low) * columns;
		unsigned column = 0;
		if (place > 0)
			column = (unsigned)place;
		if (column >= columns)
			column = columns - 1;
		if (++counts[column] > most)
			most = counts[column];
	}
	return most;
}

static void put_bars(const unsigned *counts, unsigned columns, unsigned most, bool is_ascii,
		     struct tally_buffer *out)
{
	static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char *const letters[] = { " ", ".", ".", ":", ":", "+", "+", "#", "#" };
	for (unsigned i = 0; i < columns; i++) {
		unsigned level = (counts[i] * 8 + most - 1) / most;
		tally_buffer_text(out, is_ascii ? letters[level] : blocks[level]);
	}
}

static void range_of(const struct tally_saved_row *row, double *low, double *high)
{
	for (size_t i = 0; i < row->values.count; i++) {
		double value = row->values.items[i];
		if (value < *low)
			*low = value;
		if (value > *high)
			*high = value;
	}
}

/* "12.3 … 14.8 ms" */
static void put_range(const struct tally_saved_row *row, bool is_ascii, struct tally_buffer *out)
{
	double low = INFINITY, high = -INFINITY, scale = 1;
	const char *unit = row->unit;
	range_of(row, &low, &high);
	bool is_ms = !strcmp(unit, "ns") || (!strcmp(unit, "s") && high < 1);
	if (is_ms)
		scale = *unit == 'n' ? 1e-6 : 1e3;
	if (is_ms)
		unit = "ms";
	tally_buffer_printf(out, "  %.4g %s %.4g%s", low * scale, is_ascii ? "to" : "…",
			    high * scale, *unit ? " " : "");
	tally_put_name(out, unit);
	tally_buffer_char(out, '\n');
}

static void plot_row(const struct tally_compared_row *row, unsigned columns, bool is_ascii,
		     struct tally_buffer *out)
{
	unsigned counts[COLUMNS_MAX];
	double low = INFINITY, high = -INFINITY;
	const struct tally_saved_row *const sides[] = { row->old, row->new };
	for (unsigned i = 0; i < 2; i++)
		range_of(sides[i], &low, &high);
	if (!(high > low))
		return;
	tally_buffer_text(out, "\n");
	tally_put_name(out, row->name);
	tally_buffer_text(out, " of each run\n");
	for (unsigned i = 0; i < 2; i++) {
		unsigned most = count_values(sides[i], low, high, columns, counts);
		tally_buffer_printf(out, "%s ", i ? "new" : "old");
		put_bars(counts, columns, most, is_ascii, out);
		put_range(sides[i], is_ascii, out);
	}
}

void tally_comparison_plot(const struct tally_saved_comparison *comparison, unsigned columns,
			   bool is_ascii, struct tally_buffer *out)
{
	const unsigned around = 30; /* columns of "old " and of the range */
	columns = columns > around ? columns - around : 0;
	if (columns > COLUMNS_MAX)
		columns = COLUMNS_MAX;
	if (columns < COLUMNS_MIN)
		columns = COLUMNS_MIN;
	for (size_t i = 0; i < comparison->rows.count; i++) {
		const struct tally_compared_row *row = &comparison->rows.items[i];
		if (row->has_change && !strcmp(row->name, "elapsed") &&
		    row->old->values.count >= RUNS_MIN && row->new->values.count >= RUNS_MIN)
			plot_row(row, columns, is_ascii, out);
	}
}
