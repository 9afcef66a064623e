#include "provider/engine_provider.h"

#include "provider/engine_catalogue.h"

#include <errno.h>
#include <stdlib.h>

struct engine_provider {
	struct tally_provider provider; /* first member */
	struct tally_provider_ops ops;
	struct tally_engine *engine;
	size_t page_bytes;
};

static struct tally_engine *engine_of(struct tally_provider *provider)
{
	return ((struct engine_provider *)provider)->engine;
}

static int engine_catalogue(struct tally_provider *provider, struct tally_catalogue *catalogue,
			    struct tally_error *err)
{
	return tally_engine_catalogue(catalogue, engine_of(provider), err);
}

static int engine_open(struct tally_provider *provider, const struct tally_attr *attr, pid_t pid,
		       int cpu, int group, unsigned long flags)
{
	return tally_engine_open(engine_of(provider), attr, pid, cpu, group, flags);
}

static ssize_t engine_read(struct tally_provider *provider, int handle, void *bytes, size_t size)
{
	return tally_engine_read(engine_of(provider), handle, bytes, size);
}

static int engine_ioctl(struct tally_provider *provider, int handle, enum tally_ioctl request,
			void *argument, int whole_group)
{
	static const unsigned long requests[] = {
		[TALLY_IOCTL_ENABLE] = TALLY_IOC_ENABLE,
		[TALLY_IOCTL_DISABLE] = TALLY_IOC_DISABLE,
		[TALLY_IOCTL_REFRESH] = TALLY_IOC_REFRESH,
		[TALLY_IOCTL_RESET] = TALLY_IOC_RESET,
		[TALLY_IOCTL_PERIOD] = TALLY_IOC_PERIOD,
		[TALLY_IOCTL_SET_OUTPUT] = TALLY_IOC_SET_OUTPUT,
		[TALLY_IOCTL_SET_FILTER] = TALLY_IOC_SET_FILTER,
		[TALLY_IOCTL_ID] = TALLY_IOC_ID,
		[TALLY_IOCTL_PAUSE_OUTPUT] = TALLY_IOC_PAUSE_OUTPUT,
	};
	uintptr_t value = whole_group ? TALLY_IOC_FLAG_GROUP : (uintptr_t)argument;
	return (int)tally_engine_ioctl(engine_of(provider), handle, requests[request], value);
}

static size_t map_bytes(struct tally_provider *provider, size_t data_pages)
{
	return (data_pages + 1) * ((struct engine_provider *)provider)->page_bytes;
}

static struct tally_user_page *engine_map(struct tally_provider *provider, int handle,
					  size_t data_pages, int overwrite)
{
	void *address = NULL;
	int code = tally_engine_mmap(engine_of(provider), handle, map_bytes(provider, data_pages),
				     !overwrite, true, 0, &address);
	errno = -code;
	return code < 0 ? NULL : address;
}

static void engine_unmap(struct tally_provider *provider, struct tally_user_page *page,
			 size_t data_pages)
{
	tally_engine_munmap(engine_of(provider), page, map_bytes(provider, data_pages));
}

static int engine_wait(struct tally_provider *provider, struct tally_wait_item *items, size_t count,
		       int extra_fd, int timeout_ms)
{
	int ready = 0;
	(void)extra_fd, (void)timeout_ms;
	for (size_t i = 0; i < count; i++) {
		struct tally_engine_file *file;
		int events = tally_engine_poll(engine_of(provider), items[i].handle, &file);
		items[i].revents = events < 0 ? 0 : (short)events;
		ready += items[i].revents != 0;
	}
	return ready;
}

static void engine_close(struct tally_provider *provider, int handle)
{
	tally_engine_close(engine_of(provider), handle);
}

static void engine_release(struct tally_provider *provider)
{
	free(provider);
}

struct tally_provider *tally_provider_engine_new(struct tally_engine *engine, const char *name,
						 size_t page_bytes)
{
	struct engine_provider *own = calloc(1, sizeof(*own));
	if (!own)
		return NULL;
	own->engine = engine;
	own->page_bytes = page_bytes;
	own->ops = (struct tally_provider_ops){
		.name = name,
		.catalogue = engine_catalogue,
		.open = engine_open,
		.read = engine_read,
		.ioctl = engine_ioctl,
		.map = engine_map,
		.unmap = engine_unmap,
		.wait = engine_wait,
		.close = engine_close,
		.release = engine_release,
	};
	own->provider.ops = &own->ops;
	return &own->provider;
}
