/* Layouts: perf's tools/lib/perf/include/perf/event.h, structs of u32 and u64 followed by strings
 * and arrays. Bytes after the known fields are shown as numbers, so that nothing is hidden. */
#include "base/reader.h"
#include "base/terminal.h"
#include "output/output.h"
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
	const uint8_t *bytes = NULL;
	if (!reader->failed)
		bytes = tally_reader_bytes(reader, left);
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
	if (!attr_size)
		attr_size = TALLY_ATTR_SIZE_VER0;
	tally_buffer_printf(out, " type=%u attr_size=%u", type, attr_size);
	put_hex(reader, "config", out);
	put_u64(reader, "period_or_freq", out);
	put_hex(reader, "sample_type", out);
	put_hex(reader, "read_format", out);
	put_hex(reader, "flags", out);
	size_t used = tally_reader_offset(reader) - sizeof(struct tally_record_header);
	if (attr_size >= used)
		tally_reader_skip(reader, attr_size - used);
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
	size_t length;
	if (!id || !(misc & TALLY_MISC_BUILD_ID_SIZE) || id[20] > 20)
		length = 20;
	else
		length = id[20];
	tally_buffer_text(out, " build_id=");
	for (size_t i = 0; id && i < length; i++)
		tally_buffer_printf(out, "%02x", id[i]);
	size_t left = size - tally_reader_offset(reader);
	const char *file = NULL;
	if (!reader->failed)
		file = tally_reader_bytes(reader, left);
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
	size_t left = size - tally_reader_offset(reader), length = left < 64 ? left : 64;
	const char *text = NULL;
	if (!reader->failed)
		text = tally_reader_bytes(reader, length);
	if (text)
		put_text("message", text, length, out);
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

/* Appends " name=value" for each field of the record. */
static void tool_record_dump(const struct tally_raw_record *raw, struct tally_buffer *out)
{
	static const char *const index_names[] = { "id", "idx", "cpu", "tid" },
				 *const stat_names[] = { "tag", "value" };
	struct tally_record_header header;
	struct tally_reader reader;
	memcpy(&header, raw->bytes, sizeof(header));
	tally_reader_init(&reader, raw->bytes, raw->size, false);
	tally_reader_skip(&reader, sizeof(header));
	switch (header.type) {
	case TALLY_RECORD_HEADER_ATTR:
		put_attr(&reader, raw->size, out);
		break;
	case TALLY_RECORD_HEADER_BUILD_ID:
		put_build_id(&reader, header.misc, raw->size, out);
		break;
	case TALLY_RECORD_HEADER_TRACING_DATA:
		put_u32(&reader, "size", out);
		break;
	case TALLY_RECORD_HEADER_FEATURE:
		put_u64(&reader, "feature", out);
		break;
	case TALLY_RECORD_ID_INDEX:
		put_list(&reader, index_names, 4, out);
		break;
	case TALLY_RECORD_EVENT_UPDATE:
		put_event_update(&reader, raw->size, out);
		break;
	case TALLY_RECORD_THREAD_MAP:
		put_thread_map(&reader, out);
		break;
	case TALLY_RECORD_AUXTRACE:
		put_auxtrace(&reader, out);
		break;
	case TALLY_RECORD_AUXTRACE_ERROR:
		put_auxtrace_error(&reader, raw->size, out);
		break;
	case TALLY_RECORD_HEADER_EVENT_TYPE:
		put_event_type(&reader, out);
		break;
	case TALLY_RECORD_CPU_MAP:
		put_cpu_map(&reader, out);
		break;
	case TALLY_RECORD_AUXTRACE_INFO:
		put_u32(&reader, "type", out);
		break;
	case TALLY_RECORD_TIME_CONV:
		put_time_conv(&reader, out);
		break;
	case TALLY_RECORD_STAT_CONFIG:
		put_list(&reader, stat_names, 2, out);
		break;
	case TALLY_RECORD_STAT:
		put_stat(&reader, out);
		break;
	case TALLY_RECORD_STAT_ROUND:
		put_u64(&reader, "type", out);
		put_u64(&reader, "time", out);
		break;
	}
	put_rest(&reader, raw->size, out);
}

/* Every record with all its fields, one per line, as decoded; nothing is resolved. */

static void put_values(const struct tally_read_values *values, struct tally_buffer *out)
{
	tally_buffer_printf(out, " enabled=%" PRIu64 " running=%" PRIu64 " values=[",
			    values->time_enabled, values->time_running);
	for (uint64_t i = 0; values->values && i < values->count; i++) {
		tally_buffer_printf(out, "%s%" PRIu64, i ? " " : "",
				    values->values[i * values->stride]);
		for (unsigned k = 1; k < values->stride; k++)
			tally_buffer_printf(out, "/%" PRIu64,
					    values->values[i * values->stride + k]);
	}
	tally_buffer_char(out, ']');
}

static void put_regs(enum tally_arch arch, const char *name, const struct tally_sample_regs *regs,
		     uint64_t mask, struct tally_buffer *out)
{
	unsigned word = 0;
	tally_buffer_printf(out, " %s(abi %" PRIu64 ")=[", name, regs->abi);
	for (unsigned bit = 0; regs->words && bit < 64; bit++)
		if (mask >> bit & 1) {
			const char *known = tally_arch_register(arch, bit);
			tally_buffer_text(out, word ? " " : "");
			if (known)
				tally_buffer_text(out, known);
			else
				tally_buffer_printf(out, "%u", bit);
			tally_buffer_printf(out, ":0x%" PRIx64, regs->words[word++]);
		}
	tally_buffer_char(out, ']');
}

static void put_bytes(const char *name, const void *bytes, uint64_t size, struct tally_buffer *out)
{
	enum { SHOWN_MAX = 256 };
	const uint8_t *at = bytes;
	tally_buffer_printf(out, " %s(%" PRIu64 ")=", name, size);
	for (uint64_t i = 0; at && i < size && i < SHOWN_MAX; i++)
		tally_buffer_printf(out, "%02x", at[i]);
	if (size > SHOWN_MAX)
		tally_buffer_text(out, "…");
}

static void put_branches(const struct tally_sample *sample, struct tally_buffer *out)
{
	tally_buffer_text(out, " branches=[");
	for (uint64_t i = 0; sample->branches && i < sample->branch_count; i++)
		tally_buffer_printf(out, "%s0x%" PRIx64 ">0x%" PRIx64 "/0x%" PRIx64, i ? " " : "",
				    sample->branches[i].from, sample->branches[i].to,
				    sample->branches[i].flags);
	tally_buffer_char(out, ']');
}

static void put_sample_simple(const struct tally_sample *sample, struct tally_buffer *out)
{
	const struct { uint64_t bit; const char *name; uint64_t value; bool hex;
	} fields[] = {
		{ TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_ID, "id", sample->id, false },
		{ TALLY_SAMPLE_IP, "ip", sample->ip, true },
		{ TALLY_SAMPLE_TIME, "time", sample->time, false },
		{ TALLY_SAMPLE_ADDR, "addr", sample->addr, true },
		{ TALLY_SAMPLE_STREAM_ID, "stream_id", sample->stream_id, false },
		{ TALLY_SAMPLE_CPU, "cpu", sample->cpu, false },
		{ TALLY_SAMPLE_PERIOD, "period", sample->period, false },
		{ TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_WEIGHT_STRUCT, "weight", sample->weight,
		  true },
		{ TALLY_SAMPLE_DATA_SRC, "data_src", sample->data_src, true },
		{ TALLY_SAMPLE_TRANSACTION, "transaction", sample->transaction, true },
		{ TALLY_SAMPLE_PHYS_ADDR, "phys_addr", sample->phys_addr, true },
		{ TALLY_SAMPLE_CGROUP, "cgroup", sample->cgroup, false },
		{ TALLY_SAMPLE_DATA_PAGE_SIZE, "data_page_size", sample->data_page_size, false },
		{ TALLY_SAMPLE_CODE_PAGE_SIZE, "code_page_size", sample->code_page_size, false },
	};
	for (unsigned i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (sample->type & fields[i].bit)
			tally_buffer_printf(out, fields[i].hex ? " %s=0x%" PRIx64 : " %s=%" PRIu64,
					    fields[i].name, fields[i].value);
}

static void put_sample(enum tally_arch arch, const struct tally_attr *attr,
		       const struct tally_sample *sample, struct tally_buffer *out)
{
	if (sample->type & TALLY_SAMPLE_TID)
		tally_buffer_printf(out, " pid=%d tid=%d", (int)sample->pid, (int)sample->tid);
	put_sample_simple(sample, out);
	if (sample->type & TALLY_SAMPLE_READ)
		put_values(&sample->read, out);
	if (sample->type & TALLY_SAMPLE_CALLCHAIN) {
		tally_buffer_text(out, " callchain=[");
		for (uint64_t i = 0; i < sample->chain_length; i++)
			tally_buffer_printf(out, "%s0x%" PRIx64, i ? " " : "", sample->chain[i]);
		tally_buffer_char(out, ']');
	}
	if (sample->type & TALLY_SAMPLE_RAW)
		put_bytes("raw", sample->raw, sample->raw_size, out);
	if (sample->type & TALLY_SAMPLE_BRANCH_STACK)
		put_branches(sample, out);
	if (sample->type & TALLY_SAMPLE_REGS_USER)
		put_regs(arch, "regs_user", &sample->regs_user, attr->sample_regs_user, out);
	if (sample->type & TALLY_SAMPLE_STACK_USER)
		tally_buffer_printf(out, " stack=%" PRIu64 " valid=%" PRIu64, sample->stack_size,
				    sample->stack_dynamic_size);
	if (sample->type & TALLY_SAMPLE_REGS_INTR)
		put_regs(arch, "regs_intr", &sample->regs_intr, attr->sample_regs_intr, out);
	if (sample->type & TALLY_SAMPLE_AUX)
		put_bytes("aux", sample->aux, sample->aux_size, out);
}

static void put_mmap(const struct tally_record_mmap *mmap, bool is_mmap2, struct tally_buffer *out)
{
	tally_buffer_printf(
		out, " pid=%d tid=%d start=0x%" PRIx64 " length=0x%" PRIx64 " offset=0x%" PRIx64,
		(int)mmap->pid, (int)mmap->tid, mmap->start, mmap->length, mmap->file_offset);
	if (mmap->has_inode)
		tally_buffer_printf(out, " dev=%02x:%02x inode=%" PRIu64 " generation=%" PRIu64,
				    mmap->major, mmap->minor, mmap->inode, mmap->inode_generation);
	if (mmap->build_id_size)
		put_bytes("build_id", mmap->build_id, mmap->build_id_size, out);
	if (is_mmap2)
		tally_buffer_printf(out, " prot=%u flags=0x%x", mmap->protection, mmap->flags);
	tally_buffer_printf(out, " file=%s", mmap->filename);
}

static void put_other(const struct tally_record *record, struct tally_buffer *out)
{
	switch (record->header.type) {
	case TALLY_RECORD_COMM:
		tally_buffer_printf(out, " pid=%d tid=%d comm=%s", (int)record->comm.pid,
				    (int)record->comm.tid, record->comm.comm);
		break;
	case TALLY_RECORD_FORK:
	case TALLY_RECORD_EXIT:
		tally_buffer_printf(out, " pid=%d parent_pid=%d tid=%d parent_tid=%d time=%" PRIu64,
				    (int)record->task.pid, (int)record->task.parent_pid,
				    (int)record->task.tid, (int)record->task.parent_tid,
				    record->task.time);
		break;
	case TALLY_RECORD_LOST:
	case TALLY_RECORD_LOST_SAMPLES:
		tally_buffer_printf(out, " id=%" PRIu64 " lost=%" PRIu64, record->lost.id,
				    record->lost.lost);
		break;
	case TALLY_RECORD_THROTTLE:
	case TALLY_RECORD_UNTHROTTLE:
		tally_buffer_printf(out, " time=%" PRIu64 " id=%" PRIu64 " stream_id=%" PRIu64,
				    record->throttle.time, record->throttle.id,
				    record->throttle.stream_id);
		break;
	case TALLY_RECORD_READ:
		tally_buffer_printf(out, " pid=%d tid=%d", (int)record->read.pid,
				    (int)record->read.tid);
		put_values(&record->read.values, out);
		break;
	case TALLY_RECORD_AUX:
		tally_buffer_printf(out,
				    " offset=0x%" PRIx64 " size=0x%" PRIx64 " flags=0x%" PRIx64,
				    record->aux.offset, record->aux.size, record->aux.flags);
		break;
	case TALLY_RECORD_ITRACE_START:
		tally_buffer_printf(out, " pid=%d tid=%d", (int)record->itrace_start.pid,
				    (int)record->itrace_start.tid);
		break;
	case TALLY_RECORD_SWITCH_CPU_WIDE:
		tally_buffer_printf(out, " next_prev_pid=%d next_prev_tid=%d",
				    (int)record->switched.next_prev_pid,
				    (int)record->switched.next_prev_tid);
		break;
	case TALLY_RECORD_NAMESPACES:
		tally_buffer_printf(out, " pid=%d tid=%d namespaces=[", (int)record->namespaces.pid,
				    (int)record->namespaces.tid);
		for (uint64_t i = 0; i < record->namespaces.count; i++)
			tally_buffer_printf(out, "%s%" PRIu64 ":%" PRIu64, i ? " " : "",
					    record->namespaces.dev_inode[2 * i],
					    record->namespaces.dev_inode[2 * i + 1]);
		tally_buffer_char(out, ']');
		break;
	case TALLY_RECORD_KSYMBOL:
		tally_buffer_printf(
			out, " address=0x%" PRIx64 " length=%u type=%u flags=0x%x name=%s",
			record->ksymbol.address, record->ksymbol.length, record->ksymbol.type,
			record->ksymbol.flags, record->ksymbol.name);
		break;
	case TALLY_RECORD_BPF_EVENT:
		tally_buffer_printf(out, " type=%u flags=0x%x id=%u", record->bpf.type,
				    record->bpf.flags, record->bpf.id);
		put_bytes("tag", record->bpf.tag, 8, out);
		break;
	case TALLY_RECORD_CGROUP:
		tally_buffer_printf(out, " id=%" PRIu64 " path=%s", record->cgroup.id,
				    record->cgroup.path);
		break;
	case TALLY_RECORD_TEXT_POKE:
		tally_buffer_printf(out, " address=0x%" PRIx64 " old=%u new=%u",
				    record->text_poke.address, record->text_poke.old_length,
				    record->text_poke.new_length);
		break;
	case TALLY_RECORD_AUX_OUTPUT_HW_ID:
		tally_buffer_printf(out, " hw_id=%" PRIu64, record->hw_id);
		break;
	case TALLY_RECORD_CALLCHAIN_DEFERRED:
		tally_buffer_printf(out, " cookie=0x%" PRIx64 " callchain=[",
				    record->deferred.cookie);
		for (uint64_t i = 0; i < record->deferred.chain_length; i++)
			tally_buffer_printf(out, "%s%" PRIx64, i ? " " : "",
					    record->deferred.chain[i]);
		tally_buffer_char(out, ']');
		break;
	}
}

static void put_sample_id(const struct tally_attr *attr, const struct tally_sample_id *id,
			  struct tally_buffer *out)
{
	uint64_t type = attr->sample_type;
	if (!id->present)
		return;
	tally_buffer_text(out, " |");
	if (type & TALLY_SAMPLE_TID)
		tally_buffer_printf(out, " pid=%d tid=%d", (int)id->pid, (int)id->tid);
	if (type & TALLY_SAMPLE_TIME)
		tally_buffer_printf(out, " time=%" PRIu64, id->time);
	if (type & TALLY_SAMPLE_CPU)
		tally_buffer_printf(out, " cpu=%u", id->cpu);
	if (type & TALLY_SAMPLE_STREAM_ID)
		tally_buffer_printf(out, " stream_id=%" PRIu64, id->stream_id);
	if (type & (TALLY_SAMPLE_ID | TALLY_SAMPLE_IDENTIFIER))
		tally_buffer_printf(out, " id=%" PRIu64, id->id);
}

void tally_record_dump(const struct tally_recording *recording, const struct tally_raw_record *raw,
		       const struct tally_record *record, struct tally_buffer *out)
{
	const char *type = tally_record_type_name(record->header.type);
	size_t start = out->length;
	tally_buffer_printf(out, "0x%" PRIx64 " ", raw->file_offset);
	if (type)
		tally_buffer_text(out, type);
	else
		tally_buffer_printf(out, "type %u", record->header.type);
	tally_buffer_printf(out, " size=%u misc=0x%x", record->header.size, record->header.misc);
	if (record->header.type < TALLY_RECORD_USER_START && raw->event) {
		if (record->header.type == TALLY_RECORD_SAMPLE)
			put_sample(recording->machine.arch, &raw->event->attr, &record->sample, out);
		else if (record->header.type == TALLY_RECORD_MMAP ||
			 record->header.type == TALLY_RECORD_MMAP2)
			put_mmap(&record->mmap, record->header.type == TALLY_RECORD_MMAP2, out);
		else
			put_other(record, out);
		put_sample_id(&raw->event->attr, &record->sample_id, out);
	} else if (record->header.type >= TALLY_RECORD_USER_START) {
		tool_record_dump(raw, out);
	}
	tally_clean_name_from(out, start); /* a record is one line, whatever names it has */
	tally_buffer_char(out, '\n');
}
