/* The perf.data file, seekable or piped: perf's tools/perf/Documentation/perf.data-file-format.txt.
 *
 * The core of the reader does no I/O: it takes bytes (a mapped file, or what came through a pipe)
 * and gives decompressed records one by one in file order.  `order.h` orders them by time.
 */
#ifndef TALLY_PERFDATA_H
#define TALLY_PERFDATA_H

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
	TALLY_FEATURE_PMU_CAPS, /* the last one that perf 6.1 knows */
	TALLY_FEATURE_CPU_DOMAIN_INFO,
	TALLY_FEATURE_E_MACHINE,
	TALLY_FEATURE_CLN_SIZE,
	TALLY_FEATURE_KNOWN_MAX, /* end of perf's features */
	TALLY_FEATURE_SIMPLEPERF_FILE = 128, /* first of simpleperf's: symbols by file */
	TALLY_FEATURE_SIMPLEPERF_META_INFO,  /* pairs of texts */
	/* tally's own section: known to readers, has no bit in the file */
	TALLY_FEATURE_TALLY = 255,
	TALLY_FEATURE_MAX = 256
};

/* One event of a recording. */
/* A name that an event had until a record named it anew; samples before that were shown with it. */
struct tally_former_name {
	const char *name;
	const struct tally_former_name *before;
};

enum { TALLY_FORMER_NAMES_MAX = 16 };

struct tally_recorded_event {
	struct tally_attr attr;
	/* from EVENT_DESC, EVENT_UPDATE or a tracepoint's format, otherwise made from the
	 * attribute */
	const char *name;
	bool is_named;    /* `name` comes from the recording; the writer ignores this */
	/* names that it had before, at most TALLY_FORMER_NAMES_MAX; the writer ignores these */
	const struct tally_former_name *former;
	unsigned former_count;
	const uint64_t *ids;
	size_t id_count;
	/* From EVENT_UPDATE; the writer ignores these. */
	/* "msec", of the count times `scale`; NULL: counts are used as they are */
	const char *unit;
	double scale;     /* 0: unknown */
	const char *cpus; /* "0-3": the CPUs on which the event's PMU counts; NULL: unknown */
	struct tally_sample_layout layout; /* set by the reader, ignored by the writer */
	/* the reader's: 1 + index of the event before with the same tracepoint; 0: none */
	uint32_t alike;
};

struct tally_recorded_build_id {
	uint32_t pid; /* -1 (as u32) kernel or any */
	uint16_t misc; /* cpumode: kernel or user */
	uint8_t size;
	uint8_t bytes[20];
	const char *filename;
};

struct tally_feature_bytes {
	const uint8_t *bytes; /* NULL: the recording lacks this feature */
	size_t size;
};

struct tally_perfdata; /* a reader */

/* One record.  Its bytes are 8-byte aligned and valid until the next call. */
struct tally_raw_record {
	const void *bytes;
	size_t size;
	uint64_t file_offset; /* of the record, or of the COMPRESSED record that contains it */
	/* The event that wrote the record, found by id; the first event when there are no ids.
	 * NULL only for tools' records (types from TALLY_RECORD_USER_START on) in a pipe that has
	 * not yet described an event. */
	const struct tally_recorded_event *event;
};

/* True if the bytes begin like a recording, of either format and byte order. */
bool tally_perfdata_begins(const void *bytes, size_t size);

/* Returns 1 if the path, as in openat(2), leads to a regular file that begins like a recording, 0 if
 * not, or -errno if the file can't be read. */
int tally_perfdata_is_file(int directory_fd, const char *path);

/* Returns what kind of file this is, by its first bytes, if it is not a recording: "JSON", "text";
 * NULL if unknown. */
const char *tally_perfdata_foreign_kind(const void *bytes, size_t size);

/* Unpacks a file that is compressed as a whole (base/unpack.h) into malloc'd memory.
 * Returns 0, or -errno with a message. */
int tally_perfdata_unpack(const void *bytes, size_t size, uint8_t **out, size_t *out_size,
			  struct tally_error *err);

/* Opens a recording by path; "-" is stdin (a pipe).  A directory of perf record --threads is read
 * whole.  The error message names the file, the fault and its offset. */
int tally_perfdata_open(const char *path, struct tally_perfdata **out, struct tally_error *err);

/* Opens a recording in memory; its header tells a file from a pipe.  The bytes are not copied and
 * must outlive the reader. */
int tally_perfdata_open_memory(const void *bytes, size_t size, struct tally_perfdata **out,
			       struct tally_error *err);

/* Gives `records`, whole records of the file's events, in place of the file's own.  Call it before
 * the first tally_perfdata_next().  The bytes are not copied and must outlive the reader. */
void tally_perfdata_replace_data(struct tally_perfdata *data, const void *records, size_t size);

/* Gets the next record.  Returns 1, or 0 at the end.  Damage ends the data but is no error here,
 * since everything before it is used; tally_perfdata_damage() returns it.  Returns -ENOMEM or -EIO
 * otherwise.  Skips the payload of AUXTRACE.  Unpacks COMPRESSED records and gives the records in
 * them.  Applies HEADER_ATTR, HEADER_FEATURE, EVENT_UPDATE, HEADER_TRACING_DATA and HEADER_BUILD_ID
 * to the reader before it gives them. */
int tally_perfdata_next(struct tally_perfdata *data, struct tally_raw_record *record,
			struct tally_error *err);

/* Returns the events known so far (pipes describe them in the stream). */
const struct tally_recorded_event *tally_perfdata_events(const struct tally_perfdata *data,
							 size_t *count);

/* Returns a number that grows whenever an event or the name of one becomes known: while records are
 * read, in a pipe, and in files that have names in their data (simpleperf's tracing data). */
uint64_t tally_perfdata_names_known(const struct tally_perfdata *data);

/* Returns the event that has `id`, or NULL. */
const struct tally_recorded_event *tally_perfdata_event_of_id(const struct tally_perfdata *data,
							      uint64_t id);

struct tally_feature_bytes tally_perfdata_feature(const struct tally_perfdata *data,
						  unsigned feature);

/* Returns the text of a feature that is a string (HOSTNAME, OSRELEASE, VERSION, ARCH, CPUDESC,
 * CPUID), or NULL. */
const char *tally_perfdata_feature_text(const struct tally_perfdata *data, unsigned feature);

/* True if the recorded machine had a PMU of that name, and of that type unless `type` is
 * UINT32_MAX. */
bool tally_perfdata_has_pmu(const struct tally_perfdata *data, const char *name, uint32_t type);

const struct tally_recorded_build_id *tally_perfdata_build_ids(const struct tally_perfdata *data,
							       size_t *count);

/* Finds the format of a recorded tracepoint in TRACING_DATA, by event id.  Returns false when there
 * is none.  `format` is not NUL-terminated. */
bool tally_perfdata_tracepoint_format(const struct tally_perfdata *data, uint64_t event_id,
				      const char **format, size_t *length);

bool tally_perfdata_is_pipe(const struct tally_perfdata *data);
/* True if the recorder did not finish the file: it was killed or is still writing. */
bool tally_perfdata_is_unfinished(const struct tally_perfdata *data);
/* True for a recording of the other byte order.  The reader converts everything that it gives to
 * this machine's order, except raw tracepoint data. */
bool tally_perfdata_is_swapped(const struct tally_perfdata *data);
/* Positions of a file's parts.  For a pipe all are 0 except the version. */
struct tally_perfdata_place {
	unsigned version; /* the header's version as perf counts: 0 for PERFFILE, 1 for PERFILE2 */
	uint64_t data_offset, data_size, features_offset;
};
struct tally_perfdata_place tally_perfdata_place(const struct tally_perfdata *data);
uint64_t tally_perfdata_size(const struct tally_perfdata *data); /* bytes; 0 for a pipe */

/* Returns what is damaged, and at which offset, or that the recorder did not finish the file; NULL
 * when nothing is damaged.  Complete once all records have been read. */
const struct tally_error *tally_perfdata_damage(const struct tally_perfdata *data);

void tally_perfdata_close(struct tally_perfdata *data);

/* ---- writing ------------------------------------------------------------- */

struct tally_perfdata_writer;

struct tally_perfdata_options {
	bool pipe;               /* headers as records; uncompressed; no seeking */
	int compression_level;   /* 0: uncompressed, 1…22: zstd; ignored for pipes */
};

/* Starts a recording on `fd` (owned by the caller).  `events` must stay valid until finish.  In a
 * pipe the header and the attributes are written at once.  In a file their space is reserved;
 * readers recognise an unfinished file by its data size of zero, as perf does. */
int tally_perfdata_writer_new(int fd, const struct tally_recorded_event *events, size_t event_count,
			      const struct tally_perfdata_options *options,
			      struct tally_perfdata_writer **out, struct tally_error *err);

/* Appends whole records (not AUXTRACE, whose payload is not made of records).  Gathers up to 1 MiB.
 * -ENOSPC and other errors stick; finish() still makes everything before the error readable. */
int tally_perfdata_write(struct tally_perfdata_writer *writer, const void *records, size_t size,
			 struct tally_error *err);

/* Like tally_perfdata_write(), for records whose headers the caller has already checked.  Stretches
 * of about tally_perfdata_writer_wants() bytes are compressed and written without being copied. */
int tally_perfdata_write_walked(struct tally_perfdata_writer *writer, const void *records,
				size_t size, struct tally_error *err);
size_t tally_perfdata_writer_wants(const struct tally_perfdata_writer *writer);

/* Writes the gathered records: for the reader of a pipe, and so that the file is usable if the
 * recorder is killed. */
int tally_perfdata_flush(struct tally_perfdata_writer *writer, struct tally_error *err);

/* Adds a feature section, which is copied and kept until finish.  In a pipe it becomes a record at
 * once; features that make perf 6.1 give up (unknown to it, TALLY, or of more than 64 KiB) are left
 * out. feature.h builds the bytes; the writer itself adds COMPRESSED. */
int tally_perfdata_write_feature(struct tally_perfdata_writer *writer, unsigned feature,
				 const void *bytes, size_t size, struct tally_error *err);

/* Returns the bytes written so far, after compression, without those gathered. */
uint64_t tally_perfdata_writer_bytes(const struct tally_perfdata_writer *writer);

/* Flushes, then writes features, attributes and the header.  On a full disk the last records (at
 * most an eighth of the data) make room for the features, otherwise the largest features are
 * dropped.  Returns an error that stuck earlier again; the file is readable nevertheless.  Call it
 * once; the writer still needs _free. */
int tally_perfdata_finish(struct tally_perfdata_writer *writer, struct tally_error *err);

/* Adds tally's own section to a finished file.  The section goes behind everything else; its mark
 * is written last, in space that finish() reserved.  So the file stays valid if this fails or is
 * interrupted.  Call it once, and not for a pipe. */
int tally_perfdata_add_own(struct tally_perfdata_writer *writer, const void *bytes, size_t size,
			   struct tally_error *err);

void tally_perfdata_writer_free(struct tally_perfdata_writer *writer);

struct tally_buffer;
struct tally_reader;

/* Appends a set of CPUs in a record (struct perf_record_cpu_map_data in perf's
 * tools/lib/perf/include/perf/event.h) as "0-3,7"; -1 stands for any CPU.  Marks the reader as
 * failed when the record is too short for the set or the set's type is unknown. */
void tally_cpu_map_text(struct tally_reader *reader, struct tally_buffer *out);

#endif
