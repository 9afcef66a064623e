/* What `perf data convert --to-json` writes (perf 6.1, tools/perf/util/data-convert-json.c). */
#include "base/buffer.h"
#include "base/json.h"
#include "perf/perf.h"
#include "recording/recording.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

/* Begins a line `depth` deep, after the comma of the one before. */
static void line(struct tally_buffer *out, unsigned depth, bool is_first)
{
	tally_buffer_text(out, is_first ? "\n" : ",\n");
	for (unsigned i = 0; i < depth; i++)
		tally_buffer_char(out, '\t');
}

static void text_line(struct tally_buffer *out, unsigned depth, const char *name, const char *text)
{
	if (!text)
		return;
	line(out, depth, false);
	tally_buffer_printf(out, "\"%s\": ", name);
	tally_json_quote(out, text);
}

static void number_line(struct tally_buffer *out, unsigned depth, const char *name, uint64_t value)
{
	line(out, depth, false);
	tally_buffer_printf(out, "\"%s\": %" PRIu64, name, value);
}

/* -1 is a task that had ended, or a CPU that was not recorded. */
static void task_line(struct tally_buffer *out, const char *name, uint32_t number)
{
	line(out, 3, false);
	tally_buffer_printf(out, "\"%s\": %" PRId32, name, (int32_t)number);
}

/* --- header ----------------------------------------------------------------- */

static void put_command(const struct tally_perfdata *data, struct tally_buffer *out)
{
	struct tally_reader reader = tally_feature_reader(data, TALLY_FEATURE_CMDLINE);
	bool is_first = true;
	uint32_t count = tally_reader_u32(&reader);
	if (!count)
		return;
	line(out, 2, false);
	tally_buffer_text(out, "\"cmdline\": [");
	for (const char *word; count-- && (word = tally_feature_read_string(&reader));
	     is_first = false) {
		line(out, 3, is_first);
		tally_json_quote(out, word);
	}
	tally_buffer_text(out, "\n\t\t]");
}

static void put_header(const struct tally_perfdata *data, int64_t captured, struct tally_buffer *out)
{
	const struct tally_perfdata_place place = tally_perfdata_place(data);
	struct tally_reader reader = tally_feature_reader(data, TALLY_FEATURE_NRCPUS);
	uint32_t available, online;
	time_t moment = (time_t)captured;
	struct tm utc;
	char text[32] = "";
	if (gmtime_r(&moment, &utc))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
	tally_buffer_text(out, "\t\"headers\": {\n\t\t\"header-version\": 1");
	text_line(out, 2, "captured-on", text);
	number_line(out, 2, "data-offset", place.data_offset);
	number_line(out, 2, "data-size", place.data_size);
	number_line(out, 2, "feat-offset", place.features_offset);
	text_line(out, 2, "hostname", tally_perfdata_feature_text(data, TALLY_FEATURE_HOSTNAME));
	text_line(out, 2, "os-release", tally_perfdata_feature_text(data, TALLY_FEATURE_OSRELEASE));
	text_line(out, 2, "arch", tally_perfdata_feature_text(data, TALLY_FEATURE_ARCH));
	text_line(out, 2, "cpu-desc", tally_perfdata_feature_text(data, TALLY_FEATURE_CPUDESC));
	text_line(out, 2, "cpuid", tally_perfdata_feature_text(data, TALLY_FEATURE_CPUID));
	if (tally_feature_read_nrcpus(&reader, &available, &online)) {
		number_line(out, 2, "nrcpus-online", online);
		number_line(out, 2, "nrcpus-avail", available);
	}
	text_line(out, 2, "perf-version", tally_perfdata_feature_text(data, TALLY_FEATURE_VERSION));
	put_command(data, out);
	tally_buffer_text(out, "\n\t}");
}

void tally_perf_data_json_begin(const struct tally_perfdata *data, int64_t captured,
				struct tally_buffer *out)
{
	tally_buffer_text(out, "{\n\t\"linux-perf-json-version\": 1,\n");
	put_header(data, captured, out);
	tally_buffer_text(out, ",\n\t\"samples\": [");
}

void tally_perf_data_json_end(struct tally_buffer *out)
{
	tally_buffer_text(out, "\n\t]\n}\n");
}

/* --- samples ---------------------------------------------------------------- */

static void put_frame(struct tally_names *names, const struct tally_chain_frame *frame,
		      struct tally_buffer *out)
{
	uint32_t function = tally_names_function(names, &frame->place, NULL);
	tally_buffer_printf(out, "\n\t\t\t\t\t\"ip\": \"0x%" PRIx64 "\"", frame->address);
	if (function == UINT32_MAX) {
		out->failed = true;
		return;
	}
	const char *object = tally_names_object(names, function);
	if (names->functions.items[function].name == TALLY_STRING_NONE)
		return; /* perf names no object then */
	text_line(out, 5, "symbol", tally_names_text(names, function));
	if (strcmp(object, "[unknown]") != 0)
		text_line(out, 5, "dso", tally_names_short_object(names, function));
}

/* perf writes CPUs if one event has them. */
static bool records_cpus(const struct tally_perfdata *data)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(data, &count);
	for (size_t i = 0; i < count; i++)
		if (events[i].attr.sample_type & TALLY_SAMPLE_CPU)
			return true;
	return false;
}

int tally_perf_data_json_sample(struct tally_recording *recording,
				const struct tally_raw_record *raw,
				const struct tally_record *record, bool is_first,
				struct tally_buffer *out)
{
	const struct tally_sample *sample = &record->sample;
	char number[32];
	int result = tally_recording_chain(recording, raw, record);
	if (result < 0)
		return result;
	line(out, 2, is_first);
	tally_buffer_char(out, '{');
	tally_buffer_printf(out, "\n\t\t\t\"timestamp\": %" PRIu64, sample->time);
	task_line(out, "pid", sample->pid);
	task_line(out, "tid", sample->tid);
	if (records_cpus(recording->data))
		task_line(out, "cpu", sample->type & TALLY_SAMPLE_CPU ? sample->cpu : UINT32_MAX);
	text_line(out, 3, "comm",
		  tally_tasks_comm(&recording->tasks, sample->pid, sample->tid, number));
	line(out, 3, false);
	tally_buffer_text(out, "\"callchain\": [");
	for (size_t i = 0; i < recording->chain.count; i++) {
		line(out, 4, !i);
		tally_buffer_char(out, '{');
		put_frame(&recording->names, &recording->chain.items[i], out);
		line(out, 4, true);
		tally_buffer_char(out, '}');
	}
	tally_buffer_text(out, "\n\t\t\t]\n\t\t}");
	return 0;
}
