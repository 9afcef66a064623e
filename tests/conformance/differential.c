/* differential: makes random calls on two surfaces and compares the results.
 *
 *     differential [--seed N] [--operations N] [--rounds N] [--model M] [--soak] [--show]
 *                  [--keep N,N…]
 *     differential … --under COMMAND…
 *
 * The first surface is the kernel.  The second is the simulated machine with PMU model M.  With
 * `--model kernel` it is the kernel again, to check that the printed results are determined:
 * otherwise a difference would mean nothing.  With `--under` it is the kernel's interface in this
 * program, run by COMMAND: "refuse_perf EPERM tally run --" makes tally's preloaded object answer,
 * "env" the kernel.  Then both make only calls that differential_process.c lists.
 *
 * A round is a process that makes random calls on a handful of events: opens with sane and broken
 * attributes, reads, ioctls, mappings, polls, closes, forks, execs, and work of its own and of
 * other tasks.  It writes a line for each call: errno, sizes, and the results that are determined
 * (counts of hits and watched writes, records field by field).  A call depends on the round's seed,
 * its own number and the results of earlier calls.  So two surfaces that agree make the same calls,
 * and the first line that differs is the difference.  Events that depend on time (clocks, switches,
 * faults of a C library) are opened and read too, but their values are not printed.
 *
 * Each call has its own random numbers, so any call may be left out.  This way a difference is
 * reduced to the few calls that still cause it.  `--keep` runs only these.
 *
 * One tracepoint event stays open: closing a kernel's last one takes 36 ms. */
#include "counting.h"
#include "differential.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUND_OPERATIONS = 200, ROUND_SECONDS = 60, TRIES_MAX = 300 };

struct round {
	uint64_t seed;
	unsigned operations;
	bool skipped[OPERATIONS_MAX];
	bool process; /* calls of the surface "process" */
	FILE *out;
};

static void seed_operation(struct differential *d, uint64_t seed, unsigned operation)
{
	d->random = seed * 0xd1342543de82ef95u + operation;
	d->random = draw(d);
}

static int run_round(struct surface *surface, void *argument)
{
	const struct round *round = argument;
	struct differential *d = calloc(1, sizeof(*d));
	if (!d)
		return 1;
	d->surface = surface;
	d->out = round->out;
	d->process = round->process;
	seed_operation(d, round->seed, 0);
	differential_begin(d);
	if (!d->child)
		return 1;
	for (d->operation = 1; d->operation <= round->operations; d->operation++) {
		if (round->skipped[d->operation - 1])
			continue;
		seed_operation(d, round->seed, d->operation);
		fprintf(d->out, "%u: ", d->operation);
		differential_step(d);
		fprintf(d->out, "\n");
	}
	differential_end(d);
	fprintf(d->out, "end\n");
	fflush(d->out);
	free(d);
	return 0;
}

struct pair {
	struct surface *kernel, *other; /* the same surface twice: kernel against kernel */
	char **under; /* NULL; otherwise the command that runs the other round, instead of `other` */
	FILE *out[2];
	int codes[2];
	char *lines[2]; /* the first lines that differ; NULL: none */
	size_t sizes[2];
	bool ended[2];
	unsigned long operation; /* the operation of `lines` */
};

/* Writes the numbers of the calls that the round makes, with commas. */
static void write_kept(const struct round *round, FILE *out)
{
	for (unsigned i = 0, n = 0; i < round->operations; i++)
		if (!round->skipped[i])
			fprintf(out, "%s%u", n++ ? "," : "", i + 1);
}

/* Runs the round in this program, started by the command `under`.  Returns its exit code, 128 +
 * signal, or -errno. */
static int run_under(char **under, const struct round *round)
{
	enum { OWN = 8 };
	char seed[24], operations[24], *keep = NULL, self[4096] = "";
	size_t count = 0, size;
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return -errno;
	while (under[count])
		count++;
	FILE *list = open_memstream(&keep, &size);
	if (!list)
		return -ENOMEM;
	write_kept(round, list);
	fclose(list);
	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)round->seed);
	snprintf(operations, sizeof(operations), "%u", round->operations);
	char *own[OWN + 1] = { self,         "--transcript", "--seed", seed,
			       "--operations", operations,     "--keep", keep };
	char **argv = calloc(count + OWN + 1, sizeof(*argv));
	pid_t pid = argv ? fork() : -1;
	if (pid == 0) {
		memcpy(argv, under, count * sizeof(*argv));
		memcpy(argv + count, own, sizeof(own));
		dup2(fileno(round->out), STDOUT_FILENO);
		execvp(argv[0], argv);
		perror(argv[0]);
		_exit(127);
	}
	int status = 0, code = pid < 0 ? -errno : 0;
	if (pid > 0 && waitpid(pid, &status, 0) == pid)
		code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	free(argv);
	free(keep);
	return code;
}

static int transcribe(struct pair *pair, unsigned which, struct round *round)
{
	struct surface *surface = which ? pair->other : pair->kernel;
	bool kernel = surface == pair->kernel;
	if (pair->out[which])
		fclose(pair->out[which]);
	FILE *out = round->out = pair->out[which] = tmpfile();
	if (!out)
		return -1;
	int code;
	if (which && pair->under)
		code = run_under(pair->under, round);
	else
		code = (kernel ? surface_kernel_run : surface_sim_run)(surface, run_round, round,
								       ROUND_SECONDS);
	rewind(out);
	return code;
}

static bool next_line(struct pair *pair, unsigned which)
{
	do {
		if (getline(&pair->lines[which], &pair->sizes[which], pair->out[which]) < 0)
			return false;
	} while (pair->lines[which][0] == '\n');
	return true;
}

/* Runs the round on both surfaces.  Returns true if they differ. */
static bool differs(struct pair *pair, struct round *round)
{
	for (unsigned i = 0; i < 2; i++)
		pair->codes[i] = transcribe(pair, i, round);
	pair->operation = 0;
	for (;;) {
		for (unsigned i = 0; i < 2; i++)
			pair->ended[i] = !next_line(pair, i);
		if (pair->ended[0] && pair->ended[1])
			return pair->codes[0] || pair->codes[1];
		unsigned long operation = strtoul(pair->lines[pair->ended[0]], NULL, 10);
		pair->operation = operation ? operation : pair->operation;
		if (pair->ended[0] != pair->ended[1] || strcmp(pair->lines[0], pair->lines[1]))
			return true;
	}
}

static void show(struct pair *pair, FILE *out)
{
	rewind(pair->out[0]);
	while (next_line(pair, 0)) {
		const char *text = strstr(pair->lines[0], ": ");
		if (!text || text[2] != '\n') /* skip calls that found nothing to do */
			fprintf(out, "#   %s", pair->lines[0]);
	}
}

/* Leaves out calls that don't matter, in ever smaller pieces.  Returns the number of tries. */
static unsigned shrink(struct pair *pair, struct round *round)
{
	unsigned tries = 0;
	if (pair->operation && pair->operation < round->operations)
		round->operations = (unsigned)pair->operation;
	for (unsigned piece = round->operations / 2; piece && tries < TRIES_MAX; piece /= 2)
		for (unsigned start = 0; start < round->operations && tries < TRIES_MAX;
		     start += piece) {
			struct round less = *round;
			bool fewer = false;
			for (unsigned i = start; i < start + piece && i < less.operations; i++) {
				fewer |= !less.skipped[i];
				less.skipped[i] = true;
			}
			if (!fewer)
				continue;
			tries++;
			if (differs(pair, &less))
				*round = less;
		}
	return tries;
}

static void show_difference(struct pair *pair, struct round *round)
{
	printf("# seed %llu: the surfaces differ in operation %lu\n",
	       (unsigned long long)round->seed, pair->operation);
	shrink(pair, round);
	if (!differs(pair, round)) {
		printf("# … not always: it did not come again\n");
		return;
	}
	char *lines[2] = { pair->ended[0] ? NULL : strdup(pair->lines[0]),
			   pair->ended[1] ? NULL : strdup(pair->lines[1]) };
	int codes[2] = { pair->codes[0], pair->codes[1] };
	printf("# --seed %llu --operations %u --keep ", (unsigned long long)round->seed,
	       round->operations);
	write_kept(round, stdout);
	printf("\n");
	show(pair, stdout);
	printf("# kernel: %s# other:  %s# they ended with %d and %d\n",
	       lines[0] ? lines[0] : "(nothing)\n", lines[1] ? lines[1] : "(nothing)\n", codes[0],
	       codes[1]);
	free(lines[0]);
	free(lines[1]);
}

struct options {
	unsigned long seed, operations, rounds;
	const char *model, *keep;
	char **under;
	bool show, soak, transcript;
};

static void keep_only(struct round *round, const char *list)
{
	memset(round->skipped, 1, sizeof(round->skipped));
	for (char *end; *list; list = *end ? end + 1 : end) {
		unsigned long n = strtoul(list, &end, 10);
		if (n && n <= OPERATIONS_MAX)
			round->skipped[n - 1] = false;
		if (end == list)
			break;
	}
}

/* Runs the rounds.  Returns how many differ. */
static unsigned run(struct pair *pair, const struct options *options)
{
	unsigned failed = 0;
	for (unsigned long i = 0; i < options->rounds; i++) {
		struct round round = { .seed = options->seed + i,
				       .operations = (unsigned)options->operations,
				       .process = options->under };
		if (options->keep)
			keep_only(&round, options->keep);
		bool different = differs(pair, &round);
		if (options->show)
			show(pair, stdout);
		if (different)
			show_difference(pair, &round);
		failed += different;
		if (different || !options->soak)
			printf("%sok %lu - %lu random calls agree, seed %lu\n",
			       different ? "not " : "", i + 1, options->operations,
			       options->seed + i);
		if (options->soak && (i + 1) % 50 == 0)
			printf("# %lu operations, %u rounds differ; next seed %lu\n",
			       (i + 1) * options->operations, failed, options->seed + i + 1);
		fflush(stdout);
	}
	return failed;
}

static int parse(char **arg, struct options *options)
{
	for (; *arg; arg++) {
		struct { const char *name; unsigned long *number;
		} numbers[] = {
			{ "--seed", &options->seed },
			{ "--operations", &options->operations },
			{ "--rounds", &options->rounds },
		};
		unsigned i = 0;
		while (i < 3 && strcmp(*arg, numbers[i].name))
			i++;
		if (i < 3 && arg[1])
			*numbers[i].number = strtoul(*++arg, NULL, 10);
		else if (!strcmp(*arg, "--model") && arg[1])
			options->model = *++arg;
		else if (!strcmp(*arg, "--keep") && arg[1])
			options->keep = *++arg;
		else if (!strcmp(*arg, "--under") && arg[1]) {
			options->under = arg + 1;
			break;
		} else if (!strcmp(*arg, "--transcript"))
			options->transcript = true;
		else if (!strcmp(*arg, "--show"))
			options->show = true;
		else if (!strcmp(*arg, "--soak"))
			options->soak = true;
		else
			return -1;
	}
	return options->operations > OPERATIONS_MAX ? -1 : 0;
}

/* Steps and watched variables are addresses, so programs that a round executes must be loaded at
 * this program's address. */
static void fix_addresses(char **argv)
{
	int now = personality(0xffffffff);
	if (now != -1 && !(now & ADDR_NO_RANDOMIZE) &&
	    personality((unsigned long)now | ADDR_NO_RANDOMIZE) != -1)
		execv("/proc/self/exe", argv);
}

/* Writes the transcript of one round with the calls of the surface "process". */
static int write_transcript(struct surface *surface, const struct options *options)
{
	struct round round = { .seed = options->seed,
			       .operations = (unsigned)options->operations,
			       .process = true,
			       .out = stdout };
	keep_only(&round, options->keep);
	int code = surface_kernel_run(surface, run_round, &round, ROUND_SECONDS);
	return code < 0 ? 1 : code;
}

/* Returns why this user can't run the rounds on the kernel, or NULL. */
static const char *reason_to_skip(struct surface *kernel, const struct options *options)
{
	unsigned needed = SURFACE_TRACEPOINTS | SURFACE_BREAKPOINTS | SURFACE_PRIVILEGED;
	struct tally_attr attr = { .type = TALLY_TYPE_SOFTWARE,
				   .size = sizeof(attr),
				   .config = TALLY_SW_DUMMY,
				   .flags = TALLY_ATTR_EXCLUDE_KERNEL };
	if (options->under)
		return try_open(kernel, &attr) < 0 ? "the kernel refuses perf events" : NULL;
	return (kernel->features & needed) == needed
		       ? NULL
		       : "the kernel's tracepoints and breakpoints are not this user's";
}

/* Keeps a tracepoint event open.  Returns its descriptor, or -errno. */
static int hold_tracepoint(struct surface *kernel)
{
	struct tally_attr hold = hit_attr(kernel);
	hold.flags |= TALLY_ATTR_DISABLED;
	return kernel->ops->open(kernel, &hold, 0, -1, -1, TALLY_FLAG_FD_CLOEXEC);
}

int main(int argc, char **argv)
{
	struct options options = {
		.seed = 1, .operations = ROUND_OPERATIONS, .rounds = 50, .model = "none"
	};
	surface_kernel_body(argc, argv);
	fix_addresses(argv);
	if (parse(argv + 1, &options) < 0) {
		fprintf(stderr,
			"usage: differential [--seed N] [--rounds N] [--operations N] [--model M] "
			"[--soak] [--show] [--keep N,N…] [--under COMMAND…]\n");
		return 2;
	}
	struct surface *kernel = surface_kernel();
	if (!kernel)
		return 2;
	if (options.transcript)
		return write_transcript(kernel, &options);
	const char *reason = reason_to_skip(kernel, &options);
	if (reason) {
		printf("1..0 # SKIP %s\n", reason);
		return 0;
	}
	struct pair pair = { .kernel = kernel, .under = options.under };
	pair.other = kernel;
	if (!options.under && strcmp(options.model, "kernel"))
		pair.other = surface_sim(options.model);
	if (!pair.other)
		return 2;
	int held = options.under ? -1 : hold_tracepoint(kernel);
	if (!options.soak)
		printf("1..%lu\n", options.rounds);
	unsigned failed = run(&pair, &options);
	printf("# %lu passed, %u failed, 0 skipped\n", options.rounds - failed, failed);
	if (held >= 0)
		kernel->ops->close(kernel, held);
	for (unsigned i = 0; i < 2; i++) {
		if (pair.out[i])
			fclose(pair.out[i]);
		free(pair.lines[i]);
	}
	if (pair.other != kernel)
		free(pair.other);
	free(kernel);
	return failed != 0;
}
