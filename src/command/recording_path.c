#include "command/recording_path.h"

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

bool old_recording_arguments(const struct tally_command *command, int argc, char **argv,
			       tally_option_taker *take, void *request, const char **input,
			       int *status)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	struct tally_error err = TALLY_ERROR_NONE;
	int id;
	while ((id = tally_options_next(&walk)) != TALLY_OPTION_DONE ||
	       (!walk.dashes && walk.index < argc && !*input)) {
		if (id == TALLY_OPTION_HELP || id == TALLY_OPTION_ERROR) {
			*status = id == TALLY_OPTION_HELP ? TALLY_EXIT_OK : TALLY_EXIT_USAGE;
			return false;
		}
		if (id == TALLY_OPTION_DONE) {
			*input = tally_options_file(&walk);
			if (!*input) {
				*status = TALLY_EXIT_USAGE;
				return false;
			}
		} else if (take(request, id, walk.value, &err) < 0) {
			*status = tally_command_misused(command, &err);
			return false;
		}
	}
	if (walk.index < argc && !*input && !(*input = tally_options_file(&walk))) { /* after -- */
		*status = TALLY_EXIT_USAGE;
		return false;
	}
	if (walk.index < argc)
		*status = tally_command_misuse(command, "one recording at a time: '%s' is too many",
					       argv[walk.index]);
	return walk.index == argc;
}

bool tally_recording_arguments(const struct tally_command *command, int argc, char **argv,
			       void *request, const char **input, int *status)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	while (tally_options_parse(&walk, request) && walk.index < argc) {
		if (*input)
			walk.status = tally_command_misuse(
				command, "one recording at a time: '%s' is too many",
				argv[walk.index]);
		else if (!(*input = tally_options_file(&walk)))
			walk.status = TALLY_EXIT_USAGE;
		if (walk.status >= 0)
			break;
	}
	*status = walk.status;
	return walk.status < 0;
}
