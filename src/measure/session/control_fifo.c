/* Opens the channel, splits its bytes into lines, parses the lines as commands, and answers them.
 * Each read and write polls first, because an inherited descriptor may be a blocking one. */
#include "session/session.h"

#include "base/output_path.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int bad_spec(const char *spec, struct tally_error *err)
{
	tally_error_set(err, -EINVAL, "'%s' is not a control channel", spec);
	tally_error_hint(
		err, "use fifo:CTL[,ACK] with paths of FIFOs, or fd:CTL[,ACK] with descriptors");
	return -EINVAL;
}

static int fail(const char *path, int code, struct tally_error *err)
{
	tally_error_set(err, code, "%s: %s", path, tally_errno_text(code));
	if (code == -ENOENT)
		tally_error_hint(err, "create it first: mkfifo %s", path);
	return code;
}

static int open_in_folder(const struct tally_output_path *path, struct tally_error *err)
{
	struct stat there;
	int found = tally_output_path_look(path, NULL, &there, err);
	if (found < 0)
		tally_error_hint(err, "name a FIFO that you made with mkfifo");
	if (found <= 0)
		return found < 0 ? found : fail(path->path, -ENOENT, err);
	int follow = path->is_open_file ? 0 : O_NOFOLLOW;
	int fd = openat(path->folder, path->name, O_RDWR | O_NONBLOCK | O_CLOEXEC | follow);
	if (fd < 0)
		return fail(path->path, -errno, err);
	if (!fstat(fd, &there) && S_ISFIFO(there.st_mode))
		return fd;
	close(fd);
	tally_error_set(err, -EINVAL, "%s is not a FIFO", path->path);
	tally_error_hint(err, "create one with mkfifo");
	return -EINVAL;
}

static int open_fifo(const char *name, struct tally_error *err)
{
	struct tally_output_path path;
	int fd = tally_output_path_open(&path, name, err);
	if (fd < 0) {
		tally_error_hint(err, "name a FIFO that you made with mkfifo");
		return fd;
	}
	fd = open_in_folder(&path, err);
	tally_output_path_close(&path);
	return fd;
}

static int take_fd(const char *text, struct tally_error *err)
{
	char *end;
	errno = 0;
	long fd = strtol(text, &end, 10);
	if (end == text || *end || errno || fd < 0 || fd > 1 << 30)
		return tally_error_set(err, -EINVAL, "'%s' is not a file descriptor",
				       text);
	if (fcntl((int)fd, F_GETFD) < 0)
		return tally_error_set(err, -EBADF, "descriptor %ld is not open", fd);
	return (int)fd;
}

int tally_control_open(struct tally_control *control, const char *spec, struct tally_error *err)
{
	char text[4096], *ack;
	const char *colon = strchr(spec, ':');
	*control = (struct tally_control)TALLY_CONTROL_INIT;
	control->owns = !strncmp(spec, "fifo:", 5);
	if (!colon || (!control->owns && strncmp(spec, "fd:", 3) != 0) || !colon[1] ||
	    strlen(colon + 1) >= sizeof(text))
		return bad_spec(spec, err);
	memcpy(text, colon + 1, strlen(colon + 1) + 1);
	ack = strchr(text, ',');
	if (ack)
		*ack++ = 0;
	if (!text[0] || (ack && !*ack))
		return bad_spec(spec, err);
	int (*open_one)(const char *, struct tally_error *) = control->owns ? open_fifo : take_fd;
	int result = open_one(text, err);
	if (result < 0)
		return result;
	control->fd = result;
	result = ack ? open_one(ack, err) : 0;
	if (result < 0) {
		tally_control_release(control);
		return result;
	}
	if (ack)
		control->ack_fd = result;
	return 0;
}

static void close_fd(const struct tally_control *control, int *fd)
{
	if (control->owns && *fd >= 0)
		close(*fd);
	*fd = -1;
}

static struct tally_control_command understand(char *line)
{
	static const struct {
		const char *word;
		enum tally_control_verb verb;
		bool has_argument;
	} verbs[] = {
		{ "enable", TALLY_CONTROL_ENABLE, true },
		{ "disable", TALLY_CONTROL_DISABLE, true },
		{ "snapshot", TALLY_CONTROL_SNAPSHOT, false },
		{ "stop", TALLY_CONTROL_STOP, false },
		{ "ping", TALLY_CONTROL_PING, false },
		{ "evlist", TALLY_CONTROL_EVLIST, true },
	};
	size_t length = strcspn(line, " \t");
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		const char *argument = line + length + strspn(line + length, " \t");
		if (strlen(verbs[i].word) == length && !memcmp(line, verbs[i].word, length) &&
		    (!*argument || verbs[i].has_argument))
			return (struct tally_control_command){ verbs[i].verb, argument };
	}
	return (struct tally_control_command){ TALLY_CONTROL_UNKNOWN, line };
}

/* Reads a byte without waiting, even if the descriptor is a blocking one.  Returns 1, 0 when there
 * is none, −1 when the other side has gone. */
static int next_byte(struct tally_control *control, char *byte)
{
	struct pollfd ready = { .fd = control->fd, .events = POLLIN };
	if (control->fd < 0 || poll(&ready, 1, 0) <= 0)
		return 0;
	ssize_t got = read(control->fd, byte, 1);
	if (got == 1)
		return 1;
	return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

int tally_control_next(struct tally_control *control, struct tally_control_command *out)
{
	char byte;
	int result;
	while ((result = next_byte(control, &byte)) > 0) {
		if (byte != '\n' && byte) {
			if (control->length + 1 < sizeof(control->line))
				control->line[control->length++] = byte;
			else
				control->is_too_long = true;
			continue;
		}
		while (control->length && strchr(" \t\r", control->line[control->length - 1]))
			control->length--;
		control->line[control->length] = 0;
		/* for example the newline of "echo" after a NUL */
		bool is_empty = !control->length;
		if (control->is_too_long)
			*out = (struct tally_control_command){ TALLY_CONTROL_UNKNOWN,
							       control->line };
		else
			*out = understand(control->line);
		control->length = 0;
		control->is_too_long = false;
		if (!is_empty)
			return 1;
	}
	if (result < 0)
		close_fd(control, &control->fd);
	return 0;
}

void tally_control_acknowledge(struct tally_control *control,
			       const struct tally_control_command *command)
{
	static const char answer[] = "ack\n"; /* with its NUL, as perf writes it */
	struct pollfd ready = { .fd = control->ack_fd, .events = POLLOUT };
	if (command->verb == TALLY_CONTROL_UNKNOWN || control->ack_fd < 0 ||
	    poll(&ready, 1, 0) <= 0)
		return;
	/* Writing would raise SIGPIPE. */
	bool is_gone = ready.revents & (POLLERR | POLLHUP | POLLNVAL);
	if (!is_gone && !(ready.revents & POLLOUT))
		return;
	if (is_gone || (write(control->ack_fd, answer, sizeof(answer)) < 0 && errno != EAGAIN &&
			errno != EINTR))
		close_fd(control, &control->ack_fd);
}

void tally_control_release(struct tally_control *control)
{
	close_fd(control, &control->fd);
	close_fd(control, &control->ack_fd);
}
