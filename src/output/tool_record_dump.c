/* Layouts: perf's tools/lib/perf/include/perf/event.h, structs of u32 and u64 followed by strings
 * and arrays. Bytes after the known fields are shown as numbers, so that nothing is hidden. */
#include "output/tool_record_dump.h"

#include "base/reader.h"
#include "perfdata/perfdata.h"

#include <inttypes.h>
#include <string.h>

enum { SHOWN_BYTES_MAX = 64 };

static void put_u64(struct tally_reader *reader, const char *name, struct tally_buffer *out)
{
	uint64_t value = tally_reader_u64(reader);
	if (!reader->failed)
		tally_buffer_printf(out, " %s=%" PRIu64, name, value);
}

static void put_hex(struct tally_reader *reader, const char *name, struct tally_buffer *out)
{
	uint64_t value = tally_reader_u64(reader);
	if (!reader->failed)
		tally_buffer_printf(out, " %s=0x%" PRIx64, name, value);
}

static void put_u32(struct tally_reader *reader, const char *name, struct tally_buffer *out)
{
	uint32_t value = tally_reader_u32(reader);
	if (!reader->failed)
		tally_buffer_printf(out, " %s=%d", name, (int)value);
}

static void put_text(const char *name, const char *text, size_t room, struct tally_buffer *out)
{
	tally_buffer_printf(out, " %s=%.*s", name, (int)strnlen(text, room), text);
}

static void put_rest(struct tally_reader *reader, size_t size, struct tally_buffer *out)
{
	size_t left = size - tally_reader_offset(reader);
	const uint8_t *bytes = reader->failed ? NULL : tally_reader_bytes(reader, left);
	if (!bytes || !left)
		return;
	tally_buffer_printf(out, " bytes(%zu)=", left);
	for (size_t i = 0; i < left && i < SHOWN_BYTES_MAX; i++)
		tally_buffer_printf(out, "%02x", bytes[i]);
	if (left > SHOWN_BYTES_MAX)
		tally_buffer_text(out, "…");
}

/* Puts a list of equal entries: a u64 count, then `words` u64 for each. */
static void put_list(struct tally_reader *reader, const char *const *names, unsigned words,
		     struct tally_buffer *out)
{
	uint64_t count = tally_reader_u64(reader);
	tally_buffer_char(out, ' ');
	tally_buffer_char(out, '[');
	for (uint64_t i = 0; i < count && !reader->failed; i++)
		for (unsigned k = 0; k < words; k++) {
			uint64_t value = tally_reader_u64(reader);
			if (!reader->failed)
				tally_buffer_printf(out, "%s%s=%" PRId64, i || k ? " " : "",
						    names[k], (int64_t)value);
		}
	tally_buffer_char(out, ']');
}

static void put_thread_map(struct tally_reader *reader, struct tally_buffer *out)
{
	uint64_t count = tally_reader_u64(reader);
	for (uint64_t i = 0; i < count && !reader->failed; i++) {
		uint64_t pid = tally_reader_u64(reader);
		const char *comm = tally_reader_bytes(reader, 16);
		if (!comm)
			return;
		tally_buffer_printf(out, " pid=%" PRId64, (int64_t)pid);
		put_text("comm", comm, 16, out);
	}
}

static void put_attr(struct tally_reader *reader, size_t size, struct tally_buffer *out)
{
	uint32_t type = tally_reader_u32(reader), attr_size = tally_reader_u32(reader);
	attr_size = attr_size ? attr_size : TALLY_ATTR_SIZE_VER0;
	tally_buffer_printf(out, " type=%u attr_size=%u", type, attr_size);
	put_hex(reader, "config", out);
	put_u64(reader, "period_or_freq", out);
	put_hex(reader, "sample_type", out);
	put_hex(reader, "read_format", out);
	put_hex(reader, "flags", out);
	size_t used = tally_reader_offset(reader) - sizeof(struct tally_record_header);
	if (attr_size >= used)
		tally_reader_bytes(reader, attr_size - used);
	tally_buffer_text(out, " ids=[");
	for (bool first = true; !reader->failed && size - tally_reader_offset(reader) >= 8;
	     first = false)
		tally_buffer_printf(out, "%s%" PRIu64, first ? "" : " ", tally_reader_u64(reader));
	tally_buffer_char(out, ']');
}

static void put_build_id(struct tally_reader *reader, uint16_t misc, size_t size,
			 struct tally_buffer *out)
{
	put_u32(reader, "pid", out);
	const uint8_t *id = tally_reader_bytes(reader, 24);
	size_t length = !id || !(misc & TALLY_MISC_BUILD_ID_SIZE) || id[20] > 20 ? 20 : id[20];
	tally_buffer_text(out, " build_id=");
	for (size_t i = 0; id && i < length; i++)
		tally_buffer_printf(out, "%02x", id[i]);
	size_t left = size - tally_reader_offset(reader);
	const char *file = reader->failed ? NULL : tally_reader_bytes(reader, left);
	if (file)
		put_text("file", file, left, out);
}

static void put_event_update(struct tally_reader *reader, size_t size, struct tally_buffer *out)
{
	enum { UNIT, SCALE, NAME, CPUS };
	uint64_t type = tally_reader_u64(reader);
	tally_buffer_printf(out, " type=%" PRIu64, type);
	put_u64(reader, "id", out);
	size_t left = size - tally_reader_offset(reader);
	if (reader->failed || !left)
		return;
	if (type == SCALE) {
		uint64_t word = tally_reader_u64(reader);
		double scale;
		memcpy(&scale, &word, sizeof(scale));
		tally_buffer_printf(out, " scale=%g", scale);
	} else if (type == CPUS) {
		tally_buffer_text(out, " cpus=");
		tally_cpu_map_text(reader, out);
	}
	if (type != UNIT && type != NAME)
		return;
	put_text(type == UNIT ? "unit" : "name", tally_reader_bytes(reader, left), left, out);
}

static void put_cpu_map(struct tally_reader *reader, struct tally_buffer *out)
{
	tally_buffer_text(out, " cpus=");
	tally_cpu_map_text(reader, out);
}

/* Puts a tracepoint's id and name. */
static void put_event_type(struct tally_reader *reader, struct tally_buffer *out)
{
	put_u64(reader, "id", out);
	const char *name = tally_reader_bytes(reader, 64);
	if (name)
		put_text("name", name, 64, out);
}

static void put_auxtrace_error(struct tally_reader *reader, size_t size, struct tally_buffer *out)
{
	static const char *const names[] = { "type", "code", "cpu", "pid", "tid", "fmt" };
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		put_u32(reader, names[i], out);
	put_hex(reader, "ip", out);
	put_u64(reader, "time", out);
	size_t left = size - tally_reader_offset(reader);
	const char *text = reader->failed ? NULL
					  : tally_reader_bytes(reader, left < 64 ? left : 64);
	if (text)
		put_text("message", text, left < 64 ? left : 64, out);
}

static void put_auxtrace(struct tally_reader *reader, struct tally_buffer *out)
{
	put_u64(reader, "size", out);
	put_hex(reader, "offset", out);
	put_hex(reader, "reference", out);
	put_u32(reader, "idx", out);
	put_u32(reader, "tid", out);
	put_u32(reader, "cpu", out);
}

static void put_time_conv(struct tally_reader *reader, struct tally_buffer *out)
{
	static const char *const names[] = { "time_shift", "time_mult", "time_zero", "time_cycles",
					     "time_mask" };
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		put_u64(reader, names[i], out);
}

static void put_stat(struct tally_reader *reader, struct tally_buffer *out)
{
	put_u64(reader, "id", out);
	put_u32(reader, "cpu", out);
	put_u32(reader, "thread", out);
	put_u64(reader, "value", out);
	put_u64(reader, "enabled", out);
	put_u64(reader, "running", out);
}

void tally_tool_record_dump(const struct tally_raw_record *raw, struct tally_buffer *out)
{
	static const char *const index_names[] = { "id", "idx", "cpu", "tid" },
				 *const stat_names[] = { "tag", "value" };
	struct tally_record_header header;
	struct tally_reader reader;
	memcpy(&header, raw->bytes, sizeof(header));
	tally_reader_init(&reader, raw->bytes, raw->size, false);
	tally_reader_bytes(&reader, sizeof(header));
	switch (header.type) {
	case TALLY_RECORD_HEADER_ATTR: put_attr(&reader, raw->size, out); break;
	case TALLY_RECORD_HEADER_BUILD_ID:
		put_build_id(&reader, header.misc, raw->size, out);
		break;
	case TALLY_RECORD_HEADER_TRACING_DATA: put_u32(&reader, "size", out); break;
	case TALLY_RECORD_HEADER_FEATURE: put_u64(&reader, "feature", out); break;
	case TALLY_RECORD_ID_INDEX: put_list(&reader, index_names, 4, out); break;
	case TALLY_RECORD_EVENT_UPDATE: put_event_update(&reader, raw->size, out); break;
	case TALLY_RECORD_THREAD_MAP: put_thread_map(&reader, out); break;
	case TALLY_RECORD_AUXTRACE: put_auxtrace(&reader, out); break;
	case TALLY_RECORD_AUXTRACE_ERROR: put_auxtrace_error(&reader, raw->size, out); break;
	case TALLY_RECORD_HEADER_EVENT_TYPE: put_event_type(&reader, out); break;
	case TALLY_RECORD_CPU_MAP: put_cpu_map(&reader, out); break;
	case TALLY_RECORD_AUXTRACE_INFO: put_u32(&reader, "type", out); break;
	case TALLY_RECORD_TIME_CONV: put_time_conv(&reader, out); break;
	case TALLY_RECORD_STAT_CONFIG: put_list(&reader, stat_names, 2, out); break;
	case TALLY_RECORD_STAT: put_stat(&reader, out); break;
	case TALLY_RECORD_STAT_ROUND:
		put_u64(&reader, "type", out);
		put_u64(&reader, "time", out);
		break;
	}
	put_rest(&reader, raw->size, out);
}
