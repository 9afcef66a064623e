#include "counting.h"
const struct clause clauses_b_inherit[] = { { NULL, NULL, 0, NULL } };
