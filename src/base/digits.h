/* Numbers to digits where printf(3) takes longer than all the rest: lines by the million.
 *
 * Digits are written backwards from `end`, without a NUL; their number is returned (at most 20 decimal, 16 hexadecimal,
 * 22 octal ones).
 */
#ifndef TALLY_BASE_DIGITS_H
#define TALLY_BASE_DIGITS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { TALLY_DIGITS_MAX = 24 };

static const char tally_digit_pairs[] =
	"0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
	"5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

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

/* `bits` of a digit: 4 hexadecimal, 3 octal; `digits` by value. */
static inline size_t tally_digits_binary(char *end, uint64_t value, unsigned bits, const char *digits)
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

/* printf's "%*lu" and "%*lx" forwards, at `out`; the first byte behind.  Room: the larger of `width` and
 * TALLY_DIGITS_MAX. */
static inline char *tally_put_digits(char *out, const char *end, size_t length, size_t width)
{
	if (length < width) {
		memset(out, ' ', width - length);
		out += width - length;
	}
	memcpy(out, end - length, length);
	return out + length;
}

static inline char *tally_put_decimal(char *out, uint64_t value, size_t width)
{
	char digits[TALLY_DIGITS_MAX], *end = digits + sizeof(digits);
	return tally_put_digits(out, end, tally_digits_decimal(end, value), width);
}

static inline char *tally_put_hexadecimal(char *out, uint64_t value, size_t width)
{
	char digits[TALLY_DIGITS_MAX], *end = digits + sizeof(digits);
	return tally_put_digits(out, end, tally_digits_hexadecimal(end, value), width);
}

#endif
