/* A program that counts its own instructions and prints the count every 100 ms; Ctrl-C ends it.  It
 * counts this thread alone, so the count is read without a system call where that is possible. */
#include <inttypes.h>
#include <stdio.h>
#include <tally/counter.h>
#include <unistd.h>

int main(void)
{
	char error[512];
	const char *event = "instructions";
	const struct tally_counter_options own = { sizeof(own), .this_thread_only = true };
	struct tally_counter *counter = tally_counter_open_with("instructions:u", &own, error,
								sizeof(error));

	/* most likely a virtual machine: the time on the CPU in ns can be counted everywhere */
	if (!counter) {
		fprintf(stderr, "self_count: %s\n", error);
		event = "task-clock";
		counter = tally_counter_open_with("task-clock:u", &own, error, sizeof(error));
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
