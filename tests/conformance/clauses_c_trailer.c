/* C2: the sample_id_all trailer, on each kind of record that software can cause. */
#include "ring_walk.h"

#define MILLISECOND 1000000ull

enum { TRAILER_WORDS = 6 };

/* Checks TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER: the last six words, decoded here. */
static int check_trailer(const struct ring *ring, const struct tally_record *record, pid_t tid,
			 uint64_t before)
{
	struct surface *surface = ring->surface;
	const uint64_t *words = ring->bytes + record->header.size / 8 - TRAILER_WORDS;
	uint64_t id = ring_event_id(surface, ring->fd);
	CHECK(record->header.size >= 8 + 8 * TRAILER_WORDS);
	CHECK_EQUAL(words[0] >> 32, tid);
	CHECK_BETWEEN(words[1], before, CALL(now));
	CHECK_EQUAL(words[2], id);
	CHECK_EQUAL(words[3], id);
	CHECK_EQUAL(words[4], CALL(this_cpu));
	CHECK_EQUAL(words[5], id);
	CHECK_EQUAL(record->sample_id.present, true);
	CHECK_EQUAL(record->sample_id.tid, tid);
	CHECK_EQUAL(record->sample_id.pid, words[0] & UINT32_MAX);
	CHECK_EQUAL(record->sample_id.id, id);
	return 0;
}

/* Checks a record of `type` that `act` makes the calling task write. */
static int trailer_of(struct surface *surface, struct tally_attr attr, uint32_t type,
		      void (*act)(struct surface *surface))
{
	struct ring ring;
	struct tally_record record;
	uint64_t before = CALL(now);
	CHECK_EQUAL(CALL(pin, CALL(this_cpu)), 0);
	CHECK_RING(&ring, surface, &attr, 0, -1, 64);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	act(surface);
	CALL(ioctl, ring.fd, TALLY_IOC_DISABLE, 0);
	CHECK_FOUND(&ring, type, &record);
	return check_trailer(&ring, &record, CALL(self), before);
}

static void act_map(struct surface *surface)
{
	CALL(map_code, true);
}

static void act_comm(struct surface *surface)
{
	CALL(set_comm, "trailer");
}

static void act_fork(struct surface *surface)
{
	pid_t task = CALL(spawn, SURFACE_PROCESS, exits_at_once, NULL);
	CALL(wait, task);
}

static void act_sleep(struct surface *surface)
{
	CALL(sleep, 100000);
}

static int trailer_of_mmap(struct surface *surface)
{
	return trailer_of(surface, ring_sideband_attr(TALLY_ATTR_MMAP), TALLY_RECORD_MMAP, act_map);
}

static int trailer_of_mmap2(struct surface *surface)
{
	return trailer_of(surface, ring_sideband_attr(TALLY_ATTR_MMAP | TALLY_ATTR_MMAP2),
			  TALLY_RECORD_MMAP2, act_map);
}

static int trailer_of_comm(struct surface *surface)
{
	return trailer_of(surface, ring_sideband_attr(TALLY_ATTR_COMM), TALLY_RECORD_COMM,
			  act_comm);
}

static int trailer_of_fork(struct surface *surface)
{
	return trailer_of(surface, ring_sideband_attr(TALLY_ATTR_TASK), TALLY_RECORD_FORK,
			  act_fork);
}

static int trailer_of_namespaces(struct surface *surface)
{
	return trailer_of(surface, ring_sideband_attr(TALLY_ATTR_NAMESPACES),
			  TALLY_RECORD_NAMESPACES, act_fork);
}

static int trailer_of_switch(struct surface *surface)
{
	return trailer_of(surface, ring_sideband_attr(TALLY_ATTR_CONTEXT_SWITCH),
			  TALLY_RECORD_SWITCH, act_sleep);
}

/* Samples faults and writes the same trailer as the dummy event. */
static struct tally_attr sampling_attr(void)
{
	struct tally_attr attr = ring_sideband_attr(0);
	attr.config = TALLY_SW_PAGE_FAULTS;
	attr.sample_period = 1;
	return attr;
}

static int trailer_of_lost(struct surface *surface)
{
	struct tally_attr attr = sampling_attr();
	struct ring ring;
	struct tally_record record;
	uint64_t before = CALL(now);
	CHECK_EQUAL(CALL(pin, CALL(this_cpu)), 0);
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_faults(surface, ring.fd, 200);
	CHECK(ring_count(&ring, TALLY_RECORD_SAMPLE) < 200);
	ring_run_faults(surface, ring.fd, 1);
	CHECK_FOUND(&ring, TALLY_RECORD_LOST, &record);
	return check_trailer(&ring, &record, CALL(self), before);
}

static int trailer_of_exit(struct surface *surface)
{
	struct tally_attr attr = ring_sideband_attr(TALLY_ATTR_TASK);
	struct ring ring;
	struct tally_record record;
	uint64_t before = CALL(now);
	CHECK_EQUAL(CALL(pin, CALL(this_cpu)), 0);
	struct ring_child *child = ring_child_new(surface, SURFACE_PROCESS, NULL);
	CHECK(child);
	attr.flags &= ~TALLY_ATTR_DISABLED;
	CHECK_RING(&ring, surface, &attr, child->task, -1, 1);
	CHECK_EQUAL(ring_child_leave(surface, child), 0);
	CHECK_FOUND(&ring, TALLY_RECORD_EXIT, &record);
	return check_trailer(&ring, &record, child->task, before);
}

static void fault_a_little(struct surface *surface)
{
	CALL(fault, 3);
}

static int trailer_of_read(struct surface *surface)
{
	struct tally_attr attr = sampling_attr();
	struct ring ring;
	struct tally_record record;
	uint64_t before = CALL(now);
	int cpu = CALL(this_cpu);
	attr.flags |= TALLY_ATTR_INHERIT | TALLY_ATTR_INHERIT_STAT;
	attr.flags &= ~TALLY_ATTR_DISABLED;
	CHECK_EQUAL(CALL(pin, cpu), 0);
	CHECK(ring_keep_contexts_apart(surface) >= 0);
	CHECK_RING(&ring, surface, &attr, 0, cpu, 64);
	struct ring_child *child = ring_child_new(surface, SURFACE_PROCESS, fault_a_little);
	CHECK(child);
	CHECK_EQUAL(ring_child_leave(surface, child), 0);
	int found = ring_find(&ring, TALLY_RECORD_READ, &record);
	if (found == 0 && ring_kernel_is_old(surface))
		return CLAUSE_NOT_APPLICABLE + NA_OLD_KERNEL; /* see clause C4.read */
	CHECK_EQUAL(found, 1);
	uint64_t id = ring_event_id(surface, ring.fd);
	CHECK_EQUAL(record.sample_id.present, true);
	CHECK_EQUAL(record.sample_id.id, id);
	CHECK(record.sample_id.stream_id != id); /* the inherited event has its own stream id */
	CHECK_EQUAL(record.sample_id.cpu, cpu);
	CHECK_BETWEEN(record.sample_id.time, before, CALL(now));
	CHECK_EQUAL(record.sample_id.tid, child->task);
	return 0;
}

/* The tick that finds the task running writes THROTTLE and UNTHROTTLE, so they show that task. */
static int trailer_of_throttling(struct surface *surface, uint32_t type)
{
	struct tally_attr attr = ring_sideband_attr(0);
	struct ring ring;
	struct tally_record record;
	uint64_t before = CALL(now);
	attr.type = TALLY_TYPE_TRACEPOINT;
	attr.config = (uint64_t)CALL(tracepoint, "weighted");
	attr.sample_period = 100;
	attr.flags &= ~TALLY_ATTR_EXCLUDE_KERNEL;
	CHECK_EQUAL(CALL(pin, CALL(this_cpu)), 0);
	CHECK_RING(&ring, surface, &attr, 0, -1, 256);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(burn, 40 * MILLISECOND);
	CALL(ioctl, ring.fd, TALLY_IOC_DISABLE, 0);
	CHECK_FOUND(&ring, type, &record);
	return check_trailer(&ring, &record, CALL(self), before);
}

static int trailer_of_throttle(struct surface *surface)
{
	return trailer_of_throttling(surface, TALLY_RECORD_THROTTLE);
}

static int trailer_of_unthrottle(struct surface *surface)
{
	return trailer_of_throttling(surface, TALLY_RECORD_UNTHROTTLE);
}

static int no_trailer_without_the_flag(struct surface *surface)
{
	struct tally_attr attr = ring_sideband_attr(TALLY_ATTR_COMM);
	struct ring ring;
	struct tally_record record;
	attr.flags &= ~TALLY_ATTR_SAMPLE_ID_ALL;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(set_comm, "bare");
	CHECK_FOUND(&ring, TALLY_RECORD_COMM, &record);
	CHECK_EQUAL(record.header.size, 8 + 8 + 8);
	return 0;
}

static int trailer_holds_the_fields_asked_for_alone(struct surface *surface)
{
	struct tally_attr attr = ring_sideband_attr(TALLY_ATTR_COMM);
	struct ring ring;
	struct tally_record record;
	attr.sample_type = TALLY_SAMPLE_IP | TALLY_SAMPLE_ADDR | TALLY_SAMPLE_PERIOD |
			   TALLY_SAMPLE_CALLCHAIN | TALLY_SAMPLE_TIME | TALLY_SAMPLE_CPU;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(set_comm, "bare");
	CHECK_FOUND(&ring, TALLY_RECORD_COMM, &record);
	CHECK_EQUAL(record.header.size, 8 + 8 + 8 + 2 * 8);
	CHECK_BETWEEN(ring.bytes[3], 1, CALL(now));
	CHECK_BETWEEN(ring.bytes[4], 0, (uint64_t)CALL(cpus) - 1);
	return 0;
}

static int samples_have_no_trailer(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_TID);
	struct ring ring;
	struct tally_record record;
	attr.flags |= TALLY_ATTR_SAMPLE_ID_ALL;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_faults(surface, ring.fd, 1);
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.header.size, 16);
	return 0;
}

enum { WEIGHTED = SURFACE_TRACEPOINTS | SURFACE_PRIVILEGED };

const struct clause clauses_c_trailer[] = {
	{ "C2.trailer_of_mmap", "MMAP ends with TID TIME ID STREAM_ID CPU IDENTIFIER.", 0,
	  trailer_of_mmap },
	{ "C2.trailer_of_mmap2", "MMAP2 ends with the trailer.", 0, trailer_of_mmap2 },
	{ "C2.trailer_of_comm", "COMM ends with the trailer.", 0, trailer_of_comm },
	{ "C2.trailer_of_fork", "FORK ends with the trailer, of the parent.", 0, trailer_of_fork },
	{ "C2.trailer_of_exit", "EXIT ends with the trailer, of the task that goes.", 0,
	  trailer_of_exit },
	{ "C2.trailer_of_namespaces", "NAMESPACES ends with the trailer.", SURFACE_PRIVILEGED,
	  trailer_of_namespaces },
	{ "C2.trailer_of_switch", "SWITCH ends with the trailer.", 0, trailer_of_switch },
	{ "C2.trailer_of_lost", "LOST ends with the trailer.", 0, trailer_of_lost },
	{ "C2.trailer_of_read", "READ ends with the trailer, of the child.", 0, trailer_of_read },
	{ "C2.trailer_of_throttle", "THROTTLE ends with the trailer.", WEIGHTED,
	  trailer_of_throttle },
	{ "C2.trailer_of_unthrottle", "UNTHROTTLE ends with the trailer.", WEIGHTED,
	  trailer_of_unthrottle },
	{ "C2.no_trailer_without_the_flag",
	  "Without sample_id_all records end with their own fields.", 0,
	  no_trailer_without_the_flag },
	{ "C2.trailer_fields", "The trailer has the fields of sample_type that belong to it alone.",
	  0, trailer_holds_the_fields_asked_for_alone },
	{ "C2.samples_have_no_trailer", "A sample has no trailer.", 0, samples_have_no_trailer },
	{ NULL, NULL, 0, NULL },
};
