/* Values: read(2), and the same words in samples.  SPEC B1, B2, B9, H3. */
#include "engine/engine_state.h"

#define TIMES (TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING)

uint32_t engine_read_size(uint64_t read_format, unsigned siblings)
{
	uint32_t word = sizeof(uint64_t), entry = word, size = 0, entries = 1;
	if (read_format & TALLY_FORMAT_TOTAL_TIME_ENABLED)
		size += word;
	if (read_format & TALLY_FORMAT_TOTAL_TIME_RUNNING)
		size += word;
	if (read_format & TALLY_FORMAT_ID)
		entry += word;
	if (read_format & TALLY_FORMAT_LOST)
		entry += word;
	if (read_format & TALLY_FORMAT_GROUP) {
		entries += siblings;
		size += word;
	}
	return size + entry * entries;
}

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
		words[n++] = primary(event)->id;
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
	uint32_t size = engine_read_size(read_format, event->leader->sibling_count);
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
		words[n++] = primary(event)->id;
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
	if (size < engine_read_size(read_format, event->leader->sibling_count))
		return -ENGINE_ENOSPC;
	return read_format & TALLY_FORMAT_GROUP ? read_group(event, bytes) : read_one(event, bytes);
}

/* --- in samples --------------------------------------------------------------------------------------------------------- */

/* What a sample of an inherited event tells is its own task's alone: TID says whose. */
static uint64_t sample_value(struct engine_event *event, bool own)
{
	return own ? engine_load64(&event->count) : engine_event_count(event);
}

/* A member's hardware has counted on since it was last read.  It is on this CPU as the event that hit is. */
static void fold_in(struct engine_event *event, struct engine_event *hit)
{
	if (event != hit && __atomic_load_n(&event->state, __ATOMIC_RELAXED) == ENGINE_EVENT_ACTIVE)
		event->hw.pmu->ops->read(&event->hw);
}

static size_t group_words(struct engine_event *event, uint64_t *words, uint64_t enabled, uint64_t running, bool own)
{
	struct tally_engine *engine = event->engine;
	struct engine_event *leader = event->leader;
	uint64_t read_format = event->attr.read_format;
	unsigned entry = engine_read_size(read_format & ~(TIMES | TALLY_FORMAT_GROUP), 0) / sizeof(*words);
	unsigned room = event->read_size / sizeof(*words), n = 1, members = 0;
	uintptr_t state = engine->host.irq_save(engine->host.host);
	n += add_times(&words[n], read_format, enabled, running);
	for (struct engine_event *member = leader; member && n + entry <= room; members++) {
		fold_in(member, event);
		n += add_entry(&words[n], read_format, member, sample_value(member, own));
		struct engine_list *next = member == leader ? leader->siblings.next : member->sibling_link.next;
		member = next == &leader->siblings ? NULL
						   : ENGINE_CONTAINER(next, struct engine_event, sibling_link);
	}
	engine->host.irq_restore(engine->host.host, state);
	words[0] = members;
	return n * sizeof(*words);
}

size_t engine_read_words(struct engine_event *event, uint64_t *words)
{
	uint64_t read_format = event->attr.read_format, now, enabled = 0, running = 0;
	bool own = event->attr.flags & TALLY_ATTR_INHERIT && event->attr.sample_type & TALLY_SAMPLE_READ;
	__builtin_memset(words, 0, event->read_size);
	if (read_format & TIMES)
		engine_event_times(event, &now, &enabled, &running);
	if (read_format & TALLY_FORMAT_GROUP)
		return group_words(event, words, enabled, running, own);
	unsigned n = 1 + add_times(&words[1], read_format, enabled + event->child_time_enabled,
				   running + event->child_time_running);
	words[0] = sample_value(event, own);
	if (read_format & TALLY_FORMAT_ID)
		words[n++] = primary(event)->id;
	if (read_format & TALLY_FORMAT_LOST)
		words[n++] = engine_load64(&primary(event)->lost_samples);
	return n * sizeof(*words);
}
