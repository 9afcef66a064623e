#include "task/live_file.h"

#include "machine/procfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { PROC_PATH_MAX = 96 };

static bool has_inode(const struct tally_mapped_file *file)
{
	return file->inode != 0;
}

static bool is_inode(const struct tally_mapped_file *file, const struct stat *status)
{
	return status->st_ino == file->inode && major(status->st_dev) == file->major &&
	       minor(status->st_dev) == file->minor;
}

static bool same_as_ours(uint32_t pid, const char *name)
{
	char path[PROC_PATH_MAX];
	struct stat theirs, ours;
	snprintf(path, sizeof(path), "/proc/self/%s", name);
	if (stat(path, &ours) < 0)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/%s", tally_proc_living_thread((pid_t)pid), name);
	return stat(path, &theirs) < 0 ||
	       (theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino);
}

static bool is_alive(uint32_t pid)
{
	char path[PROC_PATH_MAX];
	snprintf(path, sizeof(path), "/proc/%u", pid);
	return access(path, F_OK) == 0;
}

enum tally_live_match tally_live_match(const struct tally_mapped_file *file, const char *path)
{
	struct stat status;
	bool is_there = stat(path, &status) == 0;
	if (!has_inode(file) || (is_there && is_inode(file, &status)))
		return TALLY_LIVE_SAME;
	/* We can't tell which files an ended task saw.  File systems in layers keep the inode's
	 * number, if not the device. */
	bool sees_ours = is_alive(file->seen.pid) ? same_as_ours(file->seen.pid, "ns/mnt") &&
							    same_as_ours(file->seen.pid, "root")
						  : is_there && status.st_ino == file->inode;
	return sees_ours ? TALLY_LIVE_PLAUSIBLE : TALLY_LIVE_OTHER;
}

static struct tally_object *if_wanted(struct tally_object *object,
				      const struct tally_build_id *wanted)
{
	if (object && wanted->size &&
	    !tally_build_id_equal(tally_object_build_id(object), wanted)) {
		tally_object_unref(object);
		return NULL;
	}
	return object;
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

static struct tally_object *open_link(int directory, const char *name,
				      const struct tally_mapped_file *file, const char *path)
{
	struct tally_object *object = NULL;
	struct stat status;
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return NULL;
	bool is_it = file->build_id.size || !fstat(fd, &status);
	if (!file->build_id.size && has_inode(file))
		is_it = is_it && (is_inode(file, &status) || is_called(directory, name, path));
	if (!is_it || tally_object_open_descriptor(fd, path, &object, NULL) < 0)
		object = NULL;
	close(fd);
	return if_wanted(object, &file->build_id);
}

/* mprotect(2) or munmap(2) may have cut the mapping since, so take any that overlaps. */
static struct tally_object *open_by_map(const struct tally_mapped_file *file, const char *path)
{
	char folder[PROC_PATH_MAX];
	struct tally_object *object = NULL;
	snprintf(folder, sizeof(folder), "/proc/%d/map_files",
		 tally_proc_living_thread((pid_t)file->seen.pid));
	DIR *links = opendir(folder);
	for (const struct dirent *link; links && !object && (link = readdir(links));) {
		unsigned long long start, end;
		if (sscanf(link->d_name, "%llx-%llx", &start, &end) == 2 &&
		    start < file->seen.end && end > file->seen.start)
			object = open_link(dirfd(links), link->d_name, file, path);
	}
	if (links)
		closedir(links);
	return object;
}

/* ---- root ---------------------------------------------------------------- */

static struct tally_object *open_by_root(const struct tally_mapped_file *file, const char *path)
{
	char folder[PROC_PATH_MAX];
	struct tally_object *object = NULL;
	snprintf(folder, sizeof(folder), "/proc/%d/root",
		 tally_proc_living_thread((pid_t)file->seen.pid));
	int root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || tally_object_open_in_root(root, path, &object, NULL) < 0)
		object = NULL;
	if (root >= 0)
		close(root);
	return if_wanted(object, &file->build_id);
}

struct tally_object *tally_live_open(const struct tally_mapped_file *file, const char *path,
				     char **root)
{
	char folder[PROC_PATH_MAX];
	*root = NULL;
	if (!file->seen.pid || file->seen.pid > INT32_MAX || !is_alive(file->seen.pid))
		return NULL;
	struct tally_object *object = open_by_map(file, path);
	if (!object)
		object = open_by_root(file, path);
	snprintf(folder, sizeof(folder), "/proc/%d/root",
		 tally_proc_living_thread((pid_t)file->seen.pid));
	if (object && !same_as_ours(file->seen.pid, "root"))
		/* on failure, debug files are searched only below our own root */
		*root = strdup(folder);
	return object;
}
