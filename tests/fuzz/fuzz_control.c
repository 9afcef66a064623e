/* Lines on `--control`'s descriptor: any bytes give commands that fit into the line's buffer, and
 * all bytes are read. */
#include "fuzz.h"

#include "session/session.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIPE_BYTES = 32768 }; /* size of a pipe without a reader */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int ends[2];
	char spec[32];
	/* on the heap, so that the sanitizer sees the line's end */
	struct tally_control *control = malloc(sizeof(*control));
	struct tally_control_command command;
	size_t taken = 0, lines = 0;
	if (size > PIPE_BYTES)
		size = PIPE_BYTES;
	if (!control || pipe(ends) < 0 || write(ends[1], data, size) != (ssize_t)size)
		abort();
	close(ends[1]);
	snprintf(spec, sizeof(spec), "fd:%d", ends[0]);
	if (tally_control_open(control, spec, NULL) < 0)
		abort();
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n' || !data[i];
	while (tally_control_next(control, &command) > 0) {
		if (!command.argument || strlen(command.argument) >= sizeof(control->line) ||
		    command.verb > TALLY_CONTROL_UNKNOWN)
			abort();
		tally_control_acknowledge(control, &command);
		taken++;
	}
	if (taken > lines || control->fd >= 0)
		abort();
	tally_control_release(control);
	close(ends[0]);
	/* The input is also tried as the value of --control itself. */
	char *text = strndup((const char *)data, size);
	if (text && strncmp(text, "fd:", 3) != 0 && strncmp(text, "fifo:", 5) != 0) {
		struct tally_error err = TALLY_ERROR_NONE;
		if (tally_control_open(control, text, &err) == 0 || !err.message[0])
			abort();
	}
	free(text);
	free(control);
	return 0;
}
