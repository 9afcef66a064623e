/* The first half copies the engine's PMUs and tracepoints into a catalogue.  The second half is the
 * provider: each of its operations calls the engine's function of that name. */
#include "provider/engine_provider.h"

#include "event/event.h"
#include "machine/machine.h"
#include "tally/tracepoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An engine's part of the catalogue.  It is filled at once, since no file has to be read. */

static size_t count_terms(const struct tally_engine_pmu_term *terms)
{
	size_t count = 0;
	while (terms && terms[count].name)
		count++;
	return count;
}

/* Returns a PMU's CPUs as "0-3,6"; "" if it counts on all of them. */
static const char *cpu_text(struct tally_arena *arena, const struct tally_engine_pmu *pmu)
{
	const char *text = "";
	unsigned bits = 0;
	if (pmu->cpus)
		bits = pmu->cpu_words * 64;
	for (unsigned first = 0, last; first < bits && text; first = last + 1) {
		for (; first < bits && !(pmu->cpus[first / 64] >> first % 64 & 1); first++)
			;
		for (last = first; last < bits && pmu->cpus[last / 64] >> last % 64 & 1; last++)
			;
		if (first == last)
			break;
		const char *comma = *text ? "," : "";
		text = tally_arena_printf(arena, "%s%s%u", text, comma, first);
		if (text && last - first > 1)
			text = tally_arena_printf(arena, "%s-%u", text, last - 1);
	}
	return text;
}

/* Only a heterogeneous PMU's mask says where its events count: the mask of another PMU lists all
 * CPUs of the machine, and restricts nothing. */
static int add_pmu(struct tally_arena *arena, const struct tally_engine_pmu *from,
		   struct tally_pmu *to)
{
	size_t formats = count_terms(from->formats), events = count_terms(from->events), used = 0;
	struct tally_format_term *terms = tally_arena_array(arena, formats, sizeof(*terms));
	struct tally_pmu_alias *aliases = tally_arena_array(arena, events, sizeof(*aliases));
	const char *cpus = "";
	if (from->capabilities & TALLY_PMU_HETEROGENEOUS)
		cpus = cpu_text(arena, from);
	*to = (struct tally_pmu){ tally_arena_string(arena, from->name),
				  from->type,
				  cpus,
				  terms,
				  0,
				  aliases,
				  events,
				  from->capabilities & TALLY_PMU_HETEROGENEOUS &&
					  from->capabilities & TALLY_PMU_GENERIC };
	if (!terms || !aliases || !cpus || !to->name)
		return -ENOMEM;
	for (size_t i = 0; i < formats; i++) {
		terms[used].name = tally_arena_string(arena, from->formats[i].name);
		if (!terms[used].name)
			return -ENOMEM;
		used += tally_sysfs_format_parse(from->formats[i].value, &terms[used].field,
						 &terms[used].mask);
	}
	to->term_count = used;
	for (size_t i = 0; i < events; i++) {
		aliases[i] = (struct tally_pmu_alias){
			tally_arena_string(arena, from->events[i].name),
			tally_arena_string(arena, from->events[i].value), "", 1
		};
		if (!aliases[i].name || !aliases[i].terms)
			return -ENOMEM;
	}
	return 0;
}

static int add_pmus(struct tally_catalogue *catalogue, struct tally_engine *engine)
{
	const struct tally_engine_pmu *pmu = NULL;
	size_t count = 0;
	int code = 0;
	while ((pmu = tally_engine_pmu_next(engine, pmu)))
		count++;
	catalogue->pmus = tally_arena_array(&catalogue->arena, count, sizeof(*catalogue->pmus));
	if (!catalogue->pmus)
		return -ENOMEM;
	while (!code && (pmu = tally_engine_pmu_next(engine, pmu)))
		code = add_pmu(&catalogue->arena, pmu, &catalogue->pmus[catalogue->pmu_count++]);
	return code;
}

static int compare(const void *a, const void *b)
{
	const struct tally_tracepoint_name *x = a, *y = b;
	int order = strcmp(x->system, y->system);
	if (order)
		return order;
	return strcmp(x->name, y->name);
}

static int add_tracepoints(struct tally_catalogue *catalogue, struct tally_engine *engine)
{
	const struct tally_trace_event *event = NULL;
	size_t count = 0;
	while ((event = tally_trace_next(engine, event)))
		count++;
	struct tally_tracepoint_name *names = tally_arena_array(&catalogue->arena, count,
								sizeof(*names));
	if (!names)
		return -ENOMEM;
	catalogue->tracepoints = names;
	for (; (event = tally_trace_next(engine, event)); names++) {
		*names = (struct tally_tracepoint_name){
			tally_arena_string(&catalogue->arena, event->group),
			tally_arena_string(&catalogue->arena, event->name), event->id
		};
		if (!names->system || !names->name)
			return -ENOMEM;
		catalogue->tracepoint_count++;
	}
	qsort(catalogue->tracepoints, count, sizeof(*names), compare);
	if (!count)
		catalogue->tracepoints_unavailable =
			"no tracepoints are registered with this engine";
	return 0;
}

int tally_engine_catalogue(struct tally_catalogue *catalogue, struct tally_engine *engine,
			   struct tally_error *err)
{
	if ((!catalogue->named && tally_catalogue_init(catalogue)) ||
	    add_pmus(catalogue, engine) || add_tracepoints(catalogue, engine))
		return tally_error_set(err, -ENOMEM, "no memory left for the names of events");
	return 0;
}

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
	if (code < 0)
		return NULL;
	return address;
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
		items[i].revents = 0;
		if (events > 0)
			items[i].revents = (short)events;
		ready += items[i].revents != 0;
	}
	return ready;
}

/* fcntl(2) with the engine's numbers: those of asm-generic/fcntl.h. */
static int engine_signal(struct tally_provider *provider, int handle, int number)
{
	enum { GETFL = 3, SETFL = 4, SETSIG = 10, SETOWN_EX = 15, OWNER_TID = 0, ASYNC = 020000 };
	struct tally_engine *engine = engine_of(provider);
	int flags = tally_engine_fcntl(engine, handle, GETFL, 0);
	if (flags < 0)
		return flags;
	if (!number)
		return tally_engine_fcntl(engine, handle, SETFL, (uintptr_t)(flags & ~ASYNC));
	const struct tally_engine_task *task = tally_engine_task_current(engine);
	const struct {
		int32_t type, owner;
	} owner = { OWNER_TID, tally_engine_task_identity(task)->tid };
	int result = tally_engine_fcntl(engine, handle, SETSIG, (uintptr_t)number);
	if (!result)
		result = tally_engine_fcntl(engine, handle, SETOWN_EX, (uintptr_t)&owner);
	if (!result)
		result = tally_engine_fcntl(engine, handle, SETFL, (uintptr_t)(flags | ASYNC));
	return result;
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
		.signal = engine_signal,
	};
	own->provider.ops = &own->ops;
	return &own->provider;
}
