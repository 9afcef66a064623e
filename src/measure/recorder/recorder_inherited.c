/* Finds out which tasks, created while events were being opened, have inherited these events.
 *
 * A second listing of /proc shows the new tasks.  A task whose parent had no events yet needs its
 * own.  A task whose parent had events has inherited them, and would be sampled twice.  The
 * side-band tells the two apart: a FORK record has the parent and the time.  The records stay in
 * the rings; the recorder drains them later.
 *
 * A recorder may lose its CPU between opening a task's events on two CPUs, so inheritance is
 * tracked ring by ring.
 */
#include "recorder/recorder_inherited.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>

static uint64_t key_of(const struct tally_recorder_inherited *inherited, uint32_t tid, size_t ring)
{
	return (uint64_t)tid * inherited->rings->capacity + ring;
}

int tally_recorder_note_opened(struct tally_recorder_inherited *inherited, pid_t tid, size_t ring)
{
	uint64_t *slot = tally_map_put(&inherited->opened_ns,
				       key_of(inherited, (uint32_t)tid, ring), NULL);
	if (!slot)
		return -ENOMEM;
	*slot = tally_recorder_now_ns();
	return 0;
}

/* Reads the records that came since the last look at the ring. */
static int read_forks(struct tally_recorder_inherited *inherited, size_t index,
		      const struct tally_attr *side_band)
{
	struct tally_ring look = inherited->rings->sides[index];
	const void *bytes;
	size_t size;
	int result = 0;
	if (!look.page)
		return 0;
	look.bounce = NULL;
	look.tail = inherited->read_to[index];
	tally_ring_note(&look);
	while (!result && (bytes = tally_ring_next(&look, &size))) {
		const struct tally_record_header *header = bytes;
		struct tally_record record = { 0 };
		if (header->type == TALLY_RECORD_FORK &&
		    tally_record_decode(side_band, bytes, size, &record) >= 0)
			result = tally_vector_push(&inherited->forks, record.task);
	}
	inherited->read_to[index] = look.tail;
	free(look.bounce);
	return result;
}

/* Notes the new task's inheritance of events, ring by ring.  Returns 1 when this is new, 0 or
 * -ENOMEM. */
static int take_fork(struct tally_recorder_inherited *inherited,
		     const struct tally_record_task *fork)
{
	int found_more = 0;
	for (size_t ring = 0; ring < inherited->rings->count; ring++) {
		uint64_t maker = key_of(inherited, fork->parent_tid, ring);
		const uint64_t *opened_ns = tally_map_get(&inherited->opened_ns, maker);
		bool is_new = false;
		if (!(opened_ns && *opened_ns <= fork->time) &&
		    !tally_map_get(&inherited->from, maker))
			continue;
		if (!tally_map_put(&inherited->from, key_of(inherited, fork->tid, ring), &is_new))
			return -ENOMEM;
		found_more |= is_new;
	}
	return found_more;
}

int tally_recorder_look_for_inherited(struct tally_recorder_inherited *inherited,
				      const struct tally_attr *side_band)
{
	int found_more = 1;
	if (!(side_band->flags & TALLY_ATTR_INHERIT))
		return 0;
	if (!inherited->read_to)
		inherited->read_to = tally_arena_array(&inherited->rings->session->arena,
						       inherited->rings->count,
						       sizeof(*inherited->read_to));
	if (!inherited->read_to)
		return -ENOMEM;
	for (size_t i = 0; i < inherited->rings->count; i++) {
		int result = read_forks(inherited, i, side_band);
		if (result < 0)
			return result;
	}
	/* Each CPU's ring is in order, but a grandchild's record may be in a ring that was read
	 * before. */
	while (found_more) {
		found_more = 0;
		for (size_t i = 0; i < inherited->forks.count; i++) {
			int taken = take_fork(inherited, &inherited->forks.items[i]);
			if (taken < 0)
				return taken;
			found_more |= taken;
		}
	}
	return 0;
}

bool tally_recorder_has_inherited(const struct tally_recorder_inherited *inherited, pid_t tid,
				  size_t ring)
{
	return tally_map_get(&inherited->from, key_of(inherited, (uint32_t)tid, ring)) != NULL;
}

bool tally_recorder_has_inherited_all(const struct tally_recorder_inherited *inherited, pid_t tid)
{
	size_t ring = 0;
	while (ring < inherited->rings->count && tally_recorder_has_inherited(inherited, tid, ring))
		ring++;
	return ring && ring == inherited->rings->count;
}

void tally_recorder_inherited_release(struct tally_recorder_inherited *inherited)
{
	tally_map_release(&inherited->opened_ns);
	tally_map_release(&inherited->from);
	tally_vector_release(&inherited->forks);
}
