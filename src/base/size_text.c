#include "base/size_text.h"

#include <stdio.h>

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
