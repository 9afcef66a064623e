/* Finds the hierarchy's mount in the table of mounts, and opens a cgroup below it.  The walk over
 * all cgroups opens each directory from its parent, and follows no symbolic links. */
#include "session/session.h"

#include "base/buffer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* True if a comma-separated list contains the word. */
static bool has_word(const char *list, const char *word)
{
	for (; *list; list += strcspn(list, ","), list += *list == ',')
		if (strcspn(list, ",") == strlen(word) && !strncmp(list, word, strlen(word)))
			return true;
	return false;
}

/* /proc/mounts writes blanks in paths as \040. */
static void unescape(char *text)
{
	char *out = text;
	while (*text) {
		unsigned value = 0;
		bool is_octal = text[0] == '\\';
		for (int i = 1; i <= 3 && is_octal; i++) {
			is_octal = text[i] >= '0' && text[i] <= '7';
			value = value * 8 + (unsigned)(text[i] - '0');
		}
		*out++ = is_octal ? (char)value : *text;
		text += is_octal ? 4 : 1;
	}
	*out = 0;
}

/* Finds the mount of the hierarchy for perf events.  Version 1's, if it is mounted, has taken the
 * controller away from version 2's. */
static bool find_mount(const char *mounts, char path[PATH_MAX])
{
	char line[2 * PATH_MAX], where[PATH_MAX], type[32], options[1024];
	bool found = false;
	for (; *mounts; mounts += strcspn(mounts, "\n"), mounts += *mounts == '\n') {
		size_t length = strcspn(mounts, "\n"),
		       kept = length < sizeof(line) ? length : sizeof(line) - 1;
		memcpy(line, mounts, kept);
		line[kept] = '\0';
		if (sscanf(line, "%*s %4095s %31s %1023s", where, type, options) != 3)
			continue;
		bool is_v1 = !strcmp(type, "cgroup") && has_word(options, "perf_event");
		if (!is_v1 && (strcmp(type, "cgroup2") != 0 || found))
			continue;
		unescape(where);
		memcpy(path, where, strlen(where) + 1);
		found = true;
		if (is_v1)
			break;
	}
	return found;
}

int tally_cgroup_open_among(const char *mounts, const char *name, struct tally_error *err)
{
	char mount[PATH_MAX], path[2 * PATH_MAX];
	if (!find_mount(mounts, mount)) {
		tally_error_set(err, -ENOENT, "no cgroup hierarchy for perf events is mounted");
		tally_error_hint(err, "as root: mount -t cgroup2 none /sys/fs/cgroup");
		return -ENOENT;
	}
	if (snprintf(path, sizeof(path), "%s/%s", mount, name) >= PATH_MAX)
		return tally_error_set(err, -ENAMETOOLONG, "cgroup '%.64s…': the name is too long",
				       name);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	int code = -errno;
	if (code == -ENOENT) {
		tally_error_set(err, code, "no cgroup '%s' below %s", name, mount);
		tally_error_hint(
			err,
			"'systemd-cgls' or 'find %s -type d' lists them; /proc/PID/cgroup names "
			"a process's",
			mount);
		return code;
	}
	return tally_error_set(err, code, "cgroup %s: %s", path, tally_errno_text(code));
}

int tally_cgroup_open(const char *name, struct tally_error *err)
{
	struct tally_buffer mounts = { 0 };
	int result = tally_buffer_read_file(&mounts, AT_FDCWD, "/proc/self/mounts", 16 << 20);
	if (result < 0)
		tally_error_set(err, result, "/proc/self/mounts: %s", tally_errno_text(result));
	else
		result = tally_cgroup_open_among(tally_buffer_string(&mounts), name, err);
	tally_buffer_release(&mounts);
	return result;
}

/* ---- all of them --------------------------------------------------------- */

struct listing {
	int (*visit)(void *context, int fd, const char *path);
	void *context;
	char path[PATH_MAX]; /* below the mount; "" is the root */
};

/* Returns the kernel's id of a cgroup, which is its directory's file handle; 0 on failure. */
static uint64_t number_of(int folder)
{
	_Alignas(struct file_handle)
		uint8_t room[sizeof(struct file_handle) + sizeof(uint64_t)] = { 0 };
	struct file_handle *handle = (struct file_handle *)room;
	uint64_t id = 0;
	int mount;
	handle->handle_bytes = sizeof(id);
	if (!name_to_handle_at(folder, "", handle, &mount, AT_EMPTY_PATH) &&
	    handle->handle_bytes == sizeof(id))
		memcpy(&id, handle->f_handle, sizeof(id));
	return id;
}

static int list(struct listing *listing, int fd, size_t length);

static int list_child(struct listing *listing, DIR *folder, const struct dirent *entry,
		      size_t length)
{
	int added = snprintf(listing->path + length, sizeof(listing->path) - length, "/%s",
			     entry->d_name);
	if (entry->d_type != DT_DIR || entry->d_name[0] == '.' || added < 0 ||
	    (size_t)added >= sizeof(listing->path) - length)
		return 0;
	int fd = openat(dirfd(folder), entry->d_name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? 0 : list(listing, fd, length + (size_t)added);
}

/* Visits a directory and those below it.  Takes over the descriptor. */
static int list(struct listing *listing, int fd, size_t length)
{
	DIR *folder = fdopendir(fd);
	if (!folder) {
		close(fd);
		return 0;
	}
	int result = listing->visit(listing->context, fd, length ? listing->path : "/");
	for (const struct dirent *entry; !result && (entry = readdir(folder));)
		result = list_child(listing, folder, entry, length);
	closedir(folder);
	return result;
}

int tally_cgroup_walk(int fd, int (*visit)(void *context, int fd, const char *path), void *context)
{
	struct listing listing = { .visit = visit, .context = context };
	return list(&listing, fd, 0);
}

struct numbering {
	int (*visit)(void *context, uint64_t id, const char *path);
	void *context;
};

static int visit_number(void *context, int fd, const char *path)
{
	const struct numbering *numbering = context;
	uint64_t id = number_of(fd);
	return id ? numbering->visit(numbering->context, id, path) : 0;
}

int tally_cgroup_list(int (*visit)(void *context, uint64_t id, const char *path), void *context)
{
	struct numbering numbering = { visit, context };
	struct tally_error err = TALLY_ERROR_NONE;
	int fd = tally_cgroup_open("", &err);
	return fd < 0 ? fd : tally_cgroup_walk(fd, visit_number, &numbering);
}
