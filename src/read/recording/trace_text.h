/* Texts of tracepoints.  A recording's formats are compiled at the first sample of each event.  Not
 * thread-safe. */
#ifndef TALLY_RECORDING_TRACE_TEXT_H
#define TALLY_RECORDING_TRACE_TEXT_H

#include "base/buffer.h"
#include "base/map.h"
#include "recording/recording.h"
#include "tracepoint/print.h"
#include "tracepoint/printk.h"

struct tally_trace_format {
	struct tally_tracepoint *tracepoint;
	struct tally_print *print; /* NULL: its format was not recorded */
};

/* The name of a kernel address, for %pS. */
struct tally_trace_name {
	uint64_t address, start;
	uint64_t generation; /* of the kernel's mappings */
	const char *text; /* NULL: not known */
};

enum { TALLY_TRACE_NAMES_BITS = 9 };

struct tally_event_text {
	struct tally_recording *recording;
	struct { struct tally_trace_format *items; size_t count, capacity; } formats;
	/* the format of each tracepoint's number, and of each event, plus 1: many events may be of
	 * one tracepoint */
	struct tally_map by_number;
	struct { uint32_t *items; size_t count, capacity; } by_event;
	struct tally_trace_name names[1 << TALLY_TRACE_NAMES_BITS]; /* by address; 0 is none */
	struct tally_printk printk; /* from the tracing data at printk_source */
	const uint8_t *printk_source;
	bool failed; /* memory was out, so a string may be missing */
};

/* To begin, zero the memory and set `recording`. */
void tally_event_text_release(struct tally_event_text *trace);

/* Appends the text of a sample of event number `index`.  Failures show in `out` or in `failed`. */
void tally_event_text_put(struct tally_event_text *trace, const struct tally_recorded_event *event,
			  size_t index, const struct tally_sample *sample,
			  struct tally_buffer *out);

#endif
