/* Finds tracefs.
 *
 * It may be mounted at /sys/kernel/tracing, or, as on old systems, below debugfs, or at a place of
 * the administrator's choice, or nowhere: containers and minimal systems often lack it.  A
 * privileged process needs no mount point: fsopen(2) and fsmount(2) make a mount that only a
 * descriptor leads to.  (Measured on 6.18: 60 us to make it, open it and read an id, 15 us to drop
 * it.)  Mounting over a path, as perf does, would change the system for everyone. */
#include "machine/machine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* From linux/mount.h, which conflicts with libc's sys/mount.h if both are included. */
enum { FSOPEN_CLOEXEC_ = 1, FSMOUNT_CLOEXEC_ = 1, FSCONFIG_CREATE = 6 };
enum { MOUNT_RDONLY = 1, MOUNT_NOSUID = 2, MOUNT_NODEV = 4, MOUNT_NOEXEC = 8 };

enum { MOUNTS_MAX = 1 << 24, FORMAT_MAX = 1 << 20 };

/* Opens the directory if it really is tracefs: an empty /sys/kernel/tracing exists even without the
 * mount. */
static int open_mounted(const char *path)
{
	struct statfs fs;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstatfs(fd, &fs) < 0 || fs.f_type != TRACEFS_MAGIC) {
		close(fd);
		return -ENOENT;
	}
	/* Listing needs only 'r' of the root; the directories below may still be closed. */
	if (faccessat(fd, "events", X_OK, AT_EACCESS) < 0) {
		int code = -errno;
		close(fd);
		return code;
	}
	return fd;
}

static int open_detached(void)
{
	long context = syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC_), mount = -1;
	if (context < 0)
		return -errno;
	if (syscall(SYS_fsconfig, (int)context, FSCONFIG_CREATE, NULL, NULL, 0) == 0)
		mount = syscall(SYS_fsmount, (int)context, FSMOUNT_CLOEXEC_,
				MOUNT_RDONLY | MOUNT_NOSUID | MOUNT_NODEV | MOUNT_NOEXEC);
	int code = -errno;
	if (mount >= 0)
		code = (int)mount;
	close((int)context);
	if (code < 0)
		return code;
	/* fsmount's descriptor is O_PATH: openat(2) may use it, but the directory itself can't be
	 * read by it. */
	int fd = openat(code, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	close(code);
	return fd;
}

/* Searches /proc/self/mounts: "tracefs /mnt/t tracefs rw,… 0 0", with blanks in paths as \040.
 * *where is the last path tried. */
static int open_anywhere(char *where, size_t size)
{
	struct tally_buffer mounts = { 0 };
	int result = tally_buffer_read_file(&mounts, AT_FDCWD, "/proc/self/mounts", MOUNTS_MAX);
	if (!result)
		result = -ENOENT;
	for (char *rest = mounts.bytes, *line;
	     rest && result == -ENOENT && (line = strsep(&rest, "\n"));) {
		strsep(&line, " ");
		char *path = strsep(&line, " "), *type = strsep(&line, " ");
		if (!type || strcmp(type, "tracefs") || strchr(path, '\\'))
			continue;
		result = open_mounted(path);
		snprintf(where, size, "%s", path);
	}
	tally_buffer_release(&mounts);
	return result;
}

/* The files below are 0440: a mount option mode=755 opens only the directories, gid= opens both
 * (measured on 6.18). */
static int explain(int mounted, const char *where, int detached, struct tally_error *err)
{
	if (mounted == -EACCES || mounted == -EPERM) {
		tally_error_set(err, -EACCES,
				"tracepoints are listed in %s, which only root may read", where);
		tally_error_hint(err, "run tally as root, or let your group read it: "
				      "sudo mount -o remount,mode=750,gid=$(id -g) %s", where);
		return -EACCES;
	}
	if (detached == -ENODEV) {
		tally_error_set(err, -ENODEV,
				"this kernel has no tracefs: it was built without tracing");
		return -ENODEV;
	}
	if (detached == -EPERM || detached == -EACCES || detached == -ENOSYS) {
		const char *takes_root = "", *or_as_root = "";
		if (detached != -ENOSYS) {
			takes_root = ", and mounting it takes root";
			or_as_root = ", or run tally as root (in a container: on the host)";
		}
		tally_error_set(err, -ENOENT, "tracefs, which lists tracepoints, is not mounted%s",
				takes_root);
		tally_error_hint(
			err,
			"sudo mount -t tracefs -o mode=750,gid=$(id -g) tracefs "
			"/sys/kernel/tracing%s",
			or_as_root);
		return -ENOENT;
	}
	tally_error_set(err, detached, "tracefs, which lists tracepoints, can't be mounted: %s",
			tally_errno_text(detached));
	tally_error_hint(err, "see what 'mount -t tracefs tracefs /sys/kernel/tracing' says");
	return detached;
}

int tally_tracefs_open(struct tally_error *err)
{
	char where[PATH_MAX] = "/sys/kernel/tracing";
	int mounted = open_mounted(where);
	if (mounted == -ENOENT) {
		snprintf(where, sizeof(where), "/sys/kernel/debug/tracing");
		mounted = open_mounted(where);
		if (mounted == -EACCES) /* debugfs is closed to us, but tracefs may be elsewhere */
			mounted = -ENOENT;
	}
	if (mounted >= 0)
		return mounted;
	int detached = open_detached();
	if (detached >= 0)
		return detached;
	if (mounted == -ENOENT)
		mounted = open_anywhere(where, sizeof(where));
	if (mounted >= 0)
		return mounted;
	return explain(mounted, where, detached, err);
}

/* Names come from the user: refuses those that would leave events/SYSTEM/NAME. */
static bool is_name(const char *name)
{
	return *name && *name != '.' && !strchr(name, '/');
}

static int event_path(char *path, size_t size, const char *system, const char *name,
		      const char *file)
{
	if (!is_name(system) || !is_name(name))
		return -ENOENT;
	int length = snprintf(path, size, "events/%s/%s/%s", system, name, file);
	if ((size_t)length < size)
		return 0;
	return -ENOENT;
}

int64_t tally_tracefs_tracepoint_id(int tracefs, const char *system, const char *name)
{
	char path[2 * NAME_MAX + 32], text[24];
	int code = event_path(path, sizeof(path), system, name, "id");
	if (code < 0)
		return code;
	int fd = openat(tracefs, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t length = read(fd, text, sizeof(text) - 1);
	code = -errno;
	close(fd);
	if (length < 0)
		return code;
	text[length] = '\0';
	char *end;
	long long id = strtoll(text, &end, 10);
	if (end == text || id < 0)
		return -EINVAL;
	return id;
}

int tally_tracefs_format(int tracefs, const char *system, const char *name,
			 struct tally_buffer *out)
{
	char path[2 * NAME_MAX + 32];
	int code = event_path(path, sizeof(path), system, name, "format");
	if (code < 0)
		return code;
	return tally_buffer_read_file(out, tracefs, path, FORMAT_MAX);
}

static DIR *open_directory(int parent, const char *path)
{
	int fd = openat(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = NULL;
	if (fd >= 0)
		directory = fdopendir(fd);
	if (!directory && fd >= 0)
		close(fd);
	return directory;
}

/* Returns the next entry that is a directory; there are files beside them ("enable", "filter"). */
static const char *next_directory(DIR *directory)
{
	for (struct dirent *entry; (entry = readdir(directory));)
		if (*entry->d_name != '.' &&
		    (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN))
			return entry->d_name;
	return NULL;
}

static DIR *open_system(int tracefs, const char *system)
{
	char path[NAME_MAX + 16];
	int length = snprintf(path, sizeof(path), "events/%s", system);
	if (!is_name(system) || (size_t)length >= sizeof(path)) {
		errno = ENOENT;
		return NULL;
	}
	return open_directory(tracefs, path);
}

static int walk_system(int tracefs, const char *system,
		       int (*visit)(void *context, const char *system, const char *name),
		       void *context)
{
	/* mostly formats of its own records, which have no id */
	bool tracer = !strcmp(system, "ftrace");
	int code = 0;
	DIR *directory = open_system(tracefs, system);
	if (!directory) {
		if (errno == EACCES)
			return -EACCES;
		return 0;
	}
	for (const char *name; !code && (name = next_directory(directory));)
		if (!tracer || tally_tracefs_tracepoint_id(tracefs, system, name) >= 0)
			code = visit(context, system, name);
	closedir(directory);
	return code;
}

int tally_tracefs_walk(int tracefs, const char *system,
		       int (*visit)(void *context, const char *system, const char *name),
		       void *context)
{
	int code = 0;
	if (system)
		return walk_system(tracefs, system, visit, context);
	DIR *events = open_directory(tracefs, "events");
	if (!events)
		return -errno;
	for (const char *name; !code && (name = next_directory(events));)
		code = walk_system(tracefs, name, visit, context);
	closedir(events);
	return code;
}
