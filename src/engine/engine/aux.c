/* Records that a PMU writes about itself: data that it has traced (AUX), the start of a trace
 * (ITRACE_START), samples that the hardware dropped (LOST_SAMPLES), the id of an event in another
 * event's trace (AUX_OUTPUT_HW_ID).  They go to the ring of the event that they concern, and to no
 * other. */
#include "engine/ring_access.h"
#include "engine/ring_buffer.h"
#include "engine/sample_record.h"

void engine_output_record(struct engine_event *event, uint32_t type, const void *body, size_t size)
{
	const struct tally_record_header header = {
		.type = type,
		.size = (uint16_t)(sizeof(header) + size + event->id_header_size),
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

/* Returns the original of an inherited event, or the event itself. */
static struct engine_event *original_of(struct engine_event *event)
{
	if (event->parent)
		return event->parent;
	return event;
}

void engine_output_itrace_start(struct engine_event *event)
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

/* AUX output: a PMU writes bulk data of its own into an area beside the ring, and AUX records in
 * the ring say what was written (SPEC D4).
 *
 * There is one writer at a time: the PMU that owns the area, between begin and end.  A nested begin
 * is refused.  The order towards the reader is the ring's: begin acquires aux_tail (A), end
 * releases aux_head (B).  In overwrite mode the writer ignores the reader: a program that wants the
 * data stops the event first and takes what lies before aux_head. */

#define FLAG_TRUNCATED 1u
#define FLAG_OVERWRITE 2u

static void wake_reader(struct engine_ring *ring, struct engine_event *event)
{
	engine_shared_store_release(&ring->poll, 1);
	engine_event_pend(original_of(event), ENGINE_PENDING_WAKEUP);
}

int tally_engine_aux_begin(struct tally_pmu_event *hw, struct tally_engine_aux *out)
{
	struct engine_event *event = engine_event_of(hw);
	struct engine_ring *ring = __atomic_load_n(&original_of(event)->ring, __ATOMIC_ACQUIRE);
	struct engine_aux *aux = NULL;
	uintptr_t idle = 0, head, tail;
	size_t room;

	if (ring)
		aux = __atomic_load_n(&ring->aux, __ATOMIC_ACQUIRE);
	if (!aux)
		return -ENGINE_EINVAL;
	/* Acquires the stores of the previous writer, which may have been on another CPU. */
	if (!engine_shared_compare_exchange_acquire(&aux->busy, &idle, 1))
		return -ENGINE_EBUSY;
	head = engine_shared_load(&aux->head);
	room = aux->size;
	if (!aux->overwrite) {
		tail = engine_page_load_acquire(&ring->page->aux_tail); /* A */
		room = 0;
		if (head - tail < aux->size)
			room = (tail - head - 1) & (aux->size - 1);
		if (!room) {
			engine_shared_store_release(&aux->busy, 0);
			engine_event_pend(event, ENGINE_PENDING_DISABLE);
			wake_reader(ring, event);
			return -ENGINE_ENOSPC;
		}
	}
	*out = (struct tally_engine_aux){ .head = head,
					  .room = room,
					  .area = aux->area,
					  .area_size = aux->size,
					  .overwrite = aux->overwrite,
					  .opaque = aux };
	return 0;
}

/* True if the head has passed the watermark since the last wake-up. */
static bool wakeup_due(struct engine_aux *aux, uintptr_t head)
{
	if (aux->overwrite || head - aux->wakeup < aux->watermark)
		return false;
	aux->wakeup = head - head % aux->watermark;
	return true;
}

void tally_engine_aux_end(struct tally_pmu_event *hw, struct tally_engine_aux *in, size_t written,
			  uint64_t flags)
{
	struct engine_event *event = engine_event_of(hw);
	struct engine_aux *aux = in->opaque;
	struct engine_ring *ring = aux->ring;
	uintptr_t from = engine_shared_load(&aux->head), head = from + written;

	flags &= ~(uint64_t)FLAG_OVERWRITE;
	if (aux->overwrite) {
		flags |= FLAG_OVERWRITE;
		from = head = (uintptr_t)in->head;
	}
	engine_shared_store(&aux->head, head);
	/* B: before the record that points there */
	engine_page_store_release(&ring->page->aux_head, head);
	/* No record if nothing was written and no flag but OVERWRITE is set. */
	if (written || (flags & ~(uint64_t)FLAG_OVERWRITE))
		engine_output_record(event, TALLY_RECORD_AUX, (uint64_t[]){ from, written, flags },
				     3 * sizeof(uint64_t));
	if (flags & FLAG_TRUNCATED)
		engine_event_pend(event, ENGINE_PENDING_DISABLE);
	if (wakeup_due(aux, head) || (flags & FLAG_TRUNCATED))
		wake_reader(ring, event);
	engine_shared_store_release(&aux->busy, 0);
}
