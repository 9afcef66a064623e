/* `perf script` text → stacks.  A header opens a sample, the frames below it (leaf first) belong to
 * it, and a blank line or the next header ends it. perf_script_line.c parses the lines. */
#include "profile/profile_internal.h"
#include "profile/stacks.h"

#include "base/buffer.h"
#include "base/extremes.h"
#include "base/text.h"
#include "base/vector.h"
#include "naming/naming.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct script_reader {
	struct tally_stacks *stacks;
	struct { uint32_t *items; size_t count, capacity; } frames; /* leaf first */
	struct tally_buffer name, object, comm;
	bool is_open;   /* a header was read, and its sample is kept */
	bool is_left_out; /* a header of another event was read: its frames are skipped */
	uint32_t thread;
	uint64_t weight;
	uint64_t samples_read;
	bool has_periods;
};

/* Returns the piece as a string, with NULs replaced; NULL when memory is out. */
static const char *text_of(struct tally_buffer *buffer, struct tally_text_piece piece)
{
	tally_buffer_clear(buffer);
	tally_buffer_append(buffer, piece.at, piece.length);
	for (char *nul = buffer->bytes; nul && !buffer->failed &&
	     (nul = memchr(nul, 0, buffer->length - (size_t)(nul - buffer->bytes)));)
		*nul = '?';
	if (buffer->failed)
		return NULL;
	return tally_buffer_string(buffer);
}

static int end_sample(struct script_reader *reader)
{
	int status = 0;
	for (size_t i = 0, j = reader->frames.count; reader->is_open && i + 1 < j; i++) {
		uint32_t swap = reader->frames.items[i];
		reader->frames.items[i] = reader->frames.items[--j];
		reader->frames.items[j] = swap;
	}
	if (reader->is_open)
		status = tally_stacks_add(reader->stacks, reader->thread, reader->frames.items,
					  reader->frames.count, reader->weight, 1);
	reader->is_open = reader->is_left_out = false;
	return status;
}

static int push_frame(struct script_reader *reader, const char *name, const char *object,
		      enum tally_frame_kind kind)
{
	uint32_t id = tally_stacks_frame(reader->stacks, name, object, kind);
	if (id == UINT32_MAX)
		return -ENOMEM;
	return tally_vector_push(&reader->frames, id);
}

/* Java agents name inlined code in one symbol, "outer->inner->innermost".  C++'s "operator->" is
 * not that. */
static int push_jit_frames(struct script_reader *reader, char *name, const char *object)
{
	char *arrow;
	while ((arrow = strrchr(name, '-')) && arrow[1] == '>' && arrow > name && arrow[2]) {
		int status = push_frame(reader, arrow + 2, object, TALLY_FRAME_INLINED);
		if (status < 0)
			return status;
		*arrow = '\0';
	}
	size_t at = 0, length = 0;
	if (!reader->stacks->keeps_tiers)
		length = tally_jit_tier(name, &at);
	if (length)
		memmove(name + at, name + at + length, strlen(name + at + length) + 1);
	return push_frame(reader, name, object, TALLY_FRAME_JIT);
}

static int add_frame(struct script_reader *reader, const struct tally_script_frame *frame)
{
	char unknown[300];
	const char *object = text_of(&reader->object, frame->object);
	const char *name = text_of(&reader->name, frame->symbol);
	if (!object || !name)
		return -ENOMEM;
	enum tally_frame_kind kind = TALLY_FRAME_INLINED;
	if (!frame->inlined)
		kind = tally_frame_kind_of_object(object);
	object = tally_text_or(tally_jit_object(object), object);
	if (!*name) {
		const char *base = *object ? tally_object_basename(object) : "unknown";
		bool bracketed = *base == '[';
		snprintf(unknown, sizeof(unknown), bracketed ? "%.290s" : "[%.290s]", base);
		name = unknown;
	}
	if (!*object)
		object = NULL;
	if (kind == TALLY_FRAME_JIT && name != unknown)
		return push_jit_frames(reader, reader->name.bytes, object);
	return push_frame(reader, name, object, kind);
}

/* True if the event has the wanted name: "cycles" also means "cycles:u", but not "cycles:foo". */
static bool is_event(const char *wanted, struct tally_text_piece event)
{
	size_t length = strlen(wanted);
	if (event.length < length || memcmp(wanted, event.at, length))
		return false;
	if (event.length == length)
		return true;
	return event.at[length] == ':' &&
	       strspn(event.at + length + 1, "ukhIGHpPSDWeb") >= event.length - length - 1;
}

static bool is_tracepoint(struct tally_text_piece event)
{
	if (!event.length)
		return false;
	const char *colon = memchr(event.at, ':', event.length);
	return colon &&
	       strspn(colon + 1, "ukhIGHpPSDWeb") < event.length - (size_t)(colon + 1 - event.at);
}

static void keep_name(char *out, size_t size, struct tally_text_piece event)
{
	size_t length = tally_min_u64(event.length, size - 1);
	memcpy(out, event.at, length);
	out[length] = '\0';
}

static bool choose_event(struct script_reader *reader, struct tally_text_piece event)
{
	struct tally_stacks *stacks = reader->stacks;
	if (!event.length)
		return !stacks->event[0] || !reader->samples_read;
	if (event.length >= sizeof(stacks->event))
		event.length = sizeof(stacks->event) - 1;
	if (!stacks->event[0])
		keep_name(stacks->event, sizeof(stacks->event), event);
	if (is_event(stacks->event, event))
		return true;
	if (!stacks->other_samples++)
		keep_name(stacks->other_event, sizeof(stacks->other_event), event);
	return false;
}

static bool begins(struct tally_text_piece piece, const char *with)
{
	return piece.length >= strlen(with) && !memcmp(piece.at, with, strlen(with));
}

static int begin_sample(struct script_reader *reader, const struct tally_script_header *header)
{
	struct tally_script_frame frame;
	int status = end_sample(reader);
	/* `perf script --show-mmap-events` and similar options print other records */
	if (status < 0 || begins(header->rest, "PERF_RECORD_") ||
	    begins(header->event, "PERF_RECORD_"))
		return status;
	if (!choose_event(reader, header->event)) {
		reader->is_left_out = true;
		return 0;
	}
	const char *comm = text_of(&reader->comm, header->comm);
	if (!comm)
		return -ENOMEM;
	reader->thread = tally_stacks_thread(reader->stacks, comm, header->pid, header->tid);
	if (reader->thread == UINT32_MAX)
		return -ENOMEM;
	reader->is_open = true;
	reader->samples_read++;
	reader->has_periods |= header->has_period;
	reader->weight = 1;
	if (header->has_period)
		reader->weight = tally_max_u64(header->period, 1);
	reader->frames.count = 0;
	/* Without a call chain, the only address is on the header's line.  A tracepoint's text may
	 * look like an address and a name, but it has no object. */
	if (header->rest.length &&
	    tally_script_frame_parse(header->rest.at, header->rest.length, &frame) &&
	    (frame.object.length || !is_tracepoint(header->event)))
		return add_frame(reader, &frame);
	return 0;
}

/* True for the lines that `-F srcline` puts below frames: "  hashtab.c:123", "  libc.so.6[27b25]",
 * "  ??:0". */
static bool is_source_line(const char *line, size_t length)
{
	if (length < 3 || line[0] != ' ' || line[1] != ' ')
		return false;
	return line[length - 1] == ']' || memchr(line, ':', length);
}

/* True for the lines that `perf script -D` puts before each sample's own: "0x118@perf.data [0x68]:
 * event: 10", ".  0000:  0a 00", "0 1000 0x180 [0x30]: PERF_RECORD_SAMPLE(…)", " ... thread: x:1",
 * "..... 0: ffff". */
static bool is_dump_line(const char *line, size_t length)
{
	const struct tally_text_piece piece = { line, length };
	/* a command's name may begin with a dot: ".NET ThreadPool" */
	bool is_dots = length && *line == '.' &&
		       (length == 1 || line[1] == ' ' || line[1] == '.');
	if (is_dots || begins(piece, " ... ") || begins(piece, " ...... "))
		return true;
	if (begins(piece, "0x") && memmem(line, length, " [0x", 4))
		return memmem(line, length, "]: event: ", 10) ||
		       memmem(line, length, "]: PERF_RECORD_", 15);
	return *line >= '0' && *line <= '9' && memmem(line, length, "]: PERF_RECORD_", 15);
}

static int read_line(struct script_reader *reader, const char *line, size_t length)
{
	struct tally_script_header header;
	struct tally_script_frame frame;
	bool in_sample = reader->is_open || reader->is_left_out;
	if (!length)
		return end_sample(reader);
	if (line[0] != '\t' && tally_script_header_parse(line, length, &header)) {
		/* "  414000 Function: f (/tmp/perf-7.map)" is a frame, although it looks like "TID
		 * EVENT:". */
		bool is_frame = in_sample && line[0] == ' ' && !header.has_time &&
				!header.comm.length;
		if (!is_frame)
			return begin_sample(reader, &header);
	}
	if (in_sample && tally_script_frame_parse(line, length, &frame)) {
		if (!reader->is_open)
			return 0;
		return add_frame(reader, &frame);
	}
	if (in_sample && is_source_line(line, length))
		return 0;
	if (!reader->stacks->lines_skipped++)
		reader->stacks->first_line_skipped = reader->stacks->lines_read;
	return 0;
}

static void set_unit(struct script_reader *reader)
{
	struct tally_stacks *stacks = reader->stacks;
	static const char *const clocks[] = { "cpu-clock", "task-clock", "cpu_clock",
					      "task_clock" };
	const char *unit = reader->has_periods ? "events" : "samples";
	for (unsigned i = 0; reader->has_periods && i < sizeof(clocks) / sizeof(clocks[0]); i++)
		if (is_event(clocks[i],
			     (struct tally_text_piece){ stacks->event, strlen(stacks->event) }))
			unit = "ns";
	if (!stacks->unit[0])
		strcpy(stacks->unit, unit);
}

static int nothing_read(const struct tally_stacks *stacks, struct tally_error *err)
{
	if (stacks->other_samples) {
		tally_error_set(err, -EINVAL, "there are no samples of event '%s' in this text",
				stacks->event);
		tally_error_hint(err, "it has samples of '%s'", stacks->other_event);
		return -EINVAL;
	}
	tally_error_set(err, -EINVAL, "no samples were found in this `perf script` text");
	tally_error_hint(
		err,
		"the reader needs comm, tid, event, ip and sym: `perf script` without -F shows "
		"them");
	return -EINVAL;
}

int tally_stacks_read_perf_script(struct tally_stacks *stacks, const char *text, size_t length,
				  struct tally_error *err)
{
	struct script_reader reader = { .stacks = stacks };
	const char *end = text + length;
	int status = 0;
	for (const char *line = text, *next; line < end && status >= 0; line = next) {
		const char *line_end = tally_line_end(line, end);
		next = line_end + (line_end < end);
		stacks->lines_read++;
		while (line_end > line && (line_end[-1] == '\r' || line_end[-1] == ' '))
			line_end--;
		if (*line != '#' && !is_dump_line(line, (size_t)(line_end - line)))
			status = read_line(&reader, line, (size_t)(line_end - line));
	}
	if (status >= 0)
		status = end_sample(&reader);
	set_unit(&reader);
	tally_vector_release(&reader.frames);
	tally_buffer_release(&reader.name);
	tally_buffer_release(&reader.object);
	tally_buffer_release(&reader.comm);
	if (status < 0)
		return tally_error_set(err, status, "out of memory while reading stacks");
	if (!reader.samples_read && length)
		return nothing_read(stacks, err);
	return 0;
}

bool tally_text_is_perf_script(const char *text, size_t length)
{
	enum { LINES_LOOKED_AT = 200 };
	const char *end = text + length;
	unsigned lines = 0;
	for (const char *line = text, *next; line < end && lines < LINES_LOOKED_AT; line = next) {
		const char *line_end = tally_line_end(line, end);
		struct tally_script_header header;
		next = line_end + (line_end < end);
		lines += *line != '#';
		if (*line == '#' || is_dump_line(line, (size_t)(line_end - line)))
			continue;
		struct tally_script_frame frame;
		if (*line == '\t' &&
		    tally_script_frame_parse(line, (size_t)(line_end - line), &frame))
			return true;
		/* A folded line may contain what looks like a header, as in "comm;f(int) 12 x: 3".
		 * But a header has no semicolon before its ids. */
		if (tally_script_header_parse(line, (size_t)(line_end - line), &header) &&
		    (header.has_time ||
		     (header.event.length &&
		      (!header.comm.length || !memchr(header.comm.at, ';', header.comm.length)))))
			return true;
	}
	return false;
}
