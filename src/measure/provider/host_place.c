/* The places of the hosts' files, as the build knows them, and looking for these files.  Only this
 * file is compiled with the paths. */
#include "provider/host_place.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

const struct tally_host_place tally_host_place_simulated = {
	.file = "vsim-launcher",
	.in_build = "src/engine/hosts/valgrind",
	.relative = VSIM_RELATIVE,
	.installed = VSIM_FOLDER,
	.absent = VSIM_ABSENT,
};

const struct tally_host_place tally_host_place_process = {
	.file = "libtally-process.so",
	.in_build = "src/engine/hosts/process",
	.relative = PROCESS_RELATIVE,
	.installed = PROCESS_FOLDER,
	.absent = PROCESS_ABSENT,
};

/* Finds the running tally; without /proc, by the path of its exec. */
static bool find_self(char path[PATH_MAX])
{
	const char *executed = (const char *)(uintptr_t)getauxval(AT_EXECFN);
	return realpath("/proc/self/exe", path) || (executed && realpath(executed, path));
}

static bool look(const struct tally_host_place *place, const char *base, const char *folder,
		 char *out, size_t size)
{
	char path[PATH_MAX], real[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s%s/%s", base, folder, place->file) >=
		    (int)sizeof(path) ||
	    access(path, R_OK) < 0 || !realpath(path, real))
		return false;
	*strrchr(real, '/') = '\0';
	return snprintf(out, size, "%s", real) < (int)size;
}

bool tally_host_place_find(const struct tally_host_place *place, char *out, size_t size)
{
	char self[PATH_MAX];
	if (find_self(self)) {
		strrchr(self, '/')[1] = '\0';
		if (look(place, self, place->in_build, out, size) ||
		    look(place, self, place->relative, out, size))
			return true;
	}
	return look(place, "", place->installed, out, size);
}

const char *tally_host_place_lack(const struct tally_host_place *place)
{
	char folder[PATH_MAX];
	if (place->absent[0])
		return place->absent;
	if (tally_host_place_find(place, folder, sizeof(folder)))
		return "";
	return "its files are neither beside tally nor where they were installed";
}
