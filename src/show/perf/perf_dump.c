/* perf script -D: each record's bytes, then a line with its type and contents.  Of samples, perf's
 * further lines are those of the call chain, the thread and the object. */
#include "perf/perf.h"

#include "abi/abi.h"
#include "base/reader.h"
#include "base/terminal.h"
#include "output/output.h"
#include "recording/recording.h"

#include <inttypes.h>
#include <string.h>

enum { ROW = 16 };

static void put_row(const uint8_t *bytes, size_t at, size_t size, struct tally_buffer *out)
{
	char text[ROW + 1];
	tally_buffer_printf(out, ".  %04zx: ", at);
	for (size_t i = 0; i < ROW; i++) {
		bool is_there = at + i < size;
		text[i] = ' ';
		if (is_there) {
			bool is_printable = bytes[at + i] >= ' ' && bytes[at + i] <= '~';
			tally_buffer_printf(out, " %02x", bytes[at + i]);
			text[i] = is_printable ? (char)bytes[at + i] : '.';
		} else {
			tally_buffer_text(out, "   ");
		}
	}
	text[ROW] = '\0';
	tally_buffer_printf(out, "  %s\n", text);
}

static void put_bytes(const struct tally_raw_record *raw, const char *path, uint32_t type,
		      struct tally_buffer *out)
{
	tally_buffer_printf(out, "\n%#" PRIx64 "@", raw->file_offset);
	tally_put_name(out, path);
	tally_buffer_printf(out, " [%#zx]: event: %u\n.\n. ... raw event: size %zu bytes\n",
			    raw->size, type, raw->size);
	for (size_t at = 0; at < raw->size && !out->failed; at += ROW)
		put_row(raw->bytes, at, raw->size, out);
	tally_buffer_char(out, '\n');
}

/* Puts the CPU and the time, as far as any of the events has them. */
static void put_stamp(const struct tally_recording *recording, const struct tally_raw_record *raw,
		      const struct tally_record *record, struct tally_buffer *out)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(recording->data, &count);
	bool is_sample = record->header.type == TALLY_RECORD_SAMPLE;
	bool is_tools = record->header.type >= TALLY_RECORD_USER_START;
	uint64_t fields = 0, own = 0, time = UINT64_MAX;
	uint32_t cpu = UINT32_MAX; /* perf's, of an event without it */
	if (is_sample)
		own = record->sample.type;
	else if (raw->event)
		own = raw->event->attr.sample_type;
	if (own & TALLY_SAMPLE_CPU)
		cpu = is_sample ? record->sample.cpu : record->sample_id.cpu;
	if (own & TALLY_SAMPLE_TIME)
		time = is_sample ? record->sample.time : record->sample_id.time;
	for (size_t i = 0; i < count; i++)
		fields |= events[i].attr.sample_type;
	if (!is_sample && !is_tools &&
	    !(raw->event && raw->event->attr.flags & TALLY_ATTR_SAMPLE_ID_ALL)) {
		tally_buffer_text(out, "-1 -1 ");
		return;
	}
	if (fields & TALLY_SAMPLE_CPU)
		tally_buffer_printf(out, "%u ", is_tools ? 0 : cpu);
	if (fields & TALLY_SAMPLE_TIME)
		tally_buffer_printf(out, "%" PRIu64 " ", is_tools ? 0 : time);
}

static void put_sample(struct tally_recording *recording, const struct tally_record *record,
		       struct tally_buffer *out)
{
	const struct tally_sample *sample = &record->sample;
	const struct tally_space space = tally_space_of(record->header.misc, sample->pid);
	struct tally_place place = tally_place_of(&recording->tasks, space.pid, space.kernel,
						  sample->ip);
	uint32_t function = tally_names_function(&recording->names, &place, NULL);
	char map[TALLY_PERF_MAP_PATH_BYTES], comm[16];
	const char *object = "[unknown]";
	if (function != UINT32_MAX)
		object = tally_names_mapped_object(&recording->names, function, map);
	if (!strcmp(object, "[unknown]"))
		object = "<not found>";
	tally_buffer_printf(
		out, "(IP, 0x%x): %d/%d: %#" PRIx64 " period: %" PRIu64 " addr: %#" PRIx64 "\n",
		record->header.misc, (int)sample->pid, (int)sample->tid, sample->ip, sample->period,
		sample->type & TALLY_SAMPLE_ADDR ? sample->addr : 0);
	if (sample->type & TALLY_SAMPLE_CALLCHAIN) {
		tally_buffer_printf(out, "... FP chain: nr:%" PRIu64 "\n", sample->chain_length);
		for (uint64_t i = 0; i < sample->chain_length && !out->failed; i++)
			tally_buffer_printf(out, "..... %2" PRIu64 ": %016" PRIx64 "\n", i,
					    sample->chain[i]);
	}
	tally_buffer_text(out, " ... thread: ");
	tally_put_name(out, tally_tasks_comm(&recording->tasks, sample->pid, sample->tid, comm));
	tally_buffer_printf(out, ":%d\n ...... dso: ", (int)sample->tid);
	tally_put_name(out, object);
	tally_buffer_char(out, '\n');
}

static void put_event_update(struct tally_reader *reader, struct tally_buffer *out)
{
	enum { UNIT, SCALE, NAME };
	uint64_t type = tally_reader_u64(reader), id = tally_reader_u64(reader);
	tally_buffer_printf(out, "\n... id:    %" PRIu64 "\n", id);
	size_t left = tally_reader_left(reader);
	if (type == SCALE) {
		uint64_t word = tally_reader_u64(reader);
		double scale;
		memcpy(&scale, &word, sizeof(scale));
		tally_buffer_printf(out, "... scale: %f\n", scale);
	} else if (left && (type == UNIT || type == NAME)) {
		const char *text = tally_reader_bytes(reader, left);
		tally_buffer_printf(out, "... %s ", type == UNIT ? "unit: " : "name: ");
		size_t before = out->length;
		tally_buffer_append(out, text, strnlen(text, left));
		tally_clean_name_from(out, before);
		tally_buffer_char(out, '\n');
	}
}

static void put_thread_map(struct tally_reader *reader, struct tally_buffer *out)
{
	uint64_t count = tally_reader_u64(reader);
	tally_buffer_printf(out, " nr: %" PRIu64 " thread%s: ", count, count == 1 ? "" : "s");
	for (uint64_t i = 0; i < count && !reader->failed && !out->failed; i++) {
		uint64_t pid = tally_reader_u64(reader);
		tally_reader_skip(reader, 16); /* its command */
		tally_buffer_printf(out, "%s%" PRId64, i ? ", " : "", (int64_t)pid);
	}
	tally_buffer_char(out, '\n');
}

/* Puts the contents of a recorder's record, for the types that perf shows them of. */
static void put_tools(const struct tally_raw_record *raw, uint32_t type, struct tally_buffer *out)
{
	struct tally_reader reader;
	tally_reader_init(&reader, raw->bytes, raw->size, false);
	tally_reader_skip(&reader, sizeof(struct tally_record_header));
	if (type == TALLY_RECORD_ID_INDEX) {
		uint64_t count = tally_reader_u64(&reader);
		tally_buffer_printf(out, " nr: %" PRIu64 "\n", count);
		for (uint64_t i = 0; i < count && !reader.failed && !out->failed; i++) {
			uint64_t id = tally_reader_u64(&reader), index = tally_reader_u64(&reader);
			uint64_t cpu = tally_reader_u64(&reader), tid = tally_reader_u64(&reader);
			tally_buffer_printf(out,
					    " ... id: %" PRIu64 "  idx: %" PRIu64 "  cpu: %" PRId64
					    "  tid: %" PRId64 "\n",
					    id, index, (int64_t)cpu, (int64_t)tid);
		}
	} else if (type == TALLY_RECORD_CPU_MAP) {
		tally_buffer_text(out, ": ");
		tally_cpu_map_text(&reader, out);
		tally_buffer_char(out, '\n');
	} else if (type == TALLY_RECORD_THREAD_MAP) {
		put_thread_map(&reader, out);
	} else if (type == TALLY_RECORD_EVENT_UPDATE) {
		put_event_update(&reader, out);
	} else if (type == TALLY_RECORD_FINISHED_INIT) {
		tally_buffer_text(out, ": unhandled!\n");
	} else {
		tally_buffer_char(out, '\n');
	}
}

void tally_perf_dump(struct tally_recording *recording, const struct tally_raw_record *raw,
		     const struct tally_record *record, const char *path, struct tally_buffer *out)
{
	uint32_t type = record->header.type;
	const char *name = tally_record_type_name(type);
	put_bytes(raw, path, type, out);
	put_stamp(recording, raw, record, out);
	tally_buffer_printf(out, "%#" PRIx64 " [%#zx]: PERF_RECORD_%s", raw->file_offset, raw->size,
			    name ? name : "UNKNOWN");
	if (type == TALLY_RECORD_SAMPLE && raw->event)
		put_sample(recording, record, out);
	else if (type >= TALLY_RECORD_USER_START)
		put_tools(raw, type, out);
	else
		tally_script_record_body(recording, record, out);
}
