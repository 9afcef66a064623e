/* conformance: runs every clause of docs/spec.md that a surface can show, each as a task of its
 * own.  Prints TAP. */
#include "suite.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { TIME_LIMIT_S = 20, EXCEPTION_LIMIT_S = 3, CLAUSES_MAX = 4096 };

#define NAME_CLAUSES(name) name,
static const struct clause *const parts[] = { CLAUSE_ARRAYS(NAME_CLAUSES) };

static const char *const reasons[] = {
	[NA_NO_HARDWARE] = "this machine has no hardware PMU",
	[NA_NO_TRACEPOINTS] = "tracefs is not readable",
	[NA_NO_BREAKPOINTS] = "this machine has no hardware breakpoints",
	[NA_NOT_PRIVILEGED] = "this user may not",
	[NA_ONE_CPU] = "this machine has one CPU",
	[NA_CHANGES_HOST] = "would change the machine that others use",
	[NA_NEEDS_VFS] = "only a virtual file system can show it",
	[NA_NEEDS_BPF] = "needs the kernel's BPF",
	[NA_NEEDS_TEXT_PATCHING] = "needs kernel text to be patched",
	[NA_OTHER_ARCHITECTURE] = "a clause of another PMU model",
	[NA_NO_VIRTUALISATION] = "no guest can be entered",
	[NA_KERNEL_QUIRK] = "this kernel is known to differ",
	[NA_OLD_KERNEL] = "came after this kernel",
	[NA_NO_AUX] = "no hardware that traces",
	[NA_NO_SUCH_EVENT] = "no event of this kernel is of that kind",
	[NA_REAL_TIME] = "needs a machine whose time the test sets",
};
enum { REASONS = sizeof(reasons) / sizeof(reasons[0]) };

struct options {
	const char *surface, *model, *json, *table;
	bool list, own_machine, unprivileged, two_cpus, applicable, no_exceptions;
	unsigned missing; /* enum surface_feature: clauses that need one of these are skipped */
	char **prefixes;
	unsigned repeat;
};

enum { OUTCOMES = 4 };
struct outcome {
	enum { PASSED, FAILED, SKIPPED, EXCEPTED } state;
	const char *reason;
};

/* Returns why a surface can't run a clause, from the features that it lacks; the first reason
 * applies. */
static enum not_applicable lacking(unsigned missing)
{
	static const struct { unsigned feature; enum not_applicable reason;
	} table[] = {
		{ SURFACE_HARDWARE, NA_NO_HARDWARE },
		{ SURFACE_ARM_PMU, NA_OTHER_ARCHITECTURE },
		{ SURFACE_X86_PMU, NA_OTHER_ARCHITECTURE },
		{ SURFACE_HETEROGENEOUS, NA_OTHER_ARCHITECTURE },
		{ SURFACE_USER_COUNTERS, NA_OTHER_ARCHITECTURE },
		{ SURFACE_VIRTUALISATION, NA_NO_VIRTUALISATION },
		{ SURFACE_TRACEPOINTS, NA_NO_TRACEPOINTS },
		{ SURFACE_BREAKPOINTS, NA_NO_BREAKPOINTS },
		{ SURFACE_PRIVILEGED, NA_NOT_PRIVILEGED },
		{ SURFACE_TWO_CPUS, NA_ONE_CPU },
		{ SURFACE_VFS, NA_NEEDS_VFS },
		{ SURFACE_BPF, NA_NEEDS_BPF },
		{ SURFACE_MAY_SET_SYSCTLS, NA_CHANGES_HOST },
		{ SURFACE_HOTPLUG, NA_CHANGES_HOST },
		{ SURFACE_AUX, NA_NO_AUX },
		{ SURFACE_EXACT_TIME, NA_REAL_TIME },
	};
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (missing & table[i].feature)
			return table[i].reason;
	return NA_NONE;
}

static bool chosen(const struct options *options, const struct clause *clause)
{
	const char *id = clause->id;
	if ((options->two_cpus && !(clause->needs & SURFACE_TWO_CPUS)) ||
	    clause->needs & options->missing)
		return false;
	if (!*options->prefixes)
		return true;
	for (char **prefix = options->prefixes; *prefix; prefix++)
		if (!strncmp(id, *prefix, strlen(*prefix)))
			return true;
	return false;
}

static int run_body(struct surface *surface, void *argument)
{
	return ((const struct clause *)argument)->run(surface);
}

static struct surface *make_surface(const struct options *options)
{
#ifdef CONFORMANCE_SIM
	if (!strcmp(options->surface, "sim"))
		return surface_sim(options->model);
#endif
	if (!strcmp(options->surface, "process"))
		return surface_process();
	if (strcmp(options->surface, "kernel"))
		return NULL;
	struct surface *surface = surface_kernel();
	if (surface && options->own_machine && surface->features & SURFACE_PRIVILEGED)
		surface->features |= SURFACE_MAY_SET_SYSCTLS | SURFACE_HOTPLUG;
	return surface;
}

static void drop_surface(const struct options *options, struct surface *surface)
{
#ifdef CONFORMANCE_SIM
	if (!strcmp(options->surface, "sim"))
		surface_sim_free(surface);
#endif
	(void)options, (void)surface; /* the kernel's surface is this process */
}

static bool is_exception(const struct options *options, const struct clause *clause)
{
	return !strcmp(options->surface, "process") && !options->no_exceptions &&
	       surface_process_exception(clause->id);
}

static int run_on(const struct options *options, struct surface *surface,
		  const struct clause *clause)
{
#ifdef CONFORMANCE_SIM
	if (!strcmp(options->surface, "sim"))
		return surface_sim_run(surface, run_body, (void *)clause, TIME_LIMIT_S);
#endif
	unsigned limit = is_exception(options, clause) ? EXCEPTION_LIMIT_S : TIME_LIMIT_S;
	return surface_kernel_run(surface, run_body, (void *)clause, limit);
}

static struct outcome skipped(enum not_applicable reason)
{
	return (struct outcome){ SKIPPED, reasons[reason] };
}

/* Clauses of the closed list must fail: one that passes leaves the list. */
static struct outcome excepted(const struct clause *clause, struct outcome outcome)
{
	if (outcome.state == SKIPPED)
		return outcome;
	if (outcome.state == FAILED)
		return (struct outcome){ EXCEPTED, surface_process_exception(clause->id) };
	printf("# passes, but is on the list of exceptions\n");
	return (struct outcome){ FAILED, NULL };
}

static struct outcome run_clause(const struct options *options, struct surface *surface,
				 const struct clause *clause)
{
	unsigned missing = clause->needs & ~surface->features;
	if (missing)
		return skipped(lacking(missing));
	fflush(stdout);
	int code = run_on(options, surface, clause);
	if (code == 0)
		return (struct outcome){ PASSED, NULL };
	if (code > CLAUSE_NOT_APPLICABLE && code < CLAUSE_NOT_APPLICABLE + REASONS)
		return skipped((enum not_applicable)(code - CLAUSE_NOT_APPLICABLE));
	if (code == -ETIMEDOUT)
		printf("# not done after %d s\n", TIME_LIMIT_S);
	else if (code < 0)
		printf("# can't be run: %s\n", strerror(-code));
	else if (code > 128)
		printf("# ended by signal %d (%s)\n", code - 128, strsignal(code - 128));
	else if (code != CLAUSE_FAILED)
		printf("# ended with %d\n", code);
	return (struct outcome){ FAILED, NULL };
}

/* Writes a line for a clause: tab-separated, for the comparison of surfaces, or a JSON object. */
static void write_outcome(FILE *file, bool json, const struct clause *clause,
			  const struct outcome *outcome)
{
	static const char *const states[OUTCOMES] = { "pass", "fail", "n/a", "exception" };
	const char *reason = outcome->reason ? outcome->reason : "";
	/* valid() has checked that ids, sentences and reasons contain neither quotes nor
	 * backslashes */
	if (json)
		fprintf(file,
			"{\"id\":\"%s\",\"holds\":\"%s\",\"result\":\"%s\",\"reason\":\"%s\"}\n",
			clause->id, clause->holds, states[outcome->state], reason);
	else
		fprintf(file, "%s\t%s\t%s\n", clause->id, states[outcome->state], reason);
}

static void print_outcome(unsigned number, const struct clause *clause,
			  const struct outcome *outcome)
{
	printf("%sok %u - %s", outcome->state == FAILED ? "not " : "", number, clause->id);
	if (outcome->state == SKIPPED || outcome->state == EXCEPTED)
		printf(" # SKIP %s", outcome->reason);
	printf("\n");
	if (outcome->state == FAILED)
		printf("# should hold: %s\n", clause->holds);
}

/* Calls `visit` for each chosen clause.  Returns their number. */
static unsigned each_clause(const struct options *options, void *context,
			    void (*visit)(void *context, unsigned number,
					  const struct clause *clause))
{
	unsigned number = 0;
	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		for (const struct clause *clause = parts[i]; clause->id; clause++)
			if (chosen(options, clause)) {
				number++;
				if (visit)
					visit(context, number, clause);
			}
	return number;
}

static void list_clause(void *context, unsigned number, const struct clause *clause)
{
	(void)context, (void)number;
	printf("%-44s %s\n", clause->id, clause->holds);
}

struct run {
	const struct options *options;
	struct surface *surface;
	FILE *results;
	unsigned counts[OUTCOMES];
};

static void visit_clause(void *context, unsigned number, const struct clause *clause)
{
	struct run *run = context;
	struct outcome outcome = run_clause(run->options, run->surface, clause);
	for (unsigned i = 1; i < run->options->repeat && outcome.state == PASSED; i++)
		outcome = run_clause(run->options, run->surface, clause);
	if (is_exception(run->options, clause))
		outcome = excepted(clause, outcome);
	run->counts[outcome.state]++;
	print_outcome(number, clause, &outcome);
	if (run->results)
		write_outcome(run->results, run->options->json, clause, &outcome);
}

/* True if each id exists once in all files, and no sentence needs escapes in JSON. */
static bool valid(void)
{
	struct options all = { .prefixes = (char *[]){ NULL } };
	const struct clause *seen[CLAUSES_MAX];
	unsigned count = 0;
	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		for (const struct clause *clause = parts[i]; clause->id && count < CLAUSES_MAX;
		     clause++) {
			bool good = clause->run && clause->holds &&
				    !strpbrk(clause->holds, "\"\\\t");
			for (unsigned other = 0; other < count; other++)
				good = good && strcmp(seen[other]->id, clause->id);
			if (!good) {
				fprintf(stderr, "conformance: a bad entry: %s\n", clause->id);
				return false;
			}
			seen[count++] = clause;
		}
	return count == each_clause(&all, NULL, NULL);
}

static int usage(void)
{
	fprintf(stderr,
		"usage: conformance [--surface kernel|process"
#ifdef CONFORMANCE_SIM
		"|sim] [--model NAME"
#endif
		"] [--own-machine] [--unprivileged] [--two-cpus] [--applicable] [--repeat N]\n"
		"                   [--no-exceptions] [--list] [--json FILE | --table FILE] "
		"[ID-PREFIX...]\n");
	return 2;
}

static int parse_options(struct options *options, char **argv)
{
	for (argv++; *argv && !strncmp(*argv, "--", 2); argv++) {
		const char *name = *argv + 2, **value = NULL, *number = NULL;
		if (!strcmp(name, "list"))
			options->list = true;
		else if (!strcmp(name, "own-machine"))
			options->own_machine = true;
		else if (!strcmp(name, "unprivileged"))
			options->unprivileged = true;
		else if (!strcmp(name, "two-cpus"))
			options->two_cpus = true;
		else if (!strcmp(name, "applicable"))
			options->applicable = true;
		else if (!strcmp(name, "no-exceptions"))
			options->no_exceptions = true;
		else if (!strcmp(name, "surface"))
			value = &options->surface;
		else if (!strcmp(name, "model"))
			value = &options->model;
		else if (!strcmp(name, "json"))
			value = &options->json;
		else if (!strcmp(name, "table"))
			value = &options->table;
		else if (!strcmp(name, "repeat"))
			value = &number;
		else
			return -EINVAL;
		if (value && !(*value = *++argv))
			return -EINVAL;
		if (number && (options->repeat = (unsigned)strtoul(number, NULL, 10)) == 0)
			return -EINVAL;
	}
	options->prefixes = argv;
	return 0;
}

static int become_nobody(void)
{
	enum { NOBODY = 65534 };
	if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
		return -errno;
	/* A change of user makes /proc/self inaccessible to the process, as for set-user-ID
	 * programs. */
	return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int main(int argc, char **argv)
{
	surface_kernel_body(argc, argv);
	struct options options = { .surface = "kernel", .model = "x86", .repeat = 1 };
	if (parse_options(&options, argv) < 0)
		return usage();
	if (!valid())
		return 2;
	if (options.list) {
		each_clause(&options, NULL, list_clause);
		return 0;
	}
	struct run run = { .options = &options };
	const char *path = options.json ? options.json : options.table;
	if (path && !(run.results = fopen(path, "w"))) {
		fprintf(stderr, "conformance: can't write %s: %s\n", path, strerror(errno));
		return 2;
	}
	if (options.unprivileged && become_nobody() < 0) {
		printf("1..0 # SKIP only root can become another user\n");
		return 0;
	}
	/* otherwise a task that changed its user can't read its own /proc files */
	if (options.unprivileged)
		prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	run.surface = make_surface(&options);
	if (!run.surface)
		return usage();
	options.missing = options.applicable ? ~run.surface->features : 0;
	printf("1..%u\n", each_clause(&options, NULL, NULL));
	each_clause(&options, &run, visit_clause);
	printf("# %u passed, %u failed, %u skipped", run.counts[PASSED], run.counts[FAILED],
	       run.counts[SKIPPED]);
	if (run.counts[EXCEPTED])
		printf(", %u exceptions", run.counts[EXCEPTED]);
	printf("\n");
	drop_surface(&options, run.surface);
	if (run.results && fclose(run.results) != 0)
		return 2;
	return run.counts[FAILED] ? 1 : 0;
}
