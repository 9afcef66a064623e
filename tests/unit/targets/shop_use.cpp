/* Another file of the shop, in C++. */
#include "shop_tracepoints.h"

extern "C" void shop_order_from_cpp(uint64_t id);

void shop_order_from_cpp(uint64_t id)
{
	TALLY_TRACE(order_placed, id, -1, "c++", nullptr, 0);
}
