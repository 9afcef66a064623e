/* Each fact is an entry in the cache on disk: if the entry exists, the user has read the fact.  If
 * there is no cache, every fact is news each time. */
#include "command/news.h"

#include "object/cache.h"

#include <string.h>
#include <sys/utsname.h>

/* A home directory may be shared by machines, so the key contains the machine's name. */
static struct tally_cache_key key_of(enum tally_news fact)
{
	struct tally_cache_key key = { .kind = "news", .part = fact, .version = 1 };
	struct utsname machine;
	key.id.size = sizeof(key.id.bytes);
	if (uname(&machine) < 0)
		return key;
	for (size_t i = 0; machine.nodename[i]; i++)
		key.id.bytes[i % key.id.size] ^= (uint8_t)machine.nodename[i];
	return key;
}

bool tally_is_news(enum tally_news fact)
{
	const struct tally_cache_key key = key_of(fact);
	struct tally_disk_cache *cache = tally_cache_open(NULL);
	struct tally_cache_blob blob;
	bool is_known = cache && tally_cache_get(cache, &key, &blob);
	if (is_known)
		tally_cache_blob_release(&blob);
	else if (cache)
		tally_cache_put(cache, &key, "(what was said once)", "", 1);
	tally_cache_close(cache);
	return !is_known;
}
