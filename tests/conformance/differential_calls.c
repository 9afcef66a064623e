/* Makes random calls and prints a line for each: errno, sizes, and the results that are
 * determined. */
#include "counting.h"
#include "differential.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

uint64_t draw(struct differential *d) /* splitmix64 */
{
	uint64_t z = d->random += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

unsigned below(struct differential *d, unsigned limit)
{
	return (unsigned)(draw(d) % limit);
}

bool one_in(struct differential *d, unsigned n)
{
	return below(d, n) == 0;
}

/* --- names ---------------------------------------------------------------- */

struct slot *any_slot(struct differential *d)
{
	return &d->slots[below(d, SLOTS)];
}

/* Returns the first open slot after a random one, so that few calls have nothing to do. */
struct slot *open_slot(struct differential *d)
{
	unsigned first = below(d, SLOTS);
	for (unsigned i = 0; i < SLOTS; i++)
		if (d->slots[(first + i) % SLOTS].fd >= 0)
			return &d->slots[(first + i) % SLOTS];
	return NULL;
}

struct slot *slot_of_id(struct differential *d, uint64_t id)
{
	for (unsigned i = 0; id && i < SLOTS + BURST_SLOTS; i++)
		if (d->slots[i].fd >= 0 && d->slots[i].id == id)
			return &d->slots[i];
	return NULL;
}

const char *task_name(struct differential *d, pid_t task)
{
	static const char *const followers[] = { "follower", "second follower" };
	for (unsigned i = 0; i < FOLLOWERS; i++)
		if (d->followers[i].last && task == d->followers[i].last)
			return followers[i];
	if (task == d->self)
		return "self";
	if (task == d->child->task)
		return "child";
	if (task == 0)
		return "0";
	return task == -1 ? "-1" : "another";
}

const char *errno_name(long code)
{
	static char text[2][32];
	static unsigned turn;
	char *out = text[turn++ % 2];
	if (code >= 0)
		snprintf(out, sizeof(text[0]), "%ld", code);
	else
		snprintf(out, sizeof(text[0]), "-%s", strerrorname_np((int)-code));
	return out;
}

/* --- open, close, read ---------------------------------------------------- */

static pid_t task_of(struct differential *d, enum target target)
{
	const struct follower *follower = &d->followers[below(d, FOLLOWERS)];
	switch (target) {
	case OF_CHILD: return d->child->task;
	case OF_FOLLOWER: return follower->last ? follower->last : -2;
	case OF_CPU: return -1;
	case OF_NOBODY: return -2;
	default: return 0;
	}
}

static enum target choose_target(struct differential *d)
{
	static const enum target targets[] = { OF_SELF,     OF_SELF,     OF_SELF,  OF_SELF,
					       OF_SELF,     OF_SELF,     OF_SELF,  OF_SELF,
					       OF_SELF,     OF_SELF,     OF_SELF,  OF_SELF,
					       OF_CHILD,    OF_CHILD,    OF_CHILD, OF_CHILD,
					       OF_FOLLOWER, OF_FOLLOWER, OF_CPU };
	enum target target = one_in(d, 40) ? OF_NOBODY : ONE_OF(d, targets);
	return d->process && target == OF_CPU ? OF_SELF : target;
}

static bool same_layout(const struct slot *a, const struct slot *b)
{
	return a->attr.sample_type == b->attr.sample_type &&
	       a->attr.read_format == b->attr.read_format &&
	       (a->attr.flags & TALLY_ATTR_SAMPLE_ID_ALL) ==
		       (b->attr.flags & TALLY_ATTR_SAMPLE_ID_ALL);
}

/* True if the order of the two events' records is undetermined.  The kernel gives events to a child
 * by CPU, then by the address of their PMUs; and a pinned event overtakes others at some
 * schedulings. */
static bool in_any_order(const struct slot *a, const struct slot *b)
{
	bool inherited = a->attr.flags & b->attr.flags & TALLY_ATTR_INHERIT;
	return (a->attr.flags ^ b->attr.flags) & TALLY_ATTR_PINNED ||
	       (inherited && (a->attr.type != b->attr.type || a->cpu != b->cpu));
}

static void join_buffer(struct differential *d, struct slot *slot, struct slot *target)
{
	struct buffer *buffer = &d->buffers[slot->buffer = target->buffer];
	if (!slot->buffer)
		return;
	/* For two events at one hit, the one scheduled in last writes first, and that depends on
	 * their leaders' PMUs. */
	buffer->mixed |= !slot->stream_determined || slot->member || target->member;
	for (unsigned i = 0; i < SLOTS; i++)
		if (d->slots[i].fd >= 0 && d->slots[i].buffer == slot->buffer) {
			buffer->foreign |= !same_layout(slot, &d->slots[i]);
			buffer->mixed |= in_any_order(slot, &d->slots[i]);
		}
}

/* Mostly returns a leader that accepts members of this target, otherwise any slot. */
static struct slot *choose_leader(struct differential *d, const struct slot *slot)
{
	struct slot *any = any_slot(d);
	if (one_in(d, 6))
		return any;
	for (unsigned i = 0; i < SLOTS; i++) {
		struct slot *leader = &d->slots[((unsigned)(any - d->slots) + i) % SLOTS];
		if (leader->fd >= 0 && !leader->member && leader->target == slot->target &&
		    leader->cpu == slot->cpu)
			return leader;
	}
	return any;
}

static void undetermine(struct differential *d, struct slot *slot)
{
	slot->determined = slot->stream_determined = false;
	if (slot->buffer)
		d->buffers[slot->buffer].mixed = true;
}

/* Kernel 6.18 stops a tracepoint or breakpoint for good when its REFRESH is used up: its count
 * after another enable is undetermined. */
static void doubt_refreshed(struct differential *d)
{
	for (unsigned i = 0; i < SLOTS; i++)
		for (unsigned j = 0; d->slots[i].refreshed && j < SLOTS; j++)
			if (d->slots[j].fd >= 0 && d->slots[j].leader == d->slots[i].leader)
				undetermine(d, &d->slots[j]);
}

/* A member on another PMU than its leader's may wait until its task is scheduled in.  This sleeps,
 * so that the moment does not depend on other tasks. */
static void settle(struct differential *d)
{
	for (unsigned i = 0; i < SLOTS; i++)
		if (d->slots[i].fd >= 0 && d->slots[i].member && d->slots[i].target == OF_SELF) {
			step_sleep(d->surface, NUMBER(1));
			return;
		}
}

static void name_opened(struct differential *d, struct slot *slot, struct slot *leader,
			unsigned long flags)
{
	if (d->surface->ops->ioctl(d->surface, slot->fd, TALLY_IOC_ID, (uintptr_t)&slot->id) < 0)
		slot->id = 0;
	slot->member = leader && !(flags & TALLY_FLAG_FD_NO_GROUP);
	slot->leader = slot->member ? leader->leader : slot->symbolic;
	if (slot->member && slot->target == OF_CPU)
		undetermine(d, slot);
	if (leader && flags & TALLY_FLAG_FD_OUTPUT)
		join_buffer(d, slot, leader);
	settle(d);
}

static void do_open(struct differential *d)
{
	static const int cpus[] = { -1, -1, -1, -1, 0 };
	struct slot *slot = any_slot(d), *leader = NULL;
	for (unsigned i = 0; slot->fd >= 0 && i < SLOTS; i++)
		slot = &d->slots[i];
	if (slot->fd >= 0)
		return;
	*slot = (struct slot){ .fd = -1, .target = choose_target(d) };
	pid_t pid = task_of(d, slot->target);
	slot->cpu = slot->target == OF_CPU ? 0 : ONE_OF(d, cpus);
	if (one_in(d, 30))
		slot->cpu = one_in(d, 2) ? -2 : 100000;
	choose_attr(d, slot);
	if (one_in(d, 2))
		leader = choose_leader(d, slot);
	if (leader && (leader == slot || leader->fd < 0))
		leader = NULL;
	if (leader && !one_in(d, 8))
		slot->attr.flags &= ~(TALLY_ATTR_PINNED | TALLY_ATTR_EXCLUSIVE);
	unsigned long flags = one_in(d, 8) ? below(d, 32) & ~(unsigned)TALLY_FLAG_PID_CGROUP : 0;
	slot->task = pid ? pid : d->self;
	if (d->process && leader && process_refuses_output(d, slot, leader))
		flags &= ~(unsigned long)TALLY_FLAG_FD_OUTPUT;
	int code = d->surface->ops->open(d->surface, &slot->attr, pid, slot->cpu,
					 leader ? leader->fd : -1, flags);
	slot->symbolic = ++d->opened;
	const char *target = slot->target == OF_CPU ? "-1" : task_name(d, pid);
	if (slot->target == OF_SELF)
		target = "self";
	else if (pid == -2)
		target = "-2";
	fprintf(d->out, "open #%u of %s cpu=%d group=#%u flags=%lx", slot->symbolic, target,
		slot->cpu, leader ? leader->symbolic : 0, flags);
	print_attr(d, &slot->attr);
	fprintf(d->out, " = %s\n", code < 0 ? errno_name(code) : "opened");
	slot->fd = code < 0 ? -1 : code;
	if (code >= 0)
		name_opened(d, slot, leader, flags);
}

static void do_close(struct differential *d)
{
	struct slot *slot = open_slot(d);
	if (!slot)
		return;
	bool unmap_first = one_in(d, 2);
	if (unmap_first)
		forget_mapping(d, slot);
	fprintf(d->out, "close #%u = %s\n", slot->symbolic,
		errno_name(d->surface->ops->close(d->surface, slot->fd)));
	forget_mapping(d, slot);
	*slot = (struct slot){ .fd = -1 };
	settle(d); /* also settles members whose leader was off */
}

static unsigned stride_of(uint64_t format)
{
	return 1 + !!(format & TALLY_FORMAT_ID) + !!(format & TALLY_FORMAT_LOST);
}

static void print_group(struct differential *d, const struct slot *slot, const uint64_t *words)
{
	uint64_t format = slot->attr.read_format;
	unsigned stride = stride_of(format), times = !!(format & TALLY_FORMAT_TOTAL_TIME_ENABLED) +
						     !!(format & TALLY_FORMAT_TOTAL_TIME_RUNNING);
	fprintf(d->out, " members=%llu", (unsigned long long)words[0]);
	for (uint64_t i = 0; format & TALLY_FORMAT_ID && i < words[0]; i++) {
		const uint64_t *member = words + 1 + times + i * stride;
		const struct slot *of = slot_of_id(d, member[1]);
		if (of)
			fprintf(d->out, " #%u", of->symbolic);
		if (of && of->determined)
			fprintf(d->out, "=%llu", (unsigned long long)member[0]);
	}
}

static const char *times_text(const struct slot *slot, uint64_t enabled, uint64_t running)
{
	if (running > enabled)
		return "more running than enabled";
	if (!slot->determined || slot->target != OF_SELF)
		return "";
	if (!enabled)
		return "never enabled";
	return running ? "running" : "never running";
}

void print_read(struct differential *d, const struct slot *slot, const uint64_t *words,
		ssize_t size)
{
	uint64_t format = slot->attr.read_format;
	if (format & TALLY_FORMAT_GROUP) {
		print_group(d, slot, words);
		return;
	}
	if (slot->determined)
		fprintf(d->out, " count=%llu", (unsigned long long)words[0]);
	if (format & TALLY_FORMAT_ID)
		fprintf(d->out, " %s",
			words[size / 8 - 1 - !!(format & TALLY_FORMAT_LOST)] == slot->id
				? "id"
				: "another id");
	if (format & TALLY_FORMAT_LOST && slot->determined && !d->buffers[slot->buffer].mixed)
		fprintf(d->out, " lost=%llu", (unsigned long long)words[size / 8 - 1]);
	if (format & TALLY_FORMAT_TOTAL_TIME_ENABLED && format & TALLY_FORMAT_TOTAL_TIME_RUNNING)
		fprintf(d->out, " %s", times_text(slot, words[1], words[2]));
}

static void do_read(struct differential *d)
{
	static const size_t sizes[] = { 0,   7,   8,   16,  24,  32,  40,  512, 512,
					512, 512, 512, 512, 512, 512, 512, 512, 512 };
	struct slot *slot = open_slot(d);
	uint64_t words[64] = { 0 };
	size_t size = ONE_OF(d, sizes);
	if (!slot)
		return;
	ssize_t got = d->surface->ops->read(d->surface, slot->fd, words, size);
	fprintf(d->out, "read #%u %zu = %s", slot->symbolic, size, errno_name(got));
	if (got > 0)
		print_read(d, slot, words, got);
	fprintf(d->out, "\n");
}

/* --- ioctl ---------------------------------------------------------------- */

static void do_control(struct differential *d)
{
	static const struct { unsigned long request; const char *name;
	} requests[] = {
		{ TALLY_IOC_ENABLE, "ENABLE" },
		{ TALLY_IOC_ENABLE, "ENABLE" },
		{ TALLY_IOC_DISABLE, "DISABLE" },
		{ TALLY_IOC_RESET, "RESET" },
		{ TALLY_IOC_REFRESH, "REFRESH" },
		{ TALLY_IOC_REFRESH, "REFRESH" },
		{ TALLY_IOC_PAUSE_OUTPUT, "PAUSE_OUTPUT" },
		{ 0x2499, "UNKNOWN" },
	};
	struct slot *slot = open_slot(d);
	unsigned n = below(d, sizeof(requests) / sizeof(requests[0]));
	unsigned word = requests[n].request == TALLY_IOC_ENABLE ? below(d, 2) : below(d, 4);
	if (!slot)
		return;
	long code = d->surface->ops->ioctl(d->surface, slot->fd, requests[n].request, word);
	fprintf(d->out, "%s #%u %u = %s\n", requests[n].name, slot->symbolic, word,
		errno_name(code));
	if (requests[n].request == TALLY_IOC_ENABLE || requests[n].request == TALLY_IOC_REFRESH)
		doubt_refreshed(d);
	slot->refreshed |= requests[n].request == TALLY_IOC_REFRESH && code == 0;
	/* time decides after how many hits it is used up */
	if (slot->refreshed && slot->attr.flags & TALLY_ATTR_FREQ)
		undetermine(d, slot);
	settle(d);
}

static void do_period(struct differential *d)
{
	struct slot *slot = open_slot(d);
	if (!slot)
		return;
	uint64_t period = one_in(d, 20) ? 1ull << 63 : choose_period(d, &slot->attr);
	long code = d->surface->ops->ioctl(d->surface, slot->fd, TALLY_IOC_PERIOD,
					   (uintptr_t)&period);
	fprintf(d->out, "PERIOD #%u %llu = %s\n", slot->symbolic, (unsigned long long)period,
		errno_name(code));
	/* The new period holds from the next scheduling in (docs/conformance.md).  This makes it
	 * happen now. */
	step_sleep(d->surface, NUMBER(1));
}

static void do_set_output(struct differential *d)
{
	struct slot *slot = open_slot(d), *target = open_slot(d);
	bool none = one_in(d, 4);
	/* in most cases, choose a target with a ring */
	for (unsigned i = 0; i < SLOTS && target && !target->mapped; i++)
		target = d->slots[i].fd >= 0 && d->slots[i].mapped ? &d->slots[i] : target;
	if (!slot || (d->process && !none && process_refuses_output(d, slot, target)))
		return;
	long code = d->surface->ops->ioctl(d->surface, slot->fd, TALLY_IOC_SET_OUTPUT,
					   (uintptr_t)(none ? -1 : target->fd));
	fprintf(d->out, "SET_OUTPUT #%u #%u = %s\n", slot->symbolic, none ? 0 : target->symbolic,
		errno_name(code));
	if (code == 0 && none)
		slot->buffer = 0;
	else if (code == 0)
		join_buffer(d, slot, target);
}

static void do_filter(struct differential *d)
{
	struct slot *slot = open_slot(d);
	struct filter_text filter;
	choose_filter(d, &filter);
	for (unsigned i = 0; i < SLOTS && slot && slot->attr.type != TALLY_TYPE_TRACEPOINT; i++)
		slot = d->slots[i].fd >= 0 ? &d->slots[i] : slot;
	if (!slot)
		return;
	long code = d->surface->ops->ioctl(d->surface, slot->fd, TALLY_IOC_SET_FILTER,
					   (uintptr_t)filter.given);
	if (code == -EPERM || code == -ENOENT) /* the kernel's parser returns internal codes */
		code = -EINVAL;
	fprintf(d->out, "SET_FILTER #%u %s = %s\n", slot->symbolic, filter.shown, errno_name(code));
}

static void do_modify(struct differential *d)
{
	struct slot *slot = open_slot(d);
	for (unsigned i = 0; i < SLOTS && slot && slot->attr.type != TALLY_TYPE_BREAKPOINT; i++)
		slot = d->slots[i].fd >= 0 ? &d->slots[i] : slot;
	if (!slot)
		return;
	struct tally_attr attr = slot->attr;
	switch (below(d, 8)) {
	case 0: attr.bp_type = below(d, 9); break;
	case 1: attr.config2 = below(d, 10); break;
	case 2: attr.config1 += below(d, 9); break;
	case 3: attr.config1 += 4; break;
	case 4: attr.sample_type ^= 1ull << below(d, 24); break;
	case 5: attr.flags ^= 1ull << below(d, 40); break;
	default: attr.flags ^= TALLY_ATTR_DISABLED; break;
	}
	long code = d->surface->ops->ioctl(d->surface, slot->fd, TALLY_IOC_MODIFY_ATTRIBUTES,
					   (uintptr_t)&attr);
	fprintf(d->out, "MODIFY_ATTRIBUTES #%u", slot->symbolic);
	print_attr(d, &attr);
	fprintf(d->out, " at +%d = %s\n", (int)(attr.config1 - slot->attr.config1),
		errno_name(code));
	doubt_refreshed(d);
	settle(d);
}

static void do_poll(struct differential *d)
{
	struct slot *slot = open_slot(d);
	if (!slot || !slot->stream_determined || d->buffers[slot->buffer].mixed)
		return;
	struct pollfd poll = { .fd = slot->fd, .events = POLLIN };
	int code = d->surface->ops->poll(d->surface, &poll, 1, 0);
	fprintf(d->out, "poll #%u = %s %x\n", slot->symbolic, errno_name(code),
		(unsigned)poll.revents);
}

static void do_fcntl(struct differential *d)
{
	static const struct { int command; long argument; const char *name;
	} commands[] = {
		{ F_GETFD, 0, "F_GETFD" },    { F_GETFL, 0, "F_GETFL" },
		{ F_SETFL, 0, "F_SETFL" },    { F_SETFL, O_NONBLOCK, "F_SETFL O_NONBLOCK" },
		{ F_SETOWN, 0, "F_SETOWN" },  { F_SETSIG, 0, "F_SETSIG" },
		{ F_SETSIG, 66, "F_SETSIG 66" },
	};
	struct slot *slot = open_slot(d);
	unsigned n = below(d, sizeof(commands) / sizeof(commands[0]));
	if (slot && d->process)
		fprintf(d->out, "%s #%u = %s\n", commands[n].name, slot->symbolic,
			errno_name(d->surface->ops->fcntl(d->surface, slot->fd, commands[n].command,
							  commands[n].argument)));
	else if (slot)
		fprintf(d->out, "F_GETFD #%u = %s\n", slot->symbolic,
			errno_name(d->surface->ops->fcntl(d->surface, slot->fd, F_GETFD, 0)));
}

static void do_prctl(struct differential *d)
{
	bool on = one_in(d, 2);
	int code = d->surface->ops->prctl(d->surface, on ? PR_TASK_PERF_EVENTS_ENABLE
							 : PR_TASK_PERF_EVENTS_DISABLE);
	fprintf(d->out, "prctl %s = %s\n", on ? "enable" : "disable", errno_name(code));
	doubt_refreshed(d);
	settle(d);
}

/* --- tasks and their work ------------------------------------------------- */

static int step_rename(struct surface *surface, void *n)
{
	static const char *const names[] = { "one", "another name", "fifteen letters" };
	return surface->ops->set_comm(surface, names[(uintptr_t)n % 3]);
}

static void do_work(struct differential *d)
{
	static const char *const names[] = { "hit",   "hit",   "touch", "touch",
					     "fault", "sleep", "rename" };
	static surface_body *const steps[] = { step_hit,   step_hit,   step_touch, step_touch,
					       step_fault, step_sleep, step_rename };
	unsigned count = 1 + below(d, 40), kind = below(d, sizeof(steps) / sizeof(steps[0]));
	unsigned who = below(d, 8);
	struct puppet *puppet = NULL;
	if (who < 2)
		puppet = d->child;
	else if (who < 2 + FOLLOWERS)
		puppet = d->followers[who - 2].puppet;
	if (!puppet && who >= 2 && who < 2 + FOLLOWERS)
		return;
	if (d->process) {
		do_process_work(d, puppet);
		return;
	}
	void *argument = NUMBER(steps[kind] == step_sleep ? 1 : count);
	fprintf(d->out, "%s %s %u\n", puppet ? task_name(d, puppet->task) : "self", names[kind],
		count);
	if (puppet)
		puppet_do(d->surface, puppet, steps[kind], argument);
	else
		steps[kind](d->surface, argument);
}

static int forked_process(struct surface *surface, void *argument)
{
	return step_fault(surface, argument);
}

static int forked(struct surface *surface, void *argument)
{
	step_hit(surface, argument);
	return step_touch(surface, argument);
}

static void do_fork(struct differential *d)
{
	unsigned count = 1 + below(d, 9);
	bool thread = one_in(d, 3);
	pid_t task = d->surface->ops->spawn(d->surface, thread ? SURFACE_THREAD : SURFACE_PROCESS,
					    d->process ? forked_process : forked, NUMBER(count));
	int code = task < 0 ? task : d->surface->ops->wait(d->surface, task);
	fprintf(d->out, "%s that hits and touches %u = %s\n", thread ? "thread" : "fork", count,
		errno_name(code));
}

/* A child process has copies of its parent's descriptors: an event closed in one of the two stays
 * alive in the other.  This closes the child's copies. */
static int step_close_all(struct surface *surface, void *argument)
{
	struct differential *d = argument;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* killing a round ends its children too */
	for (unsigned i = 0; i < SLOTS; i++)
		if (d->slots[i].fd >= 0)
			surface->ops->close(surface, d->slots[i].fd);
	return 0;
}

static void do_follower(struct differential *d)
{
	struct follower *follower = &d->followers[below(d, FOLLOWERS)];
	enum surface_task_kind kind = one_in(d, 2) ? SURFACE_THREAD : SURFACE_PROCESS;
	if (follower->puppet) {
		const char *name = task_name(d, follower->last);
		fprintf(d->out, "%s ends = %s\n", name,
			errno_name(puppet_end(d->surface, follower->puppet, 3)));
		follower->puppet = NULL;
		return;
	}
	if (d->follower_count == FOLLOWERS_EVER)
		return;
	d->follower_count++;
	follower->kind = kind;
	follower->puppet = puppet_new(d->surface, kind);
	follower->last = follower->puppet ? follower->puppet->task : 0;
	fprintf(d->out, "%s starts, a %s\n", task_name(d, follower->last),
		kind == SURFACE_THREAD ? "thread" : "process");
	if (follower->puppet && kind == SURFACE_PROCESS)
		puppet_do(d->surface, follower->puppet, step_close_all, d);
}

static void do_exec(struct differential *d)
{
	struct follower *follower = &d->followers[below(d, FOLLOWERS)];
	struct puppet *puppet = follower->puppet && follower->kind == SURFACE_PROCESS
					? follower->puppet
					: d->child;
	if (!one_in(d, 3)) /* an exec takes long */
		return;
	doubt_refreshed(d);
	/* A starting program happens to touch the address where the watched variable will be. */
	for (unsigned i = 0; i < SLOTS; i++)
		if (d->slots[i].fd >= 0 && d->slots[i].attr.type == TALLY_TYPE_BREAKPOINT &&
		    (d->slots[i].target != OF_SELF || d->slots[i].attr.flags & TALLY_ATTR_INHERIT))
			undetermine(d, &d->slots[i]);
	/* a ring in a program ends with an exec */
	for (unsigned i = 0; d->process && i < SLOTS; i++)
		if (d->slots[i].fd >= 0 && d->slots[i].task == puppet->task)
			undetermine(d, &d->slots[i]);
	int code = puppet_do(d->surface, puppet, step_become, puppet);
	fprintf(d->out, "%s execs = %s\n", task_name(d, puppet->task), errno_name(code));
}

/* --- a round -------------------------------------------------------------- */

struct call { void (*run)(struct differential *d); unsigned weight; };

static const struct call all_calls[] = {
	{ do_open, 30 },  { do_close, 8 },      { do_read, 20 },  { do_control, 25 },
	{ do_period, 4 }, { do_set_output, 6 }, { do_filter, 5 }, { do_modify, 3 },
	{ do_map, 14 },   { do_unmap, 2 },      { do_drain, 20 }, { do_poll, 8 },
	{ do_fcntl, 1 },  { do_work, 40 },      { do_fork, 3 },   { do_follower, 5 },
	{ do_exec, 1 },   { do_prctl, 2 },      { do_burst, 0 },
};

/* In a program, events depend on faults of other calls too, so do_burst() is where samples are
 * determined. */
static const struct call process_calls[] = {
	{ do_open, 30 },  { do_close, 8 },      { do_read, 20 },  { do_control, 25 },
	{ do_period, 4 }, { do_set_output, 6 }, { do_filter, 2 }, { do_modify, 3 },
	{ do_map, 14 },   { do_unmap, 2 },      { do_drain, 20 }, { do_poll, 8 },
	{ do_fcntl, 4 },  { do_work, 40 },      { do_fork, 3 },   { do_follower, 5 },
	{ do_exec, 1 },   { do_prctl, 2 },      { do_burst, 25 },
};

void differential_step(struct differential *d)
{
	const struct call *calls = d->process ? process_calls : all_calls;
	unsigned total = 0;
	_Static_assert(sizeof(all_calls) == sizeof(process_calls), "as many calls");
	for (unsigned i = 0; i < sizeof(all_calls) / sizeof(all_calls[0]); i++)
		total += calls[i].weight;
	unsigned n = below(d, total), i = 0, open = 0;
	for (unsigned slot = 0; slot < SLOTS; slot++)
		open += d->slots[slot].fd >= 0;
	if (open < 4 && !one_in(d, 3))
		n = 0; /* open more events, so that other calls have something to act on */
	while (n >= calls[i].weight)
		n -= calls[i++].weight;
	calls[i].run(d);
}

void differential_begin(struct differential *d)
{
	struct surface *surface = d->surface;
	const char *format;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	d->hit_id = surface->ops->tracepoint(surface, "hit");
	format = surface->ops->tracepoint_format(surface, "hit");
	d->field = format && strstr(format, "__syscall_nr") ? "__syscall_nr" : "id";
	d->uniform = one_in(d, 2);
	/* Chosen once in each round. */
	d->sample_type = TALLY_SAMPLE_IDENTIFIER |
			 (draw(d) & (TALLY_SAMPLE_TID | TALLY_SAMPLE_CPU | TALLY_SAMPLE_READ |
				     TALLY_SAMPLE_ADDR | TALLY_SAMPLE_PERIOD |
				     TALLY_SAMPLE_STREAM_ID | TALLY_SAMPLE_IP | TALLY_SAMPLE_RAW));
	d->read_format = draw(d) & (TALLY_FORMAT_MAX - 1);
	for (unsigned i = 0; i < SLOTS + BURST_SLOTS; i++)
		d->slots[i].fd = -1;
	surface->ops->pin(surface, 0);
	d->self = surface->ops->self(surface);
	d->child = puppet_new(surface, SURFACE_PROCESS);
	if (d->child)
		puppet_do(surface, d->child, step_close_all, d);
	ring_keep_contexts_apart(surface);
}

void differential_end(struct differential *d)
{
	for (unsigned i = 0; i < FOLLOWERS; i++)
		if (d->followers[i].puppet)
			puppet_end(d->surface, d->followers[i].puppet, 0);
	for (unsigned i = 0; i < SLOTS; i++)
		if (d->slots[i].fd >= 0) {
			d->surface->ops->close(d->surface, d->slots[i].fd);
			forget_mapping(d, &d->slots[i]);
		}
	puppet_end(d->surface, d->child, 0);
}
