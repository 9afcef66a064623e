/* Sorts the parsed strings by address, and finds one by binary search. */
#include "tracepoint/tracepoint.h"

#include "base/digits.h"
#include "base/extremes.h"
#include "base/text.h"
#include "base/vector.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool take_hexadecimal(const char **at, const char *end, uint64_t *value)
{
	const char *start = *at;
	*value = 0;
	if (end - *at > 2 && (*at)[0] == '0' && ((*at)[1] | 0x20) == 'x')
		start = *at += 2;
	for (; *at < end; (*at)++) {
		int digit = tally_hexadecimal_value(**at);
		if (digit < 0)
			break;
		*value = *value << 4 | (unsigned)digit;
	}
	return *at > start;
}

static bool parse_line(const char *at, const char *end, struct tally_printk_string *string,
		       size_t *length)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	if (!take_hexadecimal(&at, end, &string->address))
		return false;
	while (at < end && (*at == ' ' || *at == ':'))
		at++;
	if (at >= end)
		return false;
	at += *at == '"';
	if (end > at && end[-1] == '"')
		end--;
	if (end - at >= 2 && memcmp(end - 2, "\\n", 2) == 0)
		end -= 2;
	string->text = at;
	*length = (size_t)(end - at);
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct tally_printk_string *left = a, *right = b;
	return tally_compare_u64(left->address, right->address);
}

int tally_printk_parse(struct tally_printk *printk, const char *text, size_t length)
{
	TALLY_VECTOR(struct tally_printk_string) strings = { 0 };
	*printk = (struct tally_printk){ 0 };
	const char *end = text + length;
	for (const char *line = text; line < end;) {
		const char *line_end = tally_line_end(line, end);
		struct tally_printk_string string;
		size_t string_length;
		if (parse_line(line, line_end, &string, &string_length)) {
			string.text = tally_arena_copy(&printk->arena, string.text, string_length);
			if (!string.text || tally_vector_push(&strings, string) < 0)
				goto no_memory;
		}
		line = line_end + 1;
	}
	printk->strings = tally_arena_array(&printk->arena, strings.count,
					    sizeof(*printk->strings));
	if (!printk->strings)
		goto no_memory;
	if (strings.count > 0) {
		qsort(strings.items, strings.count, sizeof(*strings.items), by_address);
		memcpy(printk->strings, strings.items, strings.count * sizeof(*strings.items));
	}
	printk->count = strings.count;
	tally_vector_release(&strings);
	return 0;
no_memory:
	tally_vector_release(&strings);
	tally_printk_release(printk);
	return -ENOMEM;
}

const char *tally_printk_find(void *context, uint64_t address)
{
	const struct tally_printk *printk = context;
	size_t low = 0, high = printk->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (printk->strings[middle].address == address)
			return printk->strings[middle].text;
		if (printk->strings[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

void tally_printk_release(struct tally_printk *printk)
{
	tally_arena_release(&printk->arena);
	*printk = (struct tally_printk){ 0 };
}
