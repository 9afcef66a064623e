/* Writes the figures of regions as a table or as JSON. */
#include "library/region_internal.h"

#include "base/buffer.h"
#include "base/characters.h"
#include "base/json.h"
#include "base/number_text.h"
#include "base/terminal.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int write_all(int fd, const struct tally_buffer *out)
{
	for (size_t at = 0; at < out->length;) {
		ssize_t written = write(fd, (const char *)out->bytes + at, out->length - at);
		if (written < 0 && errno != EINTR)
			return -errno;
		if (written > 0)
			at += (size_t)written;
	}
	return 0;
}

/* --- JSON ----------------------------------------------------------------- */

static void put_json(const struct tally_regions *regions, struct tally_buffer *out)
{
	struct tally_json json = { .out = out, .indent = true };
	tally_json_object(&json, NULL);
	tally_json_u64(&json, "version", 1);
	tally_json_text(&json, "command", program_invocation_short_name);
	tally_json_i64(&json, "pid", getpid());
	tally_json_u64(&json, "threads", regions->threads);
	tally_json_text(&json, "reason", regions->reason);
	tally_json_bool(&json, "overhead_subtracted", regions->is_subtracted);
	tally_json_u64(&json, "mismatches", regions->mismatches);
	tally_json_u64(&json, "dropped", regions->dropped);
	tally_json_array(&json, "regions");
	for (size_t i = 0; i < regions->count; i++) {
		const struct tally_region_sums *sums = regions->items[i];
		tally_json_object(&json, NULL);
		tally_json_text(&json, "name", sums->name);
		tally_json_u64(&json, "calls", sums->calls);
		tally_json_array(&json, "figures");
		for (unsigned n = 0; n < sums->count; n++) {
			struct tally_region_figure figure;
			tally_region_figure_of(&sums->sums[n], &figure);
			tally_json_object(&json, NULL);
			tally_json_text(&json, "event", regions->events[n]);
			tally_json_text(&json, "unit", n ? "" : "ns");
			tally_json_u64(&json, "measured", figure.measured);
			tally_json_u64(&json, "scaled", figure.scaled);
			tally_json_double(&json, "total", figure.total);
			tally_json_double(&json, "self", figure.self);
			tally_json_double(&json, "mean", figure.mean);
			tally_json_double(&json, "deviation", figure.deviation);
			tally_json_double(&json, "p50", figure.p50);
			tally_json_double(&json, "p99", figure.p99);
			tally_json_double(&json, "max", figure.max);
			tally_json_end(&json);
		}
		tally_json_end(&json);
		tally_json_end(&json);
	}
	tally_json_end(&json);
	tally_json_end(&json);
}

/* --- the table ------------------------------------------------------------ */

enum { CELL = 40, COLUMNS = 10 };

struct row {
	char cells[COLUMNS][CELL];
};

static bool is_time(const struct tally_regions *regions, unsigned figure)
{
	const char *event = regions->events[figure];
	return !figure || !strncmp(event, "task-clock", 10) || !strncmp(event, "cpu-clock", 9);
}

/* Writes "1.203 ms" for ns, "1,234" for counts, with one decimal below 100. */
static void put_value(double value, bool is_ns, char out[CELL])
{
	static const struct {
		double ns;
		const char *unit;
	} units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1, "ns" } };
	char digits[CELL];
	unsigned unit = 0;
	if (is_ns) {
		while (unit < 3 && value < units[unit].ns)
			unit++;
		snprintf(out, CELL, "%.*f %s", unit == 3 ? 0 : 3, value / units[unit].ns,
			 units[unit].unit);
		return;
	}
	bool is_whole = value >= 100 || value == (double)(uint64_t)value;
	snprintf(digits, sizeof(digits), "%.*f", is_whole ? 0 : 1, value);
	tally_number_group(digits, out, CELL);
}

static void fill_row(const struct tally_regions *regions, const struct tally_region_sums *sums,
		     unsigned n, struct row *row)
{
	struct tally_region_figure figure;
	tally_region_figure_of(&sums->sums[n], &figure);
	const double values[] = { figure.total, figure.self, figure.mean, figure.deviation,
				  figure.p50,   figure.p99,  figure.max };
	snprintf(row->cells[1], CELL, "%s", regions->events[n]);
	if (!n)
		tally_number_text(sums->calls, row->cells[2]);
	if (!figure.measured) {
		snprintf(row->cells[3], CELL, "not counted");
		return;
	}
	for (unsigned i = 0; i < sizeof(values) / sizeof(*values); i++)
		put_value(values[i], is_time(regions, n), row->cells[3 + i]);
	if (figure.scaled) {
		size_t length = strlen(row->cells[3]);
		snprintf(row->cells[3] + length, CELL - length, " ~");
	}
}

static unsigned columns_of(const char *text)
{
	unsigned columns = 0;
	for (; *text; text++)
		columns += tally_begins_character(*text);
	return columns;
}

static void put_rows(const struct row *rows, size_t count, struct tally_buffer *out)
{
	unsigned widths[COLUMNS] = { 0 };
	for (size_t r = 0; r < count; r++)
		for (unsigned c = 0; c < COLUMNS; c++)
			if (columns_of(rows[r].cells[c]) > widths[c])
				widths[c] = columns_of(rows[r].cells[c]);
	for (size_t r = 0; r < count; r++) {
		for (unsigned c = 0; c < COLUMNS; c++) {
			unsigned fill = widths[c] - columns_of(rows[r].cells[c]);
			if (c < 2)
				tally_buffer_printf(out, " %s%*s", rows[r].cells[c], (int)fill, "");
			else
				tally_buffer_printf(out, "  %*s%s", (int)fill, "",
						    rows[r].cells[c]);
		}
		while (out->length && out->bytes[out->length - 1] == ' ')
			out->length--;
		tally_buffer_char(out, '\n');
	}
}

/* Returns the number of the figure whose event has this name, whatever its modifiers; 0: none. */
static unsigned find_event(const struct tally_regions *regions, const char *name)
{
	size_t length = strlen(name);
	for (unsigned n = 1; n < regions->event_count; n++)
		if (!strncmp(regions->events[n], name, length) &&
		    (!regions->events[n][length] || regions->events[n][length] == ':'))
			return n;
	return 0;
}

/* The events of a group are always counted together, so their ratio is of the same time. */
static void put_ratios(const struct tally_regions *regions, struct tally_buffer *out)
{
	unsigned cycles = find_event(regions, "cycles"),
		 instructions = find_event(regions, "instructions");
	if (!cycles || !instructions)
		return;
	tally_buffer_text(out, "\n");
	for (size_t i = 0; i < regions->count; i++) {
		const struct tally_region_sum *sums = regions->items[i]->sums;
		if (sums[cycles].measured && sums[cycles].self > 0) {
			tally_buffer_text(out, " ");
			tally_put_name(out, regions->items[i]->name);
			tally_buffer_printf(out, ": %.2f instructions per cycle by itself\n",
					    sums[instructions].self / sums[cycles].self);
		}
	}
}

static int put_table(const struct tally_regions *regions, struct tally_buffer *out)
{
	static const char *const titles[COLUMNS] = { "REGION", "",  "CALLS", "TOTAL", "SELF",
						     "MEAN",   "σ", "P50",   "P99",   "MAX" };
	size_t count = 1;
	struct row *rows = calloc(1 + regions->count * regions->event_count, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	for (unsigned c = 0; c < COLUMNS; c++)
		snprintf(rows[0].cells[c], CELL, "%s", titles[c]);
	bool is_scaled = false;
	for (size_t i = 0; i < regions->count; i++) {
		tally_terminal_clean_name(regions->items[i]->name, rows[count].cells[0], CELL);
		for (unsigned n = 0; n < regions->items[i]->count; n++, count++) {
			fill_row(regions, regions->items[i], n, &rows[count]);
			is_scaled |= regions->items[i]->sums[n].scaled;
		}
	}
	tally_buffer_printf(out, "\n Regions of %s (process %d, %" PRIu64 " thread%s)\n\n",
			    program_invocation_short_name, (int)getpid(), regions->threads,
			    tally_plural(regions->threads));
	put_rows(rows, count, out);
	free(rows);
	put_ratios(regions, out);
	if (regions->is_subtracted)
		tally_buffer_text(out, "\n The cost of measuring is subtracted.\n");
	if (is_scaled)
		tally_buffer_text(out, "\n ~ an estimate: other events used the counters, too.\n");
	if (regions->reason)
		tally_buffer_printf(out, "\n Not all events are counted: %s\n", regions->reason);
	if (regions->mismatches)
		tally_buffer_printf(out,
				    "\n %" PRIu64 " region%s ended without a beginning, or ended "
				    "before a region within.\n",
				    regions->mismatches, tally_plural(regions->mismatches));
	if (regions->dropped)
		tally_buffer_printf(out,
				    "\n %" PRIu64 " region%s not measured: more than 64 within "
				    "each other, or in a signal's handler.\n",
				    regions->dropped, regions->dropped == 1 ? " was" : "s were");
	tally_buffer_text(out, "\n");
	return 0;
}

int tally_regions_write(const struct tally_regions *regions, int fd, bool as_json)
{
	struct tally_buffer out = { 0 };
	int result = 0;
	if (as_json)
		put_json(regions, &out);
	else
		result = put_table(regions, &out);
	if (!result && out.failed)
		result = -ENOMEM;
	if (!result)
		result = write_all(fd, &out);
	tally_buffer_release(&out);
	return result;
}
