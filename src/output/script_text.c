/* perf's default layout (tools/perf/builtin-script.c): which fields a line has follows from the event's kind and
 * from what its samples carry; all events of a kind have the same columns. */
#include "output/script_text.h"

#include "base/vector.h"
#include "perfdata/feature.h"
#include "tracepoint/format.h"
#include "tracepoint/print.h"
#include "tracepoint/printk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Formats are compiled on the first sample of an event. */
struct event_format {
	struct tally_tracepoint *tracepoint;
	struct tally_print *print;
	bool tried;
};

struct tally_script {
	struct tally_recording *recording;
	struct { struct event_format *items; size_t count, capacity; } formats; /* by event */
	struct tally_printk printk; /* of the tracing data at printk_source */
	const uint8_t *printk_source;
	int name_width;
	size_t events_seen;
};

int tally_script_new(struct tally_recording *recording, struct tally_script **out, struct tally_error *err)
{
	struct tally_script *script = calloc(1, sizeof(*script));
	if (!script)
		return tally_error_set(err, -ENOMEM, "out of memory");
	script->recording = recording;
	*out = script;
	return 0;
}

void tally_script_free(struct tally_script *script)
{
	if (!script)
		return;
	for (size_t i = 0; i < script->formats.count; i++) {
		tally_print_free(script->formats.items[i].print);
		tally_tracepoint_free(script->formats.items[i].tracepoint);
	}
	tally_vector_release(&script->formats);
	tally_printk_release(&script->printk);
	free(script);
}

/* The width of the widest name; a pipe may announce more events later. */
static void measure_names(struct tally_script *script, const struct tally_recorded_event *events, size_t count)
{
	for (; script->events_seen < count; script->events_seen++) {
		int length = (int)strlen(events[script->events_seen].name);
		script->name_width = length > script->name_width ? length : script->name_width;
	}
}

static bool is_tracepoint(const struct tally_recorded_event *event)
{
	return event->attr.type == TALLY_TYPE_TRACEPOINT;
}

/* ---- the line's head ----------------------------------------------------------------------------------- */

static void put_head(struct tally_script *script, const struct tally_recorded_event *event,
		     const struct tally_sample *sample, struct tally_buffer *out)
{
	char buffer[16];
	const char *comm = tally_tasks_comm(&script->recording->tasks, sample->pid, sample->tid, buffer);
	tally_buffer_printf(out, tally_recording_has_stacks(&event->attr) ? "%s " : "%16s ", comm);
	if (sample->type & TALLY_SAMPLE_TID)
		tally_buffer_printf(out, "%5d ", (int)sample->tid);
	if (sample->type & TALLY_SAMPLE_CPU)
		tally_buffer_printf(out, "[%03u] ", sample->cpu);
	if (sample->type & TALLY_SAMPLE_TIME)
		tally_buffer_printf(out, "%5" PRIu64 ".%06" PRIu64 ": ", sample->time / 1000000000,
				    sample->time % 1000000000 / 1000);
	bool has_period = sample->type & TALLY_SAMPLE_PERIOD;
	if (!is_tracepoint(event))
		tally_buffer_printf(out, "%10" PRIu64 " ", has_period ? sample->period : event->attr.sample_period);
	tally_buffer_printf(out, "%*s: ", script->name_width, event->name);
}

/* ---- tracepoints --------------------------------------------------------------------------------------- */

static struct event_format *format_of(struct tally_script *script, const struct tally_recorded_event *event,
				      size_t index)
{
	const char *text;
	size_t length;
	char system[128];
	while (script->formats.count <= index)
		if (tally_vector_push(&script->formats, (struct event_format){ 0 }) < 0)
			return NULL;
	struct event_format *format = &script->formats.items[index];
	if (format->tried)
		return format;
	format->tried = true;
	snprintf(system, sizeof(system), "%.*s", (int)strcspn(event->name, ":"), event->name);
	if (tally_perfdata_tracepoint_format(script->recording->data, event->attr.config, &text, &length) &&
	    !tally_tracepoint_parse(text, length, NULL, &format->tracepoint, NULL) &&
	    tally_print_compile(format->tracepoint, system, &format->print, NULL) < 0)
		format->print = NULL;
	return format;
}

static const char *kernel_function(void *context, uint64_t address, uint64_t *start)
{
	struct tally_script *script = context;
	struct tally_place place = { .file = TALLY_FILE_KERNEL, .address = address };
	uint64_t offset;
	if (!(address >> 63))
		return NULL;
	uint32_t function = tally_names_function(&script->recording->names, &place, &offset);
	if (function == UINT32_MAX ||
	    script->recording->names.functions.items[function].name == TALLY_STRING_NONE)
		return NULL;
	*start = address - offset;
	return tally_names_text(&script->recording->names, function);
}

/* The kernel's strings by address, once they have come (a pipe brings them in the stream). */
static int read_printk(struct tally_script *script)
{
	struct tally_feature_bytes bytes = tally_perfdata_feature(script->recording->data, TALLY_FEATURE_TRACING_DATA);
	size_t length;
	if (!bytes.bytes || bytes.bytes == script->printk_source)
		return 0;
	script->printk_source = bytes.bytes;
	tally_printk_release(&script->printk);
	const char *text = tally_tracing_data_printk(bytes.bytes, bytes.size, &length);
	return text ? tally_printk_parse(&script->printk, text, length) : 0;
}

static const char *kernel_string(void *context, uint64_t address)
{
	struct tally_script *script = context;
	return tally_printk_find(&script->printk, address);
}

static void put_trace(struct tally_script *script, const struct tally_raw_record *raw,
		      const struct tally_sample *sample, struct tally_buffer *out)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(script->recording->data, &count);
	struct event_format *format = format_of(script, raw->event, (size_t)(raw->event - events));
	const struct tally_print_names names = { .context = script, .function = kernel_function,
					      .string = kernel_string };
	if (format && format->print && sample->raw)
		tally_print_event(format->print, sample->raw, sample->raw_size, &names, out);
	else
		tally_buffer_text(out, "[no format recorded]");
}

/* ---- addresses ----------------------------------------------------------------------------------------- */

/* "sym+0x1f (object)" of a place, `beyond` bytes behind it. */
static void put_symbol(struct tally_script *script, const struct tally_place *place, unsigned beyond,
		       struct tally_buffer *out)
{
	struct tally_names *names = &script->recording->names;
	uint64_t offset;
	uint32_t function = tally_names_function(names, place, &offset);
	if (function == UINT32_MAX || names->functions.items[function].name == TALLY_STRING_NONE)
		tally_buffer_text(out, " [unknown]");
	else
		tally_buffer_printf(out, " %s+0x%" PRIx64, tally_names_text(names, function), offset + beyond);
	tally_buffer_printf(out, " (%s)", tally_names_object(names, function));
}

static void put_chain(struct tally_script *script, struct tally_buffer *out)
{
	const struct tally_recording *recording = script->recording;
	tally_buffer_char(out, '\n');
	for (size_t i = 0; i < recording->chain.count; i++) {
		const struct tally_chain_frame *frame = &recording->chain.items[i];
		/* perf shows offsets in the file for user addresses, the kernel's own as they are. */
		uint64_t shown = frame->kernel || frame->place.file == TALLY_FILE_NONE ?
					 frame->address :
					 frame->place.address + frame->before;
		tally_buffer_printf(out, "\t%16" PRIx64, shown);
		put_symbol(script, &frame->place, frame->before, out);
		tally_buffer_char(out, '\n');
	}
}

int tally_script_sample(struct tally_script *script, const struct tally_raw_record *raw,
			const struct tally_record *record, struct tally_buffer *out)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(script->recording->data, &count);
	bool stacks = tally_recording_has_stacks(&raw->event->attr), tracepoint = is_tracepoint(raw->event);
	measure_names(script, events, count);
	if (tally_recording_chain(script->recording, raw, record) < 0)
		return -ENOMEM;
	put_head(script, raw->event, &record->sample, out);
	if (tracepoint && read_printk(script) < 0)
		return -ENOMEM;
	if (tracepoint)
		put_trace(script, raw, &record->sample, out);
	if (stacks) {
		put_chain(script, out);
	} else if (!tracepoint && script->recording->chain.count) {
		const struct tally_chain_frame *leaf = &script->recording->chain.items[0];
		tally_buffer_printf(out, " %16" PRIx64, leaf->address);
		put_symbol(script, &leaf->place, 0, out);
	}
	tally_buffer_char(out, '\n');
	return out->failed ? -ENOMEM : 0;
}
