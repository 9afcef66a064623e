/* The probes that read files: kernel symbols, tracefs. */
#include "machine/probe.h"

#include "machine/tracefs.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

int tally_probe_kallsyms(void)
{
	char text[4096];
	int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t length = read(fd, text, sizeof(text));
	close(fd);
	/* x86's first symbols may be per-CPU offsets, which are zero for every user: one digit
	 * other than 0 is enough. */
	for (ssize_t i = 0; i < length;) {
		const char *line = text + i;
		while (i < length && text[i] != ' ' && text[i] != '\n')
			if (text[i++] != '0')
				return 1;
		const char *newline = memchr(line, '\n', (size_t)(text + length - line));
		if (!newline)
			break;
		i = newline + 1 - text;
	}
	return length > 0 ? 0 : -1;
}

static bool is_tracefs(const char *path)
{
	enum { TRACEFS = 0x74726163 }; /* linux/magic.h */
	struct statfs status;
	return !statfs(path, &status) && status.f_type == TRACEFS;
}

/* Finds a mount at another place than the usual two, in the table of mounts. */
static void find_mount(char *out, size_t size)
{
	char line[1024], path[512], type[64];
	bool found = false;
	FILE *mounts = fopen("/proc/self/mounts", "re");
	while (mounts && !found && fgets(line, sizeof(line), mounts))
		if (sscanf(line, "%*s %511s %63s", path, type) == 2 && !strcmp(type, "tracefs"))
			found = snprintf(out, size, "%s", path) < (int)size;
	if (mounts)
		fclose(mounts);
}

static bool kernel_has_tracefs(void)
{
	char line[128];
	bool found = false;
	FILE *types = fopen("/proc/filesystems", "re");
	while (types && !found && fgets(line, sizeof(line), types))
		found = strstr(line, "\ttracefs\n") != NULL;
	if (types)
		fclose(types);
	return found;
}

void tally_probe_tracefs(struct tally_trace_probe *out)
{
	static const char *const usual[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	*out = (struct tally_trace_probe){ .in_kernel = kernel_has_tracefs() };
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]) && !out->path[0]; i++)
		if (is_tracefs(usual[i]))
			snprintf(out->path, sizeof(out->path), "%s", usual[i]);
	if (!out->path[0])
		find_mount(out->path, sizeof(out->path));
	int directory = tally_tracefs_open(NULL);
	int64_t id = directory < 0
			     ? directory
			     : tally_tracefs_tracepoint_id(directory, "sched", "sched_switch");
	if (directory >= 0)
		close(directory);
	out->read_errno = id < 0 ? (int)-id : 0;
	out->id = id < 0 ? 0 : (uint64_t)id;
}
