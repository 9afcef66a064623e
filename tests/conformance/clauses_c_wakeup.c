#include "suite.h"

const struct clause clauses_c_wakeup[] = { { NULL, NULL, 0, NULL } };
