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
#ifndef TALLY_PERFDATA_DISK_H
#define TALLY_PERFDATA_DISK_H

#include "abi/record.h"
#include "perfdata/perfdata.h"

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

#endif
