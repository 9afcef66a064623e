/* Chooses a cell's text by the kind of its key.  A function name that is too long loses its
 * middle. */
#include "output/output.h"

#include "base/characters.h"
#include "base/number_text.h"
#include "base/terminal.h"
#include "output/output_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Cuts the middle: a long name's end may be what tells instances of a template apart. */
static void copy_name(const char *name, const char *behind, char *out, size_t size)
{
	static const char dots[] = "..."; /* readable in any locale */
	size_t length = strlen(name), room = size - sizeof(dots) - strlen(behind);
	if (length <= room) {
		snprintf(out, size, "%s%s", name, behind);
		return;
	}
	size_t head = room / 2, tail = length - room / 2;
	while (head && !tally_begins_character(name[head]))
		head--;
	while (!tally_begins_character(name[tail]))
		tail++;
	snprintf(out, size, "%.*s%s%s%s", (int)head, name, dots, name + tail, behind);
}

static void put_function(const struct tally_names *names, uint32_t function, const char *name,
			 enum tally_inlining inlining, char *out, size_t size)
{
	static const char *const marks[] = { [TALLY_INLINED_SOME] = " (partly inlined)",
					     [TALLY_INLINED_ALL] = " (inlined)" };
	char raw[TALLY_REPORT_CELL_BYTES];
	/* UINT32_MAX for samples without a branch, whatever the keys are */
	bool known = function < names->functions.count;
	bool named = known && names->functions.items[function].name != TALLY_STRING_NONE;
	bool kernel = named && names->functions.items[function].kind == TALLY_FRAME_KERNEL;
	char behind[32];
	snprintf(behind, sizeof(behind), "%s%s", kernel ? " [k]" : "",
		 inlining == TALLY_INLINED_NONE ? "" : marks[inlining]);
	copy_name(name, behind, raw, size < sizeof(raw) ? size : sizeof(raw));
	tally_terminal_clean_name(raw, out, size);
}

void tally_report_function(const struct tally_names *names, uint32_t function, char *out,
			   size_t size)
{
	bool known = function < names->functions.count;
	const char *name = "[no address]";
	if (known)
		name = tally_names_plain_text(names, function);
	put_function(names, function, name, TALLY_INLINED_NONE, out, size);
}

/* Uses the key's name, which is longer if another function has the same plain name. */
static void put_own_function(const struct tally_names *names,
			     const struct tally_report_entry *entry, uint32_t key, char *out,
			     size_t size)
{
	uint32_t function = entry->function;
	if (function < names->functions.count && key && key < names->strings.count)
		put_function(names, function, tally_strings_text(&names->strings, key),
			     entry->inlining, out, size);
	else
		tally_report_function(names, function, out, size);
}

static void put_each(const char *digits, uint64_t samples, char *out, size_t size)
{
	char *end;
	uint64_t number = strtoull(digits, &end, 10);
	uint64_t product = tally_product_capped(number, samples);
	if (end == digits)
		snprintf(out, size, "%s", digits);
	else
		snprintf(out, size, "%s%" PRIu64, product == UINT64_MAX ? ">=" : "", product);
}

void tally_report_cell(const struct tally_names *names, const struct tally_report_entry *entry,
		       enum tally_sort_key key, char *out, size_t size)
{
	uint32_t value = entry->key[key];
	switch (tally_sort_row(key)->kind) {
	case TALLY_KIND_TASK_TEXT:
		tally_terminal_clean_name(tally_strings_text(&names->tasks->strings, value), out,
					  size);
		break;
	case TALLY_KIND_TEXT:
	case TALLY_KIND_LINE:
		tally_terminal_clean_name(tally_strings_text(&names->strings, value), out, size);
		break;
	case TALLY_KIND_DIGITS:
		snprintf(out, size, "%s", tally_strings_text(&names->strings, value));
		break;
	case TALLY_KIND_EACH:
		put_each(tally_strings_text(&names->strings, value), entry->self_samples, out,
			 size);
		break;
	case TALLY_KIND_OBJECT:
		tally_terminal_clean_name(
			tally_object_short(tally_strings_text(&names->strings, value)), out, size);
		break;
	case TALLY_KIND_FUNCTION: tally_report_function(names, value, out, size); break;
	case TALLY_KIND_OWN_OBJECT:
		*out = '\0';
		if (entry->function != UINT32_MAX)
			tally_terminal_clean_name(
				tally_names_short_object(names, entry->function), out, size);
		break;
	case TALLY_KIND_OWN_FUNCTION:
		put_own_function(names, entry, value, out, size);
		break;
	case TALLY_KIND_NUMBER: snprintf(out, size, value == UINT32_MAX ? "?" : "%u", value); break;
	}
}

const char *tally_report_wait_title(unsigned column)
{
	static const char *const titles[TALLY_WAIT_COLUMNS] = { "TIME", "WAITS", "MEAN",
								"LONGEST" };
	return titles[column];
}

void tally_report_wait_cell(const struct tally_report_entry *entry, bool of_total, unsigned column,
			    char *out, size_t size)
{
	uint64_t waits = entry->self_samples, time = entry->self, longest = entry->self_longest;
	if (of_total) {
		waits = entry->total_samples;
		time = entry->total;
		longest = entry->total_longest;
	}
	const uint64_t times[TALLY_WAIT_COLUMNS] = { time, 0, waits ? time / waits : 0, longest };
	struct tally_buffer text = { 0 };
	if (column == 1)
		tally_buffer_text(&text, tally_number(waits));
	else if (waits)
		tally_flame_weight(&text, (double)times[column], "ns", "");
	snprintf(out, size, "%s", tally_buffer_string(&text));
	tally_buffer_release(&text);
}

bool tally_report_is_column(const struct tally_report *report,
			    const struct tally_report_options *options, enum tally_sort_key key)
{
	bool frames = false;
	for (unsigned other = TALLY_SORT_OBJECT_FROM; other < TALLY_SORT_KEYS; other++)
		frames |= options->by[other];
	return options->by[key] && (key != TALLY_SORT_COMM || report->comms > 1 || !frames);
}

bool tally_report_key_shrinks(enum tally_sort_key key)
{
	enum tally_sort_kind kind = tally_sort_row(key)->kind;
	return kind != TALLY_KIND_NUMBER && kind != TALLY_KIND_DIGITS && kind != TALLY_KIND_EACH;
}
