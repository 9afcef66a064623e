/* Messages about what a view has read, on stderr.  `command` is the subcommand's name. */
#ifndef TALLY_VIEW_MESSAGES_H
#define TALLY_VIEW_MESSAGES_H

#include "base/buffer.h"
#include "profile/profile.h"
#include "report/jit_hint.h"

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

#endif
