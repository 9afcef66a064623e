/* SPEC row B9: events that a task's descendants inherit.
 *
 * These clauses count breakpoint hits.  A starting process makes an unknown number of faults, but
 * writes the watched variable only when a clause tells it to. */
#include "counting.h"
#include "puppet.h"
#include "ring_walk.h"

#include <errno.h>

/* Counts writes of the watched variable in user mode. */
static struct tally_attr writes_attr(struct surface *surface, uint64_t flags)
{
	struct tally_attr attr = breakpoint_attr(surface, TALLY_BREAKPOINT_W);
	attr.flags |= flags;
	return attr;
}

static int open_inherited(struct surface *surface)
{
	struct tally_attr attr = writes_attr(surface, TALLY_ATTR_INHERIT);
	return open_self(surface, &attr);
}

/* Runs a child that writes `count` times and exits.  Returns 0 if it did. */
static int child_touches(struct surface *surface, enum surface_task_kind kind, unsigned count)
{
	return CALL(wait, CALL(spawn, kind, step_touch, NUMBER(count)));
}

static int not_without_inherit(struct surface *surface)
{
	struct tally_attr attr = writes_attr(surface, 0);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_EQUAL(child_touches(surface, SURFACE_PROCESS, 10), 0);
	CHECK_EQUAL(child_touches(surface, SURFACE_THREAD, 10), 0);
	CHECK_EQUAL(count_of(surface, fd), 0);
	return 0;
}

static int child_process(struct surface *surface)
{
	int fd = open_inherited(surface);
	CHECK_OPENS(fd);
	CALL(touch, TALLY_BREAKPOINT_W, 3);
	CHECK_EQUAL(child_touches(surface, SURFACE_PROCESS, 10), 0);
	CHECK_EQUAL(count_of(surface, fd), 13);
	return 0;
}

static int child_thread(struct surface *surface)
{
	int fd = open_inherited(surface);
	CHECK_OPENS(fd);
	CALL(touch, TALLY_BREAKPOINT_W, 3);
	CHECK_EQUAL(child_touches(surface, SURFACE_THREAD, 10), 0);
	CHECK_EQUAL(count_of(surface, fd), 13);
	return 0;
}

/* Writes as often as its generation's number, and has one child: process and thread by turns. */
static int generation(struct surface *surface, void *left_)
{
	uintptr_t left = (uintptr_t)left_;
	CALL(touch, TALLY_BREAKPOINT_W, (unsigned)left);
	if (left == 1)
		return 0;
	pid_t child = CALL(spawn, left % 2 ? SURFACE_THREAD : SURFACE_PROCESS, generation,
			   NUMBER(left - 1));
	return CALL(wait, child);
}

static int nested_children(struct surface *surface)
{
	int fd = open_inherited(surface);
	CHECK_OPENS(fd);
	CHECK_EQUAL(CALL(wait, CALL(spawn, SURFACE_PROCESS, generation, NUMBER(6))), 0);
	CHECK_EQUAL(count_of(surface, fd), 6 + 5 + 4 + 3 + 2 + 1);
	return 0;
}

/* Has three children at a time, `depth` generations deep; each writes 5 times. */
static int bush(struct surface *surface, void *depth_)
{
	uintptr_t depth = (uintptr_t)depth_;
	pid_t children[3];
	CALL(touch, TALLY_BREAKPOINT_W, 5);
	for (unsigned i = 0; depth && i < 3; i++)
		children[i] = CALL(spawn, i == 1 ? SURFACE_THREAD : SURFACE_PROCESS, bush,
				   NUMBER(depth - 1));
	for (unsigned i = 0; depth && i < 3; i++)
		if (CALL(wait, children[i]) != 0)
			return 1;
	return 0;
}

static int tree_of_tasks(struct surface *surface)
{
	int fd = open_inherited(surface);
	CHECK_OPENS(fd);
	CHECK_EQUAL(bush(surface, NUMBER(2)), 0);
	CHECK_EQUAL(count_of(surface, fd), 5 * (1 + 3 + 9));
	return 0;
}

static int older_children(struct surface *surface)
{
	struct puppet *process = puppet_new(surface, SURFACE_PROCESS),
		      *thread = puppet_new(surface, SURFACE_THREAD);
	CHECK(process && thread);
	int fd = open_inherited(surface);
	CHECK_OPENS(fd);
	puppet_do(surface, process, step_touch, NUMBER(10));
	puppet_do(surface, thread, step_touch, NUMBER(10));
	CHECK_EQUAL(count_of(surface, fd), 0);
	CHECK_EQUAL(puppet_end(surface, process, 0), 0);
	CHECK_EQUAL(puppet_end(surface, thread, 0), 0);
	CHECK_EQUAL(count_of(surface, fd), 0);
	return 0;
}

static int step_child_touches(struct surface *surface, void *count)
{
	return child_touches(surface, SURFACE_PROCESS, (unsigned)(uintptr_t)count);
}

static int new_children_of_older(struct surface *surface)
{
	struct puppet *older = puppet_new(surface, SURFACE_PROCESS);
	CHECK(older);
	int fd = open_inherited(surface);
	CHECK_OPENS(fd);
	CHECK_EQUAL(puppet_do(surface, older, step_child_touches, NUMBER(10)), 0);
	CHECK_EQUAL(count_of(surface, fd), 0);
	return puppet_end(surface, older, 0);
}

static int folds_at_exit(struct surface *surface)
{
	int fd = open_inherited(surface);
	CHECK_OPENS(fd);
	for (unsigned i = 1; i <= 5; i++) {
		CHECK_EQUAL(child_touches(surface, i % 2 ? SURFACE_PROCESS : SURFACE_THREAD, 10),
			    0);
		CHECK_EQUAL(count_of(surface, fd), 10 * i);
	}
	return 0;
}

static int folds_on_read(struct surface *surface)
{
	int fd = open_inherited(surface);
	CHECK_OPENS(fd);
	struct puppet *process = puppet_new(surface, SURFACE_PROCESS),
		      *thread = puppet_new(surface, SURFACE_THREAD);
	CHECK(process && thread);
	for (unsigned i = 1; i <= 3; i++) {
		puppet_do(surface, process, step_touch, NUMBER(10));
		CHECK_EQUAL(count_of(surface, fd), 11 * i - 1);
		puppet_do(surface, thread, step_touch, NUMBER(1));
		CHECK_EQUAL(count_of(surface, fd), 11 * i);
	}
	CHECK_EQUAL(puppet_end(surface, process, 0), 0);
	CHECK_EQUAL(puppet_end(surface, thread, 0), 0);
	CHECK_EQUAL(count_of(surface, fd), 33);
	return 0;
}

static int step_burn(struct surface *surface, void *us)
{
	CALL(burn, (uint64_t)(uintptr_t)us * 1000);
	return 0;
}

static int times_fold(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	uint64_t alive[3], gone[3];
	attr.flags |= TALLY_ATTR_INHERIT;
	attr.read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING;
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	struct puppet *puppet = puppet_new(surface, SURFACE_PROCESS);
	CHECK(puppet);
	puppet_do(surface, puppet, step_burn, NUMBER(20000));
	CHECK_EQUAL(read_words(surface, fd, alive, sizeof(alive)), 3);
	CHECK(alive[1] >= 20000000 && alive[2] == alive[1]);
	CHECK_EQUAL(puppet_end(surface, puppet, 0), 0);
	CHECK_EQUAL(read_words(surface, fd, gone, sizeof(gone)), 3);
	CHECK(gone[1] >= alive[1] && gone[2] == gone[1]);
	return 0;
}

static int ioctls_reach_children(struct surface *surface)
{
	int fd = open_inherited(surface);
	CHECK_OPENS(fd);
	struct puppet *puppet = puppet_new(surface, SURFACE_PROCESS);
	CHECK(puppet);
	CHECK_EQUAL(disable(surface, fd), 0);
	puppet_do(surface, puppet, step_touch, NUMBER(10));
	CHECK_EQUAL(count_of(surface, fd), 0);
	CHECK_EQUAL(enable(surface, fd), 0);
	puppet_do(surface, puppet, step_touch, NUMBER(10));
	CHECK_EQUAL(count_of(surface, fd), 10);
	return puppet_end(surface, puppet, 0);
}

static int reset_reaches_children(struct surface *surface)
{
	int fd = open_inherited(surface);
	CHECK_OPENS(fd);
	struct puppet *puppet = puppet_new(surface, SURFACE_PROCESS);
	CHECK(puppet);
	CALL(touch, TALLY_BREAKPOINT_W, 10);
	puppet_do(surface, puppet, step_touch, NUMBER(10));
	CHECK_EQUAL(count_of(surface, fd), 20);
	CHECK_EQUAL(CALL(ioctl, fd, TALLY_IOC_RESET, 0), 0);
	CHECK_EQUAL(count_of(surface, fd), 0);
	puppet_do(surface, puppet, step_touch, NUMBER(5));
	CHECK_EQUAL(count_of(surface, fd), 5);
	return puppet_end(surface, puppet, 0);
}

/* Counts of ended children are part of the parent's sum and can't be separated: they stay. */
static int reset_keeps_the_gone(struct surface *surface)
{
	CHECK_OPENS(ring_keep_contexts_apart(surface));
	int fd = open_inherited(surface);
	CHECK_OPENS(fd);
	CALL(touch, TALLY_BREAKPOINT_W, 3);
	CHECK_EQUAL(child_touches(surface, SURFACE_PROCESS, 10), 0);
	CHECK_EQUAL(count_of(surface, fd), 13);
	CHECK_EQUAL(CALL(ioctl, fd, TALLY_IOC_RESET, 0), 0);
	CHECK_EQUAL(count_of(surface, fd), 10);
	return 0;
}

static int inherited_while_disabled(struct surface *surface)
{
	struct tally_attr attr = writes_attr(surface, TALLY_ATTR_INHERIT | TALLY_ATTR_DISABLED);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	struct puppet *puppet = puppet_new(surface, SURFACE_PROCESS);
	CHECK(puppet);
	puppet_do(surface, puppet, step_touch, NUMBER(10));
	CHECK_EQUAL(count_of(surface, fd), 0);
	enable(surface, fd);
	puppet_do(surface, puppet, step_touch, NUMBER(10));
	CHECK_EQUAL(count_of(surface, fd), 10);
	return puppet_end(surface, puppet, 0);
}

static int groups_are_inherited(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	uint64_t words[8];
	attr.flags |= TALLY_ATTR_INHERIT | TALLY_ATTR_DISABLED;
	attr.read_format = TALLY_FORMAT_GROUP;
	int leader = open_self(surface, &attr);
	attr = writes_attr(surface, TALLY_ATTR_INHERIT);
	attr.read_format = TALLY_FORMAT_GROUP;
	CHECK_OPENS(open_member(surface, &attr, leader));
	enable(surface, leader);
	CHECK_EQUAL(child_touches(surface, SURFACE_PROCESS, 10), 0);
	struct puppet *puppet = puppet_new(surface, SURFACE_PROCESS);
	CHECK(puppet);
	puppet_do(surface, puppet, step_touch, NUMBER(5));
	CHECK_EQUAL(read_words(surface, leader, words, sizeof(words)), 3);
	CHECK_EQUAL(words[0], 2);
	CHECK_EQUAL(words[2], 15);
	CHECK_EQUAL(disable(surface, leader), 0);
	puppet_do(surface, puppet, step_touch, NUMBER(5)); /* the child's group stops too */
	CHECK_EQUAL(read_words(surface, leader, words, sizeof(words)), 3);
	CHECK_EQUAL(words[2], 15);
	return puppet_end(surface, puppet, 0);
}

static int leader_and_member_differ(struct surface *surface)
{
	for (unsigned i = 0; i < 2; i++) {
		struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
		attr.flags |= i ? TALLY_ATTR_INHERIT : 0;
		int leader = open_self(surface, &attr);
		CHECK_OPENS(leader);
		attr.flags ^= TALLY_ATTR_INHERIT;
		CHECK_ERROR(open_member(surface, &attr, leader), EINVAL);
	}
	return 0;
}

static int opened_on_another_task(struct surface *surface)
{
	struct puppet *puppet = puppet_new(surface, SURFACE_PROCESS);
	CHECK(puppet);
	struct tally_attr attr = writes_attr(surface, TALLY_ATTR_INHERIT);
	int fd = CALL(open, &attr, puppet->task, -1, -1, 0);
	CHECK_OPENS(fd);
	CHECK_EQUAL(puppet_do(surface, puppet, step_child_touches, NUMBER(10)), 0);
	/* a child of the caller, not of the puppet */
	CHECK_EQUAL(child_touches(surface, SURFACE_PROCESS, 10), 0);
	CHECK_EQUAL(count_of(surface, fd), 10);
	return puppet_end(surface, puppet, 0);
}

static int outlives_the_first_task(struct surface *surface)
{
	struct puppet *puppet = puppet_new(surface, SURFACE_PROCESS);
	CHECK(puppet);
	struct tally_attr attr = writes_attr(surface, TALLY_ATTR_INHERIT);
	int fd = CALL(open, &attr, puppet->task, -1, -1, 0);
	CHECK_OPENS(fd);
	puppet_do(surface, puppet, step_touch, NUMBER(1));
	CHECK_EQUAL(puppet_do(surface, puppet, step_child_touches, NUMBER(10)), 0);
	CHECK_EQUAL(puppet_end(surface, puppet, 0), 0);
	CHECK_EQUAL(count_of(surface, fd), 11);
	return 0;
}

static int on_one_cpu(struct surface *surface)
{
	struct tally_attr attr = writes_attr(surface, TALLY_ATTR_INHERIT);
	int fd = CALL(open, &attr, 0, 0, -1, 0);
	CHECK_OPENS(fd);
	struct puppet *puppet = puppet_new(surface, SURFACE_PROCESS);
	CHECK(puppet);
	for (int cpu = 0; cpu < 2; cpu++) {
		CHECK_EQUAL(puppet_do(surface, puppet, step_pin, NUMBER(cpu)), 0);
		puppet_do(surface, puppet, step_touch, NUMBER(10));
		CHECK_EQUAL(count_of(surface, fd), 10);
	}
	return puppet_end(surface, puppet, 0);
}

/* --- inherit_stat, inherit_thread, remove_on_exec ------------------------- */

static int inherit_stat_writes_reads(struct surface *surface)
{
	struct tally_attr attr = writes_attr(surface, TALLY_ATTR_INHERIT | TALLY_ATTR_INHERIT_STAT);
	struct tally_record record;
	struct ring ring;
	attr.sample_period = 1u << 20; /* more than any count here */
	attr.sample_type = TALLY_SAMPLE_TID;
	CHECK_EQUAL(CALL(pin, 0), 0);
	/* otherwise the kernel may swap contexts, and a child may leave without a READ record */
	CHECK_OPENS(ring_keep_contexts_apart(surface));
	CHECK_RING(&ring, surface, &attr, 0, 0, 1);
	pid_t children[2];
	for (unsigned i = 0; i < 2; i++) {
		children[i] = CALL(spawn, SURFACE_PROCESS, step_touch, NUMBER(10 + i));
		CHECK_EQUAL(CALL(wait, children[i]), 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		int found = ring_find(&ring, TALLY_RECORD_READ, &record);
		if (found == 0 && ring_kernel_is_old(surface))
			SKIP(NA_OLD_KERNEL); /* see clause C4.read */
		CHECK_EQUAL(found, 1);
		CHECK_EQUAL(record.read.pid, children[i]);
		CHECK_EQUAL(record.read.tid, children[i]);
		CHECK_EQUAL(record.read.values.values[0], 10 + i);
	}
	CHECK_EQUAL(ring_find(&ring, TALLY_RECORD_READ, &record), 0);
	CHECK_EQUAL(count_of(surface, ring.fd), 21);
	return 0;
}

static int no_reads_without_inherit_stat(struct surface *surface)
{
	struct tally_attr attr = writes_attr(surface, TALLY_ATTR_INHERIT);
	struct ring ring;
	attr.sample_period = 1u << 20;
	attr.sample_type = TALLY_SAMPLE_TID;
	CHECK_EQUAL(CALL(pin, 0), 0);
	CHECK_RING(&ring, surface, &attr, 0, 0, 1);
	CHECK_EQUAL(child_touches(surface, SURFACE_PROCESS, 10), 0);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_READ), 0);
	CHECK_EQUAL(count_of(surface, ring.fd), 10);
	return 0;
}

static int inherit_thread(struct surface *surface)
{
	struct tally_attr attr = writes_attr(surface,
					     TALLY_ATTR_INHERIT | TALLY_ATTR_INHERIT_THREAD);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_EQUAL(child_touches(surface, SURFACE_THREAD, 10), 0);
	CHECK_EQUAL(count_of(surface, fd), 10);
	CHECK_EQUAL(child_touches(surface, SURFACE_PROCESS, 10), 0);
	CHECK_EQUAL(count_of(surface, fd), 10);
	return 0;
}

static int inherit_thread_alone(struct surface *surface)
{
	struct tally_attr attr = writes_attr(surface, TALLY_ATTR_INHERIT_THREAD);
	CHECK_ERROR(try_open(surface, &attr), EINVAL);
	return 0;
}

struct exec_plan {
	int fds[2]; /* the first has remove_on_exec */
	int64_t before[2], after[2];
	int ready, revents;
	long enabled;
};

static int faults_more(struct surface *surface, int fd, int64_t *before)
{
	*before = count_of(surface, fd);
	CALL(fault, 50);
	return (int)(count_of(surface, fd) - *before);
}

static int after_exec(struct surface *surface, void *plan_)
{
	struct exec_plan *plan = plan_;
	struct pollfd polled = { .fd = plan->fds[0], .events = POLLIN };
	int64_t unused;
	plan->enabled = enable(surface, plan->fds[0]);
	plan->after[0] = faults_more(surface, plan->fds[0], &unused);
	plan->after[1] = faults_more(surface, plan->fds[1], &unused);
	plan->ready = CALL(poll, &polled, 1, 0);
	plan->revents = polled.revents;
	return 0;
}

static int before_exec(struct surface *surface, void *plan_)
{
	struct exec_plan *plan = plan_;
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL;
	plan->fds[1] = open_self(surface, &attr);
	attr.flags |= TALLY_ATTR_REMOVE_ON_EXEC;
	plan->fds[0] = open_self(surface, &attr);
	for (unsigned i = 0; i < 2; i++)
		plan->before[i] = faults_more(surface, plan->fds[i], &plan->before[i]);
	return CALL(exec, "another", after_exec, plan, 0);
}

static int remove_on_exec(struct surface *surface)
{
	struct exec_plan *plan = CALL(shared, sizeof(*plan));
	CHECK_EQUAL(CALL(wait, CALL(spawn, SURFACE_PROCESS, before_exec, plan)), 0);
	CHECK_EQUAL(plan->before[0], 50);
	CHECK_EQUAL(plan->before[1], 50);
	CHECK_EQUAL(plan->enabled, 0); /* prctl succeeds, but the event has lost its task */
	CHECK_EQUAL(plan->after[0], 0);
	CHECK_EQUAL(plan->after[1], 50);
	CHECK_EQUAL(plan->ready, 1);
	CHECK(plan->revents & POLLHUP);
	return 0;
}

static int remove_and_enable_on_exec(struct surface *surface)
{
	struct tally_attr attr = writes_attr(surface,
					     TALLY_ATTR_REMOVE_ON_EXEC | TALLY_ATTR_ENABLE_ON_EXEC);
	CHECK_ERROR(try_open(surface, &attr), EINVAL);
	return 0;
}

static int nothing_more(struct surface *surface, void *unused)
{
	(void)surface, (void)unused;
	return 0;
}

static int touch_then_exec(struct surface *surface, void *count)
{
	char byte = 0;
	CALL(touch, TALLY_BREAKPOINT_W, (unsigned)(uintptr_t)count);
	return CALL(exec, "another", nothing_more, &byte, 1);
}

/* A child's counts up to its exec stay in the sum, and the parent's event continues. */
static int removed_from_child_alone(struct surface *surface)
{
	struct tally_attr attr = writes_attr(surface,
					     TALLY_ATTR_INHERIT | TALLY_ATTR_REMOVE_ON_EXEC);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_EQUAL(CALL(wait, CALL(spawn, SURFACE_PROCESS, touch_then_exec, NUMBER(10))), 0);
	CHECK_EQUAL(count_of(surface, fd), 10);
	CALL(touch, TALLY_BREAKPOINT_W, 5);
	CHECK_EQUAL(child_touches(surface, SURFACE_PROCESS, 1), 0);
	CHECK_EQUAL(count_of(surface, fd), 16);
	return 0;
}

static int goes_on_after_exec(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	attr.flags |= TALLY_ATTR_INHERIT | TALLY_ATTR_EXCLUDE_KERNEL;
	struct exec_plan *plan = CALL(shared, sizeof(*plan));
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	int64_t before = count_of(surface, fd);
	CHECK_EQUAL(CALL(wait, CALL(spawn, SURFACE_PROCESS, before_exec, plan)), 0);
	/* 100 in the old program, 100 in the new one, and those of its start */
	CHECK(count_of(surface, fd) - before >= 200);
	return 0;
}

const struct clause clauses_b_inherit[] = {
	{ "B9.not_without_inherit", "without inherit children count nothing", SURFACE_BREAKPOINTS,
	  not_without_inherit },
	{ "B9.process", "a child process is counted", SURFACE_BREAKPOINTS, child_process },
	{ "B9.thread", "a new thread is counted", SURFACE_BREAKPOINTS, child_thread },
	{ "B9.nested", "children of children are counted, to any depth", SURFACE_BREAKPOINTS,
	  nested_children },
	{ "B9.tree", "a tree of tasks counts what its tasks did", SURFACE_BREAKPOINTS,
	  tree_of_tasks },
	{ "B9.older_children", "children from before the open are not counted", SURFACE_BREAKPOINTS,
	  older_children },
	{ "B9.children_of_older", "nor are the new children of older ones", SURFACE_BREAKPOINTS,
	  new_children_of_older },
	{ "B9.folds_at_exit", "a child's count is its parent's when it exits", SURFACE_BREAKPOINTS,
	  folds_at_exit },
	{ "B9.folds_on_read", "a read sums up the children that live", SURFACE_BREAKPOINTS,
	  folds_on_read },
	{ "B9.times_fold", "the times are summed up, too", 0, times_fold },
	{ "B9.ioctls_reach_children", "ENABLE and DISABLE act on the children", SURFACE_BREAKPOINTS,
	  ioctls_reach_children },
	{ "B9.reset_reaches_children", "RESET clears what living children have counted",
	  SURFACE_BREAKPOINTS, reset_reaches_children },
	{ "B9.reset_keeps_the_gone", "RESET leaves what children that are gone have counted",
	  SURFACE_BREAKPOINTS, reset_keeps_the_gone },
	{ "B9.inherited_while_disabled",
	  "a child inherits a disabled event, which a later ENABLE starts", SURFACE_BREAKPOINTS,
	  inherited_while_disabled },
	{ "B9.groups", "groups are inherited whole, read and stopped as groups",
	  SURFACE_BREAKPOINTS, groups_are_inherited },
	{ "B9.mixed_group_einval", "a leader and a member of which one alone inherits: EINVAL", 0,
	  leader_and_member_differ },
	{ "B9.opened_on_another_task",
	  "children of the task that the event is on are counted, not the caller's",
	  SURFACE_BREAKPOINTS, opened_on_another_task },
	{ "B9.outlives_the_first_task", "the sum stays when the first task is gone",
	  SURFACE_BREAKPOINTS, outlives_the_first_task },
	{ "B9.on_one_cpu", "with a CPU, children are counted while they are there",
	  SURFACE_BREAKPOINTS | SURFACE_TWO_CPUS, on_one_cpu },
	{ "B9.after_exec", "a child that execs is counted on", 0, goes_on_after_exec },
	{ "B9.inherit_stat",
	  "with inherit_stat each child's exit writes a READ record of its count",
	  SURFACE_BREAKPOINTS, inherit_stat_writes_reads },
	{ "B9.no_inherit_stat", "without it there is none", SURFACE_BREAKPOINTS,
	  no_reads_without_inherit_stat },
	{ "B9.inherit_thread", "with inherit_thread threads inherit, processes don't",
	  SURFACE_BREAKPOINTS, inherit_thread },
	{ "B9.inherit_thread_alone_einval", "inherit_thread without inherit gives EINVAL",
	  SURFACE_BREAKPOINTS, inherit_thread_alone },
	{ "B9.remove_on_exec",
	  "remove_on_exec takes the event off its task at exec; poll gives POLLHUP", 0,
	  remove_on_exec },
	{ "B9.remove_on_exec_of_child",
	  "an inherited event is removed from the child that execs, and its count kept",
	  SURFACE_BREAKPOINTS, removed_from_child_alone },
	{ "B9.remove_and_enable_on_exec_einval", "remove_on_exec with enable_on_exec gives EINVAL",
	  SURFACE_BREAKPOINTS, remove_and_enable_on_exec },
	{ NULL, NULL, 0, NULL }
};
