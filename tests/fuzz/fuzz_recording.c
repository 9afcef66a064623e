/* A recording: any bytes, through script, script --records and report, with names and stacks.
 *
 * The paths that the bytes name are opened, as those of a stranger's recording would be. */
#include "../unit/recording_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	recording_walk(bytes, size);
	return 0;
}
