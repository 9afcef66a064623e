/* Parses lists of CPUs: "0-3,7", "0-15:2/4" (2 of every 4), "all", and N for the last CPU. */
#include "filter/filter_program.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool read_number(const char **at, const char *end, unsigned cpus, bool may_be_last,
			unsigned *number)
{
	const char *p = *at;
	if (may_be_last && p < end && *p == 'N') {
		*number = cpus - 1;
		*at = p + 1;
		return true;
	}
	unsigned value = 0;
	if (p == end || !is_digit(*p))
		return false;
	for (; p < end && is_digit(*p); p++) {
		if (value > 99999999)
			return false;
		value = value * 10 + (unsigned)(*p - '0');
	}
	*number = value;
	*at = p;
	return true;
}

static bool read_stride(const char **at, const char *end, unsigned *used, unsigned *group)
{
	const char *p = *at + 1;
	if (!read_number(&p, end, 0, false, used) || p == end || *p != '/')
		return false;
	p++;
	if (!read_number(&p, end, 0, false, group) || *group == 0 || *used > *group)
		return false;
	*at = p;
	return true;
}

static bool read_range(const char **at, const char *end, unsigned cpus, uint64_t *words)
{
	unsigned first, last, used = 1, group = 1;
	if (end - *at >= 3 && (*at)[0] == 'a' && (*at)[1] == 'l' && (*at)[2] == 'l') {
		first = 0;
		last = cpus - 1;
		*at += 3;
	} else {
		if (!read_number(at, end, cpus, true, &first))
			return false;
		last = first;
		if (*at < end && **at == '-') {
			++*at;
			if (!read_number(at, end, cpus, true, &last))
				return false;
		}
	}
	if (*at < end && **at == ':' && !read_stride(at, end, &used, &group))
		return false;
	if (first > last || last >= cpus)
		return false;
	for (unsigned cpu = first; words && cpu <= last; cpu++)
		if ((cpu - first) % group < used)
			words[cpu / 64] |= 1ull << cpu % 64;
	return true;
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

bool tally_filter_cpus(const char *text, const char *end, unsigned cpus, uint64_t *words,
		       const char **bad)
{
	const char *at = text;
	bool some = false;
	while (at < end) {
		if (is_space(*at) || *at == ',') {
			at++;
			continue;
		}
		*bad = at;
		if (!read_range(&at, end, cpus, words))
			return false;
		*bad = at;
		if (at < end && !is_space(*at) && *at != ',')
			return false;
		some = true;
	}
	*bad = at;
	return some;
}
