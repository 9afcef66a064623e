#include "output/header_parts.h"

#include <inttypes.h>

static void put_list(struct tally_header_part *part, const char *name)
{
	uint32_t count = tally_reader_u32(&part->reader);
	for (uint32_t i = 0; i < count && !part->reader.failed; i++) {
		const char *list = tally_header_string(part);
		if (!part->reader.failed)
			tally_buffer_printf(part->out, "# sibling %s : %s\n", name, list);
	}
}

static uint32_t available_cpus(const struct tally_header_part *part)
{
	struct tally_feature_bytes bytes = tally_perfdata_feature(part->data, TALLY_FEATURE_NRCPUS);
	struct tally_reader reader;
	tally_reader_init(&reader, bytes.bytes ? (const void *)bytes.bytes : "",
			  bytes.bytes ? bytes.size : 0, part->reader.swap);
	return tally_reader_u32(&reader);
}

/* Lists of packages and threads, then core and package of each CPU; newer files add lists of dies
 * and the die of each CPU. perf prints the dies between packages and threads, so read ahead. */
void tally_header_cpu_topology(struct tally_header_part *part)
{
	struct tally_reader *reader = &part->reader, cpus, threads;
	struct tally_buffer *out = part->out;
	struct tally_buffer unseen = { 0 };
	uint32_t count = available_cpus(part);
	put_list(part, "sockets");
	threads = *reader;
	part->out = &unseen; /* read over the lists without printing */
	put_list(part, "threads");
	cpus = *reader;
	tally_reader_bytes(reader, (size_t)count * 8);
	part->out = out;
	bool has_cpus = !reader->failed, has_dies = has_cpus && tally_reader_left(reader);
	if (has_dies)
		put_list(part, "dies   ");
	struct tally_reader dies = *reader;
	*reader = threads;
	put_list(part, "threads");
	for (uint32_t i = 0; i < count && has_cpus; i++) {
		int core = (int)tally_reader_u32(&cpus), package = (int)tally_reader_u32(&cpus);
		if (has_dies)
			tally_buffer_printf(out, "# CPU %u: Core ID %d, Die ID %d, Socket ID %d\n",
					    i, core, (int)tally_reader_u32(&dies), package);
		else
			tally_buffer_printf(out, "# CPU %u: Core ID %d, Socket ID %d\n", i, core,
					    package);
	}
	if (!has_cpus)
		tally_buffer_text(out, "# Core ID and Socket ID information is not available\n");
	tally_buffer_release(&unseen);
}

void tally_header_numa(struct tally_header_part *part)
{
	uint32_t count = tally_reader_u32(&part->reader);
	for (uint32_t i = 0; i < count && !part->reader.failed; i++) {
		uint32_t node = tally_reader_u32(&part->reader);
		uint64_t total = tally_reader_u64(&part->reader),
			 unused = tally_reader_u64(&part->reader);
		const char *cpus = tally_header_string(part);
		if (!part->reader.failed)
			tally_buffer_printf(part->out,
					    "# node%u meminfo  : total = %" PRIu64
					    " kB, free = %" PRIu64 " kB\n# node%u cpu list : %s\n",
					    node, total, unused, node, cpus);
	}
}

void tally_header_cache(struct tally_header_part *part)
{
	uint32_t version = tally_reader_u32(&part->reader), count = tally_reader_u32(&part->reader);
	if (part->reader.failed || version != 1)
		return;
	tally_buffer_text(part->out, "# CPU cache info:\n");
	for (uint32_t i = 0; i < count && !part->reader.failed; i++) {
		uint32_t level = tally_reader_u32(&part->reader);
		tally_reader_bytes(&part->reader, 12); /* line size, sets, ways */
		const char *type = tally_header_string(part), *size = tally_header_string(part);
		const char *cpus = tally_header_string(part);
		if (!part->reader.failed)
			tally_buffer_printf(part->out, "#  L%u %-15s %8s [%s]\n", level, type, size,
					    cpus);
	}
}

/* Puts the set bits as ranges: "0-23,32-199". */
static void put_bits(struct tally_header_part *part, const struct tally_reader *words,
		     uint64_t bits)
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
			tally_buffer_printf(part->out,
					    bit - 1 > first ? "%s%" PRIu64 "-%" PRIu64
							    : "%s%" PRIu64,
					    any ? "," : "", first, bit - 1);
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

void tally_header_memory(struct tally_header_part *part)
{
	static const char units[] = "BKMG";
	struct tally_reader *reader = &part->reader;
	uint64_t version = tally_reader_u64(reader), block = tally_reader_u64(reader),
		 count = tally_reader_u64(reader);
	if (reader->failed || version != 1)
		return;
	tally_buffer_printf(part->out, "# memory nodes (nr %d, block size 0x%" PRIx64 "):\n",
			    (int)count, block);
	for (uint64_t i = 0; i < count && !reader->failed; i++) {
		uint64_t node = tally_reader_u64(reader);
		/* the number of possible bits; the bitmap repeats it */
		tally_reader_u64(reader);
		uint64_t bits = tally_reader_u64(reader);
		struct tally_reader words = *reader;
		if (bits > tally_reader_left(reader) * 8 ||
		    !tally_reader_bytes(reader, (bits + 63) / 64 * 8)) {
			reader->failed = true;
			return;
		}
		uint64_t size = block * count_bits(&words, bits);
		unsigned unit = 0;
		for (; size / 1024 > 1 && unit < 3; unit++)
			size /= 1024;
		tally_buffer_printf(part->out, "#  %3" PRIu64 " [%" PRIu64 "%c]: ", node, size,
				    units[unit]);
		put_bits(part, &words, bits);
		tally_buffer_char(part->out, '\n');
	}
}

void tally_header_hybrid(struct tally_header_part *part)
{
	uint32_t count = tally_reader_u32(&part->reader);
	tally_buffer_text(part->out, "# hybrid cpu system:\n");
	for (uint32_t i = 0; i < count && !part->reader.failed; i++) {
		const char *name = tally_header_string(part), *cpus = tally_header_string(part);
		if (!part->reader.failed)
			tally_buffer_printf(part->out, "# %s cpu list : %s\n", name, cpus);
	}
}

/* The PMU's name, if there is one, follows the capabilities. */
static void put_caps(struct tally_header_part *part, bool is_named)
{
	struct tally_buffer caps = { 0 };
	uint32_t count = tally_reader_u32(&part->reader);
	for (uint32_t i = 0; i < count && !part->reader.failed; i++) {
		const char *name = tally_header_string(part), *value = tally_header_string(part);
		if (!part->reader.failed)
			tally_buffer_printf(&caps, "%s%s=%s", i ? ", " : "", name, value);
	}
	const char *pmu = is_named ? tally_header_string(part) : "cpu";
	if (!part->reader.failed)
		tally_buffer_printf(part->out, "# %s pmu capabilities: %s\n", pmu,
				    count ? tally_buffer_string(&caps) : "not available");
	tally_buffer_release(&caps);
}

void tally_header_cpu_caps(struct tally_header_part *part)
{
	put_caps(part, false);
}

void tally_header_pmu_caps(struct tally_header_part *part)
{
	uint32_t count = tally_reader_u32(&part->reader);
	for (uint32_t i = 0; i < count && !part->reader.failed; i++)
		put_caps(part, true);
}

void tally_header_pmus(struct tally_header_part *part)
{
	uint32_t count = tally_reader_u32(&part->reader);
	tally_buffer_text(part->out, count ? "# pmu mappings: " : "# pmu mappings: not available");
	for (uint32_t i = 0; i < count && !part->reader.failed; i++) {
		uint32_t type = tally_reader_u32(&part->reader);
		const char *name = tally_header_string(part);
		if (!part->reader.failed)
			tally_buffer_printf(part->out, "%s%s = %u", i ? ", " : "", name, type);
	}
	tally_buffer_char(part->out, '\n');
}

/* The scheduler's domains of each CPU; they have names since version 17 of /proc/schedstat. */
void tally_header_cpu_domains(struct tally_header_part *part)
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
					    "# cpu		: %u\n# nr_domains	: %u\n", cpu,
					    count);
		for (uint32_t i = 0; i < count && !reader->failed; i++) {
			uint32_t domain = tally_reader_u32(reader);
			const char *name = version >= WITH_NAMES ? tally_header_string(part) : NULL;
			const char *mask = tally_header_string(part),
				   *list = tally_header_string(part);
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
