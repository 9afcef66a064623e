/* The request of `tally record`; shared by its files, and by `tally top`, which samples the same
 * way. */
#ifndef TALLY_COMMAND_RECORD_REQUEST_H
#define TALLY_COMMAND_RECORD_REQUEST_H

#include "base/buffer.h"
#include "command/command.h"
#include "command/record_perf_options.h"
#include "command/simulated_options.h"
#include "recorder/recorder.h"
#include "session/signals.h"

#include <signal.h>

#define RECORD_DEFAULT_HZ 999

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
	struct tally_provider *provider;
	bool wants_max_rate; /* -F max */
	const char *output;
	char linked_output[4096]; /* target of `output` if it is a link */
	char old_output[4096]; /* new name of the file that had `output`'s name; "": none */
	char older_output
		[4096 +
		 1]; /* name of old_output's predecessor; deleted once recording began; "": none */
	bool pipe; /* the output is not seekable */
	const char *default_event_note; /* why the default is not cycles, or NULL */
	bool off_cpu; /* record waits as well */
	bool no_wakers; /* without wakers */
	bool lacks_wakers; /* wakers requested, but not permitted */
	bool quiet;
	bool no_pack;
	const char *control;         /* --control's argument, or NULL */
	const char *switch_event;    /* --switch-output-event's argument */
	struct tally_event_list switch_events;
	int realtime;                /* real-time priority of the recorder; 0: none */
	bool is_dry_run;
	bool wants_time_in_name;
	size_t max_files;            /* files of a switched output to keep; 0: all */
	/* names of complete files that are kept, the oldest first */
	struct { char **items; size_t count, capacity; } files;
	int output_fd;               /* file being written; -1: none */
	char named_output[4096 + 32]; /* `output` with the time appended */
};

/* record_events.c: frees what was opened and parsed, except the output (record_output_close()). */
void record_request_release(struct record_request *request);

/* record_options.c: returns 0, an exit status after printing an error, or -1 after the help. */
extern const struct tally_option record_options[];
int record_parse_arguments(const struct tally_command *command, int argc, char **argv,
			   struct record_request *request);
/* Parses -m: bytes ("4M") or pages. Returns 0, or -EINVAL with a message. */
int record_parse_ring(const char *value, struct tally_recorder_options *record,
		      struct tally_error *err);

/* perf_options.c: ids of perf's options. Returns 1 if the option is accepted, 0 if `id` is another
 * option, -EINVAL with an alternative. */
enum { RECORD_PERF_FIRST = 1000, RECORD_PERF_BEFORE = RECORD_PERF_FIRST - 1,
#define ROW(id_, ...) RECORD_PERF_##id_,
       RECORD_PERF_OPTIONS(ROW)
#undef ROW
};
int record_take_perf_option(int id, struct tally_error *err);

/* record_choices.c: these return 0, or -EINVAL with a message. */
int record_parse_call_graph(const char *value, struct tally_recorder_options *record,
			    struct tally_error *err);
int record_parse_branches(const char *value, struct tally_recorder_options *record,
			  struct tally_error *err);
int record_parse_switch(const char *value, struct tally_recorder_rotation *when,
			struct tally_error *err);
/* Parses "250", "-1", or ranges "10-20,30-40"; the arena owns the ranges. */
int record_parse_delay(const char *value, struct record_request *request, struct tally_error *err);
/* Parses names of registers, separated by commas; NULL: all. */
int record_parse_registers(const char *option, const char *value, uint64_t *mask,
			   struct tally_error *err);

/* record_events.c: parses the expressions for the provider, or chooses the default event. Returns
 * 0, or an exit status after printing an error. */
int record_parse_events(const struct tally_command *command, struct record_request *request);

/* record_output.c: returns a descriptor, or -errno. */
int record_output_open(struct record_request *request, const sigset_t *signals_before,
		       struct tally_error *err);
/* Opens the next file; renames the complete one to include the time. */
int record_output_next(struct record_request *request, const struct tally_recorder_status *status,
		       int *fd, struct tally_error *err);
/* Renames the last file to include the time, if requested. */
int record_output_name(struct record_request *request, struct tally_error *err);
/* If the recording did not begin, removes its file and restores the last recording. */
void record_output_close(struct record_request *request, bool began);

/* record_names.c: names the places of the finished recording open at `fd`, and adds the names to
 * it. Does nothing for a pipe, and gives up on a signal; the recording is complete in any case.
 * `hint` receives how a runtime's code would get names (jit_hint.h), or "". Returns the CPU time
 * used, in seconds; 0 without names. */
double record_add_names(const struct record_request *request, struct tally_recorder *recorder,
			struct tally_signals *signals, int fd, bool was_signalled,
			struct tally_recorder_status *status, char *hint, size_t hint_size);

/* record_words.c: messages on standard error. */
/* Callback of struct tally_recorder_options; `context` is the request. */
void record_say(void *context, const char *line);
void record_say_file(const struct record_request *request,
		     const struct tally_recorder_status *status, const char *name);
bool record_shows_progress(const struct record_request *request);
void record_show_progress(void *context, const struct tally_recorder_status *status);
void record_say_notes(const struct record_request *request, const struct tally_recorder *recorder,
		      const struct tally_buffer *notes);
void record_say_result(const struct record_request *request, const struct tally_recorder *recorder,
		       const struct tally_recorder_status *status, double names_cpu_s);

#endif
