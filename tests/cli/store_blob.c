/* Stores blobs for tests of the command: store_blob KIND PART BYTES OBJECT BUILD-ID-BYTE.  The
 * cache is the environment's. */
#include "object/cache.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
	if (argc != 6)
		return 2;
	struct tally_cache_key key = { .id = { .size = 20 },
				       .kind = argv[1],
				       .part = strtoull(argv[2], NULL, 0) };
	for (unsigned i = 0; i < key.id.size; i++)
		key.id.bytes[i] = (uint8_t)strtoul(argv[5], NULL, 0);
	size_t size = strtoull(argv[3], NULL, 0);
	void *bytes = calloc(1, size + 1);
	struct tally_disk_cache *cache = tally_cache_open(NULL);
	int status = tally_cache_put(cache, &key, argv[4], bytes, size);
	tally_cache_close(cache);
	free(bytes);
	return status ? 1 : 0;
}
