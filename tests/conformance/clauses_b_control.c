#include "counting.h"
const struct clause clauses_b_control[] = { { NULL, NULL, 0, NULL } };
