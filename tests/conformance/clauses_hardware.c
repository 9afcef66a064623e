#include "hardware.h"
const struct clause clauses_hardware[] = { { 0 } };
