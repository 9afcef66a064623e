/* The cache's folder: lists its files and removes the oldest. */
#include "object/cache_state.h"

#include "base/vector.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct cache_file {
	char name[CACHE_NAME_MAX];
	uint64_t bytes;
	int64_t used_s;
	bool unfinished;
};

static bool ends_with(const char *name, const char *suffix)
{
	size_t length = strlen(name), behind = strlen(suffix);
	return length > behind && !strcmp(name + length - behind, suffix);
}

/* Gets the cache's next file; skips files that are not the cache's.  Returns 1, or 0 at the end. */
static int next_file(const struct tally_disk_cache *cache, DIR *directory, struct cache_file *file)
{
	const struct dirent *entry;
	while ((entry = readdir(directory))) {
		struct stat status;
		file->unfinished = !strncmp(entry->d_name, CACHE_UNFINISHED_PREFIX,
					    strlen(CACHE_UNFINISHED_PREFIX));
		if ((!file->unfinished && !ends_with(entry->d_name, CACHE_BLOB_SUFFIX)) ||
		    strlen(entry->d_name) >= sizeof(file->name) ||
		    fstatat(cache->directory_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(status.st_mode))
			continue;
		memcpy(file->name, entry->d_name, strlen(entry->d_name) + 1);
		file->bytes = (uint64_t)status.st_size;
		file->used_s = status.st_mtime;
		return 1;
	}
	return 0;
}

/* Opens the folder again, so that each walk has its own position. */
static DIR *open_directory(const struct tally_disk_cache *cache)
{
	int fd = openat(cache->directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory && fd >= 0)
		close(fd);
	return directory;
}

static bool was_abandoned(const struct cache_file *file)
{
	return file->unfinished && time(NULL) - file->used_s > CACHE_USED_EXACT_S;
}

static int by_use(const void *a, const void *b)
{
	const struct cache_file *left = a, *right = b;
	if (left->used_s != right->used_s)
		return left->used_s < right->used_s ? -1 : 1;
	return strcmp(left->name, right->name);
}

void cache_make_room(struct tally_disk_cache *cache)
{
	TALLY_VECTOR(struct cache_file) files = { 0 };
	struct cache_file file;
	uint64_t total = 0;
	DIR *directory = open_directory(cache);
	if (!directory)
		return;
	while (next_file(cache, directory, &file)) {
		if (was_abandoned(&file)) {
			unlinkat(cache->directory_fd, file.name, 0);
			continue;
		}
		if (file.unfinished)
			continue;
		total += file.bytes;
		if (tally_vector_push(&files, file) < 0)
			break;
	}
	closedir(directory);
	if (total > cache->bytes_max) {
		qsort(files.items, files.count, sizeof(*files.items), by_use);
		/* Removes an eighth more than needed, so that the folder is not read again for each
		 * blob. */
		for (size_t i = 0;
		     i < files.count && total > cache->bytes_max - cache->bytes_max / 8; i++)
			if (unlinkat(cache->directory_fd, files.items[i].name, 0) == 0 ||
			    errno == ENOENT)
				total -= files.items[i].bytes;
	}
	tally_vector_release(&files);
	atomic_store(&cache->bytes, total);
}

/* ---- list and clear ------------------------------------------------------ */

static void read_path(int fd, const struct cache_header *header, char path[TALLY_CACHE_PATH_MAX])
{
	ssize_t length = pread(fd, path, header->path_size,
			       (off_t)(sizeof(*header) + header->size));
	path[length > 0 ? length : 0] = '\0';
}

/* `kind` stays "" when the file can't be a blob. */
static void read_entry(const struct tally_disk_cache *cache, const struct cache_file *file,
		       struct tally_cache_entry *entry)
{
	struct cache_header header;
	struct stat status;
	*entry = (struct tally_cache_entry){ .file_bytes = file->bytes, .used_s = file->used_s };
	int fd = openat(cache->directory_fd, file->name,
			O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && cache_is_ours(&status) &&
	    pread(fd, &header, sizeof(header), 0) == sizeof(header) &&
	    cache_header_is_sound(&header, (uint64_t)status.st_size)) {
		entry->id.size = header.id_size;
		memcpy(entry->id.bytes, header.id, header.id_size);
		memcpy(entry->kind, header.kind, sizeof(entry->kind));
		entry->part = header.part;
		entry->version = header.version;
		read_path(fd, &header, entry->object_path);
	}
	close(fd);
}

int tally_cache_list(struct tally_disk_cache *cache,
		     int (*entry)(void *context, const struct tally_cache_entry *entry),
		     void *context)
{
	struct cache_file file;
	struct tally_cache_entry found;
	int status = 0;
	if (!cache)
		return 0;
	DIR *directory = open_directory(cache);
	if (!directory)
		return -errno;
	while (!status && next_file(cache, directory, &file)) {
		if (file.unfinished)
			continue;
		read_entry(cache, &file, &found);
		status = entry(context, &found);
	}
	closedir(directory);
	return status;
}

int tally_cache_clear(struct tally_disk_cache *cache, uint64_t *files, uint64_t *bytes)
{
	struct cache_file file;
	int status = 0;
	*files = *bytes = 0;
	if (!cache)
		return 0;
	DIR *directory = open_directory(cache);
	if (!directory)
		return -errno;
	while (next_file(cache, directory, &file)) {
		/* Its writer may still be at work, and would fail to rename it; a later run removes
		 * it. */
		if (file.unfinished && !was_abandoned(&file))
			continue;
		if (unlinkat(cache->directory_fd, file.name, 0) < 0) {
			status = errno == ENOENT ? status : -errno;
			continue;
		}
		*files += 1;
		*bytes += file.bytes;
	}
	closedir(directory);
	atomic_store(&cache->bytes, CACHE_BYTES_UNKNOWN);
	return status;
}
