/* Walks the same table of fields for CSV and JSON.  The texts of addresses come from frame lines,
 * with one set of lines for each combination of parts. */
#include "output/output.h"

#include "base/buffer.h"
#include "base/csv.h"
#include "base/json.h"
#include "base/vector.h"
#include "output/output_internal.h"
#include "recording/recording.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	FRAMES = TALLY_FIELD_IP | TALLY_FIELD_SYMBOL | TALLY_FIELD_OBJECT | TALLY_FIELD_LINE,
	LAYOUTS = 32 /* combinations of frame parts */
};

struct tally_script_json {
	struct tally_recording *recording;
	struct tally_script_fields fields;
	/* fields shown, by event; 0: none, or not computed yet */
	struct { uint32_t *items; size_t count, capacity; } shown;
	const struct tally_script_row *rows[TALLY_SCRIPT_ROWS_MAX]; /* columns */
	size_t row_count;
	uint32_t columns; /* CSV: fields that any type of event shows */
	struct tally_frame_lines stacks; /* CSV: names of whole stacks */
	/* by the parts that are shown; CSV: lines for the sampled address */
	struct tally_frame_lines *frames[LAYOUTS];
	struct tally_event_text trace;
	struct tally_buffer said; /* a tracepoint's text */
	struct tally_buffer text; /* a cell's text */
	uint64_t wall_offset;
};

/* ---- frames -------------------------------------------------------------- */

static unsigned parts_of(uint32_t fields)
{
	return (fields & TALLY_FIELD_SYMBOL ? TALLY_FRAME_SYMBOL : 0) |
	       (fields & TALLY_FIELD_OFFSET ? TALLY_FRAME_OFFSET : 0) |
	       (fields & TALLY_FIELD_OBJECT ? TALLY_FRAME_OBJECT : 0) |
	       (fields & TALLY_FIELD_LINE ? TALLY_FRAME_SOURCE : 0);
}

/* Returns the lines with the parts that `fields` select, in the format `kind`. */
static struct tally_frame_lines *frames_of(struct tally_script_json *script, uint32_t fields,
					   unsigned kind)
{
	bool shows_address = fields & TALLY_FIELD_IP;
	unsigned parts = parts_of(fields), place = shows_address ? parts | LAYOUTS / 2 : parts;
	if (!script->frames[place]) {
		struct tally_frame_lines *lines = calloc(1, sizeof(*lines));
		if (!lines ||
		    tally_frame_lines_init(lines, &script->recording->names,
					   parts | kind |
						   (shows_address ? TALLY_FRAME_ADDRESS : 0)) < 0) {
			free(lines);
			return NULL;
		}
		script->frames[place] = lines;
	}
	return script->frames[place];
}

static int put_frame(struct tally_script_json *script, struct tally_frame_lines *lines,
		     uint32_t pid, const struct tally_chain_frame *frame, struct tally_buffer *out)
{
	const struct tally_tasks *tasks = &script->recording->tasks;
	uint64_t maps = tasks->kernel.generation;
	if (!frame->kernel)
		maps = tally_tasks_generation(tasks, pid);
	const struct tally_frame_line *line = tally_frame_line(
		lines, pid, tally_frame_space(maps, frame->kernel, frame->before), frame->address);
	if (!line)
		return -ENOMEM;
	tally_buffer_append(out, line->text, line->length);
	return 0;
}

/* Puts the addresses that were just computed, the leaf first, without the last separator. */
static int put_frames(struct tally_script_json *script, struct tally_frame_lines *lines,
		      uint32_t pid, struct tally_buffer *out)
{
	size_t before = out->length;
	for (size_t i = 0; i < script->recording->chain.count; i++)
		if (put_frame(script, lines, pid, &script->recording->chain.items[i], out) < 0)
			return -ENOMEM;
	if (out->length > before)
		out->bytes[--out->length] = '\0';
	return 0;
}

static bool is_there(const struct tally_script_row *row, const struct tally_sample *sample)
{
	return !row->sample_type || sample->type & row->sample_type;
}

/* ---- CSV ----------------------------------------------------------------- */

static void put_cell(struct tally_script_json *script, const struct tally_script_row *row,
		     const struct tally_script_cell *cell, struct tally_buffer *out)
{
	if (row->signed_number) {
		tally_buffer_printf(out, "%" PRId64, row->signed_number(cell));
	} else if (row->number) {
		tally_buffer_printf(out, "%" PRIu64, row->number(cell));
	} else {
		tally_buffer_clear(&script->text);
		tally_script_column_text(row, cell, &script->text);
		tally_csv_quote(out, tally_buffer_string(&script->text), ",");
	}
}

/* Puts the sampled address's requested cells, each followed by a comma. */
static int put_place(struct tally_script_json *script, uint32_t shown,
		     const struct tally_sample *sample, struct tally_buffer *out)
{
	uint32_t asked = script->columns & (FRAMES | TALLY_FIELD_OFFSET);
	bool is_known = script->recording->chain.count && shown & FRAMES;
	if (asked & TALLY_FIELD_IP && is_known && sample->type & TALLY_SAMPLE_IP)
		tally_buffer_printf(out, "0x%" PRIx64 ",", sample->ip);
	else if (asked & TALLY_FIELD_IP)
		tally_buffer_char(out, ',');
	asked &= ~(uint32_t)TALLY_FIELD_IP;
	struct tally_frame_lines *lines = NULL;
	if (is_known && asked)
		lines = frames_of(script, asked, TALLY_FRAME_CELLS);
	if (lines)
		return put_frame(script, lines, sample->pid, &script->recording->chain.items[0],
				 out);
	for (int i = __builtin_popcount(asked); i > 0; i--)
		tally_buffer_char(out, ',');
	if (is_known && asked)
		return -ENOMEM;
	return 0;
}

static int put_csv(struct tally_script_json *script, uint32_t shown,
		   const struct tally_script_cell *cell, struct tally_buffer *out)
{
	const struct tally_sample *sample = &cell->record->sample;
	int result = 0;
	for (size_t i = 0; i < script->row_count; i++) {
		const struct tally_script_row *row = script->rows[i];
		if (!(script->columns & row->bit))
			continue;
		if (shown & row->bit && is_there(row, sample))
			put_cell(script, row, cell, out);
		tally_buffer_char(out, ',');
	}
	if (shown & TALLY_FIELD_STACK) {
		tally_buffer_clear(&script->text);
		result = put_frames(script, &script->stacks, sample->pid, &script->text);
		tally_csv_quote(out, tally_buffer_string(&script->text), ",");
	}
	if (script->columns & TALLY_FIELD_STACK)
		tally_buffer_char(out, ',');
	if (!result)
		result = put_place(script, shown, sample, out);
	if (!out->failed && out->length)
		out->length--; /* remove the last comma */
	tally_buffer_text(out, "\r\n");
	return result;
}

void tally_script_json_start(const struct tally_script_json *script, struct tally_buffer *out)
{
	static const struct { uint32_t field; const char *name;
	} places[] = {
		{ TALLY_FIELD_STACK, "stack" },   { TALLY_FIELD_IP, "ip" },
		{ TALLY_FIELD_SYMBOL, "symbol" }, { TALLY_FIELD_OFFSET, "offset" },
		{ TALLY_FIELD_OBJECT, "object" }, { TALLY_FIELD_LINE, "srcline" },
	};
	size_t before = out->length;
	for (size_t i = 0; i < script->row_count; i++)
		if (script->columns & script->rows[i]->bit)
			tally_buffer_printf(out, "%s,", script->rows[i]->column);
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (script->columns & places[i].field)
			tally_buffer_printf(out, "%s,", places[i].name);
	if (out->length > before) {
		out->length--;
		tally_buffer_text(out, "\r\n");
	}
}

/* ---- JSON ---------------------------------------------------------------- */

static int put_json(struct tally_script_json *script, uint32_t shown,
		    const struct tally_script_cell *cell, struct tally_buffer *out)
{
	const struct tally_sample *sample = &cell->record->sample;
	struct tally_json json = { .out = out };
	int result = 0;
	tally_json_object(&json, NULL);
	for (size_t i = 0; i < script->row_count; i++) {
		const struct tally_script_row *row = script->rows[i];
		if (!(shown & row->bit) || !is_there(row, sample))
			continue;
		if (row->signed_number) {
			tally_json_i64(&json, row->column, row->signed_number(cell));
		} else if (row->number) {
			tally_json_u64(&json, row->column, row->number(cell));
		} else {
			tally_buffer_clear(&script->text);
			tally_script_column_text(row, cell, &script->text);
			tally_json_text(&json, row->column, tally_buffer_string(&script->text));
		}
	}
	if (shown & FRAMES) {
		struct tally_frame_lines *lines = frames_of(script, shown, TALLY_FRAME_JSON);
		tally_json_array(&json, "frames");
		if (lines)
			result = put_frames(script, lines, sample->pid, out);
		else
			result = -ENOMEM;
		tally_json_end(&json);
	}
	tally_json_end(&json);
	return result;
}

/* ---- samples ------------------------------------------------------------- */

static int show_events(struct tally_script_json *script, const struct tally_recorded_event *events,
		       size_t count, struct tally_error *err)
{
	while (script->shown.count < count)
		if (tally_vector_push(&script->shown, 0) < 0)
			return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		int result = tally_script_fields_of(&script->fields, &events[i],
						    &script->shown.items[i], err);
		if (!result && script->shown.items[i] & TALLY_FIELD_WALL_TIME)
			result = tally_script_wall_offset(script->recording, &script->wall_offset,
							  err);
		if (result < 0)
			return result;
	}
	return 0;
}

int tally_script_json_sample(struct tally_script_json *script, const struct tally_raw_record *raw,
			     const struct tally_record *record, struct tally_buffer *out,
			     struct tally_error *err)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(script->recording->data,
									  &count);
	size_t index = (size_t)(raw->event - events);
	int result = 0;
	if (script->shown.count != count)
		result = show_events(script, events, count, err);
	uint32_t shown;
	if (result < 0)
		shown = 0;
	else
		shown = script->shown.items[index];
	tally_buffer_clear(&script->said);
	if (shown & TALLY_FIELD_TRACE)
		tally_event_text_put(&script->trace, raw->event, index, &record->sample,
				     &script->said);
	if (shown & (FRAMES | TALLY_FIELD_STACK))
		result = tally_recording_addresses(script->recording, raw, record);
	if (script->fields.no_stacks && script->recording->chain.count > 1)
		script->recording->chain.count = 1;
	const struct tally_script_cell cell = { .recording = script->recording,
						.event = raw->event,
						.record = record,
						.trace = tally_buffer_string(&script->said),
						.wall_offset = script->wall_offset,
						.nanoseconds = script->fields.clock &&
							       script->fields.clock->nanoseconds };
	if (result >= 0 && shown && script->fields.layout == TALLY_SCRIPT_CSV)
		result = put_csv(script, shown, &cell, out);
	else if (result >= 0 && shown)
		result = put_json(script, shown, &cell, out);
	if (out->failed || script->said.failed || script->text.failed || script->trace.failed)
		result = -ENOMEM;
	if (result == -ENOMEM)
		return tally_error_set(err, result, "out of memory");
	if (result < 0)
		return result;
	return 0;
}

/* ---- its life ------------------------------------------------------------ */

int tally_script_json_new(struct tally_recording *recording,
			  const struct tally_script_fields *fields, struct tally_script_json **out,
			  struct tally_error *err)
{
	struct tally_script_json *script = calloc(1, sizeof(*script));
	size_t count;
	if (!script ||
	    tally_frame_lines_init(&script->stacks, &recording->names, TALLY_FRAME_NAMES) < 0) {
		free(script);
		return tally_error_set(err, -ENOMEM, "out of memory");
	}
	script->recording = script->trace.recording = recording;
	script->fields = *fields;
	script->row_count = tally_script_columns(script->rows);
	const struct tally_recorded_event *events = tally_perfdata_events(recording->data, &count);
	int result = show_events(script, events, count, err);
	if (result < 0) {
		tally_script_json_free(script);
		if (result == -ENOMEM)
			return tally_error_set(err, result, "out of memory");
		return result;
	}
	/* Columns don't depend on the events: a pipe's events are not known yet. */
	for (unsigned type = 0; fields->layout == TALLY_SCRIPT_CSV && type < TALLY_SCRIPT_TYPES;
	     type++)
		script->columns |= fields->types[type].shown;
	*out = script;
	return 0;
}

void tally_script_json_free(struct tally_script_json *script)
{
	if (!script)
		return;
	for (unsigned i = 0; i < LAYOUTS; i++) {
		if (script->frames[i])
			tally_frame_lines_release(script->frames[i]);
		free(script->frames[i]);
	}
	tally_frame_lines_release(&script->stacks);
	tally_event_text_release(&script->trace);
	tally_vector_release(&script->shown);
	tally_buffer_release(&script->said);
	tally_buffer_release(&script->text);
	free(script);
}
