/* C2: the fields of a sample up to READ, each compared with the known truth. */
#include "ring_walk.h"

#include <errno.h>

enum { FAULTS = RING_FAULTS };

static int identifier_is_the_first_word(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	FAULT_SAMPLES(&ring, ring_faults_attr(1, TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP));
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.header.size, 24);
	CHECK_EQUAL(ring.bytes[1], ring_event_id(surface, ring.fd));
	return 0;
}

static int no_field_is_a_bare_header(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	FAULT_SAMPLES(&ring, ring_faults_attr(1, 0));
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.header.size, 8);
	return 0;
}

static int ip_is_where_the_fault_was(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP | TALLY_SAMPLE_REGS_USER);
	struct ring ring;
	struct tally_record record;
	attr.sample_regs_user = 1ull << surface->pc_register;
	FAULT_SAMPLES(&ring, attr);
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK(record.sample.ip != 0);
	CHECK_EQUAL(record.sample.ip, record.sample.regs_user.words[0]);
	return 0;
}

static int ip_is_the_kernels_for_tracepoints(struct surface *surface)
{
	struct tally_attr attr = ring_switch_attr(surface, 1, TALLY_SAMPLE_IP);
	struct ring ring;
	struct tally_record record;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_switch(surface, ring.fd);
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.header.misc & TALLY_MISC_CPUMODE_MASK, TALLY_MISC_KERNEL);
	CHECK(record.sample.ip >> 63);
	return 0;
}

static int tid_is_the_task(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	FAULT_SAMPLES(&ring, ring_faults_attr(1, TALLY_SAMPLE_TID));
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.sample.pid, CALL(process));
	CHECK_EQUAL(record.sample.tid, CALL(self));
	return 0;
}

static void fault_a_little(struct surface *surface)
{
	CALL(fault, FAULTS);
}

static int tid_of_a_thread_differs_from_its_pid(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_TID);
	struct ring_child *child = ring_child_new(surface, SURFACE_THREAD, fault_a_little);
	struct ring ring;
	struct tally_record record;
	attr.flags &= ~TALLY_ATTR_DISABLED;
	CHECK(child);
	CHECK_RING(&ring, surface, &attr, child->task, -1, 1);
	ring_child_go(surface, child);
	CHECK_EQUAL(ring_child_leave(surface, child), 0);
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.sample.pid, CALL(process));
	CHECK_EQUAL(record.sample.tid, child->task);
	CHECK(record.sample.tid != record.sample.pid);
	return 0;
}

static int time_lies_between_the_clocks_readings(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	uint64_t before = CALL(now), last = before;
	FAULT_SAMPLES(&ring, ring_faults_attr(1, TALLY_SAMPLE_TIME));
	uint64_t after = CALL(now);
	for (unsigned i = 0; i < FAULTS; i++) {
		CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
		CHECK_BETWEEN(record.sample.time, last, after);
		last = record.sample.time;
	}
	return 0;
}

static int time_without_a_clockid_never_goes_back(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_TIME);
	struct ring ring;
	struct tally_record record;
	uint64_t last = 1;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_faults(surface, ring.fd, FAULTS);
	for (unsigned i = 0; i < FAULTS; i++) {
		CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
		CHECK(record.sample.time >= last);
		last = record.sample.time;
	}
	return 0;
}

static int with_clockid(struct surface *surface, int clockid)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_TIME);
	attr.flags |= TALLY_ATTR_USE_CLOCKID;
	attr.clockid = clockid;
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	return fd < 0 ? fd : CALL(close, fd);
}

static int clockids_of_time(struct surface *surface)
{
	CHECK_EQUAL(with_clockid(surface, 0), 0);  /* REALTIME */
	CHECK_EQUAL(with_clockid(surface, 1), 0);  /* MONOTONIC */
	CHECK_EQUAL(with_clockid(surface, 4), 0);  /* MONOTONIC_RAW */
	CHECK_EQUAL(with_clockid(surface, 7), 0);  /* BOOTTIME */
	CHECK_EQUAL(with_clockid(surface, 11), 0); /* TAI */
	return 0;
}

static int other_clockids_einval(struct surface *surface)
{
	CHECK_ERROR(with_clockid(surface, 2), EINVAL); /* PROCESS_CPUTIME_ID */
	CHECK_ERROR(with_clockid(surface, 3), EINVAL); /* THREAD_CPUTIME_ID */
	CHECK_ERROR(with_clockid(surface, 99), EINVAL);
	CHECK_ERROR(with_clockid(surface, -1), EINVAL);
	return 0;
}

static int addr_is_the_faults(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	FAULT_SAMPLES(&ring, ring_faults_attr(1, TALLY_SAMPLE_ADDR));
	for (unsigned i = 0; i < FAULTS; i++) {
		CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
		CHECK_EQUAL(record.sample.addr, CALL(fault_address, i));
	}
	return 0;
}

static int id_is_that_of_ioc_id(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	FAULT_SAMPLES(&ring, ring_faults_attr(1, TALLY_SAMPLE_ID));
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK(record.sample.id != 0);
	CHECK_EQUAL(record.sample.id, ring_event_id(surface, ring.fd));
	return 0;
}

static int stream_id_is_the_events_own(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	FAULT_SAMPLES(&ring, ring_faults_attr(1, TALLY_SAMPLE_ID | TALLY_SAMPLE_STREAM_ID));
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.sample.id, ring_event_id(surface, ring.fd));
	CHECK_EQUAL(record.sample.stream_id, record.sample.id);
	return 0;
}

/* An inherited event writes its parent's id as ID, and its own as STREAM_ID. */
static int inherited_ids(struct surface *surface)
{
	struct tally_attr attr =
		ring_faults_attr(1, TALLY_SAMPLE_TID | TALLY_SAMPLE_ID | TALLY_SAMPLE_STREAM_ID);
	struct ring ring;
	struct tally_record record;
	int cpu = CALL(this_cpu);
	attr.flags |= TALLY_ATTR_INHERIT;
	attr.flags &= ~TALLY_ATTR_DISABLED;
	CHECK_EQUAL(CALL(pin, cpu), 0);
	CHECK(ring_keep_contexts_apart(surface) >= 0);
	CHECK_RING(&ring, surface, &attr, 0, cpu, 64);
	struct ring_child *child = ring_child_new(surface, SURFACE_PROCESS, fault_a_little);
	CHECK(child);
	ring_child_go(surface, child);
	CHECK_EQUAL(ring_child_leave(surface, child), 0);
	do
		CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	while ((pid_t)record.sample.tid != child->task);
	CHECK_EQUAL(record.sample.id, ring_event_id(surface, ring.fd));
	CHECK(record.sample.stream_id != record.sample.id);
	return 0;
}

static int cpu_is_where_it_ran(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	int cpu = CALL(cpus) - 1;
	CHECK_EQUAL(CALL(pin, cpu), 0);
	FAULT_SAMPLES(&ring, ring_faults_attr(1, TALLY_SAMPLE_CPU));
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.sample.cpu, cpu);
	CHECK_EQUAL(ring.bytes[1] >> 32, 0);
	return 0;
}

static int period_is_that_of_the_sample(struct surface *surface)
{
	struct tally_attr attr =
		ring_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_TASK_CLOCK, 500000, TALLY_SAMPLE_PERIOD);
	struct ring ring;
	struct tally_record record;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(burn, 10000000);
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.sample.period, 500000);
	return 0;
}

static int read_is_the_value_at_the_hit(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	FAULT_SAMPLES(&ring, ring_faults_attr(1, TALLY_SAMPLE_READ));
	for (unsigned i = 1; i <= FAULTS; i++) {
		CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
		CHECK_EQUAL(record.sample.read.values[0], i);
	}
	return 0;
}

static int read_has_its_format(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_READ);
	struct ring ring;
	struct tally_record record;
	attr.read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING |
			   TALLY_FORMAT_ID;
	FAULT_SAMPLES(&ring, attr);
	uint64_t words[4];
	CHECK_EQUAL(CALL(read, ring.fd, words, sizeof(words)), sizeof(words));
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.header.size, 8 + 4 * 8);
	CHECK_EQUAL(ring.bytes[1], 1);
	CHECK_BETWEEN(ring.bytes[2], 1, words[1]);
	CHECK_BETWEEN(ring.bytes[3], 1, words[2]);
	CHECK_EQUAL(ring.bytes[4], ring_event_id(surface, ring.fd));
	return 0;
}

static int read_lost_is_the_last_word(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_READ);
	struct ring ring;
	struct tally_record record;
	attr.read_format = TALLY_FORMAT_ID | TALLY_FORMAT_LOST;
	FAULT_SAMPLES(&ring, attr);
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.header.size, 8 + 3 * 8);
	CHECK_EQUAL(ring.bytes[2], ring_event_id(surface, ring.fd));
	CHECK_EQUAL(ring.bytes[3], 0);
	return 0;
}

static int read_of_a_group_has_every_member(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_READ);
	struct tally_attr other = ring_faults_attr(0, 0);
	struct ring ring;
	struct tally_record record;
	attr.read_format = TALLY_FORMAT_GROUP | TALLY_FORMAT_ID | TALLY_FORMAT_TOTAL_TIME_ENABLED;
	other.read_format = attr.read_format;
	other.flags &= ~TALLY_ATTR_DISABLED;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	int member = CALL(open, &other, 0, -1, ring.fd, 0);
	CHECK(member >= 0);
	ring_run_faults(surface, ring.fd, FAULTS);
	for (unsigned i = 1; i <= FAULTS; i++) {
		CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
		CHECK_EQUAL(record.sample.read.count, 2);
		CHECK_EQUAL(record.sample.read.stride, 2);
		CHECK(record.sample.read.time_enabled > 0);
		CHECK_EQUAL(record.sample.read.values[0], i);
		CHECK_EQUAL(record.sample.read.values[1], ring_event_id(surface, ring.fd));
		/* The leader's hit may come before or after the member's hit. */
		CHECK_BETWEEN(record.sample.read.values[2], i - 1, i);
		CHECK_EQUAL(record.sample.read.values[3], ring_event_id(surface, member));
	}
	return 0;
}

static int member_sample_reads_the_group(struct surface *surface)
{
	struct tally_attr leader = ring_faults_attr(0, 0);
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_READ);
	struct ring ring;
	struct tally_record record;
	attr.read_format = TALLY_FORMAT_GROUP | TALLY_FORMAT_ID;
	leader.read_format = attr.read_format;
	attr.flags &= ~TALLY_ATTR_DISABLED;
	int leader_fd = CALL(open, &leader, 0, -1, -1, 0);
	CHECK(leader_fd >= 0);
	int fd = CALL(open, &attr, 0, -1, leader_fd, 0);
	CHECK(fd >= 0);
	CHECK_EQUAL(ring_map(&ring, surface, &attr, fd, 1), 0);
	ring_run_faults(surface, leader_fd, FAULTS);
	for (unsigned i = 1; i <= FAULTS; i++) {
		CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
		CHECK_EQUAL(record.sample.read.count, 2);
		CHECK_EQUAL(record.sample.read.values[1], ring_event_id(surface, leader_fd));
		CHECK_EQUAL(record.sample.read.values[2], i);
		CHECK_EQUAL(record.sample.read.values[3], ring_event_id(surface, fd));
	}
	return 0;
}

static int inherit_with_read_wants_tid(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_READ);
	attr.flags |= TALLY_ATTR_INHERIT;
	CHECK_ERROR(CALL(open, &attr, 0, -1, -1, 0), EINVAL);
	attr.sample_type |= TALLY_SAMPLE_TID;
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	if (fd == -EINVAL && ring_kernel_is_old(surface))
		/* there, READ and inherit exclude each other */
		return CLAUSE_NOT_APPLICABLE + NA_OLD_KERNEL;
	CHECK(fd >= 0);
	return 0;
}

enum { KERNEL_HITS = SURFACE_TRACEPOINTS | SURFACE_PRIVILEGED };

const struct clause clauses_c_fields[] = {
	{ "C2.no_field", "A sample without fields is a bare header.", 0,
	  no_field_is_a_bare_header },
	{ "C2.identifier_is_first", "IDENTIFIER is the first word.", 0,
	  identifier_is_the_first_word },
	{ "C2.ip", "IP is the instruction that faulted.", 0, ip_is_where_the_fault_was },
	{ "C2.ip_of_a_tracepoint", "IP of a tracepoint's hit is in the kernel.", KERNEL_HITS,
	  ip_is_the_kernels_for_tracepoints },
	{ "C2.tid", "TID is pid and tid.", 0, tid_is_the_task },
	{ "C2.tid_of_a_thread", "TID of a thread: the process's pid and its own tid.", 0,
	  tid_of_a_thread_differs_from_its_pid },
	{ "C2.time", "TIME lies between two readings of its clock and never goes back.", 0,
	  time_lies_between_the_clocks_readings },
	{ "C2.time_by_default", "TIME of the default clock never goes back.", 0,
	  time_without_a_clockid_never_goes_back },
	{ "C2.time_clockids", "TIME can be of REALTIME, MONOTONIC, MONOTONIC_RAW, BOOTTIME, TAI.",
	  0, clockids_of_time },
	{ "C2.time_other_clockids_einval", "Other clocks: EINVAL.", 0, other_clockids_einval },
	{ "C2.addr", "ADDR of a fault is the address that was touched.", 0, addr_is_the_faults },
	{ "C2.id", "ID is what IOC_ID tells.", 0, id_is_that_of_ioc_id },
	{ "C2.stream_id", "STREAM_ID of an event opened is its ID.", 0,
	  stream_id_is_the_events_own },
	{ "C2.inherited_ids", "An inherited event's ID is its parent's, its STREAM_ID its own.", 0,
	  inherited_ids },
	{ "C2.cpu", "CPU is where it ran; its upper half is 0.", 0, cpu_is_where_it_ran },
	{ "C2.period", "PERIOD is the period of the sample.", 0, period_is_that_of_the_sample },
	{ "C2.read", "READ is the value at the hit.", 0, read_is_the_value_at_the_hit },
	{ "C2.read_format", "READ has read_format's words in read()'s order.", 0,
	  read_has_its_format },
	{ "C2.read_lost", "LOST is READ's last word.", 0, read_lost_is_the_last_word },
	{ "C2.read_group", "READ of a group has each member's value and id.", 0,
	  read_of_a_group_has_every_member },
	{ "C2.read_by_a_member", "A member's sample reads the whole group, leader first.", 0,
	  member_sample_reads_the_group },
	{ "C2.read_inherited_wants_tid", "READ with inherit wants TID, else EINVAL.", 0,
	  inherit_with_read_wants_tid },
	{ NULL, NULL, 0, NULL },
};
