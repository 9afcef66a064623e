#include "report/live_sums.h"

#include "abi/chain_walk.h"
#include "base/vector.h"

#include <errno.h>
#include <string.h>

static const double FADED = 1.0 / 16; /* part of a sample; lighter sums are dropped */

/* ---- samples ------------------------------------------------------------- */

static uint64_t hash_of(const struct tally_live_sums *sums, const struct tally_live_sum *sum)
{
	uint64_t hash = tally_hash64((uint64_t)sum->tid << 32 | sum->function) ^ sum->event;
	for (uint32_t i = 1; i < sum->count; i++)
		hash = tally_hash64(hash ^ sums->frames.items[sum->first + i]);
	return hash;
}

static bool is_same(const struct tally_live_sums *sums, const struct tally_live_sum *a,
		    const struct tally_live_sum *b)
{
	const uint32_t *frames = sums->frames.items;
	return a->tid == b->tid && a->function == b->function && a->event == b->event &&
	       a->pid == b->pid && a->count == b->count &&
	       (!a->count ||
		!memcmp(frames + a->first, frames + b->first, a->count * sizeof(*frames)));
}

/* Returns the sum of a thread and a function or stack, added when new; NULL when memory is out.
 * The frames of `key` are the last ones in `frames`: they are kept only for a new sum. */
static struct tally_live_sum *sum_of(struct tally_live_sums *sums, const struct tally_live_sum *key)
{
	for (uint64_t hash = hash_of(sums, key);; hash++) {
		bool added;
		uint64_t *slot = tally_map_put(&sums->index, hash, &added);
		if (!slot)
			return NULL;
		if (added) {
			*slot = sums->sums.count;
			return tally_vector_push(&sums->sums, *key) < 0 ? NULL
									: &sums->sums.items[*slot];
		}
		struct tally_live_sum *sum = &sums->sums.items[*slot];
		if (is_same(sums, sum, key)) {
			sums->frames.count -= key->count;
			return sum;
		}
	}
}

static int add_frame(struct tally_live_sums *sums, const struct tally_place *place,
		     struct tally_live_sum *key)
{
	uint32_t function = tally_names_function(sums->names, place, NULL);
	if (function == UINT32_MAX || tally_vector_push(&sums->frames, function) < 0)
		return -ENOMEM;
	key->count++;
	return 0;
}

/* Appends the functions of the chain, leaf first.  The leaf is the sample's own function. */
static int add_frames(struct tally_live_sums *sums, const struct tally_record *record, bool kernel,
		      struct tally_live_sum *key)
{
	const struct tally_place cut = { .file = TALLY_FILE_NONE, .address = TALLY_PLACE_CUT };
	const struct tally_sample *sample = &record->sample;
	struct tally_chain_walk walk = tally_chain_walk_of(sample, kernel);
	struct tally_tasks *tasks = sums->names->tasks;
	uint64_t address;
	key->first = (uint32_t)sums->frames.count;
	if (tally_vector_push(&sums->frames, key->function) < 0)
		return -ENOMEM;
	key->count = 1;
	bool is_leaf = true;
	for (; key->count != sums->frames_max && tally_chain_walk_next(&walk, &address);
	     is_leaf = false) {
		if (is_leaf && address == sample->ip)
			continue;
		uint32_t before = walk.is_return && address;
		struct tally_place place = tally_place_of(tasks, sample->pid, walk.kernel,
							  address - before);
		place.before = before;
		if (add_frame(sums, &place, key) < 0)
			return -ENOMEM;
	}
	bool is_cut = record->header.misc & TALLY_MISC_STACK_INCOMPLETE &&
		      key->count != sums->frames_max;
	return is_cut ? add_frame(sums, &cut, key) : 0;
}

int tally_live_sums_add(struct tally_live_sums *sums, uint32_t event,
			const struct tally_record *record)
{
	const struct tally_sample *sample = &record->sample;
	struct tally_tasks *tasks = sums->names->tasks;
	bool kernel = (record->header.misc & TALLY_MISC_CPUMODE_MASK) == TALLY_MISC_KERNEL;
	struct tally_place place = tally_place_of(tasks, sample->pid, kernel, sample->ip);
	struct tally_live_sum key = { .event = event, .pid = sample->pid, .tid = sample->tid };
	char buffer[16];
	key.function = tally_names_function(sums->names, &place, NULL);
	key.comm = tally_strings_intern(&tasks->strings,
					tally_tasks_comm(tasks, sample->pid, sample->tid, buffer));
	if (key.function == UINT32_MAX ||
	    (sums->with_stacks && add_frames(sums, record, kernel, &key) < 0))
		return -ENOMEM;
	struct tally_live_sum *sum = sum_of(sums, &key);
	if (!sum)
		return -ENOMEM;
	sum->comm = key.comm;
	sum->weight += (double)(sample->period ? sample->period : 1);
	sum->samples += 1;
	return 0;
}

/* Moves the frames of the remaining sums together; they are in the order of the sums. */
static void pack_frames(struct tally_live_sums *sums)
{
	uint32_t used = 0;
	for (size_t i = 0; i < sums->sums.count; i++) {
		struct tally_live_sum *sum = &sums->sums.items[i];
		if (sum->count)
			memmove(sums->frames.items + used, sums->frames.items + sum->first,
				sum->count * sizeof(*sums->frames.items));
		sum->first = used;
		used += sum->count;
	}
	sums->frames.count = used;
}

int tally_live_sums_decay(struct tally_live_sums *sums, double factor)
{
	size_t kept = 0;
	for (size_t i = 0; i < sums->sums.count; i++) {
		struct tally_live_sum sum = sums->sums.items[i];
		sum.weight *= factor;
		sum.samples *= factor;
		if (sum.samples >= FADED)
			sums->sums.items[kept++] = sum;
	}
	sums->sums.count = kept;
	pack_frames(sums);
	tally_map_release(&sums->index);
	sums->index = (struct tally_map){ 0 };
	for (size_t i = 0; i < kept; i++) {
		bool added = false;
		for (uint64_t hash = hash_of(sums, &sums->sums.items[i]); !added; hash++) {
			uint64_t *slot = tally_map_put(&sums->index, hash, &added);
			if (!slot)
				return -ENOMEM;
			if (added)
				*slot = i;
		}
	}
	return 0;
}

void tally_live_sums_release(struct tally_live_sums *sums)
{
	tally_vector_release(&sums->sums);
	tally_vector_release(&sums->frames);
	tally_map_release(&sums->index);
}
