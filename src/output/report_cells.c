#include "output/report_cells.h"

#include "base/terminal.h"

#include <stdio.h>

void tally_report_function(const struct tally_names *names, uint32_t function, char *out, size_t size)
{
	char raw[TALLY_REPORT_CELL_BYTES];
	if (function == UINT32_MAX || names->functions.items[function].name == TALLY_STRING_NONE) {
		const char *object = function == UINT32_MAX ? "no address" :
							      tally_names_short_object(names, function);
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
	switch (key) {
	case TALLY_SORT_COMM:
	case TALLY_SORT_CGROUP:
	case TALLY_SORT_CGROUP_ID:
		tally_terminal_clean(tally_strings_text(&names->tasks->strings, entry->key[key]), out, size);
		break;
	case TALLY_SORT_OBJECT:
		tally_terminal_clean(entry->function == UINT32_MAX ? "" :
								     tally_names_short_object(names, entry->function),
				     out, size);
		break;
	case TALLY_SORT_SYMBOL:
		tally_report_function(names, entry->function, out, size);
		break;
	default:
		if (entry->key[key] == UINT32_MAX)
			snprintf(out, size, "?");
		else
			snprintf(out, size, "%u", entry->key[key]);
	}
}

const char *tally_report_key_title(enum tally_sort_key key)
{
	static const char *const titles[TALLY_SORT_KEYS] = {
		[TALLY_SORT_COMM] = "COMMAND", [TALLY_SORT_PID] = "PID", [TALLY_SORT_TID] = "TID", [TALLY_SORT_CPU] = "CPU",
		[TALLY_SORT_CGROUP] = "CGROUP", [TALLY_SORT_CGROUP_ID] = "CGROUP ID", [TALLY_SORT_OBJECT] = "OBJECT",
		[TALLY_SORT_SYMBOL] = "FUNCTION",
	};
	return titles[key];
}
