/* A hash map finds the sum of a thread and its function or stack; each decay drops faded sums and
 * packs the others together.  The second half makes a report: it turns frames into parts, merges
 * parts with equal keys, keeps the heaviest, and builds their trees. */
#include "report/report.h"

#include "abi/abi.h"
#include "base/vector.h"
#include "base/weight_sum.h"
#include "profile/profile.h"
#include "report/report_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES_MAX = 1 << 16 };

static const double FADED = 1.0 / 16; /* part of a sample; lighter sums are dropped */

/* ---- names --------------------------------------------------------------- */

static int push_functions(struct tally_live_sums *sums, const struct tally_place_name *name)
{
	struct tally_live_place named = { .first = (uint32_t)sums->functions.count,
					  .count = name->count };
	int result = 0;
	for (uint32_t i = 0; !result && i < name->count; i++)
		result = tally_vector_push(
			&sums->functions, sums->names->frames.items[name->first + i].function);
	if (result)
		return result;
	return tally_vector_push(&sums->named, named);
}

static void forget_places(struct tally_live_sums *sums)
{
	tally_place_table_release(&sums->places);
	sums->places = (struct tally_place_table){ 0 };
	sums->named.count = sums->functions.count = 0;
}

/* Names a place while its process lives.  Returns its functions, which are valid until the next
 * call; NULL when memory is out. */
static const struct tally_live_place *functions_of(struct tally_live_sums *sums,
						   const struct tally_place *place)
{
	if (sums->named.count >= PLACES_MAX)
		forget_places(sums);
	uint32_t number = tally_place_table_intern(&sums->places, place);
	if (number == UINT32_MAX)
		return NULL;
	if (number == sums->named.count) {
		size_t frames = sums->names->frames.count;
		struct tally_place_name name;
		if (tally_names_resolve(sums->names, place, 1, &name) < 0 ||
		    push_functions(sums, &name) < 0) {
			forget_places(sums);
			return NULL;
		}
		sums->names->frames.count = frames; /* only the functions are needed */
	}
	return &sums->named.items[number];
}

/* ---- samples ------------------------------------------------------------- */

static uint64_t hash_of(const struct tally_live_sums *sums, const struct tally_live_sum *sum)
{
	uint64_t hash = tally_hash64((uint64_t)sum->tid << 32 | sum->function) ^
			tally_hash64((uint64_t)sum->symbol << 32 | sum->event);
	for (uint32_t i = 1; i < sum->count; i++)
		hash = tally_hash64(hash ^ sums->frames.items[sum->first + i]);
	return hash;
}

static bool is_same(const struct tally_live_sums *sums, const struct tally_live_sum *a,
		    const struct tally_live_sum *b)
{
	const uint32_t *frames = sums->frames.items;
	return a->tid == b->tid && a->function == b->function && a->symbol == b->symbol &&
	       a->event == b->event && a->pid == b->pid && a->count == b->count &&
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
			if (tally_vector_push(&sums->sums, *key) < 0)
				return NULL;
			return &sums->sums.items[*slot];
		}
		struct tally_live_sum *sum = &sums->sums.items[*slot];
		if (is_same(sums, sum, key)) {
			sums->frames.count -= key->count;
			return sum;
		}
	}
}

static int add_place(struct tally_live_sums *sums, const struct tally_place *place,
		     struct tally_live_sum *key)
{
	const struct tally_live_place *named = functions_of(sums, place);
	for (uint32_t i = 0; named && i < named->count; i++)
		if (tally_vector_push(&sums->frames, sums->functions.items[named->first + i]) < 0)
			return -ENOMEM;
	key->count += named ? named->count : 0;
	if (named)
		return 0;
	return -ENOMEM;
}

/* Appends the functions of the chain, leaf first.  The leaf is the sample's own place. */
static int add_frames(struct tally_live_sums *sums, const struct tally_record *record, bool kernel,
		      const struct tally_place *leaf, struct tally_live_sum *key)
{
	const struct tally_place cut = { .file = TALLY_FILE_NONE, .address = TALLY_PLACE_CUT };
	const struct tally_sample *sample = &record->sample;
	struct tally_chain_walk walk = tally_chain_walk_of(sample, kernel);
	struct tally_tasks *tasks = sums->names->tasks;
	uint32_t pid = tally_space_of(record->header.misc, sample->pid).pid;
	uint64_t address;
	key->first = (uint32_t)sums->frames.count;
	if (add_place(sums, leaf, key) < 0)
		return -ENOMEM;
	uint32_t depth = 1;
	bool is_leaf = true;
	for (; depth != sums->frames_max && tally_chain_walk_next(&walk, &address);
	     is_leaf = false) {
		if (is_leaf && address == sample->ip)
			continue;
		uint32_t before = walk.is_return && address;
		struct tally_place place = tally_place_of(tasks, pid, walk.kernel,
							  address - before);
		place.before = before;
		if (add_place(sums, &place, key) < 0)
			return -ENOMEM;
		depth++;
	}
	bool is_cut = record->header.misc & TALLY_MISC_STACK_INCOMPLETE &&
		      depth != sums->frames_max;
	if (is_cut)
		return add_place(sums, &cut, key);
	return 0;
}

/* Leaves out the frames of runtimes.  The first frame that remains is the leaf. */
static int join_runtimes(struct tally_live_sums *sums, struct tally_live_sum *key)
{
	uint32_t *functions = sums->frames.items + key->first, kept = 0;
	sums->runtimes.names = sums->names;
	if (tally_vector_reserve(&sums->left_out, (size_t)key->count + 1) < 0 ||
	    tally_runtimes_note(&sums->runtimes, functions, key->count) < 0)
		return -ENOMEM;
	tally_runtimes_choose(&sums->runtimes, functions, key->count, sums->left_out.items);
	if (sums->left_out.items[0])
		key->symbol = UINT32_MAX;
	for (uint32_t i = 0; i < key->count; i++)
		if (!sums->left_out.items[i])
			functions[kept++] = functions[i];
	key->count = kept;
	sums->frames.count = key->first + kept;
	key->function = functions[0];
	if (key->symbol == UINT32_MAX)
		key->symbol = key->function;
	return 0;
}

/* A chain may begin elsewhere, where the kernel's part was left out. */
static bool is_leaf(const struct tally_sample *sample, bool kernel)
{
	struct tally_chain_walk walk = tally_chain_walk_of(sample, kernel);
	uint64_t address;
	return !tally_chain_walk_next(&walk, &address) || address == sample->ip;
}

int tally_live_sums_add(struct tally_live_sums *sums, uint32_t event, bool has_skid,
			const struct tally_record *record)
{
	const struct tally_sample *sample = &record->sample;
	struct tally_tasks *tasks = sums->names->tasks;
	const struct tally_space space = tally_space_of(record->header.misc, sample->pid);
	bool kernel = space.kernel;
	if (tally_is_guest(record->header.misc) &&
	    tally_tasks_add_guest(tasks, record->header.misc) < 0)
		return -ENOMEM;
	struct tally_place place = tally_place_of(tasks, space.pid, kernel, sample->ip);
	struct tally_live_sum key = { .event = event, .pid = sample->pid, .tid = sample->tid };
	char buffer[16];
	place.is_late = has_skid && !(record->header.misc & TALLY_MISC_EXACT_IP) &&
			is_leaf(sample, kernel);
	const struct tally_live_place *leaf = functions_of(sums, &place);
	if (!leaf)
		return -ENOMEM;
	key.function = sums->functions.items[leaf->first];
	key.symbol = sums->functions.items[leaf->first + leaf->count - 1];
	key.comm = tally_strings_intern(&tasks->strings,
					tally_tasks_comm(tasks, sample->pid, sample->tid, buffer));
	if (sums->with_stacks && add_frames(sums, record, kernel, &place, &key) < 0)
		return -ENOMEM;
	if (sums->with_stacks && sums->joins_runtimes && join_runtimes(sums, &key) < 0)
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
	forget_places(sums);
	tally_runtimes_release(&sums->runtimes);
	tally_vector_release(&sums->left_out);
	tally_vector_release(&sums->named);
	tally_vector_release(&sums->functions);
}

/* ---- the report ---------------------------------------------------------- */

/* Entries of samples that fade; with stacks, also their totals and call trees.
 *
 * A stack counts once for each entry that has one of its frames.  Trees down to callees begin at
 * the outermost of these frames, trees up to callers at the innermost, as in reports of recordings
 * (report_trees.c).  There are few stacks, and they are drawn at most twice a second, so that work
 * per frame needs no index.
 */
/* An entry, with the fractions that whole numbers would lose. */
struct part {
	struct tally_report_entry entry;
	struct tally_key_functions functions; /* one of each kind among the entry's */
	double self, total, self_samples, total_samples;
	size_t shown; /* its index in the report; SIZE_MAX: not shown */
};

struct parts {
	struct part *items;
	size_t count, capacity;
};

struct live_report {
	const struct tally_live_sums *sums;
	const struct tally_report_options *options;
	struct tally_report *report;
	struct parts parts; /* sorted by key once they are merged */
	/* by function: the name to show if objects are no key; NULL: they are, or functions
	 * aren't */
	uint32_t *symbols;
	/* by function: a number that functions with the same keys share */
	uint32_t *group_of_function;
	/* factor of weights: a faded weight may be below one, or the sum above 2^63, and trees
	 * have whole numbers of 64 bits */
	double scale;
};

enum { STACKS_SCALE = 1 << 16 };

static void make_key(const struct live_report *self, const struct tally_live_sum *sum,
		     uint32_t number, uint32_t *key)
{
	const struct tally_function *function = &self->sums->names->functions.items[number];
	const bool *by = self->options->by;
	memset(key, 0, TALLY_SORT_KEYS * sizeof(*key));
	if (by[TALLY_SORT_COMM])
		key[TALLY_SORT_COMM] = sum->comm;
	if (by[TALLY_SORT_PID])
		key[TALLY_SORT_PID] = sum->pid;
	if (by[TALLY_SORT_TID])
		key[TALLY_SORT_TID] = sum->tid;
	if (by[TALLY_SORT_OBJECT])
		key[TALLY_SORT_OBJECT] = function->object;
	if (by[TALLY_SORT_SYMBOL])
		key[TALLY_SORT_SYMBOL] = self->symbols ? self->symbols[number] : function->plain;
}

static int compare_keys(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	int order = 0;
	for (unsigned key = 0; !order && key < TALLY_SORT_KEYS; key++)
		order = (x->entry.key[key] > y->entry.key[key]) -
			(x->entry.key[key] < y->entry.key[key]);
	return order;
}

static int make_groups(struct live_report *self)
{
	const struct tally_names *names = self->sums->names;
	const struct tally_live_sum none = { 0 };
	struct tally_map groups = { 0 };
	uint32_t key[TALLY_SORT_KEYS];
	int result = 0;
	self->group_of_function = malloc((names->functions.count + 1) *
					 sizeof(*self->group_of_function));
	if (!self->group_of_function)
		return -ENOMEM;
	for (uint32_t i = 0; !result && i < names->functions.count; i++) {
		bool added = false;
		make_key(self, &none, i, key);
		uint64_t *slot = tally_map_put(&groups,
					       (uint64_t)key[TALLY_SORT_OBJECT] << 32 |
						       key[TALLY_SORT_SYMBOL],
					       &added);
		if (added)
			*slot = i;
		if (slot)
			self->group_of_function[i] = (uint32_t)*slot;
		else
			result = -ENOMEM;
	}
	tally_map_release(&groups);
	return result;
}

static bool is_left_out(const struct live_report *self, const struct tally_live_sum *sum)
{
	return self->options->leaves_out_idle &&
	       tally_function_is_idle(self->sums->names, sum->symbol,
				      tally_tasks_is_idle(self->sums->names->tasks, sum->pid,
							  sum->tid));
}

/* ---- entries ------------------------------------------------------------- */

/* True if a frame nearer to the leaf is in the same entry. */
static bool was_met(const struct live_report *self, const struct tally_live_sum *sum,
		    uint32_t frame)
{
	const uint32_t *frames = self->sums->frames.items + sum->first;
	uint32_t group = self->group_of_function[frames[frame]];
	for (uint32_t i = 0; i < frame; i++)
		if (self->group_of_function[frames[i]] == group)
			return true;
	return false;
}

static int add_part(struct live_report *self, const struct tally_live_sum *sum, uint32_t function,
		    bool is_leaf)
{
	bool is_inlined = self->sums->names->functions.items[function].kind ==
			  TALLY_FRAME_INLINED;
	struct part part = { .entry = { .function = function },
			     .functions = { is_inlined ? TALLY_REPORT_NONE : function,
					    is_inlined ? function : TALLY_REPORT_NONE },
			     .total = sum->weight,
			     .total_samples = sum->samples,
			     .self = is_leaf ? sum->weight : 0,
			     .self_samples = is_leaf ? sum->samples : 0,
			     .shown = SIZE_MAX };
	make_key(self, sum, function, part.entry.key);
	return tally_vector_push(&self->parts, part);
}

/* Notes the kinds of the frames that add_sums() counts only once. */
static void note_kind(struct live_report *self, const struct tally_live_sum *sum, uint32_t frame)
{
	const uint32_t *frames = self->sums->frames.items + sum->first;
	const struct tally_names *names = self->sums->names;
	uint32_t group = self->group_of_function[frames[frame]];
	bool is_inlined = names->functions.items[frames[frame]].kind == TALLY_FRAME_INLINED;
	for (size_t i = self->parts.count; i--;) {
		struct part *part = &self->parts.items[i];
		if (self->group_of_function[part->entry.function] != group)
			continue;
		uint32_t *function;
		if (is_inlined)
			function = &part->functions.inlined;
		else
			function = &part->functions.own;
		if (*function == TALLY_REPORT_NONE)
			*function = frames[frame];
		return;
	}
}

static int add_sums(struct live_report *self)
{
	double weight = 0, samples = 0, idle_weight = 0, idle_samples = 0;
	int result = 0;
	for (size_t i = 0; !result && i < self->sums->sums.count; i++) {
		const struct tally_live_sum *sum = &self->sums->sums.items[i];
		if (sum->event != self->options->event)
			continue;
		if (is_left_out(self, sum)) {
			idle_weight += sum->weight;
			idle_samples += sum->samples;
			continue;
		}
		weight += sum->weight;
		samples += sum->samples;
		result = add_part(self, sum, sum->function, true);
		for (uint32_t frame = 1; !result && self->options->children && frame < sum->count;
		     frame++)
			if (was_met(self, sum, frame))
				note_kind(self, sum, frame);
			else
				result = add_part(self, sum,
						  self->sums->frames.items[sum->first + frame],
						  false);
	}
	/* whole numbers have room for the sum of all */
	if (!((weight + idle_weight) * self->scale < 0x1p63))
		self->scale = 0x1p62 / (weight + idle_weight);
	self->report->period = tally_whole_number(weight * self->scale);
	self->report->samples = tally_whole_number(samples + 0.5);
	self->report->idle.period = tally_whole_number(idle_weight * self->scale);
	self->report->idle.samples = tally_whole_number(idle_samples + 0.5);
	return result;
}

/* Merges parts with equal keys. */
static void merge_parts(struct parts *parts)
{
	size_t kept = 0;
	if (parts->count)
		qsort(parts->items, parts->count, sizeof(*parts->items), compare_keys);
	for (size_t i = 0; i < parts->count; i++) {
		const struct part *part = &parts->items[i];
		if (kept && !compare_keys(&parts->items[kept - 1], part)) {
			struct part *into = &parts->items[kept - 1];
			into->self += part->self;
			into->total += part->total;
			into->self_samples += part->self_samples;
			into->total_samples += part->total_samples;
			if (into->functions.own == TALLY_REPORT_NONE)
				into->functions.own = part->functions.own;
			if (into->functions.inlined == TALLY_REPORT_NONE)
				into->functions.inlined = part->functions.inlined;
		} else {
			parts->items[kept++] = *part;
		}
	}
	parts->count = kept;
}

static int compare_weights(const void *a_, const void *b_, void *by_self)
{
	const struct part *a = *(struct part *const *)a_, *b = *(struct part *const *)b_;
	double x = *(const bool *)by_self ? a->self : a->total,
	       y = *(const bool *)by_self ? b->self : b->total;
	if (x == y && a->total != b->total)
		return a->total < b->total ? 1 : -1;
	if (x == y)
		return compare_keys(a, b);
	if (x < y)
		return 1;
	return -1;
}

/* Copies the parts that weigh enough to the report. */
static int keep_heaviest(struct live_report *self)
{
	const struct tally_report_options *options = self->options;
	size_t count = self->parts.count;
	double least = options->percent_min / 100 * (double)self->report->period / self->scale;
	bool by_self = options->by_self;
	struct part **order = malloc((count + 1) * sizeof(*order));
	int result = 0;
	if (!order)
		result = -ENOMEM;
	for (size_t i = 0; !result && i < count; i++)
		order[i] = &self->parts.items[i];
	if (!result)
		qsort_r(order, count, sizeof(*order), compare_weights, &by_self);
	for (size_t i = 0;
	     !result && i < count && (by_self ? order[i]->self : order[i]->total) >= least; i++) {
		if (options->limit && i == options->limit)
			break;
		struct tally_report_entry *entry = &order[i]->entry;
		if (options->by[TALLY_SORT_SYMBOL])
			tally_report_set_inlining(entry, &order[i]->functions);
		entry->self = tally_whole_number(order[i]->self * self->scale);
		entry->total = tally_whole_number(order[i]->total * self->scale);
		entry->self_samples = tally_whole_number(order[i]->self_samples + 0.5);
		entry->total_samples = tally_whole_number(order[i]->total_samples + 0.5);
		order[i]->shown = self->report->entries.count;
		result = tally_vector_push(&self->report->entries, *entry);
	}
	self->report->hidden = count - self->report->entries.count;
	free(order);
	return result;
}

static int count_tasks(struct live_report *self)
{
	struct tally_map comms = { 0 }, threads = { 0 };
	int result = 0;
	for (size_t i = 0; !result && i < self->sums->sums.count; i++) {
		const struct tally_live_sum *sum = &self->sums->sums.items[i];
		if (sum->event == self->options->event && !is_left_out(self, sum) &&
		    (!tally_map_put(&comms, sum->comm, NULL) ||
		     !tally_map_put(&threads, sum->tid, NULL)))
			result = -ENOMEM;
	}
	self->report->comms = comms.count;
	self->report->threads = threads.count;
	tally_map_release(&comms);
	tally_map_release(&threads);
	return result;
}

/* ---- call trees ---------------------------------------------------------- */

static struct tally_branch_node *branch_of(struct live_report *self,
					   struct tally_branch_node **list, uint32_t function)
{
	for (struct tally_branch_node *branch = *list; branch; branch = branch->sibling)
		if (branch->function == function)
			return branch;
	struct tally_branch_node *branch = tally_arena_alloc(&self->report->arena, sizeof(*branch));
	if (branch) {
		*branch = (struct tally_branch_node){ .function = function, .sibling = *list };
		*list = branch;
	}
	return branch;
}

/* Adds the frames above the frame, or below it, to the entry's tree. */
static int add_to_tree(struct live_report *self, const struct tally_live_sum *sum, uint32_t frame,
		       size_t entry)
{
	const uint32_t *frames = self->sums->frames.items + sum->first;
	struct tally_branch_node **list = &self->report->entries.items[entry].tree;
	bool up = self->options->tree == TALLY_TREE_CALLEE;
	for (uint32_t left = up ? sum->count - 1 - frame : frame; left; left--) {
		struct tally_branch_node *branch = branch_of(
			self, list, frames[up ? sum->count - left : left - 1]);
		if (!branch)
			return -ENOMEM;
		branch->weight = tally_sum_capped(branch->weight,
						  tally_whole_number(sum->weight * self->scale));
		list = &branch->child;
	}
	return 0;
}

static int add_stack(struct live_report *self, const struct tally_live_sum *sum)
{
	const uint32_t *frames = self->sums->frames.items + sum->first;
	bool up = self->options->tree == TALLY_TREE_CALLEE;
	int result = 0;
	for (uint32_t i = 0; !result && i < (self->options->children ? sum->count : 1); i++) {
		struct part key;
		if (was_met(self, sum, i))
			continue;
		make_key(self, sum, frames[i], key.entry.key);
		const struct part *part = bsearch(&key, self->parts.items, self->parts.count,
						  sizeof(key), compare_keys);
		/* the innermost frame; for trees down to callees, the outermost frame of the
		 * entry */
		uint32_t from = i, group = self->group_of_function[frames[i]];
		for (uint32_t k = sum->count; !up && self->options->children && k-- > i + 1;)
			if (self->group_of_function[frames[k]] == group) {
				from = k;
				break;
			}
		if (part && part->shown != SIZE_MAX)
			result = add_to_tree(self, sum, from, part->shown);
	}
	return result;
}

static struct tally_branch_node *sort_tree(struct tally_branch_node *first)
{
	for (struct tally_branch_node *branch = first; branch; branch = branch->sibling)
		branch->child = sort_tree(branch->child);
	return tally_report_sort_branches(first);
}

static int make_trees(struct live_report *self)
{
	int result = 0;
	for (size_t i = 0; !result && i < self->sums->sums.count; i++)
		if (self->sums->sums.items[i].event == self->options->event &&
		    self->sums->sums.items[i].count &&
		    !is_left_out(self, &self->sums->sums.items[i]))
			result = add_stack(self, &self->sums->sums.items[i]);
	for (size_t i = 0; !result && i < self->report->entries.count; i++)
		self->report->entries.items[i].tree = sort_tree(
			self->report->entries.items[i].tree);
	return result;
}

static int make_symbols(struct live_report *self)
{
	const bool *by = self->options->by;
	struct tally_names *names = self->sums->names;
	if (!by[TALLY_SORT_SYMBOL] || by[TALLY_SORT_OBJECT])
		return 0;
	self->symbols = malloc((names->functions.count + 1) * sizeof(*self->symbols));
	if (self->symbols)
		return tally_names_tell_objects_apart(names, self->symbols);
	return -ENOMEM;
}

int tally_live_sums_report(const struct tally_live_sums *sums,
			   const struct tally_report_options *options, struct tally_report *report)
{
	struct live_report self = { .sums = sums, .options = options, .report = report,
				    .scale = sums->with_stacks ? STACKS_SCALE : 1 };
	*report = (struct tally_report){ 0 };
	int result = tally_names_tell_apart(sums->names);
	if (result)
		goto out;
	result = make_symbols(&self);
	if (!result)
		result = make_groups(&self);
	if (result)
		goto out;
	result = add_sums(&self);
	if (result)
		goto out;
	merge_parts(&self.parts);
	result = count_tasks(&self);
	if (result)
		goto out;
	result = keep_heaviest(&self);
	if (result)
		goto out;
	if (options->tree != TALLY_TREE_NONE)
		result = make_trees(&self);
out:
	tally_vector_release(&self.parts);
	free(self.symbols);
	free(self.group_of_function);
	if (result < 0)
		tally_report_release(report);
	return result;
}
