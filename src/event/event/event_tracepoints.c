/* system:name, exact or by globs, and a bare name, over the catalogue's tracepoints.
 *
 * An exact name costs one look-up (tracepoint_id) if the provider has one.  Only globs, names
 * without a system, and mistakes need a walk of all names. */
#include "base/error.h"
#include "base/text.h"
#include "event/event_internal.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tally_event_is_glob(const char *text)
{
	return strpbrk(text, "*?[") != NULL;
}

static int compare(const void *a, const void *b)
{
	const struct tally_tracepoint_name *x = a, *y = b;
	int order = strcmp(x->system, y->system);
	if (order)
		return order;
	return strcmp(x->name, y->name);
}

static const struct tally_tracepoint_name *find(const struct tally_catalogue *catalogue,
						const char *system, const char *name)
{
	struct tally_tracepoint_name key = { system, name, 0 };
	if (!catalogue->tracepoint_count)
		return NULL;
	return bsearch(&key, catalogue->tracepoints, catalogue->tracepoint_count, sizeof(key),
		       compare);
}

/* Loads all names.  If there are none, the error says why. */
static int load(struct tally_event_parser *parser, size_t position)
{
	struct tally_catalogue *catalogue = parser->catalogue;
	struct tally_error why = TALLY_ERROR_NONE;
	int code = 0;
	if (!catalogue->tracepoint_count && catalogue->load_tracepoints)
		code = catalogue->load_tracepoints(catalogue, catalogue->context, &why);
	if (catalogue->tracepoint_count)
		return 0;
	if (!code)
		code = -ENOENT;
	const char *reason = tally_text_or(catalogue->tracepoints_unavailable, "there are none");
	if (why.message[0])
		reason = why.message;
	tally_event_fail(parser, code, position, "tracepoints can't be named here: %s", reason);
	if (why.hint[0])
		tally_error_hint(parser->err, "%s", why.hint);
	return code;
}

static int unknown(struct tally_event_parser *parser, struct tally_event_token at,
		   const char *system, const char *name)
{
	const struct tally_catalogue *catalogue = parser->catalogue;
	struct tally_event_nearest nearest;
	char typed[256], candidate[256];
	bool system_exists = false;
	snprintf(typed, sizeof(typed), "%s:%s", system, name);
	tally_event_nearest_init(&nearest, typed);
	for (size_t i = 0; i < catalogue->tracepoint_count; i++) {
		const struct tally_tracepoint_name *t = &catalogue->tracepoints[i];
		system_exists |= !strcmp(t->system, system);
		snprintf(candidate, sizeof(candidate), "%s:%s", t->system, t->name);
		tally_event_nearest_try(&nearest, candidate);
	}
	if (system_exists) {
		tally_event_fail(parser, -ENOENT, at.start,
				 "there is no tracepoint '%.100s' in '%.100s'", name, system);
		tally_event_nearest_hint(
			&nearest, parser,
			"'tally list tracepoint' and the system's name show what it has");
		return -ENOENT;
	}
	tally_event_fail(parser, -ENOENT, at.start, "there is no tracepoint '%.200s'", typed);
	tally_event_nearest_hint(&nearest, parser, "'tally list tracepoint' shows them");
	return -ENOENT;
}

static int add(struct tally_event_parser *parser, size_t position, const char *system,
	       const char *name, uint64_t id, bool from_glob)
{
	struct tally_catalogue *catalogue = parser->catalogue;
	if (id == UINT64_MAX && catalogue->tracepoint_id) {
		int64_t found = catalogue->tracepoint_id(catalogue->context, system, name);
		if (found < 0 &&
		    from_glob) /* "ftrace:print" and others have no id: they can't be opened */
			return 0;
		if (found < 0)
			return tally_event_fail(parser, (int)found, position,
						"tracepoint '%.100s:%.100s' has no id: %s", system,
						name, tally_errno_text((int)found));
		id = (uint64_t)found;
	}
	struct tally_event *event = tally_event_add(parser, TALLY_EVENT_TRACEPOINT,
						    TALLY_TYPE_TRACEPOINT, id);
	if (!event)
		return -ENOMEM;
	event->name = tally_arena_printf(parser->arena, "%s:%s", system, name);
	if (event->name)
		return 1;
	return tally_event_no_memory(parser);
}

static int add_matching(struct tally_event_parser *parser, size_t position, const char *system,
			const char *name)
{
	struct tally_catalogue *catalogue = parser->catalogue;
	int code = load(parser, position), added = 0;
	if (code < 0)
		return code;
	for (size_t i = 0; i < catalogue->tracepoint_count; i++) {
		const struct tally_tracepoint_name *t = &catalogue->tracepoints[i];
		if (fnmatch(system, t->system, 0) || fnmatch(name, t->name, 0))
			continue;
		code = add(parser, position, t->system, t->name, t->id, true);
		if (code < 0)
			return code;
		added += code;
	}
	if (added)
		return 0;
	tally_event_fail(parser, -ENOENT, position, "no tracepoint matches '%.100s:%.100s'", system,
			 name);
	tally_error_hint(parser->err, "'tally list tracepoint' shows what there is");
	return -ENOENT;
}

/* Lists the systems of all tracepoints with that name, for a hint. */
static void list_systems(struct tally_event_parser *parser, const char *name)
{
	const struct tally_catalogue *catalogue = parser->catalogue;
	char list[400];
	size_t used = 0;
	for (size_t i = 0; i < catalogue->tracepoint_count && used < sizeof(list); i++)
		if (!strcmp(catalogue->tracepoints[i].name, name))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s:%s",
						 used ? ", " : "", catalogue->tracepoints[i].system,
						 name);
	tally_error_hint(parser->err, "write which: %s%s", list, used < sizeof(list) ? "" : "…");
}

int tally_event_bare_tracepoint(struct tally_event_parser *parser, size_t position,
				const char *name)
{
	struct tally_catalogue *catalogue = parser->catalogue;
	const struct tally_tracepoint_name *found = NULL;
	unsigned count = 0;
	if (!catalogue->tracepoint_count && catalogue->load_tracepoints)
		catalogue->load_tracepoints(catalogue, catalogue->context, NULL);
	for (size_t i = 0; i < catalogue->tracepoint_count; i++)
		if (!strcmp(catalogue->tracepoints[i].name, name)) {
			found = &catalogue->tracepoints[i];
			count++;
		}
	if (count > 1) {
		tally_event_fail(parser, -EINVAL, position,
				 "'%.200s' is a tracepoint of %u systems", name, count);
		list_systems(parser, name);
		return -EINVAL;
	}
	if (!found)
		return 0;
	return add(parser, position, found->system, found->name, found->id, false);
}

int tally_event_add_tracepoints(struct tally_event_parser *parser,
				struct tally_event_token system_token,
				struct tally_event_token name_token)
{
	struct tally_catalogue *catalogue = parser->catalogue;
	char *system = tally_event_token_text(parser, system_token);
	char *name = tally_event_token_text(parser, name_token);
	if (!system || !name)
		return tally_event_no_memory(parser);
	if (tally_event_is_glob(system) || tally_event_is_glob(name))
		return add_matching(parser, system_token.start, system, name);

	const struct tally_tracepoint_name *known = find(catalogue, system, name);
	int code;
	if (!known && catalogue->tracepoint_id) {
		int64_t id = catalogue->tracepoint_id(catalogue->context, system, name);
		if (id >= 0) {
			code = add(parser, system_token.start, system, name, (uint64_t)id, false);
			return tally_error_of(code);
		}
	}
	if (!known) {
		code = load(parser, system_token.start);
		if (code < 0)
			return code;
		known = find(catalogue, system, name);
	}
	if (!known) {
		bool same_system = false;
		for (size_t i = 0; i < catalogue->tracepoint_count && !same_system; i++)
			same_system = !strcmp(catalogue->tracepoints[i].system, system);
		return unknown(parser, same_system ? name_token : system_token, system, name);
	}
	code = add(parser, system_token.start, known->system, known->name, known->id, false);
	return tally_error_of(code);
}
