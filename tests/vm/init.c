/* PID 1 of the guest machine: runs one program and powers off.
 *
 * The initrd contains this as /init, the program as /program, and its arguments in /arguments, each
 * terminated by a NUL.  The program's output is between "guest: begin" and "guest: end STATUS";
 * `run` extracts it from the console's. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 64, ARGUMENTS_BYTES_MAX = 4096 };

static const struct {
	const char *kind, *path;
} mounts[] = {
	{ "proc", "/proc" },
	{ "sysfs", "/sys" },
	{ "devtmpfs", "/dev" },
	{ "tracefs", "/sys/kernel/tracing" },
	{ "tmpfs", "/tmp" },
};

static void mount_all(void)
{
	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		mkdir(mounts[i].path, 0755);
		if (mount(mounts[i].kind, mounts[i].path, mounts[i].kind, 0, NULL) < 0 &&
		    errno != EBUSY)
			fprintf(stderr, "guest: cannot mount %s: %s\n", mounts[i].path,
				strerror(errno));
	}
	chmod("/tmp", 01777);
}

/* Keeps the console from turning "\n" into "\r\n". */
static void take_console(void)
{
	int fd = open("/dev/console", O_RDWR);
	if (fd < 0)
		return;
	struct termios how;
	if (tcgetattr(fd, &how) == 0) {
		cfmakeraw(&how);
		tcsetattr(fd, TCSANOW, &how);
	}
	for (int i = 0; i < 3; i++)
		dup2(fd, i);
	if (fd > 2)
		close(fd);
}

/* Debian's kernel starts at level 3, which only Debian has and which refuses everything.  2 is the
 * kernel's own default. */
static void set_paranoid(void)
{
	int fd = open("/proc/sys/kernel/perf_event_paranoid", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "2", 1) != 1)
		perror("guest: perf_event_paranoid");
	if (fd >= 0)
		close(fd);
}

static int read_arguments(char *bytes, char *arguments[ARGUMENTS_MAX + 1])
{
	int fd = open("/arguments", O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, bytes, ARGUMENTS_BYTES_MAX);
	if (fd >= 0)
		close(fd);
	if (size <= 0 || bytes[size - 1])
		return -1;
	int count = 0;
	for (char *at = bytes; at < bytes + size && count < ARGUMENTS_MAX; at += strlen(at) + 1)
		arguments[count++] = at;
	arguments[count] = NULL;
	return count;
}

static int run_program(char **arguments)
{
	pid_t child = fork();
	if (child == 0) {
		setsid();
		execv("/program", arguments);
		perror("guest: /program");
		_exit(127);
	}
	int status = 0;
	pid_t ended;
	do // orphans come to PID 1
		ended = wait(&status);
	while (ended != child && (ended > 0 || errno == EINTR));
	if (ended != child)
		return 126;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(void)
{
	char bytes[ARGUMENTS_BYTES_MAX], *arguments[ARGUMENTS_MAX + 1];
	mount_all();
	take_console();
	set_paranoid();
	setvbuf(stdout, NULL, _IOLBF, 0);
	int status = 126;
	puts("guest: begin");
	if (read_arguments(bytes, arguments) < 0)
		fputs("guest: /arguments cannot be read\n", stderr);
	else
		status = run_program(arguments);
	printf("\nguest: end %d\n", status);
	tcdrain(STDOUT_FILENO);
	reboot(RB_POWER_OFF);
	return 1;
}
