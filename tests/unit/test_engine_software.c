/* Clocks, software events, breakpoints, and which events receive which side-band record (SPEC C4,
 * C7). */
#include "test.h"

#include "engine_driver.h"

enum { SLOTS = 4, MS = 1000000, RINGS = 4 };

#define USER_IP 0x401000u
#define KERNEL_ADDRESS 0xffffffff81000000u

struct bench {
	struct engine_fixture fixture;
	struct driver_ring ring[RINGS];
	struct { uint64_t address, length; uint32_t type; } watched[FIXTURE_CPUS][SLOTS];
};

static int watch(void *host, unsigned slot, uint64_t address, uint64_t length, uint32_t type)
{
	struct bench *bench = host;
	assert(slot < SLOTS);
	bench->watched[bench->fixture.cpu][slot].address = address;
	bench->watched[bench->fixture.cpu][slot].length = length;
	bench->watched[bench->fixture.cpu][slot].type = type;
	return 0;
}

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	fixture_init(&bench->fixture, 2);
	bench->fixture.host.breakpoint_slots = SLOTS;
	bench->fixture.host.watch = watch;
	assert_true(fixture_start(&bench->fixture));
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;
	fixture_end(&bench->fixture);
	for (unsigned cpu = 0; cpu < FIXTURE_CPUS; cpu++)
		for (unsigned slot = 0; slot < SLOTS; slot++)
			assert_int_equal(bench->watched[cpu][slot].length, 0);
	free(bench);
	return 0;
}

static int open_on(struct bench *bench, const struct tally_attr *attr, int32_t pid, int cpu,
		   unsigned ring)
{
	int fd = tally_engine_open(bench->fixture.engine, attr, pid, cpu, -1, 0);
	assert_true(fd >= 0);
	driver_map(&bench->fixture, fd, attr, &bench->ring[ring]);
	return fd;
}

static int open_software(struct bench *bench, enum tally_sw which, uint64_t flags)
{
	struct tally_attr attr = fixture_attr(TALLY_TYPE_SOFTWARE, which);
	attr.flags = flags;
	int fd = fixture_open(&bench->fixture, &attr, -1);
	assert_true(fd >= 0);
	return fd;
}

static void hit_in(struct bench *bench, enum tally_engine_mode mode, enum tally_sw which)
{
	struct tally_engine_regs regs = { .ip = USER_IP, .mode = mode };
	tally_engine_software(bench->fixture.engine, which, 1, &regs, 0);
}

/* --- counting ------------------------------------------------------------- */

static void each_event_counts_its_own_hits(void **state)
{
	struct bench *bench = *state;
	int fds[TALLY_SW_MAX];
	for (unsigned which = TALLY_SW_PAGE_FAULTS; which < TALLY_SW_MAX; which++)
		fds[which] = open_software(bench, which, 0);
	for (unsigned which = TALLY_SW_PAGE_FAULTS; which < TALLY_SW_MAX; which++)
		if (which != TALLY_SW_CONTEXT_SWITCHES && which != TALLY_SW_CPU_MIGRATIONS)
			fixture_hit(&bench->fixture, which, which);
	for (unsigned which = TALLY_SW_PAGE_FAULTS; which < TALLY_SW_MAX; which++)
		if (which != TALLY_SW_CONTEXT_SWITCHES && which != TALLY_SW_CPU_MIGRATIONS)
			assert_int_equal(fixture_value(&bench->fixture, fds[which]), which);
	fixture_hit(&bench->fixture, TALLY_SW_MAX, 1);
	fixture_hit(&bench->fixture, (enum tally_sw)-1, 1);
}

static void unknown_events_are_enoent(void **state)
{
	struct bench *bench = *state;
	struct tally_attr attr = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_MAX);
	assert_int_equal(fixture_open(&bench->fixture, &attr, -1), -2);
	attr.config = TALLY_SW_PAGE_FAULTS;
	attr.sample_type = TALLY_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = 8;
	attr.sample_period = 1;
	assert_int_equal(fixture_open(&bench->fixture, &attr, -1), -95);
}

static void the_mode_says_who_counts(void **state)
{
	struct bench *bench = *state;
	int all = open_software(bench, TALLY_SW_PAGE_FAULTS, 0);
	int user = open_software(bench, TALLY_SW_PAGE_FAULTS, TALLY_ATTR_EXCLUDE_KERNEL);
	int kernel = open_software(bench, TALLY_SW_PAGE_FAULTS, TALLY_ATTR_EXCLUDE_USER);
	int none = open_software(bench, TALLY_SW_PAGE_FAULTS,
				 TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL);
	for (unsigned i = 0; i < 7; i++)
		hit_in(bench, i < 4 ? TALLY_MODE_USER : TALLY_MODE_KERNEL, TALLY_SW_PAGE_FAULTS);
	assert_int_equal(fixture_value(&bench->fixture, all), 7);
	assert_int_equal(fixture_value(&bench->fixture, user), 4);
	assert_int_equal(fixture_value(&bench->fixture, kernel), 3);
	assert_int_equal(fixture_value(&bench->fixture, none), 0);
}

static void switches_are_the_kernels(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	int all = open_software(bench, TALLY_SW_CONTEXT_SWITCHES, 0);
	int user = open_software(bench, TALLY_SW_CONTEXT_SWITCHES, TALLY_ATTR_EXCLUDE_KERNEL);
	int kernel = open_software(bench, TALLY_SW_CONTEXT_SWITCHES, TALLY_ATTR_EXCLUDE_USER);
	for (unsigned i = 0; i < 5; i++) {
		fixture_switch(fixture, NULL);
		fixture_switch(fixture, fixture->task);
	}
	assert_int_equal(fixture_value(fixture, all), 5); /* counts switches out, not in */
	assert_int_equal(fixture_value(fixture, user), 0);
	assert_int_equal(fixture_value(fixture, kernel), 5);
}

static void migrations_count_where_the_task_comes_in(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	int fd = open_software(bench, TALLY_SW_CPU_MIGRATIONS, 0);
	for (unsigned i = 0; i < 3; i++) {
		fixture_switch(fixture, NULL);
		tally_engine_migrate(fixture->task, (i + 1) % 2);
		fixture_on(fixture, (i + 1) % 2);
		fixture_switch(fixture, fixture->task);
	}
	assert_int_equal(fixture_value(fixture, fd), 3);
}

/* --- clocks --------------------------------------------------------------- */

static void clocks_count_while_the_task_runs(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	int task = open_software(bench, TALLY_SW_TASK_CLOCK, 0),
	    cpu = open_software(bench, TALLY_SW_CPU_CLOCK, 0);
	struct tally_attr attr = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_CPU_CLOCK);
	int wide = tally_engine_open(fixture->engine, &attr, -1, 0, -1, 0);
	for (unsigned i = 0; i < 10; i++) {
		fixture_advance(fixture, 300);
		assert_int_equal(fixture_value(fixture, task), 300 * (i + 1));
		fixture_switch(fixture, NULL);
		fixture_advance(fixture, 1000);
		fixture_switch(fixture, fixture->task);
	}
	assert_int_equal(fixture_value(fixture, task), 3000);
	assert_int_equal(fixture_value(fixture, cpu), 3000);
	assert_int_equal(fixture_value(fixture, wide), 13000);
	assert_int_equal(tally_engine_ioctl(fixture->engine, task, TALLY_IOC_DISABLE, 0), 0);
	fixture_advance(fixture, 500);
	assert_int_equal(fixture_value(fixture, task), 3000);
	assert_int_equal(tally_engine_ioctl(fixture->engine, task, TALLY_IOC_ENABLE, 0), 0);
	fixture_advance(fixture, 500);
	assert_int_equal(fixture_value(fixture, task), 3500);
}

static struct tally_attr clock_attr(uint64_t period)
{
	struct tally_attr attr = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_TASK_CLOCK);
	attr.sample_period = period;
	attr.sample_type = TALLY_SAMPLE_TIME | TALLY_SAMPLE_PERIOD;
	return attr;
}

static void a_clock_samples_on_its_raster(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_attr attr = clock_attr(MS);
	struct tally_record record;
	int fd = open_on(bench, &attr, 0, -1, 0);
	uint64_t start = fixture->now_ns;
	fixture_advance(fixture, 100 * MS + 500);
	for (unsigned i = 1; i <= 100; i++) {
		assert_true(driver_take(&bench->ring[0], &record));
		assert_int_equal(record.sample.time, start + i * MS);
		assert_int_equal(record.sample.period, MS);
	}
	assert_false(driver_take(&bench->ring[0], &record));
	assert_int_equal(fixture_value(fixture, fd), 100 * MS + 500);
}

/* The rest of a period at a switch out continues when the task returns. */
static void a_clocks_period_is_the_tasks_time(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_attr attr = clock_attr(MS);
	open_on(bench, &attr, 0, -1, 0);
	unsigned seen = 0;
	for (unsigned i = 1; i <= 100; i++) {
		fixture_advance(fixture, 3 * MS / 10);
		fixture_switch(fixture, NULL);
		fixture_advance(fixture, 7 * MS);
		fixture_switch(fixture, fixture->task);
		seen += driver_count_records(&bench->ring[0], TALLY_RECORD_SAMPLE);
		assert_int_equal(seen, 3 * i / 10);
	}
}

static void a_clocks_frequency_is_a_period(void **state)
{
	struct bench *bench = *state;
	struct tally_attr attr = clock_attr(4000);
	struct tally_record record;
	attr.flags = TALLY_ATTR_FREQ;
	open_on(bench, &attr, 0, -1, 0);
	fixture_ticks(&bench->fixture, 25); /* 100 ms */
	for (unsigned i = 0; i < 400; i++) {
		assert_true(driver_take(&bench->ring[0], &record));
		assert_int_equal(record.sample.period, 250000);
	}
	assert_false(driver_take(&bench->ring[0], &record));
}

static void a_clocks_period_is_10_us_at_least(void **state)
{
	struct bench *bench = *state;
	struct tally_attr attr = clock_attr(100);
	open_on(bench, &attr, 0, -1, 0);
	fixture_advance(&bench->fixture, MS + 100);
	/* The first sample may come after the rest of a period. */
	assert_in_range(driver_count_records(&bench->ring[0], TALLY_RECORD_SAMPLE), 100, 101);
}

static void clocks_are_throttled_at_the_first(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_attr attr = clock_attr(10000);
	struct tally_record record;
	assert_int_equal(
		tally_engine_sysctl_set(fixture->engine, "perf_event_max_sample_rate", 10000), 0);
	open_on(bench, &attr, 0, -1, 0);
	for (unsigned tick = 0; tick < 5; tick++) { /* 40 in a tick, of 400 */
		unsigned samples = 0, throttles = 0, unthrottles = 0;
		fixture_advance(fixture, fixture->host.tick_ns);
		fixture_tick(fixture);
		while (driver_take(&bench->ring[0], &record)) {
			samples += record.header.type == TALLY_RECORD_SAMPLE;
			throttles += record.header.type == TALLY_RECORD_THROTTLE;
			unthrottles += record.header.type == TALLY_RECORD_UNTHROTTLE;
		}
		assert_int_equal(samples, 40);
		assert_int_equal(throttles, 1);
		assert_int_equal(unthrottles, 1);
	}
}

static void clocks_sample_what_is_not_excluded(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_attr attr = clock_attr(MS);
	attr.flags = TALLY_ATTR_EXCLUDE_USER; /* the fixture's timers interrupt user code */
	int kernel = open_on(bench, &attr, 0, -1, 0);
	attr.flags = TALLY_ATTR_EXCLUDE_KERNEL;
	open_on(bench, &attr, 0, -1, 1);
	attr.flags = TALLY_ATTR_EXCLUDE_IDLE;
	open_on(bench, &attr, -1, 1, 2);
	attr.flags = 0;
	open_on(bench, &attr, -1, 1, 3);
	fixture_advance(fixture, 10 * MS);
	assert_int_equal(driver_count_records(&bench->ring[0], TALLY_RECORD_SAMPLE), 0);
	assert_int_equal(driver_count_records(&bench->ring[1], TALLY_RECORD_SAMPLE), 10);
	assert_int_equal(driver_count_records(&bench->ring[2], TALLY_RECORD_SAMPLE), 0);
	assert_int_equal(driver_count_records(&bench->ring[3], TALLY_RECORD_SAMPLE), 10);
	assert_int_equal(fixture_value(fixture, kernel), 10 * MS); /* clocks count in either mode */
}

/* --- breakpoints ---------------------------------------------------------- */

static struct tally_attr breakpoint_attr(uint32_t type, uint64_t address, uint64_t length)
{
	struct tally_attr attr = fixture_attr(TALLY_TYPE_BREAKPOINT, 0);
	attr.bp_type = type;
	attr.config1 = address;
	attr.config2 = length;
	return attr;
}

/* The expected results are Linux 6.18's on x86-64. */
static void breakpoints_are_checked_as_the_kernel_does(void **state)
{
	struct bench *bench = *state;
	static const struct {
		uint32_t type;
		uint64_t address, length;
		int error;
	} rows[] = {
		{ 0, 0x1000, 8, -22 }, { 1, 0x1000, 8, -22 },       { 2, 0x1000, 8, 0 },
		{ 3, 0x1000, 8, 0 },   { 4, 0x1000, 8, 0 },         { 4, 0x1000, 4, -22 },
		{ 4, 0x1000, 1, -22 }, { 6, 0x1000, 8, -22 },       { 7, 0x1000, 8, -22 },
		{ 8, 0x1000, 8, -22 }, { 2, 0x1001, 8, -22 },       { 2, 0x1001, 1, 0 },
		{ 2, 0x1002, 4, -22 }, { 2, 0x1000, 3, -22 },       { 2, 0x1000, 5, -22 },
		{ 2, 0x1000, 0, -22 }, { 2, 0x1000, 16, -95 },      { 2, 0x1008, 16, -22 },
		{ 4, 0x1001, 8, 0 },   { 2, KERNEL_ADDRESS, 8, 0 },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tally_attr attr = breakpoint_attr(rows[i].type, rows[i].address,
							 rows[i].length);
		int fd = fixture_open(&bench->fixture, &attr, -1);
		if (rows[i].error || fd < 0)
			assert_int_equal(fd, rows[i].error);
		else
			assert_int_equal(tally_engine_close(bench->fixture.engine, fd), 0);
	}
}

static void kernel_addresses_need_privilege(void **state)
{
	struct bench *bench = *state;
	struct tally_attr attr = breakpoint_attr(2, KERNEL_ADDRESS, 8);
	bench->fixture.sys_admin = false;
	assert_int_equal(fixture_open(&bench->fixture, &attr, -1), -1);
	attr.flags = TALLY_ATTR_EXCLUDE_KERNEL;
	assert_int_equal(fixture_open(&bench->fixture, &attr, -1), -22);
	attr.config1 = 0x1000;
	assert_true(fixture_open(&bench->fixture, &attr, -1) >= 0);
}

static void slots_are_promised_at_the_opening(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_attr attr = breakpoint_attr(2, 0x1000, 8), bad = breakpoint_attr(2, 0x1000, 3);
	struct tally_engine_task *other = fixture_stranger(fixture, "other");
	int32_t tid = tally_engine_task_identity(other)->tid;
	int own[3];
	for (unsigned i = 0; i < 3; i++)
		assert_true((own[i] = fixture_open(fixture, &attr, -1)) >= 0);
	/* One breakpoint is left on CPU 0.  A CPU's event takes it away from every task. */
	assert_true(tally_engine_open(fixture->engine, &attr, -1, 0, -1, 0) >= 0);
	assert_int_equal(tally_engine_open(fixture->engine, &attr, -1, 0, -1, 0), -28);
	assert_true(tally_engine_open(fixture->engine, &attr, -1, 1, -1, 0) >= 0);
	assert_int_equal(fixture_open(fixture, &attr, -1), -28);
	/* the error comes before the attributes are checked */
	assert_int_equal(fixture_open(fixture, &bad, -1), -28);
	bad.bp_type = 0;
	assert_int_equal(fixture_open(fixture, &bad, -1), -22);
	for (unsigned i = 0; i < 3; i++)
		assert_true(tally_engine_open(fixture->engine, &attr, tid, -1, -1, 0) >= 0);
	assert_int_equal(tally_engine_open(fixture->engine, &attr, tid, -1, -1, 0), -28);
	assert_int_equal(tally_engine_close(fixture->engine, own[1]), 0);
	assert_true(fixture_open(fixture, &attr, -1) >= 0);
}

static void hit_slot(struct bench *bench, uint64_t address)
{
	struct tally_engine_regs regs = fixture_user_regs(USER_IP);
	for (unsigned slot = 0; slot < SLOTS; slot++)
		if (bench->watched[bench->fixture.cpu][slot].length &&
		    bench->watched[bench->fixture.cpu][slot].address == address)
			tally_engine_breakpoint_hit(bench->fixture.engine, slot, &regs, address);
}

static void breakpoints_hit_where_their_task_runs(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_attr attr = breakpoint_attr(2, 0x1000, 4);
	struct tally_record record;
	attr.sample_period = 1;
	attr.sample_type = TALLY_SAMPLE_ADDR;
	int fd = open_on(bench, &attr, 0, -1, 0);
	hit_slot(bench, 0x1000);
	fixture_switch(fixture, NULL);
	hit_slot(bench, 0x1000);
	tally_engine_breakpoint_hit(fixture->engine, 0,
				    &(struct tally_engine_regs){ .mode = TALLY_MODE_USER }, 0x1000);
	fixture_on(fixture, 1);
	fixture_switch(fixture, fixture->task);
	hit_slot(bench, 0x1000);
	assert_int_equal(fixture_value(fixture, fd), 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(driver_take(&bench->ring[0], &record));
		assert_int_equal(record.sample.addr, 0x1000);
	}
	assert_false(driver_take(&bench->ring[0], &record));
}

static void attributes_of_a_breakpoint_can_be_modified(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_attr attr = breakpoint_attr(2, 0x1000, 4), changed = attr;
	int fd = fixture_open(fixture, &attr, -1);
	hit_slot(bench, 0x1000);
	changed.config1 = 0x2000;
	assert_int_equal(tally_engine_ioctl(fixture->engine, fd, TALLY_IOC_MODIFY_ATTRIBUTES,
					    (uintptr_t)&changed),
			 0);
	hit_slot(bench, 0x1000);
	hit_slot(bench, 0x2000);
	assert_int_equal(fixture_value(fixture, fd), 2);
	changed.config2 = 3;
	assert_int_equal(tally_engine_ioctl(fixture->engine, fd, TALLY_IOC_MODIFY_ATTRIBUTES,
					    (uintptr_t)&changed),
			 -22);
	hit_slot(bench, 0x2000); /* the event is unchanged */
	assert_int_equal(fixture_value(fixture, fd), 3);
	changed.config2 = 4;
	changed.sample_period = 2;
	assert_int_equal(tally_engine_ioctl(fixture->engine, fd, TALLY_IOC_MODIFY_ATTRIBUTES,
					    (uintptr_t)&changed),
			 -22);
	changed.sample_period = 0;
	changed.flags = TALLY_ATTR_DISABLED;
	assert_int_equal(tally_engine_ioctl(fixture->engine, fd, TALLY_IOC_MODIFY_ATTRIBUTES,
					    (uintptr_t)&changed),
			 0);
	hit_slot(bench, 0x2000);
	assert_int_equal(fixture_value(fixture, fd), 3);
}

/* --- side-band ------------------------------------------------------------ */

#define EVERY_KIND \
	(TALLY_ATTR_MMAP | TALLY_ATTR_COMM | TALLY_ATTR_TASK | TALLY_ATTR_MMAP_DATA | \
	 TALLY_ATTR_MMAP2 | TALLY_ATTR_CONTEXT_SWITCH | TALLY_ATTR_NAMESPACES | \
	 TALLY_ATTR_KSYMBOL | TALLY_ATTR_CGROUP | TALLY_ATTR_TEXT_POKE)

static struct tally_attr dummy_attr(uint64_t flags)
{
	struct tally_attr attr = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_DUMMY);
	attr.flags = flags | TALLY_ATTR_SAMPLE_ID_ALL;
	attr.sample_type = TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | TALLY_SAMPLE_CPU |
			   TALLY_SAMPLE_ID;
	return attr;
}

static const struct tally_engine_mapping code = {
	.address = 0x400000,
	.length = 0x2000,
	.file_offset = 0x1000,
	.major = 8,
	.minor = 1,
	.inode = 77,
	.inode_generation = 5,
	.protection = 5,
	.flags = 2,
	.path = "/bin/true",
	.build_id = { 0xab, 0xcd },
	.build_id_size = 20,
};

/* Makes one record of each kind, for the current task and CPU. */
static void tell_everything(struct bench *bench)
{
	struct tally_engine *engine = bench->fixture.engine;
	struct tally_engine_task *task = bench->fixture.current[bench->fixture.cpu];
	const struct tally_engine_namespace namespaces[2] = { { 1, 2 }, { 3, 4 } };
	struct tally_engine_mapping data = code;
	data.protection = 3;
	data.path = "//anon";
	tally_engine_mmap_record(task, &code);
	tally_engine_mmap_record(task, &data);
	tally_engine_comm(task, "hello");
	tally_engine_namespaces(task, namespaces, 2);
	tally_engine_cgroup_made(engine, 42, "/slice");
	tally_engine_ksymbol(engine, KERNEL_ADDRESS, 64, 1, true, "bpf_prog");
	tally_engine_text_poke(engine, KERNEL_ADDRESS, "\x90\x90\x90", 3, "\xe9\x01\x02\x03\x04",
			       5);
}

static void expect_types(struct driver_ring *ring, const uint32_t *types)
{
	struct tally_record record;
	for (; *types; types++) {
		assert_true(driver_take(ring, &record));
		assert_int_equal(record.header.type, *types);
	}
	assert_false(driver_take(ring, &record));
}

static void each_kind_goes_to_who_asked_for_it(void **state)
{
	struct bench *bench = *state;
	static const struct {
		uint64_t flags;
		uint32_t types[8];
	} rows[] = {
		{ 0, { 0 } },
		{ TALLY_ATTR_MMAP, { TALLY_RECORD_MMAP } },
		{ TALLY_ATTR_MMAP2, { TALLY_RECORD_MMAP2 } },
		{ TALLY_ATTR_MMAP | TALLY_ATTR_MMAP2, { TALLY_RECORD_MMAP2 } },
		{ TALLY_ATTR_MMAP_DATA, { TALLY_RECORD_MMAP } },
		{ TALLY_ATTR_MMAP_DATA | TALLY_ATTR_MMAP2,
		  { TALLY_RECORD_MMAP2, TALLY_RECORD_MMAP2 } },
		{ TALLY_ATTR_COMM, { TALLY_RECORD_COMM } },
		{ TALLY_ATTR_TASK, { 0 } },
		{ TALLY_ATTR_NAMESPACES, { TALLY_RECORD_NAMESPACES } },
		{ TALLY_ATTR_CGROUP, { TALLY_RECORD_CGROUP } },
		{ TALLY_ATTR_KSYMBOL, { TALLY_RECORD_KSYMBOL } },
		{ TALLY_ATTR_TEXT_POKE, { TALLY_RECORD_TEXT_POKE } },
		{ EVERY_KIND,
		  { TALLY_RECORD_MMAP2, TALLY_RECORD_MMAP2, TALLY_RECORD_COMM,
		    TALLY_RECORD_NAMESPACES, TALLY_RECORD_CGROUP, TALLY_RECORD_KSYMBOL,
		    TALLY_RECORD_TEXT_POKE } },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tally_attr attr = dummy_attr(rows[i].flags);
		int fd = open_on(bench, &attr, 0, -1, 0);
		tell_everything(bench);
		expect_types(&bench->ring[0], rows[i].types);
		assert_int_equal(
			tally_engine_munmap(bench->fixture.engine, bench->ring[0].page,
					    (1 + DRIVER_RING_PAGES) * (size_t)FIXTURE_PAGE),
			0);
		assert_int_equal(tally_engine_close(bench->fixture.engine, fd), 0);
	}
}

static void expect_mapping(const struct tally_record *record,
			   const struct tally_engine_mapping *mapping, uint16_t misc)
{
	assert_int_equal(record->header.misc, TALLY_MISC_USER | misc);
	assert_int_equal(record->mmap.pid, 1000);
	assert_int_equal(record->mmap.tid, 1000);
	assert_int_equal(record->mmap.start, mapping->address);
	assert_int_equal(record->mmap.length, mapping->length);
	assert_int_equal(record->mmap.file_offset, mapping->file_offset);
	assert_string_equal(record->mmap.filename, mapping->path);
}

static void mappings_tell_of_their_file(void **state)
{
	struct bench *bench = *state;
	struct tally_attr attr = dummy_attr(TALLY_ATTR_MMAP2 | TALLY_ATTR_MMAP_DATA);
	struct tally_attr with_id = dummy_attr(TALLY_ATTR_MMAP2 | TALLY_ATTR_BUILD_ID);
	struct tally_attr old = dummy_attr(TALLY_ATTR_MMAP);
	struct tally_engine_mapping data = code;
	struct tally_record record;
	char path[5000];
	open_on(bench, &attr, 0, -1, 0);
	open_on(bench, &with_id, 0, -1, 1);
	open_on(bench, &old, 0, -1, 2);
	data.protection = 1;
	data.build_id_size = 0;
	tally_engine_mmap_record(bench->fixture.task, &code);
	tally_engine_mmap_record(bench->fixture.task, &data);

	assert_true(driver_take(&bench->ring[0], &record));
	expect_mapping(&record, &code, 0);
	assert_true(record.mmap.has_inode);
	assert_int_equal(record.mmap.major, 8);
	assert_int_equal(record.mmap.minor, 1);
	assert_int_equal(record.mmap.inode, 77);
	assert_int_equal(record.mmap.inode_generation, 5);
	assert_int_equal(record.mmap.protection, 5);
	assert_int_equal(record.mmap.flags, 2);
	assert_true(driver_take(&bench->ring[0], &record));
	expect_mapping(&record, &data, TALLY_MISC_MMAP_DATA);

	assert_true(driver_take(&bench->ring[1], &record));
	expect_mapping(&record, &code, TALLY_MISC_MMAP_BUILD_ID);
	assert_int_equal(record.mmap.build_id_size, 20);
	assert_memory_equal(record.mmap.build_id, code.build_id, 20);
	assert_false(driver_take(&bench->ring[1], &record));

	assert_true(driver_take(&bench->ring[2], &record));
	assert_int_equal(record.header.type, TALLY_RECORD_MMAP);
	expect_mapping(&record, &code, 0);

	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	data = code;
	data.path = path;
	tally_engine_mmap_record(bench->fixture.task, &data);
	assert_true(driver_take(&bench->ring[2], &record));
	assert_string_equal(record.mmap.filename, "//toolong");
	path[4096] = '\0';
	tally_engine_mmap_record(bench->fixture.task, &data);
	assert_true(driver_take(&bench->ring[2], &record));
	assert_string_equal(record.mmap.filename, "//toolong");
	path[4095] = '\0';
	tally_engine_mmap_record(bench->fixture.task, &data);
	assert_true(driver_take(&bench->ring[2], &record));
	assert_string_equal(record.mmap.filename, path);
}

static void records_of_the_machine_say_what(void **state)
{
	struct bench *bench = *state;
	struct tally_attr attr = dummy_attr(TALLY_ATTR_NAMESPACES | TALLY_ATTR_CGROUP |
					    TALLY_ATTR_KSYMBOL | TALLY_ATTR_TEXT_POKE |
					    TALLY_ATTR_COMM);
	struct tally_record record;
	open_on(bench, &attr, 0, -1, 0);
	bench->fixture.now_ns += 5;
	tell_everything(bench);
	assert_true(driver_take(&bench->ring[0], &record));
	assert_string_equal(record.comm.comm, "hello");
	assert_int_equal(record.comm.tid, 1000);
	assert_int_equal(record.header.misc, 0);
	assert_true(record.sample_id.present);
	assert_int_equal(record.sample_id.tid, 1000);
	assert_int_equal(record.sample_id.time, bench->fixture.now_ns);
	assert_string_equal(tally_engine_task_identity(bench->fixture.task)->comm, "hello");
	assert_true(driver_take(&bench->ring[0], &record));
	assert_int_equal(record.namespaces.count, 2);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(record.namespaces.dev_inode[i], i + 1);
	assert_true(driver_take(&bench->ring[0], &record));
	assert_int_equal(record.cgroup.id, 42);
	assert_string_equal(record.cgroup.path, "/slice");
	assert_true(driver_take(&bench->ring[0], &record));
	assert_int_equal(record.ksymbol.address, KERNEL_ADDRESS);
	assert_int_equal(record.ksymbol.length, 64);
	assert_int_equal(record.ksymbol.type, 1);
	assert_int_equal(record.ksymbol.flags, 1);
	assert_string_equal(record.ksymbol.name, "bpf_prog");
	assert_true(driver_take(&bench->ring[0], &record));
	assert_int_equal(record.header.misc, TALLY_MISC_KERNEL);
	assert_int_equal(record.text_poke.address, KERNEL_ADDRESS);
	assert_int_equal(record.text_poke.old_length, 3);
	assert_int_equal(record.text_poke.new_length, 5);
	assert_memory_equal(record.text_poke.bytes, "\x90\x90\x90\xe9\x01\x02\x03\x04", 8);
}

/* An enabled event gets the records.  Disabled events, and those of other tasks and CPUs, get
 * none. */
static void only_enabled_listeners_of_this_task_and_cpu_hear(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_engine_task *other = fixture_stranger(fixture, "other");
	struct tally_attr attr = dummy_attr(TALLY_ATTR_COMM);
	int fd = open_on(bench, &attr, 0, -1, 0);
	open_on(bench, &attr, tally_engine_task_identity(other)->tid, -1, 1);
	open_on(bench, &attr, -1, 0, 2);
	open_on(bench, &attr, -1, 1, 3);
	static const uint32_t one[] = { TALLY_RECORD_COMM, 0 }, none[] = { 0 };
	tally_engine_comm(fixture->task, "a");
	expect_types(&bench->ring[0], one);
	expect_types(&bench->ring[1], none);
	expect_types(&bench->ring[2], one);
	expect_types(&bench->ring[3], none);
	assert_int_equal(tally_engine_ioctl(fixture->engine, fd, TALLY_IOC_DISABLE, 0), 0);
	tally_engine_comm(fixture->task, "b");
	expect_types(&bench->ring[0], none);
	expect_types(&bench->ring[2], one);
	fixture_on(fixture, 1);
	fixture_switch(fixture, other);
	tally_engine_comm(other, "c");
	expect_types(&bench->ring[0], none);
	expect_types(&bench->ring[1], one);
	expect_types(&bench->ring[2], none);
	expect_types(&bench->ring[3], one);
}

/* An event of a task on one CPU gets that CPU's records only. */
static void a_bound_event_hears_of_its_cpu(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_attr attr = dummy_attr(TALLY_ATTR_COMM);
	static const uint32_t one[] = { TALLY_RECORD_COMM, 0 }, none[] = { 0 };
	open_on(bench, &attr, 0, 0, 0);
	open_on(bench, &attr, 0, 1, 1);
	tally_engine_comm(fixture->task, "a");
	expect_types(&bench->ring[0], one);
	expect_types(&bench->ring[1], none);
}

static void switches_name_the_other_to_a_cpus_events_alone(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_attr attr = dummy_attr(TALLY_ATTR_CONTEXT_SWITCH);
	struct tally_engine_task *other = fixture_stranger(fixture, "other");
	uint32_t tid = (uint32_t)tally_engine_task_identity(other)->tid;
	struct tally_record record;
	open_on(bench, &attr, 0, -1, 0);
	open_on(bench, &attr, -1, 0, 1);
	fixture_switch_from(fixture, other, true);
	fixture_switch(fixture, NULL);
	fixture_switch(fixture, fixture->task);

	const uint16_t out = TALLY_MISC_SWITCH_OUT, preempted = TALLY_MISC_SWITCH_OUT_PREEMPT;
	const uint16_t own[] = { out | preempted, 0 };
	for (unsigned i = 0; i < 2; i++) {
		assert_true(driver_take(&bench->ring[0], &record));
		assert_int_equal(record.header.type, TALLY_RECORD_SWITCH);
		assert_int_equal(record.header.misc, own[i]);
		assert_int_equal(record.sample_id.tid, 1000);
	}
	assert_false(driver_take(&bench->ring[0], &record));

	const struct { uint16_t misc; uint32_t self, other; } wide[] = {
		{ out | preempted, 1000, tid }, { 0, tid, 1000 }, { out, tid, 0 },
		{ 0, 0, tid },                  { out, 0, 1000 }, { 0, 1000, 0 },
	};
	for (unsigned i = 0; i < 6; i++) {
		assert_true(driver_take(&bench->ring[1], &record));
		assert_int_equal(record.header.type, TALLY_RECORD_SWITCH_CPU_WIDE);
		assert_int_equal(record.header.misc, wide[i].misc);
		assert_int_equal(record.sample_id.tid, wide[i].self);
		assert_int_equal(record.switched.next_prev_tid, wide[i].other);
	}
	assert_false(driver_take(&bench->ring[1], &record));
}

static void forks_and_exits_are_told_of(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_attr attr = dummy_attr(TALLY_ATTR_TASK | TALLY_ATTR_INHERIT);
	struct tally_attr plain = dummy_attr(TALLY_ATTR_TASK);
	struct tally_record record;
	open_on(bench, &attr, 0, 0, 0);
	open_on(bench, &plain, 0, -1, 1);
	open_on(bench, &plain, -1, 0, 2);
	struct tally_engine_task *child = fixture_fork(fixture, true);
	uint32_t tid = (uint32_t)tally_engine_task_identity(child)->tid;
	for (unsigned i = 0; i < 3; i++) {
		assert_true(driver_take(&bench->ring[i], &record));
		assert_int_equal(record.header.type, TALLY_RECORD_FORK);
		assert_int_equal(record.task.pid, 1000);
		assert_int_equal(record.task.tid, tid);
		assert_int_equal(record.task.parent_pid, 1000);
		assert_int_equal(record.task.parent_tid, 1000);
		assert_int_equal(record.task.time, fixture->now_ns);
		assert_false(driver_take(&bench->ring[i], &record));
	}
	fixture_switch(fixture, child);
	fixture_exit(fixture, false);
	fixture_switch(fixture, fixture->task);
	for (unsigned i = 0; i < 3; i++) {
		if (i == 1) { /* it counts only the parent */
			assert_false(driver_take(&bench->ring[i], &record));
			continue;
		}
		assert_true(driver_take(&bench->ring[i], &record));
		assert_int_equal(record.header.type, TALLY_RECORD_EXIT);
		assert_int_equal(record.task.tid, tid);
		assert_int_equal(record.task.parent_pid, 1);
		assert_false(driver_take(&bench->ring[i], &record));
	}
}

/* The ring belongs to another task: exec removes the mappings of the task that does it. */
static void exec_is_told_as_such(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_attr attr = dummy_attr(TALLY_ATTR_COMM | TALLY_ATTR_COMM_EXEC);
	struct tally_record record;
	fixture_on(fixture, 1);
	fixture_switch(fixture, fixture_stranger(fixture, "observer"));
	open_on(bench, &attr, 1000, -1, 0);
	fixture_on(fixture, 0);
	tally_engine_task_exec(fixture->task, "a name that is too long");
	assert_true(driver_take(&bench->ring[0], &record));
	assert_int_equal(record.header.type, TALLY_RECORD_COMM);
	assert_int_equal(record.header.misc, TALLY_MISC_COMM_EXEC);
	assert_string_equal(record.comm.comm, "a name that is ");
}

static void an_inherited_events_last_count_is_told(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_attr attr = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS);
	struct tally_record record;
	attr.flags = TALLY_ATTR_INHERIT | TALLY_ATTR_INHERIT_STAT;
	attr.read_format = TALLY_FORMAT_ID | TALLY_FORMAT_TOTAL_TIME_RUNNING;
	open_on(bench, &attr, 0, 0, 0);
	struct tally_engine_task *child = fixture_fork(fixture, false);
	uint32_t tid = (uint32_t)tally_engine_task_identity(child)->tid;
	fixture_switch(fixture, child);
	fixture_advance(fixture, 1234);
	fixture_hit(fixture, TALLY_SW_PAGE_FAULTS, 17);
	fixture_exit(fixture, true);
	fixture_switch(fixture, fixture->task);
	assert_true(driver_take(&bench->ring[0], &record));
	assert_int_equal(record.header.type, TALLY_RECORD_READ);
	assert_int_equal(record.read.pid, tid);
	assert_int_equal(record.read.tid, tid);
	assert_int_equal(record.read.values.values[0], 17);
	assert_int_equal(record.read.values.time_running, 1234);
	assert_false(driver_take(&bench->ring[0], &record));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(each_event_counts_its_own_hits),
		TEST(unknown_events_are_enoent),
		TEST(the_mode_says_who_counts),
		TEST(switches_are_the_kernels),
		TEST(migrations_count_where_the_task_comes_in),
		TEST(clocks_count_while_the_task_runs),
		TEST(a_clock_samples_on_its_raster),
		TEST(a_clocks_period_is_the_tasks_time),
		TEST(a_clocks_frequency_is_a_period),
		TEST(a_clocks_period_is_10_us_at_least),
		TEST(clocks_are_throttled_at_the_first),
		TEST(clocks_sample_what_is_not_excluded),
		TEST(breakpoints_are_checked_as_the_kernel_does),
		TEST(kernel_addresses_need_privilege),
		TEST(slots_are_promised_at_the_opening),
		TEST(breakpoints_hit_where_their_task_runs),
		TEST(attributes_of_a_breakpoint_can_be_modified),
		TEST(each_kind_goes_to_who_asked_for_it),
		TEST(mappings_tell_of_their_file),
		TEST(records_of_the_machine_say_what),
		TEST(only_enabled_listeners_of_this_task_and_cpu_hear),
		TEST(a_bound_event_hears_of_its_cpu),
		TEST(switches_name_the_other_to_a_cpus_events_alone),
		TEST(forks_and_exits_are_told_of),
		TEST(exec_is_told_as_such),
		TEST(an_inherited_events_last_count_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
