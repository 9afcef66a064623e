#include "suite.h"

const struct clause clauses_c_trailer[] = { { NULL, NULL, 0, NULL } };
