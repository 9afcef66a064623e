/* What the kernel says that a thread or the process has used.
 *
 * Times come from CPU clocks, since those of getrusage(2) are in microseconds.  Migrations are only
 * in /proc/PID/task/TID/sched, whose text costs the kernel some 20 microseconds. */
#include "process/process_usage.h"
#include "process/process_call.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { NS_PER_S = 1000000000 };

static void look(int who, clockid_t clock, struct tally_plan_usage *usage)
{
	struct timespec time = { 0 };
	struct rusage used;
	memset(&used, 0, sizeof(used));
	process_call(SYS_clock_gettime, clock, &time);
	process_call(SYS_getrusage, who, &used);
	*usage = (struct tally_plan_usage){
		.cpu_ns = (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec,
		.minor_faults = (uint64_t)used.ru_minflt,
		.major_faults = (uint64_t)used.ru_majflt,
		.switches = (uint64_t)used.ru_nvcsw + (uint64_t)used.ru_nivcsw,
	};
}

void process_usage_of_thread(struct tally_plan_usage *usage)
{
	look(RUSAGE_THREAD, CLOCK_THREAD_CPUTIME_ID, usage);
}

void process_usage_of_process(struct tally_plan_usage *usage)
{
	look(RUSAGE_SELF, CLOCK_PROCESS_CPUTIME_ID, usage);
}

uint64_t process_usage_voluntary_switches(void)
{
	struct rusage used;
	memset(&used, 0, sizeof(used));
	process_call(SYS_getrusage, RUSAGE_THREAD, &used);
	return (uint64_t)used.ru_nvcsw;
}

static uint64_t less(uint64_t later, uint64_t earlier)
{
	if (later < earlier)
		return 0;
	return later - earlier;
}

struct tally_plan_usage process_usage_since(const struct tally_plan_usage *later,
					    const struct tally_plan_usage *earlier)
{
	return (struct tally_plan_usage){
		.cpu_ns = less(later->cpu_ns, earlier->cpu_ns),
		.minor_faults = less(later->minor_faults, earlier->minor_faults),
		.major_faults = less(later->major_faults, earlier->major_faults),
		.switches = less(later->switches, earlier->switches),
	};
}

void process_usage_add(struct tally_plan_usage *sum, const struct tally_plan_usage *more)
{
	__atomic_fetch_add(&sum->cpu_ns, more->cpu_ns, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&sum->minor_faults, more->minor_faults, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&sum->major_faults, more->major_faults, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&sum->switches, more->switches, __ATOMIC_SEQ_CST);
}

void process_usage_load(const struct tally_plan_usage *sum, struct tally_plan_usage *out)
{
	out->cpu_ns = __atomic_load_n(&sum->cpu_ns, __ATOMIC_SEQ_CST);
	out->minor_faults = __atomic_load_n(&sum->minor_faults, __ATOMIC_SEQ_CST);
	out->major_faults = __atomic_load_n(&sum->major_faults, __ATOMIC_SEQ_CST);
	out->switches = __atomic_load_n(&sum->switches, __ATOMIC_SEQ_CST);
}

uint64_t process_usage_migrations(uint64_t seen)
{
	static const char key[] = "nr_migrations";
	char text[4096];
	long fd = process_call(SYS_openat, AT_FDCWD, "/proc/thread-self/sched",
			       O_RDONLY | O_CLOEXEC);
	long length = -1;
	if (fd >= 0) {
		length = process_call(SYS_read, fd, text, sizeof(text) - 1);
		process_call(SYS_close, fd);
	}
	if (length <= 0)
		return seen;
	text[length] = '\0';
	const char *at = strstr(text, key);
	if (!at)
		return seen;
	at += sizeof(key) - 1;
	while (*at == ' ' || *at == ':')
		at++;
	uint64_t number = 0;
	for (; *at >= '0' && *at <= '9'; at++)
		number = number * 10 + (uint64_t)(*at - '0');
	return number;
}
