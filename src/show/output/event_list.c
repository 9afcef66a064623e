/* A pipe gets one line for each event.  A terminal gets a section for each kind: rows wrapped to
 * its width, or tracepoints in columns.  If all events of a section are missing for one reason, its
 * heading has the reason. */
#include "output/output.h"

#include "base/number_text.h"
#include "base/terminal.h"

#include <string.h>

enum { NAME_COLUMNS = 50, NAME_COLUMNS_MIN = 24, GAP = 2 };

static const char *paint(const struct tally_event_list_style *style, const char *code)
{
	if (style->colours)
		return code;
	return "";
}

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define PLAIN "\033[0m"

/* Names and texts come from kernel modules: clean them before they reach a terminal. */
static void put_clean(struct tally_buffer *out, const char *text)
{
	char clean[1024];
	tally_terminal_clean(text, clean, sizeof(clean));
	for (char *c = clean; *c; c++)
		if (*c == '\n' || *c == '\t')
			*c = ' ';
	tally_buffer_text(out, clean);
}

static void put_spaces(struct tally_buffer *out, size_t count)
{
	while (count-- > 0)
		tally_buffer_char(out, ' ');
}

static size_t name_length(const struct tally_listed_event *event)
{
	size_t length = strlen(event->name);
	if (event->alias)
		length += strlen(" OR ") + strlen(event->alias);
	return length;
}

static void put_name(struct tally_buffer *out, const struct tally_listed_event *event)
{
	put_clean(out, event->name);
	if (!event->alias)
		return;
	tally_buffer_text(out, " OR ");
	put_clean(out, event->alias);
}

void tally_event_list_bits(uint64_t mask, struct tally_buffer *out)
{
	const char *comma = "";
	for (unsigned bit = 0; bit < 64; bit++) {
		unsigned last = bit;
		if (!(mask >> bit & 1))
			continue;
		while (last < 63 && mask >> (last + 1) & 1)
			last++;
		tally_buffer_printf(out, "%s%u", comma, bit);
		if (last > bit)
			tally_buffer_printf(out, "-%u", last);
		bit = last;
		comma = ",";
	}
}

static void put_terms(struct tally_buffer *out, const struct tally_pmu *pmu)
{
	tally_buffer_text(out, "terms: ");
	for (size_t i = 0; i < pmu->term_count; i++) {
		const struct tally_format_term *term = &pmu->terms[i];
		if (i)
			tally_buffer_text(out, ", ");
		put_clean(out, term->name);
		tally_buffer_text(out, " (config");
		if (term->field)
			tally_buffer_printf(out, "%u", term->field);
		tally_buffer_char(out, ':');
		tally_event_list_bits(term->mask, out);
		tally_buffer_char(out, ')');
	}
	if (!pmu->term_count)
		tally_buffer_text(out, "config, config1, config2");
	if (pmu->cpus[0]) {
		tally_buffer_text(out, "; on CPUs ");
		put_clean(out, pmu->cpus);
	}
}

static void put_description(struct tally_buffer *out, const struct tally_listed_event *event)
{
	if (event->description)
		put_clean(out, event->description);
	if (event->pmu && !event->pmu_event) {
		put_terms(out, event->pmu);
	} else if (event->pmu_event) {
		if (event->description)
			tally_buffer_text(out, "; ");
		put_clean(out, event->pmu_event->terms);
		if (event->pmu_event->unit[0]) {
			tally_buffer_text(out, ", in ");
			put_clean(out, event->pmu_event->unit);
		}
	}
}

/* `said`: the previous line gave the same reason. */
static void put_line(struct tally_buffer *out, const struct tally_listed_event *event, bool said)
{
	size_t length = name_length(event), gap = 1;
	if (length < NAME_COLUMNS)
		gap = NAME_COLUMNS - length;
	put_name(out, event);
	put_spaces(out, gap);
	tally_buffer_printf(out, " [%s event] ", tally_event_kind_text(event->kind));
	put_description(out, event);
	for (size_t i = 0; i < event->field_count; i++) {
		if (i)
			tally_buffer_text(out, ", ");
		put_clean(out, event->fields[i].type);
		tally_buffer_char(out, ' ');
		put_clean(out, event->fields[i].name);
	}
	if (event->unavailable) {
		tally_buffer_text(out, " (not here");
		if (!said) {
			tally_buffer_text(out, ": ");
			put_clean(out, event->unavailable);
		}
		tally_buffer_char(out, ')');
	}
	while (out->length && out->bytes[out->length - 1] == ' ')
		out->length--;
	tally_buffer_char(out, '\n');
}

static bool have_one_reason(const struct tally_listed_event *a, const struct tally_listed_event *b)
{
	return a->unavailable && b->unavailable && !strcmp(a->unavailable, b->unavailable);
}

/* Returns the reason that all events share, so that it is printed once; NULL: they differ. */
static const char *shared_reason(const struct tally_listed_event *events, size_t count)
{
	if (count < 2)
		return NULL;
	for (size_t i = 1; i < count; i++)
		if (!have_one_reason(&events[0], &events[i]))
			return NULL;
	return events[0].unavailable;
}

static void put_heading(struct tally_buffer *out, const struct tally_event_list_style *style,
			const char *title, size_t count, const char *note)
{
	if (out->length)
		tally_buffer_char(out, '\n');
	tally_buffer_printf(out, "%s%s%s", paint(style, BOLD), title, paint(style, PLAIN));
	if (count)
		tally_buffer_printf(out, " (%s)", tally_number(count));
	if (note) {
		tally_buffer_text(out, ": ");
		put_clean(out, note);
	}
	tally_buffer_char(out, '\n');
}

/* Puts words from `column` on and wraps them to lines that start at `indent`. If that would leave
 * only a narrow strip, leaves the wrapping to the terminal. */
static void put_words(struct tally_buffer *out, const char *words, size_t column, size_t indent,
		      size_t columns)
{
	enum { STRIP_MIN = 24 };
	size_t end = SIZE_MAX;
	if (columns >= indent + STRIP_MIN)
		end = columns;
	for (size_t length; *words; words += length) {
		length = strcspn(words, " ");
		if (length && column + length > end && column > indent) {
			while (out->length && out->bytes[out->length - 1] == ' ')
				out->length--;
			tally_buffer_char(out, '\n');
			put_spaces(out, indent);
			column = indent;
		}
		if (!length)
			length = 1;
		tally_buffer_append(out, words, length);
		column += length;
	}
}

static void put_row(struct tally_buffer *out, const struct tally_event_list_style *style,
		    const struct tally_listed_event *event, size_t width, bool say_reason)
{
	struct tally_buffer words = { 0 };
	size_t length = name_length(event), gap = GAP;
	if (length < width)
		gap += width - length;
	tally_buffer_text(out, "  ");
	if (event->unavailable)
		tally_buffer_text(out, paint(style, DIM));
	put_name(out, event);
	put_description(&words, event);
	if (event->unavailable && say_reason) {
		if (words.length)
			tally_buffer_text(&words, "; ");
		put_clean(&words, event->unavailable);
	}
	if (words.length)
		put_spaces(out, gap);
	put_words(out, tally_buffer_string(&words), GAP + length + gap, GAP + width + GAP,
		  style->columns);
	out->failed |= words.failed;
	tally_buffer_release(&words);
	if (event->unavailable)
		tally_buffer_text(out, paint(style, PLAIN));
	tally_buffer_char(out, '\n');
	for (size_t i = 0; i < event->field_count; i++) {
		tally_buffer_printf(out, "      %s", paint(style, DIM));
		put_clean(out, event->fields[i].type);
		tally_buffer_printf(out, "%s ", paint(style, PLAIN));
		put_clean(out, event->fields[i].name);
		tally_buffer_char(out, '\n');
	}
}

static void put_rows(struct tally_buffer *out, const struct tally_event_list_style *style,
		     const struct tally_listed_event *events, size_t count, bool say_reason)
{
	/* at most two fifths of the line, because descriptions are longer than names */
	size_t width = NAME_COLUMNS_MIN, most = style->columns * 2 / 5;
	if (most > NAME_COLUMNS)
		most = NAME_COLUMNS;
	for (size_t i = 0; i < count; i++)
		if (name_length(&events[i]) > width && name_length(&events[i]) <= most)
			width = name_length(&events[i]);
	for (size_t i = 0; i < count; i++)
		put_row(out, style, &events[i], width, say_reason);
}

/* Returns how many events from `events` on have the same parent. */
static size_t siblings(const struct tally_listed_event *events, size_t count)
{
	size_t n = 1;
	while (n < count && !strcmp(events[n].parent, events[0].parent))
		n++;
	return n;
}

/* Returns how many columns of this width a line has room for, at least 1. */
static size_t columns_across(const struct tally_event_list_style *style, size_t width)
{
	if (style->columns <= width + GAP)
		return 1;
	return style->columns / (width + GAP);
}

/* Puts "sched (26) signal (2) …" in columns, sorted downwards as ls(1) does. */
static void put_systems(struct tally_buffer *out, const struct tally_event_list_style *style,
			const struct tally_listed_event *events, size_t count)
{
	struct { const struct tally_listed_event *first; size_t count; } systems[1024];
	size_t number = 0, width = 1;
	for (size_t i = 0; i < count && number < 1024; i += systems[number++].count) {
		systems[number].first = &events[i];
		systems[number].count = siblings(events + i, count - i);
		size_t columns = strlen(events[i].parent) + strlen(" ()") +
				 strlen(tally_number(systems[number].count));
		if (columns > width)
			width = columns;
	}
	size_t across = columns_across(style, width);
	size_t down = (number + across - 1) / across;
	for (size_t row = 0; row < down; row++) {
		for (size_t i = row; i < number; i += down) {
			size_t before = out->length;
			tally_buffer_text(out, "  ");
			put_clean(out, systems[i].first->parent);
			tally_buffer_printf(out, " %s(%s)%s", paint(style, DIM),
					    tally_number(systems[i].count), paint(style, PLAIN));
			size_t painted = strlen(paint(style, DIM PLAIN));
			if (i + down < number && out->length - before - painted < width + GAP)
				put_spaces(out, width + GAP - (out->length - before - painted));
		}
		tally_buffer_char(out, '\n');
	}
	tally_buffer_text(
		out,
		"  'tally list tracepoint' lists them, 'tally list sched:*' those of one system\n");
}

/* Puts the tracepoints of one system in columns. */
static void put_names(struct tally_buffer *out, const struct tally_event_list_style *style,
		      const struct tally_listed_event *events, size_t count)
{
	size_t width = 1;
	for (size_t i = 0; i < count; i++)
		if (strlen(events[i].name) > width)
			width = strlen(events[i].name);
	size_t across = columns_across(style, width);
	size_t down = (count + across - 1) / across;
	for (size_t row = 0; row < down; row++) {
		for (size_t i = row; i < count; i += down) {
			tally_buffer_text(out, "  ");
			put_clean(out, events[i].name);
			if (i + down < count)
				put_spaces(out, width - strlen(events[i].name));
		}
		tally_buffer_char(out, '\n');
	}
}

static void put_tracepoints(struct tally_buffer *out, const struct tally_event_list_style *style,
			    const struct tally_listed_event *events, size_t count)
{
	put_heading(out, style, "tracepoints", count, NULL);
	if (style->summary) {
		put_systems(out, style, events, count);
		return;
	}
	for (size_t i = 0, n; i < count; i += n) {
		n = siblings(events + i, count - i);
		if (events[i].fields)
			put_rows(out, style, events + i, n, true);
		else
			put_names(out, style, events + i, n);
	}
}

static void put_section(struct tally_buffer *out, const struct tally_event_list_style *style,
			const struct tally_listed_event *events, size_t count)
{
	static const char *const titles[TALLY_EVENT_KINDS] = {
		[TALLY_EVENT_HARDWARE] = "hardware events",
		[TALLY_EVENT_SOFTWARE] = "software events",
		[TALLY_EVENT_TOOL] = "times of tally stat",
		[TALLY_EVENT_CACHE] = "cache events",
		[TALLY_EVENT_PMU] = "PMUs",
		[TALLY_EVENT_RAW] = "raw events",
		[TALLY_EVENT_VENDOR] = "the vendor's events (libpfm4)",
		[TALLY_EVENT_BREAKPOINT] = "breakpoints",
	};
	const char *reason = shared_reason(events, count);
	put_heading(out, style, titles[events[0].kind], 0, reason);
	put_rows(out, style, events, count, !reason);
}

void tally_event_list_text(const struct tally_event_listing *listing,
			   const struct tally_event_list_style *style, struct tally_buffer *out)
{
	for (size_t i = 0, n; i < listing->count; i += n) {
		const struct tally_listed_event *first = &listing->events[i];
		for (n = 1; i + n < listing->count && first[n].kind == first->kind;)
			n++;
		if (!style->terminal)
			for (size_t j = 0; j < n; j++)
				put_line(out, &first[j],
					 j && have_one_reason(&first[j - 1], &first[j]));
		else if (first->kind == TALLY_EVENT_TRACEPOINT)
			put_tracepoints(out, style, first, n);
		else
			put_section(out, style, first, n);
	}
	if (style->terminal && listing->tracepoints_unavailable)
		put_heading(out, style, "tracepoints", 0, listing->tracepoints_unavailable);
}
