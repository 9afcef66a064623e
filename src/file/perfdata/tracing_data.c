/* TRACING_DATA: the formats of tracepoints, as trace-cmd's "trace.dat" of version 0.6 begins.
 *
 *     23 8 68 "tracing" "0.6\0" | big-endian? | sizeof long | page size (u32)
 *     "header_page\0" u64 size, text | "header_event\0" u64 size, text
 *     u32 count of ftrace's own formats, each: u64 size, text
 *     u32 count of systems, each: "name\0", u32 count of formats, each: u64 size, text
 *     u32 size, kallsyms | u32 size, printk formats | u64 size, saved command lines
 */
#include "base/reader.h"
#include "base/text.h"
#include "perfdata/perfdata.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const char MAGIC[] = "\x17\x08\x44tracing"; /* without its NUL */

static void put_u32(struct tally_buffer *out, uint32_t value)
{
	tally_buffer_append(out, &value, sizeof(value));
}

static void put_u64(struct tally_buffer *out, uint64_t value)
{
	tally_buffer_append(out, &value, sizeof(value));
}

static void put_text_64(struct tally_buffer *out, const char *text)
{
	text = tally_text_or(text, "");
	put_u64(out, strlen(text));
	tally_buffer_text(out, text);
}

static void put_text_32(struct tally_buffer *out, const char *text)
{
	text = tally_text_or(text, "");
	put_u32(out, (uint32_t)strlen(text));
	tally_buffer_text(out, text);
}

static size_t same_system(const struct tally_tracing_data *data, size_t first)
{
	size_t end = first + 1;
	while (end < data->format_count &&
	       !strcmp(data->formats[end].system, data->formats[first].system))
		end++;
	return end - first;
}

void tally_feature_tracing_data(struct tally_buffer *out, const struct tally_tracing_data *data)
{
	uint32_t systems = 0;
	tally_buffer_append(out, MAGIC, sizeof(MAGIC) - 1);
	tally_buffer_append(out, "0.6", 4);
	tally_buffer_char(out, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	tally_buffer_char(out, sizeof(long));
	put_u32(out, (uint32_t)sysconf(_SC_PAGESIZE));
	tally_buffer_append(out, "header_page", 12);
	put_text_64(out, data->header_page);
	tally_buffer_append(out, "header_event", 13);
	put_text_64(out, data->header_event);
	put_u32(out, 0);
	for (size_t i = 0; i < data->format_count; i += same_system(data, i))
		systems++;
	put_u32(out, systems);
	for (size_t i = 0, count; i < data->format_count; i += count) {
		count = same_system(data, i);
		tally_buffer_append(out, data->formats[i].system,
				    strlen(data->formats[i].system) + 1);
		put_u32(out, (uint32_t)count);
		for (size_t j = i; j < i + count; j++) {
			put_u64(out, data->formats[j].length);
			tally_buffer_append(out, data->formats[j].text, data->formats[j].length);
		}
	}
	put_text_32(out, data->kallsyms);
	put_text_32(out, data->printk_formats);
	put_text_64(out, data->saved_cmdlines);
}

/* State of a walk. */
struct walk {
	struct tally_reader reader;
	int (*visit)(void *context, const char *system, const char *text, size_t length);
	void *context;
};

static int walk_formats(struct walk *walk, const char *system, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint64_t length = tally_reader_u64(&walk->reader);
		const char *text = tally_reader_bytes(&walk->reader, length);
		if (!text)
			return -EBADMSG;
		int stop = 0;
		if (walk->visit)
			stop = walk->visit(walk->context, system, text, length);
		if (stop)
			return stop;
	}
	return 0;
}

static const char *skip_text(struct tally_reader *reader, bool is_64, size_t *length)
{
	*length = is_64 ? tally_reader_u64(reader) : tally_reader_u32(reader);
	return tally_reader_bytes(reader, *length);
}

/* Skips the head.  Version 0.6 has the saved command lines at the end; 0.5 lacks them. */
static bool skip_head(struct tally_reader *reader, bool *has_cmdlines, unsigned *long_bytes)
{
	const char *magic = tally_reader_bytes(reader, sizeof(MAGIC) - 1);
	if (!magic || memcmp(magic, MAGIC, sizeof(MAGIC) - 1) != 0)
		return false;
	const char *version = tally_reader_string(reader);
	size_t length;
	bool big_endian = tally_reader_u8(reader);
	reader->swap = big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	*has_cmdlines = version && strcmp(version, "0.6") >= 0;
	*long_bytes = tally_reader_u8(reader);
	tally_reader_u32(reader); /* page size */
	for (unsigned i = 0; i < 2; i++) {
		tally_reader_string(reader);
		skip_text(reader, true, &length);
	}
	return !reader->failed;
}

struct printk_text {
	const char *text;
	size_t length;
};

static int walk_all(const void *bytes, size_t size, struct walk *walk, struct printk_text *printk)
{
	struct tally_reader *reader = &walk->reader;
	size_t length;
	bool has_cmdlines;
	unsigned long_bytes;
	tally_reader_init(reader, bytes, size, false);
	if (!skip_head(reader, &has_cmdlines, &long_bytes))
		return -EBADMSG;
	int stop = walk_formats(walk, "ftrace", tally_reader_u32(reader));
	uint32_t systems = tally_reader_u32(reader);
	for (uint32_t i = 0; !stop && i < systems; i++) {
		const char *system = tally_reader_string(reader);
		uint32_t count = tally_reader_u32(reader);
		if (reader->failed)
			stop = -EBADMSG;
		else
			stop = walk_formats(walk, system, count);
	}
	if (stop)
		return stop;
	skip_text(reader, false, &length); /* kallsyms */
	printk->text = skip_text(reader, false, &printk->length);
	if (has_cmdlines)
		skip_text(reader, true, &length);
	if (reader->failed)
		return -EBADMSG;
	return 0;
}

int tally_tracing_data_walk(const void *bytes, size_t size,
			    int (*visit)(void *context, const char *system, const char *text,
					 size_t length),
			    void *context)
{
	struct walk walk = { .visit = visit, .context = context };
	struct printk_text printk = { 0 };
	return walk_all(bytes, size, &walk, &printk);
}

bool tally_tracing_data_machine(const void *bytes, size_t size, unsigned *long_bytes, bool *swap)
{
	struct tally_reader reader;
	bool has_cmdlines;
	tally_reader_init(&reader, bytes, size, false);
	bool is_whole = skip_head(&reader, &has_cmdlines, long_bytes);
	*swap = reader.swap;
	return is_whole;
}

const char *tally_tracing_data_printk(const void *bytes, size_t size, size_t *length)
{
	struct walk walk = { 0 };
	struct printk_text printk = { 0 };
	walk_all(bytes, size, &walk, &printk);
	*length = printk.text ? printk.length : 0;
	return printk.text;
}

bool tally_tracing_format_id(const char *text, size_t length, uint64_t *id)
{
	const char *end = text + length;
	for (const char *line = text, *next; line < end; line = next) {
		next = tally_line_end(line, end);
		next += next < end;
		if (end - line < 4 || memcmp(line, "ID:", 3) != 0)
			continue;
		const char *at = line + 3;
		while (at < end && *at == ' ')
			at++;
		if (at == end || *at < '0' || *at > '9')
			return false;
		for (*id = 0; at < end && *at >= '0' && *at <= '9'; at++)
			*id = *id * 10 + (uint64_t)(*at - '0');
		return true;
	}
	return false;
}
