/* Names the places of a recording that was just finished.
 *
 * The recording is read again as a report reads it; if the recorder has gathered an excerpt
 * (recorder/recorder_excerpt.h), only that is read. Each distinct place is named once, from the
 * user's cache if possible. Reading a large program's debug information for the first time takes a
 * while all the same. So a thread does the work, and is abandoned when a signal comes: the
 * recording is complete without names, and the thread hands back nothing but the section's bytes.
 */
#include "base/terminal.h"
#include "base/threads.h"
#include "command/record_request.h"
#include "task/jit.h"
#include "view/view.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { QUIET_MS = 500 };

struct naming {
	int fd, done_fd;
	bool has_thread;
	const char *name; /* of the file open at `fd`, if no other has taken it meanwhile */
	struct tally_buffer section, excerpt, hint;
	struct tally_perf_maps perf_maps;
	struct tally_jit_files jit_files;
	struct tally_objects files;
	struct tally_error err;
	int result;
};

static int read_and_pack(struct naming *naming)
{
	struct tally_pack_options options = { .perf_maps = &naming->perf_maps,
					      .jit_files = &naming->jit_files,
					      .files = &naming->files,
					      .hint = &naming->hint };
	if (naming->excerpt.length)
		options.excerpt = &naming->excerpt;
	return tally_pack_open_file(naming->fd, naming->name, &options, &naming->section,
				    &naming->err);
}

static void *work(void *context)
{
	struct naming *naming = context;
	naming->result = read_and_pack(naming);
	eventfd_write(naming->done_fd, 1);
	return NULL;
}

static void naming_free(struct naming *naming)
{
	tally_buffer_release(&naming->section);
	tally_buffer_release(&naming->excerpt);
	tally_buffer_release(&naming->hint);
	tally_perf_maps_release(&naming->perf_maps);
	tally_jit_files_release(&naming->jit_files);
	tally_objects_release(&naming->files);
	if (naming->fd >= 0)
		close(naming->fd);
	if (naming->done_fd >= 0)
		close(naming->done_fd);
	free(naming);
}

static int open_descriptors(struct naming *naming, int fd)
{
	naming->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (naming->fd < 0)
		return -errno;
	naming->done_fd = eventfd(0, EFD_CLOEXEC);
	if (naming->done_fd < 0)
		return -errno;
	return 0;
}

static int naming_new(struct tally_recorder *recorder, int fd, const char *name, pthread_t *thread,
		      struct naming **out)
{
	struct naming *naming = malloc(sizeof(*naming));
	if (!naming)
		return -ENOMEM;
	*naming = (struct naming){ .fd = -1, .done_fd = -1, .name = name,
				   .err = TALLY_ERROR_NONE };
	int result = open_descriptors(naming, fd);
	tally_recorder_take_perf_maps(recorder, &naming->perf_maps);
	tally_recorder_take_jit_files(recorder, &naming->jit_files);
	tally_recorder_take_excerpt(recorder, &naming->excerpt);
	if (!result)
		result = tally_recorder_take_files(recorder, &naming->files);
	if (result < 0) {
		naming_free(naming);
		return result;
	}
	/* Without a thread, as under a limit of memory or tasks, signals wait. */
	naming->has_thread = !tally_thread_start(thread, work, naming);
	if (!naming->has_thread)
		work(naming);
	*out = naming;
	return 0;
}

/* Returns 1, or -EINTR. */
static int await(struct tally_recorder *recorder, struct tally_signals *signals,
		 const struct naming *naming, bool was_signalled, bool shows)
{
	struct timespec start, now;
	bool shown = false;
	int ready;
	clock_gettime(CLOCK_MONOTONIC, &start);
	while ((ready = tally_recorder_watch(recorder, signals, naming->done_fd, QUIET_MS)) <= 0) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		double seconds = (double)(now.tv_sec - start.tv_sec) +
				 (double)(now.tv_nsec - start.tv_nsec) / 1e9;
		if (ready < 0 && (was_signalled || seconds * 1000 >= QUIET_MS))
			break;
		was_signalled |= ready < 0;
		shown |= shows && seconds * 1000 >= QUIET_MS;
		if (shown)
			fprintf(stderr,
				"\r\x1b[Knaming samples: %.0f s (Ctrl-C leaves the names out)",
				seconds);
	}
	if (shown)
		fputs("\r\x1b[K", stderr);
	return ready;
}

static double cpu_seconds(void)
{
	struct timespec used;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* Names the files before the last one, if the output was switched. Each is replaced when its new
 * version is complete. */
static int name_files(const struct record_request *request, struct tally_recorder *recorder,
		      struct tally_signals *signals, const struct naming *naming,
		      struct tally_error *err)
{
	const struct tally_pack_options options = { .perf_maps = &naming->perf_maps,
						    .jit_files = &naming->jit_files,
						    .files = &naming->files };
	for (size_t i = 0; i < request->files.count; i++) {
		char path[PATH_MAX + NAME_MAX];
		record_output_file(request, i, path);
		struct tally_buffer section = { 0 };
		size_t places, known;
		if (i && tally_recorder_watch(recorder, signals, -1, 0) < 0)
			return -EINTR;
		int result = tally_pack_section(path, &options, &section, &places, &known, err);
		if (!result && section.length)
			result = tally_pack_write(path, path, &section, err);
		tally_buffer_release(&section);
		if (result < 0)
			return result;
	}
	return 0;
}

static void take_hint(const struct naming *naming, char *out, size_t size)
{
	const char *hint = "";
	char line[512];
	if (naming->hint.length && !naming->hint.failed)
		hint = naming->hint.bytes;
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(hint, "\n"), hint);
	tally_terminal_clean_name(line, out, size);
}

/* Returns 1, 0 if there is nothing to name, -EINTR, or another -errno. `hint` receives the
 * line that `tally record` prints last. */
static int add_names(const struct record_request *request, struct tally_recorder *recorder,
		     struct tally_signals *signals, int fd, bool was_signalled, bool shows,
		     struct tally_recorder_status *status, char *hint, size_t hint_size,
		     struct tally_error *err)
{
	struct stat file;
	pthread_t thread;
	if (!status->samples || fstat(fd, &file) < 0 || !S_ISREG(file.st_mode))
		return 0;
	struct naming *naming;
	int result = naming_new(recorder, fd, request->output, &thread, &naming);
	if (result < 0)
		return tally_error_set(err, result, "%s%s", tally_errno_text(result),
				       result == -EMFILE ? " (ulimit -n)" : "");
	if (await(recorder, signals, naming, was_signalled, shows) < 0 && naming->has_thread) {
		pthread_detach(thread); /* it has `naming` now */
		return -EINTR;
	}
	if (naming->has_thread)
		pthread_join(thread, NULL);
	result = naming->result;
	if (result < 0)
		*err = naming->err;
	else if (naming->section.length)
		result = tally_recorder_add_own(recorder, naming->section.bytes,
						naming->section.length, status, err);
	int named = naming->section.length > 0;
	if (!(result < 0))
		result = name_files(request, recorder, signals, naming, err);
	take_hint(naming, hint, hint_size);
	naming_free(naming);
	if (result < 0)
		return result;
	return named;
}

int record_add_names(const struct record_request *request, struct tally_recorder *recorder,
		     struct tally_signals *signals, int fd, bool was_signalled,
		     struct tally_recorder_status *status, char *hint, size_t hint_size,
		     double *cpu_s)
{
	struct tally_error err = TALLY_ERROR_NONE;
	double before = cpu_seconds();
	*hint = '\0';
	*cpu_s = 0;
	if (request->pipe || request->no_pack)
		return 0;
	const char *name = record_output_path(request);
	bool shows = !request->quiet && tally_terminal_knows_escapes(STDERR_FILENO);
	int result = add_names(request, recorder, signals, fd, was_signalled, shows, status, hint,
			       hint_size, &err);
	if (result == -EINTR)
		tally_say("tally: the names were left out; 'tally pack %s' adds them", name);
	else if (result < 0) {
		tally_say("tally record: warning: %s has no names: %s", name, err.message);
		tally_say("hint: 'tally pack %s -o FILE' writes a copy with names", name);
	}
	if (result > 0)
		*cpu_s = cpu_seconds() - before;
	if (result == -EINTR || result > 0)
		return 0;
	return result;
}
