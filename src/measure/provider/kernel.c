/* The running kernel's perf events, by perf_event_open(2).  Handles are file descriptors. */
#include "event/event.h"
#include "provider/provider.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int kernel_open(struct tally_provider *provider, const struct tally_attr *attr, pid_t pid,
		       int cpu, int group, unsigned long flags)
{
	(void)provider;
	long fd = syscall(SYS_perf_event_open, attr, pid, cpu, group,
			  flags | TALLY_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	return (int)fd;
}

static ssize_t kernel_read(struct tally_provider *provider, int handle, void *bytes, size_t size)
{
	(void)provider;
	ssize_t got = read(handle, bytes, size);
	if (got < 0)
		return -errno;
	return got;
}

static int kernel_ioctl(struct tally_provider *provider, int handle, enum tally_ioctl request,
			void *argument, int whole_group)
{
	static const unsigned long requests[] = {
		[TALLY_IOCTL_ENABLE] = PERF_EVENT_IOC_ENABLE,
		[TALLY_IOCTL_DISABLE] = PERF_EVENT_IOC_DISABLE,
		[TALLY_IOCTL_REFRESH] = PERF_EVENT_IOC_REFRESH,
		[TALLY_IOCTL_RESET] = PERF_EVENT_IOC_RESET,
		[TALLY_IOCTL_PERIOD] = PERF_EVENT_IOC_PERIOD,
		[TALLY_IOCTL_SET_OUTPUT] = PERF_EVENT_IOC_SET_OUTPUT,
		[TALLY_IOCTL_SET_FILTER] = PERF_EVENT_IOC_SET_FILTER,
		[TALLY_IOCTL_ID] = PERF_EVENT_IOC_ID,
		[TALLY_IOCTL_PAUSE_OUTPUT] = PERF_EVENT_IOC_PAUSE_OUTPUT,
	};
	(void)provider;
	unsigned long value = whole_group ? PERF_IOC_FLAG_GROUP : (unsigned long)argument;
	if (ioctl(handle, requests[request], value) < 0)
		return -errno;
	return 0;
}

static struct tally_user_page *kernel_map(struct tally_provider *provider, int handle,
					  size_t data_pages, int overwrite)
{
	(void)provider;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int protection = PROT_READ;
	if (!overwrite)
		protection |= PROT_WRITE;
	void *map = mmap(NULL, (data_pages + 1) * page, protection, MAP_SHARED, handle, 0);
	if (map == MAP_FAILED)
		return NULL;
	return map;
}

static void kernel_unmap(struct tally_provider *provider, struct tally_user_page *user_page,
			 size_t data_pages)
{
	(void)provider;
	munmap(user_page, (data_pages + 1) * (size_t)sysconf(_SC_PAGESIZE));
}

static int kernel_wait(struct tally_provider *provider, struct tally_wait_item *items, size_t count,
		       int extra_fd, int timeout_ms)
{
	enum { ON_STACK = 64 };
	struct pollfd local[ON_STACK + 1], *fds = local;
	(void)provider;
	if (count > ON_STACK) {
		fds = calloc(count + 1, sizeof(*fds));
		if (!fds)
			return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++)
		fds[i] = (struct pollfd){ .fd = items[i].handle, .events = POLLIN };
	fds[count] = (struct pollfd){ .fd = extra_fd, .events = POLLIN };
	int ready;
	do /* a look without waiting sees all, also between signals */
		ready = poll(fds, (nfds_t)(count + (extra_fd >= 0)), timeout_ms);
	while (ready < 0 && errno == EINTR && !timeout_ms);
	int result = ready < 0 ? -errno : ready;
	for (size_t i = 0; i < count; i++)
		items[i].revents = ready > 0 ? fds[i].revents : 0;
	if (fds != local)
		free(fds);
	return result;
}

/* perf_event_open(2), "Signal notification"; fcntl(2).  A number that is set, even SIGIO, makes the
 * kernel tell the handler the descriptor. */
static int kernel_signal(struct tally_provider *provider, int handle, int number)
{
	struct f_owner_ex owner = { F_OWNER_TID, gettid() };
	(void)provider;
	int flags = fcntl(handle, F_GETFL);
	if (flags < 0)
		return -errno;
	if (!number)
		return fcntl(handle, F_SETFL, flags & ~O_ASYNC) < 0 ? -errno : 0;
	if (fcntl(handle, F_SETSIG, number) < 0 || fcntl(handle, F_SETOWN_EX, &owner) < 0 ||
	    fcntl(handle, F_SETFL, flags | O_ASYNC) < 0)
		return -errno;
	return 0;
}

static void kernel_close(struct tally_provider *provider, int handle)
{
	(void)provider;
	close(handle);
}

static void kernel_release(struct tally_provider *provider)
{
	(void)provider;
}

static int kernel_catalogue(struct tally_provider *provider, struct tally_catalogue *catalogue,
			    struct tally_error *err)
{
	(void)provider;
	return tally_kernel_catalogue(catalogue, err);
}

static int kernel_make(const struct tally_provider_choice *choice, struct tally_provider **out,
		       struct tally_error *err)
{
	(void)choice, (void)err;
	*out = tally_provider_kernel();
	return 0;
}

const struct tally_provider_ops tally_provider_kernel_ops = {
	.name = "kernel",
	.capabilities = TALLY_PROVIDER_SAMPLES | TALLY_PROVIDER_CATALOGUE |
			TALLY_PROVIDER_ANY_TARGET | TALLY_PROVIDER_THIS_MACHINE |
			TALLY_PROVIDER_LIVE_TASKS | TALLY_PROVIDER_KERNEL_MODE |
			TALLY_PROVIDER_FRAME_POINTERS | TALLY_PROVIDER_COMMAND_TIME |
			TALLY_PROVIDER_HOTPLUG | TALLY_PROVIDER_SLOW_CLOSE |
			TALLY_PROVIDER_DESCRIPTORS,
	.make = kernel_make,
	.catalogue = kernel_catalogue,
	.open = kernel_open,
	.read = kernel_read,
	.ioctl = kernel_ioctl,
	.map = kernel_map,
	.unmap = kernel_unmap,
	.wait = kernel_wait,
	.close = kernel_close,
	.release = kernel_release,
	.signal = kernel_signal,
};

struct tally_provider *tally_provider_kernel(void)
{
	static struct tally_provider provider = { &tally_provider_kernel_ops };
	return &provider;
}
