/* A JIT in a container writes the map into the container's /tmp and by the pid that it has there,
 * which /proc tells as long as the process runs.  The container may have put anything at the path,
 * so no symbolic link is followed, and the folder must be a folder. */
#include "task/perf_map_file.h"

#include "base/buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STATUS_BYTES_MAX = 1 << 16 };

/* Believed only when the process's owner (or root, or this user) wrote it. */
static bool is_trusted(int fd, uint32_t pid)
{
	char proc[32];
	struct stat map, process;
	if (fstat(fd, &map) < 0 || !S_ISREG(map.st_mode))
		return false;
	snprintf(proc, sizeof(proc), "/proc/%u", pid);
	return map.st_uid == geteuid() || !map.st_uid ||
	       (!stat(proc, &process) && process.st_uid == map.st_uid);
}

static int open_in(int folder, uint32_t pid)
{
	char name[32];
	snprintf(name, sizeof(name), "perf-%u.map", pid);
	return openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
}

/* The pid in the innermost namespace: the last number of "NStgid:". */
static uint32_t own_pid(uint32_t pid)
{
	char path[32];
	struct tally_buffer status = { 0 };
	uint32_t own = pid;
	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	if (!tally_buffer_read_file(&status, AT_FDCWD, path, STATUS_BYTES_MAX)) {
		const char *line = strstr(tally_buffer_string(&status), "\nNStgid:");
		for (char *at = line ? (char *)line + sizeof("\nNStgid:") - 1 : NULL;
		     at && *at == '\t';)
			own = (uint32_t)strtoul(at, &at, 10);
	}
	tally_buffer_release(&status);
	return own;
}

static int open_in_root(uint32_t pid)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%u/root", pid);
	int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int folder = root < 0 ? -1
			      : openat(root, "tmp", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int fd = folder < 0 ? -1 : open_in(folder, own_pid(pid));
	if (folder >= 0)
		close(folder);
	if (root >= 0)
		close(root);
	return fd;
}

static int open_map(uint32_t pid)
{
	int folder = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = folder < 0 ? -1 : open_in(folder, pid);
	if (folder >= 0)
		close(folder);
	return fd < 0 ? open_in_root(pid) : fd;
}

int tally_perf_map_open(uint32_t pid)
{
	int fd = open_map(pid);
	if (fd < 0 || is_trusted(fd, pid))
		return fd < 0 ? -ENOENT : fd;
	close(fd);
	return -EPERM;
}
