/* A program that counts its own instructions, and prints how many it ran every 100 ms.
 *
 *     ./self_count [TIMES]
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <tally/counter.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char error[256];
	struct tally_count count;
	struct tally_counter *counter = tally_counter_open("instructions:u", error, sizeof(error));
	const char *label = "instructions";
	if (!counter) {
		fprintf(stderr, "self_count: %s\nself_count: counting task-clock (ns) instead\n", error);
		counter = tally_counter_open(label = "task-clock", error, sizeof(error));
	}
	for (long left = argc > 1 ? atol(argv[1]) : -1; counter && left; left -= left > 0) {
		usleep(100000);
		if (tally_counter_read(counter, &count) < 0)
			return perror("self_count"), 1;
		printf("%s=%llu\n", label, (unsigned long long)count.value);
		fflush(stdout);
	}
	tally_counter_close(counter);
	return counter ? 0 : (fprintf(stderr, "self_count: %s\n", error), 1);
}
