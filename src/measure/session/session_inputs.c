/* What a session waits for besides its events, through one descriptor. */
#include "session/session.h"

#include "base/terminal.h"
#include "machine/machine.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Watches a descriptor.  A regular file (fd:3 3<commands) can't be waited for (EPERM); its commands
 * are taken whenever something else happens. */
static bool watch(const struct tally_session_inputs *inputs, int fd)
{
	struct epoll_event readable = { .events = EPOLLIN };
	if (fd < 0)
		return true;
	return !epoll_ctl(inputs->fd, EPOLL_CTL_ADD, fd, &readable) || errno == EPERM;
}

int tally_session_inputs_open(struct tally_session_inputs *inputs, struct tally_signals *signals,
			      struct tally_control *control, bool follows_cpus,
			      struct tally_error *err)
{
	*inputs = TALLY_SESSION_INPUTS_INIT;
	inputs->signals = signals;
	inputs->control = control;
	inputs->fd = epoll_create1(EPOLL_CLOEXEC);
	if (inputs->fd >= 0 && follows_cpus)
		inputs->hotplug_fd = tally_hotplug_open();
	if (inputs->fd >= 0 && watch(inputs, signals->fd) &&
	    (!control || watch(inputs, control->fd)) && watch(inputs, inputs->hotplug_fd))
		return 0;
	int code = -errno;
	tally_session_inputs_close(inputs);
	return tally_error_set(err, code, "waiting for commands failed: %s",
			       tally_errno_text(code));
}

static int take_commands(struct tally_session_inputs *inputs,
			 const struct tally_session_handlers *handlers, void *context,
			 struct tally_error *err)
{
	struct tally_control *control = inputs->control;
	struct tally_control_command command;
	if (!control || control->fd < 0)
		return 0;
	int fd = control->fd, result = 0;
	while (!result && tally_control_next(control, &command)) {
		result = handlers->on_command(context, &command, err);
		tally_control_acknowledge(control, &command);
	}
	/* An inherited pipe stays open, and its end would wake us for ever. */
	if (control->fd < 0)
		epoll_ctl(inputs->fd, EPOLL_CTL_DEL, fd, NULL);
	return result < 0 ? result : 0;
}

int tally_session_inputs_take(struct tally_session_inputs *inputs,
			      const struct tally_session_handlers *handlers, void *context,
			      struct tally_error *err)
{
	struct tally_signal signal;
	while (tally_signals_next(inputs->signals, &signal))
		handlers->on_signal(context, &signal);
	return take_commands(inputs, handlers, context, err);
}

bool tally_session_inputs_cpus_changed(const struct tally_session_inputs *inputs)
{
	return inputs->hotplug_fd >= 0 && tally_hotplug_has_news(inputs->hotplug_fd);
}

void tally_session_inputs_close(struct tally_session_inputs *inputs)
{
	if (inputs->fd >= 0)
		close(inputs->fd);
	if (inputs->hotplug_fd >= 0)
		close(inputs->hotplug_fd);
	inputs->fd = inputs->hotplug_fd = -1;
}
