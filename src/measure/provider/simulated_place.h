/* The build's knowledge of the simulated PMU's launcher and tool. */
#ifndef TALLY_PROVIDER_SIMULATED_PLACE_H
#define TALLY_PROVIDER_SIMULATED_PLACE_H

#include <stddef.h>

/* Returns the reason why they were not built, or NULL. */
const char *tally_simulated_absent(void);
/* Returns the folder where they are installed. */
const char *tally_simulated_installed(void);
/* Returns the same relative to the folder of the installed tally: for trees that were moved. */
const char *tally_simulated_relative(void);

#endif
