/* Builds the contents of feature sections. perf's tools/perf/util/header.c defines the format.
 *
 * Each function appends to a buffer, which the caller then passes to
 * tally_perfdata_write_feature().  Failure sticks in the buffer (`failed`).
 */
#ifndef TALLY_PERFDATA_FEATURE_H
#define TALLY_PERFDATA_FEATURE_H

#include "base/buffer.h"
#include "perfdata/perfdata.h"

/* HOSTNAME, OSRELEASE, VERSION, ARCH, CPUDESC, CPUID, and the strings within other features. */
void tally_feature_string(struct tally_buffer *out, const char *text);

/* CMDLINE: a count and the strings. */
void tally_feature_string_list(struct tally_buffer *out, const char *const *texts, size_t count);

/* NRCPUS */
void tally_feature_nrcpus(struct tally_buffer *out, uint32_t available, uint32_t online);

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

/* CLOCK_DATA: the same moment on the wall clock and on `clockid`. */
void tally_feature_clock_data(struct tally_buffer *out, uint32_t clockid, uint64_t wall_ns,
			      uint64_t clock_ns);

/* PMU_MAPPINGS */
struct tally_feature_pmu {
	uint32_t type;
	const char *name;
};
void tally_feature_pmu_mappings(struct tally_buffer *out, const struct tally_feature_pmu *pmus,
				size_t count);

/* GROUP_DESC: groups with more than one member.  `leader_index` counts in the list of events. */
struct tally_feature_group {
	const char *name;
	uint32_t leader_index, member_count; /* the leader is a member */
};
void tally_feature_group_desc(struct tally_buffer *out, const struct tally_feature_group *groups,
			      size_t count);

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

/* CACHE, NUMA_TOPOLOGY, MEM_TOPOLOGY: a head, then `count` entries. */
void tally_feature_cache_head(struct tally_buffer *out, uint32_t count);
/* `words`: level, bytes per line, sets, ways; `size` as in sysfs ("32K"). */
void tally_feature_cache(struct tally_buffer *out, const uint32_t words[4], const char *type,
			 const char *size, const char *cpus);
void tally_feature_numa_head(struct tally_buffer *out, uint32_t count);
void tally_feature_numa(struct tally_buffer *out, uint32_t node, uint64_t total_kib,
			uint64_t free_kib, const char *cpus);
void tally_feature_memory_head(struct tally_buffer *out, uint64_t block_bytes, uint64_t count);
/* `blocks`: bitmap of `bits` bits; a set bit is a memory block of this node. */
void tally_feature_memory(struct tally_buffer *out, uint64_t node, const uint64_t *blocks,
			  size_t bits);

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

#endif
