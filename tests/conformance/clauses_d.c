/* SPEC part D. */
#include "suite.h"

const struct clause clauses_d[] = { { NULL, NULL, 0, NULL } };
