/* Finds code whose functions have no names although there is a way to get them: code that a JIT
 * made, and code that an interpreter runs.
 *
 * A runtime only tells the names of its code with an option, mostly one for its start.  An
 * interpreter's functions don't appear in the stack at all; time spent in the interpreter's loop
 * shows that they are missing.
 */
#include "report/report.h"

#include "machine/machine.h"
#include "naming/naming.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WORTH_A_LINE = 20 }; /* one in so many samples */

/* Runtimes, known by their command, or by an object that the process maps. */
static const struct runtime {
	const char *comm;   /* NULL: any */
	const char *object; /* how its file's name begins; NULL: it is known by its command only */
	const char *start;  /* NULL: there is no way to get names, and `name` is the runtime's */
	const char *needs;  /* the version it needs; "": all current versions do */
	const char *name;
	/* start of a command that makes a running process name its code, up to the pid; NULL: there
	 * is none */
	const char *live;
	const char *behind; /* the rest of that command, after the pid */
	/* another option that it needs if stacks follow frame pointers; NULL: none */
	const char *frame_pointers;
} RUNTIMES[] = {
	{ .comm = "node",
	  .start = "node --perf-basic-prof --interpreted-frames-native-stack",
	  .needs = "" },
	{ .comm = "deno",
	  .start = "deno run --v8-flags=--perf-basic-prof,--interpreted-frames-native-stack",
	  .needs = "" },
	{ .comm = "java",
	  .object = "libjvm.so",
	  .start = "java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit",
	  .needs = " (JDK 17)",
	  .live = "jcmd ",
	  .behind = " Compiler.perfmap",
	  .frame_pointers = "-XX:+PreserveFramePointer" },
	{ .comm = "dotnet",
	  .object = "libcoreclr.so",
	  .start = "DOTNET_PerfMapEnabled=1",
	  .needs = "" },
	{ .comm = "ruby",
	  .object = "libruby",
	  .start = "ruby --yjit-perf",
	  .needs = " (Ruby 3.3)" },
	{ .comm = "beam.smp", .object = "beam.smp", .start = "erl +JPperf true", .needs = "" },
	{ .object = "opcache.so", .start = "php -d opcache.jit_debug=16", .needs = "" },
	{ .object = "mono", .start = "mono --jitmap", .needs = "" },
	{ .object = "chrom",
	  .start = "chromium --js-flags=--perf-basic-prof --no-sandbox",
	  .needs = "" },
	{ .object = "julia", .start = "ENABLE_JITPROFILING=1 julia", .needs = "" },
	{ .object = "llvmjit.so", .start = "postgres -c jit_profiling_support=on", .needs = "" },
	{ .object = "qemu-system", .start = "qemu-system-ARCH -perfmap", .needs = " (QEMU 8.0)" },
	{ .object = "qemu-", .start = "qemu-ARCH -perfmap", .needs = " (QEMU 8.0)" },
	{ .object = "luajit", .name = "LuaJIT" },
	{ .object = "libluajit", .name = "LuaJIT" },
	{ .object = "libguile", .name = "Guile" },
	{ .object = "racket", .name = "Racket" },
	{ .object = "chez", .name = "Chez Scheme" },
	{ .object = "poly", .name = "Poly/ML" },
	{ .object = "libpolyml", .name = "Poly/ML" },
	{ .object = "pypy", .name = "PyPy" },
	{ .object = "libpypy", .name = "PyPy" },
	{ .object = "libpcre2-8.so", .name = "PCRE2" },
	{ .object = "libpcre.so", .name = "PCRE" },
};

/* Interpreters, known by the function that is their main loop. */
static const struct interpreter {
	const char *loop, *language, *start, *needs;
	const char *named;   /* prefix of the names that the interpreter gives */
	const char *library; /* its object's name up to the version's minor number; NULL: any */
	unsigned from_minor; /* the minor number of version 3 that first has the option */
} INTERPRETERS[] = {
	{ "_PyEval_EvalFrameDefault", "Python", "python3 -X perf", " (Python 3.12)",
	  "py::", "python3.", 12 },
	{ "vm_exec_core", "Ruby", "ruby --yjit-perf", " (Ruby 3.3)", NULL, NULL, 0 },
};

enum { INTERPRETER_COUNT = sizeof(INTERPRETERS) / sizeof(*INTERPRETERS) };

/* ---- functions ------------------------------------------------------------------------------ */

static bool is_unnamed_function(const struct tally_names *names, uint32_t index)
{
	const struct tally_function *function = &names->functions.items[index];
	return function->kind == TALLY_FRAME_JIT && function->name == TALLY_STRING_NONE;
}

static bool is_unnamed(const struct tally_profile *profile, uint32_t place)
{
	return is_unnamed_function(&profile->recording->names,
				   tally_profile_symbol(profile, place));
}

/* Returns an array by function: 1 + index of the interpreter whose loop it is; 0: no loop, or that
 * of an interpreter that names its functions.  NULL: out of memory. */
static uint8_t *find_loops(const struct tally_names *names)
{
	uint8_t *loops = calloc(names->functions.count + 1, sizeof(*loops));
	bool is_named[INTERPRETER_COUNT] = { false };
	for (size_t i = 0; loops && i < names->functions.count; i++) {
		const struct tally_function *function = &names->functions.items[i];
		const char *name = tally_strings_text(&names->strings, function->bare);
		for (size_t which = 0; which < INTERPRETER_COUNT; which++) {
			const struct interpreter *one = &INTERPRETERS[which];
			if (!strcmp(name, one->loop))
				loops[i] = (uint8_t)(which + 1);
			is_named[which] |= one->named && function->kind == TALLY_FRAME_JIT &&
					   !strncmp(name, one->named, strlen(one->named));
		}
	}
	for (size_t i = 0; loops && i < names->functions.count; i++)
		loops[i] = loops[i] && is_named[loops[i] - 1] ? 0 : loops[i];
	return loops;
}

/* ---- samples -------------------------------------------------------------------------------- */

struct sums {
	/* comm → samples in unnamed code or in what it called */
	struct tally_map by_comm;
	uint64_t total, most;
	/* samples in unnamed code or in its callees; in its callees only */
	uint64_t unnamed, below;
	/* of the task with most of these samples; pid 0: not known */
	uint32_t comm, pid;
	uint64_t interpreted[INTERPRETER_COUNT];
	uint32_t loop[INTERPRETER_COUNT]; /* one function that is the loop */
};

static int count_unnamed(struct sums *sums, uint32_t comm, uint32_t pid, bool is_leaf,
			 uint64_t added)
{
	uint64_t *samples = tally_map_put(&sums->by_comm, comm, NULL);
	if (!samples)
		return -ENOMEM;
	*samples += added;
	sums->unnamed += added;
	sums->below += is_leaf ? 0 : added;
	if (*samples > sums->most) {
		sums->most = *samples;
		sums->comm = comm;
		sums->pid = pid;
	}
	return 0;
}

static void count_loop(struct sums *sums, const uint8_t *loops, uint32_t function, uint64_t added)
{
	unsigned which = loops[function] - 1u;
	sums->interpreted[which] += added;
	sums->loop[which] = function;
}

/* Finds the process that made the code: the owner of memory without a file.  This is more precise
 * than the row's task, since a row may hold several threads.  Returns the comm and sets `pid`, 0 if
 * not known. */
static uint32_t maker_of(const struct tally_profile *profile, uint32_t place, uint32_t comm,
			 uint32_t *pid)
{
	const struct tally_names *names = &profile->recording->names;
	const struct tally_tasks *tasks = names->tasks;
	uint32_t file = tally_names_file(names, &profile->places.places.items[place]);
	*pid = file < tasks->files.count ? tasks->files.items[file].pid : 0;
	const uint64_t *slot = NULL;
	if (*pid)
		slot = tally_map_get(&tasks->thread_index, (uint64_t)*pid << 32 | *pid);
	uint32_t main = TALLY_STRING_NONE;
	if (slot)
		main = tasks->threads.items[*slot].comm;
	if (main == TALLY_STRING_NONE)
		return comm;
	return main;
}

static int count_row(const struct tally_profile *profile, const uint8_t *loops, size_t index,
		     struct sums *sums)
{
	const struct tally_row *row = &profile->rows.rows.items[index];
	const uint8_t *end, *at = tally_row_stack(&profile->rows, index, &end);
	bool is_leaf = true;
	sums->total += row->samples;
	for (; at && at < end; is_leaf = false) {
		uint32_t place = tally_stack_next_place(&at), pid;
		uint32_t function = tally_profile_symbol(profile, place);
		if (loops[function]) {
			count_loop(sums, loops, function, row->samples);
			return 0;
		}
		if (!is_unnamed(profile, place))
			continue;
		uint32_t comm = maker_of(profile, place, profile->classes.items[row->class].comm,
					 &pid);
		return count_unnamed(sums, comm, pid, is_leaf, row->samples);
	}
	return 0;
}

static int count_live(const struct tally_live_sums *live, const uint8_t *loops,
		      const struct tally_live_sum *sum, struct sums *sums)
{
	const double parts = 1024; /* parts of a sample, because samples fade */
	const uint32_t *frames;
	if (sum->count)
		frames = live->frames.items + sum->first;
	else
		frames = &sum->function;
	uint64_t samples = (uint64_t)(sum->samples * parts);
	sums->total += samples;
	for (uint32_t i = 0; i < (sum->count ? sum->count : 1); i++) {
		if (loops[frames[i]]) {
			count_loop(sums, loops, frames[i], samples);
			return 0;
		}
		if (is_unnamed_function(live->names, frames[i]))
			return count_unnamed(sums, sum->comm, sum->pid, !i, samples);
	}
	return 0;
}

/* ---- what to do ----------------------------------------------------------------------------- */

static bool is_worth_a_line(const struct sums *sums, uint64_t samples)
{
	return samples && samples >= sums->total / WORTH_A_LINE;
}

/* True if the recorded process still runs here, so that a command can make it write its names. */
static bool runs_on(const struct tally_names *names, uint32_t pid, const char *comm)
{
	char now[32];
	return pid && pid <= INT32_MAX && !tally_names_are_foreign(names) &&
	       tally_proc_comm((pid_t)pid, now, sizeof(now)) >= 0 && !strcmp(now, comm);
}

/* True if the process maps code of a file whose name begins like this. */
static bool maps(const struct tally_tasks *tasks, uint32_t pid, const char *object)
{
	const uint64_t *slot = tally_map_get(&tasks->process_index, pid);
	const struct tally_process *process = NULL;
	if (slot)
		process = &tasks->processes.items[*slot];
	const struct tally_mapping *mapping = NULL;
	while (process && (mapping = tally_mappings_behind(&process->mappings,
							   mapping ? mapping->end : 0))) {
		const char *path = tally_tasks_path(tasks, mapping->file);
		const char *name = strrchr(path, '/');
		if (name && path[0] == '/' && !strncmp(name + 1, object, strlen(object)))
			return true;
	}
	return false;
}

static const struct runtime *runtime_of(const struct tally_names *names, const char *comm,
					uint32_t pid)
{
	for (size_t i = 0; i < sizeof(RUNTIMES) / sizeof(*RUNTIMES); i++)
		if ((RUNTIMES[i].comm && !strcmp(comm, RUNTIMES[i].comm)) ||
		    (RUNTIMES[i].object && pid && maps(names->tasks, pid, RUNTIMES[i].object)))
			return &RUNTIMES[i];
	return NULL;
}

static void put_way(const struct tally_names *names, const struct runtime *runtime,
		    const char *comm, uint32_t pid, bool by_frame_pointers,
		    struct tally_buffer *out)
{
	if (!runtime) {
		tally_buffer_text(out, "tally does not know what made it");
		return;
	}
	if (!runtime->start) {
		tally_buffer_printf(out, "%s has no option that names it", runtime->name);
		return;
	}
	bool is_live = runtime->live && runs_on(names, pid, comm);
	if (is_live)
		tally_buffer_printf(out, "%s%u%s names it now; next time ", runtime->live, pid,
				    runtime->behind);
	bool needs_more = by_frame_pointers && runtime->frame_pointers;
	tally_buffer_printf(out, "start it with %s%s%s%s", runtime->start, needs_more ? " " : "",
			    needs_more ? runtime->frame_pointers : "", runtime->needs);
	if (runtime->live && !is_live)
		tally_buffer_printf(out, ", or name it while it runs: %sPID%s", runtime->live,
				    runtime->behind);
}

/* Returns 11 for "…/libpython3.11.so.1.0"; 0: the name has no version. */
static unsigned minor_version(const char *object, const char *library)
{
	const char *at = strstr(object, library);
	if (at)
		return (unsigned)strtoul(at + strlen(library), NULL, 10);
	return 0;
}

static void put_interpreter(const struct tally_names *names, const struct interpreter *one,
			    uint32_t loop, struct tally_buffer *out)
{
	unsigned minor = 0;
	if (one->library)
		minor = minor_version(tally_names_short_object(names, loop), one->library);
	if (minor && minor < one->from_minor)
		tally_buffer_printf(out, "%s 3.%u can't name them; from 3.%u on, start it with %s",
				    one->language, minor, one->from_minor, one->start);
	else
		tally_buffer_printf(out, "start it with %s%s", one->start, minor ? "" : one->needs);
}

static double percent(const struct sums *sums, uint64_t samples)
{
	return 100.0 * (double)samples / (double)sums->total;
}

struct wording {
	const struct tally_names *names;
	enum tally_hint_form form;
	bool by_frame_pointers;
};

static void put_brief_way(const struct tally_names *names, const struct runtime *runtime,
			  const char *comm, uint32_t pid, struct tally_buffer *out)
{
	if (!runtime || !runtime->start)
		return;
	if (runtime->live && runs_on(names, pid, comm))
		tally_buffer_printf(out, "%s's code has no names: %s%u%s\n", comm, runtime->live,
				    pid, runtime->behind);
	else
		tally_buffer_printf(out, "code without names: %s\n", runtime->start);
}

static void put_unnamed(const struct wording *wording, const struct sums *sums,
			struct tally_buffer *out)
{
	const char *comm = tally_strings_text(&wording->names->tasks->strings, sums->comm);
	const struct runtime *runtime = runtime_of(wording->names, comm, sums->pid);
	if (wording->form == TALLY_HINT_BRIEF) {
		put_brief_way(wording->names, runtime, comm, sums->pid, out);
		return;
	}
	if (runtime && runtime->start)
		tally_buffer_text(out, "hint: ");
	if (wording->form == TALLY_HINT_WITH_SHARES)
		tally_buffer_printf(
			out,
			"%.0f%% of the samples are in JIT code of %s without names%s: ",
			percent(sums, sums->unnamed), comm,
			sums->below ? ", or in functions that it called" : "");
	else
		tally_buffer_printf(out, "JIT code of %s has no names: ", comm);
	put_way(wording->names, runtime, comm, sums->pid, wording->by_frame_pointers, out);
	tally_buffer_char(out, '\n');
}

static void put_interpreted(const struct wording *wording, const struct sums *sums, size_t which,
			    struct tally_buffer *out)
{
	const struct interpreter *interpreter = &INTERPRETERS[which];
	if (wording->form != TALLY_HINT_BRIEF)
		tally_buffer_text(out, "hint: ");
	if (wording->form == TALLY_HINT_WITH_SHARES)
		tally_buffer_printf(
			out,
			"%.0f%% of the samples are in %s code, whose functions are not visible: ",
			percent(sums, sums->interpreted[which]), interpreter->language);
	else
		tally_buffer_printf(out, "%s functions are not visible: ", interpreter->language);
	put_interpreter(wording->names, interpreter, sums->loop[which], out);
	tally_buffer_char(out, '\n');
}

/* Writes one line, about the largest gap.  Several lines would not be read. */
static void put(const struct wording *wording, const struct sums *sums, struct tally_buffer *out)
{
	size_t which = 0;
	for (size_t i = 1; i < INTERPRETER_COUNT; i++)
		which = sums->interpreted[i] > sums->interpreted[which] ? i : which;
	if (is_worth_a_line(sums, sums->unnamed) && sums->unnamed >= sums->interpreted[which])
		put_unnamed(wording, sums, out);
	else if (is_worth_a_line(sums, sums->interpreted[which]))
		put_interpreted(wording, sums, which, out);
}

int tally_profile_jit_hint(const struct tally_profile *profile, enum tally_hint_form form,
			   struct tally_buffer *out)
{
	const struct wording wording = {
		.names = &profile->recording->names,
		.form = form,
		.by_frame_pointers = tally_profile_follows_frame_pointers(profile),
	};
	struct sums sums = { 0 };
	uint8_t *loops = find_loops(&profile->recording->names);
	int result = 0;
	if (!loops)
		result = -ENOMEM;
	for (size_t i = 0; !result && i < profile->rows.rows.count; i++)
		result = count_row(profile, loops, i, &sums);
	if (!result)
		put(&wording, &sums, out);
	tally_map_release(&sums.by_comm);
	free(loops);
	return result;
}

int tally_live_jit_hint(const struct tally_live_sums *live, struct tally_buffer *out)
{
	const struct wording wording = { .names = live->names, .form = TALLY_HINT_BRIEF };
	struct sums sums = { 0 };
	uint8_t *loops = find_loops(live->names);
	int result = 0;
	if (!loops)
		result = -ENOMEM;
	for (size_t i = 0; !result && i < live->sums.count; i++)
		result = count_live(live, loops, &live->sums.items[i], &sums);
	if (!result)
		put(&wording, &sums, out);
	tally_map_release(&sums.by_comm);
	free(loops);
	return result;
}
