/* SPEC part E. */
#include "suite.h"

const struct clause clauses_e[] = { { NULL, NULL, 0, NULL } };
