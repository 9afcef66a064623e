/* `tally doctor --self-test`: runs tally as a user would, on work whose counts and shares are known.
 *
 * The work is this program itself (`doctor --work`), so that nothing else must be installed.  Each
 * test belongs to a finding of doctor.  The tests of what is missing are skipped, with the finding's
 * cause; the others must pass.  Counts are compared between two amounts of the same work, so that
 * the cost of starting a program cancels out. */
#include "command/self_test.h"

#include "base/json.h"
#include "base/terminal.h"
#include "base/text.h"
#include "tally/perf_event.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* --- the work --------------------------------------------------------------- */

static volatile unsigned long sink;

/* Two functions with a known part of the time: three quarters, and one. */
__attribute__((noinline)) static void self_test_hot(unsigned long rounds)
{
	for (unsigned long i = 0; i < 3 * rounds; i++)
		sink += i;
}

__attribute__((noinline)) static void self_test_cool(unsigned long rounds)
{
	for (unsigned long i = 0; i < rounds; i++)
		sink += i;
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
		self_test_hot(10000);
		self_test_cool(10000);
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

/* Two instructions a round on x86-64 and arm64, and as many on others as the compiler makes. */
static void loop(unsigned long rounds)
{
#if defined(__x86_64__)
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(rounds) : : "cc");
#elif defined(__aarch64__)
	__asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(rounds) : : "cc");
#else
	for (volatile unsigned long i = 0; i < rounds; i++)
		;
#endif
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
	char folder[64];            /* for recordings */
	struct tally_buffer output; /* of the last run: both streams */
	char detail[256];           /* a test's result; one line */
};

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Reads all that the child writes, for RUN_MS at most. */
static void read_output(int fd, pid_t child, struct tally_buffer *out)
{
	int64_t end = now_ms() + RUN_MS;
	char bytes[4096];
	for (;;) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		int64_t left = end - now_ms();
		int result = left > 0 ? poll(&ready, 1, (int)left) : 0;
		if (result < 0 && errno == EINTR)
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
	pid_t child;
	posix_spawn_file_actions_t actions;
	for (unsigned i = 0; i < ARGUMENTS_MAX && arguments[i]; i++)
		argv[i + 1] = (char *)arguments[i];
	tally_buffer_clear(&tester->output);
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -1;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, pipes[1], 1);
	posix_spawn_file_actions_adddup2(&actions, pipes[1], 2);
	int code = posix_spawn(&child, tester->self, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(pipes[1]);
	if (!code) {
		read_output(pipes[0], child, &tester->output);
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
	}
	close(pipes[0]);
	if (code || !WIFEXITED(status))
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

/* Counts an event of some work, as `stat -x,` prints it.  Returns false if there is no count. */
static bool count(struct tester *tester, const char *event, const char *work, double *value)
{
	char *end;
	if (RUN(tester, "stat", "-x,", "-e", event, "--", tester->self, "doctor", "--work", work))
		return fail_with_output(tester, "stat failed");
	/* "1234,,page-faults:u,…" behind lines that begin with "#" */
	const char *line = tally_buffer_string(&tester->output);
	while (*line == '#' || *line == '\n')
		line += strcspn(line, "\n") + 1;
	*value = strtod(line, &end);
	if (end == line || *end != ',')
		return fail_with_output(tester, "no count");
	return true;
}

/* Checks that the counts of two amounts of work differ by `more` times `each`. */
static bool check_difference(struct tester *tester, const char *event, const char *kind,
			     unsigned long least, unsigned long more, double each, double tolerance)
{
	char works[2][64];
	double values[2];
	snprintf(works[0], sizeof(works[0]), "%s:%lu", kind, least);
	snprintf(works[1], sizeof(works[1]), "%s:%lu", kind, least + more);
	for (unsigned i = 0; i < 2; i++)
		if (!count(tester, event, works[i], &values[i]))
			return false;
	double wanted = (double)more * each, found = values[1] - values[0];
	snprintf(tester->detail, sizeof(tester->detail), "%s: %.0f counted, %.0f done", event,
		 found, wanted);
	return fabs(found - wanted) <= tolerance;
}

/* --- the tests --------------------------------------------------------------- */

static bool test_faults(struct tester *tester)
{
	return check_difference(tester, "page-faults:u", "faults", 10, 1000, 1, 20);
}

static bool test_inherited(struct tester *tester)
{
	return check_difference(tester, "page-faults:u", "child", 10, 1000, 1, 40);
}

static bool test_clock(struct tester *tester)
{
	double ms;
	if (!count(tester, "task-clock", "spin:100", &ms))
		return false;
	snprintf(tester->detail, sizeof(tester->detail), "%.1f ms counted of 100 and its start",
		 ms);
	return ms > 97 && ms < 130;
}

static bool test_group(struct tester *tester)
{
	if (RUN(tester, "stat", "-x,", "-e", "{task-clock,page-faults}", "--", tester->self,
		"doctor", "--work", "faults:100"))
		return fail_with_output(tester, "stat failed");
	const char *text = tally_buffer_string(&tester->output);
	if (!strstr(text, "task-clock") || !strstr(text, "page-faults") || strchr(text, '<'))
		return fail_with_output(tester, "a group has no counts");
	snprintf(tester->detail, sizeof(tester->detail), "two events count together");
	return true;
}

static bool test_system_wide(struct tester *tester)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	char *end;
	if (RUN(tester, "stat", "-x,", "-a", "-e", "cpu-clock", "--duration", "0.1"))
		return fail_with_output(tester, "stat -a failed");
	const char *line = tally_buffer_string(&tester->output);
	while (*line == '#' || *line == '\n')
		line += strcspn(line, "\n") + 1;
	double ms = strtod(line, &end);
	snprintf(tester->detail, sizeof(tester->detail),
		 "%.0f ms of CPU clocks in 100 ms on %ld CPUs", ms, cpus);
	return end != line && ms > 95.0 * (double)cpus && ms < 200.0 * (double)cpus;
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
		char *end;
		snprintf(works[i], sizeof(works[i]), "loop:%u", 1000 + i * 1000000);
		if (RUN(tester, "stat", "-x,", "--provider", "simulated", "-e", "instructions",
			"--", tester->self, "doctor", "--work", works[i]))
			return fail_with_output(tester, "stat --provider simulated failed");
		const char *line = tally_buffer_string(&tester->output);
		while (*line == '#' || *line == '\n')
			line += strcspn(line, "\n") + 1;
		values[i] = strtod(line, &end);
		if (end == line)
			return fail_with_output(tester, "no count");
	}
	snprintf(tester->detail, sizeof(tester->detail), "instructions: %.0f counted, 2000000 done",
		 values[1] - values[0]);
	return fabs(values[1] - values[0] - 2000000) <= 100;
}

/* Records the spinning work.  The path is the tester's until the next call. */
static const char *record(struct tester *tester)
{
	static char path[96];
	snprintf(path, sizeof(path), "%s/data", tester->folder);
	if (RUN(tester, "record", "-q", "-e", "cpu-clock:u", "-F", "999", "-o", path, "--",
		tester->self, "doctor", "--work", "spin:300")) {
		fail_with_output(tester, "record failed");
		return NULL;
	}
	return path;
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

static bool test_record(struct tester *tester)
{
	const char *path = record(tester);
	if (!path)
		return false;
	if (RUN(tester, "fold", "-i", path))
		return fail_with_output(tester, "fold failed");
	double all = folded(tester, NULL), cut = folded(tester, "[truncated]");
	double hot = folded(tester, ";self_test_hot");
	if (all < 1)
		return fail_with_output(tester, "no samples");
	if (hot < 1) { /* a package's program has no symbols */
		snprintf(tester->detail, sizeof(tester->detail),
			 "%.1f %% of the stacks are whole; this program has no symbols to check",
			 100 * (1 - cut / all));
		return cut / all < 0.05;
	}
	snprintf(tester->detail, sizeof(tester->detail),
		 "%.0f %% of the samples in a function of 75 %%, %.1f %% of the stacks are whole",
		 100 * hot / all, 100 * (1 - cut / all));
	return fabs(hot / all - 0.75) < 0.12 && cut / all < 0.05;
}

static bool test_flame_graph(struct tester *tester)
{
	char svg[96];
	const char *path = record(tester);
	if (!path)
		return false;
	snprintf(svg, sizeof(svg), "%s/graph.svg", tester->folder);
	if (RUN(tester, "flamegraph", "-i", path, "-o", svg))
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
	char path[96];
	snprintf(path, sizeof(path), "%s/data", tester->folder);
	if (RUN(tester, "record", "-q", "-e", "cpu-clock:k", "-F", "4999", "-o", path, "--",
		tester->self, "doctor", "--work", "calls:2000000"))
		return fail_with_output(tester, "record failed");
	if (RUN(tester, "report", "--stdio", "--sort", "sym", "-g", "none", "-i", path))
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
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
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
	{ "breakpoints", "breakpoints count writes", test_breakpoint },
	{ "simulated-pmu", "simulated instructions are exact", test_simulated },
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

/* Returns why the claim is not made: the finding's cause; NULL: it is made. */
static const char *why_skipped(const struct tally_findings *findings, const char *id)
{
	const struct tally_finding *finding = tally_findings_find(findings, id);
	if (!finding)
		return "doctor has nothing to say about it";
	/* the simulated PMU may be missing, and not missed */
	if (!strcmp(finding->detail, "none"))
		return tally_text_or(*finding->cause ? finding->cause : NULL, "there is none");
	if (finding->state == TALLY_FINDING_OK)
		return NULL;
	/* limited to user mode and the like: what is left must work */
	bool is_partial = finding->state == TALLY_FINDING_LIMITED && strcmp(id, "kallsyms") != 0 &&
			  strcmp(id, "tracepoints") != 0;
	if (is_partial)
		return NULL;
	return *finding->cause ? finding->cause : finding->detail;
}

static void remove_folder(const char *folder)
{
	static const char *const names[] = { "data", "data.old", "graph.svg" };
	char path[128];
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
}

static int open_tester(struct tester *tester, struct tally_error *err)
{
	ssize_t length = readlink("/proc/self/exe", tester->self, sizeof(tester->self) - 1);
	if (length <= 0)
		return tally_error_set(err, -errno, "/proc/self/exe can't be read: %s",
				       tally_errno_text(errno));
	tester->self[length] = '\0';
	snprintf(tester->folder, sizeof(tester->folder), "/tmp/tally-self-test-XXXXXX");
	if (!mkdtemp(tester->folder))
		return tally_error_set(err, -errno, "%s can't be made: %s", tester->folder,
				       tally_errno_text(errno));
	return 0;
}

int self_test_run(const struct tally_findings *findings, bool as_json, bool is_utf8,
		  bool has_colours, struct tally_buffer *out, struct tally_error *err)
{
	struct tester tester = { .output = { .maximum = 1 << 24 } };
	struct tally_json json = { .out = out, .indent = true };
	int failures = 0;
	int result = open_tester(&tester, err);
	if (result < 0)
		return result;
	if (as_json) {
		tally_json_object(&json, NULL);
		tally_json_text(&json, "schema", "tally-self-test");
		tally_json_u64(&json, "version", 1);
		tally_json_array(&json, "tests");
	}
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		struct verdict verdict = { .name = tests[i].name, .state = "ok" };
		const char *skipped = why_skipped(findings, tests[i].finding);
		if (!skipped && tests[i].test == test_kernel_names)
			skipped = why_skipped(findings, "record");
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
	if (out->failed)
		return tally_error_set(err, -ENOMEM, "out of memory");
	return failures;
}
