/* Messages on stderr about what was read: warnings and hints.  For commands that read several inputs,
 * messages are collected, and those that differ only in numbers become one. */
#include "view/view.h"

#include "base/terminal.h"
#include "base/text.h"
#include "base/vector.h"
#include "profile/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED_MAX = 3 }; /* other inputs that a message names */

/* Returns the length of the number that the word consists of, perhaps with a percent sign behind
 * it; 0 if the word is something else. */
static size_t number_word(const char *word)
{
	size_t length = strspn(word, "0123456789.,");
	const char *end = word + length + (word[length] == '%');
	if (*end && !strchr(" ,:;)", *end))
		return 0;
	return length;
}

/* True if the texts differ only in words that are numbers.  Digits in names count. */
static bool is_same_kind(const char *text, const char *other)
{
	for (bool is_word = true; *text && *other; is_word = strchr(" (", *text), text++, other++) {
		size_t length = 0, other_length = 0;
		if (is_word) {
			length = number_word(text);
			other_length = number_word(other);
		}
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
			if (earlier->others.length)
				tally_buffer_text(&earlier->others, ", ");
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
		if (message->other_count)
			fputc(')', stderr);
		fputc('\n', stderr);
		free(message->line);
		tally_buffer_release(&message->others);
	}
	tally_vector_release(&messages->list);
}

void tally_view_warn_text(const char *command, struct tally_input_messages *messages,
			  const char *text)
{
	fflush(stdout); /* both may go to one file: a warning must not be inside a line */
	if (!messages) {
		tally_say("tally %s: warning: %s", command, text);
		return;
	}
	struct tally_buffer line = { 0 };
	tally_buffer_printf(&line, "tally %s: warning: ", command);
	tally_put_name(&line, messages->path);
	tally_buffer_text(&line, ": ");
	size_t begin = line.length;
	tally_put_name(&line, text);
	if (!line.failed)
		add_message(messages, tally_buffer_string(&line), begin);
	tally_buffer_release(&line);
}

void tally_view_warn(const char *command, const struct tally_recording *recording)
{
	tally_view_warn_of(command, NULL, recording);
}

void tally_view_warn_of(const char *command, struct tally_input_messages *messages,
			const struct tally_recording *recording)
{
	struct tally_buffer warnings = { 0 };
	tally_profile_warnings(recording, &warnings);
	char *rest = warnings.bytes;
	for (const char *line; (line = strsep(&rest, "\n"));)
		if (*line)
			tally_view_warn_text(command, messages, line);
	tally_buffer_release(&warnings);
}

bool tally_view_say_idle(const char *command, const char *path, const struct tally_left_out *idle,
			 uint64_t period)
{
	struct tally_buffer text = { 0 };
	tally_idle_text(idle, period, &text);
	bool is_said = text.length;
	if (is_said)
		tally_say("tally %s: %s%s%s", command, tally_text_or(path, ""), path ? ": " : "",
			  tally_buffer_string(&text));
	tally_buffer_release(&text);
	return is_said;
}

void tally_view_jit_hint_text(const struct tally_profile *profile, enum tally_hint_form form,
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

void tally_view_jit_hint(struct tally_input_messages *messages, const struct tally_profile *profile)
{
	char hint[512];
	tally_view_jit_hint_text(profile, TALLY_HINT_WITH_SHARES, hint, sizeof(hint));
	fflush(stdout);
	if (!*hint)
		return;
	if (messages)
		add_message(messages, hint, 0);
	else
		tally_say("%s", hint);
}
