/* Splits a condition at its last operator, parses the limit behind it, and compares.  A change that
 * may be noise is a result of its own. */
#include "counts/counts.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static int complain(struct tally_error *err, const char *text, const char *at, const char *what)
{
	tally_error_set(err, -EINVAL, "'%s': %s", text, what);
	tally_error_hint(err,
			 "such as 'instructions > +1%%', 'branch-misses > +1000', 'elapsed > 2.5'");
	if (err)
		err->position = (int)(at - text);
	return -EINVAL;
}

/* Parses a decimal number as in the C locale, whatever the program's is.  At most 18 digits
 * count. */
static const char *parse_number(const char *at, double *out)
{
	double value = 0, place = 1;
	const char *begin = at;
	unsigned digits = 0;
	for (bool is_fraction = false; isdigit((unsigned char)*at) || (*at == '.' && !is_fraction);
	     at++) {
		if (*at == '.') {
			is_fraction = true;
			continue;
		}
		digits++;
		value = value * 10 + (*at - '0');
		if (is_fraction)
			place *= 10;
	}
	if (!digits || digits > 18)
		return begin;
	*out = value / place;
	return at;
}

static double unit_of(char letter)
{
	switch (letter) {
	case 'K': case 'k': return 1e3;
	case 'M': return 1e6;
	case 'G': return 1e9;
	case 'T': return 1e12;
	default: return 0;
	}
}

static const char *skip_blanks(const char *at)
{
	return at + strspn(at, " \t");
}

/* The operator is the last < or >: names of C++ functions contain some, limits don't. */
static const char *parse_name(const char *text, struct tally_condition *out)
{
	const char *begin = skip_blanks(text), *operator = NULL, *end;
	for (const char *at = begin; *at; at++)
		if (*at == '<' || *at == '>')
			operator = at;
	end = begin;
	if (operator)
		end = operator;
	while (end > begin && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	size_t length = (size_t)(end - begin);
	if (!operator || !length || length >= sizeof(out->name))
		return NULL;
	memcpy(out->name, begin, length);
	out->name[length] = 0;
	return operator;
}

int tally_condition_parse(const char *text, struct tally_condition *out, struct tally_error *err)
{
	*out = (struct tally_condition){ .text = text };
	const char *at = parse_name(text, out);
	if (!at)
		return complain(err, text, text, "a name, then > or <, is missing");
	out->is_above = *at++ == '>';
	out->or_equal = *at == '=';
	at = skip_blanks(at + out->or_equal);
	int sign = (*at == '+') - (*at == '-');
	const char *digits = at + (sign != 0), *end = parse_number(digits, &out->limit);
	if (end == digits)
		return complain(err, text, digits,
				"a number is missing behind the sign of comparison");
	double unit = unit_of(*end);
	if (unit)
		out->limit *= unit;
	if (sign < 0)
		out->limit = -out->limit;
	end = skip_blanks(end + (unit != 0));
	out->kind = sign ? TALLY_LIMIT_DIFFERENCE : TALLY_LIMIT_VALUE;
	if (*end == '%') {
		out->kind = TALLY_LIMIT_RELATIVE;
		out->limit /= 100;
		end = skip_blanks(end + 1);
	}
	if (*end)
		return complain(err, text, end, "this is too much");
	return 0;
}

enum tally_condition_result tally_condition_judge(const struct tally_condition *condition,
						  const struct tally_figure *new,
						  const struct tally_change *change, double scale)
{
	double value = scale * new->mean;
	if (condition->kind == TALLY_LIMIT_RELATIVE)
		value = change->relative;
	else if (condition->kind == TALLY_LIMIT_DIFFERENCE)
		value = scale * change->difference;
	bool holds = condition->or_equal && value == condition->limit;
	if (condition->is_above)
		holds |= value > condition->limit;
	else
		holds |= value < condition->limit;
	if (!holds)
		return TALLY_CONDITION_FALSE;
	bool is_change = condition->kind != TALLY_LIMIT_VALUE;
	if (is_change && change->significance == TALLY_CHANGE_NOISE)
		return TALLY_CONDITION_NOISE;
	return TALLY_CONDITION_TRUE;
}
