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
 * - A build-id is a claim.  So the key has the identities of the files that the blob was made from,
 *   too.  A file of another user has none, and nothing of it is cached.
 * - A folder or file that belongs to another user, or that others can write, is not trusted,
 *   because the blobs decide what a report says.  So root with a user's HOME has no cache; it would
 *   leave files that the user can't remove, or write where the user's links lead.
 * - A file's time is that of its last use (atime is of no use: noatime is common).  When the cache
 *   is too large, the least recently used blobs go.  Each process reads the folder before it stores
 *   its first blob and counts its own blobs from then on.  Several processes together may exceed
 *   the limit until the next process starts.
 */
#include "object/cache.h"

#include "base/environment.h"
#include "base/number_text.h"
#include "base/output_path.h"
#include "base/vector.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define CACHE_BLOB_SUFFIX ".blob"
#define HEX "0123456789abcdef"
#define KIND_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789-"
#define CACHE_UNFINISHED_PREFIX ".new-"

enum {
	CACHE_NAME_MAX = 2 * TALLY_BUILD_ID_MAX + TALLY_CACHE_KIND_MAX + 64,
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
	uint8_t reserved[27]; /* 0; pads the header so that the blob is aligned to 64 bytes */
	struct tally_object_identity sources[TALLY_CACHE_SOURCES_MAX];
	uint64_t checksum;    /* of all bytes before it and behind it */
};
_Static_assert(sizeof(struct cache_header) == 192, "the blob is aligned");

#define BYTES_MAX_DEFAULT (512ull << 20)

enum { LAYOUT = 2, LANES = 4 };

static const uint64_t MAGIC = 0x31626f6c62796c74; /* "tlyblob1", in this machine's byte order */
static const uint64_t MULTIPLIER = 0xd6e8feb86659fd93;

/* ---- where it lies ------------------------------------------------------- */

static bool cache_is_ours(const struct stat *status)
{
	return status->st_uid == geteuid() && !(status->st_mode & (S_IWGRP | S_IWOTH));
}

static int no_cache(const char *folder, int code, struct tally_error *err)
{
	return tally_error_set(err, code, "%s can't be used: %s", folder, tally_errno_text(code));
}

/* Returns 0 if the open folder is fit for a cache, and for this user's eyes alone. */
static int check_folder(int fd, const char *folder, struct tally_error *err)
{
	struct stat status;
	if (fstat(fd, &status) < 0)
		return no_cache(folder, -errno, err);
	if (status.st_uid != geteuid())
		return tally_error_set(err, -EACCES, "%s belongs to another user", folder);
	if (!cache_is_ours(&status))
		return tally_error_set(err, -EACCES, "other users may write to %s", folder);
	if (status.st_mode & (S_IRWXG | S_IRWXO) && fchmod(fd, status.st_mode & S_IRWXU) < 0)
		return no_cache(folder, -errno, err);
	return 0;
}

/* Takes over `fd`. */
static struct tally_disk_cache *new_cache(int fd, const char *folder, uint64_t bytes_max,
					  struct tally_error *err)
{
	struct tally_disk_cache *cache = calloc(1, sizeof(*cache));
	char *name = strdup(folder);
	if (!cache || !name)
		tally_error_set(err, -ENOMEM, "out of memory");
	if (!cache || !name || check_folder(fd, folder, err) < 0) {
		close(fd);
		free(cache);
		free(name);
		return NULL;
	}
	cache->directory_fd = fd;
	cache->folder = name;
	cache->bytes_max = bytes_max;
	atomic_init(&cache->bytes, CACHE_BYTES_UNKNOWN);
	return cache;
}

enum { FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

struct tally_disk_cache *tally_cache_open_at(const char *folder, uint64_t bytes_max)
{
	int fd = open(folder, FOLDER_FLAGS);
	if (fd < 0)
		return NULL;
	return new_cache(fd, folder, bytes_max, NULL);
}

void tally_cache_close(struct tally_disk_cache *cache)
{
	if (!cache)
		return;
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

/* Opens a folder in another one, and makes it first if it is missing and the other one is ours.
 * Follows no link.  Returns a descriptor or -errno. */
static int open_folder(int above, const char *name)
{
	struct stat status;
	int fd = openat(above, name, FOLDER_FLAGS);
	if (fd < 0 && errno == ENOENT && !fstat(above, &status) && cache_is_ours(&status) &&
	    (!mkdirat(above, name, 0700) || errno == EEXIST))
		fd = openat(above, name, FOLDER_FLAGS);
	if (fd < 0)
		return -errno;
	return fd;
}

/* Finds the folder of all programs' caches by the XDG base directory specification, which says to
 * ignore a relative path. */
static bool name_caches(char caches[TALLY_CACHE_PATH_MAX])
{
	const char *above = tally_environment("XDG_CACHE_HOME");
	const char *home = tally_environment("HOME");
	int length = -1;
	if (above && *above == '/')
		length = snprintf(caches, TALLY_CACHE_PATH_MAX, "%s", above);
	else if (home && *home == '/')
		length = snprintf(caches, TALLY_CACHE_PATH_MAX, "%s/.cache", home);
	return length > 0 && length < TALLY_CACHE_PATH_MAX;
}

/* Opens the folder of all programs' caches, and sets its name.  The path's links must be this
 * user's or root's, and the folder must be this user's: its owner could put another folder in place
 * of tally's.  Returns a descriptor, or -errno with a message. */
static int open_caches(char caches[TALLY_CACHE_PATH_MAX], struct tally_error *err)
{
	struct tally_output_path path;
	struct stat status;
	if (!name_caches(caches))
		return tally_error_set(err, -ENOENT, "neither XDG_CACHE_HOME nor HOME is set");
	int fd = tally_output_path_open(&path, caches, err);
	if (fd < 0)
		return fd;
	fd = open_folder(path.folder, path.name);
	tally_output_path_close(&path);
	if (fd < 0)
		return no_cache(caches, fd, err);
	if (!fstat(fd, &status) && status.st_uid == geteuid())
		return fd;
	close(fd);
	return tally_error_set(err, -EACCES, "%s belongs to another user", caches);
}

int tally_cache_check_folder(struct tally_error *err)
{
	char caches[TALLY_CACHE_PATH_MAX];
	int fd = open_caches(caches, err);
	if (fd >= 0)
		close(fd);
	if (fd < 0)
		return fd;
	return 0;
}

struct tally_disk_cache *tally_cache_open(struct tally_error *err)
{
	uint64_t bytes_max = bytes_max_from(tally_environment("TALLY_CACHE_BYTES"));
	char caches[TALLY_CACHE_PATH_MAX], folder[TALLY_CACHE_PATH_MAX + sizeof("/tally")];
	if (!bytes_max) {
		tally_error_set(err, -ENOENT, "TALLY_CACHE_BYTES is 0");
		return NULL;
	}
	int above = open_caches(caches, err);
	if (above < 0)
		return NULL;
	int fd = open_folder(above, "tally");
	close(above);
	snprintf(folder, sizeof(folder), "%s/tally", caches);
	if (fd >= 0)
		return new_cache(fd, folder, bytes_max, err);
	no_cache(folder, fd, err);
	return NULL;
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
		size_t part = left;
		if (part > sizeof(word))
			part = sizeof(word);
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
	       strspn(kind, KIND_LETTERS) == length;
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
	memcpy(header->sources, key->sources, sizeof(header->sources));
}

void tally_cache_key_add(struct tally_cache_key *key, const struct tally_object *object)
{
	size_t i = 0;
	while (i < TALLY_CACHE_SOURCES_MAX && key->sources[i].inode)
		i++;
	if (i == TALLY_CACHE_SOURCES_MAX || !tally_object_identity(object, &key->sources[i]))
		key->id.size = 0;
}

/* A blob's name is BUILD-ID.KIND.PART.SOURCES.blob; all but the kind are hexadecimal numbers.
 * SOURCES is a checksum; the header has the sources themselves. */
static bool name_of(const struct tally_cache_key *key, char name[CACHE_NAME_MAX])
{
	char id[2 * TALLY_BUILD_ID_MAX + 1];
	if (!key->id.size || key->id.size > TALLY_BUILD_ID_MAX || !key->kind ||
	    !kind_is_sound(key->kind))
		return false;
	tally_build_id_format(&key->id, id);
	snprintf(name, CACHE_NAME_MAX, "%s.%s.%llx.%016llx" CACHE_BLOB_SUFFIX, id, key->kind,
		 (unsigned long long)key->part,
		 (unsigned long long)checksum(0, key->sources, sizeof(key->sources)));
	return true;
}

/* Returns what follows a word of these characters and a dot; NULL if the text is NULL or begins
 * otherwise. */
static const char *behind_word(const char *text, const char *characters)
{
	if (!text)
		return NULL;
	size_t length = strspn(text, characters);
	if (length && text[length] == '.')
		return text + length + 1;
	return NULL;
}

/* True for a blob's name.  Earlier versions of tally had no SOURCES. */
static bool is_blob_name(const char *name)
{
	const char *rest = behind_word(behind_word(behind_word(name, HEX), KIND_LETTERS), HEX);
	const char *sources = behind_word(rest, HEX);
	return rest && (!strcmp(rest, &CACHE_BLOB_SUFFIX[1]) ||
			(sources && !strcmp(sources, &CACHE_BLOB_SUFFIX[1])));
}

/* True for the name of a blob that is being written. */
static bool is_unfinished_name(const char *name)
{
	size_t length = strlen(CACHE_UNFINISHED_PREFIX), digits = 16;
	return !strncmp(name, CACHE_UNFINISHED_PREFIX, length) &&
	       strspn(name + length, HEX) == digits && !name[length + digits];
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

/* The cache's folder: lists its files and removes the oldest. */

struct cache_file {
	char name[CACHE_NAME_MAX];
	uint64_t bytes;
	int64_t used_s;
	bool unfinished;
};

/* Gets the cache's next file; skips files that are not the cache's.  Returns 1, or 0 at the end. */
static int next_file(const struct tally_disk_cache *cache, DIR *directory, struct cache_file *file)
{
	const struct dirent *entry;
	while ((entry = readdir(directory))) {
		struct stat status;
		file->unfinished = is_unfinished_name(entry->d_name);
		if ((!file->unfinished && !is_blob_name(entry->d_name)) ||
		    strlen(entry->d_name) >= sizeof(file->name) ||
		    fstatat(cache->directory_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(status.st_mode) || status.st_uid != geteuid())
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
	if (fd < 0)
		return NULL;
	DIR *directory = fdopendir(fd);
	if (!directory)
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
	if (length < 0)
		length = 0;
	path[length] = '\0';
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
			if (errno != ENOENT)
				status = -errno;
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
	char name[CACHE_NAME_MAX], unfinished[NAME_MAX + 1];
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

	int fd = tally_output_path_temporary(cache->directory_fd, CACHE_UNFINISHED_PREFIX, "",
					     unfinished);
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
