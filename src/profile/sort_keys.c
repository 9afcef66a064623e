#include "profile/sort_keys.h"

#include "profile/sample_facts.h"

#include <string.h>

enum { BRANCH = TALLY_FACT_BRANCH };

static const struct tally_sort_key_words words[TALLY_SORT_KEYS] = {
	[TALLY_SORT_COMM] = { "comm", NULL, "COMMAND", "command", TALLY_KEY_TASK_TEXT },
	[TALLY_SORT_PID] = { "pid", NULL, "PID", "pid", TALLY_KEY_NUMBER },
	[TALLY_SORT_TID] = { "tid", NULL, "TID", "tid", TALLY_KEY_NUMBER },
	[TALLY_SORT_CPU] = { "cpu", NULL, "CPU", "cpu", TALLY_KEY_NUMBER },
	[TALLY_SORT_CGROUP] = { "cgroup", NULL, "CGROUP", "cgroup", TALLY_KEY_TASK_TEXT },
	[TALLY_SORT_CGROUP_ID] = { "cgroup_id", NULL, "CGROUP ID", "cgroup_id", TALLY_KEY_TASK_TEXT },
	[TALLY_SORT_OBJECT_FROM] = { "dso_from", NULL, "FROM OBJECT", "from_object", TALLY_KEY_OBJECT,
				     BRANCH | TALLY_FACT_FROM },
	[TALLY_SORT_SYMBOL_FROM] = { "sym_from", "symbol_from", "FROM FUNCTION", "from_function", TALLY_KEY_FUNCTION,
				     BRANCH | TALLY_FACT_FROM },
	[TALLY_SORT_LINE_FROM] = { "srcline_from", NULL, "FROM LINE", "from_line", TALLY_KEY_TEXT,
				   BRANCH | TALLY_FACT_FROM },
	[TALLY_SORT_OBJECT_TO] = { "dso_to", NULL, "TO OBJECT", "to_object", TALLY_KEY_OBJECT, BRANCH },
	[TALLY_SORT_SYMBOL_TO] = { "sym_to", "symbol_to", "TO FUNCTION", "to_function", TALLY_KEY_FUNCTION, BRANCH },
	[TALLY_SORT_LINE_TO] = { "srcline_to", NULL, "TO LINE", "to_line", TALLY_KEY_TEXT, BRANCH },
	[TALLY_SORT_MISPREDICT] = { "mispredict", NULL, "MISPREDICTED", "mispredicted", TALLY_KEY_TEXT,
				    BRANCH | TALLY_FACT_PREDICTION },
	[TALLY_SORT_IN_TRANSACTION] = { "in_tx", NULL, "IN TX", "in_transaction", TALLY_KEY_TEXT,
					BRANCH | TALLY_FACT_TRANSACTION },
	[TALLY_SORT_ABORT] = { "abort", NULL, "ABORT", "abort", TALLY_KEY_TEXT, BRANCH | TALLY_FACT_ABORT },
	[TALLY_SORT_CYCLES] = { "cycles", NULL, "CYCLES", "cycles", TALLY_KEY_NUMBER, BRANCH | TALLY_FACT_CYCLES },
	[TALLY_SORT_OBJECT] = { "dso", "object", "OBJECT", NULL, TALLY_KEY_OWN_OBJECT },
	[TALLY_SORT_SYMBOL] = { "sym", "symbol", "FUNCTION", NULL, TALLY_KEY_OWN_FUNCTION },
	[TALLY_SORT_SOURCE_FILE] = { "srcfile", NULL, "SOURCE FILE", "source_file", TALLY_KEY_TEXT },
	[TALLY_SORT_SOURCE_LINE] = { "srcline", NULL, "SOURCE LINE", "source_line", TALLY_KEY_TEXT },
};

const struct tally_sort_key_words *tally_sort_key_words(enum tally_sort_key key)
{
	return &words[key];
}

static bool is_named(const char *name, const char *text, unsigned length)
{
	return name && strlen(name) == length && !memcmp(name, text, length);
}

enum tally_sort_key tally_sort_key_find(const char *name, unsigned length)
{
	unsigned key = 0;
	while (key < TALLY_SORT_KEYS && !is_named(words[key].name, name, length) && !is_named(words[key].alias, name, length))
		key++;
	return (enum tally_sort_key)key;
}
