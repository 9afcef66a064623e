#include "counting.h"
const struct clause clauses_b_groups[] = { { NULL, NULL, 0, NULL } };
