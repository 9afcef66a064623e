/* The observer and its results. */
#include "simulation/simulation_state.h"

#include "base/number_text.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { READ_INSTRUCTIONS = 2000, NAME_MAX_BYTES = 200, MARGIN_NS = 10000000, SLICE_NS = 20000000 };

/* ---- events -------------------------------------------------------------- */

static int parse_events(struct simulation_stage *stage, struct simulation_part *part)
{
	const struct scenario_part *line = part->line;
	struct tally_error why = TALLY_ERROR_NONE;
	int code = tally_event_parse(line->text, &stage->catalogue, &stage->arena, &part->events,
				     &why);
	if (code < 0) {
		tally_error_set(stage->err, code, "%.100s: line %u: %.600s",
				stage->options->scenario_name, line->events_place.line,
				why.message);
		tally_error_hint(stage->err, "%s", why.hint);
		return code;
	}
	if (tally_event_split_by_core(&part->events, &stage->catalogue, &stage->arena) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < part->events.count; i++) {
		struct tally_event *event = &part->events.items[i];
		bool leads = !i || event->group == TALLY_EVENT_NO_GROUP ||
			     part->events.items[i - 1].group != event->group;
		if (line->is_pinned && leads)
			event->attr.flags |= TALLY_ATTR_PINNED;
		if (line->is_exclusive && leads)
			event->attr.flags |= TALLY_ATTR_EXCLUSIVE;
	}
	return 0;
}

static const char *target_text(struct simulation_stage *stage, const struct scenario_part *part)
{
	if (part->program >= 0)
		return tally_arena_printf(&stage->arena, "%s%s",
					  stage->scenario->programs[part->program].name,
					  part->is_inherited ? " and its children" : "");
	if (part->cpu >= 0)
		return tally_arena_printf(&stage->arena, "cpu %d", part->cpu);
	return "everything";
}

static int prepare_parts(struct simulation *simulation)
{
	struct simulation_stage *stage = &simulation->stage;
	const struct scenario *scenario = stage->scenario;
	simulation->parts = tally_arena_array(&stage->arena, scenario->part_count,
					      sizeof(*simulation->parts));
	if (!simulation->parts)
		return simulation_out_of_memory(stage);
	for (unsigned i = 0; i < scenario->part_count; i++) {
		struct simulation_part *part = &simulation->parts[i];
		part->line = &scenario->parts[i];
		part->target_text = target_text(stage, part->line);
		if (part->line->kind == SCENARIO_SAY)
			continue;
		int code = parse_events(stage, part);
		if (code < 0)
			return code;
	}
	return 0;
}

/* ---- counting ------------------------------------------------------------ */

static int find_event_cpus(struct simulation_stage *stage, struct simulation_part *part)
{
	struct tally_counting_options *counting = &part->counting_options;
	counting->core_types = tally_catalogue_core_types(&stage->catalogue);
	return tally_event_places(&part->events, &stage->catalogue, &stage->arena,
				  &counting->event_cpus, &counting->event_cores);
}

static int make_target(struct simulation_stage *stage, struct simulation_part *part)
{
	struct tally_target *target = &part->target;
	const struct scenario_part *line = part->line;
	struct tally_error err = TALLY_ERROR_NONE;
	char list[32];
	if (line->program >= 0) {
		snprintf(list, sizeof(list), "%d",
			 scenario_play_find(&stage->play, line->program)->tid);
		target->tids.items = calloc(1, sizeof(*target->tids.items));
		if (!target->tids.items)
			return -ENOMEM;
		target->tids.items[0] = scenario_play_find(&stage->play, line->program)->tid;
		target->tids.count = 1;
		return 0;
	}
	target->all = true;
	if (line->cpu >= 0)
		snprintf(list, sizeof(list), "%d", line->cpu);
	else
		snprintf(list, sizeof(list), "0-%u", stage->scenario->machine.cpus - 1);
	return tally_cpu_list_parse(list, &target->cpus, &err);
}

static void explain_refusals(struct simulation_stage *stage, const struct simulation_part *part)
{
	for (size_t i = 0; i < part->events.count; i++)
		if (part->counting.handles.events[i].refusal == TALLY_REFUSED_GROUP)
			simulation_report(stage,
					  "%s is refused in its group of %s: together they "
					  "would never fit on the counters",
					  part->events.items[i].name, part->target_text);
		else if (part->counting.handles.events[i].refusal < 0)
			simulation_report(
				stage, "%s of %s is refused: %s", part->events.items[i].name,
				part->target_text,
				tally_errno_text(part->counting.handles.events[i].refusal));
}

static int watch_part(struct simulation *simulation, struct simulation_part *part)
{
	const struct tally_count_handles *handles = &part->counting.handles;
	unsigned number = (unsigned)(part - simulation->parts);
	int program = part->line->program, code = 0;
	const char *target = part->target_text;
	if (program >= 0)
		target = simulation->stage.scenario->programs[program].name;
	if (!simulation->watch || !handles->scope_count)
		return 0;
	for (size_t i = 0; !code && i < part->events.count; i++)
		if (handles->slots[i].handle >= 0)
			code = sim_watch_add(simulation->watch, handles->slots[i].handle, number,
					     part->events.items[i].name, target);
	/* no room for more: then some rows lack an explanation */
	if (code == -ENOMEM)
		return 0;
	return code;
}

static int open_counts(struct simulation *simulation, struct simulation_part *part)
{
	struct simulation_stage *stage = &simulation->stage;
	int code = make_target(stage, part);
	if (!code)
		code = find_event_cpus(stage, part);
	if (code < 0)
		return simulation_out_of_memory(stage);
	part->counting_options = (struct tally_counting_options){
		.provider = stage->provider,
		.events = part->events.items,
		.event_count = part->events.count,
		.event_cpus = part->counting_options.event_cpus,
		.event_cores = part->counting_options.event_cores,
		.core_types = part->counting_options.core_types,
		.target = &part->target,
		.no_inherit = !part->line->is_inherited,
	};
	part->slice_at_ns = sim_now(stage->machine) + SLICE_NS;
	code = tally_counting_open(&part->counting_options, &part->counting, stage->err);
	if (code < 0)
		return code;
	part->is_counting = true;
	explain_refusals(stage, part);
	tally_counting_enable(&part->counting);
	return watch_part(simulation, part);
}

/* ---- the truth beside it ------------------------------------------------- */

/* Gets the true count for a row.  Returns false when the simulation doesn't keep it. */
static bool truth_of(const struct simulation_stage *stage, const struct simulation_part *part,
		     const struct tally_event_count *row, uint64_t *truth)
{
	unsigned modes = 1u << TALLY_MODE_USER | 1u << TALLY_MODE_KERNEL |
			 1u << TALLY_MODE_HYPERVISOR;
	enum sim_metric metric;
	if (part->line->program < 0 || stage->scenario->machine.virtualisation != SIM_NOT_VIRTUAL)
		return false;
	if (row->excludes & TALLY_ATTR_EXCLUDE_USER)
		modes &= ~(1u << TALLY_MODE_USER);
	if (row->excludes & TALLY_ATTR_EXCLUDE_KERNEL)
		modes &= ~(1u << TALLY_MODE_KERNEL);
	if (!sim_metric_of(stage->machine, row->type, row->config, &metric))
		return false;
	*truth = scenario_play_truth(&stage->play,
				     scenario_play_find(&stage->play, part->line->program),
				     part->line->is_inherited, metric, modes);
	return true;
}

static void remark(struct simulation_stage *stage, struct simulation_part *part,
		   struct tally_event_count *row)
{
	uint64_t truth;
	if (row->state != TALLY_COUNT_OK || row->reason || !truth_of(stage, part, row, &truth))
		return;
	if (row->raw == truth && !row->was_scaled) {
		row->reason = "exactly what it did";
		return;
	}
	double error = row->value != 0 ? 100 : 0;
	if (truth)
		error = 100 * fabs(row->value - (double)truth) / (double)truth;
	row->reason = tally_arena_printf(&stage->arena, "truly %s, %.2f %% off",
					 tally_number(truth), error);
}

static void finish_counts(struct simulation_stage *stage, struct simulation_part *part)
{
	tally_counting_read(&part->counting, NULL);
	for (size_t i = 0; i < part->events.count; i++)
		remark(stage, part, &part->counting.rows[i]);
}

/* ---- the observer -------------------------------------------------------- */

static int open_parts(struct simulation *simulation)
{
	for (unsigned i = 0; i < simulation->stage.scenario->part_count; i++) {
		struct simulation_part *part = &simulation->parts[i];
		int code = 0;
		if (part->line->kind == SCENARIO_COUNT)
			code = open_counts(simulation, part);
		else if (part->line->kind == SCENARIO_SAMPLE)
			code = simulation_open_samples(&simulation->stage, part);
		if (code)
			return code;
	}
	return 0;
}

static uint64_t next_due(const struct simulation *simulation)
{
	const struct simulation_stage *stage = &simulation->stage;
	uint64_t due = stage->play.start_ns + stage->scenario->stop_ns;
	uint64_t happening = scenario_play_next_happening(&stage->play);
	if (happening < due)
		due = happening;
	for (unsigned i = 0; i < stage->scenario->part_count; i++)
		if (simulation->parts[i].rings && simulation->parts[i].next_read_ns < due)
			due = simulation->parts[i].next_read_ns;
		else if (simulation->parts[i].is_counting && simulation->parts[i].slice_at_ns < due)
			due = simulation->parts[i].slice_at_ns;
	return due;
}

/* Reads the counts of each slice of time, as `stat` does. */
static void take_slices(struct simulation *simulation)
{
	for (unsigned i = 0; i < simulation->stage.scenario->part_count; i++) {
		struct simulation_part *part = &simulation->parts[i];
		if (!part->is_counting || part->slice_at_ns > sim_now(simulation->stage.machine))
			continue;
		tally_counting_slice(&part->counting);
		part->slice_at_ns += SLICE_NS;
	}
}

/* Spends simulated time: reading takes time as on a real machine. */
static void spend(struct simulation_stage *stage)
{
	struct sim_phase phase = { .kind = SIM_WORK,
				   .work = { .instructions = READ_INSTRUCTIONS,
					     .mode = TALLY_MODE_KERNEL,
					     .address = 0xffffffff81180000u } };
	sim_do(stage->machine, &phase);
}

static int drain_due(struct simulation *simulation, bool is_last)
{
	struct simulation_stage *stage = &simulation->stage;
	bool has_any = false;
	int code = 0;
	for (unsigned i = 0; !code && i < stage->scenario->part_count; i++) {
		struct simulation_part *part = &simulation->parts[i];
		if (!part->rings || (!is_last && part->next_read_ns > sim_now(stage->machine)))
			continue;
		if (!has_any && !is_last)
			spend(stage);
		has_any = true;
		code = simulation_drain(stage, part, &simulation->recording);
	}
	if (code || (!has_any && !is_last))
		return code;
	return simulation_drain_side_band(stage, &simulation->recording);
}

static int watch_play(struct simulation *simulation)
{
	struct simulation_stage *stage = &simulation->stage;
	struct sim_machine *machine = stage->machine;
	uint64_t end = stage->play.start_ns + stage->scenario->stop_ns;
	while (stage->play.live && sim_now(machine) < end) {
		uint64_t due = next_due(simulation), now = sim_now(machine);
		if (due > now)
			sim_do(machine, &(struct sim_phase){ .kind = SIM_SLEEP, .ns = due - now });
		if (!stage->play.live)
			break;
		scenario_play_happenings(&stage->play);
		take_slices(simulation);
		int code = drain_due(simulation, false);
		if (code)
			return code;
	}
	return 0;
}

static int observe(struct simulation *simulation)
{
	struct simulation_stage *stage = &simulation->stage;
	int code = simulation_open_side_band(stage, &simulation->recording);
	if (code)
		return code;
	if (scenario_play_start(&stage->play) < 0)
		return simulation_out_of_memory(stage);
	code = open_parts(simulation);
	if (code)
		return code;
	code = simulation_recording_start(&simulation->recording, simulation->parts);
	if (code)
		return code;
	code = watch_play(simulation);
	if (code)
		return code;
	simulation->end_ns = sim_now(stage->machine);
	code = drain_due(simulation, true);
	for (unsigned i = 0; !code && i < stage->scenario->part_count; i++)
		if (simulation->parts[i].is_counting)
			finish_counts(stage, &simulation->parts[i]);
		else if (simulation->parts[i].rings)
			simulation_read_lost(stage, &simulation->parts[i]);
	return code;
}

static void close_all(struct simulation *simulation)
{
	struct simulation_stage *stage = &simulation->stage;
	sim_watch_free(simulation->watch);
	simulation->watch = NULL;
	for (unsigned i = 0; i < stage->scenario->part_count; i++)
		simulation_close_samples(stage, &simulation->parts[i]);
	simulation_close_side_band(stage, &simulation->recording);
	for (unsigned i = 0; i < stage->scenario->part_count; i++)
		if (simulation->parts[i].is_counting)
			tally_counting_close(&simulation->parts[i].counting);
}

/* The observer's task.  The rows are read when all is over; here only what needs the machine is
 * closed. */
static int observer_body(struct sim_machine *machine, void *argument)
{
	struct simulation *simulation = argument;
	struct simulation_stage *stage = &simulation->stage;
	stage->play.observer = sim_current(machine);
	simulation->code = observe(simulation);
	close_all(simulation);
	simulation->summary->tasks_left = stage->play.live;
	stage->play.observer = NULL;
	simulation->is_over = true;
	return 0;
}

/* ---- results ------------------------------------------------------------- */

static const char *event_names(struct simulation_stage *stage, const struct simulation_part *part)
{
	const char *names = "";
	for (size_t i = 0; names && i < part->events.count; i++)
		names = tally_arena_printf(&stage->arena, "%s%s%s", names, i ? ", " : "",
					   part->events.items[i].name);
	return tally_text_or(names, part->line->text);
}

static void give_results(struct simulation *simulation)
{
	struct simulation_stage *stage = &simulation->stage;
	for (unsigned i = 0; i < stage->scenario->part_count; i++) {
		const struct simulation_part *part = &simulation->parts[i];
		struct tally_simulation_result result = {
			.part = part->line,
			.target = part->target_text,
			.elapsed_ns = simulation->summary->elapsed_ns,
			.events = event_names(stage, part),
			.samples = part->samples,
			.lost = part->lost,
			.lost_reported = part->lost_reported,
			.throttled = part->throttled,
		};
		if (part->is_counting) {
			result.rows = part->counting.rows;
			result.row_count = part->events.count;
		}
		stage->options->result(stage->options->context, &result);
	}
}

static void report_watched(void *context, const char *text)
{
	simulation_report(context, "%s", text);
}

static void on_begin(void *context, struct scenario_instance *instance)
{
	simulation_recording_map(context, instance);
}

static int make_machine(struct simulation *simulation)
{
	struct simulation_stage *stage = &simulation->stage;
	int code = simulation_stage_init(stage);
	if (code)
		return code;
	stage->play.on_begin = on_begin;
	stage->play.context = &simulation->recording;
	if (stage->options->on_message &&
	    !(simulation->watch = sim_watch_new(stage->machine, report_watched, stage)))
		return simulation_out_of_memory(stage);
	return 0;
}

static int play(struct simulation *simulation)
{
	struct simulation_stage *stage = &simulation->stage;
	struct sim_task_spec spec = { .comm = "tally",
				      .program = sim_body_program,
				      .release = sim_body_release,
				      .cpu = (int)stage->scenario->machine.cpus - 1,
				      .data = sim_body_new(observer_body, simulation) };
	if (!spec.data || !sim_spawn(stage->machine, NULL, &spec)) {
		if (spec.data)
			sim_body_release(spec.data);
		return simulation_out_of_memory(stage);
	}
	while (!simulation->is_over && sim_run(stage->machine, sim_now(stage->machine) + MARGIN_NS))
		;
	return simulation->code;
}

static void summarize(struct simulation *simulation)
{
	struct simulation_stage *stage = &simulation->stage;
	struct tally_simulation_summary *summary = simulation->summary;
	summary->elapsed_ns = (double)(simulation->end_ns - stage->play.start_ns);
	const struct tally_perfdata_writer *writer = simulation->recording.writer;
	if (writer)
		summary->bytes = tally_perfdata_writer_bytes(writer);
	for (unsigned i = 0; writer && i < stage->scenario->part_count; i++)
		summary->samples += simulation->parts[i].samples;
	summary->forks_refused = stage->play.refused;
	for (const struct scenario_instance *one = stage->play.first; one; one = one->next)
		summary->tasks++;
	snprintf(summary->object_path, sizeof(summary->object_path), "%s",
		 simulation->recording.object_path);
}

static void release(struct simulation *simulation)
{
	for (unsigned i = 0; simulation->parts && i < simulation->stage.scenario->part_count; i++) {
		if (simulation->parts[i].is_counting)
			tally_counting_release(&simulation->parts[i].counting);
		tally_target_release(&simulation->parts[i].target);
		tally_event_list_release(&simulation->parts[i].events);
	}
	sim_watch_free(simulation->watch);
	simulation_recording_release(&simulation->recording);
	simulation_stage_release(&simulation->stage);
}

int tally_simulation_run(const struct tally_simulation_options *options,
			 struct tally_simulation_summary *summary, struct tally_error *err)
{
	struct simulation simulation = {
		.stage = { .options = options, .scenario = options->scenario, .err = err },
		.recording = { .stage = &simulation.stage, .fd = -1 },
		.summary = summary,
	};
	*summary = (struct tally_simulation_summary){ 0 };
	int code = make_machine(&simulation);
	if (code)
		goto out;
	code = prepare_parts(&simulation);
	if (code)
		goto out;
	code = simulation_recording_begin(&simulation.recording);
	if (code)
		goto out;
	code = play(&simulation);
	if (code)
		goto out;
	code = simulation_recording_finish(&simulation.recording);
	if (code)
		goto out;
	summarize(&simulation);
	give_results(&simulation);
out:
	release(&simulation);
	return code;
}
