/* Chooses how many bytes of the stack to copy with each sample.
 *
 * With too few bytes, stacks lack their roots; with too many, the rings overflow, since the kernel
 * reserves the full size whatever it copies.  How much is enough depends on the program (4 KiB for
 * python, 60 for clang), and on how much of the missing part can be had in another way
 * (recorder_outer.c).
 *
 * With few samples, the largest copies fit and are used.  At high rates the recorder begins with
 * small copies, and grows them when more than a hundredth of the stacks are cut.  When more than a
 * fifth of the samples are lost, it goes back for good: stacks without roots are better than none.
 * The size is fixed in an event's attributes, and an event opened later would miss the threads and
 * children that exist already.  So one event for each size is open from the start, and all except
 * one are off; switching reaches inherited events as well.
 */
#include "recorder/recorder_events.h"

enum {
	SMALLEST = 16 << 10,
	STEP = 16 << 10,
	LARGEST = 63 << 10,
	RING_BYTES_MAX = 32 << 20,
	/* a ring should last this long with the largest copies; otherwise smaller ones come
	 * first */
	ROOM_MS = 16,
	CUT_MIN = 8,           /* cut stacks before it grows */
	/* stacks seen before it grows because tasks are too short-lived to be completed */
	NEW_STACKS_MIN = 1000,
	CALM_STACKS = 8192,    /* stacks seen before it shrinks; doubled after each switch */
	SWITCHES_MAX = 8,
	/* stacks plus losses before losses count: the first ones still have the previous size */
	SETTLED = 500,
};

bool tally_recorder_has_copies(const struct tally_recorder_events *events,
			       const struct tally_recorder_source *source)
{
	return events->copies.count > 1 && source->unwinds &&
	       source->event->group == TALLY_EVENT_NO_GROUP;
}

static uint64_t highest_rate(const struct tally_recorder_events *events)
{
	uint64_t rate = 0;
	for (size_t i = 0; i + 1 < events->source_count; i++) {
		const struct tally_recorder_source *source = &events->sources[i];
		if (source->unwinds && !(source->attr.flags & TALLY_ATTR_FREQ))
			return UINT64_MAX / LARGEST;
		if (source->unwinds)
			rate += source->attr.sample_period;
	}
	return rate;
}

/* Returns the ring size for copies.  Waking is expensive: rings four times as large, woken a
 * quarter as often, save a seventh per sample at 20 kHz.  Events with their own periods have no
 * known rate. */
size_t tally_recorder_copies_ring_bytes(const struct tally_recorder_events *events)
{
	uint64_t rate = highest_rate(events), copy = events->session->options.stack_bytes;
	if (!copy)
		copy = LARGEST;
	if (rate >= UINT64_MAX / LARGEST)
		return 0;
	uint64_t samples = rate * ROOM_MS / 1000;
	if (samples >= RING_BYTES_MAX / copy)
		return RING_BYTES_MAX;
	return (size_t)(samples * copy);
}

static void set_size(struct tally_recorder_events *events, uint32_t bytes)
{
	for (size_t i = 0; i + 1 < events->source_count; i++)
		if (events->sources[i].unwinds)
			events->sources[i].attr.sample_stack_user = bytes;
}

void tally_recorder_copies_init(struct tally_recorder_events *events, size_t ring_bytes)
{
	static const uint32_t sizes[] = { SMALLEST, SMALLEST + STEP, SMALLEST + 2 * STEP, LARGEST };
	struct tally_recorder_copies *copies = &events->copies;
	*copies = (struct tally_recorder_copies){ 0 };
	if (!events->unwinds || events->session->options.stack_bytes || ring_bytes / 8 < SMALLEST)
		return;
	while (copies->count < TALLY_RECORDER_COPY_SIZES &&
	       sizes[copies->count] <= ring_bytes / 8) {
		copies->sizes[copies->count] = sizes[copies->count];
		copies->count++;
	}
	uint32_t largest = copies->sizes[copies->count - 1];
	bool is_few = highest_rate(events) * ROOM_MS / 1000 <= ring_bytes / largest;
	if (is_few) {
		copies->count = 0;
		set_size(events, largest);
		return;
	}
	copies->highest = copies->count - 1;
	set_size(events, copies->sizes[0]);
}

void tally_recorder_copies_note(struct tally_recorder_copies *copies,
				const struct tally_sample *sample,
				enum tally_recorder_stack_fate fate, uint64_t needed)
{
	if (!copies->count || sample->stack_size != copies->sizes[copies->now])
		return; /* its size was in use before the last switch */
	copies->stacks++;
	copies->cut += fate == TALLY_RECORDER_STACK_CUT;
	copies->new += fate == TALLY_RECORDER_STACK_NEW;
	copies->small += copies->now && needed < copies->sizes[copies->now - 1];
}

/* Switches to other copies, place by place.  The gap is much shorter than the interval of
 * samples. */
static int switch_to(struct tally_recorder_events *events, unsigned next, struct tally_error *err)
{
	struct tally_recorder_copies *copies = &events->copies;
	const struct tally_provider_ops *ops = events->session->provider->ops;
	for (size_t i = 0; i < events->handles.count; i++) {
		const struct tally_recorder_handle *old = &events->handles.items[i],
						   *new = old + next - copies->now;
		if (old->copy_bytes != copies->sizes[copies->now] || !old->copy_bytes)
			continue;
		/* The sizes of a place are adjacent, unless its task ended while they were
		 * opened. */
		size_t at = i + next - copies->now;
		if (at >= events->handles.count || new->source != old->source ||
		    new->ring != old->ring || new->copy_bytes != copies->sizes[next])
			continue;
		int result = ops->ioctl(events->session->provider, old->handle, TALLY_IOCTL_DISABLE,
					NULL, 0);
		if (!result)
			result = ops->ioctl(events->session->provider, new->handle,
					    TALLY_IOCTL_ENABLE, NULL, 0);
		if (result < 0)
			return tally_error_set(err, result,
					       "changing the size of stack copies failed: %s",
					       tally_errno_text(result));
	}
	copies->now = next;
	copies->stacks = copies->cut = copies->new = copies->small = 0;
	copies->lost_before = events->session->status.lost;
	copies->switches++;
	return 0;
}

int tally_recorder_copies_adapt(struct tally_recorder_events *events, struct tally_error *err)
{
	struct tally_recorder_copies *copies = &events->copies;
	uint64_t calm = (uint64_t)CALM_STACKS << copies->switches;
	if (copies->count < 2 || copies->switches >= SWITCHES_MAX)
		return 0;
	bool is_cut = copies->cut >= CUT_MIN && copies->cut * 100 > copies->stacks;
	bool is_new = copies->stacks >= NEW_STACKS_MIN && copies->new * 100 > copies->stacks;
	uint64_t lost = events->session->status.lost - copies->lost_before,
		 seen = copies->stacks + lost;
	if (seen >= SETTLED && lost * 5 > seen && copies->now) {
		copies->highest = copies->now - 1;
		return switch_to(events, copies->highest, err);
	}
	if ((is_cut || is_new) && copies->now < copies->highest)
		return switch_to(events, copies->now + 1, err);
	if (copies->stacks >= calm && copies->small * 200 >= copies->stacks * 199 && copies->now)
		return switch_to(events, copies->now - 1, err);
	if (copies->stacks >= 2 * calm) { /* give old stacks less weight */
		copies->stacks /= 2;
		copies->cut /= 2;
		copies->new /= 2;
		copies->small /= 2;
		copies->lost_before += lost / 2;
	}
	return 0;
}
