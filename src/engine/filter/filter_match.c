/* Runs a program on a record.  Records come from the traced program, so every access is bounded by
 * their size. */
#include "filter/filter_internal.h"

#define COMM_MAX 16

/* Finds the field's bytes.  Returns false if they are not within the record. */
static bool find_bytes(const struct filter_step *step, const uint8_t *record, size_t size,
		       const struct tally_filter_context *context, const uint8_t **bytes,
		       size_t *length)
{
	if (step->source == FILTER_COMM) {
		*bytes = (const uint8_t *)context->comm;
		*length = context->comm ? COMM_MAX : 0;
		return true;
	}
	if (step->offset > size || step->size > size - step->offset)
		return false;
	*bytes = record + step->offset;
	*length = step->size;
	if (step->source == FILTER_ELSEWHERE) {
		uint32_t word;
		__builtin_memcpy(&word, *bytes, sizeof(word));
		size_t offset = word & 0xffff;
		*length = word >> 16;
		if (offset > size || *length > size - offset)
			return false;
		*bytes = record + offset;
	}
	return true;
}

static bool find_number(const struct filter_step *step, const uint8_t *record, size_t size,
			const struct tally_filter_context *context, uint64_t *value)
{
	union {
		uint8_t b;
		uint16_t h;
		uint32_t w;
		uint64_t d;
	} at;
	if (step->source == FILTER_CPU) {
		*value = context->cpu;
		return true;
	}
	if (step->offset > size || step->size > size - step->offset)
		return false;
	const uint8_t *bytes = record + step->offset;
	switch (step->size) {
	case 1:
		*value = step->is_signed ? (uint64_t)(int8_t)*bytes : *bytes;
		return true;
	case 2:
		__builtin_memcpy(&at.h, bytes, 2);
		*value = step->is_signed ? (uint64_t)(int16_t)at.h : at.h;
		return true;
	case 4:
		__builtin_memcpy(&at.w, bytes, 4);
		*value = step->is_signed ? (uint64_t)(int32_t)at.w : at.w;
		return true;
	default:
		__builtin_memcpy(value, bytes, 8);
		return true;
	}
}

static bool compare(const struct filter_step *step, uint64_t value)
{
	/* With the sign bit inverted, signed numbers have the order of unsigned ones. */
	uint64_t turn = step->is_signed ? 1ull << 63 : 0;
	uint64_t left = value ^ turn, right = step->value ^ turn;
	switch ((enum filter_operation)step->operation) {
	case FILTER_EQUAL:
		return left == right;
	case FILTER_UNEQUAL:
		return left != right;
	case FILTER_LESS:
		return left < right;
	case FILTER_LESS_EQUAL:
		return left <= right;
	case FILTER_GREATER:
		return left > right;
	case FILTER_GREATER_EQUAL:
		return left >= right;
	case FILTER_AND:
		return (value & step->value) != 0;
	case FILTER_GLOB:
		break;
	}
	return false;
}

/* Matches `c` against one [class] at `p`, behind its bracket.  Returns the end behind the class; or
 * NULL if there is no closing bracket: then '[' is an ordinary character. */
static const char *match_class(const char *p, const char *end, char c, bool *matches)
{
	bool inverted = p < end && *p == '!', found = false;
	const char *first = p += inverted;
	for (; p < end && (*p != ']' || p == first); p++) {
		unsigned char low = (unsigned char)*p, high = low;
		if (end - p > 2 && p[1] == '-' && p[2] != ']') {
			high = (unsigned char)p[2];
			p += 2;
		}
		found |= (unsigned char)c >= low && (unsigned char)c <= high;
	}
	if (p >= end)
		return NULL;
	*matches = found != inverted;
	return p + 1;
}

/* Matches one element of the pattern against one character.  Returns the end behind the element, or
 * NULL. */
static const char *match_one(const char *p, const char *end, char c)
{
	bool matches;
	if (*p == '?')
		return p + 1;
	if (*p == '[') {
		const char *after = match_class(p + 1, end, c, &matches);
		if (after && !matches)
			return NULL;
		if (after)
			return after;
	}
	if (*p == '\\' && end - p > 1)
		p++;
	if (*p == c)
		return p + 1;
	return NULL;
}

/* Only the last * is tried again: a longer match of an earlier one can't help a later one. */
static bool match_glob(const char *p, const char *end, const char *text, size_t length)
{
	const char *star = NULL, *from = NULL, *text_end = text + length;
	while (text < text_end) {
		const char *after = NULL;
		if (p < end && *p == '*') {
			star = ++p;
			from = text;
			continue;
		}
		if (p < end)
			after = match_one(p, end, *text);
		if (after) {
			p = after;
			text++;
		} else if (star) {
			p = star;
			text = ++from;
		} else {
			return false;
		}
	}
	while (p < end && *p == '*')
		p++;
	return p == end;
}

static bool match_text(const struct filter_step *step, const char *pattern, const uint8_t *bytes,
		       size_t size)
{
	size_t length = 0;
	while (length < size && bytes[length])
		length++;
	if (step->operation == FILTER_GLOB)
		return match_glob(pattern, pattern + step->length, (const char *)bytes, length);
	bool same = length == step->length;
	for (size_t i = 0; same && i < length; i++)
		same = bytes[i] == (uint8_t)pattern[i];
	return same == (step->operation == FILTER_EQUAL);
}

static bool is_single(const uint64_t *words, uint32_t count)
{
	uint64_t any = 0, several = 0;
	for (uint32_t i = 0; i < count; i++) {
		several |= (any && words[i]) || (words[i] & (words[i] - 1));
		any |= words[i];
	}
	return any && !several;
}

/* A number that no CPU has differs from any single CPU.  Compared with a list of several CPUs,
 * every operation is false, as in the kernel. */
static bool match_cpu(const struct filter_step *step, const uint64_t *words, uint64_t cpu)
{
	bool single = is_single(words, step->length);
	if (cpu >= step->value)
		return single && step->operation == FILTER_UNEQUAL;
	bool within = words[cpu / 64] >> cpu % 64 & 1;
	if (step->operation == FILTER_AND)
		return within;
	return (within && single) == (step->operation == FILTER_EQUAL);
}

static bool mask_bit(const uint8_t *bytes, size_t size, size_t cpu)
{
	const size_t bits = 8 * sizeof(unsigned long);
	unsigned long word;
	if (cpu / bits >= size / sizeof(word))
		return false;
	__builtin_memcpy(&word, bytes + cpu / bits * sizeof(word), sizeof(word));
	return word >> cpu % bits & 1;
}

static bool match_mask(const struct filter_step *step, const uint64_t *words, const uint8_t *bytes,
		       size_t size)
{
	size_t bits = 64u * step->length;
	if (bits < 8 * size)
		bits = 8 * size;
	bool common = false, equal = true;
	for (size_t cpu = 0; cpu < bits; cpu++) {
		bool asked = cpu / 64 < step->length && (words[cpu / 64] >> cpu % 64 & 1);
		bool set = mask_bit(bytes, size, cpu);
		common |= asked && set;
		equal &= asked == set;
	}
	if (step->operation == FILTER_AND)
		return common;
	return equal == (step->operation == FILTER_EQUAL);
}

static bool run_predicate(const struct tally_filter *filter, const struct filter_step *step,
			  const uint8_t *record, size_t size,
			  const struct tally_filter_context *context)
{
	const void *data = (const uint8_t *)filter + step->data;
	const uint8_t *bytes;
	size_t length;
	uint64_t value;
	switch (step->kind) {
	case FILTER_NUMBER:
		return find_number(step, record, size, context, &value) && compare(step, value);
	case FILTER_CPU_NUMBER:
		return find_number(step, record, size, context, &value) &&
		       match_cpu(step, data, value);
	case FILTER_TEXT:
		return find_bytes(step, record, size, context, &bytes, &length) &&
		       match_text(step, data, bytes, length);
	default:
		return find_bytes(step, record, size, context, &bytes, &length) &&
		       match_mask(step, data, bytes, length);
	}
}

bool tally_filter_match(const struct tally_filter *filter, const void *record, size_t size,
			const struct tally_filter_context *context)
{
	bool truth = true;
	for (uint32_t i = 0; i < filter->count; i++) {
		const struct filter_step *step = &filter->steps[i];
		if (step->kind == FILTER_INVERT)
			truth = !truth;
		else if (step->kind != FILTER_SKIP_FALSE && step->kind != FILTER_SKIP_TRUE)
			truth = run_predicate(filter, step, record, size, context);
		else if (truth == (step->kind == FILTER_SKIP_TRUE))
			i = step->target - 1;
	}
	return truth;
}
