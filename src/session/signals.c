#include "session/signals.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

int tally_signals_open(struct tally_signals *signals, struct tally_error *err)
{
	sigset_t set;
	memset(signals, 0, sizeof(*signals));
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
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

int tally_signals_add(struct tally_signals *signals, int number, struct tally_error *err)
{
	sigset_t one;
	sigemptyset(&one);
	sigaddset(&one, number);
	sigaddset(&signals->taken, number);
	if (sigprocmask(SIG_BLOCK, &one, NULL) < 0 || signalfd(signals->fd, &signals->taken, 0) < 0)
		return tally_error_set(err, -errno, "signalfd: %s", tally_errno_text(errno));
	return 0;
}

static bool is_ending(int number)
{
	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
		if (ending[i] == number)
			return true;
	return false;
}

static bool is_twin(struct tally_signals *signals, int number)
{
	const uint64_t twin_ns = 200000000;
	struct timespec time;
	if (!is_ending(number))
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
	bool from_terminal = info.ssi_code == SI_KERNEL;
	*out = (struct tally_signal){
		.number = (int)info.ssi_signo,
		.from_terminal = from_terminal,
		.was_ignored = from_terminal && info.ssi_signo < 65 &&
			       signals->ignored[info.ssi_signo],
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
