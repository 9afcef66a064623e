/* perf's default layout (tools/perf/builtin-script.c): a line's fields follow from the event's type
 * and its samples' contents; all events of a type have the same columns.
 *
 * The text is ten times the size of the recording, so nothing is formatted twice. The command with
 * its number is cached for each thread, the padded event name for each event, and the line for each
 * address (output_internal.h). A tracepoint's format is compiled to a program (tracepoint.h). Only times are
 * formatted for each sample; the rest is copied.
 */
#include "output/output.h"

#include "abi/abi.h"
#include "base/digits.h"
#include "base/terminal.h"
#include "base/vector.h"
#include "output/output_internal.h"
#include "recording/recording.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The text "command 1234 " of a thread. */
struct thread_head {
	uint64_t generation; /* generation of the commands + 1; 0: unset */
	uint32_t pid, tid;
	uint8_t layout; /* put_thread()'s layout bits */
	uint8_t length;
	char text[45];
};

/* The text " cpu-clock: " of an event, and which fields its samples show. */
struct event_head {
	const char *name;
	char *text;
	size_t length;
	uint32_t fields;
	bool shows_stacks;
	struct tally_frame_lines *lines;
};

/* Replaces TALLY_FIELD_TIME when times are not in the default format.  No field has this bit. */
static const uint32_t FIELD_OTHER_TIME = UINT32_C(1) << 31;

enum {
	THREAD_HEADS = 64,
	HEAD_NUMBERS_MAX = 128,
	LAYOUTS = 32 /* combinations of enum tally_frame_parts */
};

struct tally_script {
	struct tally_recording *recording;
	struct tally_frame_lines *lines[LAYOUTS];
	struct tally_event_text trace;
	struct { struct event_head *items; size_t count, capacity; } events;
	struct thread_head threads[THREAD_HEADS]; /* hashed by tid */
	int name_width;
	/* rows of fields at each spot */
	struct {
		const struct tally_script_row *items[TALLY_SCRIPT_ROWS_MAX];
		size_t count;
		uint32_t bits;
	} spots[TALLY_SPOT_END + 1];
	size_t source_width; /* width of the widest data_src so far */
	uint64_t wall_offset; /* field tod: wall-clock time at a sample time of 0 */
	struct tally_script_fields fields;
	struct tally_script_clock usual_clock;
	struct {
		/* state of all mappings, and the process, that these are valid for */
		uint64_t generation;
		uint32_t pid;
		uint64_t user, kernel; /* tally_frame_space() of sampled addresses */
	} spaces;
};

/* ---- the line's head ----------------------------------------------------- */

static struct tally_frame_lines *lines_of(struct tally_script *script, uint32_t fields, bool stacks)
{
	unsigned parts = (fields & TALLY_FIELD_SYMBOL ? TALLY_FRAME_SYMBOL : 0) |
			 (fields & TALLY_FIELD_OFFSET ? TALLY_FRAME_OFFSET : 0) |
			 (fields & TALLY_FIELD_OBJECT ? TALLY_FRAME_OBJECT : 0) |
			 (fields & TALLY_FIELD_LINE ? TALLY_FRAME_SOURCE : 0);
	/* Without a stack, the source line follows on the same line. */
	parts |= fields & TALLY_FIELD_LINE && !stacks ? TALLY_FRAME_ALONE : 0;
	if (script->lines[parts])
		return script->lines[parts];
	struct tally_frame_lines *lines = calloc(1, sizeof(*lines));
	if (!lines || tally_frame_lines_init(lines, &script->recording->names, parts) < 0) {
		free(lines);
		return NULL;
	}
	return script->lines[parts] = lines;
}

static bool shows_other_times(const struct tally_script_clock *clock)
{
	return clock->nanoseconds || clock->since_first || clock->since_last;
}

/* Columns follow the widest name. A pipe may later announce more events or rename some. */
static int make_event_heads(struct tally_script *script, const struct tally_recorded_event *events,
			    size_t count, struct tally_error *err)
{
	while (script->events.count < count)
		if (tally_vector_push(&script->events, (struct event_head){ 0 }) < 0)
			return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		int length = (int)strlen(events[i].name);
		if (length > script->name_width)
			script->name_width = length;
	}
	for (size_t i = 0; i < count; i++) {
		struct tally_buffer text = { 0 };
		struct event_head head = { .name = events[i].name };
		int result = tally_script_fields_of(&script->fields, &events[i], &head.fields, err);
		if (!result && head.fields & TALLY_FIELD_WALL_TIME)
			result = tally_script_wall_offset(script->recording, &script->wall_offset,
							  err);
		if (result < 0)
			return result;
		if (shows_other_times(script->fields.clock) && head.fields & TALLY_FIELD_TIME)
			head.fields ^= TALLY_FIELD_TIME | FIELD_OTHER_TIME;
		head.shows_stacks = head.fields & TALLY_FIELD_IP && !script->fields.no_stacks &&
				    tally_recording_has_stacks(&events[i].attr);
		head.lines = lines_of(script, head.fields, head.shows_stacks);
		tally_put_name_right(&text, events[i].name, (size_t)script->name_width);
		tally_buffer_text(&text, ": ");
		if (text.failed || !head.lines) {
			tally_buffer_release(&text);
			return -ENOMEM;
		}
		head.text = text.bytes;
		if (head.fields & TALLY_FIELD_EVENT)
			head.length = text.length;
		else
			head.length = 0;
		free(script->events.items[i].text);
		script->events.items[i] = head;
	}
	return 0;
}

enum { SHOWS_COMM = 1, SHOWS_PID = 2, SHOWS_TID = 4, IS_NARROW = 8 };

static uint8_t thread_layout(const struct event_head *head, const struct tally_sample *sample)
{
	unsigned layout = (head->fields & TALLY_FIELD_COMM ? SHOWS_COMM : 0) |
			  (head->shows_stacks ? IS_NARROW : 0);
	if (sample->type & TALLY_SAMPLE_TID)
		layout |= (head->fields & TALLY_FIELD_PID ? SHOWS_PID : 0) |
			  (head->fields & TALLY_FIELD_TID ? SHOWS_TID : 0);
	return (uint8_t)layout;
}

/* Puts the command of `pid` and `tid`, and the sample's numbers. */
static void put_thread(struct tally_script *script, uint32_t pid, uint32_t tid,
		       const struct tally_sample *sample, uint8_t layout, struct tally_buffer *out)
{
	enum { COMM_WIDTH = 16 };
	char buffer[16];
	if (layout & SHOWS_COMM) {
		tally_put_name_right(out,
				     tally_tasks_comm(&script->recording->tasks, pid, tid, buffer),
				     layout & IS_NARROW ? 0 : COMM_WIDTH);
		tally_buffer_char(out, ' ');
	}
	if (layout & SHOWS_PID && layout & SHOWS_TID)
		tally_buffer_printf(out, "%5d/%-5d ", (int)sample->pid, (int)sample->tid);
	else if (layout & (SHOWS_PID | SHOWS_TID))
		tally_buffer_printf(out, "%5d ",
				    (int)(layout & SHOWS_PID ? sample->pid : sample->tid));
}

static const struct thread_head *make_thread_head(struct tally_script *script,
						  struct thread_head *head,
						  const struct tally_sample *sample, uint8_t layout,
						  struct tally_buffer *out)
{
	size_t before = out->length;
	put_thread(script, sample->pid, sample->tid, sample, layout, out);
	head->generation = 0;
	size_t length = out->length - before;
	if (out->failed || length > sizeof(head->text))
		return NULL;
	*head = (struct thread_head){ .generation = script->recording->tasks.comm_generation + 1,
				      .pid = sample->pid,
				      .tid = sample->tid,
				      .layout = layout,
				      .length = (uint8_t)length };
	if (length)
		memcpy(head->text, out->bytes + before, length);
	out->length = before;
	return head;
}

static char *put_seldom(const struct tally_script *script, char *at,
			const struct tally_record *record, uint32_t fields)
{
	const struct tally_sample *sample = &record->sample;
	struct tally_script_clock *clock = script->fields.clock;
	if (fields & TALLY_FIELD_MISC) {
		tally_script_misc(at, &record->header);
		at += TALLY_SCRIPT_MISC_SIZE;
	}
	if (fields & TALLY_FIELD_WALL_TIME) {
		at = tally_script_wall_time(at, sample->time + script->wall_offset,
					    clock->nanoseconds);
		*at++ = ' ';
	}
	if (sample->type & TALLY_SAMPLE_TIME && fields & FIELD_OTHER_TIME)
		at = tally_script_time(clock, at, sample->time);
	return at;
}

/* Puts "[003] 12345.678901: 10000 ". */
static char *put_numbers(const struct tally_script *script, char *at,
			 const struct tally_recorded_event *event,
			 const struct tally_record *record, uint32_t fields)
{
	const struct tally_sample *sample = &record->sample;
	if (sample->type & TALLY_SAMPLE_CPU && fields & TALLY_FIELD_CPU) {
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
	if (fields & (TALLY_FIELD_MISC | TALLY_FIELD_WALL_TIME | FIELD_OTHER_TIME))
		at = put_seldom(script, at, record, fields);
	if (sample->type & TALLY_SAMPLE_TIME && fields & TALLY_FIELD_TIME) {
		at = tally_script_seconds(at, sample->time);
		memcpy(at, ": ", 2);
		at += 2;
	}
	if (fields & TALLY_FIELD_PERIOD) {
		bool has_period = sample->type & TALLY_SAMPLE_PERIOD;
		at = tally_put_decimal(at, has_period ? sample->period : event->attr.sample_period,
				       10);
		*at++ = ' ';
	}
	return at;
}

static int put_head(struct tally_script *script, const struct tally_recorded_event *event,
		    const struct event_head *name, const struct tally_record *record,
		    struct tally_buffer *out)
{
	const struct tally_sample *sample = &record->sample;
	struct thread_head *known = &script->threads[sample->tid % THREAD_HEADS];
	const struct thread_head *head = known;
	uint8_t layout = thread_layout(name, sample);
	if (known->tid != sample->tid || known->pid != sample->pid || known->layout != layout ||
	    known->generation != script->recording->tasks.comm_generation + 1)
		head = make_thread_head(script, known, sample, layout, out);
	char *at = tally_buffer_room(out, sizeof(known->text) + HEAD_NUMBERS_MAX + name->length);
	if (!at)
		return -ENOMEM;
	if (head) {
		memcpy(at, head->text, sizeof(head->text)); /* a copy of fixed size is faster */
		at += head->length;
	}
	at = put_numbers(script, at, event, record, name->fields);
	memcpy(at, name->text, name->length);
	at += name->length;
	out->length = (size_t)(at - out->bytes);
	return 0;
}

/* ---- addresses ----------------------------------------------------------- */

static void update_spaces(struct tally_script *script, uint32_t pid)
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
	if (kernel)
		return script->spaces.kernel;
	return script->spaces.user;
}

static int put_line(struct tally_frame_lines *lines, uint32_t pid, uint64_t space, uint64_t address,
		    struct tally_buffer *out)
{
	const struct tally_frame_line *line = tally_frame_line(lines, pid, space, address);
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
	/* Most lines have 40 to 120 bytes: two copies of fixed size beat one of variable size. */
	memcpy(at, text, 64);
	if (length > 64)
		memcpy(at + 64, text + 64, 64);
	if (length > 128)
		memcpy(at + 128, text + 128, length - 128);
	out->length += length;
	return 0;
}

/* Puts a chain that the sample contains, address by address. */
static int put_words(struct tally_script *script, struct tally_frame_lines *lines,
		     const struct tally_record *record, bool kernel, struct tally_buffer *out)
{
	const struct tally_sample *sample = &record->sample;
	struct tally_chain_walk walk = tally_chain_walk_of(sample, kernel);
	uint64_t address;
	size_t before = out->length;
	while (tally_chain_walk_next(&walk, &address)) {
		uint64_t space = space_of(script, walk.kernel) | (walk.is_return && address);
		if (put_line(lines, script->spaces.pid, space, address, out) < 0)
			return -ENOMEM;
	}
	if (out->length == before && sample->type & TALLY_SAMPLE_IP)
		return put_line(lines, script->spaces.pid, space_of(script, kernel), sample->ip,
				out);
	return 0;
}

/* Puts a chain whose frames are unwound from a copy of the stack. */
static int put_unwound(struct tally_script *script, struct tally_frame_lines *lines,
		       const struct tally_raw_record *raw, const struct tally_record *record,
		       struct tally_buffer *out)
{
	if (tally_recording_addresses(script->recording, raw, record) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < script->recording->chain.count; i++) {
		const struct tally_chain_frame *frame = &script->recording->chain.items[i];
		uint64_t space = space_of(script, frame->kernel) | frame->before;
		if (put_line(lines, script->spaces.pid, space, frame->address, out) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Puts " 7f3c11a0 main+0x20 (/usr/bin/program)". */
static int put_leaf(struct tally_script *script, struct tally_frame_lines *lines,
		    const struct tally_sample *sample, bool kernel, struct tally_buffer *out)
{
	const struct tally_frame_line *line =
		tally_frame_line(lines, script->spaces.pid, space_of(script, kernel), sample->ip);
	char *at = NULL;
	if (line)
		at = tally_buffer_room(out, line->length + 32);
	if (!at)
		return -ENOMEM;
	*at++ = ' ';
	at = tally_put_hexadecimal(at, sample->ip, 16);
	/* without the newline: more fields follow on this line */
	size_t length = line->length - line->symbol - 1;
	memcpy(at, line->text + line->symbol, length);
	at += length;
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

static void put_cell(const struct tally_script_row *row, const struct tally_script_cell *cell,
		     struct tally_buffer *out)
{
	size_t before = out->length;
	tally_script_row_text(row, cell, out);
	if (!row->has_lines)
		tally_clean_name_from(out, before);
}

static void put_spot(const struct tally_script *script, enum tally_script_spot spot,
		     const struct tally_script_cell *cell, struct tally_buffer *out)
{
	for (size_t i = 0; cell->shown & script->spots[spot].bits && i < script->spots[spot].count;
	     i++)
		if (cell->shown & script->spots[spot].items[i]->bit)
			put_cell(script->spots[spot].items[i], cell, out);
}

static int put_sample(struct tally_script *script, const struct tally_raw_record *raw,
		      const struct tally_record *record, const struct event_head *head,
		      struct tally_buffer *out)
{
	const struct tally_sample *sample = &record->sample;
	bool kernel = tally_space_of(record->header.misc, 0).kernel;
	uint32_t fields = head->fields;
	const struct tally_script_cell cell = { .recording = script->recording,
						.event = raw->event,
						.record = record,
						.shown = fields,
						.source_width = &script->source_width };
	int result = 0;
	if (put_head(script, raw->event, head, record, out) < 0)
		return -ENOMEM;
	/* always blank: only decoders of instruction traces have flags */
	if (fields & TALLY_FIELD_FLAGS)
		tally_buffer_printf(out, "  %-21s ", "");
	if (fields & TALLY_FIELD_TRACE) {
		size_t before = out->length;
		tally_event_text_put(&script->trace, raw->event,
				     (size_t)(head - script->events.items), sample, out);
		tally_clean_line_from(out, before);
	}
	put_spot(script, TALLY_SPOT_BEFORE, &cell, out);
	if (head->shows_stacks) {
		end_line(out);
		if (sample->stack)
			result = put_unwound(script, head->lines, raw, record, out);
		else
			result = put_words(script, head->lines, record, kernel, out);
	} else if (fields & TALLY_FIELD_IP && sample->type & TALLY_SAMPLE_IP) {
		result = put_leaf(script, head->lines, sample, kernel, out);
	}
	put_spot(script, TALLY_SPOT_AFTER, &cell, out);
	put_spot(script, TALLY_SPOT_END, &cell, out);
	end_line(out);
	if (result < 0 || out->failed || script->trace.failed)
		return -ENOMEM;
	return 0;
}

/* Called for each sample. */
__attribute__((always_inline)) static inline int find_event_head(
	struct tally_script *script, const struct tally_recorded_event *event,
	const struct event_head **head, struct tally_error *err)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(script->recording->data,
									  &count);
	size_t index = (size_t)(event - events);
	int result = 0;
	if (script->events.count != count || script->events.items[index].name != event->name)
		result = make_event_heads(script, events, count, err);
	*head = &script->events.items[index];
	return result;
}

int tally_script_sample(struct tally_script *script, const struct tally_raw_record *raw,
			const struct tally_record *record, struct tally_buffer *out,
			struct tally_error *err)
{
	const struct event_head *head;
	update_spaces(script, tally_space_of(record->header.misc, record->sample.pid).pid);
	int result = find_event_head(script, raw->event, &head, err);
	if (!result && head->fields)
		result = put_sample(script, raw, record, head, out);
	if (result == -ENOMEM)
		return tally_error_set(err, -ENOMEM, "out of memory");
	return result;
}

int tally_script_head(struct tally_script *script, const struct tally_raw_record *raw,
		      const struct tally_record *record, uint32_t pid, uint32_t tid,
		      struct tally_buffer *out, struct tally_error *err)
{
	const struct tally_sample_id *id = &record->sample_id;
	const struct event_head *head;
	struct tally_record shown = { .header = record->header };
	int result = find_event_head(script, raw->event, &head, err);
	if (result < 0)
		return result == -ENOMEM ? tally_error_set(err, -ENOMEM, "out of memory") : result;
	shown.sample.type = raw->event->attr.sample_type;
	shown.sample.pid = pid;
	shown.sample.tid = tid;
	if (id->present) {
		shown.sample.pid = id->pid;
		shown.sample.tid = id->tid;
	}
	shown.sample.cpu = id->cpu;
	shown.sample.time = id->time;
	put_thread(script, pid, tid, &shown.sample, thread_layout(head, &shown.sample), out);
	if (head->fields & TALLY_FIELD_CPU && shown.sample.type & TALLY_SAMPLE_CPU)
		tally_buffer_printf(out, "[%03d] ", (int)id->cpu);
	char *at = tally_buffer_room(out, HEAD_NUMBERS_MAX);
	if (!at)
		return tally_error_set(err, -ENOMEM, "out of memory");
	uint32_t fields = head->fields;
	if (fields & TALLY_FIELD_TIME)
		fields |= FIELD_OTHER_TIME;
	at = put_seldom(script, at, &shown, fields);
	out->length = (size_t)(at - out->bytes);
	return 0;
}

/* ---- its life ------------------------------------------------------------ */

int tally_script_new(struct tally_recording *recording, const struct tally_script_fields *fields,
		     struct tally_script **out, struct tally_error *err)
{
	struct tally_script *script = calloc(1, sizeof(*script));
	size_t count;
	if (!script)
		return tally_error_set(err, -ENOMEM, "out of memory");
	const struct tally_recorded_event *events = tally_perfdata_events(recording->data, &count);
	script->recording = recording;
	script->trace.recording = recording;
	script->spaces.generation = UINT64_MAX;
	if (fields)
		script->fields = *fields;
	else
		tally_script_fields_init(&script->fields, TALLY_SCRIPT_TEXT);
	if (!script->fields.clock)
		script->fields.clock = &script->usual_clock;
	for (unsigned spot = TALLY_SPOT_BEFORE; spot <= TALLY_SPOT_END; spot++) {
		script->spots[spot].count = tally_script_spot_rows(spot, script->spots[spot].items);
		for (size_t i = 0; i < script->spots[spot].count; i++)
			script->spots[spot].bits |= script->spots[spot].items[i]->bit;
	}
	int result = make_event_heads(script, events, count, err);
	if (result < 0) {
		tally_script_free(script);
		if (result == -ENOMEM)
			return tally_error_set(err, -ENOMEM, "out of memory");
		return result;
	}
	*out = script;
	return 0;
}

void tally_script_free(struct tally_script *script)
{
	if (!script)
		return;
	for (size_t i = 0; i < script->events.count; i++)
		free(script->events.items[i].text);
	tally_vector_release(&script->events);
	for (unsigned i = 0; i < LAYOUTS; i++) {
		if (script->lines[i])
			tally_frame_lines_release(script->lines[i]);
		free(script->lines[i]);
	}
	tally_event_text_release(&script->trace);
	free(script);
}
