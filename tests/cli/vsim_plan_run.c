/* vsim_plan_run LAUNCHER [-k SECONDS] [-q] [-r] [-f FUNCTION]… [-e EVENT]… -- COMMAND…: runs a
 * command under the simulated PMU with a plan made here, drains the rings, and prints the result.
 * It tests the plan without tally.
 *
 * -r counts only regions; with it, -f counts FUNCTION.  EVENT is TYPE:CONFIG[:LETTERS][:PERIOD],
 * numbers as strtoull(3) reads them.  A PERIOD makes the event sample, with side-band records if it
 * is the first.  Letters: i inherit, g in the group of the previous event, x enabled by exec, r
 * removed by exec, f PERIOD is a frequency, c call chains. */
#include "valgrind/vsim_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RING_PAGES = 16, COPY = 65536 };

struct run {
	struct vsim_plan *plan;
	char path[64];
	bool quiet;
	double kill_after;
	uint64_t records[128], samples[TALLY_PLAN_EVENTS], weights[TALLY_PLAN_EVENTS];
	uint64_t processes_seen;
};

/* State for a signal handler. */
static struct {
	const char *path;
	volatile pid_t child;
} held;

static void give_up(int signal)
{
	if (held.child > 0)
		kill(-held.child, SIGKILL);
	unlink(held.path);
	_exit(128 + signal);
}

/* Ends the program and removes the plan if the process that started this one is killed, for example
 * by a time limit. */
static void end_with_parent(const char *path)
{
	held.path = path;
	signal(SIGTERM, give_up);
	signal(SIGINT, give_up);
	signal(SIGHUP, give_up);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
}

static void die(const char *what)
{
	fprintf(stderr, "vsim_plan_run: %s: %s\n", what, strerror(errno));
	exit(125);
}

static struct vsim_plan *make_plan(char *path)
{
	uint64_t rings = (sizeof(struct vsim_plan) + TALLY_PLAN_PAGE - 1) / TALLY_PLAN_PAGE *
			 TALLY_PLAN_PAGE;
	uint64_t size = rings + (uint64_t)TALLY_PLAN_RINGS * (1 + RING_PAGES) * TALLY_PLAN_PAGE;
	strcpy(path, "/dev/shm/vsim-plan-XXXXXX");
	int fd = mkstemp(path);
	if (fd < 0 || ftruncate(fd, (off_t)size))
		die(path);
	struct vsim_plan *plan = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (plan == MAP_FAILED)
		die("mmap");
	close(fd);
	plan->shared.magic = TALLY_PLAN_MAGIC;
	plan->shared.version = TALLY_PLAN_VERSION;
	plan->shared.ring_pages = RING_PAGES;
	plan->shared.rings_offset = rings;
	plan->shared.size = size;
	plan->shared.tally_pid = getpid();
	plan->geometry = *vsim_geometry_preset("generic");
	plan->geometry.mhz = 1000;
	return plan;
}

static void add_letters(struct vsim_plan *plan, struct tally_plan_event *event, const char *letters)
{
	for (; *letters && *letters != ':'; letters++)
		switch (*letters) {
		case 'i': event->attr.flags |= TALLY_ATTR_INHERIT; break;
		case 'g': event->leader = (int32_t)plan->shared.event_count - 1; break;
		case 'x':
			event->attr.flags |= TALLY_ATTR_ENABLE_ON_EXEC | TALLY_ATTR_DISABLED;
			break;
		case 'r': event->attr.flags |= TALLY_ATTR_REMOVE_ON_EXEC; break;
		case 'f': event->attr.flags |= TALLY_ATTR_FREQ; break;
		case 'c': event->attr.sample_type |= TALLY_SAMPLE_CALLCHAIN; break;
		default: exit(125);
		}
}

static void add_event(struct vsim_plan *plan, char *text)
{
	const uint64_t sideband = TALLY_ATTR_MMAP | TALLY_ATTR_MMAP2 | TALLY_ATTR_COMM |
				  TALLY_ATTR_COMM_EXEC | TALLY_ATTR_TASK;
	unsigned index = plan->shared.event_count;
	struct tally_plan_event *event = &plan->shared.events[index];
	event->leader = -1;
	event->id = index + 1;
	event->attr.size = sizeof(event->attr);
	event->attr.type = (uint32_t)strtoul(text, &text, 0);
	event->attr.config = strtoull(text + 1, &text, 0);
	event->attr.flags = TALLY_ATTR_SAMPLE_ID_ALL | TALLY_ATTR_USE_CLOCKID;
	event->attr.clockid = CLOCK_MONOTONIC;
	event->attr.sample_type = TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP | TALLY_SAMPLE_TID |
				  TALLY_SAMPLE_TIME | TALLY_SAMPLE_PERIOD;
	char *letters = *text ? text + 1 : text, *period = strchr(letters, ':');
	add_letters(plan, event, letters);
	if (period) {
		event->attr.sample_period = strtoull(period + 1, NULL, 0);
		event->sampled = 1;
		event->attr.flags |= index ? 0 : sideband;
	}
	event->waits_for_exec = event->attr.flags & TALLY_ATTR_ENABLE_ON_EXEC ? 1 : 0;
	event->enabled = !event->waits_for_exec;
	plan->shared.event_count++;
}

/* --- reading the rings ---------------------------------------------------- */

static void print_sample(struct run *run, const uint64_t *words, unsigned count, uint64_t chained)
{
	uint64_t index = words[1] - 1, period = words[5];
	if (count < 6 || index >= run->plan->shared.event_count)
		exit(124);
	run->samples[index]++;
	run->weights[index] += period;
	if (run->quiet)
		return;
	printf("sample event=%llu ip=%llx tid=%u period=%llu", (unsigned long long)index,
	       (unsigned long long)words[2], (unsigned)(words[3] >> 32),
	       (unsigned long long)period);
	if (chained)
		for (unsigned i = 0; i < words[6]; i++)
			printf(" %llx", (unsigned long long)words[7 + i]);
	printf("\n");
}

static void print_sideband(const struct tally_record_header *header, const uint8_t *bytes)
{
	uint32_t w[4];
	uint64_t address[3];
	memcpy(w, bytes + 8, sizeof(w));
	memcpy(address, bytes + 16, sizeof(address));
	switch (header->type) {
	case TALLY_RECORD_COMM:
		printf("comm pid=%u tid=%u %s%s\n", w[0], w[1], (const char *)bytes + 16,
		       header->misc & TALLY_MISC_COMM_EXEC ? " exec" : "");
		break;
	case TALLY_RECORD_FORK:
	case TALLY_RECORD_EXIT:
		printf("%s pid=%u ppid=%u tid=%u ptid=%u\n",
		       header->type == TALLY_RECORD_FORK ? "fork" : "exit", w[0], w[1], w[2], w[3]);
		break;
	case TALLY_RECORD_MMAP2:
		printf("mmap pid=%u %llx+%llx @%llx %s\n", w[0], (unsigned long long)address[0],
		       (unsigned long long)address[1], (unsigned long long)address[2],
		       (const char *)bytes + 72);
		break;
	default:
		printf("record %u\n", header->type);
	}
}

static void take_record(struct run *run, const uint8_t *bytes, size_t size)
{
	struct tally_record_header header;
	uint64_t words[COPY / 8];
	memcpy(&header, bytes, sizeof(header));
	memcpy(words, bytes, size);
	run->records[header.type & 127]++;
	if (header.type == TALLY_RECORD_SAMPLE) {
		uint64_t index = words[1] - 1;
		bool chained = index < TALLY_PLAN_EVENTS &&
			       run->plan->shared.events[index].attr.sample_type &
				       TALLY_SAMPLE_CALLCHAIN;
		print_sample(run, words, (unsigned)(size / 8), chained);
	} else if (!run->quiet) {
		print_sideband(&header, bytes);
	}
}

static uint64_t drain_data(struct run *run, struct tally_user_page *page)
{
	const uint8_t *data = (const uint8_t *)page + TALLY_PLAN_PAGE;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail,
		 size = RING_PAGES * TALLY_PLAN_PAGE;
	uint64_t from = tail;
	while (tail < head) {
		uint8_t copy[COPY];
		struct tally_record_header header;
		memcpy(&header, &data[tail % size], sizeof(header));
		if (header.size < 8 || header.size > head - tail)
			exit(123);
		for (unsigned i = 0; i < header.size; i++)
			copy[i] = data[(tail + i) % size];
		take_record(run, copy, header.size);
		tail += header.size;
	}
	__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
	return tail - from;
}

static void drain(struct run *run)
{
	for (unsigned i = 0; i < TALLY_PLAN_RINGS; i++) {
		struct tally_plan_ring *ring = &run->plan->shared.rings[i];
		uint32_t state = __atomic_load_n(&ring->state, __ATOMIC_SEQ_CST);
		if (state == TALLY_PLAN_RING_FREE)
			continue;
		struct tally_user_page *page =
			(void *)((char *)run->plan + tally_plan_ring_offset(&run->plan->shared, i));
		drain_data(run, page);
		if (__atomic_exchange_n(&ring->room_wanted, 0, __ATOMIC_SEQ_CST))
			syscall(SYS_futex, &ring->room_wanted, FUTEX_WAKE, 1, NULL, NULL, 0);
		if (state == TALLY_PLAN_RING_FINISHED) {
			memset(page, 0, TALLY_PLAN_PAGE);
			__atomic_store_n(&ring->state, TALLY_PLAN_RING_FREE, __ATOMIC_SEQ_CST);
		}
	}
}

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int follow(struct run *run, pid_t child)
{
	double start = seconds();
	const struct timespec slice = { 0, 20000000 };
	int status;
	for (;;) {
		uint32_t news = __atomic_load_n(&run->plan->shared.news, __ATOMIC_SEQ_CST);
		drain(run);
		if (waitpid(child, &status, WNOHANG) == child)
			break;
		if (run->kill_after > 0 && seconds() - start > run->kill_after) {
			kill(child, SIGKILL);
			run->kill_after = 0;
		}
		syscall(SYS_futex, &run->plan->shared.news, FUTEX_WAIT, news, &slice, NULL, 0);
	}
	drain(run);
	return status;
}

static void print_totals(const struct run *run, int status)
{
	const struct vsim_plan *plan = run->plan;
	for (unsigned i = 0; i < plan->shared.event_count; i++) {
		const struct tally_plan_total *total = &plan->shared.events[i].total;
		printf("total %u %llu enabled=%llu running=%llu lost=%llu samples=%llu "
		       "weight=%llu\n",
		       i, (unsigned long long)total->value, (unsigned long long)total->enabled_ns,
		       (unsigned long long)total->running_ns, (unsigned long long)total->lost,
		       (unsigned long long)run->samples[i], (unsigned long long)run->weights[i]);
	}
	printf("processes %u executions %u unsimulated %u unrecorded %u\n", plan->shared.processes,
	       plan->shared.executions, plan->shared.uncounted, plan->shared.unrecorded);
	printf("records mmap2=%llu comm=%llu fork=%llu exit=%llu lost=%llu\n",
	       (unsigned long long)run->records[TALLY_RECORD_MMAP2],
	       (unsigned long long)run->records[TALLY_RECORD_COMM],
	       (unsigned long long)run->records[TALLY_RECORD_FORK],
	       (unsigned long long)run->records[TALLY_RECORD_EXIT],
	       (unsigned long long)run->records[TALLY_RECORD_LOST]);
	if (WIFSIGNALED(status))
		printf("signal %d\n", WTERMSIG(status));
	else
		printf("exit %d\n", WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
	static struct run run;
	char option[80], threads[] = "--max-threads=1000", *launcher = argv[1];
	int at = 2;
	if (argc < 4)
		return 125;
	run.plan = make_plan(run.path);
	end_with_parent(run.path);
	for (; at < argc && strcmp(argv[at], "--"); at++) {
		if (!strcmp(argv[at], "-q"))
			run.quiet = true;
		else if (!strcmp(argv[at], "-k"))
			run.kill_after = atof(argv[++at]);
		else if (!strcmp(argv[at], "-r"))
			run.plan->region_only = 1;
		else if (!strcmp(argv[at], "-f"))
			strncpy(run.plan->functions[run.plan->function_count++], argv[++at],
				VSIM_FUNCTION_NAME - 1);
		else
			add_event(run.plan, argv[++at]);
	}
	snprintf(option, sizeof(option), "--plan=%s", run.path);
	if (at < 4 || at >= argc)
		return 125;
	argv[at] = threads;
	argv[at - 1] = option;
	argv[at - 2] = launcher;
	fflush(stdout);
	pid_t child = fork();
	if (!child) {
		signal(SIGINT, SIG_DFL);
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(launcher, &argv[at - 2]);
		_exit(127);
	}
	setpgid(child, child);
	held.child = child;
	int status = follow(&run, child);
	unlink(run.path);
	print_totals(&run, status);
	return 0;
}
