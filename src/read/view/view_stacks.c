/* Reads an input far enough to know its kind.  A recording in a file is then opened by its path,
 * and becomes a profile; text, piped recordings and compressed input are read into memory as a
 * whole. */
#include "view/view.h"

#include "base/buffer.h"
#include "base/input_limits.h"
#include "base/number_text.h"
#include "base/output_path.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/unpack.h"
#include "profile/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns the unit of an event's weights, which are its periods. */
static const char *unit_of(const struct tally_recording *recording,
			   const struct tally_recorded_event *event)
{
	const struct tally_attr *attr = &event->attr;
	if (tally_recording_weighs_time(recording, event))
		return "ns";
	if (attr->type == TALLY_TYPE_HARDWARE && attr->config == TALLY_HW_CPU_CYCLES)
		return "cycles";
	return "events";
}

/* Counts the samples of events that were not chosen. */
static void count_others(const struct tally_profile *profile, uint32_t chosen,
			 struct tally_stacks *stacks)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(profile->recording->data,
									  &count);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t samples = 0, period;
		if (i != chosen && !tally_off_cpu_serves(&profile->recording->off_cpu, &events[i]))
			tally_profile_totals(profile, i, &samples, &period);
		if (samples && !stacks->other_samples)
			snprintf(stacks->other_event, sizeof(stacks->other_event), "%s",
				 events[i].name);
		stacks->other_samples += samples;
	}
}

static void say_left_out(const char *command, const char *path,
			 const struct tally_profile *profile, uint32_t event)
{
	const struct tally_left_out idle = tally_profile_idle(profile, event);
	struct tally_buffer text = { 0 };
	uint64_t samples, period;
	tally_profile_totals(profile, event, &samples, &period);
	if (tally_view_say_idle(command, path, &idle, period))
		return;
	tally_profile_wakers_text(profile, &text);
	if (text.length)
		tally_say("tally %s: %s", command, tally_buffer_string(&text));
	tally_buffer_release(&text);
}

/* Makes the stacks of the profile's event: the one called `name`, or its first.  `path`: named in
 * messages; NULL: not named. */
static int take_profile(const char *command, const char *path, const char *name,
			struct tally_profile *profile, struct tally_stacks *stacks,
			struct tally_error *err)
{
	uint32_t event;
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(profile->recording->data,
									  &count);
	int result = tally_profile_event(profile, name, &event, err);
	if (result < 0)
		return result;
	snprintf(stacks->event, sizeof(stacks->event), "%s", events[event].name);
	struct tally_buffer recorded = { 0 };
	tally_recording_command(profile->recording, &recorded);
	if (recorded.length)
		snprintf(stacks->title, sizeof(stacks->title), "%s",
			 tally_buffer_string(&recorded));
	tally_buffer_release(&recorded);
	snprintf(stacks->unit, sizeof(stacks->unit), "%s",
		 unit_of(profile->recording, &events[event]));
	count_others(profile, event, stacks);
	say_left_out(command, path, profile, event);
	result = tally_profile_stacks(profile, event, true, true, stacks);
	if (result < 0)
		return tally_error_set(err, result, "out of memory");
	return 0;
}

/* Returns how messages call an input. */
static const char *shown_name(const char *path)
{
	if (strcmp(path, "-"))
		return path;
	return "standard input";
}

/* Prefixes the error with the recording's name, for commands that read several. */
static void name_recording(const char *path, struct tally_error *err)
{
	struct tally_error plain = *err;
	tally_error_set(err, plain.code, "%s: %s", shown_name(path), plain.message);
	if (plain.hint[0])
		tally_error_hint(err, "%s", plain.hint);
}

/* Loads a recording from a file, or from `bytes` if it came from a pipe. */
static int load_recording(const char *command, const char *path,
			  const struct tally_buffer *bytes, const struct tally_stacks_input *input,
			  struct tally_stacks *stacks, struct tally_error *err)
{
	struct tally_profile_options options = { .merge_cpus = true,
						 .arranges_waits = input->arranges_waits,
						 .with_wakers = input->with_wakers };
	struct tally_view_options view = input->view;
	struct tally_recording *recording;
	struct tally_profile *profile;
	int result;
	view.input = path;
	if (bytes)
		result = tally_view_open_memory(&view, bytes->bytes, bytes->length, &recording,
						err);
	else
		result = tally_view_open(&view, &recording, err);
	if (result < 0)
		return result;
	if (input->with_wakers && tally_view_check_wakers(recording, path, err) < 0) {
		tally_recording_close(recording);
		return -ENOENT;
	}
	result = tally_view_profile(&view, recording, &options, &profile, err);
	if (result < 0)
		return result;
	stacks->by_line = view.wants_lines;
	stacks->with_full_names = input->with_full_names;
	tally_view_jit_hint(input->messages, profile); /* before the profile loses its rows */
	tally_profile_count_unstarted(profile);
	result = take_profile(command, input->messages ? path : NULL, input->event, profile, stacks,
			      err);
	if (result == -ENOENT)
		name_recording(path, err);
	tally_view_warn_of(command, input->messages, profile->recording);
	tally_profile_free(profile);
	return result;
}

/* Refuses more input than the limit allows. */
static int check_length(const struct tally_buffer *text, struct tally_error *err)
{
	bool is_recording = tally_perfdata_begins(text->bytes, text->length);
	enum tally_input input = is_recording ? TALLY_INPUT_RECORDING : TALLY_INPUT_TEXT;
	uint64_t most = tally_input_limit(input);
	if (text->length <= most)
		return 0;
	return tally_input_refuse(err, input, most,
				  "it must fit into memory, and it is larger than");
}

/* Returns 0 at the end of the file, with everything in `text`, or 1 for a recording; -EFBIG with a
 * message; or -errno. Reads a recording to its end only with `whole_recording`; a file is mapped
 * instead. */
static int read_text(int fd, bool whole_recording, struct tally_buffer *text,
		     struct tally_error *err)
{
	enum { CHUNK_BYTES = 1 << 18 };
	for (;;) {
		if (check_length(text, err) < 0)
			return -EFBIG;
		char *room = tally_buffer_room(text, CHUNK_BYTES);
		if (!room)
			return -ENOMEM;
		ssize_t got = read(fd, room, CHUNK_BYTES);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			return tally_perfdata_begins(text->bytes, text->length);
		text->length += (size_t)got;
		if (!whole_recording && tally_perfdata_begins(text->bytes, text->length))
			return 1;
	}
}

static void warn_of_skipped(const char *command,
			    const struct tally_stacks_input *input,
			    const struct tally_stacks *stacks)
{
	struct tally_input_messages *messages = input->messages;
	struct tally_buffer text = { 0 };
	if (stacks->lines_skipped) {
		tally_buffer_printf(&text,
				    "skipped %s of %s line%s, which can't be parsed; the first is "
				    "line %" PRIu64,
				    tally_number(stacks->lines_skipped),
				    tally_number(stacks->lines_read),
				    tally_plural(stacks->lines_read), stacks->first_line_skipped);
		tally_view_warn_text(command, messages, tally_buffer_string(&text));
	}
	tally_buffer_clear(&text);
	if (stacks->other_samples && !input->event) {
		char event[128], other[128];
		tally_terminal_clean_name(stacks->event, event, sizeof(event));
		tally_terminal_clean_name(stacks->other_event, other, sizeof(other));
		tally_buffer_printf(
			&text,
			"left out %s sample%s of other events than '%s'; "
			"--event %s chooses another",
			tally_number(stacks->other_samples), tally_plural(stacks->other_samples),
			event, other);
		tally_view_warn_text(command, messages, tally_buffer_string(&text));
	}
	tally_buffer_release(&text);
}

static int cannot_read(const char *path, int code, struct tally_error *err)
{
	tally_error_set(err, code, "%s can't be read: %s", shown_name(path), tally_errno_text(code));
	if (code == -ENOENT)
		tally_error_hint(
			err, "'tally record -- COMMAND' writes tally.data; text can be piped in: "
			     "perf script | tally fold");
	return code;
}

static int is_empty(const char *path, struct tally_error *err)
{
	tally_error_set(err, -ENODATA, "%s is empty", shown_name(path));
	if (!strcmp(path, "-"))
		tally_error_hint(err, "name a file to read instead");
	return -ENODATA;
}

static int no_filter_for_text(const char *path, const struct tally_profile_filter *filter,
			      struct tally_error *err)
{
	const char *name = shown_name(path);
	if (tally_filter_is_set(filter)) {
		tally_error_set(
			err, -EINVAL,
			"%s is text; only recordings can be filtered by command, function, task, "
			"CPU or time",
			name);
		tally_error_hint(err, "filter folded stacks with grep");
	} else {
		tally_error_set(
			err, -EINVAL,
			"%s is text, and --max-stack needs a recording: text does not mark "
			"inlined frames",
			name);
		tally_error_hint(
			err,
			"'perf script --max-stack %u' and 'tally script' write text with at most "
			"that many frames",
			filter->frames_max);
	}
	return -EINVAL;
}

/* Returns 1 for a recording, whose bytes are in `content` if `*is_held`; 0 for text, which is in
 * `content`; or -errno with a message. */
static int read_input(const char *path, int fd, struct tally_buffer *content, bool *is_held,
		      struct tally_error *err)
{
	uint8_t *bytes;
	size_t size;
	struct stat status;
	*is_held = fd == STDIN_FILENO;
	if (!*is_held && !fstat(fd, &status) && S_ISDIR(status.st_mode))
		return 1; /* of perf record --threads */
	int kind = read_text(fd, *is_held, content, err);
	if (kind == -EFBIG)
		name_recording(path, err);
	if (kind == -EFBIG)
		return kind;
	if (kind < 0)
		return cannot_read(path, kind, err);
	if (kind || !tally_is_packed(content->bytes, content->length))
		return kind;
	int result = tally_perfdata_unpack(content->bytes, content->length, &bytes, &size, err);
	if (result < 0) {
		name_recording(path, err);
		return result;
	}
	free(content->bytes);
	content->bytes = (char *)bytes;
	content->length = content->capacity = size;
	*is_held = true;
	return tally_perfdata_begins(bytes, size);
}

static void warn_of_saturation(const char *command,
			       const struct tally_stacks_input *input,
			       const struct tally_stacks *stacks)
{
	char text[200];
	snprintf(text, sizeof(text),
		 "sums end at 2^64 - 1: shares are not exact, since %s stack%s for less or nothing",
		 tally_number(stacks->weights_cut),
		 stacks->weights_cut == 1 ? " counts" : "s count");
	tally_view_warn_text(command, input->messages, text);
}

static int load_text(const char *command, const char *path,
		     const struct tally_buffer *text, const struct tally_stacks_input *input,
		     struct tally_stacks *stacks, struct tally_error *err)
{
	if (!text->length)
		return is_empty(path, err);
	if (tally_filter_is_set(&input->view.filter) || input->view.filter.frames_max)
		return no_filter_for_text(path, &input->view.filter, err);
	int result = tally_stacks_read_text(stacks, text->bytes, text->length, err);
	if (!result && stacks->weights_cut)
		warn_of_saturation(command, input, stacks);
	const char *kind = NULL;
	if (result == -EINVAL && !stacks->other_samples)
		kind = tally_perfdata_foreign_kind(text->bytes, text->length);
	if (kind && strcmp(kind, "text") != 0) {
		tally_error_set(err, result, "neither a recording nor text of stacks: it is %s",
				kind);
		name_recording(path, err);
	}
	return result;
}

int tally_load_stacks(const char *command, const struct tally_stacks_input *input,
		      struct tally_stacks *stacks, struct tally_error *err)
{
	const char *path = input->view.input;
	bool is_stdin = !strcmp(path, "-");
	struct tally_buffer text = { .maximum = SIZE_MAX / 2 }; /* check_length() limits it */
	int fd = STDIN_FILENO;
	if (!is_stdin)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (input->messages)
		input->messages->path = path;
	if (fd < 0)
		return cannot_read(path, -errno, err);
	stacks->keeps_tiers = input->view.names.full_names;
	if (input->event)
		snprintf(stacks->event, sizeof(stacks->event), "%s", input->event);
	if (!stacks->title[0])
		snprintf(stacks->title, sizeof(stacks->title), "%s",
			 is_stdin ? "" : tally_object_basename(path));
	bool is_held;
	int status = read_input(path, fd, &text, &is_held, err);
	if (status == 0 || is_held)
		tally_output_protect_like(fd);
	if (status == 1)
		status = load_recording(command, path, is_held ? &text : NULL, input, stacks, err);
	else if (!status)
		status = load_text(command, path, &text, input, stacks, err);
	if (!status)
		warn_of_skipped(command, input, stacks);
	tally_buffer_release(&text);
	if (!is_stdin)
		close(fd);
	return status;
}

int tally_take_weight(void *request, const struct tally_option *option, const char *value,
		      struct tally_error *err)
{
	bool *by_samples = tally_option_member(request, option);
	*by_samples = !strcmp(value, "samples") || !strcmp(value, "sample");
	if (*by_samples || !strcmp(value, "period") || !strcmp(value, "periods"))
		return 0;
	return tally_error_set(err, -EINVAL,
			       "option --weight: '%s' is neither 'samples' nor 'period'", value);
}
