/* The command `perf diff` of perf mode: reads two recordings, and prints perf's text.  tally diff
 * compares stacks and says which changes are more than noise. */
#include "base/buffer.h"
#include "command/command.h"
#include "command/perf_mode.h"
#include "perf/perf.h"
#include "perfdata/perfdata.h"
#include "profile/profile.h"
#include "report/report.h"
#include "view/view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { SIDES = 2 };

struct request {
	struct tally_view_options view;
	const char *files[SIDES];
	struct tally_perf_sums_options sums;
	struct tally_perf_diff_view text;
};

static int take_sort(void *taker, const struct tally_option *option, const char *value,
		     struct tally_error *err)
{
	static const struct { const char *name; enum tally_perf_key key;
	} keys[] = { { "comm", TALLY_PERF_COMM },
		     { "dso", TALLY_PERF_OBJECT },
		     { "symbol", TALLY_PERF_SYMBOL } };
	struct tally_perf_diff_view *view = &((struct request *)taker)->text;
	(void)option;
	memset(view->by, 0, sizeof(view->by));
	view->key_count = 0;
	while (*value) {
		size_t length = strcspn(value, ","), i = 0;
		while (i < sizeof(keys) / sizeof(keys[0]) &&
		       strncmp(keys[i].name, value, length) != 0)
			i++;
		if (!length || i == sizeof(keys) / sizeof(keys[0])) {
			tally_error_set(err, -ENOTSUP, "option -s: '%.*s' is not comm, dso or symbol",
					(int)length, value);
			return -ENOTSUP;
		}
		if (!view->by[keys[i].key])
			view->keys[view->key_count++] = (uint8_t)keys[i].key;
		view->by[keys[i].key] = true;
		value += length + (value[length] == ',');
	}
	return 0;
}

static int take_compute(void *taker, const struct tally_option *option, const char *value,
			struct tally_error *err)
{
	(void)taker, (void)option;
	if (!strcmp(value, "delta-abs"))
		return 0;
	return tally_error_set(err, -ENOTSUP,
			       "option -c: changes are differences, the largest first (delta-abs), "
			       "not '%s'", value);
}

static const struct tally_option options[] = {
	{ 's', "sort", TALLY_ARGUMENT_REQUIRED, "KEYS", "compare these: comm, dso, symbol",
	  TALLY_TAKE(take_sort) },
	{ 'c', "compute", TALLY_ARGUMENT_REQUIRED, "delta-abs", "the largest changes first",
	  TALLY_TAKE(take_compute) },
	{ 't', "field-separator", TALLY_ARGUMENT_REQUIRED, "SEP",
	  "SEP between columns instead of blanks", TALLY_TEXT(struct request, text.separator) },
	{ 'q', "quiet", TALLY_ARGUMENT_NONE, NULL, "rows alone",
	  TALLY_SET(struct request, text.quiet) },
	{ 'd', "dsos", TALLY_ARGUMENT_REQUIRED, "LIST", NULL,
	  TALLY_INSTEAD("tally diff --dso NAME compares what is in it") },
	{ 'C', "comms", TALLY_ARGUMENT_REQUIRED, "LIST", NULL,
	  TALLY_INSTEAD("tally diff --comm NAME compares what it did") },
	{ 'S', "symbols", TALLY_ARGUMENT_REQUIRED, "LIST", NULL,
	  TALLY_INSTEAD("perf diff | grep NAME shows some") },
	{ 'b', "baseline-only", TALLY_ARGUMENT_NONE, NULL, NULL,
	  TALLY_INSTEAD("rows without a baseline have blanks there") },
	{ TALLY_INCLUDE(tally_view_name_options, struct request, view) },
	TALLY_OPTIONS_END,
};

/* Reads one recording; the profile is NULL on failure.  Returns an exit status. */
static int read_side(const struct tally_command *command, struct request *request, unsigned side,
		     struct tally_profile **profile)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_recording *recording;
	struct tally_profile_options samples = { .merge_threads = true, .merge_cpus = true };
	*profile = NULL;
	request->view.input = request->files[side];
	if (tally_view_open(&request->view, &recording, &err) < 0)
		return tally_command_fail(command, &err);
	if (tally_view_profile(&request->view, recording, &samples, profile, &err) < 0) {
		*profile = NULL;
		return tally_command_fail(command, &err);
	}
	return TALLY_EXIT_OK;
}

/* Returns the number of the recording's event that counts the same; UINT32_MAX, which has no
 * samples: there is none. */
static size_t event_like(const struct tally_profile *profile, const struct tally_attr *attr)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(profile->recording->data,
									  &count);
	for (size_t i = 0; i < count; i++)
		if (events[i].attr.type == attr->type && events[i].attr.config == attr->config)
			return i;
	return UINT32_MAX;
}

static int put_event(struct request *request, struct tally_profile *const *profiles, size_t number,
		     const struct tally_recorded_event *event, struct tally_buffer *out)
{
	struct tally_perf_sums sums[SIDES];
	size_t numbers[SIDES] = { number, event_like(profiles[1], &event->attr) };
	int result = 0;
	for (unsigned i = 0; i < SIDES; i++) {
		int made;
		request->sums.event = (uint32_t)numbers[i];
		made = tally_perf_sums_build(profiles[i], &request->sums, &sums[i]);
		if (made < 0)
			result = made;
		request->text.sides[i].profile = profiles[i];
		request->text.sides[i].sums = &sums[i];
	}
	if (!result && out->length && !request->text.quiet)
		tally_buffer_char(out, '\n');
	if (!result)
		result = tally_perf_diff_text(&request->text, event->name, out);
	for (unsigned i = 0; i < SIDES; i++)
		tally_perf_sums_release(&sums[i]);
	return result;
}

static int show(const struct tally_command *command, struct request *request,
		struct tally_profile *const *profiles)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_buffer out = { 0 };
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(
		profiles[0]->recording->data, &count);
	int result = 0;
	for (size_t i = 0; !result && i < count; i++)
		result = put_event(request, profiles, i, &events[i], &out);
	if (result < 0 || out.failed)
		result = tally_error_set(&err, -ENOMEM, "out of memory");
	else
		fwrite(tally_buffer_string(&out), 1, out.length, stdout);
	tally_buffer_release(&out);
	return result < 0 ? tally_command_fail(command, &err) : TALLY_EXIT_OK;
}

/* One file is the new one, as in perf. */
static void choose_files(struct request *request)
{
	if (!request->files[1]) {
		request->files[1] = request->files[0] ? request->files[0] : "perf.data";
		request->files[0] = "perf.data.old";
	}
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct request request = { .sums = { .members = 1 } };
	struct tally_profile *profiles[SIDES];
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	take_sort(&request, NULL, "dso,symbol", NULL);
	while (tally_options_parse(&walk, &request) && walk.index < argc &&
	       tally_options_take_file(&walk, request.files, SIDES,
				       "two recordings are compared: '%s' is too many"))
		;
	if (walk.status >= 0)
		return walk.status;
	choose_files(&request);
	memcpy(request.sums.by, request.text.by, sizeof(request.sums.by));
	request.view.shows_idle = true;
	request.view.names.raw_addresses = true;
	request.view.no_inlines = true;
	request.view.stacks = TALLY_VIEW_LEAVES;
	int status = read_side(command, &request, 0, &profiles[0]);
	if (status != TALLY_EXIT_OK)
		return status;
	status = read_side(command, &request, 1, &profiles[1]);
	if (status == TALLY_EXIT_OK) {
		status = show(command, &request, profiles);
		tally_profile_free(profiles[1]);
	}
	tally_profile_free(profiles[0]);
	return status;
}

const struct tally_command tally_perf_diff = {
	.name = "perf diff",
	.summary = "how much of its time a recording spends elsewhere than an older one",
	.usage = "[options] [OLD NEW]",
	.options = options,
	.details = "The text is perf's.  Without names, perf.data.old and perf.data are compared.",
	.run = run,
};
