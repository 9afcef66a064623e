/* The events that a `stat` waits for: signals, ends of tasks, commands by --control, CPUs that come
 * online or go offline. */
#include "counting/stat_state.h"

#include "machine/cpu.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef PIDFD_THREAD
#define PIDFD_THREAD 0200 /* O_EXCL on machines that have perf events; since Linux 6.9 */
#endif

int64_t tally_stat_now_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void watch_task(struct tally_stat_state *run, pid_t pid, unsigned flags)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, flags);
	if (fd < 0 && errno == ESRCH)
		return;
	if (fd >= 0 &&
	    tally_vector_push(&run->waits, (struct pollfd){ .fd = fd, .events = POLLIN }) >= 0) {
		run->tasks_left++;
		return;
	}
	if (fd >= 0)
		close(fd);
	run->unwatched++;
}

static void watch_tasks(struct tally_stat_state *run)
{
	const struct tally_target *target = run->options->target;
	for (size_t i = 0; i < target->pids.count; i++)
		watch_task(run, target->pids.items[i], 0);
	for (size_t i = 0; i < target->threads.count; i++)
		watch_task(run, target->threads.items[i], PIDFD_THREAD);
}

/* True if the tasks without a pidfd have ended.  Old kernels have no pidfds (or none for threads),
 * so this is checked every tenth of a second. */
static bool unwatched_are_gone(const struct tally_stat_state *run)
{
	const struct tally_target *target = run->options->target;
	for (size_t i = 0; i < target->tids.count; i++)
		if (!kill(target->tids.items[i], 0) || errno == EPERM)
			return false;
	return true;
}

static void take_signal(struct tally_stat_state *run, const struct tally_signal *signal)
{
	if (signal->number == SIGCHLD) {
		if (run->spawn.pid && !run->has_ended &&
		    wait4(run->spawn.pid, &run->wait_status, WNOHANG, &run->rusage) ==
			    run->spawn.pid)
			run->has_ended = true;
		return;
	}
	if (signal->was_ignored)
		return;
	run->report.was_interrupted = true;
	if (!run->spawn.pid)
		run->should_stop = true;
	else if (!signal->from_terminal && !run->has_ended)
		kill(run->spawn.pid, signal->number);
}

static void say(struct tally_stat_state *run, const char *format, const char *argument)
	__attribute__((format(printf, 2, 0)));

static void say(struct tally_stat_state *run, const char *format, const char *argument)
{
	char text[512];
	snprintf(text, sizeof(text), format, argument);
	if (run->options->on_message)
		run->options->on_message(run->options->context, text);
}

static void switch_events(struct tally_stat_state *run, const char *name, bool enable)
{
	if (*name && !tally_counting_control_named(&run->counting, name, enable))
		say(run, "control: there is no event '%s'", name);
	else if (!*name && enable)
		tally_counting_enable(&run->counting);
	else if (!*name)
		tally_counting_disable(&run->counting);
	if (run->options->interval_ms) /* report what was counted so far, in the state before */
		tally_stat_interval(run);
}

static void obey(struct tally_stat_state *run, const struct tally_control_command *command)
{
	switch (command->verb) {
	case TALLY_CONTROL_ENABLE:
	case TALLY_CONTROL_DISABLE:
		switch_events(run, command->argument, command->verb == TALLY_CONTROL_ENABLE);
		break;
	case TALLY_CONTROL_STOP:
		run->should_stop = true;
		break;
	case TALLY_CONTROL_EVLIST:
		for (size_t i = 0; i < run->options->counting.event_count; i++)
			say(run, "%s", run->options->counting.events[i].name);
		break;
	case TALLY_CONTROL_SNAPSHOT:
		say(run, "control: '%s' is for recordings", "snapshot");
		break;
	case TALLY_CONTROL_UNKNOWN:
		say(run, "control: unknown command '%s' (enable, disable, ping, evlist, stop)",
		    command->argument);
		break;
	default:
		break;
	}
}

static void take_commands(struct tally_stat_state *run)
{
	struct tally_control *control = run->options->control;
	struct tally_control_command command;
	while (control && !run->should_stop && tally_control_next(control, &command)) {
		obey(run, &command);
		tally_control_acknowledge(control, &command);
	}
}

void tally_stat_check_online(struct tally_stat_state *run)
{
	struct tally_cpu_list online;
	if (!run->options->target->all ||
	    run->options->counting.provider != tally_provider_kernel())
		return;
	if (tally_cpu_list_read(TALLY_CPU_ONLINE, &online, NULL) < 0)
		return;
	tally_counting_set_online(&run->counting, &online);
	tally_cpu_list_release(&online);
}

void tally_stat_take_events(struct tally_stat_state *run)
{
	struct tally_signal signal;
	while (tally_signals_next(&run->signals, &signal))
		take_signal(run, &signal);
	take_commands(run);
	if (run->hotplug_fd >= 0 && tally_hotplug_has_news(run->hotplug_fd))
		tally_stat_check_online(run);
	for (size_t i = TALLY_STAT_WAIT_TASKS; i < run->waits.count; i++) {
		struct pollfd *wait = &run->waits.items[i];
		if (wait->fd < 0 || !wait->revents)
			continue;
		close(wait->fd);
		wait->fd = -1;
		run->tasks_left--;
	}
	const struct tally_target *target = run->options->target;
	if (!target->command && !target->every_thread && tally_target_has_tasks(target) &&
	    !run->tasks_left && (!run->unwatched || unwatched_are_gone(run)))
		run->has_ended = true;
}

void tally_stat_wait(struct tally_stat_state *run, int64_t deadline_ns)
{
	enum { ASK_NS = 100000000 };
	int64_t left = deadline_ns == INT64_MAX ? INT64_MAX : deadline_ns - tally_stat_now_ns();
	if (run->unwatched && left > ASK_NS)
		left = ASK_NS;
	if (left < 0)
		left = 0;
	if (run->options->control) /* the other side may have closed it for good */
		run->waits.items[TALLY_STAT_WAIT_CONTROL].fd = run->options->control->fd;
	struct timespec time = { .tv_sec = left / 1000000000, .tv_nsec = left % 1000000000 };
	if (ppoll(run->waits.items, run->waits.count, left == INT64_MAX ? NULL : &time, NULL) < 0)
		for (size_t i = 0; i < run->waits.count; i++)
			run->waits.items[i].revents = 0;
	tally_stat_take_events(run);
}

int tally_stat_open_waits(struct tally_stat_state *run)
{
	const struct tally_target *target = run->options->target;
	const struct tally_control *control = run->options->control;
	tally_vector_release(&run->waits);
	if (target->all && run->options->counting.provider == tally_provider_kernel() &&
	    run->hotplug_fd < 0)
		run->hotplug_fd = tally_hotplug_open();
	int fds[] = { [TALLY_STAT_WAIT_SIGNALS] = run->signals.fd,
		      [TALLY_STAT_WAIT_CONTROL] = control ? control->fd : -1,
		      [TALLY_STAT_WAIT_HOTPLUG] = run->hotplug_fd };
	for (size_t i = 0; i < TALLY_STAT_WAIT_TASKS; i++)
		if (tally_vector_push(&run->waits,
				      (struct pollfd){ .fd = fds[i], .events = POLLIN }) < 0)
			return -ENOMEM;
	if (!target->command && !target->every_thread)
		watch_tasks(run);
	return 0;
}

void tally_stat_close_waits(struct tally_stat_state *run)
{
	for (size_t i = TALLY_STAT_WAIT_TASKS; i < run->waits.count; i++)
		if (run->waits.items[i].fd >= 0)
			close(run->waits.items[i].fd);
	tally_vector_release(&run->waits);
	run->tasks_left = run->unwatched = 0;
}
