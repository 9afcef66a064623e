/* The order in which a context's groups are tried.
 *
 * A recorder opens an event per CPU on each task that it watches.  So on a large machine a task may
 * have a thousand groups, and a given CPU can run only one of them.  Groups that are bound to a CPU
 * therefore have queues by CPU, and a switch visits one of these besides the queue of groups for
 * any CPU.  `turn` keeps the order between the two: a walk merges the queues by it, and a rotated
 * group takes the next turn. */
#include "engine/engine_schedule.h"

void engine_queue_init(struct engine_queue *queue)
{
	engine_list_init(&queue->pinned);
	engine_list_init(&queue->flexible);
}

static bool is_bound(const struct engine_context *context, const struct engine_event *leader)
{
	return context->task && leader->cpu >= 0;
}

static struct engine_queue *queue_of(struct engine_context *context,
				     const struct engine_event *leader)
{
	if (!is_bound(context, leader) || !context->by_cpu)
		return &context->any;
	return &context->by_cpu[(unsigned)leader->cpu & (context->by_cpu_size - 1)];
}

static void append(struct engine_queue *queue, struct engine_event *leader)
{
	bool pinned = engine_event_flag(leader, TALLY_ATTR_PINNED);
	engine_list_add_tail(&leader->group_link, pinned ? &queue->pinned : &queue->flexible);
}

void engine_queue_insert(struct engine_event *leader)
{
	struct engine_context *context = leader->context;
	leader->turn = ++context->next_turn;
	append(queue_of(context, leader), leader);
	context->bound_groups += is_bound(context, leader);
}

void engine_queue_remove(struct engine_event *leader)
{
	engine_list_remove(&leader->group_link);
	leader->context->bound_groups -= is_bound(leader->context, leader);
}

void engine_queue_rotate(struct engine_event *leader)
{
	engine_list_remove(&leader->group_link);
	leader->turn = ++leader->context->next_turn;
	append(queue_of(leader->context, leader), leader);
}

/* --- the table ------------------------------------------------------------ */

void engine_queue_table_new(const struct engine_context *context, const struct engine_event *leader,
			    struct engine_queue_table *table)
{
	enum { SMALLEST = 8 };
	unsigned cpus = context->engine->host.cpus,
		 size = context->by_cpu_size ? context->by_cpu_size : SMALLEST;
	*table = (struct engine_queue_table){ 0 };
	if (!is_bound(context, leader) || leader->leader != leader)
		return;
	/* Double the number of queues once there are two groups per queue; more queues than CPUs
	 * are useless. */
	while (size < cpus && context->bound_groups >= 2 * size)
		size *= 2;
	if (size == context->by_cpu_size)
		return;
	table->queues = engine_allocate(context->engine, size * sizeof(*table->queues));
	table->size = size;
	for (unsigned i = 0; table->queues && i < size; i++)
		engine_queue_init(&table->queues[i]);
}

/* Moves the bound groups of one list to the queues where they belong now, and keeps their order. */
static void move_list(struct engine_context *context, struct engine_list *list)
{
	ENGINE_LIST_EACH(leader, list, struct engine_event, group_link)
		if (is_bound(context, leader)) {
			engine_list_remove(&leader->group_link);
			append(queue_of(context, leader), leader);
		}
}

static void move_queue(struct engine_context *context, struct engine_queue *queue)
{
	move_list(context, &queue->pinned);
	move_list(context, &queue->flexible);
}

void engine_queue_table_place(struct engine_context *context, struct engine_queue_table *table)
{
	if (!table->queues)
		return;
	struct engine_queue_table old = { context->by_cpu, context->by_cpu_size };
	context->by_cpu = table->queues;
	context->by_cpu_size = table->size;
	/* An old queue was in order and is split into two or more, so the new ones are in order as
	 * well. */
	if (!old.queues)
		move_queue(context, &context->any);
	for (unsigned i = 0; i < old.size; i++)
		move_queue(context, &old.queues[i]);
	*table = old;
}

void engine_queue_table_free(struct tally_engine *engine, struct engine_queue_table *table)
{
	if (table->queues)
		engine_release(engine, table->queues, table->size * sizeof(*table->queues));
	*table = (struct engine_queue_table){ 0 };
}

/* --- the walk ------------------------------------------------------------- */

void engine_queue_walk_begin(struct engine_queue_walk *walk, const struct engine_context *context,
			     unsigned cpu, bool pinned)
{
	const struct engine_queue *any = &context->any;
	const struct engine_queue *bound =
		context->by_cpu ? &context->by_cpu[cpu & (context->by_cpu_size - 1)] : NULL;
	walk->cpu = (int)cpu;
	walk->head[0] = pinned ? &any->pinned : &any->flexible;
	walk->at[0] = walk->head[0]->next;
	walk->head[1] = walk->at[1] = walk->head[0];
	if (bound) {
		walk->head[1] = pinned ? &bound->pinned : &bound->flexible;
		walk->at[1] = walk->head[1]->next;
	}
}

struct engine_event *engine_queue_walk_next(struct engine_queue_walk *walk)
{
	for (;;) {
		struct engine_event *first = NULL;
		unsigned from = 0;
		for (unsigned i = 0; i < 2; i++) {
			if (walk->at[i] == walk->head[i])
				continue;
			struct engine_event *leader = ENGINE_CONTAINER(
				walk->at[i], struct engine_event, group_link);
			if (!first || leader->turn < first->turn) {
				first = leader;
				from = i;
			}
		}
		if (!first)
			return NULL;
		walk->at[from] = walk->at[from]->next;
		if (first->cpu < 0 || first->cpu == walk->cpu)
			return first;
	}
}
