/* `tally doctor --self-test`: runs tally as a user would, on work whose counts and shares are known.
 *
 * The work is this program itself (`doctor --work`), so that nothing else must be installed.  Each
 * test belongs to a finding of doctor.  If doctor calls something missing, its tests are skipped, with
 * the finding's cause; the others must pass.  Counts are compared between two amounts of the same
 * work, so that the cost of starting a program cancels out. */
#include "command/self_test.h"

#include "base/environment.h"
#include "base/extremes.h"
#include "base/json.h"
#include "base/terminal.h"
#include "base/text.h"
#include "provider/provider.h"
#include "tally/perf_event.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* --- the work --------------------------------------------------------------- */

/* Two instructions a round on x86-64 and arm64, and as many on others as the compiler makes.  The
 * alignment makes all copies of the loop equally fast. */
static inline __attribute__((always_inline)) void loop(unsigned long rounds)
{
#if defined(__x86_64__)
	__asm__ volatile(".p2align 6\n1:\tdec %0\n\tjnz 1b" : "+r"(rounds) : : "cc");
#elif defined(__aarch64__)
	__asm__ volatile(".p2align 6\n1:\tsubs %0, %0, #1\n\tb.ne 1b" : "+r"(rounds) : : "cc");
#else
	for (volatile unsigned long i = 0; i < rounds; i++)
		;
#endif
}

/* Two functions with a known part of the time: three quarters, and one. */
__attribute__((noinline)) static void self_test_hot(unsigned long rounds)
{
	loop(3 * rounds);
	__asm__ volatile(""); /* no tail call, no merging of functions */
}

__attribute__((noinline)) static void self_test_cool(unsigned long rounds)
{
	loop(rounds);
	__asm__ volatile("");
}

static double cpu_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void spin(unsigned long ms)
{
	while (cpu_ms() < (double)ms) {
		self_test_hot(20000);
		self_test_cool(20000);
	}
}

static int touch_pages(unsigned long pages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return 1;
	madvise(memory, pages * page, MADV_NOHUGEPAGE);
	for (unsigned long i = 0; i < pages; i++)
		((volatile char *)memory)[i * page] = 1;
	return 0;
}

/* A child does the work, which is counted because events are inherited. */
static int touch_pages_in_child(unsigned long pages)
{
	int status = 1;
	pid_t child = fork();
	if (!child)
		_exit(touch_pages(pages));
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return 1;
	return status != 0;
}

int self_test_work(const char *work)
{
	const char *colon = strchr(work, ':');
	unsigned long number = colon ? strtoul(colon + 1, NULL, 10) : 0;
	size_t length = strcspn(work, ":");
	if (length == 4 && !strncmp(work, "spin", length)) {
		spin(number);
	} else if (length == 6 && !strncmp(work, "faults", length)) {
		return touch_pages(number);
	} else if (length == 5 && !strncmp(work, "child", length)) {
		return touch_pages_in_child(number);
	} else if (length == 5 && !strncmp(work, "calls", length)) {
		while (number--)
			syscall(SYS_getppid);
	} else if (length == 4 && !strncmp(work, "loop", length)) {
		loop(number + 1);
	} else {
		return 2;
	}
	return 0;
}

/* --- running tally ---------------------------------------------------------- */

enum { ARGUMENTS_MAX = 24, RUN_MS = 20000 };

struct tester {
	char self[PATH_MAX];        /* this program */
	char folder[PATH_MAX];      /* for recordings */
	char recording[PATH_MAX];   /* in the folder */
	bool counts_inside;         /* commands' events come from the process provider */
	struct tally_error obstacle; /* why that provider can't enter this program; code 0: it can */
	bool has_instructions;      /* the PMU has this event */
	bool can_trace_calls;       /* the kernel has tracepoints of system calls */
	struct tally_buffer output; /* of the last run: both streams */
	char detail[256];           /* a test's result; one line */
};

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The signal that ends the tests early; 0: none.  The folder is removed first. */
static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	interrupted = number;
}

static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
enum { ENDING = sizeof(ending) / sizeof(*ending) };

/* Catches the signals that end tally, except those that are ignored (nohup). */
static void catch_signals(struct sigaction before[ENDING])
{
	struct sigaction action = { .sa_handler = on_signal };
	interrupted = 0;
	for (unsigned i = 0; i < ENDING; i++) {
		sigaction(ending[i], NULL, &before[i]);
		if (before[i].sa_handler != SIG_IGN)
			sigaction(ending[i], &action, NULL);
	}
}

static void restore_signals(const struct sigaction before[ENDING])
{
	for (unsigned i = 0; i < ENDING; i++)
		sigaction(ending[i], &before[i], NULL);
	if (interrupted)
		raise(interrupted);
}

/* Reads all that the child writes, for RUN_MS at most.  A signal that ends the tests is passed on. */
static void read_output(int fd, pid_t child, struct tally_buffer *out)
{
	enum { LOOK_MS = 100 }; /* at `interrupted`, which may come just before poll(2) */
	int64_t end = now_ms() + RUN_MS;
	bool is_told = false;
	char bytes[4096];
	for (;;) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		int64_t left = end - now_ms();
		if (interrupted && !is_told) {
			kill(child, SIGTERM);
			is_told = true;
		}
		int result = left > 0 ? poll(&ready, 1, (int)tally_min_i64(left, LOOK_MS)) : 0;
		if (left > 0 && (!result || (result < 0 && errno == EINTR)))
			continue;
		if (result <= 0) {
			kill(child, SIGKILL);
			return;
		}
		ssize_t got = read(fd, bytes, sizeof(bytes));
		if (got <= 0)
			return;
		tally_buffer_append(out, bytes, (size_t)got);
	}
}

/* Runs tally with these arguments (NULL ends them).  Returns its exit status, or −1. */
static int run_tally(struct tester *tester, const char *const *arguments)
{
	char *argv[ARGUMENTS_MAX + 2] = { "tally" };
	int pipes[2], status = -1;
	for (unsigned i = 0; i < ARGUMENTS_MAX && arguments[i]; i++)
		argv[i + 1] = (char *)arguments[i];
	tally_buffer_clear(&tester->output);
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -1;
	pid_t child = fork();
	if (!child) {
		int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
		dup2(null, 0);
		dup2(pipes[1], 1);
		dup2(pipes[1], 2);
		execv(tester->self, argv);
		_exit(127);
	}
	close(pipes[1]);
	if (child > 0) {
		read_output(pipes[0], child, &tester->output);
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
	}
	close(pipes[0]);
	if (child < 0 || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

#define RUN(tester, ...) run_tally(tester, (const char *const[]){ __VA_ARGS__, NULL })

/* The first line of the last output, as the detail of a failure. */
static bool fail_with_output(struct tester *tester, const char *what)
{
	const char *text = tally_buffer_string(&tester->output);
	text += strspn(text, "\n");
	snprintf(tester->detail, sizeof(tester->detail), "%s: %.*s", what,
		 (int)strcspn(text, "\n") > 180 ? 180 : (int)strcspn(text, "\n"), text);
	return false;
}

/* Returns the length of an event's name without its modifiers: "instructions" of "instructions:u". */
static size_t name_length(const char *event)
{
	size_t length = strlen(event);
	if (length > 2 && event[length - 2] == ':')
		return length - 2;
	return length;
}

/* Adds up the counts of the event's rows in the output of `stat -x,`: machines with several types of
 * cores have a row for each.  Returns false if no row has a count. */
static bool sum_rows(struct tester *tester, const char *event, double *value)
{
	const char *line = tally_buffer_string(&tester->output);
	bool has_count = false;
	*value = 0;
	while (*line) { /* "1234,,page-faults:u,…" */
		size_t length = strcspn(line, "\n");
		char *end;
		double number = strtod(line, &end);
		if (end != line && *end == ',' && memmem(line, length, event, strlen(event))) {
			*value += number;
			has_count = true;
		}
		line += length + (line[length] == '\n');
	}
	return has_count || fail_with_output(tester, "no count");
}

/* Counts an event of some work, by the named provider or (NULL) by the one that commands have.
 * Returns false if there is no count. */
static bool count(struct tester *tester, const char *provider, const char *event, const char *work,
		  double *value)
{
	char name[64], option[64];
	snprintf(option, sizeof(option), "--provider=%s", tally_text_or(provider, ""));
	/* an option that changes nothing, where no provider is named */
	if (RUN(tester, "stat", "-x,", provider ? option : "-x,", "-e", event, "--", tester->self,
		"doctor", "--work", work))
		return fail_with_output(tester, "stat failed");
	/* rows of a type of cores have the modifiers behind other text */
	snprintf(name, sizeof(name), "%.*s", (int)name_length(event), event);
	return sum_rows(tester, name, value);
}

/* Checks that the counts of two amounts of work differ by `more` times `each`. */
static bool check_difference_by(struct tester *tester, const char *provider, const char *event,
				const char *kind, unsigned long least, unsigned long more,
				double each, double tolerance)
{
	char works[2][64];
	double values[2];
	snprintf(works[0], sizeof(works[0]), "%s:%lu", kind, least);
	snprintf(works[1], sizeof(works[1]), "%s:%lu", kind, least + more);
	for (unsigned i = 0; i < 2; i++)
		if (!count(tester, provider, event, works[i], &values[i]))
			return false;
	double wanted = (double)more * each, found = values[1] - values[0];
	snprintf(tester->detail, sizeof(tester->detail), "%s: %.0f counted, %.0f done", event,
		 found, wanted);
	return fabs(found - wanted) <= tolerance;
}

static bool check_difference(struct tester *tester, const char *event, const char *kind,
			     unsigned long least, unsigned long more, double each, double tolerance)
{
	return check_difference_by(tester, NULL, event, kind, least, more, each, tolerance);
}

/* --- the tests --------------------------------------------------------------- */

/* A program knows only the sum of its faults in user mode and kernel. */
static const char *faults_of(const struct tester *tester)
{
	if (tester->counts_inside)
		return "page-faults";
	return "page-faults:u";
}

static bool test_faults(struct tester *tester)
{
	return check_difference(tester, faults_of(tester), "faults", 10, 1000, 1, 20);
}

static bool test_inherited(struct tester *tester)
{
	return check_difference(tester, faults_of(tester), "child", 10, 1000, 1, 40);
}

static bool test_clock(struct tester *tester)
{
	return check_difference(tester, "task-clock", "spin", 50, 100, 1, 10);
}

static bool test_group(struct tester *tester)
{
	enum { FAULTS = 1000 };
	double ms, faults;
	if (RUN(tester, "stat", "-x,", "-e", "{task-clock,page-faults}", "--", tester->self,
		"doctor", "--work", "faults:1000"))
		return fail_with_output(tester, "stat failed");
	if (!sum_rows(tester, "task-clock", &ms) || !sum_rows(tester, "page-faults", &faults))
		return fail_with_output(tester, "a group has no counts");
	snprintf(tester->detail, sizeof(tester->detail),
		 "%.1f ms and %.0f page faults together, of %d and those of the start", ms, faults,
		 FAULTS);
	return ms > 0 && faults >= FAULTS && faults < 2 * FAULTS;
}

static bool test_system_wide(struct tester *tester)
{
	enum { MS = 100 };
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	double ms;
	int64_t start = now_ms();
	if (RUN(tester, "stat", "-x,", "-a", "-e", "cpu-clock", "--duration", "0.1"))
		return fail_with_output(tester, "stat -a failed");
	int64_t most = now_ms() - start + 1; /* a busy machine may end it late */
	if (!sum_rows(tester, "cpu-clock", &ms))
		return false;
	snprintf(tester->detail, sizeof(tester->detail),
		 "%.0f ms of CPU clocks in %d ms on %ld CPU%s", ms, MS, cpus,
		 tally_plural((uint64_t)cpus));
	return ms > 0.95 * MS * (double)cpus && ms < (double)most * (double)cpus;
}

static bool test_tracepoint(struct tester *tester)
{
	return check_difference(tester, "syscalls:sys_enter_getppid", "calls", 10, 1000, 1, 0);
}

static bool test_instructions(struct tester *tester)
{
	/* interrupts may count with the program, a few instructions each */
	return check_difference(tester, "instructions:u", "loop", 1000, 1000000, 2, 2000);
}

static bool test_simulated(struct tester *tester)
{
	char works[2][32];
	double values[2];
	for (unsigned i = 0; i < 2; i++) {
		snprintf(works[i], sizeof(works[i]), "loop:%u", 1000 + i * 1000000);
		if (RUN(tester, "stat", "-x,", "--provider", "simulated", "-e", "instructions",
			"--", tester->self, "doctor", "--work", works[i]))
			return fail_with_output(tester, "stat --provider simulated failed");
		if (!sum_rows(tester, "instructions", &values[i]))
			return false;
	}
	snprintf(tester->detail, sizeof(tester->detail), "instructions: %.0f counted, 2000000 done",
		 values[1] - values[0]);
	return fabs(values[1] - values[0] - 2000000) <= 100;
}

static bool test_process_counts(struct tester *tester)
{
	return check_difference_by(tester, "process", "task-clock", "spin", 50, 100, 1, 10);
}

/* Records some work by an event, with the option -F or -c. */
static bool record(struct tester *tester, const char *provider, const char *event,
		   const char *option, const char *value, const char *work)
{
	char chosen[64];
	snprintf(chosen, sizeof(chosen), "--provider=%s", tally_text_or(provider, ""));
	if (RUN(tester, "record", "-q", provider ? chosen : "-q", "-e", event, option, value, "-o",
		tester->recording, "--", tester->self, "doctor", "--work", work))
		return fail_with_output(tester, "record failed");
	return true;
}

/* Returns the samples of folded stacks that contain the text (NULL: of all). */
static double folded(const struct tester *tester, const char *text)
{
	double sum = 0;
	const char *line = tally_buffer_string(&tester->output);
	while (*line) {
		size_t length = strcspn(line, "\n");
		const char *blank = memrchr(line, ' ', length);
		bool is_stack = blank && memchr(line, ';', length);
		if (is_stack && (!text || memmem(line, length, text, strlen(text))))
			sum += strtod(blank, NULL);
		line += length + (line[length] == '\n');
	}
	return sum;
}

/* Checks the parts of two functions, and that stacks reach their start.  The parts may differ by
 * four standard deviations of as many samples, and by two in a hundred. */
static bool check_samples(struct tester *tester, const char *provider, const char *event,
			  const char *option, const char *value)
{
	enum { SAMPLES_MIN = 20 };
	if (!record(tester, provider, event, option, value, "spin:300"))
		return false;
	if (RUN(tester, "fold", "--weight", "samples", "-i", tester->recording))
		return fail_with_output(tester, "fold failed");
	double all = folded(tester, NULL), cut = folded(tester, "[truncated]");
	double hot = folded(tester, ";self_test_hot"), cool = folded(tester, ";self_test_cool");
	double both = hot + cool; /* without the start, which is long on emulated machines */
	if (all < SAMPLES_MIN) {
		snprintf(tester->detail, sizeof(tester->detail),
			 "%.0f samples of 300 ms of work (%s %s)", all, option, value);
		return false;
	}
	if (hot < 1) { /* a package's program has no symbols */
		snprintf(tester->detail, sizeof(tester->detail),
			 "%.1f %% of the stacks are whole; this program has no symbols to check",
			 100 * (1 - cut / all));
		return cut / all < 0.05;
	}
	snprintf(tester->detail, sizeof(tester->detail),
		 "%.0f %% of %.0f samples in a function of 75 %%, %.1f %% of the stacks are whole",
		 100 * hot / both, both, 100 * (1 - cut / all));
	return fabs(hot / both - 0.75) < 0.02 + 4 * sqrt(0.75 * 0.25 / both) && cut / all < 0.05;
}

static bool test_record(struct tester *tester)
{
	return check_samples(tester, NULL, "cpu-clock:u", "-F", "999");
}

static bool test_process_samples(struct tester *tester)
{
	return check_samples(tester, "process", "cpu-clock", "-F", "999");
}

static bool test_hardware_samples(struct tester *tester)
{
	/* a prime, so that no phase of the work is met again and again */
	return check_samples(tester, NULL, "cycles:u", "-c", "1000003");
}

static bool test_flame_graph(struct tester *tester)
{
	char svg[PATH_MAX + 16];
	if (!record(tester, NULL, "cpu-clock:u", "-F", "999", "spin:100"))
		return false;
	snprintf(svg, sizeof(svg), "%s/graph.svg", tester->folder);
	if (RUN(tester, "flamegraph", "-i", tester->recording, "-o", svg))
		return fail_with_output(tester, "flamegraph failed");
	struct tally_buffer text = { 0 };
	bool is_there = !tally_buffer_read_file(&text, AT_FDCWD, svg, 1 << 24) &&
			strstr(tally_buffer_string(&text), "</svg>");
	snprintf(tester->detail, sizeof(tester->detail), "%zu bytes", text.length);
	tally_buffer_release(&text);
	return is_there;
}

static bool test_kernel_names(struct tester *tester)
{
	if (!record(tester, NULL, "cpu-clock:k", "-F", "4999", "calls:2000000"))
		return false;
	if (RUN(tester, "report", "--stdio", "--sort", "sym", "-g", "none", "-i",
		tester->recording))
		return fail_with_output(tester, "report failed");
	const char *text = tally_buffer_string(&tester->output);
	bool has_names = strstr(text, "getppid") || strstr(text, "syscall");
	const char *found = "no function of a system call in the report";
	if (has_names)
		found = "system calls are in the report";
	snprintf(tester->detail, sizeof(tester->detail), "%s", found);
	return has_names;
}

/* Watches a variable of this process. */
static bool test_breakpoint(struct tester *tester)
{
	enum { WRITES = 100, WRITE = 2, LENGTH = 4 };
	static volatile int watched;
	struct tally_attr attr = { .type = TALLY_TYPE_BREAKPOINT,
				   .size = sizeof(attr),
				   .config1 = (uintptr_t)&watched,
				   .config2 = LENGTH,
				   .flags = TALLY_ATTR_EXCLUDE_KERNEL,
				   .bp_type = WRITE };
	uint64_t value = 0;
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, TALLY_FLAG_FD_CLOEXEC);
	if (fd < 0) {
		snprintf(tester->detail, sizeof(tester->detail), "it can't be opened: %s",
			 tally_errno_text(errno));
		return false;
	}
	for (int i = 0; i < WRITES; i++)
		watched = i;
	bool was_read = read(fd, &value, sizeof(value)) == sizeof(value);
	close(fd);
	snprintf(tester->detail, sizeof(tester->detail), "%llu writes counted, %d done",
		 (unsigned long long)value, WRITES);
	return was_read && value == WRITES;
}

static const struct {
	const char *finding; /* doctor's, whose claim this tests */
	const char *name;
	bool (*test)(struct tester *tester);
} tests[] = {
	{ "stat", "page faults are counted", test_faults },
	{ "stat", "children's events are inherited", test_inherited },
	{ "stat", "CPU time is counted", test_clock },
	{ "stat", "groups are counted", test_group },
	{ "record", "samples are right and stacks whole", test_record },
	{ "record", "a flame graph is drawn", test_flame_graph },
	{ "system-wide", "the whole system is counted", test_system_wide },
	{ "tracepoints", "tracepoints are counted", test_tracepoint },
	{ "hardware", "instructions are counted", test_instructions },
	{ "overflow", "samples by hardware cycles are right", test_hardware_samples },
	{ "breakpoints", "breakpoints count writes", test_breakpoint },
	{ "simulated-pmu", "simulated instructions are exact", test_simulated },
	{ "process", "a program counts itself", test_process_counts },
	{ "process", "a program samples itself", test_process_samples },
	{ "kallsyms", "the kernel's functions have names", test_kernel_names },
};

/* --- results ------------------------------------------------------------------ */

struct verdict {
	const char *name, *state, *detail;
	int64_t ms;
};

static void put_text(const struct verdict *verdict, bool is_utf8, bool has_colours,
		     struct tally_buffer *out)
{
	bool is_skipped = !strcmp(verdict->state, "skipped"), is_ok = !strcmp(verdict->state, "ok");
	const char *mark = is_utf8 ? "✗" : "x ", *colour = "\033[31m";
	if (is_skipped) {
		mark = is_utf8 ? "–" : "- ";
		colour = "\033[2m";
	} else if (is_ok) {
		mark = is_utf8 ? "✓" : "ok";
		colour = "\033[32m";
	}
	tally_buffer_printf(out, "  %s%s%s %-37s ", has_colours ? colour : "", mark,
			    has_colours ? "\033[0m" : "", verdict->name);
	if (is_skipped)
		tally_buffer_text(out, "skipped: ");
	tally_put_name(out, verdict->detail);
	if (!is_skipped)
		tally_buffer_printf(out, " (%lld ms)", (long long)verdict->ms);
	tally_buffer_char(out, '\n');
}

static void put_json(const struct verdict *verdict, struct tally_json *json)
{
	tally_json_object(json, NULL);
	tally_json_text(json, "name", verdict->name);
	tally_json_text(json, "state", verdict->state);
	tally_json_text(json, "detail", verdict->detail);
	tally_json_i64(json, "ms", verdict->ms);
	tally_json_end(json);
}

static bool has_state(const struct tally_findings *findings, const char *id,
		      enum tally_finding_state state)
{
	const struct tally_finding *finding = tally_findings_find(findings, id);
	return finding && finding->state == state;
}

static const char *cause_of(const struct tally_finding *finding)
{
	return *finding->cause ? finding->cause : finding->detail;
}

/* Returns why the claim is not made: the finding's cause; NULL: it is made.  A limited use
 * (in user mode only, for example) must work within its limits. */
static const char *why_not_claimed(const struct tally_findings *findings, const char *id)
{
	const struct tally_finding *finding = tally_findings_find(findings, id);
	if (!finding && !strcmp(id, "overflow"))
		return why_not_claimed(findings, "hardware");
	if (!finding)
		return "there is none";
	bool is_optional = !strcmp(id, "simulated-pmu") || !strcmp(id, "process");
	if (is_optional && !strcmp(finding->detail, "none"))
		return cause_of(finding); /* it may be missing, and not missed */
	if (finding->state == TALLY_FINDING_OK)
		return NULL;
	if (finding->state == TALLY_FINDING_LIMITED && strcmp(id, "kallsyms") != 0)
		return NULL;
	return cause_of(finding);
}

/* True if the finding's tests run this program under the process provider. */
static bool is_inside(const struct tester *tester, const char *finding)
{
	bool is_command = !strcmp(finding, "stat") || !strcmp(finding, "record");
	return !strcmp(finding, "process") || (tester->counts_inside && is_command);
}

/* Returns why a test can't run here; NULL: it can. */
static const char *why_skipped(const struct tester *tester, const struct tally_findings *findings,
			       size_t index)
{
	const char *reason = why_not_claimed(findings, tests[index].finding);
	if (reason)
		return reason;
	if (tester->obstacle.code && is_inside(tester, tests[index].finding))
		return tester->obstacle.message;
	if (tests[index].test == test_kernel_names &&
	    !has_state(findings, "record", TALLY_FINDING_OK))
		return cause_of(tally_findings_find(findings, "record"));
	if (tests[index].test == test_instructions &&
	    !strcmp(tally_findings_find(findings, "hardware")->detail, "open, but don't count"))
		return tally_findings_find(findings, "overflow")->cause;
	if (tests[index].test == test_instructions && !tester->has_instructions)
		return "this PMU counts cycles, and no instructions";
	if (tests[index].test == test_tracepoint && !tester->can_trace_calls)
		return "this kernel has no tracepoints of system calls";
	return NULL;
}

static void remove_folder(const char *folder)
{
	static const char *const names[] = { "data", "data.old", "graph.svg" };
	char path[PATH_MAX + 16];
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
}

static bool instructions_open(void)
{
	struct tally_attr attr = { .type = TALLY_TYPE_HARDWARE,
				   .size = TALLY_ATTR_SIZE_VER1,
				   .config = TALLY_HW_INSTRUCTIONS,
				   .flags = TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV };
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, TALLY_FLAG_FD_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || errno != ENOENT; /* other refusals are failures */
}

static bool has_call_tracepoints(void)
{
	int folder = tally_tracefs_open(NULL);
	if (folder < 0)
		return false;
	bool found = tally_tracefs_tracepoint_id(folder, "syscalls", "sys_enter_getppid") >= 0;
	close(folder);
	return found;
}

static int open_tester(struct tester *tester, struct tally_error *err)
{
	ssize_t length = readlink("/proc/self/exe", tester->self, sizeof(tester->self) - 1);
	if (length <= 0)
		return tally_error_set(err, -errno, "/proc/self/exe can't be read: %s",
				       tally_errno_text(errno));
	tester->self[length] = '\0';
	const char *temporary = tally_text_or(tally_environment("TMPDIR"), "/tmp");
	if (strlen(temporary) > PATH_MAX - 64)
		return tally_error_set(err, -ENAMETOOLONG, "the path in TMPDIR is too long");
	snprintf(tester->folder, sizeof(tester->folder), "%.*s/tally-self-test-XXXXXX",
		 PATH_MAX - 64, temporary);
	if (!mkdtemp(tester->folder)) {
		int result = tally_error_set(err, -errno, "%s can't be made: %s", tester->folder,
					     tally_errno_text(errno));
		tally_error_hint(err, "set TMPDIR to a directory of your own");
		return result;
	}
	snprintf(tester->recording, sizeof(tester->recording), "%.*s/data", PATH_MAX - 16,
		 tester->folder);
	tester->has_instructions = instructions_open();
	tester->can_trace_calls = has_call_tracepoints();
	return 0;
}

int self_test_run(const struct tally_findings *findings, bool as_json, bool is_utf8,
		  bool has_colours, struct tally_buffer *out, struct tally_error *err)
{
	struct tester tester = { .output = { .maximum = 1 << 24 } };
	struct tally_json json = { .out = out, .indent = true };
	struct sigaction before[ENDING];
	int failures = 0;
	catch_signals(before);
	int result = open_tester(&tester, err);
	if (result < 0) {
		restore_signals(before);
		return result;
	}
	const struct tally_provider_ops *inside = tally_provider_substitute(0);
	tester.counts_inside = has_state(findings, "commands", TALLY_FINDING_LIMITED);
	if (inside && inside->check_program)
		inside->check_program(tester.self, &tester.obstacle);
	if (as_json) {
		tally_json_object(&json, NULL);
		tally_json_text(&json, "schema", "tally-self-test");
		tally_json_u64(&json, "version", 1);
		tally_json_array(&json, "tests");
	}
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests) && !interrupted; i++) {
		struct verdict verdict = { .name = tests[i].name, .state = "ok" };
		const char *skipped = why_skipped(&tester, findings, i);
		int64_t start = now_ms();
		tester.detail[0] = '\0';
		if (skipped)
			verdict.state = "skipped";
		else if (!tests[i].test(&tester))
			verdict.state = "failed";
		failures += !strcmp(verdict.state, "failed");
		verdict.detail = tally_text_or(skipped, tester.detail);
		verdict.ms = now_ms() - start;
		if (as_json)
			put_json(&verdict, &json);
		else
			put_text(&verdict, is_utf8, has_colours, out);
	}
	if (as_json) {
		tally_json_end(&json);
		tally_json_i64(&json, "failed", failures);
		tally_json_end(&json);
	} else if (failures) {
		tally_buffer_printf(out, "\n%d of doctor's claims do not hold here\n", failures);
	} else {
		tally_buffer_text(out, "\nwhat doctor says holds here\n");
	}
	remove_folder(tester.folder);
	tally_buffer_release(&tester.output);
	restore_signals(before);
	if (out->failed)
		return tally_error_set(err, -ENOMEM, "out of memory");
	return failures;
}
