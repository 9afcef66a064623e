/* An excerpt keeps the samples that bring a new place.  The meaning of an address depends on the
 * mappings of its process and of the kernel, so an address seen since their last change needs no
 * further sample.  A record of a change comes before younger samples, so this
 * is known for every sample except those older than the last change; they are always kept.
 *
 * Most samples equal their process's last one, such as those of a tracepoint hit a million times,
 * or share its outer frames: a comparison finds this.  The rest needs a dozen lookups of addresses
 * per sample, which miss the cache while stacks of kilobytes stream through it.  For clang's stacks
 * at 20 kHz that takes a microsecond per sample, as long as reading the samples again.  So the
 * excerpt is given up if it keeps more than a quarter of the samples, after the first few thousand.
 */
#include "recorder/recorder_excerpt.h"

#include "base/extremes.h"
#include "base/map.h"
#include "base/vector.h"
#include "base/weight_sum.h"
#include "task/jit.h"
#include "task/task.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- eras of mappings ---------------------------------------------------- */

/* The mappings of a process, and those of the kernel, each have an era.  It ends with any record
 * that changes them for a reader (task/task.h).  Within an era, an address keeps its meaning. */
struct map_era {
	uint64_t number;
	uint64_t since_ns; /* time of its last change; 0: no change, or one without a time */
};

/* Zero-initialised is the initial state. */
struct map_eras {
	struct tally_map processes; /* pid → index in `items` */
	struct { struct map_era *items; size_t count, capacity; } items;
	struct map_era kernel;
	uint64_t changes; /* of all eras */
};

/* Returns NULL if memory runs out. */
static struct map_era *era_of(struct map_eras *eras, uint32_t pid)
{
	bool added;
	uint64_t *slot = tally_map_put(&eras->processes, pid, &added);
	if (!slot)
		return NULL;
	if (added) {
		*slot = eras->items.count;
		if (tally_vector_push(&eras->items, (struct map_era){ 0 }) < 0) {
			tally_map_remove(&eras->processes, pid);
			return NULL;
		}
	}
	return &eras->items.items[*slot];
}

static int change(struct map_eras *eras, struct map_era *era,
		  const struct tally_record *record)
{
	if (!era)
		return -ENOMEM;
	eras->changes++;
	era->number++;
	if (record->sample_id.time > era->since_ns)
		era->since_ns = record->sample_id.time;
	return 1;
}

static int change_process(struct map_eras *eras, uint32_t pid,
			  const struct tally_record *record)
{
	if (pid == UINT32_MAX)
		return change(eras, &eras->kernel, record);
	return change(eras, era_of(eras, pid), record);
}

/* Applies a record.  Returns 1 if it is about tasks and their mappings, otherwise 0; -ENOMEM;
 * -ENOTSUP for a record with unknown effects. */
static int apply_record(struct map_eras *eras, const struct tally_record *record)
{
	switch (record->header.type) {
	case TALLY_RECORD_MMAP:
	case TALLY_RECORD_MMAP2:
		return change_process(eras, record->mmap.pid, record);
	case TALLY_RECORD_FORK:
		if (record->task.pid == record->task.parent_pid)
			return 1;
		return change_process(eras, record->task.pid, record);
	case TALLY_RECORD_COMM: /* an exec changes mappings only by the MMAPs that follow */
	case TALLY_RECORD_EXIT:
	case TALLY_RECORD_NAMESPACES:
		return 1;
	case TALLY_RECORD_KSYMBOL:
	case TALLY_RECORD_BPF_EVENT:
	case TALLY_RECORD_TEXT_POKE:
		return change(eras, &eras->kernel, record);
	case TALLY_RECORD_LOST:
	case TALLY_RECORD_LOST_SAMPLES:
	case TALLY_RECORD_THROTTLE:
	case TALLY_RECORD_UNTHROTTLE:
	case TALLY_RECORD_READ:
	case TALLY_RECORD_SWITCH:
	case TALLY_RECORD_SWITCH_CPU_WIDE:
	case TALLY_RECORD_CGROUP:
		return 0;
	}
	return -ENOTSUP;
}

static struct map_era era_now(const struct map_eras *eras, uint32_t pid)
{
	const uint64_t *slot = tally_map_get(&eras->processes, pid);
	if (!slot)
		return (struct map_era){ 0 };
	return eras->items.items[*slot];
}

static void eras_release(struct map_eras *eras)
{
	tally_map_release(&eras->processes);
	tally_vector_release(&eras->items);
	*eras = (struct map_eras){ 0 };
}

/* ---- the excerpt --------------------------------------------------------- */

#define EXCERPT_BYTES_MAX ((size_t)8 << 20)

enum {
	LASTS = 64,
	KIND_SPREAD = 7,
	LOOK_EACH = 4096 /* samples between checks whether it is worthwhile */,
	KEPT_SHARE = 4
};

/* The kind of an event's samples. */
struct kind {
	struct tally_sample_layout layout;
	uint64_t salt;
};

/* The fields of a sample that are needed. */
struct sample {
	const struct kind *kind;
	const uint8_t *record;
	struct tally_record_header header;
	const uint64_t *words; /* its chain, or its address without a chain */
	size_t count;
	uint64_t time, period;
	uint32_t pid;
	bool is_kernel; /* by the record's cpumode */
	bool has_chain;
};

/* A leaf's place is late or not, depending on these (recording.h), so an address may be two places.
 * AIM_LEAF: the sample's own address is its chain's first one. */
enum { AIM_LEAF = 1, AIM_EXACT = 2 };

/* A process's last sample of an event. */
struct last {
	const struct kind *kind;
	uint32_t pid;
	bool is_kernel;
	uint64_t changes;  /* of the eras, when the members below were set */
	uint64_t eras[2];  /* numbers: user's era, kernel's era */
	uint64_t salts[2]; /* salts of keys in these eras */
	uint64_t since_ns; /* the time of the later change */
	struct tally_last_chain chain; /* without a chain: the sample's address */
	size_t period_at;              /* leaf's entry in `leaves` (LEAF_ONE, …) */
	uint64_t leaf;                 /* first address of `chain` */
	uint64_t aim;                  /* AIM_… */
};

struct tally_recorder_excerpt {
	struct tally_buffer records;
	bool is_given_up;
	bool ends_in_round;
	struct tally_attr side_band;
	const struct tally_map *event_of_id;
	struct kind *kinds;      /* of all events except the side-band */
	size_t kind_count;
	const struct kind *kind; /* of the last event looked up, by `id`; NULL: none */
	uint64_t id;
	struct map_eras eras;
	struct tally_key_set places;
	struct tally_map leaves; /* hash → LEAF_ONE or an offset */
	struct last lasts[LASTS];
	/* the part of a sample's chain to keep */
	struct { uint64_t *items; size_t count, capacity; } chain;
	uint64_t youngest_ns;      /* latest time of the samples so far */
	uint64_t samples;
	/* `samples` at the last check; how many were kept since */
	uint64_t looked_at, kept;
	/* of the last sample, if the next can be compared by its bytes; otherwise NULL */
	const struct last *recent;
	uint64_t recent_header;    /* the first word of the last sample's record */
};

static void release(struct tally_recorder_excerpt *excerpt)
{
	tally_buffer_release(&excerpt->records);
	eras_release(&excerpt->eras);
	tally_key_set_release(&excerpt->places);
	tally_map_release(&excerpt->leaves);
	tally_vector_release(&excerpt->chain);
	for (unsigned i = 0; i < LASTS; i++)
		tally_vector_release(&excerpt->lasts[i].chain.words);
	excerpt->recent = NULL;
}

static bool give_up(struct tally_recorder_excerpt *excerpt)
{
	release(excerpt);
	excerpt->is_given_up = true;
	return false;
}

/* Returns room for a record, or NULL. */
static uint8_t *room_for(struct tally_recorder_excerpt *excerpt, size_t size)
{
	uint8_t *room = (uint8_t *)tally_buffer_room(&excerpt->records, size);
	if (!room) {
		give_up(excerpt);
		return NULL;
	}
	excerpt->records.length += size;
	excerpt->ends_in_round = false;
	return room;
}

static void keep(struct tally_recorder_excerpt *excerpt, const void *record, size_t size)
{
	uint8_t *room = room_for(excerpt, size);
	if (room)
		memcpy(room, record, size);
}

/* ---- a sample's fields --------------------------------------------------- */

static uint64_t word_at(const uint8_t *record, size_t index)
{
	uint64_t word;
	memcpy(&word, record + 8 * index, sizeof(word));
	return word;
}

static const struct kind *kind_of(struct tally_recorder_excerpt *excerpt, uint64_t id)
{
	if (excerpt->kind && excerpt->id == id)
		return excerpt->kind;
	const uint64_t *number = tally_map_get(excerpt->event_of_id, id);
	excerpt->kind = NULL;
	if (number && *number < excerpt->kind_count)
		excerpt->kind = &excerpt->kinds[*number];
	excerpt->id = id;
	return excerpt->kind;
}

/* Returns the first address of a chain; 0 if the chain is empty. */
static uint64_t leaf_of(const struct sample *sample)
{
	size_t at = 0;
	if (!sample->count)
		return 0;
	while (at + 1 < sample->count && sample->words[at] >= TALLY_CONTEXT_MAX)
		at++;
	return sample->words[at];
}

static uint64_t aim_of(const struct sample *sample)
{
	uint64_t aim = 0;
	if (sample->header.misc & TALLY_MISC_EXACT_IP)
		aim |= AIM_EXACT;
	if (word_at(sample->record, sample->kind->layout.ip) == leaf_of(sample))
		aim |= AIM_LEAF;
	return aim;
}

static bool has_address(const uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (words[i] < TALLY_CONTEXT_MAX)
			return true;
	return false;
}

/* Reads a sample.  Returns false when it is of no known event or too short. */
static bool read_sample(struct tally_recorder_excerpt *excerpt, const uint8_t *record,
			struct sample *out)
{
	struct tally_record_header header;
	memcpy(&header, record, sizeof(header));
	if (header.size < 16)
		return false;
	const struct kind *kind = kind_of(excerpt, word_at(record, 1));
	if (!kind)
		return false;
	const struct tally_sample_layout *layout = &kind->layout;
	size_t least = 8 * ((size_t)layout->words + layout->has_chain);
	if (header.size < least)
		return false;
	const struct tally_space space = tally_space_of(
		header.misc, (uint32_t)word_at(record, layout->tid));
	uint64_t count = 0;
	if (layout->has_chain)
		count = word_at(record, layout->words);
	if (count > (header.size - least) / 8)
		return false;
	*out = (struct sample){
		.kind = kind, .record = record, .header = header,
		.words = (const uint64_t *)(const void *)(record + least), .count = count,
		.time = word_at(record, layout->time), .period = word_at(record, layout->period),
		.pid = space.pid,
		.is_kernel = space.kernel,
		.has_chain = has_address((const uint64_t *)(const void *)(record + least), count),
	};
	if (!out->has_chain) {
		out->words = (const uint64_t *)(const void *)(record + 8 * layout->ip);
		out->count = 1;
	}
	return true;
}

/* ---- the last sample of its process -------------------------------------- */

/* Updates the eras.  In a new era the meaning of the last chain's words is unknown. */
static void update_eras(const struct map_eras *eras, struct last *last)
{
	const struct map_era user = era_now(eras, last->pid), kernel = eras->kernel;
	if (last->eras[0] != user.number || last->eras[1] != kernel.number)
		last->chain.words.count = 0;
	last->eras[0] = user.number;
	last->eras[1] = kernel.number;
	last->salts[0] = tally_hash64(((uint64_t)last->pid << 32 ^ user.number) * 2);
	last->salts[1] = tally_hash64(kernel.number * 2 + 1);
	last->since_ns = tally_max_u64(user.since_ns, kernel.since_ns);
	last->changes = eras->changes;
}

static struct last *last_of(struct tally_recorder_excerpt *excerpt, const struct sample *sample)
{
	size_t number = (size_t)(sample->kind - excerpt->kinds);
	struct last *last = &excerpt->lasts[(sample->pid + KIND_SPREAD * number) % LASTS];
	bool is_its = last->pid == sample->pid && last->kind == sample->kind &&
		      last->is_kernel == sample->is_kernel;
	if (!is_its) {
		last->pid = sample->pid;
		last->kind = sample->kind;
		last->is_kernel = sample->is_kernel;
		last->chain.words.count = 0;
	}
	if (!is_its || last->changes != excerpt->eras.changes)
		update_eras(&excerpt->eras, last);
	return last;
}

/* ---- new places of a sample ---------------------------------------------- */

static uint64_t key_of(const struct last *last, bool kernel, bool is_return, uint64_t address)
{
	return tally_hash64(address ^ last->salts[kernel]) + is_return;
}

/* For a sample without an address in its chain: adds its own address. */
static bool add_address(struct tally_recorder_excerpt *excerpt, const struct last *last,
			const struct sample *sample, uint64_t *leaf_key)
{
	uint64_t key = key_of(last, sample->is_kernel, false, *sample->words);
	int added = tally_key_set_put(&excerpt->places, key);
	*leaf_key = tally_hash64(key ^ sample->kind->salt);
	if (added < 0)
		return give_up(excerpt);
	return added;
}

/* Gathers the part of a chain to keep: its new places, and the innermost address of each context,
 * which is no return address.  Returns true if a place is new.  Sets `leaf_key`. */
static bool gather_news(struct tally_recorder_excerpt *excerpt, struct last *last,
			const struct sample *sample, struct tally_chain_news *news,
			uint64_t *leaf_key)
{
	const struct tally_chain_walk *walk = &news->walk;
	uint64_t address, *out;
	bool is_new = false;
	if (tally_vector_reserve(&excerpt->chain, 2 * sample->count) < 0)
		return give_up(excerpt);
	for (out = excerpt->chain.items; tally_chain_news_next(news, &last->chain, &address);) {
		uint64_t key = key_of(last, walk->kernel, walk->is_return, address);
		int added = tally_key_set_put(&excerpt->places, key);
		if (added < 0)
			return give_up(excerpt);
		is_new |= added;
		if (out == excerpt->chain.items)
			*leaf_key = tally_hash64(key ^ sample->kind->salt);
		if (!walk->is_return)
			*out++ = walk->kernel ? TALLY_CONTEXT_KERNEL : TALLY_CONTEXT_USER;
		if (!walk->is_return || added)
			*out++ = address;
	}
	excerpt->chain.count = (size_t)(out - excerpt->chain.items);
	return is_new;
}

/* Keeps a sample, with the gathered chain. */
static void keep_sample(struct tally_recorder_excerpt *excerpt, const struct sample *sample)
{
	struct tally_record_header header = sample->header;
	uint64_t count = excerpt->chain.count;
	if (!sample->has_chain || count >= sample->count) {
		keep(excerpt, sample->record, header.size);
		return;
	}
	size_t chain = (size_t)((const uint8_t *)sample->words - sample->record),
	       behind = chain + 8 * sample->count;
	header.size = (uint16_t)(header.size - 8 * (sample->count - count));
	uint8_t *room = room_for(excerpt, header.size);
	if (!room)
		return;
	memcpy(room, sample->record, chain);
	memcpy(room, &header, sizeof(header));
	memcpy(room + chain - sizeof(count), &count, sizeof(count));
	memcpy(room + chain, excerpt->chain.items, 8 * count);
	memcpy(room + chain + 8 * count, sample->record + behind, sample->header.size - behind);
}

/* Value of a leaf: no sample kept; one kept; otherwise the offset of the second one's period, which
 * collects the periods of all further samples. */
enum { LEAF_NONE, LEAF_ONE };

static void add_period(struct tally_recorder_excerpt *excerpt, size_t at, uint64_t period)
{
	uint64_t sum;
	memcpy(&sum, excerpt->records.bytes + at, sizeof(sum));
	sum = tally_sum_capped(sum, period);
	memcpy(excerpt->records.bytes + at, &sum, sizeof(sum));
}

/* Adds a sample whose chain or aim differs from the last. */
static void add_chain(struct tally_recorder_excerpt *excerpt, struct last *last,
		      const struct sample *sample, struct tally_chain_news *news)
{
	uint64_t leaf_key = 0;
	uint64_t aim = aim_of(sample);
	bool is_kept;
	uint64_t *leaf = NULL;
	if (sample->has_chain)
		is_kept = gather_news(excerpt, last, sample, news, &leaf_key);
	else
		is_kept = add_address(excerpt, last, sample, &leaf_key);
	if (!excerpt->is_given_up)
		leaf = tally_map_put(&excerpt->leaves, tally_hash64(leaf_key ^ aim), NULL);
	if (!leaf || tally_last_chain_set(&last->chain, news, sample->words, sample->count) < 0) {
		give_up(excerpt);
		return;
	}
	is_kept |= *leaf <= LEAF_ONE;
	if (*leaf == LEAF_ONE)
		*leaf = excerpt->records.length + 8 * (size_t)sample->kind->layout.period;
	else if (*leaf == LEAF_NONE)
		*leaf = LEAF_ONE;
	last->period_at = *leaf;
	last->leaf = leaf_of(sample);
	last->aim = aim;
	excerpt->kept += is_kept;
	if (is_kept)
		keep_sample(excerpt, sample);
	else
		add_period(excerpt, last->period_at, sample->period);
}

/* ---- samples ------------------------------------------------------------- */

/* True if all fields that matter equal those of the last sample. */
static inline bool is_as_recent(const struct tally_recorder_excerpt *excerpt, const uint8_t *record)
{
	const struct last *last = excerpt->recent;
	if (!last || word_at(record, 0) != excerpt->recent_header ||
	    word_at(record, 1) != excerpt->id)
		return false;
	const struct tally_sample_layout *layout = &last->kind->layout;
	const __typeof__(last->chain.words) *words = &last->chain.words;
	if ((uint32_t)word_at(record, layout->tid) != last->pid ||
	    last->changes != excerpt->eras.changes ||
	    word_at(record, layout->time) <= last->since_ns)
		return false;
	if (!layout->has_chain)
		return word_at(record, layout->ip) == *last->chain.words.items;
	/* the header has the other part of the aim */
	if ((word_at(record, layout->ip) == last->leaf) != (last->aim & AIM_LEAF))
		return false;
	return word_at(record, layout->words) == words->count &&
	       !memcmp(record + 8 * ((size_t)layout->words + 1), words->items, 8 * words->count);
}

static inline void note_time(struct tally_recorder_excerpt *excerpt, uint64_t time)
{
	if (time > excerpt->youngest_ns)
		excerpt->youngest_ns = time;
}

/* A cookie follows, and another record has the rest of the stack.  tally's recorders never enable
 * this. */
static bool is_to_be_continued(const uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (words[i] == TALLY_CONTEXT_USER_DEFERRED)
			return true;
	return false;
}

static void add_sample(struct tally_recorder_excerpt *excerpt, const struct sample *sample)
{
	struct last *last = last_of(excerpt, sample);
	note_time(excerpt, sample->time);
	if (sample->time <= last->since_ns) {
		excerpt->kept++;
		keep(excerpt, sample->record, sample->header.size);
		return;
	}
	struct tally_chain_news news = tally_chain_news_of(&last->chain, sample->words,
							   sample->count, sample->is_kernel);
	if (sample->has_chain && is_to_be_continued(sample->words, news.from)) {
		give_up(excerpt);
		return;
	}
	bool is_same = !news.from && sample->count == last->chain.words.count &&
		       aim_of(sample) == last->aim;
	if (is_same && last->period_at > LEAF_ONE)
		add_period(excerpt, last->period_at, sample->period);
	else
		add_chain(excerpt, last, sample, &news);
	if (excerpt->is_given_up || last->period_at <= LEAF_ONE ||
	    sample->has_chain != sample->kind->layout.has_chain)
		return;
	excerpt->recent = last;
	excerpt->recent_header = word_at(sample->record, 0);
}

static bool is_worth_it(struct tally_recorder_excerpt *excerpt)
{
	if (excerpt->samples - excerpt->looked_at < LOOK_EACH)
		return true;
	bool is_beginning = !excerpt->looked_at; /* at first everything is new */
	bool is_worth_it = is_beginning ||
			   excerpt->kept * KEPT_SHARE <= excerpt->samples - excerpt->looked_at;
	excerpt->looked_at = excerpt->samples;
	excerpt->kept = 0;
	return is_worth_it;
}

void tally_recorder_excerpt_add_sample(struct tally_recorder_excerpt *excerpt, const void *record)
{
	const struct last *recent = excerpt->recent;
	struct sample sample;
	if (excerpt->is_given_up)
		return;
	excerpt->samples++;
	if (is_as_recent(excerpt, record)) {
		note_time(excerpt, word_at(record, recent->kind->layout.time));
		add_period(excerpt, recent->period_at,
			   word_at(record, recent->kind->layout.period));
		return;
	}
	excerpt->recent = NULL;
	if (is_worth_it(excerpt) && read_sample(excerpt, record, &sample))
		add_sample(excerpt, &sample);
	else
		give_up(excerpt);
}

/* ---- records of tasks ---------------------------------------------------- */

/* True if readers need the record to name places.  Gives the excerpt up for a record with unknown
 * effects, for a JIT's dump, whose code depends on the time, and for a change that comes after
 * younger samples. */
static bool is_needed(struct tally_recorder_excerpt *excerpt, const void *bytes,
		      const struct tally_record_header *header)
{
	struct tally_record record;
	if (header->type >= TALLY_RECORD_USER_START)
		return true;
	if (tally_record_decode(&excerpt->side_band, bytes, header->size, &record) < 0)
		return give_up(excerpt);
	bool is_map = header->type == TALLY_RECORD_MMAP || header->type == TALLY_RECORD_MMAP2;
	uint64_t changes = excerpt->eras.changes;
	if (is_map && tally_jits_is_dump(record.mmap.filename))
		return give_up(excerpt);
	int applied = apply_record(&excerpt->eras, &record);
	bool is_late = excerpt->eras.changes != changes &&
		       record.sample_id.time < excerpt->youngest_ns;
	if (applied < 0 || is_late)
		return give_up(excerpt);
	return applied;
}

void tally_recorder_excerpt_add(struct tally_recorder_excerpt *excerpt, const void *records,
				size_t size)
{
	struct tally_record_header header;
	for (size_t at = 0; !excerpt->is_given_up && size - at >= sizeof(header);
	     at += header.size) {
		const uint8_t *bytes = (const uint8_t *)records + at;
		memcpy(&header, bytes, sizeof(header));
		if (header.size < sizeof(header) || header.size > size - at)
			return;
		bool is_round = header.type == TALLY_RECORD_FINISHED_ROUND;
		if ((is_round && excerpt->ends_in_round) || !is_needed(excerpt, bytes, &header))
			continue;
		keep(excerpt, bytes, header.size);
		excerpt->ends_in_round = is_round;
	}
}

/* ---- beginning and end --------------------------------------------------- */

/* Fields with places outside the sample's chain, or with data for a chain that must still be
 * made. */
#define FOREIGN_PLACES \
	(TALLY_SAMPLE_READ | TALLY_SAMPLE_BRANCH_STACK | TALLY_SAMPLE_STACK_USER | \
	 TALLY_SAMPLE_REGS_USER)

static bool kind_init(struct kind *kind, const struct tally_attr *attr, size_t number)
{
	const uint64_t needed = TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP | TALLY_SAMPLE_TID |
				TALLY_SAMPLE_TIME | TALLY_SAMPLE_PERIOD;
	tally_sample_layout_init(&kind->layout, attr);
	kind->salt = tally_hash64(number + 1);
	return (attr->sample_type & (needed | FOREIGN_PLACES)) == needed;
}

struct tally_recorder_excerpt *tally_recorder_excerpt_new(const struct tally_attr *const *attrs,
							  size_t count,
							  const struct tally_map *event_of_id)
{
	struct tally_recorder_excerpt *excerpt = calloc(1, sizeof(*excerpt));
	if (!excerpt)
		return NULL;
	excerpt->event_of_id = event_of_id;
	excerpt->side_band = *attrs[count - 1];
	excerpt->records.maximum = EXCERPT_BYTES_MAX;
	excerpt->kinds = calloc(count, sizeof(*excerpt->kinds));
	excerpt->kind_count = count - 1;
	bool fits = excerpt->kinds;
	for (size_t i = 0; fits && i < excerpt->kind_count; i++)
		fits = kind_init(&excerpt->kinds[i], attrs[i], i);
	if (fits)
		return excerpt;
	tally_recorder_excerpt_free(excerpt);
	return NULL;
}

bool tally_recorder_excerpt_take(struct tally_recorder_excerpt *excerpt, struct tally_buffer *out)
{
	*out = excerpt->records;
	excerpt->records = (struct tally_buffer){ 0 };
	bool is_whole = !excerpt->is_given_up;
	give_up(excerpt);
	return is_whole;
}

void tally_recorder_excerpt_free(struct tally_recorder_excerpt *excerpt)
{
	if (!excerpt)
		return;
	release(excerpt);
	free(excerpt->kinds);
	free(excerpt);
}
