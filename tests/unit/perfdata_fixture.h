/* A small recording made by tally's writer, which the tests of perfdata read back. */
#ifndef TALLY_TEST_PERFDATA_FIXTURE_H
#define TALLY_TEST_PERFDATA_FIXTURE_H

#include "base/buffer.h"
#include "perfdata/perfdata.h"

#include <errno.h>

#define FIXTURE_SAMPLE_TYPE \
	(TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | \
	 TALLY_SAMPLE_CPU | TALLY_SAMPLE_PERIOD)

static const uint64_t fixture_ids[2][2] = { { 11, 12 }, { 21, 22 } };

static inline void fixture_events(struct tally_recorded_event events[2])
{
	for (unsigned i = 0; i < 2; i++)
		events[i] = (struct tally_recorded_event){
			.attr = { .type = TALLY_TYPE_SOFTWARE,
				  .config = i ? TALLY_SW_PAGE_FAULTS : TALLY_SW_CPU_CLOCK,
				  .sample_period = 1000,
				  .sample_type = FIXTURE_SAMPLE_TYPE,
				  .read_format = TALLY_FORMAT_ID,
				  .flags = TALLY_ATTR_SAMPLE_ID_ALL | TALLY_ATTR_MMAP |
					   TALLY_ATTR_MMAP2 | TALLY_ATTR_COMM | TALLY_ATTR_TASK },
			.name = i ? "faults-of-mine" : "clock-of-mine",
			.ids = fixture_ids[i],
			.id_count = 2,
		};
}

static inline void fixture_put(struct tally_buffer *out, uint32_t type, uint16_t misc,
			       const void *body, size_t size)
{
	struct tally_record_header header = { type, misc, (uint16_t)(sizeof(header) + size) };
	tally_buffer_append(out, &header, sizeof(header));
	tally_buffer_append(out, body, size);
}

/* Adds a record of pid 100 with the trailer of FIXTURE_SAMPLE_TYPE. */
static inline void fixture_put_sideband(struct tally_buffer *out, uint32_t type, const void *body,
					size_t size, uint64_t time_ns)
{
	struct tally_buffer all = { 0 };
	uint64_t trailer[4] = { 100ull << 32 | 100, time_ns, 0, 11 };
	tally_buffer_append(&all, body, size);
	tally_buffer_append(&all, trailer, sizeof(trailer));
	fixture_put(out, type, TALLY_MISC_USER, all.bytes, all.length);
	tally_buffer_release(&all);
}

static inline void fixture_put_comm(struct tally_buffer *out, uint64_t time_ns)
{
	struct {
		uint32_t pid, tid;
		char comm[8];
	} comm = { 100, 100, "fixture" };
	fixture_put_sideband(out, TALLY_RECORD_COMM, &comm, sizeof(comm), time_ns);
}

static inline void fixture_put_mmap(struct tally_buffer *out, uint64_t time_ns)
{
	struct {
		uint32_t pid, tid;
		uint64_t start, length, offset;
		char filename[16];
	} mmap = { 100, 100, 0x400000, 0x10000, 0, "/bin/fixture" };
	fixture_put_sideband(out, TALLY_RECORD_MMAP, &mmap, sizeof(mmap), time_ns);
}

static inline void fixture_put_sample(struct tally_buffer *out, uint64_t id, uint64_t ip,
				      uint64_t time_ns)
{
	uint64_t words[] = { id, ip, 100ull << 32 | 100, time_ns, 1, 1000 };
	fixture_put(out, TALLY_RECORD_SAMPLE, TALLY_MISC_USER, words, sizeof(words));
}

static inline void fixture_put_round(struct tally_buffer *out)
{
	fixture_put(out, TALLY_RECORD_FINISHED_ROUND, 0, NULL, 0);
}

/* Adds COMM, MMAP, then `samples` samples in rounds of 100; each round has two runs, as from two
 * CPUs. */
static inline void fixture_records(struct tally_buffer *out, unsigned samples)
{
	uint64_t noise = 88172645463325252ull;
	fixture_put_comm(out, 1000);
	fixture_put_mmap(out, 1001);
	for (unsigned first = 0; first < samples; first += 100) {
		for (unsigned i = 0; i < 100 && first + i < samples; i++) {
			unsigned at = i < 50 ? 2 * i : 2 * (i - 50) + 1;
			noise ^= noise << 13, noise ^= noise >> 7, noise ^= noise << 17;
			fixture_put_sample(out, i < 50 ? 11 : 21, 0x400000 + noise % 0x10000,
					   2000 + first + at);
		}
		fixture_put_round(out);
	}
}

static inline void fixture_write_text(struct tally_perfdata_writer *writer, unsigned feature,
				      const char *text)
{
	struct tally_buffer out = { 0 };
	tally_feature_string(&out, text);
	assert_int_equal(tally_perfdata_write_feature(writer, feature, out.bytes, out.length, NULL),
			 0);
	tally_buffer_release(&out);
}

static const char fixture_format[] =
	"name: tick\nID: 4242\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
	"\n\tfield:int n;\toffset:8;\tsize:4;\tsigned:1;\n"
	"\nprint fmt: \"n=%d\", REC->n\n";
static const char fixture_header_page[] =
	"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
	"\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
	"\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
	"\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

static inline void fixture_write_bytes(struct tally_perfdata_writer *writer, unsigned feature,
				       struct tally_buffer *bytes)
{
	assert_false(bytes->failed);
	assert_int_equal(
		tally_perfdata_write_feature(writer, feature, bytes->bytes, bytes->length, NULL),
		0);
	tally_buffer_clear(bytes);
}

static inline void fixture_features(struct tally_perfdata_writer *writer,
				    const struct tally_recorded_event events[2])
{
	struct tally_buffer out = { 0 };
	const char *const words[] = { "tally", "record", "-o", "x" };
	fixture_write_text(writer, TALLY_FEATURE_HOSTNAME, "fixture-host");
	fixture_write_text(writer, TALLY_FEATURE_OSRELEASE, "6.99.0");
	fixture_write_text(writer, TALLY_FEATURE_VERSION, "tally 0.1");
	fixture_write_text(writer, TALLY_FEATURE_ARCH, "x86_64");
	fixture_write_text(writer, TALLY_FEATURE_CPUDESC, "A CPU of Ours");
	fixture_write_text(writer, TALLY_FEATURE_CPUID, "OursCPU,1,2,3");
	tally_feature_string_list(&out, words, 4);
	fixture_write_bytes(writer, TALLY_FEATURE_CMDLINE, &out);
	tally_feature_nrcpus(&out, 2, 2);
	fixture_write_bytes(writer, TALLY_FEATURE_NRCPUS, &out);
	tally_feature_u64(&out, 123456);
	fixture_write_bytes(writer, TALLY_FEATURE_TOTAL_MEM, &out);
	tally_feature_event_desc(&out, events, 2);
	fixture_write_bytes(writer, TALLY_FEATURE_EVENT_DESC, &out);
	tally_feature_sample_time(&out, 2000, 2999);
	fixture_write_bytes(writer, TALLY_FEATURE_SAMPLE_TIME, &out);
	tally_feature_u64(&out, 1);
	fixture_write_bytes(writer, TALLY_FEATURE_CLOCKID, &out);
	tally_feature_clock_data(&out, 1, 1700000000000000000ull, 5000);
	fixture_write_bytes(writer, TALLY_FEATURE_CLOCK_DATA, &out);
	const struct tally_feature_pmu pmus[] = { { 1, "software" }, { 2, "tracepoint" } };
	tally_feature_pmu_mappings(&out, pmus, 2);
	fixture_write_bytes(writer, TALLY_FEATURE_PMU_MAPPINGS, &out);
	const char *const packages[] = { "0-1" }, *const threads[] = { "0", "1" };
	const struct tally_feature_cpu cpus[] = { { 0, 0, 0 }, { 1, 0, 0 } };
	const struct tally_feature_topology topology = { packages, 1, threads, 2,
							 packages, 1, cpus,    2 };
	tally_feature_cpu_topology(&out, &topology);
	fixture_write_bytes(writer, TALLY_FEATURE_CPU_TOPOLOGY, &out);
	const struct tally_recorded_build_id build_id = { .pid = UINT32_MAX,
							  .misc = TALLY_MISC_USER,
							  .size = 20,
							  .bytes = { 0xde, 0xad, 0xbe, 0xef },
							  .filename = "/bin/fixture" };
	tally_feature_build_id(&out, &build_id);
	fixture_write_bytes(writer, TALLY_FEATURE_BUILD_ID, &out);
	const struct tally_tracing_format format = { "tally", fixture_format,
						     sizeof(fixture_format) - 1 };
	const struct tally_tracing_data tracing = { .header_page = fixture_header_page,
						    .formats = &format,
						    .format_count = 1 };
	tally_feature_tracing_data(&out, &tracing);
	fixture_write_bytes(writer, TALLY_FEATURE_TRACING_DATA, &out);
	tally_buffer_release(&out);
}

/* Writes a whole recording into `fd`.  `big_writes`: all records at once, otherwise one by one. */
static inline void fixture_record(int fd, bool pipe, int level, unsigned samples, bool big_writes)
{
	struct tally_recorded_event events[2];
	struct tally_perfdata_options options = { .pipe = pipe, .compression_level = level };
	struct tally_perfdata_writer *writer;
	struct tally_buffer records = { 0 };
	fixture_events(events);
	assert_int_equal(tally_perfdata_writer_new(fd, events, 2, &options, &writer, NULL), 0);
	fixture_features(writer, events);
	fixture_records(&records, samples);
	for (size_t at = 0, size; at < records.length; at += size) {
		struct tally_record_header header;
		memcpy(&header, records.bytes + at, sizeof(header));
		size = big_writes ? records.length : header.size;
		assert_int_equal(tally_perfdata_write(writer, records.bytes + at, size, NULL), 0);
	}
	assert_int_equal(tally_perfdata_finish(writer, NULL), 0);
	assert_int_equal(tally_perfdata_add_own(writer, "tally's own", 11, NULL),
			 pipe ? -EINVAL : 0);
	tally_perfdata_writer_free(writer);
	tally_buffer_release(&records);
}

#endif
