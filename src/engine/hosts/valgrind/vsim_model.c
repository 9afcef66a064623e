/* The simulated CPU.  How it is fast and still exact:
 *
 * Using a marked line of the first level changes nothing there (vsim_cache.h), and a hit in a
 * first-level TLB with round-robin replacement changes nothing either.  So recent[] holds marked
 * lines whose page is in the TLB, each at the place given by its number.  An access that finds its
 * line there is done.
 *
 * A line leaves recent[] when it loses its mark (an evicted line has none), and when the TLB evicts
 * its page.  The TLB's slot knows which of the page's lines may be there: it has a bit for each
 * line of the page, or group of lines, that entered recent[] since the page came.
 *
 * Nothing else may end a line's being recent.  So no level evicts lines of another (an inclusive L2
 * would), and the second-level TLB doesn't either.  Most of today's CPUs are not inclusive either.
 *
 * A first-level TLB may be fully associative, so a search would have to compare 64 ways each time
 * that recent[] misses.  So a direct-mapped table, `quick`, finds a page's place: each entry holds
 * page and slot in one word.  `sharing` counts the pages that share an entry; mostly it tells
 * without a search that a page is not in the TLB. */
#include "valgrind/vsim_model.h"

#include "valgrind/vsim_cache.h"
#include "valgrind/vsim_predictor.h"

#define KIND(kind) (1u << (kind))
/* A store's kind follows the load's, so that a shift by one converts the bits. */
_Static_assert(VSIM_L1D_STORE_MISSES == VSIM_L1D_LOAD_MISSES + 1 &&
		       VSIM_L2_STORES == VSIM_L2_LOADS + 1 &&
		       VSIM_L2_STORE_MISSES == VSIM_L2_LOAD_MISSES + 1 &&
		       VSIM_LLC_STORES == VSIM_LLC_LOADS + 1 &&
		       VSIM_LLC_STORE_MISSES == VSIM_LLC_LOAD_MISSES + 1 &&
		       VSIM_DTLB_STORE_MISSES == VSIM_DTLB_LOAD_MISSES + 1 &&
		       VSIM_DTLB_STORE_WALKS == VSIM_DTLB_LOAD_WALKS + 1 && VSIM_KINDS <= 32,
	       "stores' kinds");

/* Places in recent[]: four times the lines of most first levels.  With half of them, SQLite has to
 * report twice as many of its data accesses. */
enum { RECENT_LINES = 2048 };
enum { QUICK_BITS = 8, QUICK_ENTRIES = 1 << QUICK_BITS, SLOT_BITS = 8 };
_Static_assert(VSIM_FIRST_TLB_MAX <= 1 << SLOT_BITS, "a slot has room beside its page");

struct tlb {
	uint64_t quick[QUICK_ENTRIES];   /* page << SLOT_BITS | slot; VSIM_NONE: unknown */
	/* pages in the TLB that map to this entry; all are in one set */
	uint8_t sharing[QUICK_ENTRIES];
	uint64_t pages[VSIM_FIRST_TLB_MAX];
	uint64_t groups[VSIM_FIRST_TLB_MAX]; /* by slot: groups of lines that may be in recent[] */
	uint8_t next[VSIM_FIRST_TLB_MAX];    /* by set: the way to replace next */
	uint32_t set_mask, way_count;
};

struct side {
	struct vsim_recent recent;
	struct vsim_first cache;
	uint32_t miss, tlb_miss, walk;   /* bits of the kinds that happen on a miss */
	struct tlb tlb;
};

struct vsim_model {
	struct side data, code;
	struct vsim_cache l2, llc, stlb;
	uint32_t page_shift;             /* line number >> page_shift is the page number */
	/* A line's number within its page, shifted right by this, is its group's; at most 64
	 * groups. */
	uint32_t group_shift;
	struct vsim_predictor predictor;
};

/* --- TLBs ----------------------------------------------------------------- */

static inline void forget_line(struct side *side, uint64_t line)
{
	/* This writes in any case, because the branch would be unpredictable. */
	uint64_t *recent = &side->recent.recent[line & side->recent.mask], here = *recent;
	*recent = here | -(uint64_t)(here == line);
}

/* Evicts the page in `slot`, and its lines from recent[]. */
static void forget_page(struct vsim_model *model, struct side *side, uint32_t slot)
{
	struct tlb *tlb = &side->tlb;
	uint64_t page = tlb->pages[slot], first = page << model->page_shift,
		 entry = page & (QUICK_ENTRIES - 1);
	uint64_t in_group = 1ull << model->group_shift;
	if (page == VSIM_NONE)
		return;
	for (uint64_t groups = tlb->groups[slot]; groups; groups &= groups - 1) {
		uint64_t line = first + ((uint64_t)__builtin_ctzll(groups) << model->group_shift);
		for (uint64_t end = line + in_group; line < end; line++)
			forget_line(side, line);
	}
	tlb->sharing[entry]--;
	if (tlb->quick[entry] >> SLOT_BITS == page)
		tlb->quick[entry] = VSIM_NONE;
}

/* Looks up a page that `quick` does not know, and enters it in `quick`.  It may be in the TLB or
 * not. */
static __attribute__((noinline)) uint32_t tlb_search(struct vsim_model *model, struct side *side,
						     uint64_t page)
{
	struct tlb *tlb = &side->tlb;
	uint64_t entry = page & (QUICK_ENTRIES - 1);
	uint32_t set = (uint32_t)page & tlb->set_mask, first = set * tlb->way_count;
	if (tlb->sharing[entry] > (tlb->quick[entry] != VSIM_NONE))
		for (uint32_t way = first; way < first + tlb->way_count; way++)
			if (tlb->pages[way] == page) {
				tlb->quick[entry] = page << SLOT_BITS | way;
				return 0;
			}
	uint32_t victim = first + tlb->next[set];
	tlb->next[set]++;
	if (tlb->next[set] >= tlb->way_count)
		tlb->next[set] = 0;
	forget_page(model, side, victim);
	tlb->pages[victim] = page;
	tlb->groups[victim] = 0;
	tlb->sharing[entry]++;
	tlb->quick[entry] = page << SLOT_BITS | victim;
	if (model->stlb.way_count && vsim_cache_use(&model->stlb, page))
		return side->tlb_miss;
	return side->tlb_miss | side->walk;
}

/* --- Caches --------------------------------------------------------------- */

static __attribute__((noinline)) uint32_t outer_levels(struct vsim_model *model, uint64_t line)
{
	uint32_t happened = 0;
	if (model->l2.way_count) {
		happened |= KIND(VSIM_L2_LOADS);
		if (vsim_cache_use(&model->l2, line))
			return happened;
		happened |= KIND(VSIM_L2_LOAD_MISSES);
	}
	if (model->llc.way_count) {
		happened |= KIND(VSIM_LLC_LOADS);
		if (!vsim_cache_use(&model->llc, line))
			happened |= KIND(VSIM_LLC_LOAD_MISSES);
	}
	return happened;
}

/* Marks `line`, in `way` of its set, as used.  Its page is in `slot` of the TLB. */
static inline void mark_line(struct vsim_model *model, struct side *side, uint64_t line,
			     uint32_t way, uint32_t slot)
{
	uint64_t group = (line & ((1ull << model->page_shift) - 1)) >> model->group_shift;
	side->cache.marks[line & side->cache.set_mask] |= 1ull << way;
	side->tlb.groups[slot] |= 1ull << group;
	side->recent.recent[line & side->recent.mask] = line;
}

static __attribute__((noinline)) uint32_t first_miss(struct vsim_model *model, struct side *side,
						     uint64_t line, uint32_t slot)
{
	struct vsim_first *cache = &side->cache;
	uint64_t set = line & cache->set_mask, *lines = cache->lines + set * cache->stride;
	if (cache->marks[set] == cache->all) {
		cache->marks[set] = 0;
		for (uint32_t i = 0; i < cache->way_count; i++)
			forget_line(side, lines[i]);
	}
	uint32_t way = (uint32_t)__builtin_ctzll(~cache->marks[set]);
	lines[way] = line;
	cache->keys[set * cache->stride + way] = (uint32_t)line;
	mark_line(model, side, line, way, slot);
	return side->miss | outer_levels(model, line);
}

static inline __attribute__((always_inline)) uint32_t use_line(struct vsim_model *model,
							       struct side *side, uint64_t line)
{
	/* Half of the reported accesses miss, and the model's own tables are larger than the host's
	 * caches.  A prefetch now brings them in during the search of the TLB and the first level
	 * (7 % of xz's time). */
	__builtin_prefetch(vsim_cache_set(&model->l2, line));
	__builtin_prefetch(vsim_cache_set(&model->llc, line));
	uint64_t page = line >> model->page_shift,
		 *quick = &side->tlb.quick[page & (QUICK_ENTRIES - 1)];
	uint32_t happened = 0;
	if (__builtin_expect(*quick >> SLOT_BITS != page, 0))
		happened = tlb_search(model, side, page);
	uint32_t slot = *quick & ((1 << SLOT_BITS) - 1);
	uint32_t way = vsim_first_find(&side->cache, line & side->cache.set_mask, line);
	if (way == VSIM_ABSENT)
		return happened | first_miss(model, side, line, slot);
	mark_line(model, side, line, way, slot);
	return happened;
}

static __attribute__((noinline)) uint32_t use_lines(struct vsim_model *model, uint64_t line,
						    uint64_t last)
{
	uint32_t happened = 0;
	while (line <= last)
		happened |= use_line(model, &model->data, line++);
	return happened;
}

unsigned vsim_model_data(struct vsim_model *model, uint64_t address, unsigned size, bool store)
{
	uint32_t shift = model->data.recent.line_shift;
	uint64_t line = address >> shift, last = (address + size - 1) >> shift;
	if (__builtin_expect(line < last, 0))
		return use_lines(model, line, last) << store;
	return use_line(model, &model->data, line) << store;
}

unsigned vsim_model_fetch(struct vsim_model *model, uint64_t address)
{
	return use_line(model, &model->code, address >> model->code.recent.line_shift);
}

/* --- Branches ------------------------------------------------------------- */

unsigned vsim_model_unsure(struct vsim_model *model, uint64_t ip, bool taken)
{
	struct vsim_predictor *predictor = &model->predictor;
	uint64_t outcomes = predictor->conditional.history;
	uint64_t at = (outcomes & predictor->conditional.history_mask) ^
		      vsim_predictor_branch(predictor, ip);
	uint8_t *pair = predictor->pairs + (at & ~1ull), counter = pair[0];
	uint8_t *by_branch = &predictor->by_branch[vsim_hash(ip, predictor->opinion_bits)];
	uint64_t context = vsim_long_context(ip, outcomes >> 1, predictor->opinion_bits);
	struct vsim_tagged *tagged = &predictor->by_long_history[context >> VSIM_TAG_BITS];
	bool known = tagged->tag == (uint8_t)context;
	uint8_t believed = *by_branch;
	if (known)
		believed = tagged->counter;
	if (vsim_counter_sure(counter))
		believed = counter;
	bool wrong = (believed >= 2) != taken;
	if (known)
		vsim_counter_learn(&tagged->counter, taken);
	else if (wrong)
		*tagged = (struct vsim_tagged){ (uint8_t)context, taken ? 2 : 1 };
	vsim_counter_learn(by_branch, taken);
	vsim_counter_learn(&counter, taken);
	pair[0] = counter;
	pair[1] = (uint8_t)(3 - counter);
	if (wrong)
		return KIND(VSIM_CONDITIONAL_MISSES);
	return 0;
}

unsigned vsim_model_conditional(struct vsim_model *model, uint64_t ip, bool taken)
{
	struct vsim_predictor *predictor = &model->predictor;
	uint64_t outcomes = predictor->conditional.history << 1 | taken;
	predictor->conditional.history = outcomes;
	if (!predictor->pairs[(outcomes & predictor->conditional.history_mask) ^
			      vsim_predictor_branch(predictor, ip)])
		return 0;
	return vsim_model_unsure(model, ip, taken);
}

unsigned vsim_model_indirect(struct vsim_model *model, uint64_t ip, uint64_t target)
{
	struct vsim_predictor *predictor = &model->predictor;
	uint64_t slot_index = vsim_hash(ip, VSIM_TARGET_SLOT_BITS),
		 *sure = &predictor->sure[slot_index];
	if (*sure == target)
		return 0;
	struct vsim_target_slot *slot = &predictor->slots[slot_index];
	uint64_t context = (predictor->path & ((1u << VSIM_TARGET_HISTORY) - 1))
			   << (64 - VSIM_TARGET_HISTORY);
	uint64_t *learnt = &predictor->targets[vsim_hash(ip ^ context ^ context >> 31,
							 predictor->target_bits)];
	bool wrong = (*sure != VSIM_NONE ? *sure : *learnt) != target;
	*learnt = target;
	predictor->path = predictor->path << 4 ^ vsim_hash(target, 4);
	if (slot->last == target)
		slot->repeats++;
	else
		slot->repeats = 0;
	slot->last = target;
	*sure = slot->repeats >= VSIM_TARGET_REPEATS ? target : VSIM_NONE;
	if (wrong)
		return KIND(VSIM_INDIRECT_MISSES);
	return 0;
}

void vsim_model_call(struct vsim_model *model, uint64_t return_address)
{
	struct vsim_returns *returns = &model->predictor.returns;
	returns->entry[returns->top] = return_address;
	returns->top = (returns->top + 1) & returns->mask;
}

unsigned vsim_model_return(struct vsim_model *model, uint64_t target)
{
	struct vsim_returns *returns = &model->predictor.returns;
	returns->top = (returns->top - 1) & returns->mask;
	if (returns->entry[returns->top] == target)
		return 0;
	return KIND(VSIM_RETURN_MISSES);
}

/* --- Its life ------------------------------------------------------------- */

/* Divides the model's memory into parts, each on cache lines of its own.  If `memory` is NULL, it
 * only sums the sizes. */
struct layout {
	char *memory;
	size_t used;
};

static void *part(struct layout *layout, size_t bytes)
{
	void *at = NULL;
	if (layout->memory)
		at = layout->memory + layout->used;
	layout->used += (bytes + 63) & ~(size_t)63;
	return at;
}

static void fill(uint64_t *words, size_t count, uint64_t value)
{
	for (size_t i = 0; words && i < count; i++)
		words[i] = value;
}

static uint32_t stride_of(const struct vsim_cache_geometry *geometry)
{
	return (geometry->ways + VSIM_KEYS_AT_ONCE - 1) / VSIM_KEYS_AT_ONCE * VSIM_KEYS_AT_ONCE;
}

static void cache_init(struct vsim_cache *cache, const struct vsim_cache_geometry *geometry,
		       struct layout *layout)
{
	uint32_t sets = geometry->ways ? geometry->sets : 0;
	size_t keys = (size_t)sets * stride_of(geometry);
	cache->set_mask = sets ? sets - 1 : 0;
	cache->set_bits = sets ? (uint32_t)__builtin_ctz(sets) : 0;
	cache->way_count = geometry->ways;
	cache->stride = stride_of(geometry);
	cache->keys = part(layout, keys * sizeof(*cache->keys));
	for (size_t i = 0; cache->keys && i < keys; i++)
		cache->keys[i] = 0;
}

static void side_init(struct side *side, const struct vsim_geometry *geometry,
		      const struct vsim_cache_geometry *cache,
		      const struct vsim_cache_geometry *tlb, struct layout *layout)
{
	side->recent = (struct vsim_recent){
		.recent = part(layout, RECENT_LINES * sizeof(uint64_t)),
		.mask = RECENT_LINES - 1,
		.line_shift = (uint32_t)__builtin_ctz(geometry->line_bytes),
		/* An access across more lines would find its last line at its first one's place. */
		.size_max = geometry->line_bytes * (RECENT_LINES - 1),
	};
	fill(side->recent.recent, RECENT_LINES, VSIM_NONE);
	size_t lines = (size_t)cache->sets * stride_of(cache);
	side->cache = (struct vsim_first){
		.keys = part(layout, lines * sizeof(uint32_t)),
		.lines = part(layout, lines * sizeof(uint64_t)),
		.marks = part(layout, cache->sets * sizeof(uint64_t)),
		.set_mask = cache->sets - 1,
		.all = UINT64_MAX >> (64 - cache->ways),
		.way_count = cache->ways,
		.stride = stride_of(cache),
	};
	fill(side->cache.lines, lines, VSIM_NONE);
	fill(side->cache.marks, cache->sets, 0);
	for (size_t i = 0; side->cache.keys && i < lines; i++)
		side->cache.keys[i] = 0;
	side->tlb = (struct tlb){ .set_mask = tlb->sets - 1, .way_count = tlb->ways };
	fill(side->tlb.quick, QUICK_ENTRIES, VSIM_NONE);
	fill(side->tlb.pages, VSIM_FIRST_TLB_MAX, VSIM_NONE);
}

static void predictor_init(struct vsim_predictor *predictor, const struct vsim_geometry *geometry,
			   struct layout *layout)
{
	size_t counters = (size_t)1 << geometry->history_bits, opinions = counters / 4,
	       slots = 1 << VSIM_TARGET_SLOT_BITS;
	predictor->history_bits = geometry->history_bits;
	predictor->opinion_bits = geometry->history_bits - 2;
	predictor->target_bits = geometry->target_bits;
	predictor->pairs = part(layout, 2 * counters);
	predictor->by_long_history = part(layout, opinions * sizeof(*predictor->by_long_history));
	predictor->by_branch = part(layout, opinions);
	predictor->sure = part(layout, slots * sizeof(*predictor->sure));
	predictor->slots = part(layout, slots * sizeof(*predictor->slots));
	predictor->targets = part(layout, sizeof(uint64_t) << geometry->target_bits);
	fill(predictor->sure, slots, VSIM_NONE);
	fill(predictor->targets, (size_t)1 << geometry->target_bits, VSIM_NONE);
	if (!layout->memory)
		return;
	/* Predicts not taken, but is not sure. */
	for (size_t i = 0; i < counters; i++)
		predictor->pairs[2 * i] = 1, predictor->pairs[2 * i + 1] = 2;
	for (size_t i = 0; i < opinions; i++)
		predictor->by_long_history[i] = (struct vsim_tagged){ 0,
								      predictor->by_branch[i] = 1 };
	for (size_t i = 0; i < slots; i++)
		predictor->slots[i] = (struct vsim_target_slot){ .last = VSIM_NONE };
	predictor->conditional = (struct vsim_conditional){
		.history_mask = (2ull << vsim_history_outcomes(geometry->history_bits)) - 1,
		.counters = predictor->pairs,
	};
	predictor->returns = (struct vsim_returns){ .mask = geometry->return_depth - 1 };
	fill(predictor->returns.entry, VSIM_RETURN_DEPTH_MAX, VSIM_NONE);
}

/* Places the small parts, which generated code touches, before the large ones. */
static void lay_out(struct vsim_model *model, const struct vsim_geometry *geometry,
		    struct layout *layout)
{
	side_init(&model->data, geometry, &geometry->l1d, &geometry->dtlb, layout);
	side_init(&model->code, geometry, &geometry->l1i, &geometry->itlb, layout);
	predictor_init(&model->predictor, geometry, layout);
	cache_init(&model->stlb, &geometry->stlb, layout);
	cache_init(&model->l2, &geometry->l2, layout);
	cache_init(&model->llc, &geometry->llc, layout);
}

size_t vsim_model_bytes(const struct vsim_geometry *geometry)
{
	struct vsim_model scratch;
	struct layout layout = { 0 };
	if (vsim_geometry_problem(geometry))
		return 0;
	part(&layout, sizeof(scratch));
	lay_out(&scratch, geometry, &layout);
	return layout.used;
}

struct vsim_model *vsim_model_init(void *memory, const struct vsim_geometry *geometry)
{
	struct layout layout = { .memory = memory };
	struct vsim_model *model = part(&layout, sizeof(*model));
	*model = (struct vsim_model){ 0 };
	lay_out(model, geometry, &layout);
	uint32_t line_shift = model->data.recent.line_shift;
	model->page_shift = (uint32_t)__builtin_ctz(geometry->page_bytes) - line_shift;
	model->group_shift = model->page_shift > 6 ? model->page_shift - 6 : 0;
	model->data.miss = KIND(VSIM_L1D_LOAD_MISSES);
	model->data.tlb_miss = KIND(VSIM_DTLB_LOAD_MISSES);
	model->data.walk = KIND(VSIM_DTLB_LOAD_WALKS);
	model->code.miss = KIND(VSIM_L1I_MISSES);
	model->code.tlb_miss = KIND(VSIM_ITLB_MISSES);
	model->code.walk = KIND(VSIM_ITLB_WALKS);
	return model;
}

const struct vsim_recent *vsim_model_recent_data(const struct vsim_model *model)
{
	return &model->data.recent;
}

const struct vsim_recent *vsim_model_recent_code(const struct vsim_model *model)
{
	return &model->code.recent;
}

struct vsim_conditional *vsim_model_conditionals(struct vsim_model *model)
{
	return &model->predictor.conditional;
}

uint64_t vsim_model_branch(const struct vsim_model *model, uint64_t ip)
{
	return vsim_predictor_branch(&model->predictor, ip);
}

const uint64_t *vsim_model_target(const struct vsim_model *model, uint64_t ip)
{
	return &model->predictor.sure[vsim_hash(ip, VSIM_TARGET_SLOT_BITS)];
}

struct vsim_returns *vsim_model_returns(struct vsim_model *model)
{
	return &model->predictor.returns;
}

/* Each kind's weight is what its level adds to the level before. */
void vsim_model_weights(const struct vsim_geometry *geometry, uint32_t weight[VSIM_KINDS])
{
	uint32_t last = 0;
	for (unsigned kind = 0; kind < VSIM_KINDS; kind++)
		weight[kind] = 0;
	weight[VSIM_INSTRUCTIONS] = geometry->cost_instruction;
	weight[VSIM_CONDITIONAL_MISSES] = weight[VSIM_INDIRECT_MISSES] =
		weight[VSIM_RETURN_MISSES] = geometry->cost_branch_miss;
	if (geometry->l2.ways)
		last = weight[VSIM_L2_LOADS] = geometry->cost_l2;
	if (geometry->llc.ways) {
		weight[VSIM_LLC_LOADS] = geometry->cost_llc - last;
		last = geometry->cost_llc;
		weight[VSIM_LLC_LOAD_MISSES] = geometry->cost_memory - last;
	} else {
		weight[VSIM_L2_LOAD_MISSES] = geometry->cost_memory - last;
	}
	if (!geometry->l2.ways && !geometry->llc.ways)
		weight[VSIM_L1D_LOAD_MISSES] = weight[VSIM_L1I_MISSES] = geometry->cost_memory;
	weight[VSIM_DTLB_LOAD_MISSES] = weight[VSIM_ITLB_MISSES] = geometry->cost_stlb;
	weight[VSIM_DTLB_LOAD_WALKS] = weight[VSIM_ITLB_WALKS] = geometry->cost_walk -
								 geometry->cost_stlb;
	static const uint8_t loads[] = { VSIM_L1D_LOAD_MISSES, VSIM_L2_LOADS,
					 VSIM_L2_LOAD_MISSES,  VSIM_LLC_LOADS,
					 VSIM_LLC_LOAD_MISSES, VSIM_DTLB_LOAD_MISSES,
					 VSIM_DTLB_LOAD_WALKS };
	for (unsigned i = 0; i < sizeof(loads); i++)
		weight[loads[i] + 1] = weight[loads[i]] / 4;
}
