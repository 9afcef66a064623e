/* A recording as a view shows it: its options, opening, messages, progress; naming it at its end. */
#ifndef TALLY_VIEW_H
#define TALLY_VIEW_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/option_row.h"
#include "naming/naming.h"
#include "profile/profile.h"
#include "profile/stacks.h"
#include "recording/recording.h"
#include "report/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_jit_files;
struct tally_name_sources;
struct tally_objects;
struct tally_perf_maps;
struct tally_recording;

/* The options that views of a recording share: which recording, which samples, how they are named.
 *
 * A view is what a command shows of a recording.  Its options are complete before the recording is
 * opened (view_open.c), so that nothing about it is set later.
 */

/* Which samples have stacks. */
enum tally_view_stacks {
	TALLY_VIEW_STACKS,             /* all that were recorded with one */
	TALLY_VIEW_LEAVES,             /* none: stacks are not read */
	TALLY_VIEW_LEAVES_UNLESS_WAITS /* none, unless the recording has waits */
};

/* Zero-initialised is valid.  The texts must outlive what was opened with them. */
struct tally_view_options {
	const char *input; /* the recording; "-": standard input; see tally_view_choose_input() */
	struct tally_profile_filter filter;
	struct tally_name_sources names;
	bool shows_idle;      /* keep samples of idle CPUs */
	bool joins_runtimes;  /* as in struct tally_profile_options */
	bool shows_scheduler; /* the same */
	bool keep_mangled, no_inlines; /* as in struct tally_names */

	/* set by the command */
	enum tally_view_stacks stacks;
	bool names_nothing;           /* the view has no functions: their names are not prepared */
	bool wants_lines, real_paths; /* as in struct tally_names */
	bool wants_code;              /* keep the code of JITs */
	bool keep_groups;             /* as in struct tally_recording */
	bool has_signed_sums;         /* the same */
};

/* Tables for TALLY_INCLUDE(); their request is a struct tally_view_options.  Those of one row have
 * its name. */
extern const struct tally_option tally_view_input_option[];
extern const struct tally_option tally_view_task_options[];   /* --pid, --tid */
extern const struct tally_option tally_view_tasks_options[];  /* the same as --pids, --tids */
extern const struct tally_option tally_view_filter_options[]; /* --comm, --cpu, --time */
extern const struct tally_option tally_view_comm_option[];    /* two of these alone */
extern const struct tally_option tally_view_time_option[];
extern const struct tally_option tally_view_leaf_options[];   /* --dso, --symbol */
extern const struct tally_option tally_view_max_stack_option[];
extern const struct tally_option tally_view_name_options[];   /* --symfs … --verbose */
/* the same, but --vmlinux has no letter: the command has another -k */
extern const struct tally_option tally_view_name_options_without_k[];
extern const struct tally_option tally_view_raw_addresses_option[];
extern const struct tally_option tally_view_full_names_option[];
extern const struct tally_option tally_view_idle_option[];
extern const struct tally_option tally_view_language_option[];
extern const struct tally_option tally_view_scheduler_option[];
extern const struct tally_option tally_view_no_demangle_option[];
extern const struct tally_option tally_view_no_inline_option[]; /* leaves frames out */
extern const struct tally_option tally_view_symbols_option[];   /* --no-inline, for rows */

/* Checks a list of CPUs, and stores the text. */
tally_take_option tally_view_take_cpus;

/* Appends the options that make this filter, "--comm cc1 --time 1.5,"; nothing if it passes all
 * samples. */
void tally_filter_text(const struct tally_profile_filter *filter, struct tally_buffer *out);

/* True if the filter excludes samples. */
bool tally_filter_is_set(const struct tally_profile_filter *filter);

/* True if the filter names commands, tasks or functions.  Then their samples are shown even if they
 * are of idle CPUs. */
bool tally_filter_means_idle(const struct tally_profile_filter *filter);

/* Opens a recording as the options of a view say (view_options.c). */

/* The recording in the working directory that is read if the user names none. */
struct tally_default_file {
	const char *path;  /* "tally.data", or "perf.data" if only that exists */
	const char *newer; /* "perf.data" if it exists as well and is newer; or NULL */
};
void tally_view_default_file(struct tally_default_file *file);

/* If the user named no recording, sets `input` to "-" if standard input is a pipe or a file, else to
 * the default file; a line on stderr says if the other one is newer.  Views call it once, before
 * anything else uses `input`. */
void tally_view_choose_input(const char *command, struct tally_view_options *options);
/* The same, but never standard input. */
void tally_view_choose_file(const char *command, struct tally_view_options *options);

/* Opens the recording, and prepares its names.  The options and their texts must outlive it.
 * Returns 0, or -errno with a message. */
int tally_view_open(const struct tally_view_options *options, struct tally_recording **out,
		    struct tally_error *err);
/* The same for bytes in memory, which must outlive the recording; `input` is ignored. */
int tally_view_open_memory(const struct tally_view_options *options, const void *bytes, size_t size,
			   struct tally_recording **out, struct tally_error *err);

/* Lets only this user read files that this process creates from now on, if the recording may hold
 * stacks, registers or names of other users' processes: it is another user's file, or records more
 * than a command that it started. */
void tally_view_protect(const struct tally_recording *recording);

/* True if samples of idle CPUs are left out. */
bool tally_view_leaves_out_idle(const struct tally_view_options *options);

/* Returns 0, or -ENOENT with a message if the recording, called `name` there, has no wakers. */
int tally_view_check_wakers(const struct tally_recording *recording, const char *name,
			    struct tally_error *err);

/* Reads a profile, with progress on a terminal; protects the recording.  Sets those members of
 * `samples` that the view's options decide.  Takes ownership of `recording`, also when it fails.
 * Returns 0, or -errno with a message. */
int tally_view_profile(const struct tally_view_options *options, struct tally_recording *recording,
		       struct tally_profile_options *samples, struct tally_profile **out,
		       struct tally_error *err);

/* Messages about what a view has read, on stderr.  `command` is the subcommand's name. */

/* Prints "tally report: warning: …" for each warning, with terminal escapes neutralised. */
void tally_view_warn(const char *command, const struct tally_recording *recording);

struct tally_input_message {
	char *line;
	const char *path; /* of the input */
	size_t begin; /* of the text in `line`, behind the input's path; 0: names no input */
	/* the other inputs that it applies to: how many, and the first of them */
	size_t other_count;
	struct tally_buffer others;
};

/* Warnings and hints of a command that reads several inputs.  One of each kind is printed, after
 * the last input; those of a kind differ only in their numbers. */
struct tally_input_messages {
	const char *path; /* of the input that is being read */
	struct {
		struct tally_input_message *items;
		size_t count, capacity;
	} list;
};

/* Prints "tally fold: warning: TEXT"; if `messages` isn't NULL, adds "tally diff: warning: PATH:
 * TEXT" to them instead. */
void tally_view_warn_text(const char *command, struct tally_input_messages *messages,
			  const char *text);
/* Prints the messages and releases them. */
void tally_input_messages_print(struct tally_input_messages *messages);

/* The same as tally_view_warn(), for one of several inputs; `messages` as above. */
void tally_view_warn_of(const char *command, struct tally_input_messages *messages,
			const struct tally_recording *recording);

/* Prints "tally fold: 35% is idle and left out: …"; with `path`, "tally diff: old.data: 35% …".
 * `period` is that of the samples that remain.  Returns true if any sample was left out; otherwise
 * prints nothing. */
bool tally_view_say_idle(const char *command, const char *path, const struct tally_left_out *idle,
			 uint64_t period);

/* If much of the profile is JIT code without names, prints "hint: …": how to get the names.
 * `messages` as above; a hint names no input. */
void tally_view_jit_hint(struct tally_input_messages *messages, const struct tally_profile *profile);

/* Writes the same text without its newline; "" if there is none. */
void tally_view_jit_hint_text(const struct tally_profile *profile, enum tally_hint_form form,
			      char *out, size_t size);

/* Shows on a terminal how far a view is. */

/* Shows on a terminal how much of a recording has been read, if reading takes longer than a
 * second. */
struct tally_view_progress {
	double started, shown; /* seconds */
	bool is_terminal, visible;
};
/* Only one at a time. Erases the line when a signal ends the program. */
void tally_view_progress_start(struct tally_view_progress *progress);
void tally_view_progress(void *progress, double share);
/* Shows progress by the position of a record; cheap enough to call for each. */
void tally_view_progress_record(struct tally_view_progress *progress,
				const struct tally_recording *recording,
				const struct tally_raw_record *raw);
void tally_view_progress_end(struct tally_view_progress *progress);

/* Shows how fetching a debug file proceeds: tally_name_sources.fetching.  From the first file to the
 * last, SIGINT is blocked; Ctrl-C ends only the fetching. */
bool tally_view_fetching(void *context, const char *object, uint64_t bytes, uint64_t total);

/* The input of `fold`, `flamegraph` and `diff`: a recording, folded text or `perf script` text. */

struct tally_stacks_input {
	/* how a recording is opened; text has no names to look up.  `wants_lines` is as `by_line` in
	 * struct tally_stacks. */
	struct tally_view_options view;
	const char *event; /* NULL: the first one with samples */
	bool with_full_names; /* as in struct tally_stacks */
	bool arranges_waits, with_wakers; /* as in struct tally_profile_options */
	/* collects warnings and hints about one of several inputs; NULL: they are printed */
	struct tally_input_messages *messages;
};

/* Reads the input and detects its format from its first bytes. Warns about what was left out; the
 * messages name the subcommand, `command`.  Returns 0, or -errno with a message. */
int tally_load_stacks(const char *command, const struct tally_stacks_input *input,
		      struct tally_stacks *stacks, struct tally_error *err);

/* Takes --weight into a bool, "by samples": "samples", "period" or "periods". */
tally_take_option tally_take_weight;

/* Names a recording's places, for tally's own section. */

struct tally_pack_options {
	/* Callbacks; each may be NULL. `progress`: the share that was read, 0 to 1. `look`: the
	 * recording, after it was read. */
	void (*progress)(void *context, double share);
	void (*look)(void *context, const struct tally_recording *recording);
	void *context;
	const struct tally_perf_maps *perf_maps; /* read while recording; NULL: none */
	const struct tally_jit_files *jit_files; /* opened while recording; NULL: none */
	const struct tally_objects *files;       /* its fetched debug files are used; NULL: none */
	const struct tally_name_sources *names;  /* NULL: only what the recording contains */
	/* receives a hint on how to get missing names (report.h); NULL: no hint */
	struct tally_buffer *hint;
	/* the part of the recording's data that has its places; NULL: read all */
	const struct tally_buffer *excerpt;
};

/* Reads the recording at `path` and names its places. Stores the number of places in `places`, and
 * the number of named ones in `known`; `section` stays empty if there is none. Returns 0, or -errno
 * with a message. */
int tally_pack_section(const char *path, const struct tally_pack_options *options,
		       struct tally_buffer *section, size_t *places, size_t *known,
		       struct tally_error *err);

/* The same for a recording that was just written: the file open at `fd`, or the one called `name` if
 * that can't be opened again. */
int tally_pack_open_file(int fd, const char *name, const struct tally_pack_options *options,
			 struct tally_buffer *section, struct tally_error *err);

/* Writes the recording at `path`, with the section, to `output`. `output` may be the same file, and
 * is replaced once the new one is complete. Returns 0, or -errno with a message. */
int tally_pack_write(const char *path, const char *output, const struct tally_buffer *section,
		     struct tally_error *err);

#endif
