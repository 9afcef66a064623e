/* Sums a profile as perf's report does: entries by symbol or address, and trees of call chains.
 *
 * A tree is first a trie of single frames, found by (node, symbol) in one map.  Then a frame that
 * is the only one below another joins its node, unless a chain ends between them: these are perf's
 * nodes, which it prints as one block. */
#include "base/map.h"
#include "base/vector.h"
#include "report/report_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A frame of one entry's tree. */
struct step {
	uint32_t symbol;
	uint32_t child, sibling; /* numbers of steps; 0: none */
	bool ends;               /* a chain ends here */
	uint64_t hit, count;     /* of chains that end here */
};

struct cursor_frame {
	uint32_t symbol, place;
	bool is_kernel, is_known; /* is_known: perf knows the mapping of its address */
};

struct builder {
	const struct tally_profile *profile;
	const struct tally_perf_sums_options *options;
	struct tally_perf_sums *sums;
	struct tally_map symbols; /* key of a symbol → index + 1 of the first one with the key */
	struct { uint32_t *items; size_t count, capacity; } next_symbol; /* index + 1; 0: none */
	struct tally_map same; /* hash of object, start and name → index + 1 of the first one */
	struct tally_map entries; /* hash of keys → index + 1 of the first entry */
	struct { uint32_t *items; size_t count, capacity; } next_entry;
	struct { uint32_t *items; size_t count, capacity; } roots; /* by entry: its first step */
	struct { struct step *items; size_t count, capacity; } steps; /* step 0 is none */
	struct tally_map step_index; /* step << 32 | symbol → step */
	struct { struct cursor_frame *items; size_t count, capacity; } cursor;
	struct { uint32_t *items; size_t count, capacity; } met; /* entries of one chain */
	uint32_t *symbol_of_place; /* + 1; 0: not known yet */
	uint32_t member; /* whose rows are read */
};

static const struct tally_function *function_of(const struct builder *builder, uint32_t function)
{
	return &builder->profile->recording->names.functions.items[function];
}

const char *tally_perf_symbol_name(const struct tally_profile *profile,
				   const struct tally_perf_symbol *symbol)
{
	if (!symbol->is_named)
		return NULL;
	return tally_names_text(&profile->recording->names, symbol->function);
}

/* ---- symbols -------------------------------------------------------------- */

/* Returns the function of a place.  perf looks a return address up itself: behind a call that does
 * not return, this may be the next function. */
static uint32_t function_at(struct builder *builder, uint32_t place)
{
	const struct tally_profile *profile = builder->profile;
	struct tally_place at = profile->places.places.items[place];
	uint64_t offset;
	uint32_t function = tally_profile_symbol(profile, place);
	if (!at.before || at.file == TALLY_FILE_NONE ||
	    function_of(builder, function)->name == TALLY_STRING_NONE)
		return function;
	at.address += at.before;
	at.before = 0;
	return tally_names_function(&profile->recording->names, &at, &offset);
}

/* Sets `entry` of a new symbol.  Returns 0 or -ENOMEM. */
static int find_same(struct builder *builder, struct tally_perf_symbol *symbol)
{
	const struct tally_function *function = function_of(builder, symbol->function);
	uint64_t *same = tally_map_put(&builder->same,
				       tally_hash64(function->start) ^
					       ((uint64_t)symbol->object << 32 | function->name),
				       NULL);
	if (!same)
		return -ENOMEM;
	if (*same) {
		const struct tally_perf_symbol *other = &builder->sums->symbols.items[*same - 1];
		const struct tally_function *known = function_of(builder, other->function);
		if (other->object == symbol->object && known->start == function->start &&
		    known->name == function->name)
			symbol->entry = (uint32_t)*same - 1;
	} else {
		*same = (uint64_t)symbol->entry + 1;
	}
	return 0;
}

/* Returns the string id of the object's name in perf's report: that of a map of JIT code has the
 * process's number.  TALLY_STRING_NONE when memory is out. */
static uint32_t intern_object(struct tally_names *names, uint32_t function)
{
	char map[TALLY_PERF_MAP_PATH_BYTES], text[32];
	const char *path = tally_names_mapped_object(names, function, map);
	unsigned pid;
	if (sscanf(tally_object_basename(path), "perf-%u.map", &pid) != 1)
		return tally_strings_intern(&names->strings,
					    tally_names_short_object(names, function));
	snprintf(text, sizeof(text), "[JIT] tid %u", pid);
	return tally_strings_intern(&names->strings, text);
}

/* Returns the number of the symbol of a function at an address; UINT32_MAX when memory is out. */
static uint32_t intern_symbol(struct builder *builder, uint32_t function, uint64_t address)
{
	struct tally_names *names = &builder->profile->recording->names;
	struct tally_perf_symbol symbol = {
		.function = function,
		.is_named = function_of(builder, function)->name != TALLY_STRING_NONE,
	};
	if (!symbol.is_named)
		symbol.address = address;
	symbol.object = intern_object(names, function);
	if (symbol.object == TALLY_STRING_NONE)
		return UINT32_MAX;
	uint64_t key = function;
	if (!symbol.is_named)
		key = tally_hash64(symbol.address) | UINT64_C(1) << 63;
	uint64_t *first = tally_map_put(&builder->symbols, key, NULL);
	if (!first)
		return UINT32_MAX;
	for (uint32_t i = (uint32_t)*first; i; i = builder->next_symbol.items[i - 1]) {
		const struct tally_perf_symbol *other = &builder->sums->symbols.items[i - 1];
		if (other->is_named == symbol.is_named && other->address == symbol.address &&
		    other->object == symbol.object &&
		    (!symbol.is_named || other->function == function))
			return i - 1;
	}
	uint32_t number = (uint32_t)builder->sums->symbols.count;
	symbol.entry = number;
	if (symbol.is_named && find_same(builder, &symbol) < 0)
		return UINT32_MAX;
	if (tally_vector_push(&builder->sums->symbols, symbol) < 0 ||
	    tally_vector_push(&builder->next_symbol, (uint32_t)*first) < 0)
		return UINT32_MAX;
	*first = (uint64_t)number + 1;
	return number;
}

static uint32_t symbol_of(struct builder *builder, uint32_t place)
{
	const struct tally_place *at = &builder->profile->places.places.items[place];
	uint32_t *known = &builder->symbol_of_place[place];
	if (!*known) {
		uint32_t function = function_at(builder, place);
		if (function == UINT32_MAX)
			return UINT32_MAX;
		uint32_t symbol = intern_symbol(builder, function, at->address + at->before);
		if (symbol == UINT32_MAX)
			return UINT32_MAX;
		*known = builder->sums->symbols.items[symbol].entry + 1;
	}
	return *known - 1;
}

static bool is_kernel(const struct builder *builder, uint32_t place, uint32_t function)
{
	const struct tally_place *at = &builder->profile->places.places.items[place];
	if (at->file == TALLY_FILE_KERNEL)
		return true;
	if (at->file == TALLY_FILE_NONE)
		return at->address >> 63;
	return tally_frame_kind_of_object(
		       tally_names_object(&builder->profile->recording->names, function)) ==
	       TALLY_FRAME_KERNEL;
}

/* ---- the chain of a row --------------------------------------------------- */

static int push_frame(struct builder *builder, uint32_t place)
{
	const struct tally_place *at = &builder->profile->places.places.items[place];
	struct cursor_frame frame = { .place = place };
	if (at->file == TALLY_FILE_NONE && at->address == TALLY_PLACE_CUT)
		return 0;
	frame.symbol = symbol_of(builder, place);
	if (frame.symbol == UINT32_MAX)
		return -ENOMEM;
	const struct tally_perf_symbol *symbol = &builder->sums->symbols.items[frame.symbol];
	frame.is_known = symbol->is_named || at->file != TALLY_FILE_NONE;
	frame.is_kernel = is_kernel(builder, place, symbol->function);
	return tally_vector_push(&builder->cursor, frame);
}

/* Reads the row's chain in the order of the trees, and its leaf.  Returns 0 or -ENOMEM. */
static int read_chain(struct builder *builder, size_t row, struct cursor_frame *leaf)
{
	const struct tally_profile *profile = builder->profile;
	const uint8_t *end, *at = tally_row_stack(&profile->rows, row, &end);
	bool wants_chain = builder->options->chains || builder->options->children;
	builder->cursor.count = 0;
	while (at < end && (wants_chain || !builder->cursor.count))
		if (push_frame(builder, tally_stack_next_place(&at)) < 0)
			return -ENOMEM;
	if (builder->cursor.count)
		*leaf = builder->cursor.items[0];
	size_t count = builder->cursor.count;
	for (size_t i = 0; builder->options->from_caller && i < count / 2; i++) {
		struct cursor_frame frame = builder->cursor.items[i];
		builder->cursor.items[i] = builder->cursor.items[count - 1 - i];
		builder->cursor.items[count - 1 - i] = frame;
	}
	if (builder->options->frames_max && count > builder->options->frames_max)
		builder->cursor.count = builder->options->frames_max;
	return 0;
}

/* ---- entries -------------------------------------------------------------- */

static uint32_t tid_of(const struct tally_profile *profile, uint32_t thread)
{
	const struct tally_tasks *tasks = &profile->recording->tasks;
	return thread < tasks->threads.count ? tasks->threads.items[thread].tid : UINT32_MAX;
}

static struct tally_perf_weight *new_weights(struct builder *builder)
{
	size_t count = builder->options->members;
	struct tally_perf_weight *weights = tally_arena_array(&builder->sums->arena, count,
							      sizeof(*weights));
	if (weights)
		memset(weights, 0, count * sizeof(*weights));
	return weights;
}

/* Returns the number of the entry of a frame, which is made if it is new; UINT32_MAX when memory is
 * out. */
static uint32_t entry_of(struct builder *builder, const struct tally_class *class,
			 const struct cursor_frame *frame, bool shown_as_kernel)
{
	const struct tally_profile *profile = builder->profile;
	const bool *by = builder->options->by;
	const struct tally_perf_symbol *symbol = &builder->sums->symbols.items[frame->symbol];
	struct tally_perf_entry entry = { .is_kernel = shown_as_kernel, .thread = class->thread };
	uint32_t *key = entry.key;
	if (by[TALLY_PERF_PID])
		key[TALLY_PERF_PID] = tid_of(profile, class->thread);
	if (by[TALLY_PERF_COMM])
		key[TALLY_PERF_COMM] = class->comm;
	if (by[TALLY_PERF_OBJECT])
		key[TALLY_PERF_OBJECT] = symbol->object;
	if (by[TALLY_PERF_SYMBOL])
		key[TALLY_PERF_SYMBOL] = frame->symbol;
	if (by[TALLY_PERF_LINE])
		key[TALLY_PERF_LINE] = tally_report_source_line(profile, frame->place, 0);
	if (by[TALLY_PERF_FILE])
		key[TALLY_PERF_FILE] = tally_report_source_file(profile, frame->place, 0);
	if (by[TALLY_PERF_CPU])
		key[TALLY_PERF_CPU] = class->cpu;
	if (by[TALLY_PERF_TRACE] && class->facts)
		key[TALLY_PERF_TRACE] = *tally_fact(&profile->facts.facts.items[class->facts - 1],
						    TALLY_SORT_TRACE);
	uint64_t hash = 0;
	for (unsigned i = 0; i < TALLY_PERF_KEYS; i++) {
		if (key[i] == TALLY_STRING_NONE && (i == TALLY_PERF_LINE || i == TALLY_PERF_FILE))
			return UINT32_MAX;
		hash = tally_hash64(hash + key[i] + 1);
	}
	uint64_t *first = tally_map_put(&builder->entries, hash, NULL);
	if (!first)
		return UINT32_MAX;
	for (uint32_t i = (uint32_t)*first; i; i = builder->next_entry.items[i - 1])
		if (!memcmp(builder->sums->entries.items[i - 1].key, key, sizeof(entry.key)))
			return i - 1;
	entry.weights = new_weights(builder);
	if (!entry.weights || tally_vector_push(&builder->sums->entries, entry) < 0 ||
	    tally_vector_push(&builder->next_entry, (uint32_t)*first) < 0 ||
	    tally_vector_push(&builder->roots, 0) < 0)
		return UINT32_MAX;
	*first = builder->sums->entries.count;
	return (uint32_t)*first - 1;
}

/* ---- trees ---------------------------------------------------------------- */

static int add_step(struct builder *builder, struct step step, uint32_t *number)
{
	if (builder->steps.count >= UINT32_MAX || tally_vector_push(&builder->steps, step) < 0)
		return -ENOMEM;
	*number = (uint32_t)builder->steps.count - 1;
	return 0;
}

/* Adds the cursor's frames from number `from` to the entry's tree. */
static int add_chain(struct builder *builder, uint32_t entry, size_t from,
		     const struct tally_row *row)
{
	struct tally_perf_entry *item = &builder->sums->entries.items[entry];
	size_t count = builder->cursor.count;
	if (!builder->options->chains || from >= count || builder->member)
		return 0;
	if (count - from > item->depth)
		item->depth = count - from;
	uint32_t *root = &builder->roots.items[entry];
	if (!*root && add_step(builder, (struct step){ 0 }, root) < 0)
		return -ENOMEM;
	uint32_t step = *root;
	for (size_t i = from; i < count; i++) {
		uint32_t symbol = builder->cursor.items[i].symbol;
		uint64_t *slot = tally_map_put(&builder->step_index, (uint64_t)step << 32 | symbol,
					       NULL);
		if (!slot)
			return -ENOMEM;
		if (!*slot) {
			struct step next = { .symbol = symbol,
					     .sibling = builder->steps.items[step].child };
			uint32_t number;
			if (add_step(builder, next, &number) < 0)
				return -ENOMEM;
			builder->steps.items[step].child = number;
			*slot = number;
		}
		step = (uint32_t)*slot;
	}
	struct step *last = &builder->steps.items[step];
	last->ends = true;
	last->hit += row->period;
	last->count += row->samples;
	return 0;
}

struct pending {
	uint32_t step;
	struct tally_perf_node *parent;
};

/* Orders siblings as perf's search tree does: by the symbol's address, the highest first. */
static bool is_before(const struct builder *builder, uint32_t a, uint32_t b)
{
	const struct tally_perf_symbol *symbols = builder->sums->symbols.items;
	const struct tally_perf_symbol *x = &symbols[builder->steps.items[a].symbol],
				       *y = &symbols[builder->steps.items[b].symbol];
	uint64_t x_at = x->is_named ? function_of(builder, x->function)->start : x->address,
		 y_at = y->is_named ? function_of(builder, y->function)->start : y->address;
	if (x->object != y->object)
		return x->object < y->object;
	return x_at > y_at;
}

static void sort_siblings(struct builder *builder, uint32_t parent)
{
	struct step *steps = builder->steps.items;
	uint32_t sorted = 0;
	for (uint32_t step = steps[parent].child, next; step; step = next) {
		uint32_t *at = &sorted;
		next = steps[step].sibling;
		while (*at && is_before(builder, *at, step))
			at = &steps[*at].sibling;
		steps[step].sibling = *at;
		*at = step;
	}
	steps[parent].child = sorted;
}

/* Makes a node that begins with `first`; sets `last` to its last frame's step. */
static struct tally_perf_node *make_node(struct builder *builder, uint32_t first, uint32_t *last)
{
	struct step *steps = builder->steps.items;
	struct tally_arena *arena = &builder->sums->arena;
	struct tally_perf_node *node = tally_arena_alloc(arena, sizeof(*node));
	size_t count = 1;
	uint32_t step = first;
	for (; !steps[step].ends && !steps[steps[step].child].sibling; step = steps[step].child)
		count++;
	*last = step;
	if (!node)
		return NULL;
	*node = (struct tally_perf_node){ .hit = steps[step].hit, .count = steps[step].count,
					  .frames = tally_arena_array(arena, count,
								      sizeof(*node->frames)) };
	if (!node->frames)
		return NULL;
	for (step = first; node->frame_count < count; step = steps[step].child)
		node->frames[node->frame_count++] = steps[step].symbol;
	return node;
}

/* Makes the nodes of a tree.  Sums of children are complete when all their nodes are made: each
 * node adds what it has to those above it. */
static int make_tree(struct builder *builder, uint32_t root, struct tally_perf_node *top)
{
	TALLY_VECTOR(struct pending) stack = { 0 };
	struct pending first = { root, top };
	int result = tally_vector_push(&stack, first);
	while (!result && stack.count) {
		struct pending at = stack.items[--stack.count];
		struct tally_perf_node **end = &at.parent->child;
		sort_siblings(builder, at.step);
		for (uint32_t step = builder->steps.items[at.step].child; !result && step;
		     step = builder->steps.items[step].sibling) {
			struct pending next = { 0 };
			next.parent = make_node(builder, step, &next.step);
			if (!next.parent) {
				result = -ENOMEM;
				break;
			}
			next.parent->parent = at.parent;
			*end = next.parent;
			end = &next.parent->sibling;
			for (struct tally_perf_node *up = at.parent; up; up = up->parent) {
				up->children_hit += next.parent->hit;
				up->children_count += next.parent->count;
			}
			result = tally_vector_push(&stack, next);
		}
	}
	tally_vector_release(&stack);
	return result;
}

static int make_trees(struct builder *builder)
{
	for (size_t i = 0; i < builder->roots.count; i++) {
		uint32_t root = builder->roots.items[i];
		struct tally_perf_node *top;
		if (!root)
			continue;
		top = tally_arena_alloc(&builder->sums->arena, sizeof(*top));
		if (!top)
			return -ENOMEM;
		*top = (struct tally_perf_node){ 0 };
		if (make_tree(builder, root, top) < 0)
			return -ENOMEM;
		builder->sums->entries.items[i].tree = top;
	}
	return 0;
}

/* ---- samples -------------------------------------------------------------- */

/* True if a comma-separated list has the word itself. */
static bool lists(const char *list, const char *word)
{
	size_t length = strlen(word);
	for (; list; list = strchr(list, ','), list += list != NULL)
		if (!strncmp(list, word, length) && (list[length] == ',' || !list[length]))
			return true;
	return false;
}

static bool lists_number(const char *list, uint32_t number)
{
	char text[16];
	snprintf(text, sizeof(text), "%" PRIu32, number);
	return lists(list, text);
}

static bool passes(const struct builder *builder, const struct tally_class *class,
		   const struct cursor_frame *leaf)
{
	const struct tally_perf_sums_options *options = builder->options;
	struct tally_recording *recording = builder->profile->recording;
	const struct tally_perf_symbol *symbol = &builder->sums->symbols.items[leaf->symbol];
	const char *name = tally_perf_symbol_name(builder->profile, symbol);
	if (options->comms &&
	    !lists(options->comms, tally_strings_text(&recording->tasks.strings, class->comm)))
		return false;
	if (options->objects &&
	    !lists(options->objects, tally_strings_text(&recording->names.strings, symbol->object)) &&
	    !lists(options->objects, tally_names_object(&recording->names, symbol->function)))
		return false;
	if (options->symbols && (!name || !lists(options->symbols, name)))
		return false;
	if (class->thread >= recording->tasks.threads.count)
		return !options->pids && !options->tids;
	const struct tally_thread *thread = &recording->tasks.threads.items[class->thread];
	return (!options->pids || lists_number(options->pids, thread->pid)) &&
	       (!options->tids || lists_number(options->tids, thread->tid));
}

static struct tally_perf_weight *weight_of(struct builder *builder, uint32_t entry)
{
	return &builder->sums->entries.items[entry].weights[builder->member];
}

static int add_callers(struct builder *builder, const struct tally_class *class,
		       const struct tally_row *row, bool is_kernel)
{
	for (size_t i = 0; i < builder->cursor.count; i++) {
		const struct cursor_frame *frame = &builder->cursor.items[i];
		bool was_met = false;
		/* As in perf, an address in no mapping has the mode of the frame before it. */
		if (frame->is_known)
			is_kernel = frame->is_kernel;
		else if (builder->options->no_unknown)
			break;
		uint32_t entry = entry_of(builder, class, frame, is_kernel);
		if (entry == UINT32_MAX)
			return -ENOMEM;
		for (size_t j = 0; j < builder->met.count; j++)
			was_met |= builder->met.items[j] == entry;
		if (was_met)
			continue;
		if (tally_vector_push(&builder->met, entry) < 0 ||
		    add_chain(builder, entry, i, row) < 0)
			return -ENOMEM;
		struct tally_perf_weight *weight = weight_of(builder, entry);
		weight->total += row->period;
		weight->total_samples += row->samples;
	}
	return 0;
}

static int add_row(struct builder *builder, size_t number)
{
	const struct tally_row *row = &builder->profile->rows.rows.items[number];
	const struct tally_class *class = &builder->profile->classes.items[row->class];
	struct tally_perf_sums *sums = builder->sums;
	struct cursor_frame leaf = { .symbol = UINT32_MAX };
	if (read_chain(builder, number, &leaf) < 0)
		return -ENOMEM;
	struct tally_perf_event_sum *event = &sums->events[builder->member];
	event->samples += row->samples;
	event->period += row->period;
	if (leaf.symbol == UINT32_MAX) /* a sample without an address */
		return 0;
	if (!passes(builder, class, &leaf) ||
	    (builder->options->no_unknown && !sums->symbols.items[leaf.symbol].is_named))
		return 0;
	event->shown_samples += row->samples;
	event->shown_period += row->period;
	uint32_t entry = entry_of(builder, class, &leaf, leaf.is_kernel);
	if (entry == UINT32_MAX || add_chain(builder, entry, 0, row) < 0)
		return -ENOMEM;
	struct tally_perf_weight *weight = weight_of(builder, entry);
	weight->self += row->period;
	weight->self_samples += row->samples;
	weight->total += row->period;
	weight->total_samples += row->samples;
	builder->met.count = 0;
	if (!builder->options->children)
		return 0;
	if (tally_vector_push(&builder->met, entry) < 0)
		return -ENOMEM;
	return add_callers(builder, class, row, leaf.is_kernel);
}

static int add_member(struct builder *builder, uint32_t member)
{
	struct tally_numbers rows = tally_event_rows(&builder->profile->by_event,
						     builder->options->event + member);
	int result = 0;
	builder->member = member;
	builder->sums->events[member] = (struct tally_perf_event_sum){ 0 };
	for (size_t i = 0; !result && i < rows.count; i++)
		result = add_row(builder, rows.items[i]);
	return result;
}

/* ---- order ---------------------------------------------------------------- */

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_signed(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* Names come before addresses. */
static int compare_symbols(const struct builder *builder, uint32_t a, uint32_t b)
{
	const struct tally_perf_symbol *symbols = builder->sums->symbols.items;
	const char *x = tally_perf_symbol_name(builder->profile, &symbols[a]),
		   *y = tally_perf_symbol_name(builder->profile, &symbols[b]);
	if (x && y)
		return strcmp(x, y);
	return (y != NULL) - (x != NULL);
}

/* An unknown object comes last. */
static int compare_objects(const char *a, const char *b)
{
	bool a_unknown = !strcmp(a, "[unknown]"), b_unknown = !strcmp(b, "[unknown]");
	if (a_unknown != b_unknown)
		return a_unknown - b_unknown;
	return strcmp(a, b);
}

static int compare_key(const struct builder *builder, unsigned key, uint32_t a, uint32_t b)
{
	struct tally_recording *recording = builder->profile->recording;
	const struct tally_strings *names = &recording->names.strings;
	if (a == b)
		return 0;
	switch (key) {
	case TALLY_PERF_PID:
		return compare_signed((int32_t)a, (int32_t)b);
	case TALLY_PERF_COMM:
		return strcmp(tally_strings_text(&recording->tasks.strings, a),
			      tally_strings_text(&recording->tasks.strings, b));
	case TALLY_PERF_OBJECT:
		return compare_objects(tally_strings_text(names, a), tally_strings_text(names, b));
	case TALLY_PERF_SYMBOL:
		return compare_symbols(builder, a, b);
	case TALLY_PERF_CPU:
		return compare_numbers(a + 1, b + 1);
	default:
		return strcmp(tally_strings_text(names, a), tally_strings_text(names, b));
	}
}

static uint64_t value_of(const struct tally_perf_weight *weight, unsigned by)
{
	return by == TALLY_PERF_BY_SAMPLES ? weight->self_samples : weight->self;
}

/* Compares sums, the largest first: those of the first member, then the others'. */
static int compare_sums(const struct builder *builder, unsigned by,
			const struct tally_perf_entry *a, const struct tally_perf_entry *b)
{
	int order = 0;
	for (uint32_t i = 0; !order && i < builder->options->members; i++)
		order = compare_numbers(value_of(&b->weights[i], by), value_of(&a->weights[i], by));
	return order;
}

/* As perf: totals of a group's other members don't count, and among entries of one thread with the
 * same total, the longest chain comes first if trees begin with callers. */
static int compare_children(const struct builder *builder, const struct tally_perf_entry *a,
			    const struct tally_perf_entry *b)
{
	int order = compare_numbers(b->weights->total, a->weights->total);
	if (order || !builder->options->children)
		return order;
	if (a->thread != b->thread || !builder->options->chains)
		return 0;
	order = compare_numbers(a->depth, b->depth);
	return builder->options->from_caller ? -order : order;
}

/* The order of perf's search tree, in which equal entries stay. */
static int compare_places(const struct builder *builder, const struct tally_perf_entry *a,
			  const struct tally_perf_entry *b)
{
	const struct tally_perf_symbol *symbols = builder->sums->symbols.items;
	const struct tally_perf_symbol *x = &symbols[a->key[TALLY_PERF_SYMBOL]],
				       *y = &symbols[b->key[TALLY_PERF_SYMBOL]];
	if (!builder->options->by[TALLY_PERF_SYMBOL])
		return 0;
	if (x->is_named && y->is_named)
		return compare_numbers(function_of(builder, x->function)->start,
				       function_of(builder, y->function)->start);
	return compare_signed((int64_t)x->address, (int64_t)y->address);
}

static int compare_entries(const void *a, const void *b, void *context)
{
	const struct builder *builder = context;
	const struct tally_perf_entry *x = a, *y = b;
	int order = 0;
	for (unsigned i = 0; !order && i < builder->options->order_count; i++) {
		unsigned by = builder->options->order[i];
		if (by == TALLY_PERF_BY_CHILDREN)
			order = compare_children(builder, x, y);
		else if (by >= TALLY_PERF_KEYS)
			order = compare_sums(builder, by, x, y);
		else
			order = compare_key(builder, by, x->key[by], y->key[by]);
	}
	if (!order)
		order = compare_places(builder, x, y);
	for (unsigned i = 0; !order && i < TALLY_PERF_KEYS; i++)
		order = compare_numbers(x->key[i], y->key[i]);
	return order;
}

/* Leaves out entries whose symbols lack the text. */
static void leave_out(struct builder *builder)
{
	struct tally_perf_sums *sums = builder->sums;
	const char *part = builder->options->symbol_part;
	size_t kept = 0;
	if (!part || !builder->options->by[TALLY_PERF_SYMBOL])
		return;
	for (size_t i = 0; i < sums->entries.count; i++) {
		uint32_t symbol = sums->entries.items[i].key[TALLY_PERF_SYMBOL];
		const char *name = tally_perf_symbol_name(builder->profile,
							  &sums->symbols.items[symbol]);
		if (name && strstr(name, part))
			sums->entries.items[kept++] = sums->entries.items[i];
	}
	sums->entries.count = kept;
}

int tally_perf_sums_build(const struct tally_profile *profile,
			  const struct tally_perf_sums_options *options,
			  struct tally_perf_sums *sums)
{
	struct builder builder = { .profile = profile, .options = options, .sums = sums };
	*sums = (struct tally_perf_sums){ .members = options->members };
	int result = tally_vector_push(&builder.steps, (struct step){ 0 });
	builder.symbol_of_place = calloc(profile->places.places.count + 1,
					 sizeof(*builder.symbol_of_place));
	sums->events = tally_arena_array(&sums->arena, options->members, sizeof(*sums->events));
	if (!builder.symbol_of_place || !sums->events)
		result = -ENOMEM;
	for (uint32_t i = 0; !result && i < options->members; i++)
		result = add_member(&builder, i);
	if (!result)
		result = make_trees(&builder);
	if (!result) {
		leave_out(&builder);
		qsort_r(sums->entries.items, sums->entries.count, sizeof(*sums->entries.items),
			compare_entries, &builder);
	}
	tally_map_release(&builder.symbols);
	tally_map_release(&builder.same);
	tally_map_release(&builder.entries);
	tally_map_release(&builder.step_index);
	tally_vector_release(&builder.next_symbol);
	tally_vector_release(&builder.next_entry);
	tally_vector_release(&builder.roots);
	tally_vector_release(&builder.steps);
	tally_vector_release(&builder.cursor);
	tally_vector_release(&builder.met);
	free(builder.symbol_of_place);
	return result;
}

void tally_perf_sums_release(struct tally_perf_sums *sums)
{
	tally_arena_release(&sums->arena);
	tally_vector_release(&sums->entries);
	tally_vector_release(&sums->symbols);
}
