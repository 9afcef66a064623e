#include "suite.h"

const struct clause clauses_d_output[] = { { NULL, NULL, 0, NULL } };
