/* A JIT's perf map: a line "START SIZE name" for each function, appended when its code is made.
 * Blanks and tabs separate the parts, and may be in the name.
 *
 * The map doesn't say when code is freed and its space reused.  If lines overlap, the later one is
 * right, and the earlier one keeps the rest.  This sweeps the lines by address, with a heap of
 * those that cover the current address, the latest on top.
 */
#include "base/digits.h"
#include "symbol/symbol_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct covering {
	const struct tally_symbol_entry **items; /* heap by order */
	size_t count;
};

static void heap_push(struct covering *heap, const struct tally_symbol_entry *entry)
{
	size_t at = heap->count++;
	for (; at > 0 && heap->items[(at - 1) / 2]->order < entry->order; at = (at - 1) / 2)
		heap->items[at] = heap->items[(at - 1) / 2];
	heap->items[at] = entry;
}

static void heap_pop(struct covering *heap)
{
	const struct tally_symbol_entry *last = heap->items[--heap->count];
	size_t at = 0;
	for (size_t child; (child = 2 * at + 1) < heap->count; at = child) {
		if (child + 1 < heap->count &&
		    heap->items[child + 1]->order > heap->items[child]->order)
			child++;
		if (heap->items[child]->order < last->order)
			break;
		heap->items[at] = heap->items[child];
	}
	if (heap->count)
		heap->items[at] = last;
}

/* Adds the symbols seen from `at` to `end`: the top of the heap as far as it reaches, then the one
 * below. */
static int show(struct covering *heap, uint64_t at, uint64_t end, struct tally_symbols_builder *out)
{
	while (heap->count && at < end) {
		const struct tally_symbol_entry *top = heap->items[0];
		if (top->end <= at) {
			heap_pop(heap);
			continue;
		}
		uint64_t until = end;
		if (top->end < end)
			until = top->end;
		struct tally_symbol_entry *last = NULL;
		if (out->count)
			last = &out->entries[out->count - 1];
		if (last && last->name == top->name && last->end == at)
			last->end = until;
		else if (tally_symbols_add(
				 out, &(struct tally_symbol_entry){
					      .start = at, .end = until, .name = top->name }) < 0)
			return -ENOMEM;
		at = until;
	}
	return 0;
}

/* Copies `in`, which is sorted, to `out` without overlaps. */
static int flatten(const struct tally_symbols_builder *in, struct tally_symbols_builder *out)
{
	struct covering heap = { .items = calloc(in->count + 1, sizeof(*heap.items)) };
	int rc = 0;
	if (!heap.items)
		return -ENOMEM;
	for (size_t i = 0; i < in->count; i++) {
		heap_push(&heap, &in->entries[i]);
		uint64_t next = UINT64_MAX;
		if (i + 1 < in->count)
			next = in->entries[i + 1].start;
		rc = show(&heap, in->entries[i].start, next, out);
		if (rc)
			break;
	}
	free(heap.items);
	return rc;
}

static bool is_blank(char letter)
{
	return letter == ' ' || letter == '\t';
}

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && is_blank(*at))
		at++;
	return at;
}

static const char *parse_hex(const char *at, const char *end, uint64_t *value)
{
	*value = 0;
	if (end - at > 2 && at[0] == '0' && (at[1] | 0x20) == 'x')
		at += 2;
	int digits = 0;
	for (; at < end; at++, digits++) {
		int digit = tally_hexadecimal_value(*at);
		if (digit < 0)
			break;
		*value = *value << 4 | (uint64_t)digit;
	}
	if (digits == 0 || digits > 16 || at == end || !is_blank(*at))
		return NULL;
	return skip_blanks(at, end);
}

/* Returns 1 when the line was added, 0 when it is malformed, or -ENOMEM. */
static int add_line(struct tally_symbols_builder *builder, const char *at, const char *end)
{
	while (end > at && (end[-1] == '\r' || is_blank(end[-1])))
		end--;
	uint64_t size;
	struct tally_symbol_entry entry = { 0 };
	at = parse_hex(skip_blanks(at, end), end, &entry.start);
	if (at)
		at = parse_hex(at, end, &size);
	if (!at || at == end || size == 0 || __builtin_add_overflow(entry.start, size, &entry.end))
		return 0;
	size_t length = strnlen(at, (size_t)(end - at));
	if (length == 0)
		return 0;
	entry.name = tally_arena_copy(&builder->names, at, length);
	if (!entry.name || tally_symbols_add(builder, &entry) < 0)
		return -ENOMEM;
	return 1;
}

int tally_symbols_from_perf_map(const char *text, size_t length, size_t *skipped,
				struct tally_symbols **out, struct tally_error *err)
{
	struct tally_symbols_builder lines = { 0 }, seen = { 0 };
	const char *end = text + length;
	*skipped = 0;
	int rc = 0;
	while (text < end && rc >= 0) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *line_end = end;
		if (newline)
			line_end = newline;
		if (line_end == text)
			rc = 1;
		else
			rc = add_line(&lines, text, line_end);
		*skipped += rc == 0;
		if (newline)
			text = newline + 1;
		else
			text = end;
	}
	if (rc >= 0) {
		tally_symbols_sort(&lines);
		rc = flatten(&lines, &seen);
	}
	seen.names = lines.names;
	lines.names = (struct tally_arena)TALLY_ARENA_INIT;
	tally_symbols_abandon(&lines);
	if (rc < 0) {
		tally_symbols_abandon(&seen);
		return tally_error_set(err, -ENOMEM, "out of memory for a perf map's symbols");
	}
	return tally_symbols_finish(&seen, out, err);
}
