/* A cache on disk that many processes use without locks.
 *
 * The difficulties: another process may write, replace or remove a blob while we read it; the
 * machine may crash after a file got its name and before its bytes reached the disk; the disk may
 * be full; another user may have put a file there; and the layout changes between releases, with
 * both in use.
 *
 * - A blob is written to a file with a random name, which is renamed once it is complete.  No file
 *   is ever written twice, so a mapping stays valid whatever happens to the name.  If two processes
 *   store the same blob, the later one replaces the earlier.
 * - Nothing is flushed to the disk: flushing would cost more than the cache saves.  Each reading
 *   verifies the checksum over header, blob and path, which finds what a crash left behind.
 * - The key is in the header, not only in the name: a renamed file is not taken for another blob.
 * - A folder or file that belongs to another user, or that others can write, is not trusted,
 *   because the blobs decide what a report says.  So root with a user's HOME has no cache; it would
 *   leave files that the user can't remove.
 * - A file's time is that of its last use (atime is of no use: noatime is common).  When the cache
 *   is too large, the least recently used blobs go.  Each process reads the folder before it stores
 *   its first blob and counts its own blobs from then on.  Several processes together may exceed
 *   the limit until the next process starts.
 */
#include "object/cache.h"

#include "base/environment.h"
#include "base/number_text.h"
#include "base/vector.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define CACHE_BLOB_SUFFIX ".blob"
#define CACHE_UNFINISHED_PREFIX ".new-"

enum {
	CACHE_NAME_MAX = 2 * TALLY_BUILD_ID_MAX + TALLY_CACHE_KIND_MAX + 32,
	CACHE_USED_EXACT_S = 3600, /* a blob's time of use is updated no more often */
};

struct tally_disk_cache {
	int directory_fd;
	uint64_t bytes_max;
	/* as far as this process knows; CACHE_BYTES_UNKNOWN before it has read the folder */
	_Atomic uint64_t bytes;
	char *folder;
};

#define CACHE_BYTES_UNKNOWN UINT64_MAX

/* Header of a blob's file.  The blob follows, then the object's path without a NUL. */
struct cache_header {
	uint64_t magic; /* differs in the other byte order */
	uint32_t layout;
	uint32_t version;
	uint64_t part;
	uint64_t size;
	uint64_t path_size;
	char kind[TALLY_CACHE_KIND_MAX + 1];
	uint8_t id_size;
	uint8_t id[TALLY_BUILD_ID_MAX];
	uint8_t reserved[43]; /* 0; pads the header so that the blob is aligned to 64 bytes */
	uint64_t checksum;    /* of all bytes before it and behind it */
};
_Static_assert(sizeof(struct cache_header) == 128, "the blob is aligned");

#define BYTES_MAX_DEFAULT (512ull << 20)

enum { LAYOUT = 1, LANES = 4 };

static const uint64_t MAGIC = 0x31626f6c62796c74; /* "tlyblob1", in this machine's byte order */
static const uint64_t MULTIPLIER = 0xd6e8feb86659fd93;

/* ---- where it lies ------------------------------------------------------- */

static bool cache_is_ours(const struct stat *status)
{
	return status->st_uid == geteuid() && !(status->st_mode & (S_IWGRP | S_IWOTH));
}

struct tally_disk_cache *tally_cache_open_at(const char *folder, uint64_t bytes_max)
{
	struct tally_disk_cache *cache = calloc(1, sizeof(*cache));
	struct stat status;
	if (!cache)
		return NULL;
	cache->folder = strdup(folder);
	cache->bytes_max = bytes_max;
	atomic_init(&cache->bytes, CACHE_BYTES_UNKNOWN);
	cache->directory_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!cache->folder || cache->directory_fd < 0 || fstat(cache->directory_fd, &status) < 0 ||
	    !cache_is_ours(&status)) {
		tally_cache_close(cache);
		return NULL;
	}
	return cache;
}

void tally_cache_close(struct tally_disk_cache *cache)
{
	if (!cache)
		return;
	if (cache->directory_fd >= 0)
		close(cache->directory_fd);
	free(cache->folder);
	free(cache);
}

/* Returns the size that the text has; the default for anything else. */
static uint64_t bytes_max_from(const char *text)
{
	uint64_t bytes = BYTES_MAX_DEFAULT;
	if (text)
		tally_size_parse(text, strlen(text), &bytes);
	return bytes;
}

/* Makes a folder, unless it exists, in a folder that belongs to this user. */
static bool make_folder(const char *above, const char *folder)
{
	struct stat status;
	if (stat(folder, &status) == 0)
		return true;
	return stat(above, &status) == 0 && cache_is_ours(&status) &&
	       (mkdir(folder, 0700) == 0 || errno == EEXIST);
}

struct tally_disk_cache *tally_cache_open(void)
{
	uint64_t bytes_max = bytes_max_from(tally_environment("TALLY_CACHE_BYTES"));
	const char *above = tally_environment("XDG_CACHE_HOME");
	const char *home = tally_environment("HOME");
	char caches[TALLY_CACHE_PATH_MAX], folder[TALLY_CACHE_PATH_MAX];
	int length;
	if (!bytes_max)
		return NULL;
	/* The XDG base directory specification says to ignore a relative path. */
	if (above && *above == '/')
		length = snprintf(caches, sizeof(caches), "%s", above);
	else if (home && *home == '/')
		length = snprintf(caches, sizeof(caches), "%s/.cache", home);
	else
		return NULL;
	if (length >= (int)sizeof(caches) ||
	    snprintf(folder, sizeof(folder), "%s/tally", caches) >= (int)sizeof(folder))
		return NULL;
	char parent[TALLY_CACHE_PATH_MAX];
	memcpy(parent, caches, (size_t)length + 1);
	char *slash = strrchr(parent, '/');
	*(slash == parent ? slash + 1 : slash) = '\0';
	if (!make_folder(parent, caches) || !make_folder(caches, folder))
		return NULL;
	return tally_cache_open_at(folder, bytes_max);
}

const char *tally_cache_folder(const struct tally_disk_cache *cache)
{
	return cache->folder;
}

uint64_t tally_cache_bytes_max(const struct tally_disk_cache *cache)
{
	return cache->bytes_max;
}

/* ---- a blob's file ------------------------------------------------------- */

/* Sums four words at a time.  Each step is a bijection of the lane for a given word, and of the
 * word for a given lane, so one changed word always changes the sum.  Some 16 bytes per
 * nanosecond. */
static uint64_t checksum(uint64_t seed, const void *bytes, size_t size)
{
	uint64_t lanes[LANES] = { seed, seed + 1, seed + 2, seed + 3 };
	const uint8_t *at = bytes;
	size_t left = size;
	for (; left >= sizeof(lanes); left -= sizeof(lanes), at += sizeof(lanes)) {
		uint64_t words[LANES];
		memcpy(words, at, sizeof(words));
		for (int i = 0; i < LANES; i++) {
			lanes[i] = (lanes[i] ^ words[i]) * MULTIPLIER;
			lanes[i] ^= lanes[i] >> 32;
		}
	}
	uint64_t sum = size;
	for (int i = 0; i < LANES; i++) {
		uint64_t word = 0;
		size_t part = left < sizeof(word) ? left : sizeof(word);
		if (part)
			memcpy(&word, at, part);
		at += part;
		left -= part;
		lanes[i] = (lanes[i] ^ word) * MULTIPLIER;
		sum = (sum ^ lanes[i] ^ (lanes[i] >> 29)) * MULTIPLIER;
		sum ^= sum >> 32;
	}
	return sum;
}

static uint64_t checksum_of(const struct cache_header *header, const void *bytes, const void *path)
{
	uint64_t sum = checksum(LAYOUT, header, offsetof(struct cache_header, checksum));
	return checksum(checksum(sum, bytes, header->size), path, header->path_size);
}

static bool kind_is_sound(const char *kind)
{
	size_t length = strnlen(kind, TALLY_CACHE_KIND_MAX + 1);
	return length > 0 && length <= TALLY_CACHE_KIND_MAX &&
	       strspn(kind, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

/* True if the header is well-formed and its sizes fit a file of `file_bytes`.  Does not verify the
 * checksum. */
static bool cache_header_is_sound(const struct cache_header *header, uint64_t file_bytes)
{
	return header->magic == MAGIC && header->layout == LAYOUT &&
	       memchr(header->kind, '\0', sizeof(header->kind)) && kind_is_sound(header->kind) &&
	       header->id_size > 0 && header->id_size <= TALLY_BUILD_ID_MAX &&
	       header->path_size < TALLY_CACHE_PATH_MAX &&
	       file_bytes >= sizeof(*header) + header->path_size &&
	       header->size == file_bytes - sizeof(*header) - header->path_size;
}

static void make_header(const struct tally_cache_key *key, struct cache_header *header)
{
	*header = (struct cache_header){ .magic = MAGIC,
					 .layout = LAYOUT,
					 .version = key->version,
					 .part = key->part,
					 .id_size = key->id.size };
	memcpy(header->kind, key->kind, strlen(key->kind));
	memcpy(header->id, key->id.bytes, key->id.size);
}

static bool name_of(const struct tally_cache_key *key, char name[CACHE_NAME_MAX])
{
	char id[2 * TALLY_BUILD_ID_MAX + 1];
	if (!key->id.size || key->id.size > TALLY_BUILD_ID_MAX || !key->kind ||
	    !kind_is_sound(key->kind))
		return false;
	tally_build_id_format(&key->id, id);
	snprintf(name, CACHE_NAME_MAX, "%s.%s.%llx" CACHE_BLOB_SUFFIX, id, key->kind,
		 (unsigned long long)key->part);
	return true;
}

/* ---- reading ------------------------------------------------------------- */

void tally_cache_blob_release(struct tally_cache_blob *blob)
{
	if (blob->mapping)
		munmap(blob->mapping, blob->mapping_size);
	*blob = (struct tally_cache_blob){ 0 };
}

static bool is_blob_of(const struct tally_cache_blob *blob, const struct tally_cache_key *key)
{
	const struct cache_header *header = blob->mapping;
	struct cache_header expected;
	if (!cache_header_is_sound(header, blob->mapping_size))
		return false;
	make_header(key, &expected);
	expected.size = header->size;
	expected.path_size = header->path_size;
	return !memcmp(header, &expected, offsetof(struct cache_header, checksum)) &&
	       header->checksum == checksum_of(header, header + 1,
					       (const uint8_t *)(header + 1) + header->size);
}

static void note_use(int fd, const struct stat *status)
{
	int64_t now = time(NULL);
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_NOW } };
	if (now < status->st_mtime || now - status->st_mtime > CACHE_USED_EXACT_S)
		futimens(fd, times); /* on failure the blob is removed earlier than necessary */
}

static bool map_blob(int fd, const struct tally_cache_key *key, struct tally_cache_blob *blob)
{
	struct stat status;
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || !cache_is_ours(&status) ||
	    status.st_size < (off_t)sizeof(struct cache_header))
		return false;
	blob->mapping_size = (size_t)status.st_size;
	void *mapping = mmap(NULL, blob->mapping_size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (mapping == MAP_FAILED)
		return false;
	blob->mapping = mapping;
	if (!is_blob_of(blob, key)) {
		tally_cache_blob_release(blob);
		return false;
	}
	const struct cache_header *header = mapping;
	blob->bytes = header + 1;
	blob->size = header->size;
	note_use(fd, &status);
	return true;
}

bool tally_cache_get(struct tally_disk_cache *cache, const struct tally_cache_key *key,
		     struct tally_cache_blob *out)
{
	char name[CACHE_NAME_MAX];
	*out = (struct tally_cache_blob){ 0 };
	if (!cache || !name_of(key, name))
		return false;
	int fd = openat(cache->directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	bool found = map_blob(fd, key, out);
	close(fd);
	return found;
}

/* ---- storing ------------------------------------------------------------- */

static int write_all(int fd, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;
	while (size) {
		ssize_t done = write(fd, at, size);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		at += done;
		size -= (size_t)done;
	}
	return 0;
}

static int write_blob(int fd, const struct cache_header *header, const void *bytes,
		      const char *path)
{
	int status = write_all(fd, header, sizeof(*header));
	if (!status)
		status = write_all(fd, bytes, header->size);
	if (!status)
		status = write_all(fd, path, header->path_size);
	return status;
}

static int open_unfinished(const struct tally_disk_cache *cache, char name[CACHE_NAME_MAX])
{
	uint64_t random;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EAGAIN;
	snprintf(name, CACHE_NAME_MAX, CACHE_UNFINISHED_PREFIX "%016llx",
		 (unsigned long long)random);
	int fd = openat(cache->directory_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/* The cache's folder: lists its files and removes the oldest. */

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

/* Reads the folder.  Above the limit, removes the least recently used blobs, and always the
 * leftovers of writers that died. */
static void cache_make_room(struct tally_disk_cache *cache)
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

int tally_cache_put(struct tally_disk_cache *cache, const struct tally_cache_key *key,
		    const char *object_path, const void *bytes, size_t size)
{
	char name[CACHE_NAME_MAX], unfinished[CACHE_NAME_MAX];
	if (!cache)
		return -ENOENT;
	if (!name_of(key, name))
		return -EINVAL;
	if (size > cache->bytes_max / 4)
		return -EFBIG;
	struct cache_header header;
	make_header(key, &header);
	header.size = size;
	header.path_size = strnlen(object_path, TALLY_CACHE_PATH_MAX - 1);
	header.checksum = checksum_of(&header, bytes, object_path);

	int fd = open_unfinished(cache, unfinished);
	if (fd < 0)
		return fd;
	int status = write_blob(fd, &header, bytes, object_path);
	if (close(fd) < 0 && !status)
		status = -errno;
	if (!status && renameat(cache->directory_fd, unfinished, cache->directory_fd, name) < 0)
		status = -errno;
	if (status) {
		unlinkat(cache->directory_fd, unfinished, 0);
		return status;
	}
	uint64_t known = atomic_load(&cache->bytes);
	if (known == CACHE_BYTES_UNKNOWN ||
	    atomic_fetch_add(&cache->bytes, size + sizeof(header)) + size + sizeof(header) >
		    cache->bytes_max)
		cache_make_room(cache);
	return 0;
}
