#include "command/report_sort.h"

#include "base/buffer.h"
#include "profile/sample_facts.h"

#include "tally/perf_event.h"

#include <errno.h>
#include <string.h>

static int unknown_key(const char *text, int length, struct tally_error *err)
{
	struct tally_buffer names = { 0 };
	for (unsigned key = 0; key < TALLY_SORT_KEYS; key++)
		tally_buffer_printf(&names, "%s%s", key ? ", " : "", tally_sort_key_words(key)->name);
	tally_error_set(err, -EINVAL, "option --sort: '%.*s' is none of %s", length, text, tally_buffer_string(&names));
	tally_buffer_release(&names);
	return -EINVAL;
}

int tally_report_sort_parse(struct tally_report_sort *sort, const char *text, struct tally_error *err)
{
	memset(sort->by, 0, sizeof(sort->by));
	sort->given = true;
	while (*text) {
		size_t length = strcspn(text, ",");
		enum tally_sort_key key = tally_sort_key_find(text, (unsigned)length);
		if (key == TALLY_SORT_KEYS)
			return unknown_key(text, (int)length, err);
		sort->by[key] = true;
		text += length + (text[length] == ',');
	}
	return 0;
}

bool tally_report_sort_needs_lines(const struct tally_report_sort *sort)
{
	return sort->by[TALLY_SORT_SOURCE_FILE] || sort->by[TALLY_SORT_SOURCE_LINE] || sort->by[TALLY_SORT_LINE_FROM] ||
	       sort->by[TALLY_SORT_LINE_TO];
}

/* The first key that asks for one of the facts; NULL: none. */
static const char *key_of_facts(const struct tally_report_sort *sort, unsigned facts)
{
	for (unsigned key = 0; key < TALLY_SORT_KEYS; key++)
		if (sort->by[key] && tally_sort_key_words(key)->facts & facts)
			return tally_sort_key_words(key)->name;
	return NULL;
}

static bool is_known(const struct tally_recording *recording)
{
	size_t count;
	tally_perfdata_events(recording->data, &count);
	return count;
}

/* Whether an event's samples have one of these; branches of calls are stacks. */
static bool is_recorded(const struct tally_recording *recording, uint64_t sample_type, uint64_t without_branches)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(recording->data, &count);
	for (size_t i = 0; i < count; i++)
		if (events[i].attr.sample_type & sample_type && !(events[i].attr.branch_sample_type & without_branches))
			return true;
	return false;
}

static void sort_by_default(struct tally_report_sort *sort, bool branches)
{
	static const enum tally_sort_key ends[] = { TALLY_SORT_OBJECT_FROM, TALLY_SORT_SYMBOL_FROM, TALLY_SORT_OBJECT_TO,
						    TALLY_SORT_SYMBOL_TO };
	sort->by[TALLY_SORT_COMM] = true;
	sort->by[TALLY_SORT_OBJECT] = sort->by[TALLY_SORT_SYMBOL] = !branches;
	for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		sort->by[ends[i]] = branches;
}

int tally_report_sort_choose(struct tally_report_sort *sort, const struct tally_recording *recording, bool wants_stacks,
			     unsigned *facts, struct tally_error *err)
{
	const char *asks = key_of_facts(sort, TALLY_FACT_BRANCH);
	bool recorded = is_recorded(recording, TALLY_SAMPLE_BRANCH_STACK, TALLY_BRANCH_CALL_STACK);
	bool branches = sort->branches == TALLY_BRANCHES_WANTED ||
			(sort->branches == TALLY_BRANCHES_IF_RECORDED && (asks || (recorded && !wants_stacks)));
	if (asks && !branches)
		return tally_error_set(err, -EINVAL, "--sort %s is of branches, which --no-branch-stack leaves out", asks);
	if (branches && wants_stacks && (asks || sort->branches == TALLY_BRANCHES_WANTED))
		return tally_error_set(err, -EINVAL, "branches have no call trees: -g and --children can't be had with %s%s",
				       asks ? "--sort " : "-b", asks ? asks : "");
	if (!sort->given)
		sort_by_default(sort, branches);
	*facts = branches ? TALLY_FACT_BRANCH : 0;
	for (unsigned key = 0; key < TALLY_SORT_KEYS; key++)
		*facts |= sort->by[key] ? tally_sort_key_words(key)->facts : 0;
	return 0;
}

int tally_report_sort_check(const struct tally_report_sort *sort, const struct tally_recording *recording, unsigned facts,
			    struct tally_error *err)
{
	static const struct { unsigned fact; uint64_t sample_type, without_branches; const char *lacks, *hint;
	} needs[] = {
		{ TALLY_FACT_BRANCH, TALLY_SAMPLE_BRANCH_STACK, 0, "branch stacks",
		  "tally record -b takes them, where the CPU keeps them: few virtual machines show it" },
		{ TALLY_FACT_PREDICTION | TALLY_FACT_TRANSACTION | TALLY_FACT_ABORT, TALLY_SAMPLE_BRANCH_STACK,
		  TALLY_BRANCH_NO_FLAGS, "flags of its branches", "tally record -b takes them" },
		{ TALLY_FACT_CYCLES, TALLY_SAMPLE_BRANCH_STACK, TALLY_BRANCH_NO_CYCLES, "cycles of its branches",
		  "tally record -b takes them" },
	};
	for (unsigned i = 0; is_known(recording) && i < sizeof(needs) / sizeof(needs[0]); i++) {
		if (!(facts & needs[i].fact) || is_recorded(recording, needs[i].sample_type, needs[i].without_branches))
			continue;
		const char *key = sort->given ? key_of_facts(sort, needs[i].fact) : NULL;
		tally_error_set(err, -ENODATA, "%s%s: the recording has no %s", key ? "--sort " : "-b", key ? key : "",
				needs[i].lacks);
		tally_error_hint(err, "%s", needs[i].hint);
		return -ENODATA;
	}
	return 0;
}
