/* Values: read(2) by read_format, with whole trees of inherited events summed.  SPEC B1, B2, B9,
 * H3. sample.c writes the same words, of one event only, into samples. */
#include "engine/sample_record.h"

/* Returns the original of an inherited event, or the event itself. */
static const struct engine_event *primary(const struct engine_event *event)
{
	if (event->parent)
		return event->parent;
	return event;
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

/* Adds the value, and sets the id and the number of lost samples. */
static unsigned add_entry(uint64_t *words, uint64_t read_format, const struct engine_event *event,
			  uint64_t value)
{
	unsigned n = 0;
	words[n++] += value;
	if (read_format & TALLY_FORMAT_ID)
		words[n++] = engine_primary_id(event);
	if (read_format & TALLY_FORMAT_LOST)
		words[n++] = engine_load64(&primary(event)->lost_samples);
	return n;
}

/* --- read(2) -------------------------------------------------------------- */

struct group_sum {
	uint64_t read_format, *words;
};

/* Adds one group, the original or a child.  The leader's times stand for the whole group. */
static void add_group(struct engine_event *leader, void *argument)
{
	const struct group_sum *sum = argument;
	uint64_t *words = sum->words, read_format = sum->read_format;
	unsigned n = 1;
	n += add_times(&words[n], read_format, leader->time_enabled + leader->child_time_enabled,
		       leader->time_running + leader->child_time_running);
	n += add_entry(&words[n], read_format, leader, engine_event_count(leader));
	ENGINE_LIST_EACH(sibling, &leader->siblings, struct engine_event, sibling_link)
		n += add_entry(&words[n], read_format, sibling, engine_event_count(sibling));
}

/* False if members joined or left since the group was inherited, or left the child's group: the
 * sums would mix different members. */
static bool same_members(const struct engine_event *leader, const struct engine_event *child)
{
	return leader->group_generation == child->group_generation &&
	       leader->sibling_count == child->sibling_count;
}

static int sum_group(struct engine_event *leader, uint64_t read_format, uint64_t *words)
{
	struct group_sum sum = { read_format, words };
	words[0] = 1 + leader->sibling_count;
	engine_event_sync(leader, true, add_group, &sum);
	ENGINE_LIST_EACH(child, &leader->children, struct engine_event, child_link) {
		if (!same_members(leader, child))
			return -ENGINE_ECHILD;
		engine_event_sync(child, true, add_group, &sum);
	}
	return 0;
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
	if (error)
		return error;
	return (long)size;
}

struct sum {
	uint64_t value, enabled, running;
};

static void add_one(struct engine_event *event, void *argument)
{
	struct sum *sum = argument;
	sum->value += engine_event_count(event);
	sum->enabled += event->time_enabled + event->child_time_enabled;
	sum->running += event->time_running + event->child_time_running;
}

static long read_one(struct engine_event *event, void *bytes)
{
	uint64_t words[5] = { 0 }, read_format = event->attr.read_format;
	struct sum sum = { 0 };
	engine_event_sync(event, false, add_one, &sum);
	ENGINE_LIST_EACH(child, &event->children, struct engine_event, child_link)
		engine_event_sync(child, false, add_one, &sum);
	unsigned n = 1 + add_times(&words[1], read_format, sum.enabled, sum.running);
	words[0] = sum.value;
	if (read_format & TALLY_FORMAT_ID)
		words[n++] = engine_primary_id(event);
	if (read_format & TALLY_FORMAT_LOST)
		words[n++] = engine_load64(&primary(event)->lost_samples);
	int error = engine_copy_out(event->engine, bytes, words, n * sizeof(words[0]));
	if (error)
		return error;
	return (long)(n * sizeof(words[0]));
}

long engine_event_read(struct engine_event *event, void *bytes, size_t size)
{
	uint64_t read_format = event->attr.read_format;
	if (engine_event_state(event) == ENGINE_EVENT_ERROR)
		return 0;
	if (size < engine_read_format_size(read_format, event->leader->sibling_count))
		return -ENGINE_ENOSPC;
	if (read_format & TALLY_FORMAT_GROUP)
		return read_group(event, bytes);
	return read_one(event, bytes);
}

/* --- for hosts ------------------------------------------------------------ */

int tally_engine_values(struct tally_engine *engine, int fd, struct tally_engine_values *values)
{
	engine_enter(engine);
	struct tally_engine_file *file = engine_file(engine, fd);
	if (file) {
		struct sum sum = { 0 };
		engine_event_sync(file->event, false, add_one, &sum);
		*values = (struct tally_engine_values){
			.attr = file->event->attr,
			.count = sum.value,
			.enabled_ns = sum.enabled,
			.running_ns = sum.running,
			.lost = engine_load64(&file->event->lost_samples),
			.enabled = engine_event_state(file->event) >= ENGINE_EVENT_INACTIVE,
		};
	}
	engine_leave(engine);
	return file ? 0 : -ENGINE_EBADF;
}
