/* The perf.data file, seekable and piped: perf's
 * tools/perf/Documentation/perf.data-file-format.txt.
 *
 * Sans-I/O at its heart: the reader is handed bytes (a mapped file, or what came down a pipe) and
 * gives records one by one in file order, decompressed; ordering by time is `order.h`'s.
 */
#ifndef TALLY_PERFDATA_PERFDATA_H
#define TALLY_PERFDATA_PERFDATA_H

#include "abi/record.h"
#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Feature sections, by their bit in the header. */
enum tally_feature {
	TALLY_FEATURE_TRACING_DATA = 1,
	TALLY_FEATURE_BUILD_ID,
	TALLY_FEATURE_HOSTNAME,
	TALLY_FEATURE_OSRELEASE,
	TALLY_FEATURE_VERSION,
	TALLY_FEATURE_ARCH,
	TALLY_FEATURE_NRCPUS,
	TALLY_FEATURE_CPUDESC,
	TALLY_FEATURE_CPUID,
	TALLY_FEATURE_TOTAL_MEM,
	TALLY_FEATURE_CMDLINE,
	TALLY_FEATURE_EVENT_DESC,
	TALLY_FEATURE_CPU_TOPOLOGY,
	TALLY_FEATURE_NUMA_TOPOLOGY,
	TALLY_FEATURE_BRANCH_STACK,
	TALLY_FEATURE_PMU_MAPPINGS,
	TALLY_FEATURE_GROUP_DESC,
	TALLY_FEATURE_AUXTRACE,
	TALLY_FEATURE_STAT,
	TALLY_FEATURE_CACHE,
	TALLY_FEATURE_SAMPLE_TIME,
	TALLY_FEATURE_MEM_TOPOLOGY,
	TALLY_FEATURE_CLOCKID,
	TALLY_FEATURE_DIR_FORMAT,
	TALLY_FEATURE_BPF_PROG_INFO,
	TALLY_FEATURE_BPF_BTF,
	TALLY_FEATURE_COMPRESSED,
	TALLY_FEATURE_CPU_PMU_CAPS,
	TALLY_FEATURE_CLOCK_DATA,
	TALLY_FEATURE_HYBRID_TOPOLOGY,
	TALLY_FEATURE_PMU_CAPS, /* the last that perf 6.1 knows */
	TALLY_FEATURE_CPU_DOMAIN_INFO,
	TALLY_FEATURE_E_MACHINE,
	TALLY_FEATURE_CLN_SIZE,
	TALLY_FEATURE_KNOWN_MAX, /* of perf's */
	TALLY_FEATURE_SIMPLEPERF_FILE = 128, /* simpleperf's own begin: symbols by file */
	TALLY_FEATURE_SIMPLEPERF_META_INFO,  /* pairs of texts */
	TALLY_FEATURE_TALLY = 255, /* tally's own: a number among readers, no bit in the file */
	TALLY_FEATURE_MAX = 256
};

/* One event of a recording. */
struct tally_recorded_event {
	struct tally_attr attr;
	/* from EVENT_DESC, EVENT_UPDATE or a tracepoint's format, or made from the attr */
	const char *name;
	bool is_named;    /* by the recording; the writer looks at the name alone */
	const uint64_t *ids;
	size_t id_count;
	/* From EVENT_UPDATE; of no use to the writer. */
	const char *unit; /* "msec", of the count times `scale`; NULL: counts are what they are */
	double scale;     /* 0: not told */
	const char *cpus; /* "0-3", that the event's PMU counts on; NULL: not told */
	struct tally_sample_layout layout; /* set by the reader, of no use to the writer */
};

struct tally_recorded_build_id {
	uint32_t pid; /* -1 (as u32) kernel or any */
	uint16_t misc; /* cpumode: kernel or user */
	uint8_t size;
	uint8_t bytes[20];
	const char *filename;
};

struct tally_feature_bytes {
	const uint8_t *bytes; /* NULL: not there */
	size_t size;
};

struct tally_perfdata; /* a reader */

/* What one record is: its bytes are 8-byte aligned and valid until the next call. */
struct tally_raw_record {
	const void *bytes;
	size_t size;
	uint64_t file_offset; /* of the record, or of the COMPRESSED record that holds it */
	/* that wrote it, by id; the first one when ids don't say; NULL only for tools' records
	 * (types from TALLY_RECORD_USER_START on) in a pipe that has announced no event yet */
	const struct tally_recorded_event *event;
};

/* Whether bytes begin as recordings do, of either format and byte order. */
bool tally_perfdata_begins(const void *bytes, size_t size);

/* Opens by path; "-" is stdin (a pipe); a directory as perf record --threads makes them is read
 * whole.  The message names the file and what is wrong with it at which offset. */
int tally_perfdata_open(const char *path, struct tally_perfdata **out, struct tally_error *err);

/* Over bytes in memory: a file's or a pipe's, told by its header.  Not copied: must outlive the
 * reader. */
int tally_perfdata_open_memory(const void *bytes, size_t size, struct tally_perfdata **out,
			       struct tally_error *err);

/* Gives whole records in place of the file's, of whose events they are; before the first was asked
 * for.  Not copied: must outlive the reader. */
void tally_perfdata_replace_data(struct tally_perfdata *data, const void *records, size_t size);

/* The next record: 1, 0 at the end.  Damage ends the data and is kept for tally_perfdata_damage();
 * it is no error here, since everything before it is used.  -ENOMEM or -EIO otherwise.  AUXTRACE's
 * payload is skipped.  COMPRESSED records are opened and their contents given; HEADER_ATTR,
 * HEADER_FEATURE, EVENT_UPDATE, HEADER_TRACING_DATA and HEADER_BUILD_ID are also applied to the
 * reader before they are given. */
int tally_perfdata_next(struct tally_perfdata *data, struct tally_raw_record *record,
			struct tally_error *err);

/* Events so far (pipes announce them in the stream). */
const struct tally_recorded_event *tally_perfdata_events(const struct tally_perfdata *data,
							 size_t *count);

/* The event that has an id, or NULL. */
const struct tally_recorded_event *tally_perfdata_event_of_id(const struct tally_perfdata *data,
							      uint64_t id);

struct tally_feature_bytes tally_perfdata_feature(const struct tally_perfdata *data,
						  unsigned feature);

/* Features that are strings (HOSTNAME, OSRELEASE, VERSION, ARCH, CPUDESC, CPUID), or NULL. */
const char *tally_perfdata_feature_text(const struct tally_perfdata *data, unsigned feature);

const struct tally_recorded_build_id *tally_perfdata_build_ids(const struct tally_perfdata *data,
							       size_t *count);

/* TRACING_DATA: formats of the recorded tracepoints.  `system`/`name` find one; NULL when there is
 * none.  `format` is not NUL-terminated. */
bool tally_perfdata_tracepoint_format(const struct tally_perfdata *data, uint64_t event_id,
				      const char **format, size_t *length);

bool tally_perfdata_is_pipe(const struct tally_perfdata *data);
/* Its recorder did not finish the file: it was killed, or still writes. */
bool tally_perfdata_is_unfinished(const struct tally_perfdata *data);
/* Of the other byte order: all that is given has been turned into this machine's but raw tracepoint
 * data. */
bool tally_perfdata_is_swapped(const struct tally_perfdata *data);
/* Where a file's parts are; all 0 but the version for a pipe. */
struct tally_perfdata_place {
	unsigned version; /* of the header as perf counts: 0 for PERFFILE, 1 for PERFILE2 */
	uint64_t data_offset, data_size, features_offset;
};
struct tally_perfdata_place tally_perfdata_place(const struct tally_perfdata *data);
uint64_t tally_perfdata_size(const struct tally_perfdata *data); /* bytes; 0 for a pipe */

/* What was damaged, by offset (or that the recorder did not finish the file); NULL when nothing
 * was.  Complete once the records have been read. */
const struct tally_error *tally_perfdata_damage(const struct tally_perfdata *data);

void tally_perfdata_close(struct tally_perfdata *data);

/* ---- writing ------------------------------------------------------------- */

struct tally_perfdata_writer;

struct tally_perfdata_options {
	bool pipe;               /* headers as records; plain; no seeking */
	int compression_level;   /* 0 plain, 1…22 zstd; ignored for pipes */
};

/* Starts a file on `fd` (owned by the caller).  `events` must stay until finish.  In a pipe the
 * header and the attributes are written at once; in a file their room is kept, and a file that was
 * never finished is recognised by its zero data size, as perf does. */
int tally_perfdata_writer_new(int fd, const struct tally_recorded_event *events, size_t event_count,
			      const struct tally_perfdata_options *options,
			      struct tally_perfdata_writer **out, struct tally_error *err);

/* Appends whole records (no AUXTRACE, whose payload is none); up to 1 MiB is gathered.
 * -ENOSPC and others stick: everything before stays readable after finish. */
int tally_perfdata_write(struct tally_perfdata_writer *writer, const void *records, size_t size,
			 struct tally_error *err);

/* The same for records that the caller has walked over header by header, so that it needn't be done
 * again.  What comes in stretches of about as many bytes as the writer wants is compressed and
 * written from where it lies. */
int tally_perfdata_write_walked(struct tally_perfdata_writer *writer, const void *records,
				size_t size, struct tally_error *err);
size_t tally_perfdata_writer_wants(const struct tally_perfdata_writer *writer);

/* Writes what was gathered: for a pipe's reader, and for the file to be of use should the recorder
 * be killed. */
int tally_perfdata_flush(struct tally_perfdata_writer *writer, struct tally_error *err);

/* A feature section, kept until finish; a record at once in a pipe, where features that perf 6.1
 * would give up on (unknown to it, TALLY, or of more than 64 KiB) are left out.  Copied.  feature.h
 * builds them; COMPRESSED is the writer's own. */
int tally_perfdata_write_feature(struct tally_perfdata_writer *writer, unsigned feature,
				 const void *bytes, size_t size, struct tally_error *err);

/* Bytes that went out so far: what is gathered is not counted, compressed bytes are. */
uint64_t tally_perfdata_writer_bytes(const struct tally_perfdata_writer *writer);

/* Flushes, writes features, attributes and the header.  On a full disk the last records (an eighth
 * of the data at most) make room for the features, else the largest features are dropped.  An error
 * that stuck is returned again: the file is readable all the same.  Once is enough; the writer
 * stays for _free. */
int tally_perfdata_finish(struct tally_perfdata_writer *writer, struct tally_error *err);

/* Adds tally's own section to a finished file, which is as good as before should this fail or be
 * interrupted: the section goes behind everything, its mark last, where finish() kept room.  Once;
 * not in a pipe. */
int tally_perfdata_add_own(struct tally_perfdata_writer *writer, const void *bytes, size_t size,
			   struct tally_error *err);

void tally_perfdata_writer_free(struct tally_perfdata_writer *writer);

#endif
