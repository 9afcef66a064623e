/* Describes the machine like perf record: how CPUs share cores and caches, NUMA nodes, memory, PMUs
 * by number. */
#include "recorder/recorder_state.h"

#include "machine/cpu.h"
#include "machine/memory.h"
#include "machine/sysfs.h"
#include "perfdata/feature.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysinfo.h>

static int put(struct tally_recorder *recorder, unsigned feature, struct tally_buffer *bytes,
	       struct tally_error *err)
{
	int result = bytes->failed ? tally_error_set(err, -ENOMEM, "out of memory")
				   : tally_perfdata_write_feature(recorder->writer, feature,
								  bytes->bytes, bytes->length, err);
	tally_buffer_clear(bytes);
	return result;
}

/* Writes the places by CPU number, for every configured CPU. */
static void put_places(struct tally_recorder *recorder, const struct tally_cpu_topology *topology,
		       struct tally_buffer *bytes)
{
	size_t count = (size_t)get_nprocs_conf();
	struct tally_feature_cpu *cpus = tally_arena_array(&recorder->arena, count, sizeof(*cpus));
	struct tally_feature_topology feature = {
		.packages = topology->packages,
		.package_count = topology->package_count,
		.threads = topology->cores,
		.thread_count = topology->core_count,
		.dies = topology->dies,
		.die_count = topology->die_count,
		.cpus = cpus,
		.cpu_count = count,
	};
	bytes->failed |= !cpus;
	if (!cpus)
		return;
	for (size_t i = 0; i < count; i++)
		cpus[i] = (struct tally_feature_cpu){ UINT32_MAX, UINT32_MAX, UINT32_MAX };
	for (size_t i = 0; i < topology->place_count; i++) {
		const struct tally_cpu_location *place = &topology->places[i];
		if (place->cpu < count)
			cpus[place->cpu] = (struct tally_feature_cpu){ (uint32_t)place->core,
								       (uint32_t)place->package,
								       (uint32_t)place->die };
	}
	tally_feature_cpu_topology(bytes, &feature);
}

static int cpu_features(struct tally_recorder *recorder, struct tally_buffer *bytes,
			struct tally_error *err)
{
	struct tally_cpu_list online;
	struct tally_cpu_topology topology;
	int result = 0;
	if (tally_cpu_list_read(TALLY_CPU_ONLINE, &online, NULL))
		return 0;
	bytes->failed |= tally_cpu_topology_read(NULL, &online, &recorder->arena, &topology) < 0;
	tally_cpu_list_release(&online);
	if (!bytes->failed && topology.package_count) {
		put_places(recorder, &topology, bytes);
		result = put(recorder, TALLY_FEATURE_CPU_TOPOLOGY, bytes, err);
	}
	if (!result && !bytes->failed && topology.cache_count) {
		tally_feature_cache_head(bytes, (uint32_t)topology.cache_count);
		for (size_t i = 0; i < topology.cache_count; i++) {
			const struct tally_cpu_cache *cache = &topology.caches[i];
			const uint32_t words[] = { cache->level, cache->line_size, cache->sets,
						   cache->ways };
			tally_feature_cache(bytes, words, cache->type, cache->size, cache->cpus);
		}
		result = put(recorder, TALLY_FEATURE_CACHE, bytes, err);
	}
	return bytes->failed ? tally_error_set(err, -ENOMEM, "out of memory") : result;
}

static int memory_features(struct tally_recorder *recorder, struct tally_buffer *bytes,
			   struct tally_error *err)
{
	struct tally_memory memory;
	uint64_t with_blocks = 0;
	if (tally_memory_read(NULL, &recorder->arena, &memory) < 0)
		return tally_error_set(err, -ENOMEM, "out of memory");
	if (!memory.node_count)
		return 0;
	tally_feature_numa_head(bytes, (uint32_t)memory.node_count);
	for (size_t i = 0; i < memory.node_count; i++) {
		const struct tally_memory_node *node = &memory.nodes[i];
		tally_feature_numa(bytes, node->number, node->total_kib, node->free_kib,
				   node->cpus);
		with_blocks += node->blocks != NULL;
	}
	int result = put(recorder, TALLY_FEATURE_NUMA_TOPOLOGY, bytes, err);
	if (result || !with_blocks || !memory.block_bytes)
		return result;
	tally_feature_memory_head(bytes, memory.block_bytes, with_blocks);
	for (size_t i = 0; i < memory.node_count; i++)
		if (memory.nodes[i].blocks)
			tally_feature_memory(bytes, memory.nodes[i].number, memory.nodes[i].blocks,
					     memory.nodes[i].block_count);
	return put(recorder, TALLY_FEATURE_MEM_TOPOLOGY, bytes, err);
}

static int pmu_features(struct tally_recorder *recorder, struct tally_buffer *bytes,
			struct tally_error *err)
{
	const char **names;
	size_t count, known = 0;
	struct tally_buffer text = { 0 };
	if (tally_sysfs_pmu_names(NULL, &recorder->arena, &names, &count) < 0)
		return 0;
	struct tally_feature_pmu *pmus = tally_arena_array(&recorder->arena, count, sizeof(*pmus));
	for (size_t i = 0; pmus && i < count; i++) {
		char path[512];
		snprintf(path, sizeof(path), TALLY_SYSFS_PMUS "/%s/type", names[i]);
		tally_buffer_clear(&text);
		if (!tally_buffer_read_file(&text, AT_FDCWD, path, 64))
			pmus[known++] = (struct tally_feature_pmu){
				(uint32_t)strtoul(text.bytes, NULL, 10), names[i]
			};
	}
	tally_buffer_release(&text);
	if (!known)
		return 0;
	tally_feature_pmu_mappings(bytes, pmus, known);
	return put(recorder, TALLY_FEATURE_PMU_MAPPINGS, bytes, err);
}

int tally_recorder_machine_features(struct tally_recorder *recorder, struct tally_buffer *bytes,
				    struct tally_error *err)
{
	int result = cpu_features(recorder, bytes, err);
	if (!result)
		result = memory_features(recorder, bytes, err);
	return result ? result : pmu_features(recorder, bytes, err);
}
