#include "command/recording_warnings.h"

#include "base/buffer.h"
#include "base/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void tally_command_warn(const struct tally_command *command, const struct tally_recording *recording)
{
	struct tally_buffer warnings = { 0 };
	tally_profile_warnings(recording, &warnings);
	char *clean = malloc(warnings.length + 1);
	if (clean)
		tally_terminal_clean(tally_buffer_string(&warnings), clean, warnings.length + 1);
	for (const char *line = clean ? clean : ""; *line; line += strcspn(line, "\n") + 1)
		fprintf(stderr, "tally %s: warning: %.*s\n", command->name, (int)strcspn(line, "\n"), line);
	free(clean);
	tally_buffer_release(&warnings);
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void tally_command_progress_start(struct tally_command_progress *progress)
{
	const char *term = getenv("TERM");
	*progress = (struct tally_command_progress){
		.started = now(),
		.is_terminal = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0,
	};
}

void tally_command_progress(void *context, double share)
{
	const double a_moment = 0.5, between = 0.1; /* seconds */
	struct tally_command_progress *progress = context;
	double time = progress->is_terminal ? now() : 0;
	if (!progress->is_terminal || time - progress->started < a_moment || time - progress->shown < between)
		return;
	double left = share > 0 ? (time - progress->started) * (1 - share) / share : 0;
	fprintf(stderr, "\rreading: %3.0f%%, %.0f s left \x1b[K", 100 * share, left);
	progress->shown = time;
	progress->visible = true;
}

void tally_command_progress_end(struct tally_command_progress *progress)
{
	if (progress->visible)
		fputs("\r\x1b[K", stderr);
	progress->visible = false;
}
