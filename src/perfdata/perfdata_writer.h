/* Internals of the writer, shared by its files. */
#ifndef TALLY_PERFDATA_WRITER_H
#define TALLY_PERFDATA_WRITER_H

#include "base/buffer.h"
#include "base/vector.h"
#include "perfdata/disk.h"

#include <zstd.h>

struct tally_perfdata_writer {
	int fd;
	bool is_pipe;
	const struct tally_recorded_event *events;
	size_t event_count;
	uint32_t attr_size;
	int failure;          /* -errno of the first write that failed; sticks */
	uint64_t data_offset; /* 0 in a pipe */
	size_t *head_ids;     /* by event: number of ids written before the data */
	/* file offset of all ids, when some came after the start; otherwise 0 */
	uint64_t late_ids_at;
	uint64_t end;         /* offset of the next write, behind the last whole record */
	bool finished;
	uint64_t feature_bits[TALLY_FEATURE_MAX / 64]; /* features that were written */
	bool has_own;          /* has tally's own section, which has no bit */
	uint64_t features_end; /* end of the file once it is finished; 0: without features */
	/* Ends of records, every BOUNDARY_BYTES or so, where the data may be cut to make room for
	 * features. */
	TALLY_VECTOR(uint64_t) boundaries;

	struct tally_buffer features[TALLY_FEATURE_MAX];
	bool has_feature[TALLY_FEATURE_MAX];

	/* Whole records that are not yet written. */
	uint8_t *pending;
	size_t pending_size;

	/* Compression; `compressor` is NULL without. */
	ZSTD_CCtx *compressor;
	int level;
	uint8_t *packed;          /* one COMPRESSED record */
	size_t chunk_target;      /* uncompressed bytes that should fit in one COMPRESSED record */
	size_t chunk_largest;     /* largest chunk so far, in uncompressed bytes */
	uint64_t bytes_in, bytes_out; /* of all chunks: before and after compression */
};

/* Capacity of `pending`, and the largest chunk. */
#define TALLY_WRITER_PENDING_MAX ((size_t)1 << 20)

/* Writes everything at an offset (a pipe: at its end), despite short writes and signals.  `done`
 * receives the number of bytes written.  Returns 0 or -errno. */
int tally_writer_put_at(const struct tally_perfdata_writer *writer, const void *bytes, size_t size,
			uint64_t offset, size_t *done);

/* Appends to the file or pipe at `end`.  A partial write does not move `end`.  -errno sticks. */
int tally_writer_put(struct tally_perfdata_writer *writer, const void *bytes, size_t size);

/* Appends whole records uncompressed.  Records written before a failure count. */
int tally_writer_put_records(struct tally_perfdata_writer *writer, const void *bytes, size_t size);

int tally_writer_compress_init(struct tally_perfdata_writer *writer, int level,
			       struct tally_error *err);
/* Appends whole records compressed. */
int tally_writer_put_compressed(struct tally_perfdata_writer *writer, const void *bytes,
				size_t size);

/* Writes the header, attributes and ids, with the given size of the data. */
int tally_writer_put_head(struct tally_perfdata_writer *writer, const uint64_t *feature_bits,
			  uint64_t data_size);
/* Writes all ids behind the features when some ids came after the start, since there is no room for
 * them before the data.  Write the head after this. */
int tally_writer_put_late_ids(struct tally_perfdata_writer *writer);

int tally_writer_pipe_head(struct tally_perfdata_writer *writer);
int tally_writer_pipe_feature(struct tally_perfdata_writer *writer, unsigned feature,
			      const void *bytes, size_t size);

#endif
