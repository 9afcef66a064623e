/* The way of a hit from the code of tally/tracepoint.h to the events that listen.
 *
 * Most hits are only counted.  If all perf events of a tracepoint just count, tally_trace_count()
 * handles its hits without a record.  Counting calls nothing that could hit at its own level.  So
 * while no hit is in progress on the CPU, it need not know its level: a walk (engine_cpu.walks),
 * which may nest, protects the list.  An event that begins to do more in the middle of such a hit
 * is skipped, as if it had come after the hit. */
#include "engine/tracepoint_state.h"

#define FLAG_HARDIRQ 0x08
#define FLAG_SOFTIRQ 0x10
#define FLAG_NMI 0x40
/* largest distance in bytes from a hit's instruction to the return address of its call */
#define NEAR 1024u
#define COLD __attribute__((noinline, cold))
#define ON_THE_WAY inline __attribute__((always_inline)) /* on the path of every sample */

static inline struct engine_event *listener_of(struct engine_hit_link *link)
{
	return ENGINE_CONTAINER(link, struct engine_event, hit_link);
}

static ON_THE_WAY bool wants_record(const struct engine_event *event)
{
	const struct engine_event *original = event->parent ? event->parent : event;
	return (event->attr.sample_period && (event->attr.sample_type & TALLY_SAMPLE_RAW)) ||
	       event->overflow_handler || __atomic_load_n(&original->filter, __ATOMIC_ACQUIRE);
}

static ON_THE_WAY bool somebody_wants_record(const struct tally_trace_lists *lists,
					     const struct tally_trace_hit *hit,
					     const struct engine_cpu *cpu)
{
	ENGINE_HITS_EACH(link, &lists->cpus[cpu->number])
		if (wants_record(listener_of(link)))
			return true;
	if (!hit->task)
		return false;
	ENGINE_HITS_EACH(link, &lists->of_tasks)
		if (wants_record(ENGINE_CONTAINER(link, struct engine_event, of_task_link)))
			return true;
	return false;
}

static inline uint8_t flags_of(int level)
{
	if (level == TALLY_LEVEL_NMI)
		return FLAG_NMI | FLAG_HARDIRQ;
	if (level == TALLY_LEVEL_HARDIRQ)
		return FLAG_HARDIRQ;
	if (level == TALLY_LEVEL_SOFTIRQ)
		return FLAG_SOFTIRQ;
	return 0;
}

static ON_THE_WAY void begin_record(const struct tally_trace_hit *hit, struct tally_engine *engine,
				    int level, void *record)
{
	struct tally_trace_common *common = record;
	const struct tally_engine_task *task = engine->host.current_task(engine->host.host);
	/* the padding behind the data is within these bytes */
	__builtin_memset((uint8_t *)record + hit->size - 8, 0, 8);
	common->common_type = (uint16_t)hit->event->id;
	common->common_flags = flags_of(level);
	common->common_pid = task ? task->identity.tid : 0;
}

/* True if the hit passes the event's filter.  Inherited events have their original's filter. */
static inline bool passes(const struct engine_event *event, const struct tally_trace_hit *hit,
			  const struct engine_cpu *cpu)
{
	const struct engine_event *original = event->parent ? event->parent : event;
	const struct tally_filter *filter = __atomic_load_n(&original->filter, __ATOMIC_ACQUIRE);
	return !filter || trace_filter_match(filter, hit, cpu);
}

static ON_THE_WAY void hit_event(struct engine_event *event, const struct tally_trace_hit *hit,
				 struct engine_cpu *cpu, struct tally_engine_hit *sample,
				 const struct tally_engine_regs *regs)
{
	if (passes(event, hit, cpu))
		engine_swevent_hit(event, cpu, hit->count, sample, regs);
}

/* Counts the hit for the receiving task, which is not running here, in its events that are bound to
 * this CPU.  The kernel counts such a hit and does not sample it (measured: E2.declared_task). */
static __attribute__((noinline)) void hit_task(const struct tally_trace_lists *lists,
					       const struct tally_trace_hit *hit,
					       struct engine_cpu *cpu,
					       const struct tally_engine_regs *regs)
{
	ENGINE_HITS_EACH(link, &lists->of_tasks) {
		struct engine_event *event = ENGINE_CONTAINER(link, struct engine_event,
							      of_task_link);
		bool listens = event->task == hit->task && event->state >= ENGINE_EVENT_INACTIVE &&
			       event->cpu == (int)cpu->number;
		if (listens && passes(event, hit, cpu))
			engine_swevent_count(event, hit->count, regs);
	}
}

/* Returns the registers at the place of the hit.  If the return address of the hit's function is
 * not near that place, the code there jumped to the function and has no frame any more: then the
 * function's own frame pointer is the one that code would have had. */
static ON_THE_WAY struct tally_engine_regs find_site(const struct tally_trace_hit *hit)
{
	struct tally_engine_regs regs = { .ip = hit->ip ? hit->ip : hit->back,
					  .sp = (uintptr_t)hit->frame,
					  .mode = TALLY_MODE_USER };
#if defined(__x86_64__) || defined(__aarch64__) || defined(__i386__)
	if (hit->back - regs.ip > NEAR)
		regs.fp = (uintptr_t)hit->frame;
	else
		regs.fp = hit->frame[0];
	regs.sp = (uintptr_t)(hit->frame + 2);
#endif
	return regs;
}

static ON_THE_WAY void deliver(const struct tally_trace_lists *lists, struct tally_trace_hit *hit,
			       struct tally_engine *engine, struct engine_cpu *cpu)
{
	struct tally_engine_hit sample = { .address = hit->address,
					   .raw = hit->record,
					   .raw_size = hit->size };
	struct tally_engine_regs regs = find_site(hit);
	if (engine->host.trace_regs)
		engine->host.trace_regs(engine->host.host, &regs);
	ENGINE_HITS_EACH(link, &lists->cpus[cpu->number])
		hit_event(listener_of(link), hit, cpu, &sample, &regs);
	if (hit->task && hit->task != engine->host.current_task(engine->host.host))
		hit_task(lists, hit, cpu, &regs);
}

/* Returns the scratch for a record of `size` bytes; NULL if it is too large, or the last listener
 * has just gone. */
static ON_THE_WAY void *find_room(struct tally_trace_hit *hit, struct tally_engine *engine,
				  const struct engine_cpu *cpu, int level, size_t size)
{
	const struct trace_scratch *scratch = __atomic_load_n(&engine->tracepoints->records,
							      __ATOMIC_ACQUIRE);
	hit->size = (uint32_t)(((size + 4 + 7) & ~(size_t)7) - 4);
	if (size > TALLY_TRACE_SIZE_MAX || hit->size > TALLY_TRACE_SIZE_MAX) {
		engine_add64(&engine->statistics.raw_too_large, 1);
		return NULL;
	}
	if (scratch)
		return trace_scratch_of(scratch, cpu->number, level);
	return NULL;
}

static inline struct engine_hit_link *first_listener(const struct tally_trace_lists *lists,
						     const struct engine_cpu *cpu)
{
	if (lists)
		return __atomic_load_n(&lists->cpus[cpu->number].first, __ATOMIC_ACQUIRE);
	return NULL;
}

/* Drops a hit inside a hit of the same level, and counts the drop if it had a listener.  Returns
 * true if it was dropped.  (The outer hit keeps the lists alive.) */
static COLD bool drops_nested(const struct tally_trace_event *event,
			      const struct tally_engine_task *task, struct engine_cpu *cpu)
{
	const struct tally_trace_lists *lists = __atomic_load_n(&event->lists, __ATOMIC_ACQUIRE);
	int level = (int)event->engine->host.level(event->engine->host.host);
	if (!engine_hit_under_way(cpu, level))
		return false;
	if (lists && (first_listener(lists, cpu) || task))
		engine_count64(&cpu->dropped[level], 1);
	return true;
}

void tally_trace_count(struct tally_trace_event *event, uint64_t count)
{
	struct tally_engine *engine = __atomic_load_n(&event->engine, __ATOMIC_ACQUIRE);
	if (!engine) /* unregistered since `enabled` was read */
		return;
	struct engine_cpu *cpu = engine_this_cpu(engine);
	if (__builtin_expect(cpu->hits != 0, 0) && drops_nested(event, NULL, cpu))
		return;
	cpu->walks++;
	/* the mark before the list that it protects: see engine.c */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	const struct tally_trace_lists *lists = __atomic_load_n(&event->lists, __ATOMIC_ACQUIRE);
	struct engine_hit_link *link = first_listener(lists, cpu);
	for (; link; link = __atomic_load_n(&link->next, __ATOMIC_ACQUIRE)) {
		struct engine_event *listener = listener_of(link);
		if (__atomic_load_n(&listener->counts_only, __ATOMIC_ACQUIRE) &&
		    !(listener->hw.state & TALLY_HES_STOPPED))
			engine_count64(&listener->count, count);
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	cpu->walks--;
}

static __attribute__((noinline)) void deliver_without_record(const struct tally_trace_lists *lists,
							     struct tally_trace_hit *hit,
							     struct tally_engine *engine,
							     struct engine_cpu *cpu)
{
	deliver(lists, hit, engine, cpu);
}

void *tally_trace_begin(struct tally_trace_hit *hit, size_t size)
{
	struct tally_engine *engine = __atomic_load_n(&hit->event->engine, __ATOMIC_ACQUIRE);
	if (!engine)
		return NULL;
	struct engine_cpu *cpu = engine_this_cpu(engine);
	if (__builtin_expect(cpu->hits != 0, 0) && drops_nested(hit->event, hit->task, cpu))
		return NULL;
	int level = (int)engine->host.level(engine->host.host);
	cpu->hits |= 1u << level;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	hit->cpu = cpu;
	hit->level = level;
	hit->record = NULL;
	const struct tally_trace_lists *lists = __atomic_load_n(&hit->event->lists,
								__ATOMIC_ACQUIRE);
	void *room = NULL;
	if (first_listener(lists, cpu) || hit->task)
		room = find_room(hit, engine, cpu, level, size);
	if (room && lists && somebody_wants_record(lists, hit, cpu)) {
		hit->record = room;
		begin_record(hit, engine, level, room);
		return room;
	}
	if (room && lists)
		deliver_without_record(lists, hit, engine, cpu);
	engine_hit_leave(cpu, level);
	return NULL;
}

void tally_trace_end(struct tally_trace_hit *hit)
{
	const struct tally_trace_lists *lists = __atomic_load_n(&hit->event->lists,
								__ATOMIC_ACQUIRE);
	if (lists)
		deliver(lists, hit, hit->event->engine, hit->cpu);
	engine_hit_leave(hit->cpu, hit->level);
}

/* --- text listeners ------------------------------------------------------- */

void *tally_trace_begin_line(struct tally_trace_hit *hit, struct tally_trace_listener *listener,
			     size_t size)
{
	struct tally_engine *engine = listener->event->engine;
	struct engine_cpu *cpu = engine_this_cpu(engine);
	hit->event = listener->event;
	hit->level = engine_hit_enter(engine, cpu);
	if (hit->level < 0)
		return NULL;
	hit->cpu = cpu;
	hit->record = find_room(hit, engine, cpu, hit->level, size);
	if (hit->record)
		begin_record(hit, engine, hit->level, hit->record);
	else
		engine_hit_leave(cpu, hit->level);
	return hit->record;
}

void tally_trace_end_line(struct tally_trace_hit *hit, struct tally_trace_listener *listener)
{
	trace_listener_deliver(listener, hit, hit->cpu);
	engine_hit_leave(hit->cpu, hit->level);
}
