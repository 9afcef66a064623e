/* The text of `perf report --stdio`, to the letter (perf 6.1, tools/perf/ui/stdio/hist.c). */
#include "base/buffer.h"
#include "base/vector.h"
#include "perf/perf.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PERCENT_WIDTH = 8, NUMBER_WIDTH = 12, ADDRESS_WIDTH = 22, COMM_BYTES = 16 };

struct printer {
	const struct tally_profile *profile;
	const struct tally_perf_sums *sums;
	const struct tally_perf_report_view *view;
	struct tally_buffer *out;
	uint64_t whole; /* the period that is 100 %, of the first member */
	size_t widths[TALLY_PERF_ORDERS];
};

/* ---- cells ---------------------------------------------------------------- */

static const char *title(const struct tally_perf_report_view *view, unsigned column)
{
	static const char *const titles[TALLY_PERF_ORDERS] = {
		[TALLY_PERF_PID] = "    Pid:Command",
		[TALLY_PERF_COMM] = "Command",
		[TALLY_PERF_OBJECT] = "Shared Object",
		[TALLY_PERF_SYMBOL] = "Symbol",
		[TALLY_PERF_IPC] = "IPC   [IPC Coverage]",
		[TALLY_PERF_LINE] = "Source:Line",
		[TALLY_PERF_FILE] = "Source File",
		[TALLY_PERF_CPU] = "CPU",
		[TALLY_PERF_TRACE] = "Trace output",
		[TALLY_PERF_BY_OVERHEAD] = "Overhead",
		[TALLY_PERF_BY_CHILDREN] = "Children",
		[TALLY_PERF_BY_SAMPLES] = "Samples",
		[TALLY_PERF_BY_PERIOD] = "Period",
	};
	if (column == TALLY_PERF_BY_OVERHEAD && view->has_self)
		return "Self";
	return titles[column];
}

static void put_symbol(const struct printer *printer, const struct tally_perf_entry *entry,
		       struct tally_buffer *out)
{
	const struct tally_perf_symbol *symbol =
		&printer->sums->symbols.items[entry->key[TALLY_PERF_SYMBOL]];
	const char *name = tally_perf_symbol_name(printer->profile, symbol);
	tally_buffer_printf(out, "[%c] ", entry->is_kernel ? 'k' : '.');
	if (name)
		tally_buffer_text(out, name);
	else
		tally_buffer_printf(out, "%-#.16" PRIx64, symbol->address);
}

/* Returns the thread's last name; without one, perf writes the thread's number.  The text is valid
 * until the next call with the same `room`. */
static const char *last_comm(const struct tally_recording *recording, uint32_t thread,
			     char room[COMM_BYTES])
{
	const struct tally_tasks *tasks = &recording->tasks;
	if (thread >= tasks->threads.count)
		return "";
	if (tasks->threads.items[thread].comm != TALLY_STRING_NONE)
		return tally_strings_text(&tasks->strings, tasks->threads.items[thread].comm);
	if (!tasks->threads.items[thread].tid)
		return "swapper";
	snprintf(room, COMM_BYTES, ":%d", (int)tasks->threads.items[thread].tid);
	return room;
}

/* Appends a key's text: the last column's, too, is padded by perf if it is a name. */
static void put_key(const struct printer *printer, const struct tally_perf_entry *entry,
		    unsigned key, struct tally_buffer *out)
{
	const struct tally_recording *recording = printer->profile->recording;
	const struct tally_strings *names = &recording->names.strings;
	int width = (int)printer->widths[key];
	uint32_t value = entry->key[key];
	char room[COMM_BYTES];
	switch (key) {
	case TALLY_PERF_PID:
		tally_buffer_printf(out, "%7d:%-*.*s", (int)value, width - 8, width - 8,
				    last_comm(recording, entry->thread, room));
		break;
	case TALLY_PERF_COMM:
		tally_buffer_printf(out, "%-*.*s", width, width,
				    tally_strings_text(&recording->tasks.strings, value));
		break;
	case TALLY_PERF_SYMBOL:
		put_symbol(printer, entry, out);
		break;
	case TALLY_PERF_IPC:
		tally_buffer_printf(out, "%-*s", width, "-      -");
		break;
	case TALLY_PERF_CPU:
		tally_buffer_printf(out, "%*.*d", width, width, (int)value);
		break;
	case TALLY_PERF_OBJECT:
	case TALLY_PERF_TRACE:
		tally_buffer_printf(out, "%-*s", width, tally_strings_text(names, value));
		break;
	default:
		tally_buffer_text(out, tally_strings_text(names, value));
	}
}

/* Returns the period of a member that is 100 %. */
static uint64_t whole_of(const struct printer *printer, uint32_t member)
{
	const struct tally_perf_event_sum *event = &printer->sums->events[member];
	return printer->view->is_relative ? event->shown_period : event->period;
}

static double percent(const struct printer *printer, uint32_t member, uint64_t period)
{
	uint64_t whole = whole_of(printer, member);
	return whole ? 100.0 * (double)period / (double)whole : 0;
}

/* Appends a sum of each member of the group. */
static void put_sums(const struct printer *printer, const struct tally_perf_entry *entry,
		     unsigned column, struct tally_buffer *out)
{
	int percent_width = PERCENT_WIDTH - 2, width = NUMBER_WIDTH - 1;
	if (printer->view->separator)
		percent_width = width = 1;
	for (uint32_t i = 0; i < printer->sums->members; i++) {
		const struct tally_perf_weight *weight = &entry->weights[i];
		if (column == TALLY_PERF_BY_OVERHEAD)
			tally_buffer_printf(out, " %*.2f%%", percent_width,
					    percent(printer, i, weight->self));
		else if (column == TALLY_PERF_BY_CHILDREN)
			tally_buffer_printf(out, " %*.2f%%", percent_width,
					    percent(printer, i, weight->total));
		else if (column == TALLY_PERF_BY_SAMPLES)
			tally_buffer_printf(out, " %*" PRIu64, width, weight->self_samples);
		else
			tally_buffer_printf(out, " %*" PRIu64, width, weight->self);
	}
}

static void put_cell(const struct printer *printer, const struct tally_perf_entry *entry,
		     unsigned column, struct tally_buffer *out)
{
	const char *separator = printer->view->separator;
	size_t start = out->length;
	if (column >= TALLY_PERF_KEYS) {
		put_sums(printer, entry, column, out);
		return;
	}
	put_key(printer, entry, column, out);
	/* perf: a separator in a text becomes a dot */
	for (char *c = out->bytes + start; separator && !out->failed && (c = strchr(c, *separator));)
		*c = '.';
}

/* ---- columns -------------------------------------------------------------- */

/* True if perf shows the column.  The list that chooses one name says it above. */
static bool is_shown(const struct printer *printer, unsigned column)
{
	return column >= TALLY_PERF_KEYS || !printer->view->is_elided[column];
}

static void widen(size_t *width, size_t length)
{
	if (length > *width)
		*width = length;
}

/* perf measures the thread's last name, and cuts other names to that width. */
static void measure_entry(struct printer *printer, const struct tally_perf_entry *entry)
{
	const struct tally_perf_report_view *view = printer->view;
	const struct tally_recording *recording = printer->profile->recording;
	size_t *widths = printer->widths;
	char room[COMM_BYTES];
	for (unsigned i = 0; i < view->column_count; i++) {
		unsigned column = view->columns[i];
		const char *text = NULL;
		if (column == TALLY_PERF_COMM)
			text = last_comm(recording, entry->thread, room);
		else if (column == TALLY_PERF_OBJECT || column == TALLY_PERF_LINE ||
			 column == TALLY_PERF_FILE || column == TALLY_PERF_TRACE)
			text = tally_strings_text(&recording->names.strings, entry->key[column]);
		if (column == TALLY_PERF_OBJECT && !strcmp(text, "[unknown]"))
			continue;
		if (text)
			widen(&widths[column], strlen(text));
	}
	if (view->sums_by[TALLY_PERF_PID])
		widen(&widths[TALLY_PERF_PID], strlen(last_comm(recording, entry->thread, room)) + 8);
	if (!view->sums_by[TALLY_PERF_SYMBOL])
		return;
	const struct tally_perf_symbol *symbol =
		&printer->sums->symbols.items[entry->key[TALLY_PERF_SYMBOL]];
	const char *name = tally_perf_symbol_name(printer->profile, symbol);
	widen(&widths[TALLY_PERF_SYMBOL], name ? strlen(name) + 4 : ADDRESS_WIDTH);
	if (!name && !view->separator && !view->lists_objects)
		widen(&widths[TALLY_PERF_OBJECT], 16);
}

static void measure(struct printer *printer)
{
	for (unsigned i = 0; i < TALLY_PERF_ORDERS; i++)
		printer->widths[i] = strlen(title(printer->view, i));
	printer->widths[TALLY_PERF_BY_OVERHEAD] = printer->widths[TALLY_PERF_BY_CHILDREN] =
		(size_t)PERCENT_WIDTH * printer->sums->members;
	printer->widths[TALLY_PERF_BY_SAMPLES] = printer->widths[TALLY_PERF_BY_PERIOD] =
		(size_t)NUMBER_WIDTH * printer->sums->members;
	for (size_t i = 0; i < printer->sums->entries.count; i++)
		measure_entry(printer, &printer->sums->entries.items[i]);
}

static void put_separator(const struct printer *printer, bool is_first)
{
	if (!is_first)
		tally_buffer_text(printer->out,
				  printer->view->separator ? printer->view->separator : "  ");
}

static void put_headings(const struct printer *printer)
{
	const struct tally_perf_report_view *view = printer->view;
	bool is_first = true;
	tally_buffer_text(printer->out, "# ");
	for (unsigned i = 0; i < view->column_count; i++) {
		unsigned column = view->columns[i];
		int width = (int)printer->widths[column];
		if (!is_shown(printer, column))
			continue;
		put_separator(printer, is_first);
		is_first = false;
		tally_buffer_printf(printer->out, "%*s", column < TALLY_PERF_KEYS ? -width : width,
				    title(view, column));
	}
	tally_buffer_char(printer->out, '\n');
	if (view->separator)
		return;
	tally_buffer_text(printer->out, "# ");
	is_first = true;
	for (unsigned i = 0; i < view->column_count; i++) {
		if (!is_shown(printer, view->columns[i]))
			continue;
		put_separator(printer, is_first);
		is_first = false;
		for (size_t j = 0; j < printer->widths[view->columns[i]]; j++)
			tally_buffer_char(printer->out, '.');
	}
	tally_buffer_text(printer->out, "\n#\n");
}

static void put_row(const struct printer *printer, const struct tally_perf_entry *entry)
{
	const struct tally_perf_report_view *view = printer->view;
	bool is_first = true;
	for (unsigned i = 0; i < view->column_count; i++) {
		unsigned column = view->columns[i];
		if (!is_shown(printer, column))
			continue;
		if (!view->separator || !is_first)
			put_separator(printer, false);
		is_first = false;
		size_t start = printer->out->length;
		put_cell(printer, entry, column, printer->out);
		while (i + 1 < view->column_count && !printer->out->failed &&
		       printer->out->length - start < printer->widths[column])
			tally_buffer_char(printer->out, ' ');
	}
	tally_buffer_char(printer->out, '\n');
}

/* ---- call chains ---------------------------------------------------------- */

static uint64_t cumulated(const struct tally_perf_node *node)
{
	return node->hit + node->children_hit;
}

/* The nodes below another that are printed, heaviest first. */
struct nodes {
	const struct tally_perf_node **items;
	size_t count, capacity;
};

static int compare_nodes(const void *a, const void *b)
{
	uint64_t x = cumulated(*(const struct tally_perf_node *const *)a),
		 y = cumulated(*(const struct tally_perf_node *const *)b);
	return (x < y) - (x > y);
}

static int compare_hits(const void *a, const void *b)
{
	uint64_t x = (*(const struct tally_perf_node *const *)a)->hit,
		 y = (*(const struct tally_perf_node *const *)b)->hit;
	return (x < y) - (x > y);
}

/* Keeps equal nodes in their order. */
static void sort_nodes(struct nodes *nodes, int (*compare)(const void *, const void *))
{
	for (size_t i = 1; i < nodes->count; i++) {
		const struct tally_perf_node *node = nodes->items[i];
		size_t at = i;
		for (; at && compare(&nodes->items[at - 1], &node) > 0; at--)
			nodes->items[at] = nodes->items[at - 1];
		nodes->items[at] = node;
	}
}

static uint64_t least_hit(const struct printer *printer, const struct tally_perf_node *parent)
{
	double part = printer->view->chain_percent_min / 100;
	if (printer->view->chains == TALLY_PERF_CHAINS_FRACTAL)
		return (uint64_t)ceil((double)parent->children_hit * part);
	return (uint64_t)((double)printer->whole * part);
}

/* Returns false when memory is out. */
static bool list_children(const struct printer *printer, const struct tally_perf_node *parent,
			  struct nodes *out)
{
	uint64_t least = least_hit(printer, parent);
	for (const struct tally_perf_node *node = parent->child; node; node = node->sibling)
		if (cumulated(node) >= least && tally_vector_push(out, node) < 0)
			return false;
	sort_nodes(out, compare_nodes);
	return true;
}

static void put_frame(const struct printer *printer, uint32_t number)
{
	const struct tally_perf_symbol *symbol = &printer->sums->symbols.items[number];
	const char *name = tally_perf_symbol_name(printer->profile, symbol);
	if (name)
		tally_buffer_text(printer->out, name);
	else
		tally_buffer_printf(printer->out, "%#" PRIx64, symbol->address);
}

static void put_value(const struct printer *printer, uint64_t period, uint64_t count,
		      uint64_t total)
{
	switch (printer->view->value) {
	case TALLY_PERF_VALUE_PERIOD:
		tally_buffer_printf(printer->out, "%" PRIu64, period);
		break;
	case TALLY_PERF_VALUE_COUNT:
		tally_buffer_printf(printer->out, "%" PRIu64, count);
		break;
	default:
		tally_buffer_printf(printer->out, "%.2f%%",
				    total ? (double)period * 100 / (double)total : 0);
	}
}

/* The lines left of a graph: which columns have a bar.  A tree may be deeper than any word has
 * bits. */
struct bars {
	bool *items;
	size_t count, capacity;
};

static void put_margin(const struct printer *printer, unsigned margin)
{
	tally_buffer_printf(printer->out, "            %*s", (int)margin, "");
}

static void put_bars(const struct printer *printer, const struct bars *bars, unsigned margin)
{
	put_margin(printer, margin);
	for (size_t i = 0; i < bars->count; i++)
		tally_buffer_text(printer->out, bars->items[i] ? "|          " : "           ");
	tally_buffer_char(printer->out, '\n');
}

/* Begins a line of a node's frame; with a node, it ends with the node's value. */
static void begin_line(const struct printer *printer, const struct bars *bars, unsigned margin,
		       const struct tally_perf_node *node, uint64_t total)
{
	put_margin(printer, margin);
	for (size_t i = 0; i < bars->count; i++) {
		tally_buffer_char(printer->out, bars->items[i] ? '|' : ' ');
		if (!node || i + 1 < bars->count) {
			tally_buffer_text(printer->out, "          ");
			continue;
		}
		tally_buffer_text(printer->out, "--");
		put_value(printer, cumulated(node), node->count + node->children_count, total);
		tally_buffer_text(printer->out, "--");
	}
}

static bool put_graph(const struct printer *printer, const struct tally_perf_node *parent,
		      uint64_t total, struct bars *bars, unsigned margin);

static bool put_node(const struct printer *printer, const struct tally_perf_node *node,
		     uint64_t total, struct bars *bars, unsigned margin)
{
	for (size_t i = 0; i < node->frame_count; i++) {
		begin_line(printer, bars, margin, i ? NULL : node, total);
		put_frame(printer, node->frames[i]);
		tally_buffer_char(printer->out, '\n');
	}
	if (printer->view->chains == TALLY_PERF_CHAINS_FRACTAL)
		total = node->children_hit;
	return put_graph(printer, node, total, bars, margin);
}

/* In fractal graphs: the share of the parent that no branch has. */
static void put_rest(const struct printer *printer, const struct tally_perf_node *rest,
		     uint64_t total, struct bars *bars, unsigned margin)
{
	bars->items[bars->count - 1] = false;
	begin_line(printer, bars, margin, rest, total);
	tally_buffer_text(printer->out, "[...]\n");
}

/* Prints what is below a node.  Returns false when memory is out. */
static bool put_graph(const struct printer *printer, const struct tally_perf_node *parent,
		      uint64_t total, struct bars *bars, unsigned margin)
{
	bool is_fractal = printer->view->chains == TALLY_PERF_CHAINS_FRACTAL;
	struct nodes nodes = { 0 };
	uint64_t rest = total, shown = 0;
	bool fits = list_children(printer, parent, &nodes) &&
		    tally_vector_push(bars, true) >= 0;
	size_t depth = bars->count;
	/* A tree of deep chains may be larger than any buffer: then nothing more is read. */
	for (size_t i = 0; fits && !printer->out->failed && i < nodes.count; i++) {
		rest -= cumulated(nodes.items[i]);
		shown += nodes.items[i]->count + nodes.items[i]->children_count;
		put_bars(printer, bars, margin);
		if (i + 1 == nodes.count && (!is_fractal || !rest))
			bars->items[depth - 1] = false;
		fits = put_node(printer, nodes.items[i], total, bars, margin);
		bars->count = depth;
		if (i + 1 == printer->view->print_limit)
			break;
	}
	if (fits && is_fractal && rest && rest != total) {
		struct tally_perf_node left = { .hit = rest, .count = parent->children_count - shown };
		if (printer->view->value != TALLY_PERF_VALUE_COUNT || left.count)
			put_rest(printer, &left, total, bars, margin);
	}
	if (fits)
		bars->count = depth - 1;
	tally_vector_release(&nodes);
	return fits;
}

/* A single branch that has all of the entry is printed without its share. */
static bool put_graphs(const struct printer *printer, const struct tally_perf_entry *entry,
		       uint64_t own)
{
	const struct tally_perf_node *parent = entry->tree;
	bool is_fractal = printer->view->chains == TALLY_PERF_CHAINS_FRACTAL;
	size_t start = printer->out->length;
	struct nodes nodes = { 0 };
	struct bars bars = { 0 };
	unsigned margin = 0;
	bool fits = list_children(printer, parent, &nodes);
	if (fits && nodes.count == 1 && cumulated(nodes.items[0]) == own) {
		parent = nodes.items[0];
		for (size_t i = printer->view->leaves_out_first; i < parent->frame_count; i++) {
			put_margin(printer, margin);
			if (!margin) {
				tally_buffer_text(printer->out, "|\n");
				put_margin(printer, margin);
				tally_buffer_text(printer->out, "---");
				margin = 3;
			}
			put_frame(printer, parent->frames[i]);
			tally_buffer_char(printer->out, '\n');
			if (i + 1 == printer->view->print_limit)
				break;
		}
	}
	if (fits)
		fits = put_graph(printer, parent, is_fractal ? own : printer->whole, &bars, margin);
	if (printer->out->length != start)
		tally_buffer_char(printer->out, '\n');
	tally_vector_release(&nodes);
	tally_vector_release(&bars);
	return fits;
}

static bool list_ends(const struct tally_perf_node *node, uint64_t least, struct nodes *out)
{
	for (const struct tally_perf_node *child = node->child; child; child = child->sibling)
		if (!list_ends(child, least, out))
			return false;
	return !node->hit || node->hit < least || tally_vector_push(out, node) >= 0;
}

/* Prints the frames from the root of the tree to this node. */
static void put_path(const struct printer *printer, const struct tally_perf_node *node,
		     const char *before, const char *between, const char *after)
{
	if (!node)
		return;
	put_path(printer, node->parent, before, between, after);
	for (size_t i = 0; i < node->frame_count; i++) {
		bool is_first = !i && !node->parent->parent;
		tally_buffer_text(printer->out, is_first ? "" : between);
		tally_buffer_text(printer->out, before);
		put_frame(printer, node->frames[i]);
		tally_buffer_text(printer->out, after);
	}
}

static bool put_flat(const struct printer *printer, const struct tally_perf_entry *entry)
{
	bool is_folded = printer->view->chains == TALLY_PERF_CHAINS_FOLDED;
	const char *separator = printer->view->separator ? printer->view->separator : ";";
	struct nodes nodes = { 0 };
	bool fits = list_ends(entry->tree, least_hit(printer, entry->tree), &nodes);
	if (fits)
		sort_nodes(&nodes, compare_hits);
	for (size_t i = 0; fits && i < nodes.count; i++) {
		const struct tally_perf_node *node = nodes.items[i];
		if (is_folded) {
			put_value(printer, node->hit, node->count, printer->whole);
			tally_buffer_char(printer->out, ' ');
			put_path(printer, node, "", separator, "");
		} else {
			tally_buffer_text(printer->out, "           ");
			put_value(printer, cumulated(node), node->count + node->children_count,
				  printer->whole);
			tally_buffer_char(printer->out, '\n');
			put_path(printer, node, "                ", "", "\n");
		}
		tally_buffer_char(printer->out, '\n');
		if (i + 1 == printer->view->print_limit)
			break;
	}
	tally_vector_release(&nodes);
	return fits;
}

/* Returns the period by which perf leaves out an entry, and by which it has a single branch. */
static uint64_t weight_of(const struct printer *printer, const struct tally_perf_entry *entry)
{
	return printer->view->children ? entry->weights->total : entry->weights->self;
}

static bool put_chains(const struct printer *printer, const struct tally_perf_entry *entry)
{
	switch (printer->view->chains) {
	case TALLY_PERF_CHAINS_NONE:
		return true;
	case TALLY_PERF_CHAINS_FLAT:
	case TALLY_PERF_CHAINS_FOLDED:
		return put_flat(printer, entry);
	default:
		return put_graphs(printer, entry, weight_of(printer, entry));
	}
}

/* ---- the report ----------------------------------------------------------- */

/* Appends "942 " or "1K". */
static void put_count(uint64_t count, struct tally_buffer *out)
{
	static const char units[] = " KMG";
	unsigned unit = 0;
	for (; count > 1000 && unit < 3; unit++)
		count /= 1000;
	tally_buffer_printf(out, "%" PRIu64 "%c", count, units[unit]);
}

void tally_perf_report_begin(const struct tally_perf_report_view *view, uint64_t lost,
			     struct tally_buffer *out)
{
	static const char *const lists[TALLY_PERF_KEYS] = { [TALLY_PERF_OBJECT] = "dso",
							    [TALLY_PERF_COMM] = "comm",
							    [TALLY_PERF_SYMBOL] = "symbol" };
	if (!view->quiet && !view->has_header)
		tally_buffer_text(out, "# To display the perf.data header info, please use "
				       "--header/--header-only options.\n#\n");
	for (unsigned i = 0; i < view->column_count; i++) {
		unsigned key = view->columns[i];
		if (key < TALLY_PERF_KEYS && view->listed[key])
			tally_buffer_printf(out, "# %s: %s\n", lists[key], view->listed[key]);
	}
	if (view->quiet)
		return;
	tally_buffer_printf(out, "#\n# Total Lost Samples: %" PRIu64 "\n#\n", lost);
}

void tally_perf_report_end(const struct tally_perf_report_view *view, struct tally_buffer *out)
{
	if (!view->quiet)
		tally_buffer_text(out, "#\n# (Tip: For a higher level overview, try: perf report "
				       "--sort comm,dso)\n#\n");
}

int tally_perf_report_text(const struct tally_profile *profile, const struct tally_perf_sums *sums,
			   const struct tally_perf_report_view *view, const char *event,
			   struct tally_buffer *out)
{
	struct printer printer = { .profile = profile, .sums = sums, .view = view, .out = out };
	uint64_t samples = 0, period = 0;
	printer.whole = whole_of(&printer, 0);
	measure(&printer);
	for (uint32_t i = 0; i < sums->members; i++) {
		samples += view->is_relative ? sums->events[i].shown_samples : sums->events[i].samples;
		period += whole_of(&printer, i);
	}
	if (!view->quiet) {
		tally_buffer_text(out, "# Samples: ");
		put_count(samples, out);
		tally_buffer_printf(out, " of %s", event);
		if (view->time)
			tally_buffer_printf(out, " (time slices: %s)", view->time);
		tally_buffer_printf(out, "\n# Event count (approx.): %" PRIu64 "\n#\n",
				    period);
		put_headings(&printer);
	}
	for (size_t i = 0; i < sums->entries.count; i++) {
		const struct tally_perf_entry *entry = &sums->entries.items[i];
		if (percent(&printer, 0, weight_of(&printer, entry)) < view->percent_min)
			continue;
		put_row(&printer, entry);
		if (entry->tree && !put_chains(&printer, entry))
			return -ENOMEM;
	}
	tally_buffer_text(out, "\n\n");
	return out->failed ? -ENOMEM : 0;
}

static void put_record_count(const char *name, uint64_t count, struct tally_buffer *out)
{
	tally_buffer_printf(out, "%16s events: %10" PRIu64, name, count);
}

void tally_perf_stats_text(const struct tally_perf_record_counts *counts,
			   const struct tally_recorded_event *events, size_t event_count,
			   struct tally_buffer *out)
{
	tally_buffer_text(out, "\nAggregated stats:\n");
	put_record_count("TOTAL", counts->all, out);
	tally_buffer_char(out, '\n');
	for (uint32_t type = 0; type < TALLY_RECORD_USER_MAX; type++) {
		const char *name = tally_record_type_name(type);
		if (!counts->types[type] || !name)
			continue;
		if (!strncmp(name, "HEADER_", strlen("HEADER_"))) /* perf leaves this out */
			name += strlen("HEADER_");
		put_record_count(name, counts->types[type], out);
		tally_buffer_printf(out, "  (%4.1f%%)\n",
				    100.0 * (double)counts->types[type] / (double)counts->all);
	}
	for (size_t i = 0; i < event_count; i++) {
		if (!counts->samples[i])
			continue;
		tally_buffer_printf(out, "%s stats:\n", events[i].name);
		put_record_count("SAMPLE", counts->samples[i], out);
		tally_buffer_char(out, '\n');
	}
}
