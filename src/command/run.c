/* tally run: starts a command whose programs may count themselves where the kernel refuses it. */
#include "command/command.h"
#include "provider/provider.h"
#include "session/session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

struct running {
	struct tally_provider *provider;
	struct tally_signals signals;
	struct tally_spawn spawn;
	int wait_status;
};

static const struct tally_option options[] = {
	TALLY_OPTIONS_END,
};

/* Waits for the command's end, and passes signals on that were sent to tally alone. */
static void wait_for_command(struct running *running)
{
	struct pollfd signals = { .fd = running->signals.fd, .events = POLLIN };
	struct tally_signal signal;
	while (poll(&signals, 1, -1) >= 0 || errno == EINTR) {
		while (tally_signals_next(&running->signals, &signal)) {
			if (signal.number != SIGCHLD && !signal.from_terminal)
				kill(running->spawn.pid, signal.passed_on);
		}
		if (waitpid(running->spawn.pid, &running->wait_status, WNOHANG) ==
		    running->spawn.pid)
			return;
	}
}

static int start(struct running *running, char **command, struct tally_error *err)
{
	char **executed;
	int result = tally_spawn_command(running->provider, command, &executed, err);
	if (result >= 0)
		result = tally_spawn_prepare(&running->spawn, running->provider, executed,
					     &running->signals.before, err);
	if (result >= 0)
		result = tally_spawn_go(&running->spawn, executed, err);
	return result;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	struct running running = { .spawn = TALLY_SPAWN_INIT };
	struct tally_error err = TALLY_ERROR_NONE;
	tally_options_parse(&walk, &running);
	if (walk.status >= 0)
		return walk.status;
	if (walk.index >= argc)
		return tally_command_misuse(command, "name a command to run");
	const struct tally_provider_ops *ops = tally_provider_find("process", 0);
	if (tally_provider_make(ops, "process", NULL, &running.provider, &err) < 0)
		return tally_command_fail(command, &err);
	int status = TALLY_EXIT_FAILURE, result = tally_signals_open(&running.signals, &err);
	if (result >= 0) {
		result = start(&running, argv + walk.index, &err);
		status = tally_spawn_failure_status(result);
	}
	if (result >= 0) {
		wait_for_command(&running);
		status = tally_spawn_exit_status(running.wait_status);
		running.spawn.pid = 0;
	} else {
		tally_command_fail(command, &err);
	}
	tally_spawn_release(&running.spawn);
	tally_signals_release(&running.signals);
	running.provider->ops->release(running.provider);
	return status;
}

const struct tally_command tally_command_run = {
	.name = "run",
	.summary = "run a command whose programs count themselves",
	.usage = "[--] command [argument…]",
	.details =
		"Programs that use perf_event_open(2) on themselves work under 'tally run' where the "
		"kernel\n"
		"refuses it: in containers, sandboxes and on hardened machines.  Each call asks the "
		"kernel first.\n"
		"When it answers EPERM, EACCES or ENOSYS, tally's own perf_event subsystem answers, "
		"inside the\n"
		"program: software events of its threads and children, read, mmap, poll, signals, "
		"samples by\n"
		"CPU time.  Hardware events get ENOENT, as on a machine without a PMU.  docs/process.md "
		"lists what\n"
		"differs from the kernel.  The exit status is the command's.\n\n"
		"  tally run -- ./self_profiling_program\n"
		"  tally run -- python3 -c 'import mylib; mylib.count()'",
	.options = options,
	.rarely_reads_files = true,
	.run = run,
};
