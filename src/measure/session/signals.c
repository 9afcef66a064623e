/* Blocks the signals, reads them from a signalfd, and decides which ones end the session.  A signal
 * that was ignored before has no effect, unless a process sends one that is meant for the command
 * as well. */
#include "session/session.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The first PASSED_ON of them are meant for the command as well. */
static const int ending[] = { SIGINT,  SIGTERM, SIGHUP,    SIGQUIT, SIGXCPU,
			      SIGALRM, SIGPROF, SIGVTALRM, SIGIO,   SIGPWR };
enum { ENDING = sizeof(ending) / sizeof(ending[0]), PASSED_ON = 4 };

int tally_signals_open(struct tally_signals *signals, struct tally_error *err)
{
	sigset_t set;
	memset(signals, 0, sizeof(*signals));
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	for (size_t i = 0; i < ENDING; i++) {
		struct sigaction action;
		sigaddset(&set, ending[i]);
		if (!sigaction(ending[i], NULL, &action))
			signals->ignored[ending[i]] = action.sa_handler == SIG_IGN;
	}
	/* With SIGCHLD ignored (daemons do that, and exec keeps it), children would leave no status
	 * to wait for. */
	sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = SIG_DFL }, &signals->child_before);
	sigprocmask(SIG_BLOCK, &set, &signals->before);
	signals->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals->fd < 0) {
		int code = -errno;
		sigprocmask(SIG_SETMASK, &signals->before, NULL);
		return tally_error_set(err, code, "signalfd: %s", tally_errno_text(code));
	}
	signals->taken = set;
	return 0;
}

/* Returns its place in `ending`, or ENDING. */
static size_t find_ending(int number)
{
	size_t i = 0;
	while (i < ENDING && ending[i] != number)
		i++;
	return i;
}

static bool is_twin(struct tally_signals *signals, int number)
{
	const uint64_t twin_ns = 200000000;
	struct timespec time;
	if (find_ending(number) == ENDING)
		return false;
	clock_gettime(CLOCK_MONOTONIC, &time);
	uint64_t now_ns = (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec,
		 *first_ns = &signals->first_ns[number];
	bool follows = *first_ns && now_ns - *first_ns < twin_ns;
	if (!follows)
		*first_ns = now_ns;
	return follows;
}

int tally_signals_next(struct tally_signals *signals, struct tally_signal *out)
{
	struct signalfd_siginfo info;
	do {
		if (read(signals->fd, &info, sizeof(info)) != sizeof(info))
			return 0;
	} while (is_twin(signals, (int)info.ssi_signo));
	int number = (int)info.ssi_signo;
	size_t place = find_ending(number);
	bool is_for_both = place < PASSED_ON;
	bool from_terminal = is_for_both && info.ssi_code == SI_KERNEL;
	bool is_ignored = (from_terminal || !is_for_both) && signals->ignored[number];
	*out = (struct tally_signal){
		.number = number,
		.passed_on = is_for_both ? number : SIGTERM,
		.from_terminal = from_terminal,
		.ends = place < ENDING && !is_ignored,
	};
	return 1;
}

void tally_signals_release(struct tally_signals *signals)
{
	if (signals->fd < 0)
		return;
	close(signals->fd);
	signals->fd = -1;
	sigaction(SIGCHLD, &signals->child_before, NULL);
	sigprocmask(SIG_SETMASK, &signals->before, NULL);
}
