/* Makes the running kernel create things that records report: mappings of files, control groups,
 * code. */
#include "surface_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads the GNU build-id note of a file.  Returns its size, or 0. */
static uint8_t build_id_of(const char *path, uint8_t id[20])
{
	static const uint8_t head[] = { 4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0 };
	uint8_t start[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, start, sizeof(start));
	if (fd >= 0)
		close(fd);
	const uint8_t *note = length > 0 ? memmem(start, (size_t)length, head, sizeof(head)) : NULL;
	if (!note || note + sizeof(head) + 20 > start + length)
		return 0;
	memcpy(id, note + sizeof(head), 20);
	return 20;
}

int kernel_mapped_file(struct surface *surface, struct surface_file *file)
{
	const char *path = surface->ops->mapped_path(surface);
	struct stat status;
	if (stat(path, &status) < 0)
		return -errno;
	file->inode = status.st_ino;
	file->build_id_size = build_id_of(path, file->build_id);
	return 0;
}

int kernel_cgroup_id(struct surface *surface, int fd, uint64_t *id)
{
	struct stat status;
	(void)surface;
	if (fstat(fd, &status) < 0)
		return -errno;
	*id = status.st_ino;
	return 0;
}

int kernel_make_cgroup(struct surface *surface, const char *name, uint64_t *id)
{
	struct stat status;
	int directory = kernel_cgroup(surface), code = 0;
	if (directory < 0)
		return directory;
	if (mkdirat(directory, name, 0755) < 0 || fstatat(directory, name, &status, 0) < 0)
		code = -errno;
	unlinkat(directory, name, AT_REMOVEDIR);
	close(directory);
	if (!code)
		*id = status.st_ino;
	return code;
}

/* Loads a BPF program, if the kernel compiles them. */
int kernel_make_ksymbol(struct surface *surface, struct surface_ksymbol *symbol)
{
	enum { KSYMBOL_BPF = 1 };
	struct kernel_surface *kernel = kernel_of(surface);
	if (!symbol) {
		close(kernel->program);
		return 0;
	}
	kernel->program = kernel_bpf_program(surface, true);
	*symbol = (struct surface_ksymbol){ .type = KSYMBOL_BPF, .name_start = "bpf_prog_" };
	return kernel->program < 0 ? -EOPNOTSUPP : 0;
}

/* A tracepoint's first user makes the kernel turn jumps into nops, or nops into jumps.  So this
 * chooses one that no other program uses. */
int kernel_poke_text(struct surface *surface, struct surface_text_poke *poke)
{
	static const char *const rare[] = { "oom:oom_score_adj_update", "module:module_request",
					    "signal:signal_deliver" };
	(void)poke;
	for (unsigned i = 0; i < sizeof(rare) / sizeof(rare[0]); i++) {
		long id = kernel_tracepoint(surface, rare[i]);
		if (id < 0)
			continue;
		struct tally_attr attr = { .type = TALLY_TYPE_TRACEPOINT,
					   .size = sizeof(attr),
					   .config = (uint64_t)id };
		int fd = surface->ops->open(surface, &attr, 0, -1, -1, 0);
		if (fd >= 0)
			close(fd);
		return fd < 0 ? -EOPNOTSUPP : 0;
	}
	return -EOPNOTSUPP;
}

int kernel_other_file(struct surface *surface)
{
	(void)surface;
	return STDOUT_FILENO;
}
