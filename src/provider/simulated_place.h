/* What the build knows of the simulated PMU's launcher and tool. */
#ifndef TALLY_PROVIDER_SIMULATED_PLACE_H
#define TALLY_PROVIDER_SIMULATED_PLACE_H

#include <stddef.h>

/* Why there are none, or NULL. */
const char *tally_simulated_absent(void);
/* The folder that they are installed to. */
const char *tally_simulated_installed(void);
/* The same, from the folder of the installed tally: for trees that were moved. */
const char *tally_simulated_relative(void);

#endif
