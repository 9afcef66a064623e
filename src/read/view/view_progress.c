/* Writes one line over and over, and looks for a pending SIGINT each time, which it keeps blocked
 * from the first file to the last. */
#include "view/view_progress.h"

#include "base/terminal.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* From the first file to the last, SIGINT is blocked: Ctrl-C cancels the download, not tally. */
static bool is_interrupted(bool ends)
{
	sigset_t interrupt;
	const struct timespec now = { 0 };
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	sigprocmask(SIG_BLOCK, &interrupt, NULL);
	bool is_there = sigtimedwait(&interrupt, NULL, &now) == SIGINT;
	if (ends)
		sigprocmask(SIG_UNBLOCK, &interrupt, NULL);
	return is_there;
}

static bool show(void *context, const char *object, uint64_t bytes, uint64_t total)
{
	const double megabyte = 1e6;
	char clean[64], size[64] = "";
	(void)context;
	bool goes_on = !is_interrupted(!*object);
	if (!tally_terminal_knows_escapes(STDERR_FILENO))
		return goes_on;
	tally_terminal_clean_name(object, clean, sizeof(clean));
	if (total >= bytes && total)
		snprintf(size, sizeof(size), ", %.1f of %.1f MB", (double)bytes / megabyte,
			 (double)total / megabyte);
	else if (bytes)
		snprintf(size, sizeof(size), ", %.1f MB", (double)bytes / megabyte);
	if (*object && goes_on)
		fprintf(stderr, "\rdebuginfod: %.32s%s (Ctrl-C skips it)\x1b[K", clean,
			size);
	else
		fputs("\r\x1b[K", stderr);
	return goes_on;
}

void tally_fetch_progress_use(struct tally_name_sources *sources)
{
	sources->fetching = show;
}
