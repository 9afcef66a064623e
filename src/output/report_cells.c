#include "output/report_cells.h"

#include "base/terminal.h"

#include <stdio.h>

void tally_report_function(const struct tally_names *names, uint32_t function, char *out, size_t size)
{
	char raw[TALLY_REPORT_CELL_BYTES];
	bool known = function < names->functions.count; /* samples without a branch have none, however they are sorted */
	if (!known || names->functions.items[function].name == TALLY_STRING_NONE) {
		const char *object = known ? tally_names_short_object(names, function) : "no address";
		snprintf(raw, sizeof(raw), object[0] == '[' ? "%s" : "[%s]", object);
	} else {
		bool kernel = names->functions.items[function].kind == TALLY_FRAME_KERNEL;
		snprintf(raw, sizeof(raw), kernel ? "%s [k]" : "%s", tally_names_plain_text(names, function));
	}
	tally_terminal_clean(raw, out, size);
}

void tally_report_cell(const struct tally_names *names, const struct tally_report_entry *entry, enum tally_sort_key key,
		       char *out, size_t size)
{
	uint32_t value = entry->key[key];
	switch (tally_sort_key_words(key)->kind) {
	case TALLY_KEY_TASK_TEXT: tally_terminal_clean(tally_strings_text(&names->tasks->strings, value), out, size); break;
	case TALLY_KEY_TEXT: tally_terminal_clean(tally_strings_text(&names->strings, value), out, size); break;
	case TALLY_KEY_OBJECT:
		tally_terminal_clean(tally_object_short(tally_strings_text(&names->strings, value)), out, size);
		break;
	case TALLY_KEY_FUNCTION: tally_report_function(names, value, out, size); break;
	case TALLY_KEY_OWN_OBJECT:
		tally_terminal_clean(entry->function == UINT32_MAX ? "" : tally_names_short_object(names, entry->function), out,
				     size);
		break;
	case TALLY_KEY_OWN_FUNCTION: tally_report_function(names, entry->function, out, size); break;
	case TALLY_KEY_NUMBER: snprintf(out, size, value == UINT32_MAX ? "?" : "%u", value); break;
	}
}

bool tally_report_is_column(const struct tally_report *report, const struct tally_report_options *options,
			    enum tally_sort_key key)
{
	bool frames = false;
	for (unsigned other = TALLY_SORT_OBJECT_FROM; other < TALLY_SORT_KEYS; other++)
		frames |= options->by[other];
	return options->by[key] && (key != TALLY_SORT_COMM || report->comms > 1 || !frames);
}

bool tally_report_key_shrinks(enum tally_sort_key key)
{
	return tally_sort_key_words(key)->kind != TALLY_KEY_NUMBER;
}
