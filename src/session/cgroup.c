#include "session/cgroup.h"

#include "base/buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A word of a comma-separated list. */
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

/* The hierarchy of perf events: version 1's, if it is mounted, has taken the controller from version 2's. */
static bool find_mount(const char *mounts, char path[PATH_MAX])
{
	char line[2 * PATH_MAX], where[PATH_MAX], type[32], options[1024];
	bool found = false;
	for (; *mounts; mounts += strcspn(mounts, "\n"), mounts += *mounts == '\n') {
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(mounts, "\n"), mounts);
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
		tally_error_set(err, -ENOENT, "no hierarchy of cgroups for perf events is mounted");
		tally_error_hint(err, "as root: mount -t cgroup2 none /sys/fs/cgroup");
		return -ENOENT;
	}
	if (snprintf(path, sizeof(path), "%s/%s", mount, name) >= PATH_MAX)
		return tally_error_set(err, -ENAMETOOLONG, "cgroup '%.64s…': the name is too long", name);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	int code = -errno;
	if (code == -ENOENT) {
		tally_error_set(err, code, "there is no cgroup '%s' below %s", name, mount);
		tally_error_hint(err, "'systemd-cgls' or 'find %s -type d' shows them; /proc/PID/cgroup says where a "
				      "process is", mount);
		return code;
	}
	return tally_error_set(err, code, "cgroup %s: %s", path, tally_errno_text(code));
}

int tally_cgroup_open(const char *name, struct tally_error *err)
{
	struct tally_buffer mounts = { 0 };
	int result = tally_buffer_read_file(&mounts, AT_FDCWD, "/proc/self/mounts", 16 << 20);
	result = result < 0 ? tally_error_set(err, result, "/proc/self/mounts: %s", tally_errno_text(result))
			    : tally_cgroup_open_among(tally_buffer_string(&mounts), name, err);
	tally_buffer_release(&mounts);
	return result;
}
