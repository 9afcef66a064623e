#include "counting.h"
const struct clause clauses_b_life[] = { { NULL, NULL, 0, NULL } };
