/* Finds out what kind of program a file holds: any bytes are inspected, and none behind them. */
#include "fuzz.h"

#include "valgrind/vsim_program.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* exact size, so that the sanitizer sees reads beyond it */
	uint8_t *exact = malloc(size ? size : 1);
	if (!exact)
		return 0;
	memcpy(exact, data, size);
	enum vsim_program kind = vsim_program_look(exact, size);
	if (kind > VSIM_PROGRAM_AVX512 || (kind == VSIM_PROGRAM_AVX512 && size < 64))
		abort();
	free(exact);
	return 0;
}
