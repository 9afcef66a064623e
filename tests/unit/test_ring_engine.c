/* libtally's rings on the engine: the calls of tally/ring.h, made by a task of the simulated
 * machine that samples itself. */
#include "test.h"

#include "library/event_ring.h"
#include "provider/engine_provider.h"
#include "sim/sim.h"

#include <errno.h>

enum { SIGNAL = 40, SAMPLES = 5, PERIOD = 1000 };

/* The observed task's own view; asserts are outside the coroutine. */
struct outcome {
	struct tally_provider *provider;
	char error[256];
	bool opened;
	int fd, fd_errno, signalled, refreshed, waited, changed, lost_result;
	unsigned signals, signals_before_end, samples, later;
	int last_code;
	long calls, again;
	uint64_t lost, ip, period, later_period, other_value;
};

static void work(struct sim_machine *machine, uint64_t instructions)
{
	struct sim_phase phase = { .kind = SIM_WORK,
				   .work = { .instructions = instructions,
					     .mode = TALLY_MODE_USER,
					     .address = 0x400000,
					     .code_size = 4096,
					     .per_kilo = { [SIM_CYCLES] = 1000 } } };
	sim_do(machine, &phase);
}

static bool take(void *context, const struct tally_record *record)
{
	struct outcome *outcome = context;
	if (record->header.type != TALLY_RECORD_SAMPLE)
		return true;
	outcome->samples++;
	outcome->ip = record->sample.ip;
	outcome->period = record->sample.period;
	outcome->other_value = record->sample.read.values[record->sample.read.stride];
	return outcome->samples != 2; /* stops once */
}

static bool take_later(void *context, const struct tally_record *record)
{
	struct outcome *outcome = context;
	outcome->later += record->header.type == TALLY_RECORD_SAMPLE;
	outcome->later_period = record->sample.period;
	return true;
}

static int sample_itself(struct sim_machine *machine, void *argument)
{
	struct outcome *outcome = argument;
	struct tally_event_ring_options options = { .size = sizeof(options),
						    .period = PERIOD,
						    .pages = 4,
						    .wakeup_samples = 1,
						    .chain = true,
						    .disabled = true };
	struct tally_event_ring *ring = tally_event_ring_open_from(
		outcome->provider, "instructions:u,cycles:u", &options, outcome->error,
		sizeof(outcome->error));
	outcome->opened = ring != NULL;
	if (!ring)
		return 1;
	outcome->fd = tally_event_ring_fd(ring);
	outcome->fd_errno = errno;
	outcome->signalled = tally_event_ring_signal(ring, SIGNAL);
	outcome->refreshed = tally_event_ring_refresh(ring, SAMPLES);
	work(machine, (SAMPLES - 1) * PERIOD + PERIOD / 2);
	const struct sim_signal_count *signals = sim_signals(sim_current(machine), SIGNAL);
	outcome->signals_before_end = signals->count;
	work(machine, 10 * PERIOD);
	outcome->signals = signals->count;
	outcome->last_code = signals->last_code;
	outcome->waited = tally_event_ring_wait(ring, 0);
	outcome->calls = tally_event_ring_each(ring, take, outcome);
	outcome->again = tally_event_ring_each(ring, take, outcome);
	outcome->lost_result = tally_event_ring_lost_now(ring, &outcome->lost);
	outcome->changed = tally_event_ring_set_period(ring, 2 * PERIOD);
	tally_event_ring_signal(ring, 0);
	tally_event_ring_enable(ring);
	work(machine, 8 * PERIOD);
	tally_event_ring_disable(ring);
	work(machine, 8 * PERIOD);
	tally_event_ring_each(ring, take_later, outcome);
	tally_event_ring_close(ring);
	return signals->count == outcome->signals ? 0 : 2;
}

static void the_same_calls_work_on_the_engine(void **state)
{
	const struct sim_config config = { .cpus = 1, .model = "x86" };
	struct sim_machine *machine = sim_new(&config);
	struct outcome outcome = { 0 };
	int exit_code = -1;
	(void)state;
	assert_non_null(machine);
	outcome.provider = tally_provider_engine_new(sim_engine(machine), "sim", SIM_PAGE_SIZE);
	assert_non_null(outcome.provider);
	struct sim_task_spec spec = { .comm = "sampled",
				      .program = sim_body_program,
				      .data = sim_body_new(sample_itself, &outcome),
				      .release = sim_body_release,
				      .cpu = -1 };
	struct sim_task *task = sim_spawn(machine, NULL, &spec);
	assert_non_null(task);
	int32_t tid = sim_tid(task);
	assert_int_equal(sim_run(machine, UINT64_MAX), 0);
	if (!outcome.opened)
		fail_msg("%s", outcome.error);
	if (sim_exited(machine, tid, &exit_code))
		assert_int_equal(exit_code, 0);
	/* its handles are no descriptors of this process: a clear refusal */
	assert_int_equal(outcome.fd, -1);
	assert_int_equal(outcome.fd_errno, ENOTSUP);
	assert_int_equal(outcome.signalled, 0);
	assert_int_equal(outcome.refreshed, 0);
	assert_int_equal(outcome.signals_before_end, SAMPLES - 1);
	assert_int_equal(outcome.signals, SAMPLES);
	assert_int_equal(outcome.last_code, 6); /* POLL_HUP */
	assert_int_equal(outcome.waited, 1);
	assert_int_equal(outcome.calls, 2);
	assert_int_equal(outcome.again, SAMPLES - 2);
	assert_int_equal(outcome.samples, SAMPLES);
	assert_in_range(outcome.ip, 0x400000, 0x400fff);
	assert_int_equal(outcome.period, PERIOD);
	assert_true(outcome.other_value >= SAMPLES * PERIOD);
	assert_int_equal(outcome.lost_result, 0);
	assert_int_equal(outcome.lost, 0);
	assert_int_equal(outcome.changed, 0);
	assert_int_equal(outcome.later, 4);
	assert_int_equal(outcome.later_period, 2 * PERIOD);
	sim_free(machine);
	outcome.provider->ops->release(outcome.provider);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_calls_work_on_the_engine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
