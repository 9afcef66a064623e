/* SPEC rows B1 and B2: the results of read(2). */
#include "counting.h"
#include "puppet.h"
#include "ring_walk.h"

#include <errno.h>
#include <string.h>

/* --- B1 ------------------------------------------------------------------- */

static int period_zero_counts(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(0, TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_faults(surface, ring.fd, 100);
	CHECK_EQUAL(count_of(surface, ring.fd), 100);
	CHECK_EQUAL(ring_head(&ring), 0); /* a counting event writes no samples */
	return 0;
}

static int sampling_counts_too(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(10, TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_faults(surface, ring.fd, 105);
	CHECK_EQUAL(count_of(surface, ring.fd), 105);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 10);
	return 0;
}

static int value_is_64_bits(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	uint64_t words[4] = { 7, 7, 7, 7 };
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	/* the read returns no more, however large the buffer */
	CHECK_EQUAL(CALL(read, fd, words, sizeof(words)), 8);
	CHECK_EQUAL(words[0], 0);
	CHECK_EQUAL(words[1], 7);
	return 0;
}

static int wider_than_the_counter(struct surface *surface)
{
	struct tally_attr attr = hardware_attr(surface, TALLY_HW_INSTRUCTIONS);
	attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL;
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CALL(loop, 1ull << 33); /* 2^34 instructions: a 32-bit counter wraps four times */
	CHECK_BETWEEN(count_of(surface, fd), 1ull << 34, (1ull << 34) + (1ull << 24));
	return 0;
}

/* --- B2 ------------------------------------------------------------------- */

/* Opens page faults that were enabled for exactly 10 and are disabled now. */
static int open_with_ten(struct surface *surface, uint64_t read_format)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	attr.read_format = read_format;
	attr.flags |= TALLY_ATTR_DISABLED | TALLY_ATTR_EXCLUDE_KERNEL;
	int fd = open_self(surface, &attr);
	if (fd >= 0)
		ring_run_faults(surface, fd, 10);
	return fd;
}

static int value_alone(struct surface *surface)
{
	CHECK_EQUAL(count_of(surface, open_with_ten(surface, 0)), 10);
	return 0;
}

static int time_enabled(struct surface *surface)
{
	uint64_t words[2], again[2];
	int fd = open_with_ten(surface, TALLY_FORMAT_TOTAL_TIME_ENABLED);
	CHECK_EQUAL(CALL(read, fd, words, sizeof(words)), 16);
	CHECK_EQUAL(words[0], 10);
	CHECK(words[1] > 0);
	CALL(burn, 1000000);
	CHECK_EQUAL(CALL(read, fd, again, sizeof(again)), 16);
	/* the enabled time stands still while the event is disabled */
	CHECK_EQUAL(again[1], words[1]);
	enable(surface, fd);
	CALL(burn, 3000000);
	disable(surface, fd);
	CHECK_EQUAL(CALL(read, fd, again, sizeof(again)), 16);
	CHECK(again[1] >= words[1] + 3000000);
	return 0;
}

static int time_running(struct surface *surface)
{
	uint64_t words[2];
	int fd = open_with_ten(surface, TALLY_FORMAT_TOTAL_TIME_RUNNING);
	enable(surface, fd);
	CALL(burn, 3000000);
	disable(surface, fd);
	CHECK_EQUAL(CALL(read, fd, words, sizeof(words)), 16);
	CHECK(words[1] >= 3000000);
	return 0;
}

/* While a task sleeps, the enabled time of its event stands still too. */
static int times_stand_in_sleep(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	uint64_t words[3];
	attr.read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING;
	uint64_t start = CALL(now);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CALL(sleep, 30000000);
	CHECK_EQUAL(read_words(surface, fd, words, sizeof(words)), 3);
	CHECK_BETWEEN(words[1], 1, CALL(now) - start - 30000000 + 1000000);
	CHECK_EQUAL(words[1], words[2]);
	return 0;
}

static int software_runs_all_the_time(struct surface *surface)
{
	uint64_t words[3];
	int fd = open_with_ten(surface,
			       TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING);
	CHECK_EQUAL(read_words(surface, fd, words, sizeof(words)), 3);
	CHECK_EQUAL(words[2], words[1]);
	return 0;
}

static int id(struct surface *surface)
{
	uint64_t first[2], second[2];
	int fd = open_with_ten(surface, TALLY_FORMAT_ID),
	    other = open_with_ten(surface, TALLY_FORMAT_ID);
	CHECK_EQUAL(read_words(surface, fd, first, sizeof(first)), 2);
	CHECK_EQUAL(read_words(surface, other, second, sizeof(second)), 2);
	CHECK_EQUAL(first[0], 10);
	CHECK(first[1] != 0 && second[1] != 0 && first[1] != second[1]);
	CHECK_EQUAL(first[1], id_of(surface, fd));
	CHECK_EQUAL(second[1], id_of(surface, other));
	return 0;
}

static int lost(struct surface *surface)
{
	uint64_t words[2];
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP | TALLY_SAMPLE_TIME);
	struct ring ring;
	attr.read_format = TALLY_FORMAT_LOST;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	/* a sample of 24 bytes: header, address, time */
	unsigned room = (unsigned)(surface->page_size / 24);
	ring_run_faults(surface, ring.fd, room);
	CHECK_EQUAL(read_words(surface, ring.fd, words, sizeof(words)), 2);
	CHECK_EQUAL(words[0], room);
	CHECK_EQUAL(words[1], 0);
	ring_run_faults(surface, ring.fd, 33);
	CHECK_EQUAL(read_words(surface, ring.fd, words, sizeof(words)), 2);
	CHECK_EQUAL(words[0], room + 33);
	CHECK_EQUAL(words[1], 33);
	return 0;
}

/* A read returns these words in order: value, enabled, running, id, lost. */
static int order(struct surface *surface)
{
	for (uint64_t format = 0; format < TALLY_FORMAT_MAX; format++) {
		uint64_t words[8];
		unsigned at = 0;
		if (format & TALLY_FORMAT_GROUP)
			continue;
		int fd = open_with_ten(surface, format);
		CHECK_OPENS(fd);
		ssize_t count = read_words(surface, fd, words, sizeof(words));
		CHECK_EQUAL(words[at++], 10);
		if (format & TALLY_FORMAT_TOTAL_TIME_ENABLED)
			CHECK(words[at++] > 0);
		if (format & TALLY_FORMAT_TOTAL_TIME_RUNNING)
			CHECK(words[at++] > 0);
		if (format & TALLY_FORMAT_ID)
			CHECK_EQUAL(words[at++], id_of(surface, fd));
		if (format & TALLY_FORMAT_LOST)
			CHECK_EQUAL(words[at++], 0);
		CHECK_EQUAL(count, at);
		CALL(close, fd);
	}
	return 0;
}

/* Reads a leader and two members, which count 10 faults each, as a group in this format. */
static int group_order_of(struct surface *surface, uint64_t format)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	uint64_t words[16];
	int fds[3];
	unsigned at = 0;
	attr.read_format = format;
	attr.flags |= TALLY_ATTR_DISABLED | TALLY_ATTR_EXCLUDE_KERNEL;
	fds[0] = open_self(surface, &attr);
	attr.flags &= ~TALLY_ATTR_DISABLED;
	fds[1] = open_member(surface, &attr, fds[0]);
	attr.config = TALLY_SW_PAGE_FAULTS_MIN;
	fds[2] = open_member(surface, &attr, fds[0]);
	CHECK_OPENS(fds[2]);
	ring_run_faults(surface, fds[0], 10);
	ssize_t count = read_words(surface, fds[0], words, sizeof(words));
	CHECK_EQUAL(words[at++], 3);
	if (format & TALLY_FORMAT_TOTAL_TIME_ENABLED)
		CHECK(words[at++] > 0);
	if (format & TALLY_FORMAT_TOTAL_TIME_RUNNING)
		CHECK(words[at++] > 0);
	for (unsigned i = 0; i < 3; i++) {
		CHECK_EQUAL(words[at++], 10);
		if (format & TALLY_FORMAT_ID)
			CHECK_EQUAL(words[at++], id_of(surface, fds[i]));
		if (format & TALLY_FORMAT_LOST)
			CHECK_EQUAL(words[at++], 0);
	}
	CHECK_EQUAL(count, at);
	for (unsigned i = 3; i-- > 0;)
		CALL(close, fds[i]);
	return 0;
}

static int group_order(struct surface *surface)
{
	for (uint64_t format = 0; format < TALLY_FORMAT_MAX; format++)
		if (format & TALLY_FORMAT_GROUP) {
			int result = group_order_of(surface, format);
			if (result)
				return result;
		}
	return 0;
}

/* Opens a leader and one member, both with GROUP and ID. */
static int open_pair(struct surface *surface, uint64_t leader_format, uint64_t member_format,
		     int *member)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	attr.read_format = leader_format;
	int leader = open_self(surface, &attr);
	attr.read_format = member_format;
	*member = open_member(surface, &attr, leader);
	return leader;
}

static int group_read_of_member(struct surface *surface)
{
	uint64_t words[8];
	int member, leader = open_pair(surface, TALLY_FORMAT_ID,
				       TALLY_FORMAT_GROUP | TALLY_FORMAT_ID, &member);
	CHECK_OPENS(member);
	CHECK_EQUAL(read_words(surface, member, words, sizeof(words)), 5);
	CHECK_EQUAL(words[0], 2);
	CHECK_EQUAL(words[2], id_of(surface, leader));
	CHECK_EQUAL(words[4], id_of(surface, member));
	/* this event's read_format has no GROUP */
	CHECK_EQUAL(read_words(surface, leader, words, sizeof(words)), 2);
	CHECK_EQUAL(words[1], id_of(surface, leader));
	return 0;
}

static int member_reads_itself(struct surface *surface)
{
	uint64_t words[8];
	int member, leader = open_pair(surface, TALLY_FORMAT_GROUP, TALLY_FORMAT_ID, &member);
	CHECK_OPENS(leader);
	CHECK_EQUAL(read_words(surface, member, words, sizeof(words)), 2);
	CHECK_EQUAL(words[1], id_of(surface, member));
	return 0;
}

static int closed_member_leaves_the_read(struct surface *surface)
{
	uint64_t words[8];
	int member, leader = open_pair(surface, TALLY_FORMAT_GROUP, 0, &member);
	CHECK_OPENS(member);
	CHECK_EQUAL(read_words(surface, leader, words, sizeof(words)), 3);
	CALL(close, member);
	CHECK_EQUAL(read_words(surface, leader, words, sizeof(words)), 2);
	CHECK_EQUAL(words[0], 1);
	return 0;
}

static int closed_leader_frees_its_members(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	uint64_t words[8];
	int leader = open_self(surface, &attr);
	attr.read_format = TALLY_FORMAT_GROUP;
	int member = open_member(surface, &attr, leader);
	CHECK_OPENS(member);
	CALL(close, leader);
	CHECK_EQUAL(read_words(surface, member, words, sizeof(words)), 2);
	CHECK_EQUAL(words[0], 1); /* the former member is a leader now */
	uint64_t before = words[1];
	CALL(fault, 10);
	CHECK_EQUAL(read_words(surface, member, words, sizeof(words)), 2);
	CHECK_EQUAL(words[1] - before, 10);
	return 0;
}

static int too_small_enospc(struct surface *surface)
{
	uint64_t words[8];
	int member, leader = open_pair(surface, TALLY_FORMAT_GROUP | TALLY_FORMAT_ID,
				       TALLY_FORMAT_ID, &member);
	CHECK_OPENS(leader);
	for (size_t size = 0; size < 16; size++)
		CHECK_ERROR(CALL(read, member, words, size), ENOSPC);
	CHECK_EQUAL(CALL(read, member, words, 16), 16);
	/* the buffer has room for one of two values */
	CHECK_ERROR(CALL(read, leader, words, 24), ENOSPC);
	CHECK_ERROR(CALL(read, leader, words, 39), ENOSPC);
	CHECK_EQUAL(CALL(read, leader, words, 40), 40);
	return 0;
}

static int bad_buffer_efault(struct surface *surface)
{
	int fd = open_with_ten(surface, 0);
	CHECK_ERROR(CALL(read, fd, SURFACE_BAD_POINTER, 8), EFAULT);
	CHECK_EQUAL(count_of(surface, fd), 10);
	return 0;
}

const struct clause clauses_b[] = {
	{ "B1.period_zero_counts", "with sample_period 0 an event counts and samples nothing", 0,
	  period_zero_counts },
	{ "B1.sampling_counts_too", "a sampling event counts as well", 0, sampling_counts_too },
	{ "B1.value_is_64_bits", "read gives one word of 64 bits, however large the buffer", 0,
	  value_is_64_bits },
	{ "B1.wider_than_the_counter", "a count goes beyond the width of the hardware's counter",
	  SURFACE_HARDWARE | SURFACE_EXACT_TIME, wider_than_the_counter },

	{ "B2.value", "without a read_format the count comes alone", 0, value_alone },
	{ "B2.time_enabled",
	  "TOTAL_TIME_ENABLED grows while the event is enabled, and stands while it isn't", 0,
	  time_enabled },
	{ "B2.time_running", "TOTAL_TIME_RUNNING grows while the event runs", 0, time_running },
	{ "B2.times_stand_in_sleep", "the times of a task's event stand while the task sleeps", 0,
	  times_stand_in_sleep },
	{ "B2.software_runs_all_the_time", "a software event's running time is its enabled time", 0,
	  software_runs_all_the_time },
	{ "B2.id", "ID is the event's own, the one that IOC_ID gives", 0, id },
	{ "B2.lost", "LOST is the number of this event's samples that found no room", 0, lost },
	{ "B2.order",
	  "value, time enabled, time running, id, lost: in this order, each when asked for", 0,
	  order },
	{ "B2.group_order",
	  "a group's read: number, times, then value, id and lost of the leader and each member", 0,
	  group_order },
	{ "B2.group_of_member",
	  "a member with GROUP reads its group; a leader without it reads itself", 0,
	  group_read_of_member },
	{ "B2.member_alone", "a member without GROUP reads itself", 0, member_reads_itself },
	{ "B2.closed_member", "a member that is closed leaves its group's read", 0,
	  closed_member_leaves_the_read },
	{ "B2.closed_leader",
	  "when the leader is closed, its members go on as leaders of their own", 0,
	  closed_leader_frees_its_members },
	{ "B2.too_small_enospc", "a buffer that is too small gives ENOSPC", 0, too_small_enospc },
	{ "B2.bad_buffer_efault", "a bad buffer gives EFAULT and leaves the count", 0,
	  bad_buffer_efault },
	{ NULL, NULL, 0, NULL }
};
