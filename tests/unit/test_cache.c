#include "test.h"

#include "object/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 40, WRITERS = 4, NOBODY = 65534, HEADER_BYTES = 192 };

static const struct tally_cache_key SYMBOLS = {
	.id = { .size = 20, .bytes = { 0xde, 0xad, 1,  2,  3,  4,  5,  6,  7,  8,
				       9,    10,   11, 12, 13, 14, 15, 16, 17, 18 } },
	.kind = "symbols",
	.version = 3,
};

static const char OBJECT[] = "/usr/bin/true";

static int make_folder(void **state)
{
	char *folder = strdup("/tmp/tally-cache-XXXXXX");
	*state = folder;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[256];
	snprintf(command, sizeof(command), "chmod -R u+rwX %s; rm -rf %s", (char *)*state,
		 (char *)*state);
	int status = system(command);
	free(*state);
	return status;
}

static struct tally_disk_cache *open_cache(void **state)
{
	struct tally_disk_cache *cache = tally_cache_open_at(*state, 64 << 20);
	assert_non_null(cache);
	return cache;
}

/* Fills a blob so that its content identifies it. */
static void fill(uint8_t *bytes, size_t size, uint64_t part)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(part * 7 + i * 13 + (i >> 8));
}

static bool holds(struct tally_disk_cache *cache, const struct tally_cache_key *key,
		  const void *bytes, size_t size)
{
	struct tally_cache_blob blob;
	if (!tally_cache_get(cache, key, &blob))
		return false;
	bool equal = blob.size == size && !memcmp(blob.bytes, bytes, size);
	tally_cache_blob_release(&blob);
	assert_true(equal); /* a wrong answer is worse than a miss */
	return true;
}

static bool misses(struct tally_disk_cache *cache, const struct tally_cache_key *key)
{
	struct tally_cache_blob blob;
	bool found = tally_cache_get(cache, key, &blob);
	tally_cache_blob_release(&blob);
	return !found;
}

static size_t files_in(const char *folder)
{
	size_t count = 0;
	DIR *directory = opendir(folder);
	for (const struct dirent *entry; (entry = readdir(directory));)
		count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
	closedir(directory);
	return count;
}

/* Gets the path of the only file. */
static void only_file(void **state, char path[512])
{
	DIR *directory = opendir(*state);
	path[0] = '\0';
	for (const struct dirent *entry; (entry = readdir(directory));)
		if (entry->d_name[0] != '.')
			snprintf(path, 512, "%s/%s", (char *)*state, entry->d_name);
	closedir(directory);
}

static void what_was_stored_is_read_again(void **state)
{
	uint8_t bytes[100000];
	struct tally_disk_cache *cache = open_cache(state);
	fill(bytes, sizeof(bytes), 1);
	const size_t sizes[] = { 0, 1, 7, 8, 31, 32, 33, 4096, sizeof(bytes) };
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_int_equal(tally_cache_put(cache, &SYMBOLS, OBJECT, bytes, sizes[i]), 0);
		/* the new blob replaces the old one */
		assert_true(holds(cache, &SYMBOLS, bytes, sizes[i]));
	}
	assert_int_equal(files_in(*state), 1);
	tally_cache_close(cache);

	cache = open_cache(state);
	struct tally_cache_blob blob;
	assert_true(tally_cache_get(cache, &SYMBOLS, &blob));
	assert_int_equal((uintptr_t)blob.bytes % 64, 0);
	tally_cache_blob_release(&blob);
	tally_cache_close(cache);
}

static void another_key_is_a_miss(void **state)
{
	struct tally_disk_cache *cache = open_cache(state);
	struct tally_cache_key keys[] = { SYMBOLS, SYMBOLS, SYMBOLS, SYMBOLS, SYMBOLS, SYMBOLS };
	const size_t count = sizeof(keys) / sizeof(keys[0]);
	assert_int_equal(tally_cache_put(cache, &SYMBOLS, OBJECT, "blob", 4), 0);
	keys[0].id.bytes[19]++;
	keys[1].id.size = 19;
	keys[2].kind = "lines";
	keys[3].part = 1;
	keys[4].sources[0].inode = 7;
	keys[5].sources[0] = (struct tally_object_identity){ .inode = 7, .changed_ns = 1 };
	for (size_t i = 0; i < count; i++)
		assert_true(misses(cache, &keys[i]));
	for (size_t i = 0; i < count; i++)
		assert_int_equal(tally_cache_put(cache, &keys[i], OBJECT, &i, sizeof(i)), 0);
	for (size_t i = 0; i < count; i++)
		assert_true(holds(cache, &keys[i], &i, sizeof(i)));
	assert_true(holds(cache, &SYMBOLS, "blob", 4));
	tally_cache_close(cache);
}

static void another_version_is_a_miss_and_is_replaced(void **state)
{
	struct tally_disk_cache *cache = open_cache(state);
	struct tally_cache_key newer = SYMBOLS;
	newer.version++;
	assert_int_equal(tally_cache_put(cache, &SYMBOLS, OBJECT, "old", 3), 0);
	assert_true(misses(cache, &newer));
	assert_int_equal(tally_cache_put(cache, &newer, OBJECT, "new", 3), 0);
	assert_true(misses(cache, &SYMBOLS));
	assert_true(holds(cache, &newer, "new", 3));
	assert_int_equal(files_in(*state), 1);
	tally_cache_close(cache);
}

static void keys_that_can_be_none_are_refused(void **state)
{
	struct tally_disk_cache *cache = open_cache(state);
	struct tally_cache_key key = SYMBOLS;
	const char *const kinds[] = {
		"", "../../etc", "Symbols", "a kind", "sixteen-letters-", NULL
	};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		key.kind = kinds[i];
		assert_int_equal(tally_cache_put(cache, &key, OBJECT, "", 0), -EINVAL);
		assert_true(misses(cache, &key));
	}
	key = SYMBOLS;
	key.id.size = 0;
	assert_int_equal(tally_cache_put(cache, &key, OBJECT, "", 0), -EINVAL);
	assert_true(misses(cache, &key));
	assert_int_equal(files_in(*state), 0);
	tally_cache_close(cache);
	assert_true(misses(NULL, &SYMBOLS));
	assert_int_equal(tally_cache_put(NULL, &SYMBOLS, OBJECT, "", 0), -ENOENT);
	tally_cache_close(NULL);
}

/* Changes each byte of the file, truncates it at each length, and lengthens it. */
static void damage_is_a_miss(void **state)
{
	uint8_t blob[150], file[400];
	char path[512];
	struct tally_disk_cache *cache = open_cache(state);
	fill(blob, sizeof(blob), 2);
	assert_int_equal(tally_cache_put(cache, &SYMBOLS, OBJECT, blob, sizeof(blob)), 0);
	only_file(state, path);
	int fd = open(path, O_RDWR);
	ssize_t size = read(fd, file, sizeof(file));
	assert_int_equal(size, HEADER_BYTES + sizeof(blob) + strlen(OBJECT));
	for (ssize_t i = 0; i < size; i++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			uint8_t wrong = (uint8_t)(file[i] ^ 1u << bit);
			assert_int_equal(pwrite(fd, &wrong, 1, i), 1);
			if (!misses(cache, &SYMBOLS))
				fail_msg("bit %u of byte %zd", bit, i);
		}
		assert_int_equal(pwrite(fd, &file[i], 1, i), 1);
	}
	assert_true(holds(cache, &SYMBOLS, blob, sizeof(blob)));
	assert_int_equal(pwrite(fd, "", 1, size), 1);
	assert_true(misses(cache, &SYMBOLS));
	for (ssize_t i = size - 1; i >= 0; i--) {
		assert_int_equal(ftruncate(fd, i), 0);
		assert_true(misses(cache, &SYMBOLS));
	}
	close(fd);
	assert_int_equal(tally_cache_put(cache, &SYMBOLS, OBJECT, blob, sizeof(blob)), 0);
	assert_true(holds(cache, &SYMBOLS, blob, sizeof(blob)));
	tally_cache_close(cache);
}

static void a_renamed_file_is_no_other_blob(void **state)
{
	char from[512], to[700];
	struct tally_disk_cache *cache = open_cache(state);
	struct tally_cache_key other = SYMBOLS;
	other.part = 0x1f;
	assert_int_equal(tally_cache_put(cache, &SYMBOLS, OBJECT, "blob", 4), 0);
	only_file(state, from);
	const char *part = strstr(from, ".symbols.0") + strlen(".symbols.");
	snprintf(to, sizeof(to), "%.*s1f%.50s", (int)(part - from), from, part + 1);
	assert_int_equal(rename(from, to), 0);
	assert_true(misses(cache, &SYMBOLS));
	assert_true(misses(cache, &other));
	assert_int_equal(tally_cache_put(cache, &other, OBJECT, "blob", 4), 0);
	assert_int_equal(files_in(*state), 1); /* so the file name was right */
	tally_cache_close(cache);
}

static void what_others_could_have_written_is_not_believed(void **state)
{
	char path[512], link[600];
	struct tally_disk_cache *cache = open_cache(state);
	assert_int_equal(tally_cache_put(cache, &SYMBOLS, OBJECT, "blob", 4), 0);
	only_file(state, path);
	assert_int_equal(chmod(path, 0620), 0);
	assert_true(misses(cache, &SYMBOLS));
	assert_int_equal(chmod(path, 0602), 0);
	assert_true(misses(cache, &SYMBOLS));
	assert_int_equal(chmod(path, 0644), 0);
	assert_true(holds(cache, &SYMBOLS, "blob", 4));
	snprintf(link, sizeof(link), "%s/elsewhere", (char *)*state);
	assert_int_equal(rename(path, link), 0);
	assert_int_equal(symlink(link, path), 0);
	assert_true(misses(cache, &SYMBOLS));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0); /* the cache does not wait for a writer */
	assert_true(misses(cache, &SYMBOLS));
	tally_cache_close(cache);

	assert_int_equal(chmod(*state, 0770), 0);
	assert_null(tally_cache_open_at(*state, 1 << 20));
	assert_int_equal(chmod(*state, 0700), 0);
	if (geteuid() != 0)
		return;
	assert_int_equal(chown(*state, NOBODY, NOBODY), 0);
	assert_null(tally_cache_open_at(*state, 1 << 20));
	assert_int_equal(chown(*state, 0, 0), 0);
	cache = open_cache(state);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rename(link, path), 0);
	assert_true(holds(cache, &SYMBOLS, "blob", 4));
	assert_int_equal(chown(path, NOBODY, NOBODY), 0);
	assert_true(misses(cache, &SYMBOLS));
	tally_cache_close(cache);
}

/* ---- whose file it is ---------------------------------------------------- */

/* Copies this program to the folder. */
static void copy_program(void **state, const char *name, uid_t owner, mode_t mode, char path[600])
{
	char command[1400];
	snprintf(path, 600, "%s/%s", (char *)*state, name);
	snprintf(command, sizeof(command), "cp /proc/%d/exe %s", (int)getpid(), path);
	assert_int_equal(system(command), 0);
	assert_int_equal(chmod(path, mode), 0);
	assert_true(owner == geteuid() || !chown(path, owner, owner));
}

static struct tally_cache_key key_of(const char *path)
{
	struct tally_object *object;
	struct tally_cache_key key = { .kind = "lines" };
	assert_int_equal(tally_object_open(AT_FDCWD, path, &object, NULL), 0);
	key.id = *tally_object_build_id(object);
	assert_int_not_equal(key.id.size, 0);
	tally_cache_key_add(&key, object);
	tally_object_unref(object);
	return key;
}

/* The same bytes, build-id and size each time. */
static void a_key_is_of_one_file_at_one_time(void **state)
{
	char path[600], other[600], again[4000];
	copy_program(state, "program", geteuid(), 0755, path);
	copy_program(state, "other", geteuid(), 0755, other);
	struct tally_cache_key key = key_of(path), same = key_of(path), others = key_of(other);
	assert_memory_equal(&key, &same, sizeof(key));
	assert_memory_not_equal(&key, &others, sizeof(key));
	snprintf(again, sizeof(again), "cat %s >%s.copy; cat %s.copy >%s; touch -r %s %s", path,
		 path, path, path, other, path);
	assert_int_equal(system(again), 0);
	struct tally_cache_key later = key_of(path);
	assert_memory_not_equal(&key, &later, sizeof(key));
}

static void nothing_is_cached_of_what_others_may_write(void **state)
{
	char path[600];
	struct tally_disk_cache *cache = open_cache(state);
	copy_program(state, "writable", geteuid(), 0757, path);
	struct tally_cache_key key = key_of(path);
	assert_int_equal(tally_cache_put(cache, &key, OBJECT, "blob", 4), -EINVAL);
	assert_true(misses(cache, &key));
	if (geteuid() == 0) {
		copy_program(state, "others", NOBODY, 0755, path);
		key = key_of(path);
		assert_int_equal(tally_cache_put(cache, &key, OBJECT, "blob", 4), -EINVAL);
	}
	tally_cache_close(cache);
}

/* A key has room for an object and its debug file. */
static void more_files_than_a_key_can_name_are_not_cached(void **state)
{
	char path[600];
	struct tally_object *object;
	copy_program(state, "program", geteuid(), 0755, path);
	struct tally_cache_key key = key_of(path);
	assert_int_equal(tally_object_open(AT_FDCWD, path, &object, NULL), 0);
	tally_cache_key_add(&key, object);
	assert_int_not_equal(key.id.size, 0);
	tally_cache_key_add(&key, object);
	assert_int_equal(key.id.size, 0);
	tally_object_unref(object);
}

/* ---- bounded ------------------------------------------------------------- */

static void use_at(void **state, uint64_t part, int64_t seconds_ago)
{
	char pattern[600];
	glob_t found;
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
					   { .tv_sec = time(NULL) - seconds_ago } };
	snprintf(pattern, sizeof(pattern),
		 "%s/dead0102030405060708090a0b0c0d0e0f101112.symbols.%llx.*.blob", (char *)*state,
		 (unsigned long long)part);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	assert_int_equal(utimensat(AT_FDCWD, found.gl_pathv[0], times, 0), 0);
	globfree(&found);
}

static void what_was_not_used_for_longest_goes(void **state)
{
	static uint8_t bytes[10000];
	struct tally_disk_cache *cache = tally_cache_open_at(*state, 100000);
	struct tally_cache_key key = SYMBOLS;
	for (key.part = 0; key.part < 9; key.part++) {
		assert_int_equal(tally_cache_put(cache, &key, OBJECT, bytes, sizeof(bytes)), 0);
		use_at(state, key.part, 100000 - 10000 * (int64_t)key.part);
	}
	key.part = 0;
	assert_true(holds(cache, &key, bytes, sizeof(bytes))); /* this use makes it the youngest */
	for (key.part = 9; key.part < 11; key.part++)
		assert_int_equal(tally_cache_put(cache, &key, OBJECT, bytes, sizeof(bytes)), 0);
	for (key.part = 0; key.part < 11; key.part++)
		/* the cache shrinks to 7/8 of 100,000 */
		assert_int_equal(misses(cache, &key), key.part == 1 || key.part == 2);
	assert_int_equal(tally_cache_put(cache, &key, OBJECT, bytes, 10000), 0);
	static uint8_t large[25001];
	assert_int_equal(tally_cache_put(cache, &key, OBJECT, large, sizeof(large)), -EFBIG);
	tally_cache_close(cache);
}

/* Neither the limit nor --clear removes a file that tally did not write. */
static void only_files_of_the_cache_are_removed(void **state)
{
	static const char *const others[] = { "keep.blob", "notes.txt", ".new-file", "dead.blob",
					      "dead.symbols.x.blob", "dead.symbols.0.blob.old",
					      ".new-0123456789abcdef.c", "g.symbols.0.0.blob",
					      "dead.Symbols.0.0.blob", "dead.symbols.0.0.0.blob" };
	static const char *const written[] = { "dead.symbols.0.blob", "dead.lines.1f.0a.blob" };
	const size_t count = sizeof(others) / sizeof(others[0]);
	const struct timespec times[2] = { { 0 }, { 0 } };
	struct tally_disk_cache *cache = tally_cache_open_at(*state, 1000);
	uint64_t files, bytes;
	char path[600];
	for (size_t i = 0; i < count + 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", (char *)*state,
			 i < count ? others[i] : written[i - count]);
		int fd = open(path, O_CREAT | O_WRONLY, 0600);
		assert_int_equal(ftruncate(fd, 1000), 0);
		assert_int_equal(futimens(fd, times), 0);
		close(fd);
	}
	assert_int_equal(tally_cache_put(cache, &SYMBOLS, OBJECT, "blob", 4), 0); /* makes room */
	assert_int_equal(files_in(*state), count + 1);
	assert_int_equal(tally_cache_clear(cache, &files, &bytes), 0);
	assert_int_equal(files, 1);
	assert_int_equal(files_in(*state), count);
	tally_cache_close(cache);
}

static void the_folder_is_for_this_user_alone(void **state)
{
	char link[300], folder[400];
	struct stat status;
	assert_int_equal(chmod(*state, 0755), 0);
	tally_cache_close(open_cache(state));
	assert_int_equal(stat(*state, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	snprintf(link, sizeof(link), "%s/link", (char *)*state);
	assert_int_equal(symlink(*state, link), 0);
	assert_null(tally_cache_open_at(link, 1 << 20));
	/* The caches' folder may be a link of the user, but not tally's folder in it. */
	setenv("XDG_CACHE_HOME", link, 1);
	unsetenv("TALLY_CACHE_BYTES");
	struct tally_disk_cache *cache = tally_cache_open(NULL);
	assert_non_null(cache);
	tally_cache_close(cache);
	snprintf(folder, sizeof(folder), "%s/tally", (char *)*state);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(symlink(*state, folder), 0);
	struct tally_error err = TALLY_ERROR_NONE;
	assert_null(tally_cache_open(&err));
	assert_non_null(strstr(err.message, "link/tally can't be used"));
	unsetenv("XDG_CACHE_HOME");
}

/* A new process does not know the cache's size until it stores something. */
static void the_limit_holds_for_each_new_process(void **state)
{
	static uint8_t bytes[10000];
	struct tally_cache_key key = SYMBOLS;
	for (key.part = 0; key.part < MANY; key.part++) {
		struct tally_disk_cache *cache = tally_cache_open_at(*state, 100000);
		assert_int_equal(tally_cache_put(cache, &key, OBJECT, bytes, sizeof(bytes)), 0);
		assert_true(holds(cache, &key, bytes, sizeof(bytes)) || key.part >= 9);
		tally_cache_close(cache);
		assert_true(files_in(*state) <= 9);
	}
}

static void what_writers_left_is_removed_later(void **state)
{
	char path[600];
	snprintf(path, sizeof(path), "%s/.new-0123456789abcdef", (char *)*state);
	struct tally_disk_cache *cache = open_cache(state);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(tally_cache_put(cache, &SYMBOLS, OBJECT, "", 0), 0);
	assert_int_equal(files_in(*state), 2); /* its writer may still be at work */
	const struct timespec times[2] = { { 0 }, { .tv_sec = time(NULL) - 7200 } };
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	tally_cache_close(cache);
	cache = open_cache(state);
	assert_int_equal(tally_cache_put(cache, &SYMBOLS, OBJECT, "", 0), 0);
	assert_int_equal(files_in(*state), 1);
	tally_cache_close(cache);
}

/* ---- several at once ----------------------------------------------------- */

/* Stores and reads the same few keys as the other threads, each blob with its own size. */
static void *store_and_read(void *folder)
{
	static _Thread_local uint8_t bytes[20000];
	struct tally_disk_cache *cache = tally_cache_open_at(folder, 200000);
	struct tally_cache_key key = SYMBOLS;
	for (unsigned round = 0; round < 300; round++) {
		key.part = round * 31 % 17;
		size_t size = 5000 + key.part * 800;
		fill(bytes, size, key.part);
		if (round % 3 == 0)
			tally_cache_put(cache, &key, OBJECT, bytes, size);
		else
			holds(cache, &key, bytes, size);
		uint64_t files, freed;
		if (round == 150)
			tally_cache_clear(cache, &files, &freed);
	}
	tally_cache_close(cache);
	return NULL;
}

static void processes_at_once_see_whole_blobs(void **state)
{
	pid_t writers[WRITERS];
	for (int i = 0; i < WRITERS; i++) {
		writers[i] = fork();
		if (!writers[i]) {
			store_and_read(*state);
			_exit(0);
		}
	}
	usleep(2000);
	kill(writers[0], SIGKILL); /* at any point of its work */
	for (int i = 0; i < WRITERS; i++) {
		int status;
		assert_int_equal(waitpid(writers[i], &status, 0), writers[i]);
		assert_true(i == 0 || status == 0);
	}
	store_and_read(*state);
}

static void threads_at_once_share_a_cache(void **state)
{
	pthread_t threads[WRITERS];
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, store_and_read, *state), 0);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	assert_true(files_in(*state) <= 17);
}

static void a_blob_outlives_its_file(void **state)
{
	uint64_t files, bytes;
	struct tally_cache_blob blob;
	struct tally_disk_cache *cache = open_cache(state);
	assert_int_equal(tally_cache_put(cache, &SYMBOLS, OBJECT, "old", 3), 0);
	assert_true(tally_cache_get(cache, &SYMBOLS, &blob));
	assert_int_equal(tally_cache_put(cache, &SYMBOLS, OBJECT, "newer", 5), 0);
	assert_int_equal(tally_cache_clear(cache, &files, &bytes), 0);
	assert_int_equal(files, 1);
	assert_int_equal(bytes, HEADER_BYTES + 5 + strlen(OBJECT));
	assert_memory_equal(blob.bytes, "old", 3);
	tally_cache_blob_release(&blob);
	assert_int_equal(files_in(*state), 0);
	tally_cache_close(cache);
}

/* ---- no room, no right --------------------------------------------------- */

/* Fails a write in a child: it must leave no file. */
static void a_full_disk_leaves_nothing_behind(void **state)
{
	pid_t child = fork();
	if (!child) {
		static uint8_t bytes[100000];
		struct rlimit limit = { 50000, 50000 };
		struct tally_disk_cache *cache = tally_cache_open_at(*state, 64 << 20);
		signal(SIGXFSZ, SIG_IGN);
		bool right = tally_cache_put(cache, &SYMBOLS, OBJECT, "old", 3) == 0 &&
			     !setrlimit(RLIMIT_FSIZE, &limit) &&
			     tally_cache_put(cache, &SYMBOLS, OBJECT, bytes, sizeof(bytes)) ==
				     -EFBIG &&
			     holds(cache, &SYMBOLS, "old", 3);
		_exit(right ? 0 : 1);
	}
	int status;
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(files_in(*state), 1);
}

static void a_folder_that_can_only_be_read_is_read(void **state)
{
	char path[512];
	struct tally_disk_cache *cache = open_cache(state);
	assert_int_equal(tally_cache_put(cache, &SYMBOLS, OBJECT, "blob", 4), 0);
	tally_cache_close(cache);
	only_file(state, path);
	assert_int_equal(chmod(path, 0400), 0);
	assert_int_equal(chmod(*state, 0500), 0);
	if (geteuid() == 0)
		assert_int_equal(chown(path, NOBODY, NOBODY) | chown(*state, NOBODY, NOBODY), 0);
	pid_t child = fork();
	if (!child) {
		if (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY))
			_exit(2);
		cache = tally_cache_open_at(*state, 64 << 20);
		bool right = cache && holds(cache, &SYMBOLS, "blob", 4) &&
			     tally_cache_put(cache, &SYMBOLS, OBJECT, "blob", 4) == -EACCES;
		_exit(right ? 0 : 1);
	}
	int status;
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	if (geteuid() == 0)
		assert_int_equal(chown(*state, 0, 0), 0);
}

/* ---- where it is --------------------------------------------------------- */

static void expect_folder(const char *expected, uint64_t bytes_max)
{
	struct tally_disk_cache *cache = tally_cache_open(NULL);
	assert_non_null(cache);
	assert_string_equal(tally_cache_folder(cache), expected);
	assert_int_equal(tally_cache_bytes_max(cache), bytes_max);
	tally_cache_close(cache);
}

static void the_environment_says_where(void **state)
{
	char home[300], xdg[300], expected[400];
	struct stat status;
	snprintf(home, sizeof(home), "%s/home", (char *)*state);
	snprintf(xdg, sizeof(xdg), "%s/xdg", (char *)*state);
	assert_int_equal(mkdir(home, 0755), 0);
	unsetenv("TALLY_CACHE_BYTES");
	unsetenv("XDG_CACHE_HOME");
	setenv("HOME", home, 1);
	snprintf(expected, sizeof(expected), "%s/.cache/tally", home);
	expect_folder(expected, 512 << 20);
	assert_int_equal(stat(expected, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	setenv("XDG_CACHE_HOME", "not/absolute", 1);
	expect_folder(expected, 512 << 20);
	setenv("XDG_CACHE_HOME", xdg, 1);
	snprintf(expected, sizeof(expected), "%s/tally", xdg);
	setenv("TALLY_CACHE_BYTES", "3M", 1);
	expect_folder(expected, 3 << 20);
	setenv("TALLY_CACHE_BYTES", "2g", 1);
	expect_folder(expected, 2ull << 30);
	setenv("TALLY_CACHE_BYTES", "70K", 1);
	expect_folder(expected, 70 << 10);
	setenv("TALLY_CACHE_BYTES", "5000", 1);
	expect_folder(expected, 5000);
	setenv("TALLY_CACHE_BYTES", "3MB", 1);
	expect_folder(expected, 512 << 20);
	setenv("TALLY_CACHE_BYTES", "many", 1);
	expect_folder(expected, 512 << 20);
	setenv("TALLY_CACHE_BYTES", "0", 1);
	assert_null(tally_cache_open(NULL));
	unsetenv("TALLY_CACHE_BYTES");
	setenv("XDG_CACHE_HOME", "/nowhere/at/all", 1);
	assert_null(tally_cache_open(NULL));
	unsetenv("XDG_CACHE_HOME");
	unsetenv("HOME");
	assert_null(tally_cache_open(NULL));
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(what_was_stored_is_read_again),
		IN_FOLDER(another_key_is_a_miss),
		IN_FOLDER(another_version_is_a_miss_and_is_replaced),
		IN_FOLDER(keys_that_can_be_none_are_refused),
		IN_FOLDER(damage_is_a_miss),
		IN_FOLDER(a_renamed_file_is_no_other_blob),
		IN_FOLDER(what_others_could_have_written_is_not_believed),
		IN_FOLDER(a_key_is_of_one_file_at_one_time),
		IN_FOLDER(nothing_is_cached_of_what_others_may_write),
		IN_FOLDER(more_files_than_a_key_can_name_are_not_cached),
		IN_FOLDER(only_files_of_the_cache_are_removed),
		IN_FOLDER(the_folder_is_for_this_user_alone),
		IN_FOLDER(what_was_not_used_for_longest_goes),
		IN_FOLDER(the_limit_holds_for_each_new_process),
		IN_FOLDER(what_writers_left_is_removed_later),
		IN_FOLDER(processes_at_once_see_whole_blobs),
		IN_FOLDER(threads_at_once_share_a_cache),
		IN_FOLDER(a_blob_outlives_its_file),
		IN_FOLDER(a_full_disk_leaves_nothing_behind),
		IN_FOLDER(a_folder_that_can_only_be_read_is_read),
		IN_FOLDER(the_environment_says_where),
	};
	return cmocka_run_group_tests_name("cache", tests, NULL, NULL);
}
