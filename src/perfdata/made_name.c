/* Names for events of recordings without EVENT_DESC: from old recorders, killed recorders and
 * simpleperf.
 *
 * The names, modifiers included, are those of perf's evsel__name(), so `script` prints the same as
 * perf script.  The attribute does not tell which modifiers the user typed: newer versions of perf
 * exclude guests for "cpu-clock:u", and the name becomes "cpu-clock:uH". */
#include "event/event.h"
#include "perfdata/perfdata_reader.h"

enum { MODIFIERS_MAX = 16 };

static void put_modifier(char *out, size_t *length, bool is_meant, char letter)
{
	if (!is_meant)
		return;
	if (!*length)
		out[(*length)++] = ':';
	out[(*length)++] = letter;
}

/* Writes the modifiers: "", ":u", ":ppH". */
static void put_modifiers(const struct tally_attr *attr, char out[MODIFIERS_MAX])
{
	const uint64_t flags = attr->flags;
	const bool has_modes = flags & (TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_USER |
					TALLY_ATTR_EXCLUDE_HV);
	const unsigned precise = tally_attr_precise(attr);
	const bool guests_out = flags & TALLY_ATTR_EXCLUDE_GUEST, usual = has_modes || precise;
	const bool has_machines = flags & TALLY_ATTR_EXCLUDE_HOST || guests_out == usual;
	size_t length = 0;
	put_modifier(out, &length, has_modes && !(flags & TALLY_ATTR_EXCLUDE_KERNEL), 'k');
	put_modifier(out, &length, has_modes && !(flags & TALLY_ATTR_EXCLUDE_USER), 'u');
	put_modifier(out, &length, has_modes && !(flags & TALLY_ATTR_EXCLUDE_HV), 'h');
	for (unsigned i = 0; i < precise; i++)
		put_modifier(out, &length, true, 'p');
	put_modifier(out, &length, has_machines && !(flags & TALLY_ATTR_EXCLUDE_HOST), 'H');
	put_modifier(out, &length, has_machines && !guests_out, 'G');
	out[length] = '\0';
}

static const char *plain_name(const struct tally_attr *attr, struct tally_arena *arena)
{
	unsigned long long config = attr->config;
	if (attr->type == TALLY_TYPE_RAW)
		return tally_arena_printf(arena, "raw 0x%llx", config);
	if (attr->type == TALLY_TYPE_BREAKPOINT)
		return tally_arena_printf(arena, "mem:0x%llx:%s%s%s",
					  (unsigned long long)attr->config1,
					  attr->bp_type & TALLY_BREAKPOINT_R ? "r" : "",
					  attr->bp_type & TALLY_BREAKPOINT_W ? "w" : "",
					  attr->bp_type & TALLY_BREAKPOINT_X ? "x" : "");
	return tally_event_name_of(attr, NULL, arena);
}

const char *tally_perfdata_made_name(const struct tally_attr *attr, struct tally_arena *arena)
{
	char modifiers[MODIFIERS_MAX];
	if (attr->type == TALLY_TYPE_TRACEPOINT)
		return tally_arena_printf(arena, "tracepoint %llu",
					  (unsigned long long)attr->config);
	const char *name = plain_name(attr, arena);
	put_modifiers(attr, modifiers);
	return name && *modifiers && attr->type < TALLY_TYPE_MAX
		       ? tally_arena_printf(arena, "%s%s", name, modifiers)
		       : name;
}
