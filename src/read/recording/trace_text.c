/* Events of one tracepoint share its compiled format.  A small cache, by address, keeps the names
 * of kernel functions that texts contain. */
#include "recording/recording.h"

#include "base/vector.h"
#include "perfdata/perfdata.h"
#include "tracepoint/tracepoint.h"

#include <errno.h>

void tally_event_text_release(struct tally_event_text *trace)
{
	for (size_t i = 0; i < trace->formats.count; i++) {
		tally_print_free(trace->formats.items[i].print);
		tally_tracepoint_free(trace->formats.items[i].tracepoint);
	}
	tally_vector_release(&trace->formats);
	tally_vector_release(&trace->by_event);
	tally_map_release(&trace->by_number);
	tally_printk_release(&trace->printk);
}

/* Adds the compiled format of a tracepoint.  Without a format its `print` is NULL. */
static int add_format(struct tally_event_text *trace, uint64_t number)
{
	const char *text;
	size_t length;
	struct tally_trace_format format = { 0 };
	struct tally_feature_bytes tracing =
		tally_perfdata_feature(trace->recording->data, TALLY_FEATURE_TRACING_DATA);
	struct tally_tracepoint_machine machine;
	int result = 0;
	if (tally_perfdata_tracepoint_format(trace->recording->data, number, &text, &length) &&
	    tally_tracing_data_machine(tracing.bytes, tracing.size, &machine.long_bytes,
				       &machine.swap))
		result = tally_tracepoint_parse(text, length, &machine, &format.tracepoint, NULL);
	if (format.tracepoint)
		result = tally_print_compile(format.tracepoint, &format.print, NULL);
	trace->failed |= result == -ENOMEM;
	result = tally_vector_push(&trace->formats, format);
	if (result < 0) {
		tally_print_free(format.print);
		tally_tracepoint_free(format.tracepoint);
	}
	return result;
}

/* Returns the format of event number `index`, compiled once for each tracepoint; NULL without
 * memory. */
static const struct tally_trace_format *format_of(struct tally_event_text *trace,
						  const struct tally_recorded_event *event,
						  size_t index)
{
	while (trace->by_event.count <= index)
		if (tally_vector_push(&trace->by_event, (uint32_t)0) < 0) {
			trace->failed = true;
			return NULL;
		}
	uint32_t *place = &trace->by_event.items[index];
	if (!*place) {
		bool is_new;
		uint64_t *known = tally_map_put(&trace->by_number, event->attr.config, &is_new);
		if (!known || (is_new && add_format(trace, event->attr.config) < 0)) {
			trace->failed = true;
			return NULL;
		}
		if (is_new)
			*known = trace->formats.count;
		*place = (uint32_t)*known;
	}
	if (!*place)
		return NULL;
	return &trace->formats.items[*place - 1];
}

static void look_up(struct tally_event_text *trace, struct tally_trace_name *name, uint64_t address)
{
	struct tally_names *names = &trace->recording->names;
	struct tally_place place = tally_place_of(&trace->recording->tasks, 0, true, address);
	uint64_t offset;
	uint32_t function = tally_names_function(names, &place, &offset);
	bool known = function != UINT32_MAX &&
		     names->functions.items[function].name != TALLY_STRING_NONE;
	*name = (struct tally_trace_name){ .address = address,
					   .start = address - offset,
					   .generation =
						   trace->recording->tasks.kernel.generation };
	if (known)
		name->text = tally_names_text(names, function);
}

static const char *kernel_function(void *context, uint64_t address, uint64_t *start)
{
	struct tally_event_text *trace = context;
	if (!(address >> 63))
		return NULL;
	struct tally_trace_name *name =
		&trace->names[address * 0x9e3779b97f4a7c15ull >> (64 - TALLY_TRACE_NAMES_BITS)];
	if (name->address != address ||
	    name->generation != trace->recording->tasks.kernel.generation)
		look_up(trace, name, address);
	*start = name->start;
	return name->text;
}

/* Parses the kernel's strings by address once they have come: a pipe brings them in the stream. */
static void read_printk(struct tally_event_text *trace)
{
	struct tally_feature_bytes bytes =
		tally_perfdata_feature(trace->recording->data, TALLY_FEATURE_TRACING_DATA);
	size_t length;
	if (!bytes.bytes || bytes.bytes == trace->printk_source)
		return;
	trace->printk_source = bytes.bytes;
	tally_printk_release(&trace->printk);
	const char *text = tally_tracing_data_printk(bytes.bytes, bytes.size, &length);
	trace->failed |= text && tally_printk_parse(&trace->printk, text, length) < 0;
}

static const char *kernel_string(void *context, uint64_t address)
{
	struct tally_event_text *trace = context;
	read_printk(trace);
	return tally_printk_find(&trace->printk, address);
}

const struct tally_tracepoint *tally_event_text_tracepoint(
	struct tally_event_text *trace, const struct tally_recorded_event *event, size_t index)
{
	const struct tally_trace_format *format = NULL;
	if (event->attr.type == TALLY_TYPE_TRACEPOINT)
		format = format_of(trace, event, index);
	if (!format)
		return NULL;
	return format->tracepoint;
}

void tally_event_text_put(struct tally_event_text *trace, const struct tally_recorded_event *event,
			  size_t index, const struct tally_sample *sample, struct tally_buffer *out)
{
	const struct tally_trace_format *format = format_of(trace, event, index);
	const struct tally_print_names names = { .context = trace, .function = kernel_function,
					      .string = kernel_string };
	if (format && format->print && sample->raw)
		tally_print_event(format->print, sample->raw, sample->raw_size, &names, out);
	else
		tally_buffer_text(out, "[no format recorded]");
}
