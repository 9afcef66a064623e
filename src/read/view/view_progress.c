/* Lines on a terminal that are written over and over, and erased at the end: while a recording is
 * read, and while debug files are fetched. */
#include "view/view.h"

#include "base/terminal.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- reading ------------------------------------------------------------- */

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void tally_view_progress_start(struct tally_view_progress *progress)
{
	*progress = (struct tally_view_progress){
		.started = now(),
		.is_terminal = tally_terminal_knows_escapes(STDERR_FILENO),
	};
}

#define ERASE_LINE "\r\x1b[K"

/* Otherwise the line would precede the shell's prompt. */
static void erase_and_end(int signal_number)
{
	ssize_t written = write(STDERR_FILENO, ERASE_LINE, sizeof(ERASE_LINE) - 1);
	(void)written;
	raise(signal_number); /* SA_RESETHAND: this ends the program */
}

static void erase_on_signals(bool on)
{
	static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction action, before;
	for (unsigned i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
		memset(&action, 0, sizeof(action));
		sigemptyset(&action.sa_mask);
		action.sa_flags = on ? (int)SA_RESETHAND : 0;
		action.sa_handler = on ? erase_and_end : SIG_DFL;
		/* Leave signals that are ignored or handled otherwise. */
		if (!sigaction(ending[i], NULL, &before) &&
		    before.sa_handler == (on ? SIG_DFL : erase_and_end))
			sigaction(ending[i], &action, NULL);
	}
}

void tally_view_progress(void *context, double share)
{
	const double a_moment = 1, between = 0.1; /* seconds */
	struct tally_view_progress *progress = context;
	if (!progress->is_terminal)
		return;
	double time = now();
	if (time - progress->started < a_moment || time - progress->shown < between)
		return;
	double left = 0;
	if (share > 0)
		left = (time - progress->started) * (1 - share) / share;
	fprintf(stderr, "\rreading: %3.0f%%, %.0f s left \x1b[K", 100 * share, left);
	progress->shown = time;
	if (!progress->visible)
		erase_on_signals(true);
	progress->visible = true;
}

void tally_view_progress_end(struct tally_view_progress *progress)
{
	if (progress->visible) {
		fputs(ERASE_LINE, stderr);
		erase_on_signals(false);
	}
	progress->visible = false;
}

void tally_view_progress_record(struct tally_view_progress *progress,
				const struct tally_recording *recording,
				const struct tally_raw_record *raw)
{
	enum { EVERY = 16384 };
	uint64_t size = tally_perfdata_size(recording->data);
	if (progress->is_terminal && size && !(recording->counts.records % EVERY))
		tally_view_progress(progress, (double)raw->file_offset / (double)size);
}

/* ---- fetching ------------------------------------------------------------ */

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

bool tally_view_fetching(void *context, const char *object, uint64_t bytes, uint64_t total)
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
