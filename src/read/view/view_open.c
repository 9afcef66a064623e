/* Chooses the recording if the user names none: by the kind of standard input, then by the files in
 * the working directory.  Also parses the arguments of commands that take one recording. */
#include "view/view_open.h"

#include <sys/stat.h>
#include <unistd.h>

/* True for a pipe or a file. Not for sockets: remote shells give one to every command. */
static bool standard_input_is_fed(void)
{
	struct stat status;
	return !fstat(STDIN_FILENO, &status) &&
	       (S_ISFIFO(status.st_mode) || S_ISREG(status.st_mode));
}

const char *tally_recording_path(const char *given)
{
	if (given)
		return given;
	if (standard_input_is_fed())
		return "-";
	return access("tally.data", R_OK) && !access("perf.data", R_OK) ? "perf.data"
									: "tally.data";
}

bool tally_recording_arguments(const struct tally_command *command, int argc, char **argv,
			       void *request, const char **input, int *status)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	while (tally_options_parse(&walk, request) && walk.index < argc &&
	       tally_options_take_file(&walk, input, 1,
				       "one recording at a time: '%s' is too many"))
		;
	*status = walk.status;
	return walk.status < 0;
}
