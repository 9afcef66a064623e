#include "hardware.h"

#include "library/user_page.h"

#include <errno.h>
#include <sys/mman.h>

struct tally_attr hardware_event(enum tally_hw event, uint64_t flags)
{
	return (struct tally_attr){
		.type = TALLY_TYPE_HARDWARE,
		.size = sizeof(struct tally_attr),
		.config = event,
		.flags = flags,
		.read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING,
	};
}

int hardware_open(struct surface *surface, enum tally_hw event, uint64_t flags, int group)
{
	struct tally_attr attr = hardware_event(event, flags);
	return CALL(open, &attr, 0, -1, group, 0);
}

int hardware_read(struct surface *surface, int fd, struct hardware_values *values)
{
	ssize_t size = CALL(read, fd, values, sizeof(*values));
	if (size < 0)
		return (int)size;
	return size == sizeof(*values) ? 0 : -ENODATA;
}

int hardware_measure(struct surface *surface, unsigned count, const uint64_t *flags,
		     uint64_t *values, hardware_work *work)
{
	int fds[HARDWARE_GROUP_MAX] = { -1 }, result = 0;
	unsigned opened = 0;
	for (; opened < count && opened < HARDWARE_GROUP_MAX && result == 0; opened++) {
		fds[opened] = hardware_open(surface, TALLY_HW_INSTRUCTIONS,
					    flags[opened] | (opened ? 0 : TALLY_ATTR_DISABLED),
					    opened ? fds[0] : -1);
		if (fds[opened] < 0) {
			result = fds[opened];
			break;
		}
	}
	if (result == 0)
		result = (int)CALL(ioctl, fds[0], TALLY_IOC_ENABLE, 0);
	if (result == 0)
		result = work(surface);
	if (result == 0)
		result = (int)CALL(ioctl, fds[0], TALLY_IOC_DISABLE, 0);
	for (unsigned i = 0; i < opened && result == 0; i++) {
		struct hardware_values read;
		result = hardware_read(surface, fds[i], &read);
		if (result == 0 && read.time_running != read.time_enabled)
			result = -EAGAIN;
		values[i] = read.value;
	}
	while (opened)
		CALL(close, fds[--opened]);
	return result;
}

int hardware_open_readable(struct surface *surface, enum tally_hw event, uint64_t flags)
{
	struct tally_attr attr = hardware_event(event, flags);
	if (!(surface->features & SURFACE_ARM_PMU))
		return CALL(open, &attr, 0, -1, -1, 0);
	attr.config1 = ARM_LONG | ARM_USER_ACCESS;
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	if (fd != -EOPNOTSUPP)
		return fd;
	attr.config1 = ARM_USER_ACCESS;
	return CALL(open, &attr, 0, -1, -1, 0);
}

struct tally_user_page *hardware_user_page(struct surface *surface, int fd)
{
	int error;
	return CALL(mmap, fd, surface->page_size, PROT_READ, MAP_SHARED, 0, &error);
}

/* One read of the surface's counters. */
struct user_read {
	struct surface *surface;
	int error; /* of the instruction; 0: none, or none was executed */
};

static bool is_counter(uint32_t number)
{
	(void)number;
	return true;
}

static uint64_t read_counter(void *context, uint32_t number)
{
	struct user_read *read = context;
	struct surface *surface = read->surface;
	uint64_t value = 0;
	read->error = CALL(read_counter, number, &value);
	return value;
}

int hardware_user_read(struct surface *surface, struct tally_user_page *page, uint64_t *value)
{
	struct user_read read = { surface, 0 };
	const struct tally_user_counters cpu = { is_counter, read_counter, NULL, &read };
	if (tally_pages_read(&page, 1, &cpu, value, NULL))
		return read.error;
	*value = (uint64_t)page->offset; /* off the PMU, this is the count */
	return -EAGAIN;
}
