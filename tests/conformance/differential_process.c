/* Random calls for the surface "process": the kernel's interface in a program whose events tally's
 * preloaded object answers.
 *
 * The generator leaves out calls that docs/process.md says a program answers differently, and the
 * printed lines leave out fields that it can't know:
 *
 *     tracepoints, breakpoints, hardware    a program has only software events
 *     whole CPUs (pid -1)                   EACCES in a program
 *     ip, addr and cpumode of faults        faults are told at the thread's next call
 *     values of other members in a sample   the same: each event learns of its faults in turn
 *     records of heirs                      each thread writes only to rings of its own events
 *     output to a ring of another task      the same; the ring of an ended task gets no more records
 *     records after an exec                 a ring that another process has mapped ends there
 *     ids in samples of several events      the kernel may give all those of one fault the first's
 *     switches                              only the kernel sees them at once
 *
 * Page faults of a whole round aren't determined: fork(2), a new thread and a new mapping cause
 * some, and their number depends on the program's mappings.  So two calls count exactly: work prints
 * by how much each count grows while a task works, and a burst enables a few events of its own
 * for some faults. */
#include "counting.h"
#include "differential.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { WORDS = 64, BURST_BYTES = 1 << 16 };

static bool is_sw(const struct tally_attr *attr, enum tally_sw event)
{
	return attr->type == TALLY_TYPE_SOFTWARE && attr->config == event;
}

/* Counts nothing of what tasks do here. */
static bool is_quiet(const struct tally_attr *attr)
{
	return is_sw(attr, TALLY_SW_DUMMY) || is_sw(attr, TALLY_SW_BPF_OUTPUT) ||
	       is_sw(attr, TALLY_SW_ALIGNMENT_FAULTS) || is_sw(attr, TALLY_SW_EMULATION_FAULTS);
}

static bool is_fault(const struct tally_attr *attr)
{
	return is_sw(attr, TALLY_SW_PAGE_FAULTS) || is_sw(attr, TALLY_SW_PAGE_FAULTS_MIN) ||
	       is_sw(attr, TALLY_SW_PAGE_FAULTS_MAJ);
}

static bool is_clock(const struct tally_attr *attr)
{
	return is_sw(attr, TALLY_SW_CPU_CLOCK) || is_sw(attr, TALLY_SW_TASK_CLOCK);
}

void choose_process_event(struct differential *d, struct tally_attr *attr)
{
	static const enum tally_sw events[] = {
		TALLY_SW_PAGE_FAULTS,     TALLY_SW_PAGE_FAULTS,
		TALLY_SW_PAGE_FAULTS_MIN, TALLY_SW_PAGE_FAULTS_MAJ,
		TALLY_SW_DUMMY,           TALLY_SW_DUMMY,
		TALLY_SW_DUMMY,           TALLY_SW_ALIGNMENT_FAULTS,
		TALLY_SW_CPU_CLOCK,       TALLY_SW_TASK_CLOCK,
		TALLY_SW_CPU_MIGRATIONS,  TALLY_SW_CONTEXT_SWITCHES,
	};
	attr->type = TALLY_TYPE_SOFTWARE;
	attr->config = ONE_OF(d, events);
}

void determine_process_event(struct slot *slot)
{
	const struct tally_attr *attr = &slot->attr;
	bool tells_of_heirs = attr->flags & TALLY_ATTR_INHERIT &&
			      attr->flags &
				      (TALLY_ATTR_TASK | TALLY_ATTR_COMM | TALLY_ATTR_INHERIT_STAT);
	slot->determined = is_quiet(attr);
	slot->stream_determined = slot->stream_determined && !tells_of_heirs &&
				  (slot->determined || !attr->sample_period);
}

bool process_refuses_output(const struct differential *d, const struct slot *slot,
			    const struct slot *target)
{
	for (unsigned i = 0; i < FOLLOWERS; i++)
		if (!d->followers[i].puppet && d->followers[i].last == slot->task)
			return true;
	return slot->task != target->task && slot->cpu >= 0 && target->cpu >= 0;
}

bool samples_alone(const struct differential *d, const struct slot *slot)
{
	for (unsigned i = 0; i < SLOTS + BURST_SLOTS; i++)
		if (&d->slots[i] != slot && d->slots[i].fd >= 0 &&
		    d->slots[i].task == slot->task && d->slots[i].attr.sample_period &&
		    is_fault(&d->slots[i].attr))
			return false;
	return true;
}

/* --- work ----------------------------------------------------------------- */

static int step_burn(struct surface *surface, void *us)
{
	surface->ops->burn(surface, (uintptr_t)us * 1000);
	return 0;
}

/* Returns the event's own count, or -errno; -1000: the read has none, or has its leader's first. */
static int64_t own_count(struct differential *d, const struct slot *slot)
{
	uint64_t words[WORDS] = { 0 }, format = slot->attr.read_format;
	ssize_t got = d->surface->ops->read(d->surface, slot->fd, words, sizeof(words));
	unsigned first = 0;
	if (format & TALLY_FORMAT_GROUP)
		first = 1 + !!(format & TALLY_FORMAT_TOTAL_TIME_ENABLED) +
			!!(format & TALLY_FORMAT_TOTAL_TIME_RUNNING);
	if (got < 0)
		return got;
	if (format & TALLY_FORMAT_GROUP && slot->member)
		return -1000;
	return got < (ssize_t)(first + 1) * 8 ? -1000 : (int64_t)words[first];
}

static void print_growth(struct differential *d, const struct slot *slot, int64_t before,
			 int64_t after, pid_t worker)
{
	if (before < 0 || after < 0) {
		if (after != -1000)
			fprintf(d->out, " #%u=%s", slot->symbolic,
				after < 0 ? errno_name(after) : "read");
		return;
	}
	/* A thread that another one asks for its count runs for some microseconds. */
	if (is_clock(&slot->attr) && slot->task == worker &&
	    !(slot->attr.flags & TALLY_ATTR_INHERIT))
		fprintf(d->out, " #%u %s", slot->symbolic, after > before ? "grows" : "stays");
	else if (is_quiet(&slot->attr) || is_fault(&slot->attr) ||
		 is_sw(&slot->attr, TALLY_SW_CPU_MIGRATIONS))
		fprintf(d->out, " #%u+%lld", slot->symbolic, (long long)(after - before));
}

void do_process_work(struct differential *d, struct puppet *puppet)
{
	static const char *const comms[] = { "one", "another name", "fifteen letters" };
	static const char *const names[] = { "fault", "fault", "burn", "sleep", "rename" };
	static surface_body *const steps[] = { step_fault, step_fault, step_burn, step_sleep };
	unsigned kind = below(d, 5), count = 1 + below(d, 40);
	int64_t before[SLOTS] = { 0 };
	fprintf(d->out, "%s %s %u:", puppet ? task_name(d, puppet->task) : "self", names[kind],
		count);
	for (unsigned i = 0; i < SLOTS; i++)
		if (d->slots[i].fd >= 0)
			before[i] = own_count(d, &d->slots[i]);
	if (kind == 4)
		d->surface->ops->set_comm(d->surface, comms[count % 3]);
	else if (puppet)
		puppet_do(d->surface, puppet, steps[kind], NUMBER(kind == 3 ? 1 : count));
	else
		steps[kind](d->surface, NUMBER(kind == 3 ? 1 : count));
	for (unsigned i = 0; i < SLOTS; i++)
		if (d->slots[i].fd >= 0 && !d->slots[i].refreshed)
			print_growth(d, &d->slots[i], before[i], own_count(d, &d->slots[i]),
				     puppet && kind != 4 ? puppet->task : d->self);
	fprintf(d->out, "\n");
}

/* --- bursts --------------------------------------------------------------- */

#define BURST_SAMPLE \
	(TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | TALLY_SAMPLE_ADDR | \
	 TALLY_SAMPLE_READ | TALLY_SAMPLE_ID | TALLY_SAMPLE_CPU | TALLY_SAMPLE_PERIOD | \
	 TALLY_SAMPLE_STREAM_ID | TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_DATA_SRC | \
	 TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_TRANSACTION | TALLY_SAMPLE_PHYS_ADDR)
#define BURST_FLAGS \
	(TALLY_ATTR_INHERIT | TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_WATERMARK | \
	 TALLY_ATTR_SAMPLE_ID_ALL | TALLY_ATTR_WRITE_BACKWARD)

static void burst_attr(struct differential *d, struct tally_attr *attr, bool grouped)
{
	static const enum tally_sw events[] = { TALLY_SW_PAGE_FAULTS, TALLY_SW_PAGE_FAULTS,
						TALLY_SW_PAGE_FAULTS_MIN, TALLY_SW_DUMMY };
	static const uint64_t periods[] = { 0, 1, 1, 1, 2, 3, 7 };
	*attr = (struct tally_attr){
		.type = TALLY_TYPE_SOFTWARE,
		.size = sizeof(*attr),
		.config = ONE_OF(d, events),
		.sample_period = ONE_OF(d, periods),
		.sample_type = draw(d) & draw(d) & BURST_SAMPLE,
		.read_format = draw(d) & (TALLY_FORMAT_MAX - 1),
		.flags = (draw(d) & draw(d) & BURST_FLAGS) | TALLY_ATTR_DISABLED,
	};
	if (grouped) /* its members learn of their faults one after the other */
		attr->sample_type &= ~(uint64_t)TALLY_SAMPLE_READ;
	attr->wakeup_events = below(d, attr->flags & TALLY_ATTR_WATERMARK ? 600 : 5);
}

/* Maps the event's ring and touches all of it, so that later accesses cause no faults. */
static void burst_map(struct differential *d, struct slot *slot)
{
	static const size_t pages[] = { 0, 1, 2, 2, 3 };
	size_t count = ONE_OF(d, pages), size = count * d->surface->page_size;
	int protection = one_in(d, 4) ? PROT_READ : PROT_READ | PROT_WRITE, error = 0;
	if (!count)
		return;
	struct ring *ring = &slot->ring;
	*ring = (struct ring){ .surface = d->surface,
			       .attr = slot->attr,
			       .fd = slot->fd,
			       .map_size = size,
			       .keeps_tail = protection == PROT_READ };
	ring->page = d->surface->ops->mmap(d->surface, slot->fd, size, protection, MAP_SHARED, 0,
					   &error);
	fprintf(d->out, "  mmap #%u %zu %d = %s\n", slot->symbolic, count, protection,
		ring->page ? "mapped" : errno_name(error));
	ring->bytes = ring->page ? malloc(BURST_BYTES) : NULL;
	slot->mapped = ring->page;
	if (!ring->bytes)
		return;
	memset(ring->bytes, 0, BURST_BYTES);
	for (size_t at = 0; at < size; at += d->surface->page_size)
		(void)((volatile uint8_t *)ring->page)[at];
	if (protection & PROT_WRITE)
		__atomic_store_n(&ring->page->data_tail, 0, __ATOMIC_RELEASE);
}

static void burst_open(struct differential *d, struct slot *slot, struct slot *leader)
{
	burst_attr(d, &slot->attr, leader != NULL);
	slot->symbolic = ++d->opened;
	slot->determined = true;
	slot->task = d->self;
	slot->cpu = one_in(d, 5) ? 0 : -1;
	slot->fd = d->surface->ops->open(d->surface, &slot->attr, 0, slot->cpu,
					 leader ? leader->fd : -1, 0);
	fprintf(d->out, "  open #%u cpu=%d group=#%u", slot->symbolic, slot->cpu,
		leader ? leader->symbolic : 0);
	print_attr(d, &slot->attr);
	fprintf(d->out, " = %s\n", slot->fd < 0 ? errno_name(slot->fd) : "opened");
	if (slot->fd < 0)
		return;
	if (d->surface->ops->ioctl(d->surface, slot->fd, TALLY_IOC_ID, (uintptr_t)&slot->id) < 0)
		slot->id = 0;
	burst_map(d, slot);
}

static void burst_control(struct differential *d, const struct slot *slot)
{
	static const struct {
		unsigned long request;
		const char *name;
	} requests[] = {
		{ TALLY_IOC_ENABLE, "ENABLE" },   { TALLY_IOC_ENABLE, "ENABLE" },
		{ TALLY_IOC_ENABLE, "ENABLE" },   { TALLY_IOC_DISABLE, "DISABLE" },
		{ TALLY_IOC_RESET, "RESET" },     { TALLY_IOC_REFRESH, "REFRESH" },
		{ TALLY_IOC_REFRESH, "REFRESH" }, { TALLY_IOC_PAUSE_OUTPUT, "PAUSE_OUTPUT" },
	};
	unsigned n = below(d, sizeof(requests) / sizeof(requests[0]));
	unsigned word = requests[n].request == TALLY_IOC_REFRESH ? below(d, 5) : below(d, 2);
	long code = d->surface->ops->ioctl(d->surface, slot->fd, requests[n].request, word);
	fprintf(d->out, "  %s #%u %u = %s\n", requests[n].name, slot->symbolic, word,
		errno_name(code));
}

/* A disabled event takes its new period at once (docs/conformance.md, kernel quirks). */
static void burst_period(struct differential *d, const struct slot *slot)
{
	uint64_t period = below(d, 8);
	long stopped = d->surface->ops->ioctl(d->surface, slot->fd, TALLY_IOC_DISABLE, 0);
	long code = d->surface->ops->ioctl(d->surface, slot->fd, TALLY_IOC_PERIOD,
					   (uintptr_t)&period);
	fprintf(d->out, "  DISABLE, PERIOD #%u %llu = %s %s\n", slot->symbolic,
		(unsigned long long)period, errno_name(stopped), errno_name(code));
}

static void burst_read(struct differential *d, const struct slot *slot)
{
	uint64_t words[WORDS] = { 0 };
	ssize_t got = d->surface->ops->read(d->surface, slot->fd, words, sizeof(words));
	fprintf(d->out, "  read #%u = %s", slot->symbolic, errno_name(got));
	if (got > 0)
		print_read(d, slot, words, got);
	fprintf(d->out, "\n");
}

static void burst_step(struct differential *d, struct slot *slot)
{
	struct pollfd poll = { .fd = slot->fd, .events = POLLIN };
	unsigned count = 1 + below(d, 12);
	switch (below(d, 10)) {
	case 0:
	case 1:
	case 2:
		burst_control(d, slot);
		break;
	case 3:
		burst_period(d, slot);
		break;
	case 4:
		burst_read(d, slot);
		break;
	case 5:
		/* samples of faults are written at a call */
		if (slot->mapped && ring_data_size(&slot->ring)) {
			burst_read(d, slot);
			fprintf(d->out, "  drain #%u\n", slot->symbolic);
			print_new_records(d, slot);
		}
		break;
	case 6:
		fprintf(d->out, "  poll #%u = %s", slot->symbolic,
			errno_name(d->surface->ops->poll(d->surface, &poll, 1, 0)));
		fprintf(d->out, " %x\n", (unsigned)poll.revents);
		break;
	default:
		fprintf(d->out, "  fault %u\n", count);
		d->surface->ops->fault(d->surface, count);
	}
}

/* Opens a few events, faults while they are enabled and disabled, and closes them. */
void do_burst(struct differential *d)
{
	struct slot *slots = d->slots + SLOTS, *leader = NULL;
	unsigned count = 1 + below(d, BURST_SLOTS), steps = 4 + below(d, 14);
	bool grouped = one_in(d, 2);
	fprintf(d->out, "burst\n");
	for (unsigned i = 0; i < count; i++) {
		burst_open(d, &slots[i], leader);
		if (grouped && i == 0 && slots[0].fd >= 0)
			leader = &slots[0];
	}
	for (unsigned i = 0; i < steps; i++) {
		struct slot *slot = &slots[below(d, count)];
		if (slot->fd >= 0)
			burst_step(d, slot);
	}
	/* members of a closed leader wait until the task is scheduled in: read them before */
	for (unsigned i = 0; i < count; i++)
		if (slots[i].fd >= 0)
			burst_read(d, &slots[i]);
	for (unsigned i = 0; i < count; i++) {
		if (slots[i].fd >= 0)
			d->surface->ops->close(d->surface, slots[i].fd);
		forget_mapping(d, &slots[i]);
		slots[i] = (struct slot){ .fd = -1 };
	}
}
