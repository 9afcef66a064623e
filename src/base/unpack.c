/* Each format has a function that decodes one compressed file into a given buffer.  If the buffer
 * is too small, it is replaced by a larger one, and decoding starts again. */
#include "base/unpack.h"

#include "base/extremes.h"
#include "base/loaded.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

static const uint8_t XZ[] = { 0xfd, '7', 'z', 'X', 'Z', 0 }, ZSTD[] = { 0x28, 0xb5, 0x2f, 0xfd },
		     GZIP[] = { 0x1f, 0x8b };

static bool begins(const void *bytes, size_t size, const uint8_t *magic, size_t length)
{
	return size > length && !memcmp(bytes, magic, length);
}

bool tally_is_packed(const void *bytes, size_t size)
{
	return begins(bytes, size, XZ, sizeof(XZ)) || begins(bytes, size, ZSTD, sizeof(ZSTD)) ||
	       begins(bytes, size, GZIP, sizeof(GZIP));
}

/* The unpacked size is unknown or untrusted.  So `attempt` tries a buffer, and returns 1 when it
 * was too small. */
struct unpacking {
	const void *bytes;
	size_t size;
	void *handle;
	int (*decode_xz)(uint64_t *memory_limit, uint32_t flags, const void *allocator,
			 const uint8_t *in, size_t *in_at,
			 /* as in lzma/container.h */
			 size_t in_size, uint8_t *out, size_t *out_at, size_t out_size);
	int (*inflate_init)(z_stream *stream, int window_bits, const char *version,
			    int stream_size);
	int (*inflate)(z_stream *stream, int flush);
	int (*inflate_end)(z_stream *stream);
	/* Decodes the first of the compressed files that `bytes` consists of, and sets `used` to
	 * its size. */
	int (*attempt)(const struct unpacking *unpacking, size_t *used, uint8_t *out, size_t room,
		       size_t *out_size);
};

/* ---- xz ------------------------------------------------------------------ */

/* True if the last bytes are the footer's magic, perhaps with padding behind it.  liblzma does not
 * tell a file that is cut short from a buffer that is too small. */
static bool ends_like_xz(const struct unpacking *unpacking)
{
	const uint8_t *bytes = unpacking->bytes;
	size_t size = unpacking->size;
	while (size > 2 && !bytes[size - 1])
		size--;
	return size > 2 && bytes[size - 2] == 'Y' && bytes[size - 1] == 'Z';
}

static int try_xz(const struct unpacking *unpacking, size_t *used, uint8_t *out, size_t room,
		  size_t *out_size)
{
	enum { OK = 0, BUFFER_TOO_SMALL = 10, MEMORY = 5 };
	uint64_t memory_limit = (uint64_t)512 << 20;
	*out_size = *used = 0;
	int rc = unpacking->decode_xz(&memory_limit, 0, NULL, unpacking->bytes, used,
				      unpacking->size, out, out_size, room);
	switch (rc) {
	case OK:
		return 0;
	case BUFFER_TOO_SMALL:
		if (ends_like_xz(unpacking))
			return 1;
		return -EBADMSG;
	case MEMORY:
		return -ENOMEM;
	default:
		return -EBADMSG;
	}
}

/* ---- zstd ---------------------------------------------------------------- */

static int try_zstd(const struct unpacking *unpacking, size_t *used, uint8_t *out, size_t room,
		    size_t *out_size)
{
	*used = unpacking->size; /* all frames */
	*out_size = ZSTD_decompress(out, room, unpacking->bytes, unpacking->size);
	if (!ZSTD_isError(*out_size))
		return 0;
	if (ZSTD_getErrorCode(*out_size) == ZSTD_error_memory_allocation)
		return -ENOMEM;
	if (ZSTD_getErrorCode(*out_size) == ZSTD_error_dstSize_tooSmall)
		return 1;
	return -EBADMSG;
}

/* ---- gzip ---------------------------------------------------------------- */

/* zlib counts with 32 bits: gives it the next bytes of what is longer. */
static uInt piece(size_t left)
{
	if (left >= UINT32_MAX)
		return UINT32_MAX;
	return (uInt)left;
}

static int try_gzip(const struct unpacking *unpacking, size_t *used, uint8_t *out, size_t room,
		    size_t *out_size)
{
	enum { WITH_GZIP_HEADER = 15 + 16 };
	z_stream stream = { 0 };
	int rc;
	*used = *out_size = 0;
	if (unpacking->inflate_init(&stream, WITH_GZIP_HEADER, ZLIB_VERSION, sizeof(stream)) !=
	    Z_OK)
		return -ENOMEM;
	do {
		uInt in = piece(unpacking->size - *used), most = piece(room - *out_size);
		stream.next_in = (Bytef *)(uintptr_t)unpacking->bytes + *used;
		stream.avail_in = in;
		stream.next_out = out + *out_size;
		stream.avail_out = most;
		rc = unpacking->inflate(&stream, Z_NO_FLUSH);
		*used += in - stream.avail_in;
		*out_size += most - stream.avail_out;
	} while (rc == Z_OK && *out_size < room);
	unpacking->inflate_end(&stream);
	if (rc == Z_STREAM_END)
		return 0;
	if (rc == Z_OK || (rc == Z_BUF_ERROR && *out_size == room))
		return 1;
	if (rc == Z_MEM_ERROR)
		return -ENOMEM;
	return -EBADMSG;
}

/* ---- all of them --------------------------------------------------------- */

/* Unpacks everything into `room` bytes.  Returns 0; 1 when they are too few; -errno. */
static int unpack_into(struct unpacking rest, const uint8_t *magic, size_t magic_length,
		       uint8_t *out, size_t room, size_t *out_size)
{
	size_t used, got;
	*out_size = 0;
	do {
		int rc = rest.attempt(&rest, &used, out + *out_size, room - *out_size, &got);
		if (rc)
			return rc;
		*out_size += got;
		rest.bytes = (const uint8_t *)rest.bytes + used;
		rest.size -= used;
	} while (begins(rest.bytes, rest.size, magic, magic_length));
	return 0;
}

static int run(const struct unpacking *unpacking, const uint8_t *magic, size_t magic_length,
	       size_t size_max, uint8_t **out, size_t *out_size)
{
	size_t room = size_max;
	if (unpacking->size < size_max / 8)
		room = 8 * unpacking->size;
	for (;;) {
		uint8_t *bytes = malloc(tally_max_u64(room, 1));
		if (!bytes)
			return -ENOMEM;
		int rc = unpack_into(*unpacking, magic, magic_length, bytes, room, out_size);
		if (!rc) {
			*out = bytes;
			return 0;
		}
		free(bytes);
		if (rc < 0)
			return rc;
		if (room >= size_max)
			return -EFBIG;
		room = room < size_max / 4 ? 4 * room : size_max;
	}
}

int tally_unpack(const void *bytes, size_t size, size_t size_max, uint8_t **out, size_t *out_size)
{
	struct unpacking unpacking = { .bytes = bytes, .size = size, .attempt = try_zstd };
	const uint8_t *magic = ZSTD;
	size_t magic_length = sizeof(ZSTD);
	const char *library = "";
	bool is_there = true;
	if (begins(bytes, size, XZ, sizeof(XZ))) {
		library = "liblzma.so.5";
		unpacking.handle = tally_loaded_open(library);
		unpacking.attempt = try_xz;
		magic = XZ;
		magic_length = sizeof(XZ);
		is_there = tally_loaded_find(unpacking.handle, "lzma_stream_buffer_decode",
					     &unpacking.decode_xz);
	} else if (begins(bytes, size, GZIP, sizeof(GZIP))) {
		library = "libz.so.1";
		unpacking.handle = tally_loaded_open(library);
		unpacking.attempt = try_gzip;
		magic = GZIP;
		magic_length = sizeof(GZIP);
		is_there = tally_loaded_find(unpacking.handle, "inflateInit2_",
					     &unpacking.inflate_init) &&
			   tally_loaded_find(unpacking.handle, "inflate", &unpacking.inflate) &&
			   tally_loaded_find(unpacking.handle, "inflateEnd",
					     &unpacking.inflate_end);
	} else if (!begins(bytes, size, ZSTD, sizeof(ZSTD))) {
		return -EBADMSG;
	}
	int rc = -ENOPKG;
	if (tally_loaded_problem(library))
		rc = -ENOMEM;
	if (is_there)
		rc = run(&unpacking, magic, magic_length, size_max, out, out_size);
	if (unpacking.handle)
		dlclose(unpacking.handle);
	return rc;
}
