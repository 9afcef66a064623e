/* Makes the names that views show: short, but different for all functions of one object.
 *
 * A function is identified by its symbol.  Demangled without parameters, as perf prints names,
 * overloads look the same, and so do some other functions.  Functions that look the same get an
 * addition that makes them different, the first of these that suffices:
 *
 *   calc(int)           the parameters, if these differ, also between objects;
 *   A::~A [deleting]    which body of a constructor or destructor it is; for Rust's older mangling
 *                       the hash, drop::h0123456789abcdef; else the symbol;
 *   helper (a.c)        for local functions that share a symbol, inlined or not: the source file
 *                       that declares them by the debug information, with as much of its path as
 *                       the files differ in; else the source file by the symbol table;
 *   helper (0x4290)     else the address where the function begins.
 *
 * The last three only tell functions of one object apart, since views show the object next to the
 * name.  JIT code and the stubs of a procedure linkage table only have their names: a JIT compiles
 * one function to several addresses.  Two files with the same path are builds of one program, so
 * their functions with the same name count as one.
 */
#include "naming/naming.h"

#include "base/buffer.h"
#include "base/word_list.h"
#include "naming/naming_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = TALLY_STRING_NONE };

struct naming {
	struct tally_names *names;
	uint32_t *order; /* indices of functions; equal-looking ones are neighbours */
};

static const char *text_of(const struct tally_names *names, uint32_t id)
{
	return tally_strings_text(&names->strings, id);
}

/* True for an inlined function without a linkage name in its DWARF: it may be any of the functions
 * that look the same. */
static bool is_vague(const struct tally_function *function)
{
	return function->kind == TALLY_FRAME_INLINED && function->symbol == function->bare;
}

/* Returns the offset of a symbol's version, or of the text's end. */
static size_t version_at(const char *text)
{
	const char *version = strstr(text, "@@");
	if (!version || version == text)
		return strlen(text);
	return (size_t)(version - text);
}

/* ---- parameters ----------------------------------------------------------------------------- */

static uint32_t signature_of(struct tally_names *names, const struct tally_function *function)
{
	if (names->options.keep_mangled)
		return function->bare;
	char *readable = tally_demangle_signature(text_of(names, function->symbol));
	if (!readable)
		return function->bare;
	uint32_t id = tally_strings_add(&names->strings, readable, version_at(readable));
	free(readable);
	return id;
}

/* Adds parameters to functions with one name, sorted by symbol, if the parameters differ. */
static void add_parameters(struct naming *naming, const uint32_t *members, size_t count)
{
	struct tally_function *functions = naming->names->functions.items;
	uint32_t first = NONE, last = NONE, signature = NONE;
	bool differ = false;
	for (size_t i = 0; i < count; i++) {
		struct tally_function *function = &functions[members[i]];
		if (function->symbol != last)
			signature = signature_of(naming->names, function);
		last = function->symbol;
		function->plain = signature;
		if (is_vague(function))
			continue;
		differ |= first != NONE && signature != first;
		first = signature;
	}
	for (size_t i = 0; !differ && !naming->names->sources.full_names && i < count; i++)
		functions[members[i]].plain = functions[members[i]].bare;
}

/* ---- symbols that read alike ---------------------------------------------------------------- */

static bool has_hash(const struct tally_names *names, const struct tally_function *function)
{
	return tally_mangled_variant(text_of(names, function->symbol), NULL) ==
	       TALLY_MANGLED_RUST_HASH;
}

/* True if the function's symbol distinguishes it from others.  An inlined constructor's does not:
 * DWARF gives it another symbol (C4) than its out-of-line copies.  Nor does the symbol of JIT code
 * that was compiled in another tier. */
static bool has_symbol_of_its_own(const struct tally_names *names,
				  const struct tally_function *function)
{
	if (function->kind == TALLY_FRAME_JIT && function->bare != function->name)
		return false;
	return function->kind != TALLY_FRAME_INLINED || has_hash(names, function);
}

static uint32_t variant_name(struct tally_names *names, const struct tally_function *function,
			     bool by_symbol)
{
	static const char *const words[] = {
		[TALLY_MANGLED_COMPLETE] = "complete",
		[TALLY_MANGLED_BASE] = "base",
		[TALLY_MANGLED_DELETING] = "deleting",
	};
	const char *symbol = text_of(names, function->symbol),
		   *plain = text_of(names, function->plain), *hash = "";
	enum { HASH_LETTERS = 17 };
	enum tally_mangled_variant variant = tally_mangled_variant(symbol, &hash);
	struct tally_buffer text = { 0 };
	if (by_symbol || variant == TALLY_MANGLED_PLAIN)
		tally_buffer_printf(&text, "%s [%s]", plain, symbol);
	else if (variant == TALLY_MANGLED_RUST_HASH)
		tally_buffer_printf(&text, "%s::%.*s", plain, HASH_LETTERS, hash);
	else
		tally_buffer_printf(&text, "%s [%s]", plain, words[variant]);
	return tally_strings_intern_buffer(&names->strings, &text);
}

/* True if some symbols have the same variant name, or no variant: then symbols must be shown. */
static bool needs_symbols(struct naming *naming, const uint32_t *members, size_t count)
{
	struct tally_names *names = naming->names;
	struct tally_map seen = { 0 };
	bool needs = false;
	for (size_t i = 0; !needs && i < count; i++) {
		const struct tally_function *function = &names->functions.items[members[i]];
		bool added = false;
		if (!has_symbol_of_its_own(names, function))
			continue;
		uint64_t *symbol = tally_map_put(&seen, variant_name(names, function, false),
						 &added);
		needs = !symbol || (!added && *symbol != function->symbol) ||
			tally_mangled_variant(text_of(names, function->symbol), NULL) ==
				TALLY_MANGLED_PLAIN;
		if (symbol)
			*symbol = function->symbol;
	}
	tally_map_release(&seen);
	return needs;
}

/* Adds the variant or the symbol to functions of one object that look the same, sorted by
 * symbol. */
static void add_variants(struct naming *naming, const uint32_t *members, size_t count)
{
	struct tally_names *names = naming->names;
	struct tally_function *functions = names->functions.items;
	uint32_t first = NONE;
	bool differ = false;
	for (size_t i = 0; i < count; i++) {
		const struct tally_function *function = &functions[members[i]];
		if (!has_symbol_of_its_own(names, function))
			continue;
		differ |= first != NONE && function->symbol != first;
		first = function->symbol;
	}
	if (!differ)
		return;
	bool by_symbol = needs_symbols(naming, members, count);
	for (size_t i = 0; i < count; i++)
		if (!is_vague(&functions[members[i]]))
			functions[members[i]].plain = variant_name(names, &functions[members[i]],
								   by_symbol);
}

/* ---- one symbol, several functions ---------------------------------------------------------- */

/* True for a function whose code is at a known address in a file.  Inlined and JIT functions and
 * the stubs of a procedure linkage table have no such place. */
static bool is_place_of_its_own(const struct tally_names *names,
				const struct tally_function *function)
{
	const char *symbol = text_of(names, function->symbol), *at = strchr(symbol, '@');
	return function->kind != TALLY_FRAME_INLINED && function->kind != TALLY_FRAME_JIT &&
	       function->start != UINT64_MAX && function->file != TALLY_FILE_NONE &&
	       (!at || strcmp(at, "@plt") != 0);
}

/* Sets the source files of a file's functions from its symbol table, all at once: there may be many
 * groups of functions that look the same, and the table may be large. */
static void find_sources(struct tally_names *names, uint32_t file)
{
	struct tally_function *functions = names->functions.items;
	struct tally_name_table *table = tally_name_table_of(names, file);
	size_t all = names->functions.count, count = 0;
	if (!table || table->is_kernel || table->sources_found == all)
		return;
	table->sources_found = all;
	struct tally_object_entry *entry = tally_name_table_entry(names, file);
	if (!entry || !entry->object)
		return;
	struct tally_symbol_source *wanted = calloc(all, sizeof(*wanted));
	if (!wanted)
		return;
	for (uint32_t i = 0; i < all; i++)
		if (functions[i].file == file && functions[i].source == NONE &&
		    is_place_of_its_own(names, &functions[i]))
			wanted[count++] = (struct tally_symbol_source){
				.name = text_of(names, functions[i].symbol),
				.start = functions[i].start,
				.function = i,
			};
	tally_symbols_find_sources(entry->object, tally_objects_debug(entry), wanted, count);
	for (size_t i = 0; i < count; i++)
		if (wanted[i].source)
			functions[wanted[i].function].source = tally_strings_intern(
				&names->strings, tally_object_basename(wanted[i].source));
	free(wanted);
}

static uint32_t local_name(struct tally_names *names, const struct tally_function *function,
			   bool by_address)
{
	struct tally_buffer text = { 0 };
	const char *plain = text_of(names, function->plain);
	if (by_address)
		tally_buffer_printf(&text, "%s (0x%" PRIx64 ")", plain, function->start);
	else
		tally_buffer_printf(&text, "%s (%s)", plain, text_of(names, function->source));
	return tally_strings_intern_buffer(&names->strings, &text);
}

/* Adds the source file or the start to functions with one file and symbol that begin at different
 * places. */
static void add_sources(struct tally_names *names, const uint32_t *members, size_t count)
{
	struct tally_function *functions = names->functions.items;
	struct tally_map users = { 0 }; /* source file → number of members */
	bool lacks = false;
	for (size_t i = 0; i < count; i++)
		lacks |= functions[members[i]].source == NONE;
	if (lacks)
		find_sources(names, functions[members[0]].file);
	for (size_t i = 0; i < count; i++) {
		uint64_t *number = tally_map_put(&users, functions[members[i]].source, NULL);
		if (number)
			++*number;
	}
	for (size_t i = 0; i < count; i++) {
		struct tally_function *function = &functions[members[i]];
		const uint64_t *number = tally_map_get(&users, function->source);
		bool by_address = function->source == NONE || !number || *number > 1;
		function->plain = local_name(names, function, by_address);
	}
	tally_map_release(&users);
}

/* ---- one symbol, several declarations ------------------------------------------------------- */

/* Returns the last `parts` components of the path. */
static const char *tail_of(const char *path, unsigned parts)
{
	const char *at = path + strlen(path);
	while (at > path && parts) {
		at--;
		parts -= *at == '/';
	}
	if (*at == '/' && !parts)
		return at + 1;
	return at;
}

/* True if two paths name one file.  A relative path may be the end of the other path, since dwz
 * drops the folder. */
static bool is_same_file(const struct tally_names *names, uint32_t a, uint32_t b)
{
	if (a == b || a == NONE || b == NONE)
		return a == b;
	const char *longer = text_of(names, a), *shorter = text_of(names, b);
	if (strlen(longer) < strlen(shorter)) {
		longer = text_of(names, b);
		shorter = text_of(names, a);
	}
	size_t before = strlen(longer) - strlen(shorter);
	return *shorter != '/' && before && longer[before - 1] == '/' &&
	       !strcmp(longer + before, shorter);
}

static bool is_declared_alike(const struct tally_names *names, uint32_t a, uint32_t b)
{
	const struct tally_function *functions = names->functions.items;
	return is_same_file(names, functions[a].declared, functions[b].declared);
}

/* Returns the end of the path of the file that declares a member, just long enough to differ from
 * the files that declare the other members. */
static const char *declared_text(const struct tally_names *names, const uint32_t *members,
				 size_t count, uint32_t declared)
{
	const char *path = text_of(names, declared), *tail = tail_of(path, 1);
	unsigned parts = 1;
	for (size_t i = 0; i < count && tail > path;) {
		uint32_t other = names->functions.items[members[i]].declared;
		bool is_alike = other != NONE && !is_same_file(names, declared, other) &&
				!strcmp(tail, tail_of(text_of(names, other), parts));
		i++;
		if (is_alike) {
			tail = tail_of(path, ++parts);
			i = 0; /* compare with all once more */
		}
	}
	return tail;
}

/* Returns the only member that has a place of its own and the same declaration as function `of`;
 * NONE if there is none, or several. */
static uint32_t place_of_declaration(const struct tally_names *names, const uint32_t *members,
				     size_t count, uint32_t of)
{
	uint32_t found = NONE;
	for (size_t i = 0; i < count; i++) {
		if (!is_place_of_its_own(names, &names->functions.items[members[i]]) ||
		    !is_declared_alike(names, members[i], of))
			continue;
		if (found != NONE)
			return NONE;
		found = members[i];
	}
	return found;
}

/* All pairs of members are compared.  Honest programs have no more than some tens. */
enum { DECLARED_MAX = 256 };

/* Distinguishes functions of one object and symbol, some of them inlined, by their declarations.
 * `base` is the name that they share.  Functions with places of their own may already have
 * distinct names. */
static void add_declared(struct tally_names *names, const uint32_t *members, size_t count,
			  uint32_t base)
{
	struct tally_function *functions = names->functions.items;
	bool differ = false, is_declared = false;
	for (size_t i = 0; i < count; i++) {
		differ |= functions[members[i]].plain != base ||
			  !is_declared_alike(names, members[0], members[i]);
		is_declared |= functions[members[i]].declared != NONE;
	}
	if (!differ || !is_declared || count > DECLARED_MAX)
		return;
	for (unsigned inlined = 0; inlined < 2; inlined++)
		for (size_t i = 0; i < count; i++) {
			struct tally_function *function = &functions[members[i]];
			uint32_t place = place_of_declaration(names, members, count, members[i]);
			if ((function->kind == TALLY_FRAME_INLINED) != inlined ||
			    function->declared == NONE || function->plain != base)
				continue;
			if (inlined && place != NONE) {
				function->plain = functions[place].plain;
				continue;
			}
			struct tally_buffer text = { 0 };
			tally_buffer_printf(
				&text, "%s (%s)", text_of(names, base),
				declared_text(names, members, count, function->declared));
			function->plain = tally_strings_intern_buffer(&names->strings, &text);
		}
}

/* ---- groups --------------------------------------------------------------------------------- */

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_bare_name(const void *a, const void *b, void *context)
{
	const struct tally_names *names = context;
	const struct tally_function *x = &names->functions.items[*(const uint32_t *)a];
	const struct tally_function *y = &names->functions.items[*(const uint32_t *)b];
	int order = compare(x->bare, y->bare);
	if (!order)
		order = compare(x->symbol, y->symbol);
	if (!order)
		order = compare(*(const uint32_t *)a, *(const uint32_t *)b);
	return order;
}

static int by_object(const void *a, const void *b, void *context)
{
	const struct tally_names *names = context;
	const struct tally_function *x = &names->functions.items[*(const uint32_t *)a];
	const struct tally_function *y = &names->functions.items[*(const uint32_t *)b];
	int order = compare(x->plain, y->plain);
	if (!order)
		order = compare(x->object, y->object);
	if (!order)
		order = compare(x->symbol, y->symbol);
	if (!order)
		order = compare(is_place_of_its_own(names, x), is_place_of_its_own(names, y));
	if (!order)
		order = compare(x->file, y->file);
	if (!order)
		order = compare(x->start, y->start);
	return order;
}

static bool is_of_object(const struct tally_function *a, const struct tally_function *b)
{
	return a->plain == b->plain && a->object == b->object;
}

static bool is_of_symbol(const struct tally_function *a, const struct tally_function *b)
{
	return is_of_object(a, b) && a->symbol == b->symbol;
}

static bool is_of_file(const struct tally_names *names, const struct tally_function *a,
		       const struct tally_function *b)
{
	return a->file == b->file && is_place_of_its_own(names, a) && is_place_of_its_own(names, b);
}

/* Distinguishes functions of one object and symbol: by source file or address within a file, then
 * by declaration. */
static void add_locals(struct tally_names *names, const uint32_t *members, size_t count)
{
	const struct tally_function *functions = names->functions.items;
	uint32_t base = functions[members[0]].plain;
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && is_of_file(names, &functions[members[i]],
							    &functions[members[end]]);)
			end++;
		if (end > i + 1)
			add_sources(names, members + i, end - i);
	}
	add_declared(names, members, count, base);
}

/* Gives different names to functions that share a bare name.  `members` are sorted by symbol. */
static void name_group(struct naming *naming, uint32_t *members, size_t count)
{
	struct tally_names *names = naming->names;
	struct tally_function *functions = names->functions.items;
	if (functions[members[0]].symbol != functions[members[count - 1]].symbol)
		add_parameters(naming, members, count);
	qsort_r(members, count, sizeof(*members), by_object, names);
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1;
		     end < count && is_of_object(&functions[members[i]], &functions[members[end]]);)
			end++;
		if (functions[members[i]].symbol != functions[members[end - 1]].symbol)
			add_variants(naming, members + i, end - i);
	}
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && is_of_symbol(&functions[members[i]],
							      &functions[members[end]]);)
			end++;
		if (end > i + 1)
			add_locals(names, members + i, end - i);
	}
}

static void show_parameters(struct tally_names *names)
{
	for (size_t i = 0; i < names->functions.count; i++) {
		struct tally_function *function = &names->functions.items[i];
		if (function->name != NONE)
			function->plain = signature_of(names, function);
	}
}

int tally_names_tell_apart(struct tally_names *names)
{
	struct naming naming = { .names = names };
	size_t count = names->functions.count;
	if (names->functions.told_apart == count)
		return 0;
	naming.order = malloc((count + 1) * sizeof(*naming.order));
	if (!naming.order)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		naming.order[i] = (uint32_t)i;
		names->functions.items[i].plain = names->functions.items[i].bare;
	}
	if (names->sources.full_names)
		show_parameters(names);
	qsort_r(naming.order, count, sizeof(*naming.order), by_bare_name, names);
	for (size_t i = 0, end; i < count; i = end) {
		const struct tally_function *first = &names->functions.items[naming.order[i]];
		for (end = i + 1;
		     end < count && names->functions.items[naming.order[end]].bare == first->bare;)
			end++;
		if (end > i + 1 && first->name != NONE)
			name_group(&naming, naming.order + i, end - i);
	}
	free(naming.order);
	names->functions.told_apart = count;
	if (names->strings.failed)
		return -ENOMEM;
	return 0;
}

/* ---- names without objects ------------------------------------------------------------------ */

static uint32_t name_with_object(struct tally_names *names, const struct tally_function *function,
				 bool is_whole)
{
	const char *object = text_of(names, function->object);
	struct tally_buffer text = { 0 };
	if (!is_whole)
		object = tally_object_short(object);
	tally_buffer_printf(&text, "%s (%s)", text_of(names, function->plain), object);
	return tally_strings_intern_buffer(&names->strings, &text);
}

static int by_plain_name(const void *a, const void *b, void *context)
{
	const struct tally_names *names = context;
	const struct tally_function *x = &names->functions.items[*(const uint32_t *)a];
	const struct tally_function *y = &names->functions.items[*(const uint32_t *)b];
	int order = compare(x->plain, y->plain);
	if (order || x->object == y->object)
		return order;
	const char *of_x = text_of(names, x->object), *of_y = text_of(names, y->object);
	order = strcmp(tally_object_short(of_x), tally_object_short(of_y));
	if (!order)
		order = compare(x->object, y->object);
	return order;
}

/* Writes the names of functions of one plain name to `out`: with their objects if these differ. */
static void name_objects(struct tally_names *names, const uint32_t *members, size_t count,
			 uint32_t *out)
{
	const struct tally_function *functions = names->functions.items;
	bool differ = false, are_alike = false;
	const struct tally_function *last = NULL;
	for (size_t i = 0; i < count; i++) {
		const struct tally_function *function = &functions[members[i]];
		if (last && last->object != function->object) {
			differ = true;
			are_alike |= !strcmp(tally_object_short(text_of(names, last->object)),
					     tally_object_short(text_of(names, function->object)));
		}
		last = function;
	}
	for (size_t i = 0; i < count; i++) {
		const struct tally_function *function = &functions[members[i]];
		out[members[i]] = function->plain;
		if (differ)
			out[members[i]] = name_with_object(names, function, are_alike);
	}
}

int tally_names_tell_objects_apart(struct tally_names *names, uint32_t *out)
{
	const struct tally_function *functions = names->functions.items;
	size_t count = names->functions.count;
	uint32_t *order = malloc((count + 1) * sizeof(*order));
	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, count, sizeof(*order), by_plain_name, names);
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1;
		     end < count && functions[order[end]].plain == functions[order[i]].plain;)
			end++;
		name_objects(names, order + i, end - i, out);
	}
	free(order);
	if (names->strings.failed)
		return -ENOMEM;
	return 0;
}

/* ---- whole names ---------------------------------------------------------------------------- */

/* Returns the function's name with parameters, which the caller frees; NULL: it has none. */
static char *signature_text(const struct tally_names *names, const struct tally_function *function)
{
	if (function->symbol == NONE)
		return NULL;
	return tally_demangle_signature(text_of(names, function->symbol));
}

void tally_names_full_text(const struct tally_names *names, uint32_t number,
			   struct tally_buffer *out)
{
	const struct tally_function *function = &names->functions.items[number];
	const char *bare = text_of(names, function->bare), *plain = text_of(names, function->plain);
	const char *behind = NULL;
	char *signature = NULL;
	if (!names->options.keep_mangled)
		signature = signature_text(names, function);
	if (signature) {
		size_t length = version_at(signature);
		if (!strncmp(plain, signature, length))
			behind = plain + length;
		tally_buffer_append(out, signature, length);
	} else {
		tally_buffer_text(out, bare);
	}
	if (!behind)
		behind = plain + strlen(bare);
	bool is_own = !strncmp(behind, "::h", 3) || !strncmp(behind, " (0x", 4);
	if (!is_own)
		tally_buffer_text(out, behind);
	free(signature);
}

/* ---- names that are typed ------------------------------------------------------------------- */

static bool is_same_text(const char *a, const char *b)
{
	for (;;) {
		a += strspn(a, " ");
		b += strspn(b, " ");
		if (!*a || *a != *b)
			return *a == *b;
		a++;
		b++;
	}
}

bool tally_names_is_called(const struct tally_names *names, uint32_t number, const char *typed)
{
	if (number >= names->functions.count)
		return false;
	const struct tally_function *function = &names->functions.items[number];
	if (is_same_text(typed, text_of(names, function->plain)) ||
	    is_same_text(typed, text_of(names, function->bare)) ||
	    !strcmp(typed, tally_names_text(names, number)) ||
	    !strcmp(typed, text_of(names, function->symbol)))
		return true;
	if (!strchr(typed, '('))
		return false;
	char *signature = signature_text(names, function);
	bool is_it = signature && is_same_text(typed, signature);
	free(signature);
	return is_it;
}

bool tally_names_is_listed(const struct tally_names *names, uint32_t number, const char *list)
{
	if (number >= names->functions.count)
		return false;
	const struct tally_function *function = &names->functions.items[number];
	if (tally_list_has(list, text_of(names, function->plain)) ||
	    tally_list_has(list, text_of(names, function->bare)) ||
	    tally_list_has(list, tally_names_text(names, number)) ||
	    (function->symbol != NONE && tally_list_has(list, text_of(names, function->symbol))))
		return true;
	if (!strchr(list, '('))
		return false;
	char *signature = signature_text(names, function);
	bool is_it = signature && tally_list_has(list, signature);
	free(signature);
	return is_it;
}
