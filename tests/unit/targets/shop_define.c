/* The only file that defines the shop's tracepoints: C99. */
#define TALLY_TRACE_DEFINE
#include "shop_tracepoints.h"
