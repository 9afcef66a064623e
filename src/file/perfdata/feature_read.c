/* Reads the contents of feature sections, as feature.c builds them.  The sections are in this
 * machine's byte order: perfdata_foreign.c has swapped them. */
#include "perfdata/perfdata.h"

struct tally_reader tally_feature_reader(const struct tally_perfdata *data, unsigned feature)
{
	struct tally_feature_bytes section = tally_perfdata_feature(data, feature);
	struct tally_reader reader;
	if (section.bytes)
		tally_reader_init(&reader, section.bytes, section.size, false);
	else
		tally_reader_init(&reader, "", 0, false);
	return reader;
}

const char *tally_feature_read_string(struct tally_reader *reader)
{
	uint32_t room = tally_reader_u32(reader);
	return tally_reader_padded_string(reader, room);
}

bool tally_feature_read_nrcpus(struct tally_reader *reader, uint32_t *available, uint32_t *online)
{
	*available = tally_reader_u32(reader);
	*online = tally_reader_u32(reader);
	return !reader->failed;
}

bool tally_feature_read_sample_time(struct tally_reader *reader, uint64_t *first_ns,
				    uint64_t *last_ns)
{
	*first_ns = tally_reader_u64(reader);
	*last_ns = tally_reader_u64(reader);
	return !reader->failed;
}

bool tally_feature_read_clock_data(struct tally_reader *reader, struct tally_feature_clock *clock)
{
	uint32_t version = tally_reader_u32(reader);
	clock->id = tally_reader_u32(reader);
	clock->wall_ns = tally_reader_u64(reader);
	clock->clock_ns = tally_reader_u64(reader);
	return !reader->failed && version == 1;
}

bool tally_feature_read_pmu(struct tally_reader *reader, struct tally_feature_pmu *pmu)
{
	pmu->type = tally_reader_u32(reader);
	pmu->name = tally_feature_read_string(reader);
	return !reader->failed;
}

bool tally_feature_read_group(struct tally_reader *reader, struct tally_feature_group *group)
{
	group->name = tally_feature_read_string(reader);
	group->leader_index = tally_reader_u32(reader);
	group->member_count = tally_reader_u32(reader);
	return !reader->failed;
}

static void skip_strings(struct tally_reader *reader)
{
	for (uint32_t left = tally_reader_u32(reader); left && !reader->failed; left--)
		tally_feature_read_string(reader);
}

void tally_feature_read_cpu_topology(struct tally_reader *reader, uint32_t cpu_count,
				     struct tally_feature_topology_parts *parts)
{
	struct tally_reader at = *reader;
	parts->packages = at;
	skip_strings(&at);
	parts->threads = at;
	skip_strings(&at);
	parts->cpus = at;
	tally_reader_skip(&at, (uint64_t)cpu_count * 8);
	parts->has_cpus = !at.failed;
	parts->has_dies = parts->has_cpus && tally_reader_left(&at);
	parts->dies = at;
	if (parts->has_dies)
		skip_strings(&at);
	parts->cpu_dies = at;
}

void tally_feature_read_cpu(struct tally_feature_topology_parts *parts,
			    struct tally_feature_cpu *cpu)
{
	cpu->core = tally_reader_u32(&parts->cpus);
	cpu->package = tally_reader_u32(&parts->cpus);
	cpu->die = 0;
	if (parts->has_dies)
		cpu->die = tally_reader_u32(&parts->cpu_dies);
}

bool tally_feature_read_cache_head(struct tally_reader *reader, uint32_t *count)
{
	uint32_t version = tally_reader_u32(reader);
	*count = tally_reader_u32(reader);
	return !reader->failed && version == 1;
}

bool tally_feature_read_cache(struct tally_reader *reader, struct tally_feature_cache_text *cache)
{
	cache->level = tally_reader_u32(reader);
	tally_reader_skip(reader, 12); /* line size, sets, ways */
	cache->type = tally_feature_read_string(reader);
	cache->size = tally_feature_read_string(reader);
	cache->cpus = tally_feature_read_string(reader);
	return !reader->failed;
}

bool tally_feature_read_numa(struct tally_reader *reader, struct tally_feature_numa_node *node)
{
	node->number = tally_reader_u32(reader);
	node->total_kib = tally_reader_u64(reader);
	node->free_kib = tally_reader_u64(reader);
	node->cpus = tally_feature_read_string(reader);
	return !reader->failed;
}

bool tally_feature_read_memory_head(struct tally_reader *reader, uint64_t *block_bytes,
				    uint64_t *count)
{
	uint64_t version = tally_reader_u64(reader);
	*block_bytes = tally_reader_u64(reader);
	*count = tally_reader_u64(reader);
	return !reader->failed && version == 1;
}

bool tally_feature_read_memory(struct tally_reader *reader, struct tally_feature_memory_node *node)
{
	node->number = tally_reader_u64(reader);
	/* the number of possible bits; the bitmap repeats it */
	tally_reader_u64(reader);
	node->bits = tally_reader_u64(reader);
	node->words = *reader;
	if (node->bits > tally_reader_left(reader) * 8 ||
	    !tally_reader_bytes(reader, (node->bits + 63) / 64 * 8))
		tally_reader_fail(reader);
	return !reader->failed;
}

bool tally_feature_read_bpf_types(struct tally_reader *reader,
				  struct tally_feature_bpf_types *types)
{
	types->id = tally_reader_u32(reader);
	types->size = tally_reader_u32(reader);
	types->bytes = tally_reader_bytes(reader, types->size);
	return types->bytes != NULL;
}
