/* The minimal cost of a report of call trees: maps a recording, walks its records, and looks up
 * each frame of each chain in one tree, outermost first, on one core.  Nothing is decompressed,
 * ordered, named or printed.
 *
 *     bench_interning FILE     prints samples, frames, nodes of the tree, period
 *
 * For files made by large_recording: plain, native byte order, all events with the same fields. */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_ROOM = 1 << 16, ATTRS_OFFSET_WORD = 3, DATA_OFFSET_WORD = 5, DATA_SIZE_WORD = 6 };

struct node { uint64_t address, weight; uint32_t parent; };

struct tree {
	struct node *nodes;
	uint32_t *slots; /* node's index + 1; 0: free */
	uint32_t count, room; /* there are twice as many slots as nodes */
};

static void *must(void *memory)
{
	if (!memory) {
		perror("bench_interning");
		exit(1);
	}
	return memory;
}

static uint32_t slot_of(const struct tree *tree, uint32_t parent, uint64_t address)
{
	uint64_t hash = (address + parent * 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
	return (uint32_t)(hash >> 32) & (2 * tree->room - 1);
}

static void grow(struct tree *tree)
{
	tree->room = tree->room ? 2 * tree->room : FIRST_ROOM;
	tree->nodes = must(realloc(tree->nodes, tree->room * sizeof(*tree->nodes)));
	free(tree->slots);
	tree->slots = must(calloc(2 * (size_t)tree->room, sizeof(*tree->slots)));
	for (uint32_t i = 0; i < tree->count; i++) {
		uint32_t slot = slot_of(tree, tree->nodes[i].parent, tree->nodes[i].address);
		while (tree->slots[slot])
			slot = (slot + 1) & (2 * tree->room - 1);
		tree->slots[slot] = i + 1;
	}
}

static uint32_t child(struct tree *tree, uint32_t parent, uint64_t address)
{
	if (tree->count == tree->room)
		grow(tree);
	uint32_t slot = slot_of(tree, parent, address);
	for (; tree->slots[slot]; slot = (slot + 1) & (2 * tree->room - 1)) {
		uint32_t index = tree->slots[slot] - 1;
		if (tree->nodes[index].address == address && tree->nodes[index].parent == parent)
			return index;
	}
	tree->slots[slot] = tree->count + 1;
	tree->nodes[tree->count] = (struct node){ .address = address, .parent = parent };
	return tree->count++;
}

/* perf_event_open(2), PERF_RECORD_SAMPLE: counts the words before the period and before the
 * chain. */
static void find_words(uint64_t type, size_t *period, size_t *chain)
{
	static const uint64_t before_period = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
					      PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
					      PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
					      PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU;
	*period = (size_t)__builtin_popcountll(type & before_period);
	*chain = *period + !!(type & PERF_SAMPLE_PERIOD);
	if (type & PERF_SAMPLE_READ || !(type & PERF_SAMPLE_CALLCHAIN) ||
	    !(type & PERF_SAMPLE_PERIOD)) {
		fprintf(stderr, "bench_interning: the samples need a period and a chain\n");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct stat status;
	int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
	if (fd < 0 || fstat(fd, &status) < 0) {
		fprintf(stderr, "usage: bench_interning FILE\n");
		return 2;
	}
	const uint8_t *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED || status.st_size < 104)
		return 1;
	const uint64_t *header = (const void *)bytes;
	struct perf_event_attr attr;
	memcpy(&attr, bytes + header[ATTRS_OFFSET_WORD], PERF_ATTR_SIZE_VER5);
	size_t period_word, chain_word;
	find_words(attr.sample_type, &period_word, &chain_word);

	struct tree tree = { 0 };
	uint32_t root = child(&tree, UINT32_MAX, 0);
	uint64_t samples = 0, frames = 0, period = 0;
	const uint8_t *end = bytes + header[DATA_OFFSET_WORD] + header[DATA_SIZE_WORD];
	for (const uint8_t *at = bytes + header[DATA_OFFSET_WORD]; at < end;) {
		const struct perf_event_header *record = (const void *)at;
		const uint64_t *words = (const void *)(record + 1);
		at += record->size;
		if (record->type != PERF_RECORD_SAMPLE)
			continue;
		const uint64_t *chain = words + chain_word + 1;
		uint32_t node = root;
		for (uint64_t i = chain[-1]; i-- > 0;) {
			if (chain[i] >= (uint64_t)PERF_CONTEXT_MAX)
				continue;
			node = child(&tree, node, chain[i]);
			frames++;
		}
		tree.nodes[node].weight += words[period_word];
		period += words[period_word];
		samples++;
	}
	printf("%llu samples, %llu frames, %u nodes, period %llu\n", (unsigned long long)samples,
	       (unsigned long long)frames, tree.count, (unsigned long long)period);
	free(tree.nodes);
	free(tree.slots);
	return 0;
}
