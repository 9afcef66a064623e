/* What was worked out from an object, kept on the disk for the next run: blobs, keyed by build-id
 * and kind.
 *
 * They lie in $XDG_CACHE_HOME/tally, else ~/.cache/tally: one file each, named for its key.  A
 * cache is never needed: a blob that is missing, damaged, of another version, or that another user
 * could have written, is a miss, and what can't be stored is forgotten.  So none of these functions
 * says why, and all take NULL for "no cache".
 *
 * Any number of processes and threads may read, store, list and clear at once, without locks: a
 * blob is written under a name of its own and renamed, and a file is never changed again.  A blob
 * that is open stays readable when it is removed.
 */
#ifndef TALLY_OBJECT_CACHE_H
#define TALLY_OBJECT_CACHE_H

#include "object/object.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TALLY_CACHE_KIND_MAX = 15, TALLY_CACHE_PATH_MAX = 4096 };

struct tally_disk_cache;

/* Which blob: the same bytes must follow from the same key, on any machine that it is read on. */
struct tally_cache_key {
	struct tally_build_id id; /* without one (size 0) nothing is cached */
	const char *kind; /* "symbols", "lines": lower-case letters, digits and '-', up to 15 */
	uint64_t part;            /* of several blobs of a kind, such as a unit's offset; else 0 */
	/* of the kind's layout: another version is a miss, and is replaced */
	uint32_t version;
};

/* The user's cache, its folder made where there is none.  NULL where there can be none: HOME unset,
 * a folder that can't be written or that is another user's (root with a user's HOME),
 * TALLY_CACHE_BYTES=0.
 *
 * TALLY_CACHE_BYTES is how much it may hold, such as 2G or 100M; 512M when unset.  Beyond it, those
 * that were not used for longest go. */
struct tally_disk_cache *tally_cache_open(void);

/* The same in a folder that is there. */
struct tally_disk_cache *tally_cache_open_at(const char *folder, uint64_t bytes_max);

void tally_cache_close(struct tally_disk_cache *cache);

struct tally_cache_blob {
	const void *bytes; /* mapped, aligned to 64 bytes; may be shared by threads */
	size_t size;
	void *mapping;
	size_t mapping_size;
};

/* A blob whose checksum was checked (about 0.1 ms a megabyte): true, and release it; or false. */
bool tally_cache_get(struct tally_disk_cache *cache, const struct tally_cache_key *key,
		     struct tally_cache_blob *out);

void tally_cache_blob_release(struct tally_cache_blob *blob);

/* Stores a blob.  `object_path` is what `tally cache --list` shows.  0, or -errno, which nobody
 * needs to look at: -EINVAL for a key that can't be one, -EFBIG for more than a quarter of what the
 * cache may hold. */
int tally_cache_put(struct tally_disk_cache *cache, const struct tally_cache_key *key,
		    const char *object_path, const void *bytes, size_t size);

/* ---- for who looks after it ---------------------------------------------- */

struct tally_cache_entry {
	struct tally_build_id id;
	char kind[TALLY_CACHE_KIND_MAX +
		  1]; /* "" for what is no blob of this version, or damaged at its start */
	uint64_t part;
	uint32_t version;
	uint64_t file_bytes;
	int64_t used_s;                      /* seconds since 1970; exact to the hour */
	char object_path[TALLY_CACHE_PATH_MAX];
};

/* Where it lies; lives as long as the cache. */
const char *tally_cache_folder(const struct tally_disk_cache *cache);
uint64_t tally_cache_bytes_max(const struct tally_disk_cache *cache);

/* Calls `entry` for each blob, in no order, until it gives other than 0, which is returned.
 * -errno. */
int tally_cache_list(struct tally_disk_cache *cache,
		     int (*entry)(void *context, const struct tally_cache_entry *entry),
		     void *context);

/* Removes all blobs, and what unfinished writers left.  How many files and bytes; 0 or -errno. */
int tally_cache_clear(struct tally_disk_cache *cache, uint64_t *files, uint64_t *bytes);

#endif
