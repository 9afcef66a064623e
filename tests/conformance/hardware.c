#include "hardware.h"

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

int hardware_user_read(struct surface *surface, const struct tally_user_page *page, uint64_t *value)
{
	uint32_t sequence, index;
	uint64_t count;
	/* pairs with the kernel's increments of `lock`, before and after it changes the other
	 * fields */
	do {
		sequence = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
		index = page->index;
		count = (uint64_t)page->offset; /* usually negative: the sum wraps */
		if (index && page->capabilities & TALLY_CAP_USER_RDPMC) {
			uint64_t raw = 0;
			unsigned unused = 64u - page->pmc_width;
			int error = CALL(read_counter, index - 1, &raw);
			if (error < 0)
				return error;
			count += (uint64_t)((int64_t)(raw << unused) >> unused);
		}
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (__atomic_load_n(&page->lock, __ATOMIC_RELAXED) != sequence);
	*value = count;
	return index ? 0 : -EAGAIN;
}
