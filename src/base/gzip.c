/* Loads zlib for one call, deflates the input in chunks of the output, and closes zlib again. */
#include "base/gzip.h"

#include "base/extremes.h"
#include "base/loaded.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <zlib.h>

struct library {
	int (*init)(z_streamp, int, int, int, int, int, const char *, int);
	int (*deflate)(z_streamp, int);
	int (*end)(z_streamp);
};

static int compress_all(const struct library *library, const void *bytes, size_t size,
			struct tally_buffer *out)
{
	enum { GZIP_WINDOW = 15 + 16, MEMORY_LEVEL = 8, CHUNK = 1 << 16 };
	z_stream stream = { .next_in = (Bytef *)(uintptr_t)bytes };
	int status = library->init(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW,
				   MEMORY_LEVEL, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
				   (int)sizeof(stream));
	if (status != Z_OK)
		return -ENOMEM;
	do {
		if (!stream.avail_in) { /* zlib's counts have 32 bits */
			size_t more = tally_min_u64(size, (size_t)1 << 30);
			stream.avail_in = (uInt)more;
			size -= more;
		}
		char *room = tally_buffer_room(out, CHUNK);
		if (!room)
			break;
		stream.next_out = (Bytef *)room;
		stream.avail_out = CHUNK;
		status = library->deflate(&stream, size ? Z_NO_FLUSH : Z_FINISH);
		out->length += CHUNK - stream.avail_out;
	} while (status == Z_OK || status == Z_BUF_ERROR);
	library->end(&stream);
	if (status == Z_STREAM_END && !out->failed)
		return 0;
	return -ENOMEM;
}

int tally_gzip(const void *bytes, size_t size, struct tally_buffer *out, struct tally_error *err)
{
	struct library library;
	void *handle = tally_loaded_open("libz.so.1");
	int result = -ENOENT;
	if (handle && tally_loaded_find(handle, "deflateInit2_", &library.init) &&
	    tally_loaded_find(handle, "deflate", &library.deflate) &&
	    tally_loaded_find(handle, "deflateEnd", &library.end))
		result = compress_all(&library, bytes, size, out);
	if (handle)
		dlclose(handle);
	if (result == -ENOENT)
		return tally_loaded_refuse(err, result, "nothing can be compressed", "libz.so.1",
					   "zlib1g");
	if (result < 0)
		return tally_error_set(err, result, "out of memory");
	return result;
}
