/* SPEC part F. */
#include "suite.h"

const struct clause clauses_f[] = { { NULL, NULL, 0, NULL } };
