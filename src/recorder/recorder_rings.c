/* The rings of a recording: their sizes, and the events that write to them. */
#include "recorder/recorder_state.h"

#include "machine/limits.h"

#include <errno.h>
#include <unistd.h>

enum {
	/* a million small records per second fill it in a tenth of a second */
	RING_BYTES = 8 << 20,
	SMALL_RING_BYTES = 2 << 20,   /* on machines with many CPUs, without stack copies */
	THREAD_RING_BYTES = 256 << 10, /* with thousands of threads, few run at a time */
	RINGS_BYTES = 64 << 20,       /* all rings, if they can be that small */
	WAKEUP_BYTES_MAX = 4 << 20,   /* of stack copies */
	STACK_RINGS_BYTES = 256 << 20, /* all rings, with frequent large copies */
	SIDE_RING_BYTES = 256 << 10,
	SMALL_SIDE_RING_BYTES = 32 << 10, /* when memory is short */
};

enum { LATE_THREADS = 64 }; /* threads that begin while the threads are opened */

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t power_of_two_pages(size_t bytes)
{
	size_t pages = 1;
	while (pages * page_bytes() < bytes)
		pages *= 2;
	return pages;
}

static size_t default_ring_bytes(const struct tally_recorder *recorder)
{
	size_t share = RINGS_BYTES / recorder->rings.count;
	if (recorder->session.options.per_thread)
		return share > RING_BYTES          ? RING_BYTES
		       : share < THREAD_RING_BYTES ? THREAD_RING_BYTES
						   : share;
	if (recorder->events.call_graph == TALLY_CALL_GRAPH_STACK) {
		size_t bytes = RING_BYTES, wanted = tally_recorder_copies_ring_bytes(recorder);
		while (bytes < wanted && 2 * bytes * recorder->rings.count <= STACK_RINGS_BYTES)
			bytes *= 2;
		return bytes;
	}
	if (share > RING_BYTES)
		return RING_BYTES;
	return share < SMALL_RING_BYTES ? SMALL_RING_BYTES : share;
}

int tally_recorder_make_rings(struct tally_recorder *recorder)
{
	const struct tally_cpu_list *cpus = &recorder->session.target->cpus;
	struct tally_cpu_list possible;
	recorder->rings.count = recorder->rings.capacity = cpus->count;
	if (recorder->session.options.per_thread) {
		recorder->rings.count = tally_recorder_follows_command(recorder)
					       ? 1
					       : recorder->session.target->tids.count;
		recorder->rings.capacity = 2 * recorder->rings.count + LATE_THREADS;
	}
	if (tally_recorder_follows_cpus(recorder) &&
	    tally_cpu_list_read(TALLY_CPU_POSSIBLE, &possible, NULL) >= 0) {
		if (possible.count > cpus->count)
			recorder->rings.capacity = possible.count;
		tally_cpu_list_release(&possible);
	}
	recorder->rings.samples = tally_arena_array(&recorder->session.arena, recorder->rings.capacity,
					    sizeof(*recorder->rings.samples));
	recorder->rings.sides = tally_arena_array(&recorder->session.arena, recorder->rings.capacity,
						 sizeof(*recorder->rings.sides));
	recorder->rings.cpus = tally_arena_array(&recorder->session.arena, recorder->rings.capacity,
						sizeof(*recorder->rings.cpus));
	if (!recorder->rings.samples || !recorder->rings.sides || !recorder->rings.cpus)
		return -ENOMEM;
	for (size_t i = 0; !recorder->session.options.per_thread && i < cpus->count; i++)
		recorder->rings.cpus[i].number = cpus->cpus[i];
	return 0;
}

struct tally_recorder_ring_sizes tally_recorder_choose_rings(const struct tally_recorder *recorder)
{
	struct tally_ring_budget budget = tally_machine_ring_budget();
	size_t wanted = recorder->session.options.ring_bytes ? recorder->session.options.ring_bytes
						     : default_ring_bytes(recorder);
	size_t side = budget.unlimited ? SIDE_RING_BYTES : SMALL_SIDE_RING_BYTES;
	struct tally_recorder_ring_sizes sizes;
	sizes.side_pages = tally_machine_ring_pages(&budget, recorder->rings.count,
						    power_of_two_pages(side));
	tally_ring_budget_spend(&budget, recorder->rings.count, sizes.side_pages);
	sizes.sample_pages = tally_machine_ring_pages(&budget, recorder->rings.count,
						      power_of_two_pages(wanted));
	/* Other mappings of this user count as well: the kernel decides, in map_ring(). */
	if (!sizes.sample_pages)
		sizes.sample_pages = 1;
	if (!sizes.side_pages)
		sizes.side_pages = 1;
	return sizes;
}

static int map_ring(struct tally_recorder *recorder, struct tally_ring *ring, int handle, int cpu,
		    size_t *pages)
{
	int result;
	bool is_backward = recorder->session.options.overwrite && ring >= recorder->rings.samples &&
			   ring < recorder->rings.samples + recorder->rings.count;
	while ((result = is_backward ? tally_ring_open_backward(ring, recorder->session.provider, handle,
								cpu, *pages)
				     : tally_ring_open(ring, recorder->session.provider, handle, cpu,
						       *pages)) == -EPERM &&
	       *pages > 1)
		*pages /= 2;
	return result;
}

int tally_recorder_join_ring(struct tally_recorder *recorder, struct tally_ring *ring, int handle,
			     int cpu, size_t *pages, struct tally_error *err)
{
	if (ring->page) {
		int result = recorder->session.provider->ops->ioctl(recorder->session.provider, handle,
							    TALLY_IOCTL_SET_OUTPUT,
							    (void *)(intptr_t)ring->handle, 0);
		return result < 0 ? tally_error_set(err, result,
						    "events of CPU %d can't share a ring: %s", cpu,
						    tally_errno_text(result))
				  : 0;
	}
	int result = map_ring(recorder, ring, handle, cpu, pages);
	if (result < 0) {
		tally_error_set(err, result, "mapping a ring of %zu KiB for CPU %d failed: %s",
				*pages * page_bytes() / 1024, cpu, tally_errno_text(result));
		tally_error_hint(err,
				 "-m sets a smaller size; kernel.perf_event_mlock_kb and 'ulimit "
				 "-l' limit it (tally doctor)");
	}
	return result;
}

/* Sets wakeups at half of the ring; if that proves too late, recorder_waits.c looks earlier.  For
 * copies in large rings the limit is lower, so that the missing part of a stack is still in the
 * task's memory (recorder_outer.c). */
void tally_recorder_set_wakeups(struct tally_recorder *recorder,
				const struct tally_recorder_ring_sizes *sizes)
{
	size_t sample = sizes->sample_pages * page_bytes(), side = sizes->side_pages * page_bytes();
	for (size_t i = 0; i < recorder->events.source_count; i++) {
		struct tally_recorder_source *source = &recorder->events.sources[i];
		source->attr.flags |= TALLY_ATTR_WATERMARK;
		size_t half = source->event ? sample / 2 : side / 2;
		bool is_late = source->unwinds && half > WAKEUP_BYTES_MAX;
		source->attr.wakeup_events = (uint32_t)(is_late ? WAKEUP_BYTES_MAX : half);
		source->written.flags |= TALLY_ATTR_WATERMARK;
		source->written.wakeup_events = source->attr.wakeup_events;
		/* In small rings, one stack copy must leave room for others. */
		uint32_t most = (uint32_t)(sample / 8) & ~7u;
		if (!recorder->session.options.stack_bytes && source->attr.sample_stack_user > most &&
		    most >= 1024) {
			source->attr.sample_stack_user = most;
			if (source->written.sample_stack_user)
				source->written.sample_stack_user = most;
		}
	}
}

void tally_recorder_tell_of_small_rings(struct tally_recorder *recorder,
					const struct tally_recorder_ring_sizes *sizes)
{
	size_t got = sizes->sample_pages * page_bytes();
	if (recorder->session.options.ring_bytes && got < recorder->session.options.ring_bytes)
		tally_buffer_printf(
			recorder->session.notes,
			"rings have %zu KiB per CPU, not %zu: the limit of "
			"kernel.perf_event_mlock_kb and ulimit -l\n",
			got / 1024, recorder->session.options.ring_bytes / 1024);
}
