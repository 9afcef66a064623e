/* The perf.data file. */
#ifndef TALLY_PERFDATA_H
#define TALLY_PERFDATA_H

#include "abi/abi.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/reader.h"
#include "base/error.h"
#include "tally/perf_event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct tally_block;
struct tally_buffer;
struct tally_order;
struct tally_perfdata_writer;
struct tally_reader;

/* The perf.data file, seekable or piped: perf's tools/perf/Documentation/perf.data-file-format.txt.
 *
 * The core of the reader does no I/O: it takes bytes (a mapped file, or what came through a pipe)
 * and gives decompressed records one by one in file order.  `order.c` orders them by time.
 */

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
 * out. feature.c builds the bytes; the writer itself adds COMPRESSED. */
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

/* Appends a set of CPUs in a record (struct perf_record_cpu_map_data in perf's
 * tools/lib/perf/include/perf/event.h) as "0-3,7"; -1 stands for any CPU.  Marks the reader as
 * failed when the record is too short for the set or the set's type is unknown. */
void tally_cpu_map_text(struct tally_reader *reader, struct tally_buffer *out);

/* Builds and reads the contents of feature sections.  perf's tools/perf/util/header.c defines the
 * format.
 *
 * Each function that builds appends to a buffer, which the caller then passes to
 * tally_perfdata_write_feature().  Failure sticks in the buffer (`failed`).
 *
 * Functions _read_… take a reader of the section and move it past what they read.  They return true
 * if all of it was there; otherwise the values must not be used.  Where the section is cut short or
 * a string is not terminated, the reader has failed.  Strings stay in the section's bytes, which
 * live as long as the recording.
 */

/* Returns a reader of a section; it has nothing to read if the recording lacks the feature. */
struct tally_reader tally_feature_reader(const struct tally_perfdata *data, unsigned feature);

/* HOSTNAME, OSRELEASE, VERSION, ARCH, CPUDESC, CPUID, and the strings within other features. */
void tally_feature_string(struct tally_buffer *out, const char *text);
const char *tally_feature_read_string(struct tally_reader *reader); /* NULL: it has failed */

/* CMDLINE: a count (a u32) and the strings. */
void tally_feature_string_list(struct tally_buffer *out, const char *const *texts, size_t count);

/* NRCPUS */
void tally_feature_nrcpus(struct tally_buffer *out, uint32_t available, uint32_t online);
/* Where only the first number is there, stores it and 0, and returns false. */
bool tally_feature_read_nrcpus(struct tally_reader *reader, uint32_t *available, uint32_t *online);

/* TOTAL_MEM (KiB), CLOCKID (resolution, ns) */
void tally_feature_u64(struct tally_buffer *out, uint64_t value);

/* EVENT_DESC.  Events without a name are written with an empty one. */
void tally_feature_event_desc(struct tally_buffer *out, const struct tally_recorded_event *events,
			      size_t count);

/* BUILD_ID: appends one record.  Pipes use the same record. */
void tally_feature_build_id(struct tally_buffer *out,
			    const struct tally_recorded_build_id *build_id);

/* SAMPLE_TIME: times of the first and the last sample. */
void tally_feature_sample_time(struct tally_buffer *out, uint64_t first_ns, uint64_t last_ns);
bool tally_feature_read_sample_time(struct tally_reader *reader, uint64_t *first_ns,
				    uint64_t *last_ns);

/* CLOCK_DATA: the same moment on the wall clock and on `clockid`. */
void tally_feature_clock_data(struct tally_buffer *out, uint32_t clockid, uint64_t wall_ns,
			      uint64_t clock_ns);
struct tally_feature_clock {
	uint32_t id;
	uint64_t wall_ns, clock_ns;
};
/* Also returns false if the section has another version. */
bool tally_feature_read_clock_data(struct tally_reader *reader, struct tally_feature_clock *clock);

/* PMU_MAPPINGS: a count (a u32) and the PMUs. */
struct tally_feature_pmu {
	uint32_t type;
	const char *name;
};
void tally_feature_pmu_mappings(struct tally_buffer *out, const struct tally_feature_pmu *pmus,
				size_t count);
bool tally_feature_read_pmu(struct tally_reader *reader, struct tally_feature_pmu *pmu);

/* GROUP_DESC: a count (a u32) and the groups with more than one member.  `leader_index` counts in
 * the list of events. */
struct tally_feature_group {
	const char *name;
	uint32_t leader_index, member_count; /* the leader is a member */
};
void tally_feature_group_desc(struct tally_buffer *out, const struct tally_feature_group *groups,
			      size_t count);
bool tally_feature_read_group(struct tally_reader *reader, struct tally_feature_group *group);

/* CPU_TOPOLOGY: lists as in sysfs ("0-3"), one per distinct set; `cpus` has an entry for every
 * available CPU, by CPU number. */
struct tally_feature_topology {
	const char *const *packages; /* core_siblings_list */
	size_t package_count;
	const char *const *threads; /* thread_siblings_list */
	size_t thread_count;
	const char *const *dies; /* die_cpus_list */
	size_t die_count;
	const struct tally_feature_cpu {
		uint32_t core, package, die;
	} *cpus;
	size_t cpu_count;
};
void tally_feature_cpu_topology(struct tally_buffer *out,
				const struct tally_feature_topology *topology);

/* Where the parts of a CPU_TOPOLOGY section begin.  Lists are counts (u32) and strings. */
struct tally_feature_topology_parts {
	struct tally_reader packages, threads, dies; /* lists */
	struct tally_reader cpus, cpu_dies;
	bool has_cpus; /* the section has the core and package of each CPU */
	bool has_dies; /* … and the lists of dies and each CPU's die, as newer files do */
};
/* `cpu_count`: available CPUs (NRCPUS).  The reader doesn't move. */
void tally_feature_read_cpu_topology(struct tally_reader *reader, uint32_t cpu_count,
				     struct tally_feature_topology_parts *parts);
/* Reads the next CPU, of those that `has_cpus` announces. */
void tally_feature_read_cpu(struct tally_feature_topology_parts *parts,
			    struct tally_feature_cpu *cpu);

/* CACHE, NUMA_TOPOLOGY, MEM_TOPOLOGY: a head, then `count` entries.  Readers of heads also return
 * false if the section has another version. */
void tally_feature_cache_head(struct tally_buffer *out, uint32_t count);
bool tally_feature_read_cache_head(struct tally_reader *reader, uint32_t *count);
/* `words`: level, bytes per line, sets, ways; `size` as in sysfs ("32K"). */
void tally_feature_cache(struct tally_buffer *out, const uint32_t words[4], const char *type,
			 const char *size, const char *cpus);
struct tally_feature_cache_text {
	uint32_t level;
	const char *type, *size, *cpus;
};
bool tally_feature_read_cache(struct tally_reader *reader, struct tally_feature_cache_text *cache);
void tally_feature_numa_head(struct tally_buffer *out, uint32_t count);
void tally_feature_numa(struct tally_buffer *out, uint32_t node, uint64_t total_kib,
			uint64_t free_kib, const char *cpus);
struct tally_feature_numa_node {
	uint32_t number;
	uint64_t total_kib, free_kib;
	const char *cpus;
};
bool tally_feature_read_numa(struct tally_reader *reader, struct tally_feature_numa_node *node);
void tally_feature_memory_head(struct tally_buffer *out, uint64_t block_bytes, uint64_t count);
bool tally_feature_read_memory_head(struct tally_reader *reader, uint64_t *block_bytes,
				    uint64_t *count);
/* `blocks`: bitmap of `bits` bits; a set bit is a memory block of this node. */
void tally_feature_memory(struct tally_buffer *out, uint64_t node, const uint64_t *blocks,
			  size_t bits);
struct tally_feature_memory_node {
	uint64_t number, bits;
	struct tally_reader words; /* the bitmap: (bits + 63) / 64 u64 */
};
bool tally_feature_read_memory(struct tally_reader *reader, struct tally_feature_memory_node *node);

/* BPF_BTF, which only perf writes: a count (a u32) and the types of BPF programs. */
struct tally_feature_bpf_types {
	uint32_t id, size;
	const uint8_t *bytes;
};
bool tally_feature_read_bpf_types(struct tally_reader *reader,
				  struct tally_feature_bpf_types *types);

/* COMPRESSED: the writer itself writes it. */
void tally_feature_compressed(struct tally_buffer *out, uint32_t level, uint32_t ratio,
			      uint32_t chunk_bytes_max);

/* TRACING_DATA: formats and texts that decode tracepoints' fields (perf's trace-event-info.c,
 * version 0.6). */
struct tally_tracing_format {
	const char *system; /* formats of one system are adjacent */
	const char *text;   /* tracefs events/SYSTEM/NAME/format */
	size_t length;
};
struct tally_tracing_data {
	/* tracefs events/header_page, header_event; NULL: empty */
	const char *header_page, *header_event;
	const struct tally_tracing_format *formats;
	size_t format_count;
	const char *kallsyms, *printk_formats, *saved_cmdlines; /* NULL: empty */
};
void tally_feature_tracing_data(struct tally_buffer *out, const struct tally_tracing_data *data);

/* Calls `visit` for each format in a TRACING_DATA section.  `visit` returns 0 to go on; any other
 * value ends the walk and is returned.  Returns -EBADMSG when the section is damaged. */
int tally_tracing_data_walk(const void *bytes, size_t size,
			    int (*visit)(void *context, const char *system, const char *text,
					 size_t length),
			    void *context);

/* Gets the long's size and the byte order (`swap`: not ours) of the machine that a TRACING_DATA
 * section comes from.  Returns false when the section is damaged. */
bool tally_tracing_data_machine(const void *bytes, size_t size, unsigned *long_bytes, bool *swap);

/* Returns the printk formats of a TRACING_DATA section, not NUL-terminated, or NULL. */
const char *tally_tracing_data_printk(const void *bytes, size_t size, size_t *length);

/* Gets the number in the "ID:" line of a format; false when there is none. */
bool tally_tracing_format_id(const char *text, size_t length, uint64_t *id);

/* tally's own section: a sequence of parts, each with a type and compressed separately.
 * docs/file-format.md has the layout.
 *
 *     "TALLY255", version | type, 0, stored bytes, unpacked bytes, zstd frame | …
 *
 * A reader takes the parts that it knows and skips the others by their length.  All numbers are
 * little-endian, regardless of the recording's byte order.  The bytes are untrusted.
 */

enum tally_own_part {
	TALLY_OWN_STRINGS = 1,
	TALLY_OWN_FUNCTIONS,
	TALLY_OWN_PLACES,
	TALLY_OWN_STACKS,
	TALLY_OWN_JITS,
	TALLY_OWN_CODE,
	TALLY_OWN_SOURCES,
	TALLY_OWN_DECLARED,
	TALLY_OWN_AROUND,
	TALLY_OWN_CAUSES,
	TALLY_OWN_PARTIAL,
};

/* Starts a section in an empty buffer. */
void tally_own_feature_begin(struct tally_buffer *out);
/* Adds a part.  Failure sticks in `out`. */
void tally_own_feature_add(struct tally_buffer *out, enum tally_own_part type, const void *bytes,
			   size_t size);

/* Unpacks the first part of `type` into `out`; the caller releases it.  Returns 1, or 0 when there
 * is none; -EBADMSG when the section is damaged, -ENOTSUP when a newer tally made it, -EFBIG when
 * its parts unpack to more than the limit (noted, base/input_limits.h), -ENOMEM. */
int tally_own_feature_get(const void *section, size_t size, enum tally_own_part type,
			  struct tally_buffer *out);

/* Returns how much memory may be used for the tables that are made of parts of a section. */
uint64_t tally_own_tables_max(size_t section_size);
/* True if tables of `bytes` may be made; otherwise notes that they were refused. */
bool tally_own_tables_fit(uint64_t bytes, uint64_t bytes_max);

/* Appends a number as LEB128 (DWARF 5, 7.6), as tally_reader_uleb() reads it. */
void tally_own_put_number(struct tally_buffer *out, uint64_t value);

/* Appends a signed difference in zigzag: 0, −1, 1, −2 become 0, 1, 2, 3. */
void tally_own_put_step(struct tally_buffer *out, uint64_t step);

/* The event of `tally record --off-cpu`.  It samples each switch away from a CPU; the sample stands
 * for the time until its task runs again.  Readers recognise it by its name, which the file keeps
 * and which perf uses as well. */

#define TALLY_OFF_CPU_NAME "offcpu-time"

/* The event whose samples say which task wakes which.  Recorded beside the off-CPU event when the
 * kernel permits it. */
#define TALLY_WAKING_NAME "sched:sched_waking"

static inline bool tally_is_off_cpu(const struct tally_attr *attr, const char *name)
{
	return attr->type == TALLY_TYPE_SOFTWARE && attr->config == TALLY_SW_CONTEXT_SWITCHES &&
	       attr->sample_period == 1 && !(attr->flags & TALLY_ATTR_FREQ) &&
	       !strcmp(name, TALLY_OFF_CPU_NAME);
}

static inline bool tally_is_waking(const struct tally_attr *attr, const char *name)
{
	return attr->type == TALLY_TYPE_TRACEPOINT && !strcmp(name, TALLY_WAKING_NAME);
}

/* Gives records in time order, by FINISHED_ROUND: no later record can be earlier than one that was
 * written two rounds ago.
 *
 * A recording whose records carry no time is given in file order.  Side-band records come before
 * samples of equal time, so a lookup of a sample's address finds its mapping.
 */

int tally_order_new(struct tally_perfdata *data, struct tally_order **out, struct tally_error *err);

/* Gets the next record in time order.  Returns 1, 0 at the end, or -errno.  The record is valid
 * until the next call. */
int tally_order_next(struct tally_order *order, struct tally_raw_record *record,
		     struct tally_error *err);

/* Returns true if the bytes of the record given last can stay valid beyond the next call.  `*block`
 * is the block that they are in, for tally_block_hold(), or NULL when they stay valid while the
 * recording is open. */
bool tally_order_block(const struct tally_order *order, struct tally_block **block);

/* Drops a block that the caller held. */
void tally_order_drop(struct tally_order *order, struct tally_block *block);
/* Adds a holder of a block (NULL: does nothing); any thread may call it while the block is held. */
void tally_block_hold(struct tally_block *block);

void tally_order_free(struct tally_order *order);

/* Makes a second recording that contains tally's own section: copies the file, or rewrites its
 * records. */

/* Copies a finished perf.data file of either byte order from descriptor `from` to `to`, an empty
 * file.  The data and all features stay as they are; the section is added or replaced.  Returns 0.
 * Returns -ENOTSUP when the recording must be rewritten instead: a pipe's stream, an unfinished
 * file, or a file with another layout than perf's.  Other errors of reading and writing are -errno
 * with a message. */
int tally_perfdata_graft(int from, int to, const void *bytes, size_t size, struct tally_error *err);

/* Writes the recording at `path` to `to` as a file of this machine's byte order.  `level` is zstd's
 * compression level; 0 means uncompressed.  The payload of AUXTRACE records is left out.  Returns
 * 0, or -errno with a message. */
int tally_perfdata_rewrite(const char *path, int to, int level, const void *bytes, size_t size,
			   struct tally_error *err);

#endif
