/* Parses the keys of --sort.  For `tally report`: completes them with the keys that suit samples,
 * branches or memory accesses, and then checks that the recording has data for each key. */
#include "command/report_sort.h"

#include "base/suggest.h"
#include "base/text.h"
#include "tally/perf_event.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* perf's other keys. */
static int refused_key(const char *text, size_t length, struct tally_error *err)
{
	static const struct { const char *names, *why;
	} keys[] = {
		{ "overhead overhead_sys overhead_us overhead_guest_sys overhead_guest_us "
		  "overhead_children sample period",
		  "is a column of every report, not a key (-j has periods and samples)" },
		{ "parent", "is another report: tally report -g callee shows who called" },
		{ "trace_fields", "is trace: a tracepoint's text, in one column" },
		{ "symbol_size dso_size", "is not a property of samples" },
		{ "symbol_iaddr", "is sym and addr" },
		{ "ipc_null ipc_lbr",
		  "is computed from cycles of branches: use --sort cycles" },
		{ "type typeoff typecln simd callchain_branch_predicted callchain_branch_abort "
		  "callchain_branch_cycles",
		  "is a key of later versions of perf" },
	};
	for (size_t i = 0; length && i < sizeof(keys) / sizeof(keys[0]); i++)
		for (const char *name = keys[i].names; *name;
		     name += strcspn(name, " "), name += *name == ' ')
			if (strcspn(name, " ") == length && !memcmp(name, text, length))
				return tally_error_set(err, -ENOTSUP, "option --sort: '%.*s' %s",
						       (int)length, text, keys[i].why);
	return 0;
}

static int unknown_key(const char *text, int length, uint64_t allowed, const char *choices,
		       struct tally_error *err)
{
	char aliases[256] = "";
	size_t used = 0;
	if (refused_key(text, (size_t)length, err) < 0)
		return -ENOTSUP;
	for (unsigned key = 0; key < TALLY_SORT_KEYS; key++) {
		const char *alias = tally_sort_row(key)->alias;
		if (alias && allowed & TALLY_SORT_BIT(key) && used < sizeof(aliases))
			used += (size_t)snprintf(aliases + used, sizeof(aliases) - used, "%s%s",
						 used ? " " : "", alias);
	}
	tally_error_set(err, -EINVAL, "option --sort: there is no key '%.*s'", length, text);
	tally_hint_word(err, text, (size_t)length, choices, aliases);
	return -EINVAL;
}

int tally_sort_keys_parse(const char *text, uint64_t allowed, const char *choices,
			  bool by[TALLY_SORT_KEYS], struct tally_error *err)
{
	memset(by, 0, TALLY_SORT_KEYS * sizeof(*by));
	while (*text) {
		size_t length = strcspn(text, ",");
		enum tally_sort_key key = tally_sort_key_find(text, (unsigned)length);
		if (key == TALLY_SORT_KEYS || !(allowed & TALLY_SORT_BIT(key)))
			return unknown_key(text, (int)length, allowed, choices, err);
		by[key] = true;
		text += length + (text[length] == ',');
	}
	return 0;
}

int tally_report_sort_parse(struct tally_report_sort *sort, const char *text,
			    struct tally_error *err)
{
	sort->given = true;
	return tally_sort_keys_parse(text, UINT64_MAX, TALLY_SORT_CHOICES, sort->by, err);
}

bool tally_report_sort_needs_lines(const struct tally_report_sort *sort)
{
	return sort->by[TALLY_SORT_SOURCE_FILE] || sort->by[TALLY_SORT_SOURCE_LINE] ||
	       sort->by[TALLY_SORT_LINE_FROM] || sort->by[TALLY_SORT_LINE_TO];
}

bool tally_report_sort_names_code(const struct tally_report_sort *sort)
{
	return sort->by[TALLY_SORT_SYMBOL] || sort->by[TALLY_SORT_SYMBOL_FROM] ||
	       sort->by[TALLY_SORT_SYMBOL_TO] || tally_report_sort_needs_lines(sort);
}

/* Returns the first key of branches; NULL: none. */
static const char *key_of_branches(const struct tally_report_sort *sort)
{
	for (unsigned key = TALLY_SORT_BRANCHES_START; key < TALLY_SORT_SAMPLES_START; key++)
		if (sort->by[key])
			return tally_sort_key_name(key);
	return NULL;
}

/* True if an event's samples have one of these bits. Branch records of calls are stacks, and don't
 * count. */
static bool is_recorded(const struct tally_recording *recording, uint64_t sample_type,
			uint64_t without_branches)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(recording->data, &count);
	for (size_t i = 0; i < count; i++)
		if (events[i].attr.sample_type & sample_type &&
		    !(events[i].attr.branch_sample_type & without_branches))
			return true;
	return false;
}

static void sort_by_memory(struct tally_report_sort *sort)
{
	static const enum tally_sort_key keys[] = { TALLY_SORT_LEVEL,       TALLY_SORT_DATA_SYMBOL,
						    TALLY_SORT_DATA_OBJECT, TALLY_SORT_SNOOP,
						    TALLY_SORT_TLB,         TALLY_SORT_LOCK,
						    TALLY_SORT_BLOCK,       TALLY_SORT_OBJECT,
						    TALLY_SORT_SYMBOL };
	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		sort->by[keys[i]] = true;
}

static void sort_by_default(struct tally_report_sort *sort, bool branches)
{
	static const enum tally_sort_key ends[] = { TALLY_SORT_OBJECT_FROM, TALLY_SORT_SYMBOL_FROM,
						    TALLY_SORT_OBJECT_TO, TALLY_SORT_SYMBOL_TO };
	sort->by[TALLY_SORT_COMM] = true;
	sort->by[TALLY_SORT_OBJECT] = sort->by[TALLY_SORT_SYMBOL] = !branches;
	for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		sort->by[ends[i]] = branches;
}

int tally_report_sort_choose(struct tally_report_sort *sort,
			     const struct tally_recording *recording, bool wants_stacks,
			     struct tally_error *err)
{
	const char *asks = key_of_branches(sort);
	bool recorded = is_recorded(recording, TALLY_SAMPLE_BRANCH_STACK, TALLY_BRANCH_CALL_STACK);
	bool branches = sort->branches == TALLY_BRANCHES_WANTED ||
			(sort->branches == TALLY_BRANCHES_IF_RECORDED &&
			 (asks || (recorded && !wants_stacks && !sort->of_memory)));
	if (branches && sort->of_memory)
		return tally_error_set(err, -EINVAL,
				       "--mem-mode is for samples, and %s%s for branches",
				       asks ? "--sort " : "-b is", tally_text_or(asks, ""));
	if (asks && !branches)
		return tally_error_set(
			err, -EINVAL,
			"--sort %s needs branches, which --no-branch-stack leaves out", asks);
	if (branches && wants_stacks && (asks || sort->branches == TALLY_BRANCHES_WANTED))
		return tally_error_set(
			err, -EINVAL,
			"branches have no call trees: -g and --children exclude %s%s",
			asks ? "--sort " : "-b", tally_text_or(asks, ""));
	if (!sort->given && sort->of_memory)
		sort_by_memory(sort);
	else if (!sort->given)
		sort_by_default(sort, branches);
	sort->of_branches = branches;
	sort->facts = 0;
	for (unsigned key = TALLY_SORT_BRANCHES_START; key < TALLY_SORT_FRAMES_START; key++)
		if (sort->by[key])
			sort->facts |= TALLY_SORT_BIT(key);
	return 0;
}

/* Returns the first chosen key that has the need; NULL: none was given. */
static const char *key_of_need(const struct tally_report_sort *sort,
			       const struct tally_sort_need *need)
{
	for (unsigned key = 0; sort->given && key < TALLY_SORT_KEYS; key++)
		if (sort->by[key] && tally_sort_key_needs(key, need))
			return tally_sort_key_name(key);
	return NULL;
}

int tally_report_sort_check(const struct tally_report_sort *sort,
			    const struct tally_recording *recording, struct tally_error *err)
{
	const char *key = NULL, *option = sort->of_memory ? "--mem-mode" : "-b";
	const struct tally_sort_need *need = NULL;
	if (sort->of_memory)
		need = tally_sort_keys_lack(TALLY_SORT_BIT(TALLY_SORT_WEIGHT), false, recording);
	if (!need) {
		need = tally_sort_keys_lack(sort->facts, sort->of_branches, recording);
		if (need)
			key = key_of_need(sort, need);
	}
	if (!need)
		return 0;
	if (key)
		option = "--sort ";
	tally_error_set(err, -ENODATA, "%s%s: the recording has no %s", option,
			tally_text_or(key, ""), need->lacks);
	tally_error_hint(err, "%s", need->hint);
	return -ENODATA;
}
