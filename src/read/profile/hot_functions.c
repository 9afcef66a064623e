/* First comes the search for the name that the user may have meant.  Then leaf samples are summed
 * by place, and the places by function and symbol; the hottest functions come first. */
#include "profile/profile.h"

#include "base/characters.h"
#include "base/extremes.h"
#include "base/map.h"
#include "base/suggest.h"
#include "base/text.h"
#include "base/vector.h"
#include "naming/naming.h"
#include "recording/recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Finds what was probably meant by a name that doesn't exist: it is shown all candidates and keeps
 * the nearest. */

/* Returns the identifier in the name that a language's runtime gives its code, and sets its length:
 * "f" for V8's "JS:*f /path/x.js:1:2" and CPython's "py::f:/path/x.py"; NULL for other names. */
static const char *runtime_identifier(const char *name, size_t *length)
{
	static const struct { const char *before, *marks, *behind; } ways[] = {
		{ "JS:", "*~^+", " " },
		{ "LazyCompile:", "*~^+", " " },
		{ "Function:", "*~^+", " " },
		{ "py::", "", ":" },
	};
	for (unsigned i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		size_t before = strlen(ways[i].before);
		if (strncmp(name, ways[i].before, before) != 0)
			continue;
		name += before;
		name += strspn(name, ways[i].marks);
		*length = strcspn(name, ways[i].behind);
		return name;
	}
	return NULL;
}

bool tally_name_ends_in(const char *name, const char *typed)
{
	size_t length = strlen(name), end = strlen(typed), own;
	const char *identifier = runtime_identifier(name, &own);
	if (identifier)
		return end && own >= end && !memcmp(identifier + own - end, typed, end) &&
		       (own == end || identifier[own - end - 1] == '.');
	return end && length > end + 2 && !memcmp(name + length - end - 2, "::", 2) &&
	       !strcmp(name + length - end, typed);
}

/* "run" for "std::holder<std::byte>::run" */
static const char *last_part(const char *name)
{
	const char *part = name, *at = name;
	while ((at = strstr(at, "::"))) {
		at += 2;
		if (!strpbrk(at, ">)"))
			part = at;
	}
	return part;
}

void tally_meant_name_try(struct tally_meant_name *meant, const char *candidate)
{
	unsigned distance = 0, most = (unsigned)strlen(meant->typed) / 3;
	enum tally_nearness nearness = TALLY_NEAR_NOT;
	if (!*meant->typed || strlen(candidate) >= sizeof(meant->name))
		return;
	if (tally_name_ends_in(candidate, meant->typed))
		nearness = TALLY_NEAR_END;
	else if (strcasestr(candidate, meant->typed))
		nearness = TALLY_NEAR_PART;
	else
		distance = (unsigned)tally_min_u64(
			tally_edit_distance(meant->typed, candidate),
			tally_edit_distance(meant->typed, last_part(candidate)));
	if (nearness == TALLY_NEAR_NOT && distance <= most)
		nearness = TALLY_NEAR_LETTERS;
	if (nearness < meant->nearness || nearness == TALLY_NEAR_NOT ||
	    (nearness == meant->nearness && distance >= meant->distance))
		return;
	meant->nearness = nearness;
	meant->distance = distance;
	snprintf(meant->name, sizeof(meant->name), "%s", candidate);
}

void tally_hint_meant(const struct tally_names *names, const struct tally_map *left_out,
		      const struct tally_profile_filter *filter, struct tally_error *err)
{
	struct tally_meant_name object = { .typed = filter->objects },
				symbol = { .typed = filter->symbols };
	char quoted[2 * sizeof(symbol.name)];
	bool has_object = false;
	for (uint32_t i = 0; i < names->functions.count; i++) {
		if (!tally_map_get(left_out, i))
			continue;
		const char *path = tally_names_object(names, i),
			   *file = tally_names_short_object(names, i);
		bool is_its = !object.typed || tally_list_has(object.typed, path) ||
			      tally_list_has(object.typed, file);
		has_object |= is_its;
		if (!is_its)
			tally_meant_name_try(&object, file);
		else if (symbol.typed)
			tally_meant_name_try(&symbol, tally_names_plain_text(names, i));
	}
	const struct tally_meant_name *meant = &object;
	const char *option = "dso", *key = "dso";
	if (has_object) {
		meant = &symbol;
		option = "symbol";
		key = "sym";
	}
	if (meant->nearness == TALLY_NEAR_NOT)
		return;
	tally_list_quote(meant->name, quoted);
	tally_error_hint(err, "did you mean --%s '%s'? 'tally report --sort %s' lists them all",
			 option, quoted, key);
}

struct tally_annotation_weight *tally_leaf_weights(const struct tally_profile *profile,
						   uint32_t event)
{
	struct tally_annotation_weight *weights = calloc(profile->places.places.count + 1,
							 sizeof(*weights));
	for (size_t i = 0; weights && i < profile->rows.rows.count; i++) {
		const struct tally_row *row = &profile->rows.rows.items[i];
		const uint8_t *end, *stack = tally_row_stack(&profile->rows, i, &end);
		if (profile->classes.items[row->class].event != event || stack == end)
			continue;
		const struct tally_annotation_weight part = { row->samples, row->period };
		tally_annotation_add(&weights[tally_stack_next_place(&stack)], &part);
	}
	return weights;
}

static bool has_symbol(const struct tally_profile *profile, const struct tally_hot_function *hot)
{
	return profile->recording->names.functions.items[hot->function].name != TALLY_STRING_NONE;
}

/* True for "[libz.so.1]", which stands for any function of libz.so.1 without a symbol. */
static bool is_nameless(const struct tally_profile *profile, const struct tally_hot_function *hot,
			const char *name)
{
	const char *object = tally_names_short_object(&profile->recording->names, hot->function);
	size_t length = strlen(object);
	return !has_symbol(profile, hot) && name[0] == '[' && !strncmp(name + 1, object, length) &&
	       !strcmp(name + 1 + length, "]");
}

static bool is_called(const struct tally_profile *profile, const struct tally_hot_function *hot,
		      const char *name)
{
	if (!name)
		return true;
	const char *own = tally_names_plain_text(&profile->recording->names, hot->function);
	size_t length = strcspn(own, "(");
	return tally_names_is_called(&profile->recording->names, hot->function, name) ||
	       is_nameless(profile, hot, name) ||
	       (length && strlen(name) == length && !strncmp(own, name, length));
}

static bool is_chosen(const struct tally_profile *profile, const struct tally_hot_function *hot,
		      const struct tally_function_choice *choice)
{
	const struct tally_names *names = &profile->recording->names;
	const char *object = choice->object;
	char map[TALLY_PERF_MAP_PATH_BYTES];
	const char *own = tally_names_file_path(names, hot->function),
		   *mapped = tally_names_mapped_object(names, hot->function, map);
	return (!object || !strcmp(object, tally_names_short_object(names, hot->function)) ||
		!strcmp(object, tally_names_object(names, hot->function)) || !strcmp(object, own) ||
		!strcmp(object, tally_object_short(own)) || !strcmp(object, mapped) ||
		!strcmp(object, tally_object_short(mapped))) &&
	       is_called(profile, hot, choice->name);
}

static int hotter_first(const void *a_, const void *b_)
{
	const struct tally_hot_function *a = a_, *b = b_;
	if (a->whole_self != b->whole_self)
		return tally_compare_u64(b->whole_self, a->whole_self);
	if (a->number != b->number)
		return tally_compare_u64(a->number, b->number);
	if (a->weight.period != b->weight.period)
		return tally_compare_u64(b->weight.period, a->weight.period);
	if (a->weight.samples != b->weight.samples)
		return tally_compare_u64(b->weight.samples, a->weight.samples);
	return tally_compare_u64(a->place, b->place);
}

/* Finds the parts of functions, and numbers the functions. */
struct part_finder {
	const struct tally_profile *profile;
	struct tally_map parts;   /* function and symbol → index in `out` */
	struct tally_map numbers; /* name and object → number of the function */
	struct { uint64_t *items; size_t count, capacity; } selves; /* by number: whole_self */
	struct tally_hot_functions *out;
};

/* Returns the index of a function's part, added when new; SIZE_MAX when memory is out. */
static size_t part_of(struct part_finder *finder, uint32_t function, uint32_t symbol,
		      uint32_t place)
{
	const struct tally_function *named = &finder->profile->recording->names.functions
						      .items[function];
	bool added;
	uint64_t *slot = tally_map_put(&finder->parts, (uint64_t)function << 32 | symbol, &added);
	if (!slot)
		return SIZE_MAX;
	if (!added)
		return (size_t)*slot;
	*slot = finder->out->count;
	size_t index = (size_t)*slot;
	uint64_t *number = tally_map_put(&finder->numbers,
					 (uint64_t)named->plain << 32 | named->object, &added);
	if (!number || (added && tally_vector_push(&finder->selves, (uint64_t)0) < 0))
		return SIZE_MAX;
	if (added)
		*number = finder->selves.count - 1;
	struct tally_hot_function part = { .function = function, .symbol = symbol, .place = place,
					   .number = (uint32_t)*number };
	if (tally_vector_push(finder->out, part) < 0)
		return SIZE_MAX;
	return index;
}

static int add_place(struct part_finder *finder, uint32_t place,
		     const struct tally_annotation_weight *weight)
{
	const struct tally_profile *profile = finder->profile;
	const struct tally_place_name *name = &profile->names[place];
	const struct tally_place_frame *frames = &profile->recording->names.frames
							  .items[name->first];
	uint32_t symbol = tally_profile_symbol(profile, place);
	for (uint32_t i = 0; i < name->count; i++) {
		size_t at = part_of(finder, frames[i].function, symbol, place);
		bool is_again = false; /* a recursive function may be inlined into itself */
		for (uint32_t k = 0; k < i; k++)
			is_again |= frames[k].function == frames[i].function;
		if (at == SIZE_MAX)
			return -ENOMEM;
		struct tally_hot_function *part = &finder->out->items[at];
		if (!is_again)
			tally_annotation_add(&part->weight, weight);
		if (!i) {
			tally_annotation_add(&part->self, weight);
			uint64_t self = weight->period;
			if (!self)
				self = weight->samples;
			finder->selves.items[part->number] += self;
		}
	}
	return 0;
}

static int sum_functions(const struct tally_profile *profile, uint32_t event,
			 struct tally_hot_functions *out)
{
	struct tally_annotation_weight *weights = tally_leaf_weights(profile, event);
	struct part_finder finder = { .profile = profile, .out = out };
	int result = 0;
	if (!weights)
		result = -ENOMEM;
	for (uint32_t place = 0; !result && place < profile->places.places.count; place++)
		if (weights[place].samples)
			result = add_place(&finder, place, &weights[place]);
	for (size_t i = 0; !result && i < out->count; i++)
		out->items[i].whole_self = finder.selves.items[out->items[i].number];
	tally_map_release(&finder.parts);
	tally_map_release(&finder.numbers);
	tally_vector_release(&finder.selves);
	free(weights);
	if (!result && out->count)
		qsort(out->items, out->count, sizeof(*out->items), hotter_first);
	return result;
}

static bool ends_in(const struct tally_profile *profile, const struct tally_hot_function *hot,
		    const char *typed)
{
	return has_symbol(profile, hot) &&
	       tally_name_ends_in(tally_names_plain_text(&profile->recording->names, hot->function),
				  typed);
}

/* Returns the number of the only function whose name ends in the typed one; SIZE_MAX: none, or
 * several. */
static size_t only_end(const struct tally_profile *profile, const struct tally_hot_functions *all,
		       const struct tally_function_choice *choice)
{
	const struct tally_function_choice any_name = { .object = choice->object };
	size_t found = SIZE_MAX;
	for (size_t i = 0; choice->name && i < all->count; i++) {
		if (!is_chosen(profile, &all->items[i], &any_name) ||
		    !ends_in(profile, &all->items[i], choice->name))
			continue;
		if (found != SIZE_MAX && found != all->items[i].number)
			return SIZE_MAX;
		found = all->items[i].number;
	}
	return found;
}

/* Shortens a long name in the middle, because the ends tell instances of templates apart. */
static void put_short(const char *name, char *list, size_t size)
{
	enum { HEAD = 30, TAIL = 31 };
	size_t used = strlen(list), length = strlen(name), head = HEAD, tail = length - TAIL;
	const char *comma = used ? ", " : "";
	if (length <= HEAD + TAIL + 3) {
		snprintf(list + used, size - used, "%s%s", comma, name);
		return;
	}
	while (head && !tally_begins_character(name[head])) /* not inside a UTF-8 character */
		head--;
	while (!tally_begins_character(name[tail]))
		tail++;
	snprintf(list + used, size - used, "%s%.*s...%s", comma, (int)head, name, name + tail);
}

static int none_is_chosen(const struct tally_profile *profile,
			  const struct tally_hot_functions *all,
			  const struct tally_function_choice *choice, struct tally_error *err)
{
	enum { LISTED = 5 };
	struct tally_meant_name meant = { .typed = choice->name };
	const struct tally_names *names = &profile->recording->names;
	char list[400] = "";
	for (size_t i = 0, listed = 0; i < all->count && listed < LISTED; i++) {
		if (i && all->items[i].number == all->items[i - 1].number)
			continue;
		put_short(tally_names_plain_text(names, all->items[i].function), list,
			  sizeof(list));
		listed++;
	}
	if (choice->name)
		tally_error_set(err, -ENOENT, "no samples in a function '%s'%s%s", choice->name,
				choice->object ? " of " : "", tally_text_or(choice->object, ""));
	else
		tally_error_set(err, -ENOENT, "no samples are in '%s'", choice->object);
	for (size_t i = 0; choice->name && i < all->count; i++)
		tally_meant_name_try(&meant, tally_names_plain_text(names, all->items[i].function));
	if (meant.nearness != TALLY_NEAR_NOT)
		tally_error_hint(err,
				 "did you mean '%s'? 'tally report --sort sym' lists the functions",
				 meant.name);
	else
		tally_error_hint(err, "the hottest are %s; 'tally report --sort sym' lists them",
				 list);
	return -ENOENT;
}

int tally_hot_functions_find(const struct tally_profile *profile, uint32_t event,
			     const struct tally_function_choice *choice,
			     struct tally_hot_functions *out, struct tally_error *err)
{
	size_t chosen = 0;
	int result = sum_functions(profile, event, out);
	for (size_t i = 0; !result && i < out->count; i++) {
		struct tally_hot_function hot = out->items[i];
		if (!is_chosen(profile, &hot, choice))
			continue;
		/* as long as none is chosen, `out` keeps all of them for the hint */
		out->items[chosen++] = hot;
	}
	size_t end = SIZE_MAX;
	if (!result && !chosen)
		end = only_end(profile, out, choice);
	for (size_t i = 0; end != SIZE_MAX && i < out->count; i++)
		if (out->items[i].number == end)
			out->items[chosen++] = out->items[i];
	if (result)
		tally_error_set(err, result, "out of memory");
	else if (!chosen && (choice->name || choice->object))
		result = none_is_chosen(profile, out, choice, err);
	else if (!chosen)
		result = tally_error_set(err, -ENOENT, "the event's samples have no addresses");
	out->count = chosen;
	return result;
}

int tally_hot_functions_above(const struct tally_profile *profile, uint32_t event,
			      const struct tally_function_choice *choice,
			      struct tally_annotation_weight *out)
{
	bool *is_it = calloc(profile->places.places.count + 1, sizeof(*is_it));
	*out = (struct tally_annotation_weight){ 0 };
	for (uint32_t place = 0; is_it && place < profile->places.places.count; place++) {
		const struct tally_place_name *name = &profile->names[place];
		for (uint32_t k = 0; k < name->count; k++) {
			struct tally_hot_function one = {
				.function = profile->recording->names.frames.items[name->first + k]
						    .function,
				.place = place
			};
			is_it[place] |= is_chosen(profile, &one, choice);
		}
	}
	for (size_t i = 0; is_it && i < profile->rows.rows.count; i++) {
		const struct tally_row *row = &profile->rows.rows.items[i];
		const uint8_t *end, *stack = tally_row_stack(&profile->rows, i, &end);
		bool has = false;
		while (stack < end && !has)
			has = is_it[tally_stack_next_place(&stack)];
		if (has && profile->classes.items[row->class].event == event)
			tally_annotation_add(out, &(struct tally_annotation_weight){ row->samples,
										     row->period });
	}
	if (!is_it)
		return -ENOMEM;
	free(is_it);
	return 0;
}
