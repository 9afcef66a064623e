/* perf.data as it lies on disk, in the writer's byte order:
 * tools/perf/Documentation/perf.data-file-format.txt.
 *
 *     file:  header | ids of each event | attributes | data | section table | mark of our own | feature sections
 *     pipe:  magic, 16 | HEADER_ATTR … | HEADER_FEATURE … | data, mixed with more of these
 *
 * The section table has one entry per bit of the header's bitmap, in the order of the bits.
 * tally's own section has no bit: perf inject writes what has one by a function that it looks up
 * behind the end of a table, and crashes.
 */
#ifndef TALLY_PERFDATA_DISK_H
#define TALLY_PERFDATA_DISK_H

#include "abi/record.h"
#include "perfdata/perfdata.h"

#define TALLY_PERFDATA_MAGIC 0x32454c4946524550ull         /* "PERFILE2" */
#define TALLY_PERFDATA_MAGIC_SWAPPED 0x50455246494c4532ull /* of the other byte order */
#define TALLY_PERFDATA_MAGIC_1 "PERFFILE"                  /* before 2012, in either order */

struct tally_disk_section {
	uint64_t offset, size; /* bytes from the start of the file */
};

/* Right behind the section table. */
struct tally_disk_own {
	char mark[8];
	struct tally_disk_section section;
};
#define TALLY_DISK_OWN_MARK "TALLY255"

struct tally_disk_pipe_header {
	uint64_t magic;
	uint64_t size; /* 16: this is how a pipe is told from a file */
};

struct tally_disk_header {
	uint64_t magic;
	uint64_t size;      /* of this struct */
	uint64_t attr_size; /* of each attribute with the section of its ids */
	struct tally_disk_section attrs;
	struct tally_disk_section data; /* size 0: never finished */
	struct tally_disk_section event_types;
	uint64_t features[TALLY_FEATURE_MAX / 64];
};
_Static_assert(sizeof(struct tally_disk_header) == 104, "perf_file_header");

/* What a tracepoint is called: in recordings of before Linux 3.9. */
struct tally_disk_event_type {
	uint64_t event_id; /* attr.config */
	char name[64];
};

struct tally_disk_build_id {
	struct tally_record_header header;
	uint32_t pid;
	uint8_t bytes[20];
	uint8_t size; /* of the build-id; valid with MISC_BUILD_ID_SIZE, else it is 20 */
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

/* HEADER_TRACING_DATA: `size` bytes follow the record, which is itself 12 bytes.  Of simpleperf's
 * they are a part. */
struct tally_disk_tracing_record {
	struct tally_record_header header;
	uint32_t size;
};
_Static_assert(sizeof(struct tally_disk_tracing_record) == 12, "perf_record_header_tracing_data");

/* simpleperf's own records (AOSP's system/extras/simpleperf/record.h).  Their header's `misc` is
 * the upper half of a size of 32 bits. */
enum {
	TALLY_SIMPLEPERF_RECORD_START = 32768,
	TALLY_SIMPLEPERF_RECORD_TRACING_DATA = 32777,
};

enum {
	TALLY_RECORD_SIZE_MAX = UINT16_MAX,
	/* the largest that keeps what follows aligned */
	TALLY_RECORD_SIZE_ALIGNED = UINT16_MAX & ~7,
	TALLY_PERFDATA_NAME_ALIGN = 64               /* perf pads strings to this */
};

/* The length of the whole records at the start of `bytes` that end within `limit` bytes. */
size_t tally_records_whole(const void *bytes, size_t size, size_t limit);

#endif
