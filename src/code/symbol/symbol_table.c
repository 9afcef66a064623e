/* The symbol table behind all sources.
 *
 * Symbols overlap: functions contain entry points of other functions, hand-written assembly nests.
 * A reader wants the innermost symbol: the last one that starts at or before the address, if it
 * reaches that far.  If not, an earlier and longer one may.  Each symbol has the index of the
 * nearest earlier one that ends behind it (`outer`), so a lookup is a binary search and, rarely, a
 * few steps outwards.  A second index (`jump`) skips many steps at once, so that even symbols that
 * nest a million deep take some twenty (Myers 1983, "An applicative random-access stack").
 */
#include "symbol/symbol_internal.h"

#include "base/binary_search.h"
#include "base/buffer.h"
#include "base/vector.h"
#include "object/object.h"
#include "symbol/symbol.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 4096 };

/* A symbol among those that overlap it.  OUTER_NONE: there is no such symbol. */
struct nesting {
	uint32_t outer; /* index of the nearest earlier symbol that ends later */
	uint32_t jump;  /* index of one further out */
	uint32_t depth; /* number of steps to the outermost */
};

struct tally_symbols {
	struct tally_symbol *list;
	size_t count;
	struct nesting *nesting;
	uint16_t *modules; /* by symbol, 1-based; NULL when there are none */
	const char **module_names;
	struct tally_arena names;
	struct tally_object *objects[2];
};

#define OUTER_NONE UINT32_MAX

int tally_symbols_add(struct tally_symbols_builder *builder, const struct tally_symbol_entry *entry)
{
	if (entry->start == UINT64_MAX || builder->count >= UINT32_MAX - 1)
		return 0; /* there would be no value for the end; no real file has this */
	if (builder->count == builder->capacity &&
	    tally_vector_reserve_((void **)&builder->entries, &builder->capacity,
				  builder->count + 1, sizeof(*builder->entries)) < 0)
		return -ENOMEM;
	builder->entries[builder->count] = *entry;
	builder->entries[builder->count].order = (uint32_t)builder->count;
	builder->count++;
	return 0;
}

int tally_symbols_charge(struct tally_symbols_builder *builder, const char *name)
{
	builder->name_bytes += strlen(name) + 1;
	if (builder->name_bytes > builder->name_bytes_max)
		return -EFBIG;
	return 0;
}

static int compare_entries(const void *a_, const void *b_)
{
	const struct tally_symbol_entry *a = a_, *b = b_;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->order < b->order)
		return -1;
	return a->order > b->order;
}

/* Radix sort: 6 ms for node's 150,000 symbols against 28 ms of qsort().  Returns false without
 * memory. */
static bool sort_by_keys(struct tally_symbols_builder *builder)
{
	size_t count = builder->count;
	struct tally_radix_item *keys = calloc(2 * count, sizeof(*keys));
	struct tally_symbol_entry *entries = calloc(count, sizeof(*entries));
	bool done = keys && entries;
	if (done) {
		for (size_t i = 0; i < count; i++)
			keys[i] = (struct tally_radix_item){ builder->entries[i].start,
							     (uint32_t)i };
		const struct tally_radix_item *sorted = tally_radix_sort(keys, keys + count, count);
		for (size_t i = 0; i < count; i++)
			entries[i] = builder->entries[sorted[i].index];
		free(builder->entries);
		builder->entries = entries;
		builder->capacity = count;
		entries = NULL;
	}
	free(keys);
	free(entries);
	return done;
}

/* Sorts by address unless the source was sorted (as kallsyms is, except for its modules).  The sort
 * is stable: entries at one address are in the file's order and stay so. */
void tally_symbols_sort(struct tally_symbols_builder *builder)
{
	for (size_t i = 1; i < builder->count; i++)
		if (builder->entries[i].start < builder->entries[i - 1].start) {
			if (!sort_by_keys(builder))
				qsort(builder->entries, builder->count, sizeof(*builder->entries),
				      compare_entries);
			return;
		}
}

/* Drops a source file's local labels inside a function, such as those in node's builtins: they are
 * no functions.  (perf keeps them; which of the two it reports depends on the shape of its tree.)
 * Global labels are entry points, and kallsyms has them as well; they stay. */
static void drop_inner_labels(struct tally_symbols_builder *builder)
{
	size_t kept = 0;
	uint64_t function_end = 0;
	for (size_t i = 0; i < builder->count; i++) {
		struct tally_symbol_entry entry = builder->entries[i];
		if (entry.is_label && entry.start < function_end)
			continue;
		if (entry.is_function && entry.end > function_end)
			function_end = entry.end;
		builder->entries[kept++] = entry;
	}
	builder->count = kept;
}

static uint64_t page_behind(uint64_t address)
{
	if (address > UINT64_MAX - 2 * PAGE_BYTES)
		return UINT64_MAX;
	return (address + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES + PAGE_BYTES;
}

/* Ends symbols of unknown size at the next symbol's address.  Of several at one address only the
 * last gets an end, and none does when one has a size of its own: choose() prefers a symbol with an
 * end. perf does the same, which puts __x64_sys_getpid before __ia32_sys_getpid.  One difference:
 * perf treats a label like a function at its address, and so may name code after a linker's mark
 * (__start_SECTION). */
static void give_ends(struct tally_symbols_builder *builder)
{
	bool has_sized = false; /* one of the symbols at this address, so far, has a size */
	for (size_t i = 0; i < builder->count; i++) {
		struct tally_symbol_entry *entry = &builder->entries[i];
		const struct tally_symbol_entry *next = NULL;
		if (i + 1 < builder->count)
			next = entry + 1;
		bool is_first = i == 0 || entry[-1].start != entry->start;
		has_sized = (!is_first && has_sized) || entry->end > entry->start;
		if (has_sized || (next && next->start == entry->start))
			continue;
		entry->is_open = true;
		bool is_last = !next || (builder->is_kernel && next->module != entry->module);
		entry->end = is_last ? page_behind(entry->start) : next->start;
		if (next && entry->end > next->start)
			entry->end = next->start;
		if (entry->limit > entry->start && entry->end > entry->limit)
			entry->end = entry->limit;
	}
}

static bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

static size_t leading_underscores(const char *name)
{
	/* Mangled names don't count: once readable, they have no underscores in front. */
	if (is_mangled(name))
		return 0;
	return strspn(name, "_");
}

/* True for variants of one C++ constructor or destructor.  An object has two or three: _ZN1AC1Ev,
 * _ZN1AC2Ev. */
static bool is_same_member(const char *a, const char *b)
{
	size_t same = 0;
	while (a[same] && a[same] == b[same])
		same++;
	return same && strchr("CD", a[same - 1]) && a[same] && b[same] &&
	       strcmp(a + same + 1, b + same + 1) == 0;
}

/* Returns the length of the readable name.  Functions with identical code, which linkers fold into
 * one, differ in their template arguments. */
static size_t readable_length(const char *name)
{
	char *readable = tally_demangle(name);
	size_t length = strlen(readable ? readable : name);
	free(readable);
	return length;
}

/* An entry, and what comparing it needs of its name, which may be long: found out once. */
struct candidate {
	const struct tally_symbol_entry *entry;
	size_t underscores, length, readable; /* UNKNOWN: not found out yet */
};

#define UNKNOWN SIZE_MAX

static struct candidate candidate_of(const struct tally_symbol_entry *entry)
{
	return (struct candidate){ entry, UNKNOWN, UNKNOWN, UNKNOWN };
}

static size_t once(size_t *known, size_t (*find)(const char *name), const char *name)
{
	if (*known == UNKNOWN)
		*known = find(name);
	return *known;
}

static bool is_longer(struct candidate *a, struct candidate *b)
{
	const char *name = a->entry->name, *other = b->entry->name;
	if (!is_mangled(name) && !is_mangled(other))
		return once(&a->length, strlen, name) > once(&b->length, strlen, other);
	return !is_same_member(name, other) && once(&a->readable, readable_length, name) >
						       once(&b->readable, readable_length, other);
}

/* True if `y` is the better name for the address that both have, by perf's order of preference. */
static bool is_better(struct candidate *x, struct candidate *y)
{
	const struct tally_symbol_entry *a = x->entry, *b = y->entry;
	bool a_weak = a->binding == TALLY_SYMBOL_WEAK, b_weak = b->binding == TALLY_SYMBOL_WEAK;
	if (a_weak != b_weak)
		return a_weak;
	bool a_global = a->binding == TALLY_SYMBOL_GLOBAL,
	     b_global = b->binding == TALLY_SYMBOL_GLOBAL;
	if (a_global != b_global)
		return b_global;
	size_t a_underscores = once(&x->underscores, leading_underscores, a->name),
	       b_underscores = once(&y->underscores, leading_underscores, b->name);
	if (a_underscores != b_underscores)
		return b_underscores < a_underscores;
	return is_longer(y, x);
}

const struct tally_symbol_entry *tally_symbols_best(const struct tally_symbol_entry *entries,
						    size_t count)
{
	struct candidate best = candidate_of(entries);
	for (size_t i = 1; i < count; i++) {
		struct candidate next = candidate_of(&entries[i]);
		bool has_size = next.entry->end > next.entry->start,
		     best_has_size = best.entry->end > best.entry->start;
		bool is_best = has_size;
		if (best_has_size == has_size)
			is_best = is_better(&best, &next);
		if (is_best)
			best = next;
	}
	return best.entry;
}

/* Keeps the best symbol of each address. */
static void choose(struct tally_symbols_builder *builder)
{
	struct tally_symbol_entry *entries = builder->entries;
	size_t kept = 0;
	for (size_t i = 0, end; i < builder->count; i = end) {
		for (end = i + 1; end < builder->count && entries[end].start == entries[i].start;)
			end++;
		entries[kept++] = *tally_symbols_best(&entries[i], end - i);
	}
	builder->count = kept;
}

/* Returns where a symbol jumps to: over two equal jumps, if its outer symbol begins these, else to
 * its outer symbol. */
static uint32_t jump_from(const struct nesting *nesting, uint32_t outer)
{
	uint32_t first = OUTER_NONE;
	if (outer != OUTER_NONE)
		first = nesting[outer].jump;
	if (first == OUTER_NONE || nesting[first].jump == OUTER_NONE)
		return outer;
	uint32_t second = nesting[first].jump;
	if (nesting[outer].depth - nesting[first].depth ==
	    nesting[first].depth - nesting[second].depth)
		return second;
	return outer;
}

void tally_symbols_nest(struct tally_symbols *symbols)
{
	for (size_t i = 0; i < symbols->count; i++) {
		struct nesting *nesting = symbols->nesting;
		uint32_t outer = OUTER_NONE;
		if (i > 0)
			outer = (uint32_t)i - 1;
		while (outer != OUTER_NONE && symbols->list[outer].end <= symbols->list[i].end)
			outer = nesting[outer].outer;
		nesting[i] = (struct nesting){ outer, jump_from(nesting, outer),
					       outer == OUTER_NONE ? 0 : nesting[outer].depth + 1 };
	}
}

int tally_symbols_new(size_t count, struct tally_symbol **list, struct tally_symbols **out)
{
	struct tally_symbols *symbols = calloc(1, sizeof(*symbols));
	if (symbols && count < OUTER_NONE) {
		symbols->count = count;
		symbols->list = calloc(count + 1, sizeof(*symbols->list));
		symbols->nesting = calloc(count + 1, sizeof(*symbols->nesting));
	}
	if (!symbols || !symbols->list || !symbols->nesting) {
		tally_symbols_free(symbols);
		return -ENOMEM;
	}
	*list = symbols->list;
	*out = symbols;
	return 0;
}

static void fill(struct tally_symbols *symbols, const struct tally_symbols_builder *builder)
{
	for (size_t i = 0; i < builder->count; i++) {
		const struct tally_symbol_entry *entry = &builder->entries[i];
		symbols->list[i] = (struct tally_symbol){ entry->start, entry->end, entry->name,
							  !entry->is_open, entry->is_label };
		if (symbols->modules)
			symbols->modules[i] = entry->module;
	}
	tally_symbols_nest(symbols);
}

int tally_symbols_finish(struct tally_symbols_builder *builder, struct tally_symbols **out,
			 struct tally_error *err)
{
	tally_symbols_sort(builder);
	drop_inner_labels(builder);
	give_ends(builder);
	choose(builder);

	struct tally_symbol *list;
	struct tally_symbols *symbols = NULL;
	bool failed = tally_symbols_new(builder->count, &list, &symbols) < 0;
	if (!failed && builder->module_count) {
		symbols->modules = calloc(builder->count + 1, sizeof(*symbols->modules));
		failed = !symbols->modules;
	}
	if (failed) {
		tally_symbols_free(symbols);
		tally_symbols_abandon(builder);
		return tally_error_set(err, -ENOMEM, "out of memory for symbols");
	}
	fill(symbols, builder);
	symbols->names = builder->names;
	symbols->module_names = builder->modules;
	memcpy(symbols->objects, builder->objects, sizeof(symbols->objects));
	free(builder->entries);
	*builder = (struct tally_symbols_builder){ 0 };
	*out = symbols;
	return 0;
}

void tally_symbols_abandon(struct tally_symbols_builder *builder)
{
	free(builder->entries);
	free(builder->modules);
	tally_arena_release(&builder->names);
	for (size_t i = 0; i < 2; i++)
		tally_object_unref(builder->objects[i]);
	*builder = (struct tally_symbols_builder){ 0 };
}

/* Returns the innermost symbol that contains `address`; `behind` is the first one that starts
 * behind it. */
static const struct tally_symbol *innermost(const struct tally_symbols *symbols, size_t behind,
					    uint64_t address)
{
	uint32_t at = OUTER_NONE;
	if (behind > 0)
		at = (uint32_t)(behind - 1);
	while (at != OUTER_NONE && symbols->list[at].end <= address) {
		uint32_t jump = symbols->nesting[at].jump;
		bool is_short = jump != OUTER_NONE && symbols->list[jump].end <= address;
		at = is_short ? jump : symbols->nesting[at].outer;
	}
	if (at == OUTER_NONE)
		return NULL;
	return &symbols->list[at];
}

/* Returns the first symbol of [low, high) that starts behind `address`. */
static size_t first_behind(const struct tally_symbols *symbols, size_t low, size_t high,
			   uint64_t address)
{
	return tally_search(i, low, high, symbols->list[i].start > address);
}

const struct tally_symbol *tally_symbols_find(const struct tally_symbols *symbols, uint64_t address)
{
	return innermost(symbols, first_behind(symbols, 0, symbols->count, address), address);
}

const struct tally_symbol *tally_symbols_find_next(const struct tally_symbols *symbols,
						   uint64_t address, size_t *cursor)
{
	size_t low = *cursor < symbols->count ? *cursor : symbols->count, step = 1;
	if (low > 0 && symbols->list[low - 1].start > address)
		low = 0;
	/* The next symbol is usually near: strides double until they are past it. */
	while (step < symbols->count - low && symbols->list[low + step - 1].start <= address) {
		low += step;
		step *= 2;
	}
	size_t high = step < symbols->count - low ? low + step : symbols->count;
	*cursor = first_behind(symbols, low, high, address);
	return innermost(symbols, *cursor, address);
}

const char *tally_symbol_module(const struct tally_symbols *symbols,
				const struct tally_symbol *symbol)
{
	if (!symbols->modules)
		return NULL;
	uint16_t module = symbols->modules[symbol - symbols->list];
	if (!module)
		return NULL;
	return symbols->module_names[module - 1];
}

const struct tally_symbol *tally_symbols_list(const struct tally_symbols *symbols, size_t *count)
{
	*count = symbols->count;
	return symbols->list;
}

void tally_symbols_free(struct tally_symbols *symbols)
{
	if (!symbols)
		return;
	free(symbols->list);
	free(symbols->nesting);
	free(symbols->modules);
	free(symbols->module_names);
	tally_arena_release(&symbols->names);
	for (size_t i = 0; i < 2; i++)
		tally_object_unref(symbols->objects[i]);
	free(symbols);
}

/* A symbol table as bytes, for a cache: the result of sorting, choosing and naming.
 *
 *     u32 count, u32 bytes of names, count × { u32 start, u32 size, u32 name },
 *     names, each with a NUL
 *
 * The two highest bits of a name's offset tell whether the symbol has a size and is a label.
 * Starts are relative to a base, so a kernel's table is valid at every KASLR offset.  Reading
 * checks what lookups rely on: the order of starts, and the ends of names. */

struct head {
	uint32_t count, name_bytes;
};

struct packed {
	uint32_t start, size, name;
};

#define NAME_IS_SIZED (1u << 31)
#define NAME_IS_LABEL (1u << 30)
#define NAME_OFFSET (NAME_IS_LABEL - 1)

static bool is_packable(const struct tally_symbols *symbols, const struct tally_symbol *symbol)
{
	return !tally_symbol_module(symbols, symbol);
}

int tally_symbols_pack(const struct tally_symbols *symbols, uint64_t base, struct tally_buffer *out)
{
	size_t count, head_at = out->length;
	const struct tally_symbol *list = tally_symbols_list(symbols, &count);
	struct head head = { 0 };
	tally_buffer_append(out, &head, sizeof(head));
	for (size_t i = 0; i < count; i++) {
		const struct tally_symbol *symbol = &list[i];
		size_t name_bytes = strlen(symbol->name) + 1;
		if (!is_packable(symbols, symbol))
			continue;
		if (symbol->start < base || symbol->start - base > UINT32_MAX ||
		    symbol->end - symbol->start > UINT32_MAX ||
		    name_bytes > NAME_OFFSET - head.name_bytes)
			return -ERANGE;
		const struct packed packed = { (uint32_t)(symbol->start - base),
					       (uint32_t)(symbol->end - symbol->start),
					       head.name_bytes |
						       (symbol->is_sized ? NAME_IS_SIZED : 0) |
						       (symbol->is_label ? NAME_IS_LABEL : 0) };
		tally_buffer_append(out, &packed, sizeof(packed));
		head.name_bytes += (uint32_t)name_bytes;
		head.count++;
	}
	for (size_t i = 0; i < count; i++)
		if (is_packable(symbols, &list[i]))
			tally_buffer_append(out, list[i].name, strlen(list[i].name) + 1);
	if (out->failed)
		return -ENOMEM;
	memcpy(out->bytes + head_at, &head, sizeof(head));
	return 0;
}

int tally_symbols_unpack(const void *bytes, size_t size, uint64_t base, struct tally_symbols **out)
{
	struct head head;
	if (size < sizeof(head))
		return -EBADMSG;
	memcpy(&head, bytes, sizeof(head));
	const uint8_t *entries = (const uint8_t *)bytes + sizeof(head);
	uint64_t entry_bytes = (uint64_t)head.count * sizeof(struct packed);
	if (size - sizeof(head) != entry_bytes + head.name_bytes)
		return -EBADMSG;
	const char *names = (const char *)entries + entry_bytes;
	if (head.name_bytes ? names[head.name_bytes - 1] != '\0' : head.count > 0)
		return -EBADMSG;
	struct tally_symbol *list;
	*out = NULL;
	int result = tally_symbols_new(head.count, &list, out);
	if (result)
		return result;
	uint64_t least = 0;
	for (uint32_t i = 0; i < head.count; i++) {
		struct packed packed;
		memcpy(&packed, entries + (size_t)i * sizeof(packed), sizeof(packed));
		uint64_t start = base + packed.start;
		uint32_t name = packed.name & NAME_OFFSET;
		if (name >= head.name_bytes || start < least || start + packed.size < start) {
			tally_symbols_free(*out);
			*out = NULL;
			return -EBADMSG;
		}
		list[i] = (struct tally_symbol){ start, start + packed.size,
						 names + name,
						 packed.name & NAME_IS_SIZED,
						 packed.name & NAME_IS_LABEL };
		least = start;
	}
	tally_symbols_nest(*out);
	return 0;
}
