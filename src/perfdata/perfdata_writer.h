/* The writer's inside, shared by its three files. */
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
	int failure;          /* sticks: -errno of the first write that failed */
	uint64_t data_offset; /* 0 in a pipe */
	size_t *head_ids;     /* of each event, how many stand in front of the data */
	uint64_t late_ids_at; /* where all stand, if some came after the start; 0: they did not */
	uint64_t end;         /* where the next byte goes: behind the last whole record */
	bool finished;
	uint64_t feature_bits[TALLY_FEATURE_MAX / 64]; /* that were written */
	bool has_own;          /* its own section, which has no bit */
	uint64_t features_end; /* of the file, once finished; 0: without features */
	/* Ends of records, every BOUNDARY_BYTES or so: where the data may be cut for the sake of
	 * features. */
	TALLY_VECTOR(uint64_t) boundaries;

	struct tally_buffer features[TALLY_FEATURE_MAX];
	bool has_feature[TALLY_FEATURE_MAX];

	/* Records not yet written, whole. */
	uint8_t *pending;
	size_t pending_size;

	/* Compression; compressor is NULL without. */
	ZSTD_CCtx *compressor;
	int level;
	uint8_t *packed;          /* one COMPRESSED record */
	size_t chunk_target;      /* uncompressed bytes that should fit in one COMPRESSED record */
	size_t chunk_largest;     /* that was written */
	uint64_t bytes_in, bytes_out; /* of what was compressed */
};

/* Room for pending records, which is also the largest chunk. */
#define TALLY_WRITER_PENDING_MAX ((size_t)1 << 20)

/* Writes all at an offset (at the end of a pipe), through short writes and signals; `done` gets the
 * bytes that made it. 0 or -errno. */
int tally_writer_put_at(const struct tally_perfdata_writer *writer, const void *bytes, size_t size,
			uint64_t offset, size_t *done);

/* Appends to the file or pipe at `end`.  What was written in part is not counted in `end`.  -errno
 * sticks. */
int tally_writer_put(struct tally_perfdata_writer *writer, const void *bytes, size_t size);

/* Appends whole records plain; those that made it before a failure are counted. */
int tally_writer_put_records(struct tally_perfdata_writer *writer, const void *bytes, size_t size);

int tally_writer_compress_init(struct tally_perfdata_writer *writer, int level,
			       struct tally_error *err);
/* Appends whole records compressed. */
int tally_writer_put_compressed(struct tally_perfdata_writer *writer, const void *bytes,
				size_t size);

/* The header, attributes and ids with the data's size as it is now. */
int tally_writer_put_head(struct tally_perfdata_writer *writer, const uint64_t *feature_bits,
			  uint64_t data_size);
/* Ids that came after the start have no room in front of the data: then all are put behind the
 * features.  The head is to be put after that. */
int tally_writer_put_late_ids(struct tally_perfdata_writer *writer);

int tally_writer_pipe_head(struct tally_perfdata_writer *writer);
int tally_writer_pipe_feature(struct tally_perfdata_writer *writer, unsigned feature,
			      const void *bytes, size_t size);

#endif
