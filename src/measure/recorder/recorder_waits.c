/* The handles that the recorder waits for: one for each ring.
 *
 * When an event's task and all its descendants have ended, poll(2) returns POLLHUP at once and for
 * ever, even if other events still write to the same ring.  The ring's next living event then takes
 * its place.  A ring without living events is not waited for any more.
 */
#include "recorder/recorder_waits.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

static void add(struct tally_recorder_waits *waits, const struct tally_ring *ring, bool side,
		size_t index)
{
	if (!ring->page || ring->is_backward) /* nothing reads a backward ring before a dump */
		return;
	waits->items[waits->count].handle = ring->handle;
	waits->places[waits->count].side = side;
	waits->places[waits->count].ring = (uint32_t)index;
	waits->count++;
}

int tally_recorder_waits_init(struct tally_recorder_waits *waits,
			      const struct tally_recorder_rings *rings,
			      const struct tally_recorder_triggers *triggers)
{
	*waits = (struct tally_recorder_waits){ 0 };
	waits->items = calloc(rings->count * 2 + triggers->count, sizeof(*waits->items));
	waits->places = calloc(rings->count * 2, sizeof(*waits->places));
	if (!waits->items || !waits->places)
		return -ENOMEM;
	for (size_t i = 0; i < rings->count; i++) {
		add(waits, &rings->samples[i], false, i);
		add(waits, &rings->sides[i], true, i);
	}
	for (size_t i = 0; i < triggers->count; i++)
		if (triggers->rings[i].page)
			waits->items[waits->count + waits->triggers++].handle =
				triggers->rings[i].handle;
	return 0;
}

static bool has_hung_up(const struct tally_recorder_events *events, int handle)
{
	struct tally_wait_item item = { .handle = handle };
	struct tally_provider *provider = events->session->provider;
	return provider->ops->wait(provider, &item, 1, -1, 0) > 0 && item.revents & POLLHUP;
}

/* Finds another living event of the ring.  Ended events stay ended, so the search goes on where the
 * last one stopped. */
static int next_living(struct tally_recorder_waits *waits, size_t item,
		       const struct tally_recorder_events *events)
{
	const struct tally_recorder_handle *handles = events->handles.items;
	size_t count = events->handles.count;
	if (waits->places[item].side) {
		handles = events->side_handles.items;
		count = events->side_handles.count;
	}
	for (size_t *next = &waits->places[item].next; *next < count; ++*next)
		if (handles[*next].ring == waits->places[item].ring &&
		    !has_hung_up(events, handles[*next].handle))
			return handles[*next].handle;
	return -1;
}

void tally_recorder_waits_update(struct tally_recorder_waits *waits,
				 const struct tally_recorder_events *events)
{
	for (size_t i = 0; i < waits->count; i++) {
		if (waits->items[i].handle < 0 || !(waits->items[i].revents & POLLHUP))
			continue;
		waits->items[i].handle = next_living(waits, i, events);
		waits->items[i].revents = 0;
		waits->ended += waits->items[i].handle < 0;
	}
	for (size_t i = waits->count; i < waits->count + waits->triggers; i++)
		/* its children are checked at each pass */
		if (waits->items[i].revents & POLLHUP)
			waits->items[i] = (struct tally_wait_item){ .handle = -1 };
}

void tally_recorder_waits_release(struct tally_recorder_waits *waits)
{
	free(waits->items);
	free(waits->places);
	*waits = (struct tally_recorder_waits){ 0 };
}

/* ---- the pace ------------------------------------------------------------ */

/* Decides how long to wait for the next pass.
 *
 * With stack copies, waking is a fifth of the recorder's work: 64 KiB per sample fill a quarter of
 * a ring in 0.8 ms.  So the recorder is woken at half a ring.  If it then waits long for a CPU, the
 * other half is not enough and samples are lost.  The mark is fixed in the event and can't be
 * moved.  So after a loss the recorder wakes by itself when a quarter should be filled, judging by
 * the last passes.  It does so for a second after the first loss, and twice as long after each
 * further one.
 *
 * It does not if even that would have been too late.  A virtual machine's CPU sometimes stops for
 * several milliseconds.  Then a ring that fills in three overflows, however early the last look
 * was.  Early looks would not prevent such losses, but take a seventh more time:
 *
 *     last look       ¼        ½                  1         1¼ of the time that fills a ring
 *     |---------------+--------+------------------+---------+--------------
 *                     looked   woken              full      full even with a look at a quarter
 */

enum { SPAN_NS_MIN = 1000000000, PART = 4, NS_PER_MS = 1000000 };

#define SPAN_NS_MAX ((uint64_t)3600 * SPAN_NS_MIN)

/* Notes the time in which a ring fills, if the pass found room in it, and the longer one of the
 * last two gaps between passes: the record of a loss comes in the pass after the loss. */
static void note_pass(struct tally_recorder_pace *pace, uint64_t elapsed_ns, uint64_t found_bytes,
		      uint64_t ring_bytes)
{
	if (found_bytes && found_bytes <= ring_bytes - ring_bytes / 8)
		pace->fill_ns = (double)elapsed_ns * (double)ring_bytes / (double)found_bytes;
	pace->longest_ns = elapsed_ns > pace->elapsed_ns ? elapsed_ns : pace->elapsed_ns;
	pace->elapsed_ns = elapsed_ns;
}

/* True if looks at a quarter of a ring would have prevented the last loss, or if this is
 * unknown. */
static bool would_have_helped(const struct tally_recorder_pace *pace)
{
	return !pace->fill_ns || (double)pace->longest_ns <= pace->fill_ns + pace->fill_ns / PART;
}

int tally_recorder_pace_ms(struct tally_recorder_pace *pace, uint64_t now_ns, uint64_t lost,
			   uint64_t found_bytes, uint64_t ring_bytes)
{
	/* 0: first call; the clock counts from the machine's start */
	uint64_t elapsed_ns = pace->last_ns ? now_ns - pace->last_ns : 0;
	note_pass(pace, elapsed_ns, found_bytes, ring_bytes);
	bool has_lost = lost != pace->lost && would_have_helped(pace);
	if (has_lost && now_ns >= pace->until_ns) {
		pace->span_ns = pace->span_ns ? 2 * pace->span_ns : SPAN_NS_MIN;
		pace->span_ns = pace->span_ns < SPAN_NS_MAX ? pace->span_ns : SPAN_NS_MAX;
	}
	if (has_lost)
		pace->until_ns = now_ns + pace->span_ns;
	pace->lost = lost;
	pace->last_ns = now_ns;
	if (now_ns >= pace->until_ns || !found_bytes)
		return -1;
	double filled_ns = (double)elapsed_ns * (double)(ring_bytes / PART) / (double)found_bytes;
	double ms = filled_ns / NS_PER_MS;
	if (ms < 1)
		return 1;
	return ms < TALLY_RECORDER_PACE_MS_MAX ? (int)ms : -1;
}
