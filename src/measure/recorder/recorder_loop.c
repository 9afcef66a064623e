/* The recording's loop, top to bottom: a pass takes signals, commands and times, drains the rings,
 * looks at CPUs and the file's size, and flushes.  Then the loop waits for a ring, a signal, a
 * command or a time. */
#include "recorder/recorder_state.h"

#include "machine/machine.h"

#include <errno.h>

enum { PROGRESS_MS = 500, DRAIN_MS = TALLY_RECORDER_PACE_MS_MAX, FLUSH_MS = 1000 };

struct loop {
	struct tally_recorder *recorder;
	void (*progress)(void *context, const struct tally_recorder_status *status); /* or NULL */
	void *context;
	struct tally_recorder_waits waits;
	/* ns; 0: never; enable_at: the next switch, on or off */
	uint64_t enable_at, stop_at, progress_at, next_file_at;
	size_t switched; /* number of switches so far; if even, the next one switches on */
	struct tally_session_inputs inputs;
	uint64_t flush_at;
	struct tally_recorder_pace pace;
	/* stacks longer than their copies at the last pass; until deep_until, passes follow each
	 * other quickly */
	uint64_t stacks_deep, deep_until;
	int look_ms; /* -1: only when woken */
	bool asks_next; /* for the next file */
	enum tally_recorder_end end;
	bool ended;
};

/* Ends the loop; the first reason counts. */
static void end_loop(struct loop *loop, enum tally_recorder_end end)
{
	if (!loop->ended)
		loop->end = end;
	loop->ended = true;
}

/* ---- signals and commands ------------------------------------------------ */

static void take_signal(void *context, const struct tally_signal *signal)
{
	struct loop *loop = context;
	if (tally_recorder_take_signal(&loop->recorder->session, signal, &loop->asks_next))
		end_loop(loop, TALLY_RECORDER_END_SIGNAL);
	if (loop->recorder->session.command_ended)
		end_loop(loop, TALLY_RECORDER_END_COMMAND);
}

/* Switches all events, or those with a name, on or off. */
static int switch_events(struct tally_recorder *recorder, const char *name, bool enable,
			 struct tally_error *err)
{
	const struct tally_recorder_session *session = &recorder->session;
	int result;
	if (!*name) {
		result = tally_recorder_enable(&recorder->events, enable, err);
		if (!result)
			tally_recorder_say(session, "events are %s", enable ? "on" : "off");
		return result;
	}
	result = tally_recorder_enable_named(&recorder->events, name, enable, err);
	if (!result)
		tally_recorder_say(session, "--control: no event '%s' is recorded", name);
	else if (result > 0)
		tally_recorder_say(session, "%s is %s", name, enable ? "on" : "off");
	return result < 0 ? result : 0;
}

/* Drains the rings and continues in a new file. */
static int take_snapshot(struct loop *loop, struct tally_error *err)
{
	struct tally_recorder *recorder = loop->recorder;
	if (!recorder->session.options.next_output) {
		tally_recorder_say(&recorder->session,
				   "--control: snapshot needs --overwrite or --switch-output");
		return 0;
	}
	loop->asks_next = false;
	int result = tally_recorder_drain(recorder, false, err);
	return result ? result : tally_recorder_next_file(recorder, err);
}

static int run_command(void *context, const struct tally_control_command *command,
		       struct tally_error *err)
{
	struct loop *loop = context;
	struct tally_recorder *recorder = loop->recorder;
	switch (command->verb) {
	case TALLY_CONTROL_ENABLE: return switch_events(recorder, command->argument, true, err);
	case TALLY_CONTROL_DISABLE: return switch_events(recorder, command->argument, false, err);
	case TALLY_CONTROL_SNAPSHOT:
		return take_snapshot(loop, err);
	case TALLY_CONTROL_STOP:
		end_loop(loop, TALLY_RECORDER_END_DURATION);
		break;
	case TALLY_CONTROL_EVLIST:
		for (size_t i = 0; i < recorder->events.source_count; i++)
			tally_recorder_say(&recorder->session, "%s",
					   recorder->events.sources[i].name);
		break;
	case TALLY_CONTROL_UNKNOWN:
		tally_recorder_say(
			&recorder->session,
			"--control: '%s' is none of enable, disable, snapshot, stop, ping, evlist",
			command->argument);
		break;
	case TALLY_CONTROL_PING: break;
	}
	return 0;
}

static int take_inputs(struct loop *loop, struct tally_error *err)
{
	static const struct tally_session_handlers handlers = { take_signal, run_command };
	loop->asks_next = tally_recorder_triggered(&loop->recorder->triggers);
	int result = tally_session_inputs_take(&loop->inputs, &handlers, loop, err);
	/* it may have ended before the loop began */
	if (loop->recorder->session.command_ended)
		end_loop(loop, TALLY_RECORDER_END_COMMAND);
	return result;
}

/* ---- times --------------------------------------------------------------- */

/* Returns the time of the next switch: on after the delay; off and on with ranges.  0: no more
 * switches. */
static uint64_t next_switch(const struct loop *loop)
{
	const struct tally_recorder_options *options = &loop->recorder->session.options;
	double after_s = loop->switched ? 0 : options->delay_s;
	if (loop->switched < 2 * options->range_count) {
		const struct tally_recorder_range *range = &options->ranges[loop->switched / 2];
		after_s = loop->switched % 2 ? range->end_s : range->start_s;
	}
	return after_s > 0 ? loop->recorder->session.start_ns + (uint64_t)(after_s * 1e9) : 0;
}

static int take_times(struct loop *loop, struct tally_error *err)
{
	uint64_t now = tally_recorder_now_ns();
	while (loop->enable_at && now >= loop->enable_at) {
		int result = tally_recorder_enable(&loop->recorder->events, loop->switched % 2 == 0,
						   err);
		if (result < 0)
			return result;
		loop->switched++;
		loop->enable_at = next_switch(loop);
	}
	if (loop->stop_at && now >= loop->stop_at)
		end_loop(loop, TALLY_RECORDER_END_DURATION);
	return 0;
}

static int earliest_ms(const struct loop *loop)
{
	uint64_t now = tally_recorder_now_ns(), next = now + DRAIN_MS * 1000000ull;
	const uint64_t times[] = { loop->enable_at, loop->stop_at, loop->progress_at,
				   loop->next_file_at };
	for (unsigned i = 0; i < 4; i++)
		if (times[i] && times[i] < next)
			next = times[i];
	if (loop->look_ms > 0 && now + (uint64_t)loop->look_ms * 1000000u < next)
		return loop->look_ms;
	return next <= now ? 0 : (int)((next - now) / 1000000) + 1;
}

/* Returns the time to the next look.  All rings have the size of the first one that exists.  Files
 * that can only be opened through the processes that map them (in containers; perf maps) must be
 * opened while these live.  So the time is limited even when the rings fill slowly. */
static int next_look_ms(struct loop *loop)
{
	enum { SEE_FILES_MS = 50, SEE_STACKS_MS = 4 };
	const uint64_t while_ns = 2000000000;
	const struct tally_recorder *recorder = loop->recorder;
	int longest_ms = recorder->tasks.objects.is_live ? SEE_FILES_MS : -1;
	/* Stacks longer than their copies are completed from memory that was read before and after.
	 * The closer these reads are to the sample, the better. */
	uint64_t deep = recorder->session.status.stacks_cut +
			recorder->session.status.stacks_completed + recorder->stacks.holds.count;
	if (deep != loop->stacks_deep || !loop->deep_until)
		loop->deep_until = tally_recorder_now_ns() + while_ns;
	loop->stacks_deep = deep;
	if (recorder->stacks.outer && tally_recorder_now_ns() < loop->deep_until)
		longest_ms = SEE_STACKS_MS;
	if (!recorder->rings.count || !recorder->rings.samples[0].page)
		return longest_ms;
	int ms = tally_recorder_pace_ms(&loop->pace, tally_recorder_now_ns(),
					recorder->session.status.lost, recorder->rings.found_bytes,
					recorder->rings.samples[0].mask + 1);
	return ms < 0 || (longest_ms >= 0 && longest_ms < ms) ? longest_ms : ms;
}

static void show_progress(struct loop *loop)
{
	struct tally_recorder *recorder = loop->recorder;
	if (!loop->progress || tally_recorder_now_ns() < loop->progress_at)
		return;
	loop->progress_at = tally_recorder_now_ns() + PROGRESS_MS * 1000000ull;
	tally_recorder_fill_status(&recorder->output);
	loop->progress(loop->context, &recorder->session.status);
}

/* ---- the file ------------------------------------------------------------ */

/* Continues in a new file when this one is large or old enough.  Ends the recording at the maximum
 * size. */
static int look_at_size(struct loop *loop, struct tally_error *err)
{
	struct tally_recorder *recorder = loop->recorder;
	const struct tally_recorder_options *options = &recorder->session.options;
	const struct tally_recorder_rotation *next = &options->next_file;
	uint64_t now = tally_recorder_now_ns(),
		 bytes = tally_perfdata_writer_bytes(recorder->output.writer);
	bool is_time = loop->next_file_at && now >= loop->next_file_at;
	if (options->max_bytes && bytes >= options->max_bytes && !loop->ended) {
		tally_recorder_say(&recorder->session,
				   "the output reached --max-size: the recording ends");
		end_loop(loop, TALLY_RECORDER_END_DURATION);
	}
	if (loop->ended || !options->next_output ||
	    (!loop->asks_next && !is_time && (!next->bytes || bytes < next->bytes)))
		return 0;
	int result = tally_recorder_next_file(recorder, err);
	if (next->seconds > 0)
		loop->next_file_at = tally_recorder_now_ns() + (uint64_t)(next->seconds * 1e9);
	return result;
}

/* Flushes so that the file of a killed recorder lacks one second at most, and a pipe's reader lags
 * by one pass. */
static int flush(struct loop *loop, struct tally_error *err)
{
	uint64_t now = tally_recorder_now_ns();
	if (!loop->recorder->session.is_pipe && now < loop->flush_at)
		return 0;
	loop->flush_at = now + FLUSH_MS * 1000000ull;
	return tally_perfdata_flush(loop->recorder->output.writer, err);
}

/* ---- waiting ------------------------------------------------------------- */

static int init_waits(struct loop *loop, struct tally_error *err)
{
	struct tally_recorder *recorder = loop->recorder;
	tally_recorder_waits_release(&loop->waits);
	int result = tally_recorder_waits_init(&loop->waits, &recorder->rings, &recorder->triggers);
	return result < 0 ? tally_error_set(err, result, "out of memory") : 0;
}

/* Returns a positive number if a ring has woken us, or is at its end. */
static int wait_for_records(struct loop *loop, struct tally_error *err)
{
	struct tally_provider *provider = loop->recorder->session.provider;
	struct tally_recorder_waits *waits = &loop->waits;
	int ready = provider->ops->wait(provider, waits->items, waits->count + waits->triggers,
					loop->inputs.fd, earliest_ms(loop));
	if (ready < 0 && ready != -EINTR)
		return tally_error_set(err, ready, "waiting for events failed: %s",
				       tally_errno_text(ready));
	return ready > 0;
}

/* ---- the loop ------------------------------------------------------------ */

static int make_pass(struct loop *loop, struct tally_error *err)
{
	struct tally_recorder *recorder = loop->recorder;
	int result = take_inputs(loop, err);
	if (result < 0)
		return result;
	result = take_times(loop, err);
	if (result < 0)
		return result;
	result = tally_recorder_drain(recorder, false, err);
	if (result < 0)
		return result;
	if (tally_recorder_check_online(&recorder->events, &recorder->rings, tally_session_inputs_cpus_changed(&loop->inputs)))
		result = init_waits(loop, err);
	if (result < 0)
		return result;
	result = look_at_size(loop, err);
	if (result < 0)
		return result;
	loop->look_ms = next_look_ms(loop);
	return flush(loop, err);
}

static int drain_until_end(struct loop *loop, struct tally_error *err)
{
	struct tally_recorder *recorder = loop->recorder;
	struct tally_recorder_waits *waits = &loop->waits;
	while (!loop->ended) {
		int ready = wait_for_records(loop, err);
		if (ready < 0)
			return ready;
		int result = make_pass(loop, err);
		if (result < 0)
			return result;
		if (ready)
			tally_recorder_waits_update(waits, &recorder->events);
		if (!recorder->session.spawn && waits->ended == waits->count)
			end_loop(loop, TALLY_RECORDER_END_COMMAND);
		show_progress(loop);
	}
	return 0;
}

/* Drains the rings for the last time, and what the provider had no room for in our rings.  Then
 * closes the rings, so that neither the command nor its leftover processes wait for room. */
static int drain_the_rest(struct tally_recorder *recorder, struct tally_error *err)
{
	struct tally_provider *provider = recorder->session.provider;
	int result = tally_recorder_drain(recorder, true, err);
	if (result < 0)
		return result;
	if (recorder->session.options.overwrite)
		result = tally_recorder_dump_rings(recorder, err);
	if (result < 0)
		return result;
	while (provider->ops->gather && !result && provider->ops->gather(provider) > 0)
		result = tally_recorder_drain(recorder, true, err);
	if (provider->ops->gather)
		tally_recorder_close_rings(&recorder->rings);
	return result ? result : tally_recorder_count_lost(&recorder->output, err);
}

static void loop_init(struct loop *loop, struct tally_recorder *recorder)
{
	const struct tally_recorder_options *options = &recorder->session.options;
	uint64_t start_ns = recorder->session.start_ns = tally_recorder_now_ns();
	loop->recorder = recorder;
	if (loop->progress)
		loop->progress_at = start_ns + PROGRESS_MS * 1000000ull;
	loop->enable_at = next_switch(loop);
	if (options->duration_s > 0)
		loop->stop_at = start_ns +
				(uint64_t)((options->delay_s + options->duration_s) * 1e9);
	if (options->next_file.seconds > 0)
		loop->next_file_at = start_ns + (uint64_t)(options->next_file.seconds * 1e9);
}

static void loop_release(struct loop *loop)
{
	tally_recorder_waits_release(&loop->waits);
	tally_session_inputs_close(&loop->inputs);
}

/* Switches the events on, and lets the command begin. */
static int start(const struct loop *loop, struct tally_error *err)
{
	struct tally_recorder *recorder = loop->recorder;
	const struct tally_recorder_session *session = &recorder->session;
	bool enable_now = !loop->enable_at && !session->options.starts_off &&
			  !(recorder->events.sources[0].attr.flags & TALLY_ATTR_ENABLE_ON_EXEC);
	int result = enable_now ? tally_recorder_enable(&recorder->events, true, err) : 0;
	if (!result && session->spawn)
		result = tally_spawn_go(session->spawn, session->target->command, err);
	return result;
}

int tally_recorder_run(struct tally_recorder *recorder, struct tally_signals *signals,
		       void (*progress)(void *context, const struct tally_recorder_status *status),
		       void *context, enum tally_recorder_end *end, struct tally_error *err)
{
	struct loop loop = { .progress = progress, .context = context };
	struct tally_latency before;
	loop_init(&loop, recorder);
	int result = tally_session_inputs_open(&loop.inputs, signals,
					       recorder->session.options.control,
					       tally_recorder_follows_cpus(&recorder->session), err);
	if (result < 0)
		goto out;
	result = init_waits(&loop, err);
	if (result < 0)
		goto out;
	loop.look_ms = next_look_ms(&loop);
	/* the command is forked already, so it keeps its own latency */
	tally_latency_begin(&before);
	result = start(&loop, err);
	bool has_started = !result;
	if (has_started)
		result = drain_until_end(&loop, err);
	tally_recorder_enable(&recorder->events, false, NULL);
	if (!result)
		result = drain_the_rest(recorder, err);
	tally_latency_end(&before);
	if (has_started && result < 0) {
		loop.end = TALLY_RECORDER_END_OUTPUT;
		result = 0;
	}
	*end = loop.end;
	tally_recorder_fill_status(&recorder->output);
out:
	loop_release(&loop);
	return result;
}
