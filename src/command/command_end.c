/* Prints what readers noted deep below the command: they can't print anything themselves. */
#include "command/command_end.h"

#include "base/input_limits.h"
#include "base/lost_pages.h"
#include "base/number_text.h"
#include "command/command.h"

#include <errno.h>
#include <stdio.h>

static void say_refused(const struct tally_command *command, enum tally_input input,
			const char *name, size_t count)
{
	const struct tally_input_row *row = &tally_input_rows[input];
	struct tally_error err = TALLY_ERROR_NONE;
	char more[64] = "", hint[TALLY_INPUT_HINT];
	if (count > 1)
		snprintf(more, sizeof(more), " (and %s more)", tally_number(count - 1));
	tally_error_set(&err, -EFBIG, "%s%s was left out: it is above the limit for %s", name, more,
			row->what);
	tally_error_hint(&err, "%s", tally_input_hint(input, tally_input_limit(input), hint));
	tally_command_fail(command, &err);
}

int tally_command_end(const struct tally_command *command, int status)
{
	struct tally_error err = TALLY_ERROR_NONE;
	enum tally_input input = 0;
	const char *name;
	size_t count;
	int failures = 0;
	for (; (count = tally_input_noted(&input, &name)); input = (enum tally_input)(input + 1)) {
		say_refused(command, input, name, count);
		failures++;
	}
	if (tally_lost_pages(&name) && tally_lost_pages_report()) {
		tally_error_set(&err, -EIO,
				"%s can't be read any more: it was truncated meanwhile, or its disk "
				"fails; the result may be wrong",
				name);
		tally_command_fail(command, &err);
		failures++;
	}
	if (failures && status == TALLY_EXIT_OK)
		return TALLY_EXIT_FAILURE;
	return status;
}
