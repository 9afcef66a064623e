/* A program that samples itself with libtally: waiting, signals, periods, losses, forks.  It uses
 * only the public headers and the shared library, on the running kernel. */
#include "test.h"

#include <tally/ring.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void burn(unsigned rounds)
{
	for (volatile unsigned i = 0; i < rounds; i++)
		;
}

/* Makes `count` page faults. */
static void fault(unsigned count)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory = mmap(NULL, count * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	madvise(memory, count * page, MADV_NOHUGEPAGE);
	for (unsigned i = 0; i < count; i++)
		((volatile char *)memory)[i * page] = 1;
	munmap(memory, count * page);
}

/* Opens a ring; skips the test if the kernel refuses events. */
static struct tally_event_ring *open_ring(const char *event,
					  struct tally_event_ring_options options)
{
	char error[256] = "";
	options.size = sizeof(options);
	struct tally_event_ring *ring = tally_event_ring_open(event, &options, error,
							      sizeof(error));
	if (!ring && (errno == EACCES || errno == EPERM || errno == ENOSYS)) {
		print_message("# not to be had here: %s\n", error);
		skip();
	}
	if (!ring)
		fail_msg("%s: %s", event, error);
	return ring;
}

static bool count_sample(void *context, const struct tally_record *record)
{
	if (record->header.type == TALLY_RECORD_SAMPLE)
		(*(unsigned *)context)++;
	return true;
}

static unsigned drain(struct tally_event_ring *ring)
{
	unsigned samples = 0;
	assert_true(tally_event_ring_each(ring, count_sample, &samples) >= 0);
	return samples;
}

/* --- options --------------------------------------------------------------- */

static void options_grow_with_the_library(void **state)
{
	struct {
		struct tally_event_ring_options known;
		uint64_t later;
	} options = { { .period = 1000000 }, 0 };
	char error[256] = "";
	(void)state;
	assert_null(tally_event_ring_open("cpu-clock:u", &options.known, error, sizeof(error)));
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(error, "no size"));
	options.known.size = sizeof(options);
	options.later = 1;
	assert_null(tally_event_ring_open("cpu-clock:u", &options.known, error, sizeof(error)));
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(error, "does not know"));
	/* an older program has only the members up to `period`, and other data behind them */
	options.known.size = offsetof(struct tally_event_ring_options, frequency);
	options.known.frequency = 5;
	struct tally_event_ring *ring = tally_event_ring_open("cpu-clock:u", &options.known, error,
							      sizeof(error));
	if (!ring && errno != EINVAL)
		skip();
	assert_non_null(ring);
	assert_int_equal(tally_event_ring_attr(ring)->sample_period, 1000000);
	tally_event_ring_close(ring);
}

/* --- waiting --------------------------------------------------------------- */

static void the_programs_own_poll_sees_each_wake_up_once(void **state)
{
	struct tally_event_ring_options options = { .period = 200000,
						    .wakeup_samples = 1,
						    .disabled = true };
	(void)state;
	struct tally_event_ring *ring = open_ring("cpu-clock:u", options);
	struct pollfd item = { .fd = tally_event_ring_fd(ring), .events = POLLIN };
	assert_true(item.fd >= 0);
	assert_int_equal(poll(&item, 1, 0), 0);
	assert_int_equal(tally_event_ring_enable(ring), 0);
	burn(3000000);
	assert_int_equal(tally_event_ring_disable(ring), 0);
	assert_int_equal(poll(&item, 1, 10000), 1);
	assert_true(item.revents & POLLIN);
	assert_int_equal(poll(&item, 1, 0), 0); /* though nothing was read */
	assert_true(drain(ring) > 0);
	tally_event_ring_close(ring);
}

/* --- signals --------------------------------------------------------------- */

struct sampled {
	struct tally_event_ring *ring;
	pid_t tid;
	volatile unsigned samples, ends, strangers, drained;
};

enum { THREADS = 4, SAMPLES = 40 };
static struct sampled sampled[THREADS];

static void on_signal(int number, siginfo_t *info, void *context)
{
	unsigned found = 0;
	(void)number, (void)context;
	for (unsigned i = 0; i < THREADS; i++) {
		if (!sampled[i].ring)
			continue;
		enum tally_event_ring_reason reason = tally_event_ring_reason(sampled[i].ring,
									      info);
		if (reason == TALLY_EVENT_RING_NONE)
			continue;
		found++;
		if (sampled[i].tid != gettid()) {
			sampled[i].strangers++;
			continue;
		}
		sampled[i].samples += reason == TALLY_EVENT_RING_SAMPLE;
		sampled[i].ends += reason == TALLY_EVENT_RING_END;
		const struct tally_record_header *header;
		while ((header = tally_event_ring_next(sampled[i].ring)))
			sampled[i].drained += header->type == TALLY_RECORD_SAMPLE;
	}
	if (found != 1)
		sampled[0].strangers++;
}

static void handle(int number)
{
	struct sigaction action = { .sa_sigaction = on_signal,
				    .sa_flags = SA_SIGINFO | SA_RESTART };
	assert_int_equal(sigaction(number, &action, NULL), 0);
}

static pthread_barrier_t opened;

static void *sample_itself(void *context)
{
	struct sampled *own = context;
	struct tally_event_ring_options options = { .size = sizeof(options),
						    .period = 100000,
						    .disabled = true };
	struct tally_event_ring *ring = tally_event_ring_open("cpu-clock:u", &options, NULL, 0);
	own->tid = gettid();
	own->ring = ring;
	bool works = ring && !tally_event_ring_signal(ring, SIGRTMIN + 1);
	pthread_barrier_wait(&opened);
	if (!works || tally_event_ring_refresh(ring, SAMPLES) < 0)
		return NULL;
	for (unsigned i = 0; i < 10000 && !own->ends; i++)
		burn(100000);
	return own;
}

static void each_thread_gets_the_signals_of_its_samples(void **state)
{
	pthread_t threads[THREADS];
	unsigned worked = 0;
	(void)state;
	tally_event_ring_close(open_ring("cpu-clock:u", (struct tally_event_ring_options){ 0 }));
	handle(SIGRTMIN + 1);
	assert_int_equal(pthread_barrier_init(&opened, NULL, THREADS), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, sample_itself, &sampled[i]), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		void *result = NULL;
		pthread_join(threads[i], &result);
		worked += result != NULL;
	}
	signal(SIGRTMIN + 1, SIG_IGN);
	assert_int_equal(worked, THREADS);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(sampled[i].ends, 1);
		/* each sample has one: real-time signals are queued */
		assert_int_equal(sampled[i].samples, SAMPLES - 1);
		assert_int_equal(sampled[i].drained, SAMPLES);
		assert_int_equal(sampled[i].strangers, 0);
		tally_event_ring_close(sampled[i].ring);
		sampled[i] = (struct sampled){ 0 };
	}
	pthread_barrier_destroy(&opened);
}

static void any_signal_tells_why_until_it_is_switched_off(void **state)
{
	const int numbers[] = { SIGIO, SIGUSR1, SIGTRAP, SIGCHLD };
	struct tally_event_ring_options options = { .period = 100000, .disabled = true };
	(void)state;
	struct tally_event_ring *ring = open_ring("cpu-clock:u", options);
	sampled[0] = (struct sampled){ .ring = ring, .tid = gettid() };
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		sampled[0].ends = 0;
		handle(numbers[i]);
		assert_int_equal(tally_event_ring_signal(ring, numbers[i]), 0);
		assert_int_equal(tally_event_ring_refresh(ring, 3), 0);
		for (unsigned n = 0; n < 10000 && !sampled[0].ends; n++)
			burn(10000);
		assert_int_equal(sampled[0].ends, 1);
		raise(numbers[i]); /* one that the program sends itself is not the ring's */
		assert_int_equal(sampled[0].ends, 1);
		assert_int_equal(sampled[0].strangers, i + 1);
	}
	assert_int_equal(tally_event_ring_signal(ring, 0), 0);
	unsigned before = sampled[0].samples;
	assert_int_equal(tally_event_ring_refresh(ring, 3), 0);
	burn(3000000);
	assert_int_equal(sampled[0].samples, before);
	assert_int_equal(sampled[0].ends, 1);
	assert_int_equal(drain(ring), 3);
	assert_int_equal(tally_event_ring_signal(ring, 65), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(tally_event_ring_signal(ring, -1), -1);
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		signal(numbers[i], SIG_DFL);
	tally_event_ring_close(ring);
	sampled[0] = (struct sampled){ 0 };
}

/* --- reading and control --------------------------------------------------- */

static void refresh_takes_exactly_so_many_samples(void **state)
{
	struct tally_event_ring_options options = { .period = 1, .disabled = true };
	(void)state;
	struct tally_event_ring *ring = open_ring("page-faults:u", options);
	fault(20);
	assert_int_equal(drain(ring), 0);
	assert_int_equal(tally_event_ring_refresh(ring, 0), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(tally_event_ring_refresh(ring, 5), 0);
	fault(20);
	assert_int_equal(drain(ring), 5);
	assert_int_equal(tally_event_ring_refresh(ring, 2), 0);
	assert_int_equal(tally_event_ring_refresh(ring, 2), 0);
	fault(20);
	assert_int_equal(drain(ring), 4);
	tally_event_ring_close(ring);
}

static bool stop_at_the_third(void *context, const struct tally_record *record)
{
	(void)record;
	return ++*(unsigned *)context < 3;
}

static void a_callback_that_stops_leaves_the_rest(void **state)
{
	struct tally_event_ring_options options = { .period = 1, .disabled = true };
	unsigned calls = 0;
	(void)state;
	struct tally_event_ring *ring = open_ring("page-faults:u", options);
	assert_int_equal(tally_event_ring_refresh(ring, 10), 0);
	fault(20);
	assert_int_equal(tally_event_ring_each(ring, stop_at_the_third, &calls), 3);
	assert_int_equal(calls, 3);
	assert_int_equal(drain(ring), 7);
	assert_int_equal(tally_event_ring_each(ring, stop_at_the_third, &calls), 0);
	tally_event_ring_close(ring);
}

struct periods {
	unsigned count[4]; /* samples with this period */
	unsigned turns;
	uint64_t last;
};

static bool count_period(void *context, const struct tally_record *record)
{
	struct periods *periods = context;
	if (record->header.type != TALLY_RECORD_SAMPLE)
		return true;
	assert_in_range(record->sample.period, 2, 3);
	periods->count[record->sample.period]++;
	periods->turns += record->sample.period != periods->last;
	periods->last = record->sample.period;
	return true;
}

static void samples_keep_the_period_they_were_taken_with(void **state)
{
	struct tally_event_ring_options options = { .period = 3, .disabled = true };
	struct periods periods = { { 0 }, 0, 0 };
	(void)state;
	struct tally_event_ring *ring = open_ring("page-faults:u", options);
	assert_int_equal(tally_event_ring_refresh(ring, 4), 0);
	fault(20);
	assert_int_equal(tally_event_ring_set_period(ring, 2), 0);
	assert_int_equal(tally_event_ring_refresh(ring, 6), 0);
	fault(20);
	assert_int_equal(tally_event_ring_set_period(ring, 3), 0);
	assert_int_equal(tally_event_ring_refresh(ring, 1), 0);
	fault(20);
	/* the oldest record's period holds for readers of the attribute, too */
	assert_int_equal(tally_event_ring_attr(ring)->sample_period, 3);
	assert_int_equal(tally_event_ring_each(ring, count_period, &periods), 11);
	assert_int_equal(periods.count[3], 5);
	assert_int_equal(periods.count[2], 6);
	assert_int_equal(periods.turns, 3);
	assert_int_equal(tally_event_ring_set_period(ring, 0), -1);
	assert_int_equal(errno, EINVAL);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(tally_event_ring_set_period(ring, 2), 0);
	assert_int_equal(tally_event_ring_set_period(ring, 2), -1);
	assert_int_equal(errno, EAGAIN);
	tally_event_ring_close(ring);

	ring = open_ring("page-faults:u", (struct tally_event_ring_options){ .period = 1 });
	assert_int_equal(tally_event_ring_set_period(ring, 2), -1);
	assert_int_equal(errno, ENOTSUP);
	tally_event_ring_close(ring);
}

static void a_frequency_can_be_changed(void **state)
{
	struct tally_event_ring_options options = { .frequency = 100 };
	(void)state;
	struct tally_event_ring *ring = open_ring("cpu-clock:u", options);
	assert_int_equal(tally_event_ring_set_period(ring, 4000), 0);
	burn(20000000);
	assert_true(drain(ring) > 0);
	tally_event_ring_close(ring);
}

static void check_lost(const char *events)
{
	struct tally_event_ring_options options = { .period = 1, .pages = 1, .disabled = true };
	enum { TAKEN = 500 };
	uint64_t lost = 1;
	struct tally_event_ring *ring = open_ring(events, options);
	if (tally_event_ring_lost_now(ring, &lost) < 0 && errno == ENOTSUP) {
		tally_event_ring_close(ring);
		skip();
	}
	assert_int_equal(lost, 0);
	assert_int_equal(tally_event_ring_refresh(ring, TAKEN), 0);
	fault(TAKEN);
	assert_int_equal(tally_event_ring_lost_now(ring, &lost), 0);
	assert_true(lost > 0);
	assert_int_equal(tally_event_ring_lost(ring), 0); /* no record says so yet */
	assert_int_equal(drain(ring) + lost, TAKEN);
	assert_int_equal(tally_event_ring_refresh(ring, 1), 0);
	fault(2);
	assert_int_equal(drain(ring), 1);
	assert_int_equal(tally_event_ring_lost(ring), lost);
	tally_event_ring_close(ring);
}

static void lost_samples_are_counted_in_both_ways(void **state)
{
	(void)state;
	check_lost("page-faults:u");
	check_lost("page-faults:u,task-clock:u");
}

static bool check_chain(void *context, const struct tally_record *record)
{
	unsigned *frames = context;
	if (record->header.type != TALLY_RECORD_SAMPLE)
		return true;
	assert_true(record->sample.type & TALLY_SAMPLE_CALLCHAIN);
	assert_true(record->sample.chain_length >= 2 && record->sample.chain_length <= 4);
	assert_int_equal(record->sample.chain[0], TALLY_CONTEXT_USER);
	assert_int_equal(record->sample.chain[1], record->sample.ip);
	*frames += (unsigned)record->sample.chain_length - 1;
	return true;
}

static void samples_have_call_chains(void **state)
{
	struct tally_event_ring_options options = { .period = 200000,
						    .chain = true,
						    .chain_max = 3 };
	unsigned frames = 0;
	(void)state;
	struct tally_event_ring *ring = open_ring("cpu-clock:u", options);
	burn(5000000);
	assert_int_equal(tally_event_ring_disable(ring), 0);
	assert_true(tally_event_ring_each(ring, check_chain, &frames) > 0);
	assert_true(frames > 0);
	tally_event_ring_close(ring);
}

static bool check_values(void *context, const struct tally_record *record)
{
	uint64_t *last = context;
	if (record->header.type != TALLY_RECORD_SAMPLE)
		return true;
	const struct tally_read_values *read = &record->sample.read;
	assert_int_equal(read->count, 2);
	assert_true(read->time_enabled >= read->time_running);
	assert_true(read->values[0] >= last[0] && read->values[read->stride] >= last[1]);
	last[0] = read->values[0];
	last[1] = read->values[read->stride];
	return true;
}

static void samples_have_the_values_of_their_group(void **state)
{
	struct tally_event_ring_options options = { .period = 1, .disabled = true };
	uint64_t last[2] = { 0 };
	(void)state;
	struct tally_event_ring *ring = open_ring("page-faults:u,task-clock:u", options);
	assert_int_equal(tally_event_ring_size(ring), 2);
	assert_string_equal(tally_event_ring_name(ring, 1), "task-clock:u");
	assert_null(tally_event_ring_name(ring, 2));
	assert_int_equal(tally_event_ring_refresh(ring, 9), 0);
	fault(20);
	assert_int_equal(tally_event_ring_each(ring, check_values, last), 9);
	assert_int_equal(last[0], 9);
	assert_true(last[1] > 0);
	uint64_t lost = 1;
	assert_true(!tally_event_ring_lost_now(ring, &lost) ? !lost : errno == ENOTSUP);
	tally_event_ring_close(ring);
}

/* --- forks ----------------------------------------------------------------- */

/* Checks a parent's ring in the child.  Returns the number of the first wrong result, or 0. */
static int check_in_child(struct tally_event_ring *ring)
{
	uint64_t lost;
	unsigned samples = 0;
	if (tally_event_ring_next(ring))
		return 1;
	if (tally_event_ring_wait(ring, 0) != -1 || errno != ECHILD)
		return 2;
	if (tally_event_ring_disable(ring) != -1 || errno != ECHILD)
		return 3;
	if (tally_event_ring_each(ring, count_sample, &samples) != -1 || errno != ECHILD)
		return 4;
	if (tally_event_ring_fd(ring) != -1 || tally_event_ring_signal(ring, SIGUSR1) != -1 ||
	    tally_event_ring_set_period(ring, 5) != -1 || tally_event_ring_refresh(ring, 1) != -1 ||
	    tally_event_ring_lost_now(ring, &lost) != -1)
		return 5;
	tally_event_ring_close(ring);
	struct tally_event_ring_options options = { .size = sizeof(options), .period = 1 };
	ring = tally_event_ring_open("page-faults:u", &options, NULL, 0);
	if (!ring)
		return 6;
	fault(5);
	if (tally_event_ring_each(ring, count_sample, &samples) < 0 || samples < 5)
		return 7;
	tally_event_ring_close(ring);
	return 0;
}

static void a_forked_child_does_not_have_the_ring(void **state)
{
	struct tally_event_ring_options options = { .period = 1, .disabled = true };
	int status = 0;
	(void)state;
	struct tally_event_ring *ring = open_ring("page-faults:u", options);
	assert_int_equal(tally_event_ring_refresh(ring, 3), 0);
	fault(20);
	pid_t child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(check_in_child(ring));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(drain(ring), 3);
	assert_int_equal(tally_event_ring_refresh(ring, 3), 0);
	fault(20);
	assert_int_equal(drain(ring), 3);
	tally_event_ring_close(ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_grow_with_the_library),
		cmocka_unit_test(the_programs_own_poll_sees_each_wake_up_once),
		cmocka_unit_test(each_thread_gets_the_signals_of_its_samples),
		cmocka_unit_test(any_signal_tells_why_until_it_is_switched_off),
		cmocka_unit_test(refresh_takes_exactly_so_many_samples),
		cmocka_unit_test(a_callback_that_stops_leaves_the_rest),
		cmocka_unit_test(samples_keep_the_period_they_were_taken_with),
		cmocka_unit_test(a_frequency_can_be_changed),
		cmocka_unit_test(lost_samples_are_counted_in_both_ways),
		cmocka_unit_test(samples_have_call_chains),
		cmocka_unit_test(samples_have_the_values_of_their_group),
		cmocka_unit_test(a_forked_child_does_not_have_the_ring),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
