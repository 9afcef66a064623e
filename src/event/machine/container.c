/* Reads all marks first, then decides from them alone, so that tests can provide marks.  The
 * cgroup's path counts most. */
#include "machine/machine.h"

#include "base/environment.h"
#include "base/extremes.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool foreign_namespace(const char *path, ino_t initial)
{
	struct stat status;
	return !stat(path, &status) && status.st_ino != initial;
}

static bool read_start(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t length = read(fd, out, size - 1);
	close(fd);
	out[tally_max_i64(length, 0)] = 0;
	return length > 0;
}

void tally_container_marks_read(struct tally_container_marks *out)
{
	const char *variable = tally_environment("container");
	*out = (struct tally_container_marks){
		.foreign_pid_namespace = foreign_namespace("/proc/self/ns/pid", 0xEFFFFFFCu),
		.foreign_user_namespace = foreign_namespace("/proc/self/ns/user", 0xEFFFFFFDu),
		.dockerenv = !access("/.dockerenv", F_OK),
		.containerenv = !access("/run/.containerenv", F_OK),
		.kubernetes_environment = tally_environment("KUBERNETES_SERVICE_HOST") != NULL,
	};
	if (!read_start("/run/systemd/container", out->manager, sizeof(out->manager)) && variable)
		snprintf(out->manager, sizeof(out->manager), "%s", variable);
	out->manager[strcspn(out->manager, "\n")] = 0;
	if (!read_start("/proc/1/cgroup", out->cgroup, sizeof(out->cgroup)))
		read_start("/proc/self/cgroup", out->cgroup, sizeof(out->cgroup));
}

static enum tally_container_kind kind_by_name(const char *text)
{
	static const struct { const char *word; enum tally_container_kind kind;
	} words[] = {
		{ "kubepods", TALLY_CONTAINER_KUBERNETES },
		{ "libpod", TALLY_CONTAINER_PODMAN },
		{ "podman", TALLY_CONTAINER_PODMAN },
		{ "docker", TALLY_CONTAINER_DOCKER },
		{ "lxc", TALLY_CONTAINER_LXC },
		{ "systemd-nspawn", TALLY_CONTAINER_NSPAWN },
	};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(text, words[i].word))
			return words[i].kind;
	return TALLY_CONTAINER_NONE;
}

/* Looks for a runtime's own directory in the path, not for a service with a similar name
 * ("/system.slice/docker.service"). */
static enum tally_container_kind kind_by_cgroup(const char *cgroup)
{
	static const struct { const char *part; enum tally_container_kind kind;
	} parts[] = {
		{ "/kubepods", TALLY_CONTAINER_KUBERNETES },
		{ "/libpod-", TALLY_CONTAINER_PODMAN },
		{ "/docker/", TALLY_CONTAINER_DOCKER },
		{ "/docker-", TALLY_CONTAINER_DOCKER },
		{ "/lxc/", TALLY_CONTAINER_LXC },
		{ "/lxc.payload", TALLY_CONTAINER_LXC },
	};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(cgroup, parts[i].part))
			return parts[i].kind;
	return TALLY_CONTAINER_NONE;
}

enum tally_container_kind tally_container_kind_of(const struct tally_container_marks *marks)
{
	enum tally_container_kind kind = kind_by_cgroup(marks->cgroup);
	if (kind)
		return kind;
	if (!marks->foreign_pid_namespace &&
	    !(marks->foreign_user_namespace && marks->containerenv))
		return TALLY_CONTAINER_NONE;
	if (marks->kubernetes_environment)
		return TALLY_CONTAINER_KUBERNETES;
	kind = kind_by_name(marks->manager);
	if (kind)
		return kind;
	if (marks->containerenv)
		return TALLY_CONTAINER_PODMAN;
	if (marks->dockerenv)
		return TALLY_CONTAINER_DOCKER;
	return TALLY_CONTAINER_OTHER;
}

const char *tally_container_kind_text(enum tally_container_kind kind)
{
	static const char *const texts[] = {
		[TALLY_CONTAINER_NONE] = "none",     [TALLY_CONTAINER_DOCKER] = "docker",
		[TALLY_CONTAINER_PODMAN] = "podman", [TALLY_CONTAINER_KUBERNETES] = "kubernetes",
		[TALLY_CONTAINER_LXC] = "lxc",       [TALLY_CONTAINER_NSPAWN] = "systemd-nspawn",
		[TALLY_CONTAINER_OTHER] = "other",
	};
	return texts[kind];
}
