/* Compares with perf: it must read what tally writes, and tally what perf writes. */
#include "test.h"

#include "perfdata_fixture.h"
#include "perfdata_walk.h"

#include <fcntl.h>
#include <unistd.h>

static char directory[] = "/tmp/tally-perfdata-XXXXXX";

static const char *path_in(const char *name)
{
	static char path[4][256];
	static unsigned next;
	char *out = path[next++ % 4];
	snprintf(out, sizeof(path[0]), "%s/%s", directory, name);
	return out;
}

static void need_perf(void)
{
	if (system("perf --version >/dev/null 2>&1") != 0) {
		print_message("SKIP: there is no perf on this machine\n");
		skip();
	}
}

/* Returns the first line of a shell command's output. */
static char *output_of(const char *command)
{
	static char out[65536];
	FILE *pipe = popen(command, "r");
	assert_non_null(pipe);
	size_t length = fread(out, 1, sizeof(out) - 1, pipe);
	out[length] = '\0';
	pclose(pipe);
	return out;
}

static void write_fixture(const char *path, bool pipe, int level, unsigned samples, bool big_writes)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	fixture_record(fd, pipe, level, samples, big_writes);
	close(fd);
}

static void assert_perf_counts(const char *path, unsigned samples)
{
	char command[1024];
	snprintf(command, sizeof(command),
		 "perf script -F event,ip,time -i %s 2>%s | grep -c of-mine", path,
		 path_in("stderr"));
	assert_int_equal(atoi(output_of(command)), samples);
	snprintf(command, sizeof(command), "cat %s", path_in("stderr"));
	assert_string_equal(output_of(command), "");
}

static void perf_reads_our_plain_file(void **state)
{
	(void)state;
	need_perf();
	write_fixture(path_in("plain"), false, 0, 5000, false);
	assert_perf_counts(path_in("plain"), 5000);
}

static void perf_reads_our_compressed_files(void **state)
{
	(void)state;
	need_perf();
	for (int level = 1; level < 20; level += 9) {
		write_fixture(path_in("packed"), false, level, 50000, level > 1);
		assert_perf_counts(path_in("packed"), 50000);
	}
}

static void perf_reads_our_pipe(void **state)
{
	char command[512];
	(void)state;
	need_perf();
	write_fixture(path_in("pipe"), true, 1, 5000, false);
	snprintf(command, sizeof(command), "perf script -i - <%s 2>&1 | grep -c of-mine",
		 path_in("pipe"));
	assert_int_equal(atoi(output_of(command)), 5000);
}

static void perf_shows_our_features(void **state)
{
	static const char *const expected[] = {
		"hostname : fixture-host",
		"os release : 6.99.0",
		"perf version : tally 0.1",
		"arch : x86_64",
		"nrcpus online : 2",
		"nrcpus avail : 2",
		"cpudesc : A CPU of Ours",
		"cpuid : OursCPU,1,2,3",
		"total memory : 123456 kB",
		"cmdline : tally record -o x",
		"event : name = clock-of-mine, ",
		"event : name = faults-of-mine, ",
		"id = { 21, 22 }",
		"sibling sockets : 0-1",
		"sibling threads : 1",
		"CPU 1: Core ID 1, Die ID 0, Socket ID 0",
		"pmu mappings: software = 1, tracepoint = 2",
		"time of first sample : 0.000002",
		"clockid frequency: 1000 MHz",
		"clockid: monotonic (1)",
		"compressed : Zstd, level = 3, ratio = ",
	};
	char command[512];
	(void)state;
	need_perf();
	write_fixture(path_in("features"), false, 3, 1000, true);
	snprintf(command, sizeof(command), "perf report --header-only -I -i %s 2>&1",
		 path_in("features"));
	char *out = output_of(command);
	for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		if (!strstr(out, expected[i]))
			fail_msg("perf doesn't show \"%s\" in:\n%s", expected[i], out);
	snprintf(command, sizeof(command), "perf buildid-list -i %s 2>&1", path_in("features"));
	assert_string_equal(output_of(command),
			    "deadbeef00000000000000000000000000000000 /bin/fixture\n");
}

/* Writes a recording of the tracepoint that fixture_format describes. */
static void write_tracepoints(const char *path, bool as_pipe)
{
	static const uint64_t ids[] = { 31 };
	const struct tally_recorded_event event = {
		.attr = { .type = TALLY_TYPE_TRACEPOINT, .config = 4242, .sample_period = 1,
			  .sample_type = FIXTURE_SAMPLE_TYPE | TALLY_SAMPLE_RAW,
			  .flags = TALLY_ATTR_SAMPLE_ID_ALL },
		.name = "tally:tick", .ids = ids, .id_count = 1,
	};
	const struct tally_perfdata_options options = { .pipe = as_pipe, .compression_level = 1 };
	const struct tally_tracing_format format = { "tally", fixture_format,
						     sizeof(fixture_format) - 1 };
	const struct tally_tracing_data tracing = { .header_page = fixture_header_page,
						    .formats = &format,
						    .format_count = 1 };
	struct tally_perfdata_writer *writer;
	struct tally_buffer records = { 0 }, feature = { 0 };
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(tally_perfdata_writer_new(fd, &event, 1, &options, &writer, NULL), 0);
	tally_feature_event_desc(&feature, &event, 1);
	fixture_write_bytes(writer, TALLY_FEATURE_EVENT_DESC, &feature);
	tally_feature_tracing_data(&feature, &tracing);
	fixture_write_bytes(writer, TALLY_FEATURE_TRACING_DATA, &feature);
	for (uint64_t i = 0; i < 100; i++) {
		/* RAW: u32 size 12, then type 4242, flags, preempt count, pid 100, n */
		uint64_t words[] = { 31, 0x401000, 100ull << 32 | 100, 5000 + i,
				     1,  1,        4242ull << 32 | 12, i << 32 | 100 };
		fixture_put(&records, TALLY_RECORD_SAMPLE, TALLY_MISC_USER, words, sizeof(words));
	}
	assert_int_equal(tally_perfdata_write(writer, records.bytes, records.length, NULL), 0);
	assert_int_equal(tally_perfdata_finish(writer, NULL), 0);
	tally_perfdata_writer_free(writer);
	tally_buffer_release(&feature);
	tally_buffer_release(&records);
	close(fd);
}

/* SPEC E1: perf decodes the formats that we write. */
static void perf_decodes_our_tracepoints(void **state)
{
	char command[512];
	(void)state;
	need_perf();
	for (int as_pipe = 0; as_pipe < 2; as_pipe++) {
		write_tracepoints(path_in("traced"), as_pipe);
		snprintf(command, sizeof(command),
			 "perf script -i %s 2>&1 | grep -c 'tally:tick: n=[0-9]'",
			 path_in("traced"));
		assert_int_equal(atoi(output_of(command)), 100);
	}
}

static const char workload[] = "sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'";

/* Records with perf into `name`; in pipe form if `options` contain -o -. */
static const char *record(const char *name, const char *options)
{
	static char path[256];
	char command[1024];
	snprintf(path, sizeof(path), "%s", path_in(name));
	bool as_pipe = strstr(options, "-o -");
	snprintf(command, sizeof(command), "perf record %s %s %s -- %s %s%s 2>%s", options,
		 as_pipe ? "" : "-o", as_pipe ? "" : path, workload, as_pipe ? ">" : "",
		 as_pipe ? path : "", path_in("stderr"));
	if (system(command) != 0) {
		print_message("SKIP: perf can't record here: %s\n", command);
		skip();
	}
	return path;
}

static unsigned perf_counts(const char *path)
{
	char command[1024];
	/* only a sample's line has the event's name and a colon */
	snprintf(command, sizeof(command),
		 "perf script -G -F event -i %s 2>/dev/null | grep -c :", path);
	return (unsigned)atoi(output_of(command));
}

static void we_read_perfs(const char *name, const char *options)
{
	need_perf();
	const char *path = record(name, options);
	unsigned wanted = perf_counts(path);
	assert_true(wanted > 10);
	for (int ordered = 0; ordered < 2; ordered++) {
		struct tally_perfdata *data;
		struct tally_error err = TALLY_ERROR_NONE;
		if (tally_perfdata_open(path, &data, &err) < 0)
			fail_msg("%s", err.message);
		struct perfdata_walk walk = perfdata_walk(data, ordered);
		assert_int_equal(walk.samples, wanted);
		assert_int_equal(walk.undecodable, 0);
		if (ordered)
			assert_int_equal(walk.backwards, 0);
		if (tally_perfdata_damage(data))
			fail_msg("%s", tally_perfdata_damage(data)->message);
		assert_non_null(tally_perfdata_feature_text(data, TALLY_FEATURE_HOSTNAME));
		tally_perfdata_close(data);
	}
}

static void we_read_perfs_plain_file(void **state)
{
	(void)state;
	we_read_perfs("perf-plain", "-F 4000 -e cpu-clock,page-faults");
}

static void we_read_perfs_compressed_file(void **state)
{
	(void)state;
	we_read_perfs("perf-packed", "-z -g -e cpu-clock,page-faults");
}

static void we_read_perfs_stack_copies(void **state)
{
	(void)state;
	we_read_perfs("perf-stacks", "-z --call-graph dwarf -e cpu-clock");
}

static void we_read_perfs_pipe(void **state)
{
	(void)state;
	we_read_perfs("perf-pipe", "-o - -e cpu-clock,page-faults");
}

static void we_read_perfs_names_and_build_ids(void **state)
{
	(void)state;
	need_perf();
	struct tally_perfdata *data;
	const char *path = record("perf-names", "-e cpu-clock:u,page-faults:u -a");
	char command[512];
	size_t count;
	assert_int_equal(tally_perfdata_open(path, &data, NULL), 0);
	const struct tally_recorded_event *events = tally_perfdata_events(data, &count);
	assert_true(count >= 2); /* perf may add a dummy for side-band records */
	assert_string_equal(events[0].name, "cpu-clock:u");
	assert_string_equal(events[1].name, "page-faults:u");
	assert_true(events[1].id_count > 0);
	const struct tally_recorded_build_id *build_ids = tally_perfdata_build_ids(data, &count);
	snprintf(command, sizeof(command), "perf buildid-list -i %s", path);
	char *list = output_of(command);
	assert_true(count > 0);
	for (size_t i = 0; i < count; i++) {
		char hex[64] = "";
		for (unsigned j = 0; j < build_ids[i].size; j++)
			snprintf(hex + 2 * j, 3, "%02x", build_ids[i].bytes[j]);
		assert_non_null(strstr(list, hex));
		assert_non_null(strstr(list, build_ids[i].filename));
	}
	tally_perfdata_close(data);
}

static void nothing_that_befalls_perfs_files_hurts(void **state)
{
	static const char *const options[] = { "-z -e cpu-clock,page-faults",
					       "-e cpu-clock,page-faults",
					       "-o - -e cpu-clock,page-faults" };
	uint64_t noise = 0x9e3779b97f4a7c15ull;
	(void)state;
	need_perf();
	for (unsigned variant = 0; variant < 3; variant++) {
		struct tally_buffer bytes = { 0 };
		const char *path = record("perf-hurt", options[variant]);
		assert_int_equal(tally_buffer_read_file(&bytes, AT_FDCWD, path, (size_t)1 << 30),
				 0);
		for (unsigned i = 0; i < 1000; i++) {
			struct tally_perfdata *data;
			noise ^= noise << 13, noise ^= noise >> 7, noise ^= noise << 17;
			size_t at = noise % bytes.length, size = i & 2 ? at : bytes.length;
			uint8_t *exact = malloc(size + 1);
			memcpy(exact, bytes.bytes, size);
			if (!(i & 2))
				exact[i & 4 ? at : at % 1024] ^= (uint8_t)(1u << (noise >> 40) % 8);
			if (tally_perfdata_open_memory(exact, size, &data, NULL) == 0) {
				perfdata_walk(data, i & 1);
				tally_perfdata_close(data);
			}
			free(exact);
		}
		tally_buffer_release(&bytes);
	}
}

static int make_directory(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	char command[512];
	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", directory);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perf_reads_our_plain_file),
		cmocka_unit_test(perf_reads_our_compressed_files),
		cmocka_unit_test(perf_reads_our_pipe),
		cmocka_unit_test(perf_shows_our_features),
		cmocka_unit_test(perf_decodes_our_tracepoints),
		cmocka_unit_test(we_read_perfs_plain_file),
		cmocka_unit_test(we_read_perfs_compressed_file),
		cmocka_unit_test(we_read_perfs_stack_copies),
		cmocka_unit_test(we_read_perfs_pipe),
		cmocka_unit_test(we_read_perfs_names_and_build_ids),
		cmocka_unit_test(nothing_that_befalls_perfs_files_hurts),
	};
	return cmocka_run_group_tests_name("perfdata_perf", tests, make_directory,
					   remove_directory);
}
