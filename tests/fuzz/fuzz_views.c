/* A recording of any bytes, through the views that read single samples or a function's code:
 * timeline, exports, annotate, diff with itself, and browsing a report with the bytes as keys.
 *
 * As in fuzz_recording.c, it opens the paths that the bytes name. */
#include "fuzz.h"

#include "../unit/recording_walk.h"

#include "base/vector.h"
#include "annotate/annotate_view.h"
#include "browse/browse.h"
#include "diff/diff_view.h"
#include "export/export.h"
#include "annotate/source_text.h"
#include "timeline/timeline.h"
#include "report/annotation.h"

enum { FUNCTIONS_MAX = 3, KEYS_MAX = 64, ROWS = 12, COLUMNS = 60 };

static struct tally_recording *open_recording(const uint8_t *bytes, size_t size)
{
	struct tally_recording *recording;
	if (tally_recording_open_memory(bytes, size, &recording, NULL) < 0)
		return NULL;
	recording_walk_spare_names(recording);
	return recording;
}

static void timeline(struct tally_recording *recording)
{
	const struct tally_activity_options options = { 0 };
	const struct tally_timeline_view view = {
		.columns = 80, .tasks = 10, .cpus_wanted = true, .tasks_wanted = true
	};
	struct tally_activity *activity;
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_buffer out = { 0 };
	if (tally_activity_new(recording, &options, &activity, &err) < 0) {
		require(err.message[0]);
		return;
	}
	require(tally_timeline_text(activity, &view, &out) == 0);
	require(tally_timeline_trace(activity, &out) == 0);
	tally_buffer_release(&out);
	tally_activity_free(activity);
}

static void export(struct tally_recording *recording)
{
	const struct tally_samples_options options = { 0 };
	struct tally_samples *samples;
	struct tally_error err = TALLY_ERROR_NONE;
	size_t events;
	if (tally_samples_new(recording, &options, &samples, &err) < 0) {
		require(err.message[0]);
		return;
	}
	tally_perfdata_events(samples->recording->data, &events);
	for (const struct tally_export_format *format = tally_export_formats; format->name;
	     format++) {
		struct tally_buffer out = { 0 };
		require(format->write(samples, events > 1 ? 1 : 0, &out) == 0);
		tally_buffer_release(&out);
	}
	tally_samples_free(samples);
}

/* ---- annotate ------------------------------------------------------------ */

static void show_annotation(const struct tally_annotation *annotation)
{
	struct tally_source_files sources = { 0 };
	struct tally_annotate_view view = { .columns = 80,
					    .with_source = true,
					    .with_numbers = true,
					    .with_samples = true,
					    .sources = &sources };
	struct tally_buffer out = { 0 };
	struct tally_json json = { .out = &out };
	size_t hottest = 0;
	require(tally_annotate_text(annotation, &view, &out, &hottest) == 0);
	require(hottest <= out.length);
	tally_buffer_clear(&out);
	tally_annotate_json(annotation, &sources, &json);
	tally_buffer_clear(&out);
	require(tally_annotate_html(annotation, 1, &view, &out) == 0);
	tally_buffer_release(&out);
	tally_source_files_release(&sources);
}

static void annotate(struct tally_profile *profile, uint32_t event)
{
	struct tally_hot_functions functions = { 0 };
	if (tally_hot_functions_find(profile, event, &(struct tally_function_choice){ 0 },
				     &functions, NULL) == 0)
		for (size_t i = 0; i < functions.count && i < FUNCTIONS_MAX; i++) {
			const struct tally_annotation_options options = { .is_intel = i & 1 };
			struct tally_annotation annotation = { 0 };
			if (tally_annotation_make(profile, event, &functions.items[i], &options,
						  &annotation, NULL) == 0)
				show_annotation(&annotation);
			tally_annotation_release(&annotation);
		}
	tally_vector_release(&functions);
}

/* ---- browsing ------------------------------------------------------------ */

static void screen_size(struct tally_screen *screen, int *rows, int *columns)
{
	(void)screen;
	*rows = ROWS;
	*columns = COLUMNS;
}

static void screen_nothing(struct tally_screen *screen)
{
	(void)screen;
}

static void screen_put(struct tally_screen *screen, int row, int column, unsigned style,
		       const char *text)
{
	(void)screen;
	(void)style;
	int width = 0;
	for (; *text; text++) {
		require((unsigned char)*text >= ' ' && *text != 127);
		width += ((unsigned char)*text & 0xc0) != 0x80;
	}
	require(row >= 0 && row < ROWS && column >= 0 && column + width <= COLUMNS);
}

static const struct tally_screen_ops screen_ops = {
	.size = screen_size, .clear = screen_nothing, .put = screen_put, .show = screen_nothing,
};

static int build(const struct tally_profile *profile, struct tally_browser *browser,
		 struct tally_report *report)
{
	struct tally_report old = *report;
	if (tally_report_build(profile, browser->options, report) < 0)
		return -1;
	int result = tally_browse_set(&browser->browse, report, browser->options);
	tally_report_release(&old);
	return result;
}

static void browse(const struct tally_profile *profile, uint32_t event, uint64_t facts,
		   const uint8_t *keys, size_t count)
{
	struct tally_screen screen = { .ops = &screen_ops };
	struct tally_report report = { 0 };
	struct tally_report_options options = {
		.by = { [TALLY_SORT_OBJECT] = true, [TALLY_SORT_SYMBOL] = true },
		.event = event,
		.children = true,
		.tree = TALLY_TREE_CALLER
	};
	struct tally_browser browser = {
		.screen = &screen, .options = &options, .has_stacks = true, .has_threads = true
	};
	for (unsigned key = 0; key < TALLY_SORT_KEYS; key++)
		options.by[key] |= (facts & TALLY_SORT_BIT(key)) != 0;
	tally_browse_init(&browser.browse, &profile->recording->names);
	require(build(profile, &browser, &report) == 0);
	tally_browser_draw(&browser);
	for (size_t i = 0; i < count && i < KEYS_MAX; i++) {
		uint32_t key = keys[i] < 128 ? keys[i] : TALLY_KEY_UP + (uint32_t)(keys[i] % 12);
		if (tally_browser_key(&browser, key) == TALLY_WISH_REPORT)
			require(build(profile, &browser, &report) == 0);
		tally_browser_draw(&browser);
	}
	tally_browse_release(&browser.browse);
	tally_report_release(&report);
}

/* ---- diff ---------------------------------------------------------------- */

/* Compares the profile with itself: nothing has changed. */
static void diff(struct tally_profile *profile, uint32_t event)
{
	struct tally_stacks stacks = { 0 };
	struct tally_match match = { 0 };
	struct tally_diff diff = { 0 };
	struct tally_buffer out = { 0 };
	const char *paths[] = { "a" };
	const struct tally_diff_options options = { .by_object = true,
						    .by_symbol = true,
						    .by_comm = true };
	const struct tally_diff_view view = { .match = &match,
					      .options = &options,
					      .old_paths = paths,
					      .new_paths = paths,
					      .columns = 80 };
	if (tally_profile_stacks(profile, event, true, false, &stacks) < 0)
		return;
	require(tally_match_stacks(&stacks, 1, &stacks, 1, &match) == 0);
	require(tally_diff_build(&match, &options, &diff) == 0 && diff.changes == 0);
	tally_diff_table(&diff, &view, &out);
	tally_diff_markdown(&diff, &view, &out);
	tally_diff_json(&diff, &view, &out);
	require(!out.failed);
	tally_buffer_release(&out);
	tally_diff_release(&diff);
	tally_match_release(&match);
	tally_stacks_release(&stacks);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct tally_recording *recording = open_recording(bytes, size);
	struct tally_profile *profile;
	uint32_t event;
	if (!recording)
		return 0;
	timeline(recording);
	if ((recording = open_recording(bytes, size)))
		export(recording);
	recording = open_recording(bytes, size);
	/* If the data has an odd size, rows are made for everything that samples contain. */
	const struct tally_profile_options options = {
		.facts = size % 2 ? TALLY_SORT_OF_FACTS & ~TALLY_SORT_OF_BRANCHES : 0
	};
	if (!recording || tally_profile_new(recording, &options, &profile, NULL) < 0)
		return 0;
	if (tally_profile_event(profile, NULL, &event, NULL) == 0) {
		annotate(profile, event);
		browse(profile, event, options.facts, bytes, size);
		browse(profile, event, options.facts, bytes + size / 2, size - size / 2);
		diff(profile, event); /* last, since it consumes the rows */
	}
	tally_profile_free(profile);
	return 0;
}
