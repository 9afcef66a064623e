/* Writes the features behind the data: the machine, the command, the mapped files, the tracepoints'
 * formats.
 *
 * In a pipe they come before the data.  Build-ids are left out there, since the files that will be
 * mapped are not known yet.
 */
#include "recorder/recorder_state.h"

#include "base/text.h"
#include "machine/machine.h"
#include "perfdata/perfdata.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { FORMAT_BYTES_MAX = 1 << 20 };

static int put_feature(struct tally_recorder_output *output, unsigned feature,
		       struct tally_buffer *bytes, struct tally_error *err)
{
	int result = 0;
	if (bytes->failed)
		result = tally_error_set(err, -ENOMEM, "out of memory");
	else if (bytes->length)
		result = tally_perfdata_write_feature(output->writer, feature, bytes->bytes,
						      bytes->length, err);
	tally_buffer_clear(bytes);
	return result;
}

static int machine_features(struct tally_recorder_output *output, struct tally_buffer *bytes,
			    struct tally_error *err)
{
	const struct tally_provider_ops *ops = output->session->provider->ops;
	const char *simulated = NULL;
	struct utsname here = { 0 };
	struct tally_cpu_model cpu;
	if (ops->machine)
		simulated = ops->machine(output->session->provider, false);
	uname(&here);
	tally_cpu_model_read(&cpu);
	const struct {
		unsigned feature;
		const char *text;
	} texts[] = {
		{ TALLY_FEATURE_HOSTNAME, here.nodename },
		{ TALLY_FEATURE_OSRELEASE, here.release },
		{ TALLY_FEATURE_ARCH, here.machine },
		{ TALLY_FEATURE_VERSION, "tally " TALLY_VERSION },
		{ TALLY_FEATURE_CPUDESC, tally_text_or(simulated, cpu.name) },
		{ TALLY_FEATURE_CPUID, simulated ? "" : cpu.id },
	};
	int result;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (texts[i].text[0])
			tally_feature_string(bytes, texts[i].text);
		result = put_feature(output, texts[i].feature, bytes, err);
		if (result)
			return result;
	}
	if (simulated)
		tally_feature_nrcpus(bytes, 1, 1);
	else
		tally_feature_nrcpus(bytes, (uint32_t)get_nprocs_conf(), (uint32_t)get_nprocs());
	result = put_feature(output, TALLY_FEATURE_NRCPUS, bytes, err);
	if (result)
		return result;
	tally_feature_u64(bytes, (uint64_t)sysconf(_SC_PHYS_PAGES) *
					 (uint64_t)sysconf(_SC_PAGESIZE) / 1024);
	return put_feature(output, TALLY_FEATURE_TOTAL_MEM, bytes, err);
}

/* ---- the layout of the machine ------------------------------------------- */

/* Writes the places by CPU number, for every configured CPU. */
static void put_places(struct tally_recorder_output *output,
		       const struct tally_cpu_topology *topology, struct tally_buffer *bytes)
{
	size_t count = (size_t)get_nprocs_conf();
	struct tally_feature_cpu *cpus = tally_arena_array(&output->session->arena, count,
							   sizeof(*cpus));
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

static int cpu_features(struct tally_recorder_output *output, struct tally_buffer *bytes,
			struct tally_error *err)
{
	struct tally_cpu_list online;
	struct tally_cpu_topology topology;
	int result = 0;
	if (tally_cpu_list_read(TALLY_CPU_ONLINE, &online, NULL))
		return 0;
	bytes->failed |= tally_cpu_topology_read(NULL, &online, &output->session->arena,
						 &topology) < 0;
	tally_cpu_list_release(&online);
	if (!bytes->failed && topology.package_count) {
		put_places(output, &topology, bytes);
		result = put_feature(output, TALLY_FEATURE_CPU_TOPOLOGY, bytes, err);
	}
	if (!result && !bytes->failed && topology.cache_count) {
		tally_feature_cache_head(bytes, (uint32_t)topology.cache_count);
		for (size_t i = 0; i < topology.cache_count; i++) {
			const struct tally_cpu_cache *cache = &topology.caches[i];
			const uint32_t words[] = { cache->level, cache->line_size, cache->sets,
						   cache->ways };
			tally_feature_cache(bytes, words, cache->type, cache->size, cache->cpus);
		}
		result = put_feature(output, TALLY_FEATURE_CACHE, bytes, err);
	}
	if (bytes->failed)
		return tally_error_set(err, -ENOMEM, "out of memory");
	return result;
}

static int memory_features(struct tally_recorder_output *output, struct tally_buffer *bytes,
			   struct tally_error *err)
{
	struct tally_memory memory;
	uint64_t with_blocks = 0;
	if (tally_memory_read(NULL, &output->session->arena, &memory) < 0)
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
	int result = put_feature(output, TALLY_FEATURE_NUMA_TOPOLOGY, bytes, err);
	if (result || !with_blocks || !memory.block_bytes)
		return result;
	tally_feature_memory_head(bytes, memory.block_bytes, with_blocks);
	for (size_t i = 0; i < memory.node_count; i++)
		if (memory.nodes[i].blocks)
			tally_feature_memory(bytes, memory.nodes[i].number, memory.nodes[i].blocks,
					     memory.nodes[i].block_count);
	return put_feature(output, TALLY_FEATURE_MEM_TOPOLOGY, bytes, err);
}

static int known_pmu_features(struct tally_recorder_output *output, struct tally_buffer *bytes,
			      struct tally_error *err)
{
	const char **names;
	size_t count, known = 0;
	struct tally_buffer text = { 0 };
	if (tally_sysfs_pmu_names(NULL, &output->session->arena, &names, &count) < 0)
		return 0;
	struct tally_feature_pmu *pmus = tally_arena_array(&output->session->arena, count,
							   sizeof(*pmus));
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
	return put_feature(output, TALLY_FEATURE_PMU_MAPPINGS, bytes, err);
}

/* Describes the machine like perf record: how CPUs share cores and caches, NUMA nodes, memory, PMUs
 * by number. */
static int layout_features(struct tally_recorder_output *output, struct tally_buffer *bytes,
			   struct tally_error *err)
{
	int result = cpu_features(output, bytes, err);
	if (result)
		return result;
	result = memory_features(output, bytes, err);
	if (result)
		return result;
	return known_pmu_features(output, bytes, err);
}

/* ---- the recording ------------------------------------------------------- */

static int command_features(struct tally_recorder_output *output, struct tally_buffer *bytes,
			    struct tally_error *err)
{
	const struct tally_recorder_options *options = &output->session->options;
	const char **words = tally_arena_array(&output->session->arena, (size_t)options->argc + 1,
					       sizeof(*words));
	if (!words)
		return tally_error_set(err, -ENOMEM, "out of memory");
	words[0] = "tally";
	for (int i = 0; i < options->argc; i++)
		words[i + 1] = options->argv[i];
	tally_feature_string_list(bytes, words, (size_t)options->argc + 1);
	int result = put_feature(output, TALLY_FEATURE_CMDLINE, bytes, err);
	if (result)
		return result;
	tally_feature_event_desc(bytes, output->events->recorded, output->events->source_count);
	return put_feature(output, TALLY_FEATURE_EVENT_DESC, bytes, err);
}

/* The number belongs to the provider; readers must not look it up on their own machine. */
static int pmu_features(struct tally_recorder_output *output, struct tally_buffer *bytes,
			struct tally_error *err)
{
	const struct tally_provider_ops *ops = output->session->provider->ops;
	const struct tally_feature_pmu pmu = { ops->pmu_type, ops->pmu_name };
	if (!ops->pmu_name && ops->machine)
		return 0;
	if (!ops->pmu_name)
		return layout_features(output, bytes, err);
	tally_feature_pmu_mappings(bytes, &pmu, 1);
	return put_feature(output, TALLY_FEATURE_PMU_MAPPINGS, bytes, err);
}

static int group_features(struct tally_recorder_output *output, struct tally_buffer *bytes,
			  struct tally_error *err)
{
	struct tally_feature_group *groups = tally_arena_array(
		&output->session->arena, output->events->source_count, sizeof(*groups));
	size_t count = 0;
	if (!groups)
		return tally_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i + 1 < output->events->source_count; i++) {
		int group = output->events->sources[i].event->group;
		if (group == TALLY_EVENT_NO_GROUP)
			continue;
		if (!i || output->events->sources[i - 1].event->group != group)
			groups[count++] = (struct tally_feature_group){
				.name = "", .leader_index = (uint32_t)i
			};
		groups[count - 1].member_count++;
	}
	if (count)
		tally_feature_group_desc(bytes, groups, count);
	return put_feature(output, TALLY_FEATURE_GROUP_DESC, bytes, err);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int time_features(struct tally_recorder_output *output, struct tally_buffer *bytes,
			 struct tally_error *err)
{
	struct timespec resolution = { 0 };
	clock_getres(CLOCK_MONOTONIC, &resolution);
	tally_feature_u64(bytes, (uint64_t)resolution.tv_nsec);
	int result = put_feature(output, TALLY_FEATURE_CLOCKID, bytes, err);
	if (result)
		return result;
	tally_feature_clock_data(bytes, CLOCK_MONOTONIC, clock_ns(CLOCK_REALTIME),
				 clock_ns(CLOCK_MONOTONIC));
	result = put_feature(output, TALLY_FEATURE_CLOCK_DATA, bytes, err);
	if (result)
		return result;
	uint64_t last_ns = output->last_sample_ns;
	if (tally_recorder_off_cpu(output->events))
		last_ns = clock_ns(CLOCK_MONOTONIC); /* waiting tasks still wait at this time */
	if (!output->session->is_pipe && output->last_sample_ns)
		tally_feature_sample_time(bytes, output->first_sample_ns, last_ns);
	return put_feature(output, TALLY_FEATURE_SAMPLE_TIME, bytes, err);
}

/* ---- tracepoints --------------------------------------------------------- */

/* Splits "sched:sched_switch:u" into "sched" and "sched_switch". */
static bool split_tracepoint(const char *name, char *system, char *event, size_t size)
{
	size_t length = strcspn(name, ":");
	if (!name[length] || length >= size)
		return false;
	snprintf(system, size, "%.*s", (int)length, name);
	snprintf(event, size, "%.*s", (int)strcspn(name + length + 1, ":"), name + length + 1);
	return true;
}

static int by_system(const void *a, const void *b)
{
	const struct tally_tracing_format *x = a, *y = b;
	return strcmp(x->system, y->system);
}

static size_t read_formats(struct tally_recorder_output *output, int tracefs,
			   struct tally_tracing_format *formats)
{
	struct tally_buffer text = { 0 };
	size_t count = 0;
	for (size_t i = 0; i + 1 < output->events->source_count; i++) {
		char system[128], event[128], path[300];
		const struct tally_event *source = output->events->sources[i].event;
		if (source->kind != TALLY_EVENT_TRACEPOINT ||
		    !split_tracepoint(source->name, system, event, sizeof(system)))
			continue;
		snprintf(path, sizeof(path), "events/%s/%s/format", system, event);
		tally_buffer_clear(&text);
		if (tally_buffer_read_file(&text, tracefs, path, FORMAT_BYTES_MAX) < 0)
			continue;
		formats[count] = (struct tally_tracing_format){
			.system = tally_arena_string(&output->session->arena, system),
			.text = tally_arena_copy(&output->session->arena, text.bytes, text.length),
			.length = text.length,
		};
		count += formats[count].system && formats[count].text;
	}
	tally_buffer_release(&text);
	qsort(formats, count, sizeof(*formats), by_system);
	return count;
}

static int tracing_features(struct tally_recorder_output *output, struct tally_buffer *bytes,
			    struct tally_error *err)
{
	struct tally_buffer page = { 0 }, event = { 0 }, printk = { 0 };
	struct tally_tracing_data data = { 0 };
	bool any = false;
	for (size_t i = 0; i + 1 < output->events->source_count; i++)
		any |= output->events->sources[i].event->kind == TALLY_EVENT_TRACEPOINT;
	if (!any)
		return 0;
	struct tally_tracing_format *formats = tally_arena_array(
		&output->session->arena, output->events->source_count, sizeof(*formats));
	if (!formats)
		return 0;
	int tracefs = tally_tracefs_open(NULL);
	if (tracefs < 0)
		return 0;
	data.format_count = read_formats(output, tracefs, formats);
	data.formats = formats;
	if (!tally_buffer_read_file(&page, tracefs, "events/header_page", FORMAT_BYTES_MAX))
		data.header_page = page.bytes;
	if (!tally_buffer_read_file(&event, tracefs, "events/header_event", FORMAT_BYTES_MAX))
		data.header_event = event.bytes;
	if (!tally_buffer_read_file(&printk, tracefs, "printk_formats", FORMAT_BYTES_MAX))
		data.printk_formats = printk.bytes;
	close(tracefs);
	tally_feature_tracing_data(bytes, &data);
	tally_buffer_release(&page);
	tally_buffer_release(&event);
	tally_buffer_release(&printk);
	return put_feature(output, TALLY_FEATURE_TRACING_DATA, bytes, err);
}

/* In a pipe the features are written before the mapped files are known. */
static int build_id_features(struct tally_recorder_tasks *tasks,
			     struct tally_recorder_output *output, struct tally_buffer *bytes,
			     struct tally_error *err)
{
	if (output->session->is_pipe)
		return 0;
	int result = tally_recorder_build_ids(tasks, bytes, err);
	if (result)
		return result;
	return put_feature(output, TALLY_FEATURE_BUILD_ID, bytes, err);
}

int tally_recorder_features(struct tally_recorder_tasks *tasks,
			    struct tally_recorder_output *output, struct tally_error *err)
{
	static int (*const writers[])(struct tally_recorder_output * output,
				      struct tally_buffer * bytes, struct tally_error * err) = {
		machine_features, command_features, pmu_features,
		group_features,   time_features,    tracing_features,
	};
	struct tally_buffer bytes = { 0 };
	int result = 0;
	for (size_t i = 0; !result && i < sizeof(writers) / sizeof(*writers); i++)
		result = writers[i](output, &bytes, err);
	if (!result)
		result = build_id_features(tasks, output, &bytes, err);
	tally_buffer_release(&bytes);
	return result;
}
