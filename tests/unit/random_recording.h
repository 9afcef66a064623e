/* An artificial recording: processes that fork, map and rename themselves, two events, and kernel
 * and user stacks, some recursive, garbage or empty, each several times. */
#ifndef TALLY_TEST_RANDOM_RECORDING_H
#define TALLY_TEST_RANDOM_RECORDING_H

#include "profile_fixture.h"

enum { RANDOM_FUNCTIONS = 24, RANDOM_PROCESSES = 5, RANDOM_CHAINS = 120, RANDOM_DEPTH = 300,
       RANDOM_LIBRARY = 0x7f0000000 };

struct random_recording {
	struct profile_fixture fixture;
	uint64_t random;
	uint64_t library[RANDOM_PROCESSES]; /* address of the library in each process */
	uint64_t chains[RANDOM_CHAINS][RANDOM_DEPTH];
	size_t depths[RANDOM_CHAINS];
};

static inline uint64_t random_next(struct random_recording *recording, uint64_t below)
{
	recording->random ^= recording->random << 13;
	recording->random ^= recording->random >> 7;
	recording->random ^= recording->random << 17;
	return (recording->random * 0x2545f4914f6cdd1dull >> 20) % below;
}

/* Writes a perf map.  Several functions have one name, as static functions may. */
static inline void random_write_map(void)
{
	char path[64];
	fixture_map_path(path);
	FILE *map = fopen(path, "w");
	assert_non_null(map);
	for (unsigned i = 0; i < RANDOM_FUNCTIONS; i++)
		fprintf(map, "%x 80 function_%u\n", CODE + i * 0x80, i % 17);
	fclose(map);
}

static inline int random_set_up_map(void **state)
{
	(void)state;
	random_write_map();
	return 0;
}

static inline uint64_t random_ids(unsigned process, unsigned thread)
{
	return fixture_ids_of(fixture_pid() + process, fixture_pid() + process + 100 * thread);
}

static inline void random_comm(struct random_recording *recording, unsigned process,
			       unsigned thread)
{
	static const char *const names[] = { "alpha", "beta", "gamma" };
	uint64_t words[7] = { random_ids(process, thread), 0, 0, random_ids(process, thread),
			      ++recording->fixture.time_ns, 0, 1 };
	strcpy((char *)&words[1], names[random_next(recording, 3)]);
	fixture_put_words(&recording->fixture, TALLY_RECORD_COMM, 0, words, 7);
}

static inline void random_map(struct random_recording *recording, unsigned process,
			      const char *path, uint64_t start, uint64_t offset)
{
	uint64_t words[12] = { random_ids(process, 0),
			       start,
			       0x2000,
			       offset,
			       0,
			       0,
			       0,
			       0,
			       random_ids(process, 0),
			       ++recording->fixture.time_ns,
			       0,
			       1 };
	strcpy((char *)&words[4], path);
	fixture_put_words(&recording->fixture, TALLY_RECORD_MMAP, TALLY_MISC_USER, words, 12);
}

static inline void random_map_library(struct random_recording *recording, unsigned process)
{
	recording->library[process] = RANDOM_LIBRARY + random_next(recording, 3) * 0x1000;
	random_map(recording, process,
		   random_next(recording, 2) ? "/nowhere/libone.so" : "/nowhere/two",
		   recording->library[process], random_next(recording, 2) * 0x1000);
}

static inline void random_fork(struct random_recording *recording)
{
	unsigned from = (unsigned)random_next(recording, RANDOM_PROCESSES);
	unsigned to = 1 + (unsigned)random_next(recording, RANDOM_PROCESSES - 1);
	uint64_t pids = (uint64_t)(fixture_pid() + from) << 32 | (fixture_pid() + to);
	uint64_t words[7] = { pids, pids, ++recording->fixture.time_ns, random_ids(from, 0),
			      recording->fixture.time_ns, 0, 1 };
	fixture_put_words(&recording->fixture, TALLY_RECORD_FORK, 0, words, 7);
}

static inline void random_chain(struct random_recording *recording, size_t number)
{
	static const size_t limits[] = { 1, 3, 8, 20, 20, 40, RANDOM_DEPTH - 2 };
	uint64_t *chain = recording->chains[number], *at = chain;
	size_t depth = random_next(recording, limits[random_next(recording, 7)]);
	if (random_next(recording, 3) == 0) {
		*at++ = TALLY_CONTEXT_KERNEL;
		for (size_t i = random_next(recording, 4); i-- > 0;)
			*at++ = 0xffffffff81000000 + random_next(recording, 6) * 16;
	}
	if (random_next(recording, 8))
		*at++ = TALLY_CONTEXT_USER;
	while (at < chain + depth) {
		uint64_t kind = random_next(recording, 40);
		if (kind == 0)
			*at++ = random_next(recording, UINT64_MAX);
		else if (kind < 8)
			*at++ = RANDOM_LIBRARY + random_next(recording, 40) * 0x100;
		else
			*at++ = CODE +
				random_next(recording,
					    random_next(recording, 2) ? 4 : RANDOM_FUNCTIONS) *
					0x80 +
				1 + random_next(recording, 3);
	}
	recording->depths[number] = (size_t)(at - chain);
	/* Stacks of one program begin alike. */
	for (size_t i = 0;
	     number && i < 6 && i < recording->depths[number] && random_next(recording, 3); i++)
		if (recording->depths[number - 1] > i)
			at[-1 - (long)i] = recording->chains[number - 1]
							    [recording->depths[number - 1] - 1 - i];
}

static inline void random_sample(struct random_recording *recording)
{
	unsigned process = (unsigned)random_next(recording, RANDOM_PROCESSES);
	size_t number = random_next(recording, random_next(recording, 2) ? 10 : RANDOM_CHAINS);
	size_t depth = recording->depths[number];
	uint64_t words[7 + RANDOM_DEPTH] = {
		1 + random_next(recording, 2),
		depth ? recording->chains[number][depth / 2] : LOOP,
		random_ids(process, (unsigned)random_next(recording, 2)),
		++recording->fixture.time_ns,
		random_next(recording, 3),
		1 + random_next(recording, 100),
		depth,
	};
	memcpy(&words[7], recording->chains[number], depth * 8);
	fixture_put_words(&recording->fixture, TALLY_RECORD_SAMPLE,
			  random_next(recording, 2) ? TALLY_MISC_USER : TALLY_MISC_KERNEL, words,
			  7 + depth);
}

/* Adds the records before the first sample. */
static inline void random_recording_begin(struct random_recording *recording, uint64_t seed)
{
	*recording = (struct random_recording){ .random = seed * 0x9e3779b97f4a7c15ull + 1 };
	for (size_t i = 0; i < RANDOM_CHAINS; i++)
		random_chain(recording, i);
	random_map(recording, 0, "//anon", CODE, 0);
	for (unsigned i = 0; i < RANDOM_PROCESSES; i++)
		random_map_library(recording, i);
}

static inline void random_recording_make(struct random_recording *recording, uint64_t seed,
					 size_t samples)
{
	random_recording_begin(recording, seed);
	for (size_t i = 0; i < samples; i++) {
		switch (random_next(recording, 60)) {
		case 0: random_fork(recording); break;
		case 1:
			random_map_library(recording,
					   (unsigned)random_next(recording, RANDOM_PROCESSES));
			break;
		case 2: random_comm(recording, (unsigned)random_next(recording, RANDOM_PROCESSES),
				    (unsigned)random_next(recording, 2)); break;
		}
		random_sample(recording);
	}
	fixture_finish(&recording->fixture, 0, 0);
}

#endif
