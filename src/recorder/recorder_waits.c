/* The handles that the recorder waits for: one for each ring.
 *
 * When an event's task and all its descendants have ended, poll(2) returns POLLHUP at once and for
 * ever, even if other events still write to the same ring.  The ring's next living event then takes
 * its place.  A ring without living events is not waited for any more.
 */
#include "recorder/recorder_state.h"

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
			      const struct tally_recorder *recorder)
{
	*waits = (struct tally_recorder_waits){ 0 };
	waits->items = calloc(recorder->ring_count * 2 + recorder->triggers.count,
			      sizeof(*waits->items));
	waits->places = calloc(recorder->ring_count * 2, sizeof(*waits->places));
	if (!waits->items || !waits->places)
		return -ENOMEM;
	for (size_t i = 0; i < recorder->ring_count; i++) {
		add(waits, &recorder->rings[i], false, i);
		add(waits, &recorder->side_rings[i], true, i);
	}
	for (size_t i = 0; i < recorder->triggers.count; i++)
		if (recorder->triggers.rings[i].page)
			waits->items[waits->count + waits->triggers++].handle =
				recorder->triggers.rings[i].handle;
	return 0;
}

static bool has_hung_up(const struct tally_recorder *recorder, int handle)
{
	struct tally_wait_item item = { .handle = handle };
	struct tally_provider *provider = recorder->provider;
	return provider->ops->wait(provider, &item, 1, -1, 0) > 0 && item.revents & POLLHUP;
}

/* Finds another living event of the ring.  Ended events stay ended, so the search goes on where the
 * last one stopped. */
static int next_living(struct tally_recorder_waits *waits, size_t item,
		       const struct tally_recorder *recorder)
{
	const struct tally_recorder_handle *handles = waits->places[item].side
							      ? recorder->side_handles.items
							      : recorder->handles.items;
	size_t count = waits->places[item].side ? recorder->side_handles.count
						: recorder->handles.count;
	for (size_t *next = &waits->places[item].next; *next < count; ++*next)
		if (handles[*next].ring == waits->places[item].ring &&
		    !has_hung_up(recorder, handles[*next].handle))
			return handles[*next].handle;
	return -1;
}

void tally_recorder_waits_update(struct tally_recorder_waits *waits,
				 const struct tally_recorder *recorder)
{
	for (size_t i = 0; i < waits->count; i++) {
		if (waits->items[i].handle < 0 || !(waits->items[i].revents & POLLHUP))
			continue;
		waits->items[i].handle = next_living(waits, i, recorder);
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
