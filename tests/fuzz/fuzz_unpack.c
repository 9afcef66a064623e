/* Whole compressed files (.gnu_debugdata, modules): xz, zstd, gzip.  The result never exceeds the
 * limit. */
#include "fuzz.h"

#include "base/unpack.h"

#include <stdlib.h>
#include <string.h>

enum { SIZE_MAX_UNPACKED = 1 << 20 };

static volatile uint8_t sink; /* a destination, so that the reads happen */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *out, *copy = malloc(size ? size : 1);
	size_t out_size;
	if (!copy)
		abort();
	memcpy(copy, data, size);
	bool is_packed = tally_is_packed(copy, size);
	if (tally_unpack(copy, size, SIZE_MAX_UNPACKED, &out, &out_size) == 0) {
		if (!is_packed || out_size > SIZE_MAX_UNPACKED)
			abort();
		for (size_t i = 0; i < out_size; i += 64)
			sink = out[i];
		if (out_size)
			sink = out[out_size - 1];
		free(out);
	}
	free(copy);
	return 0;
}
