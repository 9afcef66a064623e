/* A program with a part that matters: `tally stat --provider simulated --region` counts only the
 * look-ups, not the making of the table. */
#include <stdint.h>
#include <stdio.h>
#include <tally/roi.h>

enum { SLOTS = 1 << 16, LOOKUPS = 10000 };

static uint32_t table[SLOTS];

int main(void)
{
	uint32_t sum = 0, key = 1;
	for (uint32_t i = 0; i < SLOTS; i++)
		table[i] = i * 2654435761u;

	tally_roi_begin();
	for (int i = 0; i < LOOKUPS; i++) {
		key = table[key % SLOTS];
		sum += key;
	}
	tally_roi_end();

	printf("%u\n", sum);
	return 0;
}
