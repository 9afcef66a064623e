/* How a profile is read: samples → chains → rows. */
#ifndef TALLY_PROFILE_INTERNAL_H
#define TALLY_PROFILE_INTERNAL_H

#include "profile/profile.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_row_maker;
struct tally_sample_reader;

/* Raw call chains → rows: tells whether a sample's chain was seen before by its hash, without
 * comparing frames.
 *
 * A chain is known by 96 bits of a hash that is seeded anew in each run; the chain itself is not
 * kept.  Among ten million chains, two share these bits by chance once in 10^15 runs.  Since the
 * seed is random, a recording can't be crafted so that two do.  Not thread-safe.
 */

enum { TALLY_CHAIN_BLOCK = 64 /* words hashed at a time */ };

struct tally_chain_hash {
	uint64_t key;
	uint32_t check;
};

struct tally_chain_slot {
	uint64_t key;
	uint32_t check;
	uint32_t row; /* number of the row, + 1; 0: the slot is free */
};

struct tally_chain_table {
	uint64_t random[TALLY_CHAIN_BLOCK + 8];
	/* keeps `random`, which another thread reads to hash, off the cache lines that change
	 * here */
	char apart[64];
	struct tally_chain_slot *slots;
	size_t count, capacity; /* capacity: a power of two */
};

/* Draws the seed.  Returns 0 or -ENOMEM. */
int tally_chain_table_init(struct tally_chain_table *table);
void tally_chain_table_release(struct tally_chain_table *table);

/* Hashes a chain's words, and two more words that say what they mean (class, maps).  Another thread
 * may add chains meanwhile. */
struct tally_chain_hash tally_chain_table_hash(const struct tally_chain_table *table,
					       const uint64_t *words, size_t count,
					       uint64_t meaning, uint64_t more);

/* Prefetches the memory that _find will read. */
static inline void tally_chain_table_prefetch(const struct tally_chain_table *table,
					      struct tally_chain_hash hash)
{
	__builtin_prefetch(&table->slots[hash.key & (table->capacity - 1)]);
}

/* Returns the chain's row, or UINT32_MAX when it is new. */
uint32_t tally_chain_table_find(const struct tally_chain_table *table,
				struct tally_chain_hash hash);

/* Adds a chain that _find did not find; `row` is below UINT32_MAX.  Returns 0 or -ENOMEM. */
int tally_chain_table_add(struct tally_chain_table *table, struct tally_chain_hash hash,
			  uint32_t row);

/* True if the table has to grow before it can take `more` chains. */
static inline bool tally_chain_table_is_full(const struct tally_chain_table *table, size_t more)
{
	return (table->count + more) * 3 > table->capacity * 2;
}

/* Makes room for this many chains in all.  Returns 0 or -ENOMEM. */
int tally_chain_table_reserve(struct tally_chain_table *table, size_t count);

/* Forgets all chains. */
void tally_chain_table_clear(struct tally_chain_table *table);

/* Samples with hashed chains → rows of a profile.  Only sample_reader.c uses this.
 *
 * A chain that was seen before has its row by its hash; only a new chain is taken apart.  Not
 * thread-safe, but its data is separate from that of the code that makes the samples: it changes
 * the profile's rows, places and `filtered`, and reads its tasks.
 */

enum { TALLY_SLICE = 32 /* samples that are handled together */ };

struct tally_hashed_sample {
	struct tally_chain_hash hash;
	const uint64_t *words; /* the chain; `ip` if it has no address */
	uint64_t ip;
	uint64_t user_maps, kernel_maps; /* generations of the maps */
	uint64_t period;
	uint32_t count, pid, class;
	bool is_kernel; /* the record's cpumode is kernel */
	bool is_ip;
	bool is_cut;    /* the stack went on beyond what was recorded */
	bool is_late;   /* the leaf's place is late */
};

/* A sample that only counts for its own address. */
struct tally_leaf_sample {
	uint64_t ip, period;
	uint64_t maps; /* generation of the maps that hold it: the kernel's or the process's */
	uint32_t pid, class;
	bool is_kernel, is_late;
};

/* Returns NULL when memory is out.  `options` must outlive the maker. */
struct tally_row_maker *tally_row_maker_new(struct tally_profile *profile,
					    const struct tally_profile_options *options);
void tally_row_maker_free(struct tally_row_maker *maker);

/* Returns the table that chains must be hashed with. */
const struct tally_chain_table *tally_row_maker_chains(const struct tally_row_maker *maker);

/* Adds samples.  `share` is the part of the recording read so far; 0: not known.  Returns 0 or
 * -ENOMEM. */
int tally_row_maker_add(struct tally_row_maker *maker, const struct tally_hashed_sample *samples,
			size_t count, double share);

/* Adds one sample at once.  Returns 0 or -ENOMEM. */
int tally_row_maker_add_leaf(struct tally_row_maker *maker, const struct tally_leaf_sample *sample);

/* Places-only mode: adds one sample; its hash is ignored.  Returns 0 or -ENOMEM. */
int tally_row_maker_add_places(struct tally_row_maker *maker,
			       const struct tally_hashed_sample *sample);

/* Adds a sample whose stack is the recording's chain, as places.  Returns 0 or -ENOMEM. */
int tally_row_maker_add_unwound(struct tally_row_maker *maker, uint32_t class, uint64_t period);

/* Adds a sample with a stack of one place.  Returns 0 or -ENOMEM. */
int tally_row_maker_add_place(struct tally_row_maker *maker, uint32_t class, uint32_t place,
			      uint64_t period);

/* Samples → rows.  Only profile.c uses this.
 *
 * Samples wait in a small batch, so that the memory that the table of chains will need is
 * prefetched.  The batch is emptied before any map or name of a task changes.
 */

/* Makes the reader of a profile's recording; `options` must outlive it.  Returns NULL when memory
 * is out. */
struct tally_sample_reader *tally_sample_reader_new(struct tally_profile *profile,
						    const struct tally_profile_options *options);
void tally_sample_reader_free(struct tally_sample_reader *reader);

/* Adds the sample that tally_recording_next() just gave.  Returns 0 or -ENOMEM. */
int tally_sample_reader_add(struct tally_sample_reader *reader, const struct tally_raw_record *raw,
			    const struct tally_record *record);

/* Call this after the last sample.  Returns 0 or -ENOMEM. */
int tally_sample_reader_finish(struct tally_sample_reader *reader);

/* A pipe of batches from one thread to a second one.
 *
 * The first thread fills batch tally_batch_pipe_next(), submits it and goes on with the next one.
 * The second thread works on the batches in order.  A thread that waits for the other is woken only
 * when half of the batches are ready for it: one sleep and wake-up costs as much as some hundred
 * samples.  Only the first thread calls these functions.
 */

enum { TALLY_PIPE_BATCHES = 8 };

struct tally_batch_pipe {
	pthread_t thread;
	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t work_there, work_done;
	unsigned submitted, done;
	unsigned enough;  /* the second thread wakes when this many batches wait for it */
	/* the first thread wakes when no more than this many batches wait; UINT_MAX: it is not
	 * asleep */
	unsigned awaited;
	bool is_running, is_asleep, stopping;
	int status; /* of the first batch that failed; later batches are skipped */
	int (*work)(void *context, unsigned batch);
	void *context;
};

/* Starts the second thread, which calls work(context, batch) for each batch; `work` returns 0 or
 * -errno.  Returns 0, or -errno when no thread can be started. */
int tally_batch_pipe_start(struct tally_batch_pipe *pipe,
			   int (*work)(void *context, unsigned batch), void *context);

/* Returns the number of the batch to fill. */
static inline unsigned tally_batch_pipe_next(const struct tally_batch_pipe *pipe)
{
	return pipe->submitted % TALLY_PIPE_BATCHES;
}

/* Hands over the filled batch, and waits until the next one is free.  Returns 0, or the error of a
 * batch that failed. */
int tally_batch_pipe_submit(struct tally_batch_pipe *pipe);

/* Waits until the second thread has done all batches.  Returns 0, or the error of a batch that
 * failed. */
int tally_batch_pipe_drain(struct tally_batch_pipe *pipe);

/* Drains the pipe and ends the thread.  Does nothing if the pipe was not started. */
void tally_batch_pipe_stop(struct tally_batch_pipe *pipe);

/* Decides which objects are worth fetching names for, and fetches their debug files from debuginfod
 * servers.  Used in this room only. */

/* Fetches missing files for objects without names or lines, most samples first, before any place is
 * named.  The stacks of `rows` consist of `places`.  Fetched files stay with the names' objects; a
 * file that no server has is noted in the names' gaps.  Returns 0 or -ENOMEM. */
int tally_fetch_names(struct tally_names *names, const struct tally_row_table *rows,
		      const struct tally_place_table *places);

/* After all places are named: notes the objects in which many samples have no function name.  For
 * few samples their rows in a report say enough.  Returns 0 or -ENOMEM. */
int tally_note_nameless(struct tally_profile *profile);

/* Parses one line of `perf script` text: a sample's header, or a frame of its call chain.  For
 * perf_script_text.c only. */

/* A piece of the text, without a NUL at its end. */
struct tally_text_piece {
	const char *at;
	size_t length;
};

struct tally_script_header {
	struct tally_text_piece comm, event; /* empty: left out by `-F` */
	uint32_t pid, tid;                   /* 0: not known; a single number is the tid */
	bool has_time, has_period;
	uint64_t period;
	/* the text after the event's colon: a tracepoint's text, or the only frame */
	struct tally_text_piece rest;
};

struct tally_script_frame {
	/* without "+0x…"; empty for "[unknown]" and without a name */
	struct tally_text_piece symbol;
	struct tally_text_piece object; /* empty: not known */
	bool inlined;
};

bool tally_script_header_parse(const char *line, size_t length, struct tally_script_header *header);
bool tally_script_frame_parse(const char *line, size_t length, struct tally_script_frame *frame);

#endif
