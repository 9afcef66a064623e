/* Walks a path name by name with openat(2): it holds one folder and the text that is still to walk.
 * A followed link's target is put in front of that text.  Later calls use only the last name, in
 * the held folder. */
#include "base/output_path.h"

#include "base/error.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/vfs.h>
#include <unistd.h>

/* In a user namespace without root, the kernel shows root's files, like those of all users without
 * a number there, as user 65534's. */
static bool may_be_root(uid_t owner)
{
	const uid_t overflow = 65534;
	unsigned first = 0, outside = 0, count = 0;
	FILE *map = NULL;
	if (owner == overflow)
		map = fopen("/proc/self/uid_map", "re");
	bool is_known = map && fscanf(map, "%u %u %u", &first, &outside, &count) == 3;
	if (map)
		fclose(map);
	return is_known && count != UINT32_MAX;
}

static bool is_trusted(uid_t owner)
{
	return owner == 0 || owner == geteuid() || may_be_root(owner);
}

static int fail(const struct tally_output_path *path, int code, struct tally_error *err)
{
	tally_error_set(err, code, "%s can't be written: %s", path->path, tally_errno_text(code));
	tally_error_hint(err, "name another file with -o");
	return code;
}

/* ---- from folder to folder ----------------------------------------------- */

struct walk {
	struct tally_output_path *path;
	char rest[PATH_MAX]; /* still to be walked, from path->folder */
	unsigned links;
	struct tally_error *err;
};

static int enter(struct walk *walk, const char *name, int flags)
{
	int fd = openat(walk->path->folder, name, O_PATH | O_DIRECTORY | O_CLOEXEC | flags);
	if (fd < 0)
		return fail(walk->path, -errno, walk->err);
	if (walk->path->folder >= 0)
		close(walk->path->folder);
	walk->path->folder = fd;
	return 0;
}

static int refuse_link(const struct walk *walk, const char *target, uid_t owner)
{
	tally_error_set(walk->err, -EACCES,
			"%s can't be written: '%s' is a symbolic link that belongs to user %u",
			walk->path->path, walk->path->name, (unsigned)owner);
	tally_error_hint(walk->err,
			 "tally does not follow other users' links; name the target (%s)", target);
	return -EACCES;
}

static bool is_in_procfs(int folder)
{
	struct statfs system;
	return !fstatfs(folder, &system) && system.f_type == PROC_SUPER_MAGIC;
}

/* The kernel alone can follow the links of /proc/PID/fd, cwd and root: their text is no path.  The
 * text of others, such as /proc/self, is a relative path. */
static bool is_followed_by_kernel(const char *target)
{
	return *target == '/' || strchr(target, ':');
}

/* Replaces the last name of the path's text by a link's target. */
static int follow_text(struct tally_output_path *path, const char *target)
{
	char *slash = strrchr(path->path, '/');
	char *at = *target == '/' || !slash ? path->path : slash + 1;
	size_t room = sizeof(path->path) - (size_t)(at - path->path);
	if (snprintf(at, room, "%s", target) >= (int)room)
		return -ENAMETOOLONG;
	return 0;
}

/* Follows the link path->name; `behind` is the path behind it, "" or from a slash on.  Returns 1 if
 * the path ends here, at an open file; 0, or -errno. */
static int follow(struct walk *walk, const char *behind, uid_t owner)
{
	struct tally_output_path *path = walk->path;
	const unsigned links_max = 40; /* as in the kernel */
	char target[PATH_MAX], rest[PATH_MAX];
	ssize_t length = readlinkat(path->folder, path->name, target, sizeof(target) - 1);
	if (length < 0)
		return fail(path, -errno, walk->err);
	target[length] = '\0';
	bool is_kernels = is_in_procfs(path->folder);
	if (!is_kernels && !is_trusted(owner))
		return refuse_link(walk, target, owner);
	if (++walk->links > links_max)
		return fail(path, -ELOOP, walk->err);
	if (is_kernels && is_followed_by_kernel(target)) {
		path->is_open_file = !*behind;
		snprintf(rest, sizeof(rest), "%s", behind);
		memcpy(walk->rest, rest, sizeof(rest));
		if (path->is_open_file)
			return 1;
		return enter(walk, path->name, 0);
	}
	if ((!*behind && follow_text(path, target) < 0) ||
	    snprintf(rest, sizeof(rest), "%s%s", target, behind) >= (int)sizeof(rest))
		return fail(path, -ENAMETOOLONG, walk->err);
	memcpy(walk->rest, rest, sizeof(rest));
	if (*target == '/')
		return enter(walk, "/", 0);
	return 0;
}

/* Goes one name further.  Returns 1 if it was the last one, 0, or -errno. */
static int step(struct walk *walk)
{
	struct tally_output_path *path = walk->path;
	const char *begin = walk->rest + strspn(walk->rest, "/");
	const char *behind = begin + strcspn(begin, "/");
	bool is_last = !behind[strspn(behind, "/")];
	size_t length = (size_t)(behind - begin);
	struct stat there;
	if (length > NAME_MAX)
		return fail(path, -ENAMETOOLONG, walk->err);
	if (length)
		snprintf(path->name, sizeof(path->name), "%.*s", (int)length, begin);
	else
		memcpy(path->name, ".", sizeof("."));
	if (fstatat(path->folder, path->name, &there, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT && is_last && !*behind)
			return 1;
		return fail(path, -errno, walk->err);
	}
	if (S_ISLNK(there.st_mode))
		return follow(walk, behind, there.st_uid);
	if (is_last && *behind && !S_ISDIR(there.st_mode))
		return fail(path, -ENOTDIR, walk->err);
	if (is_last)
		return 1;
	int result = enter(walk, path->name, O_NOFOLLOW);
	memmove(walk->rest, behind, strlen(behind) + 1);
	return result;
}

int tally_output_path_open(struct tally_output_path *path, const char *text,
			   struct tally_error *err)
{
	struct walk walk = { .path = path, .err = err };
	struct stat folder;
	*path = (struct tally_output_path){ .folder = -1 };
	if (snprintf(path->path, sizeof(path->path), "%s", text) >= (int)sizeof(path->path))
		return fail(path, -ENAMETOOLONG, err);
	memcpy(walk.rest, path->path, sizeof(walk.rest));
	path->folder = AT_FDCWD;
	int result;
	if (*text)
		result = enter(&walk, *text == '/' ? "/" : ".", 0);
	else
		result = fail(path, -ENOENT, err);
	while (!result)
		result = step(&walk);
	if (result > 0 && fstat(path->folder, &folder) < 0)
		result = fail(path, -errno, err);
	if (result < 0) {
		tally_output_path_close(path);
		return result;
	}
	path->folder_owner = folder.st_uid;
	path->is_shared = !is_trusted(folder.st_uid) || folder.st_mode & (S_IWGRP | S_IWOTH);
	path->is_sticky = folder.st_mode & S_ISVTX;
	return 0;
}

void tally_output_path_close(struct tally_output_path *path)
{
	if (path->folder >= 0)
		close(path->folder);
	path->folder = -1;
}

/* ---- in the folder ------------------------------------------------------- */

static int refuse(const struct tally_output_path *path, const char *name, const char *reason,
		  struct tally_error *err)
{
	tally_error_set(err, -EACCES, "%s can't be written: %s%s%s", path->path,
			name == path->name ? "it" : name, " ", reason);
	tally_error_hint(err, "name another file with -o");
	return -EACCES;
}

int tally_output_path_look(const struct tally_output_path *path, const char *name,
			   struct stat *there, struct tally_error *err)
{
	name = tally_text_or(name, path->name);
	if (fstatat(path->folder, name, there, path->is_open_file ? 0 : AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			return 0;
		return fail(path, -errno, err);
	}
	if (path->is_open_file || !path->is_shared || is_trusted(there->st_uid))
		return 1;
	if (S_ISLNK(there->st_mode))
		return refuse(path, name, "is a symbolic link that belongs to another user", err);
	if (path->is_sticky && there->st_uid != path->folder_owner)
		return refuse(path, name, "belongs to another user", err);
	return 1;
}

/* Returns why writing in place could change, or be read by, more than the user named; NULL: it
 * can't. */
static const char *not_in_place(const struct tally_output_path *path, const struct stat *there)
{
	if (path->is_open_file || !path->is_shared)
		return NULL;
	if (!is_trusted(there->st_uid))
		return "belongs to another user";
	if (there->st_nlink > 1 && S_ISREG(there->st_mode))
		return "has other names (hard links), which another user may have made";
	return NULL;
}

/* Opens the file that `known` describes. */
static int open_known(const struct tally_output_path *path, int flags, const struct stat *known,
		      struct tally_error *err)
{
	struct stat there;
	int fd = openat(path->folder, path->name,
			(flags & ~O_TRUNC) | O_CLOEXEC | O_NOCTTY |
				(path->is_open_file ? 0 : O_NOFOLLOW));
	if (fd < 0)
		return fail(path, -errno, err);
	int code = tally_errno_of(fstat(fd, &there));
	if (!code && (there.st_dev != known->st_dev || there.st_ino != known->st_ino))
		code = -ESTALE; /* someone replaced it in between */
	if (!code && flags & O_TRUNC && S_ISREG(there.st_mode) && ftruncate(fd, 0) < 0)
		code = -errno;
	if (!code)
		return fd;
	close(fd);
	return fail(path, code, err);
}

int tally_output_path_write(const struct tally_output_path *path, int flags, mode_t mode,
			    struct tally_error *err)
{
	const int tries = 3; /* the file may appear or go in between */
	struct stat there;
	for (int i = 0; i < tries; i++) {
		int found = tally_output_path_look(path, NULL, &there, err);
		if (found < 0)
			return found;
		if (found) {
			const char *reason = not_in_place(path, &there);
			if (!reason)
				return open_known(path, flags, &there, err);
			if (!S_ISREG(there.st_mode) || !(flags & O_TRUNC))
				return refuse(path, path->name, reason, err);
			if (unlinkat(path->folder, path->name, 0) < 0)
				return fail(path, -errno, err);
		}
		int fd = openat(path->folder, path->name,
				(flags & ~O_TRUNC) | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			break;
	}
	return fail(path, -errno, err);
}

/* ---- new names ----------------------------------------------------------- */

void tally_output_path_random(const char *prefix, const char *suffix, char name[NAME_MAX + 1])
{
	uint64_t random = 0;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = (uint64_t)getpid();
	snprintf(name, NAME_MAX + 1, "%s%016llx%s", prefix, (unsigned long long)random, suffix);
}

int tally_output_path_temporary(int folder, const char *prefix, const char *suffix,
				char name[NAME_MAX + 1])
{
	const int tries = 100;
	for (int i = 0; i < tries; i++) {
		tally_output_path_random(prefix, suffix, name);
		int fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

static bool is_private;

void tally_output_forbid(mode_t bits)
{
	umask(umask(077) | bits);
	is_private |= bits & (S_IRGRP | S_IROTH);
}

void tally_output_protect_like(int input)
{
	struct stat file;
	if (!fstat(input, &file) && S_ISREG(file.st_mode))
		tally_output_forbid(~file.st_mode & 077);
}

bool tally_output_is_private(void)
{
	return is_private;
}
