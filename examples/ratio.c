/* The cost of a loop: counts events together around it, so that their ratio means something. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tally/group.h>

enum { EVENTS = 2, WORDS = 1 << 22 };

int main(void)
{
	char error[512];
	struct tally_count counts[EVENTS];
	struct tally_group *group = tally_group_open("instructions:u,cycles:u", error,
						     sizeof(error));

	if (!group) { /* no hardware counters: time and page faults can be counted everywhere */
		fprintf(stderr, "ratio: %s\n", error);
		group = tally_group_open("task-clock:u,page-faults:u", error, sizeof(error));
	}
	if (!group) {
		fprintf(stderr, "ratio: %s\n", error);
		return 1;
	}

	tally_group_reset(group);
	uint64_t sum = 0, *words = calloc(WORDS, sizeof(*words));
	for (size_t i = 0; words && i < WORDS; i++)
		sum += words[i] ^= i;
	tally_group_disable(group);

	if (tally_group_read(group, counts, EVENTS) != EVENTS) {
		perror("ratio");
		return 1;
	}
	for (size_t i = 0; i < EVENTS; i++)
		printf("%s=%" PRIu64 "\n", tally_group_name(group, i), counts[i].value);
	printf("ratio=%.3f (%" PRIu64 ")\n",
	       counts[1].value ? (double)counts[0].value / (double)counts[1].value : 0.0, sum);
	double ns;
	const char *way = tally_group_read_way(group, &ns);
	printf("read by %s, %.0f ns\n", way, ns);
	free(words);
	tally_group_close(group);
	return 0;
}
