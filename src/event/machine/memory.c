/* Reads each node's meminfo, list of CPUs and memory blocks.  The entries memoryN of a node's
 * directory become a bitmap, which ends at the highest N. */
#include "machine/machine.h"

#include "base/buffer.h"
#include "base/extremes.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS_MAX = 1 << 24, TEXT_MAX = 1 << 16, PATH_SIZE = 512 };

struct memory_reader {
	const char *root;
	struct tally_arena *arena;
	struct tally_buffer text;
};

/* Returns the file's text, or "" if the file doesn't exist. */
static const char *read_text(struct memory_reader *reader, const char *path)
{
	tally_buffer_clear(&reader->text);
	if (tally_buffer_read_file(&reader->text, AT_FDCWD, path, TEXT_MAX))
		return "";
	return tally_buffer_string(&reader->text);
}

/* Returns the number in "Node 0 MemTotal:       20015308 kB". */
static uint64_t kib_of(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	if (!at)
		return 0;
	return strtoull(at + strlen(name), NULL, 10);
}

/* Returns the number of a directory entry "memoryN", or -1 for other entries. */
static long block_number(const char *name)
{
	char *end;
	if (strncmp(name, "memory", 6) || name[6] < '0' || name[6] > '9')
		return -1;
	long number = strtol(name + 6, &end, 10);
	if (*end || number >= BLOCKS_MAX)
		return -1;
	return number;
}

static int read_blocks(struct memory_reader *reader, const char *directory,
		       struct tally_memory_node *node)
{
	DIR *entries = opendir(directory);
	long number, most = -1;
	if (!entries)
		return 0;
	for (struct dirent *entry; (entry = readdir(entries));)
		most = tally_max_i64(most, block_number(entry->d_name));
	uint64_t *blocks = NULL;
	if (most >= 0)
		blocks = tally_arena_array(reader->arena, (size_t)most / 64 + 1, sizeof(*blocks));
	if (blocks) {
		memset(blocks, 0, ((size_t)most / 64 + 1) * sizeof(*blocks));
		rewinddir(entries);
		for (struct dirent *entry; (entry = readdir(entries));)
			if ((number = block_number(entry->d_name)) >= 0 && number <= most)
				blocks[number / 64] |= 1ull << number % 64;
		node->blocks = blocks;
		node->block_count = (size_t)most + 1;
	}
	closedir(entries);
	if (most >= 0 && !blocks)
		return -ENOMEM;
	return 0;
}

static int read_node(struct memory_reader *reader, struct tally_memory_node *node)
{
	char directory[PATH_SIZE], path[PATH_SIZE + 16];
	snprintf(directory, sizeof(directory), "%s/node/node%u", reader->root, node->number);
	snprintf(path, sizeof(path), "%s/meminfo", directory);
	const char *text = read_text(reader, path);
	node->total_kib = kib_of(text, "MemTotal:");
	node->free_kib = kib_of(text, "MemFree:");
	snprintf(path, sizeof(path), "%s/cpulist", directory);
	text = read_text(reader, path);
	node->cpus = tally_arena_copy(reader->arena, text, strcspn(text, "\n"));
	if (!node->cpus)
		return -ENOMEM;
	return read_blocks(reader, directory, node);
}

static int read_all(struct memory_reader *reader, struct tally_memory *out)
{
	char path[PATH_SIZE];
	struct tally_cpu_list online = { 0 }; /* lists of nodes have the syntax of lists of CPUs */
	snprintf(path, sizeof(path), "%s/memory/block_size_bytes", reader->root);
	out->block_bytes = strtoull(read_text(reader, path), NULL, 16);
	snprintf(path, sizeof(path), "%s/node/online", reader->root);
	const char *text = read_text(reader, path);
	if (tally_cpu_list_parse(text, &online, NULL) || !online.count)
		return 0;
	int code = 0;
	out->nodes = tally_arena_array(reader->arena, online.count, sizeof(*out->nodes));
	for (size_t i = 0; out->nodes && i < online.count && !code; i++) {
		out->nodes[i] = (struct tally_memory_node){ .number = online.cpus[i] };
		code = read_node(reader, &out->nodes[i]);
	}
	if (out->nodes)
		out->node_count = online.count;
	else
		code = -ENOMEM;
	tally_cpu_list_release(&online);
	return code;
}

int tally_memory_read(const char *root, struct tally_arena *arena, struct tally_memory *out)
{
	struct memory_reader reader = { .root = tally_text_or(root, "/sys/devices/system"),
					.arena = arena };
	*out = (struct tally_memory){ 0 };
	int code = read_all(&reader, out);
	tally_buffer_release(&reader.text);
	return code;
}
