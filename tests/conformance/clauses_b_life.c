/* SPEC rows B10 and B11: prctl, and the ends of tasks and events. */
#include "counting.h"
#include "puppet.h"
#include "ring_walk.h"

#include <errno.h>
#include <sys/mman.h>

/* --- B10: PR_TASK_PERF_EVENTS_DISABLE and _ENABLE ------------------------- */

static struct tally_attr faults_attr(void)
{
	return (struct tally_attr){ .type = TALLY_TYPE_SOFTWARE,
				    .size = sizeof(struct tally_attr),
				    .config = TALLY_SW_PAGE_FAULTS,
				    .flags = TALLY_ATTR_EXCLUDE_KERNEL };
}

static int64_t faults_counted(struct surface *surface, int fd)
{
	int64_t before = count_of(surface, fd);
	CALL(fault, 10);
	return count_of(surface, fd) - before;
}

static int own_events(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	int first = open_self(surface, &attr), second = open_self(surface, &attr);
	CHECK_OPENS(second);
	CHECK_EQUAL(CALL(prctl, TALLY_PR_TASK_PERF_EVENTS_DISABLE), 0);
	CHECK_EQUAL(faults_counted(surface, first), 0);
	CHECK_EQUAL(faults_counted(surface, second), 0);
	CHECK_EQUAL(CALL(prctl, TALLY_PR_TASK_PERF_EVENTS_ENABLE), 0);
	CHECK_EQUAL(faults_counted(surface, first), 10);
	CHECK_EQUAL(faults_counted(surface, second), 10);
	return 0;
}

static int without_events(struct surface *surface)
{
	CHECK_EQUAL(CALL(prctl, TALLY_PR_TASK_PERF_EVENTS_DISABLE), 0);
	CHECK_EQUAL(CALL(prctl, TALLY_PR_TASK_PERF_EVENTS_ENABLE), 0);
	return 0;
}

static int opened_disabled(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	attr.flags |= TALLY_ATTR_DISABLED;
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_EQUAL(CALL(prctl, TALLY_PR_TASK_PERF_EVENTS_ENABLE), 0);
	CHECK_EQUAL(faults_counted(surface, fd), 10);
	return 0;
}

/* Makes the puppet fault and returns how many faults its event counted. */
static int64_t puppet_faults(struct surface *surface, struct puppet *puppet, int fd)
{
	int64_t before = count_of(surface, fd);
	puppet_do(surface, puppet, step_fault, NUMBER(10));
	return count_of(surface, fd) - before;
}

static struct puppet *warm_puppet(struct surface *surface, enum surface_task_kind kind)
{
	struct puppet *puppet = puppet_new(surface, kind);
	if (puppet)
		puppet_do(surface, puppet, step_fault, NUMBER(1));
	return puppet;
}

static int on_other_tasks(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	struct puppet *puppet = warm_puppet(surface, SURFACE_PROCESS);
	CHECK(puppet);
	int fd = CALL(open, &attr, puppet->task, -1, -1, 0);
	CHECK_OPENS(fd);
	CHECK_EQUAL(puppet_faults(surface, puppet, fd), 10);
	/* prctl acts on the events that the caller opened, on whatever task */
	CALL(prctl, TALLY_PR_TASK_PERF_EVENTS_DISABLE);
	CHECK_EQUAL(puppet_faults(surface, puppet, fd), 0);
	CALL(prctl, TALLY_PR_TASK_PERF_EVENTS_ENABLE);
	CHECK_EQUAL(puppet_faults(surface, puppet, fd), 10);
	return puppet_end(surface, puppet, 0);
}

static int step_prctl(struct surface *surface, void *option)
{
	return CALL(prctl, (int)(intptr_t)option);
}

/* The event is on the calling task, but another task opened it. */
static int not_those_of_others(struct surface *surface, enum surface_task_kind kind)
{
	struct tally_attr attr = faults_attr();
	struct puppet *puppet = warm_puppet(surface, kind);
	CHECK(puppet);
	int fd = CALL(open, &attr, puppet->task, -1, -1, 0);
	CHECK_OPENS(fd);
	CHECK_EQUAL(
		puppet_do(surface, puppet, step_prctl, NUMBER(TALLY_PR_TASK_PERF_EVENTS_DISABLE)),
		0);
	CHECK_EQUAL(puppet_faults(surface, puppet, fd), 10);
	return puppet_end(surface, puppet, 0);
}

static int not_a_parents(struct surface *surface)
{
	return not_those_of_others(surface, SURFACE_PROCESS);
}

static int not_another_threads(struct surface *surface)
{
	return not_those_of_others(surface, SURFACE_THREAD);
}

static int members_too(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	int leader = open_self(surface, &attr), member = open_member(surface, &attr, leader);
	CHECK_OPENS(member);
	CALL(prctl, TALLY_PR_TASK_PERF_EVENTS_DISABLE);
	CHECK_EQUAL(faults_counted(surface, member), 0);
	/* if prctl had disabled only the leader, the member would start with it */
	CHECK_EQUAL(enable(surface, leader), 0);
	CHECK_EQUAL(faults_counted(surface, leader), 10);
	CHECK_EQUAL(faults_counted(surface, member), 0);
	CALL(prctl, TALLY_PR_TASK_PERF_EVENTS_ENABLE);
	CHECK_EQUAL(faults_counted(surface, member), 10);
	return 0;
}

static int inherited_too(struct surface *surface)
{
	struct tally_attr attr = breakpoint_attr(surface, TALLY_BREAKPOINT_W);
	attr.flags |= TALLY_ATTR_INHERIT;
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	struct puppet *puppet = puppet_new(surface, SURFACE_PROCESS);
	CHECK(puppet);
	CALL(prctl, TALLY_PR_TASK_PERF_EVENTS_DISABLE);
	puppet_do(surface, puppet, step_touch, NUMBER(10));
	CHECK_EQUAL(count_of(surface, fd), 0);
	CALL(prctl, TALLY_PR_TASK_PERF_EVENTS_ENABLE);
	puppet_do(surface, puppet, step_touch, NUMBER(10));
	CHECK_EQUAL(count_of(surface, fd), 10);
	return puppet_end(surface, puppet, 0);
}

/* --- B11: ends ------------------------------------------------------------ */

static int count_stays_after_exit(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	uint64_t words[3], again[3];
	struct puppet *puppet = warm_puppet(surface, SURFACE_PROCESS);
	CHECK(puppet);
	attr.read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING;
	int fd = CALL(open, &attr, puppet->task, -1, -1, 0);
	CHECK_OPENS(fd);
	puppet_do(surface, puppet, step_fault, NUMBER(100));
	CHECK_EQUAL(puppet_end(surface, puppet, 0), 0);
	CHECK_EQUAL(read_words(surface, fd, words, sizeof(words)), 3);
	CHECK(words[0] >= 100 && words[1] > 0 && words[2] == words[1]);
	CALL(burn, 1000000);
	CALL(fault, 10);
	CHECK_EQUAL(read_words(surface, fd, again, sizeof(again)), 3);
	for (unsigned i = 0; i < 3; i++)
		/* the event counts no more, and its times stand still */
		CHECK_EQUAL(again[i], words[i]);
	return 0;
}

static int descriptor_stays_after_exit(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	struct puppet *puppet = warm_puppet(surface, SURFACE_THREAD);
	CHECK(puppet);
	int fd = CALL(open, &attr, puppet->task, -1, -1, 0);
	CHECK_OPENS(fd);
	CHECK_EQUAL(puppet_end(surface, puppet, 0), 0);
	int64_t count = count_of(surface, fd);
	CHECK(count >= 0);
	CHECK_EQUAL(disable(surface, fd), 0);
	CHECK_EQUAL(enable(surface, fd), 0);
	CHECK(id_of(surface, fd) != 0);
	CHECK_EQUAL(count_of(surface, fd), count);
	CHECK_EQUAL(CALL(ioctl, fd, TALLY_IOC_RESET, 0), 0);
	CHECK_EQUAL(count_of(surface, fd), 0);
	CHECK_EQUAL(CALL(close, fd), 0);
	return 0;
}

static int hang_up_after_exit(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	int error;
	struct puppet *puppet = puppet_new(surface, SURFACE_PROCESS);
	CHECK(puppet);
	struct pollfd polled = { .fd = CALL(open, &attr, puppet->task, -1, -1, 0),
				 .events = POLLIN };
	CHECK_OPENS(polled.fd);
	CHECK(CALL(mmap, polled.fd, 2 * surface->page_size, PROT_READ | PROT_WRITE, MAP_SHARED, 0,
		   &error));
	CHECK_EQUAL(CALL(poll, &polled, 1, 0), 0);
	CHECK_EQUAL(puppet_end(surface, puppet, 0), 0);
	CHECK_EQUAL(CALL(poll, &polled, 1, -1), 1);
	CHECK(polled.revents & POLLHUP);
	return 0;
}

static int no_member_after_exit(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	struct puppet *puppet = puppet_new(surface, SURFACE_PROCESS);
	CHECK(puppet);
	int leader = CALL(open, &attr, puppet->task, -1, -1, 0);
	CHECK_OPENS(leader);
	CHECK_EQUAL(puppet_end(surface, puppet, 0), 0);
	if (ring_kernel_is_old(surface)) /* 6.1 returns another error */
		SKIP(NA_OLD_KERNEL);
	CHECK_ERROR(CALL(open, &attr, puppet->task, -1, leader, 0), ENODEV);
	return 0;
}

static int cycles_leak_no_descriptor(struct surface *surface)
{
	enum { CYCLES = 5000 };
	struct tally_attr attr = faults_attr();
	int first = open_self(surface, &attr);
	CHECK_OPENS(first);
	CALL(close, first);
	for (unsigned i = 0; i < CYCLES; i++) {
		CHECK_EQUAL(open_self(surface, &attr), first);
		CHECK_EQUAL(CALL(close, first), 0);
	}
	return 0;
}

static int cycles_leak_no_breakpoint(struct surface *surface)
{
	enum { CYCLES = 100 };
	struct tally_attr attr = breakpoint_attr(surface, TALLY_BREAKPOINT_W);
	attr.flags |= TALLY_ATTR_INHERIT;
	for (unsigned i = 0; i < CYCLES; i++) {
		int fd = open_self(surface, &attr);
		CHECK_OPENS(fd);
		if (i % 10 == 0) /* closing inherited events must not leak either */
			CHECK_EQUAL(CALL(wait, CALL(spawn, SURFACE_PROCESS, step_touch, NUMBER(1))),
				    0);
		CHECK_EQUAL(CALL(close, fd), 0);
	}
	return 0;
}

static int map_in_cycles(struct surface *surface, void *unused)
{
	enum { CYCLES = 2000, PAGES = 1 + 16 }; /* 132 MiB in total, if the rings leaked */
	struct tally_attr attr = faults_attr();
	(void)unused;
	CHECK_EQUAL(CALL(drop_privileges), 0);
	for (unsigned i = 0; i < CYCLES; i++) {
		int error = 0, fd = open_self(surface, &attr);
		CHECK_OPENS(fd);
		void *ring = CALL(mmap, fd, PAGES * surface->page_size, PROT_READ | PROT_WRITE,
				  MAP_SHARED, 0, &error);
		CHECK_EQUAL(error, 0);
		CHECK_EQUAL(CALL(munmap, ring, PAGES * surface->page_size), 0);
		CHECK_EQUAL(CALL(close, fd), 0);
	}
	return 0;
}

/* Without privilege, rings are charged to a limit: leaked rings would exhaust it. */
static int cycles_leak_no_ring(struct surface *surface)
{
	if (CALL(sysctl, "perf_event_paranoid") > 2)
		SKIP(NA_NOT_PRIVILEGED);
	CHECK_EQUAL(CALL(wait, CALL(spawn, SURFACE_PROCESS, map_in_cycles, NULL)), 0);
	return 0;
}

static int many_at_a_time(struct surface *surface)
{
	enum { EVENTS = 1000 };
	struct tally_attr attr = faults_attr();
	int fds[EVENTS];
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < EVENTS; i++) {
			fds[i] = open_self(surface, &attr);
			CHECK_OPENS(fds[i]);
		}
		CALL(fault, 10);
		for (unsigned i = 0; i < EVENTS; i++) {
			CHECK_EQUAL(count_of(surface, fds[i]), 10);
			CHECK_EQUAL(CALL(close, fds[i]), 0);
		}
	}
	return 0;
}

const struct clause clauses_b_life[] = {
	{ "B10.own_events", "DISABLE and ENABLE act on all events that the caller opened", 0,
	  own_events },
	{ "B10.without_events", "without any they do nothing", 0, without_events },
	{ "B10.opened_disabled", "ENABLE starts those that were opened disabled", 0,
	  opened_disabled },
	{ "B10.on_other_tasks", "events that the caller opened on other tasks are among them", 0,
	  on_other_tasks },
	{ "B10.not_a_parents", "events on the caller that its parent opened aren't", 0,
	  not_a_parents },
	{ "B10.not_another_threads", "nor those that another thread of its process opened", 0,
	  not_another_threads },
	{ "B10.members", "members of groups are among them", 0, members_too },
	{ "B10.inherited", "what children have inherited is, too", SURFACE_BREAKPOINTS,
	  inherited_too },

	{ "B11.count_stays", "a task's exit ends counting; count and times stay", 0,
	  count_stays_after_exit },
	{ "B11.descriptor_stays", "the descriptor of an event whose task is gone answers as before",
	  0, descriptor_stays_after_exit },
	{ "B11.hang_up", "its poll gives POLLHUP", 0, hang_up_after_exit },
	{ "B11.no_member_enodev", "a group whose task is gone takes no member: ENODEV", 0,
	  no_member_after_exit },
	{ "B11.no_descriptor_leaks", "5,000 events opened and closed leave nothing open", 0,
	  cycles_leak_no_descriptor },
	{ "B11.no_breakpoint_leaks",
	  "100 breakpoints opened, inherited and closed leave all slots free", SURFACE_BREAKPOINTS,
	  cycles_leak_no_breakpoint },
	{ "B11.no_ring_leaks", "2,000 rings mapped and unmapped leave the budget as it was", 0,
	  cycles_leak_no_ring },
	{ "B11.many_at_a_time", "1,000 events on one task count the same, again and again", 0,
	  many_at_a_time },
	{ NULL, NULL, 0, NULL }
};
