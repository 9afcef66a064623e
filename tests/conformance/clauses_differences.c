/* Differences between kernel and engine that random calls found (differential.c), each as a
 * clause. */
#include "counting.h"
#include "puppet.h"
#include "ring_walk.h"

#include <errno.h>
#include <string.h>

static int open_with_clock(struct surface *surface, struct tally_attr attr, int clockid)
{
	attr.flags |= TALLY_ATTR_USE_CLOCKID;
	attr.clockid = clockid;
	return try_open(surface, &attr);
}

static int clockids_where_nmis_hit(struct surface *surface)
{
	const struct tally_attr attrs[] = { hit_attr(surface),
					    breakpoint_attr(surface, TALLY_BREAKPOINT_W) };
	for (unsigned i = 0; i < 2; i++) {
		CHECK_EQUAL(open_with_clock(surface, attrs[i], 1), 0);        /* MONOTONIC */
		CHECK_EQUAL(open_with_clock(surface, attrs[i], 4), 0);        /* MONOTONIC_RAW */
		CHECK_ERROR(open_with_clock(surface, attrs[i], 0), EINVAL);   /* REALTIME */
		CHECK_ERROR(open_with_clock(surface, attrs[i], 7), EINVAL);   /* BOOTTIME */
		CHECK_ERROR(open_with_clock(surface, attrs[i], 11), EINVAL);  /* TAI */
	}
	return 0;
}

static int modify_of_other_types(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY),
			  clock = software_attr(surface, TALLY_SW_TASK_CLOCK);
	int dummy = open_self(surface, &attr), ticks = open_self(surface, &clock);
	CHECK_OPENS(dummy);
	CHECK_OPENS(ticks);
	CHECK_ERROR(CALL(ioctl, dummy, TALLY_IOC_MODIFY_ATTRIBUTES, (uintptr_t)&attr), EOPNOTSUPP);
	if (ring_kernel_is_old(surface)) /* old kernels return EOPNOTSUPP here too (measured) */
		SKIP(NA_OLD_KERNEL);
	CHECK_ERROR(CALL(ioctl, ticks, TALLY_IOC_MODIFY_ATTRIBUTES, (uintptr_t)&clock), EINVAL);
	return 0;
}

static int newest_is_told_first(struct surface *surface)
{
	struct tally_attr attr = ring_sideband_attr(TALLY_ATTR_COMM);
	struct tally_record record;
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	int later = open_self(surface, &attr);
	CHECK_OPENS(later);
	CHECK_EQUAL(CALL(ioctl, later, TALLY_IOC_SET_OUTPUT, (uintptr_t)ring.fd), 0);
	CHECK_EQUAL(enable(surface, ring.fd), 0);
	CHECK_EQUAL(enable(surface, later), 0);
	CHECK_EQUAL(CALL(set_comm, "renamed"), 0);
	CHECK_FOUND(&ring, TALLY_RECORD_COMM, &record);
	CHECK_EQUAL(record.sample_id.id, id_of(surface, later));
	CHECK_FOUND(&ring, TALLY_RECORD_COMM, &record);
	CHECK_EQUAL(record.sample_id.id, id_of(surface, ring.fd));
	return 0;
}

static int syscall_hits_are_user_mode(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 1, TALLY_SAMPLE_IP);
	struct tally_record record;
	struct ring ring;
	attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_hits(surface, ring.fd, 3);
	CHECK_EQUAL(ring_event_count(surface, ring.fd), 3);
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.header.misc & TALLY_MISC_CPUMODE_MASK, TALLY_MISC_USER);
	return 0;
}

/* Changes a group that a living child has inherited.  One event is not inherited.  If all were, the
 * kernel could swap the contexts of the two tasks instead of switching their events; the leader
 * would then be in the child's context, and a new member would be refused (EINVAL). */
static int changed_group_of_a_child(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	uint64_t words[8];
	int alone = open_self(surface, &attr);
	CHECK_OPENS(alone);
	attr.flags |= TALLY_ATTR_INHERIT;
	attr.read_format = TALLY_FORMAT_GROUP;
	int leader = open_self(surface, &attr);
	CHECK_OPENS(leader);
	struct puppet *child = puppet_new(surface, SURFACE_PROCESS);
	CHECK(child);
	CHECK_EQUAL(read_words(surface, leader, words, sizeof(words)), 2);
	int member = open_member(surface, &attr, leader);
	CHECK_OPENS(member);
	CHECK_ERROR(CALL(read, leader, words, sizeof(words)), ECHILD);
	CHECK_EQUAL(CALL(close, member), 0);
	/* the members are the original ones again */
	CHECK_ERROR(CALL(read, leader, words, sizeof(words)), ECHILD);
	puppet_end(surface, child, 0);
	CHECK_EQUAL(read_words(surface, leader, words, sizeof(words)), 2);
	return 0;
}

struct becoming {
	volatile uint32_t go, became, leave;
};

static int became(struct surface *surface, void *becoming_)
{
	struct becoming *becoming = becoming_;
	CALL(post, &becoming->became, 1);
	CALL(wait_while, &becoming->leave, 0);
	return 0;
}

static int becomes(struct surface *surface, void *becoming_)
{
	struct becoming *becoming = becoming_;
	CALL(wait_while, &becoming->go, 0);
	return CALL(exec, "became", became, becoming, 0) ? 1 : 0;
}

static int removed_on_exec_from_its_group(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	struct becoming *becoming = CALL(shared, sizeof(*becoming));
	uint64_t words[8];
	pid_t task = CALL(spawn, SURFACE_PROCESS, becomes, becoming);
	attr.read_format = TALLY_FORMAT_GROUP;
	int leader = CALL(open, &attr, task, -1, -1, 0);
	CHECK_OPENS(leader);
	attr.flags |= TALLY_ATTR_REMOVE_ON_EXEC;
	int member = CALL(open, &attr, task, -1, leader, 0);
	CHECK_OPENS(member);
	CHECK_EQUAL(read_words(surface, leader, words, sizeof(words)), 3);
	CALL(post, &becoming->go, 1);
	CALL(wait_while, &becoming->became, 0);
	CHECK_EQUAL(read_words(surface, leader, words, sizeof(words)), 2);
	CHECK_EQUAL(read_words(surface, member, words, sizeof(words)), 2);
	CALL(post, &becoming->leave, 1);
	CALL(wait, task);
	return 0;
}

static int failed_modify_leaves_children(struct surface *surface)
{
	struct tally_attr attr = breakpoint_attr(surface, TALLY_BREAKPOINT_W);
	attr.flags |= TALLY_ATTR_INHERIT;
	/* otherwise the child may run on its parent's event */
	CHECK_OPENS(ring_keep_contexts_apart(surface));
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	struct puppet *child = puppet_new(surface, SURFACE_PROCESS);
	CHECK(child);
	CHECK_EQUAL(disable(surface, fd), 0);
	attr.flags ^= TALLY_ATTR_SAMPLE_ID_ALL;
	CHECK_ERROR(CALL(ioctl, fd, TALLY_IOC_MODIFY_ATTRIBUTES, (uintptr_t)&attr), EINVAL);
	puppet_do(surface, child, step_touch, NUMBER(3));
	CHECK_EQUAL(count_of(surface, fd), 0);
	CALL(touch, TALLY_BREAKPOINT_W, 5); /* the event itself was enabled */
	CHECK_EQUAL(count_of(surface, fd), 5);
	puppet_end(surface, child, 0);
	return 0;
}

static int period_of_a_gone_task(struct surface *surface)
{
	struct tally_attr attr = breakpoint_attr(surface, TALLY_BREAKPOINT_W);
	uint64_t period = 100;
	struct puppet *child = puppet_new(surface, SURFACE_PROCESS);
	CHECK(child);
	attr.sample_period = 3;
	int fd = CALL(open, &attr, child->task, -1, -1, 0);
	CHECK_OPENS(fd);
	puppet_end(surface, child, 0);
	CHECK_EQUAL(CALL(ioctl, fd, TALLY_IOC_PERIOD, (uintptr_t)&period), 0);
	attr.flags |= TALLY_ATTR_DISABLED;
	/* all other attributes must be unchanged */
	CHECK_EQUAL(CALL(ioctl, fd, TALLY_IOC_MODIFY_ATTRIBUTES, (uintptr_t)&attr), 0);
	return 0;
}

const struct clause clauses_differences[] = {
	{ "C2.clockids_where_nmis_hit",
	  "Tracepoints and breakpoints, which hit in NMIs, refuse clocks that those may not read.",
	  SURFACE_TRACEPOINTS | SURFACE_BREAKPOINTS | SURFACE_PRIVILEGED, clockids_where_nmis_hit },
	{ "B3.modify_attributes_of_other_types",
	  "MODIFY_ATTRIBUTES of what is no breakpoint: EOPNOTSUPP; of a clock, EINVAL.", 0,
	  modify_of_other_types },
	{ "C4.newest_is_told_first",
	  "Of a task's events the newest writes its side-band record first.", 0,
	  newest_is_told_first },
	{ "B8.syscall_hits_are_user_mode",
	  "A system call's tracepoint hits in user mode: exclude_kernel leaves it in.",
	  SURFACE_TRACEPOINTS | SURFACE_PRIVILEGED, syscall_hits_are_user_mode },
	{ "B9.group_changed_since_inherited_echild",
	  "A group whose members changed since a living child inherited it is not read.", 0,
	  changed_group_of_a_child },
	{ "B9.remove_on_exec_leaves_its_group",
	  "An event that an exec removes is in its group no longer.", 0,
	  removed_on_exec_from_its_group },
	{ "B3.failed_modify_leaves_children",
	  "A MODIFY_ATTRIBUTES that fails may enable the event, not its children's.",
	  SURFACE_BREAKPOINTS, failed_modify_leaves_children },
	{ "B3.period_of_a_gone_task",
	  "IOC_PERIOD of an event whose task is gone succeeds and changes nothing.",
	  SURFACE_BREAKPOINTS, period_of_a_gone_task },
	{ 0 }
};
