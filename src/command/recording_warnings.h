/* Warnings about what was read, on stderr. */
#ifndef TALLY_COMMAND_RECORDING_WARNINGS_H
#define TALLY_COMMAND_RECORDING_WARNINGS_H

#include "command/command.h"
#include "report/jit_hint.h"
#include "profile/profile.h"

/* Prints "tally report: warning: …" for each warning, with terminal escapes neutralised. */
void tally_command_warn(const struct tally_command *command,
			const struct tally_recording *recording);

/* Prints "tally diff: warning: old.data: …", for commands that read several. */
void tally_command_warn_of(const struct tally_command *command, const char *path,
			   const struct tally_recording *recording);

/* Prints "tally fold: 35% is idle and left out: …", with `path` as above.  `period` is that of the
 * samples that remain.  Returns true if any sample was left out; otherwise prints nothing. */
bool tally_command_say_idle(const struct tally_command *command, const char *path,
			    const struct tally_left_out *idle, uint64_t period);

/* If much of the profile is JIT code without names, prints "hint: …": how to get the names. */
void tally_command_jit_hint(const struct tally_profile *profile);

/* Writes the same text without its newline; "" if there is none. */
void tally_command_jit_hint_text(const struct tally_profile *profile, enum tally_hint_form form,
				 char *out, size_t size);

/* Shows on a terminal how much of a recording has been read, if reading takes longer than a
 * second. */
struct tally_command_progress {
	double started, shown; /* seconds */
	bool is_terminal, visible;
};
/* Only one at a time. Erases the line when a signal ends the program. */
void tally_command_progress_start(struct tally_command_progress *progress);
void tally_command_progress(void *progress, double share);
/* Shows progress by the position of a record; cheap enough to call for each. */
void tally_command_progress_record(struct tally_command_progress *progress,
				   const struct tally_recording *recording,
				   const struct tally_raw_record *raw);
void tally_command_progress_end(struct tally_command_progress *progress);

#endif
