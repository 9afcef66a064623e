/* The rings of a recording: their sizes, and the events that write to them. */
#include "recorder/recorder_rings.h"

#include "machine/machine.h"

#include <errno.h>
#include <unistd.h>

enum {
	/* a million small records per second fill it in a tenth of a second */
	RING_BYTES = 8 << 20,
	SMALL_RING_BYTES = 2 << 20,    /* on machines with many CPUs, without stack copies */
	THREAD_RING_BYTES = 256 << 10, /* with thousands of threads, few run at a time */
	RINGS_BYTES = 64 << 20,        /* all rings, if they can be that small */
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

static size_t default_ring_bytes(const struct tally_recorder_rings *rings, bool has_copies,
				 size_t copies_bytes)
{
	size_t share = RINGS_BYTES / rings->count;
	if (rings->session->options.per_thread) {
		if (share > RING_BYTES)
			return RING_BYTES;
		return share < THREAD_RING_BYTES ? THREAD_RING_BYTES : share;
	}
	if (has_copies) {
		size_t bytes = RING_BYTES;
		while (bytes < copies_bytes && 2 * bytes * rings->count <= STACK_RINGS_BYTES)
			bytes *= 2;
		return bytes;
	}
	if (share > RING_BYTES)
		return RING_BYTES;
	return share < SMALL_RING_BYTES ? SMALL_RING_BYTES : share;
}

int tally_recorder_make_rings(struct tally_recorder_rings *rings)
{
	const struct tally_cpu_list *cpus = &rings->session->target->cpus;
	struct tally_cpu_list possible;
	rings->count = rings->capacity = cpus->count;
	if (rings->session->options.per_thread) {
		rings->count = rings->session->target->tids.count;
		if (tally_recorder_follows_command(rings->session))
			rings->count = 1;
		rings->capacity = 2 * rings->count + LATE_THREADS;
	}
	if (tally_recorder_follows_cpus(rings->session) &&
	    tally_cpu_list_read(TALLY_CPU_POSSIBLE, &possible, NULL) >= 0) {
		if (possible.count > cpus->count)
			rings->capacity = possible.count;
		tally_cpu_list_release(&possible);
	}
	rings->samples = tally_arena_array(&rings->session->arena, rings->capacity,
					   sizeof(*rings->samples));
	rings->sides = tally_arena_array(&rings->session->arena, rings->capacity,
					 sizeof(*rings->sides));
	rings->cpus = tally_arena_array(&rings->session->arena, rings->capacity,
					sizeof(*rings->cpus));
	if (!rings->samples || !rings->sides || !rings->cpus)
		return -ENOMEM;
	for (size_t i = 0; !rings->session->options.per_thread && i < cpus->count; i++)
		rings->cpus[i].number = cpus->cpus[i];
	return 0;
}

struct tally_recorder_ring_sizes tally_recorder_choose_rings(
	const struct tally_recorder_rings *rings, bool has_copies, size_t copies_bytes)
{
	struct tally_ring_budget budget = tally_machine_ring_budget();
	size_t wanted = rings->session->options.ring_bytes;
	if (!wanted)
		wanted = default_ring_bytes(rings, has_copies, copies_bytes);
	size_t side = budget.unlimited ? SIDE_RING_BYTES : SMALL_SIDE_RING_BYTES;
	struct tally_recorder_ring_sizes sizes;
	sizes.side_pages = tally_machine_ring_pages(&budget, rings->count,
						    power_of_two_pages(side));
	tally_ring_budget_spend(&budget, rings->count, sizes.side_pages);
	sizes.sample_pages = tally_machine_ring_pages(&budget, rings->count,
						      power_of_two_pages(wanted));
	/* Other mappings of this user count as well: the kernel decides, in map_ring(). */
	if (!sizes.sample_pages)
		sizes.sample_pages = 1;
	if (!sizes.side_pages)
		sizes.side_pages = 1;
	return sizes;
}

static int map_ring(struct tally_recorder_rings *rings, struct tally_ring *ring, int handle,
		    int cpu, size_t *pages)
{
	struct tally_provider *provider = rings->session->provider;
	bool is_backward = rings->session->options.overwrite && ring >= rings->samples &&
			   ring < rings->samples + rings->count;
	for (;; *pages /= 2) {
		int result;
		if (is_backward)
			result = tally_ring_open_backward(ring, provider, handle, cpu, *pages);
		else
			result = tally_ring_open(ring, provider, handle, cpu, *pages);
		if (result != -EPERM || *pages <= 1)
			return result;
	}
}

int tally_recorder_join_ring(struct tally_recorder_rings *rings, struct tally_ring *ring,
			     int handle, int cpu, size_t *pages, struct tally_error *err)
{
	if (ring->page) {
		int result = rings->session->provider->ops->ioctl(
			rings->session->provider, handle, TALLY_IOCTL_SET_OUTPUT,
			(void *)(intptr_t)ring->handle, 0);
		if (result < 0)
			return tally_error_set(err, result,
					       "events of CPU %d can't share a ring: %s", cpu,
					       tally_errno_text(result));
		return 0;
	}
	int result = map_ring(rings, ring, handle, cpu, pages);
	if (result < 0) {
		tally_error_set(err, result, "mapping a ring of %zu KiB for CPU %d failed: %s",
				*pages * page_bytes() / 1024, cpu, tally_errno_text(result));
		const char *hint = "-m sets a smaller size; kernel.perf_event_mlock_kb and "
				   "'ulimit -l' limit it (tally doctor)";
		if (result == -EFBIG) /* memory that is shared with the command is a file */
			hint = "raise 'ulimit -f'";
		tally_error_hint(err, "%s", hint);
	}
	return result;
}

void tally_recorder_report_small_rings(const struct tally_recorder_rings *rings)
{
	size_t got = rings->sizes.sample_pages * page_bytes();
	if (rings->session->options.ring_bytes && got < rings->session->options.ring_bytes)
		tally_buffer_printf(
			rings->session->notes,
			"rings have %zu KiB per CPU, not %zu: the limit of "
			"kernel.perf_event_mlock_kb and ulimit -l\n",
			got / 1024, rings->session->options.ring_bytes / 1024);
}

void tally_recorder_note_heads(struct tally_recorder_rings *rings)
{
	rings->found_bytes = 0;
	for (size_t i = 0; i < rings->count; i++) {
		struct tally_ring *ring = &rings->samples[i];
		if (!ring->page || ring->is_backward)
			continue;
		tally_ring_note(ring);
		if (ring->noted - ring->tail > rings->found_bytes)
			rings->found_bytes = ring->noted - ring->tail;
	}
}

uint64_t tally_recorder_bytes_read(const struct tally_recorder_rings *rings)
{
	uint64_t total = 0;
	for (size_t i = 0; i < rings->count; i++)
		total += rings->samples[i].tail + rings->sides[i].tail;
	return total;
}

void tally_recorder_close_rings(struct tally_recorder_rings *rings)
{
	for (size_t i = 0; rings->samples && i < rings->count; i++) {
		tally_ring_close(&rings->samples[i]);
		tally_ring_close(&rings->sides[i]);
	}
}
