/* A recording's samples for Python scripts that were written for perf: a line of JSON each, for
 * script_python.py, which calls the script's functions. */
#include "base/buffer.h"
#include "base/json.h"
#include "output/output.h"
#include "output/output_internal.h"
#include "tracepoint/tracepoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ATTR_BYTES = 128 }; /* of perf 6.1's struct perf_event_attr */

struct tally_script_python {
	struct tally_recording *recording;
	struct tally_frame_lines frames;
	struct tally_event_text trace;
	struct tally_buffer text;
};

int tally_script_python_new(struct tally_recording *recording, struct tally_script_python **out,
			  struct tally_error *err)
{
	struct tally_script_python *python = calloc(1, sizeof(*python));
	if (!python ||
	    tally_frame_lines_init(&python->frames, &recording->names,
				   TALLY_FRAME_JSON | TALLY_FRAME_SYMBOL |
					   TALLY_FRAME_OFFSET | TALLY_FRAME_OBJECT) < 0) {
		free(python);
		return tally_error_set(err, -ENOMEM, "out of memory");
	}
	python->recording = python->trace.recording = recording;
	*out = python;
	return 0;
}

void tally_script_python_free(struct tally_script_python *python)
{
	if (!python)
		return;
	tally_frame_lines_release(&python->frames);
	tally_event_text_release(&python->trace);
	tally_buffer_release(&python->text);
	free(python);
}

/* --- fields of tracepoints -------------------------------------------------- */

static const char *hexadecimal(struct tally_buffer *text, const void *bytes, size_t size)
{
	const uint8_t *byte = bytes;
	tally_buffer_clear(text);
	for (size_t i = 0; byte && i < size; i++)
		tally_buffer_printf(text, "%02x", byte[i]);
	return tally_buffer_string(text);
}

static void put_number(struct tally_json *json, const struct tally_tracepoint_field *field,
		       const char *name, uint64_t value, size_t bytes)
{
	if (!field->is_signed || bytes > sizeof(value) || !bytes) {
		tally_json_u64(json, name, value);
		return;
	}
	unsigned unused = 64 - 8 * (unsigned)bytes;
	tally_json_i64(json, name, (int64_t)(value << unused) >> unused);
}

static void put_field(struct tally_script_python *python, struct tally_json *json,
		      const struct tally_tracepoint *tracepoint,
		      const struct tally_tracepoint_field *field, const struct tally_sample *sample)
{
	const void *bytes;
	size_t size;
	uint64_t value;
	if (!field->is_array && tally_tracepoint_u64(tracepoint, field, sample->raw,
						     sample->raw_size, &value)) {
		put_number(json, field, field->name, value, field->size_bytes);
	} else if (!tally_tracepoint_bytes(tracepoint, field, sample->raw, sample->raw_size, &bytes,
					   &size)) {
		tally_json_null(json, field->name);
	} else if (field->is_string) {
		tally_buffer_clear(&python->text);
		tally_buffer_append(&python->text, bytes, strnlen(bytes, size));
		tally_json_text(json, field->name, tally_buffer_string(&python->text));
	} else {
		tally_json_object(json, field->name);
		tally_json_text(json, "bytes", hexadecimal(&python->text, bytes, size));
		tally_json_end(json);
	}
}

static void put_fields(struct tally_script_python *python, struct tally_json *json,
		       const struct tally_tracepoint *tracepoint, const struct tally_sample *sample)
{
	tally_json_object(json, "fields");
	for (size_t i = 0; tracepoint && sample->raw && i < tracepoint->field_count; i++)
		put_field(python, json, tracepoint, &tracepoint->fields[i], sample);
	tally_json_end(json);
}

/* The script's function for a tracepoint: "sched__sched_switch" for sched:sched_switch. */
static const char *handler_of(struct tally_script_python *python,
			      const struct tally_recorded_event *event)
{
	const char *colon = strchr(event->name, ':');
	if (event->attr.type != TALLY_TYPE_TRACEPOINT || !colon)
		return NULL;
	size_t rest = strcspn(colon + 1, ":"); /* without modifiers */
	tally_buffer_clear(&python->text);
	tally_buffer_printf(&python->text, "%.*s__%.*s", (int)(colon - event->name), event->name,
			    (int)rest, colon + 1);
	return tally_buffer_string(&python->text);
}

/* --- samples ---------------------------------------------------------------- */

static int put_frames(struct tally_script_python *python, uint32_t pid,
		      const struct tally_chain_frame *frame, struct tally_buffer *out)
{
	const struct tally_tasks *tasks = &python->recording->tasks;
	uint64_t maps = tasks->kernel.generation;
	if (!frame->kernel)
		maps = tally_tasks_generation(tasks, pid);
	const struct tally_frame_line *line = tally_frame_line(
		&python->frames, pid, tally_frame_space(maps, frame->kernel, frame->before),
		frame->address);
	if (!line)
		return -ENOMEM;
	size_t length = line->length;
	while (length && line->text[length - 1] == ',')
		length--;
	tally_buffer_append(out, line->text, length);
	return 0;
}

static int put_chain(struct tally_script_python *python, struct tally_json *json,
		     const struct tally_sample *sample)
{
	size_t count = python->recording->chain.count;
	int result = 0;
	tally_json_array(json, "callchain");
	bool is_recorded = sample->type & (TALLY_SAMPLE_CALLCHAIN | TALLY_SAMPLE_STACK_USER);
	for (size_t i = 0; is_recorded && i < count && !result; i++) {
		const struct tally_chain_frame *frame = &python->recording->chain.items[i];
		tally_json_object(json, NULL);
		tally_json_u64(json, "ip", frame->address);
		tally_json_array(json, "frames");
		result = put_frames(python, sample->pid, frame, json->out);
		tally_json_end(json);
		tally_json_end(json);
	}
	tally_json_end(json);
	tally_json_array(json, "leaf");
	if (!result && count)
		result = put_frames(python, sample->pid, &python->recording->chain.items[0],
				    json->out);
	tally_json_end(json);
	return result;
}

/* perf gives each of these, recorded or not. */
static void put_sample(struct tally_script_python *python, struct tally_json *json,
		       const struct tally_record *record)
{
	const struct tally_sample *sample = &record->sample;
	const uint64_t no_data_source = 0x5080021; /* PERF_MEM_DATA_SRC_NONE in perf 6.1 */
	const struct {
		const char *name;
		uint64_t bit, value, otherwise;
	} members[] = {
		{ "pid", TALLY_SAMPLE_TID, sample->pid, UINT32_MAX },
		{ "tid", TALLY_SAMPLE_TID, sample->tid, UINT32_MAX },
		{ "cpu", TALLY_SAMPLE_CPU, sample->cpu, UINT32_MAX },
		{ "ip", TALLY_SAMPLE_IP, sample->ip, 0 },
		{ "time", TALLY_SAMPLE_TIME, sample->time, UINT64_MAX },
		{ "period", 0, sample->period, sample->period },
		{ "phys_addr", TALLY_SAMPLE_PHYS_ADDR, sample->phys_addr, 0 },
		{ "addr", TALLY_SAMPLE_ADDR, sample->addr, 0 },
		{ "weight", TALLY_SAMPLE_WEIGHT, sample->weight, 0 },
		{ "transaction", TALLY_SAMPLE_TRANSACTION, sample->transaction, 0 },
		{ "datasrc", TALLY_SAMPLE_DATA_SRC, sample->data_src, no_data_source },
	};
	tally_json_object(json, "sample");
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		uint64_t value = members[i].otherwise;
		if (sample->type & members[i].bit)
			value = members[i].value;
		tally_json_u64(json, members[i].name, value);
	}
	if (sample->type & TALLY_SAMPLE_DATA_SRC) {
		tally_buffer_clear(&python->text);
		tally_data_source_text(sample->data_src, &python->text);
		tally_json_text(json, "datasrc_decode", tally_buffer_string(&python->text));
	}
	tally_json_u64(json, "cpumode", record->header.misc & TALLY_MISC_CPUMODE_MASK);
	tally_json_end(json);
	tally_json_bool(json, "has_branches", sample->type & TALLY_SAMPLE_BRANCH_STACK);
	tally_json_bool(json, "has_iregs", sample->type & TALLY_SAMPLE_REGS_INTR);
	tally_json_bool(json, "has_uregs", sample->type & TALLY_SAMPLE_REGS_USER);
	tally_json_bool(json, "has_values", sample->type & TALLY_SAMPLE_READ);
	tally_json_bool(json, "has_datasrc_decode", sample->type & TALLY_SAMPLE_DATA_SRC);
}

int tally_script_python_sample(struct tally_script_python *python, const struct tally_raw_record *raw,
			     const struct tally_record *record, struct tally_buffer *out,
			     struct tally_error *err)
{
	const struct tally_sample *sample = &record->sample;
	struct tally_json json = { .out = out };
	char number[32];
	size_t count;
	const struct tally_recorded_event *events =
		tally_perfdata_events(python->recording->data, &count);
	const struct tally_tracepoint *tracepoint =
		tally_event_text_tracepoint(&python->trace, raw->event,
					    (size_t)(raw->event - events));
	int result = tally_recording_addresses(python->recording, raw, record);
	tally_json_object(&json, NULL);
	tally_json_text(&json, "event", raw->event->name);
	tally_json_text(&json, "handler", handler_of(python, raw->event));
	tally_json_text(&json, "comm", tally_tasks_comm(&python->recording->tasks, sample->pid,
							sample->tid, number));
	put_sample(python, &json, record);
	tally_json_text(&json, "attr", hexadecimal(&python->text, &raw->event->attr, ATTR_BYTES));
	tally_json_text(&json, "raw", hexadecimal(&python->text, sample->raw,
						  sample->raw ? sample->raw_size : 0));
	put_fields(python, &json, tracepoint, sample);
	if (result >= 0)
		result = put_chain(python, &json, sample);
	tally_json_end(&json);
	if (out->failed || python->text.failed || python->trace.failed)
		result = -ENOMEM;
	if (result == -ENOMEM)
		return tally_error_set(err, result, "out of memory");
	return result < 0 ? result : 0;
}
