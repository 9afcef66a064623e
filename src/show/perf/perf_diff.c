/* The text of `perf diff`, to the letter (perf 6.1, tools/perf/builtin-diff.c): the entries of two
 * recordings side by side.  Entries are the same if their objects, symbols and commands have the
 * same names; code of one object without symbols is one entry. */
#include "base/buffer.h"
#include "base/map.h"
#include "base/vector.h"
#include "perf/perf.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDES = 2, BASELINE_WIDTH = 8, DELTA_WIDTH = 9, NAME_BYTES_OF_ADDRESS = 22 };

struct row {
	const char *texts[TALLY_PERF_KEYS]; /* NULL: no key, or a symbol without a name */
	uint64_t address;                   /* without a name */
	bool is_kernel;
	bool is_in[SIDES];
	uint64_t periods[SIDES];
	double percents[SIDES];
	uint32_t next; /* with the same hash: index + 1; 0: none */
};

struct differ {
	const struct tally_perf_diff_view *view;
	struct { struct row *items; size_t count, capacity; } rows;
	struct tally_map index; /* hash of the texts → index + 1 */
	size_t widths[TALLY_PERF_KEYS];
};

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = tally_hash64(hash ^ (unsigned char)*text);
	return tally_hash64(hash + 1);
}

static bool are_same(const struct row *a, const struct row *b)
{
	for (unsigned i = 0; i < TALLY_PERF_KEYS; i++) {
		if (!a->texts[i] != !b->texts[i])
			return false;
		if (a->texts[i] && strcmp(a->texts[i], b->texts[i]) != 0)
			return false;
	}
	return true;
}

static struct row row_of(const struct tally_perf_diff_side *side, const bool *by,
			 const struct tally_perf_entry *entry)
{
	const struct tally_recording *recording = side->profile->recording;
	struct row row = { .is_kernel = entry->is_kernel };
	if (by[TALLY_PERF_COMM])
		row.texts[TALLY_PERF_COMM] = tally_strings_text(&recording->tasks.strings,
								entry->key[TALLY_PERF_COMM]);
	if (by[TALLY_PERF_OBJECT])
		row.texts[TALLY_PERF_OBJECT] = tally_strings_text(&recording->names.strings,
								  entry->key[TALLY_PERF_OBJECT]);
	if (by[TALLY_PERF_SYMBOL]) {
		const struct tally_perf_symbol *symbol =
			&side->sums->symbols.items[entry->key[TALLY_PERF_SYMBOL]];
		row.texts[TALLY_PERF_SYMBOL] = tally_perf_symbol_name(side->profile, symbol);
		row.address = symbol->address;
	}
	return row;
}

/* Adds an entry's share of one recording.  Returns 0 or -ENOMEM. */
static int add_entry(struct differ *differ, unsigned number, const struct tally_perf_entry *entry)
{
	const struct tally_perf_diff_side *side = &differ->view->sides[number];
	struct row row = row_of(side, differ->view->by, entry), *found = NULL;
	uint64_t whole = side->sums->events->period, hash = 0;
	for (unsigned i = 0; i < TALLY_PERF_KEYS; i++)
		hash = hash_text(hash, row.texts[i]);
	uint64_t *first = tally_map_put(&differ->index, hash, NULL);
	if (!first)
		return -ENOMEM;
	for (uint32_t i = (uint32_t)*first; i && !found; i = differ->rows.items[i - 1].next)
		if (are_same(&differ->rows.items[i - 1], &row))
			found = &differ->rows.items[i - 1];
	if (!found) {
		row.next = (uint32_t)*first;
		if (tally_vector_push(&differ->rows, row) < 0)
			return -ENOMEM;
		*first = differ->rows.count;
		found = &differ->rows.items[differ->rows.count - 1];
	}
	found->is_in[number] = true;
	found->periods[number] += entry->weights->self;
	if (whole)
		found->percents[number] = 100.0 * (double)found->periods[number] / (double)whole;
	return 0;
}

static double delta(const struct row *row)
{
	return row->percents[1] - row->percents[0];
}

static int compare_doubles(double a, double b)
{
	return (a > b) - (a < b);
}

/* Names come before what has none. */
static int compare_texts(const char *a, const char *b)
{
	if (a && b)
		return strcmp(a, b);
	return (b != NULL) - (a != NULL);
}

/* Changes come first, the largest before the others; then the heaviest in the old recording. */
static int compare_rows(const void *a, const void *b, void *context)
{
	const struct tally_perf_diff_view *view = context;
	const struct row *x = a, *y = b;
	int order = y->is_in[1] - x->is_in[1];
	if (!order && x->is_in[1])
		order = compare_doubles(fabs(delta(y)), fabs(delta(x)));
	if (!order)
		order = compare_doubles(y->percents[0], x->percents[0]);
	for (unsigned i = 0; !order && i < view->key_count; i++)
		order = compare_texts(x->texts[view->keys[i]], y->texts[view->keys[i]]);
	return order;
}

static const char *title(unsigned key)
{
	if (key == TALLY_PERF_COMM)
		return "Command";
	return key == TALLY_PERF_OBJECT ? "Shared Object" : "Symbol";
}

static void widen(size_t *width, size_t length)
{
	if (length > *width)
		*width = length;
}

static void measure(struct differ *differ)
{
	const struct tally_perf_diff_view *view = differ->view;
	for (unsigned i = 0; i < view->key_count; i++)
		differ->widths[view->keys[i]] = strlen(title(view->keys[i]));
	for (size_t i = 0; i < differ->rows.count; i++) {
		const struct row *row = &differ->rows.items[i];
		for (unsigned k = 0; k < view->key_count; k++) {
			unsigned key = view->keys[k];
			size_t prefix = key == TALLY_PERF_SYMBOL ? strlen("[.] ") : 0;
			if (row->texts[key])
				widen(&differ->widths[key], strlen(row->texts[key]) + prefix);
			else
				widen(&differ->widths[key], NAME_BYTES_OF_ADDRESS);
		}
		if (view->by[TALLY_PERF_SYMBOL] && !row->texts[TALLY_PERF_SYMBOL] && !view->separator)
			widen(&differ->widths[TALLY_PERF_OBJECT], 16);
	}
}

static void put_headings(const struct differ *differ, struct tally_buffer *out)
{
	const struct tally_perf_diff_view *view = differ->view;
	const char *separator = view->separator ? view->separator : "  ";
	tally_buffer_printf(out, "# Baseline%sDelta Abs", separator);
	for (unsigned i = 0; i < view->key_count; i++)
		tally_buffer_printf(out, "%s%-*s", separator, (int)differ->widths[view->keys[i]],
				    title(view->keys[i]));
	tally_buffer_char(out, '\n');
	if (view->separator)
		return;
	tally_buffer_text(out, "# ........  .........");
	for (unsigned i = 0; i < view->key_count; i++) {
		tally_buffer_text(out, separator);
		for (size_t k = 0; k < differ->widths[view->keys[i]]; k++)
			tally_buffer_char(out, '.');
	}
	tally_buffer_text(out, "\n#\n");
}

static void put_key(const struct differ *differ, const struct row *row, unsigned key, bool is_last,
		    struct tally_buffer *out)
{
	size_t start = out->length;
	if (key == TALLY_PERF_SYMBOL)
		tally_buffer_text(out, row->is_kernel ? "[k] " : "[.] ");
	if (row->texts[key])
		tally_buffer_text(out, row->texts[key]);
	else
		tally_buffer_printf(out, "%-#.16" PRIx64, row->address);
	/* perf pads names of objects and commands even in the last column */
	while (!out->failed && out->length - start < differ->widths[key] &&
	       (!is_last || key != TALLY_PERF_SYMBOL))
		tally_buffer_char(out, ' ');
}

static void put_row(const struct differ *differ, const struct row *row, struct tally_buffer *out)
{
	const struct tally_perf_diff_view *view = differ->view;
	char base[32] = "", change[32] = "";
	if (row->is_in[0])
		snprintf(base, sizeof(base), view->separator ? "%.2f" : "%7.2f%%", row->percents[0]);
	if (row->is_in[1])
		snprintf(change, sizeof(change), "%+.2f%%", delta(row));
	if (view->separator)
		tally_buffer_printf(out, "%-*s%s%-*s", BASELINE_WIDTH, base, view->separator,
				    DELTA_WIDTH, change);
	else
		tally_buffer_printf(out, "  %*s  %*s", BASELINE_WIDTH, base, DELTA_WIDTH, change);
	for (unsigned i = 0; i < view->key_count; i++) {
		tally_buffer_text(out, view->separator ? view->separator : "  ");
		put_key(differ, row, view->keys[i], i + 1 == view->key_count, out);
	}
	tally_buffer_char(out, '\n');
}

int tally_perf_diff_text(const struct tally_perf_diff_view *view, const char *event,
			 struct tally_buffer *out)
{
	struct differ differ = { .view = view };
	int result = 0;
	for (unsigned side = 0; side < SIDES; side++)
		for (size_t i = 0; !result && i < view->sides[side].sums->entries.count; i++)
			result = add_entry(&differ, side, &view->sides[side].sums->entries.items[i]);
	if (!result) {
		qsort_r(differ.rows.items, differ.rows.count, sizeof(*differ.rows.items),
			compare_rows, (void *)view);
		measure(&differ);
		if (!view->quiet) {
			tally_buffer_printf(out, "# Event '%s'\n#\n", event);
			put_headings(&differ, out);
		}
		for (size_t i = 0; i < differ.rows.count; i++)
			put_row(&differ, &differ.rows.items[i], out);
	}
	tally_vector_release(&differ.rows);
	tally_map_release(&differ.index);
	return result;
}
