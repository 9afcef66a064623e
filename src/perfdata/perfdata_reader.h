/* The reader's inside, shared by its files. */
#ifndef TALLY_PERFDATA_READER_H
#define TALLY_PERFDATA_READER_H

#include "base/map.h"
#include "base/vector.h"
#include "perfdata/disk.h"

#include <zstd.h>

/* Bytes in order: of memory (a mapped file too), or what comes out of a descriptor. */
struct tally_source {
	const uint8_t *memory; /* NULL: a descriptor */
	size_t memory_size;
	int fd;
	uint8_t *buffer;
	size_t buffered, used, capacity; /* bytes in the buffer, of which `used` are behind the cursor */
	bool at_end;
	int failure;     /* -errno of read(2) */
	uint64_t offset; /* of the cursor */
};

/* `size` bytes at the cursor, valid until the next peek; NULL where there are fewer. */
const uint8_t *tally_source_peek(struct tally_source *source, size_t size);
/* Bytes at the cursor, as far as is known without asking for more than `size`. */
size_t tally_source_left(struct tally_source *source, size_t size);
/* Moves the cursor; false when the source ends before. */
bool tally_source_skip(struct tally_source *source, uint64_t size);
void tally_source_release(struct tally_source *source);

/* COMPRESSED records: one zstd stream runs through them all, and a record may go on in the next. */
struct tally_unpacker {
	ZSTD_DStream *stream;
	uint8_t *window;
	size_t start, end;        /* what was unpacked and not yet given */
	ZSTD_inBuffer input;      /* of the current COMPRESSED record */
	bool has_input;
	uint64_t offset;          /* of the current COMPRESSED record */
	uint64_t bytes_in, bytes_out;
};

struct tally_tracepoint_text {
	const char *text;
	size_t length;
};

struct tally_perfdata {
	struct tally_source source;
	struct tally_arena arena;
	void *mapping; /* to be unmapped; NULL: the caller's memory, or a pipe */
	void *slurped; /* to be freed */
	bool is_pipe;
	uint64_t data_end;     /* offset; UINT64_MAX: as far as there is something */
	bool is_unfinished;    /* data size 0 */
	bool ended;
	uint64_t payload;      /* bytes behind the record given last that are no records */
	uint64_t applied_bytes; /* of the records that changed the reader */

	struct tally_recorded_event *events; /* in the arena: those given out stay when it grows */
	size_t event_count, event_capacity;
	struct tally_map event_by_id; /* id → index */
	struct tally_feature_bytes features[TALLY_FEATURE_MAX];
	TALLY_VECTOR(struct tally_recorded_build_id) build_ids;
	TALLY_VECTOR(struct tally_tracepoint_text) tracepoints;
	struct tally_map tracepoint_by_id; /* id → index + 1 */

	struct tally_unpacker unpacker;
	uint64_t *aligned; /* a copy of the record given last, where it lay misaligned */
	struct tally_error damage;
};

/* Notes damage at `offset`: the first one stays, but what ends the data replaces what was only missing. */
void tally_perfdata_note_damage(struct tally_perfdata *data, bool ends, uint64_t offset, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Header, attributes and features of a file.  0 or -errno with a message. */
int tally_perfdata_read_head(struct tally_perfdata *data, struct tally_error *err);

/* An event more: `attr_bytes` of an attribute as it lies on disk, and its ids (any alignment). */
int tally_perfdata_add_event(struct tally_perfdata *data, const void *attr, size_t attr_bytes, const void *ids,
			     size_t id_count);

/* Takes a feature's bytes, which must stay, into the reader.  -ENOMEM or 0; damage is noted with `offset`. */
int tally_perfdata_apply_feature(struct tally_perfdata *data, unsigned feature, const void *bytes, size_t size,
				 uint64_t offset);

/* Records that describe the recording.  -ENOMEM or 0. */
int tally_perfdata_apply_record(struct tally_perfdata *data, const void *bytes, size_t size, uint64_t offset);
/* HEADER_TRACING_DATA's payload. */
int tally_perfdata_apply_tracing(struct tally_perfdata *data, const void *bytes, size_t size, uint64_t offset);

/* Starts on a COMPRESSED or COMPRESSED2 record, which must stay until tally_unpacker_next() wants more. */
int tally_unpacker_feed(struct tally_perfdata *data, const uint8_t *record, uint64_t offset);
/* The next whole record: 1; 0 where more COMPRESSED records are needed, or the data is damaged; -ENOMEM. */
int tally_unpacker_next(struct tally_perfdata *data, const uint8_t **bytes);
void tally_unpacker_release(struct tally_unpacker *unpacker);

/* Whether bytes of a record stay as long as the reader. */
bool tally_perfdata_bytes_stay(const struct tally_perfdata *data, const void *bytes);

#endif
