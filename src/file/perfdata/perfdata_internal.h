/* How a perf.data file is read: its layout, blocks, compressed records, pieces. */
#ifndef TALLY_PERFDATA_INTERNAL_H
#define TALLY_PERFDATA_INTERNAL_H

#include "abi/abi.h"
#include "base/map.h"
#include "base/vector.h"
#include "perfdata/perfdata.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zstd.h>

struct tally_unpack_ahead;

/* Blocks of memory for a recording's bytes: bytes read from a file, received through a pipe, or
 * unpacked.
 *
 * A reader fills a block and goes on to the next.  Code that still needs records in a block holds
 * it, so records wait in place instead of being copied.  A block without holders is filled again.
 * Several threads may take, hold and drop the blocks of a stock; all other blocks belong to one
 * thread.
 */

/* Four of the largest records.  A block is small enough to be walked through while it is still in
 * the second-level cache. */
enum { TALLY_BLOCK_BYTES = 256 << 10 };

struct tally_block {
	struct tally_block *next; /* in the list of unused blocks */
	/* the stock that it belongs to; NULL: it belongs to a struct tally_blocks */
	struct tally_block_stock *stock;
	unsigned holders; /* atomic */
	size_t capacity; /* TALLY_BLOCK_BYTES, or more for data that must be in one piece */
	_Alignas(64) uint8_t bytes[];
};

struct tally_blocks {
	struct tally_block *unused;
	size_t count; /* all blocks, held or unused */
};

/* Blocks of one size, shared by threads. */
struct tally_block_stock {
	pthread_mutex_t lock;
	struct tally_block *unused;
};

/* Returns a block of at least `capacity` bytes with one holder, or NULL without memory. */
struct tally_block *tally_block_take(struct tally_blocks *blocks, size_t capacity);

/* True if the caller is the only holder. */
static inline bool tally_block_is_ours(const struct tally_block *block)
{
	return __atomic_load_n(&block->holders, __ATOMIC_ACQUIRE) == 1;
}

/* Removes one holder; `block` may be NULL.  `blocks` is ignored for the blocks of a stock. */
void tally_block_drop(struct tally_blocks *blocks, struct tally_block *block);

/* Frees the unused blocks. */
void tally_blocks_release(struct tally_blocks *blocks);

void tally_block_stock_init(struct tally_block_stock *stock);
/* Like tally_block_take(), but all blocks of a stock must have the same capacity. */
struct tally_block *tally_block_stock_take(struct tally_block_stock *stock, size_t capacity);
/* Frees the stock's blocks.  The caller must have dropped all of them. */
void tally_block_stock_release(struct tally_block_stock *stock);

/* The structures of a perf.data file, in the writer's byte order:
 * tools/perf/Documentation/perf.data-file-format.txt.
 *
 *     file:  header | ids of each event | attributes | data | section table | mark of our own |
 *            feature sections
 *     pipe:  magic, 16 | HEADER_ATTR … | HEADER_FEATURE … | data, mixed with more of these
 *
 * The section table has one entry per bit of the header's bitmap, in the order of the bits. tally's
 * own section has no bit, because perf inject would crash on one: to write the section of a bit, it
 * looks up a function in a table, and an unknown bit is beyond that table's end.
 */

#define TALLY_PERFDATA_MAGIC 0x32454c4946524550ull         /* "PERFILE2" */
#define TALLY_PERFDATA_MAGIC_SWAPPED 0x50455246494c4532ull /* in the other byte order */
#define TALLY_PERFDATA_MAGIC_1 "PERFFILE"                  /* before 2012, in either byte order */

/* Returns a word of the file in this machine's byte order; `swap`: the file has the other one. */
static inline uint64_t tally_disk_u64(uint64_t word, bool swap)
{
	if (swap)
		return __builtin_bswap64(word);
	return word;
}

struct tally_disk_section {
	uint64_t offset, size; /* bytes from the start of the file */
};

/* Mark of tally's own section, right behind the section table. */
struct tally_disk_own {
	char mark[8];
	struct tally_disk_section section;
};
#define TALLY_DISK_OWN_MARK "TALLY255"

struct tally_disk_pipe_header {
	uint64_t magic;
	uint64_t size; /* 16; a file's header has another size here */
};

struct tally_disk_header {
	uint64_t magic;
	uint64_t size;      /* bytes of this struct */
	uint64_t attr_size; /* bytes of one attribute plus the section of its ids */
	struct tally_disk_section attrs;
	struct tally_disk_section data; /* size 0: the recorder did not finish */
	struct tally_disk_section event_types;
	uint64_t features[TALLY_FEATURE_MAX / 64];
};
_Static_assert(sizeof(struct tally_disk_header) == 104, "perf_file_header");

/* A tracepoint's name, in recordings made before Linux 3.9. */
struct tally_disk_event_type {
	uint64_t event_id; /* attr.config */
	char name[64];
};

struct tally_disk_build_id {
	struct tally_record_header header;
	uint32_t pid;
	uint8_t bytes[20];
	uint8_t size; /* of the build-id; valid with MISC_BUILD_ID_SIZE, otherwise the size is 20 */
	uint8_t reserved[3];
	char filename[];
};
_Static_assert(sizeof(struct tally_disk_build_id) == 36, "perf_record_header_build_id");

struct tally_disk_feature_record {
	struct tally_record_header header;
	uint64_t feature;
};

struct tally_disk_event_update {
	struct tally_record_header header;
	uint64_t type;
	uint64_t id;
};

enum {
	TALLY_EVENT_UPDATE_UNIT,
	TALLY_EVENT_UPDATE_SCALE,
	TALLY_EVENT_UPDATE_NAME,
	TALLY_EVENT_UPDATE_CPUS
};

/* HEADER_TRACING_DATA.  The record is 12 bytes long and `size` bytes follow it.  In simpleperf's
 * own tracing record these bytes are part of the record. */
struct tally_disk_tracing_record {
	struct tally_record_header header;
	uint32_t size;
};
_Static_assert(sizeof(struct tally_disk_tracing_record) == 12, "perf_record_header_tracing_data");

/* Record types of simpleperf (AOSP's system/extras/simpleperf/record.h).  Their size has 32 bits;
 * the header's `misc` is its upper half. */
enum {
	TALLY_SIMPLEPERF_RECORD_START = 32768,
	TALLY_SIMPLEPERF_RECORD_TRACING_DATA = 32777,
};

enum {
	TALLY_RECORD_SIZE_MAX = UINT16_MAX,
	/* the largest size that keeps the next record aligned */
	TALLY_RECORD_SIZE_ALIGNED = UINT16_MAX & ~7,
	TALLY_PERFDATA_NAME_ALIGN = 64               /* perf pads strings to this */
};

/* Unpacks COMPRESSED records ahead of the reader, in a thread.
 *
 * The thread walks the file like the reader, ignores all records except COMPRESSED ones, and hands
 * over what they unpack to, piece by piece, in order.  The reader takes the pieces of one record
 * after the other.  The two share nothing else, so the result is the same with and without the
 * thread.
 */

enum tally_unpack_failure {
	TALLY_UNPACK_FINE,
	TALLY_UNPACK_NO_MEMORY,
	TALLY_UNPACK_DAMAGED,
	TALLY_UNPACK_BOMB
};

struct tally_unpacked {
	struct tally_block *block; /* the receiver is a holder */
	/* in the block; before the block's first piece there is space for the beginning of a torn
	 * record */
	size_t start, end;
	bool is_last;              /* of the COMPRESSED record */
	enum tally_unpack_failure failure; /* behind the bytes; if set, no piece follows */
	size_t zstd_result;        /* zstd's result, for TALLY_UNPACK_DAMAGED */
};

/* Starts a thread at the COMPRESSED record at `offset` of the file's bytes; the data ends at `end`.
 * `swap`: the file is of the other byte order.  Returns NULL when there is no second CPU or no
 * thread can be made; nothing was started then. */
struct tally_unpack_ahead *tally_unpack_ahead_start(const uint8_t *file, uint64_t offset,
						    uint64_t end, bool swap);

/* Waits for the next piece.  Returns false when there are no more. */
bool tally_unpack_ahead_next(struct tally_unpack_ahead *ahead, struct tally_unpacked *piece);

/* Ends the thread.  The caller must have dropped all blocks.  Accepts NULL. */
void tally_unpack_ahead_stop(struct tally_unpack_ahead *ahead);

/* Internals of the reader, shared by its files.
 *
 * Recordings of the other byte order are converted while they are read: header and features once,
 * each record in the copy that is given (abi.h).  Only code that walks over records before
 * that must handle both orders: the walks over record headers here, and those in the thread that
 * unpacks ahead. */

/* A sequence of bytes: memory (which may be a mapped file) or what a descriptor delivers. */
struct tally_source {
	struct tally_blocks *blocks;
	const uint8_t *memory; /* NULL: reads from `fd` */
	size_t memory_size;
	bool reads; /* `memory` is a mapping of `fd`; read `fd` instead where that is cheaper */
	int fd;
	const uint8_t *window;     /* part of `memory` or of `block` */
	struct tally_block *block; /* the block that contains the window, or NULL */
	size_t used, end;          /* bytes of the window: before the cursor, and in total */
	bool at_end;
	int failure;     /* -errno of read(2) */
	uint64_t offset; /* of the cursor in the source */
};

/* Returns `size` bytes at the cursor, valid until the next peek, or NULL when fewer are left. */
const uint8_t *tally_source_peek(struct tally_source *source, size_t size);
/* Returns the number of bytes known to exist at the cursor; reads more only while there are fewer
 * than `size`. */
size_t tally_source_left(struct tally_source *source, size_t size);
/* Moves the cursor to an offset in memory. */
void tally_source_seek(struct tally_source *source, uint64_t offset);
/* Moves the cursor forward.  Returns false when the source ends before. */
bool tally_source_skip(struct tally_source *source, uint64_t size);
void tally_source_release(struct tally_source *source);

/* Unpacks COMPRESSED records.  One zstd stream runs through all of them, and a record may continue
 * in the next one. */
struct tally_unpacker {
	ZSTD_DStream *stream;
	struct tally_block *block; /* the block that is being filled */
	size_t start, end;        /* in `block`: bytes unpacked and not yet given */
	ZSTD_inBuffer input;      /* rest of the current COMPRESSED record */
	bool has_input;
	struct tally_unpack_ahead *ahead; /* a thread that unpacks instead; NULL: none */
	bool ahead_tried;
	uint64_t offset;          /* of the current COMPRESSED record, in the file */
	uint64_t bytes_in, bytes_out;
};

struct tally_tracepoint_text {
	const char *text;
	size_t length;
};

/* A file's content: mapped, or copied because others can change the file. */
struct tally_file_bytes {
	uint8_t *bytes; /* NULL: none */
	size_t size;
	bool is_copy;
};

/* One of a directory's files beside `data`. */
struct tally_perfdata_part {
	struct tally_file_bytes file;
	long number;
};

/* The position of a field of eight bytes in an event's records.  When they lack it, the minimum
 * size is larger than any record. */
struct tally_field_places {
	/* samples: offset of the field from the start; minimum size of the sample */
	uint32_t sample_at, sample_size_min;
	/* other records: offset of the field before the end; minimum size of the record */
	uint32_t trailer_behind, trailer_size_min;
	uint32_t trailer_bytes;
};

/* Consecutive bytes at the cursor, not yet looked at: records; the last one may be torn. */
struct tally_span {
	const uint8_t *at, *end;
	bool unpacked;
	/* of `at`; when `unpacked`, of the COMPRESSED record that contained the bytes */
	uint64_t file_offset;
	struct tally_block *block; /* contains the bytes; NULL: they stay as long as the reader */
};

enum { TALLY_EVENT_ID_CACHE = 64 };

struct tally_perfdata {
	struct tally_blocks blocks;
	struct tally_source source;
	struct tally_arena arena;
	bool is_directory;
	TALLY_VECTOR(struct tally_perfdata_part) parts;
	size_t part; /* index of the next part */
	struct tally_file_bytes file; /* none: the caller's memory, or a pipe */
	uint64_t copied_bytes;        /* of all files that were copied */
	size_t lost_before;           /* tally_lost_pages() when the reader was made */
	uint8_t *unpacked; /* a whole file that was compressed by gzip, xz or zstd */
	struct tally_block *slurped; /* a whole file that came through a pipe */
	bool is_pipe;
	struct tally_perfdata_place place;
	bool swap; /* the file is of the other byte order */
	uint64_t data_end;     /* offset; UINT64_MAX: the source's end */
	bool is_unfinished;    /* the header's data size is 0 */
	uint64_t section_bytes; /* of the feature sections so far */
	bool ended;
	bool last_unpacked;    /* the record given last was in a COMPRESSED record */
	uint64_t payload;      /* bytes behind the record given last that are no records */
	uint64_t applied_bytes; /* size of all records that changed the reader */

	/* in the arena; arrays given out before stay valid when it grows */
	struct tally_recorded_event *events;
	size_t event_count, event_capacity;
	struct tally_field_places *time_places; /* by event */
	bool times_agree; /* all events have the first one's places */
	struct tally_field_places id_places; /* the first event's: all events agree on them */
	struct tally_map event_by_id; /* id → index */
	/* tracepoint → 1 + index of the last event of it that may lack a name; others by `alike` */
	struct tally_map unnamed_tracepoints;
	/* indexed by the id's low bits */
	struct { uint64_t id; uint32_t index_plus_1; } event_cache[TALLY_EVENT_ID_CACHE];
	struct tally_feature_bytes features[TALLY_FEATURE_MAX];
	TALLY_VECTOR(struct tally_recorded_build_id) build_ids;
	uint64_t names_known; /* see tally_perfdata_names_known() */
	TALLY_VECTOR(struct tally_tracepoint_text) tracepoints;
	struct tally_map tracepoint_by_id; /* id → index + 1 */

	struct tally_unpacker unpacker;
	uint64_t *aligned; /* a copy of the record given last, when it was misaligned */
	struct tally_error damage;
};

/* Notes damage at `offset`.  The first damage is kept, but damage that ends the data replaces one
 * that does not. */
void tally_perfdata_note_damage(struct tally_perfdata *data, bool ends, uint64_t offset,
				const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Reads header, attributes and features of a file.  Returns 0, or -errno with a message. */
int tally_perfdata_read_head(struct tally_perfdata *data, struct tally_error *err);

/* Adds an event: `attr_bytes` of an attribute as on disk, and its ids (any alignment). */
int tally_perfdata_add_event(struct tally_perfdata *data, const void *attr, size_t attr_bytes,
			     const void *ids, size_t id_count);

/* Applies a feature to the reader; `bytes` must stay valid.  Returns 0 or -ENOMEM; damage is noted
 * with `offset`. */
int tally_perfdata_apply_feature(struct tally_perfdata *data, unsigned feature, const void *bytes,
				 size_t size, uint64_t offset);

/* The same for a feature section in the file's byte order. */
int tally_perfdata_take_feature(struct tally_perfdata *data, unsigned feature, const uint8_t *bytes,
				size_t size, uint64_t offset);

/* Return what lies at `at` in the file, in this machine's byte order; NULL without memory. */
const uint8_t *tally_perfdata_attr_at(struct tally_perfdata *data, const uint8_t *at, size_t size);
const uint8_t *tally_perfdata_ids_at(struct tally_perfdata *data, const uint8_t *at, size_t count);
struct tally_disk_section tally_perfdata_section_at(const struct tally_perfdata *data,
						    const uint8_t *at);
void tally_disk_header_swap(struct tally_disk_header *header);

/* Gives an event another name.  It keeps the former one as such, as far as memory allows. */
void tally_perfdata_rename(struct tally_perfdata *data, struct tally_recorded_event *event,
			   const char *name);

/* Names the tracepoints with this id that have no name yet: from a format, or from a struct
 * tally_disk_event_type. */
void tally_perfdata_name_tracepoint(struct tally_perfdata *data, uint64_t id, const char *system,
				    const char *format, size_t length);
void tally_perfdata_apply_event_type(struct tally_perfdata *data, const uint8_t *bytes, bool swap);

/* Applies a record that describes the recording.  Returns 0 or -ENOMEM. */
int tally_perfdata_apply_record(struct tally_perfdata *data, const void *bytes, size_t size,
				uint64_t offset);

/* Applies the payload of HEADER_TRACING_DATA. */
int tally_perfdata_apply_tracing(struct tally_perfdata *data, const void *bytes, size_t size,
				 uint64_t offset);

/* Returns the header of a record in the file, in this machine's byte order. */
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

/* Converts the body of a tool's record; its header must already be converted. */
void tally_tool_record_swap(void *record, uint32_t cpu_count);

/* Returns the number of CPUs in NRCPUS, or 0 without it. */
uint32_t tally_perfdata_cpus(const struct tally_perfdata *data);

/* Goes on with the next part after the end of another.  Returns false after the last. */
bool tally_directory_next(struct tally_perfdata *data);

static inline bool tally_record_is_compressed(const struct tally_record_header *header)
{
	return header->type == TALLY_RECORD_COMPRESSED || header->type == TALLY_RECORD_COMPRESSED2;
}

/* Finds the compressed bytes in a whole COMPRESSED or COMPRESSED2 record.  Returns false when they
 * would be longer than the record. */
bool tally_compressed_bytes(const uint8_t *record, bool swap, size_t *head, size_t *size);
/* Returns the number of bytes behind a record that are no records. */
uint64_t tally_record_payload(const uint8_t *record, bool swap);
/* True if compressed bytes unpack to more than a recording ever does. */
bool tally_unpacks_too_much(uint64_t bytes_in, uint64_t bytes_out);

/* Starts on a COMPRESSED or COMPRESSED2 record, which must stay valid until tally_unpacker_next()
 * returns 0. */
int tally_unpacker_feed(struct tally_perfdata *data, const uint8_t *record, uint64_t offset);
/* Gets the next whole record.  Returns 1; 0 when it needs another COMPRESSED record or the data is
 * damaged; -ENOMEM. */
int tally_unpacker_next(struct tally_perfdata *data, const uint8_t **bytes);
void tally_unpacker_release(struct tally_perfdata *data);

/* Returns the bytes that can be walked without the reader.  The span is empty when the reader must
 * act first: unpack, or note damage.  After the walk, call _advance() with its end. */
struct tally_span tally_perfdata_span(const struct tally_perfdata *data);
void tally_perfdata_advance(struct tally_perfdata *data, const struct tally_span *span,
			    const uint8_t *to);

/* Returns the span of the record given last.  `is_copy`: it is valid until the next record and is
 * in no block. */
struct tally_span tally_perfdata_last(const struct tally_perfdata *data,
				      const struct tally_raw_record *record, bool *is_copy);

/* Returns the event that wrote a record of `header->size` bytes: the first event when there are no
 * ids, NULL when there are no events. */
const struct tally_recorded_event *tally_perfdata_event_of(
	struct tally_perfdata *data, const void *bytes, const struct tally_record_header *header);

/* Gets the field's value; false when the record is too short.  The caller has checked the header's
 * size. */
static inline bool tally_field_of(const struct tally_field_places *places, const uint8_t *bytes,
				  const struct tally_record_header *header, uint64_t *value)
{
	if (header->type == TALLY_RECORD_SAMPLE) {
		if (header->size < places->sample_size_min)
			return false;
		__builtin_memcpy(value, bytes + places->sample_at, sizeof(*value));
		return true;
	}
	size_t size = tally_record_true_size(header, bytes, places->trailer_bytes);
	if (size < places->trailer_size_min)
		return false;
	__builtin_memcpy(value, bytes + size - places->trailer_behind, sizeof(*value));
	return true;
}

#endif
