/* Finds the CPU to simulate: this machine's caches from sysfs, a preset, or a file that describes
 * one. */
#include "provider/provider_internal.h"

#include "base/buffer.h"
#include "machine/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CACHES_MAX = 8, FILE_BYTES_MAX = 1 << 16 };

/* Parses "32K", "8192K", "32M" or "1G". */
static uint64_t size_bytes(const char *text)
{
	char *end;
	uint64_t size = strtoull(text, &end, 10);
	unsigned shift = 0;
	switch (*end) {
	case 'K':
		shift = 10;
		break;
	case 'M':
		shift = 20;
		break;
	case 'G':
		shift = 30;
		break;
	}
	if (size >> (63 - shift))
		return 0;
	return size << shift;
}

/* Takes CPU 0 for all CPUs: a machine's small cores are not simulated. */
int simulated_geometry_here(const char *root, struct vsim_geometry *geometry)
{
	unsigned first = 0;
	const struct tally_cpu_list cpus = { .cpus = &first, .count = 1 };
	struct tally_cpu_topology topology;
	struct tally_arena arena = TALLY_ARENA_INIT;
	struct vsim_cache_described caches[CACHES_MAX];
	size_t count = 0;
	int code = tally_cpu_topology_read(root, &cpus, &arena, &topology);
	for (size_t i = 0; !code && i < topology.cache_count && count < CACHES_MAX; i++) {
		const struct tally_cpu_cache *cache = &topology.caches[i];
		caches[count++] = (struct vsim_cache_described){
			.level = cache->level,
			.type = cache->type[0],
			.size_bytes = size_bytes(cache->size),
			.ways = cache->ways,
			.line_bytes = cache->line_size,
		};
	}
	int taken = vsim_geometry_of_caches(caches, count, NULL, geometry);
	tally_arena_release(&arena);
	if (code)
		return code;
	return taken;
}

static int read_file(const char *path, struct vsim_geometry *geometry, struct tally_error *err)
{
	struct tally_buffer text = { 0 };
	struct vsim_geometry_error wrong = { 0 };
	int result = tally_buffer_read_file(&text, AT_FDCWD, path, FILE_BYTES_MAX);
	if (result < 0)
		tally_error_set(err, result, "--sim-cpu %s: %s", path, tally_errno_text(result));
	else if ((result = vsim_geometry_parse(tally_buffer_string(&text), text.length, geometry,
					       &wrong)) < 0 &&
		 wrong.line)
		tally_error_set(err, result, "--sim-cpu %s, line %u: %s", path, wrong.line,
				wrong.message);
	else if (result < 0)
		tally_error_set(err, result, "--sim-cpu %s: %s", path, wrong.message);
	tally_buffer_release(&text);
	return result;
}

static void hint_at_presets(struct tally_error *err)
{
	char names[300] = "";
	size_t used = 0;
	for (size_t i = 0; vsim_geometry_preset_name(i) && used < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
					 vsim_geometry_preset_name(i));
	tally_error_hint(err, "known CPUs are %s; a file's name must contain '/' or '.'", names);
}

int simulated_geometry(const char *cpu, const char *root, struct vsim_geometry *geometry,
		       struct tally_error *err)
{
	if (!cpu || !strcmp(cpu, "host")) {
		int result = simulated_geometry_here(root, geometry);
		if (result < 0)
			return tally_error_set(err, result, "out of memory");
		return 0;
	}
	const struct vsim_geometry *preset = vsim_geometry_preset(cpu);
	if (preset) {
		*geometry = *preset;
		return 0;
	}
	if (strpbrk(cpu, "/."))
		return read_file(cpu, geometry, err);
	tally_error_set(err, -EINVAL, "--sim-cpu: unknown CPU '%.100s'", cpu);
	hint_at_presets(err);
	return -EINVAL;
}

/* Writes the lines of the text as one, for the header of a recording. */
void simulated_geometry_line(const struct vsim_geometry *geometry, char *out, size_t size)
{
	char text[VSIM_GEOMETRY_TEXT];
	vsim_geometry_format(geometry, text, sizeof(text));
	size_t used = (size_t)snprintf(out, size, "simulated by tally: ");
	for (const char *at = text; *at && used + 3 < size; at++) {
		if (*at != '\n')
			out[used++] = *at;
		else if (at[1])
			used += (size_t)snprintf(out + used, size - used, ", ");
	}
	out[used] = '\0';
}

void simulated_geometry_caches(const struct vsim_geometry *geometry, char *out, size_t size)
{
	static const char *const keys[] = { "l1d = ", "l1i = ", "l2 = ", "llc = " };
	char text[VSIM_GEOMETRY_TEXT];
	vsim_geometry_format(geometry, text, sizeof(text));
	size_t used = (size_t)snprintf(out, size, "%s", geometry->name), shown = 0;
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
			size_t key = strlen(keys[i]), length = strcspn(line, "\n");
			if (strncmp(line, keys[i], key) != 0 || used >= size)
				continue;
			used += (size_t)snprintf(out + used, size - used, "%s%.*s %.*s",
						 shown++ ? ", " : ": ", (int)key - 3, keys[i],
						 (int)(length - key), line + key);
		}
}

/* Misses of the last existing level go to memory, and the events of a missing level would count 0,
 * which is wrong: so they are refused. */
const char *simulated_geometry_lacks(const struct vsim_geometry *geometry, uint64_t config)
{
	const uint64_t l2 = 1ull << VSIM_L2_LOADS | 1ull << VSIM_L2_STORES |
			    1ull << VSIM_L2_LOAD_MISSES | 1ull << VSIM_L2_STORE_MISSES;
	const uint64_t llc = 1ull << VSIM_LLC_LOADS | 1ull << VSIM_LLC_STORES |
			     1ull << VSIM_LLC_LOAD_MISSES | 1ull << VSIM_LLC_STORE_MISSES;
	if (config & llc && !geometry->llc.ways)
		return "the simulated CPU has no LLC";
	if (config & l2 && !geometry->l2.ways)
		return "the simulated CPU has no L2";
	return NULL;
}
