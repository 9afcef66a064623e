#include "test.h"

#include "base/vector.h"
#include "machine/machine.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void cpu_lists_are_what_the_kernel_writes(void **state)
{
	(void)state;
	struct tally_arena arena = TALLY_ARENA_INIT;
	struct tally_cpu_list list;
	assert_int_equal(tally_cpu_list_parse("0-3,7\n", &list, NULL), 0);
	assert_int_equal(list.count, 5);
	assert_int_equal(list.cpus[4], 7);
	assert_string_equal(tally_cpu_list_text(&list, &arena), "0-3,7");
	assert_true(tally_cpu_list_contains(&list, 7));
	assert_false(tally_cpu_list_contains(&list, 5));
	tally_cpu_list_release(&list);

	assert_int_equal(tally_cpu_list_parse(" 9 , 2-4,3 ", &list, NULL), 0);
	assert_string_equal(tally_cpu_list_text(&list, &arena), "2-4,9");
	tally_cpu_list_release(&list);

	assert_int_equal(tally_cpu_list_parse("0, 2-3,", &list, NULL), 0);
	assert_string_equal(tally_cpu_list_text(&list, &arena), "0,2-3");
	tally_cpu_list_release(&list);

	assert_int_equal(tally_cpu_list_parse("\n", &list, NULL), 0);
	assert_int_equal(list.count, 0);
	assert_int_equal(tally_cpu_list_asked(" ", &list, NULL), -EINVAL);
	tally_arena_release(&arena);
}

static void bad_cpu_lists_name_the_place(void **state)
{
	(void)state;
	static const struct { const char *text; int position;
	} rows[] = {
		{ "0-", 2 },
		{ "a", 0 },
		{ "1,,2", 2 },
		{ "3-1", 0 },
		{ "1;2", 1 },
		{ "65536", 0 },
		{ "1,99999999999999999999", 2 },
		{ "0-65536", 2 },
		{ ",1", 0 },
		{ "1,,", 2 },
		{ "-1", 0 },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tally_cpu_list list;
		struct tally_error err = TALLY_ERROR_NONE;
		assert_int_equal(tally_cpu_list_parse(rows[i].text, &list, &err), -EINVAL);
		assert_int_equal(err.position, rows[i].position);
		assert_null(list.cpus);
	}
}

static void online_cpus_hold_this_one(void **state)
{
	(void)state;
	struct tally_cpu_list online, possible;
	assert_int_equal(tally_cpu_list_read(TALLY_CPU_ONLINE, &online, NULL), 0);
	assert_int_equal(tally_cpu_list_read(TALLY_CPU_POSSIBLE, &possible, NULL), 0);
	assert_int_equal(online.count, sysconf(_SC_NPROCESSORS_ONLN));
	assert_true(possible.count >= online.count);
	tally_cpu_list_release(&online);
	tally_cpu_list_release(&possible);
}

static void cpu_id_is_as_perf_writes_it(void **state)
{
	(void)state;
	struct tally_cpu_model model;
	tally_cpu_model_parse(
		"processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n"
		"model name\t: AMD EPYC\nstepping\t: 1\nflags\t\t: fpu hypervisor lm\n"
		"processor\t: 1\nmodel name\t: other\n",
		&model);
	assert_string_equal(model.id, "AuthenticAMD,25,17,1");
	assert_string_equal(model.name, "AMD EPYC");
	assert_int_equal(model.hypervisor, 1);
	tally_cpu_model_parse(
		"processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 142\n"
		"stepping\t: unknown\nflags\t\t: hypervisorless no_hypervisor",
		&model);
	assert_string_equal(model.id, "GenuineIntel,6,142,0");
	assert_int_equal(model.hypervisor, 0);
	tally_cpu_model_parse("", &model);
	assert_string_equal(model.id, "");
	assert_string_equal(model.name, "");
}

static void write_file(const char *directory, const char *name, const char *text)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(path, 0700);
		*slash = '/';
	}
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void topology_lists_what_is_shared_once(void **state)
{
	(void)state;
	char root[] = "/tmp/tally-topology-XXXXXX", command[64];
	assert_non_null(mkdtemp(root));
	for (int cpu = 0; cpu < 4; cpu++) {
		const char *pair = cpu < 2 ? "0-1\n" : "2-3\n";
		char name[64], text[8];
		snprintf(text, sizeof(text), "%d\n", cpu / 2);
#define PUT(file, content) \
	(snprintf(name, sizeof(name), "cpu%d/" file, cpu), write_file(root, name, content))
		PUT("topology/core_id", text);
		PUT("topology/physical_package_id", "0\n");
		PUT("topology/core_siblings_list", "0-3\n");
		PUT("topology/thread_siblings_list", pair);
		PUT("cache/index0/level", "3\n");
		PUT("cache/index0/type", "Unified\n");
		PUT("cache/index0/shared_cpu_list", "0-3\n");
		PUT("cache/index1/level", "1\n");
		PUT("cache/index1/type", "Data\n");
		PUT("cache/index1/size", "32K\n");
		PUT("cache/index1/coherency_line_size", "64\n");
		PUT("cache/index1/shared_cpu_list", pair);
#undef PUT
	}
	struct tally_arena arena = TALLY_ARENA_INIT;
	struct tally_cpu_topology topology;
	struct tally_cpu_list cpus;
	tally_cpu_list_parse("0-3", &cpus, NULL);
	assert_int_equal(tally_cpu_topology_read(root, &cpus, &arena, &topology), 0);
	assert_int_equal(topology.package_count, 1);
	assert_int_equal(topology.core_count, 2);
	assert_int_equal(topology.die_count, 0);
	assert_string_equal(topology.cores[1], "2-3");
	assert_int_equal(topology.places[3].core, 1);
	assert_int_equal(topology.places[3].die, -1);
	assert_int_equal(topology.cache_count, 3);
	assert_int_equal(topology.caches[0].level, 1);
	assert_int_equal(topology.caches[0].line_size, 64);
	assert_string_equal(topology.caches[1].cpus, "2-3");
	assert_int_equal(topology.caches[2].level, 3);
	tally_cpu_list_release(&cpus);
	tally_arena_release(&arena);
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

static void maps_lines_keep_the_path_whole(void **state)
{
	(void)state;
	static const char text[] =
		"55d0c0a00000-55d0c0a21000 r-xp 00002000 103:02 1048602                    "
		"/usr/bin/a  b \n"
		"this is no mapping\n"
		"7ffff7fc0000-7ffff7fc1000 rw-s 00000000 00:01 1026                       "
		"/memfd:x y (deleted)\n"
		"7ffff7fc1000-7ffff7fc2000 ---p 00000000 00:00 0 \n"
		"7ffff7fc2000-7ffff7fc3000 rw-p 00000000 00:00 0\n"
		"7ffff7fc3000-7ffff7fc4000 r--p 00000000 fe:00 7                          "
		"/tmp/new\\012line\\134\n"
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  "
		"[vsyscall]";
	const char *at = text, *end = text + sizeof(text) - 1;
	struct tally_proc_map map;
	assert_true(tally_proc_maps_next(&at, end, &map));
	assert_int_equal(map.start, 0x55d0c0a00000);
	assert_int_equal(map.end, 0x55d0c0a21000);
	assert_int_equal(map.protection, PROT_READ | PROT_EXEC);
	assert_int_equal(map.offset, 0x2000);
	assert_int_equal(map.major, 0x103);
	assert_int_equal(map.minor, 2);
	assert_int_equal(map.inode, 1048602);
	assert_false(map.shared);
	assert_string_equal(map.path, "/usr/bin/a  b ");
	assert_true(tally_proc_maps_next(&at, end, &map));
	assert_string_equal(map.path, "/memfd:x y (deleted)");
	assert_true(map.shared);
	for (int i = 0; i < 2; i++) {
		assert_true(tally_proc_maps_next(&at, end, &map));
		assert_string_equal(map.path, "");
	}
	assert_true(tally_proc_maps_next(&at, end, &map));
	assert_string_equal(map.path, "/tmp/new\nline\\134");
	assert_true(tally_proc_maps_next(&at, end, &map));
	assert_string_equal(map.path, "[vsyscall]");
	assert_false(tally_proc_maps_next(&at, end, &map));
}

static void maps_cut_anywhere_are_harmless(void **state)
{
	(void)state;
	static const char text[] = "7ffff7fc0000-7ffff7fc1000 rw-s 00000000 00:01 1026 /memfd:x\n";
	for (size_t length = 0; length < sizeof(text); length++) {
		/* so that the sanitizer sees reads beyond `length` */
		char *copy = malloc(length + 1);
		memcpy(copy, text, length);
		const char *at = copy;
		struct tally_proc_map map;
		bool whole = tally_proc_maps_next(&at, copy + length, &map);
		assert_int_equal(
			whole, length >= strlen("7ffff7fc0000-7ffff7fc1000 rw-s 00000000 00:01 1"));
		free(copy);
	}
}

static int find_code(void *context, const struct tally_proc_map *map)
{
	uint64_t address = (uint64_t)(uintptr_t)context;
	return map->start <= address && address < map->end && map->protection & PROT_EXEC;
}

static void own_maps_hold_own_code(void **state)
{
	(void)state;
	void *here = (void *)(uintptr_t)own_maps_hold_own_code;
	assert_int_equal(tally_proc_maps(getpid(), find_code, here), 1);
	assert_int_equal(tally_proc_maps(getpid(), find_code, NULL), 0);
}

static void status_is_read_field_by_field(void **state)
{
	(void)state;
	struct tally_proc_status status;
	tally_proc_status_parse(
		"Name:\ta\\nPid:\\\\b\nTgid:\t17\nPid:\t18\nPPid:\t1\nTracerPid:\t0\n"
		"Uid:\t1000\t1001\t1002\t1003\nCapEff:\t000001fffeffffff\nNoNewPrivs:\t1\n"
		"Seccomp:\t2\nSeccomp_filters:\t3\n",
		&status);
	assert_string_equal(status.name, "a\nPid:\\b");
	assert_int_equal(status.tgid, 17);
	assert_int_equal(status.parent, 1);
	assert_int_equal(status.uid, 1001);
	assert_int_equal(status.seccomp, 2);
	tally_proc_status_parse("", &status);
	assert_int_equal(status.tgid, -1);
	assert_int_equal(status.seccomp, -1);
}

static void own_task_is_found_in_proc(void **state)
{
	(void)state;
	struct tally_pid_list list;
	struct tally_proc_status status;
	char text[TALLY_PROC_PATH_MAX];
	bool found = false;
	assert_int_equal(tally_proc_pids(&list), 0);
	for (size_t i = 0; i < list.count; i++)
		found |= list.items[i] == getpid();
	assert_true(found);
	tally_pid_list_release(&list);
	assert_int_equal(tally_proc_threads(getpid(), &list), 0);
	assert_int_equal(list.items[0], getpid());
	tally_pid_list_release(&list);
	assert_int_equal(tally_proc_status(getpid(), &status), 0);
	assert_int_equal(status.parent, getppid());
	assert_int_equal(tally_proc_comm(getpid(), text, sizeof(text)), strlen("test_machine"));
	assert_string_equal(text, "test_machine");
}

static void a_task_that_is_gone_is_esrch(void **state)
{
	(void)state;
	enum { NO_SUCH_PID = 0x7ffffff0 };
	struct tally_pid_list list;
	struct tally_proc_status status;
	char text[64];
	assert_int_equal(tally_proc_threads(NO_SUCH_PID, &list), -ESRCH);
	assert_int_equal(tally_proc_status(NO_SUCH_PID, &status), -ESRCH);
	assert_int_equal(tally_proc_comm(NO_SUCH_PID, text, sizeof(text)), -ESRCH);
	assert_int_equal(tally_proc_maps(NO_SUCH_PID, find_code, NULL), -ESRCH);
}

static struct tally_ring_budget budget_of(int mlock_kb, int paranoid, bool ipc_lock,
					  bool initial_namespace, uint64_t memlock_bytes,
					  size_t cpus)
{
	struct tally_sysctls sysctls = { .mlock_kb = mlock_kb, .paranoid = paranoid };
	struct tally_capabilities capabilities = { .ipc_lock = ipc_lock,
						   .initial_namespace = initial_namespace };
	struct tally_limits limits = { .memlock_bytes = memlock_bytes };
	return tally_ring_budget_make(&sysctls, &capabilities, &limits, cpus, 4096);
}

/* SPEC D1 */
static void rings_fit_the_mlock_budget(void **state)
{
	(void)state;
	struct tally_ring_budget budget = budget_of(516, 2, false, true, 0, 8);
	assert_false(budget.unlimited);
	assert_int_equal(budget.bytes, 8 * 516 * 1024);
	/* 129 pages each use the budget up to the last page */
	assert_int_equal(tally_machine_ring_pages(&budget, 8, 4096), 128);
	assert_int_equal(tally_machine_ring_pages(&budget, 9, 4096), 64);
	assert_int_equal(tally_machine_ring_pages(&budget, 8, 100), 64);
	assert_int_equal(tally_machine_ring_pages(&budget, 8 * 129, 128), 0);
	assert_int_equal(tally_machine_ring_pages(&budget, 8, 0), 0);
	tally_ring_budget_spend(&budget, 8, 8);
	assert_int_equal(tally_machine_ring_pages(&budget, 8, 128), 64);
	tally_ring_budget_spend(&budget, 8, 1 << 20);
	assert_int_equal(budget.bytes, 0);

	budget = budget_of(516, 2, false, true, 8 << 20, 2);
	assert_int_equal(tally_machine_ring_pages(&budget, 2, 1 << 20), 1024);
	assert_true(budget_of(516, 2, true, true, 0, 8).unlimited);
	/* a capability in another namespace doesn't count */
	assert_false(budget_of(516, 2, true, false, 0, 8).unlimited);
	assert_true(budget_of(516, -1, false, true, 0, 8).unlimited);
	assert_true(budget_of(516, 2, false, true, TALLY_LIMIT_NONE, 8).unlimited);
	budget = budget_of(516, -1, false, true, 0, 8);
	assert_int_equal(tally_machine_ring_pages(&budget, 1000, 3000), 2048);
	assert_int_equal(budget_of(TALLY_SYSCTL_UNKNOWN, 2, false, true, 4096 + 5, 8).bytes, 4096);
}

static void descriptors_go_up_to_the_hard_limit(void **state)
{
	(void)state;
	struct tally_limits limits;
	struct rlimit files, lowered;
	getrlimit(RLIMIT_NOFILE, &files);
	lowered = (struct rlimit){ .rlim_cur = 64, .rlim_max = files.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &lowered), 0);
	tally_limits_read(&limits);
	assert_int_equal(limits.descriptors, 64);
	assert_true(tally_limits_raise_descriptors() == limits.descriptors_max);
	tally_limits_read(&limits);
	assert_true(limits.descriptors == limits.descriptors_max);
	setrlimit(RLIMIT_NOFILE, &files);
}

/* ---- findings: each row over facts that were made up --------------------- */

/* Returns a bare machine where everything works, seen by an ordinary user. */
static struct tally_machine_facts good_facts(void)
{
	return (struct tally_machine_facts){
		.kernel = "6.18.0",
		.arch = "x86_64",
		.user = 1000,
		.online_cpus = 8,
		.page_bytes = 4096,
		.cpu = { .name = "Some CPU" },
		.pmus = "cpu",
		.sysctls = { .paranoid = -1,
			     .mlock_kb = 516,
			     .max_sample_rate = 100000,
			     .max_stack = 127,
			     .cpu_time_max_percent = 25 },
		.capabilities = { .initial_namespace = true },
		.limits = { .memlock_bytes = 8 << 20,
			    .memlock_bytes_max = 8 << 20,
			    .descriptors = 1024,
			    .descriptors_max = 524288 },
		.reach = EINVAL,
		.clock_overflow = { .samples = 3 },
		.hardware_overflow = { .samples = 3, .count = 300000, .running_ns = 100000 },
		.tracefs = { .path = "/sys/kernel/tracing", .in_kernel = true, .id = 300 },
		.kallsyms = 1,
	};
}

/* Returns the mainline kernel's answers to an ordinary user at this kernel.perf_event_paranoid. */
static struct tally_machine_facts facts_at_level(int level)
{
	struct tally_machine_facts facts = good_facts();
	facts.sysctls.paranoid = level;
	facts.tracepoint_raw = level > -1 ? EPERM : 0;
	facts.system_wide = level > 0 ? EACCES : 0;
	facts.own_kernel = facts.tracepoint = level > 1 ? EACCES : 0;
	facts.kallsyms = level <= 1;
	return facts;
}

/* Returns a machine where nothing may be opened: each probe got `code`. */
static struct tally_machine_facts closed_facts(int reach, int code)
{
	struct tally_machine_facts facts = facts_at_level(2);
	facts.reach = reach;
	facts.own = facts.own_kernel = facts.system_wide = facts.hardware = facts.breakpoint = code;
	facts.tracepoint = facts.tracepoint_raw = code;
	facts.clock_overflow = facts.hardware_overflow =
		(struct tally_overflow_probe){ .open_errno = TALLY_PROBE_NOT_TRIED };
	return facts;
}

struct expectation {
	const char *id;
	enum tally_finding_state state;
	const char *cause, *cure; /* parts of the text, or NULL */
};

static void expect(const struct tally_machine_facts *facts, const struct expectation *rows,
		   size_t count)
{
	struct tally_findings *findings = calloc(1, sizeof(*findings));
	tally_findings_make(facts, findings);
	for (size_t i = 0; i < findings->count; i++) {
		const struct tally_finding *finding = &findings->items[i];
		if (finding->state == TALLY_FINDING_OK)
			assert_string_equal(finding->cause, "");
		else
			assert_string_not_equal(finding->cause, "");
	}
	for (size_t i = 0; i < count; i++) {
		const struct tally_finding *finding = tally_findings_find(findings, rows[i].id);
		if (!finding)
			fail_msg("no finding %s", rows[i].id);
		if (finding->state != rows[i].state)
			fail_msg("%s is %s", rows[i].id, tally_finding_state_text(finding->state));
		if (rows[i].cause && !strstr(finding->cause, rows[i].cause))
			fail_msg("%s: cause '%s'", rows[i].id, finding->cause);
		if (rows[i].cure && !strstr(finding->cure, rows[i].cure))
			fail_msg("%s: cure '%s'", rows[i].id, finding->cure);
	}
	free(findings);
}

#define EXPECT(facts, ...) \
	expect(&(facts), (struct expectation[]){ __VA_ARGS__ }, \
	       sizeof((struct expectation[]){ __VA_ARGS__ }) / sizeof(struct expectation))
#define OK TALLY_FINDING_OK
#define LIMITED TALLY_FINDING_LIMITED
#define MISSING TALLY_FINDING_MISSING

static void a_good_machine_has_no_lack(void **state)
{
	(void)state;
	struct tally_machine_facts facts = good_facts();
	struct tally_findings *findings = calloc(1, sizeof(*findings));
	tally_findings_make(&facts, findings);
	for (size_t i = 0; i < findings->count; i++)
		if (findings->items[i].state || findings->items[i].cure[0])
			fail_msg("%s: %s", findings->items[i].id, findings->items[i].cause);
	free(findings);
}

static void each_paranoid_level_closes_what_it_closes(void **state)
{
	(void)state;
	struct tally_machine_facts facts = facts_at_level(0);
	EXPECT(facts, { "stat", OK }, { "system-wide", OK },
	       { "tracepoints", LIMITED, "the data of tracepoints", "perf_event_paranoid=-1" },
	       { "paranoid", LIMITED, "tracepoints", "perf_event_paranoid=-1" });
	facts = facts_at_level(1);
	EXPECT(facts, { "stat", OK }, { "record", OK },
	       { "system-wide", MISSING, "perf_event_paranoid is 1", "perf_event_paranoid=0" },
	       { "kallsyms", OK });
	facts = facts_at_level(2);
	EXPECT(facts, { "stat", LIMITED, "the kernel's side", "perf_event_paranoid=1" },
	       { "record", LIMITED, "the kernel's side", "setcap cap_perfmon" },
	       { "system-wide", MISSING },
	       { "tracepoints", MISSING, "perf_event_paranoid is 2", NULL },
	       { "capabilities", LIMITED, "CAP_PERFMON", "setcap" },
	       { "kallsyms", LIMITED, "perf_event_paranoid is 2", "perf_event_paranoid=1" });
}

static void a_distribution_that_closes_all_is_named(void **state)
{
	(void)state;
	struct tally_machine_facts facts = closed_facts(EACCES, EACCES);
	facts.sysctls.paranoid = 4;
	EXPECT(facts,
	       { "stat", MISSING, "perf_event_paranoid is 4",
		 "sudo sysctl kernel.perf_event_paranoid=1" },
	       { "perf-event-open", OK }, { "paranoid", MISSING, "everything" },
	       { "hardware", MISSING, "perf_event_paranoid is 4", NULL });
}

static void seccomp_is_told_from_the_setting(void **state)
{
	(void)state;
	static const int codes[] = { EPERM, EACCES, ENOSYS };
	for (size_t i = 0; i < 3; i++) {
		struct tally_machine_facts facts = closed_facts(codes[i], codes[i]);
		facts.seccomp = 2;
		facts.container = TALLY_CONTAINER_DOCKER;
		EXPECT(facts,
		       { "stat", MISSING, "seccomp filter", "--security-opt seccomp=unconfined" },
		       { "perf-event-open", MISSING, "seccomp filter", "--security-opt" },
		       { "pmu", MISSING, "not tried", NULL });
	}
	struct tally_machine_facts facts = closed_facts(TALLY_PROBE_KILLED, TALLY_PROBE_NOT_TRIED);
	facts.container = TALLY_CONTAINER_KUBERNETES;
	EXPECT(facts, { "stat", MISSING, "kills", "seccompProfile" }, { "breakpoints", MISSING });
	facts = facts_at_level(2); /* a filter that allows it */
	facts.seccomp = 2;
	EXPECT(facts, { "perf-event-open", OK }, { "stat", LIMITED, "perf_event_paranoid is 2" });
}

static void enosys_without_the_setting_is_a_kernel_without(void **state)
{
	(void)state;
	struct tally_machine_facts facts = closed_facts(ENOSYS, ENOSYS);
	facts.seccomp = 2;
	facts.sysctls.paranoid = TALLY_SYSCTL_UNKNOWN;
	EXPECT(facts, { "stat", MISSING, "no perf events", "CONFIG_PERF_EVENTS" });
	facts = closed_facts(ENOSYS, ENOSYS);
	EXPECT(facts, { "stat", MISSING, "emulator", "natively" });
	facts = closed_facts(ENODEV, ENODEV);
	EXPECT(facts, { "stat", MISSING, "sandbox" });
}

static void capabilities_of_a_namespace_do_not_count(void **state)
{
	(void)state;
	struct tally_machine_facts facts = facts_at_level(2);
	facts.capabilities = (struct tally_capabilities){ .perfmon = true, .sys_admin = true };
	EXPECT(facts, { "capabilities", LIMITED, "user namespace", "outside the user namespace" },
	       { "system-wide", MISSING, "perf_event_paranoid", NULL });
	facts = good_facts();
	facts.sysctls.paranoid = 4;
	facts.capabilities = (struct tally_capabilities){ .perfmon = true,
							  .initial_namespace = true };
	EXPECT(facts, { "capabilities", OK }, { "paranoid", OK }, { "system-wide", OK });
}

static void counters_and_overflows_are_told_apart(void **state)
{
	(void)state;
	struct tally_machine_facts facts = good_facts();
	facts.cpu.hypervisor = 1;
	facts.hardware_overflow.samples = 0;
	EXPECT(facts, { "hardware", LIMITED }, { "pmu", OK }, { "record", OK },
	       { "overflow", MISSING, "not delivered by the hypervisor", "cpu-clock" });
	facts.hardware_overflow.count = facts.hardware_overflow.running_ns = 0;
	EXPECT(facts, { "overflow", MISSING, "taken", NULL });
	facts.hardware_overflow = (struct tally_overflow_probe){ .open_errno = EOPNOTSUPP };
	EXPECT(facts, { "overflow", MISSING, "no interrupt", NULL });
	facts.hardware = ENOENT;
	facts.pmus[0] = 0;
	EXPECT(facts, { "pmu", MISSING, "hypervisor", "pmu=on" },
	       { "hardware", MISSING, "hypervisor" });
	facts = good_facts();
	facts.sysctls.nmi_watchdog = 1;
	EXPECT(facts, { "nmi-watchdog", LIMITED, "one hardware counter", "kernel.nmi_watchdog=0" });
}

static void lost_rings_and_samples_make_record_fail(void **state)
{
	(void)state;
	struct tally_machine_facts facts = good_facts();
	facts.sysctls.paranoid = 0;
	facts.clock_overflow = (struct tally_overflow_probe){ .map_errno = EPERM };
	EXPECT(facts, { "record", MISSING, "locked memory", "perf_event_mlock_kb" });
	facts = good_facts();
	facts.clock_overflow.samples = facts.hardware_overflow.samples = 0;
	EXPECT(facts, { "record", MISSING, "overflows", NULL }, { "clock-overflow", MISSING });
}

static void small_limits_are_noticed(void **state)
{
	(void)state;
	struct tally_machine_facts facts = good_facts();
	facts.sysctls.paranoid = 0;
	facts.sysctls.mlock_kb = 64;
	facts.limits.memlock_bytes = 0;
	facts.limits.descriptors = facts.limits.descriptors_max = 100;
	facts.sysctls.max_sample_rate = 3000;
	facts.sysctls.max_stack = 32;
	EXPECT(facts, { "mlock", LIMITED, "small rings", "ulimit -l hard" },
	       { "descriptors", LIMITED, "RLIMIT_NOFILE allows 100", "prlimit" },
	       { "sample-rate", LIMITED, "interrupts took too long", "max_sample_rate=100000" },
	       { "stack-depth", LIMITED, "cut", "max_stack=127" });
	facts.sysctls.mlock_kb = 4;
	facts.limits.descriptors = facts.limits.descriptors_max = 20;
	EXPECT(facts, { "mlock", MISSING, "no ring" }, { "descriptors", MISSING });
}

static void tracefs_lacks_have_their_own_cures(void **state)
{
	(void)state;
	struct tally_machine_facts facts = good_facts();
	facts.tracefs = (struct tally_tracefs_state){ .in_kernel = true, .read_errno = ENOENT };
	EXPECT(facts, { "tracefs", MISSING, "not mounted", "sudo mount -t tracefs" },
	       { "tracepoints", MISSING });
	facts.container = TALLY_CONTAINER_DOCKER;
	EXPECT(facts, { "tracefs", MISSING, "in this container", "-v /sys/kernel/tracing" });
	facts = good_facts();
	facts.tracefs.read_errno = EACCES;
	EXPECT(facts, { "tracefs", MISSING, "root only", "remount,mode=750" });
	facts.tracefs = (struct tally_tracefs_state){ .read_errno = ENODEV };
	EXPECT(facts, { "tracefs", MISSING, "CONFIG_TRACING", "CONFIG_FTRACE" });
	facts = good_facts();
	facts.kallsyms = 0;
	facts.sysctls.kptr_restrict = 2;
	EXPECT(facts, { "kallsyms", LIMITED, "kptr_restrict is 2", "kernel.kptr_restrict=0" });
}

static void a_refusal_has_one_cause(void **state)
{
	(void)state;
	static const struct {
		struct tally_refusal refusal;
		int level;
		const char *id;
	} rows[] = {
		{ { .errno_code = EACCES, .system_wide = true }, 1, "paranoid" },
		{ { .errno_code = -EACCES, .kernel_included = true }, 2, "paranoid" },
		{ { .errno_code = EACCES, .kernel_included = true }, 1, "security-module" },
		{ { .errno_code = EACCES, .other_task = true }, 2, "other-task" },
		{ { .errno_code = EACCES, .other_task = true, .kernel_included = true },
		  2,
		  "paranoid" },
		{ { .errno_code = EPERM, .tracepoint_data = true }, 0, "paranoid" },
		{ { .errno_code = EACCES }, 2, "security-module" },
		{ { .errno_code = EACCES }, 3, "paranoid" },
		{ { .errno_code = EMFILE }, 2, "descriptors" },
		{ { .errno_code = EPERM, .mapping = true }, 2, "mlock" },
		{ { .errno_code = EBUSY, .hardware = true }, 2, "busy" },
		{ { .errno_code = ENOENT, .hardware = true }, 2, NULL }, /* there is a PMU */
		{ { .errno_code = EINVAL }, 2, NULL },
		{ { .errno_code = ESRCH }, 2, NULL },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tally_machine_facts facts = facts_at_level(rows[i].level);
		struct tally_finding finding;
		bool explained = tally_refusal_explain(&rows[i].refusal, &facts, &finding);
		if (explained != (rows[i].id != NULL) ||
		    (explained && strcmp(finding.id, rows[i].id)))
			fail_msg("row %zu: %s", i, explained ? finding.id : "not explained");
		if (explained)
			assert_true(finding.cause[0] && finding.cure[0]);
	}
	struct tally_machine_facts virtual = facts_at_level(2);
	struct tally_finding finding;
	virtual.pmus[0] = 0;
	assert_true(tally_refusal_explain(
		&(struct tally_refusal){ .errno_code = ENOENT, .hardware = true }, &virtual,
		&finding));
	assert_string_equal(finding.id, "pmu");
	virtual.lockdown = true;
	assert_true(tally_refusal_explain(&(struct tally_refusal){ .errno_code = EPERM }, &virtual,
					  &finding));
	assert_non_null(strstr(finding.cause, "locked down"));
}

static void cures_fit_the_container(void **state)
{
	(void)state;
	static const struct { enum tally_container_kind kind; const char *cure;
	} rows[] = {
		{ TALLY_CONTAINER_DOCKER, "docker run --cap-add PERFMON" },
		{ TALLY_CONTAINER_PODMAN,
		  "podman run --cap-add PERFMON --security-opt seccomp=unconfined" },
		{ TALLY_CONTAINER_KUBERNETES, "securityContext: {capabilities: {add: [PERFMON]}" },
		{ TALLY_CONTAINER_NSPAWN, "--capability=CAP_PERFMON" },
		{ TALLY_CONTAINER_LXC, "on the host: sudo sysctl" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tally_machine_facts facts = facts_at_level(2);
		facts.container = rows[i].kind;
		EXPECT(facts, { "stat", LIMITED, "perf_event_paranoid is 2", rows[i].cure });
	}
}

static void a_container_is_known_by_its_marks(void **state)
{
	(void)state;
	static const struct {
		struct tally_container_marks marks;
		enum tally_container_kind kind;
	} rows[] = {
		{ { .cgroup = "0::/init.scope" }, TALLY_CONTAINER_NONE },
		/* files left in an image */
		{ { .dockerenv = true, .cgroup = "0::/" }, TALLY_CONTAINER_NONE },
		{ { .cgroup = "0::/system.slice/docker.service" }, TALLY_CONTAINER_NONE },
		{ { .cgroup = "4:cpu:/docker/0123abcd" }, TALLY_CONTAINER_DOCKER },
		{ { .foreign_pid_namespace = true, .dockerenv = true, .cgroup = "0::/" },
		  TALLY_CONTAINER_DOCKER },
		{ { .foreign_pid_namespace = true, .containerenv = true }, TALLY_CONTAINER_PODMAN },
		{ { .foreign_pid_namespace = true, .manager = "systemd-nspawn" },
		  TALLY_CONTAINER_NSPAWN },
		{ { .foreign_pid_namespace = true,
		    .kubernetes_environment = true,
		    .dockerenv = true },
		  TALLY_CONTAINER_KUBERNETES },
		{ { .cgroup = "0::/kubepods.slice/kubepods-burstable.slice" },
		  TALLY_CONTAINER_KUBERNETES },
		{ { .foreign_pid_namespace = true, .cgroup = "0::/" }, TALLY_CONTAINER_OTHER },
		/* unshare -r */
		{ { .foreign_user_namespace = true, .cgroup = "0::/" }, TALLY_CONTAINER_NONE },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (tally_container_kind_of(&rows[i].marks) != rows[i].kind)
			fail_msg(
				"row %zu: %s", i,
				tally_container_kind_text(tally_container_kind_of(&rows[i].marks)));
}

/* Since Linux 6.4 a module's memory is in several pieces, whose sizes are shown as one sum. */
static void loaded_modules_are_read(void **state)
{
	(void)state;
	static const char text[] =
		"nf_tables 303104 3 nft_ct,nft_chain_nat, Live 0xffffffffc0a5d000 (E)\n"
		"no words here\n"
		"\n"
		"md4 16384 0 - Unloading 0xffffffffc0a00000\n"
		"hidden 4096 0 - Live 0x0000000000000000\n"
		"wraps 18446744073709551615 0 - Live 0xffffffffc0a00000\n"
		"spread 8388608 1 - Loading 0xffffffffc0a10000 (OE)";
	struct tally_loaded_modules modules = { 0 };
	assert_int_equal(tally_loaded_modules_parse(text, &modules), 0);
	assert_int_equal(modules.count, 3);
	assert_string_equal(modules.items[0].name, "md4");
	assert_int_equal(modules.items[0].start, 0xffffffffc0a00000);
	assert_int_equal(modules.items[0].end, 0xffffffffc0a04000);
	assert_string_equal(modules.items[1].name, "spread");
	/* ends where the next module begins */
	assert_int_equal(modules.items[1].end, 0xffffffffc0a5d000);
	assert_string_equal(modules.items[2].name, "nf_tables");
	assert_int_equal(modules.items[2].end, 0xffffffffc0a5d000 + 303104);
	tally_vector_release(&modules);
}

static void bpf_code_is_found_in_kallsyms(void **state)
{
	(void)state;
	static const char text[] = "ffffffff81000000 T _text\n"
				   "ffffffffc0025000 t bpf_prog_a1ea616671715f95_inner\t[bpf]\n"
				   "ffffffffc0022138 t bpf_prog_7b5b3fe293b4bd7e_outer\t[bpf]\n"
				   "\n"
				   "ffffffffc0025333 t md4_transform\t[md4]\n"
				   "ffffffffc0030000 t bpf_trampoline_6442\t[bpf]\n"
				   "0000000000000000 t bpf_prog_0123456789abcdef_hidden\t[bpf]\n"
				   "ffffffffc0031000 t other\t[bpf]\n"
				   "ffffffffc0032000 t bpf_prog_cut";
	struct tally_bpf_codes codes = { 0 };
	assert_int_equal(tally_bpf_codes_parse(text, true, &codes), 0);
	assert_int_equal(codes.count, 3);
	assert_string_equal(codes.items[0].name, "bpf_prog_7b5b3fe293b4bd7e_outer");
	assert_int_equal(codes.items[0].start, 0xffffffffc0022138);
	assert_int_equal(codes.items[0].size, 0x25000 - 0x22138);
	assert_int_equal(codes.items[1].size, 0x333);
	assert_string_equal(codes.items[2].name, "bpf_trampoline_6442");
	assert_int_equal(codes.items[2].size, 4096);
	codes.count = 0;
	assert_int_equal(tally_bpf_codes_parse(text, false, &codes), 0);
	assert_int_equal(codes.count, 1);
	assert_string_equal(codes.items[0].name, "bpf_trampoline_6442");
	tally_vector_release(&codes);
}

static void types_tell_what_bpf_functions_are_called(void **state)
{
	(void)state;
	static const char text[] = "\0int\0s\0outer\0inner";
	uint32_t words[] = {
		/* the header; words 3 and 4: size of the types, offset of the names */
		0x0001eb9f, 24, 0, 0, 0, sizeof(text),
		1, 1u << 24, 4, 32,                    /* 1: int */
		5, 4u << 24 | 2, 8, 0, 1, 0, 0, 1, 32, /* 2: a struct of two */
		0, 13u << 24 | 1, 1, 0, 1,             /* 3: a prototype */
		7, 12u << 24, 3, 13, 12u << 24, 3,     /* 4, 5: functions */
	};
	uint8_t bytes[sizeof(words) + sizeof(text)], damaged[sizeof(bytes)];
	const uint32_t ids[] = { 5, 4, 3, 0, 6 };
	const char *names[5];
	words[3] = words[4] = sizeof(words) - 24;
	memcpy(bytes, words, sizeof(words));
	memcpy(bytes + sizeof(words), text, sizeof(text));
	tally_bpf_type_names(bytes, sizeof(bytes), ids, 5, names);
	assert_string_equal(names[0], "inner");
	assert_string_equal(names[1], "outer");
	for (int i = 2; i < 5; i++)
		assert_null(names[i]);
	/* each copy has its exact size, so that the sanitizer sees reads beyond it */
	for (size_t size = 0; size < sizeof(bytes); size++) {
		uint8_t *cut = malloc(size + 1);
		memcpy(cut, bytes, size);
		tally_bpf_type_names(cut, size, ids, 5, names);
		assert_null(names[0]);
		free(cut);
	}
	for (size_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
		memcpy(damaged, bytes, sizeof(bytes));
		damaged[bit / 8] ^= (uint8_t)(1 << bit % 8);
		tally_bpf_type_names(damaged, sizeof(damaged), ids, 5, names);
		for (int i = 0; i < 5; i++)
			assert_true(!names[i] || strlen(names[i]) < sizeof(text));
	}
}

static void facts_are_gathered_here(void **state)
{
	(void)state;
	struct tally_machine_facts *facts = calloc(1, sizeof(*facts));
	tally_machine_facts_read(facts);
	assert_true(facts->online_cpus >= 1);
	assert_int_equal(facts->user, geteuid());
	assert_string_not_equal(facts->kernel, "");
	if (facts->reach == EINVAL && !facts->own && !facts->clock_overflow.map_errno)
		assert_true(facts->clock_overflow.count > 0);
	free(facts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_lists_are_what_the_kernel_writes),
		cmocka_unit_test(bad_cpu_lists_name_the_place),
		cmocka_unit_test(online_cpus_hold_this_one),
		cmocka_unit_test(cpu_id_is_as_perf_writes_it),
		cmocka_unit_test(topology_lists_what_is_shared_once),
		cmocka_unit_test(maps_lines_keep_the_path_whole),
		cmocka_unit_test(maps_cut_anywhere_are_harmless),
		cmocka_unit_test(own_maps_hold_own_code),
		cmocka_unit_test(status_is_read_field_by_field),
		cmocka_unit_test(own_task_is_found_in_proc),
		cmocka_unit_test(a_task_that_is_gone_is_esrch),
		cmocka_unit_test(rings_fit_the_mlock_budget),
		cmocka_unit_test(descriptors_go_up_to_the_hard_limit),
		cmocka_unit_test(a_good_machine_has_no_lack),
		cmocka_unit_test(each_paranoid_level_closes_what_it_closes),
		cmocka_unit_test(a_distribution_that_closes_all_is_named),
		cmocka_unit_test(seccomp_is_told_from_the_setting),
		cmocka_unit_test(enosys_without_the_setting_is_a_kernel_without),
		cmocka_unit_test(capabilities_of_a_namespace_do_not_count),
		cmocka_unit_test(counters_and_overflows_are_told_apart),
		cmocka_unit_test(lost_rings_and_samples_make_record_fail),
		cmocka_unit_test(small_limits_are_noticed),
		cmocka_unit_test(tracefs_lacks_have_their_own_cures),
		cmocka_unit_test(a_refusal_has_one_cause),
		cmocka_unit_test(cures_fit_the_container),
		cmocka_unit_test(a_container_is_known_by_its_marks),
		cmocka_unit_test(loaded_modules_are_read),
		cmocka_unit_test(bpf_code_is_found_in_kallsyms),
		cmocka_unit_test(types_tell_what_bpf_functions_are_called),
		cmocka_unit_test(facts_are_gathered_here),
	};
	return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}
