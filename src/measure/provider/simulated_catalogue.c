/* The names of the simulated PMU's events, and the events that it refuses.
 *
 * In counts, generic names stay generic, since ratios and verdicts look for those.  In recordings
 * all events are the PMU's own, so that no reader takes them for the hardware's. */
#include "provider/simulated.h"

#include "event/event.h"
#include "valgrind/vsim_names.h"

#include <errno.h>
#include <string.h>

static bool is_generic(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_HARDWARE || attr->type == TALLY_TYPE_HW_CACHE;
}

static const char *refuses_generic(const struct tally_attr *attr, const char **hint)
{
	uint64_t config;
	if (!vsim_generic_config(attr->type, attr->config, &config))
		return NULL;
	if (attr->type == TALLY_TYPE_HARDWARE && (attr->config == TALLY_HW_CPU_CYCLES ||
						  attr->config == TALLY_HW_REF_CPU_CYCLES ||
						  attr->config == TALLY_HW_BUS_CYCLES)) {
		*hint = "est-cycles is an estimate from the counts, for ranking";
		return "the simulated PMU has no cycles";
	}
	*hint = "'tally list --provider simulated' shows what it counts";
	return "the simulated PMU does not count this";
}

static const char *refuses_kind(const struct tally_attr *attr, const char **hint)
{
	switch (attr->type) {
	case TALLY_TYPE_SOFTWARE:
		*hint = "the kernel counts it at full speed: leave out --provider simulated";
		if (attr->config == TALLY_SW_DUMMY)
			return NULL;
		return "the simulated PMU counts what the CPU does, not the kernel";
	case TALLY_TYPE_TRACEPOINT:
		*hint = "the kernel has it at full speed: leave out --provider simulated";
		return "the simulated PMU has no tracepoints";
	case TALLY_TYPE_BREAKPOINT:
		*hint = "the kernel has them at full speed: leave out --provider simulated";
		return "the simulated PMU has no breakpoints";
	case TALLY_TYPE_RAW:
		*hint = "'tally list --provider simulated' shows what it counts";
		return "raw numbers belong to one CPU model, which is not the simulated one";
	default:
		*hint = "'tally list --provider simulated' shows what it counts";
		return "this PMU is not simulated";
	}
}

const char *tally_simulated_refuses(const struct tally_attr *attr, const char **hint)
{
	const char *ignored;
	if (!hint)
		hint = &ignored;
	*hint = NULL;
	const char *reason = NULL;
	if (is_generic(attr)) {
		reason = refuses_generic(attr, hint);
	} else if (attr->type != VSIM_PMU_TYPE) {
		reason = refuses_kind(attr, hint);
	} else if (!vsim_config_is_valid(attr->config)) {
		*hint = "'tally list --provider simulated' shows what it counts; "
			"est-cycles can't be part of a sum";
		reason = "the simulated PMU has no such event";
	}
	if (!reason && attr->flags & TALLY_ATTR_EXCLUDE_HOST) {
		*hint = "leave out the modifier G";
		reason = "the simulated CPU runs no guests";
	}
	if (!reason && attr->flags & TALLY_ATTR_EXCLUDE_USER) {
		*hint = "leave out the modifier: only the program's own code is counted";
		reason = "the simulated PMU runs only user mode and does not see the kernel";
	}
	return reason;
}

const char *tally_simulated_describe(const struct tally_attr *attr, struct tally_arena *arena)
{
	uint64_t config = attr->config;
	if (tally_simulated_refuses(attr, NULL) || attr->type == TALLY_TYPE_SOFTWARE)
		return NULL;
	if (is_generic(attr))
		vsim_generic_config(attr->type, attr->config, &config);
	const struct vsim_event_name *row = vsim_event_by_config(config);
	const char *text = "a sum of several";
	if (row)
		text = row->text;
	return tally_arena_printf(arena, "%s: %s", vsim_quality_name(vsim_config_quality(config)),
				  text);
}

/* ---- the catalogue ------------------------------------------------------- */

static size_t event_count(void)
{
	size_t count = 0;
	while (vsim_event_names[count].name)
		count++;
	return count;
}

static int add_pmu(struct tally_catalogue *catalogue)
{
	struct tally_arena *arena = &catalogue->arena;
	size_t count = event_count();
	struct tally_pmu *pmu = tally_arena_array(arena, 1, sizeof(*pmu));
	struct tally_format_term *terms = tally_arena_array(arena, 2, sizeof(*terms));
	struct tally_pmu_alias *events = tally_arena_array(arena, count, sizeof(*events));
	if (!pmu || !terms || !events)
		return -ENOMEM;
	terms[0] = (struct tally_format_term){ "kinds", 0, (1ull << VSIM_KINDS) - 1 };
	terms[1] = (struct tally_format_term){ "counters", 1, VSIM_COUNTERS_MASK };
	for (size_t i = 0; i < count; i++) {
		const struct vsim_event_name *row = &vsim_event_names[i];
		const char *expression = tally_arena_printf(arena, "kinds=0x%llx",
							    (unsigned long long)row->config);
		if (!expression)
			return -ENOMEM;
		events[i] = (struct tally_pmu_alias){ row->name, expression, "", 1 };
	}
	*pmu = (struct tally_pmu){ "vsim", VSIM_PMU_TYPE, "", terms, 2, events, count };
	catalogue->pmus = pmu;
	catalogue->pmu_count = 1;
	return 0;
}

int tally_simulated_catalogue(struct tally_catalogue *catalogue, struct tally_error *err)
{
	if ((!catalogue->named && tally_catalogue_init(catalogue)) || add_pmu(catalogue))
		return tally_error_set(err, -ENOMEM, "no memory left for the names of events");
	for (size_t i = 0; i < catalogue->named_count; i++) {
		struct tally_named_event *named = &catalogue->named[i];
		const struct tally_attr attr = { .type = named->type, .config = named->config };
		named->unavailable = tally_simulated_refuses(&attr, NULL);
		const char *description = NULL;
		if (!named->unavailable)
			description = tally_simulated_describe(&attr, &catalogue->arena);
		if (description)
			named->description = description;
	}
	catalogue->tracepoints_unavailable = "the simulated PMU has no tracepoints";
	return 0;
}

/* ---- one event, generic or the PMU's own --------------------------------- */

/* Finds the generic event that has this config; if there are several, the first. */
static bool find_generic(uint64_t wanted, uint32_t *type, uint64_t *config)
{
	uint64_t mask;
	for (uint64_t i = 0; i < TALLY_HW_MAX; i++)
		if (!vsim_generic_config(TALLY_TYPE_HARDWARE, i, &mask) && mask == wanted) {
			*type = TALLY_TYPE_HARDWARE;
			*config = i;
			return true;
		}
	for (uint64_t i = 0; i < TALLY_CACHE_MAX * TALLY_CACHE_OP_MAX * TALLY_CACHE_RESULT_MAX;
	     i++) {
		uint64_t generic = i % TALLY_CACHE_MAX |
				   i / TALLY_CACHE_MAX % TALLY_CACHE_OP_MAX << 8 |
				   i / TALLY_CACHE_MAX / TALLY_CACHE_OP_MAX << 16;
		if (!vsim_generic_config(TALLY_TYPE_HW_CACHE, generic, &mask) && mask == wanted) {
			*type = TALLY_TYPE_HW_CACHE;
			*config = generic;
			return true;
		}
	}
	return false;
}

void tally_simulated_make_generic(struct tally_event *event)
{
	struct tally_attr *attr = &event->attr;
	attr->flags |= TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;
	if (attr->type == VSIM_PMU_TYPE && !attr->config1)
		find_generic(attr->config, &attr->type, &attr->config);
}

/* Returns "u" for "instructions:u", "vsim/loads/u" and "vsim/loads/:u". */
static const char *modifiers_of(const char *name)
{
	const char *slash = strrchr(name, '/'), *from = strchr(name, ':');
	if (slash)
		from = slash + 1;
	if (!from)
		return "";
	return from + (*from == ':');
}

int tally_simulated_make_own(struct tally_event *event, struct tally_arena *arena)
{
	struct tally_attr *attr = &event->attr;
	uint64_t config = attr->config;
	attr->flags |= TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;
	bool was_own = attr->type == VSIM_PMU_TYPE;
	if (!was_own && !is_generic(attr))
		return 0;
	if (!was_own && vsim_generic_config(attr->type, attr->config, &config))
		return 0;
	event->kind = TALLY_EVENT_PMU;
	attr->type = VSIM_PMU_TYPE;
	attr->config = config;
	if (was_own && strchr(event->name, '/'))
		return 0;
	/* Keeps the typed name if the PMU knows it; otherwise, for example, L1-dcache-loads becomes
	 * "loads".  A name that the user gave with a name= term stays. */
	const char *typed = tally_arena_copy(arena, event->name, strcspn(event->name, ":/"));
	const struct vsim_event_name *row = typed ? vsim_event_by_name(typed) : NULL;
	if (!typed)
		return -ENOMEM;
	if (!row && !tally_cache_config(typed, &config))
		row = vsim_event_by_config(attr->config);
	if (row)
		event->name = tally_arena_printf(arena, "vsim/%s/%s", row->name,
						 modifiers_of(event->name));
	return event->name ? 0 : -ENOMEM;
}
