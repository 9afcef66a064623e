/* Parses the values of options, and stores them as the rows say. */
#include "base/option_row.h"

#include "base/buffer.h"
#include "base/suggest.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tally_option_is_end(const struct tally_option *option)
{
	return !option->letter && !option->name && !option->included;
}

bool tally_option_takes_path(const struct tally_option *option)
{
	const char *name = option->argument ? option->argument : "";
	return strstr(name, "FILE") || !strcmp(name, "DIR") || !strcmp(name, "OLD");
}

static int bad_value(const char *option, const char *value, const char *wanted,
		     struct tally_error *err)
{
	return tally_error_set(err, -EINVAL, "option %s: '%s' is not %s", option, value, wanted);
}

int tally_option_u64(const char *option, const char *value, unsigned long long minimum,
		     unsigned long long maximum, unsigned long long *out, struct tally_error *err)
{
	char *end, wanted[96];
	errno = 0;
	unsigned long long number = strtoull(value, &end, 0);
	if (maximum == ~0ull)
		snprintf(wanted, sizeof(wanted), "a number from %llu up", minimum);
	else
		snprintf(wanted, sizeof(wanted), "a number from %llu to %llu", minimum, maximum);
	if (errno || end == value || *end || strchr(value, '-') || number < minimum ||
	    number > maximum)
		return bad_value(option, value, wanted, err);
	*out = number;
	return 0;
}

int tally_option_percent(const char *option, const char *value, double *out,
			 struct tally_error *err)
{
	char *end;
	*out = strtod(value, &end);
	if (end == value || *end || !(*out >= 0 && *out <= 100))
		return bad_value(option, value, "a percentage", err);
	return 0;
}

int tally_option_size(const char *option, const char *value, unsigned long long *out,
		      struct tally_error *err)
{
	static const char units[] = "KMGT";
	char *end;
	errno = 0;
	unsigned long long number = strtoull(value, &end, 0);
	const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;
	unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
	if (unit)
		end++;
	if (unit && (*end == 'B' || *end == 'b'))
		end++;
	if (errno || end == value || *end || strchr(value, '-') || number > (~0ull >> shift))
		return bad_value(option, value, "a size like 512K, 8M or 1G", err);
	*out = number << shift;
	return 0;
}

int tally_option_seconds(const char *option, const char *value, double *out,
			 struct tally_error *err)
{
	static const struct { const char *unit; double seconds; } units[] = {
		{ "", 1 }, { "s", 1 }, { "ms", 1e-3 }, { "us", 1e-6 }, { "m", 60 }, { "h", 3600 },
	};
	char *end;
	double number = strtod(value, &end);
	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (end != value && !strcmp(end, units[i].unit) && number >= 0 &&
		    isfinite(number)) {
			*out = number * units[i].seconds;
			return 0;
		}
	return bad_value(option, value, "a time like 2, 1.5s, 500ms or 3m", err);
}

int tally_option_duration(const char *option, const char *value, double *out,
			  struct tally_error *err)
{
	int result = tally_option_seconds(option, value, out, err);
	if (result < 0 || (*out >= 0.001 && *out <= 1e9))
		return result;
	return bad_value(option, value, "a time of 1ms or more, like 2, 500ms or 3m", err);
}

void *tally_option_member(void *request, const struct tally_option *option)
{
	return (char *)request + option->offset;
}

/* Integers of 1, 2, 4 or 8 bytes; enums and bools as well. */
static unsigned long long integer_at(const void *member, size_t size)
{
	switch (size) {
	case sizeof(uint8_t): return *(const uint8_t *)member;
	case sizeof(uint16_t): return *(const uint16_t *)member;
	case sizeof(uint32_t): return *(const uint32_t *)member;
	default: return *(const uint64_t *)member;
	}
}

static void put_integer(void *member, size_t size, unsigned long long number)
{
	switch (size) {
	case sizeof(uint8_t): *(uint8_t *)member = (uint8_t)number; break;
	case sizeof(uint16_t): *(uint16_t *)member = (uint16_t)number; break;
	case sizeof(uint32_t): *(uint32_t *)member = (uint32_t)number; break;
	default: *(uint64_t *)member = number;
	}
}

/* Finds one of the words that blanks separate; otherwise lists them in `wanted`: "a, b". */
static int find_word(const char *words, const char *value, unsigned long long *index,
		     struct tally_buffer *wanted)
{
	*index = 0;
	for (const char *word = words; *word; ++*index) {
		size_t length = strcspn(word, " ");
		if (strlen(value) == length && !strncmp(word, value, length))
			return 0;
		tally_buffer_text(wanted, *index ? ", " : "");
		tally_buffer_append(wanted, word, length);
		word += length + (word[length] == ' ');
	}
	return -EINVAL;
}

int tally_option_store(void *request, const struct tally_option *option, const char *value,
		       struct tally_error *err)
{
	void *member = tally_option_member(request, option);
	unsigned long long number = option->constant;
	struct tally_buffer wanted = { 0 };
	char shown[72];
	int result = 0;
	if (option->letter)
		snprintf(shown, sizeof(shown), "-%c", option->letter);
	else
		snprintf(shown, sizeof(shown), "--%s", option->name);
	switch (option->store) {
	case TALLY_STORE_NOTHING: return 0;
	case TALLY_STORE_TRUE: *(bool *)member = true; return 0;
	case TALLY_STORE_FALSE: *(bool *)member = false; return 0;
	case TALLY_STORE_TEXT: *(const char **)member = value; return 0;
	case TALLY_STORE_SECONDS: return tally_option_seconds(shown, value, member, err);
	case TALLY_STORE_DURATION: return tally_option_duration(shown, value, member, err);
	case TALLY_STORE_PERCENT: return tally_option_percent(shown, value, member, err);
	case TALLY_STORE_CONSTANT: break;
	case TALLY_STORE_BITS: number |= integer_at(member, option->size); break;
	case TALLY_STORE_SIZE: result = tally_option_size(shown, value, &number, err); break;
	case TALLY_STORE_NUMBER:
		result = tally_option_u64(shown, value, option->minimum, option->maximum, &number,
					  err);
		break;
	case TALLY_STORE_WORD:
		if (find_word(option->words, value, &number, &wanted) < 0)
			result = tally_error_set(err, -EINVAL, "option %s: '%s' is none of %s",
						 shown, value, tally_buffer_string(&wanted));
		tally_buffer_release(&wanted);
	}
	if (!result)
		put_integer(member, option->size, number);
	return result;
}
