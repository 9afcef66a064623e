/* Spends time in signal handlers: of a signal that the program raises, on its stack and on a stack
 * of the handler's own, and of a timer that interrupts a function anywhere. */
#include "truth.h"
#include <signal.h>
#include <sys/time.h>

enum { HALF, THIRD, TIMED, INTERRUPTED, PARTS };
enum { ROUNDS = 12, STACK_BYTES = 256 << 10, TIMER_US = 20000 };

static struct truth_part parts[PARTS] = {
	{ "half", 0 }, { "third", 0 }, { "timed", 0 }, { "interrupted", 0 }
};
static uint64_t handled_ns;

TRUTH_FUNCTION uint64_t half(uint64_t value)
{
	return truth_work(value) + 1;
}

TRUTH_FUNCTION uint64_t third(uint64_t value)
{
	return truth_work(value) + 2;
}

TRUTH_FUNCTION uint64_t timed(uint64_t value)
{
	return truth_work(value) + 3;
}

TRUTH_FUNCTION uint64_t interrupted(uint64_t value)
{
	return truth_work(value) + 4;
}

static void on_raised(int number)
{
	uint64_t value = (uint64_t)number;
	TRUTH_SPEND(&parts[HALF], 60, value = half(value));
}

static void on_raised_elsewhere(int number)
{
	uint64_t value = (uint64_t)number;
	TRUTH_SPEND(&parts[THIRD], 40, value = third(value));
}

static void on_timer(int number)
{
	uint64_t value = (uint64_t)number, before_ns = parts[TIMED].ns;
	TRUTH_SPEND(&parts[TIMED], 10, value = timed(value));
	handled_ns += parts[TIMED].ns - before_ns;
}

static void set_timer(long microseconds)
{
	struct itimerval timer = { { 0, microseconds }, { 0, microseconds } };
	setitimer(ITIMER_VIRTUAL, &timer, NULL);
}

TRUTH_FUNCTION void stage(void)
{
	uint64_t value = 1, before_ns;
	raise(SIGUSR1);
	raise(SIGUSR2);
	before_ns = handled_ns;
	set_timer(TIMER_US);
	TRUTH_SPEND(&parts[INTERRUPTED], 60, value = interrupted(value));
	set_timer(0);
	parts[INTERRUPTED].ns -= handled_ns - before_ns;
}

static void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
	sigaction(number, &action, NULL);
}

int main(void)
{
	static char elsewhere[STACK_BYTES];
	stack_t stack = { .ss_sp = elsewhere, .ss_size = STACK_BYTES };
	sigaltstack(&stack, NULL);
	handle(SIGUSR1, on_raised, 0);
	handle(SIGUSR2, on_raised_elsewhere, SA_ONSTACK);
	handle(SIGVTALRM, on_timer, SA_RESTART);
	for (int i = 0; i < ROUNDS; i++)
		stage();
	truth_print(parts, PARTS);
	return 0;
}
