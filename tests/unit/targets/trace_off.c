/* What a hit costs while nobody listens: off_hit() is compared with bare(), instruction by instruction. */
#include "shop_tracepoints.h"

void off_hit(uint64_t id);
void bare(uint64_t id);

void off_hit(uint64_t id)
{
	TALLY_TRACE(order_paid, id, 1, "pen", 0, 0);
}

void bare(uint64_t id)
{
	(void)id;
}
