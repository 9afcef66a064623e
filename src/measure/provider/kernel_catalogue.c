/* The kernel's part of the catalogue.
 *
 * `tally stat -e cycles` must not pay for events that it doesn't name: a server may have a hundred
 * PMUs and 2,000 tracepoints.  So each PMU, and each tracepoint's id, is read when it is named; all
 * are read only if a glob, a bare name or a mistake requires it. */
#include "provider/provider.h"

#include "base/vector.h"
#include "event/event.h"
#include "machine/machine.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct kernel_names {
	int tracefs;            /* -1: not opened */
	struct tally_error why; /* why it couldn't be opened */
	bool all_pmus;
	size_t pmu_capacity;
};

static int tracefs(struct kernel_names *kernel)
{
	if (kernel->tracefs < 0 && !kernel->why.code)
		kernel->tracefs = tally_tracefs_open(&kernel->why);
	if (kernel->tracefs < 0)
		return kernel->why.code;
	return kernel->tracefs;
}

static int64_t tracepoint_id(void *context, const char *system, const char *name)
{
	int fd = tracefs(context);
	if (fd < 0)
		return fd;
	return tally_tracefs_tracepoint_id(fd, system, name);
}

struct walk {
	struct tally_arena *arena;
	const char *system; /* copy of the last system: tracepoints of one system come together */
	struct tally_tracepoint_name *items;
	size_t count, capacity;
};

static int add_tracepoint(void *context, const char *system, const char *name)
{
	struct walk *walk = context;
	if (!walk->system || strcmp(walk->system, system))
		walk->system = tally_arena_string(walk->arena, system);
	struct tally_tracepoint_name item = { walk->system, tally_arena_string(walk->arena, name),
					      UINT64_MAX };
	if (!item.system || !item.name)
		return -ENOMEM;
	return tally_vector_push(walk, item);
}

static int compare(const void *a, const void *b)
{
	const struct tally_tracepoint_name *x = a, *y = b;
	int order = strcmp(x->system, y->system);
	if (order)
		return order;
	return strcmp(x->name, y->name);
}

static int load_tracepoints(struct tally_catalogue *catalogue, void *context,
			    struct tally_error *err)
{
	struct kernel_names *kernel = context;
	struct walk walk = { .arena = &catalogue->arena };
	int fd = tracefs(kernel);
	if (fd < 0) {
		catalogue->tracepoints_unavailable = kernel->why.message;
		if (err)
			*err = kernel->why;
		return fd;
	}
	int code = tally_tracefs_walk(fd, NULL, add_tracepoint, &walk);
	struct tally_tracepoint_name *sorted = tally_arena_array(&catalogue->arena, walk.count,
								 sizeof(*sorted));
	if (!sorted && !code)
		code = -ENOMEM;
	if (!code && walk.count) {
		qsort(walk.items, walk.count, sizeof(*walk.items), compare);
		memcpy(sorted, walk.items, walk.count * sizeof(*sorted));
		catalogue->tracepoints = sorted;
		catalogue->tracepoint_count = walk.count;
	}
	tally_vector_release(&walk);
	if (code < 0)
		return tally_error_set(err, code, "reading the tracepoints failed: %s",
				       tally_errno_text(code));
	return 0;
}

/* sysfs's structures equal those of the event room, but neither room may use the other: they are on
 * one floor. */
static int convert(struct tally_arena *arena, const struct tally_sysfs_pmu *from,
		   struct tally_pmu *to)
{
	struct tally_format_term *terms = tally_arena_array(arena, from->format_count,
							    sizeof(*terms));
	struct tally_pmu_alias *events = tally_arena_array(arena, from->event_count,
							   sizeof(*events));
	if (!terms || !events)
		return -ENOMEM;
	for (size_t i = 0; i < from->format_count; i++)
		terms[i] = (struct tally_format_term){ from->formats[i].name,
						       from->formats[i].field,
						       from->formats[i].mask };
	for (size_t i = 0; i < from->event_count; i++)
		events[i] = (struct tally_pmu_alias){ from->events[i].name, from->events[i].terms,
						      from->events[i].unit, from->events[i].scale };
	*to = (struct tally_pmu){
		from->name,         from->type, from->cpus,        terms,
		from->format_count, events,     from->event_count, from->is_core
	};
	return 0;
}

static int append_pmu(struct tally_catalogue *catalogue, struct kernel_names *kernel,
		      const struct tally_pmu *pmu)
{
	if (catalogue->pmu_count == kernel->pmu_capacity) {
		size_t capacity = kernel->pmu_capacity ? 2 * kernel->pmu_capacity : 8;
		struct tally_pmu *more = tally_arena_array(&catalogue->arena, capacity,
							   sizeof(*more));
		if (!more)
			return -ENOMEM;
		if (catalogue->pmu_count)
			memcpy(more, catalogue->pmus, catalogue->pmu_count * sizeof(*more));
		catalogue->pmus = more;
		kernel->pmu_capacity = capacity;
	}
	catalogue->pmus[catalogue->pmu_count++] = *pmu;
	return 0;
}

static int load_pmu(struct tally_catalogue *catalogue, struct kernel_names *kernel,
		    const char *name)
{
	struct tally_sysfs_pmu found;
	struct tally_pmu pmu;
	for (size_t i = 0; i < catalogue->pmu_count; i++)
		if (!strcmp(catalogue->pmus[i].name, name))
			return 0;
	int code = tally_sysfs_pmu_read(NULL, name, &catalogue->arena, &found);
	if (code == -ENOMEM)
		return code;
	if (code < 0) /* no such PMU, or one that has just been removed */
		return 0;
	code = convert(&catalogue->arena, &found, &pmu);
	if (code < 0)
		return code;
	return append_pmu(catalogue, kernel, &pmu);
}

static int load_pmus(struct tally_catalogue *catalogue, void *context, const char *name,
		     struct tally_error *err)
{
	struct kernel_names *kernel = context;
	const char **names;
	size_t count = 0;
	if (kernel->all_pmus)
		return 0;
	int code;
	if (name) {
		code = load_pmu(catalogue, kernel, name);
	} else {
		code = tally_sysfs_pmu_names(NULL, &catalogue->arena, &names, &count);
		if (code != -ENOMEM) /* without sysfs there are no PMUs */
			code = 0;
		kernel->all_pmus = true;
	}
	for (size_t i = 0; !code && i < count; i++)
		code = load_pmu(catalogue, kernel, names[i]);
	if (code < 0)
		return tally_error_set(err, code, "reading the machine's PMUs failed: %s",
				       tally_errno_text(code));
	return 0;
}

static void release(void *context)
{
	struct kernel_names *kernel = context;
	if (kernel->tracefs >= 0)
		close(kernel->tracefs);
}

int tally_kernel_catalogue(struct tally_catalogue *catalogue, struct tally_error *err)
{
	struct kernel_names *kernel = NULL;
	if (catalogue->named || !tally_catalogue_init(catalogue))
		kernel = tally_arena_alloc(&catalogue->arena, sizeof(*kernel));
	if (!kernel)
		return tally_error_set(err, -ENOMEM, "no memory left for the names of events");
	kernel->tracefs = -1;
	catalogue->context = kernel;
	catalogue->load_pmus = load_pmus;
	catalogue->load_tracepoints = load_tracepoints;
	catalogue->tracepoint_id = tracepoint_id;
	catalogue->vendor_event = tally_vendor_event;
	catalogue->release = release;
	return 0;
}

static int probe(const struct tally_attr *attr, pid_t pid, int cpu)
{
	long fd = syscall(SYS_perf_event_open, attr, pid, cpu, -1, TALLY_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	close((int)fd);
	return 0;
}

int tally_kernel_probe_available(const struct tally_attr *wanted, int cpu)
{
	struct tally_attr attr = *wanted;
	attr.size = sizeof(attr);
	attr.flags |= TALLY_ATTR_DISABLED;
	/* some PMUs refuse exclusions: opening code drops this one */
	attr.flags &= ~TALLY_ATTR_EXCLUDE_GUEST;
	int code = probe(&attr, 0, -1);
	if (code < 0 && cpu >= 0)
		code = probe(&attr, -1, cpu);
	if (code == -EACCES || code == -EPERM) { /* unprivileged: user mode only */
		attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;
		code = probe(&attr, 0, -1);
	}
	return code;
}

/* Every CPU's PMU counts cycles. */
static bool has_hardware_pmu(void)
{
	struct tally_attr cycles = { .type = TALLY_TYPE_HARDWARE, .config = TALLY_HW_CPU_CYCLES };
	int code = tally_kernel_probe_available(&cycles, -1);
	return code != -ENOENT && code != -EOPNOTSUPP && code != -ENODEV;
}

static bool is_hardware(uint32_t type)
{
	return type == TALLY_TYPE_HARDWARE || type == TALLY_TYPE_HW_CACHE || type == TALLY_TYPE_RAW;
}

const char *tally_kernel_unavailable_text(const struct tally_attr *attr, int code)
{
	bool none = is_hardware(attr->type) && !has_hardware_pmu();
	switch (-code) {
	case ENOENT:
		if (none)
			return "no hardware PMU on this machine (ENOENT)";
		return "not counted by this machine (ENOENT)";
	case EOPNOTSUPP:
		if (none)
			return "no hardware PMU on this machine (EOPNOTSUPP)";
		return "not supported by its PMU (EOPNOTSUPP)";
	case EINVAL: return "not on this CPU (EINVAL)";
	case ENODEV: return "its PMU is missing (ENODEV)";
	case EACCES:
		return "needs privilege: root, CAP_PERFMON or a lower perf_event_paranoid (EACCES)";
	case EPERM: return "forbidden by a container or a security module (EPERM)";
	case ENOSYS: return "this kernel has no perf events (ENOSYS)";
	default: return "refused by the kernel";
	}
}

void tally_kernel_probe_named(struct tally_catalogue *catalogue)
{
	for (size_t i = 0; i < catalogue->named_count; i++) {
		struct tally_named_event *event = &catalogue->named[i];
		struct tally_attr attr = { .type = event->type, .config = event->config };
		if (event->kind == TALLY_EVENT_TOOL)
			continue;
		int code = tally_kernel_probe_available(&attr, -1);
		if (code < 0)
			event->unavailable = tally_kernel_unavailable_text(&attr, code);
	}
}
