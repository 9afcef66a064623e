/* Computes in whole numbers, with billionths of a second and of a per cent.  Sets of ranges come
 * first, then the two syntaxes: seconds and shares. */
#include "recording/recording_internal.h"

#include "base/binary_search.h"
#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
	const struct tally_range *x = a, *y = b;
	return (x->first > y->first) - (x->first < y->first);
}

void tally_ranges_join(struct tally_ranges *ranges)
{
	size_t kept = 0;
	if (ranges->count)
		qsort(ranges->items, ranges->count, sizeof(*ranges->items), compare);
	for (size_t i = 0; i < ranges->count; i++) {
		struct tally_range next = ranges->items[i],
				   *last = &ranges->items[kept ? kept - 1 : 0];
		if (!kept || (next.first > last->last && next.first - last->last > 1))
			ranges->items[kept++] = next;
		else if (next.last > last->last)
			last->last = next.last;
	}
	ranges->count = kept;
}

bool tally_ranges_have(const struct tally_ranges *ranges, uint64_t number)
{
	size_t at = tally_search(i, 0, ranges->count, ranges->items[i].last >= number);
	return at < ranges->count && ranges->items[at].first <= number;
}

enum { DECIMALS = 9 };

#define UNIT UINT64_C(1000000000) /* billionths in a second, and in a per cent */
#define WHOLE (100 * UNIT)

/* Parses "12.345678" into billionths, exactly: a double would lose digits after a hundred days of
 * uptime.  Returns the end of the number, or NULL if there is none. */
static const char *parse_decimal(const char *text, uint64_t *value)
{
	const uint64_t most = UINT64_MAX / UNIT - 1;
	uint64_t whole = 0, part = 0;
	unsigned digits = 0, decimals = 0;
	for (; *text >= '0' && *text <= '9' && whole <= most / 10; text++, digits++)
		whole = 10 * whole + (uint64_t)(*text - '0');
	if (*text == '.')
		for (text++; *text >= '0' && *text <= '9'; text++, digits++)
			if (decimals < DECIMALS) {
				part = 10 * part + (uint64_t)(*text - '0');
				decimals++;
			}
	for (; decimals < DECIMALS; decimals++)
		part *= 10;
	*value = whole * UNIT + part;
	if (!digits || whole > most)
		return NULL;
	return text;
}

/* ---- seconds ------------------------------------------------------------- */

/* Returns the number behind the comma of "12.5, 13"; or `text`, if the blanks there are before
 * another range or the end. */
static const char *skip_blanks(const char *text)
{
	uint64_t value;
	const char *number = text + strspn(text, " ");
	const char *end = parse_decimal(number, &value);
	if (end && *end != ',')
		return number;
	return text;
}

/* Parses "12.5,13", or as perf also "12.5, 13".  Returns its end, or NULL if it is malformed. */
static const char *parse_seconds(const char *text, struct tally_range *range)
{
	*range = (struct tally_range){ 0, UINT64_MAX };
	if (*text != ',')
		text = parse_decimal(text, &range->first);
	if (!text || *text++ != ',')
		return NULL;
	text = skip_blanks(text);
	if (*text && *text != ' ')
		text = parse_decimal(text, &range->last);
	if (range->first > range->last)
		return NULL;
	return text;
}

/* ---- shares -------------------------------------------------------------- */

static const char *parse_percent(const char *text, uint64_t *share)
{
	text = parse_decimal(text, share);
	if (!text || *text != '%' || *share > WHOLE)
		return NULL;
	return text + 1;
}

/* Parses "10%-20%", "10%/2" or "10%".  Returns its end, or NULL if it is malformed. */
static const char *parse_share(const char *text, uint64_t *from, uint64_t *to)
{
	uint64_t number = UNIT;
	*from = 0;
	text = parse_percent(text, to);
	if (text && *text == '-') {
		*from = *to;
		text = parse_percent(text + 1, to);
	} else if (text && *text == '/') {
		text = parse_decimal(text + 1, &number);
		if (!text || number % UNIT || number < UNIT || !*to || number / UNIT > WHOLE / *to)
			return NULL;
		*from = (number / UNIT - 1) * *to;
		*to += *from;
	}
	if (!text || *from >= *to)
		return NULL;
	return text;
}

__extension__ typedef unsigned __int128 wide;

static uint64_t time_at(uint64_t share, uint64_t first_ns, uint64_t last_ns)
{
	return first_ns + (uint64_t)((wide)(last_ns - first_ns) * share / WHOLE);
}

/* The time at which a share ends belongs to the next share, except at the last sample. */
static struct tally_range range_of(uint64_t from, uint64_t to, uint64_t first_ns, uint64_t last_ns)
{
	struct tally_range range = { time_at(from, first_ns, last_ns),
				     time_at(to, first_ns, last_ns) };
	if (to < WHOLE && range.last > range.first)
		range.last--;
	return range;
}

/* ---- ranges -------------------------------------------------------------- */

bool tally_time_is_share(const char *text)
{
	return strchr(text, '%') != NULL;
}

int tally_time_ranges_parse(struct tally_ranges *ranges, const char *text, uint64_t first_ns,
			    uint64_t last_ns, struct tally_error *err)
{
	bool is_share = tally_time_is_share(text);
	char between = is_share ? ',' : ' ';
	const char *at = text;
	do {
		struct tally_range range;
		uint64_t from = 0, to = 0;
		if (is_share)
			at = parse_share(at, &from, &to);
		else
			at = parse_seconds(at, &range);
		if (!at || (*at && *at != between))
			return tally_error_set(
				err, -EINVAL,
				"'%s' is neither START,END in seconds nor a share of the time "
				"like 10%%-20%% or 10%%/2",
				text);
		if (is_share)
			range = range_of(from, to, first_ns, last_ns);
		if (tally_vector_push(ranges, range) < 0)
			return tally_error_set(err, -ENOMEM, "out of memory");
		while (*at == between)
			at++;
	} while (*at);
	tally_ranges_join(ranges);
	return 0;
}
