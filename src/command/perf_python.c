/* Python scripts that were written for perf: `perf script -s FILE`, and those that perf brings with it,
 * by name.  The scripts run in python3, as a process of its own, which reads the samples from a pipe:
 * output/script_python.py is perf's part in it. */
#include "base/environment.h"
#include "base/text.h"
#include "command/perf_python.h"
#include "output/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 1000, PATH_MAX_BYTES = 4096 };

/* Where distributions put perf's scripts, without the last folders. */
static const char *const folders[] = { "/usr/lib/perf-core", "/usr/libexec/perf-core" };

static const char *scripts_folder(void)
{
	const char *chosen = tally_environment("PERF_EXEC_PATH");
	struct stat about;
	if (chosen && *chosen)
		return chosen;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (!stat(folders[i], &about))
			return folders[i];
	return folders[0];
}

/* --- one script ------------------------------------------------------------- */

/* Finds the file that `perf script -s` names: "FILE", "py:FILE", or the name of one of perf's. */
static int find_script(const char *name, char *path, size_t size, struct tally_error *err)
{
	const char *colon = strchr(name, ':'), *file = name;
	size_t language = colon ? (size_t)(colon - name) : 0;
	if (colon && (!strncmp(name, "py", language) || !strncmp(name, "python", language)))
		file = colon + 1;
	const char *suffix = strrchr(file, '.');
	if (suffix && !strcmp(suffix, ".pl")) {
		tally_error_set(err, -ENOTSUP, "%s: tally runs perf's Python scripts, not those in Perl",
				file);
		tally_error_hint(err, "tally script -j is for programs in any language");
		return -ENOTSUP;
	}
	snprintf(path, size, "%s", file);
	if (access(path, R_OK) && !strchr(file, '/'))
		snprintf(path, size, "%s/scripts/python/%s%s", scripts_folder(), file,
			 suffix ? "" : ".py");
	if (!access(path, R_OK))
		return 0;
	tally_error_set(err, -ENOENT, "there is no script %s", file);
	tally_error_hint(err, "'perf script -l' lists those that came with perf");
	return -ENOENT;
}

static void become_python(int samples, const char *script, char **arguments)
{
	char number[16];
	const char *words[ARGUMENTS_MAX + 6] = { "python3", "-c", tally_script_python_program, number,
						 script };
	snprintf(number, sizeof(number), "%d", samples);
	for (size_t i = 0; arguments[i] && i < ARGUMENTS_MAX; i++)
		words[5 + i] = arguments[i];
	fcntl(samples, F_SETFD, 0);
	setenv("PERF_EXEC_PATH", scripts_folder(), 1);
	tally_environment_drop_rights();
	execvp("python3", (char *const *)words);
	fprintf(stderr, "tally perf script: python3 can't be started: %m\n"
			"hint: install python3; tally script -j is for other programs\n");
	_exit(127);
}

int perf_python_start(struct perf_python *python, const char *name, char **arguments,
		      struct tally_error *err)
{
	char path[PATH_MAX_BYTES];
	int ends[2], result = find_script(name, path, sizeof(path), err);
	if (result < 0)
		return result;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return tally_error_set(err, -errno, "no pipe for %s: %m", name);
	fflush(stdout);
	python->pid = fork();
	if (!python->pid) {
		close(ends[1]);
		become_python(ends[0], path, arguments);
	}
	close(ends[0]);
	if (python->pid > 0)
		python->samples = fdopen(ends[1], "w");
	if (python->pid < 0 || !python->samples) {
		close(ends[1]);
		return tally_error_set(err, -EAGAIN, "no process for %s", name);
	}
	signal(SIGPIPE, SIG_IGN); /* a script may end before the samples do */
	signal(SIGINT, SIG_IGN);  /* it decides what Ctrl-C means */
	return 0;
}

int perf_python_finish(struct perf_python *python)
{
	int status = 0;
	if (python->pid <= 0)
		return 0;
	fclose(python->samples);
	while (waitpid(python->pid, &status, 0) < 0 && errno == EINTR)
		;
	signal(SIGINT, SIG_DFL);
	python->pid = 0;
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	return WEXITSTATUS(status);
}

/* --- perf's own, by name ------------------------------------------------------ */

static bool part_of(const char *name, const char *part, char *path, size_t size)
{
	if (strchr(name, '/'))
		return false;
	snprintf(path, size, "%s/scripts/python/bin/%s-%s", scripts_folder(), name, part);
	return !access(path, R_OK);
}

bool perf_python_knows(const char *name)
{
	char path[PATH_MAX_BYTES];
	return part_of(name, "report", path, sizeof(path));
}

/* Prints the line behind "# KEY: " of a file. */
static void put_comment(const char *path, const char *key, const char *before)
{
	char line[512];
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "# ", 2) && !strncmp(line + 2, key, strlen(key)))
			printf("%s%s", before, line + 2 + strlen(key));
	}
	if (file)
		fclose(file);
}

static int is_report(const struct dirent *entry)
{
	const char *dash = strrchr(entry->d_name, '-');
	return dash && !strcmp(dash, "-report");
}

int perf_python_list(void)
{
	char folder[PATH_MAX_BYTES], path[2 * PATH_MAX_BYTES];
	struct dirent **entries;
	snprintf(folder, sizeof(folder), "%s/scripts/python/bin", scripts_folder());
	int count = scandir(folder, &entries, is_report, alphasort);
	printf("List of available trace scripts:\n");
	for (int i = 0; i < count; i++) {
		int length = (int)(strrchr(entries[i]->d_name, '-') - entries[i]->d_name);
		snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		printf("  %-36.*s", length, entries[i]->d_name);
		put_comment(path, "description: ", "");
		printf("\n");
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	return count > 0 ? 0 : 1;
}

/* Writes into `folder` a link of the name perf to tally, and puts the folder first into PATH. */
static bool make_perf(char *folder, size_t size)
{
	char self[PATH_MAX_BYTES], link[PATH_MAX_BYTES];
	const char *path = tally_environment("PATH");
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	snprintf(folder, size, "/tmp/tally-perf-XXXXXX");
	if (length <= 0 || !mkdtemp(folder))
		return false;
	self[length] = 0;
	snprintf(link, sizeof(link), "%s/perf", folder);
	char *paths = NULL;
	bool is_made = !symlink(self, link) &&
		       asprintf(&paths, "%s:%s", folder, tally_text_or(path, "/bin:/usr/bin")) > 0 &&
		       !setenv("PATH", paths, 1);
	free(paths);
	return is_made;
}

static void remove_perf(const char *folder)
{
	char link[PATH_MAX_BYTES];
	snprintf(link, sizeof(link), "%s/perf", folder);
	unlink(link);
	rmdir(folder);
}

/* Starts a part of a script, "NAME-record" or "NAME-report", with words before the arguments. */
static pid_t start_part(const char *path, const char *const *before, char **arguments, int in, int out)
{
	const char *words[ARGUMENTS_MAX + 8] = { "bash", path };
	size_t count = 2;
	for (; before && *before; before++)
		words[count++] = *before;
	for (size_t i = 0; arguments[i] && i < ARGUMENTS_MAX; i++)
		words[count++] = arguments[i];
	pid_t pid = fork();
	if (pid)
		return pid;
	if (in >= 0)
		dup2(in, STDIN_FILENO);
	if (out >= 0)
		dup2(out, STDOUT_FILENO);
	setenv("PERF_EXEC_PATH", scripts_folder(), 1);
	tally_environment_drop_rights();
	execvp("bash", (char *const *)words);
	_exit(127);
}

static int status_of(pid_t pid)
{
	int status = 0;
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid <= 0 || !WIFEXITED(status))
		return 1;
	return WEXITSTATUS(status);
}

int perf_python_run(const char *name, const char *part, char **arguments, struct tally_error *err)
{
	static const char *const to_pipe[] = { "-q", "-o", "-", NULL };
	static const char *const whole[] = { "-q", "-a", "-o", "-", NULL };
	static const char *const from_pipe[] = { "-i", "-", NULL };
	char folder[64], record[PATH_MAX_BYTES], report[PATH_MAX_BYTES];
	char *none[] = { NULL };
	int ends[2], status;
	bool has_record = part_of(name, "record", record, sizeof(record));
	if (!part_of(name, "report", report, sizeof(report)) || !has_record) {
		tally_error_set(err, -ENOENT, "there is no script '%s'", name);
		tally_error_hint(err, "'perf script -l' lists them");
		return -ENOENT;
	}
	if (!make_perf(folder, sizeof(folder)))
		return tally_error_set(err, -errno, "%s: a link to tally can't be made: %m", folder);
	fflush(stdout);
	if (!strcmp(part, "record")) {
		status = status_of(start_part(record, NULL, arguments, -1, -1));
	} else if (!strcmp(part, "report")) {
		status = status_of(start_part(report, NULL, arguments, -1, -1));
	} else if (pipe2(ends, O_CLOEXEC) < 0) {
		status = 1;
	} else {
		pid_t recorder = start_part(record, *arguments ? to_pipe : whole, arguments, -1, ends[1]);
		pid_t reporter = start_part(report, from_pipe, none, ends[0], -1);
		close(ends[0]);
		close(ends[1]);
		signal(SIGINT, SIG_IGN); /* ends the recording, then the script has its end */
		status_of(recorder);
		status = status_of(reporter);
	}
	remove_perf(folder);
	return status;
}
