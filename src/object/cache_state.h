/* What the cache's two files share: a blob's header and a file's name. */
#ifndef TALLY_OBJECT_CACHE_STATE_H
#define TALLY_OBJECT_CACHE_STATE_H

#include "object/cache.h"

#include <stdatomic.h>
#include <sys/stat.h>

#define CACHE_BLOB_SUFFIX ".blob"
#define CACHE_UNFINISHED_PREFIX ".new-"

enum {
	CACHE_NAME_MAX = 2 * TALLY_BUILD_ID_MAX + TALLY_CACHE_KIND_MAX + 32,
	CACHE_USED_EXACT_S = 3600, /* a blob's time of use is written no more often */
};

struct tally_disk_cache {
	int directory_fd;
	uint64_t bytes_max;
	/* as far as this process knows; CACHE_BYTES_UNKNOWN before the folder was read */
	_Atomic uint64_t bytes;
	char *folder;
};

#define CACHE_BYTES_UNKNOWN UINT64_MAX

/* The blob lies behind it, and behind that the object's path without a NUL. */
struct cache_header {
	uint64_t magic; /* of the other byte order, it is another */
	uint32_t layout;
	uint32_t version;
	uint64_t part;
	uint64_t size;
	uint64_t path_size;
	char kind[TALLY_CACHE_KIND_MAX + 1];
	uint8_t id_size;
	uint8_t id[TALLY_BUILD_ID_MAX];
	uint8_t reserved[43]; /* 0: the blob is aligned to 64 bytes */
	uint64_t checksum;    /* of all bytes before it and behind it */
};
_Static_assert(sizeof(struct cache_header) == 128, "the blob is aligned");

/* Whether nobody but this user could have written it: a cache's folder, or a file in it. */
bool cache_is_ours(const struct stat *status);

/* The header's shape and sizes are right for a file of `file_bytes`; the checksum was not looked
 * at. */
bool cache_header_is_sound(const struct cache_header *header, uint64_t file_bytes);

/* Reads the folder; beyond the limit, removes what was not used for longest, and what writers that
 * died left. */
void cache_make_room(struct tally_disk_cache *cache);

#endif
