/* The reader's inside, shared by its files.
 *
 * Recordings of the other byte order are turned into this machine's as they are read: header and
 * features once, each record in the copy that is handed out (byte_swap.h).  Only who looks at
 * records before that has to know: what walks over their headers, here and in the thread that
 * unpacks ahead. */
#ifndef TALLY_PERFDATA_READER_H
#define TALLY_PERFDATA_READER_H

#include "base/map.h"
#include "base/vector.h"
#include "perfdata/block.h"
#include "perfdata/disk.h"
#include "perfdata/unpack_ahead.h"

#include <zstd.h>

/* Bytes in order: of memory (a mapped file too), or what comes out of a descriptor. */
struct tally_source {
	struct tally_blocks *blocks;
	const uint8_t *memory; /* NULL: a descriptor */
	size_t memory_size;
	bool reads; /* `memory` is a mapping of `fd`, which is read instead where that is cheaper */
	int fd;
	const uint8_t *window;     /* onto memory, or `block` */
	struct tally_block *block; /* that the window is in, or NULL */
	size_t used, end;          /* of the window: behind the cursor, and all */
	bool at_end;
	int failure;     /* -errno of read(2) */
	uint64_t offset; /* of the cursor */
};

/* `size` bytes at the cursor, valid until the next peek; NULL where there are fewer. */
const uint8_t *tally_source_peek(struct tally_source *source, size_t size);
/* Bytes at the cursor, as far as is known without asking for more than `size`. */
size_t tally_source_left(struct tally_source *source, size_t size);
/* To an offset of memory. */
void tally_source_seek(struct tally_source *source, uint64_t offset);
/* Moves the cursor; false when the source ends before. */
bool tally_source_skip(struct tally_source *source, uint64_t size);
void tally_source_release(struct tally_source *source);

/* COMPRESSED records: one zstd stream runs through them all, and a record may go on in the next. */
struct tally_unpacker {
	ZSTD_DStream *stream;
	struct tally_block *block; /* that is being filled */
	size_t start, end;        /* of it: what was unpacked and not yet given */
	ZSTD_inBuffer input;      /* of the current COMPRESSED record */
	bool has_input;
	struct tally_unpack_ahead *ahead; /* unpacks instead, in a thread; NULL: nobody does */
	bool ahead_tried;
	uint64_t offset;          /* of the current COMPRESSED record */
	uint64_t bytes_in, bytes_out;
};

struct tally_tracepoint_text {
	const char *text;
	size_t length;
};

/* A file of a directory's, beside `data`. */
struct tally_perfdata_part {
	void *bytes;
	size_t size;
	long number;
};

/* Where an event's records have a field of eight bytes; those that lack it are told by no record
 * being large enough. */
struct tally_field_places {
	uint32_t sample_at, sample_size_min;       /* bytes from a sample's start; of the sample */
	/* bytes before another record's end; of the record */
	uint32_t trailer_behind, trailer_size_min;
	uint32_t trailer_bytes;
};

/* Whole and torn records that lie behind one another at the cursor, not looked at. */
struct tally_span {
	const uint8_t *at, *end;
	bool unpacked;
	/* of `at`; of the COMPRESSED record that they were in where they are `unpacked` */
	uint64_t file_offset;
	struct tally_block *block; /* that they are in; NULL: they stay as long as the reader */
};

enum { TALLY_EVENT_ID_CACHE = 64 };

struct tally_perfdata {
	struct tally_blocks blocks;
	struct tally_source source;
	struct tally_arena arena;
	bool is_directory;
	TALLY_VECTOR(struct tally_perfdata_part) parts;
	size_t part; /* of these: the next */
	size_t mapping_size;
	void *mapping; /* to be unmapped; NULL: the caller's memory, or a pipe */
	struct tally_block *slurped; /* a file that came down a pipe */
	bool is_pipe;
	struct tally_perfdata_place place;
	bool swap; /* the file is of the other byte order */
	uint64_t data_end;     /* offset; UINT64_MAX: as far as there is something */
	bool is_unfinished;    /* data size 0 */
	bool ended;
	bool last_unpacked;    /* the record given last */
	uint64_t payload;      /* bytes behind the record given last that are no records */
	uint64_t applied_bytes; /* of the records that changed the reader */

	struct tally_recorded_event *events; /* in the arena: those given out stay when it grows */
	size_t event_count, event_capacity;
	struct tally_field_places *time_places; /* by event */
	bool times_agree; /* all events' are the first one's */
	struct tally_field_places id_places; /* by the first event: all agree on it */
	struct tally_map event_by_id; /* id → index */
	/* by the id's low bits */
	struct { uint64_t id; uint32_t index_plus_1; } event_cache[TALLY_EVENT_ID_CACHE];
	struct tally_feature_bytes features[TALLY_FEATURE_MAX];
	TALLY_VECTOR(struct tally_recorded_build_id) build_ids;
	TALLY_VECTOR(struct tally_tracepoint_text) tracepoints;
	struct tally_map tracepoint_by_id; /* id → index + 1 */

	struct tally_unpacker unpacker;
	uint64_t *aligned; /* a copy of the record given last, where it lay misaligned */
	struct tally_error damage;
};

/* Notes damage at `offset`: the first one stays, but what ends the data replaces what was only
 * missing. */
void tally_perfdata_note_damage(struct tally_perfdata *data, bool ends, uint64_t offset,
				const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Header, attributes and features of a file.  0 or -errno with a message. */
int tally_perfdata_read_head(struct tally_perfdata *data, struct tally_error *err);

/* made_name.c: what perf calls an event of which a recording has the attribute alone; NULL: no
 * memory. */
const char *tally_perfdata_made_name(const struct tally_attr *attr, struct tally_arena *arena);

/* An event more: `attr_bytes` of an attribute as it lies on disk, and its ids (any alignment). */
int tally_perfdata_add_event(struct tally_perfdata *data, const void *attr, size_t attr_bytes,
			     const void *ids, size_t id_count);

/* Takes a feature's bytes, which must stay, into the reader.  -ENOMEM or 0; damage is noted with
 * `offset`. */
int tally_perfdata_apply_feature(struct tally_perfdata *data, unsigned feature, const void *bytes,
				 size_t size, uint64_t offset);

/* The same of a section as it lies in the file, which must stay. */
int tally_perfdata_take_feature(struct tally_perfdata *data, unsigned feature, const uint8_t *bytes,
				size_t size, uint64_t offset);

/* What lies at places of the file, in this machine's order: NULL where memory is out. */
const uint8_t *tally_perfdata_attr_at(struct tally_perfdata *data, const uint8_t *at, size_t size);
const uint8_t *tally_perfdata_ids_at(struct tally_perfdata *data, const uint8_t *at, size_t count);
struct tally_disk_section tally_perfdata_section_at(const struct tally_perfdata *data,
						    const uint8_t *at);
void tally_disk_header_swap(struct tally_disk_header *header);

/* A name for the tracepoints that have none so far: by a struct tally_disk_event_type, or by a
 * format. */
void tally_perfdata_name_tracepoint(struct tally_perfdata *data, uint64_t id, const char *system,
				    const char *format, size_t length);
void tally_perfdata_apply_event_type(struct tally_perfdata *data, const uint8_t *bytes, bool swap);

/* Records that describe the recording.  -ENOMEM or 0. */
int tally_perfdata_apply_record(struct tally_perfdata *data, const void *bytes, size_t size,
				uint64_t offset);
/* perfdata_update.c: EVENT_UPDATE.  -ENOMEM or 0. */
int tally_perfdata_apply_event_update(struct tally_perfdata *data, const uint8_t *bytes,
				      size_t size);
/* HEADER_TRACING_DATA's payload. */
int tally_perfdata_apply_tracing(struct tally_perfdata *data, const void *bytes, size_t size,
				 uint64_t offset);

/* A record's header as it lies in the file. */
static inline struct tally_record_header tally_header_at(const uint8_t *record, bool swap)
{
	struct tally_record_header header;
	__builtin_memcpy(&header, record, sizeof(header));
	if (swap)
		header = (struct tally_record_header){ __builtin_bswap32(header.type),
						       __builtin_bswap16(header.misc),
						       __builtin_bswap16(header.size) };
	return header;
}

/* A feature's bytes into this machine's order; CPU_TOPOLOGY needs to know how many CPUs NRCPUS told
 * of.  False for those of which nobody can tell, or where the layout isn't known. */
bool tally_feature_swap(unsigned feature, void *bytes, size_t size, uint32_t cpu_count);

/* A record of a tool, whose header has been swapped. */
void tally_tool_record_swap(void *record, uint32_t cpu_count);

/* How many CPUs NRCPUS tells of, 0 when it isn't there. */
uint32_t tally_perfdata_cpus(const struct tally_perfdata *data);

/* perfdata_directory.c: the descriptor of the directory's `data`, whose other files are in
 * data->parts then; or -errno. */
int tally_directory_open(struct tally_perfdata *data, int directory, struct tally_error *err);
/* Goes on with the next part, behind the end of another; false behind the last. */
bool tally_directory_next(struct tally_perfdata *data);
void tally_directory_release(struct tally_perfdata *data);

static inline bool tally_record_is_compressed(const struct tally_record_header *header)
{
	return header->type == TALLY_RECORD_COMPRESSED || header->type == TALLY_RECORD_COMPRESSED2;
}

/* Where in a COMPRESSED or COMPRESSED2 record, which is all there, the compressed bytes are; false
 * when it is longer than itself. */
bool tally_compressed_bytes(const uint8_t *record, bool swap, size_t *head, size_t *size);
/* Bytes behind a record that are no records. */
uint64_t tally_record_payload(const uint8_t *record, bool swap);
/* Whether compressed bytes unpack to more than recordings do. */
bool tally_unpacks_too_much(uint64_t bytes_in, uint64_t bytes_out);

/* Starts on a COMPRESSED or COMPRESSED2 record, which must stay until tally_unpacker_next() wants
 * more. */
int tally_unpacker_feed(struct tally_perfdata *data, const uint8_t *record, uint64_t offset);
/* The next whole record: 1; 0 where more COMPRESSED records are needed, or the data is damaged;
 * -ENOMEM. */
int tally_unpacker_next(struct tally_perfdata *data, const uint8_t **bytes);
void tally_unpacker_release(struct tally_perfdata *data);

/* What can be walked through without the reader: nothing where it has to do something first, such
 * as to unpack, or to tell of damage.  All the walker has done is told by _advance(). */
struct tally_span tally_perfdata_span(const struct tally_perfdata *data);
void tally_perfdata_advance(struct tally_perfdata *data, const struct tally_span *span,
			    const uint8_t *to);

/* The same of the record that was given last; `is_copy`: valid until the next, in no block. */
struct tally_span tally_perfdata_last(const struct tally_perfdata *data,
				      const struct tally_raw_record *record, bool *is_copy);

/* The event that wrote a record of `header->size` bytes: the first one when ids don't say, NULL
 * where there is none. */
const struct tally_recorded_event *tally_perfdata_event_of(
	struct tally_perfdata *data, const void *bytes, const struct tally_record_header *header);

/* The header's size holds. */
static inline bool tally_field_of(const struct tally_field_places *places, const uint8_t *bytes,
				  const struct tally_record_header *header, uint64_t *value)
{
	bool is_sample = header->type == TALLY_RECORD_SAMPLE;
	size_t size = is_sample ? header->size
				: tally_record_true_size(header, bytes, places->trailer_bytes);
	if (size < (is_sample ? places->sample_size_min : places->trailer_size_min))
		return false;
	__builtin_memcpy(value,
			 bytes + (is_sample ? places->sample_at : size - places->trailer_behind),
			 sizeof(*value));
	return true;
}

/* Where records have their time and their id; tally_record_id() and tally_record_decode() say the
 * same at length. */
struct tally_field_places tally_time_places(const struct tally_attr *attr);
struct tally_field_places tally_id_places(const struct tally_attr *attr);

#endif
