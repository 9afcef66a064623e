/* The places of launcher and tool, as the build knows them.  This is a file of its own since only
 * it is compiled with the paths. */
#include "provider/simulated_place.h"

#ifndef VSIM_ABSENT
#define VSIM_ABSENT ""
#endif

const char *tally_simulated_absent(void)
{
	return VSIM_ABSENT[0] ? VSIM_ABSENT : NULL;
}

const char *tally_simulated_installed(void)
{
	return VSIM_FOLDER;
}

const char *tally_simulated_relative(void)
{
	return VSIM_RELATIVE;
}
