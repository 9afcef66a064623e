/* Tries each folder of PATH with access(2).  A command with a slash is tried as it is. */
#include "session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

/* Finds the file that execvp(3) would run.  Returns 0 when there is none. */
static int find_program(const char *path, const char *command, char *out, size_t size)
{
	if (strchr(command, '/'))
		return snprintf(out, size, "%s", command) < (int)size && !access(out, X_OK);
	if (!path)
		path = "/bin:/usr/bin";
	while (*path) {
		int length = (int)strcspn(path, ":");
		int need;
		if (length) /* an empty entry is the working folder */
			need = snprintf(out, size, "%.*s/%s", length, path, command);
		else
			need = snprintf(out, size, "./%s", command);
		if (need < (int)size && !access(out, X_OK))
			return 1;
		path += length + (path[length] == ':');
	}
	return 0;
}

bool tally_program_is_there(const char *path, const char *command)
{
	char file[PATH_BYTES];
	return find_program(path, command, file, sizeof(file));
}
