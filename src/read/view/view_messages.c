/* Messages on stderr while or after reading: warnings, hints and progress.  For commands that read
 * several inputs, messages are collected, and those that differ only in numbers become one. */
#include "view/view_messages.h"

#include "base/buffer.h"
#include "base/terminal.h"
#include "base/vector.h"
#include "command/output_file.h"
#include "profile/idle.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NAMED_MAX = 3 }; /* other inputs that a message names */

/* Returns the length of the number that the word consists of, perhaps with a percent sign behind
 * it; 0 if the word is something else. */
static size_t number_word(const char *word)
{
	size_t length = strspn(word, "0123456789.,");
	const char *end = word + length + (word[length] == '%');
	return length && (!*end || strchr(" ,:;)", *end)) ? length : 0;
}

/* True if the texts differ only in words that are numbers.  Digits in names count. */
static bool is_same_kind(const char *text, const char *other)
{
	for (bool is_word = true; *text && *other; is_word = strchr(" (", *text), text++, other++) {
		size_t length = is_word ? number_word(text) : 0,
		       other_length = is_word ? number_word(other) : 0;
		if (length && other_length) {
			text += length;
			other += other_length;
		}
		if (*text != *other || !*text)
			break;
	}
	return *text == *other;
}

static void add_message(struct tally_input_messages *messages, const char *line, size_t begin)
{
	struct tally_input_message message = { .begin = begin, .path = messages->path };
	for (size_t i = 0; i < messages->list.count; i++) {
		struct tally_input_message *earlier = &messages->list.items[i];
		bool is_of_input = begin && earlier->path == messages->path;
		if (is_of_input || !is_same_kind(earlier->line + earlier->begin, line + begin))
			continue;
		if (begin && earlier->other_count++ < NAMED_MAX) {
			tally_buffer_text(&earlier->others, earlier->others.length ? ", " : "");
			tally_put_name(&earlier->others, messages->path);
		}
		return;
	}
	message.line = strdup(line);
	if (message.line && !tally_vector_push(&messages->list, message))
		return;
	free(message.line);
	tally_say("%s", line); /* out of memory: it may come more than once */
}

void tally_input_messages_print(struct tally_input_messages *messages)
{
	for (size_t i = 0; i < messages->list.count; i++) {
		struct tally_input_message *message = &messages->list.items[i];
		fputs(message->line, stderr);
		if (message->other_count)
			fprintf(stderr, " (likewise %s", tally_buffer_string(&message->others));
		if (message->other_count > NAMED_MAX)
			fprintf(stderr, " and %zu more", message->other_count - NAMED_MAX);
		fputs(message->other_count ? ")\n" : "\n", stderr);
		free(message->line);
		tally_buffer_release(&message->others);
	}
	tally_vector_release(&messages->list);
}

void tally_command_warn_text(const struct tally_command *command,
			     struct tally_input_messages *messages, const char *text)
{
	fflush(stdout); /* both may go to one file: a warning must not be inside a line */
	if (!messages) {
		tally_say("tally %s: warning: %s", command->name, text);
		return;
	}
	struct tally_buffer line = { 0 };
	tally_buffer_printf(&line, "tally %s: warning: ", command->name);
	tally_put_name(&line, messages->path);
	tally_buffer_text(&line, ": ");
	size_t begin = line.length;
	tally_put_name(&line, text);
	if (!line.failed)
		add_message(messages, tally_buffer_string(&line), begin);
	tally_buffer_release(&line);
}

void tally_command_warn(const struct tally_command *command,
			const struct tally_recording *recording)
{
	tally_command_warn_of(command, NULL, recording);
}

void tally_command_warn_of(const struct tally_command *command,
			   struct tally_input_messages *messages,
			   const struct tally_recording *recording)
{
	struct tally_buffer warnings = { 0 };
	tally_profile_warnings(recording, &warnings);
	char *rest = warnings.bytes;
	for (const char *line; (line = strsep(&rest, "\n"));)
		if (*line)
			tally_command_warn_text(command, messages, line);
	tally_buffer_release(&warnings);
}

bool tally_command_say_idle(const struct tally_command *command, const char *path,
			    const struct tally_left_out *idle, uint64_t period)
{
	struct tally_buffer text = { 0 };
	tally_idle_text(idle, period, &text);
	bool is_said = text.length;
	if (is_said)
		tally_say("tally %s: %s%s%s", command->name, path ? path : "", path ? ": " : "",
			  tally_buffer_string(&text));
	tally_buffer_release(&text);
	return is_said;
}

void tally_command_jit_hint_text(const struct tally_profile *profile, enum tally_hint_form form,
				 char *out, size_t size)
{
	struct tally_buffer hint = { 0 };
	*out = '\0';
	if (!tally_profile_jit_hint(profile, form, &hint) && hint.length) {
		hint.bytes[strcspn(hint.bytes, "\n")] = '\0';
		tally_terminal_clean_name(hint.bytes, out, size);
	}
	tally_buffer_release(&hint);
}

void tally_command_jit_hint(struct tally_input_messages *messages,
			    const struct tally_profile *profile)
{
	char hint[512];
	tally_command_jit_hint_text(profile, TALLY_HINT_WITH_SHARES, hint, sizeof(hint));
	fflush(stdout);
	if (!*hint)
		return;
	if (messages)
		add_message(messages, hint, 0);
	else
		tally_say("%s", hint);
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void tally_command_progress_start(struct tally_command_progress *progress)
{
	*progress = (struct tally_command_progress){
		.started = now(),
		.is_terminal = tally_terminal_knows_escapes(STDERR_FILENO),
	};
}

#define ERASE_LINE "\r\x1b[K"

/* Otherwise the line would precede the shell's prompt. */
static void erase_and_end(int signal_number)
{
	ssize_t written = write(STDERR_FILENO, ERASE_LINE, sizeof(ERASE_LINE) - 1);
	(void)written;
	raise(signal_number); /* SA_RESETHAND: this ends the program */
}

static void erase_on_signals(bool on)
{
	static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction action, before;
	for (unsigned i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
		memset(&action, 0, sizeof(action));
		sigemptyset(&action.sa_mask);
		action.sa_flags = on ? (int)SA_RESETHAND : 0;
		action.sa_handler = on ? erase_and_end : SIG_DFL;
		/* Leave signals that are ignored or handled otherwise. */
		if (!sigaction(ending[i], NULL, &before) &&
		    before.sa_handler == (on ? SIG_DFL : erase_and_end))
			sigaction(ending[i], &action, NULL);
	}
}

void tally_command_progress(void *context, double share)
{
	const double a_moment = 1, between = 0.1; /* seconds */
	struct tally_command_progress *progress = context;
	double time = progress->is_terminal ? now() : 0;
	if (!progress->is_terminal || time - progress->started < a_moment ||
	    time - progress->shown < between)
		return;
	double left = share > 0 ? (time - progress->started) * (1 - share) / share : 0;
	fprintf(stderr, "\rreading: %3.0f%%, %.0f s left \x1b[K", 100 * share, left);
	progress->shown = time;
	if (!progress->visible)
		erase_on_signals(true);
	progress->visible = true;
}

void tally_command_progress_end(struct tally_command_progress *progress)
{
	if (progress->visible) {
		fputs(ERASE_LINE, stderr);
		erase_on_signals(false);
	}
	progress->visible = false;
}

void tally_command_progress_record(struct tally_command_progress *progress,
				   const struct tally_recording *recording,
				   const struct tally_raw_record *raw)
{
	enum { EVERY = 16384 };
	uint64_t size = tally_perfdata_size(recording->data);
	if (progress->is_terminal && size && !(recording->counts.records % EVERY))
		tally_command_progress(progress, (double)raw->file_offset / (double)size);
}

int tally_command_profile_new(struct tally_recording *recording,
			      struct tally_profile_options *options, struct tally_profile **out,
			      struct tally_error *err)
{
	struct tally_command_progress progress;
	tally_output_protect(recording);
	options->progress = tally_command_progress;
	options->context = &progress;
	tally_command_progress_start(&progress);
	int result = tally_profile_new(recording, options, out, err);
	tally_command_progress_end(&progress);
	return result;
}
