#include "base/suggest.h"

#include <ctype.h>
#include <string.h>

enum { LENGTH_MAX = 63 };

static unsigned smaller(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned tally_edit_distance(const char *a, const char *b)
{
	unsigned rows[3][LENGTH_MAX + 1];
	size_t la = strnlen(a, LENGTH_MAX), lb = strnlen(b, LENGTH_MAX);
	unsigned *before = rows[0], *last = rows[1], *now = rows[2];

	for (size_t j = 0; j <= lb; j++)
		last[j] = (unsigned)j;
	for (size_t i = 1; i <= la; i++) {
		now[0] = (unsigned)i;
		for (size_t j = 1; j <= lb; j++) {
			int ca = tolower((unsigned char)a[i - 1]), cb = tolower((unsigned char)b[j - 1]);
			now[j] = smaller(last[j - 1] + (ca != cb), smaller(last[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) &&
			    cb == tolower((unsigned char)a[i - 2]))
				now[j] = smaller(now[j], before[j - 2] + 1);
		}
		unsigned *spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[lb];
}
