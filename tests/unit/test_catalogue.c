/* Reads sysfs and tracefs: from directories that the tests make, and from this machine. */
#include "test.h"

#include "event/event.h"
#include "machine/machine.h"
#include "provider/provider.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/tally-catalogue-XXXXXX";

static int make_root(void **state)
{
	(void)state;
	strcpy(root + strlen(root) - 6, "XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *walk)
{
	(void)stat, (void)type, (void)walk;
	return remove(path);
}

static int remove_root(void **state)
{
	(void)state;
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Writes ROOT/PATH, making its directories. */
static void file(const char *path, const char *text)
{
	char full[256];
	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		mkdir(full, 0755);
	}
	FILE *out = fopen(full, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static void format_gives_field_and_mask(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool good;
		uint8_t field;
		uint64_t mask;
	} rows[] = {
		{ "config:0-7\n", true, 0, 0xff },
		{ "config:0-7,32-35", true, 0, 0xf000000ff },
		{ "config1:18", true, 1, 1 << 18 },
		{ "config2:0-63\n", true, 2, UINT64_MAX },
		{ "config3:63", true, 3, 1ull << 63 },
		{ "config4:0", false },
		{ "config:64", false },
		{ "config:3-1", false },
		{ "config:", false },
		{ "config:1,", false },
		{ "config:-1", false },
		{ "umask:1", false },
		{ "", false },
		{ "config:0-7 x", false },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t field;
		uint64_t mask;
		assert_int_equal(tally_sysfs_format_parse(rows[i].text, &field, &mask),
				 rows[i].good);
		if (rows[i].good) {
			assert_int_equal(field, rows[i].field);
			assert_true(mask == rows[i].mask);
		}
	}
}

static void pmu_is_read_with_aliases_units_and_scales(void **state)
{
	(void)state;
	struct tally_arena arena = TALLY_ARENA_INIT;
	struct tally_sysfs_pmu pmu;
	file("power/type", "20\n");
	file("power/cpumask", "0-1\n");
	file("power/format/event", "config:0-7\n");
	file("power/format/umask", "config:8-15\n");
	file("power/format/odd", "nothing\n");
	file("power/events/energy-pkg", "event=0x02\n");
	file("power/events/energy-pkg.scale", "2.3283064365386962890625e-10\n");
	file("power/events/energy-pkg.unit", "Joules\n");
	file("power/events/bare", "event=1,umask=3\n");
	file("power/events/bare.snapshot", "1\n");
	assert_int_equal(tally_sysfs_pmu_read(root, "power", &arena, &pmu), 0);
	assert_int_equal(pmu.type, 20);
	assert_string_equal(pmu.cpus, "0-1");
	assert_int_equal(pmu.format_count, 2);
	assert_string_equal(pmu.formats[1].name, "umask");
	assert_true(pmu.formats[1].mask == 0xff00);
	assert_int_equal(pmu.event_count, 2);
	assert_string_equal(pmu.events[0].name, "bare");
	assert_string_equal(pmu.events[0].terms, "event=1,umask=3");
	assert_string_equal(pmu.events[0].unit, "");
	assert_true(pmu.events[0].scale == 1);
	assert_string_equal(pmu.events[1].unit, "Joules");
	assert_true(pmu.events[1].scale > 2.32e-10 && pmu.events[1].scale < 2.33e-10);

	file("bare/type", "9\n"); /* no format, no events, no cpumask */
	assert_int_equal(tally_sysfs_pmu_read(root, "bare", &arena, &pmu), 0);
	assert_int_equal(pmu.format_count + pmu.event_count, 0);
	assert_string_equal(pmu.cpus, "");

	const char **names;
	size_t count;
	assert_int_equal(tally_sysfs_pmu_names(root, &arena, &names, &count), 0);
	assert_int_equal(count, 2);
	assert_string_equal(names[0], "bare");
	tally_arena_release(&arena);
}

/* The files of real machines, as their kernels show them: name, type, file, CPUs. */
static void pmus(const char *const (*rows)[4])
{
	char path[96];
	for (; (*rows)[0]; rows++) {
		snprintf(path, sizeof(path), "%s/type", (*rows)[0]);
		file(path, (*rows)[1]);
		snprintf(path, sizeof(path), "%s/%s", (*rows)[0], (*rows)[2]);
		file(path, (*rows)[3]);
	}
}

static void types_of_cores_are_found(const char *const (*rows)[4], bool has_types)
{
	struct tally_arena arena = TALLY_ARENA_INIT;
	struct tally_sysfs_pmu pmu;
	pmus(rows);
	assert_int_equal(tally_sysfs_has_core_types(root), has_types);
	for (; (*rows)[0]; rows++) {
		assert_int_equal(tally_sysfs_pmu_read(root, (*rows)[0], &arena, &pmu), 0);
		assert_int_equal(pmu.is_core, !strcmp((*rows)[2], "cpus"));
		assert_memory_equal(pmu.cpus, (*rows)[3], strlen(pmu.cpus));
	}
	tally_arena_release(&arena);
}

static void alder_lake_has_two_types_of_cores(void **state)
{
	static const char *const rows[][4] = {
		{ "cpu_core", "4\n", "cpus", "0-15\n" },
		{ "cpu_atom", "10\n", "cpus", "16-23\n" },
		{ "power", "23\n", "cpumask", "0\n" },
		{ "uncore_imc_0", "30\n", "cpumask", "0\n" },
		{ NULL, NULL, NULL, NULL },
	};
	(void)state;
	types_of_cores_are_found(rows, true);
}

static void rk3399_has_two_types_of_cores(void **state)
{
	static const char *const rows[][4] = {
		{ "armv8_cortex_a53", "7\n", "cpus", "0-3\n" },
		{ "armv8_cortex_a72", "8\n", "cpus", "4-5\n" },
		{ NULL, NULL, NULL, NULL },
	};
	(void)state;
	types_of_cores_are_found(rows, true);
}

static void apple_m1_has_two_types_of_cores(void **state)
{
	static const char *const rows[][4] = {
		{ "apple_icestorm_pmu", "7\n", "cpus", "0-3\n" },
		{ "apple_firestorm_pmu", "8\n", "cpus", "4-7\n" },
		{ NULL, NULL, NULL, NULL },
	};
	(void)state;
	types_of_cores_are_found(rows, true);
}

static void a_server_has_one_type_of_cores(void **state)
{
	static const char *const arm[][4] = {
		{ "armv8_pmuv3_0", "8\n", "cpus", "0-63\n" },
		{ "arm_spe_0", "9\n", "cpumask", "0-63\n" },
		{ "arm_cmn_0", "10\n", "cpumask", "0\n" },
		{ NULL, NULL, NULL, NULL },
	};
	static const char *const x86[][4] = {
		{ "cpu", "4\n", "rdpmc", "1\n" },
		{ NULL, NULL, NULL, NULL },
	};
	(void)state;
	types_of_cores_are_found(arm, false);
	pmus(x86);
	assert_false(tally_sysfs_has_core_types(root));
}

static void no_name_leads_out_of_the_directory(void **state)
{
	(void)state;
	struct tally_arena arena = TALLY_ARENA_INIT;
	struct tally_sysfs_pmu pmu;
	struct tally_buffer format = { 0 };
	file("events/id", "7\n");
	file("id", "7\n");
	file("type", "7\n");
	static const char *const names[] = { "..", ".", "", "a/b", "../etc" };
	int fd = open(root, O_RDONLY | O_DIRECTORY);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(tally_sysfs_pmu_read(root, names[i], &arena, &pmu), -ENOENT);
		assert_int_equal(tally_tracefs_tracepoint_id(fd, names[i], names[i]), -ENOENT);
		assert_int_equal(tally_tracefs_format(fd, names[i], names[i], &format), -ENOENT);
	}
	close(fd);
	tally_arena_release(&arena);
}

static int collect(void *context, const char *system, const char *name)
{
	char *names = context;
	strcat(strcat(strcat(strcat(names, system), ":"), name), " ");
	return 0;
}

static int stop(void *context, const char *system, const char *name)
{
	(void)context, (void)system, (void)name;
	return 42;
}

static void tracepoints_are_found_by_name_and_by_walk(void **state)
{
	(void)state;
	struct tally_buffer format = { 0 };
	char names[512] = "";
	file("events/enable", "0\n");
	file("events/sched/filter", "none\n");
	file("events/sched/sched_switch/id", "316\n");
	file("events/sched/sched_switch/format", "name: sched_switch\n");
	file("events/ftrace/print/id", "5\n");
	file("events/ftrace/funcgraph_entry/format", "name: funcgraph_entry\n");
	int fd = open(root, O_RDONLY | O_DIRECTORY);
	assert_int_equal(tally_tracefs_tracepoint_id(fd, "sched", "sched_switch"), 316);
	assert_int_equal(tally_tracefs_tracepoint_id(fd, "sched", "nosuch"), -ENOENT);
	assert_int_equal(tally_tracefs_format(fd, "sched", "sched_switch", &format), 0);
	assert_string_equal(tally_buffer_string(&format), "name: sched_switch\n");
	assert_int_equal(tally_tracefs_walk(fd, "sched", collect, names), 0);
	assert_string_equal(names, "sched:sched_switch ");
	assert_int_equal(tally_tracefs_walk(fd, NULL, collect, names), 0);
	assert_non_null(strstr(names, "ftrace:print "));
	assert_null(strstr(names, "funcgraph_entry"));
	assert_int_equal(tally_tracefs_walk(fd, NULL, stop, NULL), 42);
	tally_buffer_release(&format);
	close(fd);
}

static bool is_mounted(const char *path)
{
	struct stat own, parent;
	char up[64];
	snprintf(up, sizeof(up), "%s/..", path);
	return stat(path, &own) == 0 && stat(up, &parent) == 0 && own.st_dev != parent.st_dev;
}

static void tracefs_opens_without_a_mount_and_leaves_none(void **state)
{
	(void)state;
	struct tally_error err = TALLY_ERROR_NONE;
	bool before = is_mounted("/sys/kernel/tracing");
	int fd = tally_tracefs_open(&err);
	if (fd < 0) {
		assert_true(err.message[0] && err.code == fd); /* the error has a message */
		print_message("SKIP: %s\n", err.message);
		skip();
	}
	assert_true(tally_tracefs_tracepoint_id(fd, "sched", "sched_switch") > 0);
	assert_int_equal(is_mounted("/sys/kernel/tracing"), before);
	close(fd);
}

static void machine_events_are_named(void **state)
{
	(void)state;
	struct tally_catalogue catalogue = { 0 };
	struct tally_arena arena = TALLY_ARENA_INIT;
	struct tally_event_list list = { 0 };
	struct tally_error err = TALLY_ERROR_NONE;
	assert_int_equal(tally_kernel_catalogue(&catalogue, &err), 0);
	/* nothing is read before a name needs it */
	assert_int_equal(catalogue.pmu_count + catalogue.tracepoint_count, 0);
	assert_int_equal(tally_event_parse("cycles,cpu-clock", &catalogue, &arena, &list, &err), 0);
	assert_int_equal(catalogue.pmu_count + catalogue.tracepoint_count, 0);
	if (access(TALLY_SYSFS_PMUS "/software", F_OK) == 0) {
		assert_int_equal(
			tally_event_parse("software/config=2/", &catalogue, &arena, &list, &err),
			0);
		assert_int_equal(catalogue.pmu_count, 1);
		assert_int_equal(list.items[2].attr.type, TALLY_TYPE_SOFTWARE);
		assert_int_equal(
			tally_event_parse("nosuch/config=2/", &catalogue, &arena, &list, &err),
			-ENOENT);
		size_t all = catalogue.pmu_count;
		assert_true(all > 1);
		assert_int_equal(catalogue.load_pmus(&catalogue, catalogue.context, NULL, &err), 0);
		catalogue.load_tracepoints(&catalogue, catalogue.context, NULL);
		assert_int_equal(catalogue.pmu_count, all); /* no PMU appears twice */
	}
	assert_true((catalogue.tracepoint_count == 0) ==
		    (catalogue.tracepoints_unavailable != NULL));
	tally_event_list_release(&list);
	tally_arena_release(&arena);
	tally_catalogue_release(&catalogue);
}

static void refusal_names_a_cure(void **state)
{
	(void)state;
	const struct tally_event hardware = { .kind = TALLY_EVENT_HARDWARE,
					      .name = "cycles:pp",
					      .group = -1 };
	struct tally_event precise = hardware, frequent = hardware, clock = hardware,
			   chains = hardware;
	precise.attr.flags = 2ull << TALLY_ATTR_PRECISE_IP_SHIFT;
	frequent.attr.flags = TALLY_ATTR_FREQ;
	frequent.attr.sample_period = 1u << 30;
	clock.attr.type = TALLY_TYPE_SOFTWARE;
	clock.name = "cpu-clock";
	chains.attr.sample_max_stack = 1000;
	const struct {
		const struct tally_event *event;
		int code;
		pid_t pid;
		const char *message, *hint, *command;
	} rows[] = {
		{ &hardware, ENOENT, 0, "no hardware counter", "cpu-clock" },
		{ &hardware, -EOPNOTSUPP, 0, "no hardware counter", "cpu-clock" },
		{ &precise, EOPNOTSUPP, 0, "doesn't support", "leave out ':p'" },
		{ &frequent, EINVAL, 0, "rejects", "max_sample_rate" },
		{ &clock, EMFILE, 0, "descriptors", "ulimit -n" },
		{ &clock, ESRCH, 99, "no task 99", "" },
		{ &clock, ENODEV, -1, "offline", "online" },
		{ &clock, EACCES, -1, "no permission to count 'cpu-clock' of every task on CPU 1",
		  "" },
		{ &clock, EACCES, getpid(), "no permission to count 'cpu-clock' of 'xz'", "",
		  "xz" },
		{ &hardware, EBUSY, 0, "in use", "" },
		{ &clock, ENOSYS, 0, "no perf events", "doctor" },
		{ &chains, EOVERFLOW, 0, "1000 frames", "perf_event_max_stack=1000" },
		{ &clock, EIO, 0, "opening 'cpu-clock' failed", "" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tally_error err = TALLY_ERROR_NONE;
		tally_provider_open_error(rows[i].event, rows[i].code, rows[i].pid, 1,
					  rows[i].command, &err);
		assert_int_equal(err.code, rows[i].code < 0 ? rows[i].code : -rows[i].code);
		assert_non_null(strstr(err.message, rows[i].message));
		assert_non_null(strstr(err.hint, rows[i].hint));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(format_gives_field_and_mask),
		cmocka_unit_test_setup_teardown(pmu_is_read_with_aliases_units_and_scales,
						make_root, remove_root),
		cmocka_unit_test_setup_teardown(alder_lake_has_two_types_of_cores, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(rk3399_has_two_types_of_cores, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(apple_m1_has_two_types_of_cores, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(a_server_has_one_type_of_cores, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(no_name_leads_out_of_the_directory, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(tracepoints_are_found_by_name_and_by_walk,
						make_root, remove_root),
		cmocka_unit_test(tracefs_opens_without_a_mount_and_leaves_none),
		cmocka_unit_test(machine_events_are_named),
		cmocka_unit_test(refusal_names_a_cure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
