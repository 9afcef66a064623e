/* SPEC part A: opening.  The descriptor, the size of the attributes, exhausted resources. */
#include "counting.h"
#include "puppet.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* --- A1: a descriptor ----------------------------------------------------- */

static int a_descriptor_each(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	int first = open_self(surface, &attr), second = open_self(surface, &attr);
	CHECK_OPENS(first);
	CHECK_OPENS(second);
	CHECK(first != second);
	disable(surface, second);
	int64_t kept = count_of(surface, second), before = count_of(surface, first);
	CALL(fault, 3);
	CHECK_EQUAL(count_of(surface, first) - before, 3);
	CHECK_EQUAL(count_of(surface, second), kept);
	return 0;
}

static int lowest_number_free(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	int first = open_self(surface, &attr), second = open_self(surface, &attr);
	CHECK_OPENS(first);
	CALL(close, first);
	CHECK_EQUAL(open_self(surface, &attr), first);
	CALL(close, second);
	CHECK_EQUAL(open_self(surface, &attr), second);
	return 0;
}

static int reads(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_EQUAL(count_of(surface, fd), 0);
	CHECK_EQUAL(count_of(surface, fd), 0); /* there is no file position that advances */
	return 0;
}

static int answers_ioctl(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_EQUAL(enable(surface, fd), 0);
	CHECK_ERROR(CALL(ioctl, fd, 0x2450, 0), ENOTTY);
	return 0;
}

static int answers_poll(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	struct pollfd polled = { .fd = open_self(surface, &attr), .events = POLLIN };
	int error;
	CHECK_OPENS(polled.fd);
	CHECK(CALL(mmap, polled.fd, 2 * surface->page_size, PROT_READ | PROT_WRITE, MAP_SHARED, 0,
		   &error));
	CHECK_EQUAL(CALL(poll, &polled, 1, 0), 0);
	return 0;
}

static int answers_fcntl(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_EQUAL(CALL(fcntl, fd, F_GETFL, 0) & O_ACCMODE, O_RDWR);
	CHECK_EQUAL(CALL(fcntl, fd, F_SETFL, O_NONBLOCK), 0);
	CHECK_EQUAL(CALL(fcntl, fd, F_GETFL, 0) & O_NONBLOCK, O_NONBLOCK);
	CHECK_EQUAL(CALL(fcntl, fd, F_SETFD, FD_CLOEXEC), 0);
	CHECK_EQUAL(CALL(fcntl, fd, F_GETFD, 0), FD_CLOEXEC);
	return 0;
}

static int maps(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	int fd = open_self(surface, &attr), error = 0;
	CHECK_OPENS(fd);
	struct tally_user_page *page = CALL(mmap, fd, surface->page_size, PROT_READ, MAP_SHARED, 0,
					    &error);
	CHECK_EQUAL(error, 0);
	CHECK(page && page->lock % 2 == 0);
	CHECK_EQUAL(CALL(munmap, page, surface->page_size), 0);
	return 0;
}

static int mapping_outlives_close(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	int fd = open_self(surface, &attr), error;
	CHECK_OPENS(fd);
	struct tally_user_page *page = CALL(mmap, fd, surface->page_size, PROT_READ, MAP_SHARED, 0,
					    &error);
	CHECK(page);
	CHECK_EQUAL(CALL(close, fd), 0);
	CHECK_EQUAL(page->lock % 2, 0); /* the mapping is still readable */
	CHECK_EQUAL(CALL(munmap, page, surface->page_size), 0);
	return 0;
}

static int duplicates(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	int other = CALL(fcntl, fd, F_DUPFD, 0);
	CHECK_OPENS(other);
	CHECK(other != fd);
	CHECK_EQUAL(disable(surface, fd), 0); /* both descriptors refer to the same event */
	int64_t count = count_of(surface, fd);
	CALL(fault, 5);
	CHECK_EQUAL(count_of(surface, other), count);
	CHECK_EQUAL(CALL(close, fd), 0);
	enable(surface, other);
	count = count_of(surface, other);
	CALL(fault, 5);
	CHECK_EQUAL(count_of(surface, other) - count, 5);
	return 0;
}

static int closes(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_EQUAL(CALL(close, fd), 0);
	CHECK_ERROR(count_of(surface, fd), EBADF);
	CHECK_ERROR(enable(surface, fd), EBADF);
	CHECK_ERROR(CALL(close, fd), EBADF);
	return 0;
}

struct seen {
	int fd;
	int64_t value;
	volatile uint32_t done;
};

static int read_in_child(struct surface *surface, void *seen_)
{
	struct seen *seen = seen_;
	CALL(fault, 50); /* its own faults: the event is the parent's */
	seen->value = count_of(surface, seen->fd);
	return disable(surface, seen->fd) == 0 && CALL(close, seen->fd) == 0 ? 0 : 1;
}

static int kept_across_fork(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	struct seen *seen = CALL(shared, sizeof(*seen));
	seen->fd = open_self(surface, &attr);
	CHECK_OPENS(seen->fd);
	pid_t child = CALL(spawn, SURFACE_PROCESS, read_in_child, seen);
	CHECK_EQUAL(CALL(wait, child), 0);
	/* the child closed only its own descriptor */
	int64_t count = count_of(surface, seen->fd);
	CHECK(seen->value >= 0 && seen->value <= count);
	CALL(fault, 5);
	/* the child's ioctl acted on the event itself */
	CHECK_EQUAL(count_of(surface, seen->fd), count);
	return 0;
}

static int read_after_exec(struct surface *surface, void *seen_)
{
	struct seen *seen = seen_;
	seen->value = count_of(surface, seen->fd);
	return 0;
}

static int exec_reader(struct surface *surface, void *seen)
{
	return CALL(exec, "reader", read_after_exec, seen, 0);
}

static int kept_across_exec(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	struct seen *seen = CALL(shared, sizeof(*seen));
	seen->fd = open_self(surface, &attr);
	CHECK_OPENS(seen->fd);
	seen->value = -1;
	CHECK_EQUAL(CALL(wait, CALL(spawn, SURFACE_PROCESS, exec_reader, seen)), 0);
	CHECK_EQUAL(seen->value, 0);
	return 0;
}

static int cloexec_closed_at_exec(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	struct seen *seen = CALL(shared, sizeof(*seen));
	seen->fd = CALL(open, &attr, 0, -1, -1, TALLY_FLAG_FD_CLOEXEC);
	CHECK_OPENS(seen->fd);
	CHECK_EQUAL(CALL(wait, CALL(spawn, SURFACE_PROCESS, exec_reader, seen)), 0);
	CHECK_ERROR(seen->value, EBADF);
	CHECK_EQUAL(count_of(surface, seen->fd), 0);
	return 0;
}

/* Sends one byte and a descriptor; receives them if *fd is negative.  Returns 0 or -1. */
static int pass_descriptor(int socket, int *fd)
{
	char byte = 'd';
	union { struct cmsghdr header; char room[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	struct iovec vector = { &byte, 1 };
	struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	if (*fd < 0) {
		if (recvmsg(socket, &message, 0) != 1 || !CMSG_FIRSTHDR(&message))
			return -1;
		memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(*fd));
		return 0;
	}
	control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
					   .cmsg_level = SOL_SOCKET,
					   .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.header), fd, sizeof(*fd));
	return sendmsg(socket, &message, 0) == 1 ? 0 : -1;
}

static int open_and_pass(struct surface *surface, void *socket)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	disable(surface, fd);
	CALL(ioctl, fd, TALLY_IOC_RESET, 0);
	enable(surface, fd);
	CALL(fault, 30);
	disable(surface, fd);
	return pass_descriptor((int)(intptr_t)socket, &fd);
}

/* Uses sockets of the VFS: a surface without SURFACE_VFS does not get here. */
static int passed_over_socket(struct surface *surface)
{
	int pair[2], fd = -1;
	CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	pid_t child = CALL(spawn, SURFACE_PROCESS, open_and_pass, (void *)(intptr_t)pair[1]);
	CHECK_EQUAL(pass_descriptor(pair[0], &fd), 0);
	CHECK_EQUAL(CALL(wait, child), 0);
	CHECK(count_of(surface, fd) >= 30); /* the child's faults, although it has ended */
	return 0;
}

/* --- A2: the size, and what is reserved ----------------------------------- */

/* An attribute with space behind it for fields of later kernels. */
union large_attr {
	struct tally_attr attr;
	unsigned char bytes[8192];
};

static union large_attr large_dummy(struct surface *surface)
{
	return (union large_attr){ .attr = software_attr(surface, TALLY_SW_DUMMY) };
}

static int open_of_size(struct surface *surface, union large_attr *large, uint32_t size)
{
	large->attr.size = size;
	return try_open(surface, &large->attr);
}

static int size_zero_means_64(struct surface *surface)
{
	union large_attr large = large_dummy(surface);
	/* beyond the 64 bytes that the call reads: ignored */
	large.attr.branch_sample_type = 1ull << 63;
	large.attr.sample_type = TALLY_SAMPLE_BRANCH_STACK;
	large.attr.reserved_2 = 1;
	CHECK(open_of_size(surface, &large, sizeof(large.attr)) == -EINVAL);
	large.attr.sample_type = 0;
	CHECK_EQUAL(open_of_size(surface, &large, 0), 0);
	return 0;
}

static int size_64_is_enough(struct surface *surface)
{
	union large_attr large = large_dummy(surface);
	large.attr.reserved_2 = 1;
	CHECK_EQUAL(open_of_size(surface, &large, 64), 0);
	return 0;
}

static int sizes_between(struct surface *surface)
{
	union large_attr large = large_dummy(surface);
	for (uint32_t size = 64; size <= 136; size++)
		CHECK_EQUAL(open_of_size(surface, &large, size), 0);
	return 0;
}

static int size_4096_with_zero_tail(struct surface *surface)
{
	union large_attr large = large_dummy(surface);
	CHECK_EQUAL(open_of_size(surface, &large, 4096), 0);
	CHECK_EQUAL(open_of_size(surface, &large, 1000), 0);
	return 0;
}

static int size_below_64_e2big(struct surface *surface)
{
	union large_attr large = large_dummy(surface);
	for (uint32_t size = 1; size < 64; size++)
		CHECK_ERROR(open_of_size(surface, &large, size), E2BIG);
	return 0;
}

static int size_above_4096_e2big(struct surface *surface)
{
	union large_attr large = large_dummy(surface);
	CHECK_ERROR(open_of_size(surface, &large, 4097), E2BIG);
	CHECK_ERROR(open_of_size(surface, &large, UINT32_MAX), E2BIG);
	return 0;
}

static int non_zero_tail_e2big(struct surface *surface)
{
	for (unsigned at = 1024; at < 4096; at += 511) {
		union large_attr large = large_dummy(surface);
		large.bytes[at] = 1;
		CHECK_ERROR(open_of_size(surface, &large, 4096), E2BIG);
		/* outside the size that was given */
		CHECK_EQUAL(open_of_size(surface, &large, at), 0);
	}
	return 0;
}

static int supported_size_is_written_back(struct surface *surface)
{
	static const uint32_t wrong[] = { 1, 63, 4097, UINT32_MAX };
	union large_attr large = large_dummy(surface);
	large.bytes[4095] = 1;
	CHECK_ERROR(open_of_size(surface, &large, 4096), E2BIG);
	uint32_t supported = large.attr.size;
	CHECK_BETWEEN(supported, 64, 4095);
	CHECK_EQUAL(supported % 8, 0);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CHECK_ERROR(open_of_size(surface, &large, wrong[i]), E2BIG);
		CHECK_EQUAL(large.attr.size, supported);
	}
	large = large_dummy(surface);
	large.bytes[supported] = 1; /* the first byte that isn't supported */
	CHECK_ERROR(open_of_size(surface, &large, supported + 8), E2BIG);
	CHECK_EQUAL(open_of_size(surface, &large, supported), 0);
	return 0;
}

static int size_is_left_on_success(struct surface *surface)
{
	union large_attr large = large_dummy(surface);
	CHECK_EQUAL(open_of_size(surface, &large, 0), 0);
	CHECK_EQUAL(large.attr.size, 0);
	CHECK_EQUAL(open_of_size(surface, &large, 4096), 0);
	CHECK_EQUAL(large.attr.size, 4096);
	return 0;
}

static int reserved_flags_einval(struct surface *surface)
{
	for (unsigned bit = 40; bit < 64; bit++) {
		struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
		attr.flags |= 1ull << bit;
		CHECK_ERROR(try_open(surface, &attr), EINVAL);
	}
	return 0;
}

static int reserved_fields_einval(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	for (unsigned bit = 0; bit < 16; bit++) {
		attr.reserved_2 = (uint16_t)(1u << bit);
		CHECK_ERROR(try_open(surface, &attr), EINVAL);
	}
	return 0;
}

static int unknown_sample_type_einval(struct surface *surface)
{
	for (unsigned bit = 25; bit < 64; bit++) {
		struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
		attr.sample_type = 1ull << bit;
		CHECK_ERROR(try_open(surface, &attr), EINVAL);
	}
	return 0;
}

static int unknown_read_format_einval(struct surface *surface)
{
	for (unsigned bit = 5; bit < 64; bit++) {
		struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
		attr.read_format = 1ull << bit;
		CHECK_ERROR(try_open(surface, &attr), EINVAL);
	}
	return 0;
}

/* --- A7: limits and bad pointers ------------------------------------------ */

static int out_of_descriptors(struct surface *surface)
{
	enum { ENOUGH = 100000 };
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	int fd = 0, last = -1;
	for (unsigned i = 0; i < ENOUGH && (fd = open_self(surface, &attr)) >= 0; i++)
		last = fd;
	CHECK_ERROR(fd, EMFILE);
	CHECK_EQUAL(CALL(close, last), 0);
	CHECK_EQUAL(open_self(surface, &attr), last);
	return 0;
}

static int bad_pointer(struct surface *surface)
{
	CHECK_ERROR(CALL(open, SURFACE_BAD_POINTER, 0, -1, -1, 0), EFAULT);
	return 0;
}

/* Returns how many siblings with this read_format a leader accepts before E2BIG.  -1: another
 * error. */
static long siblings_taken(struct surface *surface, uint64_t read_format)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_DUMMY);
	attr.read_format = read_format;
	int leader = open_self(surface, &attr), member = leader;
	long taken = 0;
	while (member >= 0 && (member = open_member(surface, &attr, leader)) >= 0)
		taken++;
	return member == -E2BIG ? taken : -1;
}

static int group_too_large(struct surface *surface)
{
	CHECK_EQUAL(siblings_taken(surface, TALLY_FORMAT_GROUP | TALLY_FORMAT_ID), 1022);
	return 0;
}

static int group_read_within_16k(struct surface *surface)
{
	CHECK_EQUAL(siblings_taken(surface, TALLY_FORMAT_GROUP | TALLY_FORMAT_ID |
						    TALLY_FORMAT_LOST |
						    TALLY_FORMAT_TOTAL_TIME_ENABLED |
						    TALLY_FORMAT_TOTAL_TIME_RUNNING),
		    680);
	return 0;
}

const struct clause clauses_a[] = {
	{ "A1.one_descriptor_each", "each event has a descriptor of its own", 0,
	  a_descriptor_each },
	{ "A1.lowest_number", "the descriptor is the lowest that is free", 0, lowest_number_free },
	{ "A1.read", "read(2) gives the count, from the start each time", 0, reads },
	{ "A1.ioctl", "ioctl(2) is answered; an unknown request gives ENOTTY", 0, answers_ioctl },
	{ "A1.poll", "poll(2) is answered", 0, answers_poll },
	{ "A1.fcntl", "fcntl(2) reads and sets the flags", 0, answers_fcntl },
	{ "A1.mmap", "the user page can be mapped", 0, maps },
	{ "A1.mapping_outlives_close", "a mapping stays when its descriptor is closed", 0,
	  mapping_outlives_close },
	{ "A1.dup", "a duplicate is the same event and outlives the first", 0, duplicates },
	{ "A1.close", "a closed descriptor is none", 0, closes },
	{ "A1.kept_across_fork", "a child has its parent's descriptors, for the same events", 0,
	  kept_across_fork },
	{ "A1.kept_across_exec", "descriptors stay open across exec", 0, kept_across_exec },
	{ "A1.cloexec", "FD_CLOEXEC closes the descriptor at exec", 0, cloexec_closed_at_exec },
	{ "A1.passed_over_socket", "a descriptor can be sent to another process", SURFACE_VFS,
	  passed_over_socket },

	{ "A2.size_zero_means_64", "a size of 0 means 64 bytes: what lies behind them is not read",
	  0, size_zero_means_64 },
	{ "A2.size_64", "64 bytes are enough", 0, size_64_is_enough },
	{ "A2.size_between", "any size from 64 to the largest is accepted", 0, sizes_between },
	{ "A2.size_4096_with_zero_tail",
	  "up to 4096 bytes are accepted when the unknown ones are zero", 0,
	  size_4096_with_zero_tail },
	{ "A2.size_below_64_e2big", "a size below 64 gives E2BIG", 0, size_below_64_e2big },
	{ "A2.size_above_4096_e2big", "a size above 4096 gives E2BIG", 0, size_above_4096_e2big },
	{ "A2.non_zero_tail_e2big", "unknown bytes that are not zero give E2BIG", 0,
	  non_zero_tail_e2big },
	{ "A2.supported_size_written_back", "on E2BIG the supported size is written back", 0,
	  supported_size_is_written_back },
	{ "A2.size_left_on_success", "without E2BIG the size is left as it was", 0,
	  size_is_left_on_success },
	{ "A2.reserved_flags_einval", "each reserved flag gives EINVAL", 0, reserved_flags_einval },
	{ "A2.reserved_fields_einval", "a reserved field that is not zero gives EINVAL", 0,
	  reserved_fields_einval },
	{ "A2.unknown_sample_type_einval", "each unknown bit of sample_type gives EINVAL", 0,
	  unknown_sample_type_einval },
	{ "A2.unknown_read_format_einval", "each unknown bit of read_format gives EINVAL", 0,
	  unknown_read_format_einval },

	{ "A7.out_of_descriptors_emfile", "with no descriptor left, open gives EMFILE", 0,
	  out_of_descriptors },
	{ "A7.bad_pointer_efault", "a bad pointer to the attributes gives EFAULT", 0, bad_pointer },
	{ "A7.group_too_large_e2big",
	  "a group's members, read with their ids, may be 1,023: the next gives E2BIG", 0,
	  group_too_large },
	{ "A7.group_read_within_16k",
	  "what a group's read gives is at most 16 KiB, whatever its format", 0,
	  group_read_within_16k },
	{ NULL, NULL, 0, NULL }
};
