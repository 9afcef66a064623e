/* The engine's file layer: read, ioctl, poll, fcntl, close, fork, exec, prctl (SPEC H6; B1 to B3,
 * B10, B11), and objects that are freed late. */
#include "fixture_pmu.h"

#include "engine/engine_state.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum {
	GETFD = 1,
	SETFD,
	GETFL,
	SETFL,
	SETOWN = 8,
	GETOWN,
	SETSIG,
	GETSIG,
	SETOWN_EX = 15,
	GETOWN_EX,
	DUPFD = 0,
	DUPFD_CLOEXEC = 1030,
	ASYNC = 020000,
	NONBLOCK = 04000,
	DIRECT = 040000
};

static int open_faults(struct engine_fixture *fixture, uint64_t flags, uint64_t read_format,
		       int group)
{
	struct tally_attr attr = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS);
	attr.flags = flags;
	attr.read_format = read_format;
	int fd = fixture_open(fixture, &attr, group);
	assert_true(fd >= 0);
	return fd;
}

static void faults(struct engine_fixture *fixture, uint64_t count)
{
	fixture_hit(fixture, TALLY_SW_PAGE_FAULTS, count);
}

static uint64_t id_of(struct engine_fixture *fixture, int fd)
{
	uint64_t id = 0;
	assert_int_equal(tally_engine_ioctl(fixture->engine, fd, TALLY_IOC_ID, (uintptr_t)&id), 0);
	return id;
}

/* --- read ----------------------------------------------------------------- */

/* B2: each of the 32 formats, for a leader with one member, in the defined order. */
static void every_format_has_its_words_in_order(void **state)
{
	struct engine_fixture *fixture = *state;
	for (uint64_t format = 0; format < TALLY_FORMAT_MAX; format++) {
		uint64_t got[16], want[16];
		unsigned n = 0, members = format & TALLY_FORMAT_GROUP ? 2 : 1;
		int fds[2] = { open_faults(fixture, 0, format, -1) };
		fds[1] = open_faults(fixture, 0, 0, fds[0]);
		fixture_advance(fixture, 1000);
		faults(fixture, 3);
		if (format & TALLY_FORMAT_GROUP)
			want[n++] = 2;
		else
			want[n++] = 3;
		if (format & TALLY_FORMAT_TOTAL_TIME_ENABLED)
			want[n++] = 1000;
		if (format & TALLY_FORMAT_TOTAL_TIME_RUNNING)
			want[n++] = 1000;
		for (unsigned i = 0; i < members; i++) {
			if (format & TALLY_FORMAT_GROUP)
				want[n++] = 3;
			if (format & TALLY_FORMAT_ID)
				want[n++] = id_of(fixture, fds[i]);
			if (format & TALLY_FORMAT_LOST)
				want[n++] = 0;
		}
		assert_int_equal(tally_engine_read(fixture->engine, fds[0], got, n * 8 - 1),
				 -ENOSPC);
		assert_int_equal(tally_engine_read(fixture->engine, fds[0], got, sizeof(got)),
				 n * 8);
		assert_memory_equal(got, want, n * 8);
		assert_int_equal(
			tally_engine_read(fixture->engine, fds[0], FIXTURE_BAD_POINTER, n * 8),
			-EFAULT);
		tally_engine_close(fixture->engine, fds[1]);
		tally_engine_close(fixture->engine, fds[0]);
	}
}

/* B9: of running children, and of ended ones. */
static void reads_sum_the_tree(void **state)
{
	struct engine_fixture *fixture = *state;
	uint64_t format = TALLY_FORMAT_GROUP | TALLY_FORMAT_TOTAL_TIME_RUNNING;
	int leader = open_faults(fixture, TALLY_ATTR_INHERIT, format, -1);
	int member = open_faults(fixture, TALLY_ATTR_INHERIT, 0, leader);
	uint64_t words[4];
	fixture_advance(fixture, 100);
	faults(fixture, 1);
	struct tally_engine_task *gone = fixture_fork(fixture, true),
				 *lives = fixture_fork(fixture, false);
	fixture_switch(fixture, gone);
	fixture_advance(fixture, 10);
	faults(fixture, 20);
	fixture_exit(fixture, false);
	fixture_switch(fixture, lives);
	fixture_advance(fixture, 1000);
	faults(fixture, 300);
	fixture_switch(fixture, fixture->task);
	assert_int_equal(tally_engine_read(fixture->engine, leader, words, sizeof(words)),
			 sizeof(words));
	assert_int_equal(words[0], 2);
	assert_int_equal(words[1], 1110);
	assert_int_equal(words[2], 321);
	assert_int_equal(words[3], 321);
	assert_int_equal(fixture_value(fixture, member), 321);

	/* A group that changed after it was inherited can't be summed. */
	assert_int_equal(tally_engine_close(fixture->engine, member), 0);
	int other = open_faults(fixture, TALLY_ATTR_INHERIT, 0, leader);
	/* the child's copy of the descriptors keeps the first member open */
	fixture_switch(fixture, lives);
	assert_int_equal(tally_engine_close(fixture->engine, member), 0);
	fixture_switch(fixture, fixture->task);
	assert_int_equal(tally_engine_read(fixture->engine, leader, words, sizeof(words)), -ECHILD);
	assert_int_equal(fixture_value(fixture, other), 0);
}

/* B7 */
static void a_pinned_event_without_room_reads_as_nothing(void **state)
{
	struct engine_fixture *fixture = *state;
	struct fixture_pmu pmu = { 0 };
	assert_int_equal(fixture_pmu_register(&pmu, fixture, "cpu", 1), 0);
	struct tally_attr attr = fixture_attr(pmu.pmu.type, 0);
	attr.flags = TALLY_ATTR_PINNED;
	int first = fixture_open(fixture, &attr, -1), second = fixture_open(fixture, &attr, -1);
	uint64_t word;
	assert_int_equal(tally_engine_read(fixture->engine, second, &word, 8), 0);
	assert_int_equal(tally_engine_poll(fixture->engine, second, NULL), 16);
	assert_int_equal(tally_engine_read(fixture->engine, first, &word, 8), 8);
	tally_engine_close(fixture->engine, first);
	assert_int_equal(tally_engine_ioctl(fixture->engine, second, TALLY_IOC_ENABLE, 0), 0);
	assert_int_equal(tally_engine_read(fixture->engine, second, &word, 8), 8);
	tally_engine_close(fixture->engine, second);
	assert_int_equal(tally_engine_pmu_unregister(fixture->engine, &pmu.pmu), 0);
}

/* --- ioctl ---------------------------------------------------------------- */

static void requests_have_the_kernels_errnos(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_attr attr = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS),
			  trace = attr;
	uint32_t query[3] = { 1, 7, 7 };
	int fd = fixture_open(fixture, &attr, -1);
	trace.type = TALLY_TYPE_TRACEPOINT;
	const uintptr_t bad = (uintptr_t)FIXTURE_BAD_POINTER;
	const struct { unsigned long request; uintptr_t argument; int error; } cases[] = {
		{ 0x9999, 0, -ENOTTY },
		{ TALLY_IOC_ID, bad, -EFAULT },
		{ TALLY_IOC_PERIOD, bad, -EFAULT },
		{ TALLY_IOC_PAUSE_OUTPUT, 1, -EINVAL },
		{ TALLY_IOC_SET_FILTER, (uintptr_t)"x", -EINVAL },
		{ TALLY_IOC_SET_FILTER, bad, -EFAULT },
		{ TALLY_IOC_SET_OUTPUT, 0, -EBADF },
		{ TALLY_IOC_SET_OUTPUT, 77, -EBADF },
		{ TALLY_IOC_SET_OUTPUT, (uintptr_t)-1, 0 },
		{ TALLY_IOC_SET_BPF, (uintptr_t)-1, -EBADF },
		{ TALLY_IOC_SET_BPF, (uintptr_t)fd, -EINVAL },
		{ TALLY_IOC_QUERY_BPF, (uintptr_t)query, -EINVAL },
		{ TALLY_IOC_MODIFY_ATTRIBUTES, (uintptr_t)&attr, -EOPNOTSUPP },
		{ TALLY_IOC_MODIFY_ATTRIBUTES, (uintptr_t)&trace, -EINVAL },
		{ TALLY_IOC_MODIFY_ATTRIBUTES, bad, -EFAULT },
		{ TALLY_IOC_REFRESH, 1, -EINVAL },
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		long result = tally_engine_ioctl(fixture->engine, fd, cases[i].request,
						 cases[i].argument);
		if (result != cases[i].error)
			print_error("request %u: %ld, not %d\n", i, result, cases[i].error);
		assert_int_equal(result, cases[i].error);
		assert_int_equal(tally_engine_ioctl(fixture->engine, 99, cases[i].request,
						    cases[i].argument),
				 -EBADF);
	}
	/* A filter's text has at most a page. */
	char *text = malloc(FIXTURE_PAGE + 1);
	memset(text, 'x', FIXTURE_PAGE);
	text[FIXTURE_PAGE] = '\0';
	assert_int_equal(
		tally_engine_ioctl(fixture->engine, fd, TALLY_IOC_SET_FILTER, (uintptr_t)text),
		-EINVAL);
	free(text);
}

/* B3, B4 */
static void the_group_flag_means_the_group_from_any_member(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_engine *engine = fixture->engine;
	int leader = open_faults(fixture, TALLY_ATTR_DISABLED, 0, -1),
	    member = open_faults(fixture, TALLY_ATTR_DISABLED, 0, leader);
	assert_int_equal(tally_engine_ioctl(engine, member, TALLY_IOC_ENABLE, TALLY_IOC_FLAG_GROUP),
			 0);
	faults(fixture, 5);
	assert_int_equal(fixture_value(fixture, leader), 5);
	assert_int_equal(fixture_value(fixture, member), 5);
	assert_int_equal(tally_engine_ioctl(engine, member, TALLY_IOC_RESET, 0), 0);
	assert_int_equal(fixture_value(fixture, leader), 5);
	assert_int_equal(fixture_value(fixture, member), 0);
	assert_int_equal(tally_engine_ioctl(engine, member, TALLY_IOC_RESET, TALLY_IOC_FLAG_GROUP),
			 0);
	assert_int_equal(fixture_value(fixture, leader), 0);
	assert_int_equal(tally_engine_ioctl(engine, member, TALLY_IOC_DISABLE, 0), 0);
	faults(fixture, 2);
	assert_int_equal(fixture_value(fixture, leader), 2);
	assert_int_equal(fixture_value(fixture, member), 0);
	assert_int_equal(
		tally_engine_ioctl(engine, member, TALLY_IOC_DISABLE, TALLY_IOC_FLAG_GROUP), 0);
	faults(fixture, 2);
	assert_int_equal(fixture_value(fixture, leader), 2);
}

/* Counts of ended children stay, as in the kernel. */
static void reset_is_of_values_that_live(void **state)
{
	struct engine_fixture *fixture = *state;
	int fd = open_faults(fixture, TALLY_ATTR_INHERIT, TALLY_FORMAT_TOTAL_TIME_ENABLED, -1);
	struct tally_engine_task *gone = fixture_fork(fixture, true),
				 *lives = fixture_fork(fixture, true);
	uint64_t words[2];
	fixture_switch(fixture, gone);
	faults(fixture, 1);
	fixture_exit(fixture, false);
	fixture_switch(fixture, lives);
	faults(fixture, 20);
	fixture_switch(fixture, fixture->task);
	faults(fixture, 300);
	fixture_advance(fixture, 50);
	assert_int_equal(tally_engine_ioctl(fixture->engine, fd, TALLY_IOC_RESET, 0), 0);
	assert_int_equal(tally_engine_read(fixture->engine, fd, words, sizeof(words)),
			 sizeof(words));
	assert_int_equal(words[0], 1);
	assert_true(words[1] >= 50); /* the times are not reset */
}

/* B10 */
static void prctl_acts_on_what_the_caller_opened(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_engine *engine = fixture->engine;
	struct tally_engine_task *other = fixture_stranger(fixture, "other");
	int32_t self = tally_engine_task_identity(fixture->task)->tid,
		tid = tally_engine_task_identity(other)->tid;
	struct tally_attr attr = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS);
	int mine = fixture_open(fixture, &attr, -1), member = fixture_open(fixture, &attr, mine);
	int on_other = tally_engine_open(engine, &attr, tid, -1, -1, 0);
	fixture_switch(fixture, other);
	int on_first = tally_engine_open(engine, &attr, self, -1, -1, 0);
	assert_true(on_other >= 0 && on_first >= 0);
	fixture_switch(fixture, fixture->task);
	assert_int_equal(tally_engine_prctl(engine, 30), -EINVAL);
	assert_int_equal(tally_engine_prctl(engine, TALLY_PR_TASK_PERF_EVENTS_DISABLE), 0);
	faults(fixture, 1);
	fixture_switch(fixture, other);
	faults(fixture, 10);
	/* on the caller, but opened by another */
	assert_int_equal(fixture_value(fixture, on_first), 1);
	fixture_switch(fixture, fixture->task);
	assert_int_equal(fixture_value(fixture, mine) + fixture_value(fixture, member), 0);
	/* on another task, but opened by the caller */
	assert_int_equal(fixture_value(fixture, on_other), 0);
	assert_int_equal(tally_engine_prctl(engine, TALLY_PR_TASK_PERF_EVENTS_ENABLE), 0);
	faults(fixture, 1);
	fixture_switch(fixture, other);
	faults(fixture, 10);
	fixture_switch(fixture, fixture->task);
	assert_int_equal(fixture_value(fixture, mine), 1);
	assert_int_equal(fixture_value(fixture, member), 1);
	assert_int_equal(fixture_value(fixture, on_other), 10);
}

/* --- descriptors ---------------------------------------------------------- */

static void a_file_closes_with_its_last_descriptor(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_engine *engine = fixture->engine;
	int fd = open_faults(fixture, 0, 0, -1);
	assert_int_equal(tally_engine_fcntl(engine, fd, DUPFD, 40), 40);
	assert_int_equal(tally_engine_fcntl(engine, fd, DUPFD_CLOEXEC, 40), 41);
	assert_int_equal(tally_engine_fcntl(engine, fd, DUPFD, 1u << 20), -EINVAL);
	assert_int_equal(tally_engine_fcntl(engine, 40, GETFD, 0), 0);
	assert_int_equal(tally_engine_fcntl(engine, 41, GETFD, 0), 1);
	struct tally_engine_task *child = fixture_fork(fixture, false);
	assert_int_equal(tally_engine_close(engine, fd), 0);
	assert_int_equal(tally_engine_close(engine, fd), -EBADF);
	assert_int_equal(tally_engine_read(engine, fd, NULL, 0), -EBADF);
	faults(fixture, 4);
	assert_int_equal(fixture_value(fixture, 40), 4);

	fixture_switch(fixture, child);
	assert_int_equal(fixture_value(fixture, fd), 4);
	tally_engine_task_exec(child, "next");
	assert_string_equal(tally_engine_task_identity(child)->comm, "next");
	assert_int_equal(fixture_value(fixture, 41), -1); /* closed by exec */
	assert_int_equal(fixture_value(fixture, 40), 4);
	fixture_exit(fixture, true);
	fixture_switch(fixture, fixture->task);
	assert_int_equal(fixture_events(fixture), 1);
	tally_engine_close(engine, 40);
	assert_int_equal(fixture_events(fixture), 1);
	tally_engine_close(engine, 41);
	assert_int_equal(fixture_events(fixture), 0);
}

static void a_mapping_keeps_its_event(void **state)
{
	struct engine_fixture *fixture = *state;
	void *map;
	int fd = open_faults(fixture, 0, 0, -1);
	assert_int_equal(tally_engine_mmap(fixture->engine, 99, FIXTURE_PAGE, true, true, 0, &map),
			 -EBADF);
	assert_int_equal(tally_engine_mmap(fixture->engine, fd, FIXTURE_PAGE, true, true, 0, &map),
			 0);
	assert_int_equal(tally_engine_close(fixture->engine, fd), 0);
	assert_int_equal(fixture_events(fixture), 1);
	assert_int_equal(tally_engine_munmap(fixture->engine, map, FIXTURE_PAGE), 0);
	assert_int_equal(fixture_events(fixture), 0);
}

static void flags_and_owners_are_kept(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_engine *engine = fixture->engine;
	struct { int32_t type, pid; } owner = { 7, 1 };
	int tid = tally_engine_task_identity(fixture->task)->tid,
	    fd = open_faults(fixture, 0, 0, -1);
	const struct { int command; uintptr_t argument; int result;
	} cases[] = {
		{ GETFL, 0, 2 },
		{ SETFL, ASYNC | NONBLOCK, 0 },
		{ GETFL, 0, 2 | ASYNC | NONBLOCK },
		{ SETFL, DIRECT, -EINVAL },
		{ SETFL, 0, 0 },
		{ GETFL, 0, 2 },
		{ GETFD, 0, 0 },
		{ SETFD, 1, 0 },
		{ GETFD, 0, 1 },
		{ GETSIG, 0, 0 },
		{ SETSIG, 65, -EINVAL },
		{ SETSIG, 64, 0 },
		{ GETSIG, 0, 64 },
		{ GETOWN, 0, 0 },
		{ SETOWN, 999999, -ESRCH },
		{ SETOWN, (uintptr_t)INT32_MIN, -EINVAL },
		{ SETOWN, (uintptr_t)tid, 0 },
		{ GETOWN, 0, tid },
		{ SETOWN, (uintptr_t)-tid, 0 },
		{ GETOWN, 0, -tid },
		{ SETOWN_EX, (uintptr_t)&owner, -EINVAL },
		{ SETOWN_EX, (uintptr_t)FIXTURE_BAD_POINTER, -EFAULT },
		{ 1234, 0, -EINVAL },
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(
			tally_engine_fcntl(engine, fd, cases[i].command, cases[i].argument),
			cases[i].result);
	assert_int_equal(tally_engine_fcntl(engine, fd, GETOWN_EX, (uintptr_t)&owner), 0);
	assert_int_equal(owner.type, 2); /* the process group, as a positive number */
	assert_int_equal(owner.pid, tid);
	owner.type = 0;
	assert_int_equal(tally_engine_fcntl(engine, fd, SETOWN_EX, (uintptr_t)&owner), 0);
	assert_int_equal(tally_engine_fcntl(engine, fd, GETOWN, 0), tid);
	owner.pid = 999999;
	assert_int_equal(tally_engine_fcntl(engine, fd, SETOWN_EX, (uintptr_t)&owner), -ESRCH);
	assert_int_equal(tally_engine_fcntl(engine, 99, GETFL, 0), -EBADF);
}

/* C5, B11 */
static void poll_tells_of_data_once_and_of_the_end(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_engine *engine = fixture->engine;
	struct tally_engine_task *other = fixture_stranger(fixture, "other");
	struct tally_attr attr = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS);
	struct tally_engine_file *file = NULL;
	void *map;
	attr.sample_period = attr.wakeup_events = 1;
	attr.sample_type = TALLY_SAMPLE_IP;
	int fd = tally_engine_open(engine, &attr, tally_engine_task_identity(other)->tid, -1, -1,
				   0);
	assert_int_equal(tally_engine_poll(engine, 99, NULL), -EBADF);
	assert_int_equal(tally_engine_poll(engine, fd, &file), 16); /* no ring is mapped */
	assert_int_equal(tally_engine_mmap(engine, fd, 2 * FIXTURE_PAGE, true, true, 0, &map), 0);
	assert_int_equal(tally_engine_poll(engine, fd, &file), 0);
	fixture_switch(fixture, other);
	faults(fixture, 1);
	assert_int_equal(fixture->wakes, 1);
	assert_ptr_equal(fixture->last_woken, file);
	fixture_switch(fixture, fixture->task);
	assert_int_equal(tally_engine_poll(engine, fd, &file), 1);
	assert_int_equal(tally_engine_poll(engine, fd, &file), 0);
	fixture_switch(fixture, other);
	fixture_exit(fixture, true);
	fixture_switch(fixture, fixture->task);
	assert_int_equal(tally_engine_poll(engine, fd, &file), 16);
	assert_int_equal(fixture_value(fixture, fd), 1); /* the count stays */
	assert_int_equal(tally_engine_munmap(engine, map, 2 * FIXTURE_PAGE), 0);
}

/* --- what is freed late --------------------------------------------------- */

struct late {
	struct engine_fixture *fixture;
	int fd;
	uint64_t bytes;
};

/* During a hit on CPU 1, the first task closes the event on CPU 0: it must not be freed while the
 * hit uses it. */
static void close_meanwhile(struct tally_pmu_event *event, const struct tally_engine_hit *hit,
			    const struct tally_engine_regs *regs, void *data)
{
	struct late *late = data;
	(void)hit, (void)regs;
	fixture_on(late->fixture, 0);
	late->bytes = fixture_bytes(late->fixture);
	assert_int_equal(tally_engine_close(late->fixture->engine, late->fd), 0);
	assert_int_equal(fixture_events(late->fixture), 0);
	/* nor its file, which has the task to signal */
	assert_int_equal(fixture_bytes(late->fixture), late->bytes);
	fixture_on(late->fixture, 1);
	assert_int_equal(event->attr->config, TALLY_SW_PAGE_FAULTS); /* the event is still there */
}

static void an_event_outlives_the_hits_on_it(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_engine *engine = fixture->engine;
	struct tally_attr attr = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS);
	struct late late = { .fixture = fixture };
	attr.sample_period = 1;
	late.fd = tally_engine_open(engine, &attr, -1, 1, -1, 0);
	assert_int_equal(tally_engine_set_overflow_handler(engine, late.fd, close_meanwhile, &late),
			 0);
	fixture_on(fixture, 1);
	faults(fixture, 1);
	fixture_on(fixture, 0);
	assert_true(late.bytes > 0);
	tally_engine_close(engine, -1); /* any call checks whether CPUs have left their hits */
	assert_true(fixture_bytes(fixture) + sizeof(struct engine_event) <= late.bytes);
}

/* Only the first CPUs of a large machine are online: calls to them run.  `questions` counts the
 * calls to the others. */
enum { MANY_CPUS = 300, MOST_AT_ONCE = 64, CLOSED = 5000 };
static unsigned questions;

static int count_questions(void *host, unsigned cpu, void (*function)(void *), void *argument)
{
	questions += cpu >= FIXTURE_CPUS;
	return cpu < FIXTURE_CPUS ? fixture_run_on(host, cpu, function, argument) : -ENXIO;
}

static bool first_online(void *host, unsigned cpu)
{
	return cpu < FIXTURE_CPUS && fixture_cpu_online(host, cpu);
}

static void freeing_asks_few_cpus_however_many_there_are(void **state)
{
	struct engine_fixture fixture;
	(void)state;
	fixture_init(&fixture, FIXTURE_CPUS);
	fixture.host.cpus = MANY_CPUS;
	fixture.host.run_on = count_questions;
	fixture.host.cpu_online = first_online;
	assert_true(fixture_start(&fixture));
	uint64_t before = fixture_bytes(&fixture), most = 0;
	questions = 0;
	for (unsigned i = 0; i < CLOSED; i++) {
		unsigned asked = questions;
		tally_engine_close(fixture.engine, open_faults(&fixture, 0, 0, -1));
		assert_true(questions - asked <= 2 * MOST_AT_ONCE); /* two calls */
		uint64_t held = fixture_bytes(&fixture) - before;
		most = held > most ? held : most;
	}
	assert_true(questions <= CLOSED);
	assert_true(questions > CLOSED / 2);
	/* At most one batch waits for the answers of CPUs, and the next batch waits for it. */
	assert_true(most < (2 * MANY_CPUS + 2 * MOST_AT_ONCE) * (sizeof(struct engine_event) + 64));
	/* restore the fixture's own value: the engine has a copy */
	fixture.host.cpus = FIXTURE_CPUS;
	fixture_end(&fixture);
	assert_int_equal(fixture.held_bytes, 0);
}

/* The event is retired after the batch's question to its CPU, so it waits for the next batch. */
static void close_late(struct tally_pmu_event *event, const struct tally_engine_hit *hit,
		       const struct tally_engine_regs *regs, void *data)
{
	struct late *late = data;
	struct tally_engine *engine = late->fixture->engine;
	(void)hit, (void)regs;
	fixture_on(late->fixture, 0);
	assert_non_null(engine->departing);
	assert_true(engine->cpus_seen > 1);
	assert_int_equal(tally_engine_close(engine, late->fd), 0);
	while (engine->departing)
		tally_engine_close(engine, -1);
	assert_ptr_equal(engine->retired, &engine_event_of(event)->retired);
	fixture_on(late->fixture, 1);
}

static void what_retires_while_cpus_are_asked_is_of_the_next_lot(void **state)
{
	struct engine_fixture fixture;
	struct late late = { .fixture = &fixture };
	struct tally_attr attr = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS);
	(void)state;
	fixture_init(&fixture, FIXTURE_CPUS);
	fixture.host.cpus = MANY_CPUS;
	fixture.host.run_on = count_questions;
	fixture.host.cpu_online = first_online;
	assert_true(fixture_start(&fixture));
	attr.sample_period = 1;
	late.fd = tally_engine_open(fixture.engine, &attr, -1, 1, -1, 0);
	assert_int_equal(
		tally_engine_set_overflow_handler(fixture.engine, late.fd, close_late, &late), 0);
	while (!fixture.engine->departing)
		tally_engine_close(fixture.engine, open_faults(&fixture, 0, 0, -1));
	fixture_on(&fixture, 1);
	faults(&fixture, 1);
	fixture_on(&fixture, 0);
	fixture.host.cpus = FIXTURE_CPUS;
	fixture_end(&fixture);
	assert_int_equal(fixture.held_bytes, 0);
}

/* Every new descriptor is the lowest free one, found by a search of a table from its start. */
static void descriptors_are_the_lowest_that_are_free(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_engine *engine = fixture->engine;
	bool used[4096] = { true, true, true };
	uint64_t random = 1;
	for (unsigned step = 0; step < 4000; step++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		unsigned fd = (unsigned)(random >> 33) % 120, from = fd / 2, lowest = 0;
		bool closes = (random >> 60) % 8 < (step / 500 % 2 ? 7 : 5),
		     duplicates = fd % 3 == 0;
		if (closes) {
			assert_int_equal(tally_engine_close(engine, fd > 2 ? (int)fd : 99999),
					 fd > 2 && used[fd] ? 0 : -EBADF);
			used[fd] = fd < 3;
			continue;
		}
		if (duplicates && !(fd > 2 && used[fd]))
			continue;
		while (used[lowest] || (duplicates && lowest < from))
			lowest++;
		assert_true(lowest < sizeof(used) / sizeof(used[0]) - 1);
		int made = duplicates ? tally_engine_fcntl(engine, (int)fd, DUPFD, from)
				      : open_faults(fixture, 0, 0, -1);
		assert_int_equal(made, lowest);
		used[lowest] = true;
	}
}

static void settings_have_the_kernels_bounds(void **state)
{
	struct engine_fixture *fixture = *state;
	static const struct { const char *name; long value; int error;
	} cases[] = {
		{ "perf_event_paranoid", -1, 0 },
		{ "perf_event_paranoid", 4, 0 },
		{ "nonsense", 0, -ENOENT },
		{ "perf_event_max_sample_rate", 0, -EINVAL },
		{ "perf_event_max_sample_rate", 1, 0 },
		{ "perf_user_access", 2, -EINVAL },
		{ "perf_user_access", 1, 0 },
		{ "perf_event_max_stack", -1, -EINVAL },
		{ "perf_event_max_stack", 64, 0 },
		{ "perf_event_max_contexts_per_stack", 1001, -EINVAL },
		{ "perf_event_mlock_kb", 0, 0 },
	};
	long value;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(
			tally_engine_sysctl_set(fixture->engine, cases[i].name, cases[i].value),
			cases[i].error);
		if (cases[i].error)
			continue;
		assert_int_equal(tally_engine_sysctl_get(fixture->engine, cases[i].name, &value),
				 0);
		assert_int_equal(value, cases[i].value);
	}
	assert_int_equal(tally_engine_sysctl_get(fixture->engine, "nonsense", &value), -ENOENT);
	struct tally_attr attr = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_DUMMY);
	attr.sample_type = TALLY_SAMPLE_CALLCHAIN;
	int fd = fixture_open(fixture, &attr, -1);
	assert_int_equal(tally_engine_sysctl_set(fixture->engine, "perf_event_max_stack", 32),
			 -EBUSY);
	tally_engine_close(fixture->engine, fd);
	assert_int_equal(tally_engine_sysctl_set(fixture->engine, "perf_event_max_stack", 32), 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_set_up, fixture_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(every_format_has_its_words_in_order),
		TEST(reads_sum_the_tree),
		TEST(a_pinned_event_without_room_reads_as_nothing),
		TEST(requests_have_the_kernels_errnos),
		TEST(the_group_flag_means_the_group_from_any_member),
		TEST(reset_is_of_values_that_live),
		TEST(prctl_acts_on_what_the_caller_opened),
		TEST(a_file_closes_with_its_last_descriptor),
		TEST(a_mapping_keeps_its_event),
		TEST(flags_and_owners_are_kept),
		TEST(poll_tells_of_data_once_and_of_the_end),
		TEST(an_event_outlives_the_hits_on_it),
		cmocka_unit_test(freeing_asks_few_cpus_however_many_there_are),
		cmocka_unit_test(what_retires_while_cpus_are_asked_is_of_the_next_lot),
		TEST(descriptors_are_the_lowest_that_are_free),
		TEST(settings_have_the_kernels_bounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
