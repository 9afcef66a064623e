#include "output/script_values.h"

#include "base/reader.h"
#include "profile/sample_parts.h"
#include "tally/perf_event.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* True if samples carry a data address: page faults do, clock samples don't. */
static bool is_of_data(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_SOFTWARE &&
	       (attr->config == TALLY_SW_PAGE_FAULTS || attr->config == TALLY_SW_PAGE_FAULTS_MIN ||
		attr->config == TALLY_SW_PAGE_FAULTS_MAJ);
}

static int put_data_place(struct tally_recording *recording, const struct tally_sample *sample,
			  uint32_t fields, struct tally_buffer *out)
{
	struct tally_data_name name;
	if (tally_names_data(&recording->names, sample->pid, sample->addr, &name) < 0)
		return -ENOMEM;
	if (fields & TALLY_FIELD_SYMBOL) {
		tally_buffer_printf(out, " %s", name.name ? name.name : "[unknown]");
		if (name.name && fields & TALLY_FIELD_OFFSET)
			tally_buffer_printf(out, "+0x%" PRIx64, name.offset);
	}
	if (fields & TALLY_FIELD_OBJECT)
		tally_buffer_printf(out, " (%s)", name.object);
	return 0;
}

static void put_data_source(uint64_t data_src, size_t *width, struct tally_buffer *out)
{
	size_t before = out->length;
	tally_buffer_printf(out, "%16" PRIx64 " ", data_src);
	tally_data_source_text(data_src, out);
	size_t length = out->failed ? *width : out->length - before;
	if (length > *width)
		*width = length;
	tally_buffer_printf(out, "%*s", (int)(*width - length), "");
}

int tally_script_put_address(struct tally_recording *recording,
			     const struct tally_recorded_event *event,
			     const struct tally_sample *sample, uint32_t fields,
			     size_t *source_width, struct tally_buffer *out)
{
	if (fields & TALLY_FIELD_ADDR) {
		tally_buffer_printf(out, "%16" PRIx64, sample->addr);
		if (is_of_data(&event->attr) && put_data_place(recording, sample, fields, out) < 0)
			return -ENOMEM;
	}
	if (fields & TALLY_FIELD_DATA_SOURCE)
		put_data_source(sample->data_src, source_width, out);
	if (fields & TALLY_FIELD_WEIGHT)
		tally_buffer_printf(out, "%16" PRIu64, tally_sample_cost(sample));
	if (fields & TALLY_FIELD_LATENCY)
		tally_buffer_printf(out, "%16" PRIu64, tally_sample_latency(sample));
	return 0;
}

void tally_script_misc(char *at, const struct tally_record_header *header)
{
	static const char modes[8] = { 0, 'K', 'U', 'H', 'G', 'g', 0, 0 };
	static const struct { uint32_t type; uint16_t bit; char letter; } bits[] = {
		{ TALLY_RECORD_SAMPLE, TALLY_MISC_EXACT_IP, 'E' },
		{ TALLY_RECORD_MMAP, TALLY_MISC_MMAP_DATA, 'M' },
		{ TALLY_RECORD_MMAP2, TALLY_MISC_MMAP_DATA, 'M' },
		{ TALLY_RECORD_COMM, TALLY_MISC_COMM_EXEC, 'E' },
		{ TALLY_RECORD_SWITCH, TALLY_MISC_SWITCH_OUT, 'S' },
		{ TALLY_RECORD_SWITCH, TALLY_MISC_SWITCH_OUT_PREEMPT, 'p' },
		{ TALLY_RECORD_SWITCH_CPU_WIDE, TALLY_MISC_SWITCH_OUT, 'S' },
		{ TALLY_RECORD_SWITCH_CPU_WIDE, TALLY_MISC_SWITCH_OUT_PREEMPT, 'p' },
	};
	memset(at, ' ', TALLY_SCRIPT_MISC_SIZE);
	if (modes[header->misc & TALLY_MISC_CPUMODE_MASK])
		*at++ = modes[header->misc & TALLY_MISC_CPUMODE_MASK];
	for (unsigned i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		if (header->type == bits[i].type && header->misc & bits[i].bit)
			*at++ = bits[i].letter;
}

static void put_regs(enum tally_arch arch, const struct tally_sample_regs *regs, uint64_t mask,
		     struct tally_buffer *out)
{
	unsigned word = 0;
	if (!regs->words)
		return;
	tally_buffer_printf(out, " ABI:%" PRIu64 " ", regs->abi);
	for (unsigned bit = 0; bit < 64; bit++) {
		if (!(mask >> bit & 1))
			continue;
		const char *name = tally_arch_register(arch, bit);
		tally_buffer_printf(out, "%5s:0x%" PRIx64 " ", name ? name : "unknown",
				    regs->words[word++]);
	}
}

void tally_script_put_regs(const struct tally_recording *recording,
			   const struct tally_recorded_event *event,
			   const struct tally_sample *sample, uint32_t fields,
			   struct tally_buffer *out)
{
	if (fields & TALLY_FIELD_REGS_INTR)
		put_regs(recording->arch, &sample->regs_intr, event->attr.sample_regs_intr, out);
	if (fields & TALLY_FIELD_REGS_USER)
		put_regs(recording->arch, &sample->regs_user, event->attr.sample_regs_user, out);
}

static void put_page_size(uint64_t bytes, struct tally_buffer *out)
{
	tally_buffer_char(out, ' ');
	tally_page_size_text(bytes, out);
}

/* ---- raw bytes, the wall's clock ----------------------------------------- */

static bool is_printable(char byte)
{
	return byte >= ' ' && byte <= '~'; /* ASCII in any locale */
}

/* True for printable text followed by NULs only. */
static bool is_text(const char *bytes, size_t size)
{
	size_t length = strnlen(bytes, size), nuls = length;
	for (size_t i = 0; i < length; i++)
		if (!is_printable(bytes[i]))
			return false;
	while (nuls < size && !bytes[nuls])
		nuls++;
	return length < size && nuls == size;
}

void tally_script_put_bpf_output(const struct tally_sample *sample, struct tally_buffer *out)
{
	enum { ROW = 8 };
	const unsigned char *bytes = sample->raw;
	for (uint32_t at = 0; at < sample->raw_size && !out->failed; at += ROW) {
		char text[ROW + 1] = "";
		tally_buffer_printf(
			out, "%s %04x:", at ? "                 " : "\n      BPF output:", at);
		for (uint32_t i = 0; i < ROW; i++) {
			bool is_there = at + i < sample->raw_size;
			if (is_there)
				tally_buffer_printf(out, " %02x", bytes[at + i]);
			else
				tally_buffer_text(out, "   ");
			text[i] = (char)(!is_there                           ? ' '
					 : is_printable((char)bytes[at + i]) ? bytes[at + i]
									     : '.');
		}
		tally_buffer_printf(out, "  %s\n", text);
	}
	if (sample->raw_size && is_text(sample->raw, sample->raw_size))
		tally_buffer_printf(out, "      BPF string: \"%s\"\n", (const char *)sample->raw);
}

int tally_script_wall_offset(const struct tally_recording *recording, uint64_t *offset_ns,
			     struct tally_error *err)
{
	struct tally_feature_bytes bytes = tally_perfdata_feature(recording->data,
								  TALLY_FEATURE_CLOCK_DATA);
	struct tally_reader reader;
	tally_reader_init(&reader, bytes.bytes ? (const void *)bytes.bytes : "",
			  bytes.bytes ? bytes.size : 0, false);
	uint32_t version = tally_reader_u32(&reader);
	tally_reader_u32(&reader); /* skip the id of the samples' clock */
	uint64_t wall = tally_reader_u64(&reader);
	*offset_ns = wall - tally_reader_u64(&reader);
	if (!reader.failed && version == 1)
		return 0;
	tally_error_set(
		err, -ENODATA,
		"the recording lacks the time of day: the field 'tod' can't be shown");
	tally_error_hint(err, "record with tally record, or perf record -k mono");
	return -ENODATA;
}

char *tally_script_wall_time(char *at, uint64_t time_ns, bool nanoseconds)
{
	const uint64_t second = 1000000000;
	char text[24] = "";
	struct tm local;
	time_t time = (time_t)(time_ns / second);
	if (localtime_r(&time, &local))
		strftime(text, sizeof(text), "%F %T", &local);
	return at + snprintf(at, TALLY_SCRIPT_WALL_TIME_MAX, "%s.%0*u", text, nanoseconds ? 9 : 6,
			     (unsigned)(time_ns % second / (nanoseconds ? 1 : 1000)));
}

/* ---- memory -------------------------------------------------------------- */

void tally_script_put_memory(struct tally_recording *recording, const struct tally_sample *sample,
			     uint32_t fields, struct tally_buffer *out)
{
	if (fields & TALLY_FIELD_PHYS_ADDR)
		tally_buffer_printf(out, "%16" PRIx64, sample->phys_addr);
	if (fields & TALLY_FIELD_DATA_PAGE_SIZE)
		put_page_size(sample->data_page_size, out);
	if (fields & TALLY_FIELD_CODE_PAGE_SIZE)
		put_page_size(sample->code_page_size, out);
	if (fields & TALLY_FIELD_CGROUP) {
		uint32_t path = tally_tasks_cgroup(&recording->tasks, sample->cgroup);
		tally_buffer_printf(out, " %s", path == TALLY_STRING_NONE ? "unknown" :
				    tally_strings_text(&recording->tasks.strings, path));
	}
}
