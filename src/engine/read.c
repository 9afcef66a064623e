/* Values: read(2) by read_format, whole trees of inherited events summed.  SPEC B1, B2, B9, H3.  Samples have the same
 * words of one event alone: sample.c. */
#include "engine/sample_record.h"

/* The original's: children count under its name. */
static const struct engine_event *primary(const struct engine_event *event)
{
	return event->parent ? event->parent : event;
}

static unsigned add_times(uint64_t *words, uint64_t read_format, uint64_t enabled, uint64_t running)
{
	unsigned n = 0;
	if (read_format & TALLY_FORMAT_TOTAL_TIME_ENABLED)
		words[n++] += enabled;
	if (read_format & TALLY_FORMAT_TOTAL_TIME_RUNNING)
		words[n++] += running;
	return n;
}

/* Adds the value and sets what says whose it is. */
static unsigned add_entry(uint64_t *words, uint64_t read_format, const struct engine_event *event, uint64_t value)
{
	unsigned n = 0;
	words[n++] += value;
	if (read_format & TALLY_FORMAT_ID)
		words[n++] = engine_primary_id(event);
	if (read_format & TALLY_FORMAT_LOST)
		words[n++] = engine_load64(&primary(event)->lost_samples);
	return n;
}

/* --- read(2) --------------------------------------------------------------------------------------------------------- */

/* Adds one group, the original or a child, of whose times the leader's stand for all. */
static int add_group(struct engine_event *leader, uint64_t read_format, uint64_t *words)
{
	unsigned n = 1;
	int error = engine_event_sync(leader, true);
	if (error)
		return error;
	n += add_times(&words[n], read_format, leader->time_enabled + leader->child_time_enabled,
		       leader->time_running + leader->child_time_running);
	n += add_entry(&words[n], read_format, leader, engine_event_count(leader));
	ENGINE_LIST_EACH(sibling, &leader->siblings, struct engine_event, sibling_link)
		n += add_entry(&words[n], read_format, sibling, engine_event_count(sibling));
	return 0;
}

/* Members may have come or gone since the group was inherited: then sums would mix them up. */
static bool same_members(const struct engine_event *leader, const struct engine_event *child)
{
	const struct engine_list *ours = leader->siblings.next, *theirs = child->siblings.next;
	if (leader->sibling_count != child->sibling_count)
		return false;
	for (; ours != &leader->siblings && theirs != &child->siblings; ours = ours->next, theirs = theirs->next)
		if (ENGINE_CONTAINER(theirs, struct engine_event, sibling_link)->parent !=
		    ENGINE_CONTAINER(ours, struct engine_event, sibling_link))
			return false;
	return true;
}

static int sum_group(struct engine_event *leader, uint64_t read_format, uint64_t *words)
{
	words[0] = 1 + leader->sibling_count;
	int error = add_group(leader, read_format, words);
	ENGINE_LIST_EACH(child, &leader->children, struct engine_event, child_link) {
		if (!error)
			error = same_members(leader, child) ? add_group(child, read_format, words) : -ENGINE_ECHILD;
	}
	return error;
}

static long read_group(struct engine_event *event, void *bytes)
{
	struct tally_engine *engine = event->engine;
	uint64_t read_format = event->attr.read_format;
	size_t size = engine_read_format_size(read_format, event->leader->sibling_count);
	uint64_t *words = engine_allocate(engine, size);
	if (!words)
		return -ENGINE_ENOMEM;
	int error = sum_group(event->leader, read_format, words);
	if (!error)
		error = engine_copy_out(engine, bytes, words, size);
	engine_release(engine, words, size);
	return error ? error : (long)size;
}

static long read_one(struct engine_event *event, void *bytes)
{
	uint64_t words[5] = { 0 }, read_format = event->attr.read_format;
	engine_event_sync(event, false);
	uint64_t value = engine_event_count(event), enabled = event->time_enabled + event->child_time_enabled,
		 running = event->time_running + event->child_time_running;
	ENGINE_LIST_EACH(child, &event->children, struct engine_event, child_link) {
		engine_event_sync(child, false);
		value += engine_event_count(child);
		enabled += child->time_enabled;
		running += child->time_running;
	}
	unsigned n = 1 + add_times(&words[1], read_format, enabled, running);
	words[0] = value;
	if (read_format & TALLY_FORMAT_ID)
		words[n++] = engine_primary_id(event);
	if (read_format & TALLY_FORMAT_LOST)
		words[n++] = engine_load64(&primary(event)->lost_samples);
	int error = engine_copy_out(event->engine, bytes, words, n * sizeof(words[0]));
	return error ? error : (long)(n * sizeof(words[0]));
}

long engine_event_read(struct engine_event *event, void *bytes, size_t size)
{
	uint64_t read_format = event->attr.read_format;
	if (event->state == ENGINE_EVENT_ERROR)
		return 0;
	if (size < engine_read_format_size(read_format, event->leader->sibling_count))
		return -ENGINE_ENOSPC;
	return read_format & TALLY_FORMAT_GROUP ? read_group(event, bytes) : read_one(event, bytes);
}
