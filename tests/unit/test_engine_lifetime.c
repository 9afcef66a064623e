/* Orders of ending: events, files, rings, tasks, processes and CPUs end while others still refer to
 * them (the rules of engine.c and ring_map.c).  Most errors show only under AddressSanitizer; lost
 * memory always shows. */
#include "fixture_pmu.h"

#include "engine/engine_state.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { DUPFD = 0, SETFL = 4, SETOWN = 8, ASYNC = 020000 };

static int open_at(struct engine_fixture *fixture, int pid, int cpu, int group, uint64_t flags)
{
	struct tally_attr attr = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS);
	attr.flags = flags;
	attr.sample_period = attr.wakeup_events = 1;
	attr.read_format = TALLY_FORMAT_GROUP;
	int fd = tally_engine_open(fixture->engine, &attr, pid, cpu, group, 0);
	assert_true(fd >= 0);
	return fd;
}

static struct engine_event *event_of(const struct engine_fixture *fixture, int fd)
{
	return fixture->process->files[fd]->event;
}

/* --- one by one ----------------------------------------------------------- */

static const void *released[64];
static unsigned releases;

static void note_release(void *host, void *memory, size_t size)
{
	if (memory && releases < sizeof(released) / sizeof(released[0]))
		released[releases++] = memory;
	fixture_release(host, memory, size);
}

static unsigned place_of(const void *memory)
{
	for (unsigned i = 0; i < releases; i++)
		if (released[i] == memory)
			return i;
	return UINT32_MAX;
}

/* The original's file does the work still queued for an inherited event. */
static void an_inherited_event_is_freed_before_its_original(void **state)
{
	struct engine_fixture fixture;
	(void)state;
	fixture_init(&fixture, 2);
	fixture.host.release = note_release;
	assert_true(fixture_start(&fixture));
	int fd = open_at(&fixture, 0, -1, -1, TALLY_ATTR_INHERIT);
	assert_non_null(fixture_fork(&fixture, true));
	const struct engine_event *event = event_of(&fixture, fd);
	const struct engine_event *child = ENGINE_CONTAINER(event->children.next,
							    struct engine_event, child_link);
	const struct tally_engine_file *file = fixture.process->files[fd];
	releases = 0;
	tally_engine_close(fixture.engine, fd);
	tally_engine_close(fixture.engine, -1);
	assert_true(place_of(child) < place_of(event));
	assert_true(place_of(child) < place_of(file));
	assert_true(place_of(event) < releases && place_of(file) < releases);
	fixture_end(&fixture);
}

static void a_task_that_never_said_that_it_exits_leaves_what_it_opened(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_engine_task *thread = fixture_fork(fixture, true);
	fixture_switch(fixture, thread);
	int fd = open_at(fixture, 0, -1, -1, 0);
	fixture_switch(fixture, fixture->task);
	fixture->tasks[--fixture->task_count] = NULL;
	tally_engine_task_free(thread);
	assert_null(event_of(fixture, fd)->owner);
	assert_int_equal(tally_engine_close(fixture->engine, fd), 0);
}

/* The CPU goes offline after the open has checked that it is online. */
static void *unplug_meanwhile(void *host, size_t size)
{
	struct engine_fixture *fixture = host;
	if (size == sizeof(struct tally_engine_file) && fixture->offline[2]) {
		fixture_on(fixture, 1);
		tally_engine_cpu_down(fixture->engine, 1);
		fixture->offline[1] = true;
		fixture_on(fixture, 0);
	}
	return fixture_allocate(host, size);
}

static void a_member_whose_cpu_goes_as_it_is_opened_is_alone(void **state)
{
	struct engine_fixture fixture;
	uint64_t words[2];
	(void)state;
	fixture_init(&fixture, 3);
	fixture.host.allocate = unplug_meanwhile;
	assert_true(fixture_start(&fixture));
	int leader = open_at(&fixture, -1, 1, -1, 0);
	fixture.offline[2] = true; /* offline from here on */
	int member = open_at(&fixture, -1, 1, leader, 0);
	assert_true(fixture.offline[1]);
	assert_int_equal(tally_engine_read(fixture.engine, member, words, sizeof(words)),
			 sizeof(words));
	assert_int_equal(words[0], 1);
	assert_int_equal(tally_engine_close(fixture.engine, member), 0);
	assert_int_equal(tally_engine_read(fixture.engine, leader, words, sizeof(words)),
			 sizeof(words));
	assert_int_equal(words[0], 1);
	assert_int_equal(tally_engine_close(fixture.engine, leader), 0);
	fixture_end(&fixture);
}

static void a_cpu_that_goes_does_what_it_was_asked_for(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_engine_regs regs = fixture_user_regs(0x401000);
	void *map;
	int fd = open_at(fixture, -1, 1, -1, 0);
	assert_int_equal(
		tally_engine_mmap(fixture->engine, fd, 2 * FIXTURE_PAGE, true, true, 0, &map), 0);
	fixture_on(fixture, 1);
	tally_engine_software(fixture->engine, TALLY_SW_PAGE_FAULTS, 1, &regs, 0);
	assert_int_equal(fixture->wakes, 0);
	tally_engine_cpu_down(fixture->engine, 1);
	assert_int_equal(fixture->wakes, 1);
	fixture->offline[1] = true;
	fixture_on(fixture, 0);
	assert_int_equal(tally_engine_poll(fixture->engine, fd, NULL), 1);
}

static void no_limit_makes_a_descriptor_too_large(void **state)
{
	struct engine_fixture *fixture = *state;
	int fd = open_at(fixture, 0, -1, -1, 0);
	tally_engine_process_limit(fixture->process, UINT32_MAX);
	assert_int_equal(tally_engine_fcntl(fixture->engine, fd, DUPFD, 0x80000001u), -EINVAL);
	assert_int_equal(tally_engine_fcntl(fixture->engine, fd, DUPFD, 1 << 20), -EINVAL);
	assert_int_equal(tally_engine_fcntl(fixture->engine, fd, DUPFD, (1 << 20) - 1),
			 (1 << 20) - 1);
	assert_int_equal(tally_engine_fcntl(fixture->engine, fd, DUPFD, (1 << 20) - 1), -EMFILE);
}

static void a_host_without_pages_maps_nothing(void **state)
{
	struct engine_fixture fixture;
	void *map;
	(void)state;
	fixture_init(&fixture, 1);
	fixture.host.allocate_pages = NULL;
	fixture.host.cpu_online = NULL; /* all CPUs are online */
	assert_true(fixture_start(&fixture));
	int fd = open_at(&fixture, -1, 0, -1, 0);
	assert_int_equal(
		tally_engine_mmap(fixture.engine, fd, 2 * FIXTURE_PAGE, true, true, 0, &map),
		-ENOMEM);
	fixture_end(&fixture);
}

/* --- any order ------------------------------------------------------------ */

enum { SEEDS = 60, STEPS = 1500, CPUS = 3, MAPPINGS = 64, DESCRIPTORS = 24 };

struct walk {
	struct engine_fixture fixture;
	uint64_t random;
	struct { void *address; size_t size; } mappings[MAPPINGS];
	unsigned mapping_count, did[16];
};

static unsigned below(struct walk *walk, unsigned limit)
{
	walk->random = walk->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(walk->random >> 33) % limit;
}

static int any_fd(struct walk *walk)
{
	return 3 + (int)below(walk, DESCRIPTORS);
}

static struct tally_engine_task *any_task(struct walk *walk)
{
	return walk->fixture.tasks[below(walk, walk->fixture.task_count)];
}

static void walk_open(struct walk *walk)
{
	static const uint64_t flags[] = {
		0,
		0,
		TALLY_ATTR_INHERIT,
		TALLY_ATTR_INHERIT,
		TALLY_ATTR_INHERIT | TALLY_ATTR_INHERIT_STAT,
		TALLY_ATTR_PINNED,
		TALLY_ATTR_REMOVE_ON_EXEC,
		TALLY_ATTR_REMOVE_ON_EXEC | TALLY_ATTR_SIGTRAP,
		TALLY_ATTR_DISABLED | TALLY_ATTR_ENABLE_ON_EXEC,
		TALLY_ATTR_TASK | TALLY_ATTR_COMM,
		TALLY_ATTR_CONTEXT_SWITCH | TALLY_ATTR_SAMPLE_ID_ALL,
		TALLY_ATTR_WRITE_BACKWARD,
	};
	static const uint64_t configs[] = { TALLY_SW_PAGE_FAULTS,      TALLY_SW_PAGE_FAULTS,
					    TALLY_SW_CONTEXT_SWITCHES, TALLY_SW_TASK_CLOCK,
					    TALLY_SW_CPU_CLOCK,        TALLY_SW_DUMMY };
	struct tally_attr attr = fixture_attr(TALLY_TYPE_SOFTWARE, configs[below(walk, 6)]);
	struct tally_engine_task *task = any_task(walk);
	bool whole_cpu = !below(walk, 4);
	attr.flags = flags[below(walk, sizeof(flags) / sizeof(flags[0]))];
	uint64_t period = attr.config == TALLY_SW_PAGE_FAULTS ? 1 : 20000;
	attr.sample_period = below(walk, 2) ? 0 : period;
	attr.wakeup_events = below(walk, 2);
	attr.sample_type = TALLY_SAMPLE_TID | TALLY_SAMPLE_IP |
			   (below(walk, 4) ? 0 : TALLY_SAMPLE_CALLCHAIN);
	attr.read_format = below(walk, 2) ? TALLY_FORMAT_GROUP : 0;
	int pid = whole_cpu ? -1 : 0;
	if (!whole_cpu && task && below(walk, 2))
		pid = tally_engine_task_identity(task)->tid;
	int cpu = whole_cpu || !below(walk, 3) ? (int)below(walk, CPUS) : -1;
	tally_engine_open(walk->fixture.engine, &attr, pid, cpu, below(walk, 2) ? any_fd(walk) : -1,
			  below(walk, 4) ? 0 : TALLY_FLAG_FD_OUTPUT);
}

static void walk_map(struct walk *walk)
{
	size_t size = (size_t)FIXTURE_PAGE << below(walk, 3);
	void *address = NULL;
	size += below(walk, 8) ? FIXTURE_PAGE : 0;
	if (!tally_engine_mmap(walk->fixture.engine, any_fd(walk), size, below(walk, 4), true, 0,
			       &address)) {
		unsigned at = walk->mapping_count < MAPPINGS ? walk->mapping_count++
							     : below(walk, MAPPINGS);
		walk->mappings[at].address = address;
		walk->mappings[at].size = size;
	}
}

static void walk_control(struct walk *walk)
{
	struct tally_engine *engine = walk->fixture.engine;
	uint64_t words[256], period = 1 + below(walk, 3);
	int fd = any_fd(walk);
	switch (below(walk, 9)) {
	case 0: tally_engine_ioctl(engine, fd, TALLY_IOC_ENABLE, below(walk, 2)); break;
	case 1: tally_engine_ioctl(engine, fd, TALLY_IOC_DISABLE, below(walk, 2)); break;
	case 2: tally_engine_ioctl(engine, fd, TALLY_IOC_REFRESH, below(walk, 3)); break;
	case 3: tally_engine_ioctl(engine, fd, TALLY_IOC_PERIOD, (uintptr_t)&period); break;
	case 4:
	case 5:
		tally_engine_ioctl(engine, fd, TALLY_IOC_SET_OUTPUT,
				   below(walk, 4) ? (uintptr_t)any_fd(walk) : (uintptr_t)-1);
		break;
	case 6:
		tally_engine_fcntl(engine, fd, SETFL, ASYNC);
		tally_engine_fcntl(engine, fd, SETOWN, 1000);
		break;
	case 7: tally_engine_read(engine, fd, words, sizeof(words)); break;
	default:
		tally_engine_prctl(engine, below(walk, 2) ? TALLY_PR_TASK_PERF_EVENTS_DISABLE
							  : TALLY_PR_TASK_PERF_EVENTS_ENABLE);
	}
}

static bool is_last(const struct engine_fixture *fixture, struct tally_engine_task *task)
{
	unsigned count = 0;
	for (unsigned i = 0; i < fixture->task_count; i++)
		count += fixture->tasks[i] && tally_engine_task_process(fixture->tasks[i]) ==
						      tally_engine_task_process(task);
	return count == 1;
}

/* Makes a hit, and checks nothing until something else has happened. */
static void walk_hit(struct walk *walk)
{
	struct tally_engine_regs regs = fixture_user_regs(0x401000);
	tally_engine_software(walk->fixture.engine, TALLY_SW_PAGE_FAULTS, 1 + below(walk, 2), &regs,
			      0);
	if (below(walk, 2))
		fixture_run_pending(&walk->fixture);
}

static void walk_switch(struct walk *walk)
{
	struct engine_fixture *fixture = &walk->fixture;
	struct tally_engine_task *next = below(walk, 6) ? any_task(walk) : NULL;
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		if (next && fixture->current[cpu] == next)
			return;
	if (next && fixture->offline[fixture->cpu])
		return;
	if (next)
		tally_engine_migrate(next, fixture->cpu);
	fixture_switch_from(fixture, next, below(walk, 2));
}

static void walk_plug(struct walk *walk)
{
	struct engine_fixture *fixture = &walk->fixture;
	unsigned back = fixture->cpu;
	fixture_on(fixture, CPUS - 1);
	if (fixture->offline[CPUS - 1]) {
		fixture->offline[CPUS - 1] = false;
		tally_engine_cpu_up(fixture->engine, CPUS - 1);
	} else {
		if (fixture->current[CPUS - 1])
			fixture_switch(fixture, NULL);
		tally_engine_cpu_down(fixture->engine, CPUS - 1);
		fixture->offline[CPUS - 1] = true;
	}
	fixture_on(fixture, back == CPUS - 1 ? 0 : back);
}

static void walk_as_task(struct walk *walk, unsigned what)
{
	struct engine_fixture *fixture = &walk->fixture;
	struct tally_engine_task *current = fixture->current[fixture->cpu];
	if (what < 8)
		walk_open(walk);
	else if (what < 12)
		walk_map(walk);
	else if (what < 20)
		walk_control(walk);
	else if (what < 23)
		tally_engine_close(fixture->engine, any_fd(walk));
	else if (what < 24)
		tally_engine_fcntl(fixture->engine, any_fd(walk), DUPFD, 0);
	else if (what < 26 && walk->mapping_count) {
		unsigned at = below(walk, walk->mapping_count);
		tally_engine_munmap(fixture->engine, walk->mappings[at].address,
				    walk->mappings[at].size);
	} else if (what < 28 && fixture->task_count < FIXTURE_TASKS)
		fixture_fork(fixture, below(walk, 2));
	else if (what < 29)
		fixture_exit(fixture, is_last(fixture, current));
	else
		tally_engine_task_exec(current, "new");
}

static void walk_step(struct walk *walk)
{
	struct engine_fixture *fixture = &walk->fixture;
	unsigned what = below(walk, 44);
	fixture_on(fixture, below(walk, CPUS));
	if (what < 30 && fixture->current[fixture->cpu])
		walk_as_task(walk, what);
	else if (fixture->offline[fixture->cpu])
		walk_plug(walk);
	else if (what < 35)
		walk_hit(walk);
	else if (what < 40)
		walk_switch(walk);
	else if (what < 42)
		fixture_ticks(fixture, 1);
	else if (what < 43)
		fixture_run_pending(fixture);
	else
		walk_plug(walk);
}

static void whatever_ends_first_all_memory_comes_back(void **state)
{
	(void)state;
	uint64_t samples = 0;
	for (unsigned seed = 1; seed <= SEEDS; seed++) {
		struct walk *walk = calloc(1, sizeof(*walk));
		walk->random = seed;
		fixture_init(&walk->fixture, CPUS);
		assert_true(fixture_start(&walk->fixture));
		for (unsigned step = 0; step < STEPS; step++)
			walk_step(walk);
		samples += walk->fixture.wakes;
		if (!walk->fixture.offline[CPUS - 1])
			walk_plug(walk); /* with everything active there */
		fixture_end(&walk->fixture);
		free(walk);
	}
	assert_true(samples > SEEDS); /* the walks did take samples */
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_set_up, fixture_tear_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_inherited_event_is_freed_before_its_original),
		TEST(a_task_that_never_said_that_it_exits_leaves_what_it_opened),
		cmocka_unit_test(a_member_whose_cpu_goes_as_it_is_opened_is_alone),
		TEST(a_cpu_that_goes_does_what_it_was_asked_for),
		TEST(no_limit_makes_a_descriptor_too_large),
		cmocka_unit_test(a_host_without_pages_maps_nothing),
		cmocka_unit_test(whatever_ends_first_all_memory_comes_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
