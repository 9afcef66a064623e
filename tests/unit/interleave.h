/* Walks through every interleaving of a small program, on a machine that reorders memory accesses.
 *
 * The program is real code.  Its accesses to shared memory are replaced by the functions at the end
 * of this file, which take the place of those in engine/ring_access.h.  Before each access, the
 * walk chooses what happens next: the access itself, an interrupt of this CPU, or another CPU's
 * turn.  A run follows a list of choices.  The next run changes the last choice that has an untried
 * alternative, until there is none.  A run that reaches a state seen before is given up.
 *
 * The memory model is C11's for acquire, release and relaxed accesses (without loads that read the
 * future).  A location is the list of all stores to it.  A CPU's view says how far into each list
 * it must have seen, and a load takes any store from there on.  A release store carries its CPU's
 * view, and a CPU that acquires it adopts that view.  So a store may become visible after later
 * ones, and a load may return an old value, unless the memory orders forbid it.  This covers all
 * effects of stores on arm64 and riscv64, and more.  Not modelled: a store before an earlier load
 * (control dependencies prevent it).
 *
 * A CPU's local state is the hash of the values it loaded.  An interrupt ends before the
 * interrupted code goes on and doesn't change its local state, so each level has its own. */
#ifndef TALLY_TESTS_INTERLEAVE_H
#define TALLY_TESTS_INTERLEAVE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WALK_LOCATIONS = 32, WALK_STORES = 48, WALK_CPUS = 3, WALK_LEVELS = 4, WALK_DEPTH = 4096 };

struct walk_view {
	uint8_t seen[WALK_LOCATIONS];
};

struct walk_location {
	const void *at;
	unsigned count;
	struct {
		uint64_t value;
		struct walk_view view;
	} stores[WALK_STORES];
};

struct walk_cpu {
	struct walk_view view;    /* the stores that it must have seen */
	/* The view at the last release fence; relaxed stores carry it. */
	struct walk_view fenced;
	/* the view that an acquire fence would get from the relaxed loads */
	struct walk_view relaxed;
	uint64_t local[WALK_LEVELS];
	unsigned level;
	bool running;             /* its view still matters */
};

struct walk {
	/* The program: `options` says what else may happen at a point, as bits of enum walk_option;
	 * the other functions do it. */
	unsigned (*options)(void *program, unsigned cpu, bool shared);
	void (*interrupt)(void *program, unsigned cpu);
	void (*other)(void *program, unsigned cpu);
	/* hash of the state that affects the rest of the run and is not in memory */
	uint64_t (*state)(void *program);
	/* NULL: all runs use one stack; otherwise it switches to the first stack and gives up
	 * there */
	void (*leave)(void *program);
	void *program;

	struct walk_location locations[WALK_LOCATIONS];
	unsigned location_count, cpu, cpu_count;
	struct walk_cpu cpus[WALK_CPUS];

	/* The current run. */
	jmp_buf given_up; /* on the first stack */
	struct {
		uint8_t taken, of;
	} choices[WALK_DEPTH];
	unsigned depth, known;
	const char *failure;

	/* All runs. */
	uint64_t *visited, visited_size, states, runs;
};

enum walk_option { WALK_INTERRUPT = 1, WALK_OTHER = 2 };

static inline uint64_t walk_mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	hash ^= hash >> 29;
	hash *= 0xbf58476d1ce4e5b9u;
	return hash ^ hash >> 32;
}

static inline void walk_give_up(struct walk *walk)
{
	if (walk->leave)
		walk->leave(walk->program);
	longjmp(walk->given_up, 1);
}

static inline void walk_fail(struct walk *walk, const char *what)
{
	walk->failure = what;
	walk_give_up(walk);
}

/* --- states --------------------------------------------------------------- */

/* Returns the oldest store that some CPU can still read.  Older ones don't count as state, nor does
 * their number. */
static inline unsigned walk_oldest(const struct walk *walk, unsigned location)
{
	unsigned oldest = walk->locations[location].count - 1;
	for (unsigned cpu = 0; cpu < walk->cpu_count; cpu++)
		if (walk->cpus[cpu].running && walk->cpus[cpu].view.seen[location] < oldest)
			oldest = walk->cpus[cpu].view.seen[location];
	return oldest;
}

static inline uint64_t walk_mix_view(const struct walk *walk, uint64_t hash,
				     const struct walk_view *view, const uint8_t *oldest)
{
	for (unsigned i = 0; i < walk->location_count; i++)
		hash = walk_mix(hash, view->seen[i] > oldest[i] ? view->seen[i] - oldest[i] : 0);
	return hash;
}

static inline uint64_t walk_key(const struct walk *walk)
{
	uint64_t hash = walk_mix(walk->cpu, walk->state(walk->program));
	uint8_t oldest[WALK_LOCATIONS];

	for (unsigned i = 0; i < walk->location_count; i++)
		oldest[i] = (uint8_t)walk_oldest(walk, i);
	for (unsigned i = 0; i < walk->location_count; i++) {
		const struct walk_location *location = &walk->locations[i];
		hash = walk_mix(hash, location->count - oldest[i]);
		for (unsigned s = oldest[i]; s < location->count; s++) {
			hash = walk_mix(hash, location->stores[s].value);
			hash = walk_mix_view(walk, hash, &location->stores[s].view, oldest);
		}
	}
	for (unsigned i = 0; i < walk->cpu_count; i++) {
		const struct walk_cpu *cpu = &walk->cpus[i];
		for (unsigned level = 0; level <= cpu->level; level++)
			hash = walk_mix(hash, cpu->local[level]);
		hash = walk_mix_view(walk, hash, &cpu->view, oldest);
		hash = walk_mix_view(walk, hash, &cpu->fenced, oldest);
		hash = walk_mix_view(walk, hash, &cpu->relaxed, oldest);
	}
	return hash ? hash : 1;
}

static inline bool walk_visit(struct walk *walk, uint64_t key);

static inline void walk_grow(struct walk *walk)
{
	uint64_t *old = walk->visited, size = walk->visited_size;
	walk->visited_size = size ? size * 4 : 1 << 16;
	walk->visited = calloc(walk->visited_size, sizeof(*walk->visited));
	walk->states = 0;
	for (uint64_t i = 0; i < size; i++)
		if (old[i])
			walk_visit(walk, old[i]);
	free(old);
}

/* Returns true for a state that was not visited before. */
static inline bool walk_visit(struct walk *walk, uint64_t key)
{
	if (walk->states * 2 >= walk->visited_size)
		walk_grow(walk);
	uint64_t at = key & (walk->visited_size - 1);
	for (; walk->visited[at]; at = (at + 1) & (walk->visited_size - 1))
		if (walk->visited[at] == key)
			return false;
	walk->visited[at] = key;
	walk->states++;
	return true;
}

static inline unsigned walk_choose(struct walk *walk, unsigned of, uint64_t where)
{
	if (of == 1)
		return 0;
	if (walk->depth == WALK_DEPTH)
		walk_fail(walk, "a run without end");
	if (walk->depth == walk->known) {
		if (!walk_visit(walk, walk_mix(walk_key(walk), where)))
			walk_give_up(walk);
		walk->choices[walk->known].taken = 0;
		walk->choices[walk->known++].of = (uint8_t)of;
	}
	return walk->choices[walk->depth++].taken;
}

/* Runs `run` with every list of choices.  Returns NULL, or the first failure. */
static inline const char *walk_all(struct walk *walk, void (*start)(struct walk *),
				   void (*run)(struct walk *))
{
	walk->known = 0;
	for (;;) {
		walk->depth = 0;
		walk->cpu = 0;
		walk->location_count = 0;
		memset(walk->cpus, 0, sizeof(walk->cpus));
		start(walk);
		walk->runs++;
		if (!setjmp(walk->given_up))
			run(walk);
		if (walk->failure)
			return walk->failure;
		while (walk->known && walk->choices[walk->known - 1].taken + 1 ==
					      walk->choices[walk->known - 1].of)
			walk->known--;
		if (!walk->known)
			return NULL;
		walk->choices[walk->known - 1].taken++;
	}
}

static inline void walk_release(struct walk *walk)
{
	free(walk->visited);
	walk->visited = NULL;
}

/* --- memory --------------------------------------------------------------- */

static inline void walk_location(struct walk *walk, const void *at, uint64_t value)
{
	struct walk_location *location = &walk->locations[walk->location_count++];
	location->at = at;
	location->count = 1;
	location->stores[0].value = value;
	location->stores[0].view = (struct walk_view){ 0 };
}

static inline unsigned walk_find(struct walk *walk, const void *at)
{
	for (unsigned i = 0; i < walk->location_count; i++)
		if (walk->locations[i].at == at)
			return i;
	walk_fail(walk, "an access to what is not shared");
	return 0;
}

/* Returns the final value. */
static inline uint64_t walk_value(struct walk *walk, const void *at)
{
	const struct walk_location *location = &walk->locations[walk_find(walk, at)];
	return location->stores[location->count - 1].value;
}

static inline void walk_join(struct walk_view *view, const struct walk_view *other)
{
	for (unsigned i = 0; i < WALK_LOCATIONS; i++)
		if (view->seen[i] < other->seen[i])
			view->seen[i] = other->seen[i];
}

static inline void walk_saw(struct walk *walk, uint64_t value)
{
	struct walk_cpu *cpu = &walk->cpus[walk->cpu];
	cpu->local[cpu->level] = walk_mix(cpu->local[cpu->level], value);
}

/* Called before each access of a CPU: anything else may happen first. */
static inline void walk_point(struct walk *walk, bool shared)
{
	struct walk_cpu *cpu = &walk->cpus[walk->cpu];
	/* a different point from the one before */
	cpu->local[cpu->level] = walk_mix(cpu->local[cpu->level], 1);
	for (;;) {
		unsigned options = walk->options(walk->program, walk->cpu, shared);
		unsigned of = 1 + !!(options & WALK_INTERRUPT) + !!(options & WALK_OTHER);
		unsigned taken = walk_choose(walk, of, 1);
		if (!taken)
			return;
		if (taken == 1 && (options & WALK_INTERRUPT)) {
			cpu->local[++cpu->level] = 0;
			walk->interrupt(walk->program, walk->cpu);
			cpu->level--;
		} else {
			walk->other(walk->program, walk->cpu);
		}
	}
}

static inline void walk_take(struct walk *walk, unsigned at, unsigned store, bool acquire)
{
	struct walk_cpu *cpu = &walk->cpus[walk->cpu];
	const struct walk_view *carried = &walk->locations[at].stores[store].view;
	cpu->view.seen[at] = (uint8_t)store;
	walk_join(acquire ? &cpu->view : &cpu->relaxed, carried);
}

static inline uint64_t walk_load(struct walk *walk, const void *address, bool acquire)
{
	unsigned at = walk_find(walk, address), last = walk->locations[at].count - 1;
	unsigned first = walk->cpus[walk->cpu].view.seen[at];
	unsigned store = last - walk_choose(walk, last - first + 1, 2);
	walk_take(walk, at, store, acquire);
	walk_saw(walk, walk->locations[at].stores[store].value);
	return walk->locations[at].stores[store].value;
}

static inline void walk_append(struct walk *walk, unsigned at, uint64_t value, bool release)
{
	struct walk_location *location = &walk->locations[at];
	struct walk_cpu *cpu = &walk->cpus[walk->cpu];
	if (location->count == WALK_STORES)
		walk_fail(walk, "more stores than the walk holds");
	unsigned store = location->count++;
	cpu->view.seen[at] = (uint8_t)store;
	location->stores[store].value = value;
	location->stores[store].view = release ? cpu->view : cpu->fenced;
	location->stores[store].view.seen[at] = (uint8_t)store;
}

static inline void walk_store(struct walk *walk, const void *address, uint64_t value, bool release)
{
	walk_append(walk, walk_find(walk, address), value, release);
}

/* Reads the last store and puts the next after it; the new store also carries the old one's
 * view. */
static inline void walk_change(struct walk *walk, const void *address, uint64_t value, bool acquire)
{
	unsigned at = walk_find(walk, address), last = walk->locations[at].count - 1;
	struct walk_view carried = walk->locations[at].stores[last].view;
	walk_take(walk, at, last, acquire);
	walk_append(walk, at, value, false);
	walk_join(&walk->locations[at].stores[last + 1].view, &carried);
}

static inline bool walk_compare_exchange(struct walk *walk, const void *address, uint64_t *expected,
					 uint64_t value, bool acquire)
{
	unsigned at = walk_find(walk, address), last = walk->locations[at].count - 1;
	unsigned first = walk->cpus[walk->cpu].view.seen[at], olds[WALK_STORES], count = 0;
	/* It may fail because of an old value, but succeeds only at the last store. */
	for (unsigned s = first; s < last; s++)
		if (walk->locations[at].stores[s].value != *expected)
			olds[count++] = s;
	unsigned taken = walk_choose(walk, count + 1, 3);
	unsigned store = taken ? olds[taken - 1] : last;
	uint64_t there = walk->locations[at].stores[store].value;
	walk_saw(walk, walk_mix(there, store == last));
	if (there == *expected) {
		walk_change(walk, address, value, acquire);
		return true;
	}
	walk_take(walk, at, store, false);
	*expected = there;
	return false;
}

static inline void walk_release_fence(struct walk *walk)
{
	struct walk_cpu *cpu = &walk->cpus[walk->cpu];
	cpu->fenced = cpu->view;
}

static inline void walk_acquire_fence(struct walk *walk)
{
	struct walk_cpu *cpu = &walk->cpus[walk->cpu];
	walk_join(&cpu->view, &cpu->relaxed);
}

#endif
