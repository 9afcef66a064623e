/* Making and releasing rings and AUX areas: mmap, munmap, SET_OUTPUT, PAUSE_OUTPUT (SPEC D1, D3,
 * D4).
 *
 * A ring belongs to the event whose mapping made it.  Other events are pointed at it by SET_OUTPUT
 * and have no mapping of their own (as of Linux 6.18, where mapping a redirected event is EBUSY:
 * two events would write one user page).  The ring lives until its last mapping goes; then the
 * events that were pointed at it have none.
 *
 * All of this happens under the engine lock.  Two others read at the same time:
 *   - Hits load event->ring and write there.  So a ring that was taken from its events is retired,
 *     not freed.
 *   - run_pending() walks a ring's events to wake their files.  ring_lock, taken with interrupts
 *     off, keeps the two apart, and an event leaves the list before its file is freed. */
#include "engine/ring_access.h"
#include "engine/ring_buffer.h"

static bool is_power_of_two(size_t number)
{
	return number && !(number & (number - 1));
}

/* --- pages ---------------------------------------------------------------- */

/* Returns the number of pages left in the budget of mlock_kb. */
static size_t budget_left(struct tally_engine *engine)
{
	const struct tally_engine_host *host = &engine->host;
	size_t each = (size_t)engine->settings.mlock_kb / (host->page_size / 1024), online = 0;

	for (unsigned cpu = 0; cpu < host->cpus; cpu++)
		online += engine_cpu_online(engine, cpu);
	if (each * online > engine->locked_pages)
		return each * online - engine->locked_pages;
	return 0;
}

/* Charges mlock_kb first, then the user's locked memory, whose limit a privileged user may exceed.
 * Returns 0 or -EPERM, and the pages charged to each. */
static int charge(struct tally_engine *engine, size_t pages, size_t *locked, size_t *charged)
{
	const struct tally_engine_host *host = &engine->host;
	size_t left = budget_left(engine), more;

	*locked = pages < left ? pages : left;
	*charged = 0;
	more = pages - *locked;
	if (more) {
		if (host->charge_locked && host->charge_locked(host->host, more) == 0)
			*charged = more;
		else if (engine->settings.paranoid > -1 &&
			 !engine_capable(engine, TALLY_CAPABLE_IPC_LOCK))
			return -ENGINE_EPERM;
	}
	engine->locked_pages += *locked;
	return 0;
}

static void uncharge(struct tally_engine *engine, size_t *locked, size_t *charged)
{
	engine->locked_pages -= *locked;
	if (*charged && engine->host.uncharge_locked)
		engine->host.uncharge_locked(engine->host.host, *charged);
	*locked = *charged = 0;
}

static void *pages_new(struct tally_engine *engine, size_t pages)
{
	const struct tally_engine_host *host = &engine->host;
	void *memory = NULL;

	if (host->allocate_pages)
		memory = host->allocate_pages(host->host, pages);
	if (memory)
		engine->statistics.bytes += pages * engine->host.page_size;
	return memory;
}

static void pages_release(struct tally_engine *engine, void *memory, size_t pages)
{
	engine->statistics.bytes -= pages * engine->host.page_size;
	engine->host.release_pages(engine->host.host, memory, pages);
}

/* --- rings ---------------------------------------------------------------- */

static struct engine_ring *ring_new(struct engine_event *event, size_t pages, bool writable)
{
	struct tally_engine *engine = event->engine;
	struct engine_ring *ring = engine_allocate(engine, sizeof(*ring));

	if (!ring)
		return NULL;
	ring->page = pages_new(engine, pages);
	if (!ring->page) {
		engine_release(engine, ring, sizeof(*ring));
		return NULL;
	}
	ring->engine = engine;
	ring->pages = pages;
	ring->size = (pages - 1) * engine->host.page_size;
	ring->data = (uint8_t *)ring->page + engine->host.page_size;
	ring->cpu = event->cpu;
	ring->overwrite = !writable;
	ring->backward = engine_event_flag(event, TALLY_ATTR_WRITE_BACKWARD);
	if (engine_event_flag(event, TALLY_ATTR_WATERMARK))
		ring->watermark = event->attr.wakeup_events; /* the same word as wakeup_watermark */
	if (!ring->watermark)
		ring->watermark = ring->size / 2;
	if (ring->watermark > ring->size)
		ring->watermark = ring->size;
	ring->head = (uintptr_t)ring->page->data_head; /* another engine may have begun the ring */
	engine_list_init(&ring->events);
	ring->event = event;
	engine_user_page_init(event, ring->page, ring->size);
	return ring;
}

static void ring_free(struct tally_engine *engine, struct engine_retired *retired)
{
	struct engine_ring *ring = ENGINE_CONTAINER(retired, struct engine_ring, retired);

	pages_release(engine, ring->page, ring->pages);
	engine_release(engine, ring, sizeof(*ring));
}

/* Points the event's output at `ring`, or nowhere if it is NULL. */
static void attach(struct engine_event *event, struct engine_ring *ring)
{
	struct tally_engine *engine = event->engine;
	uintptr_t state = engine_lock(engine, &engine->ring_lock);

	if (event->ring)
		engine_list_remove(&event->ring_link);
	if (ring)
		engine_list_add_tail(&event->ring_link, &ring->events);
	/* pairs with the hit's acquire: it sees a complete ring */
	__atomic_store_n(&event->ring, ring, __ATOMIC_RELEASE);
	engine_unlock(engine, &engine->ring_lock, state);
}

void engine_ring_detach(struct engine_event *event)
{
	if (event->ring)
		attach(event, NULL);
}

/* --- the list of mappings ------------------------------------------------- */

static struct tally_engine_process *current_process(struct tally_engine *engine)
{
	struct tally_engine_task *task = engine->host.current_task(engine->host.host);

	if (task)
		return task->process;
	return NULL;
}

static struct engine_mapping *mapping_new(struct engine_event *event, void *address, size_t size)
{
	struct tally_engine *engine = event->engine;
	struct engine_mapping *mapping = engine_allocate(engine, sizeof(*mapping));

	if (!mapping)
		return NULL;
	mapping->process = current_process(engine);
	mapping->event = event;
	mapping->address = address;
	mapping->size = size;
	return mapping;
}

static void mapping_publish(struct engine_mapping *mapping, struct engine_ring *ring,
			    struct engine_aux *aux)
{
	struct engine_event *event = mapping->event;

	mapping->ring = ring;
	mapping->aux = aux;
	mapping->next = event->engine->mappings;
	event->engine->mappings = mapping;
	event->file->references++;
	__atomic_store_n(&event->mapped, event->mapped + 1, __ATOMIC_RELEASE);
}

static void update_page(struct engine_event *event, void *unused)
{
	(void)unused;
	engine_user_page_update(event);
}

/* --- AUX ------------------------------------------------------------------ */

static bool gives_aux(const struct engine_event *event)
{
	return event->hw.pmu->capabilities & TALLY_PMU_AUX;
}

static void stop_if_active(struct engine_event *event, void *unused)
{
	(void)unused;
	if (event->state == ENGINE_EVENT_ACTIVE && !(event->hw.state & TALLY_HES_STOPPED))
		event->hw.pmu->ops->stop(&event->hw, TALLY_EF_UPDATE);
}

/* Afterwards no PMU writes to the area. */
static void stop_aux_writers(struct engine_ring *ring)
{
	ENGINE_LIST_EACH(event, &ring->events, struct engine_event, ring_link) {
		if (!gives_aux(event))
			continue;
		engine_context_call(event, stop_if_active, NULL);
		ENGINE_LIST_EACH(child, &event->children, struct engine_event, child_link)
			engine_context_call(child, stop_if_active, NULL);
	}
}

static void aux_free(struct tally_engine *engine, struct engine_retired *retired)
{
	struct engine_aux *aux = ENGINE_CONTAINER(retired, struct engine_aux, retired);

	pages_release(engine, aux->area, aux->pages);
	engine_release(engine, aux, sizeof(*aux));
}

static struct engine_aux *aux_new(struct engine_event *event, size_t pages, uint64_t offset,
				  bool writable)
{
	struct tally_engine *engine = event->engine;
	struct engine_aux *aux = engine_allocate(engine, sizeof(*aux));

	if (!aux)
		return NULL;
	aux->area = pages_new(engine, pages);
	if (!aux->area) {
		engine_release(engine, aux, sizeof(*aux));
		return NULL;
	}
	aux->ring = event->ring;
	aux->event = event;
	aux->pages = pages;
	aux->size = pages * engine->host.page_size;
	aux->offset = offset;
	aux->overwrite = !writable;
	if (writable)
		aux->watermark = event->attr.aux_watermark;
	if (writable && !aux->watermark)
		aux->watermark = aux->size / 2;
	return aux;
}

/* Releases an area after its last mapping. */
static void aux_release(struct engine_aux *aux)
{
	struct engine_event *event = aux->event;

	__atomic_store_n(&aux->ring->aux, NULL, __ATOMIC_RELEASE); /* no writer begins any more */
	stop_aux_writers(aux->ring);
	if (event->hw.pmu->ops->aux_free)
		event->hw.pmu->ops->aux_free(&event->hw, aux->area);
	uncharge(event->engine, &aux->locked, &aux->charged);
	engine_retire(event->engine, &aux->retired, aux_free);
}

static int aux_make(struct engine_event *event, size_t pages, uint64_t offset, bool writable,
		    struct engine_aux **out)
{
	struct tally_engine *engine = event->engine;
	const struct tally_engine_pmu_ops *ops = event->hw.pmu->ops;
	size_t locked, charged;
	struct engine_aux *aux;
	int error = charge(engine, pages, &locked, &charged);

	if (error)
		return error;
	error = -ENGINE_EOPNOTSUPP;
	if (!gives_aux(event))
		goto fail;
	error = -ENGINE_ENOMEM;
	aux = aux_new(event, pages, offset, writable);
	if (!aux)
		goto fail;
	error = 0;
	if (ops->aux_setup)
		error = ops->aux_setup(&event->hw, aux->area, pages, aux->overwrite);
	if (error) {
		aux_free(engine, &aux->retired);
		goto fail;
	}
	aux->locked = locked;
	aux->charged = charged;
	*out = aux;
	return 0;
fail:
	uncharge(engine, &locked, &charged);
	return error;
}

/* Maps the area at the offset and size that the caller has written into the user page. */
static int map_aux(struct engine_event *event, size_t pages, bool writable, uint64_t offset,
		   void **address)
{
	struct engine_ring *ring = event->ring;
	uint64_t size = (uint64_t)pages * event->engine->host.page_size;
	struct engine_mapping *mapping;
	struct engine_aux *aux;
	int error;

	/* Only the event that owns the ring and its user page may have an area there. */
	if (!ring || ring->event != event)
		return -ENGINE_EINVAL;
	aux = ring->aux;
	if (offset < ring->size + event->engine->host.page_size ||
	    offset != ring->page->aux_offset || size != ring->page->aux_size ||
	    !is_power_of_two(pages))
		return -ENGINE_EINVAL;
	if (aux && (aux->offset != offset || aux->pages != pages))
		return -ENGINE_EINVAL;
	mapping = mapping_new(event, NULL, (size_t)size);
	if (!mapping)
		return -ENGINE_ENOMEM;
	if (!aux) {
		error = aux_make(event, pages, offset, writable, &aux);
		if (error) {
			engine_release(event->engine, mapping, sizeof(*mapping));
			return error;
		}
		__atomic_store_n(&ring->aux, aux, __ATOMIC_RELEASE);
	}
	aux->mapped++;
	*address = mapping->address = aux->area;
	mapping_publish(mapping, ring, aux);
	return 0;
}

/* --- mmap, munmap --------------------------------------------------------- */

static int ring_make(struct engine_event *event, size_t pages, bool writable,
		     struct engine_ring **out)
{
	struct tally_engine *engine = event->engine;
	size_t locked, charged;
	int error = charge(engine, pages, &locked, &charged);

	if (error)
		return error;
	*out = ring_new(event, pages, writable);
	if (!*out) {
		uncharge(engine, &locked, &charged);
		return -ENGINE_ENOMEM;
	}
	(*out)->locked = locked;
	(*out)->charged = charged;
	return 0;
}

static int map_ring(struct engine_event *event, size_t pages, bool writable, void **address)
{
	struct engine_ring *ring = event->ring;
	struct engine_mapping *mapping;
	int error;

	if (pages > 1 && !is_power_of_two(pages - 1))
		return -ENGINE_EINVAL;
	if (ring && ring->pages != pages)
		return -ENGINE_EINVAL;
	if (ring && !event->mapped)
		return -ENGINE_EBUSY;
	mapping = mapping_new(event, NULL, pages * event->engine->host.page_size);
	if (!mapping)
		return -ENGINE_ENOMEM;
	if (!ring) {
		error = ring_make(event, pages, writable, &ring);
		if (error) {
			engine_release(event->engine, mapping, sizeof(*mapping));
			return error;
		}
		attach(event, ring);
	}
	*address = mapping->address = ring->page;
	mapping_publish(mapping, ring, NULL);
	engine_context_call(event, update_page, NULL);
	return 0;
}

int engine_event_map(struct engine_event *event, size_t size, bool writable, bool shared,
		     uint64_t offset, void **address)
{
	size_t page = event->engine->host.page_size, pages = size / page + (size % page != 0);

	if (!size || (offset & (page - 1)))
		return -ENGINE_EINVAL; /* a check of mmap(2) itself */
	if (!shared || (event->cpu == -1 && engine_event_flag(event, TALLY_ATTR_INHERIT)))
		return -ENGINE_EINVAL;
	if (pages > SIZE_MAX / page)
		return -ENGINE_ENOMEM;
	if (offset)
		return map_aux(event, pages, writable, offset, address);
	return map_ring(event, pages, writable, address);
}

/* Releases a ring after the last mapping of it and its area: detaches its events and retires it. */
static void ring_release(struct engine_ring *ring)
{
	ENGINE_LIST_EACH(event, &ring->events, struct engine_event, ring_link)
		attach(event, NULL);
	uncharge(ring->engine, &ring->locked, &ring->charged);
	engine_retire(ring->engine, &ring->retired, ring_free);
}

static void unmap(struct tally_engine *engine, struct engine_mapping **at)
{
	struct engine_mapping *mapping = *at;
	struct engine_event *event = mapping->event;

	*at = mapping->next;
	if (mapping->aux && !--mapping->aux->mapped)
		aux_release(mapping->aux);
	__atomic_store_n(&event->mapped, event->mapped - 1, __ATOMIC_RELEASE);
	if (!event->mapped)
		ring_release(mapping->ring);
	engine_release(engine, mapping, sizeof(*mapping));
	engine_file_put(event->file); /* this may free the event */
}

int engine_event_unmap(struct tally_engine *engine, void *address, size_t size)
{
	struct tally_engine_process *process = current_process(engine);
	size_t page = engine->host.page_size;

	if (size % page) {
		if (size > SIZE_MAX - page)
			return -ENGINE_EINVAL;
		size += page - size % page;
	}
	for (struct engine_mapping **at = &engine->mappings; *at; at = &(*at)->next) {
		if ((*at)->address != address || (*at)->process != process)
			continue;
		if ((*at)->size != size)
			return -ENGINE_EINVAL;
		unmap(engine, at);
		return 0;
	}
	return -ENGINE_EINVAL;
}

void engine_mappings_release(struct tally_engine_process *process)
{
	struct tally_engine *engine = process->engine;
	struct engine_mapping **at = &engine->mappings;

	while (*at) {
		if ((*at)->process == process)
			unmap(engine, at);
		else
			at = &(*at)->next;
	}
}

/* --- output --------------------------------------------------------------- */

/* True if `event` may write to the ring that `target` writes to. */
static bool may_share(const struct engine_event *event, const struct engine_event *target)
{
	if (event == target || target->cpu != event->cpu)
		return false;
	if (target->cpu == -1 && target->task != event->task)
		return false;
	/* Times of two clocks in one ring can't be ordered. */
	if (engine_event_flag(event, TALLY_ATTR_USE_CLOCKID) !=
		    engine_event_flag(target, TALLY_ATTR_USE_CLOCKID) ||
	    (engine_event_flag(event, TALLY_ATTR_USE_CLOCKID) &&
	     event->attr.clockid != target->attr.clockid))
		return false;
	if (engine_event_flag(event, TALLY_ATTR_WRITE_BACKWARD) !=
	    engine_event_flag(target, TALLY_ATTR_WRITE_BACKWARD))
		return false;
	return !gives_aux(event) || !gives_aux(target) || event->hw.pmu == target->hw.pmu;
}

int engine_event_set_output(struct engine_event *event, struct engine_event *target)
{
	if (target && !may_share(event, target))
		return -ENGINE_EINVAL;
	if (event->mapped || (target && !target->ring))
		return -ENGINE_EINVAL;
	attach(event, target ? target->ring : NULL);
	return 0;
}

int engine_event_pause_output(struct engine_event *event, bool pause)
{
	if (!event->ring || !event->ring->size)
		return -ENGINE_EINVAL;
	engine_shared_store(&event->ring->paused, pause);
	return 0;
}

bool engine_ring_has_data(struct engine_event *event)
{
	return event->ring && engine_shared_exchange(&event->ring->poll, 0);
}

void engine_ring_wakeup(struct engine_event *event)
{
	struct tally_engine *engine = event->engine;
	uintptr_t state = engine_lock(engine, &engine->ring_lock);

	if (event->ring) {
		ENGINE_LIST_EACH(other, &event->ring->events, struct engine_event, ring_link) {
			if (other->file)
				engine->host.wake(engine->host.host, other->file);
		}
	}
	engine_unlock(engine, &engine->ring_lock, state);
}
