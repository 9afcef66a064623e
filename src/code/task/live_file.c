/* Looks for the file in four places: at its path, in the process's map_files, below its root, and
 * at its exe link.  How much proof a file needs depends on the place where it was found. */
#include "task/task.h"

#include "machine/machine.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROC_PATH_MAX = 96, OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

struct search {
	const struct tally_tasks *tasks;
	const struct tally_mapped_file *file;
	const char *path;
	uint32_t pid; /* a thread of the process that has its mappings in /proc; 0: it has ended */
};

static bool same_as_ours(uint32_t pid, const char *name)
{
	char path[PROC_PATH_MAX];
	struct stat theirs, ours;
	snprintf(path, sizeof(path), "/proc/self/%s", name);
	if (stat(path, &ours) < 0)
		return true;
	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	return stat(path, &theirs) < 0 ||
	       (theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino);
}

static bool is_alive(uint32_t pid)
{
	char path[PROC_PATH_MAX];
	snprintf(path, sizeof(path), "/proc/%u", pid);
	return pid && pid <= INT32_MAX && access(path, F_OK) == 0;
}

static bool fits(const struct search *search, int fd)
{
	struct tally_object *object;
	if (tally_object_open_descriptor(fd, search->path, &object, NULL) < 0)
		return false;
	const struct tally_file_times now = { 0 };
	bool is_it = tally_file_believe(search->tasks, search->file, object, &now, false) ==
		     TALLY_FILE_SAME;
	tally_object_unref(object);
	return is_it;
}

/* The verdict on a file that neither build-id nor inode identifies. */
enum unproven { IS_OTHER, IS_IT_IF_IT_FITS, IS_IT };

/* Returns the descriptor, or closes it and returns -1. */
static int if_mapped(const struct search *search, int fd, enum unproven unproven)
{
	struct tally_object_file found;
	struct tally_build_id id;
	if (fd < 0)
		return -1;
	enum tally_file_identity identity = TALLY_FILE_OTHER_INODE;
	if (!tally_object_look(fd, &found, &id))
		identity = tally_file_identify(search->tasks, search->file, &found, &id);
	bool is_it = identity == TALLY_FILE_SAME ||
		     (identity == TALLY_FILE_UNPROVEN &&
		      (unproven == IS_IT || (unproven == IS_IT_IF_IT_FITS && fits(search, fd))));
	if (is_it)
		return fd;
	close(fd);
	return -1;
}

static int open_here(const struct search *search)
{
	/* We can't tell which files an ended task saw. */
	bool is_ours = !search->pid || (same_as_ours(search->pid, "ns/mnt") &&
					same_as_ours(search->pid, "root"));
	enum unproven unproven = IS_OTHER;
	if (!search->file->inode)
		unproven = IS_IT;
	else if (is_ours)
		unproven = IS_IT_IF_IT_FITS;
	return if_mapped(search, open(search->path, OPEN_FLAGS), unproven);
}

/* ---- map_files: one link for each mapping, "START-END" ------------------- */

/* True if the link's text is the path.  The inode can't tell: file systems in layers show another
 * one. */
static bool is_called(int directory, const char *name, const char *path)
{
	char link[4096];
	ssize_t length = readlinkat(directory, name, link, sizeof(link));
	return length > 0 && (size_t)length == strlen(path) && !memcmp(link, path, (size_t)length);
}

/* mprotect(2) or munmap(2) may have cut the mapping since, so take any that overlaps. */
static int open_by_map(const struct search *search)
{
	const struct tally_mapped_file *file = search->file;
	char folder[PROC_PATH_MAX];
	int fd = -1;
	snprintf(folder, sizeof(folder), "/proc/%u/map_files", search->pid);
	DIR *links = opendir(folder);
	if (!links)
		return -1;
	for (const struct dirent *link; fd < 0 && (link = readdir(links));) {
		unsigned long long start, end;
		enum unproven unproven = IS_IT_IF_IT_FITS;
		if (sscanf(link->d_name, "%llx-%llx", &start, &end) != 2 ||
		    start >= file->seen.end || end <= file->seen.start)
			continue;
		if (is_called(dirfd(links), link->d_name, search->path))
			unproven = IS_IT;
		fd = if_mapped(search, openat(dirfd(links), link->d_name, OPEN_FLAGS), unproven);
	}
	closedir(links);
	return fd;
}

/* ---- the process's root and program -------------------------------------- */

static int open_by_root(const struct search *search)
{
	char folder[PROC_PATH_MAX];
	snprintf(folder, sizeof(folder), "/proc/%u/root", search->pid);
	int root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -1;
	int fd = tally_object_descriptor_in_root(root, search->path);
	close(root);
	return if_mapped(search, fd, IS_IT_IF_IT_FITS);
}

/* Also without the privilege that map_files needs. */
static int open_program(const struct search *search)
{
	char program[PROC_PATH_MAX];
	snprintf(program, sizeof(program), "/proc/%u/exe", search->pid);
	return if_mapped(search, open(program, OPEN_FLAGS), IS_OTHER);
}

bool tally_live_find(const struct tally_tasks *tasks, const struct tally_mapped_file *file,
		     const char *path, struct tally_live_file *out)
{
	struct search search = { tasks, file, path, 0 };
	char folder[PROC_PATH_MAX], real[PATH_MAX];
	if (is_alive(file->seen.pid))
		search.pid = (uint32_t)tally_proc_living_thread((pid_t)file->seen.pid);
	*out = (struct tally_live_file){ .fd = open_here(&search) };
	bool is_here = out->fd >= 0;
	if (out->fd < 0 && search.pid)
		out->fd = open_by_map(&search);
	if (out->fd < 0 && search.pid)
		out->fd = open_by_root(&search);
	if (out->fd < 0 && search.pid)
		out->fd = open_program(&search);
	if (out->fd < 0)
		return false;
	out->path = strdup(!is_here && tally_object_path_of(out->fd, real) ? real : path);
	snprintf(folder, sizeof(folder), "/proc/%u/root", search.pid);
	if (!is_here && !same_as_ours(search.pid, "root"))
		out->root = strdup(folder);
	if (out->path)
		return true;
	tally_live_file_release(out);
	return false;
}

void tally_live_file_release(struct tally_live_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	free(file->root);
	*file = (struct tally_live_file){ .fd = -1 };
}
