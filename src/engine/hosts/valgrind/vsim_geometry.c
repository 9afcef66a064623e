/* Reads a geometry from text, writes it as text, and makes one from a machine's caches.  Only tally
 * uses this, not the tool.  One table of keys serves reading and writing.
 *
 * The text gives a cache's size, but a geometry holds sets.  Their number depends on the line size,
 * which may come later in the text.  So sizes are stored as given until the text has ended. */
#include "valgrind/vsim_geometry.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum value_type {
	VALUE_BASE,
	VALUE_NAME,
	VALUE_BYTES,
	VALUE_CACHE,
	VALUE_TLB,
	VALUE_NUMBER,
	VALUE_COST
};

struct key {
	const char *name;
	enum value_type type;
	size_t offset;
};

#define KEY(text, type, field) { text, type, offsetof(struct vsim_geometry, field) }
static const struct key keys[] = {
	{ "base", VALUE_BASE, 0 },
	KEY("name", VALUE_NAME, name),
	KEY("line", VALUE_BYTES, line_bytes),
	KEY("page", VALUE_BYTES, page_bytes),
	KEY("l1d", VALUE_CACHE, l1d),
	KEY("l1i", VALUE_CACHE, l1i),
	KEY("l2", VALUE_CACHE, l2),
	KEY("llc", VALUE_CACHE, llc),
	KEY("dtlb", VALUE_TLB, dtlb),
	KEY("itlb", VALUE_TLB, itlb),
	KEY("stlb", VALUE_TLB, stlb),
	KEY("history-bits", VALUE_NUMBER, history_bits),
	KEY("target-bits", VALUE_NUMBER, target_bits),
	KEY("return-stack", VALUE_NUMBER, return_depth),
	KEY("cost-instruction", VALUE_COST, cost_instruction),
	KEY("cost-branch-miss", VALUE_COST, cost_branch_miss),
	KEY("cost-l2", VALUE_COST, cost_l2),
	KEY("cost-llc", VALUE_COST, cost_llc),
	KEY("cost-memory", VALUE_COST, cost_memory),
	KEY("cost-stlb", VALUE_COST, cost_stlb),
	KEY("cost-walk", VALUE_COST, cost_walk),
	KEY("mhz", VALUE_NUMBER, mhz),
};
enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

/* The value given for a key: `amount` bytes or entries in `ways`. */
struct given {
	unsigned line;  /* 0: not given */
	uint64_t amount;
	uint32_t ways;
};

struct geometry_reader {
	struct vsim_geometry *geometry;
	struct vsim_geometry_error *error;
	struct given given[KEYS];
	unsigned line;
};

static uint32_t *field(struct vsim_geometry *geometry, const struct key *key)
{
	return (uint32_t *)((char *)geometry + key->offset);
}

static const struct vsim_cache_geometry *cache_of(const struct vsim_geometry *geometry,
						  const struct key *key)
{
	return (const struct vsim_cache_geometry *)((const char *)geometry + key->offset);
}

static __attribute__((format(printf, 3, 4))) int fail(struct geometry_reader *reader, unsigned line,
						      const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(reader->error->message, sizeof(reader->error->message), format, arguments);
	va_end(arguments);
	reader->error->line = line;
	return -EINVAL;
}

/* --- Values --------------------------------------------------------------- */

struct piece {
	const char *text;
	size_t length;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct piece trimmed(struct piece piece)
{
	while (piece.length && is_blank(piece.text[0]))
		piece.text++, piece.length--;
	while (piece.length && is_blank(piece.text[piece.length - 1]))
		piece.length--;
	return piece;
}

static bool is(struct piece piece, const char *word)
{
	return piece.length == strlen(word) && !memcmp(piece.text, word, piece.length);
}

/* Takes the digits at the beginning.  Returns their value, or -1 if there are none or it exceeds
 * `most`. */
static int64_t take_number(struct piece *piece, int64_t most)
{
	int64_t value = -1;
	while (piece->length && piece->text[0] >= '0' && piece->text[0] <= '9') {
		value = (value < 0 ? 0 : value) * 10 + (piece->text[0] - '0');
		piece->text++, piece->length--;
		if (value > most)
			return -1;
	}
	return value;
}

/* Returns the bits by which a suffix shifts a number: 10 for K, 20 for M, else 0. */
static int shift_of(char suffix)
{
	switch (suffix) {
	case 'K':
		return 10;
	case 'M':
		return 20;
	default:
		return 0;
	}
}

static int64_t take_amount(struct piece *piece)
{
	int64_t value = take_number(piece, 1 << 30);
	if (value < 0 || !piece->length)
		return value;
	int shift = shift_of(piece->text[0]);
	if (shift)
		piece->text++, piece->length--;
	return value << shift;
}

/* Reads "32K 8-way".  Returns false if anything remains. */
static bool read_cache(struct piece value, struct given *given)
{
	int64_t amount = take_amount(&value);
	if (amount <= 0 || !value.length || !is_blank(value.text[0]))
		return false;
	value = trimmed(value);
	int64_t ways = take_number(&value, VSIM_WAYS_MAX);
	if (ways <= 0 || !(is(value, "-way") || is(value, "")))
		return false;
	given->amount = (uint64_t)amount;
	given->ways = (uint32_t)ways;
	return true;
}

static int read_cache_or_none(struct geometry_reader *reader, const struct key *key,
			      struct piece value, struct given *given)
{
	if (is(value, "none")) {
		given->amount = given->ways = 0;
		return 0;
	}
	if (read_cache(value, given))
		return 0;
	if (key->type == VALUE_TLB)
		return fail(reader, reader->line, "%s takes entries and ways, at most %d: 64 4-way",
			    key->name, VSIM_WAYS_MAX);
	return fail(reader, reader->line, "%s takes a size and ways, at most %d: 32K 8-way",
		    key->name, VSIM_WAYS_MAX);
}

static int read_cost(struct geometry_reader *reader, const struct key *key, struct piece value)
{
	int64_t cycles = take_number(&value, VSIM_COST_MAX / 100), hundredths = 0;
	if (cycles >= 0 && value.length > 1 && value.text[0] == '.') {
		size_t digits = --value.length;
		value.text++;
		hundredths = take_number(&value, 99);
		if (digits == 1 && hundredths > 0)
			hundredths *= 10;
		if (digits > 2)
			hundredths = -1;
	}
	if (cycles < 0 || hundredths < 0 || value.length ||
	    cycles * 100 + hundredths > VSIM_COST_MAX)
		return fail(reader, reader->line,
			    "%s takes cycles, 0 to %d, with up to two decimals", key->name,
			    VSIM_COST_MAX / 100);
	*field(reader->geometry, key) = (uint32_t)(cycles * 100 + hundredths);
	return 0;
}

static int read_name(struct geometry_reader *reader, struct piece value)
{
	if (!value.length || value.length >= VSIM_CPU_NAME || memchr(value.text, 0, value.length))
		return fail(reader, reader->line, "name takes 1 to %d printable characters",
			    VSIM_CPU_NAME - 1);
	memset(reader->geometry->name, 0, VSIM_CPU_NAME);
	memcpy(reader->geometry->name, value.text, value.length);
	return 0;
}

static int read_number(struct geometry_reader *reader, const struct key *key, struct piece value)
{
	int64_t number;
	if (key->type == VALUE_BYTES)
		number = take_amount(&value);
	else
		number = take_number(&value, 1 << 30);
	if (number < 0 || number > UINT32_MAX || value.length)
		return fail(reader, reader->line, "%s takes a number%s", key->name,
			    key->type == VALUE_BYTES ? " of bytes: 64, 4K" : "");
	*field(reader->geometry, key) = (uint32_t)number;
	return 0;
}

/* Stores the caches of `base` as given sizes, so that they stay the same when the line size
 * changes. */
static void begin_from(struct geometry_reader *reader, const struct vsim_geometry *base)
{
	*reader->geometry = *base;
	memset(reader->geometry->name, 0, VSIM_CPU_NAME);
	memcpy(reader->geometry->name, "custom", sizeof("custom"));
	for (size_t i = 0; i < KEYS; i++) {
		if (keys[i].type != VALUE_CACHE && keys[i].type != VALUE_TLB)
			continue;
		const struct vsim_cache_geometry *cache = cache_of(base, &keys[i]);
		uint64_t entries = (uint64_t)cache->sets * cache->ways;
		reader->given[i].amount = entries;
		if (keys[i].type == VALUE_CACHE)
			reader->given[i].amount *= base->line_bytes;
		reader->given[i].ways = cache->ways;
	}
}

static int read_base(struct geometry_reader *reader, struct piece value)
{
	for (size_t i = 0; i < KEYS; i++)
		if (reader->given[i].line)
			return fail(reader, reader->line, "base comes before all other keys");
	for (size_t i = 0; vsim_geometry_preset_name(i); i++)
		if (is(value, vsim_geometry_preset_name(i))) {
			begin_from(reader, vsim_geometry_preset(vsim_geometry_preset_name(i)));
			return 0;
		}
	char names[200];
	size_t used = 0;
	for (size_t i = 0; vsim_geometry_preset_name(i) && used < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
					 vsim_geometry_preset_name(i));
	return fail(reader, reader->line, "base takes one of %s", names);
}

/* --- Lines ---------------------------------------------------------------- */

static int read_value(struct geometry_reader *reader, size_t index, struct piece value)
{
	const struct key *key = &keys[index];
	switch (key->type) {
	case VALUE_BASE:
		return read_base(reader, value);
	case VALUE_NAME:
		return read_name(reader, value);
	case VALUE_CACHE:
	case VALUE_TLB:
		return read_cache_or_none(reader, key, value, &reader->given[index]);
	case VALUE_COST:
		return read_cost(reader, key, value);
	default:
		return read_number(reader, key, value);
	}
}

static int unknown_key(struct geometry_reader *reader)
{
	char names[280];
	size_t used = 0;
	for (size_t i = 0; i < KEYS && used < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? " " : "",
					 keys[i].name);
	return fail(reader, reader->line, "a line is key = value, of the keys %s", names);
}

static int read_line(struct geometry_reader *reader, struct piece line)
{
	const char *comment = memchr(line.text, '#', line.length);
	if (comment)
		line.length = (size_t)(comment - line.text);
	line = trimmed(line);
	if (!line.length)
		return 0;
	const char *equals = memchr(line.text, '=', line.length);
	if (!equals)
		return unknown_key(reader);
	size_t before = (size_t)(equals - line.text);
	struct piece name = trimmed((struct piece){ line.text, before });
	struct piece value = trimmed((struct piece){ equals + 1, line.length - before - 1 });
	for (size_t i = 0; i < KEYS; i++) {
		if (!is(name, keys[i].name))
			continue;
		if (reader->given[i].line)
			return fail(reader, reader->line, "%s is said twice, on line %u too",
				    keys[i].name, reader->given[i].line);
		int code = read_value(reader, i, value);
		reader->given[i].line = reader->line;
		return code;
	}
	return unknown_key(reader);
}

/* Converts sizes to sets.  Line and page size are valid. */
static int settle(struct geometry_reader *reader, size_t index)
{
	const struct key *key = &keys[index];
	const struct given *given = &reader->given[index];
	uint64_t unit = given->ways;
	if (key->type == VALUE_CACHE)
		unit *= reader->geometry->line_bytes;
	uint64_t sets = given->ways ? given->amount / unit : 0;
	if (given->ways &&
	    (sets * unit != given->amount || !sets || sets & (sets - 1) || sets > UINT32_MAX))
		return fail(reader, given->line,
			    "%s: %llu %s in %u ways don't make sets that are a power of two",
			    key->name, (unsigned long long)given->amount,
			    key->type == VALUE_CACHE ? "bytes" : "entries", given->ways);
	struct vsim_cache_geometry cache = { (uint32_t)sets, given->ways };
	memcpy((char *)reader->geometry + key->offset, &cache, sizeof(cache));
	return 0;
}

/* Returns the line that set the member at that offset, or 0. */
static unsigned line_of(const struct geometry_reader *reader, size_t field)
{
	for (size_t i = 0; i < KEYS; i++)
		if (keys[i].offset == field && keys[i].type != VALUE_BASE)
			return reader->given[i].line;
	return 0;
}

static int finish(struct geometry_reader *reader)
{
	uint32_t line = reader->geometry->line_bytes;
	for (size_t i = 0; i < KEYS && line && !(line & (line - 1)); i++)
		if (keys[i].type == VALUE_CACHE || keys[i].type == VALUE_TLB) {
			int code = settle(reader, i);
			if (code)
				return code;
		}
	size_t field;
	const char *problem = vsim_geometry_find_problem(reader->geometry, &field);
	if (problem)
		return fail(reader, line_of(reader, field), "%s", problem);
	return 0;
}

int vsim_geometry_parse(const char *text, size_t length, struct vsim_geometry *geometry,
			struct vsim_geometry_error *error)
{
	struct geometry_reader reader = { .geometry = geometry, .error = error };
	begin_from(&reader, vsim_geometry_preset("generic"));
	*error = (struct vsim_geometry_error){ 0 };
	for (size_t at = 0; at < length;) {
		const char *end = memchr(text + at, '\n', length - at);
		size_t line_length = length - at;
		if (end)
			line_length = (size_t)(end - text) - at;
		reader.line++;
		int code = read_line(&reader, (struct piece){ text + at, line_length });
		if (code)
			return code;
		at += line_length + 1;
	}
	return finish(&reader);
}

/* --- To text -------------------------------------------------------------- */

static int format_cache(const struct vsim_geometry *geometry, const struct key *key, char *text,
			size_t size)
{
	const struct vsim_cache_geometry *cache = cache_of(geometry, key);
	uint64_t amount = (uint64_t)cache->sets * cache->ways;
	const char *suffix = "";
	if (!cache->ways)
		return snprintf(text, size, "%s = none\n", key->name);
	if (key->type == VALUE_CACHE) {
		amount *= geometry->line_bytes;
		if (amount % (1 << 20) == 0)
			suffix = "M";
		else if (amount % 1024 == 0)
			suffix = "K";
		amount >>= shift_of(suffix[0]);
	}
	return snprintf(text, size, "%s = %llu%s %u-way\n", key->name, (unsigned long long)amount,
			suffix, cache->ways);
}

static int format_key(const struct vsim_geometry *geometry, const struct key *key, char *text,
		      size_t size)
{
	uint32_t number;
	memcpy(&number, (const char *)geometry + key->offset, sizeof(number));
	switch (key->type) {
	case VALUE_BASE:
		return 0;
	case VALUE_NAME:
		return snprintf(text, size, "%s = %.*s\n", key->name, VSIM_CPU_NAME - 1,
				geometry->name);
	case VALUE_CACHE:
	case VALUE_TLB:
		return format_cache(geometry, key, text, size);
	case VALUE_COST:
		return snprintf(text, size, "%s = %u.%02u\n", key->name, number / 100,
				number % 100);
	default:
		return snprintf(text, size, "%s = %u\n", key->name, number);
	}
}

size_t vsim_geometry_format(const struct vsim_geometry *geometry, char *text, size_t size)
{
	size_t used = 0;
	if (size)
		text[0] = '\0';
	for (size_t i = 0; i < KEYS; i++) {
		if (used < size)
			used += (size_t)format_key(geometry, &keys[i], text + used, size - used);
		else
			used += (size_t)format_key(geometry, &keys[i], NULL, 0);
	}
	return used;
}

/* --- a machine's caches --------------------------------------------------- */

/* The model can't have all caches that exist: sliced caches have sets that are no power of two, and
 * a hypervisor may hide the ways.  Sizes matter most, so the number of ways is adapted to them. */

static uint64_t power_below(uint64_t value)
{
	uint64_t power = 1;
	while (power * 2 <= value)
		power *= 2;
	return power;
}

/* Returns true if the cache is taken as described. */
static bool take_cache(const struct vsim_cache_described *described, uint32_t line_bytes,
		       uint32_t sets_max, uint32_t lines_max, struct vsim_cache_geometry *cache)
{
	uint64_t lines = described->size_bytes / line_bytes;
	uint64_t ways = described->ways ? described->ways : cache->ways;
	if (!lines)
		return false;
	if (!ways)
		ways = 8;
	if (lines > lines_max)
		lines = lines_max;
	if (ways > VSIM_WAYS_MAX)
		ways = VSIM_WAYS_MAX;
	uint64_t sets = power_below(lines / ways ? lines / ways : 1);
	while (sets < sets_max && (lines + sets / 2) / sets > VSIM_WAYS_MAX)
		sets *= 2;
	if (sets > sets_max)
		sets = sets_max;
	ways = (lines + sets / 2) / sets;
	if (ways > VSIM_WAYS_MAX)
		ways = VSIM_WAYS_MAX;
	while (sets * ways > lines_max)
		ways--;
	*cache = (struct vsim_cache_geometry){ (uint32_t)sets, (uint32_t)ways };
	return sets * ways * line_bytes == described->size_bytes && ways == described->ways;
}

static const struct vsim_cache_described *find_cache(const struct vsim_cache_described *caches,
						     size_t count, unsigned level, char type)
{
	for (size_t i = 0; i < count; i++)
		if (caches[i].level == level && (caches[i].type == type || caches[i].type == 'U') &&
		    caches[i].size_bytes)
			return &caches[i];
	return NULL;
}

int vsim_geometry_of_caches(const struct vsim_cache_described *caches, size_t count,
			    const struct vsim_geometry *base, struct vsim_geometry *geometry)
{
	unsigned last = 0;
	int taken = 0;
	*geometry = base ? *base : *vsim_geometry_preset("generic");
	memset(geometry->name, 0, sizeof(geometry->name));
	memcpy(geometry->name, "this machine", sizeof("this machine"));
	for (size_t i = 0; i < count; i++)
		if (caches[i].level > last && caches[i].type == 'U' && caches[i].size_bytes)
			last = caches[i].level;
	const struct vsim_cache_described *l1d = find_cache(caches, count, 1, 'D'),
					  *l1i = find_cache(caches, count, 1, 'I');
	const struct vsim_cache_described *l2 = last > 2 ? find_cache(caches, count, 2, 'D') : NULL;
	uint32_t line = l1d ? l1d->line_bytes : 0;
	if (line >= 16 && line <= 256 && !(line & (line - 1)))
		geometry->line_bytes = line;
	line = geometry->line_bytes;
	if (l1d)
		taken += take_cache(l1d, line, VSIM_FIRST_SETS_MAX, VSIM_LINES_MAX, &geometry->l1d);
	if (l1i)
		taken += take_cache(l1i, line, VSIM_FIRST_SETS_MAX, VSIM_LINES_MAX, &geometry->l1i);
	if (l2)
		taken += take_cache(l2, line, VSIM_SETS_MAX, VSIM_LINES_MAX, &geometry->l2);
	/* The last level becomes the LLC.  If that is the second level, no L2 lies between it and
	 * the first. */
	if (last >= 2) {
		taken += take_cache(find_cache(caches, count, last, 'U'), line, VSIM_SETS_MAX,
				    VSIM_LINES_MAX, &geometry->llc);
		if (!l2)
			geometry->l2 = (struct vsim_cache_geometry){ 0 };
	}
	return taken;
}
