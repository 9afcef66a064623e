#include "suite.h"

const struct clause clauses_d_page[] = { { NULL, NULL, 0, NULL } };
