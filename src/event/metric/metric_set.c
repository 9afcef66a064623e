/* Sets of metrics: the built-in ones, those of a user's file, and looking them up. */
#include "metric/metric.h"

#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { DEFINITIONS_MAX = 100000, PATTERN_MAX = 512 };

/* Patterns are untrusted, and regcomp(3) takes exponential time for "a++++++…" and "(a{99}){99}".
 * perf's have few repetitions, none of them of a group or of a repetition. */
static bool is_harmless(const char *pattern)
{
	enum { REPETITIONS_MAX = 4 };
	unsigned repetitions = 0;
	for (const char *at = pattern; *at; at++) {
		if (!strchr("+*?{", *at))
			continue;
		if (at == pattern || strchr("+*?})", at[-1]) || ++repetitions > REPETITIONS_MAX)
			return false;
		if (*at == '{' && (!isdigit((unsigned char)at[1]) || at[2] != '}'))
			return false;
	}
	return true;
}

/* perf compares an id without its last part, the stepping, too. */
bool tally_metric_cpu_matches(const char *pattern, const char *cpuid)
{
	char whole[PATTERN_MAX + 8], shorter[128];
	const char *stepping = strrchr(cpuid, '-');
	regex_t regex;
	if (!cpuid[0] || strlen(pattern) > PATTERN_MAX || !is_harmless(pattern))
		return false;
	snprintf(whole, sizeof(whole), "^(%s)$", pattern);
	if (regcomp(&regex, whole, REG_EXTENDED | REG_NOSUB))
		return false;
	bool matches = !regexec(&regex, cpuid, 0, NULL, 0);
	if (!matches && stepping) {
		snprintf(shorter, sizeof(shorter), "%.*s", (int)(stepping - cpuid), cpuid);
		matches = !regexec(&regex, shorter, 0, NULL, 0);
	}
	regfree(&regex);
	return matches;
}

int tally_metric_set_init(struct tally_metric_set *set, const char *cpuid)
{
	size_t count;
	const struct tally_metric_definition *table = tally_metric_table(&count);
	*set = (struct tally_metric_set){ .arena = TALLY_ARENA_INIT };
	/* The first one of the table has precedence over the next. */
	while (count--) {
		if (tally_vector_push(&set->definitions, table[count]) < 0)
			return -ENOMEM;
		if (table[count].cpus)
			set->definitions.items[set->definitions.count - 1].is_passed_over =
				!tally_metric_cpu_matches(table[count].cpus, cpuid);
	}
	return 0;
}

void tally_metric_set_release(struct tally_metric_set *set)
{
	tally_vector_release(&set->definitions);
	tally_vector_release(&set->events);
	tally_arena_release(&set->arena);
}

size_t tally_metric_set_find(const struct tally_metric_set *set, const char *name, size_t before)
{
	size_t at = set->definitions.count;
	if (before < at)
		at = before;
	while (at--)
		if (!set->definitions.items[at].is_passed_over &&
		    !strcasecmp(set->definitions.items[at].name, name))
			return at;
	return SIZE_MAX;
}

/* --- a user's file -------------------------------------------------------- */

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && isspace((unsigned char)*at))
		at++;
	return at;
}

static const char *trim_end(const char *start, const char *end)
{
	while (end > start && isspace((unsigned char)end[-1]))
		end--;
	return end;
}

/* Returns the '#' that begins the comment: with a blank or the line's end behind it, since #num_cpus
 * is a constant. */
static const char *find_comment(const char *at, const char *end)
{
	for (; at < end; at++)
		if (*at == '#' && (at + 1 == end || isspace((unsigned char)at[1])))
			return at;
	return end;
}

struct user_file {
	struct tally_metric_set *set;
	const char *path;
	unsigned line;
	size_t first; /* its first definition */
	struct tally_error *err;
};

static int wrong(const struct user_file *file, int code, const char *message)
{
	int result = tally_error_set(file->err, code, "%s:%u: %s", file->path, file->line, message);
	tally_error_hint(file->err, "a line is: NAME = EXPRESSION  # UNIT, DESCRIPTION");
	return result;
}

static char *copy(const struct user_file *file, const char *start, const char *end)
{
	start = skip_blanks(start, end);
	end = trim_end(start, end);
	return tally_arena_copy(&file->set->arena, start, (size_t)(end - start));
}

/* Returns the end of the name at `at`. */
static const char *name_end(const char *at, const char *end)
{
	if (at == end || (!isalpha((unsigned char)*at) && *at != '_'))
		return at;
	while (at < end && (isalnum((unsigned char)*at) || strchr("_-.", *at)) && *at)
		at++;
	return at;
}

static int add_line(const struct user_file *file, const char *at, const char *end)
{
	const char *comment = find_comment(at, end), *after = name_end(at, comment);
	const char *equals = skip_blanks(after, comment);
	if (after == at)
		return wrong(file, -EINVAL, "a metric's name is missing");
	if (equals == comment || *equals != '=')
		return wrong(file, -EINVAL, "'=' must follow the metric's name");
	const char *unit = comment;
	if (unit < end)
		unit++;
	const char *comma = unit;
	while (comma < end && *comma != ',')
		comma++;
	struct tally_metric_definition made = {
		.name = copy(file, at, after),
		.expression = copy(file, equals + 1, comment),
		.unit = copy(file, unit, comma),
		.description = copy(file, comma + (comma < end), end),
		.group = "user",
		.source = file->path,
		.scale = 1,
		.decimals = -1,
	};
	if (!made.name || !made.expression || !made.unit || !made.description)
		return wrong(file, -ENOMEM, "out of memory");
	for (size_t i = file->first; i < file->set->definitions.count; i++)
		if (!strcmp(file->set->definitions.items[i].name, made.name))
			return wrong(file, -EINVAL, "this metric is defined twice");
	const struct tally_metric_expression *expression;
	struct tally_error why = TALLY_ERROR_NONE;
	int result = tally_metric_parse(made.expression, &file->set->arena, &expression, &why);
	if (result < 0) {
		char message[512];
		snprintf(message, sizeof(message), "%.300s (at column %d of the expression)",
			 why.message, why.position + 1);
		return wrong(file, result, message);
	}
	if (file->set->definitions.count >= DEFINITIONS_MAX)
		return wrong(file, -E2BIG, "there are too many metrics");
	if (tally_vector_push(&file->set->definitions, made) < 0)
		return wrong(file, -ENOMEM, "out of memory");
	return 0;
}

int tally_metric_set_add_file(struct tally_metric_set *set, const char *path, const char *text,
			      size_t length, struct tally_error *err)
{
	struct user_file file = { .set = set,
				  .path = tally_arena_string(&set->arena, path),
				  .first = set->definitions.count,
				  .err = err };
	const char *at = text, *end = text + length;
	int result = 0;
	if (!file.path)
		return tally_error_set(err, -ENOMEM, "out of memory");
	if (memchr(text, 0, length))
		return tally_error_set(err, -EINVAL, "%s is no text: it has a NUL byte", path);
	while (at < end && result >= 0) {
		const char *line_end = tally_line_end(at, end);
		file.line++;
		at = skip_blanks(at, line_end);
		if (at < line_end && *at != '#')
			result = add_line(&file, at, line_end);
		at = line_end + (line_end < end);
	}
	return result;
}
