/* Keeps results computed from objects on disk for the next run: blobs, keyed by build-id, by what
 * they were made from, and by kind.
 *
 * The folder is $XDG_CACHE_HOME/tally, otherwise ~/.cache/tally; each blob is a file named for its
 * key.  The cache is optional.  A blob is a miss when it is missing, damaged, of another version,
 * or could have been written by another user; a blob that can't be stored is dropped.  So the
 * functions below give no reason, and all accept NULL for "no cache".
 *
 * Any number of processes and threads may read, store, list and clear at once, without locks: a
 * blob is written under a temporary name and renamed, and the file never changes again.  An open
 * blob stays readable when it is removed.
 */
#ifndef TALLY_OBJECT_CACHE_H
#define TALLY_OBJECT_CACHE_H

#include "object/object.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TALLY_CACHE_KIND_MAX = 15,
	TALLY_CACHE_PATH_MAX = 4096,
	TALLY_CACHE_SOURCES_MAX = 2, /* an object and its debug file */
};

struct tally_disk_cache;

/* A blob's key.  The same key must stand for the same bytes on every machine. */
struct tally_cache_key {
	struct tally_build_id id; /* size 0: nothing is cached */
	/* the files that the blob is made from (tally_cache_key_add()); 0: none */
	struct tally_object_identity sources[TALLY_CACHE_SOURCES_MAX];
	const char *kind; /* "symbols", "lines": lower-case letters, digits and '-', up to 15 */
	/* tells several blobs of a kind apart, such as a unit's offset; otherwise 0 */
	uint64_t part;
	/* of the kind's layout; a blob of another version is a miss, and is replaced */
	uint32_t version;
};

/* Adds a file to those that the blob is made from.  Without it, a file that claims another's
 * build-id would give the other its names.  If the file has no identity (it is another user's),
 * the key becomes one that nothing is cached for: to hash the file would take longer than to read
 * its symbols. */
void tally_cache_key_add(struct tally_cache_key *key, const struct tally_object *object);

/* Opens the user's cache and makes its folder, of mode 0700, if needed.  Returns NULL with a message
 * when HOME is unset, when the folder can't be written, is a link, or belongs to another user, like
 * the folder above it (root with a user's HOME), or with TALLY_CACHE_BYTES=0.
 *
 * TALLY_CACHE_BYTES limits the cache's size, for example 2G or 100M; the default is 512M.  Above
 * the limit, the least recently used blobs are removed. */
struct tally_disk_cache *tally_cache_open(struct tally_error *err);

/* Returns 0 if the folder of all programs' caches (XDG_CACHE_HOME, ~/.cache) is fit for files of
 * this user, or -errno with a message. */
int tally_cache_check_folder(struct tally_error *err);

/* Opens a cache in a folder that exists. */
struct tally_disk_cache *tally_cache_open_at(const char *folder, uint64_t bytes_max);

void tally_cache_close(struct tally_disk_cache *cache);

struct tally_cache_blob {
	const void *bytes; /* mapped, aligned to 64 bytes; may be shared by threads */
	size_t size;
	void *mapping;
	size_t mapping_size;
};

/* Gets a blob and verifies its checksum (about 0.1 ms per megabyte).  Returns true, and the caller
 * releases the blob; or false. */
bool tally_cache_get(struct tally_disk_cache *cache, const struct tally_cache_key *key,
		     struct tally_cache_blob *out);

void tally_cache_blob_release(struct tally_cache_blob *blob);

/* Stores a blob.  `tally cache --list` shows `object_path`.  Returns 0 or -errno, which callers may
 * ignore: -EINVAL for an invalid key, -EFBIG for a blob larger than a quarter of the cache's
 * limit. */
int tally_cache_put(struct tally_disk_cache *cache, const struct tally_cache_key *key,
		    const char *object_path, const void *bytes, size_t size);

/* ---- for who looks after it ---------------------------------------------- */

struct tally_cache_entry {
	struct tally_build_id id;
	char kind[TALLY_CACHE_KIND_MAX +
		  1]; /* "" for a file that is no blob of this version or whose header is damaged */
	uint64_t part;
	uint32_t version;
	uint64_t file_bytes;
	int64_t used_s;                      /* seconds since 1970; exact to the hour */
	char object_path[TALLY_CACHE_PATH_MAX];
};

/* Returns the cache's folder; valid until the cache is closed. */
const char *tally_cache_folder(const struct tally_disk_cache *cache);
uint64_t tally_cache_bytes_max(const struct tally_disk_cache *cache);

/* Calls `entry` for each blob, in any order, until `entry` returns non-zero; returns that value.
 * Returns -errno when the folder can't be read. */
int tally_cache_list(struct tally_disk_cache *cache,
		     int (*entry)(void *context, const struct tally_cache_entry *entry),
		     void *context);

/* Removes all blobs, and the leftovers of writers that died; no other file.  Sets the numbers of files and bytes
 * removed.  Returns 0 or -errno. */
int tally_cache_clear(struct tally_disk_cache *cache, uint64_t *files, uint64_t *bytes);

#endif
