/* Has a function for each feature section, and lists them in a table by the feature's number.  A
 * function stops where its section is cut short; its caller reports that. */
#include "output/output.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/reader.h"
#include "base/terminal.h"
#include "machine/machine.h"
#include "perfdata/perfdata.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct header_part {
	const struct tally_perfdata *data;
	struct tally_reader reader; /* reads the section */
	struct tally_buffer *out;
	struct tally_arena arena; /* of cleaned names */
};

/* Prints a feature section.  Stops when the section is truncated; the reader is then marked as
 * failed. */
typedef void header_printer(struct header_part *part);

/* Returns a name cleaned for a line of text; it lives as long as the part.  If memory is out, marks
 * the output as failed. */
static const char *clean_name(struct header_part *part, const char *name)
{
	size_t size = strlen(name) + 1;
	char *clean = tally_arena_alloc(&part->arena, size);
	if (!clean) {
		part->out->failed = true;
		return "";
	}
	tally_terminal_clean_name(name, clean, size);
	return clean;
}

/* Returns a string of the section, cleaned: a length, then NUL-terminated text within it.  If it is
 * malformed, returns "" and marks the reader as failed. */
static const char *header_string(struct header_part *part)
{
	const char *text = tally_feature_read_string(&part->reader);
	if (!text)
		return "";
	return clean_name(part, text);
}

/* ---- attributes ---------------------------------------------------------- */

/* Puts ", NAME = VALUE", with `equals` between the two, unless the value is 0. */
static void put_number(struct tally_buffer *out, const char *equals, const char *name,
		       uint64_t value)
{
	if (value)
		tally_buffer_printf(out, ", %s%s%" PRIu64, name, equals, value);
}

static void put_hex(struct tally_buffer *out, const char *equals, const char *name, uint64_t value)
{
	if (value)
		tally_buffer_printf(out, ", %s%s0x%" PRIx64, name, equals, value);
}

static void put_bits(struct tally_buffer *out, const char *equals, const char *name,
		     uint64_t value, const struct tally_bit_name *names)
{
	bool any = false;
	if (!value)
		return;
	tally_buffer_printf(out, ", %s%s", name, equals);
	for (; names->name; names++)
		if (value & names->bit) {
			tally_buffer_printf(out, "%s%s", any ? "|" : "", names->name);
			any = true;
		}
}

static void put_flags(struct tally_buffer *out, const char *equals, const struct tally_attr *attr)
{
	bool precise_done = false;
	for (const struct tally_bit_name *flag = tally_attr_flag_names; flag->name; flag++) {
		if (flag->bit > TALLY_ATTR_PRECISE_IP && !precise_done) {
			put_number(out, equals, "precise_ip", tally_attr_precise(attr));
			precise_done = true;
		}
		if (attr->flags & flag->bit)
			put_number(out, equals, flag->name, 1);
	}
}

void tally_attr_text(const struct tally_attr *attr, const char *equals, struct tally_buffer *out)
{
	put_number(out, equals, "type", attr->type);
	put_number(out, equals, "size", attr->size);
	put_hex(out, equals, "config", attr->config);
	put_number(out, equals, "{ sample_period, sample_freq }", attr->sample_period);
	put_bits(out, equals, "sample_type", attr->sample_type, tally_sample_type_names);
	put_bits(out, equals, "read_format", attr->read_format, tally_read_format_names);
	put_flags(out, equals, attr);
	put_number(out, equals, "{ wakeup_events, wakeup_watermark }", attr->wakeup_events);
	put_number(out, equals, "bp_type", attr->bp_type);
	put_hex(out, equals, "{ bp_addr, config1 }", attr->config1);
	put_hex(out, equals, "{ bp_len, config2 }", attr->config2);
	put_bits(out, equals, "branch_sample_type", attr->branch_sample_type,
		 tally_branch_type_names);
	put_hex(out, equals, "sample_regs_user", attr->sample_regs_user);
	put_number(out, equals, "sample_stack_user", attr->sample_stack_user);
	if (attr->clockid)
		tally_buffer_printf(out, ", clockid%s%d", equals, attr->clockid);
	put_hex(out, equals, "sample_regs_intr", attr->sample_regs_intr);
	put_number(out, equals, "aux_watermark", attr->aux_watermark);
	put_number(out, equals, "sample_max_stack", attr->sample_max_stack);
	put_number(out, equals, "aux_sample_size", attr->aux_sample_size);
	put_number(out, equals, "sig_data", attr->sig_data);
}

/* Puts one event: its attribute, its name and its ids. */
static void put_event(struct header_part *part, uint32_t attr_size)
{
	struct tally_attr attr = { 0 };
	const void *bytes = tally_reader_bytes(&part->reader, attr_size);
	uint32_t ids = tally_reader_u32(&part->reader);
	const char *name = header_string(part);
	if (part->reader.failed)
		return;
	memcpy(&attr, bytes, attr_size < sizeof(attr) ? attr_size : sizeof(attr));
	tally_buffer_printf(part->out, "# event : name = %s, ", name);
	if (ids)
		tally_buffer_text(part->out, ", id = {");
	for (uint32_t i = 0; i < ids && !part->reader.failed; i++) {
		uint64_t id = tally_reader_u64(&part->reader);
		if (!part->reader.failed)
			tally_buffer_printf(part->out, "%s %" PRIu64, i ? "," : "", id);
	}
	if (ids)
		tally_buffer_text(part->out, " }");
	tally_attr_text(&attr, " = ", part->out);
	tally_buffer_char(part->out, '\n');
}

static void header_event_desc(struct header_part *part)
{
	uint32_t count = tally_reader_u32(&part->reader),
		 attr_size = tally_reader_u32(&part->reader);
	for (uint32_t i = 0; i < count && !part->reader.failed; i++)
		put_event(part, attr_size);
}

static void header_groups(struct header_part *part)
{
	size_t event_count;
	const struct tally_recorded_event *events = tally_perfdata_events(part->data, &event_count);
	uint32_t count = tally_reader_u32(&part->reader);
	for (uint32_t i = 0; i < count && !part->reader.failed; i++) {
		struct tally_feature_group group;
		if (!tally_feature_read_group(&part->reader, &group) || group.member_count < 2)
			continue;
		tally_buffer_text(part->out, "# group: ");
		if (strcmp(group.name, "{anon_group}"))
			tally_buffer_text(part->out, clean_name(part, group.name));
		tally_buffer_char(part->out, '{');
		uint64_t leader = group.leader_index, end = leader + group.member_count;
		for (uint64_t k = leader; k < end && k < event_count; k++)
			tally_buffer_printf(part->out, "%s%s", k > leader ? "," : "",
					    clean_name(part, events[k].name));
		tally_buffer_text(part->out, "}\n");
	}
}

/* ---- clocks -------------------------------------------------------------- */

static const char *clock_name(uint32_t clock)
{
	static const char *const names[] = {
		[CLOCK_REALTIME] = "realtime",
		[CLOCK_MONOTONIC] = "monotonic",
		[CLOCK_MONOTONIC_RAW] = "monotonic_raw",
		[CLOCK_BOOTTIME] = "boottime",
		[CLOCK_TAI] = "tai",
		[CLOCK_PROCESS_CPUTIME_ID] = "process_cputime_id",
		[CLOCK_THREAD_CPUTIME_ID] = "thread_cputime_id",
	};
	const char *name = NULL;
	if (clock < sizeof(names) / sizeof(names[0]))
		name = names[clock];
	if (name)
		return name;
	return "(not found)";
}

static void header_clock_data(struct header_part *part)
{
	struct tally_feature_clock clock;
	const uint64_t second = 1000000000;
	char text[64] = "";
	struct tm local;
	if (!tally_feature_read_clock_data(&part->reader, &clock))
		return;
	uint64_t wall = clock.wall_ns, monotonic = clock.clock_ns;
	time_t time = (time_t)(wall / second);
	tally_buffer_printf(part->out, "# clockid: %s (%u)\n", clock_name(clock.id), clock.id);
	if (localtime_r(&time, &local))
		strftime(text, sizeof(text), "%F %T", &local);
	tally_buffer_printf(part->out,
			    "# reference time: %s.%06u = %" PRIu64 ".%06u (TOD) = %" PRIu64
			    ".%09u (%s)\n",
			    text, (unsigned)(wall % second / 1000), wall / second,
			    (unsigned)(wall % second / 1000), monotonic / second,
			    (unsigned)(monotonic % second), clock_name(clock.id));
}

static void header_sample_time(struct header_part *part)
{
	const uint64_t second = 1000000000;
	uint64_t first, last;
	if (!tally_feature_read_sample_time(&part->reader, &first, &last))
		return;
	tally_buffer_printf(part->out, "# time of first sample : %" PRIu64 ".%06u\n",
			    first / second, (unsigned)(first % second / 1000));
	tally_buffer_printf(part->out, "# time of last sample : %" PRIu64 ".%06u\n", last / second,
			    (unsigned)(last % second / 1000));
	tally_buffer_printf(part->out, "# sample duration : %10.3f ms\n",
			    (double)(last - first) / 1e6);
}

static void put_list(struct header_part *part, const struct tally_reader *list, const char *name)
{
	part->reader = *list;
	uint32_t count = tally_reader_u32(&part->reader);
	for (uint32_t i = 0; i < count && !part->reader.failed; i++) {
		const char *text = header_string(part);
		if (!part->reader.failed)
			tally_buffer_printf(part->out, "# sibling %s : %s\n", name, text);
	}
}

static void header_cpu_topology(struct header_part *part)
{
	struct tally_reader nrcpus = tally_feature_reader(part->data, TALLY_FEATURE_NRCPUS);
	struct tally_feature_topology_parts parts;
	struct tally_buffer *out = part->out;
	uint32_t count, online;
	tally_feature_read_nrcpus(&nrcpus, &count, &online);
	tally_feature_read_cpu_topology(&part->reader, count, &parts);
	put_list(part, &parts.packages, "sockets");
	if (parts.has_dies)
		put_list(part, &parts.dies, "dies   ");
	put_list(part, &parts.threads, "threads");
	for (uint32_t i = 0; i < count && parts.has_cpus; i++) {
		struct tally_feature_cpu cpu;
		tally_feature_read_cpu(&parts, &cpu);
		tally_buffer_printf(out, "# CPU %u: Core ID %d, ", i, (int)cpu.core);
		if (parts.has_dies)
			tally_buffer_printf(out, "Die ID %d, ", (int)cpu.die);
		tally_buffer_printf(out, "Socket ID %d\n", (int)cpu.package);
	}
	if (!parts.has_cpus)
		tally_buffer_text(out, "# Core ID and Socket ID information is not available\n");
}

static void header_numa(struct header_part *part)
{
	uint32_t count = tally_reader_u32(&part->reader);
	for (uint32_t i = 0; i < count && !part->reader.failed; i++) {
		struct tally_feature_numa_node node;
		if (tally_feature_read_numa(&part->reader, &node))
			tally_buffer_printf(part->out,
					    "# node%u meminfo  : total = %" PRIu64
					    " kB, free = %" PRIu64 " kB\n# node%u cpu list : %s\n",
					    node.number, node.total_kib, node.free_kib,
					    node.number, clean_name(part, node.cpus));
	}
}

static void header_cache(struct header_part *part)
{
	uint32_t count;
	if (!tally_feature_read_cache_head(&part->reader, &count))
		return;
	tally_buffer_text(part->out, "# CPU cache info:\n");
	for (uint32_t i = 0; i < count && !part->reader.failed; i++) {
		struct tally_feature_cache_text cache;
		if (tally_feature_read_cache(&part->reader, &cache))
			tally_buffer_printf(part->out, "#  L%u %-15s %8s [%s]\n", cache.level,
					    clean_name(part, cache.type),
					    clean_name(part, cache.size),
					    clean_name(part, cache.cpus));
	}
}

/* Puts the set bits as ranges: "0-23,32-199". */
static void put_ranges(struct header_part *part, const struct tally_reader *words, uint64_t bits)
{
	struct tally_reader at = *words;
	uint64_t word = 0, first = 0;
	bool is_in = false, any = false;
	for (uint64_t bit = 0; bit <= bits; bit++) {
		if (!(bit % 64) && bit < bits)
			word = tally_reader_u64(&at);
		bool is_set = bit < bits && (word >> bit % 64 & 1);
		if (is_set && !is_in)
			first = bit;
		if (!is_set && is_in) {
			tally_buffer_printf(part->out, "%s%" PRIu64, any ? "," : "", first);
			if (bit - 1 > first)
				tally_buffer_printf(part->out, "-%" PRIu64, bit - 1);
			any = true;
		}
		is_in = is_set;
	}
}

static uint64_t count_bits(const struct tally_reader *words, uint64_t bits)
{
	struct tally_reader at = *words;
	uint64_t count = 0;
	for (uint64_t i = 0; i < (bits + 63) / 64; i++)
		count += (uint64_t)__builtin_popcountll(tally_reader_u64(&at));
	return count;
}

static void header_memory(struct header_part *part)
{
	static const char units[] = "BKMG";
	uint64_t block, count;
	if (!tally_feature_read_memory_head(&part->reader, &block, &count))
		return;
	tally_buffer_printf(part->out, "# memory nodes (nr %d, block size 0x%" PRIx64 "):\n",
			    (int)count, block);
	for (uint64_t i = 0; i < count; i++) {
		struct tally_feature_memory_node node;
		if (!tally_feature_read_memory(&part->reader, &node))
			return;
		uint64_t size = block * count_bits(&node.words, node.bits);
		unsigned unit = 0;
		for (; size / 1024 > 1 && unit < 3; unit++)
			size /= 1024;
		tally_buffer_printf(part->out, "#  %3" PRIu64 " [%" PRIu64 "%c]: ", node.number,
				    size, units[unit]);
		put_ranges(part, &node.words, node.bits);
		tally_buffer_char(part->out, '\n');
	}
}

static void header_hybrid(struct header_part *part)
{
	uint32_t count = tally_reader_u32(&part->reader);
	tally_buffer_text(part->out, "# hybrid cpu system:\n");
	for (uint32_t i = 0; i < count && !part->reader.failed; i++) {
		const char *name = header_string(part), *cpus = header_string(part);
		if (!part->reader.failed)
			tally_buffer_printf(part->out, "# %s cpu list : %s\n", name, cpus);
	}
}

/* The PMU's name, if there is one, follows the capabilities. */
static void put_caps(struct header_part *part, bool is_named)
{
	struct tally_buffer caps = { 0 };
	uint32_t count = tally_reader_u32(&part->reader);
	for (uint32_t i = 0; i < count && !part->reader.failed; i++) {
		const char *name = header_string(part), *value = header_string(part);
		if (!part->reader.failed)
			tally_buffer_printf(&caps, "%s%s=%s", i ? ", " : "", name, value);
	}
	const char *pmu = "cpu";
	if (is_named)
		pmu = header_string(part);
	if (!part->reader.failed)
		tally_buffer_printf(part->out, "# %s pmu capabilities: %s\n", pmu,
				    count ? tally_buffer_string(&caps) : "not available");
	tally_buffer_release(&caps);
}

static void header_cpu_caps(struct header_part *part)
{
	put_caps(part, false);
}

static void header_pmu_caps(struct header_part *part)
{
	uint32_t count = tally_reader_u32(&part->reader);
	for (uint32_t i = 0; i < count && !part->reader.failed; i++)
		put_caps(part, true);
}

static void header_pmus(struct header_part *part)
{
	uint32_t count = tally_reader_u32(&part->reader);
	tally_buffer_text(part->out, count ? "# pmu mappings: " : "# pmu mappings: not available");
	for (uint32_t i = 0; i < count && !part->reader.failed; i++) {
		struct tally_feature_pmu pmu;
		if (tally_feature_read_pmu(&part->reader, &pmu))
			tally_buffer_printf(part->out, "%s%s = %u", i ? ", " : "",
					    clean_name(part, pmu.name), pmu.type);
	}
	tally_buffer_char(part->out, '\n');
}

/* The scheduler's domains of each CPU; they have names since version 17 of /proc/schedstat. */
static void header_cpu_domains(struct header_part *part)
{
	enum { WITH_NAMES = 17 };
	struct tally_reader *reader = &part->reader;
	uint32_t version = tally_reader_u32(reader), most = tally_reader_u32(reader);
	if (reader->failed)
		return;
	tally_buffer_printf(part->out,
			    "# schedstat version	: %u\n# Maximum sched domains	: %u\n",
			    version, most);
	while (tally_reader_left(reader) && !reader->failed) {
		uint32_t cpu = tally_reader_u32(reader), count = tally_reader_u32(reader);
		if (!reader->failed)
			tally_buffer_printf(part->out,
					    "# cpu		: %u\n# nr_domains	: %u\n",
					    cpu, count);
		for (uint32_t i = 0; i < count && !reader->failed; i++) {
			uint32_t domain = tally_reader_u32(reader);
			const char *name = NULL;
			if (version >= WITH_NAMES)
				name = header_string(part);
			const char *mask = header_string(part), *list = header_string(part);
			if (reader->failed)
				return;
			tally_buffer_printf(part->out, "# Domain		: %u\n", domain);
			if (name)
				tally_buffer_printf(part->out, "# Domain name      : %s\n", name);
			tally_buffer_printf(part->out,
					    "# Domain cpu map   : %s\n# Domain cpu list  : %s\n",
					    mask, list);
		}
	}
}

/* BPF programs as perf recorded them: each is a bpf_prog_info (linux/bpf.h) of the size of the
 * recording kernel's, whose addresses are offsets into the bytes that follow. */

enum { NAMED_MAX = 4096, SIGNATURE_BYTES_MIN = 8 /* instruction, type */ };

struct bpf_program { /* struct bpf_prog_info, as far as it is shown */
	uint32_t type, id;
	uint8_t tag[8];
	uint32_t jited_length, translated_length;
	uint64_t jited, translated, load_time;
	uint32_t user, map_count;
	uint64_t maps;
	char name[16];
	uint32_t interface_index, flags;
	uint64_t namespace_device, namespace_inode;
	uint32_t function_count, length_count;
	uint64_t functions, lengths; /* arrays of u64, u32 */
	uint32_t types_id, signature_size;
	uint64_t signatures;
	uint32_t signature_count, line_count;
	uint64_t lines, jited_lines;
	uint32_t jited_line_count, line_size, jited_line_size, tag_count;
	uint64_t tags; /* array of u8[8] */
};

static const uint8_t *array_at(const uint8_t *data, size_t size, uint64_t offset, uint64_t bytes)
{
	if (data && offset <= size && bytes <= size - offset)
		return data + offset;
	return NULL;
}

/* Finds the BTF with this id, from the section of BPF types. */
static bool find_types(const struct header_part *part, uint32_t wanted,
		       struct tally_feature_bpf_types *types)
{
	struct tally_reader reader = tally_feature_reader(part->data, TALLY_FEATURE_BPF_BTF);
	if (!wanted)
		return false;
	for (uint32_t left = tally_reader_u32(&reader);
	     left && tally_feature_read_bpf_types(&reader, types); left--)
		if (types->id == wanted)
			return true;
	return false;
}

/* Returns the functions' names from the BTF; a name may be NULL. The caller frees the array. NULL:
 * the program has no usable BTF, or memory is out. */
static const char **function_names(const struct header_part *part,
				   const struct bpf_program *program, const uint8_t *data,
				   size_t size)
{
	struct tally_feature_bpf_types types;
	uint64_t count = program->function_count, stride = program->signature_size;
	bool is_told = count <= NAMED_MAX && count <= program->signature_count &&
		       stride >= SIGNATURE_BYTES_MIN;
	const uint8_t *signatures = NULL;
	if (is_told)
		signatures = array_at(data, size, program->signatures, count * stride);
	if (!signatures || !find_types(part, program->types_id, &types))
		return NULL;
	uint32_t *ids = calloc(count, sizeof(*ids));
	const char **names = calloc(count, sizeof(*names));
	for (uint64_t i = 0; ids && i < count; i++)
		memcpy(&ids[i], signatures + i * stride + 4, sizeof(ids[i]));
	if (ids && names)
		tally_bpf_type_names(types.bytes, types.size, ids, count, names);
	free(ids);
	return names;
}

/* Puts "bpf_prog_" tag "_" name, the kernel's name for it in kallsyms. */
static void put_bpf_name(struct tally_buffer *out, const struct bpf_program *program,
			 const uint8_t *tag, const char *name)
{
	tally_buffer_text(out, "bpf_prog_");
	for (unsigned i = 0; i < sizeof(program->tag); i++)
		tally_buffer_printf(out, "%02x", tag ? tag[i] : 0);
	size_t length;
	if (name)
		length = strlen(name);
	else
		length = strnlen(program->name, sizeof(program->name));
	if (!name && program->function_count > 1) {
		tally_buffer_text(out, "_F");
	} else if (length || name) {
		tally_buffer_char(out, '_');
		tally_put_name_bytes(out, name ? name : program->name, length);
	}
}

static void put_program(struct header_part *part, const struct bpf_program *program,
			const uint8_t *data, size_t size)
{
	uint64_t count = program->function_count;
	const uint8_t *functions = array_at(data, size, program->functions, count * 8);
	const uint8_t *lengths = array_at(data, size, program->lengths, count * 4);
	const uint8_t *tags = array_at(data, size, program->tags, count * 8);
	if (!count || !functions || !lengths || program->length_count < count ||
	    program->tag_count < count)
		return;
	const char **names = function_names(part, program, data, size);
	tally_buffer_printf(part->out, "# bpf_prog_info %u:%s", program->id,
			    count > 1 ? "\n" : " ");
	for (uint64_t i = 0; i < count; i++) {
		uint64_t address;
		uint32_t length;
		memcpy(&address, functions + 8 * i, sizeof(address));
		memcpy(&length, lengths + 4 * i, sizeof(length));
		if (count > 1)
			tally_buffer_printf(part->out, "# \tsub_prog %" PRIu64 ": ", i);
		put_bpf_name(part->out, program, tags ? tags + 8 * i : NULL,
			     names ? names[i] : NULL);
		tally_buffer_printf(part->out, " addr 0x%" PRIx64 " size %u\n", address, length);
	}
	free(names);
}

static void header_bpf_programs(struct header_part *part)
{
	struct tally_reader *reader = &part->reader;
	uint32_t count = tally_reader_u32(reader);
	for (uint32_t i = 0; i < count && !reader->failed; i++) {
		struct bpf_program program = { 0 };
		uint32_t info_size = tally_reader_u32(reader), data_size = tally_reader_u32(reader);
		tally_reader_u64(reader); /* bit mask of the arrays that follow */
		const uint8_t *info = tally_reader_bytes(reader, info_size);
		const uint8_t *data = tally_reader_bytes(reader, data_size);
		if (reader->failed)
			return;
		memcpy(&program, info, info_size < sizeof(program) ? info_size : sizeof(program));
		put_program(part, &program, data, data_size);
	}
}

static void header_bpf_types(struct header_part *part)
{
	uint32_t count = tally_reader_u32(&part->reader);
	for (uint32_t i = 0; i < count && !part->reader.failed; i++) {
		struct tally_feature_bpf_types types;
		if (tally_feature_read_bpf_types(&part->reader, &types))
			tally_buffer_printf(part->out, "# btf info of id %u\n", types.id);
	}
}

static void put_text(struct header_part *part, const char *name)
{
	const char *text = header_string(part);
	if (!part->reader.failed)
		tally_buffer_printf(part->out, "# %s : %s\n", name, text);
}

static void put_cpu_counts(struct header_part *part)
{
	uint32_t available, online;
	if (tally_feature_read_nrcpus(&part->reader, &available, &online))
		tally_buffer_printf(part->out, "# nrcpus online : %u\n# nrcpus avail : %u\n",
				    online, available);
}

static void put_memory(struct header_part *part)
{
	uint64_t kib = tally_reader_u64(&part->reader);
	if (!part->reader.failed)
		tally_buffer_printf(part->out, "# total memory : %" PRIu64 " kB\n", kib);
}

static void put_command(struct header_part *part)
{
	uint32_t count = tally_reader_u32(&part->reader);
	tally_buffer_text(part->out, "# cmdline : ");
	for (uint32_t i = 0; i < count && !part->reader.failed; i++) {
		for (const char *at = header_string(part); *at; at++) {
			if (*at == '\'')
				tally_buffer_char(part->out, '\\');
			tally_buffer_char(part->out, *at);
		}
		tally_buffer_char(part->out, ' ');
	}
	tally_buffer_char(part->out, '\n');
}

static void put_clock_resolution(struct header_part *part)
{
	uint64_t ns = tally_reader_u64(&part->reader);
	if (!part->reader.failed)
		/* perf's wording */
		tally_buffer_printf(part->out, "# clockid frequency: %" PRIu64 " MHz\n", ns * 1000);
}

static void put_directory_version(struct header_part *part)
{
	uint64_t version = tally_reader_u64(&part->reader);
	if (!part->reader.failed)
		tally_buffer_printf(part->out, "# directory data version : %" PRIu64 "\n", version);
}

static void put_compressed(struct header_part *part)
{
	uint32_t version = tally_reader_u32(&part->reader), type = tally_reader_u32(&part->reader);
	uint32_t level = tally_reader_u32(&part->reader), ratio = tally_reader_u32(&part->reader);
	(void)version;
	if (!part->reader.failed)
		tally_buffer_printf(part->out, "# compressed : %s, level = %u, ratio = %u\n",
				    type == 1 ? "Zstd" : "Unknown", level, ratio);
}

static void put_elf_machine(struct header_part *part)
{
	uint32_t machine = tally_reader_u32(&part->reader), flags = tally_reader_u32(&part->reader);
	if (!part->reader.failed)
		tally_buffer_printf(part->out, "# e_machine : %u\n#   e_flags : %u\n", machine,
				    flags);
}

static void put_cache_line(struct header_part *part)
{
	uint32_t bytes = tally_reader_u32(&part->reader);
	if (!part->reader.failed)
		tally_buffer_printf(part->out, "# cacheline size: %u\n", bytes);
}

/* simpleperf's metadata: keys and values; each line of a longer value gets a line. */
static void put_meta_info(struct header_part *part)
{
	while (tally_reader_left(&part->reader)) {
		const char *key = tally_reader_string(&part->reader),
			   *value = tally_reader_string(&part->reader);
		if (part->reader.failed)
			return;
		tally_buffer_printf(part->out, "# %s : ", clean_name(part, key));
		for (;;) {
			size_t length = strcspn(value, "\n");
			tally_put_name_bytes(part->out, value, length);
			value += length;
			if (!*value)
				break;
			value++;
			tally_buffer_text(part->out, "\n#   ");
		}
		tally_buffer_char(part->out, '\n');
	}
}

/* How a feature is printed: not at all if it has neither text, note nor function. */
static const struct {
	const char *name;
	const char *text; /* the section is a string, printed after this word */
	const char *note; /* printed in place of the section */
	header_printer *print;
	bool is_long; /* printed only on request */
} features[] = {
	[TALLY_FEATURE_TRACING_DATA] = { "TRACING_DATA" },
	[TALLY_FEATURE_BUILD_ID] = { "BUILD_ID" },
	[TALLY_FEATURE_HOSTNAME] = { "HOSTNAME", .text = "hostname" },
	[TALLY_FEATURE_OSRELEASE] = { "OSRELEASE", .text = "os release" },
	[TALLY_FEATURE_VERSION] = { "VERSION", .text = "perf version" },
	[TALLY_FEATURE_ARCH] = { "ARCH", .text = "arch" },
	[TALLY_FEATURE_NRCPUS] = { "NRCPUS", .print = put_cpu_counts },
	[TALLY_FEATURE_CPUDESC] = { "CPUDESC", .text = "cpudesc" },
	[TALLY_FEATURE_CPUID] = { "CPUID", .text = "cpuid" },
	[TALLY_FEATURE_TOTAL_MEM] = { "TOTAL_MEM", .print = put_memory },
	[TALLY_FEATURE_CMDLINE] = { "CMDLINE", .print = put_command },
	[TALLY_FEATURE_EVENT_DESC] = { "EVENT_DESC", .print = header_event_desc },
	[TALLY_FEATURE_CPU_TOPOLOGY] = { "CPU_TOPOLOGY", .print = header_cpu_topology,
				     .is_long = true },
	[TALLY_FEATURE_NUMA_TOPOLOGY] = { "NUMA_TOPOLOGY", .print = header_numa, .is_long = true },
	[TALLY_FEATURE_BRANCH_STACK] = { "BRANCH_STACK",
				     .note = "contains samples with branch stack" },
	[TALLY_FEATURE_PMU_MAPPINGS] = { "PMU_MAPPINGS", .print = header_pmus },
	[TALLY_FEATURE_GROUP_DESC] = { "GROUP_DESC", .print = header_groups },
	[TALLY_FEATURE_AUXTRACE] = { "AUXTRACE",
				     .note = "contains AUX area data (e.g. instruction trace)" },
	[TALLY_FEATURE_STAT] = { "STAT", .note = "contains stat data" },
	[TALLY_FEATURE_CACHE] = { "CACHE", .print = header_cache, .is_long = true },
	[TALLY_FEATURE_SAMPLE_TIME] = { "SAMPLE_TIME", .print = header_sample_time },
	[TALLY_FEATURE_MEM_TOPOLOGY] = { "MEM_TOPOLOGY", .print = header_memory, .is_long = true },
	[TALLY_FEATURE_CLOCKID] = { "CLOCKID", .print = put_clock_resolution },
	[TALLY_FEATURE_DIR_FORMAT] = { "DIR_FORMAT", .print = put_directory_version },
	[TALLY_FEATURE_BPF_PROG_INFO] = { "BPF_PROG_INFO", .print = header_bpf_programs },
	[TALLY_FEATURE_BPF_BTF] = { "BPF_BTF", .print = header_bpf_types },
	[TALLY_FEATURE_COMPRESSED] = { "COMPRESSED", .print = put_compressed },
	[TALLY_FEATURE_CPU_PMU_CAPS] = { "CPU_PMU_CAPS", .print = header_cpu_caps },
	[TALLY_FEATURE_CLOCK_DATA] = { "CLOCK_DATA", .print = header_clock_data },
	[TALLY_FEATURE_HYBRID_TOPOLOGY] = { "HYBRID_TOPOLOGY", .print = header_hybrid,
				     .is_long = true },
	[TALLY_FEATURE_PMU_CAPS] = { "PMU_CAPS", .print = header_pmu_caps },
	[TALLY_FEATURE_CPU_DOMAIN_INFO] = { "CPU_DOMAIN_INFO", .print = header_cpu_domains,
				     .is_long = true },
	[TALLY_FEATURE_E_MACHINE] = { "E_MACHINE", .print = put_elf_machine },
	[TALLY_FEATURE_CLN_SIZE] = { "CLN_SIZE", .print = put_cache_line },
};

void tally_recording_header_feature(const struct tally_perfdata *data, unsigned feature, bool full,
				    struct tally_buffer *out)
{
	struct tally_feature_bytes bytes = tally_perfdata_feature(data, feature);
	struct header_part part = { .data = data, .out = out };
	/* In pipes, perf ends its features with an empty one, numbered after the last it knows. */
	if (!bytes.bytes || (!bytes.size && feature > TALLY_FEATURE_PMU_CAPS))
		return;
	tally_reader_init(&part.reader, bytes.bytes, bytes.size, false);
	if (feature >= TALLY_FEATURE_KNOWN_MAX) {
		if (feature == TALLY_FEATURE_SIMPLEPERF_FILE)
			tally_buffer_text(out, "# contains symbols (simpleperf's)\n");
		else if (feature == TALLY_FEATURE_SIMPLEPERF_META_INFO)
			put_meta_info(&part);
		else if (feature != TALLY_FEATURE_TALLY)
			tally_buffer_printf(
				out, "# feature section %u, which tally doesn't know: %zu bytes\n",
				feature, bytes.size);
		tally_arena_release(&part.arena);
		return;
	}
	if (features[feature].is_long && !full) {
		tally_buffer_printf(out, "# %s info available, use -I to display\n",
				    features[feature].name);
		return;
	}
	if (features[feature].text)
		put_text(&part, features[feature].text);
	if (features[feature].note)
		tally_buffer_printf(out, "# %s\n", features[feature].note);
	if (features[feature].print)
		features[feature].print(&part);
	tally_arena_release(&part.arena);
	if (part.reader.failed)
		tally_buffer_printf(out, "# %s: cut short\n", features[feature].name);
}

/* Lists the missing features up to the last one in the file: the recorder knew all of these. */
static void put_missing(const struct tally_perfdata *data, struct tally_buffer *out)
{
	unsigned end = TALLY_FEATURE_KNOWN_MAX;
	while (end > TALLY_FEATURE_PMU_CAPS + 1 && !tally_perfdata_feature(data, end - 1).bytes)
		end--;
	tally_buffer_text(out, "# missing features: ");
	for (unsigned feature = 1; feature < end; feature++)
		if (!tally_perfdata_feature(data, feature).bytes)
			tally_buffer_printf(out, "%s ", features[feature].name);
	tally_buffer_char(out, '\n');
}

void tally_recording_header(const struct tally_perfdata *data, int64_t captured, bool full,
			    struct tally_buffer *out)
{
	struct tally_perfdata_place place = tally_perfdata_place(data);
	time_t time = (time_t)captured;
	struct tm local;
	char text[64] = "";
	if (localtime_r(&time, &local))
		strftime(text, sizeof(text), "%a %b %e %H:%M:%S %Y", &local);
	tally_buffer_printf(out, "# ========\n# captured on    : %s\n# header version : %u\n", text,
			    place.version);
	tally_buffer_printf(out, "# data offset    : %" PRIu64 "\n# data size      : %" PRIu64 "\n",
			    place.data_offset, place.data_size);
	tally_buffer_printf(out, "# feat offset    : %" PRIu64 "\n", place.features_offset);
	for (unsigned feature = 1; feature < TALLY_FEATURE_MAX && !tally_perfdata_is_pipe(data);
	     feature++)
		tally_recording_header_feature(data, feature, full, out);
	if (!tally_perfdata_is_pipe(data))
		put_missing(data, out);
	tally_buffer_text(out, "# ========\n#\n");
	for (unsigned feature = 1; feature < TALLY_FEATURE_MAX && tally_perfdata_is_pipe(data);
	     feature++)
		tally_recording_header_feature(data, feature, full, out);
}
