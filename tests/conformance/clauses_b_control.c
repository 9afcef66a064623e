/* SPEC rows B3 and B4: enabling, disabling and the other ioctls, on events and on groups. */
#include "counting.h"
#include "puppet.h"
#include "ring_walk.h"

#include <errno.h>

#define IOCTL(fd, request, argument) CALL(ioctl, fd, TALLY_IOC_##request, (uintptr_t)(argument))

/* Counts user-mode faults exactly. */
static struct tally_attr faults_attr(void)
{
	return (struct tally_attr){ .type = TALLY_TYPE_SOFTWARE,
				    .size = sizeof(struct tally_attr),
				    .config = TALLY_SW_PAGE_FAULTS,
				    .flags = TALLY_ATTR_EXCLUDE_KERNEL };
}

static int64_t faults_counted(struct surface *surface, int fd, unsigned count)
{
	int64_t before = count_of(surface, fd);
	CALL(fault, count);
	return count_of(surface, fd) - before;
}

/* --- B3: on and off ------------------------------------------------------- */

static int disabled_counts_nothing(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	uint64_t words[3];
	attr.flags |= TALLY_ATTR_DISABLED;
	attr.read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING;
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CALL(fault, 10);
	CALL(sleep, 1000000);
	CALL(fault, 10);
	CHECK_EQUAL(read_words(surface, fd, words, sizeof(words)), 3);
	CHECK_EQUAL(words[0], 0);
	CHECK_EQUAL(words[1], 0);
	CHECK_EQUAL(words[2], 0);
	return 0;
}

static int enabled_when_opened(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_EQUAL(faults_counted(surface, fd, 10), 10);
	return 0;
}

static int enable_and_disable(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	attr.flags |= TALLY_ATTR_DISABLED;
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_EQUAL(IOCTL(fd, ENABLE, 0), 0);
	CALL(fault, 10);
	CHECK_EQUAL(IOCTL(fd, DISABLE, 0), 0);
	CHECK_EQUAL(count_of(surface, fd), 10);
	CALL(fault, 10);
	CHECK_EQUAL(count_of(surface, fd), 10); /* disabling keeps the value */
	CHECK_EQUAL(IOCTL(fd, ENABLE, 0), 0);
	CALL(fault, 5);
	CHECK_EQUAL(IOCTL(fd, DISABLE, 0), 0);
	CHECK_EQUAL(count_of(surface, fd), 15); /* counting continues from the value */
	return 0;
}

static int twice_is_once(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_EQUAL(IOCTL(fd, ENABLE, 0), 0);
	CHECK_EQUAL(IOCTL(fd, ENABLE, 0), 0);
	CHECK_EQUAL(faults_counted(surface, fd, 10), 10);
	CHECK_EQUAL(IOCTL(fd, DISABLE, 0), 0);
	CHECK_EQUAL(IOCTL(fd, DISABLE, 0), 0);
	CHECK_EQUAL(faults_counted(surface, fd, 10), 0);
	CHECK_EQUAL(IOCTL(fd, ENABLE, 0), 0);
	CHECK_EQUAL(faults_counted(surface, fd, 10), 10);
	return 0;
}

static int enable_on_another_task(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	struct puppet *puppet = puppet_new(surface, SURFACE_PROCESS);
	CHECK(puppet);
	puppet_do(surface, puppet, step_fault, NUMBER(1));
	attr.flags |= TALLY_ATTR_DISABLED;
	int fd = CALL(open, &attr, puppet->task, -1, -1, 0);
	CHECK_OPENS(fd);
	puppet_do(surface, puppet, step_fault, NUMBER(10));
	CHECK_EQUAL(count_of(surface, fd), 0);
	enable(surface, fd);
	puppet_do(surface, puppet, step_fault, NUMBER(10));
	disable(surface, fd);
	puppet_do(surface, puppet, step_fault, NUMBER(10));
	CHECK_EQUAL(count_of(surface, fd), 10);
	return puppet_end(surface, puppet, 0);
}

/* A task opens two disabled events on itself, the first with enable_on_exec, and then executes
 * another program. */
struct exec_plan {
	uint64_t flags; /* attr.flags of the first event */
	int fds[2];
	int64_t before[2], after[2];
};

static int after_exec(struct surface *surface, void *plan_)
{
	struct exec_plan *plan = plan_;
	for (unsigned i = 0; i < 2; i++)
		plan->after[i] = faults_counted(surface, plan->fds[i], 50);
	return 0;
}

static int before_exec(struct surface *surface, void *plan_)
{
	struct exec_plan *plan = plan_;
	struct tally_attr attr = faults_attr();
	attr.flags |= TALLY_ATTR_DISABLED;
	plan->fds[1] = open_self(surface, &attr);
	attr.flags |= plan->flags;
	plan->fds[0] = open_self(surface, &attr);
	CALL(fault, 20);
	for (unsigned i = 0; i < 2; i++)
		plan->before[i] = count_of(surface, plan->fds[i]);
	return CALL(exec, "another", after_exec, plan, 0);
}

static int enable_on_exec(struct surface *surface)
{
	struct exec_plan *plan = CALL(shared, sizeof(*plan));
	plan->flags = TALLY_ATTR_ENABLE_ON_EXEC;
	CHECK_EQUAL(CALL(wait, CALL(spawn, SURFACE_PROCESS, before_exec, plan)), 0);
	CHECK_EQUAL(plan->before[0], 0);
	CHECK_EQUAL(plan->after[0], 50);
	CHECK_EQUAL(plan->before[1], 0);
	CHECK_EQUAL(plan->after[1], 0); /* the event without enable_on_exec stays disabled */
	return 0;
}

static int body_of_exec(struct surface *surface, void *unused)
{
	(void)unused;
	CALL(fault, 50);
	return 0;
}

static int step_exec(struct surface *surface, void *unused)
{
	return CALL(exec, "another", body_of_exec, unused, 1);
}

/* The setup for counting a whole command: on a task that waits before its exec. */
static int enable_on_exec_of_another_task(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	uint64_t words[2];
	struct puppet *puppet = puppet_new(surface, SURFACE_PROCESS);
	CHECK(puppet);
	attr.flags |= TALLY_ATTR_DISABLED | TALLY_ATTR_ENABLE_ON_EXEC;
	attr.read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED;
	int fd = CALL(open, &attr, puppet->task, -1, -1, TALLY_FLAG_FD_CLOEXEC);
	CHECK_OPENS(fd);
	puppet_do(surface, puppet, step_fault, NUMBER(10));
	CHECK_EQUAL(read_words(surface, fd, words, sizeof(words)), 2);
	CHECK_EQUAL(words[0], 0);
	CHECK_EQUAL(words[1], 0);
	puppet->step = step_exec;
	puppet->argument = puppet;
	CALL(post, &puppet->asked, 2);
	CHECK_EQUAL(CALL(wait, puppet->task), 0);
	CHECK_EQUAL(read_words(surface, fd, words, sizeof(words)), 2);
	CHECK(words[0] >= 50); /* the new program's start causes faults too */
	CHECK(words[1] > 0);
	return 0;
}

static int enable_on_exec_of_enabled(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	attr.flags |= TALLY_ATTR_ENABLE_ON_EXEC; /* already enabled: the exec changes nothing */
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_EQUAL(faults_counted(surface, fd, 10), 10);
	return 0;
}

/* --- B3: the other requests ----------------------------------------------- */

static int reset_clears_value(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CALL(fault, 10);
	CHECK(count_of(surface, fd) >= 10);
	CHECK_EQUAL(IOCTL(fd, RESET, 0), 0);
	CHECK_EQUAL(count_of(surface, fd), 0);
	CALL(fault, 5); /* the event keeps counting */
	CHECK_EQUAL(count_of(surface, fd), 5);
	return 0;
}

static int reset_keeps_times(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	uint64_t before[3], after[3];
	attr.read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING;
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CALL(burn, 1000000);
	disable(surface, fd);
	CHECK_EQUAL(read_words(surface, fd, before, sizeof(before)), 3);
	CHECK_EQUAL(IOCTL(fd, RESET, 0), 0);
	CHECK_EQUAL(read_words(surface, fd, after, sizeof(after)), 3);
	CHECK_EQUAL(after[0], 0);
	CHECK_EQUAL(after[1], before[1]);
	CHECK_EQUAL(after[2], before[2]);
	return 0;
}

static int refresh(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, 0);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CALL(fault, 10);
	CHECK_EQUAL(count_of(surface, fd), 0);
	CHECK_EQUAL(IOCTL(fd, REFRESH, 3), 0);
	CALL(fault, 10);
	int64_t count = count_of(surface, fd);
	/* REFRESH enables it, and the third overflow or a moment later disables it again */
	CHECK_BETWEEN(count, 3, 10);
	CHECK_EQUAL(faults_counted(surface, fd, 10), 0);
	CHECK_EQUAL(IOCTL(fd, REFRESH, 1), 0);
	CALL(fault, 1);
	CHECK_EQUAL(count_of(surface, fd), count + 1);
	return 0;
}

static int refresh_of_counting(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_ERROR(IOCTL(fd, REFRESH, 1), EINVAL);
	return 0;
}

static int period_changes(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1000, TALLY_SAMPLE_IP);
	struct ring ring;
	uint64_t period = 10;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_faults(surface, ring.fd, 20);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 0);
	CHECK_EQUAL(IOCTL(ring.fd, PERIOD, &period), 0);
	ring_run_faults(surface, ring.fd, 30);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 3);
	return 0;
}

static int period_of_counting(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	uint64_t period = 10;
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_ERROR(IOCTL(fd, PERIOD, &period), EINVAL);
	return 0;
}

static int period_bad_pointer(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(10, 0);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_ERROR(IOCTL(fd, PERIOD, SURFACE_BAD_POINTER), EFAULT);
	return 0;
}

static int set_output(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_ID);
	struct tally_record record;
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	ring_run_faults(surface, fd, 1);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 0);
	CHECK_EQUAL(IOCTL(fd, SET_OUTPUT, ring.fd), 0);
	ring_run_faults(surface, fd, 1);
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.sample.id, id_of(surface, fd));
	CHECK_EQUAL(IOCTL(fd, SET_OUTPUT, -1), 0); /* its output goes nowhere again */
	ring_run_faults(surface, fd, 1);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 0);
	return 0;
}

static int set_output_refusals(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, 0);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_ERROR(IOCTL(fd, SET_OUTPUT, 2000), EBADF);
	CHECK_ERROR(IOCTL(fd, SET_OUTPUT, fd), EINVAL);
	return 0;
}

static int set_filter(struct surface *surface)
{
	struct tally_attr attr = hit_attr(surface);
	int none = open_self(surface, &attr), all = open_self(surface, &attr);
	CHECK_OPENS(all);
	CHECK_EQUAL(IOCTL(none, SET_FILTER, "common_pid == 0"), 0);
	CHECK_EQUAL(IOCTL(all, SET_FILTER, "common_pid != 0"), 0);
	CALL(hit, 10);
	CHECK_EQUAL(count_of(surface, none), 0);
	CHECK_EQUAL(count_of(surface, all), 10);
	/* the event has a filter already */
	CHECK_ERROR(IOCTL(all, SET_FILTER, "common_pid == 0"), EEXIST);
	return 0;
}

static int set_filter_bad(struct surface *surface)
{
	struct tally_attr attr = hit_attr(surface);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_ERROR(IOCTL(fd, SET_FILTER, "no_such_field == 1"), EINVAL);
	CHECK_ERROR(IOCTL(fd, SET_FILTER, "common_pid =="), EINVAL);
	CHECK_ERROR(IOCTL(fd, SET_FILTER, SURFACE_BAD_POINTER), EFAULT);
	return 0;
}

static int set_filter_of_software(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_ERROR(IOCTL(fd, SET_FILTER, "common_pid == 0"), EINVAL);
	return 0;
}

static int ids_differ(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	uint64_t ids[20];
	for (unsigned i = 0; i < 20; i++) {
		int fd = open_self(surface, &attr);
		CHECK_OPENS(fd);
		CHECK_EQUAL(IOCTL(fd, ID, &ids[i]), 0);
		CHECK(ids[i] != 0);
		CALL(close, fd);
		for (unsigned j = 0; j < i; j++)
			/* an id is not used again, even after the event is closed */
			CHECK(ids[i] != ids[j]);
	}
	return 0;
}

static int id_bad_pointer(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_ERROR(IOCTL(fd, ID, SURFACE_BAD_POINTER), EFAULT);
	return 0;
}

/* Attaches a program that passes or drops hits, makes 10 hits, and checks that `wanted` are counted
 * and sampled. */
static int attach_and_hit(struct surface *surface, bool passes, unsigned wanted)
{
	struct tally_attr attr = ring_hits_attr(surface, 1, TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	int program = CALL(bpf_program, passes);
	CHECK_OPENS(program);
	CHECK_EQUAL(IOCTL(ring.fd, SET_BPF, program), 0);
	ring_run_hits(surface, ring.fd, 10);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), wanted);
	CHECK_EQUAL(count_of(surface, ring.fd), wanted);
	CHECK_ERROR(IOCTL(ring.fd, SET_BPF, program), EEXIST); /* the event has a program already */
	return 0;
}

static int set_bpf(struct surface *surface)
{
	return attach_and_hit(surface, true, 10);
}

/* The tracepoint runs its programs, not the event.  While this program is attached, no event in the
 * system counts the tracepoint's hits. */
static int set_bpf_drops(struct surface *surface)
{
	return attach_and_hit(surface, false, 0);
}

static int set_bpf_of_no_program(struct surface *surface)
{
	struct tally_attr attr = hit_attr(surface);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_ERROR(IOCTL(fd, SET_BPF, 2000), EBADF);
	CHECK_ERROR(IOCTL(fd, SET_BPF, fd), EINVAL);
	return 0;
}

static int pause_output(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	CHECK_EQUAL(IOCTL(ring.fd, PAUSE_OUTPUT, 1), 0);
	ring_run_faults(surface, ring.fd, 10);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 0);
	CHECK_EQUAL(count_of(surface, ring.fd), 10); /* a paused event keeps counting */
	CHECK_EQUAL(IOCTL(ring.fd, PAUSE_OUTPUT, 0), 0);
	ring_run_faults(surface, ring.fd, 10);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 10);
	return 0;
}

static int pause_without_ring(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_ERROR(IOCTL(fd, PAUSE_OUTPUT, 1), EINVAL);
	CHECK_ERROR(IOCTL(fd, PAUSE_OUTPUT, 0), EINVAL);
	return 0;
}

struct bpf_query {
	uint32_t room, count, ids[4];
};

static int query_bpf(struct surface *surface)
{
	struct tally_attr attr = hit_attr(surface);
	struct bpf_query query = { .room = 4, .count = 99 };
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_EQUAL(IOCTL(fd, QUERY_BPF, &query), 0);
	CHECK_EQUAL(query.count, 0);
	int program = CALL(bpf_program, true);
	CHECK_EQUAL(IOCTL(fd, SET_BPF, program), 0);
	CHECK_EQUAL(IOCTL(fd, QUERY_BPF, &query), 0);
	CHECK_EQUAL(query.count, 1);
	CHECK(query.ids[0] != 0);
	return 0;
}

static int query_bpf_of_software(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	struct bpf_query query = { .room = 4 };
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_ERROR(IOCTL(fd, QUERY_BPF, &query), EINVAL);
	return 0;
}

static int modify_breakpoint(struct surface *surface)
{
	struct tally_attr attr = breakpoint_attr(surface, TALLY_BREAKPOINT_W);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CALL(touch, TALLY_BREAKPOINT_R, 10);
	CHECK_EQUAL(count_of(surface, fd), 0);
	attr.bp_type = TALLY_BREAKPOINT_R | TALLY_BREAKPOINT_W;
	CHECK_EQUAL(IOCTL(fd, MODIFY_ATTRIBUTES, &attr), 0);
	CALL(touch, TALLY_BREAKPOINT_R, 10);
	CHECK_EQUAL(count_of(surface, fd), 10);
	return 0;
}

static int modify_of_software(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_ERROR(IOCTL(fd, MODIFY_ATTRIBUTES, &attr), EOPNOTSUPP);
	CHECK_ERROR(IOCTL(fd, MODIFY_ATTRIBUTES, SURFACE_BAD_POINTER), EFAULT);
	attr.type = TALLY_TYPE_TRACEPOINT;
	/* the type of an event can't change */
	CHECK_ERROR(IOCTL(fd, MODIFY_ATTRIBUTES, &attr), EINVAL);
	return 0;
}

static int unknown_request(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_ERROR(CALL(ioctl, fd, 0x240c, 0), ENOTTY);
	CHECK_ERROR(CALL(ioctl, fd, 0x2350, 0), ENOTTY);
	return 0;
}

/* --- The whole group ------------------------------------------------------ */

enum { GROUP = 3 };

/* Opens a leader and two members that count page faults. */
static int open_group(struct surface *surface, int fds[GROUP], uint64_t leader_flags,
		      uint64_t member_flags)
{
	struct tally_attr attr = faults_attr();
	attr.flags |= leader_flags;
	fds[0] = open_self(surface, &attr);
	attr = faults_attr();
	attr.flags |= member_flags;
	for (unsigned i = 1; i < GROUP; i++)
		fds[i] = open_member(surface, &attr, fds[0]);
	return fds[GROUP - 1];
}

/* Makes 10 faults and checks how many of them each event counts. */
static int check_group(struct surface *surface, const int fds[GROUP], int64_t first, int64_t second,
		       int64_t third)
{
	int64_t before[GROUP], wanted[GROUP] = { first, second, third };
	for (unsigned i = 0; i < GROUP; i++)
		before[i] = count_of(surface, fds[i]);
	CALL(fault, 10);
	for (unsigned i = 0; i < GROUP; i++)
		CHECK_EQUAL(count_of(surface, fds[i]) - before[i], wanted[i]);
	return 0;
}

#define CHECK_GROUP(fds, ...) \
	do { \
		if (check_group(surface, fds, __VA_ARGS__)) \
			return CLAUSE_FAILED; \
	} while (0)

static int group_disable_and_enable(struct surface *surface)
{
	int fds[GROUP];
	CHECK_OPENS(open_group(surface, fds, 0, 0));
	CHECK_GROUP(fds, 10, 10, 10);
	CHECK_EQUAL(IOCTL(fds[0], DISABLE, TALLY_IOC_FLAG_GROUP), 0);
	CHECK_GROUP(fds, 0, 0, 0);
	/* enables only the leader: the members were disabled themselves */
	CHECK_EQUAL(IOCTL(fds[0], ENABLE, 0), 0);
	CHECK_GROUP(fds, 10, 0, 0);
	CHECK_EQUAL(IOCTL(fds[0], ENABLE, TALLY_IOC_FLAG_GROUP), 0);
	CHECK_GROUP(fds, 10, 10, 10);
	return 0;
}

static int group_request_on_member(struct surface *surface)
{
	int fds[GROUP];
	CHECK_OPENS(open_group(surface, fds, 0, 0));
	CHECK_EQUAL(IOCTL(fds[2], DISABLE, TALLY_IOC_FLAG_GROUP), 0);
	CHECK_GROUP(fds, 0, 0, 0);
	CHECK_EQUAL(IOCTL(fds[1], ENABLE, TALLY_IOC_FLAG_GROUP), 0);
	CHECK_GROUP(fds, 10, 10, 10);
	return 0;
}

static int group_reset(struct surface *surface)
{
	int fds[GROUP];
	CHECK_OPENS(open_group(surface, fds, 0, 0));
	CALL(fault, 10);
	IOCTL(fds[0], DISABLE, TALLY_IOC_FLAG_GROUP);
	CHECK_EQUAL(IOCTL(fds[0], RESET, 0), 0);
	CHECK_EQUAL(count_of(surface, fds[0]), 0);
	CHECK(count_of(surface, fds[1]) >= 10);
	CHECK_EQUAL(IOCTL(fds[0], RESET, TALLY_IOC_FLAG_GROUP), 0);
	CHECK_EQUAL(count_of(surface, fds[1]), 0);
	CHECK_EQUAL(count_of(surface, fds[2]), 0);
	return 0;
}

/* --- B4 ------------------------------------------------------------------- */

static int disabled_leader_stops_group(struct surface *surface)
{
	int fds[GROUP];
	CHECK_OPENS(open_group(surface, fds, 0, 0));
	CHECK_EQUAL(IOCTL(fds[0], DISABLE, 0), 0);
	CHECK_GROUP(fds, 0, 0, 0);
	CHECK_EQUAL(IOCTL(fds[0], ENABLE, 0), 0); /* the members themselves were never disabled */
	CHECK_GROUP(fds, 10, 10, 10);
	return 0;
}

static int leader_opened_disabled(struct surface *surface)
{
	int fds[GROUP];
	CHECK_OPENS(open_group(surface, fds, TALLY_ATTR_DISABLED, 0));
	CHECK_GROUP(fds, 0, 0, 0);
	CHECK_EQUAL(IOCTL(fds[1], ENABLE, 0), 0); /* the member is enabled, but its leader isn't */
	CHECK_GROUP(fds, 0, 0, 0);
	CHECK_EQUAL(IOCTL(fds[0], ENABLE, 0), 0);
	CHECK_GROUP(fds, 10, 10, 10);
	return 0;
}

static int disabled_member_stops_alone(struct surface *surface)
{
	int fds[GROUP];
	CHECK_OPENS(open_group(surface, fds, 0, 0));
	CHECK_EQUAL(IOCTL(fds[1], DISABLE, 0), 0);
	CHECK_GROUP(fds, 10, 0, 10);
	CHECK_EQUAL(IOCTL(fds[1], ENABLE, 0), 0);
	CHECK_GROUP(fds, 10, 10, 10);
	return 0;
}

static int member_opened_disabled(struct surface *surface)
{
	int fds[GROUP];
	CHECK_OPENS(open_group(surface, fds, 0, TALLY_ATTR_DISABLED));
	CHECK_GROUP(fds, 10, 0, 0);
	CHECK_EQUAL(IOCTL(fds[2], ENABLE, 0), 0);
	CHECK_GROUP(fds, 10, 0, 10);
	return 0;
}

static int times_of_member_under_disabled_leader(struct surface *surface)
{
	struct tally_attr attr = faults_attr();
	uint64_t before[3], after[3];
	attr.read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING;
	int leader = open_self(surface, &attr), member = open_member(surface, &attr, leader);
	CHECK_OPENS(member);
	CALL(burn, 1000000);
	disable(surface, leader);
	CHECK_EQUAL(read_words(surface, member, before, sizeof(before)), 3);
	CHECK(before[1] >= 1000000);
	CALL(burn, 1000000);
	CHECK_EQUAL(read_words(surface, member, after, sizeof(after)), 3);
	CHECK_EQUAL(after[1], before[1]);
	CHECK_EQUAL(after[2], before[2]);
	return 0;
}

#define TRACE (SURFACE_TRACEPOINTS | SURFACE_PRIVILEGED)

const struct clause clauses_b_control[] = {
	{ "B3.disabled", "an event opened disabled counts nothing and has no time", 0,
	  disabled_counts_nothing },
	{ "B3.enabled_when_opened", "without disabled it counts from the start", 0,
	  enabled_when_opened },
	{ "B3.enable_disable",
	  "ENABLE and DISABLE; a disabled event keeps its value and goes on from it", 0,
	  enable_and_disable },
	{ "B3.twice_is_once", "ENABLE or DISABLE twice is the same as once", 0, twice_is_once },
	{ "B3.enable_on_another_task",
	  "ENABLE and DISABLE act at once on a task that runs elsewhere", 0,
	  enable_on_another_task },
	{ "B3.enable_on_exec", "enable_on_exec enables at exec, and only the event that asks", 0,
	  enable_on_exec },
	{ "B3.enable_on_exec_of_task",
	  "enable_on_exec on another task counts its new program from the start", 0,
	  enable_on_exec_of_another_task },
	{ "B3.enable_on_exec_enabled",
	  "enable_on_exec leaves an event that is opened enabled as it is", 0,
	  enable_on_exec_of_enabled },
	{ "B3.reset", "RESET sets the count to 0, and it goes on from there", 0,
	  reset_clears_value },
	{ "B3.reset_keeps_times", "RESET leaves the times", 0, reset_keeps_times },
	{ "B3.refresh", "REFRESH n enables for n overflows", 0, refresh },
	{ "B3.refresh_counting_einval", "REFRESH of an event that doesn't sample gives EINVAL", 0,
	  refresh_of_counting },
	{ "B3.period", "PERIOD sets the period of what is sampled from here on", 0,
	  period_changes },
	{ "B3.period_counting_einval", "PERIOD of an event that doesn't sample gives EINVAL", 0,
	  period_of_counting },
	{ "B3.period_efault", "PERIOD with a bad pointer gives EFAULT", 0, period_bad_pointer },
	{ "B3.set_output", "SET_OUTPUT sends records to another event's ring, and with -1 to none",
	  0, set_output },
	{ "B3.set_output_refusals", "SET_OUTPUT to no event gives EBADF, to itself EINVAL", 0,
	  set_output_refusals },
	{ "B3.set_filter", "SET_FILTER counts the hits that pass; a second gives EEXIST", TRACE,
	  set_filter },
	{ "B3.set_filter_einval", "a bad filter gives EINVAL, a bad pointer EFAULT", TRACE,
	  set_filter_bad },
	{ "B3.set_filter_software_einval", "SET_FILTER of an event without fields gives EINVAL", 0,
	  set_filter_of_software },
	{ "B3.id", "ID gives a number that no other event has or had", 0, ids_differ },
	{ "B3.id_efault", "ID with a bad pointer gives EFAULT", 0, id_bad_pointer },
	{ "B3.set_bpf", "SET_BPF attaches a program that lets hits pass; a second gives EEXIST",
	  TRACE | SURFACE_BPF, set_bpf },
	{ "B3.set_bpf_drops",
	  "a program that gives 0 drops the hits of every event of that tracepoint",
	  TRACE | SURFACE_BPF | SURFACE_MAY_SET_SYSCTLS, set_bpf_drops },
	{ "B3.set_bpf_refusals", "SET_BPF of no descriptor gives EBADF, of no program EINVAL",
	  TRACE | SURFACE_BPF, set_bpf_of_no_program },
	{ "B3.pause_output", "PAUSE_OUTPUT keeps records away; the count goes on", 0,
	  pause_output },
	{ "B3.pause_output_no_ring_einval", "PAUSE_OUTPUT without a ring gives EINVAL", 0,
	  pause_without_ring },
	{ "B3.query_bpf", "QUERY_BPF gives the ids of the attached programs", TRACE | SURFACE_BPF,
	  query_bpf },
	{ "B3.query_bpf_software_einval", "QUERY_BPF of what is no tracepoint gives EINVAL",
	  SURFACE_PRIVILEGED, query_bpf_of_software },
	{ "B3.modify_attributes", "MODIFY_ATTRIBUTES changes a breakpoint", SURFACE_BREAKPOINTS,
	  modify_breakpoint },
	{ "B3.modify_attributes_refusals",
	  "MODIFY_ATTRIBUTES of another event gives EOPNOTSUPP, to another type EINVAL", 0,
	  modify_of_software },
	{ "B3.unknown_enotty", "an unknown request gives ENOTTY", 0, unknown_request },
	{ "B3.group_enable_disable", "IOC_FLAG_GROUP enables and disables leader and members", 0,
	  group_disable_and_enable },
	{ "B3.group_of_member", "IOC_FLAG_GROUP on a member means its whole group", 0,
	  group_request_on_member },
	{ "B3.group_reset", "RESET is the event's own, with IOC_FLAG_GROUP the group's", 0,
	  group_reset },

	{ "B4.disabled_leader", "a disabled leader stops its group, and enabling it starts it", 0,
	  disabled_leader_stops_group },
	{ "B4.leader_opened_disabled", "a group whose leader was opened disabled waits for it", 0,
	  leader_opened_disabled },
	{ "B4.disabled_member", "disabling a member stops that member alone", 0,
	  disabled_member_stops_alone },
	{ "B4.member_opened_disabled", "a member opened disabled waits for its own ENABLE", 0,
	  member_opened_disabled },
	{ "B4.times_stand", "a member's times stand while its leader is disabled", 0,
	  times_of_member_under_disabled_leader },
	{ NULL, NULL, 0, NULL }
};
