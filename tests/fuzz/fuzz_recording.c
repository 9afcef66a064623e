/* A recording of any bytes, through script, script --records and report, with names and stacks.
 *
 * It opens the paths that the bytes name, like those of a stranger's recording. */
#include "fuzz.h"

#include "../unit/recording_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	recording_walk(bytes, size, size ? bytes[size - 1] : 0);
	return 0;
}
