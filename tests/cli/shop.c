/* For process_trace.sh: publishes the tracepoints of examples/tracepoints.h, and hits them in three
 * threads, in a forked child, and before it publishes them.  `shop late` publishes when main() runs. */
#define TALLY_TRACE_DEFINE
#include "tracepoints.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, HITS = 1000, CENTS = 2, LOST_CENTS = 7 };

static bool is_late;

/* Before main(), as TALLY_TRACE_PUBLISH() does. */
__attribute__((constructor)) static void begin(int argc, char **argv)
{
	is_late = argc > 1 && !strcmp(argv[1], "late");
	if (!is_late)
		tally_trace_publish(&tally_trace_group_shop);
}

static void *work(void *argument)
{
	for (unsigned i = 0; i < HITS; i++)
		TALLY_TRACE(order_changed, i, SHOP_PAID, "apple", CENTS);
	return argument;
}

int main(void)
{
	pthread_t threads[THREADS];
	if (is_late) {
		work(NULL);
		tally_trace_publish(&tally_trace_group_shop);
	}
	for (unsigned i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			return 1;
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pid_t child = fork();
	if (!child) {
		work(NULL);
		TALLY_TRACE(order_lost, 1, SHOP_SENT, "pear", LOST_CENTS);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	work(NULL);
	return 0;
}
