/* The table of `tally report`: a head that says what was measured and how far to trust it, then a
 * row for each entry with its call tree below. A column that would be the same on each row (one
 * command, one event) moves to the head. */
#include "output/output.h"

#include "base/number_text.h"
#include "base/terminal.h"
#include "output/output_text.h"
#include "profile/profile.h"

#include <stdio.h>
#include <string.h>

enum { CELL_MAX = 48, TREE_DEPTH_MAX = 120, ERROR_WIDTH = 7, NAME_BYTES = TALLY_REPORT_CELL_BYTES };

/* Follows an inlined function in a call tree. */
static const char INLINED[] = " (inlined)";

struct column {
	enum tally_sort_key key;
	const char *title;
	int width;
};

struct table {
	const struct tally_profile *profile;
	const struct tally_report *report;
	const struct tally_report_options *options;
	const struct tally_report_view *view;
	struct tally_buffer *out;
	struct column columns[TALLY_SORT_KEYS];
	unsigned column_count;
};

static const char *colour(const struct table *table, const char *code)
{
	if (table->view->colours)
		return code;
	return "";
}

/* Hot rows are bright, cold rows dim. */
static const char *heat(const struct table *table, double percent)
{
	if (percent >= 5)
		return colour(table, "\x1b[1;31m");
	return colour(table, percent >= 1 ? "\x1b[33m" : "\x1b[2m");
}

static double percent_of(const struct table *table, uint64_t weight)
{
	if (table->report->period)
		return 100.0 * (double)weight / (double)table->report->period;
	return 0;
}

static const struct tally_names *names_of(const struct table *table)
{
	return &table->profile->recording->names;
}

static void put_padded(const struct table *table, const char *text, int width)
{
	for (int n = tally_fit_text(table->out, text, width, table->view->ascii); n < width; n++)
		tally_buffer_char(table->out, ' ');
}

static void choose_columns(struct table *table)
{
	char cell[NAME_BYTES];
	for (unsigned key = 0; key < TALLY_SORT_KEYS; key++) {
		if (!tally_report_is_column(table->report, table->options, key))
			continue;
		struct column *column = &table->columns[table->column_count++];
		*column = (struct column){ .key = key, .title = tally_sort_row(key)->title };
		column->width = (int)strlen(column->title);
		for (size_t i = 0; i < table->report->entries.count; i++) {
			tally_report_cell(names_of(table), &table->report->entries.items[i], key,
					  cell, sizeof(cell));
			int width = tally_text_width(cell);
			if (width > column->width)
				column->width = width > CELL_MAX ? CELL_MAX : width;
		}
	}
}

/* Reports of waits have no errors: their times are measured, not sampled. */
static bool has_errors(const struct table *table)
{
	return table->view->errors && !table->report->of_waits;
}

/* Beside the columns of waits, a narrow terminal has room for one share: the one that rows are
 * sorted by. */
static bool has_total(const struct table *table)
{
	bool is_narrow = table->report->of_waits && table->view->columns &&
			 table->view->columns < TALLY_REPORT_WAIT_COLUMNS;
	return table->options->children && !(is_narrow && table->options->by_self);
}

static bool has_self(const struct table *table)
{
	bool is_narrow = table->report->of_waits && table->view->columns &&
			 table->view->columns < TALLY_REPORT_WAIT_COLUMNS;
	return !has_total(table) || !is_narrow;
}

static int share_width(const struct table *table)
{
	bool is_pair = has_total(table) && has_self(table);
	int width = is_pair ? 17 : 10;
	if (has_errors(table))
		width += (1 + is_pair) * ERROR_WIDTH;
	return width;
}

/* Returns the width of everything left of choose_columns()'s first column. */
static int lead_width(const struct table *table)
{
	return share_width(table) +
	       (table->report->of_waits ? TALLY_WAIT_COLUMNS * TALLY_WAIT_WIDTH : 0);
}

/* If the last column has too little room on a narrow terminal, commands and objects shrink. */
static void shrink_columns(struct table *table)
{
	enum { LAST_MIN = 28, SHRUNK_MIN = 8 };
	int used = lead_width(table);
	if (!table->view->columns || !table->column_count)
		return;
	for (unsigned i = 0; i + 1 < table->column_count; i++)
		used += table->columns[i].width + 2;
	int last = table->columns[table->column_count - 1].width;
	if (last > LAST_MIN)
		last = LAST_MIN;
	while (used + last > (int)table->view->columns) {
		struct column *widest = NULL;
		for (unsigned i = 0; i + 1 < table->column_count; i++) {
			struct column *column = &table->columns[i];
			if (tally_report_key_shrinks(column->key) && column->width > SHRUNK_MIN &&
			    (!widest || column->width > widest->width))
				widest = column;
		}
		if (!widest)
			return;
		widest->width--;
		used--;
	}
}

/* Returns the command's name when all of the event's samples have the same. */
static const char *only_command(const struct table *table)
{
	const struct tally_profile *profile = table->profile;
	struct tally_numbers rows = tally_event_rows(&profile->by_event, table->options->event);
	if (!rows.count)
		return "";
	const struct tally_row *first = &profile->rows.rows.items[rows.items[0]];
	return tally_strings_text(&profile->recording->tasks.strings,
				  profile->classes.items[first->class].comm);
}

/* Puts where a share of 10 % may really be: " (10% may be 8.8 to 11.2%)". */
static void put_tenth_error(const struct table *table, struct tally_buffer *out)
{
	const double tenth = 10, all = 100;
	const struct tally_report *report = table->report;
	double error = tally_report_error(report, report->period / 10, report->samples / 10);
	double low = 0;
	if (error < tenth)
		low = tenth - error;
	double high = all;
	if (tenth + error < all)
		high = tenth + error;
	int digits = (error < tenth) + (error < 0.1);
	if (report->samples)
		tally_buffer_printf(out, " (10%% may be %.*f to %.*f%%)", low > 0 ? digits : 0, low,
				    digits, high);
}

static bool of_waits(const struct table *table)
{
	size_t count;
	const struct tally_recording *recording = table->profile->recording;
	const struct tally_recorded_event *event = &tally_perfdata_events(
		recording->data, &count)[table->options->event];
	return tally_off_cpu_measured(&recording->off_cpu, event);
}

/* Puts the total time of all waits. */
static void put_waits(const struct table *table, struct tally_buffer *out)
{
	tally_buffer_text(out, ", ");
	tally_flame_weight(out, (double)table->report->period, "ns", "");
	tally_buffer_text(out, " in all");
}

/* Puts " (10% may be 8.8 to 11.2%) over 1.20 s, command gcc, 4 threads". */
static void put_circumstances(const struct table *table, struct tally_buffer *out)
{
	const struct tally_recording *recording = table->profile->recording;
	double seconds = (double)(recording->counts.last_time - recording->counts.first_time) / 1e9;
	char text[NAME_BYTES];
	tally_buffer_text(out, table->profile->of_costs ? " by cost" : "");
	if (of_waits(table))
		put_waits(table, out);
	else
		put_tenth_error(table, out);
	if (seconds > 0)
		tally_buffer_printf(out, " over %.2f s", seconds);
	if (recording->counts.lost)
		tally_buffer_printf(out, ", %s lost", tally_number(recording->counts.lost));
	if (table->report->is_saturated)
		tally_buffer_text(out, ", " TALLY_SATURATED_TEXT);
	if (table->report->comms == 1) {
		tally_terminal_clean_name(only_command(table), text, sizeof(text));
		tally_buffer_printf(out, ", command %s", text);
	} else if (table->report->comms > 1) {
		tally_buffer_printf(out, ", %s commands", tally_number(table->report->comms));
	}
	if (table->report->threads > 1)
		tally_buffer_printf(out, ", %s threads", tally_number(table->report->threads));
}

/* Puts one line without a newline; `bold` and `plain` surround what was measured. */
static void put_head_line(const struct table *table, const char *bold, const char *plain,
			  struct tally_buffer *out)
{
	enum { REST = 44 }; /* columns to keep for the circumstances */
	int columns = (int)table->view->columns;
	size_t event_count, start = out->length;
	const struct tally_recorded_event *events = tally_perfdata_events(
		table->profile->recording->data, &event_count);
	struct tally_buffer rest = { 0 };
	char name[NAME_BYTES];
	tally_buffer_text(out, bold);
	size_t marks = out->length - start;
	tally_buffer_text(out, tally_number(table->report->samples));
	bool is_one = table->report->samples == 1;
	if (table->profile->of_branches)
		tally_buffer_printf(out, " branch%s before samples of ", is_one ? "" : "es");
	else
		tally_buffer_printf(out, " sample%s of ", is_one ? "" : "s");
	int used = (int)(out->length - start - marks);
	tally_terminal_clean_name(events[table->options->event].name, name, sizeof(name));
	int room;
	if (columns > 2 * REST)
		room = columns - REST;
	else
		room = REST / 2;
	used += tally_fit_text(out, name, columns ? room : 0, table->view->ascii);
	tally_buffer_text(out, plain);
	put_circumstances(table, &rest);
	if (!columns || columns - used > 2)
		tally_fit_text(out, tally_buffer_string(&rest), columns ? columns - used : 0,
			       table->view->ascii);
	out->failed |= rest.failed;
	tally_buffer_release(&rest);
}

/* Warns when a sampling rate fits the event badly. For rare or bursty events, the kernel takes few
 * samples at a rate and weighs them badly: ten samples of thousands of page faults, although all
 * could have been recorded. */
static void put_rate_note(const struct table *table)
{
	enum { FEW = 1000, TIMES = 4, AFFORDABLE = 1000000 };
	const struct tally_report *report = table->report;
	size_t count;
	const struct tally_recorded_event *event = &tally_perfdata_events(
		table->profile->recording->data, &count)[table->options->event];
	const struct tally_attr *attr = &event->attr;
	bool is_hit = attr->type == TALLY_TYPE_SOFTWARE && !tally_attr_is_clock(attr) &&
		      attr->flags & TALLY_ATTR_FREQ;
	struct tally_buffer note = { 0 };
	if (!is_hit || table->profile->of_costs || table->profile->of_branches ||
	    report->samples > FEW || report->period < TIMES * report->samples ||
	    report->period > AFFORDABLE)
		return;
	tally_buffer_printf(
		&note,
		"a sampling rate leaves most of them out: record each with -c 1, or with -e "
		"%.*s/period=1/ beside other events",
		(int)strcspn(event->name, ":/"), event->name);
	tally_buffer_char(table->out, '\n');
	tally_wrap_text(table->out, tally_buffer_string(&note),
			table->view->columns ? (int)table->view->columns : 120);
	table->out->failed |= note.failed;
	tally_buffer_release(&note);
}

static void put_hint(const struct table *table)
{
	if (!table->view->hint)
		return;
	tally_buffer_char(table->out, '\n');
	if (table->view->columns)
		tally_wrap_text(table->out, table->view->hint, (int)table->view->columns);
	else
		tally_buffer_text(table->out, table->view->hint);
}

static void put_idle_note(const struct table *table)
{
	if (!table->report->idle.samples)
		return;
	tally_buffer_char(table->out, '\n');
	tally_idle_text(&table->report->idle, table->report->period, table->out);
}

static void put_wakers_note(const struct table *table)
{
	struct tally_buffer note = { 0 };
	if (!table->report->of_waits)
		return;
	tally_profile_wakers_text(table->profile, &note);
	if (note.length) {
		tally_buffer_char(table->out, '\n');
		tally_wrap_text(table->out, tally_buffer_string(&note),
				table->view->columns ? (int)table->view->columns : 120);
	}
	table->out->failed |= note.failed;
	tally_buffer_release(&note);
}

/* Says that lines are those of the instructions before the sampled ones. */
static void put_charged_note(const struct table *table)
{
	const struct tally_profile *profile = table->profile;
	size_t events;
	const struct tally_recorded_event *event = &tally_perfdata_events(
		profile->recording->data, &events)[table->options->event];
	bool has_lines = table->options->by[TALLY_SORT_SOURCE_LINE];
	if (!has_lines || !tally_recording_has_skid(profile->recording, &event->attr))
		return;
	for (size_t i = 0; i < profile->places.places.count; i++) {
		if (!profile->names[i].is_charged)
			continue;
		tally_buffer_char(table->out, '\n');
		tally_wrap_text(
			table->out,
			"lines are those of the instructions before the sampled ones, which took the "
			"time (--raw-addresses: of the sampled ones)",
			table->view->columns ? (int)table->view->columns : 120);
		return;
	}
}

void tally_report_head(const struct tally_profile *profile, const struct tally_report *report,
		       const struct tally_report_options *options,
		       const struct tally_report_view *view, struct tally_buffer *out)
{
	const struct table table = {
		.profile = profile, .report = report, .options = options, .view = view
	};
	put_head_line(&table, "", "", out);
}

static void put_titles(struct table *table)
{
	tally_buffer_text(table->out, colour(table, "\x1b[2m"));
	const char *error = "      ±";
	if (table->view->ascii)
		error = "     +-";
	if (!has_errors(table))
		error = "";
	if (has_total(table))
		tally_buffer_printf(table->out, "%s%s", has_self(table) ? "  TOTAL" : "   TOTAL",
				    error);
	if (has_self(table))
		tally_buffer_printf(table->out, "    SELF%s", error);
	for (unsigned i = 0; table->report->of_waits && i < TALLY_WAIT_COLUMNS; i++)
		tally_buffer_printf(table->out, "%*s", TALLY_WAIT_WIDTH,
				    tally_report_wait_title(i));
	tally_buffer_text(table->out, "  ");
	for (unsigned i = 0; i < table->column_count; i++) {
		bool last = i + 1 == table->column_count;
		put_padded(table, table->columns[i].title, last ? 0 : table->columns[i].width);
		tally_buffer_text(table->out, last ? "" : "  ");
	}
	tally_buffer_printf(table->out, "%s\n", colour(table, "\x1b[0m"));
}

static void put_error(struct table *table, uint64_t period, uint64_t samples)
{
	if (has_errors(table))
		tally_buffer_printf(table->out, "%s%*.2f%s", colour(table, "\x1b[2m"), ERROR_WIDTH,
				    tally_report_error(table->report, period, samples),
				    colour(table, "\x1b[0m"));
}

static void put_waits_of(struct table *table, const struct tally_report_entry *entry)
{
	char cell[NAME_BYTES];
	for (unsigned i = 0; i < TALLY_WAIT_COLUMNS; i++) {
		tally_report_wait_cell(entry, table->options->children, i, cell, sizeof(cell));
		tally_buffer_printf(table->out, "%*s%s", TALLY_WAIT_WIDTH - tally_text_width(cell),
				    "", cell);
	}
}

static void put_row(struct table *table, const struct tally_report_entry *entry)
{
	double total = percent_of(table, entry->total), self = percent_of(table, entry->self);
	int used = lead_width(table);
	char cell[NAME_BYTES];
	if (has_total(table)) {
		tally_buffer_printf(table->out, "%s%*.2f%%%s", heat(table, total),
				    has_self(table) ? 6 : 7, total, colour(table, "\x1b[0m"));
		put_error(table, entry->total, entry->total_samples);
	}
	if (has_self(table)) {
		tally_buffer_printf(table->out, "%s%7.2f%%%s", heat(table, self), self,
				    colour(table, "\x1b[0m"));
		put_error(table, entry->self, entry->self_samples);
	}
	if (table->report->of_waits)
		put_waits_of(table, entry);
	tally_buffer_text(table->out, "  ");
	for (unsigned i = 0; i < table->column_count; i++) {
		const struct column *column = &table->columns[i];
		tally_report_cell(names_of(table), entry, column->key, cell, sizeof(cell));
		if (i + 1 < table->column_count) {
			put_padded(table, cell, column->width);
			tally_buffer_text(table->out, "  ");
			used += column->width + 2;
		} else {
			int room = 0;
			if (table->view->columns)
				room = (int)table->view->columns - used;
			tally_fit_text(table->out, cell,
				       room < 8 && table->view->columns ? 8 : room,
				       table->view->ascii);
		}
	}
	tally_buffer_char(table->out, '\n');
}

/* ---- the tree below a row ------------------------------------------------ */

static bool is_shown(const struct table *table, const struct tally_branch_node *branch)
{
	return branch && percent_of(table, branch->weight) >= table->options->tree_percent_min;
}

static void put_branch_line(struct table *table, const struct tally_branch_node *branch,
			    const char *prefix, const char *joint, bool percent)
{
	char name[NAME_BYTES];
	int used = tally_text_width(prefix) + tally_text_width(joint);
	bool inlined = branch->function != UINT32_MAX &&
		       names_of(table)->functions.items[branch->function].kind ==
			       TALLY_FRAME_INLINED;
	tally_report_function(names_of(table), branch->function, name, sizeof(name));
	tally_buffer_printf(table->out, "%s%s%s%s", colour(table, "\x1b[2m"), prefix, joint,
			    colour(table, "\x1b[0m"));
	if (percent) {
		double share = percent_of(table, branch->weight);
		tally_buffer_printf(table->out, "%s%.2f%%%s ", heat(table, share), share,
				    colour(table, "\x1b[0m"));
		used += share >= 10 ? 7 : 6;
	}
	int room = 0;
	if (table->view->columns) {
		room = (int)table->view->columns - used - (inlined ? (int)strlen(INLINED) : 0);
		if (room < 8)
			room = 8;
	}
	tally_fit_text(table->out, name, room, table->view->ascii);
	if (inlined)
		tally_buffer_printf(table->out, "%s%s%s", colour(table, "\x1b[2m"), INLINED,
				    colour(table, "\x1b[0m"));
	tally_buffer_char(table->out, '\n');
}

/* Puts siblings with their subtrees. A frame with all its caller's weight is put directly below it
 * without a joint, so that straight runs are not indented. */
static void put_branches(struct table *table, const struct tally_branch_node *first, uint64_t above,
			 char *prefix, unsigned depth)
{
	size_t length = strlen(prefix);
	if (depth >= TREE_DEPTH_MAX)
		return;
	for (const struct tally_branch_node *branch = first; is_shown(table, branch);
	     branch = branch->sibling) {
		bool last = !is_shown(table, branch->sibling);
		bool straight = branch == first && last && branch->weight == above;
		const char *joint = table->view->ascii ? "|- " : "├─ ";
		const char *below = table->view->ascii ? "|  " : "│  ";
		if (last) {
			joint = table->view->ascii ? "`- " : "└─ ";
			below = "   ";
		}
		put_branch_line(table, branch, prefix, straight ? "" : joint, !straight);
		if (!straight && length + 8 < NAME_BYTES)
			strcpy(prefix + length, below);
		put_branches(table, branch->child, branch->weight, prefix, depth + 1);
		prefix[length] = '\0';
	}
}

static void put_hidden(struct table *table)
{
	double least = table->options->percent_min;
	tally_buffer_printf(table->out, "%s%s more", colour(table, "\x1b[2m"),
			    tally_number(table->report->hidden));
	if (least > 0)
		tally_buffer_printf(table->out, " below %.3g%%%s; --percent-limit 0 shows %s",
				    least, table->options->limit ? " or beyond the limit" : "",
				    table->options->limit ? "smaller ones, -n more" : "all");
	else
		tally_buffer_text(table->out, "; -n shows more");
	tally_buffer_printf(table->out, "%s\n", colour(table, "\x1b[0m"));
}

void tally_report_text(const struct tally_profile *profile, const struct tally_report *report,
		       const struct tally_report_options *options,
		       const struct tally_report_view *view, struct tally_buffer *out)
{
	struct table table = {
		.profile = profile, .report = report, .options = options, .view = view, .out = out
	};
	char prefix[NAME_BYTES];
	choose_columns(&table);
	shrink_columns(&table);
	put_head_line(&table, colour(&table, "\x1b[1m"), colour(&table, "\x1b[0m"), out);
	put_rate_note(&table);
	put_charged_note(&table);
	put_hint(&table);
	put_idle_note(&table);
	put_wakers_note(&table);
	tally_buffer_text(out, "\n\n");
	put_titles(&table);
	for (size_t i = 0; i < report->entries.count; i++) {
		const struct tally_report_entry *entry = &report->entries.items[i];
		put_row(&table, entry);
		snprintf(prefix, sizeof(prefix), "%*s", share_width(&table) + 2, "");
		put_branches(&table, entry->tree, UINT64_MAX, prefix, 0);
		if (is_shown(&table, entry->tree))
			tally_buffer_char(out, '\n');
	}
	if (report->trees_cut)
		tally_buffer_text(out, "the call trees grew too large and are not complete\n");
	if (report->hidden)
		put_hidden(&table);
}
