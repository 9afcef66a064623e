/* Prints the ten functions with most of a recording's samples: `top_functions [FILE]`. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tally/data.h>

struct entry {
	const char *function, *object;
	uint64_t samples;
};

static int by_samples(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;
	if (a->samples != b->samples)
		return a->samples < b->samples ? 1 : -1;
	return strcmp(a->object, b->object);
}

int main(int argc, char **argv)
{
	enum { ENTRIES = 4096, SHOWN = 10 };
	static struct entry entries[ENTRIES];
	char error[512];
	size_t count = 0;
	uint64_t total = 0;
	int result;
	const struct tally_data_sample *sample;
	struct tally_data *data = tally_data_open(argc > 1 ? argv[1] : "tally.data", error,
						  sizeof(error));

	if (!data) {
		fprintf(stderr, "top_functions: %s\n", error);
		return 1;
	}
	while ((result = tally_data_next(data, &sample, error, sizeof(error))) > 0) {
		if (!sample->frame_count)
			continue;
		const struct tally_data_frame *leaf = &sample->frames[0];
		const char *function = leaf->function ? leaf->function : "[unknown]";
		size_t i = 0;
		while (i < count && (strcmp(entries[i].function, function) ||
				     strcmp(entries[i].object, leaf->object)))
			i++;
		if (i == ENTRIES)
			continue;
		count += i == count;
		entries[i] = (struct entry){ function, leaf->object, entries[i].samples + 1 };
		total++;
	}
	if (result < 0)
		fprintf(stderr, "top_functions: %s\n", error);
	qsort(entries, count, sizeof(*entries), by_samples);
	for (size_t i = 0; i < count && i < SHOWN; i++)
		printf("%6.2f%%  %s  %s\n", 100 * (double)entries[i].samples / (double)total,
		       entries[i].function, entries[i].object);
	if (tally_data_lost(data))
		printf("%" PRIu64 " samples were lost\n", tally_data_lost(data));
	tally_data_close(data);
	return result < 0;
}
