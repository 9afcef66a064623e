/* Records that a PMU writes about itself: data that it has traced (AUX), the start of a trace
 * (ITRACE_START), samples that the hardware dropped (LOST_SAMPLES), the id of an event in another
 * event's trace (AUX_OUTPUT_HW_ID).  They go to the ring of the event that they concern, and to no
 * other. */
#include "engine/sample_record.h"

void engine_output_record(struct engine_event *event, uint32_t type, const void *body, size_t size)
{
	const struct tally_record_header header = {
		.type = type, .size = (uint16_t)(sizeof(header) + size + event->id_header_size),
	};
	struct engine_output output;
	uint8_t trailer[48];

	if (engine_output_begin(&output, event, header.size))
		return;
	engine_output_copy(&output, &header, sizeof(header));
	engine_output_copy(&output, body, size);
	engine_output_copy(&output, trailer, engine_sample_id(event, trailer));
	engine_output_end(&output);
}

static struct engine_event *original_of(struct engine_event *event)
{
	return event->parent ? event->parent : event;
}

void engine_tell_itrace_start(struct engine_event *event)
{
	struct engine_event *original = original_of(event);
	const struct tally_engine_task *task = engine_current_task(event->engine);
	struct {
		uint32_t pid, tid;
	} body = { 0, 0 };

	if (!(event->hw.pmu->capabilities & TALLY_PMU_ITRACE) ||
	    __atomic_load_n(&original->itrace_started, __ATOMIC_RELAXED))
		return;
	if (task) {
		body.pid = (uint32_t)task->identity.pid;
		body.tid = (uint32_t)task->identity.tid;
	}
	engine_output_record(original, TALLY_RECORD_ITRACE_START, &body, sizeof(body));
}

void tally_engine_itrace_started(struct tally_pmu_event *hw)
{
	__atomic_store_n(&original_of(engine_event_of(hw))->itrace_started, true, __ATOMIC_RELAXED);
}

void tally_engine_lost_samples(struct tally_pmu_event *hw, uint64_t lost)
{
	engine_output_record(engine_event_of(hw), TALLY_RECORD_LOST_SAMPLES, &lost, sizeof(lost));
}

void tally_engine_aux_output_id(struct tally_pmu_event *hw, uint64_t hw_id)
{
	engine_output_record(original_of(engine_event_of(hw)), TALLY_RECORD_AUX_OUTPUT_HW_ID,
			     &hw_id, sizeof(hw_id));
}
