#include "profile/meant_name.h"

#include "base/map.h"
#include "base/suggest.h"
#include "naming/names.h"
#include "recording/sample_filter.h"

#include <stdio.h>
#include <string.h>

bool tally_name_ends_in(const char *name, const char *typed)
{
	size_t length = strlen(name), end = strlen(typed);
	return end && length > end + 2 && !memcmp(name + length - end - 2, "::", 2) &&
	       !strcmp(name + length - end, typed);
}

/* "run" for "std::holder<std::byte>::run" */
static const char *last_part(const char *name)
{
	const char *part = name, *at = name;
	while ((at = strstr(at, "::"))) {
		at += 2;
		part = strpbrk(at, ">)") ? part : at;
	}
	return part;
}

static unsigned smaller(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

void tally_meant_name_see(struct tally_meant_name *meant, const char *candidate)
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
		distance = smaller(tally_edit_distance(meant->typed, candidate),
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
			tally_meant_name_see(&object, file);
		else if (symbol.typed)
			tally_meant_name_see(&symbol, tally_names_plain_text(names, i));
	}
	const struct tally_meant_name *meant = has_object ? &symbol : &object;
	if (meant->nearness == TALLY_NEAR_NOT)
		return;
	tally_list_quote(meant->name, quoted);
	tally_error_hint(err, "did you mean --%s '%s'? 'tally report --sort %s' lists them all",
			 has_object ? "symbol" : "dso", quoted, has_object ? "sym" : "dso");
}
