/* differential: random calls on two surfaces, compared.
 *
 *     differential [--seed N] [--operations N] [--rounds N] [--model M] [--show]
 *
 * The second surface is the simulated machine with PMU model M, or, with `--model kernel`, the kernel once more: what
 * is printed must be determined, or no difference would mean anything.
 *
 * A round is a process that makes so many random calls on a handful of events — opens with sane and broken attributes,
 * reads, ioctls, mappings, polls, closes, forks, work of its own and of a child — and writes a line for each: errno,
 * sizes, and whatever is determined (counts of hits and watched writes, layouts and periods of records).  The calls of
 * a round depend on its seed and on what earlier calls returned, so that two surfaces that agree make the same calls,
 * and the first line that differs is the difference.  What time decides (clocks, switches, faults that a C library
 * takes) is opened and read as well, but not printed.
 *
 * One tracepoint event is open throughout: closing the last one of a kernel's takes 36 ms.
 */
#include "counting.h"
#include "puppet.h"
#include "ring_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 10, ROUND_OPERATIONS = 200, CONTEXT_LINES = 12 };

struct slot {
	int fd; /* -1: free */
	struct tally_attr attr;
	bool determined;   /* its count is */
	bool mixed;        /* records of an event that is not determined may come into its ring */
	unsigned symbolic; /* what it is called in lines */
	struct ring ring;
	bool mapped;
};

struct differential {
	struct surface *surface;
	FILE *out;
	uint64_t random;
	unsigned opened;
	struct slot slots[SLOTS];
	struct puppet *child;
	long hit_id;
};

static uint64_t draw(struct differential *d) /* splitmix64 */
{
	uint64_t z = d->random += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static unsigned below(struct differential *d, unsigned limit)
{
	return (unsigned)(draw(d) % limit);
}

static bool one_in(struct differential *d, unsigned n)
{
	return below(d, n) == 0;
}

static struct slot *any_slot(struct differential *d)
{
	return &d->slots[below(d, SLOTS)];
}

/* --- attributes ------------------------------------------------------------------------------------------------------------- */

/* Whose layout is the same everywhere; no call chains, whose lengths differ. */
#define SAMPLE_BITS                                                                                          \
	(TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | TALLY_SAMPLE_ADDR | TALLY_SAMPLE_READ |       \
	 TALLY_SAMPLE_ID | TALLY_SAMPLE_CPU | TALLY_SAMPLE_PERIOD | TALLY_SAMPLE_STREAM_ID | TALLY_SAMPLE_WEIGHT | \
	 TALLY_SAMPLE_DATA_SRC | TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_TRANSACTION | TALLY_SAMPLE_PHYS_ADDR)
/* Without what asks for signals to this process, or for records that a C library provokes. */
#define SANE_FLAGS                                                                                              \
	(TALLY_ATTR_DISABLED | TALLY_ATTR_INHERIT | TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV |             \
	 TALLY_ATTR_INHERIT_STAT | TALLY_ATTR_ENABLE_ON_EXEC | TALLY_ATTR_TASK | TALLY_ATTR_WATERMARK |             \
	 TALLY_ATTR_SAMPLE_ID_ALL | TALLY_ATTR_WRITE_BACKWARD | TALLY_ATTR_INHERIT_THREAD | TALLY_ATTR_EXCLUSIVE)
#define REFUSED_FLAGS \
	(TALLY_ATTR_SIGTRAP | TALLY_ATTR_MMAP | TALLY_ATTR_MMAP2 | TALLY_ATTR_MMAP_DATA | TALLY_ATTR_COMM | \
	 TALLY_ATTR_CONTEXT_SWITCH | TALLY_ATTR_KSYMBOL | TALLY_ATTR_BPF_EVENT | TALLY_ATTR_TEXT_POKE | \
	 TALLY_ATTR_NAMESPACES | TALLY_ATTR_CGROUP | TALLY_ATTR_DEFER_CALLCHAIN | TALLY_ATTR_DEFER_OUTPUT | \
	 TALLY_ATTR_USE_CLOCKID | TALLY_ATTR_COMM_EXEC)

static void choose_event(struct differential *d, struct slot *slot)
{
	struct tally_attr *attr = &slot->attr;
	static const uint64_t determined[] = { TALLY_SW_DUMMY, TALLY_SW_BPF_OUTPUT, TALLY_SW_ALIGNMENT_FAULTS };
	static const uint64_t others[] = { TALLY_SW_CPU_CLOCK, TALLY_SW_TASK_CLOCK, TALLY_SW_PAGE_FAULTS,
					   TALLY_SW_CONTEXT_SWITCHES, TALLY_SW_CPU_MIGRATIONS, TALLY_SW_PAGE_FAULTS_MAJ };
	*attr = (struct tally_attr){ .size = sizeof(*attr) };
	slot->determined = true;
	switch (below(d, 8)) {
	case 0: case 1: case 2:
		attr->type = TALLY_TYPE_TRACEPOINT;
		attr->config = (uint64_t)d->hit_id;
		break;
	case 3: case 4:
		attr->type = TALLY_TYPE_BREAKPOINT;
		attr->bp_type = one_in(d, 4) ? TALLY_BREAKPOINT_R | TALLY_BREAKPOINT_W : TALLY_BREAKPOINT_W;
		attr->config1 = d->surface->ops->watched_address(d->surface, TALLY_BREAKPOINT_W);
		attr->config2 = 4;
		break;
	case 5: case 6:
		attr->type = TALLY_TYPE_SOFTWARE;
		attr->config = determined[below(d, sizeof(determined) / sizeof(determined[0]))];
		break;
	default:
		attr->type = TALLY_TYPE_SOFTWARE;
		attr->config = others[below(d, sizeof(others) / sizeof(others[0]))];
		slot->determined = false;
	}
}

static void choose_rest(struct differential *d, struct tally_attr *attr)
{
	static const uint64_t periods[] = { 0, 1, 1, 2, 3, 7, 100 };
	attr->sample_period = periods[below(d, sizeof(periods) / sizeof(periods[0]))];
	attr->sample_type = draw(d) & draw(d) & SAMPLE_BITS;
	attr->read_format = draw(d) & (TALLY_FORMAT_MAX - 1);
	attr->flags = draw(d) & draw(d) & SANE_FLAGS;
	if (one_in(d, 3))
		attr->wakeup_events = below(d, 4);
	if (one_in(d, 10))
		attr->flags |= TALLY_ATTR_PINNED;
}

/* One thing that is wrong, or odd. */
static void spoil(struct differential *d, struct tally_attr *attr)
{
	static const uint32_t sizes[] = { 0, 8, 63, 64, 65, 72, 80, 96, 104, 112, 120, 128, 4096, 4097, ~0u };
	switch (below(d, 16)) {
	case 0: attr->size = sizes[below(d, sizeof(sizes) / sizeof(sizes[0]))]; break;
	case 1: attr->config ^= 1ull << below(d, 64); break;
	case 2: attr->sample_type |= 1ull << below(d, 64); break;
	case 3: attr->read_format |= 1ull << below(d, 64); break;
	case 4: attr->flags |= 1ull << (40 + below(d, 24)); break;
	case 5: attr->sample_period |= 1ull << 63; break;
	case 6: attr->flags |= TALLY_ATTR_FREQ; attr->sample_period = 1ull << below(d, 40); break;
	case 7: attr->sample_type |= TALLY_SAMPLE_STACK_USER; attr->sample_stack_user = below(d, 70000); break;
	case 8: attr->sample_type |= TALLY_SAMPLE_REGS_USER; attr->sample_regs_user = draw(d); break;
	case 9: attr->sample_type |= TALLY_SAMPLE_WEIGHT_STRUCT | (draw(d) & TALLY_SAMPLE_WEIGHT); break;
	case 10: attr->reserved_2 = (uint16_t)below(d, 2); break;
	case 11: attr->bp_type = below(d, 9); break;
	case 12: attr->config2 = below(d, 10); break;
	case 13: attr->sample_max_stack = (uint16_t)below(d, 700); break;
	case 14: attr->flags |= (uint64_t)below(d, 4) << TALLY_ATTR_PRECISE_IP_SHIFT; break;
	default: attr->flags |= TALLY_ATTR_REMOVE_ON_EXEC; break;
	}
}

/* --- lines --------------------------------------------------------------------------------------------------------------------- */

static const char *errno_name(long code)
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

static void print_attr(struct differential *d, const struct tally_attr *attr)
{
	bool tracepoint = attr->type == TALLY_TYPE_TRACEPOINT;
	fprintf(d->out, " type=%u config=%llx period=%llu sample=%llx read=%llx flags=%llx size=%u wakeup=%u bp=%u,%llu stack=%u regs=%llx",
		attr->type, (unsigned long long)(tracepoint ? attr->config ^ (uint64_t)d->hit_id : attr->config),
		(unsigned long long)attr->sample_period, (unsigned long long)attr->sample_type,
		(unsigned long long)attr->read_format, (unsigned long long)attr->flags, attr->size, attr->wakeup_events,
		attr->bp_type, (unsigned long long)attr->config2, attr->sample_stack_user,
		(unsigned long long)attr->sample_regs_user);
}

/* --- operations ------------------------------------------------------------------------------------------------------------------- */

static void forget(struct differential *d, struct slot *slot)
{
	if (slot->mapped)
		d->surface->ops->munmap(d->surface, slot->ring.page, slot->ring.map_size);
	free(slot->ring.bytes);
	*slot = (struct slot){ .fd = -1 };
}

static void do_open(struct differential *d)
{
	struct slot *slot = any_slot(d), *group = any_slot(d);
	if (slot->fd >= 0)
		return;
	choose_event(d, slot);
	choose_rest(d, &slot->attr);
	if (one_in(d, 4))
		spoil(d, &slot->attr);
	slot->attr.flags &= ~REFUSED_FLAGS;
	static const int cpus[] = { -1, -1, -1, -1, -1, 0, -2, 100000 };
	bool other = one_in(d, 5), nobody = one_in(d, 30);
	pid_t pid = nobody ? -2 : other ? d->child->task : 0;
	int cpu = cpus[below(d, sizeof(cpus) / sizeof(cpus[0]))];
	int leader = group != slot && one_in(d, 2) ? group->fd : -1;
	unsigned long flags = one_in(d, 8) ? below(d, 32) & ~(unsigned)TALLY_FLAG_PID_CGROUP : 0;
	int code = d->surface->ops->open(d->surface, &slot->attr, pid, cpu, leader, flags);
	slot->symbolic = ++d->opened;
	fprintf(d->out, "open #%u of %s cpu=%d group=#%u flags=%lx", slot->symbolic, nobody ? "-2" : other ? "child" : "self",
		cpu, leader >= 0 ? group->symbolic : 0, flags);
	print_attr(d, &slot->attr);
	fprintf(d->out, " = %s\n", code < 0 ? errno_name(code) : "opened");
	slot->fd = code < 0 ? -1 : code;
	/* What counts a CPU sees other tasks too. */
	if (slot->attr.type == TALLY_TYPE_SOFTWARE && slot->attr.config > TALLY_SW_BPF_OUTPUT)
		slot->determined = false;
	slot->mixed = !slot->determined;
}

static void do_close(struct differential *d)
{
	struct slot *slot = any_slot(d);
	if (slot->fd < 0)
		return;
	fprintf(d->out, "close #%u = %s\n", slot->symbolic, errno_name(d->surface->ops->close(d->surface, slot->fd)));
	forget(d, slot);
}

static const struct slot *group_of_determined(const struct slot *slot)
{
	return slot->determined && !(slot->attr.read_format & TALLY_FORMAT_GROUP) ? slot : NULL;
}

static void do_read(struct differential *d)
{
	static const size_t sizes[] = { 0, 7, 8, 16, 24, 32, 40, 512, 512, 512, 512 };
	struct slot *slot = any_slot(d);
	uint64_t words[64] = { 0 };
	if (slot->fd < 0)
		return;
	size_t size = sizes[below(d, sizeof(sizes) / sizeof(sizes[0]))];
	ssize_t got = d->surface->ops->read(d->surface, slot->fd, words, size);
	fprintf(d->out, "read #%u %zu = %s", slot->symbolic, size, errno_name(got));
	if (got > 0 && group_of_determined(slot))
		fprintf(d->out, " count=%llu", (unsigned long long)words[0]);
	if (got > 0 && slot->attr.read_format & TALLY_FORMAT_GROUP)
		fprintf(d->out, " members=%llu", (unsigned long long)words[0]);
	if (got > 0 && slot->attr.read_format & TALLY_FORMAT_LOST && !(slot->attr.read_format & TALLY_FORMAT_GROUP) &&
	    !slot->mixed)
		fprintf(d->out, " lost=%llu", (unsigned long long)words[got / 8 - 1]);
	fprintf(d->out, "\n");
}

static void do_ioctl(struct differential *d)
{
	static const struct { unsigned long request; const char *name; } requests[] = {
		{ TALLY_IOC_ENABLE, "ENABLE" }, { TALLY_IOC_ENABLE, "ENABLE" }, { TALLY_IOC_DISABLE, "DISABLE" },
		{ TALLY_IOC_RESET, "RESET" }, { TALLY_IOC_REFRESH, "REFRESH" }, { TALLY_IOC_PERIOD, "PERIOD" },
		{ TALLY_IOC_SET_OUTPUT, "SET_OUTPUT" }, { TALLY_IOC_PAUSE_OUTPUT, "PAUSE_OUTPUT" }, { TALLY_IOC_ID, "ID" },
		{ 0x2499, "UNKNOWN" },
	};
	struct slot *slot = any_slot(d), *other = any_slot(d);
	if (slot->fd < 0)
		return;
	unsigned n = below(d, sizeof(requests) / sizeof(requests[0]));
	unsigned long request = requests[n].request;
	uint64_t word = below(d, 4);
	uintptr_t argument = request == TALLY_IOC_SET_OUTPUT ? (uintptr_t)(one_in(d, 4) ? -1 : other->fd) :
			     request == TALLY_IOC_PERIOD || request == TALLY_IOC_ID ? (uintptr_t)&word : word;
	unsigned shown = request == TALLY_IOC_SET_OUTPUT && (long)argument >= 0 ? other->symbolic : (unsigned)word;
	long code = d->surface->ops->ioctl(d->surface, slot->fd, request, argument);
	fprintf(d->out, "%s #%u %u = %s\n", requests[n].name, slot->symbolic, shown, errno_name(code));
	if (request == TALLY_IOC_SET_OUTPUT && code == 0 && (long)argument >= 0 && !slot->determined)
		other->mixed = true;
}

static void do_map(struct differential *d)
{
	static const size_t pages[] = { 0, 1, 2, 2, 3, 3, 5, 9, 4, 1025 };
	struct slot *slot = any_slot(d);
	if (slot->fd < 0 || slot->mapped)
		return;
	size_t size = pages[below(d, sizeof(pages) / sizeof(pages[0]))] * d->surface->page_size;
	int protection = one_in(d, 4) ? PROT_READ : PROT_READ | PROT_WRITE, error;
	int flags = one_in(d, 20) ? MAP_PRIVATE : MAP_SHARED;
	if (size > d->surface->page_size && one_in(d, 30))
		size -= 1; /* rounded up to whole pages by the system call */
	void *page = d->surface->ops->mmap(d->surface, slot->fd, size, protection, flags, 0, &error);
	fprintf(d->out, "mmap #%u %zu %d %d = %s\n", slot->symbolic, size, protection, flags, page ? "mapped" : errno_name(error));
	if (!page)
		return;
	slot->mapped = true;
	slot->ring = (struct ring){ .surface = d->surface, .attr = slot->attr, .fd = slot->fd, .page = page,
				    .map_size = size, .bytes = malloc(65536), .keeps_tail = !(protection & PROT_WRITE) };
	fprintf(d->out, "  data_offset=%llu data_size=%llu head=%llu\n", (unsigned long long)slot->ring.page->data_offset,
		(unsigned long long)slot->ring.page->data_size, slot->mixed ? 0ull : (unsigned long long)slot->ring.page->data_head);
}

static void do_unmap(struct differential *d)
{
	struct slot *slot = any_slot(d);
	if (!slot->mapped)
		return;
	int code = d->surface->ops->munmap(d->surface, slot->ring.page, slot->ring.map_size);
	fprintf(d->out, "munmap #%u = %s\n", slot->symbolic, errno_name(code));
	slot->mapped = false;
	free(slot->ring.bytes);
	slot->ring.bytes = NULL;
}

static void print_record(struct differential *d, const struct tally_record *record)
{
	fprintf(d->out, "  %s misc=%x size=%u", tally_record_type_name(record->header.type), record->header.misc,
		record->header.size);
	if (record->header.type == TALLY_RECORD_LOST)
		fprintf(d->out, " lost=%llu", (unsigned long long)record->lost.lost);
	if (record->header.type == TALLY_RECORD_SAMPLE && record->sample.type & TALLY_SAMPLE_PERIOD)
		fprintf(d->out, " period=%llu", (unsigned long long)record->sample.period);
	if (record->header.type == TALLY_RECORD_SAMPLE && record->sample.type & TALLY_SAMPLE_ADDR)
		fprintf(d->out, " addr=%s", record->sample.addr ? "set" : "0");
	fprintf(d->out, "\n");
}

static void do_drain(struct differential *d)
{
	struct slot *slot = any_slot(d);
	/* Others' records have others' layouts: SET_OUTPUT's are told by ids alone, which is another test's. */
	if (!slot->mapped || slot->mixed || slot->ring.page->data_size == 0 || slot->ring.keeps_tail ||
	    slot->attr.flags & TALLY_ATTR_WRITE_BACKWARD)
		return;
	struct tally_record record;
	fprintf(d->out, "drain #%u\n", slot->symbolic);
	int code;
	while ((code = ring_next(&slot->ring, &record)) == 1)
		print_record(d, &record);
	if (code < 0)
		fprintf(d->out, "  then %s\n", errno_name(code));
}

static void do_poll(struct differential *d)
{
	struct slot *slot = any_slot(d);
	if (slot->fd < 0 || slot->mixed)
		return;
	struct pollfd poll = { .fd = slot->fd, .events = POLLIN };
	int code = d->surface->ops->poll(d->surface, &poll, 1, 0);
	fprintf(d->out, "poll #%u = %s %x\n", slot->symbolic, errno_name(code), (unsigned)poll.revents);
}

static void do_fcntl(struct differential *d)
{
	struct slot *slot = any_slot(d);
	if (slot->fd < 0)
		return;
	fprintf(d->out, "F_GETFD #%u = %s\n", slot->symbolic,
		errno_name(d->surface->ops->fcntl(d->surface, slot->fd, F_GETFD, 0)));
}

static void do_work(struct differential *d)
{
	unsigned count = 1 + below(d, 40);
	bool child = one_in(d, 3);
	unsigned kind = below(d, 4);
	static const char *const names[] = { "hit", "touch", "fault", "sleep" };
	static surface_body *const steps[] = { step_hit, step_touch, step_fault, step_sleep };
	fprintf(d->out, "%s %s %u\n", child ? "child" : "self", names[kind], count);
	void *argument = NUMBER(kind == 3 ? 1 : count);
	if (child)
		puppet_do(d->surface, d->child, steps[kind], argument);
	else
		steps[kind](d->surface, argument);
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
	pid_t task = d->surface->ops->spawn(d->surface, thread ? SURFACE_THREAD : SURFACE_PROCESS, forked, NUMBER(count));
	int code = task < 0 ? task : d->surface->ops->wait(d->surface, task);
	fprintf(d->out, "%s that hits and touches %u = %s\n", thread ? "thread" : "fork", count, errno_name(code));
}

static void do_prctl(struct differential *d)
{
	bool on = one_in(d, 2);
	int code = d->surface->ops->prctl(d->surface, on ? PR_TASK_PERF_EVENTS_ENABLE : PR_TASK_PERF_EVENTS_DISABLE);
	fprintf(d->out, "prctl %s = %s\n", on ? "enable" : "disable", errno_name(code));
}

static const struct { void (*run)(struct differential *d); unsigned weight; } calls[] = {
	{ do_open, 30 }, { do_close, 8 }, { do_read, 20 }, { do_ioctl, 25 }, { do_map, 12 }, { do_unmap, 3 },
	{ do_drain, 12 }, { do_poll, 6 }, { do_fcntl, 1 }, { do_work, 25 }, { do_fork, 4 }, { do_prctl, 2 },
};

static void step(struct differential *d)
{
	unsigned total = 0;
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		total += calls[i].weight;
	unsigned n = below(d, total), i = 0;
	while (n >= calls[i].weight)
		n -= calls[i++].weight;
	calls[i].run(d);
}

/* --- rounds ------------------------------------------------------------------------------------------------------------------------- */

struct round {
	uint64_t seed;
	unsigned operations;
	FILE *out;
};

static int run_round(struct surface *surface, void *argument)
{
	const struct round *round = argument;
	struct differential *d = calloc(1, sizeof(*d));
	if (!d)
		return 1;
	d->surface = surface;
	d->out = round->out;
	d->random = round->seed;
	d->hit_id = surface->ops->tracepoint(surface, "hit");
	for (unsigned i = 0; i < SLOTS; i++)
		d->slots[i].fd = -1;
	surface->ops->pin(surface, 0);
	d->child = puppet_new(surface, SURFACE_PROCESS);
	if (!d->child)
		return 1;
	for (unsigned i = 0; i < round->operations; i++)
		step(d);
	for (unsigned i = 0; i < SLOTS; i++)
		if (d->slots[i].fd >= 0) {
			d->surface->ops->close(d->surface, d->slots[i].fd);
			forget(d, &d->slots[i]);
		}
	puppet_end(surface, d->child, 0);
	fprintf(d->out, "end\n");
	fflush(d->out);
	free(d);
	return 0;
}

static int transcript(struct surface *surface, bool sim, const struct round *round)
{
	int code = (sim ? surface_sim_run : surface_kernel_run)(surface, run_round, (void *)(uintptr_t)round, 60);
	rewind(round->out);
	return code;
}

struct window { /* the last lines that agreed */
	char *lines[CONTEXT_LINES];
	unsigned count;
};

static void remember(struct window *window, const char *line)
{
	char **place = &window->lines[window->count++ % CONTEXT_LINES];
	free(*place);
	*place = strdup(line);
}

static void show_difference(struct window *window, uint64_t seed, unsigned operations, const char *kernel, const char *sim)
{
	printf("# seed %llu, %u operations: the surfaces differ\n", (unsigned long long)seed, operations);
	unsigned first = window->count > CONTEXT_LINES ? window->count - CONTEXT_LINES : 0;
	for (unsigned i = first; i < window->count; i++)
		printf("#         %s", window->lines[i % CONTEXT_LINES]);
	printf("# kernel: %s# other:  %s", kernel ? kernel : "(nothing)\n", sim ? sim : "(nothing)\n");
}

/* 0: the same. */
static int compare(struct round *kernel, struct round *sim, bool show)
{
	char *a = NULL, *b = NULL;
	size_t a_size = 0, b_size = 0;
	struct window window = { .count = 0 };
	int different = 0;
	for (;;) {
		ssize_t a_length = getline(&a, &a_size, kernel->out), b_length = getline(&b, &b_size, sim->out);
		if (a_length < 0 && b_length < 0)
			break;
		if (a_length < 0 || b_length < 0 || strcmp(a, b)) {
			show_difference(&window, kernel->seed, kernel->operations, a_length < 0 ? NULL : a, b_length < 0 ? NULL : b);
			different = 1;
			break;
		}
		if (show)
			printf("# %s", a);
		remember(&window, a);
	}
	for (unsigned i = 0; i < CONTEXT_LINES; i++)
		free(window.lines[i]);
	free(a);
	free(b);
	return different;
}

/* 0 the same, 1 different, 2 not run. */
static int run_both(uint64_t seed, unsigned operations, const char *model, bool show)
{
	struct round kernel = { seed, operations, tmpfile() }, sim = { seed, operations, tmpfile() };
	int different = 2;
	if (kernel.out && sim.out) {
		bool itself = !strcmp(model, "kernel");
		struct surface *machine = itself ? NULL : surface_sim(model);
		int a = transcript(surface_kernel(), false, &kernel);
		int b = itself ? transcript(surface_kernel(), false, &sim) : transcript(machine, true, &sim);
		different = compare(&kernel, &sim, show);
		if (!different && (a || b)) {
			printf("# seed %llu: kernel ended with %d, the other with %d\n", (unsigned long long)seed, a, b);
			different = 1;
		}
		free(machine);
	}
	fclose(kernel.out);
	fclose(sim.out);
	return different;
}

static unsigned long number(char **argv)
{
	return argv[1] ? strtoul(argv[1], NULL, 10) : 0;
}

int main(int argc, char **argv)
{
	unsigned long seed = 1, operations_each = ROUND_OPERATIONS, rounds = 50;
	const char *model = "none";
	bool show = false;
	surface_kernel_body(argc, argv);
	for (char **arg = argv + 1; *arg; arg++) {
		if (!strcmp(*arg, "--seed"))
			seed = number(arg++);
		else if (!strcmp(*arg, "--operations"))
			operations_each = number(arg++);
		else if (!strcmp(*arg, "--rounds"))
			rounds = number(arg++);
		else if (!strcmp(*arg, "--model") && arg[1])
			model = *++arg;
		else if (!strcmp(*arg, "--show"))
			show = true;
		else {
			fprintf(stderr, "usage: differential [--seed N] [--rounds N] [--operations N] [--model M] [--show]\n");
			return 2;
		}
	}
	struct surface *kernel = surface_kernel();
	unsigned needed = SURFACE_TRACEPOINTS | SURFACE_BREAKPOINTS | SURFACE_PRIVILEGED;
	if (!kernel || (kernel->features & needed) != needed) {
		printf("1..0 # SKIP the kernel's tracepoints and breakpoints are not this user's\n");
		return 0;
	}
	struct tally_attr hold = hit_attr(kernel);
	hold.flags |= TALLY_ATTR_DISABLED;
	int held = kernel->ops->open(kernel, &hold, 0, -1, -1, 0);
	printf("1..%lu\n", rounds);
	unsigned failed = 0;
	for (unsigned long i = 0; i < rounds; i++) {
		int different = run_both(seed + i, (unsigned)operations_each, model, show);
		failed += different != 0;
		printf("%sok %lu - %lu random calls agree, seed %lu\n", different ? "not " : "", i + 1, operations_each, seed + i);
		fflush(stdout);
	}
	if (held >= 0)
		kernel->ops->close(kernel, held);
	printf("# %lu passed, %u failed, 0 skipped\n", rounds - failed, failed);
	return failed != 0;
}
