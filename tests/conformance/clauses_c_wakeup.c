/* C5: waking waiters, signals, REFRESH, sigtrap. */
#include "ring_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>

#define MILLISECOND 1000000ull

enum { SAMPLE_SIZE = 16, WAIT_MS = 5000, OVERFLOW_SIGNAL = 40, TRAP_PERF_CODE = 6 };

/* Returns the revents of a poll, or -errno. */
static int polled(struct surface *surface, int fd, int timeout_ms)
{
	struct pollfd poll = { .fd = fd, .events = POLLIN };
	int ready = CALL(poll, &poll, 1, timeout_ms);
	return ready < 0 ? ready : poll.revents;
}

/* Opens samples of faults, 16 bytes each, with one data page (4 KiB; other sizes scale the
 * watermarks). */
static int open_waking(struct surface *surface, struct ring *ring, uint64_t flags, uint32_t wakeup)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	attr.flags |= flags;
	attr.wakeup_events = wakeup;
	CHECK_RING(ring, surface, &attr, 0, -1, 1);
	return 0;
}

static int wakes_after(struct surface *surface, struct ring *ring, unsigned samples)
{
	CHECK_EQUAL(polled(surface, ring->fd, 0), 0);
	ring_run_faults(surface, ring->fd, samples - 1);
	CHECK_EQUAL(polled(surface, ring->fd, 0), 0);
	ring_run_faults(surface, ring->fd, 1);
	CHECK_EQUAL(polled(surface, ring->fd, WAIT_MS), POLLIN);
	return 0;
}

static int poll_wakes_each_wakeup_events(struct surface *surface)
{
	struct ring ring;
	CHECK_EQUAL(open_waking(surface, &ring, 0, 5), 0);
	CHECK_EQUAL(wakes_after(surface, &ring, 5), 0);
	CHECK_EQUAL(wakes_after(surface, &ring, 5), 0);
	return 0;
}

static int poll_wakes_past_the_watermark(struct surface *surface)
{
	struct ring ring;
	CHECK_EQUAL(open_waking(surface, &ring, TALLY_ATTR_WATERMARK, 10 * SAMPLE_SIZE), 0);
	CHECK_EQUAL(wakes_after(surface, &ring, 11), 0);
	CHECK_EQUAL(wakes_after(surface, &ring, 10), 0);
	return 0;
}

static int poll_wakes_at_half_the_buffer(struct surface *surface)
{
	struct ring ring;
	CHECK_EQUAL(open_waking(surface, &ring, 0, 0), 0);
	unsigned half = (unsigned)(surface->page_size / 2 / SAMPLE_SIZE);
	CHECK_EQUAL(wakes_after(surface, &ring, half + 1), 0);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), half + 1);
	CHECK_EQUAL(wakes_after(surface, &ring, half), 0);
	return 0;
}

static int watermark_zero_is_half_the_buffer(struct surface *surface)
{
	struct ring ring;
	CHECK_EQUAL(open_waking(surface, &ring, TALLY_ATTR_WATERMARK, 0), 0);
	CHECK_EQUAL(
		wakes_after(surface, &ring, (unsigned)(surface->page_size / 2 / SAMPLE_SIZE) + 1),
		0);
	return 0;
}

/* A watermark above the buffer's size acts as the buffer's size, and reading makes room for it. */
static int watermark_is_at_most_the_buffer(struct surface *surface)
{
	struct ring ring;
	unsigned all = (unsigned)(surface->page_size / SAMPLE_SIZE);
	CHECK_EQUAL(open_waking(surface, &ring, TALLY_ATTR_WATERMARK, 1u << 30), 0);
	ring_run_faults(surface, ring.fd, all - 10);
	CHECK_EQUAL(polled(surface, ring.fd, 0), 0);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), all - 10);
	ring_run_faults(surface, ring.fd, 10);
	CHECK_EQUAL(polled(surface, ring.fd, 0), 0);
	ring_run_faults(surface, ring.fd, 1);
	CHECK_EQUAL(polled(surface, ring.fd, WAIT_MS), POLLIN);
	return 0;
}

static int poll_tells_once(struct surface *surface)
{
	struct ring ring;
	CHECK_EQUAL(open_waking(surface, &ring, 0, 1), 0);
	ring_run_faults(surface, ring.fd, 3);
	CHECK_EQUAL(polled(surface, ring.fd, WAIT_MS), POLLIN);
	CHECK_EQUAL(polled(surface, ring.fd, 0), 0);
	return 0;
}

static int poll_sleeps_until_a_wakeup(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	struct ring ring;
	attr.wakeup_events = 1;
	attr.config = TALLY_SW_TASK_CLOCK;
	attr.sample_period = MILLISECOND;
	volatile uint32_t *stop = CALL(shared, sizeof(*stop));
	CHECK(stop);
	pid_t task = CALL(spawn, SURFACE_THREAD, ring_burns_until_told, (void *)stop);
	CHECK(task > 0);
	CHECK_RING(&ring, surface, &attr, task, -1, 1);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	int revents = polled(surface, ring.fd, -1);
	CALL(post, stop, 1);
	CALL(wait, task);
	CHECK_EQUAL(revents, POLLIN);
	CHECK_BETWEEN(ring_count(&ring, TALLY_RECORD_SAMPLE), 1, 255);
	return 0;
}

static int select_wakes(struct surface *surface)
{
	struct ring ring;
	struct timeval none = { 0 }, long_ = { .tv_sec = WAIT_MS / 1000 };
	fd_set set;
	CHECK_EQUAL(open_waking(surface, &ring, 0, 2), 0);
	ring_run_faults(surface, ring.fd, 1);
	FD_ZERO(&set);
	FD_SET(ring.fd, &set);
	CHECK_EQUAL(select(ring.fd + 1, &set, NULL, NULL, &none), 0);
	ring_run_faults(surface, ring.fd, 1);
	FD_SET(ring.fd, &set);
	CHECK_EQUAL(select(ring.fd + 1, &set, NULL, NULL, &long_), 1);
	CHECK(FD_ISSET(ring.fd, &set));
	return 0;
}

static int epoll_wakes(struct surface *surface)
{
	struct ring ring;
	struct epoll_event event = { .events = EPOLLIN };
	CHECK_EQUAL(open_waking(surface, &ring, 0, 2), 0);
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	CHECK(epoll >= 0);
	CHECK_EQUAL(epoll_ctl(epoll, EPOLL_CTL_ADD, ring.fd, &event), 0);
	ring_run_faults(surface, ring.fd, 1);
	CHECK_EQUAL(epoll_wait(epoll, &event, 1, 0), 0);
	ring_run_faults(surface, ring.fd, 1);
	CHECK_EQUAL(epoll_wait(epoll, &event, 1, WAIT_MS), 1);
	CHECK_EQUAL(event.events, EPOLLIN);
	return 0;
}

static int poll_without_a_ring_hup(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	CHECK_EQUAL(polled(surface, fd, 0), POLLHUP);
	return 0;
}

static int poll_after_unmapping_hup(struct surface *surface)
{
	struct ring ring;
	CHECK_EQUAL(open_waking(surface, &ring, 0, 1), 0);
	CHECK_EQUAL(polled(surface, ring.fd, 0), 0);
	CHECK_EQUAL(CALL(munmap, ring.page, ring.map_size), 0);
	CHECK_EQUAL(polled(surface, ring.fd, 0), POLLHUP);
	return 0;
}

static void fault_a_little(struct surface *surface)
{
	CALL(fault, 3);
}

static int poll_after_the_targets_exit_hup(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	struct ring ring;
	struct ring_child *child = ring_child_new(surface, SURFACE_PROCESS, fault_a_little);
	attr.flags &= ~TALLY_ATTR_DISABLED;
	CHECK(child);
	CHECK_RING(&ring, surface, &attr, child->task, -1, 1);
	CHECK_EQUAL(polled(surface, ring.fd, 0), 0);
	CHECK_EQUAL(ring_child_leave(surface, child), 0);
	CHECK_EQUAL(polled(surface, ring.fd, WAIT_MS), POLLHUP);
	CHECK_EQUAL(polled(surface, ring.fd, 0), POLLHUP);
	CHECK_BETWEEN(ring_count(&ring, TALLY_RECORD_SAMPLE), 3, 255);
	return 0;
}

static int exit_wakes_who_polls(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	struct ring ring;
	struct ring_child *child = ring_child_new(surface, SURFACE_PROCESS, NULL);
	CHECK(child);
	CHECK_RING(&ring, surface, &attr, child->task, -1, 1);
	CALL(post, &child->go, 1);
	CHECK_EQUAL(polled(surface, ring.fd, -1), POLLHUP);
	CHECK_EQUAL(CALL(wait, child->task), 0);
	return 0;
}

struct family {
	struct ring_child inner; /* its words `go` and `leave` are the grandchild's */
	volatile uint32_t go, forked;
};

static int grandchild_body(struct surface *surface, void *argument)
{
	struct family *family = argument;
	CALL(wait_while, &family->inner.leave, 0);
	CALL(post, &family->inner.done, 1);
	return 0;
}

static int parent_body(struct surface *surface, void *argument)
{
	struct family *family = argument;
	CALL(wait_while, &family->go, 0);
	pid_t grandchild = CALL(spawn, SURFACE_PROCESS, grandchild_body, family);
	CALL(post, &family->forked, 1);
	return grandchild > 0 ? 0 : 1; /* the grandchild lives on */
}

static int hup_waits_for_inherited_events(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	struct ring ring;
	struct family *family = CALL(shared, sizeof(*family));
	int cpu = CALL(this_cpu);
	CHECK(family);
	CHECK_EQUAL(CALL(pin, cpu), 0);
	pid_t child = CALL(spawn, SURFACE_PROCESS, parent_body, family);
	CHECK(child > 0);
	attr.flags |= TALLY_ATTR_INHERIT;
	CHECK_RING(&ring, surface, &attr, child, cpu, 1);
	CALL(post, &family->go, 1);
	CALL(wait_while, &family->forked, 0);
	CHECK_EQUAL(CALL(wait, child), 0);
	CHECK_EQUAL(polled(surface, ring.fd, 0), 0);
	CALL(post, &family->inner.leave, 1);
	CHECK_EQUAL(polled(surface, ring.fd, -1), POLLHUP);
	return 0;
}

/* --- Signals -------------------------------------------------------------- */

static int make_async(struct surface *surface, int fd)
{
	CHECK_EQUAL(CALL(watch_signal, OVERFLOW_SIGNAL), 0);
	CHECK_EQUAL(CALL(fcntl, fd, F_SETSIG, OVERFLOW_SIGNAL), 0);
	CHECK_EQUAL(CALL(fcntl, fd, F_SETOWN, CALL(self)), 0);
	CHECK_EQUAL(CALL(fcntl, fd, F_SETFL, O_ASYNC), 0);
	return 0;
}

static unsigned signals_of(struct surface *surface, int *code)
{
	uint64_t data;
	CALL(yield_to_signal);
	return CALL(signals, OVERFLOW_SIGNAL, code, &data);
}

static int signal_comes_at_each_overflow(struct surface *surface)
{
	struct ring ring;
	int code = 0;
	CHECK_EQUAL(open_waking(surface, &ring, 0, 10), 0);
	CHECK_EQUAL(make_async(surface, ring.fd), 0);
	ring_run_faults(surface, ring.fd, 100);
	CHECK_EQUAL(signals_of(surface, &code), 100);
	CHECK_EQUAL(code, POLL_IN);
	return 0;
}

static int signal_comes_at_each_period(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(10, TALLY_SAMPLE_IP);
	struct ring ring;
	int code = 0;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	CHECK_EQUAL(make_async(surface, ring.fd), 0);
	ring_run_faults(surface, ring.fd, 105);
	CHECK_EQUAL(signals_of(surface, &code), 10);
	return 0;
}

static int no_signal_without_async(struct surface *surface)
{
	struct ring ring;
	int code = 0;
	CHECK_EQUAL(open_waking(surface, &ring, 0, 1), 0);
	CHECK_EQUAL(make_async(surface, ring.fd), 0);
	CHECK_EQUAL(CALL(fcntl, ring.fd, F_SETFL, 0), 0);
	ring_run_faults(surface, ring.fd, 10);
	CHECK_EQUAL(signals_of(surface, &code), 0);
	return 0;
}

static int signal_comes_without_a_ring(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	int code = 0, fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	CHECK_EQUAL(make_async(surface, fd), 0);
	ring_run_faults(surface, fd, 10);
	CHECK_EQUAL(signals_of(surface, &code), 10);
	return 0;
}

static int signal_goes_to_the_owner_thread(struct surface *surface)
{
	struct f_owner_ex owner = { .type = F_OWNER_TID, .pid = CALL(self) };
	struct ring ring;
	int code = 0;
	CHECK_EQUAL(open_waking(surface, &ring, 0, 1), 0);
	CHECK_EQUAL(CALL(watch_signal, OVERFLOW_SIGNAL), 0);
	CHECK_EQUAL(CALL(fcntl, ring.fd, F_SETSIG, OVERFLOW_SIGNAL), 0);
	CHECK_EQUAL(CALL(fcntl, ring.fd, F_SETOWN_EX, (long)&owner), 0);
	CHECK_EQUAL(CALL(fcntl, ring.fd, F_SETFL, O_ASYNC), 0);
	ring_run_faults(surface, ring.fd, 5);
	CHECK_EQUAL(signals_of(surface, &code), 5);
	return 0;
}

static int sigio_is_the_default_signal(struct surface *surface)
{
	struct ring ring;
	int code = 0;
	uint64_t data;
	CHECK_EQUAL(open_waking(surface, &ring, 0, 1), 0);
	CHECK_EQUAL(CALL(watch_signal, SIGIO), 0);
	CHECK_EQUAL(CALL(fcntl, ring.fd, F_SETOWN, CALL(self)), 0);
	CHECK_EQUAL(CALL(fcntl, ring.fd, F_SETFL, O_ASYNC), 0);
	ring_run_faults(surface, ring.fd, 1);
	CALL(yield_to_signal);
	CHECK_EQUAL(CALL(signals, SIGIO, &code, &data), 1);
	return 0;
}

/* --- REFRESH -------------------------------------------------------------- */

/* Refreshes the event: a limit of samples. */
static int refresh(struct surface *surface, struct ring *ring, int limit)
{
	return (int)CALL(ioctl, ring->fd, TALLY_IOC_REFRESH, (uintptr_t)limit);
}

static int refresh_ends_after_n_overflows(struct surface *surface)
{
	struct ring ring;
	int code = 0;
	CHECK_EQUAL(open_waking(surface, &ring, 0, 1), 0);
	CHECK_EQUAL(make_async(surface, ring.fd), 0);
	CALL(fault, 1);
	CHECK_EQUAL(refresh(surface, &ring, 3), 0);
	CALL(fault, 2);
	CHECK_EQUAL(signals_of(surface, &code), 2);
	CHECK_EQUAL(code, POLL_IN);
	CALL(fault, 1);
	CHECK_EQUAL(signals_of(surface, &code), 3);
	CHECK_EQUAL(code, POLL_HUP);
	CALL(fault, 10);
	CHECK_EQUAL(signals_of(surface, &code), 3);
	CHECK_EQUAL(ring_event_count(surface, ring.fd), 3);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 3);
	return 0;
}

static int refresh_counts_overflows_not_events(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(10, TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	CALL(fault, 1);
	CHECK_EQUAL(refresh(surface, &ring, 2), 0);
	CALL(fault, 50);
	CHECK_EQUAL(ring_event_count(surface, ring.fd), 20);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 2);
	return 0;
}

static int refreshes_add_up(struct surface *surface)
{
	struct ring ring;
	CHECK_EQUAL(open_waking(surface, &ring, 0, 1), 0);
	CALL(fault, 1);
	CHECK_EQUAL(refresh(surface, &ring, 2), 0);
	CHECK_EQUAL(refresh(surface, &ring, 3), 0);
	CALL(fault, 10);
	CHECK_EQUAL(ring_event_count(surface, ring.fd), 5);
	return 0;
}

static int refresh_again_after_its_end(struct surface *surface)
{
	struct ring ring;
	CHECK_EQUAL(open_waking(surface, &ring, 0, 1), 0);
	CALL(fault, 1);
	for (unsigned i = 1; i <= 3; i++) {
		CHECK_EQUAL(refresh(surface, &ring, 1), 0);
		CALL(fault, 5);
		CHECK_EQUAL(ring_event_count(surface, ring.fd), i);
	}
	return 0;
}

static int refresh_zero_enables_without_a_limit(struct surface *surface)
{
	struct ring ring;
	CHECK_EQUAL(open_waking(surface, &ring, 0, 1), 0);
	CALL(fault, 1);
	CHECK_EQUAL(refresh(surface, &ring, 0), 0);
	CALL(fault, 20);
	CHECK_EQUAL(ring_event_count(surface, ring.fd), 20);
	return 0;
}

static int enable_after_refresh_keeps_the_limit(struct surface *surface)
{
	struct ring ring;
	CHECK_EQUAL(open_waking(surface, &ring, 0, 1), 0);
	CALL(fault, 1);
	CHECK_EQUAL(refresh(surface, &ring, 4), 0);
	CALL(fault, 1);
	CHECK_EQUAL(CALL(ioctl, ring.fd, TALLY_IOC_DISABLE, 0), 0);
	CALL(fault, 5);
	CHECK_EQUAL(CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0), 0);
	CALL(fault, 20);
	CHECK_EQUAL(ring_event_count(surface, ring.fd), 4);
	return 0;
}

static int refresh_of_a_counting_event_einval(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(0, 0);
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	CHECK_ERROR(CALL(ioctl, fd, TALLY_IOC_REFRESH, 1), EINVAL);
	return 0;
}

static int refresh_of_an_inherited_event_einval(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	attr.flags |= TALLY_ATTR_INHERIT;
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	CHECK_ERROR(CALL(ioctl, fd, TALLY_IOC_REFRESH, 1), EINVAL);
	return 0;
}

/* --- sigtrap -------------------------------------------------------------- */

static struct tally_attr trap_attr(uint64_t period)
{
	struct tally_attr attr = ring_faults_attr(period, 0);
	attr.flags |= TALLY_ATTR_SIGTRAP | TALLY_ATTR_REMOVE_ON_EXEC;
	attr.sig_data = 0x7a117a11;
	return attr;
}

static int sigtrap_comes_at_each_overflow(struct surface *surface)
{
	struct tally_attr attr = trap_attr(1);
	int code = 0;
	uint64_t data = 0;
	CHECK_EQUAL(CALL(watch_signal, SIGTRAP), 0);
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	ring_run_faults(surface, fd, 12);
	CALL(yield_to_signal);
	CHECK_EQUAL(CALL(signals, SIGTRAP, &code, &data), 12);
	CHECK_EQUAL(code, TRAP_PERF_CODE);
	CHECK_EQUAL(data, attr.sig_data);
	return 0;
}

static int sigtrap_by_period(struct surface *surface)
{
	struct tally_attr attr = trap_attr(5);
	int code = 0;
	uint64_t data = 0;
	CHECK_EQUAL(CALL(watch_signal, SIGTRAP), 0);
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	ring_run_faults(surface, fd, 24);
	CALL(yield_to_signal);
	CHECK_EQUAL(CALL(signals, SIGTRAP, &code, &data), 4);
	return 0;
}

static int sigtrap_of_a_breakpoint(struct surface *surface)
{
#if defined(__aarch64__)
	/* the access is repeated endlessly after the handler */
	return CLAUSE_NOT_APPLICABLE + NA_KERNEL_QUIRK;
#endif
	struct tally_attr attr = ring_attr(TALLY_TYPE_BREAKPOINT, 0, 1, 0);
	int code = 0;
	uint64_t data = 0;
	if (surface->features & SURFACE_ARM_PMU && !strcmp(surface->ops->name, "kernel"))
		return CLAUSE_NOT_APPLICABLE + NA_KERNEL_QUIRK; /* endless on this kernel */
	attr.bp_type = TALLY_BREAKPOINT_W;
	attr.config1 = CALL(watched_address, TALLY_BREAKPOINT_W);
	attr.config2 = 4;
	attr.flags |= TALLY_ATTR_SIGTRAP | TALLY_ATTR_REMOVE_ON_EXEC;
	attr.sig_data = UINT64_MAX - 5;
	CHECK_EQUAL(CALL(watch_signal, SIGTRAP), 0);
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	CALL(ioctl, fd, TALLY_IOC_ENABLE, 0);
	CALL(touch, TALLY_BREAKPOINT_W, 6);
	CALL(ioctl, fd, TALLY_IOC_DISABLE, 0);
	CALL(yield_to_signal);
	CHECK_EQUAL(CALL(signals, SIGTRAP, &code, &data), 6);
	CHECK_EQUAL(data, attr.sig_data);
	return 0;
}

static int sigtrap_wants_remove_on_exec(struct surface *surface)
{
	struct tally_attr attr = trap_attr(1);
	attr.flags &= ~TALLY_ATTR_REMOVE_ON_EXEC;
	CHECK_ERROR(CALL(open, &attr, 0, -1, -1, 0), EINVAL);
	return 0;
}

static int sigtrap_of_a_cpu_einval(struct surface *surface)
{
	struct tally_attr attr = trap_attr(1);
	CHECK_ERROR(CALL(open, &attr, -1, CALL(this_cpu), -1, 0), EINVAL);
	return 0;
}

const struct clause clauses_c_wakeup[] = {
	{ "C5.poll_wakes_each_wakeup_events", "poll wakes after each wakeup_events records.", 0,
	  poll_wakes_each_wakeup_events },
	{ "C5.poll_wakes_past_the_watermark",
	  "poll wakes when more than wakeup_watermark bytes have come.", 0,
	  poll_wakes_past_the_watermark },
	{ "C5.poll_wakes_at_half_the_buffer", "With neither poll wakes past half the buffer.", 0,
	  poll_wakes_at_half_the_buffer },
	{ "C5.watermark_zero_is_half_the_buffer", "A watermark of 0 is half the buffer.", 0,
	  watermark_zero_is_half_the_buffer },
	{ "C5.watermark_is_at_most_the_buffer", "A larger watermark is the buffer's size.", 0,
	  watermark_is_at_most_the_buffer },
	{ "C5.poll_tells_once", "poll tells of a wake-up once, whether data is read or not.", 0,
	  poll_tells_once },
	{ "C5.poll_sleeps_until_a_wakeup", "poll sleeps until a wake-up.", 0,
	  poll_sleeps_until_a_wakeup },
	{ "C5.select_wakes", "select wakes like poll.", SURFACE_VFS, select_wakes },
	{ "C5.epoll_wakes", "epoll wakes like poll.", SURFACE_VFS, epoll_wakes },
	{ "C5.poll_without_a_ring_hup", "poll without a ring: POLLHUP.", 0,
	  poll_without_a_ring_hup },
	{ "C5.poll_after_unmapping_hup", "poll when the ring is unmapped: POLLHUP.", 0,
	  poll_after_unmapping_hup },
	{ "C5.poll_after_the_targets_exit_hup",
	  "poll after the target's exit: POLLHUP; its records are there.", 0,
	  poll_after_the_targets_exit_hup },
	{ "C5.exit_wakes_who_polls", "The target's exit wakes who polls.", 0,
	  exit_wakes_who_polls },
	{ "C5.hup_waits_for_inherited_events", "POLLHUP waits until the last heir has gone.", 0,
	  hup_waits_for_inherited_events },
	{ "C5.signal_at_each_overflow",
	  "O_ASYNC: a signal at each overflow, whatever wakeup_events says.", 0,
	  signal_comes_at_each_overflow },
	{ "C5.signal_at_each_period", "O_ASYNC: an overflow is a period, not an event.", 0,
	  signal_comes_at_each_period },
	{ "C5.no_signal_without_async", "Without O_ASYNC no signal.", 0, no_signal_without_async },
	{ "C5.signal_without_a_ring", "O_ASYNC works without a ring.", 0,
	  signal_comes_without_a_ring },
	{ "C5.signal_to_the_owner_thread", "F_SETOWN_EX names a thread.", 0,
	  signal_goes_to_the_owner_thread },
	{ "C5.sigio_by_default", "Without F_SETSIG the signal is SIGIO.", 0,
	  sigio_is_the_default_signal },
	{ "C5.refresh", "REFRESH n: n - 1 POLL_IN, then POLL_HUP and disabled.", 0,
	  refresh_ends_after_n_overflows },
	{ "C5.refresh_counts_overflows", "REFRESH counts overflows, not events.", 0,
	  refresh_counts_overflows_not_events },
	{ "C5.refreshes_add_up", "REFRESH adds to what is left.", 0, refreshes_add_up },
	{ "C5.refresh_again", "REFRESH enables again after its end.", 0,
	  refresh_again_after_its_end },
	{ "C5.refresh_zero", "REFRESH 0 enables without a limit.", 0,
	  refresh_zero_enables_without_a_limit },
	{ "C5.enable_keeps_the_limit", "DISABLE and ENABLE keep REFRESH's limit.", 0,
	  enable_after_refresh_keeps_the_limit },
	{ "C5.refresh_counting_einval", "REFRESH of a counting event: EINVAL.", 0,
	  refresh_of_a_counting_event_einval },
	{ "C5.refresh_inherited_einval", "REFRESH of an inherited event: EINVAL.", 0,
	  refresh_of_an_inherited_event_einval },
	{ "C5.sigtrap", "sigtrap: a SIGTRAP with sig_data at each overflow.", 0,
	  sigtrap_comes_at_each_overflow },
	{ "C5.sigtrap_by_period", "sigtrap: one signal a period.", 0, sigtrap_by_period },
	{ "C5.sigtrap_of_a_breakpoint", "sigtrap of a breakpoint, with 64 bits of sig_data.",
	  SURFACE_BREAKPOINTS, sigtrap_of_a_breakpoint },
	{ "C5.sigtrap_wants_remove_on_exec", "sigtrap without remove_on_exec: EINVAL.", 0,
	  sigtrap_wants_remove_on_exec },
	{ "C5.sigtrap_of_a_cpu_einval", "sigtrap of a CPU's event: EINVAL.", SURFACE_PRIVILEGED,
	  sigtrap_of_a_cpu_einval },
	{ NULL, NULL, 0, NULL },
};
