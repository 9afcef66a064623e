/* SPEC part C. */
#include "suite.h"

const struct clause clauses_c[] = { { NULL, NULL, 0, NULL } };
