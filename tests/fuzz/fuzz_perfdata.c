/* A recording of any bytes: reads it in file order and by time, decodes each record, and touches
 * each feature.
 *
 * clang -fsanitize=fuzzer,address,undefined …; seeds in tests/corpus/perfdata. */
#include "fuzz.h"

#include "../unit/perfdata_walk.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	for (int ordered = 0; ordered < 2; ordered++) {
		struct tally_perfdata *data;
		if (tally_perfdata_open_memory(bytes, size, &data, NULL) < 0)
			return 0;
		perfdata_walk(data, ordered);
		tally_perfdata_close(data);
	}
	return 0;
}
