/* Stands in for files that are not written yet. */
#include "process/process_agent.h"

#define WEAK __attribute__((weak))

WEAK void process_signals_start(void)
{
}

