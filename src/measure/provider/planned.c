/* The operations on events of providers with a plan (planned.h): opening, reading and control. */
#include "provider/planned.h"

#include "abi/abi.h"

#include <errno.h>
#include <string.h>

void planned_init(struct planned *planned, const struct tally_provider_ops *ops,
		  const struct planned_host *host)
{
	planned->provider.ops = ops;
	planned->host = host;
	planned->file.fd = -1;
	planned->file.path.folder = -1;
}

void planned_release(struct planned *planned)
{
	for (int i = 0; i < TALLY_PLAN_EVENTS; i++)
		planned_close(&planned->provider, i);
	planned_discard(planned);
}

struct planned_event *planned_event_of(struct planned *planned, int handle)
{
	if (handle < 0 || handle >= TALLY_PLAN_EVENTS || !planned->events[handle].is_open)
		return NULL;
	return &planned->events[handle];
}

/* ---- open and close ------------------------------------------------------ */

static int check(struct planned *planned, const struct tally_attr *attr, pid_t pid, int group)
{
	const struct planned_event *leader = planned_event_of(planned, group);
	if (!planned->file.shared || pid <= 0 || planned_has_begun(planned))
		return -EOPNOTSUPP;
	if (attr->sample_type & ~planned->host->sample_fields)
		return -EOPNOTSUPP;
	/* Records are distributed by their ids, so they must have ids, at a fixed place. */
	if (attr->sample_period && (!(attr->sample_type & TALLY_SAMPLE_IDENTIFIER) ||
				    !(attr->flags & TALLY_ATTR_SAMPLE_ID_ALL)))
		return -EINVAL;
	if (group >= 0 && !leader)
		return -EBADF;
	if (group >= 0 && leader->leader != group)
		return -EINVAL;
	return planned->host->check(planned, attr, group);
}

/* Returns the handle behind all open ones: the plan is in the order of opening. */
static int free_handle(const struct planned *planned)
{
	int handle = TALLY_PLAN_EVENTS;
	while (handle > 0 && !planned->events[handle - 1].is_open)
		handle--;
	if (handle == TALLY_PLAN_EVENTS)
		return -EMFILE;
	return handle;
}

int planned_open(struct tally_provider *provider, const struct tally_attr *attr, pid_t pid, int cpu,
		 int group, unsigned long flags)
{
	struct planned *planned = planned_of(provider);
	if (flags & TALLY_FLAG_PID_CGROUP)
		return -EOPNOTSUPP;
	if (cpu < -1 || cpu > 0)
		return -ENODEV;
	int code = check(planned, attr, pid, group);
	if (code < 0)
		return code;
	int handle = free_handle(planned);
	if (handle < 0)
		return handle;
	planned->events[handle] = (struct planned_event){
		.is_open = true,
		.attr = planned->host->attr(attr),
		.read_format = attr->read_format,
		.leader = group < 0 ? handle : group,
		.output = handle,
		.is_enabled = !(attr->flags & TALLY_ATTR_DISABLED),
		.waits_for_exec = attr->flags & TALLY_ATTR_ENABLE_ON_EXEC,
	};
	planned_publish(planned);
	return handle;
}

static void set_enabled(struct planned *planned, int handle, bool is_enabled)
{
	struct tally_plan_event *shared = planned_in_file(planned, handle);
	planned->events[handle].is_enabled = is_enabled;
	if (shared)
		__atomic_store_n(&shared->enabled, is_enabled, __ATOMIC_SEQ_CST);
}

void planned_close(struct tally_provider *provider, int handle)
{
	struct planned *planned = planned_of(provider);
	struct planned_event *event = planned_event_of(planned, handle);
	if (!event)
		return;
	if (event->page)
		planned_unmap(provider, event->page, event->data_pages);
	set_enabled(planned, handle, false);
	for (int i = 0; i < TALLY_PLAN_EVENTS; i++) {
		if (planned->events[i].leader == handle)
			planned->events[i].leader = i;
		if (planned->events[i].output == handle)
			planned->events[i].output = i;
	}
	*event = (struct planned_event){ 0 };
	planned_publish(planned);
}

/* ---- reading ------------------------------------------------------------- */

static struct tally_plan_total total_of(const struct planned *planned, int handle)
{
	const struct tally_plan_event *shared = planned_in_file(planned, handle);
	struct tally_plan_total total = { 0 };
	if (!shared)
		return total;
	total.value = __atomic_load_n(&shared->total.value, __ATOMIC_SEQ_CST) -
		      planned->events[handle].value_before;
	total.enabled_ns = __atomic_load_n(&shared->total.enabled_ns, __ATOMIC_SEQ_CST);
	total.running_ns = __atomic_load_n(&shared->total.running_ns, __ATOMIC_SEQ_CST);
	total.lost = __atomic_load_n(&shared->total.lost, __ATOMIC_SEQ_CST);
	return total;
}

static size_t put_member(const struct planned *planned, int handle, uint64_t format,
			 uint64_t *words)
{
	struct tally_plan_total total = total_of(planned, handle);
	size_t count = 0;
	words[count++] = total.value;
	if (format & TALLY_FORMAT_ID)
		words[count++] = planned_id(handle);
	if (format & TALLY_FORMAT_LOST)
		words[count++] = total.lost;
	return count;
}

/* Writes what perf_event_open(2) describes in "Reading results". */
ssize_t planned_read(struct tally_provider *provider, int handle, void *bytes, size_t size)
{
	struct planned *planned = planned_of(provider);
	const struct planned_event *event = planned_event_of(planned, handle);
	uint64_t words[3 + 3 * TALLY_PLAN_EVENTS];
	if (!event)
		return -EBADF;
	uint64_t format = event->read_format;
	bool is_group = format & TALLY_FORMAT_GROUP;
	size_t count = is_group;
	struct tally_plan_total total = total_of(planned, handle);
	if (!is_group)
		words[count++] = total.value;
	if (format & TALLY_FORMAT_TOTAL_TIME_ENABLED)
		words[count++] = total.enabled_ns;
	if (format & TALLY_FORMAT_TOTAL_TIME_RUNNING)
		words[count++] = total.running_ns;
	if (!is_group && format & TALLY_FORMAT_ID)
		words[count++] = planned_id(handle);
	if (!is_group && format & TALLY_FORMAT_LOST)
		words[count++] = total.lost;
	uint64_t members = 0;
	/* the leader comes first: it was opened first */
	for (int i = 0; is_group && i < TALLY_PLAN_EVENTS; i++)
		if (planned->events[i].is_open && planned->events[i].leader == event->leader) {
			count += put_member(planned, i, format, words + count);
			members++;
		}
	if (is_group)
		words[0] = members;
	if (size < count * sizeof(*words))
		return -ENOSPC;
	memcpy(bytes, words, count * sizeof(*words));
	return (ssize_t)(count * sizeof(*words));
}

/* ---- control ------------------------------------------------------------- */

static int set_period(struct planned *planned, struct planned_event *event, const uint64_t *period)
{
	if (!event->attr.sample_period || !*period || *period >> 63)
		return -EINVAL;
	if (planned_has_begun(planned))
		return -EOPNOTSUPP;
	event->attr.sample_period = *period;
	planned_publish(planned);
	return 0;
}

static int set_output(struct planned *planned, int handle, int output)
{
	struct planned_event *event = &planned->events[handle],
			     *to = planned_event_of(planned, output);
	if (output >= 0 && !to)
		return -EBADF;
	if (event->page || (to && to->output != output) || planned_has_begun(planned))
		return -EINVAL;
	event->output = handle;
	if (to)
		event->output = output;
	planned_publish(planned);
	return 0;
}

static int control_one(struct planned *planned, int handle, enum tally_ioctl request)
{
	switch (request) {
	case TALLY_IOCTL_ENABLE:
	case TALLY_IOCTL_DISABLE:
		set_enabled(planned, handle, request == TALLY_IOCTL_ENABLE);
		return 0;
	case TALLY_IOCTL_RESET:
		planned->events[handle].value_before += total_of(planned, handle).value;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

int planned_ioctl(struct tally_provider *provider, int handle, enum tally_ioctl request,
		  void *argument, int whole_group)
{
	struct planned *planned = planned_of(provider);
	struct planned_event *event = planned_event_of(planned, handle);
	int result = 0;
	if (!event)
		return -EBADF;
	if (request == TALLY_IOCTL_ID) {
		*(uint64_t *)argument = planned_id(handle);
		return 0;
	}
	if (request == TALLY_IOCTL_PERIOD)
		return set_period(planned, event, argument);
	if (request == TALLY_IOCTL_SET_OUTPUT)
		return set_output(planned, handle, (int)(intptr_t)argument);
	if (request == TALLY_IOCTL_SET_FILTER)
		return -EINVAL; /* as for any event other than a tracepoint */
	for (int i = 0; i < TALLY_PLAN_EVENTS && !result; i++) {
		const struct planned_event *one = &planned->events[i];
		if (i == handle || (whole_group && one->is_open && one->leader == event->leader))
			result = control_one(planned, i, request);
	}
	return result;
}
