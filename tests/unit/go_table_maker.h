/* Makes Go's table of functions and lines in each of its formats, by hand.
 *
 * Two functions at 0x1000 and 0x1040, in files "a.go" and "b.go".  The first has line 10 up to
 * 0x1010, then 11 up to 0x1020, then 12.  From 0x1010 up to 0x1030, "main.inner" is inlined, and in
 * it, from 0x1020 on, "main.innermost": both are declared in b.go, lines 31 and 41 (from 1.18
 * on). */
#ifndef TALLY_TEST_GO_TABLE_MAKER_H
#define TALLY_TEST_GO_TABLE_MAKER_H

#include "base/buffer.h"
#include "object/object.h"

#include <endian.h>
#include <string.h>

enum { MADE_TEXT = 0x1000, MADE_END = 0x1080 };

struct made_table {
	struct tally_buffer bytes, trees;
	uint32_t version;
	unsigned word;
	bool swap;
};

static inline void put(const struct made_table *table, struct tally_buffer *out, uint64_t value,
		       unsigned size)
{
	bool is_big = table->swap == (__BYTE_ORDER == __LITTLE_ENDIAN);
	for (unsigned i = 0; i < size; i++)
		tally_buffer_char(out, (char)(value >> 8 * (is_big ? size - 1 - i : i)));
}

static inline void put_at(const struct made_table *table, size_t at, uint64_t value, unsigned size)
{
	struct tally_buffer field = { 0 };
	put(table, &field, value, size);
	memcpy(table->bytes.bytes + at, field.bytes, size);
	tally_buffer_release(&field);
}

static inline uint32_t put_text(struct tally_buffer *out, size_t base, const char *text)
{
	uint32_t at = (uint32_t)(out->length - base);
	tally_buffer_append(out, text, strlen(text) + 1);
	return at;
}

/* A sequence: pairs of a value and the number of bytes that have it; ends with a value below -1. */
static inline uint32_t put_values(struct tally_buffer *out, size_t base, const int *pairs)
{
	uint32_t at = (uint32_t)(out->length - base);
	int before = -1;
	for (; pairs[0] >= -1; pairs += 2) {
		int difference = pairs[0] - before;
		uint32_t zigzag = difference < 0 ? ~((uint32_t)difference << 1)
						 : (uint32_t)difference << 1;
		for (; zigzag >= 0x80; zigzag >>= 7)
			tally_buffer_char(out, (char)(zigzag | 0x80));
		tally_buffer_char(out, (char)zigzag);
		tally_buffer_char(out, (char)pairs[1]);
		before = pairs[0];
	}
	tally_buffer_char(out, 0);
	return at;
}

struct made_offsets {
	uint32_t names[4], files[2], values[3], functions[2], second[2];
	size_t functab;
};

static inline void put_parts(struct made_table *table, struct made_offsets *at)
{
	static const char *const NAMES[] = { "main.outer", "main.other", "main.inner",
					     "main.innermost" };
	static const int FILES[] = { 1, 16, 2, 32, 1, 16, -2, 0 },
			 LINES[] = { 10, 16, 31, 16, 41, 16, 12, 16, -2, 0 },
			 INLINED[] = { -1, 16, 0, 16, 1, 16, -1, 16, -2, 0 },
			 SECOND_FILES[] = { 2, 64, -2, 0 }, SECOND_LINES[] = { 77, 64, -2, 0 },
			 PLAIN_FILES[] = { 1, 64, -2, 0 },
			 PLAIN_LINES[] = { 10, 16, 11, 16, 12, 32, -2, 0 };
	struct tally_buffer *out = &table->bytes;
	bool is_old = table->version == TALLY_GO_1_2,
	     has_trees = table->version == TALLY_GO_1_18 || table->version == TALLY_GO_1_20;
	size_t header = 8 + (has_trees ? 8 : 7) * table->word, base;
	unsigned word = has_trees ? 4 : table->word;
	/* header */
	put(table, out, table->version, 4);
	put(table, out, 0, 2);
	put(table, out, 1, 1);
	put(table, out, table->word, 1);
	put(table, out, 2, table->word);
	at->functab = out->length;
	if (is_old) {
		for (unsigned i = 0; i < 5; i++)
			put(table, out, 0, table->word);
		put(table, out, 0, 4);
	}
	while (!is_old && out->length < header)
		put(table, out, 0, 1);
	unsigned field = 8 + 2 * table->word; /* behind the counts */
	if (!is_old)
		put_at(table, 8 + table->word, 2, table->word);
	if (has_trees) {
		put_at(table, field, MADE_TEXT, table->word);
		field += table->word;
	}
	/* names */
	base = is_old ? 0 : out->length;
	if (!is_old)
		put_at(table, field, base, table->word);
	for (unsigned i = 0; i < 4; i++)
		at->names[i] = put_text(out, base, NAMES[i]);
	/* files: by unit, from 1.16 on; numbers begin at 1, with a missing one before */
	if (is_old) {
		at->files[0] = put_text(out, 0, "a.go");
		at->files[1] = put_text(out, 0, "b.go");
		put_at(table, at->functab + 5 * table->word, out->length, 4);
		put(table, out, 3, 4);
		put(table, out, at->files[0], 4);
		put(table, out, at->files[1], 4);
	} else {
		put_at(table, field + table->word, out->length, table->word);
		put(table, out, 0xffffffff, 4); /* another unit's */
		put(table, out, 0xffffffff, 4);
		put(table, out, 0, 4);
		put(table, out, sizeof("a.go"), 4);
		put_at(table, field + 2 * table->word, out->length, table->word);
		put_text(out, 0, "a.go");
		put_text(out, 0, "b.go");
	}
	/* sequences */
	base = is_old ? 0 : out->length;
	if (is_old)
		tally_buffer_char(out, 0);
	else
		put_at(table, field + 3 * table->word, base, table->word);
	if (!is_old)
		tally_buffer_char(out, 0); /* offset 0 means none */
	at->values[0] = put_values(out, base, has_trees ? FILES : PLAIN_FILES);
	at->values[1] = put_values(out, base, has_trees ? LINES : PLAIN_LINES);
	at->values[2] = put_values(out, base, INLINED);
	at->second[0] = put_values(out, base, SECOND_FILES);
	at->second[1] = put_values(out, base, SECOND_LINES);
	if (is_old)
		return;
	at->functab = out->length;
	put_at(table, field + 4 * table->word, at->functab, table->word);
	for (unsigned i = 0; i < 5; i++)
		put(table, out, 0, word);
}

static inline void put_functions(struct made_table *table, struct made_offsets *at)
{
	struct tally_buffer *out = &table->bytes;
	bool has_trees = table->version == TALLY_GO_1_18 || table->version == TALLY_GO_1_20;
	unsigned word = has_trees ? 4 : table->word;
	uint64_t text = has_trees ? 0 : MADE_TEXT;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t start = text + 0x40 * i,
			 data = out->length - (table->version == TALLY_GO_1_2 ? 0 : at->functab);
		put_at(table, at->functab + 2 * i * word, start, word);
		put_at(table, at->functab + (2 * i + 1) * word, data, word);
		put(table, out, start, word);
		put(table, out, at->names[i], 4);
		put(table, out, 0, 4); /* arguments */
		put(table, out, 0, 4); /* deferreturn */
		put(table, out, 0, 4); /* sp */
		put(table, out, i ? at->second[0] : at->values[0], 4);
		put(table, out, i ? at->second[1] : at->values[1], 4);
		put(table, out, i ? 0 : 3, 4); /* pcdata */
		if (table->version != TALLY_GO_1_2)
			put(table, out, 1, 4); /* the unit */
		if (table->version == TALLY_GO_1_20)
			put(table, out, 9, 4);
		put(table, out, 0, 3);
		put(table, out, i ? 0 : 4, 1); /* funcdata */
		for (unsigned k = 0; !i && k < 7; k++)
			put(table, out, k == 2 ? at->values[2] : 0, 4);
	}
	put_at(table, at->functab + 4 * word, text + 0x80, word);
}

/* Makes a table; the caller releases both buffers. */
static inline void make_go_table(struct made_table *table, uint32_t version, unsigned word,
				 bool swap)
{
	struct made_offsets at = { 0 };
	*table = (struct made_table){ .version = version, .word = word, .swap = swap };
	put_parts(table, &at);
	put_functions(table, &at);
	/* calls: "main.inner" at line 11 of a.go, "main.innermost" at line 31 of b.go */
	for (int i = 0; i < 2 && version == TALLY_GO_1_18; i++) {
		put(table, &table->trees, (uint16_t)(i - 1), 2);
		put(table, &table->trees, 0, 2);
		put(table, &table->trees, (uint64_t)i + 1, 4);
		put(table, &table->trees, i ? 31 : 11, 4);
		put(table, &table->trees, at.names[2 + i], 4);
		put(table, &table->trees, 0, 4);
	}
	for (int i = 0; i < 2 && version == TALLY_GO_1_20; i++) {
		put(table, &table->trees, 0, 4);
		put(table, &table->trees, at.names[2 + i], 4);
		put(table, &table->trees, i ? 0x10 : 0xf, 4); /* the place of the call */
		put(table, &table->trees, 0, 4);
	}
}

#endif
