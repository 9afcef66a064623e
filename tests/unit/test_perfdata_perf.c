/* perf is the referee: it must read what tally writes, and tally what perf writes. */
#include "test.h"

#include "perfdata_fixture.h"

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

/* What the shell command prints first. */
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
	snprintf(command, sizeof(command), "perf script -F event,ip,time -i %s 2>%s | grep -c of-mine", path,
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
	snprintf(command, sizeof(command), "perf script -i - <%s 2>&1 | grep -c of-mine", path_in("pipe"));
	assert_int_equal(atoi(output_of(command)), 5000);
}

static void perf_shows_our_features(void **state)
{
	static const char *const expected[] = {
		"hostname : fixture-host", "os release : 6.99.0", "perf version : tally 0.1", "arch : x86_64",
		"nrcpus online : 2", "nrcpus avail : 2", "cpudesc : A CPU of Ours", "cpuid : OursCPU,1,2,3",
		"total memory : 123456 kB", "cmdline : tally record -o x", "event : name = clock-of-mine, ",
		"event : name = faults-of-mine, ", "id = { 21, 22 }", "sibling sockets : 0-1",
		"sibling threads : 1", "CPU 1: Core ID 1, Die ID 0, Socket ID 0",
		"pmu mappings: software = 1, tracepoint = 2", "time of first sample : 0.000002",
		"clockid frequency: 1000 MHz", "clockid: monotonic (1)", "compressed : Zstd, level = 3, ratio = ",
	};
	char command[512];
	(void)state;
	need_perf();
	write_fixture(path_in("features"), false, 3, 1000, true);
	snprintf(command, sizeof(command), "perf report --header-only -I -i %s 2>&1", path_in("features"));
	char *out = output_of(command);
	for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		if (!strstr(out, expected[i]))
			fail_msg("perf doesn't show \"%s\" in:\n%s", expected[i], out);
	snprintf(command, sizeof(command), "perf buildid-list -i %s 2>&1", path_in("features"));
	assert_string_equal(output_of(command), "deadbeef00000000000000000000000000000000 /bin/fixture\n");
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
	};
	return cmocka_run_group_tests_name("perfdata_perf", tests, make_directory, remove_directory);
}
