/* The command that was started, signals, and lines for the user. */
#include "recorder/recorder_session.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

uint64_t tally_recorder_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void tally_recorder_say(const struct tally_recorder_session *session, const char *format, ...)
{
	char text[512];
	va_list args;
	if (!session->options.say)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	session->options.say(session->options.context, text);
}

static bool command_runs(const struct tally_recorder_session *session)
{
	return session->spawn && session->spawn->pid > 0 && !session->command_ended;
}

/* Reaps the command, if it has ended, as an ordinary thread.  The kernel then removes the command's
 * entries of /proc, and spins while a thread of the command is in the middle of that
 * (shrink_dcache_parent()).  A real-time thread that spins may keep the other one from its CPU, until
 * the kernel stops it (sched_rt_runtime_us: after 0.95 s). */
static void reap(struct tally_recorder_session *session)
{
	siginfo_t ended = { .si_pid = 0 };
	struct sched_param priority = { .sched_priority = 0 }, ordinary = priority;
	if (!command_runs(session) ||
	    waitid(P_PID, (id_t)session->spawn->pid, &ended, WEXITED | WNOHANG | WNOWAIT) < 0 ||
	    !ended.si_pid)
		return;
	int policy = sched_getscheduler(0);
	bool is_real_time = !sched_getparam(0, &priority) && priority.sched_priority;
	if (is_real_time)
		sched_setscheduler(0, SCHED_OTHER, &ordinary);
	session->command_ended = wait4(session->spawn->pid, &session->wait_status, WNOHANG,
				       &session->command_used) == session->spawn->pid;
	if (is_real_time)
		sched_setscheduler(0, policy, &priority);
}

/* Signals the command; a stopped command is continued, so that it can end. */
static void signal_command(const struct tally_recorder_session *session, int number)
{
	if (!command_runs(session))
		return;
	kill(session->spawn->pid, number);
	kill(session->spawn->pid, SIGCONT);
}

static void take_user_signal(const struct tally_recorder_session *session, int number,
			     bool *asked_next)
{
	if (number == SIGUSR2 && session->options.next_output)
		*asked_next = true;
	else if (number == SIGUSR2)
		tally_recorder_say(session, "SIGUSR2 writes a file only with --switch-output or "
					    "--overwrite");
	else
		tally_recorder_say(session, "SIGUSR1 is ignored");
}

bool tally_recorder_take_signal(struct tally_recorder_session *session,
				const struct tally_signal *signal, bool *asked_next)
{
	if (signal->number == SIGCHLD) {
		reap(session);
		return false;
	}
	if (signal->number == SIGUSR1 || signal->number == SIGUSR2) {
		take_user_signal(session, signal->number, asked_next);
		return false;
	}
	if (!signal->ends)
		return false;
	if (signal->number == SIGXCPU)
		tally_recorder_say(session, "the limit of CPU time (ulimit -t) is reached: the "
					    "recording ends");
	/* A terminal's Ctrl-C reached the command directly.  SIGINT from elsewhere is passed on as
	 * SIGTERM: shells start background jobs with SIGINT ignored. */
	if (!signal->from_terminal)
		signal_command(session,
			       signal->number == SIGINT ? SIGTERM : signal->passed_on);
	return true;
}

unsigned tally_recorder_take_signals(struct tally_recorder_session *session,
				     struct tally_signals *signals)
{
	struct tally_signal signal;
	bool asked_next; /* no file is written here */
	unsigned asked = 0;
	while (tally_signals_next(signals, &signal))
		asked += tally_recorder_take_signal(session, &signal, &asked_next);
	return asked;
}

/* Gives the command 0.3 s to end: the signal that interrupted us may have reached it as well
 * (Ctrl-C, timeout). */
static bool ends_soon(struct tally_recorder_session *session)
{
	enum { ROUNDS = 30, ROUND_MS = 10 };
	for (unsigned i = 0; i < ROUNDS && command_runs(session); i++) {
		poll(NULL, 0, ROUND_MS);
		reap(session);
	}
	return !command_runs(session);
}

static void say_that_it_runs(const struct tally_recorder_session *session)
{
	const struct tally_recorder_options *options = &session->options;
	char line[256];
	snprintf(line, sizeof(line),
		 "the recording is complete; '%.100s' goes on: waiting for its end (Ctrl-C again "
		 "leaves it running)",
		 session->target->command[0]);
	if (options->say)
		options->say(options->context, line);
}

int tally_recorder_await_command(struct tally_recorder_session *session,
				 struct tally_signals *signals, enum tally_recorder_end end)
{
	if (end == TALLY_RECORDER_END_DURATION)
		signal_command(session, SIGTERM);
	if (end == TALLY_RECORDER_END_SIGNAL && !ends_soon(session))
		say_that_it_runs(session);
	for (reap(session); command_runs(session);) {
		struct pollfd wait = { .fd = signals->fd, .events = POLLIN };
		if (poll(&wait, 1, -1) < 0 && errno != EINTR)
			return -errno;
		if (tally_recorder_take_signals(session, signals))
			return ends_soon(session) ? 0 : -EINTR;
	}
	return 0;
}
