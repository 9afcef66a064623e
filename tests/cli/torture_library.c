/* A library that process_torture loads and unloads while it is sampled. */
#include <stdint.h>

uint64_t library_sum(unsigned count);
uint64_t library_sum(unsigned count)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < count; i++) {
		value = value * 3 + 1;
		__asm__ volatile("" : "+r"(value));
	}
	return value;
}
