/* Counts its own instructions by libtally in the arm64 guest machine: from the user page and by
 * read(2).  Prints TAP without numbers, as recorder_guest.sh does.
 *
 *     user_reads WIDTH
 *     user_reads moves
 *
 * WIDTH: bits of the counters that user code may read there.  "moves": on a machine of two CPUs. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tally/counter.h>
#include <tally/group.h>
#include <time.h>
#include <unistd.h>

static const struct tally_counter_options own = { sizeof(own), .this_thread_only = true };

static void check(const char *what, int is_good)
{
	printf("%s - %s\n", is_good ? "ok" : "not ok", what);
}

static void permit(const char *text)
{
	int fd = open("/proc/sys/kernel/perf_user_access", O_WRONLY);
	if (fd < 0 || write(fd, text, 1) != 1)
		printf("# perf_user_access: %s\n", strerror(errno));
	close(fd);
}

/* Two instructions a round. */
static void loop(uint64_t rounds)
{
	__asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(rounds) : : "cc");
}

static uint64_t value_of(struct tally_counter *counter, int by_page)
{
	struct tally_count count = { 0 };
	uint64_t value = 0;
	if (by_page)
		tally_counter_value(counter, &value);
	else if (!tally_counter_read(counter, &count))
		value = count.raw;
	return value;
}

/* Returns what `more` rounds add to a count. */
static uint64_t added(struct tally_counter *counter, int by_page, uint64_t more)
{
	/* volatile: loading either takes as many instructions */
	volatile uint64_t rounds[2] = { 1000, 1000 + more };
	uint64_t counts[2];
	for (int i = 0; i < 2; i++) {
		uint64_t before = value_of(counter, by_page);
		loop(rounds[i]);
		counts[i] = value_of(counter, by_page) - before;
	}
	return counts[1] - counts[0];
}

static void check_counts(struct tally_counter *counter, int by_page, const char *what)
{
	uint64_t found = added(counter, by_page, 1000000);
	printf("# %s: 1,000,000 rounds of 2 instructions count %llu\n", what,
	       (unsigned long long)found);
	check(what, found == 2000000);
}

static void read_counters(void)
{
	char error[256] = "";
	double ns = 0;
	struct tally_counter *counter;
	const char *way;

	permit("0");
	counter = tally_counter_open_with("instructions:u", &own, error, sizeof(error));
	if (!counter) {
		printf("# %s\n", error);
		check("a counter is opened without user access", 0);
		return;
	}
	way = tally_counter_read_way(counter, &ns);
	printf("# %s, %.0f ns\n", way, ns);
	check("kernel.perf_user_access 0 is the reason for read(2)",
	      !strncmp(way, "read(2): kernel.perf_user_access is 0", 37));
	check_counts(counter, 0, "exact instructions by read(2)");
	tally_counter_close(counter);

	permit("1");
	counter = tally_counter_open_with("instructions:u", &own, error, sizeof(error));
	if (!counter) {
		printf("# %s\n", error);
		check("a counter is opened with user access", 0);
		return;
	}
	way = tally_counter_read_way(counter, &ns);
	printf("# %s, %.0f ns\n", way, ns);
	check("kernel.perf_user_access 1: from the user page", !strcmp(way, "user page (mrs)"));
	check_counts(counter, 1, "exact instructions from the user page");
	/* read(2) comes later: it also counts the instructions of the call itself */
	uint64_t page = value_of(counter, 1);
	tally_counter_disable(counter);
	uint64_t file = value_of(counter, 0);
	printf("# %llu by the page, then %llu by read(2)\n", (unsigned long long)page,
	       (unsigned long long)file);
	check("read(2) agrees with the page", file >= page && file - page < 2000);
	way = tally_counter_read_way(counter, NULL);
	printf("# disabled: %s\n", way);
	check("a disabled counter is read by read(2)", !strncmp(way, "read(2): ", 9));
	tally_counter_close(counter);
}

static void read_past_the_width(int width)
{
	struct tally_counter *counter = tally_counter_open_with("instructions:u", &own, NULL, 0);
	if (!counter)
		return;
	/* A counter of 32 bits wraps; the kernel moves what it had to the page's offset. */
	uint64_t rounds = width == 32 ? 2300000000u : 50000000u;
	uint64_t before = value_of(counter, 1);
	loop(rounds);
	uint64_t found = value_of(counter, 1) - before;
	printf("# %llu rounds: %llu\n", (unsigned long long)rounds, (unsigned long long)found);
	check("a long loop is counted exactly", found >= 2 * rounds && found < 2 * rounds + 1000);
	tally_counter_close(counter);
}

/* An event by the name of its PMU asks for user access by the PMU's format. */
static void read_named_event(void)
{
	char error[256] = "";
	struct tally_counter *counter = tally_counter_open_with("armv8_pmuv3/inst_retired/u", &own,
								error, sizeof(error));
	if (!counter) {
		printf("# %s\n", error);
		check("an event of a PMU is opened", 0);
		return;
	}
	const char *way = tally_counter_read_way(counter, NULL);
	printf("# armv8_pmuv3/inst_retired/u: %s\n", way);
	check("an event of a PMU is read from the user page", !strcmp(way, "user page (mrs)"));
	check_counts(counter, 1, "exact instructions by the PMU's event");
	tally_counter_close(counter);
}

/* The kernel refuses 64 bits where counters have 32 (SPEC F3); libtally does with 32, unless the
 * expression asks. */
static void ask_for_64_bits(int width)
{
	char error[256] = "";
	struct tally_counter *counter = tally_counter_open_with(
		"armv8_pmuv3/inst_retired,long=1,rdpmc=1/u", &own, error, sizeof(error));
	int is_refused = !counter && errno == EOPNOTSUPP;
	printf("# 64 bits asked: %s\n", counter ? tally_counter_read_way(counter, NULL) : error);
	if (width == 32)
		check("64 bits are refused", is_refused);
	else
		check("64 bits are given", counter != NULL);
	tally_counter_close(counter);
}

static void *read_elsewhere(void *argument)
{
	struct tally_counter *counter = argument;
	const char *way = tally_counter_read_way(counter, NULL);
	printf("# in a thread: %s\n", way);
	check("another thread reads by read(2)",
	      !strcmp(way, "read(2): the counter belongs to another thread"));
	return NULL;
}

static void read_from_thread_and_child(void)
{
	pthread_t thread;
	int status = -1;
	struct tally_counter *counter = tally_counter_open_with("instructions:u", &own, NULL, 0);
	if (!counter)
		return;
	if (!pthread_create(&thread, NULL, read_elsewhere, counter))
		pthread_join(thread, NULL);
	pid_t child = fork();
	if (!child) {
		uint64_t value = 0;
		int is_good = !tally_counter_value(counter, &value) && value &&
			      strstr(tally_counter_read_way(counter, NULL), "forked from");
		tally_counter_close(counter);
		counter = tally_counter_open_with("instructions:u", &own, NULL, 0);
		is_good = is_good && counter &&
			  !strcmp(tally_counter_read_way(counter, NULL), "user page (mrs)");
		_exit(!is_good);
	}
	waitpid(child, &status, 0);
	check("a child reads its parent's counter by read(2), its own from the page", !status);
	tally_counter_close(counter);
}

static volatile int is_over;

/* Preempts the reader again and again. */
static void *disturb(void *argument)
{
	const struct timespec pause = { 0, 20000 };
	unsigned long *times = argument;
	for (; !is_over; ++*times) {
		loop(100);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* A wrong value would be off by far more than the instructions between two reads.  QEMU interrupts
 * at the ends of translated blocks alone: test_engine_interleave.c covers interrupts at any load. */
static void read_while_disturbed(void)
{
	enum { READS = 1000000, GROUP_READS = 300000, NEAR = 2000 };
	unsigned long times = 0;
	pthread_t thread;
	struct tally_counter *counter = tally_counter_open_with("instructions:u", &own, NULL, 0);
	struct tally_group *group = tally_group_open("instructions:u,cycles:u,instructions:u", NULL,
						     0);
	if (!counter || !group || pthread_create(&thread, NULL, disturb, &times)) {
		check("a reader can be disturbed", 0);
		return;
	}
	uint64_t last, now = 0, most = 0;
	tally_counter_value(counter, &last);
	for (unsigned i = 0; i < READS; i++, last = now) {
		tally_counter_value(counter, &now);
		if (now - last > most)
			most = now - last;
	}
	printf("# %u reads: at most %llu instructions from one to the next\n", READS,
	       (unsigned long long)most);
	check("a reader that others preempt reads right values", most < NEAR);
	uint64_t values[3], before[3];
	most = 0;
	tally_group_values(group, before, 3);
	for (unsigned i = 0; i < GROUP_READS; i++) {
		tally_group_values(group, values, 3);
		for (unsigned k = 0; k < 3; k++) {
			if (values[k] - before[k] > most && k != 1)
				most = values[k] - before[k];
			before[k] = values[k];
		}
		/* the same event twice */
		uint64_t apart = values[2] - values[0];
		if (apart > NEAR)
			most = apart;
	}
	is_over = 1;
	pthread_join(thread, NULL);
	printf("# %u reads of a group: at most %llu, disturbed %lu times\n", GROUP_READS,
	       (unsigned long long)most, times);
	check("a group that others preempt is of one moment", most < NEAR);
	check("the reader was disturbed", times > 100);
	tally_group_close(group);
	tally_counter_close(counter);
}

/* Each time on the other CPU, on whatever counter the kernel found there.  A second counter, which is
 * read by read(2), counts the same but for the instructions between two reads. */
static void move_between_cpus(void)
{
	enum { MOVES = 200, NEAR = 5000 };
	unsigned wrong = 0, by_page = 0;
	char error[256] = "";
	uint64_t first = 0;
	permit("1");
	struct tally_counter *counter = tally_counter_open_with("instructions:u", &own, error,
								sizeof(error));
	struct tally_counter *plain = tally_counter_open("instructions:u", error, sizeof(error));
	struct tally_counter *other = tally_counter_open("instructions:u", error, sizeof(error));
	if (!counter || !plain || !other) {
		printf("# %s\n", error);
		check("a counter is opened on two CPUs", 0);
		return;
	}
	for (unsigned i = 0; i < MOVES; i++) {
		struct tally_count count = { 0 };
		uint64_t page = 0;
		cpu_set_t cpu;
		CPU_ZERO(&cpu);
		CPU_SET(i % 2, &cpu);
		if (sched_setaffinity(0, sizeof(cpu), &cpu))
			wrong++;
		loop(1000 * (i + 1));
		/* changes which counters are free */
		if (i % 3 == 0)
			tally_counter_disable(other);
		else if (i % 3 == 1)
			tally_counter_enable(other);
		by_page += !strncmp(tally_counter_read_way(counter, NULL), "user page", 9);
		tally_counter_value(counter, &page);
		tally_counter_read(plain, &count);
		uint64_t apart = page - count.raw;
		if (!i)
			first = apart;
		if (apart - first + NEAR > 2 * NEAR) {
			wrong++;
			printf("# %llu by page, %llu by read(2)\n", (unsigned long long)page,
			       (unsigned long long)count.raw);
		}
	}
	printf("# %u moves, %u by page, %u wrong; %s\n", MOVES, by_page, wrong,
	       tally_counter_read_way(plain, NULL));
	check("values are right on each CPU that the thread moves to", !wrong && by_page == MOVES);
	tally_counter_close(other);
	tally_counter_close(plain);
	tally_counter_close(counter);
}

static void read_group(void)
{
	char error[256] = "";
	uint64_t before[2], after[2];
	struct tally_group *group = tally_group_open("instructions:u,cycles:u", error,
						     sizeof(error));
	if (!group) {
		printf("# %s\n", error);
		check("a group is opened", 0);
		return;
	}
	const char *way = tally_group_read_way(group, NULL);
	printf("# group: %s\n", way);
	check("a group is read from its user pages", !strcmp(way, "user page (mrs)"));
	tally_group_values(group, before, 2);
	loop(1000000);
	tally_group_values(group, after, 2);
	printf("# instructions %llu, cycles %llu\n", (unsigned long long)(after[0] - before[0]),
	       (unsigned long long)(after[1] - before[1]));
	check("a group's instructions are right",
	      after[0] - before[0] >= 2000000 && after[0] - before[0] < 2001000);
	check("a group's cycles are about as many",
	      after[1] - before[1] >= 1900000 && after[1] - before[1] < 2200000);
	tally_group_close(group);
}

int main(int argc, char **argv)
{
	int width = argc > 1 ? atoi(argv[1]) : 64;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1 && !strcmp(argv[1], "moves")) {
		move_between_cpus();
		return 0;
	}
	read_counters();
	read_named_event();
	ask_for_64_bits(width);
	read_from_thread_and_child();
	read_group();
	read_while_disturbed();
	read_past_the_width(width);
	return 0;
}
