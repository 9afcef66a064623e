/* A program that counts its own instructions and prints the count every 100 ms; Ctrl-C ends it. */
#include <inttypes.h>
#include <stdio.h>
#include <tally/counter.h>
#include <unistd.h>

int main(void)
{
	char error[512];
	const char *event = "instructions";
	struct tally_counter *counter = tally_counter_open("instructions:u", error, sizeof(error));

	/* most likely a virtual machine: the time on the CPU in ns can be counted everywhere */
	if (!counter) {
		fprintf(stderr, "self_count: %s\n", error);
		event = "task-clock";
		counter = tally_counter_open("task-clock:u", error, sizeof(error));
	}
	if (!counter) {
		fprintf(stderr, "self_count: %s\n", error);
		return 1;
	}

	for (struct tally_count count; tally_counter_read(counter, &count) == 0; usleep(100000)) {
		printf("%s=%" PRIu64 "\n", event, count.value);
		fflush(stdout);
	}
	tally_counter_close(counter);
	return 0;
}
