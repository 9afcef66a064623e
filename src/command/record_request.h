/* What `tally record` was asked for; shared by its files, and by `tally top`, which samples as it
 * does. */
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
	const char *filter;  /* of its tracepoints, or NULL */
	/* of -G behind it: for the events up to here that had no turn yet; or NULL */
	const char *cgroups;
};

struct record_request {
	struct tally_record_options record;
	struct tally_target target;
	struct tally_catalogue catalogue;
	struct tally_arena arena;
	struct record_expression expressions[64]; /* -e: understood once the provider is known */
	size_t expression_count;
	struct tally_event_list events;
	const char *provider_name;
	struct tally_simulated_options simulated;
	struct tally_provider *provider;
	bool wants_max_rate; /* -F max */
	const char *output;
	char linked_output[4096]; /* what `output` points to where a link was named */
	char old_output[4096]; /* what stood there before has this name now; "" when nothing did */
	char older_output
		[4096 +
		 1]; /* what had that name before; "" likewise.  Given up once the recording began */
	bool pipe; /* the output can't seek */
	const char *default_event_note; /* why it isn't cycles, or NULL */
	bool off_cpu; /* where tasks wait, too */
	bool no_wakers; /* … and not who woke them */
	bool lacks_wakers; /* … that can't be recorded by this user */
	bool quiet;
	bool no_pack;
	const char *control;         /* --control's argument, or NULL */
	const char *switch_event;    /* --switch-output-event's */
	struct tally_event_list switch_events;
	int realtime;                /* priority of the recorder's; 0: none */
	bool is_dry_run;
	bool wants_time_in_name;
	size_t max_files;            /* of a switched output: the last so many are kept; 0: all */
	/* of it, complete: the kept ones' names, the oldest first */
	struct { char **items; size_t count, capacity; } files;
	int output_fd;               /* of the file that is written now; -1: none */
	char named_output[4096 + 32]; /* `output`, with the time */
};

/* record_events.c: frees what was opened and parsed; the output is record_output_close()'s. */
void record_request_release(struct record_request *request);

/* record_options.c: 0; an exit status after the message was printed; -1 after help. */
extern const struct tally_option record_options[];
int record_parse_arguments(const struct tally_command *command, int argc, char **argv,
			   struct record_request *request);
/* -m: bytes ("4M") or pages.  0 or -EINVAL with a message. */
int record_parse_ring(const char *value, struct tally_record_options *record,
		      struct tally_error *err);

/* perf_options.c: ids of perf's options; 1 where it is taken, 0 when `id` is none of them, -EINVAL
 * with what to use. */
enum { RECORD_PERF_FIRST = 1000, RECORD_PERF_BEFORE = RECORD_PERF_FIRST - 1,
#define ROW(id_, ...) RECORD_PERF_##id_,
       RECORD_PERF_OPTIONS(ROW)
#undef ROW
};
int record_take_perf_option(int id, struct tally_error *err);

/* record_choices.c: 0 or -EINVAL with a message. */
int record_parse_call_graph(const char *value, struct tally_record_options *record,
			    struct tally_error *err);
int record_parse_branches(const char *value, struct tally_record_options *record,
			  struct tally_error *err);
int record_parse_switch(const char *value, struct tally_record_rotation *when,
			struct tally_error *err);
/* "250", "-1", or ranges: "10-20,30-40"; these are the arena's. */
int record_parse_delay(const char *value, struct record_request *request, struct tally_error *err);
/* Names of registers, separated by commas; NULL: all. */
int record_parse_registers(const char *option, const char *value, uint64_t *mask,
			   struct tally_error *err);

/* record_events.c: what the expressions mean to the provider, or the default event. 0, or an exit
 * status likewise. */
int record_parse_events(const struct tally_command *command, struct record_request *request);

/* record_output.c: a descriptor, or -errno. */
int record_output_open(struct record_request *request, const sigset_t *signals_before,
		       struct tally_error *err);
/* The next file's descriptor; the one that is complete gets the time into its name. */
int record_output_next(struct record_request *request, const struct tally_record_status *status,
		       int *fd, struct tally_error *err);
/* The last file gets the time into its name where that is wanted. */
int record_output_name(struct record_request *request, struct tally_error *err);
/* What never began leaves no file, and the last recording where it was. */
void record_output_close(struct record_request *request, bool began);

/* record_names.c: names what was sampled in the finished recording that `fd` is open on, and adds
 * it to the recording, unless that is a pipe or a signal is in a hurry: the recording is whole
 * whatever comes of it.  `was_signalled`: a signal asked for the recording's end, so that the next
 * one means the names.  The CPU time that it took, in seconds; 0 without names.  `hint` gets how a
 * runtime's code would have names (jit_hint.h), or "". */
double record_add_names(const struct record_request *request, struct tally_recorder *recorder,
			struct tally_signals *signals, int fd, bool was_signalled,
			struct tally_record_status *status, char *hint, size_t hint_size);

/* record_words.c: what is said on standard error. */
/* struct tally_record_options: the context is the request. */
void record_say(void *context, const char *line);
void record_say_file(const struct record_request *request, const struct tally_record_status *status,
		     const char *name);
bool record_shows_progress(const struct record_request *request);
void record_show_progress(void *context, const struct tally_record_status *status);
void record_say_notes(const struct record_request *request, const struct tally_recorder *recorder,
		      const struct tally_buffer *notes);
void record_say_result(const struct record_request *request, const struct tally_recorder *recorder,
		       const struct tally_record_status *status, double names_cpu_s);

#endif
