/* A blob's header and file name, shared by cache.c and cache_folder.c. */
#ifndef TALLY_OBJECT_CACHE_STATE_H
#define TALLY_OBJECT_CACHE_STATE_H

#include "object/cache.h"

#include <stdatomic.h>
#include <sys/stat.h>

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

/* True if only this user can have written it: a cache's folder, or a file in it. */
bool cache_is_ours(const struct stat *status);

/* True if the header is well-formed and its sizes fit a file of `file_bytes`.  Does not verify the
 * checksum. */
bool cache_header_is_sound(const struct cache_header *header, uint64_t file_bytes);

/* Reads the folder.  Above the limit, removes the least recently used blobs, and always the
 * leftovers of writers that died. */
void cache_make_room(struct tally_disk_cache *cache);

#endif
