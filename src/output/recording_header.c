#include "output/recording_header.h"

#include "output/header_parts.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

const char *tally_header_string(struct tally_header_part *part)
{
	uint32_t room = tally_reader_u32(&part->reader);
	const char *text = tally_reader_bytes(&part->reader, room);
	if (text && memchr(text, 0, room))
		return text;
	part->reader.failed = true;
	return "";
}

static void put_text(struct tally_header_part *part, const char *name)
{
	const char *text = tally_header_string(part);
	if (!part->reader.failed)
		tally_buffer_printf(part->out, "# %s : %s\n", name, text);
}

static void put_hostname(struct tally_header_part *part)
{
	put_text(part, "hostname");
}

static void put_release(struct tally_header_part *part)
{
	put_text(part, "os release");
}

static void put_version(struct tally_header_part *part)
{
	put_text(part, "perf version");
}

static void put_arch(struct tally_header_part *part)
{
	put_text(part, "arch");
}

static void put_cpu(struct tally_header_part *part)
{
	put_text(part, "cpudesc");
}

static void put_cpuid(struct tally_header_part *part)
{
	put_text(part, "cpuid");
}

static void put_cpu_counts(struct tally_header_part *part)
{
	uint32_t available = tally_reader_u32(&part->reader),
		 online = tally_reader_u32(&part->reader);
	if (!part->reader.failed)
		tally_buffer_printf(part->out, "# nrcpus online : %u\n# nrcpus avail : %u\n",
				    online, available);
}

static void put_memory(struct tally_header_part *part)
{
	uint64_t kib = tally_reader_u64(&part->reader);
	if (!part->reader.failed)
		tally_buffer_printf(part->out, "# total memory : %" PRIu64 " kB\n", kib);
}

static void put_command(struct tally_header_part *part)
{
	uint32_t count = tally_reader_u32(&part->reader);
	tally_buffer_text(part->out, "# cmdline : ");
	for (uint32_t i = 0; i < count && !part->reader.failed; i++) {
		for (const char *at = tally_header_string(part); *at; at++) {
			if (*at == '\'')
				tally_buffer_char(part->out, '\\');
			tally_buffer_char(part->out, *at);
		}
		tally_buffer_char(part->out, ' ');
	}
	tally_buffer_char(part->out, '\n');
}

static void put_clock_resolution(struct tally_header_part *part)
{
	uint64_t ns = tally_reader_u64(&part->reader);
	if (!part->reader.failed)
		/* perf's wording */
		tally_buffer_printf(part->out, "# clockid frequency: %" PRIu64 " MHz\n", ns * 1000);
}

static void put_directory_version(struct tally_header_part *part)
{
	uint64_t version = tally_reader_u64(&part->reader);
	if (!part->reader.failed)
		tally_buffer_printf(part->out, "# directory data version : %" PRIu64 "\n", version);
}

static void put_compressed(struct tally_header_part *part)
{
	uint32_t version = tally_reader_u32(&part->reader), type = tally_reader_u32(&part->reader);
	uint32_t level = tally_reader_u32(&part->reader), ratio = tally_reader_u32(&part->reader);
	(void)version;
	if (!part->reader.failed)
		tally_buffer_printf(part->out, "# compressed : %s, level = %u, ratio = %u\n",
				    type == 1 ? "Zstd" : "Unknown", level, ratio);
}

static void put_elf_machine(struct tally_header_part *part)
{
	uint32_t machine = tally_reader_u32(&part->reader), flags = tally_reader_u32(&part->reader);
	if (!part->reader.failed)
		tally_buffer_printf(part->out, "# e_machine : %u\n#   e_flags : %u\n", machine,
				    flags);
}

static void put_cache_line(struct tally_header_part *part)
{
	uint32_t bytes = tally_reader_u32(&part->reader);
	if (!part->reader.failed)
		tally_buffer_printf(part->out, "# cacheline size: %u\n", bytes);
}

static void put_branches(struct tally_header_part *part)
{
	tally_buffer_text(part->out, "# contains samples with branch stack\n");
}

static void put_auxtrace(struct tally_header_part *part)
{
	tally_buffer_text(part->out, "# contains AUX area data (e.g. instruction trace)\n");
}

static void put_stat(struct tally_header_part *part)
{
	tally_buffer_text(part->out, "# contains stat data\n");
}

/* simpleperf's metadata: keys and values; each line of a longer value gets a line. */
static void put_meta_info(struct tally_header_part *part)
{
	while (tally_reader_left(&part->reader)) {
		const char *key = tally_reader_string(&part->reader),
			   *value = tally_reader_string(&part->reader);
		if (part->reader.failed)
			return;
		tally_buffer_printf(part->out, "# %s : ", key);
		for (; *value; value++) {
			tally_buffer_char(part->out, *value);
			if (*value == '\n')
				tally_buffer_text(part->out, "#   ");
		}
		tally_buffer_char(part->out, '\n');
	}
}

static const struct {
	const char *name;
	tally_header_printer *print; /* NULL: not printed */
	bool is_long; /* printed only on request */
} features[] = {
	[TALLY_FEATURE_TRACING_DATA] = { "TRACING_DATA", NULL, false },
	[TALLY_FEATURE_BUILD_ID] = { "BUILD_ID", NULL, false },
	[TALLY_FEATURE_HOSTNAME] = { "HOSTNAME", put_hostname, false },
	[TALLY_FEATURE_OSRELEASE] = { "OSRELEASE", put_release, false },
	[TALLY_FEATURE_VERSION] = { "VERSION", put_version, false },
	[TALLY_FEATURE_ARCH] = { "ARCH", put_arch, false },
	[TALLY_FEATURE_NRCPUS] = { "NRCPUS", put_cpu_counts, false },
	[TALLY_FEATURE_CPUDESC] = { "CPUDESC", put_cpu, false },
	[TALLY_FEATURE_CPUID] = { "CPUID", put_cpuid, false },
	[TALLY_FEATURE_TOTAL_MEM] = { "TOTAL_MEM", put_memory, false },
	[TALLY_FEATURE_CMDLINE] = { "CMDLINE", put_command, false },
	[TALLY_FEATURE_EVENT_DESC] = { "EVENT_DESC", tally_header_event_desc, false },
	[TALLY_FEATURE_CPU_TOPOLOGY] = { "CPU_TOPOLOGY", tally_header_cpu_topology, true },
	[TALLY_FEATURE_NUMA_TOPOLOGY] = { "NUMA_TOPOLOGY", tally_header_numa, true },
	[TALLY_FEATURE_BRANCH_STACK] = { "BRANCH_STACK", put_branches, false },
	[TALLY_FEATURE_PMU_MAPPINGS] = { "PMU_MAPPINGS", tally_header_pmus, false },
	[TALLY_FEATURE_GROUP_DESC] = { "GROUP_DESC", tally_header_groups, false },
	[TALLY_FEATURE_AUXTRACE] = { "AUXTRACE", put_auxtrace, false },
	[TALLY_FEATURE_STAT] = { "STAT", put_stat, false },
	[TALLY_FEATURE_CACHE] = { "CACHE", tally_header_cache, true },
	[TALLY_FEATURE_SAMPLE_TIME] = { "SAMPLE_TIME", tally_header_sample_time, false },
	[TALLY_FEATURE_MEM_TOPOLOGY] = { "MEM_TOPOLOGY", tally_header_memory, true },
	[TALLY_FEATURE_CLOCKID] = { "CLOCKID", put_clock_resolution, false },
	[TALLY_FEATURE_DIR_FORMAT] = { "DIR_FORMAT", put_directory_version, false },
	[TALLY_FEATURE_BPF_PROG_INFO] = { "BPF_PROG_INFO", tally_header_bpf_programs, false },
	[TALLY_FEATURE_BPF_BTF] = { "BPF_BTF", tally_header_bpf_types, false },
	[TALLY_FEATURE_COMPRESSED] = { "COMPRESSED", put_compressed, false },
	[TALLY_FEATURE_CPU_PMU_CAPS] = { "CPU_PMU_CAPS", tally_header_cpu_caps, false },
	[TALLY_FEATURE_CLOCK_DATA] = { "CLOCK_DATA", tally_header_clock_data, false },
	[TALLY_FEATURE_HYBRID_TOPOLOGY] = { "HYBRID_TOPOLOGY", tally_header_hybrid, true },
	[TALLY_FEATURE_PMU_CAPS] = { "PMU_CAPS", tally_header_pmu_caps, false },
	[TALLY_FEATURE_CPU_DOMAIN_INFO] = { "CPU_DOMAIN_INFO", tally_header_cpu_domains, true },
	[TALLY_FEATURE_E_MACHINE] = { "E_MACHINE", put_elf_machine, false },
	[TALLY_FEATURE_CLN_SIZE] = { "CLN_SIZE", put_cache_line, false },
};

void tally_recording_header_feature(const struct tally_perfdata *data, unsigned feature, bool full,
				    struct tally_buffer *out)
{
	struct tally_feature_bytes bytes = tally_perfdata_feature(data, feature);
	struct tally_header_part part = { .data = data, .out = out };
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
		return;
	}
	if (!features[feature].print)
		return;
	if (features[feature].is_long && !full) {
		tally_buffer_printf(out, "# %s info available, use -I to display\n",
				    features[feature].name);
		return;
	}
	features[feature].print(&part);
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
