/* SPEC rows B5 to B8: groups, pinned and exclusive events, excluded modes.  clauses_hardware.c has
 * the clauses for hardware counters, which can run out. */
#include "counting.h"
#include "puppet.h"

#include <errno.h>

#define BOTH_TIMES (TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING)

/* A value read with both times. */
struct timed {
	uint64_t value, enabled, running;
};

static int read_timed(struct surface *surface, int fd, struct timed *timed)
{
	return read_words(surface, fd, (uint64_t *)timed, sizeof(*timed)) == 3 ? 0 : -1;
}

/* --- B5 ------------------------------------------------------------------- */

static int group_values_agree(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	uint64_t words[8];
	attr.read_format = TALLY_FORMAT_GROUP;
	attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_DISABLED;
	int leader = open_self(surface, &attr);
	attr.flags &= ~TALLY_ATTR_DISABLED;
	attr.config = TALLY_SW_PAGE_FAULTS_MIN;
	CHECK_OPENS(open_member(surface, &attr, leader));
	attr.config = TALLY_SW_PAGE_FAULTS;
	CHECK_OPENS(open_member(surface, &attr, leader));
	enable(surface, leader);
	for (unsigned round = 1; round <= 20; round++) {
		CALL(fault, 10);
		if (round % 5 == 0)
			CALL(sleep, 100000); /* the group is scheduled out and in together */
		CHECK_EQUAL(read_words(surface, leader, words, sizeof(words)), 4);
		CHECK_EQUAL(words[1], 10 * round);
		CHECK_EQUAL(words[2], words[1]);
		CHECK_EQUAL(words[3], words[1]);
	}
	return 0;
}

/* Leader and members share one clock: the times that a group read returns hold for each of them. */
static int group_times_agree(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	struct timed of_leader, of_member;
	attr.read_format = BOTH_TIMES;
	attr.flags |= TALLY_ATTR_DISABLED;
	int leader = open_self(surface, &attr);
	attr.flags &= ~TALLY_ATTR_DISABLED;
	int member = open_member(surface, &attr, leader);
	CHECK_OPENS(member);
	for (unsigned round = 0; round < 10; round++) {
		enable(surface, leader);
		CALL(burn, 200000);
		CALL(sleep, 100000);
		disable(surface, leader);
		CHECK_EQUAL(read_timed(surface, leader, &of_leader), 0);
		CHECK_EQUAL(read_timed(surface, member, &of_member), 0);
		CHECK_EQUAL(of_member.enabled, of_leader.enabled);
		CHECK_EQUAL(of_member.running, of_leader.running);
		CHECK_EQUAL(of_leader.running, of_leader.enabled);
	}
	return 0;
}

static int mixed_software_group(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_TASK_CLOCK);
	uint64_t words[8];
	attr.read_format = TALLY_FORMAT_GROUP;
	attr.flags |= TALLY_ATTR_DISABLED;
	int leader = open_self(surface, &attr);
	attr = breakpoint_attr(surface, TALLY_BREAKPOINT_W);
	CHECK_OPENS(open_member(surface, &attr, leader));
	attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL;
	CHECK_OPENS(open_member(surface, &attr, leader));
	CALL(touch, TALLY_BREAKPOINT_W, 5);
	enable(surface, leader);
	CALL(touch, TALLY_BREAKPOINT_W, 5);
	CALL(fault, 7);
	disable(surface, leader);
	CALL(touch, TALLY_BREAKPOINT_W, 5);
	CHECK_EQUAL(read_words(surface, leader, words, sizeof(words)), 4);
	CHECK(words[1] > 0);
	CHECK_EQUAL(words[2], 5);
	CHECK_EQUAL(words[3], 7);
	return 0;
}

/* The case in SPEC's parenthesis: on 6.18, such a member waits until its task is scheduled in
 * again. */
static int late_member_of_other_pmu(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	struct timed timed;
	int leader = open_self(surface, &attr);
	CHECK_OPENS(leader);
	attr = breakpoint_attr(surface, TALLY_BREAKPOINT_W);
	attr.read_format = BOTH_TIMES;
	int member = open_member(surface, &attr, leader);
	CHECK_OPENS(member);
	CALL(touch, TALLY_BREAKPOINT_W, 5);
	CHECK_EQUAL(read_timed(surface, member, &timed), 0);
	/* an event never counts without running time */
	CHECK(timed.running != 0 || timed.value == 0);
	uint64_t before = timed.value;
	CALL(sleep, 1000000);
	CALL(touch, TALLY_BREAKPOINT_W, 5);
	CHECK_EQUAL(read_timed(surface, member, &timed), 0);
	CHECK_EQUAL(timed.value - before, 5);
	CHECK(timed.running > 0);
	return 0;
}

static int late_member_of_same_pmu(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	int leader = open_self(surface, &attr);
	CHECK_OPENS(leader);
	attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL;
	int member = open_member(surface, &attr, leader);
	CHECK_OPENS(member);
	CALL(fault, 10); /* the member counts at once */
	CHECK_EQUAL(count_of(surface, member), 10);
	return 0;
}

/* --- B6 ------------------------------------------------------------------- */

static int software_needs_no_counter(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	struct timed timed;
	int fds[100];
	attr.read_format = BOTH_TIMES;
	attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL;
	for (unsigned i = 0; i < 100; i++) {
		fds[i] = open_self(surface, &attr);
		CHECK_OPENS(fds[i]);
	}
	CALL(burn, 20000000); /* long enough for several ticks */
	CALL(fault, 10);
	for (unsigned i = 0; i < 100; i++) {
		CHECK_EQUAL(read_timed(surface, fds[i], &timed), 0);
		CHECK_EQUAL(timed.running, timed.enabled);
		CHECK_EQUAL(timed.value, 10);
	}
	return 0;
}

/* --- B7 ------------------------------------------------------------------- */

static int member_with(struct surface *surface, uint64_t flag)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	int leader = open_self(surface, &attr);
	CHECK_OPENS(leader);
	attr.flags |= flag;
	CHECK_ERROR(open_member(surface, &attr, leader), EINVAL);
	return 0;
}

static int pinned_member(struct surface *surface)
{
	return member_with(surface, TALLY_ATTR_PINNED);
}

static int exclusive_member(struct surface *surface)
{
	return member_with(surface, TALLY_ATTR_EXCLUSIVE);
}

/* Opens a leader with this flag and a member: both count. */
static int leader_with(struct surface *surface, uint64_t flag)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL;
	attr.flags |= flag;
	int leader = open_self(surface, &attr);
	CHECK_OPENS(leader);
	attr.flags &= ~flag;
	int member = open_member(surface, &attr, leader), other = open_self(surface, &attr);
	CHECK_OPENS(other);
	CALL(sleep, 1000000);
	int64_t before[3] = { count_of(surface, leader), count_of(surface, member),
			      count_of(surface, other) };
	CALL(fault, 10);
	CHECK_EQUAL(count_of(surface, leader) - before[0], 10);
	CHECK_EQUAL(count_of(surface, member) - before[1], 10);
	CHECK_EQUAL(count_of(surface, other) - before[2], 10);
	return 0;
}

static int pinned_software(struct surface *surface)
{
	return leader_with(surface, TALLY_ATTR_PINNED);
}

static int exclusive_software(struct surface *surface)
{
	return leader_with(surface, TALLY_ATTR_EXCLUSIVE);
}

/* --- B8 ------------------------------------------------------------------- */

/* Returns the count of 100 user-mode faults by an event with these flags. */
static int64_t faults_with(struct surface *surface, uint64_t flags)
{
	struct tally_attr attr = { .type = TALLY_TYPE_SOFTWARE,
				   .size = sizeof(attr),
				   .config = TALLY_SW_PAGE_FAULTS,
				   .flags = flags };
	int fd = open_self(surface, &attr);
	if (fd < 0)
		return fd;
	int64_t before = count_of(surface, fd);
	CALL(fault, 100);
	return count_of(surface, fd) - before;
}

static int exclude_user(struct surface *surface)
{
	CHECK_EQUAL(faults_with(surface, TALLY_ATTR_EXCLUDE_USER), 0);
	return 0;
}

static int exclude_kernel(struct surface *surface)
{
	CHECK_EQUAL(faults_with(surface, TALLY_ATTR_EXCLUDE_KERNEL), 100);
	return 0;
}

static int exclude_user_and_kernel(struct surface *surface)
{
	CHECK_EQUAL(faults_with(surface, TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL), 0);
	return 0;
}

/* These flags exclude none of a user program's faults. */
static int exclude_others(struct surface *surface)
{
	static const uint64_t flags[] = { TALLY_ATTR_EXCLUDE_HV, TALLY_ATTR_EXCLUDE_IDLE,
					  TALLY_ATTR_EXCLUDE_HOST, TALLY_ATTR_EXCLUDE_GUEST };
	for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		CHECK_EQUAL(faults_with(surface, flags[i] | TALLY_ATTR_EXCLUDE_KERNEL), 100);
	return 0;
}

static int switches_of_user_mode(struct surface *surface)
{
	struct tally_attr attr = { .type = TALLY_TYPE_SOFTWARE,
				   .size = sizeof(attr),
				   .config = TALLY_SW_CONTEXT_SWITCHES,
				   .flags = TALLY_ATTR_EXCLUDE_KERNEL };
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CALL(make, TALLY_SW_CONTEXT_SWITCHES, 5);
	CHECK_EQUAL(count_of(surface, fd), 0); /* switches happen in the kernel */
	return 0;
}

static int clocks_are_not_filtered(struct surface *surface)
{
	struct tally_attr attr = { .type = TALLY_TYPE_SOFTWARE,
				   .size = sizeof(attr),
				   .config = TALLY_SW_TASK_CLOCK,
				   .flags = TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_USER };
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CALL(burn, 3000000);
	CHECK(count_of(surface, fd) >= 3000000);
	return 0;
}

static int breakpoints_by_mode(struct surface *surface)
{
	struct tally_attr attr = breakpoint_attr(surface, TALLY_BREAKPOINT_W);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	attr.flags &= ~TALLY_ATTR_EXCLUDE_KERNEL;
	attr.flags |= TALLY_ATTR_EXCLUDE_USER;
	int without = open_self(surface, &attr);
	CHECK_OPENS(without);
	CALL(touch, TALLY_BREAKPOINT_W, 10);
	CHECK_EQUAL(count_of(surface, fd), 10);
	CHECK_EQUAL(count_of(surface, without), 0);
	return 0;
}

const struct clause clauses_b_groups[] = {
	{ "B5.values_agree",
	  "members that count the same have the same value in each of their group's reads", 0,
	  group_values_agree },
	{ "B5.times_agree", "a group's members are enabled and running for the same time", 0,
	  group_times_agree },
	{ "B5.mixed_group",
	  "software events of different PMUs make a group that starts and stops as one",
	  SURFACE_BREAKPOINTS, mixed_software_group },
	{ "B5.late_member_other_pmu",
	  "a member on another PMU than its enabled leader runs after a switch at the latest",
	  SURFACE_BREAKPOINTS, late_member_of_other_pmu },
	{ "B5.late_member_same_pmu", "a member on its enabled leader's PMU runs at once", 0,
	  late_member_of_same_pmu },

	{ "B6.software_needs_no_counter", "any number of software events runs all the time", 0,
	  software_needs_no_counter },

	{ "B7.pinned_member_einval", "a pinned member gives EINVAL", 0, pinned_member },
	{ "B7.exclusive_member_einval", "an exclusive member gives EINVAL", 0, exclusive_member },
	{ "B7.pinned_software", "a pinned software group counts, and so do others", 0,
	  pinned_software },
	{ "B7.exclusive_software", "an exclusive software group counts, and so do others", 0,
	  exclusive_software },

	{ "B8.exclude_user", "exclude_user leaves out what user mode does", SURFACE_PRIVILEGED,
	  exclude_user },
	{ "B8.exclude_kernel", "exclude_kernel leaves in what user mode does", 0, exclude_kernel },
	{ "B8.exclude_both", "with both excluded nothing counts", 0, exclude_user_and_kernel },
	{ "B8.exclude_others",
	  "exclude_hv, _idle, _host, _guest are accepted and leave user mode's faults in", 0,
	  exclude_others },
	{ "B8.switches_of_user_mode",
	  "context-switches without the kernel is 0, however many there were", 0,
	  switches_of_user_mode },
	{ "B8.clocks", "the clocks count whatever is excluded", 0, clocks_are_not_filtered },
	{ "B8.breakpoints", "a breakpoint counts the accesses of the modes that aren't excluded",
	  SURFACE_BREAKPOINTS | SURFACE_PRIVILEGED, breakpoints_by_mode },
	{ NULL, NULL, 0, NULL }
};
