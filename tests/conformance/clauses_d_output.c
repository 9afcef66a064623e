/* D3, D4: overwritable, backward, paused and shared rings; the AUX area. */
#include "ring_walk.h"

#include <errno.h>
#include <sys/mman.h>

/* --- Overwriting ---------------------------------------------------------- */

static int overwriting(struct surface *surface, struct ring *ring, uint64_t flags, unsigned faults)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_READ);
	attr.flags |= flags;
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	CHECK_EQUAL(ring_map_as(ring, surface, &attr, fd, 1, PROT_READ), 0);
	ring_run_faults(surface, fd, faults);
	return 0;
}

static int read_only_ring_overwrites(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	unsigned fit = (unsigned)(surface->page_size / 16), all = 3 * fit + 10;
	CHECK_EQUAL(overwriting(surface, &ring, 0, all), 0);
	CHECK_EQUAL(ring_head(&ring), 16 * all);
	ring.at = 16 * (all - fit);
	for (unsigned i = all - fit + 1; i <= all; i++) {
		CHECK_EQUAL(ring_next(&ring, &record), 1);
		CHECK_EQUAL(record.header.type, TALLY_RECORD_SAMPLE);
		CHECK_EQUAL(record.sample.read.values[0], i);
	}
	return 0;
}

static int overwritten_is_not_lost(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_READ);
	struct ring ring;
	uint64_t words[2];
	attr.read_format = TALLY_FORMAT_LOST;
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	CHECK_EQUAL(ring_map_as(&ring, surface, &attr, fd, 1, PROT_READ), 0);
	ring_run_faults(surface, fd, 1000);
	CHECK_EQUAL(CALL(read, fd, words, sizeof(words)), sizeof(words));
	CHECK_EQUAL(words[1], 0);
	CHECK_EQUAL(ring_head(&ring), 24 * 1000); /* no LOST records between them */
	return 0;
}

static int backward_grows_downwards(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	CHECK_EQUAL(overwriting(surface, &ring, TALLY_ATTR_WRITE_BACKWARD, 20), 0);
	CHECK_EQUAL(ring_head(&ring), (uint64_t)-16 * 20);
	ring.at = ring_head(&ring);
	for (unsigned i = 20; i > 0; i--) {
		CHECK_EQUAL(ring_next_up_to(&ring, 0, &record), 1);
		CHECK_EQUAL(record.sample.read.values[0], i);
	}
	CHECK_EQUAL(ring_next_up_to(&ring, 0, &record), 0);
	return 0;
}

static int backward_keeps_the_newest_whole(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	unsigned fit = (unsigned)(surface->page_size / 16), all = 5 * fit + 7;
	CHECK_EQUAL(overwriting(surface, &ring, TALLY_ATTR_WRITE_BACKWARD, all), 0);
	CHECK_EQUAL(ring_head(&ring), (uint64_t)-16 * all);
	ring.at = ring_head(&ring);
	for (unsigned i = 0; i < fit; i++) {
		CHECK_EQUAL(ring_next_up_to(&ring, 0, &record), 1);
		CHECK_EQUAL(record.sample.read.values[0], all - i);
	}
	return 0;
}

/* --- PAUSE_OUTPUT --------------------------------------------------------- */

static int paused_ring_takes_no_records(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_faults(surface, ring.fd, 3);
	CHECK_EQUAL(CALL(ioctl, ring.fd, TALLY_IOC_PAUSE_OUTPUT, 1), 0);
	ring_run_faults(surface, ring.fd, 5);
	CHECK_EQUAL(ring_head(&ring), 3 * 16);
	CHECK_EQUAL(ring_event_count(surface, ring.fd), 8);
	CHECK_EQUAL(CALL(ioctl, ring.fd, TALLY_IOC_PAUSE_OUTPUT, 0), 0);
	ring_run_faults(surface, ring.fd, 2);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 5);
	return 0;
}

static int paused_is_lost(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	struct ring ring;
	struct tally_record record;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	CHECK_EQUAL(CALL(ioctl, ring.fd, TALLY_IOC_PAUSE_OUTPUT, 1), 0);
	ring_run_faults(surface, ring.fd, 5);
	CHECK_EQUAL(CALL(ioctl, ring.fd, TALLY_IOC_PAUSE_OUTPUT, 0), 0);
	ring_run_faults(surface, ring.fd, 1);
	CHECK_EQUAL(ring_next(&ring, &record), 1);
	CHECK_EQUAL(record.header.type, TALLY_RECORD_LOST);
	CHECK_EQUAL(record.lost.lost, 5);
	return 0;
}

static int paused_overwriting_ring_stands_still(struct surface *surface)
{
	struct ring ring;
	CHECK_EQUAL(overwriting(surface, &ring, TALLY_ATTR_WRITE_BACKWARD, 10), 0);
	CHECK_EQUAL(CALL(ioctl, ring.fd, TALLY_IOC_PAUSE_OUTPUT, 1), 0);
	ring_run_faults(surface, ring.fd, 10);
	CHECK_EQUAL(ring_head(&ring), (uint64_t)-16 * 10);
	CHECK_EQUAL(CALL(ioctl, ring.fd, TALLY_IOC_PAUSE_OUTPUT, 0), 0);
	ring_run_faults(surface, ring.fd, 1);
	/* includes LOST, which overwriting by itself never causes */
	CHECK_EQUAL(ring_head(&ring), (uint64_t)-16 * 11 - 24);
	return 0;
}

static int pause_without_a_ring_einval(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	CHECK_ERROR(CALL(ioctl, fd, TALLY_IOC_PAUSE_OUTPUT, 1), EINVAL);
	return 0;
}

/* --- SET_OUTPUT ----------------------------------------------------------- */

static struct tally_attr sharing_attr(void)
{
	return ring_faults_attr(1, TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_TID);
}

/* Opens a mapped event and another one with these flags and CPU, both on the calling task. */
static int open_pair(struct surface *surface, struct ring *ring, uint64_t flags, int cpu,
		     int *other)
{
	struct tally_attr attr = sharing_attr();
	CHECK_RING(ring, surface, &attr, 0, -1, 1);
	attr.flags |= flags;
	*other = CALL(open, &attr, 0, cpu, -1, 0);
	CHECK(*other >= 0);
	return 0;
}

#define OPEN_PAIR(...) \
	do { int opened_ = open_pair(surface, __VA_ARGS__); \
	     if (opened_) \
		     return opened_; } while (0)

static long set_output(struct surface *surface, int fd, int target)
{
	return CALL(ioctl, fd, TALLY_IOC_SET_OUTPUT, (uintptr_t)(intptr_t)target);
}

static int set_output_shares_a_ring(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	int other;
	OPEN_PAIR(&ring, 0, -1, &other);
	CHECK_EQUAL(set_output(surface, other, ring.fd), 0);
	ring_run_faults(surface, other, 3);
	ring_run_faults(surface, ring.fd, 2);
	for (unsigned i = 0; i < 5; i++) {
		CHECK_EQUAL(ring_next(&ring, &record), 1);
		CHECK_EQUAL(record.sample.id, ring_event_id(surface, i < 3 ? other : ring.fd));
	}
	CHECK_EQUAL(ring_next(&ring, &record), 0);
	return 0;
}

static int flag_fd_output_shares_a_ring(struct surface *surface)
{
	struct tally_attr attr = sharing_attr();
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	int other = CALL(open, &attr, 0, -1, ring.fd,
			 TALLY_FLAG_FD_OUTPUT | TALLY_FLAG_FD_NO_GROUP);
	CHECK(other >= 0);
	ring_run_faults(surface, other, 3);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 3);
	return 0;
}

static int set_output_of_minus_one_ends_sharing(struct surface *surface)
{
	struct ring ring;
	int other;
	OPEN_PAIR(&ring, 0, -1, &other);
	CHECK_EQUAL(set_output(surface, other, ring.fd), 0);
	CHECK_EQUAL(set_output(surface, other, -1), 0);
	ring_run_faults(surface, other, 3);
	CHECK_EQUAL(ring_count(&ring, 0), 0);
	return 0;
}

static int set_output_outlives_the_target(struct surface *surface)
{
	struct ring ring;
	int other;
	OPEN_PAIR(&ring, 0, -1, &other);
	CHECK_EQUAL(set_output(surface, other, ring.fd), 0);
	CHECK_EQUAL(CALL(close, ring.fd), 0);
	ring_run_faults(surface, other, 3);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 3);
	return 0;
}

static int set_output_ends_with_the_mapping(struct surface *surface)
{
	struct ring ring;
	struct pollfd poll = { .events = POLLIN };
	int other;
	OPEN_PAIR(&ring, 0, -1, &other);
	CHECK_EQUAL(set_output(surface, other, ring.fd), 0);
	CHECK_EQUAL(CALL(munmap, ring.page, ring.map_size), 0);
	ring_run_faults(surface, other, 3);
	CHECK_EQUAL(ring_event_count(surface, other), 3);
	poll.fd = other;
	CHECK_EQUAL(CALL(poll, &poll, 1, 0), 1);
	CHECK_EQUAL(poll.revents, POLLHUP);
	return 0;
}

static int set_output_to_an_unmapped_event_einval(struct surface *surface)
{
	struct tally_attr attr = sharing_attr();
	int fd = CALL(open, &attr, 0, -1, -1, 0), target = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0 && target >= 0);
	CHECK_ERROR(set_output(surface, fd, target), EINVAL);
	return 0;
}

static int set_output_to_itself_einval(struct surface *surface)
{
	struct ring ring;
	int other;
	OPEN_PAIR(&ring, 0, -1, &other);
	CHECK_ERROR(set_output(surface, ring.fd, ring.fd), EINVAL);
	CHECK_ERROR(set_output(surface, other, other), EINVAL);
	return 0;
}

static int set_output_of_a_mapped_event_einval(struct surface *surface)
{
	struct tally_attr attr = sharing_attr();
	struct ring ring, second;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	CHECK_RING(&second, surface, &attr, 0, -1, 1);
	CHECK_ERROR(set_output(surface, ring.fd, second.fd), EINVAL);
	CHECK_ERROR(set_output(surface, ring.fd, -1), EINVAL);
	return 0;
}

static int set_output_to_another_cpu_einval(struct surface *surface)
{
	struct tally_attr attr = sharing_attr();
	struct ring ring;
	int other;
	OPEN_PAIR(&ring, 0, CALL(this_cpu), &other);
	CHECK_ERROR(set_output(surface, other, ring.fd), EINVAL);
	if (CALL(cpus) < 2)
		return 0;
	struct ring of_first;
	CHECK_RING(&of_first, surface, &attr, 0, 0, 1);
	int of_second = CALL(open, &attr, 0, 1, -1, 0);
	CHECK(of_second >= 0);
	CHECK_ERROR(set_output(surface, of_second, of_first.fd), EINVAL);
	return 0;
}

static int set_output_to_another_task_einval(struct surface *surface)
{
	struct tally_attr attr = sharing_attr();
	struct ring ring;
	struct ring_child *child = ring_child_new(surface, SURFACE_PROCESS, NULL);
	CHECK(child);
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	int other = CALL(open, &attr, child->task, -1, -1, 0);
	CHECK(other >= 0);
	CHECK_ERROR(set_output(surface, other, ring.fd), EINVAL);
	CHECK_EQUAL(ring_child_leave(surface, child), 0);
	return 0;
}

static void fault_a_little(struct surface *surface)
{
	CALL(fault, 4);
}

static int tasks_of_one_cpu_share_a_ring(struct surface *surface)
{
	struct tally_attr attr = sharing_attr();
	struct ring ring;
	struct tally_record record;
	int cpu = CALL(this_cpu);
	CHECK_EQUAL(CALL(pin, cpu), 0);
	struct ring_child *child = ring_child_new(surface, SURFACE_PROCESS, fault_a_little);
	CHECK(child);
	CHECK_RING(&ring, surface, &attr, 0, cpu, 1);
	int other = CALL(open, &attr, child->task, cpu, -1, 0);
	CHECK(other >= 0);
	CHECK_EQUAL(set_output(surface, other, ring.fd), 0);
	CALL(ioctl, other, TALLY_IOC_ENABLE, 0);
	CHECK_EQUAL(ring_child_leave(surface, child), 0);
	for (unsigned i = 0; i < 4; i++) {
		CHECK_EQUAL(ring_next(&ring, &record), 1);
		CHECK_EQUAL(record.sample.tid, child->task);
		CHECK_EQUAL(record.sample.id, ring_event_id(surface, other));
	}
	return 0;
}

static int set_output_to_another_clock_einval(struct surface *surface)
{
	struct tally_attr attr = sharing_attr();
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	attr.flags |= TALLY_ATTR_USE_CLOCKID;
	attr.clockid = 1;
	int other = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(other >= 0);
	CHECK_ERROR(set_output(surface, other, ring.fd), EINVAL);
	return 0;
}

static int set_output_the_other_way_einval(struct surface *surface)
{
	struct ring ring;
	int other;
	OPEN_PAIR(&ring, TALLY_ATTR_WRITE_BACKWARD, -1, &other);
	CHECK_ERROR(set_output(surface, other, ring.fd), EINVAL);
	return 0;
}

static int set_output_to_no_event_ebadf(struct surface *surface)
{
	struct tally_attr attr = sharing_attr();
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	CHECK_ERROR(set_output(surface, fd, 999), EBADF);
	return 0;
}

static int set_output_to_another_file_ebadf(struct surface *surface)
{
	struct tally_attr attr = sharing_attr();
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	CHECK_ERROR(set_output(surface, fd, CALL(other_file)), EBADF);
	return 0;
}

static int sharing_event_mapped_is_busy(struct surface *surface)
{
	struct ring ring, alias;
	int other;
	OPEN_PAIR(&ring, 0, -1, &other);
	CHECK_EQUAL(set_output(surface, other, ring.fd), 0);
	int mapped = ring_map(&alias, surface, &ring.attr, other, 1);
	if (mapped == 0 && ring_kernel_is_old(surface))
		/* the old kernel mapped the target's ring */
		return CLAUSE_NOT_APPLICABLE + NA_OLD_KERNEL;
	CHECK_ERROR(mapped, EBUSY);
	return 0;
}

static int heirs_write_to_the_parents_ring(struct surface *surface)
{
	struct tally_attr attr = sharing_attr();
	struct ring ring;
	struct tally_record record;
	int cpu = CALL(this_cpu);
	attr.flags |= TALLY_ATTR_INHERIT;
	attr.flags &= ~TALLY_ATTR_DISABLED;
	CHECK_EQUAL(CALL(pin, cpu), 0);
	CHECK_RING(&ring, surface, &attr, 0, cpu, 64);
	struct ring_child *child = ring_child_new(surface, SURFACE_PROCESS, fault_a_little);
	CHECK(child);
	CHECK_EQUAL(ring_child_leave(surface, child), 0);
	CALL(ioctl, ring.fd, TALLY_IOC_DISABLE, 0);
	unsigned childs = 0;
	while (ring_next(&ring, &record) == 1) {
		CHECK_EQUAL(record.sample.id, ring_event_id(surface, ring.fd));
		childs += (pid_t)record.sample.tid == child->task;
	}
	CHECK_BETWEEN(childs, 4, 4000);
	return 0;
}

/* --- D4 ------------------------------------------------------------------- */

static int aux_of_a_pmu_without_aux(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	struct ring ring;
	int error = 0;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	CHECK_EQUAL(ring.page->aux_size, 0);
	ring.page->aux_offset = 4 * surface->page_size;
	ring.page->aux_size = 2 * surface->page_size;
	void *area = CALL(mmap, ring.fd, 2 * surface->page_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			  4 * surface->page_size, &error);
	CHECK(!area);
	CHECK_ERROR(error, EOPNOTSUPP);
	return 0;
}

static int aux_offset_must_be_the_pages(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	struct ring ring;
	int error = 0;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring.page->aux_offset = 4 * surface->page_size;
	ring.page->aux_size = 2 * surface->page_size;
	void *area = CALL(mmap, ring.fd, 2 * surface->page_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			  8 * surface->page_size, &error);
	CHECK(!area);
	CHECK_ERROR(error, EINVAL);
	return 0;
}

const struct clause clauses_d_output[] = {
	{ "D3.read_only_overwrites", "A ring mapped read-only overwrites its oldest records.", 0,
	  read_only_ring_overwrites },
	{ "D3.overwritten_is_not_lost", "What is overwritten isn't counted as lost.", 0,
	  overwritten_is_not_lost },
	{ "D3.backward", "write_backward: data_head falls, the newest record stands at it.", 0,
	  backward_grows_downwards },
	{ "D3.backward_keeps_the_newest", "write_backward keeps the newest records whole.", 0,
	  backward_keeps_the_newest_whole },
	{ "D3.pause_output", "PAUSE_OUTPUT 1 stops records, not the count; 0 lets them go on.", 0,
	  paused_ring_takes_no_records },
	{ "D3.paused_is_lost", "What comes while output is paused is told as LOST.", 0,
	  paused_is_lost },
	{ "D3.pause_overwriting", "A paused overwriting ring stands still.", 0,
	  paused_overwriting_ring_stands_still },
	{ "D3.pause_without_a_ring_einval", "PAUSE_OUTPUT without a ring: EINVAL.", 0,
	  pause_without_a_ring_einval },
	{ "D3.set_output", "SET_OUTPUT: two events write to one ring, told apart by their ids.", 0,
	  set_output_shares_a_ring },
	{ "D3.fd_output", "FD_OUTPUT does the same at opening.", 0, flag_fd_output_shares_a_ring },
	{ "D3.set_output_of_minus_one", "SET_OUTPUT -1 ends it.", 0,
	  set_output_of_minus_one_ends_sharing },
	{ "D3.set_output_outlives_the_target",
	  "The ring lasts while it is mapped, its event closed or not.", 0,
	  set_output_outlives_the_target },
	{ "D3.set_output_ends_with_the_mapping", "Unmapping ends the ring for who shares it.", 0,
	  set_output_ends_with_the_mapping },
	{ "D3.set_output_unmapped_einval", "SET_OUTPUT to an unmapped event: EINVAL.", 0,
	  set_output_to_an_unmapped_event_einval },
	{ "D3.set_output_itself_einval", "SET_OUTPUT to itself: EINVAL.", 0,
	  set_output_to_itself_einval },
	{ "D3.set_output_of_a_mapped_event_einval",
	  "SET_OUTPUT of an event with a ring of its own: EINVAL.", 0,
	  set_output_of_a_mapped_event_einval },
	{ "D3.set_output_other_cpu_einval", "SET_OUTPUT to another CPU's event: EINVAL.", 0,
	  set_output_to_another_cpu_einval },
	{ "D3.set_output_other_task_einval",
	  "SET_OUTPUT to another task's event, of any CPU: EINVAL.", 0,
	  set_output_to_another_task_einval },
	{ "D3.set_output_tasks_of_one_cpu", "Events of two tasks on one CPU can share.", 0,
	  tasks_of_one_cpu_share_a_ring },
	{ "D3.set_output_other_clock_einval", "SET_OUTPUT to an event of another clock: EINVAL.", 0,
	  set_output_to_another_clock_einval },
	{ "D3.set_output_other_direction_einval",
	  "SET_OUTPUT of a backward event to a forward one: EINVAL.", 0,
	  set_output_the_other_way_einval },
	{ "D3.set_output_no_event_ebadf", "SET_OUTPUT to no descriptor: EBADF.", 0,
	  set_output_to_no_event_ebadf },
	{ "D3.set_output_other_file_ebadf", "SET_OUTPUT to a file that is no event: EBADF.", 0,
	  set_output_to_another_file_ebadf },
	{ "D3.sharing_event_mapped_ebusy", "Mapping an event that writes elsewhere: EBUSY.", 0,
	  sharing_event_mapped_is_busy },
	{ "D3.heirs_write_to_the_parents_ring", "An inherited child writes to its parent's ring.",
	  0, heirs_write_to_the_parents_ring },
	{ "D4.aux_without_an_aux_pmu", "An AUX area of a PMU that has none: EOPNOTSUPP.", 0,
	  aux_of_a_pmu_without_aux },
	{ "D4.aux_offset_must_match", "An AUX area elsewhere than aux_offset says: EINVAL.", 0,
	  aux_offset_must_be_the_pages },
	{ NULL, NULL, 0, NULL },
};
