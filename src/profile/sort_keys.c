#include "profile/sort_keys.h"

#include <string.h>

static const struct tally_sort_key_words words[TALLY_SORT_KEYS] = {
	[TALLY_SORT_COMM] = { "comm", NULL, "COMMAND", "command", TALLY_KEY_TASK_TEXT },
	[TALLY_SORT_PID] = { "pid", NULL, "PID", "pid", TALLY_KEY_NUMBER },
	[TALLY_SORT_TID] = { "tid", NULL, "TID", "tid", TALLY_KEY_NUMBER },
	[TALLY_SORT_CPU] = { "cpu", NULL, "CPU", "cpu", TALLY_KEY_NUMBER },
	[TALLY_SORT_CGROUP] = { "cgroup", NULL, "CGROUP", "cgroup", TALLY_KEY_TASK_TEXT },
	[TALLY_SORT_CGROUP_ID] = { "cgroup_id", NULL, "CGROUP ID", "cgroup_id", TALLY_KEY_TASK_TEXT },
	[TALLY_SORT_OBJECT] = { "dso", "object", "OBJECT", NULL, TALLY_KEY_OBJECT },
	[TALLY_SORT_SYMBOL] = { "sym", "symbol", "FUNCTION", NULL, TALLY_KEY_FUNCTION },
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
