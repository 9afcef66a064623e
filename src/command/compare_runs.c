/* Runs two commands in turns and counts each run, for `tally compare`.
 *
 * Turns cancel out what changes slowly: the CPU's temperature, caches, other programs.  The order
 * within a turn is random, so that a rhythm of the machine hits both sides.  (Georges, Buytaert,
 * Eeckhout: Statistically Rigorous Java Performance Evaluation, OOPSLA 2007.)  Each run is a `stat`
 * of its own.  Its counts are kept as the document that `stat -j` writes: so measured and saved
 * results are compared by the same code. */
#include "command/compare_runs.h"

#include "base/environment.h"
#include "base/terminal.h"
#include "base/text.h"
#include "command/simulated_options.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Does the file begin as JSON does?  The kernel can't execute such a file, but file systems such as
 * vfat mark every file as executable. */
static bool begins_as_json(const char *path)
{
	char first = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	bool is_json = read(fd, &first, 1) == 1 && first == '{';
	close(fd);
	return is_json;
}

int compare_is_command(const char *argument, struct tally_error *err)
{
	struct stat file;
	if (!strcmp(argument, "-"))
		return 0;
	bool is_word = !argument[strcspn(argument, " \t\n")];
	bool exists = !stat(argument, &file);
	if (exists && S_ISDIR(file.st_mode))
		return tally_error_set(err, -EINVAL, "%s is a directory", argument);
	if (exists && (access(argument, X_OK) < 0 || begins_as_json(argument)))
		return 0;
	if (!argument[strspn(argument, " \t\n")])
		return tally_error_set(err, -EINVAL, "a command is empty");
	if (exists || !is_word ||
	    tally_program_is_there(tally_environment_of_caller("PATH"), argument) ||
	    argument[strcspn(argument, "|&;<>()$`")])
		return 1;
	tally_error_set(err, -ENOENT, "'%s' is neither a file nor a command", argument);
	tally_error_hint(err, "give files that stat -j -o FILE wrote, or commands in quotes: "
			      "tally compare './old -x' './new -x'");
	return -ENOENT;
}

int compare_split(struct tally_arena *arena, const char *text, char ***words,
		  struct tally_error *err)
{
	static const char of_the_shell[] = "|&;<>()$`\\\"'*?[]#~!{}\n";
	size_t length = strlen(text), count = 0;
	char **list = tally_arena_array(arena, length / 2 + 4, sizeof(*list));
	char *copy = tally_arena_string(arena, text);
	if (!list || !copy)
		return tally_error_set(err, -ENOMEM, "out of memory");
	*words = list;
	size_t first = strspn(text, " \t");
	/* "NAME=value command" is the shell's, too */
	bool has_assignment = memchr(text + first, '=', strcspn(text + first, " \t")) != NULL;
	if (text[strcspn(text, of_the_shell)] || has_assignment) {
		list[0] = "/bin/sh";
		list[1] = "-c";
		list[2] = copy;
		return 0;
	}
	char *rest = NULL;
	for (char *word = strtok_r(copy, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest))
		list[count++] = word;
	if (!count)
		return tally_error_set(err, -EINVAL, "a command is empty");
	return 0;
}

/* --- hiding the commands' input and output ---------------------------------- */

/* tally's own descriptors, while 0 to 2 are /dev/null for the command. */
struct own_descriptors {
	int fds[3];
};

static int hide(struct own_descriptors *own, bool shows_output)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), last = shows_output ? 0 : 2;
	for (int i = 0; i < 3; i++)
		own->fds[i] = -1;
	if (null < 0)
		return -errno;
	fflush(NULL);
	for (int i = 0; i <= last; i++) {
		own->fds[i] = fcntl(i, F_DUPFD_CLOEXEC, 3);
		if (own->fds[i] >= 0)
			dup2(null, i);
	}
	close(null);
	return 0;
}

static void unhide(struct own_descriptors *own)
{
	fflush(NULL);
	for (int i = 0; i < 3; i++)
		if (own->fds[i] >= 0) {
			dup2(own->fds[i], i);
			close(own->fds[i]);
			own->fds[i] = -1;
		}
}

/* --- one run --------------------------------------------------------------- */

struct one_run {
	struct compare_runs *runs;
	struct tally_buffer *out;
	bool was_reported, was_interrupted;
	int exit_status, end_signal;
};

static void take_report(void *context, const struct tally_stat_report *report)
{
	struct one_run *run = context;
	run->was_reported = true;
	run->was_interrupted = report->was_interrupted;
	run->exit_status = report->exit_status;
	run->end_signal = report->end_signal;
	run->runs->stat.view.out = run->out;
	tally_stat_view_json.show(&run->runs->stat.view, report);
}

static int prepare(struct compare_runs *runs, struct tally_error *err)
{
	if (!runs->prepare)
		return 0;
	int status = -1;
	pid_t child = fork();
	if (!child) {
		tally_environment_give_back();
		execl("/bin/sh", "sh", "-c", runs->prepare, (char *)NULL);
		_exit(TALLY_EXIT_NOT_FOUND);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child < 0)
		return tally_error_set(err, -errno, "--prepare can't be run: %s",
				       tally_errno_text(errno));
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT)
		return -EINTR;
	if (!status)
		return 0;
	tally_error_set(err, -EINVAL, "--prepare '%s' failed (status %d)", runs->prepare,
			WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	tally_error_hint(err, "--show-output shows what it says");
	return -EINVAL;
}

static int check_end(const struct compare_runs *runs, const struct compare_side *side,
		     const struct one_run *run, struct tally_error *err)
{
	if (runs->ignores_failure || run->was_interrupted)
		return 0;
	if (run->end_signal)
		tally_error_set(err, -EINVAL, "'%s' was ended by signal %d (%s)", side->text,
				run->end_signal, strsignal(run->end_signal));
	else if (run->exit_status > 0)
		tally_error_set(err, -EINVAL, "'%s' failed with exit status %d", side->text,
				run->exit_status);
	else
		return 0;
	tally_error_hint(err, "--show-output shows what it says; --ignore-failure compares all "
			      "the same");
	return -EINVAL;
}

/* Runs one side's command once and appends its counts to `out`.  Returns 0; -EINTR after Ctrl-C; or
 * -errno. */
static int run_once(struct compare_runs *runs, struct compare_side *side, struct tally_buffer *out,
		    struct tally_error *err)
{
	struct one_run run = { .runs = runs, .out = out };
	struct tally_target target = runs->stat.target;
	struct own_descriptors own;
	int status = 0;
	struct tally_stat_options options = runs->stat.options;
	target.command = side->words;
	options.target = &target;
	options.counting.target = &target;
	options.runs = 1;
	options.on_report = take_report;
	options.context = &run;
	int result = hide(&own, runs->shows_output);
	if (result < 0)
		return tally_error_set(err, result, "/dev/null can't be opened: %s",
				       tally_errno_text(result));
	result = prepare(runs, err);
	if (!result)
		result = tally_stat_run(&options, &status, err);
	unhide(&own);
	if (result < 0)
		return result;
	if (run.was_interrupted)
		return -EINTR;
	if (!run.was_reported)
		return tally_error_set(err, -ENOENT, "'%s' can't be executed", side->text);
	return check_end(runs, side, &run, err);
}

/* --- all runs --------------------------------------------------------------- */

/* Signals during a run end that run: tally_stat_run() takes them.  The handler notes those between runs. */
static volatile sig_atomic_t was_signalled;

static uint64_t next_random(uint64_t *state) /* splitmix64 */
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void show_progress(unsigned long turn, unsigned long turns, double start_s)
{
	if (!isatty(STDERR_FILENO))
		return;
	double left_s = 0;
	if (turn)
		left_s = (now_s() - start_s) / (double)turn * (double)(turns - turn);
	fprintf(stderr, "\rturn %lu of %lu", turn + 1, turns);
	if (turn)
		fprintf(stderr, ", %.0f s left", left_s);
	fputs("\033[K", stderr);
	fflush(stderr);
}

static void end_progress(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

/* Runs each side once.  If that succeeds, and `keeps`, adds the counts to the sides'. */
static int take_turn(struct compare_runs *runs, struct compare_side sides[2], unsigned first,
		     bool keeps, struct tally_error *err)
{
	struct tally_buffer texts[2] = { { 0 }, { 0 } };
	int result = 0;
	for (unsigned i = 0; i < 2 && !result; i++) {
		unsigned side = first ^ i;
		if (was_signalled)
			result = -EINTR;
		else if (sides[side].text)
			result = run_once(runs, &sides[side], &texts[side], err);
	}
	for (unsigned i = 0; i < 2; i++) {
		if (!result && keeps)
			tally_buffer_append(&sides[i].documents, tally_buffer_string(&texts[i]),
					    texts[i].length);
		if (texts[i].failed || sides[i].documents.failed)
			result = tally_error_set(err, -ENOMEM, "out of memory");
		tally_buffer_release(&texts[i]);
	}
	return result;
}

static int open_events(struct compare_runs *runs, struct tally_error *err)
{
	struct stat_command *stat = &runs->stat;
	const char *message = simulated_conflict(&stat->simulated, stat->provider_ops);
	if (message)
		return tally_error_set(err, -EINVAL, "%s", message);
	int result = tally_provider_make(stat->provider_ops, stat->provider_name, &stat->simulated,
					 &stat->provider, err);
	if (result < 0)
		return result;
	result = tally_target_resolve(&stat->target, err);
	if (result < 0)
		return result;
	result = stat_parse_events(stat, err);
	if (result < 0)
		return result;
	result = stat_find_event_cpus(stat, err);
	if (result < 0)
		return result;
	stat->options.counting.provider = stat->provider;
	stat->options.counting.share_min = stat->min_running / 100;
	stat->options.counting.events = stat->events.items;
	stat->options.counting.event_count = stat->events.count;
	return 0;
}

static void note_signal(int number)
{
	(void)number;
	was_signalled = 1;
}

/* To the end of the program: timeout(1) sends its signal twice, and the second must not prevent the
 * comparison so far from being shown. */
static void watch_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction note = { .sa_handler = note_signal, .sa_flags = SA_RESTART };
	struct sigaction before;
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (!sigaction(numbers[i], NULL, &before) && before.sa_handler != SIG_IGN)
			sigaction(numbers[i], &note, NULL);
}

int compare_run(struct compare_runs *runs, struct compare_side sides[2], struct tally_error *err)
{
	/* a target must have a command while its events are chosen */
	runs->stat.target.command = sides[sides[0].text ? 0 : 1].words;
	int result = open_events(runs, err);
	if (result < 0)
		return result;
	if (!runs->has_seed)
		runs->seed = (uint64_t)time(NULL) % 1000000;
	uint64_t random = runs->seed;
	unsigned long turns = runs->warmups + runs->runs;
	double start_s = now_s();
	watch_signals();
	for (unsigned long turn = 0; turn < turns && !result; turn++) {
		bool keeps = turn >= runs->warmups;
		show_progress(turn, turns, start_s);
		result = take_turn(runs, sides, next_random(&random) >> 63, keeps, err);
		runs->done += keeps && !result;
		if (!result && was_signalled)
			result = -EINTR;
	}
	end_progress();
	if (result != -EINTR)
		return result;
	runs->was_interrupted = true;
	if (runs->done)
		return 0;
	return tally_error_set(err, -EINTR, "interrupted before both commands had run");
}

void compare_runs_release(struct compare_runs *runs)
{
	struct stat_command *stat = &runs->stat;
	if (stat->provider)
		stat->provider->ops->release(stat->provider);
	if (stat->has_catalogue)
		tally_catalogue_release(&stat->catalogue);
	tally_event_list_release(&stat->events);
	tally_target_release(&stat->target);
	tally_arena_release(&stat->arena);
}
