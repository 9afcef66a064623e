/* SPEC rows A5 and A6: the task and CPU of an event, and the flags of open. */
#include "counting.h"
#include "puppet.h"
#include "ring_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

/* --- A5 ------------------------------------------------------------------- */

static int64_t faults_counted(struct surface *surface, int fd, unsigned count)
{
	int64_t before = count_of(surface, fd);
	CALL(fault, count);
	return count_of(surface, fd) - before;
}

static int self_on_any_cpu(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK_OPENS(fd);
	for (int cpu = 0; cpu < 2; cpu++) {
		CHECK_EQUAL(CALL(pin, cpu), 0);
		CHECK_EQUAL(faults_counted(surface, fd, 10), 10);
	}
	return 0;
}

static int self_by_number(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	int fd = CALL(open, &attr, CALL(self), -1, -1, 0);
	CHECK_OPENS(fd);
	CHECK_EQUAL(faults_counted(surface, fd, 10), 10);
	return 0;
}

static int another_task(struct surface *surface, enum surface_task_kind kind)
{
	struct puppet *puppet = puppet_new(surface, kind);
	CHECK(puppet);
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	/* let the faults of its first step happen before the event exists */
	puppet_do(surface, puppet, step_fault, NUMBER(1));
	int fd = CALL(open, &attr, puppet->task, -1, -1, 0);
	CHECK_OPENS(fd);
	int64_t before = count_of(surface, fd);
	puppet_do(surface, puppet, step_fault, NUMBER(10));
	CHECK_EQUAL(count_of(surface, fd) - before, 10);
	CALL(fault, 20); /* the caller's own faults don't count */
	CHECK_EQUAL(count_of(surface, fd) - before, 10);
	CHECK_EQUAL(puppet_end(surface, puppet, 0), 0);
	return 0;
}

static int another_process(struct surface *surface)
{
	return another_task(surface, SURFACE_PROCESS);
}

static int another_thread(struct surface *surface)
{
	return another_task(surface, SURFACE_THREAD);
}

static int a_thread_is_not_its_process(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	struct puppet *puppet = puppet_new(surface, SURFACE_THREAD);
	CHECK(puppet);
	int fd = CALL(open, &attr, CALL(process), -1, -1, 0);
	CHECK_OPENS(fd);
	disable(surface, fd);
	CALL(ioctl, fd, TALLY_IOC_RESET, 0);
	enable(surface, fd);
	puppet_do(surface, puppet, step_fault, NUMBER(100));
	disable(surface, fd);
	CHECK_BETWEEN(count_of(surface, fd), 0, 99); /* at most the few faults of the caller */
	puppet_end(surface, puppet, 0);
	return 0;
}

static int task_on_one_cpu(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	CHECK_EQUAL(CALL(pin, 0), 0);
	int fd = CALL(open, &attr, 0, 0, -1, 0);
	CHECK_OPENS(fd);
	CHECK_EQUAL(faults_counted(surface, fd, 10), 10);
	CHECK_EQUAL(CALL(pin, 1), 0);
	CHECK_EQUAL(faults_counted(surface, fd, 10), 0);
	CHECK_EQUAL(CALL(pin, 0), 0);
	CHECK_EQUAL(faults_counted(surface, fd, 10), 10);
	return 0;
}

/* On another CPU, the event's enabled time continues and its running time stands still. */
static int task_on_one_cpu_runs_there_alone(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	uint64_t there[3], away[3];
	attr.read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING;
	CHECK_EQUAL(CALL(pin, 0), 0);
	int fd = CALL(open, &attr, 0, 0, -1, 0);
	CHECK_OPENS(fd);
	CHECK_EQUAL(CALL(pin, 1), 0);
	CHECK_EQUAL(read_words(surface, fd, there, sizeof(there)), 3);
	CALL(burn, 2000000);
	CHECK_EQUAL(read_words(surface, fd, away, sizeof(away)), 3);
	CHECK(away[1] - there[1] >= 2000000);
	CHECK_EQUAL(away[2], there[2]);
	return 0;
}

static int whole_cpu(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	int fd = CALL(open, &attr, -1, 0, -1, 0);
	CHECK_OPENS(fd);
	struct puppet *older = puppet_new(surface, SURFACE_PROCESS);
	CHECK(older);
	CHECK_EQUAL(puppet_do(surface, older, step_pin, NUMBER(0)), 0);
	int64_t before = count_of(surface, fd);
	puppet_do(surface, older, step_fault, NUMBER(100));
	int64_t between = count_of(surface, fd);
	CHECK(between - before >= 100);
	CHECK_EQUAL(CALL(pin, 0), 0);
	CALL(fault, 100); /* faults of any task count */
	CHECK(count_of(surface, fd) - between >= 100);
	puppet_end(surface, older, 0);
	return 0;
}

/* The event is always enabled and running, also while the CPU is idle. */
static int whole_cpu_runs_while_idle(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	uint64_t words[3];
	attr.read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING;
	int fd = CALL(open, &attr, -1, 0, -1, 0);
	CHECK_OPENS(fd);
	CALL(sleep, 10000000);
	CHECK_EQUAL(read_words(surface, fd, words, sizeof(words)), 3);
	CHECK(words[1] >= 10000000);
	CHECK_EQUAL(words[1], words[2]);
	return 0;
}

/* The attributes that a task without privileges opens; `pid` 0 means the task that created it. */
struct attempt {
	struct tally_attr attr;
	pid_t pid;
	int cpu;
};

static int attempt_unprivileged(struct surface *surface, void *attempt_)
{
	struct attempt *attempt = attempt_;
	if (CALL(drop_privileges) < 0)
		return 125;
	int fd = CALL(open, &attempt->attr, attempt->pid, attempt->cpu, -1, 0);
	return fd < 0 ? -fd : 0;
}

/* Opens the event in a task without privileges.  Returns 0 or -errno. */
static int unprivileged_open(struct surface *surface, const struct tally_attr *attr, pid_t pid,
			     int cpu)
{
	struct attempt *attempt = CALL(shared, sizeof(*attempt));
	*attempt = (struct attempt){ *attr, pid, cpu };
	return -CALL(wait, CALL(spawn, SURFACE_PROCESS, attempt_unprivileged, attempt));
}

static struct tally_attr user_dummy(void)
{
	return (struct tally_attr){ .type = TALLY_TYPE_SOFTWARE, .size = sizeof(struct tally_attr),
				    .config = TALLY_SW_DUMMY, .flags = TALLY_ATTR_EXCLUDE_KERNEL };
}

/* True if perf_event_paranoid is between `least` and `most`, changing it if that is allowed. */
static bool paranoid_is(struct surface *surface, long least, long most)
{
	long level = CALL(sysctl, "perf_event_paranoid");
	if (level >= least && level <= most)
		return true;
	return CALL(set_sysctl, "perf_event_paranoid", most) == 0;
}

static int whole_cpu_needs_privilege(struct surface *surface)
{
	struct tally_attr attr = user_dummy();
	if (!paranoid_is(surface, 1, 2))
		SKIP(NA_CHANGES_HOST);
	CHECK_ERROR(unprivileged_open(surface, &attr, -1, 0), EACCES);
	return 0;
}

static int kernel_needs_privilege(struct surface *surface)
{
	struct tally_attr attr = user_dummy();
	if (!paranoid_is(surface, 2, 2))
		SKIP(NA_CHANGES_HOST);
	CHECK_EQUAL(unprivileged_open(surface, &attr, 0, -1), 0);
	attr.flags &= ~TALLY_ATTR_EXCLUDE_KERNEL;
	CHECK_ERROR(unprivileged_open(surface, &attr, 0, -1), EACCES);
	return 0;
}

static int paranoid_1_allows_kernel(struct surface *surface)
{
	struct tally_attr attr = user_dummy();
	CHECK_EQUAL(CALL(set_sysctl, "perf_event_paranoid", 1), 0);
	attr.flags = 0;
	CHECK_EQUAL(unprivileged_open(surface, &attr, 0, -1), 0);
	CHECK_ERROR(unprivileged_open(surface, &attr, -1, 0), EACCES);
	return 0;
}

static int paranoid_0_allows_cpus(struct surface *surface)
{
	struct tally_attr attr = user_dummy();
	CHECK_EQUAL(CALL(set_sysctl, "perf_event_paranoid", 0), 0);
	attr.flags = 0;
	CHECK_EQUAL(unprivileged_open(surface, &attr, -1, 0), 0);
	return 0;
}

static int privilege_is_above_paranoid(struct surface *surface)
{
	struct tally_attr attr = user_dummy();
	attr.flags = 0;
	if (!paranoid_is(surface, 2, 2))
		SKIP(NA_CHANGES_HOST);
	int fd = CALL(open, &attr, -1, 0, -1, 0);
	CHECK_OPENS(fd);
	return 0;
}

static int neither_task_nor_cpu(struct surface *surface)
{
	struct tally_attr attr = user_dummy();
	CHECK_ERROR(CALL(open, &attr, -1, -1, -1, 0), EINVAL);
	return 0;
}

static int no_such_task(struct surface *surface)
{
	struct tally_attr attr = user_dummy();
	CHECK_ERROR(CALL(open, &attr, INT32_MAX, -1, -1, 0), ESRCH);
	CHECK_ERROR(CALL(open, &attr, -2, -1, -1, 0), ESRCH);
	return 0;
}

static int a_task_that_is_gone(struct surface *surface)
{
	struct tally_attr attr = user_dummy();
	struct puppet *puppet = puppet_new(surface, SURFACE_PROCESS);
	CHECK(puppet);
	CHECK_EQUAL(puppet_end(surface, puppet, 0), 0);
	CHECK_ERROR(CALL(open, &attr, puppet->task, -1, -1, 0), ESRCH);
	return 0;
}

static int cpu_out_of_range(struct surface *surface)
{
	static const int cpus[] = { 1 << 20, INT32_MAX, -2, INT32_MIN };
	struct tally_attr attr = user_dummy();
	for (unsigned i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++) {
		CHECK_ERROR(CALL(open, &attr, 0, cpus[i], -1, 0), EINVAL);
		if (surface->features & SURFACE_PRIVILEGED)
			CHECK_ERROR(CALL(open, &attr, -1, cpus[i], -1, 0), EINVAL);
	}
	return 0;
}

static int cpu_is_offline(struct surface *surface)
{
	struct tally_attr attr = user_dummy();
	CHECK_EQUAL(CALL(set_online, 1, false), 0);
	CHECK_ERROR(CALL(open, &attr, -1, 1, -1, 0), ENODEV);
	CHECK_OPENS(CALL(open, &attr, 0, 1, -1, 0)); /* the task may run there later */
	CHECK_EQUAL(CALL(set_online, 1, true), 0);
	int fd = CALL(open, &attr, -1, 1, -1, 0);
	CHECK_OPENS(fd);
	return 0;
}

static int another_users_task(struct surface *surface)
{
	struct tally_attr attr = user_dummy();
	if (!paranoid_is(surface, -1, 2))
		SKIP(NA_CHANGES_HOST);
	CHECK_ERROR(unprivileged_open(surface, &attr, CALL(self), -1), EACCES);
	return 0;
}

static int open_own_child(struct surface *surface, void *unused)
{
	struct tally_attr attr = user_dummy();
	(void)unused;
	CHECK_EQUAL(CALL(drop_privileges), 0);
	struct puppet *puppet = puppet_new(surface, SURFACE_PROCESS);
	CHECK(puppet);
	int fd = CALL(open, &attr, puppet->task, -1, -1, 0);
	CHECK_OPENS(fd);
	return puppet_end(surface, puppet, 0);
}

static int own_users_task(struct surface *surface)
{
	if (!paranoid_is(surface, -1, 2))
		SKIP(NA_CHANGES_HOST);
	CHECK_EQUAL(CALL(wait, CALL(spawn, SURFACE_PROCESS, open_own_child, NULL)), 0);
	return 0;
}

/* --- A6 ------------------------------------------------------------------- */

static int no_group(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	uint64_t words[8];
	attr.read_format = TALLY_FORMAT_GROUP;
	int leader = open_self(surface, &attr);
	CHECK_OPENS(leader);
	attr.read_format = 0;
	int other = CALL(open, &attr, 0, -1, leader, TALLY_FLAG_FD_NO_GROUP);
	CHECK_OPENS(other);
	CHECK_EQUAL(read_words(surface, leader, words, sizeof(words)), 2);
	CHECK_EQUAL(words[0], 1); /* nr: the leader has no members */
	CHECK_EQUAL(disable(surface, leader), 0);
	CHECK_EQUAL(faults_counted(surface, other, 10), 10);
	return 0;
}

/* Opens an event with FD_OUTPUT and `flags`, so that it writes to `target`'s ring, and checks that
 * its samples are there. */
static int output_to_target(struct surface *surface, unsigned long flags)
{
	struct ring ring;
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_ID);
	struct tally_record record;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	int fd = CALL(open, &attr, 0, -1, ring.fd, TALLY_FLAG_FD_OUTPUT | flags);
	CHECK_OPENS(fd);
	ring_run_faults(surface, fd, 3);
	for (unsigned i = 0; i < 3; i++) {
		CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
		CHECK_EQUAL(record.sample.id, id_of(surface, fd));
	}
	CHECK_EQUAL(ring_find(&ring, TALLY_RECORD_SAMPLE, &record), 0);
	return 0;
}

static int output_alone(struct surface *surface)
{
	return output_to_target(surface, TALLY_FLAG_FD_NO_GROUP);
}

/* FD_OUTPUT without NO_GROUP also makes the event a member: it runs while its leader does. */
static int output_and_group(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	uint64_t words[8];
	int error;
	attr.read_format = TALLY_FORMAT_GROUP;
	int leader = open_self(surface, &attr);
	CHECK_OPENS(leader);
	CHECK(CALL(mmap, leader, 2 * surface->page_size, PROT_READ | PROT_WRITE, MAP_SHARED, 0,
		   &error));
	CHECK_OPENS(CALL(open, &attr, 0, -1, leader, TALLY_FLAG_FD_OUTPUT));
	CHECK_EQUAL(read_words(surface, leader, words, sizeof(words)), 3);
	CHECK_EQUAL(words[0], 2);
	return 0;
}

static int output_unmapped_target(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	int target = open_self(surface, &attr);
	CHECK_OPENS(target);
	CHECK_ERROR(CALL(open, &attr, 0, -1, target, TALLY_FLAG_FD_OUTPUT | TALLY_FLAG_FD_NO_GROUP),
		    EINVAL);
	CHECK_ERROR(CALL(open, &attr, 0, -1, target, TALLY_FLAG_FD_OUTPUT), EINVAL);
	return 0;
}

static int output_without_target(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	CHECK_OPENS(CALL(open, &attr, 0, -1, -1, TALLY_FLAG_FD_OUTPUT));
	return 0;
}

static int cgroup_needs_cpu_and_descriptor(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	int event = open_self(surface, &attr);
	CHECK_ERROR(CALL(open, &attr, -1, 0, -1, TALLY_FLAG_PID_CGROUP), EINVAL);
	CHECK_ERROR(CALL(open, &attr, event, -1, -1, TALLY_FLAG_PID_CGROUP), EINVAL);
	CHECK_ERROR(CALL(open, &attr, 2000, 0, -1, TALLY_FLAG_PID_CGROUP), EBADF);
	/* the descriptor is an event's, not a control group's */
	CHECK_ERROR(CALL(open, &attr, event, 0, -1, TALLY_FLAG_PID_CGROUP), EBADF);
	return 0;
}

static int cgroup_counts(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	int group = CALL(cgroup);
	if (group < 0)
		SKIP(NA_NEEDS_VFS);
	CHECK_EQUAL(CALL(pin, 0), 0);
	int fd = CALL(open, &attr, group, 0, -1, TALLY_FLAG_PID_CGROUP);
	CHECK_OPENS(fd);
	CHECK(faults_counted(surface, fd, 100) >= 100);
	return 0;
}

static int cloexec(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	int with = CALL(open, &attr, 0, -1, -1, TALLY_FLAG_FD_CLOEXEC),
	    without = open_self(surface, &attr);
	CHECK_EQUAL(CALL(fcntl, with, F_GETFD, 0), FD_CLOEXEC);
	CHECK_EQUAL(CALL(fcntl, without, F_GETFD, 0), 0);
	return 0;
}

static int unknown_flags(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	for (unsigned bit = 4; bit < 8 * sizeof(long); bit++)
		CHECK_ERROR(CALL(open, &attr, 0, -1, -1, 1ul << bit), EINVAL);
	return 0;
}

static int group_is_no_event(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	CHECK_ERROR(CALL(open, &attr, 0, -1, 2000, 0), EBADF); /* no open descriptor */
	CHECK_ERROR(CALL(open, &attr, 0, -1, -2, 0), EBADF);
	/* open, but not an event */
	CHECK_ERROR(CALL(open, &attr, 0, -1, CALL(other_file), 0), EBADF);
	return 0;
}

static int group_is_a_member(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	int leader = open_self(surface, &attr), member = open_member(surface, &attr, leader);
	CHECK_OPENS(member);
	CHECK_ERROR(open_member(surface, &attr, member), EINVAL);
	return 0;
}

static int group_on_other_cpu(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	int leader = CALL(open, &attr, 0, 0, -1, 0);
	CHECK_OPENS(leader);
	CHECK_ERROR(CALL(open, &attr, 0, 1, leader, 0), EINVAL);
	CHECK_OPENS(CALL(open, &attr, 0, 0, leader, 0));
	return 0;
}

static int group_on_any_and_one_cpu(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	int anywhere = open_self(surface, &attr), there = CALL(open, &attr, 0, 0, -1, 0);
	CHECK_OPENS(there);
	CHECK_ERROR(CALL(open, &attr, 0, 0, anywhere, 0), EINVAL);
	CHECK_ERROR(CALL(open, &attr, 0, -1, there, 0), EINVAL);
	return 0;
}

static int group_of_other_task(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	struct puppet *puppet = puppet_new(surface, SURFACE_THREAD);
	CHECK(puppet);
	int leader = CALL(open, &attr, puppet->task, -1, -1, 0);
	CHECK_OPENS(leader);
	CHECK_ERROR(CALL(open, &attr, 0, -1, leader, 0), EINVAL);
	puppet_end(surface, puppet, 0);
	return 0;
}

static int group_of_task_and_cpu(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	int of_task = CALL(open, &attr, 0, 0, -1, 0), of_cpu = CALL(open, &attr, -1, 0, -1, 0);
	CHECK_OPENS(of_cpu);
	CHECK_ERROR(CALL(open, &attr, -1, 0, of_task, 0), EINVAL);
	CHECK_ERROR(CALL(open, &attr, 0, 0, of_cpu, 0), EINVAL);
	return 0;
}

static int group_of_other_clock(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	int leader = open_self(surface, &attr);
	CHECK_OPENS(leader);
	attr.flags |= TALLY_ATTR_USE_CLOCKID;
	attr.clockid = 1; /* monotonic; the leader uses the kernel's own clock */
	CHECK_ERROR(open_member(surface, &attr, leader), EINVAL);
	return 0;
}

const struct clause clauses_a_targets[] = {
	{ "A5.self_any_cpu", "(0, -1) counts the caller on any CPU", SURFACE_TWO_CPUS,
	  self_on_any_cpu },
	{ "A5.self_by_number", "the caller's own number is as good as 0", 0, self_by_number },
	{ "A5.process", "(n, -1) counts that process and nobody else", 0, another_process },
	{ "A5.thread", "(n, -1) counts that thread and nobody else", 0, another_thread },
	{ "A5.thread_is_not_process", "a process's number counts its first thread alone", 0,
	  a_thread_is_not_its_process },
	{ "A5.task_on_cpu", "(n, c) counts the task while it is on that CPU", SURFACE_TWO_CPUS,
	  task_on_one_cpu },
	{ "A5.task_on_cpu_times",
	  "(n, c) is enabled while the task runs elsewhere, but not running", SURFACE_TWO_CPUS,
	  task_on_one_cpu_runs_there_alone },
	{ "A5.cpu", "(-1, c) counts every task of that CPU", SURFACE_PRIVILEGED, whole_cpu },
	{ "A5.cpu_always_runs", "(-1, c) is enabled and running, whoever sleeps",
	  SURFACE_PRIVILEGED, whole_cpu_runs_while_idle },
	{ "A5.cpu_needs_privilege_eacces",
	  "(-1, c) without privilege gives EACCES from paranoid 1 on", 0,
	  whole_cpu_needs_privilege },
	{ "A5.kernel_needs_privilege_eacces",
	  "the kernel's part without privilege gives EACCES from paranoid 2 on", 0,
	  kernel_needs_privilege },
	{ "A5.paranoid_1", "paranoid 1 lets anyone count the kernel in their tasks",
	  SURFACE_MAY_SET_SYSCTLS, paranoid_1_allows_kernel },
	{ "A5.paranoid_0", "paranoid 0 lets anyone count a CPU", SURFACE_MAY_SET_SYSCTLS,
	  paranoid_0_allows_cpus },
	{ "A5.privileged", "the privileged may count a CPU and the kernel at paranoid 2",
	  SURFACE_PRIVILEGED, privilege_is_above_paranoid },
	{ "A5.minus_both_einval", "(-1, -1) gives EINVAL", 0, neither_task_nor_cpu },
	{ "A5.no_such_task_esrch", "a task that never was gives ESRCH", 0, no_such_task },
	{ "A5.gone_task_esrch", "a task that is gone gives ESRCH", 0, a_task_that_is_gone },
	{ "A5.cpu_out_of_range_einval", "a CPU that can't be gives EINVAL", 0, cpu_out_of_range },
	{ "A5.cpu_offline_enodev", "a CPU that is offline gives ENODEV",
	  SURFACE_HOTPLUG | SURFACE_TWO_CPUS, cpu_is_offline },
	{ "A5.other_users_task_eacces", "another user's task gives EACCES", SURFACE_PRIVILEGED,
	  another_users_task },
	{ "A5.own_users_task", "a task of the same user may be counted", 0, own_users_task },

	{ "A6.no_group", "FD_NO_GROUP makes group_fd no leader", 0, no_group },
	{ "A6.output", "FD_OUTPUT sends the event's records to group_fd's ring", 0, output_alone },
	{ "A6.output_and_group", "FD_OUTPUT alone also makes it a member of the group", 0,
	  output_and_group },
	{ "A6.output_unmapped_einval", "FD_OUTPUT to an event without a ring gives EINVAL", 0,
	  output_unmapped_target },
	{ "A6.output_without_target", "FD_OUTPUT with group_fd -1 does nothing", 0,
	  output_without_target },
	{ "A6.cgroup_refusals",
	  "PID_CGROUP wants a CPU and a control group's descriptor: EINVAL, EBADF",
	  SURFACE_PRIVILEGED, cgroup_needs_cpu_and_descriptor },
	{ "A6.cgroup", "PID_CGROUP counts the tasks of a control group on a CPU",
	  SURFACE_PRIVILEGED, cgroup_counts },
	{ "A6.cloexec", "FD_CLOEXEC is set when asked for, and only then", 0, cloexec },
	{ "A6.unknown_einval", "each unknown flag gives EINVAL", 0, unknown_flags },
	{ "A6.group_no_event_ebadf", "a group_fd that is no event gives EBADF", 0,
	  group_is_no_event },
	{ "A6.group_member_einval", "a group_fd that is no leader gives EINVAL", 0,
	  group_is_a_member },
	{ "A6.group_other_cpu_einval", "a leader on another CPU gives EINVAL", SURFACE_TWO_CPUS,
	  group_on_other_cpu },
	{ "A6.group_any_and_one_cpu_einval", "any CPU and one CPU don't make a group: EINVAL", 0,
	  group_on_any_and_one_cpu },
	{ "A6.group_other_task_einval", "a leader on another task gives EINVAL", 0,
	  group_of_other_task },
	{ "A6.group_task_and_cpu_einval", "a task's event and a CPU's don't make a group: EINVAL",
	  SURFACE_PRIVILEGED, group_of_task_and_cpu },
	{ "A6.group_other_clock_einval", "a leader with another clock gives EINVAL", 0,
	  group_of_other_clock },
	{ NULL, NULL, 0, NULL }
};
