/* How the CPUs share cores, dies, packages and caches, from sysfs. */
#include "base/extremes.h"
#include "base/text.h"
#include "machine/machine.h"

#include "base/buffer.h"
#include "base/vector.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYSFS_CPUS "/sys/devices/system/cpu"

struct topology_reader {
	const char *root;
	struct tally_arena *arena;
	struct tally_buffer text;
};

/* Returns the text of a file below `root`/cpuN without its newline; NULL if it doesn't exist. */
static const char *read_text(struct topology_reader *reader, unsigned cpu, const char *name)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/cpu%u/%s", reader->root, cpu, name);
	tally_buffer_clear(&reader->text);
	if (tally_buffer_read_file(&reader->text, AT_FDCWD, path, 1 << 16))
		return NULL;
	const char *text = tally_buffer_string(&reader->text);
	return tally_arena_copy(reader->arena, text, strcspn(text, "\n"));
}

static int read_number(struct topology_reader *reader, unsigned cpu, const char *name)
{
	const char *text = read_text(reader, cpu, name);
	if (text && *text)
		return atoi(text);
	return -1;
}

/* Kernels before 5.2 have only the older name. */
static const char *read_either(struct topology_reader *reader, unsigned cpu, const char *name,
			       const char *older)
{
	const char *text = read_text(reader, cpu, name);
	if (text)
		return text;
	return read_text(reader, cpu, older);
}

static void add_distinct(const char **lists, size_t *count, const char *list)
{
	for (size_t i = 0; i < *count; i++)
		if (list && !strcmp(lists[i], list))
			return;
	if (list)
		lists[(*count)++] = list;
}

/* By level, then by the first CPU of the list. */
static int by_level(const void *left, const void *right)
{
	const struct tally_cpu_cache *a = left, *b = right;
	if (a->level != b->level)
		return tally_compare_u64(a->level, b->level);
	int first_a = atoi(a->cpus), first_b = atoi(b->cpus);
	if (first_a != first_b)
		return tally_compare_i64(first_a, first_b);
	return strcmp(a->type, b->type);
}

/* Returns 0; -ENOENT behind the last cache; -EEXIST if another CPU's caches included it: it isn't
 * read again, since large machines have thousands of these files. */
static int read_cache(struct topology_reader *reader, const struct tally_cpu_list *cpus,
		      unsigned cpu, unsigned index, struct tally_cpu_cache *out)
{
	static const char *const files[] = { "shared_cpu_list",
					     "level",
					     "coherency_line_size",
					     "number_of_sets",
					     "ways_of_associativity",
					     "type",
					     "size" };
	const char *texts[sizeof(files) / sizeof(files[0])];
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char name[64];
		snprintf(name, sizeof(name), "cache/index%u/%s", index, files[i]);
		texts[i] = read_text(reader, cpu, name);
		if (!texts[i] && i == 0)
			return -ENOENT;
		if (!texts[i])
			texts[i] = "";
		unsigned first = (unsigned)atoi(texts[0]);
		if (i == 0 && first < cpu && tally_cpu_list_contains(cpus, first))
			return -EEXIST;
	}
	*out = (struct tally_cpu_cache){
		.level = (unsigned)atoi(texts[1]), .line_size = (unsigned)atoi(texts[2]),
		.sets = (unsigned)atoi(texts[3]), .ways = (unsigned)atoi(texts[4]),
		.type = texts[5], .size = texts[6], .cpus = texts[0],
	};
	return 0;
}

static int read_caches(struct topology_reader *reader, const struct tally_cpu_list *cpus,
		       struct tally_cpu_topology *out)
{
	enum { INDEX_MAX = 16 };
	TALLY_VECTOR(struct tally_cpu_cache) caches = { 0 };
	int code = 0;
	for (size_t i = 0; i < cpus->count && !code; i++) {
		struct tally_cpu_cache cache;
		for (unsigned index = 0; index < INDEX_MAX && !code; index++) {
			int found = read_cache(reader, cpus, cpus->cpus[i], index, &cache);
			if (found == -ENOENT)
				break;
			if (!found)
				code = tally_vector_push(&caches, cache);
		}
	}
	if (!code && caches.count) {
		qsort(caches.items, caches.count, sizeof(*caches.items), by_level);
		out->caches = tally_arena_array(reader->arena, caches.count, sizeof(*caches.items));
		if (out->caches) {
			memcpy(out->caches, caches.items, caches.count * sizeof(*caches.items));
			out->cache_count = caches.count;
		}
	}
	tally_vector_release(&caches);
	return code;
}

static struct tally_cpu_location place_of(struct topology_reader *reader, unsigned cpu)
{
	return (struct tally_cpu_location){
		.cpu = cpu,
		.core = read_number(reader, cpu, "topology/core_id"),
		.die = read_number(reader, cpu, "topology/die_id"),
		.package = read_number(reader, cpu, "topology/physical_package_id"),
	};
}

void tally_cpu_location_read(const char *root, unsigned cpu, struct tally_cpu_location *out,
			     int *node)
{
	struct tally_arena arena = TALLY_ARENA_INIT;
	struct topology_reader reader = { .root = tally_text_or(root, SYSFS_CPUS),
					  .arena = &arena };
	char path[512];
	*out = place_of(&reader, cpu);
	*node = -1;
	snprintf(path, sizeof(path), "%s/cpu%u", reader.root, cpu);
	DIR *folder = opendir(path); /* it contains a link named node0 */
	for (struct dirent *entry; folder && (entry = readdir(folder));)
		if (!strncmp(entry->d_name, "node", 4) && entry->d_name[4] >= '0' &&
		    entry->d_name[4] <= '9')
			*node = atoi(entry->d_name + 4);
	if (folder)
		closedir(folder);
	tally_buffer_release(&reader.text);
	tally_arena_release(&arena);
}

static void read_place(struct topology_reader *reader, unsigned cpu, struct tally_cpu_topology *out)
{
	out->places[out->place_count++] = place_of(reader, cpu);
	add_distinct(out->packages, &out->package_count,
		     read_either(reader, cpu, "topology/package_cpus_list",
				 "topology/core_siblings_list"));
	add_distinct(out->dies, &out->die_count, read_text(reader, cpu, "topology/die_cpus_list"));
	add_distinct(out->cores, &out->core_count,
		     read_either(reader, cpu, "topology/core_cpus_list",
				 "topology/thread_siblings_list"));
}

int tally_cpu_topology_read(const char *root, const struct tally_cpu_list *cpus,
			    struct tally_arena *arena, struct tally_cpu_topology *out)
{
	struct topology_reader reader = { .root = tally_text_or(root, SYSFS_CPUS),
					  .arena = arena };
	*out = (struct tally_cpu_topology){
		.places = tally_arena_array(arena, cpus->count, sizeof(*out->places)),
		.packages = tally_arena_array(arena, cpus->count, sizeof(*out->packages)),
		.dies = tally_arena_array(arena, cpus->count, sizeof(*out->dies)),
		.cores = tally_arena_array(arena, cpus->count, sizeof(*out->cores)),
	};
	if (!out->places || !out->packages || !out->dies || !out->cores)
		return -ENOMEM;
	for (size_t i = 0; i < cpus->count; i++)
		read_place(&reader, cpus->cpus[i], out);
	int code = read_caches(&reader, cpus, out);
	tally_buffer_release(&reader.text);
	return code;
}
