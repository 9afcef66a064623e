/* Groups digits by thousands, scales sizes to binary units, and parses sizes with overflow
 * checks. */
#include "base/number_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void tally_number_group(const char *digits, char *out, size_t size)
{
	size_t whole = strcspn(digits, "."), used = 0;
	for (size_t i = 0; digits[i] && used + 2 < size; i++) {
		if (i && i < whole && (whole - i) % 3 == 0 && digits[i - 1] != '-')
			out[used++] = ',';
		out[used++] = digits[i];
	}
	out[used] = 0;
}

const char *tally_number_text(uint64_t number, char out[TALLY_NUMBER_TEXT])
{
	char digits[24];
	snprintf(digits, sizeof(digits), "%" PRIu64, number);
	tally_number_group(digits, out, TALLY_NUMBER_TEXT);
	return out;
}

const char *tally_size_text(uint64_t bytes, char out[TALLY_SIZE_TEXT])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double value = (double)bytes;
	unsigned unit = 0;
	for (; value >= 1023.5 && unit < 4; unit++)
		value /= 1024;
	snprintf(out, TALLY_SIZE_TEXT, value < 9.95 && unit ? "%.1f %s" : "%.0f %s", value,
		 units[unit]);
	return out;
}

bool tally_size_parse(const char *text, size_t length, uint64_t *bytes)
{
	static const char units[] = "kKmMgG";
	uint64_t value = 0;
	size_t at = 0;
	for (; at < length && text[at] >= '0' && text[at] <= '9'; at++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text[at] - '0'), &value))
			return false;
	unsigned shift = 0;
	if (at && at + 1 == length) {
		const char *unit = memchr(units, text[at++], 6);
		if (!unit)
			return false;
		shift = 10 * (1 + (unsigned)(unit - units) / 2);
	}
	if (!at || at != length || value > UINT64_MAX >> shift)
		return false;
	*bytes = value << shift;
	return true;
}
