/* Reads a PMU's directory: its type and CPUs, then its folders format and events.  A folder's names
 * are sorted, so the tables are sorted too, and a binary search tells whether an event has a .unit
 * or .scale file. */
#include "machine/machine.h"

#include "base/buffer.h"
#include "base/text.h"
#include "base/vector.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX_BYTES = 65536, ENTRIES_MAX = 65536 };

struct names {
	const char **items;
	size_t count, capacity;
};

static bool is_entry(const char *name)
{
	return *name && *name != '.' && !strchr(name, '/');
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Lists the directory's entries, sorted.  The names are in the arena, the list is on the heap.
 * Returns 0 or -errno. */
static int list_directory(int parent, const char *path, struct tally_arena *arena,
			  struct names *out)
{
	int fd = openat(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), code = 0;
	if (fd < 0)
		return -errno;
	DIR *directory = fdopendir(fd);
	if (!directory) {
		code = -errno;
		close(fd);
		return code;
	}
	for (struct dirent *entry;
	     !code && out->count < ENTRIES_MAX && (entry = readdir(directory));) {
		if (!is_entry(entry->d_name))
			continue;
		const char *name = tally_arena_string(arena, entry->d_name);
		code = -ENOMEM;
		if (name)
			code = tally_vector_push(out, name);
	}
	closedir(directory);
	if (out->count)
		qsort(out->items, out->count, sizeof(*out->items), by_name);
	return code;
}

/* Returns the file's text without trailing blanks, or NULL. */
static char *read_text(int directory, const char *path, struct tally_arena *arena)
{
	struct tally_buffer text = { 0 };
	char *copy = NULL;
	if (!tally_buffer_read_file(&text, directory, path, FILE_MAX_BYTES)) {
		while (text.length && strchr(" \t\n", text.bytes[text.length - 1]))
			text.length--;
		copy = tally_arena_copy(arena, tally_buffer_string(&text), text.length);
	}
	tally_buffer_release(&text);
	return copy;
}

bool tally_sysfs_format_parse(const char *text, uint8_t *field, uint64_t *mask)
{
	static const char prefix[] = "config";
	if (strncmp(text, prefix, strlen(prefix)))
		return false;
	text += strlen(prefix);
	*field = 0;
	*mask = 0;
	if (*text >= '1' && *text <= '3')
		*field = (uint8_t)(*text++ - '0');
	if (*text++ != ':')
		return false;
	for (;;) {
		char *end;
		unsigned long first = strtoul(text, &end, 10), last = first;
		if (end == text)
			return false;
		if (*end == '-') {
			text = end + 1;
			last = strtoul(text, &end, 10);
			if (end == text)
				return false;
		}
		if (first > last || last > 63)
			return false;
		for (unsigned long bit = first; bit <= last; bit++)
			*mask |= 1ull << bit;
		if (*end != ',')
			return *end == '\0' || *end == '\n';
		text = end + 1;
	}
}

static int read_formats(int pmu, struct tally_arena *arena, struct tally_sysfs_pmu *out)
{
	struct names names = { 0 };
	char path[NAME_MAX + 16];
	int code = list_directory(pmu, "format", arena, &names);
	out->formats = tally_arena_array(arena, names.count, sizeof(*out->formats));
	for (size_t i = 0; out->formats && i < names.count; i++) {
		struct tally_sysfs_format *format = &out->formats[out->format_count];
		snprintf(path, sizeof(path), "format/%s", names.items[i]);
		const char *text = read_text(pmu, path, arena);
		format->name = names.items[i];
		if (text && tally_sysfs_format_parse(text, &format->field, &format->mask))
			out->format_count++;
	}
	tally_vector_release(&names);
	if (code == -ENOENT)
		return 0;
	return code;
}

/* True for files such as energy-pkg.scale, which describe another entry. */
static bool is_property(const char *name)
{
	static const char *const suffixes[] = { ".scale", ".unit", ".per-pkg", ".snapshot" };
	size_t length = strlen(name);
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		size_t suffix = strlen(suffixes[i]);
		if (length > suffix && !strcmp(name + length - suffix, suffixes[i]))
			return true;
	}
	return false;
}

/* Opens the property's file only if the directory has it, since most events have none. */
static const char *property(int pmu, const struct names *names, const char *event,
			    const char *suffix, struct tally_arena *arena)
{
	char path[NAME_MAX + 16];
	snprintf(path, sizeof(path), "events/%s%s", event, suffix);
	const char *key = path + strlen("events/");
	if (!bsearch(&key, names->items, names->count, sizeof(*names->items), by_name))
		return NULL;
	return read_text(pmu, path, arena);
}

static int read_events(int pmu, struct tally_arena *arena, struct tally_sysfs_pmu *out)
{
	struct names names = { 0 };
	char path[NAME_MAX + 16];
	int code = list_directory(pmu, "events", arena, &names);
	out->events = tally_arena_array(arena, names.count, sizeof(*out->events));
	for (size_t i = 0; out->events && i < names.count; i++) {
		if (is_property(names.items[i]))
			continue;
		snprintf(path, sizeof(path), "events/%s", names.items[i]);
		const char *terms = read_text(pmu, path, arena);
		if (!terms)
			continue;
		const char *unit = property(pmu, &names, names.items[i], ".unit", arena);
		const char *scale = property(pmu, &names, names.items[i], ".scale", arena);
		/* The program keeps LC_NUMERIC at the C locale. */
		double factor = 0;
		if (scale)
			factor = strtod(scale, NULL);
		if (factor == 0)
			factor = 1;
		out->events[out->event_count++] = (struct tally_sysfs_event){
			names.items[i], terms, tally_text_or(unit, ""), factor,
		};
	}
	tally_vector_release(&names);
	if (code == -ENOENT)
		return 0;
	return code;
}

int tally_sysfs_pmu_read(const char *root, const char *name, struct tally_arena *arena,
			 struct tally_sysfs_pmu *out)
{
	char path[PATH_MAX];
	*out = (struct tally_sysfs_pmu){ .cpus = "" };
	if (!is_entry(name))
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/%s", tally_text_or(root, TALLY_SYSFS_PMUS), name);
	int pmu = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (pmu < 0)
		return -errno;
	const char *type = read_text(pmu, "type", arena);
	const char *cpus = read_text(pmu, "cpumask", arena);
	if (!cpus) {
		cpus = read_text(pmu, "cpus", arena);
		out->is_core = cpus;
	}
	out->name = tally_arena_string(arena, name);
	int code = 0;
	if (!type)
		code = -ENOENT;
	if (!out->name)
		code = -ENOMEM;
	if (!code) {
		out->type = (uint32_t)strtoul(type, NULL, 10);
		out->cpus = tally_text_or(cpus, "");
		code = read_formats(pmu, arena, out);
	}
	if (!code)
		code = read_events(pmu, arena, out);
	close(pmu);
	return code;
}

bool tally_sysfs_has_core_types(const char *root)
{
	char path[PATH_MAX];
	struct dirent *entry;
	unsigned types = 0;
	root = tally_text_or(root, TALLY_SYSFS_PMUS);
	snprintf(path, sizeof(path), "%s/cpu", root);
	if (!access(path, F_OK)) /* all cores are of one type */
		return false;
	DIR *directory = opendir(root);
	while (directory && types < 2 && (entry = readdir(directory))) {
		snprintf(path, sizeof(path), "%s/cpus", entry->d_name);
		types += is_entry(entry->d_name) && !faccessat(dirfd(directory), path, F_OK, 0);
	}
	if (directory)
		closedir(directory);
	return types > 1;
}

int tally_sysfs_pmu_names(const char *root, struct tally_arena *arena, const char ***out,
			  size_t *count)
{
	struct names names = { 0 };
	int code = list_directory(AT_FDCWD, tally_text_or(root, TALLY_SYSFS_PMUS), arena, &names);
	*out = tally_arena_array(arena, names.count, sizeof(**out));
	*count = *out ? names.count : 0;
	if (*count)
		memcpy(*out, names.items, names.count * sizeof(**out));
	if (!*out && names.count)
		code = -ENOMEM;
	tally_vector_release(&names);
	return code;
}

int tally_sysfs_core_cpus(const char *root, struct tally_arena *arena, const char ***out,
			  size_t *count)
{
	const char **names;
	size_t name_count;
	int code = tally_sysfs_pmu_names(root, arena, &names, &name_count);
	*count = 0;
	*out = names; /* a PMU's name is replaced by its list */
	for (size_t i = 0; i < name_count; i++) {
		char path[PATH_MAX];
		snprintf(path, sizeof(path), "%s/%s", tally_text_or(root, TALLY_SYSFS_PMUS),
			 names[i]);
		int pmu = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (pmu < 0)
			continue;
		const char *cpus = read_text(pmu, "cpus", arena);
		close(pmu);
		if (cpus)
			names[(*count)++] = cpus;
	}
	return code;
}
