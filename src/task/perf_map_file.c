/* A JIT in a container writes the map into the container's /tmp, under the pid that it has there.
 * /proc leads to both while the process runs.  Tools outside of the container may have written the
 * map to our /tmp, under our pid, so that place comes second.
 *
 * Maps stay when their processes end, and pids are reused.  A map that is older than the process
 * belongs to an earlier one.
 *
 * The container may have put anything at the path.  So no symbolic link is followed, and the folder
 * must be a folder. */
#include "task/perf_map_file.h"

#include "base/buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { STATUS_BYTES_MAX = 1 << 16 };

/* Starts are known to a tick, and the clock may have been set since boot. */
static const uint64_t SLACK_NS = 1000000000;

static uint64_t nanoseconds(struct timespec time)
{
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Returns a process's start (CLOCK_REALTIME, ns), or 0 when it has ended.  The kernel gives it in
 * ticks since boot (proc_pid_stat(5), field 22). */
static uint64_t start_of(uint32_t pid)
{
	char path[32];
	struct tally_buffer text = { 0 };
	uint64_t ticks = 0;
	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	if (!tally_buffer_read_file(&text, AT_FDCWD, path, STATUS_BYTES_MAX)) {
		const char *field = strrchr(tally_buffer_string(&text), ')'); /* ends field 2 */
		for (unsigned i = 2; field && i < 22; i++)
			field = strchr(field + 1, ' ');
		ticks = field ? strtoull(field, NULL, 10) : 0;
	}
	tally_buffer_release(&text);
	struct timespec real, boot;
	if (!ticks || clock_gettime(CLOCK_REALTIME, &real) || clock_gettime(CLOCK_BOOTTIME, &boot))
		return 0;
	uint64_t booted_ns = nanoseconds(real) - nanoseconds(boot);
	return booted_ns + ticks * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* True if the map was last written before the process began: it is that of an earlier process with
 * the same number.  The inode's change time counts, which no program sets back. */
static bool is_older(const struct stat *map, uint32_t pid, uint64_t not_before_ns)
{
	uint64_t start_ns = start_of(pid);
	if (!start_ns)
		start_ns = not_before_ns;
	return nanoseconds(map->st_ctim) + SLACK_NS < start_ns;
}

/* True if the process's owner, root or this user wrote the map. */
static bool is_trusted(const struct stat *map, uint32_t pid)
{
	char proc[32];
	struct stat process;
	if (!S_ISREG(map->st_mode))
		return false;
	snprintf(proc, sizeof(proc), "/proc/%u", pid);
	return map->st_uid == geteuid() || !map->st_uid ||
	       (!stat(proc, &process) && process.st_uid == map->st_uid);
}

static int open_in(int folder, uint32_t pid)
{
	char name[32];
	snprintf(name, sizeof(name), "perf-%u.map", pid);
	return openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
}

/* Returns the pid in the innermost namespace: the last number of "NStgid:". */
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

static int open_in_tmp(uint32_t pid)
{
	int folder = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = folder < 0 ? -1 : open_in(folder, pid);
	if (folder >= 0)
		close(folder);
	return fd;
}

static int checked(int fd, uint32_t pid, uint64_t not_before_ns)
{
	struct stat map;
	if (fd < 0)
		return -ENOENT;
	bool is_its = !fstat(fd, &map) && !is_older(&map, pid, not_before_ns);
	if (is_its && is_trusted(&map, pid))
		return fd;
	close(fd);
	return is_its ? -EPERM : -ENOENT;
}

int tally_perf_map_open(uint32_t pid, uint64_t not_before_ns)
{
	int own = checked(open_in_root(pid), pid, not_before_ns);
	if (own >= 0)
		return own;
	int fd = checked(open_in_tmp(pid), pid, not_before_ns);
	return fd == -ENOENT ? own : fd;
}
