/* The definitions compile as C++ too; this file is only compiled. */
#define TALLY_TRACE_DEFINE
#include "shop_tracepoints.h"
