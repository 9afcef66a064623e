/* perf's JSON files of metrics and events (tools/perf/pmu-events in Linux).
 *
 * A file is an array of objects.  One with MetricName and MetricExpr is a metric; one with EventName
 * is an event, whose members become terms of a PMU as in perf's jevents.py.  mapfile.csv says which
 * folder belongs to a CPU: "GenuineIntel-6-8E,v1.2,skylake,core", by regular expressions. */
#include "metric/metric.h"

#include "base/json.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { METRICS_MAX = 20000, EVENTS_MAX = 200000, TERMS_MAX = 512, NAME_MAX_BYTES = 200 };

struct perf_file {
	struct tally_metric_set *set;
	const struct tally_json_document *document;
	const char *path;
};

static const char *text_of(const struct perf_file *file, const struct tally_json_value *object,
			   const char *name)
{
	return tally_json_string(file->document, tally_json_member(file->document, object, name));
}

static const char *keep(const struct perf_file *file, const char *text)
{
	return tally_arena_string(&file->set->arena, tally_text_or(text, ""));
}

/* Splits "100%" or "1.5e-6MiB" into a factor and a unit. */
static void split_unit(const char *text, double *scale, const char **unit)
{
	char digits[32];
	size_t length = strspn(text, "0123456789.");
	if (text[length] == 'e' && (isdigit((unsigned char)text[length + 1]) ||
				    (text[length + 1] == '-' && text[length + 2])))
		length += 2 + strspn(text + length + 2, "0123456789");
	*scale = 1;
	*unit = text + length;
	while (**unit == ' ')
		(*unit)++;
	if (!length || length >= sizeof(digits))
		return;
	snprintf(digits, sizeof(digits), "%.*s", (int)length, text);
	/* the expression's own numbers, without the locale */
	struct tally_arena arena = TALLY_ARENA_INIT;
	const struct tally_metric_expression *number;
	if (!tally_metric_parse(digits, &arena, &number, NULL) && !tally_metric_name_count(number))
		*scale = tally_metric_evaluate(number, NULL, &(struct tally_metric_machine){ 0 });
	tally_arena_release(&arena);
}

static int add_metric(const struct perf_file *file, const struct tally_json_value *object,
		      const char *name, const char *expression)
{
	struct tally_metric_definition made = {
		.name = keep(file, name),
		.expression = keep(file, expression),
		.description = keep(file, text_of(file, object, "BriefDescription")),
		.group = keep(file, text_of(file, object, "MetricGroup")),
		.source = file->path,
		.decimals = -1,
	};
	const char *unit = keep(file, text_of(file, object, "ScaleUnit"));
	if (!made.name || !made.expression || !made.description || !made.group || !unit)
		return -ENOMEM;
	split_unit(unit, &made.scale, &made.unit);
	if (file->set->definitions.count >= METRICS_MAX)
		return -E2BIG;
	return tally_vector_push(&file->set->definitions, made);
}

/* --- events --------------------------------------------------------------- */

/* Counters of Intel that have no number of their own: jevents.py, fixed. */
static const char *fixed_terms(const char *name)
{
	static const struct {
		const char *name, *terms;
	} fixed[] = {
		{ "inst_retired.any", "event=0xc0" },
		{ "inst_retired.any_p", "event=0xc0" },
		{ "cpu_clk_unhalted.thread", "event=0x3c" },
		{ "cpu_clk_unhalted.core", "event=0x3c" },
		{ "cpu_clk_unhalted.thread_any", "event=0x3c,any=1" },
		{ "cpu_clk_unhalted.ref_tsc", "event=0x0,umask=0x03" },
	};
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (!strcasecmp(fixed[i].name, name))
			return fixed[i].terms;
	return NULL;
}

/* Writes the PMU of a "Unit", as jevents.py's unit_to_pmu(). */
static void pmu_of_unit(const char *unit, char *out, size_t size)
{
	static const struct {
		const char *unit, *pmu;
	} units[] = {
		{ "cpu_core", "cpu_core" }, { "cpu_atom", "cpu_atom" },
		{ "CBO", "uncore_cbox" },   { "QPI LL", "uncore_qpi" },
		{ "SBO", "uncore_sbox" },   { "iMPH-U", "uncore_arb" },
		{ "UPI LL", "uncore_upi" }, { "L3PMC", "amd_l3" },
		{ "DFPMC", "amd_df" },      { "UMCPMC", "amd_umc" },
		{ "CPU-M-CF", "cpum_cf" },  { "DDRC", "hisi_sccl,ddrc" },
	};
	for (size_t i = 0; unit && i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(units[i].unit, unit)) {
			snprintf(out, size, "%s", units[i].pmu);
			return;
		}
	if (!unit) {
		snprintf(out, size, "cpu");
		return;
	}
	snprintf(out, size, "uncore_%.60s", unit);
	for (; *out; out++)
		*out = (char)tolower((unsigned char)*out);
}

static bool is_nothing(const char *value)
{
	return !value || !value[strspn(value, "0x")];
}

/* Appends "term=value"; of a list of values ("0x1,0x2") the first. */
static void add_term(char *out, size_t size, const char *term, const char *value)
{
	size_t used = strlen(out), length = strspn(value, "0123456789abcdefABCDEFx");
	if (!length || used + length + strlen(term) + 3 > size)
		return;
	snprintf(out + used, size - used, "%s%s=%.*s", used ? "," : "", term, (int)length, value);
}

static void put_terms(const struct perf_file *file, const struct tally_json_value *object,
		      const char *name, char *out, size_t size)
{
	static const struct {
		const char *member, *term;
	} members[] = {
		{ "UMask", "umask" },     { "CounterMask", "cmask" }, { "Invert", "inv" },
		{ "EdgeDetect", "edge" }, { "AnyThread", "any" },     { "PortMask", "ch_mask" },
		{ "FCMask", "fc_mask" },
	};
	const char *code = text_of(file, object, "EventCode");
	const char *config = text_of(file, object, "ConfigCode");
	const char *fixed = fixed_terms(name), *index = text_of(file, object, "MSRIndex"),
		   *msr = text_of(file, object, "MSRValue");
	out[0] = 0;
	if (fixed) {
		snprintf(out, size, "%s", fixed);
		return;
	}
	if (config)
		add_term(out, size, "config", config);
	else
		add_term(out, size, "event", tally_text_or(code, "0"));
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		const char *value = text_of(file, object, members[i].member);
		if (!is_nothing(value))
			add_term(out, size, members[i].term, value);
	}
	if (is_nothing(msr) || is_nothing(index))
		return;
	unsigned long number = strtoul(index, NULL, 0);
	if (number == 0x3f6)
		add_term(out, size, "ldlat", msr);
	else if (number == 0x1a6 || number == 0x1a7)
		add_term(out, size, "offcore_rsp", msr);
	else if (number == 0x3f7)
		add_term(out, size, "frontend", msr);
}

static int add_event(const struct perf_file *file, const struct tally_json_value *object,
		     const char *name)
{
	char pmu[80], terms[TERMS_MAX];
	const char *unit = text_of(file, object, "Unit"),
		   *code = text_of(file, object, "EventCode");
	struct tally_metric_event made = { .name = keep(file, name) };
	/* An event of Arm's architecture: arch/arm64/common-and-microarch.json has its number. */
	if (!code && !text_of(file, object, "ConfigCode") && !fixed_terms(name))
		return 0;
	pmu_of_unit(unit, pmu, sizeof(pmu));
	put_terms(file, object, name, terms, sizeof(terms));
	if (!strcmp(pmu, "cpu") && strstr(file->path, "/arm64/"))
		made.expression = tally_arena_printf(&file->set->arena, "r%llx",
						     strtoull(tally_text_or(code, "0"), NULL, 0));
	else
		made.expression = tally_arena_printf(&file->set->arena, "%s/%s/", pmu, terms);
	if (!made.name || !made.expression)
		return -ENOMEM;
	if (file->set->events.count >= EVENTS_MAX)
		return -E2BIG;
	file->set->is_sorted = false;
	return tally_vector_push(&file->set->events, made);
}

static int add_objects(const struct perf_file *file)
{
	const struct tally_json_value *root = tally_json_root(file->document);
	size_t count = tally_json_count(file->document, root);
	int result = 0;
	for (size_t i = 0; i < count && result >= 0; i++) {
		const struct tally_json_value *object = tally_json_item(file->document, root, i);
		const char *metric = text_of(file, object, "MetricName"),
			   *expression = text_of(file, object, "MetricExpr"),
			   *event = text_of(file, object, "EventName");
		if (metric && expression && *metric)
			result = add_metric(file, object, metric, expression);
		else if (event && *event && strlen(event) < NAME_MAX_BYTES)
			result = add_event(file, object, event);
	}
	return result;
}

int tally_metric_set_add_json(struct tally_metric_set *set, const char *path, const char *text,
			      size_t length, struct tally_error *err)
{
	struct tally_json_document *document;
	struct tally_error why = TALLY_ERROR_NONE;
	size_t used;
	struct perf_file file = { .set = set, .path = tally_arena_string(&set->arena, path) };
	if (!file.path)
		return tally_error_set(err, -ENOMEM, "out of memory");
	int result = tally_json_read(text, length, &document, &used, &why);
	if (result >= 0) {
		file.document = document;
		result = add_objects(&file);
		tally_json_release(document);
		if (result == -E2BIG)
			tally_error_set(&why, result, "there are too many metrics or events");
		else if (result < 0)
			tally_error_set(&why, result, "out of memory");
	}
	if (result < 0)
		return tally_error_set(err, result, "%s: %s", path, why.message);
	return 0;
}

/* --- looking events up ---------------------------------------------------- */

static int compare_events(const void *a, const void *b)
{
	const struct tally_metric_event *x = a, *y = b;
	return strcasecmp(x->name, y->name);
}

static const char *find_event(struct tally_metric_set *set, const char *name, size_t length)
{
	char text[NAME_MAX_BYTES];
	if (!length || length >= sizeof(text) || !set->events.count)
		return NULL;
	snprintf(text, sizeof(text), "%.*s", (int)length, name);
	if (!set->is_sorted)
		qsort(set->events.items, set->events.count, sizeof(*set->events.items),
		      compare_events);
	set->is_sorted = true;
	struct tally_metric_event key = { .name = text };
	const struct tally_metric_event *found = bsearch(&key, set->events.items, set->events.count,
							 sizeof(*set->events.items),
							 compare_events);
	if (!found)
		return NULL;
	return found->expression;
}

/* cpu/EVENT,cmask=1/k: puts the event's terms in the place of its name. */
static const char *expand_terms(struct tally_metric_set *set, const char *name, const char *slash)
{
	size_t length = strcspn(slash + 1, ",/");
	const char *found = find_event(set, slash + 1, length);
	const char *terms = strchr(tally_text_or(found, ""), '/');
	if (!terms)
		return name;
	/* "cpu/event=1/" has its last '/' at the end */
	return tally_arena_printf(&set->arena, "%.*s%.*s%s", (int)(slash - name), name,
				  (int)strlen(terms) - 1, terms, slash + 1 + length);
}

const char *tally_metric_set_event(struct tally_metric_set *set, const char *name)
{
	const char *slash = strchr(name, '/'), *colon = strrchr(name, ':');
	if (slash)
		return expand_terms(set, name, slash);
	const char *found = find_event(set, name, strlen(name));
	if (found || !colon)
		return tally_text_or(found, name);
	found = find_event(set, name, (size_t)(colon - name));
	if (!found)
		return name;
	return tally_arena_printf(&set->arena, "%s%s%s", found, strchr(found, '/') ? "" : ":",
				  colon + 1);
}

/* --- mapfile.csv ---------------------------------------------------------- */

int tally_metric_map_find(const char *text, size_t length, const char *cpuid, char *out,
			  size_t size)
{
	const char *at = text, *end = text + length;
	while (at < end) {
		const char *line_end = tally_line_end(at, end);
		char line[1024], *fields[4] = { NULL }, *rest = line;
		snprintf(line, sizeof(line), "%.*s", (int)(line_end - at), at);
		for (size_t i = 0; i < 4 && rest; i++)
			fields[i] = strsep(&rest, ",");
		bool is_core = fields[3] && !strncmp(fields[3], "core", 4);
		/* A folder is below the map's, whatever the file says. */
		if (is_core && line[0] != '#' && fields[2][0] && fields[2][0] != '/' &&
		    !strstr(fields[2], "..") && tally_metric_cpu_matches(fields[0], cpuid)) {
			snprintf(out, size, "%s", fields[2]);
			return 0;
		}
		at = line_end + (line_end < end);
	}
	return -ENOENT;
}
