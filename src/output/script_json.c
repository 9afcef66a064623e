#include "output/script_json.h"

#include "base/json.h"
#include "output/frame_lines.h"
#include "output/script_trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct tally_script_json {
	struct tally_recording *recording;
	struct tally_frame_lines lines;
	struct tally_script_trace trace;
	struct tally_buffer said; /* by a tracepoint */
	bool csv;
};

struct tally_script_json *tally_script_json_new(struct tally_recording *recording, bool csv)
{
	struct tally_script_json *script = calloc(1, sizeof(*script));
	if (!script || tally_frame_lines_init(&script->lines, &recording->names, csv ? TALLY_FRAME_NAMES : TALLY_FRAME_JSON) < 0) {
		free(script);
		return NULL;
	}
	script->recording = script->trace.recording = recording;
	script->csv = csv;
	return script;
}

void tally_script_json_free(struct tally_script_json *script)
{
	if (!script)
		return;
	tally_frame_lines_release(&script->lines);
	tally_script_trace_release(&script->trace);
	tally_buffer_release(&script->said);
	free(script);
}

void tally_script_json_start(const struct tally_script_json *script, struct tally_buffer *out)
{
	if (script->csv)
		tally_buffer_text(out, "command,pid,tid,cpu,time_ns,event,period,trace,stack\r\n");
}

/* The frames, leaf first, with a separator behind the last one taken off. */
static int put_frames(struct tally_script_json *script, const struct tally_raw_record *raw,
		      const struct tally_record *record, struct tally_buffer *out)
{
	struct tally_recording *recording = script->recording;
	const struct tally_tasks *tasks = &recording->tasks;
	uint32_t pid = record->sample.pid;
	size_t before = out->length;
	if (tally_recording_addresses(recording, raw, record) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < recording->chain.count; i++) {
		const struct tally_chain_frame *frame = &recording->chain.items[i];
		uint64_t maps = frame->kernel ? tasks->kernel.generation : tally_tasks_generation(tasks, pid);
		const struct tally_frame_line *line = tally_frame_line(
			&script->lines, pid, tally_frame_space(maps, frame->kernel, frame->before), frame->address);
		if (!line)
			return -ENOMEM;
		tally_buffer_append(out, line->text, line->length);
	}
	if (out->length > before)
		out->bytes[--out->length] = '\0';
	return 0;
}

static void put_quoted(const char *text, struct tally_buffer *out)
{
	if (!strpbrk(text, "\",\r\n")) {
		tally_buffer_text(out, text);
		return;
	}
	tally_buffer_char(out, '"');
	for (; *text; text++) {
		if (*text == '"')
			tally_buffer_char(out, '"');
		tally_buffer_char(out, *text);
	}
	tally_buffer_char(out, '"');
}

static int put_csv(struct tally_script_json *script, const struct tally_raw_record *raw, const struct tally_record *record,
		   const char *comm, uint64_t period, struct tally_buffer *out)
{
	const struct tally_sample *sample = &record->sample;
	struct tally_buffer stack = { 0 };
	put_quoted(comm, out);
	if (sample->type & TALLY_SAMPLE_TID)
		tally_buffer_printf(out, ",%d,%d,", (int)sample->pid, (int)sample->tid);
	else
		tally_buffer_text(out, ",,,");
	if (sample->type & TALLY_SAMPLE_CPU)
		tally_buffer_printf(out, "%" PRIu32, sample->cpu);
	tally_buffer_char(out, ',');
	if (sample->type & TALLY_SAMPLE_TIME)
		tally_buffer_printf(out, "%" PRIu64, sample->time);
	tally_buffer_char(out, ',');
	put_quoted(raw->event->name, out);
	tally_buffer_printf(out, ",%" PRIu64 ",", period);
	put_quoted(tally_buffer_string(&script->said), out);
	tally_buffer_char(out, ',');
	int result = put_frames(script, raw, record, &stack);
	put_quoted(tally_buffer_string(&stack), out);
	tally_buffer_text(out, "\r\n");
	bool failed = stack.failed;
	tally_buffer_release(&stack);
	return failed ? -ENOMEM : result;
}

static int put_json(struct tally_script_json *script, const struct tally_raw_record *raw, const struct tally_record *record,
		    const char *comm, uint64_t period, struct tally_buffer *out)
{
	const struct tally_sample *sample = &record->sample;
	struct tally_json json = { .out = out };
	tally_json_object(&json, NULL);
	tally_json_text(&json, "command", comm);
	if (sample->type & TALLY_SAMPLE_TID) {
		tally_json_i64(&json, "pid", (int32_t)sample->pid);
		tally_json_i64(&json, "tid", (int32_t)sample->tid);
	}
	if (sample->type & TALLY_SAMPLE_CPU)
		tally_json_u64(&json, "cpu", sample->cpu);
	if (sample->type & TALLY_SAMPLE_TIME)
		tally_json_u64(&json, "time_ns", sample->time);
	tally_json_text(&json, "event", raw->event->name);
	tally_json_u64(&json, "period", period);
	if (raw->event->attr.type == TALLY_TYPE_TRACEPOINT)
		tally_json_text(&json, "trace", tally_buffer_string(&script->said));
	tally_json_array(&json, "frames");
	int result = put_frames(script, raw, record, out);
	tally_json_end(&json);
	tally_json_end(&json);
	return result;
}

int tally_script_json_sample(struct tally_script_json *script, const struct tally_raw_record *raw,
			     const struct tally_record *record, struct tally_buffer *out)
{
	size_t count;
	char buffer[16];
	const struct tally_recorded_event *events = tally_perfdata_events(script->recording->data, &count);
	const struct tally_sample *sample = &record->sample;
	const char *comm = tally_tasks_comm(&script->recording->tasks, sample->pid, sample->tid, buffer);
	uint64_t period = sample->type & TALLY_SAMPLE_PERIOD ? sample->period : raw->event->attr.sample_period;
	tally_buffer_clear(&script->said);
	if (raw->event->attr.type == TALLY_TYPE_TRACEPOINT)
		tally_script_trace_put(&script->trace, raw->event, (size_t)(raw->event - events), sample, &script->said);
	int result = script->csv ? put_csv(script, raw, record, comm, period, out) :
				   put_json(script, raw, record, comm, period, out);
	return result < 0 || out->failed || script->said.failed || script->trace.failed ? -ENOMEM : 0;
}
