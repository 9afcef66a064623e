#include "suite.h"

const struct clause clauses_c_records[] = { { NULL, NULL, 0, NULL } };
