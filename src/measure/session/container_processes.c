/* A container is a cgroup: the runtime or systemd makes one for it, whose name holds the container's
 * ID or name.
 *
 *     docker/ID, system.slice/docker-ID.scope            Docker, with and without systemd
 *     machine.slice/libpod-ID.scope[/container]          podman; libpod-conmon-ID is its monitor
 *     kubepods…/cri-containerd-ID.scope, …/crio-ID.scope Kubernetes
 *     lxc.payload.NAME, lxc/NAME                         LXC; lxc.monitor.NAME is its monitor
 *     machine.slice/machine-NAME.scope                   systemd-machined; "-" is \x2d
 *     machine.slice/systemd-nspawn@NAME.service          systemd-nspawn
 *     system.slice/NAME.service, …/NAME.scope            other services of systemd
 *
 * Which hierarchy of version 1 has them depends on the machine, so all hierarchies are searched.
 * The names that belong to IDs are in files of Docker and podman. */
#include "session/session_internal.h"

#include "base/buffer.h"
#include "base/json.h"
#include "base/vector.h"
#include "session/session.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <mntent.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ID_LENGTH = 64, ID_DIGITS_MIN = 4, NAMES_FILE_MAX = 16 << 20, PROCS_MAX = 64 << 20 };

const struct tally_container_places tally_container_places = {
	.mounts = "/proc/self/mounts",
	.docker = "/var/lib/docker/containers",
	.podman = "/var/lib/containers/storage/{overlay,vfs}-containers/{,volatile-}containers.json",
	.podman_below_home = ".local/share/containers/storage/{overlay,vfs}-containers/"
			     "{,volatile-}containers.json",
};

struct container_id {
	char digits[ID_LENGTH + 1];
};

/* How sure a match is; the surest ones count. */
enum match { MATCH_NONE, MATCH_ID, MATCH_NAME };

struct candidate {
	enum match match;
	char *path; /* below the mount */
	char **folders;
	size_t count, capacity;
};

struct search {
	const char *name;
	const char *mount; /* of the hierarchy that is walked */
	TALLY_VECTOR(struct container_id) named; /* IDs of containers with that name */
	TALLY_VECTOR(struct candidate) found;
	bool names_hidden; /* Docker's names exist and this user can't read them */
	bool no_json;      /* names exist and the library for JSON doesn't */
};

/* ---- names of IDs -------------------------------------------------------- */

static bool is_id(const char *text)
{
	size_t length = strspn(text, "0123456789abcdef");
	return length == ID_LENGTH && !text[length];
}

static int add_named(struct search *search, const char *id)
{
	struct container_id one;
	if (!id || !is_id(id))
		return 0;
	memcpy(one.digits, id, sizeof(one.digits));
	return tally_vector_push(&search->named, one);
}

/* Reads a file of JSON.  Returns 0 or -ENOMEM; *document is NULL if there is none, or it can't be
 * read. */
static int read_json(struct search *search, int folder, const char *path,
		     struct tally_json_document **document)
{
	struct tally_buffer text = { 0 };
	size_t used;
	*document = NULL;
	int result = tally_buffer_read_file(&text, folder, path, NAMES_FILE_MAX);
	if (!result) {
		result = tally_json_read(tally_buffer_string(&text), text.length, document, &used,
					 NULL);
		search->no_json |= result == -ENOENT;
		if (result < 0)
			*document = NULL;
	}
	tally_buffer_release(&text);
	return result == -ENOMEM ? result : 0;
}

/* Docker: {"ID": "0123…", "Name": "/web", …} */
static int read_docker_name(struct search *search, int folder, const char *id)
{
	char path[NAME_MAX + 32];
	snprintf(path, sizeof(path), "%s/config.v2.json", id);
	struct tally_json_document *document;
	int result = read_json(search, folder, path, &document);
	if (!document)
		return result;
	const char *name = tally_json_string(
		document, tally_json_member(document, tally_json_root(document), "Name"));
	if (name && !strcmp(name + (*name == '/'), search->name))
		result = add_named(search, id);
	tally_json_release(document);
	return result;
}

static int read_docker(struct search *search, const char *path)
{
	DIR *folder = path ? opendir(path) : NULL;
	int result = 0;
	search->names_hidden |= path && !folder && errno == EACCES;
	for (const struct dirent *entry; folder && !result && (entry = readdir(folder));)
		if (is_id(entry->d_name))
			result = read_docker_name(search, dirfd(folder), entry->d_name);
	if (folder)
		closedir(folder);
	return result;
}

/* podman: [{"id": "0123…", "names": ["web"], …}, …] */
static int read_podman_file(struct search *search, const char *path)
{
	struct tally_json_document *document;
	int result = read_json(search, AT_FDCWD, path, &document);
	if (!document)
		return result;
	const struct tally_json_value *all = tally_json_root(document);
	for (size_t i = 0; i < tally_json_count(document, all) && !result; i++) {
		const struct tally_json_value *one = tally_json_item(document, all, i);
		const struct tally_json_value *names = tally_json_member(document, one, "names");
		for (size_t k = 0; k < tally_json_count(document, names) && !result; k++) {
			const char *name = tally_json_string(document,
							     tally_json_item(document, names, k));
			if (name && !strcmp(name, search->name))
				result = add_named(search,
						   tally_json_string(document,
								     tally_json_member(document,
										       one, "id")));
		}
	}
	tally_json_release(document);
	return result;
}

static int read_podman(struct search *search, const char *pattern)
{
	glob_t files = { 0 };
	int result = 0;
	if (pattern && !glob(pattern, GLOB_NOSORT | GLOB_BRACE, NULL, &files))
		for (size_t i = 0; i < files.gl_pathc && !result; i++)
			result = read_podman_file(search, files.gl_pathv[i]);
	globfree(&files);
	return result;
}

/* The home is the effective user's by /etc/passwd: the environment may be another user's. */
static int read_podman_below_home(struct search *search, const char *pattern)
{
	char room[4096], path[PATH_MAX];
	struct passwd entry, *found = NULL;
	if (!pattern || getpwuid_r(geteuid(), &entry, room, sizeof(room), &found) || !found ||
	    snprintf(path, sizeof(path), "%s/%s", found->pw_dir, pattern) >= (int)sizeof(path))
		return 0;
	return read_podman(search, path);
}

/* ---- a cgroup's name ----------------------------------------------------- */

/* Copies a name of systemd with \x2d as "-". */
static void unescape(const char *text, size_t length, char *out, size_t size)
{
	size_t used = 0;
	for (size_t i = 0; i < length && used + 1 < size; i++) {
		unsigned value;
		if (text[i] == '\\' && length - i >= 4 && text[i + 1] == 'x' &&
		    isxdigit((unsigned char)text[i + 2]) && isxdigit((unsigned char)text[i + 3]) &&
		    sscanf(text + i + 2, "%2x", &value) == 1) {
			out[used++] = (char)value;
			i += 3;
		} else {
			out[used++] = text[i];
		}
	}
	out[used] = '\0';
}

static bool begins(const char *text, const char *beginning)
{
	return !strncmp(text, beginning, strlen(beginning));
}

/* Returns the container's ID in a cgroup's name ("docker-ID.scope", "ID"), or NULL. */
static const char *id_in(const char *leaf, char id[ID_LENGTH + 1])
{
	size_t length = strcspn(leaf, ".");
	if (length < ID_LENGTH || (length > ID_LENGTH && leaf[length - ID_LENGTH - 1] != '-') ||
	    (leaf[length] && strcmp(leaf + length, ".scope") != 0))
		return NULL;
	memcpy(id, leaf + length - ID_LENGTH, ID_LENGTH);
	id[ID_LENGTH] = '\0';
	return is_id(id) ? id : NULL;
}

/* True if the part of a name of systemd between `before` and `after` is the one looked for. */
static bool is_between(const char *leaf, const char *before, const char *after, const char *name)
{
	char plain[NAME_MAX + 1];
	size_t length = strlen(leaf), ahead = strlen(before), behind = strlen(after);
	if (length <= ahead + behind || !begins(leaf, before) ||
	    strcmp(leaf + length - behind, after) != 0)
		return false;
	unescape(leaf + ahead, length - ahead - behind, plain, sizeof(plain));
	return !strcmp(plain, name);
}

/* True for a path's end, or for a whole path, which begins with a slash. */
static bool is_path(const char *path, const char *name)
{
	size_t length = strlen(path), wanted = strlen(name);
	if (*name == '/')
		return !strcmp(path, name);
	return length > wanted && path[length - wanted - 1] == '/' &&
	       !strcmp(path + length - wanted, name);
}

static enum match match_of(const struct search *search, const char *path)
{
	const char *leaf = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *name = search->name;
	char id[ID_LENGTH + 1];
	if (!*leaf || begins(leaf, "libpod-conmon-") || begins(leaf, "crio-conmon-") ||
	    begins(leaf, "lxc.monitor"))
		return MATCH_NONE;
	if (is_path(path, name) || is_between(leaf, "lxc.payload.", "", name) ||
	    is_between(leaf, "machine-", ".scope", name) ||
	    is_between(leaf, "systemd-nspawn@", ".service", name) ||
	    is_between(leaf, "", ".service", name) || is_between(leaf, "", ".scope", name))
		return MATCH_NAME;
	if (!id_in(leaf, id))
		return MATCH_NONE;
	for (size_t i = 0; i < search->named.count; i++)
		if (!strcmp(search->named.items[i].digits, id))
			return MATCH_NAME;
	bool is_beginning = strlen(name) >= ID_DIGITS_MIN && begins(id, name);
	return is_beginning ? MATCH_ID : MATCH_NONE;
}

/* ---- looking for it ------------------------------------------------------ */

static int add_folder(char ***folders, size_t *count, size_t *capacity, const char *path)
{
	struct {
		char **items;
		size_t count, capacity;
	} list = { *folders, *count, *capacity };
	char *copy = strdup(path);
	int result = copy ? tally_vector_push(&list, copy) : -ENOMEM;
	if (result < 0)
		free(copy);
	*folders = list.items;
	*count = list.count;
	*capacity = list.capacity;
	return result < 0 ? result : 0;
}

static bool is_below(const char *path, const char *above)
{
	size_t length = strlen(above);
	return !strncmp(path, above, length) && path[length] == '/';
}

/* Notes a match.  The same path in another hierarchy is the same container; a match below another
 * one is a part of it, as a service in a container. */
static int visit(void *context, int fd, const char *path)
{
	struct search *search = context;
	char folder[2 * PATH_MAX];
	enum match match = match_of(search, path);
	(void)fd;
	if (!match)
		return 0;
	struct candidate *same = NULL;
	for (size_t i = 0; i < search->found.count; i++) {
		struct candidate *one = &search->found.items[i];
		if (is_below(path, one->path) && one->match >= match)
			return 0;
		if (!strcmp(path, one->path))
			same = one;
	}
	if (!same) {
		struct candidate new = { .match = match, .path = strdup(path) };
		if (!new.path || tally_vector_push(&search->found, new) < 0) {
			free(new.path);
			return -ENOMEM;
		}
		same = &search->found.items[search->found.count - 1];
	}
	snprintf(folder, sizeof(folder), "%s%s", search->mount, path);
	return add_folder(&same->folders, &same->count, &same->capacity, folder);
}

static int search_hierarchies(struct search *search, const char *mounts_path, bool *any)
{
	int result = 0;
	FILE *mounts = mounts_path ? setmntent(mounts_path, "re") : NULL;
	*any = false;
	for (struct mntent *entry; mounts && !result && (entry = getmntent(mounts));) {
		if (strcmp(entry->mnt_type, "cgroup") != 0 &&
		    strcmp(entry->mnt_type, "cgroup2") != 0)
			continue;
		int fd = open(entry->mnt_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			continue;
		*any = true;
		search->mount = entry->mnt_dir;
		result = tally_cgroup_walk(fd, visit, search);
	}
	if (mounts)
		endmntent(mounts);
	return result;
}

static int several(const struct search *search, enum match match, size_t count,
		   struct tally_error *err)
{
	char list[400] = "";
	size_t used = 0, left_off = 0;
	for (size_t i = 0; i < search->found.count; i++) {
		const struct candidate *one = &search->found.items[i];
		if (one->match != match)
			continue;
		size_t length = strlen(one->path);
		if (used + length + 3 >= sizeof(list)) {
			left_off++;
			continue;
		}
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
					 used ? ", " : "", one->path);
	}
	tally_error_set(err, -EINVAL, "%zu containers or services match '%.64s': %s%s", count,
			search->name, list, left_off ? ", …" : "");
	tally_error_hint(err, "give more of the ID, or the end of the path");
	return -EINVAL;
}

static int none(const struct search *search, bool any_hierarchy, struct tally_error *err)
{
	tally_error_set(err, -ENOENT, "no container or service is named '%.64s'", search->name);
	if (!any_hierarchy)
		tally_error_hint(err, "no cgroup hierarchy is mounted");
	else if (search->names_hidden)
		tally_error_hint(err, "only root can read Docker's names: give the ID, as 'docker ps' "
				      "shows it");
	else if (search->no_json)
		tally_error_hint(err, "names need libjansson (libjansson4): give the ID, as 'docker "
				      "ps' or 'podman ps' shows it");
	else
		tally_error_hint(err, "'docker ps', 'podman ps', 'machinectl' and 'systemd-cgls' "
				      "list them; Docker's and podman's IDs always work");
	return -ENOENT;
}

static int take(struct search *search, bool any_hierarchy, struct tally_container *out,
		struct tally_error *err)
{
	enum match best = MATCH_NONE;
	const struct candidate *chosen = NULL;
	size_t count = 0;
	int result = 0;
	for (size_t i = 0; i < search->found.count; i++)
		if (search->found.items[i].match > best)
			best = search->found.items[i].match;
	for (size_t i = 0; best && i < search->found.count; i++)
		if (search->found.items[i].match == best) {
			chosen = &search->found.items[i];
			count++;
		}
	if (!count)
		return none(search, any_hierarchy, err);
	if (count > 1)
		return several(search, best, count, err);
	for (size_t i = 0; i < chosen->count && !result; i++)
		result = add_folder(&out->folders, &out->folder_count, &out->folder_capacity,
				    chosen->folders[i]);
	char *name = NULL;
	if (!result && asprintf(&name, "%s%s%s", out->name ? out->name : "",
				out->name ? ", " : "", search->name) < 0)
		result = -ENOMEM;
	if (result < 0)
		return tally_error_set(err, result, "out of memory");
	free(out->name);
	out->name = name;
	return 0;
}

static int search_all(struct search *search, const struct tally_container_places *places,
		      bool *any_hierarchy)
{
	int result = read_docker(search, places->docker);
	if (result)
		return result;
	result = read_podman(search, places->podman);
	if (result)
		return result;
	result = read_podman_below_home(search, places->podman_below_home);
	if (result)
		return result;
	return search_hierarchies(search, places->mounts, any_hierarchy);
}

int tally_container_find(const struct tally_container_places *places, const char *name,
			 struct tally_container *out, struct tally_error *err)
{
	struct search search = { .name = name };
	bool any_hierarchy = false;
	if (!*name)
		return tally_error_set(err, -EINVAL, "the container's name is empty");
	int result = search_all(&search, places, &any_hierarchy);
	if (result < 0)
		tally_error_set(err, result, "out of memory");
	else
		result = take(&search, any_hierarchy, out, err);
	for (size_t i = 0; i < search.found.count; i++) {
		struct candidate *one = &search.found.items[i];
		for (size_t k = 0; k < one->count; k++)
			free(one->folders[k]);
		free(one->folders);
		free(one->path);
	}
	tally_vector_release(&search.found);
	tally_vector_release(&search.named);
	return result;
}

/* ---- its processes ------------------------------------------------------- */

/* Reads cgroup.procs.  A cgroup of version 2 that holds threads can't be read: its processes are
 * listed above it. */
static int read_procs(void *context, int fd, const char *path)
{
	struct tally_pid_list *out = context;
	struct tally_buffer text = { 0 };
	(void)path;
	int result = tally_buffer_read_file(&text, fd, "cgroup.procs", PROCS_MAX);
	if (!result) {
		const char *at = tally_buffer_string(&text);
		for (char *end; !result; at = end) {
			long pid = strtol(at, &end, 10);
			if (end == at)
				break;
			/* 0: a process that our PID namespace doesn't see */
			if (pid > 0 && pid <= INT_MAX && pid != getpid())
				result = tally_vector_push(out, (pid_t)pid);
		}
	}
	tally_buffer_release(&text);
	return result == -ENOMEM ? result : 0;
}

static int by_number(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
	return x < y ? -1 : x > y;
}

int tally_container_pids(const struct tally_container *container, struct tally_pid_list *out)
{
	struct tally_pid_list all = { 0 };
	int result = 0;
	for (size_t i = 0; i < container->folder_count && !result; i++) {
		int fd = open(container->folders[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		result = fd < 0 ? 0 : tally_cgroup_walk(fd, read_procs, &all);
	}
	if (all.count)
		qsort(all.items, all.count, sizeof(*all.items), by_number);
	for (size_t i = 0; i < all.count && result >= 0; i++)
		if (!i || all.items[i] != all.items[i - 1])
			result = tally_vector_push(out, all.items[i]);
	tally_pid_list_release(&all);
	return result < 0 ? result : 0;
}

void tally_container_release(struct tally_container *container)
{
	for (size_t i = 0; i < container->folder_count; i++)
		free(container->folders[i]);
	free(container->folders);
	free(container->name);
	*container = (struct tally_container){ 0 };
}
