/* Does everything that script and report do with a recording, over bytes in memory. */
#ifndef TALLY_TEST_RECORDING_WALK_H
#define TALLY_TEST_RECORDING_WALK_H

#include "base/json.h"
#include "output/output.h"
#include "profile/profile.h"
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

struct recording_walk {
	bool opened;
	bool damaged; /* damaged, with an error that says so */
	size_t samples; /* samples printed */
	size_t bytes;   /* bytes of output */
	uint64_t reported; /* samples in the reports */
};

/* Turns off reading the kernel's 200,000 symbols and libraries' debug information.  They would be
 * read again for each of thousands of damaged copies, which would take longer than the rest.  Other
 * tests cover them. */
static inline void recording_walk_spare_names(struct tally_recording *recording)
{
	tally_names_omit_kernel(&recording->names);
	recording->names.options.no_inlines = true;
}

/* Runs `tally script`, or `tally script --records`. */
static inline int recording_walk_script(const void *bytes, size_t size, bool records,
					struct recording_walk *walk)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_recording *recording;
	struct tally_script *script;
	struct tally_raw_record raw;
	struct tally_record record;
	struct tally_buffer out = { 0 };
	int result = tally_recording_open_memory(bytes, size, &recording, &err);
	if (result < 0) {
		if (!err.message[0])
			abort();
		return result;
	}
	walk->opened = true;
	recording->options.keep_groups = records;
	recording_walk_spare_names(recording);
	struct tally_script_clock clock = { .nanoseconds = true, .since_last = true };
	struct tally_script_fields fields;
	tally_script_fields_init(&fields, TALLY_SCRIPT_TEXT);
	fields.clock = records ? NULL : &clock;
	if (!records)
		tally_script_fields_parse(&fields, "+brstack,+brstacksym,+misc,+flags", NULL);
	if (tally_script_new(recording, &fields, &script, NULL) < 0)
		abort();
	tally_recording_header(recording->data, 0, true, &out);
	while ((result = tally_recording_next(recording, &raw, &record, &err)) > 0) {
		if (tally_script_event(recording, script, &raw, &record, ~0u, &out, NULL))
			abort();
		if (records)
			tally_record_dump(recording, &raw, &record, &out);
		else if (record.header.type == TALLY_RECORD_SAMPLE &&
			 tally_script_sample(script, &raw, &record, &out, NULL))
			abort();
		walk->samples += record.header.type == TALLY_RECORD_SAMPLE;
		walk->bytes += out.length;
		tally_buffer_clear(&out);
	}
	/* a pipe has its header in the stream */
	tally_recording_header(recording->data, 0, true, &out);
	tally_buffer_clear(&out);
	tally_profile_warnings(recording, &out);
	if (tally_perfdata_damage(recording->data)) {
		walk->damaged = true;
		if (!strstr(tally_buffer_string(&out), "damaged at offset"))
			abort();
	}
	tally_script_free(script);
	tally_recording_close(recording);
	tally_buffer_release(&out);
	return result;
}

static inline void recording_walk_event(const struct tally_profile *profile, uint32_t event,
					enum tally_tree_order tree, struct recording_walk *walk)
{
	struct tally_report_options options = { .children = true, .tree = tree, .event = event };
	const struct tally_report_view view = { .columns = 80, .colours = true };
	struct tally_report report;
	struct tally_buffer text = { 0 };
	struct tally_json json = { .out = &text };
	memset(options.by, 1, sizeof(options.by));
	options.percent_min = options.tree_percent_min = tree == TALLY_TREE_NONE ? 0 : 0.5;
	if (tally_report_build(profile, &options, &report) < 0)
		abort();
	walk->reported += report.samples;
	tally_report_text(profile, &report, &options, &view, &text);
	walk->bytes += text.length;
	tally_buffer_clear(&text);
	tally_report_json(profile, &report, &options, &json);
	walk->bytes += text.length;
	tally_report_release(&report);
	tally_buffer_release(&text);
}

/* Runs `tally report` of each event, as text and as JSON.  The kind of tree changes from turn to
 * turn: writing all of them would be nine tenths of a walk. */
static inline int recording_walk_report(const void *bytes, size_t size, unsigned turn,
					struct recording_walk *walk)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_recording *recording;
	struct tally_profile *profile;
	size_t count;
	int result = tally_recording_open_memory(bytes, size, &recording, &err);
	if (result < 0)
		return result;
	recording_walk_spare_names(recording);
	result = tally_profile_new(recording, NULL, &profile, &err);
	if (result < 0) {
		if (!err.message[0])
			abort();
		return result;
	}
	tally_perfdata_events(profile->recording->data, &count);
	for (uint32_t event = 0; event < count && event < 4; event++)
		recording_walk_event(profile, event, (turn + event) % (TALLY_TREE_CALLEE + 1),
				     walk);
	tally_profile_free(profile);
	return 0;
}

static inline struct recording_walk recording_walk(const void *bytes, size_t size, unsigned turn)
{
	struct recording_walk walk = { 0 };
	recording_walk_script(bytes, size, false, &walk);
	recording_walk_script(bytes, size, true, &walk);
	recording_walk_report(bytes, size, turn, &walk);
	return walk;
}

#endif
