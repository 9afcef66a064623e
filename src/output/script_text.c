/* perf's default layout (tools/perf/builtin-script.c): which fields a line has follows from the event's kind and
 * from what its samples carry; all events of a kind have the same columns.
 *
 * Text is ten times the size of what it is made from, so a field is not formatted again that was before: the command
 * with its number is kept for each thread, an event's name with its padding for each event, an address's line for each
 * address (frame_lines.h), a tracepoint's format is a program (print.h).  What is left is the time and the copies. */
#include "output/script_text.h"

#include "abi/chain_walk.h"
#include "base/digits.h"
#include "base/vector.h"
#include "output/branch_text.h"
#include "output/frame_lines.h"
#include "output/script_trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* "command  1234 " of a thread. */
struct thread_head {
	uint64_t generation; /* of the commands, plus one: 0 is none */
	uint32_t pid, tid;
	bool stacks, has_tid;
	uint8_t length;
	char text[45];
};

/* "   cpu-clock: " of an event. */
struct event_head {
	const char *name;
	char *text;
	size_t length;
};

enum { THREAD_HEADS = 64, HEAD_NUMBERS_MAX = 128 };

struct tally_script {
	struct tally_recording *recording;
	struct tally_frame_lines lines;
	struct tally_script_trace trace;
	struct { struct event_head *items; size_t count, capacity; } events;
	struct thread_head threads[THREAD_HEADS]; /* by tid */
	int name_width;
	struct tally_script_fields fields;
	struct {
		uint64_t generation; /* of all mappings, and the process, that these hold for */
		uint32_t pid;
		uint64_t user, kernel; /* tally_frame_space() of sampled addresses */
	} spaces;
};

int tally_script_new(struct tally_recording *recording, struct tally_script **out, struct tally_error *err)
{
	struct tally_script *script = calloc(1, sizeof(*script));
	if (!script || tally_frame_lines_init(&script->lines, &recording->names) < 0) {
		free(script);
		return tally_error_set(err, -ENOMEM, "out of memory");
	}
	script->recording = recording;
	script->trace.recording = recording;
	script->spaces.generation = UINT64_MAX;
	*out = script;
	return 0;
}

void tally_script_show(struct tally_script *script, const struct tally_script_fields *fields)
{
	script->fields = *fields;
}

void tally_script_free(struct tally_script *script)
{
	if (!script)
		return;
	for (size_t i = 0; i < script->events.count; i++)
		free(script->events.items[i].text);
	tally_vector_release(&script->events);
	tally_frame_lines_release(&script->lines);
	tally_script_trace_release(&script->trace);
	free(script);
}

static bool is_tracepoint(const struct tally_recorded_event *event)
{
	return event->attr.type == TALLY_TYPE_TRACEPOINT;
}

/* ---- the line's head ----------------------------------------------------------------------------------- */

/* The columns follow the widest name; a pipe may announce more events later, or other names. */
static int make_event_heads(struct tally_script *script, const struct tally_recorded_event *events, size_t count)
{
	while (script->events.count < count)
		if (tally_vector_push(&script->events, (struct event_head){ 0 }) < 0)
			return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		int length = (int)strlen(events[i].name);
		script->name_width = length > script->name_width ? length : script->name_width;
	}
	for (size_t i = 0; i < count; i++) {
		struct tally_buffer text = { 0 };
		tally_buffer_printf(&text, "%*s: ", script->name_width, events[i].name);
		if (text.failed) {
			tally_buffer_release(&text);
			return -ENOMEM;
		}
		free(script->events.items[i].text);
		script->events.items[i] = (struct event_head){ events[i].name, text.bytes, text.length };
	}
	return 0;
}

static void put_thread(struct tally_script *script, const struct tally_sample *sample, bool stacks,
		       struct tally_buffer *out)
{
	char buffer[16];
	const char *comm = tally_tasks_comm(&script->recording->tasks, sample->pid, sample->tid, buffer);
	tally_buffer_printf(out, stacks ? "%s " : "%16s ", comm);
	if (sample->type & TALLY_SAMPLE_TID)
		tally_buffer_printf(out, "%5d ", (int)sample->tid);
}

static const struct thread_head *make_thread_head(struct tally_script *script, struct thread_head *head,
						  const struct tally_sample *sample, bool stacks,
						  struct tally_buffer *out)
{
	size_t before = out->length;
	put_thread(script, sample, stacks, out);
	head->generation = 0;
	size_t length = out->length - before;
	if (out->failed || length > sizeof(head->text))
		return NULL;
	*head = (struct thread_head){ .generation = script->recording->tasks.comm_generation + 1, .pid = sample->pid,
				      .tid = sample->tid, .stacks = stacks, .has_tid = sample->type & TALLY_SAMPLE_TID,
				      .length = (uint8_t)length };
	memcpy(head->text, out->bytes + before, length);
	out->length = before;
	return head;
}

/* "[003] 12345.678901:      10000 " */
static char *put_numbers(char *at, const struct tally_recorded_event *event, const struct tally_sample *sample)
{
	if (sample->type & TALLY_SAMPLE_CPU) {
		*at++ = '[';
		if (sample->cpu < 100) {
			*at++ = '0';
			memcpy(at, tally_digit_pairs + 2 * sample->cpu, 2);
			at += 2;
		} else {
			at = tally_put_decimal(at, sample->cpu, 3);
		}
		*at++ = ']';
		*at++ = ' ';
	}
	if (sample->type & TALLY_SAMPLE_TIME) {
		uint32_t fraction = (uint32_t)(sample->time % 1000000000 / 1000);
		at = tally_put_decimal(at, sample->time / 1000000000, 5);
		*at++ = '.';
		memcpy(at, tally_digit_pairs + 2 * (fraction / 10000), 2);
		memcpy(at + 2, tally_digit_pairs + 2 * (fraction / 100 % 100), 2);
		memcpy(at + 4, tally_digit_pairs + 2 * (fraction % 100), 2);
		memcpy(at + 6, ": ", 2);
		at += 8;
	}
	if (!is_tracepoint(event)) {
		bool has_period = sample->type & TALLY_SAMPLE_PERIOD;
		at = tally_put_decimal(at, has_period ? sample->period : event->attr.sample_period, 10);
		*at++ = ' ';
	}
	return at;
}

static int put_head(struct tally_script *script, const struct tally_recorded_event *event, size_t index, bool stacks,
		    const struct tally_sample *sample, struct tally_buffer *out)
{
	struct thread_head *known = &script->threads[sample->tid % THREAD_HEADS];
	const struct thread_head *head = known;
	if (known->tid != sample->tid || known->pid != sample->pid || known->stacks != stacks ||
	    known->generation != script->recording->tasks.comm_generation + 1 ||
	    known->has_tid != !!(sample->type & TALLY_SAMPLE_TID))
		head = make_thread_head(script, known, sample, stacks, out);
	const struct event_head *name = &script->events.items[index];
	char *at = tally_buffer_room(out, sizeof(known->text) + HEAD_NUMBERS_MAX + name->length);
	if (!at)
		return -ENOMEM;
	if (head) {
		memcpy(at, head->text, sizeof(head->text)); /* all of it: as long as it may be */
		at += head->length;
	}
	at = put_numbers(at, event, sample);
	memcpy(at, name->text, name->length);
	at += name->length;
	out->length = (size_t)(at - out->bytes);
	return 0;
}

/* ---- addresses ----------------------------------------------------------------------------------------- */

static bool is_kernel_mode(uint16_t misc)
{
	unsigned mode = misc & TALLY_MISC_CPUMODE_MASK;
	return mode == TALLY_MISC_KERNEL || mode == TALLY_MISC_GUEST_KERNEL;
}

static void see_spaces(struct tally_script *script, uint32_t pid)
{
	const struct tally_tasks *tasks = &script->recording->tasks;
	if (script->spaces.pid == pid && script->spaces.generation == tasks->generation)
		return;
	script->spaces.pid = pid;
	script->spaces.generation = tasks->generation;
	script->spaces.user = tally_frame_space(tally_tasks_generation(tasks, pid), false, false);
	script->spaces.kernel = tally_frame_space(tasks->kernel.generation, true, false);
}

static uint64_t space_of(const struct tally_script *script, bool kernel)
{
	return kernel ? script->spaces.kernel : script->spaces.user;
}

static int put_line(struct tally_script *script, uint32_t pid, uint64_t space, uint64_t address,
		    struct tally_buffer *out)
{
	const struct tally_frame_line *line = tally_frame_line(&script->lines, pid, space, address);
	if (!line)
		return -ENOMEM;
	size_t length = line->length;
	const char *text = line->text;
	char *at = out->bytes + out->length;
	if (out->capacity - out->length < length + TALLY_FRAME_LINE_SLACK) {
		at = tally_buffer_room(out, length + TALLY_FRAME_LINE_SLACK);
		if (!at)
			return -ENOMEM;
	}
	/* Most lines are of 40 to 120 bytes: two copies of a fixed size are faster than one of any. */
	memcpy(at, text, 64);
	if (length > 64)
		memcpy(at + 64, text + 64, 64);
	if (length > 128)
		memcpy(at + 128, text + 128, length - 128);
	out->length += length;
	return 0;
}

/* Chains that stand in the sample, address by address. */
static int put_words(struct tally_script *script, const struct tally_record *record, bool kernel,
		     struct tally_buffer *out)
{
	const struct tally_sample *sample = &record->sample;
	struct tally_chain_walk walk = tally_chain_walk_of(sample, kernel);
	uint64_t address;
	size_t before = out->length;
	while (tally_chain_walk_next(&walk, &address)) {
		uint64_t space = space_of(script, walk.kernel) | (walk.is_return && address);
		if (put_line(script, sample->pid, space, address, out) < 0)
			return -ENOMEM;
	}
	if (out->length == before && sample->type & TALLY_SAMPLE_IP)
		return put_line(script, sample->pid, space_of(script, kernel), sample->ip, out);
	return 0;
}

/* Chains with frames that are unwound from a copy of the stack. */
static int put_unwound(struct tally_script *script, const struct tally_raw_record *raw,
		       const struct tally_record *record, struct tally_buffer *out)
{
	if (tally_recording_addresses(script->recording, raw, record) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < script->recording->chain.count; i++) {
		const struct tally_chain_frame *frame = &script->recording->chain.items[i];
		uint64_t space = space_of(script, frame->kernel) | frame->before;
		if (put_line(script, record->sample.pid, space, frame->address, out) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* " 7f3c11a0 main+0x20 (/usr/bin/program)\n" */
static int put_leaf(struct tally_script *script, const struct tally_sample *sample, bool kernel,
		    struct tally_buffer *out)
{
	const struct tally_frame_line *line =
		tally_frame_line(&script->lines, sample->pid, space_of(script, kernel), sample->ip);
	char *at = line ? tally_buffer_room(out, line->length + 32) : NULL;
	if (!at)
		return -ENOMEM;
	*at++ = ' ';
	at = tally_put_hexadecimal(at, sample->ip, 16);
	memcpy(at, line->text + line->symbol, line->length - line->symbol + 1); /* with the NUL of buffers */
	at += line->length - line->symbol;
	out->length = (size_t)(at - out->bytes);
	return 0;
}

static void end_line(struct tally_buffer *out)
{
	if (out->capacity - out->length < 2) {
		tally_buffer_char(out, '\n');
		return;
	}
	out->bytes[out->length++] = '\n';
	out->bytes[out->length] = '\0';
}

/* Behind the stack, or in the line of what has none.  Asked for both, perf prints the addresses. */
static int put_branches(struct tally_script *script, const struct tally_sample *sample, struct tally_buffer *out)
{
	if (!script->fields.branches && !script->fields.branch_symbols)
		return 0;
	return tally_branch_text(script->recording, sample, script->fields.branches ? TALLY_BRANCH_FIELD_ADDRESSES :
				 TALLY_BRANCH_FIELD_SYMBOLS, true, out);
}

int tally_script_sample(struct tally_script *script, const struct tally_raw_record *raw,
			const struct tally_record *record, struct tally_buffer *out)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(script->recording->data, &count);
	const struct tally_sample *sample = &record->sample;
	size_t index = (size_t)(raw->event - events);
	bool stacks = tally_recording_has_stacks(&raw->event->attr), tracepoint = is_tracepoint(raw->event);
	bool kernel = is_kernel_mode(record->header.misc);
	int result = 0;
	see_spaces(script, sample->pid);
	if ((script->events.count != count || script->events.items[index].name != raw->event->name) &&
	    make_event_heads(script, events, count) < 0)
		return -ENOMEM;
	if (put_head(script, raw->event, index, stacks, sample, out) < 0)
		return -ENOMEM;
	if (tracepoint)
		tally_script_trace_put(&script->trace, raw->event, index, sample, out);
	bool has_leaf = !stacks && !tracepoint && sample->type & TALLY_SAMPLE_IP;
	if (has_leaf)
		result = put_leaf(script, sample, kernel, out);
	if (!stacks && !result && sample->branches) {
		out->length -= has_leaf; /* its newline */
		result = put_branches(script, sample, out);
		end_line(out);
	} else if (!has_leaf)
		end_line(out);
	if (stacks && sample->stack)
		result = put_unwound(script, raw, record, out);
	else if (stacks)
		result = put_words(script, record, kernel, out);
	if (stacks && !result && sample->branches)
		result = put_branches(script, sample, out);
	if (stacks)
		end_line(out);
	return result < 0 || out->failed || script->trace.failed ? -ENOMEM : 0;
}
