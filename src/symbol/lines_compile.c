/* Compiles many units with several threads. */
#include "symbol/lines_state.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
	THREADS_MAX = 16,
	/* in .debug_info: a millisecond of work, against 50 µs to start a thread */
	BYTES_PER_THREAD = 1 << 18,
};

struct work {
	struct tally_lines *lines;
	const uint32_t *units;
	size_t count;
	atomic_size_t next;
	atomic_bool out_of_memory;
};

static void *run(void *context)
{
	struct work *work = context;
	struct tally_lines_scratch *scratch = calloc(1, sizeof(*scratch));
	if (!scratch) {
		atomic_store(&work->out_of_memory, true);
		return NULL;
	}
	size_t at;
	while ((at = atomic_fetch_add(&work->next, 1)) < work->count &&
	       !atomic_load(&work->out_of_memory)) {
		uint32_t unit = work->units[at];
		struct tally_lines_slot *slot = &work->lines->units[unit];
		if (tally_lines_compile(scratch, &work->lines->file.units.items[unit],
					&work->lines->program, &slot->compiled) == 0) {
			slot->state = TALLY_LINES_COMPILED;
		} else {
			tally_lines_unit_release(&slot->compiled);
			atomic_store(&work->out_of_memory, true);
		}
	}
	tally_lines_scratch_release(scratch);
	free(scratch);
	return NULL;
}

struct sized {
	uint64_t size;
	uint32_t unit;
};

static int compare_sizes(const void *a, const void *b)
{
	const struct sized *left = a, *right = b;
	if (left->size != right->size)
		return left->size > right->size ? -1 : 1;
	return left->unit < right->unit ? -1 : left->unit > right->unit;
}

/* Sorts large units first, so that no thread begins a large one when the others are done.  Sets the
 * sum of sizes.  Returns 0 or -ENOMEM. */
static int order(const struct tally_lines *lines, struct tally_lines_wanted *wanted,
		 uint64_t *bytes)
{
	struct sized *sized = calloc(wanted->count + 1, sizeof(*sized));
	if (!sized)
		return -ENOMEM;
	*bytes = 0;
	for (size_t i = 0; i < wanted->count; i++) {
		const struct tally_dwarf_unit *unit = &lines->file.units.items[wanted->items[i]];
		sized[i] = (struct sized){ unit->end - unit->offset, wanted->items[i] };
		*bytes += sized[i].size;
	}
	qsort(sized, wanted->count, sizeof(*sized), compare_sizes);
	for (size_t i = 0; i < wanted->count; i++)
		wanted->items[i] = sized[i].unit;
	free(sized);
	return 0;
}

static size_t threads_for(size_t units, uint64_t bytes)
{
	cpu_set_t cpus;
	size_t threads = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? (size_t)CPU_COUNT(&cpus)
									: 1;
	uint64_t useful = 1 + bytes / BYTES_PER_THREAD;
	if (threads > useful)
		threads = (size_t)useful;
	if (threads > units)
		threads = units;
	return threads > THREADS_MAX ? THREADS_MAX : threads;
}

int tally_lines_compile_wanted(struct tally_lines *lines, struct tally_lines_wanted *wanted)
{
	if (wanted->count == 0)
		return 0;
	uint64_t bytes;
	if (order(lines, wanted, &bytes) < 0)
		return -ENOMEM;
	struct work work = { .lines = lines, .units = wanted->items, .count = wanted->count };
	pthread_t threads[THREADS_MAX];
	size_t want = threads_for(wanted->count, bytes), started = 0;
	/* Block signals in the new threads, so that the caller's thread gets them. */
	sigset_t all, before;
	sigfillset(&all);
	if (want > 1 && pthread_sigmask(SIG_SETMASK, &all, &before) == 0) {
		while (started < want - 1 &&
		       pthread_create(&threads[started], NULL, run, &work) == 0)
			started++;
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	run(&work);
	while (started > 0)
		pthread_join(threads[--started], NULL);
	return atomic_load(&work.out_of_memory) ? -ENOMEM : 0;
}
