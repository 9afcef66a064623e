/* The request of `tally record`; shared by its files, and by `tally top`, which samples the same
 * way. */
#ifndef TALLY_COMMAND_RECORD_REQUEST_H
#define TALLY_COMMAND_RECORD_REQUEST_H

#include "base/buffer.h"
#include "base/output_path.h"
#include "command/command.h"
#include "command/provider_choice.h"
#include "command/simulated_options.h"
#include "recorder/recorder.h"
#include "session/session.h"

#include <signal.h>

#define RECORD_DEFAULT_HZ 999
#define RECORD_PERF_HZ 4000 /* perf record's default */

struct record_expression {
	const char *text;
	const char *filter;  /* for its tracepoints, or NULL */
	/* -G's argument, for the events since the last -G; or NULL */
	const char *cgroups;
};

struct record_request {
	struct tally_recorder_options record;
	struct tally_target target;
	struct tally_catalogue catalogue;
	struct tally_arena arena;
	/* -e's arguments, parsed once the provider is known */
	struct record_expression expressions[64];
	size_t expression_count;
	struct tally_event_list events;
	const char *provider_name;
	struct tally_simulated_options simulated;
	struct provider_choice choice;
	const struct tally_provider_ops *provider_ops; /* of the chosen one */
	struct tally_provider *provider;
	bool wants_max_rate; /* -F max */
	const char *output;
	struct tally_output_path place; /* of `output`; all its files have names in that folder */
	char old_name[NAME_MAX + 8]; /* new name of the file that had the output's name; "": none */
	/* name of old_name's predecessor; deleted once recording began; "": none */
	char older_name[NAME_MAX + 8];
	bool pipe; /* the output is not seekable */
	const char *default_event_note; /* why the default is not cycles, or NULL */
	bool off_cpu; /* record waits as well */
	bool no_wakers; /* without wakers */
	bool lacks_wakers; /* wakers requested, but not permitted */
	bool forces; /* replaces a file that is no recording */
	bool is_verbose;
	bool quiet;
	bool no_pack;
	bool is_perf; /* `perf record`: perf's defaults and messages */
	bool is_strict; /* perf's --strict-freq: refuses a rate above the maximum */
	const char *control;         /* --control's argument, or NULL */
	const char *switch_event;    /* --switch-output-event's argument */
	struct tally_event_list switch_events;
	int realtime;                /* real-time priority of the recorder; 0: none */
	bool is_dry_run;
	bool wants_time_in_name;
	size_t max_files;            /* files of a switched output to keep; 0: all */
	/* names of complete files that are kept, in the output's folder; the oldest first */
	struct { char **items; size_t count, capacity; } files;
	int output_fd;               /* file being written; -1: none */
	char named_output[PATH_MAX + NAME_MAX]; /* `output` with the time appended, or "" */
};

/* Rows that `tally top` has as well. Its request begins with a struct record_request. `verb` is the
 * beginning of the help: "record " or "". */
#define RECORD_EVENT_OPTION \
	{ 'e', "event", TALLY_ARGUMENT_REQUIRED, "EVENTS", \
	  "events to sample (cycles or cpu-clock); 'tally list' lists them", \
	  TALLY_TAKE(record_take_event) }
#define RECORD_PERIOD_OPTION \
	{ 'c', "count", TALLY_ARGUMENT_REQUIRED, "N", "a sample every N events", \
	  TALLY_NUMBER(struct record_request, record.period, 1, 1ull << 62), \
	  TALLY_ALSO(struct record_request, record.rate_given) }
#define RECORD_TASK_OPTIONS(verb) \
	{ 'p', "pid", TALLY_ARGUMENT_REQUIRED, "PIDS", \
	  verb "these processes (numbers or names) and their children", \
	  TALLY_TAKE(record_take_target) }, \
	{ 0, "no-descendants", TALLY_ARGUMENT_NONE, NULL, \
	  "-p without existing child processes; with -i also without new ones", \
	  TALLY_CLEAR(struct record_request, target.takes_descendants) }, \
	{ 0, "container", TALLY_ARGUMENT_REQUIRED, "NAME", \
	  verb "the processes of a container or service:\nname, ID, or end of the cgroup's path", \
	  TALLY_TAKE(record_take_container) }, \
	{ 't', "tid", TALLY_ARGUMENT_REQUIRED, "TIDS", verb "these threads", \
	  TALLY_TAKE(record_take_target) }, \
	{ 'u', "uid", TALLY_ARGUMENT_REQUIRED, "USER", \
	  verb "this user's processes and what they start", TALLY_TAKE(record_take_target) }
#define RECORD_CPU_OPTION(verb) \
	{ 'C', "cpu", TALLY_ARGUMENT_REQUIRED, "CPUS", verb "these CPUs (0-3,7)", \
	  TALLY_TAKE(record_take_target) }
#define RECORD_INHERIT_OPTION \
	{ 'i', "no-inherit", TALLY_ARGUMENT_NONE, NULL, "leave out new children and threads", \
	  TALLY_TAKE(record_take_no_inherit) }, \
	/* perf's; the default */ \
	{ 0, "inherit", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_TAKE(record_take_inherit) }

/* record_options.c. */
extern const struct tally_option record_options[], record_perf_options[];
/* record_take_target: -p, -t, -u, -C; record_take_ring: -m, bytes ("4M") or pages. */
tally_take_option record_take_event, record_take_target, record_take_container,
	record_take_no_inherit, record_take_inherit, record_take_ring, record_take_call_graph;
/* Takes the command line into the request. Returns -1, or the exit status when the command must
 * end: after the help or an error. */
int record_parse_arguments(const struct tally_command *command, int argc, char **argv,
			   struct record_request *request);

/* record_events.c: parses the expressions for the provider, or chooses the default event. Returns
 * -1, or an exit status after printing an error. */
int record_parse_events(const struct tally_command *command, struct record_request *request);
/* Frees what was opened and parsed, except the output (record_output_close()). */
void record_request_release(struct record_request *request);

/* record_output.c: returns a descriptor, or -errno. */
int record_output_open(struct record_request *request, const sigset_t *signals_before,
		       struct tally_error *err);
/* Opens the next file; renames the complete one to include the time. */
int record_output_next(struct record_request *request, const struct tally_recorder_status *status,
		       int *fd, struct tally_error *err);
/* Renames the last file to include the time, if requested. */
int record_output_name(struct record_request *request, struct tally_error *err);
/* Waits until the recording and its names in the folder are on disk.  Does nothing for a pipe.
 * Returns 0, or -errno with a message. */
int record_output_sync(const struct record_request *request, struct tally_error *err);
/* Returns the name of the last file. */
const char *record_output_path(const struct record_request *request);
/* Writes the path of complete file `i` (request->files). */
const char *record_output_file(const struct record_request *request, size_t i,
			       char path[PATH_MAX + NAME_MAX]);
/* If the recording did not begin, removes its file and restores the last recording. */
void record_output_close(struct record_request *request, bool began);

/* record_names.c: names the places of the finished recording open at `fd`, and adds the names to
 * it. Does nothing for a pipe, and gives up on a signal; the recording is complete in any case.
 * `hint` receives how a runtime's code would get names (report.h), or "". `cpu_s` receives the CPU
 * time used, in seconds; 0 without names. Returns 0, also when a signal ended it, or -errno after
 * printing why names are missing. */
int record_add_names(const struct record_request *request, struct tally_recorder *recorder,
		     struct tally_signals *signals, int fd, bool was_signalled,
		     struct tally_recorder_status *status, char *hint, size_t hint_size,
		     double *cpu_s);

/* record.c: messages on standard error. */
void record_say_notes(const struct record_request *request, const struct tally_recorder *recorder,
		      const struct tally_buffer *notes);
void record_say_file(const struct record_request *request,
		     const struct tally_recorder_status *status, const char *name);

#endif
