/* Converts numbers to digits where printf(3) would take most of the time: for millions of lines.
 *
 * tally_digits_…: write backwards from `end`, and return the number of digits (at most 20 decimal,
 * 16 hexadecimal, 22 octal).  tally_put_…, tally_write_…: write forwards, and need room for
 * TALLY_DIGITS_MAX bytes more than they produce.  No NUL. */
#ifndef TALLY_BASE_DIGITS_H
#define TALLY_BASE_DIGITS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { TALLY_DIGITS_MAX = 24 };

static const char tally_digit_pairs[] =
	"0001020304050607080910111213141516171819"
	"2021222324252627282930313233343536373839"
	"4041424344454647484950515253545556575859"
	"6061626364656667686970717273747576777879"
	"8081828384858687888990919293949596979899";

/* Returns the number of decimal digits of a value. */
static inline unsigned tally_decimal_length(uint64_t value)
{
	static const uint64_t powers[] = { 0,
					   10,
					   100,
					   1000,
					   10000,
					   100000,
					   1000000,
					   10000000,
					   100000000,
					   1000000000,
					   10000000000u,
					   100000000000u,
					   1000000000000u,
					   10000000000000u,
					   100000000000000u,
					   1000000000000000u,
					   10000000000000000u,
					   100000000000000000u,
					   1000000000000000000u,
					   10000000000000000000u };
	unsigned about = (unsigned)(64 - __builtin_clzll(value | 1)) * 1233 >> 12; /* log10(2) */
	return about + (value >= powers[about]);
}

static inline unsigned tally_hexadecimal_length(uint64_t value)
{
	return (unsigned)(67 - __builtin_clzll(value | 1)) / 4;
}

static inline size_t tally_digits_decimal(char *end, uint64_t value)
{
	char *at = end;
	while (value > UINT32_MAX) { /* dividing half the bits takes half the time */
		at -= 2;
		memcpy(at, tally_digit_pairs + 2 * (value % 100), 2);
		value /= 100;
	}
	uint32_t rest = (uint32_t)value;
	while (rest >= 100) {
		at -= 2;
		memcpy(at, tally_digit_pairs + 2 * (rest % 100), 2);
		rest /= 100;
	}
	if (rest >= 10) {
		at -= 2;
		memcpy(at, tally_digit_pairs + 2 * rest, 2);
	} else {
		*--at = (char)('0' + rest);
	}
	return (size_t)(end - at);
}

/* Returns the value of a hexadecimal digit of either case; -1 for other characters. */
static inline int tally_hexadecimal_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* Writes backwards in a base of 2^bits: 4 for hexadecimal, 3 for octal.  `digits` has the character
 * of each value. */
static inline size_t tally_digits_binary(char *end, uint64_t value, unsigned bits,
					 const char *digits)
{
	char *at = end;
	do {
		*--at = digits[value & ((1u << bits) - 1)];
		value >>= bits;
	} while (value);
	return (size_t)(end - at);
}

static inline size_t tally_digits_hexadecimal(char *end, uint64_t value)
{
	return tally_digits_binary(end, value, 4, "0123456789abcdef");
}

/* Returns eight hexadecimal digits: each nibble is spread to a byte of its own. */
static inline uint64_t tally_hexadecimal_word(uint32_t value)
{
	const uint64_t ones = 0x0101010101010101;
	uint64_t word = value;
	word = (word << 16 | word) & 0x0000ffff0000ffff;
	word = (word << 8 | word) & 0x00ff00ff00ff00ff;
	word = (word << 4 | word) & 0x0f0f0f0f0f0f0f0f;
	word += '0' * ones + ((word + 6 * ones) >> 4 & ones) * ('a' - '0' - 10);
	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? word : __builtin_bswap64(word);
}

/* printf's "%lx" with `length` digits, forwards at `out`.  Returns the end.  May write 16 bytes. */
static inline char *tally_write_hexadecimal(char *out, uint64_t value, unsigned length)
{
	value <<= (64 - 4 * length) & 63;
	uint64_t high = tally_hexadecimal_word((uint32_t)(value >> 32)),
		 low = tally_hexadecimal_word((uint32_t)value);
	memcpy(out, &high, 8);
	memcpy(out + 8, &low, 8);
	return out + length;
}

/* printf's "%*lu" and "%*lx", forwards at `out`.  Return the end.  Room needed: the larger of
 * `width` and TALLY_DIGITS_MAX. */
static inline char *tally_put_decimal(char *out, uint64_t value, size_t width)
{
	size_t length = tally_decimal_length(value);
	if (length < width) {
		memset(out, ' ', width - length);
		out += width - length;
	}
	tally_digits_decimal(out + length, value);
	return out + length;
}

static inline char *tally_put_hexadecimal(char *out, uint64_t value, size_t width)
{
	unsigned length = tally_hexadecimal_length(value);
	if (length < width) {
		memset(out, ' ', width - length);
		out += width - length;
	}
	return tally_write_hexadecimal(out, value, length);
}

#endif
