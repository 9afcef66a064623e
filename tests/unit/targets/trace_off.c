/* The cost of a hit without a listener: the test compares off_hit() with bare(), instruction by
 * instruction. */
#include "shop_tracepoints.h"

void off_hit(uint64_t id);
void bare(uint64_t id);

void off_hit(uint64_t id)
{
	TALLY_TRACE(work_done, id, 0, 0);
}

void bare(uint64_t id)
{
	(void)id;
}
