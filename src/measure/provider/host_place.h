/* The places of the files that tally brings for its hosts: the simulated PMU's launcher and tool, and
 * the preloaded object. */
#ifndef TALLY_PROVIDER_HOST_PLACE_H
#define TALLY_PROVIDER_HOST_PLACE_H

#include <stdbool.h>
#include <stddef.h>

struct tally_host_place {
	const char *file;     /* a file that must be there */
	const char *in_build; /* folder below that of the build's tally */
	const char
		*relative; /* folder below that of the installed tally: for trees that were moved */
	const char *installed; /* folder, absolute */
	const char *absent;    /* the reason why the file was not built, or "" */
};

extern const struct tally_host_place tally_host_place_simulated, tally_host_place_process;

/* Finds the folder: in the build's tree, then in the installed place, relative to the running tally
 * and as the build had it.  Writes an absolute path without links.  Returns false if the file is in
 * none. */
bool tally_host_place_find(const struct tally_host_place *place, char *out, size_t size);

/* Returns the reason why there is no such file, or "".  Static. */
const char *tally_host_place_lack(const struct tally_host_place *place);

#endif
