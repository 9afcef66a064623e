/* The events of `record`: chooses the provider, parses the expressions, and adds the default event
 * or waits and wakers.  Only the kernel knows what it permits, so some events are opened for a
 * moment, to see if they can be used. */
#include "command/record_request.h"

#include "machine/machine.h"
#include "perfdata/perfdata.h"
#include "provider/provider.h"
#include "session/session.h"

#include <errno.h>
#include <string.h>

/* Opening these tells whether the CPU counts cycles. */
#define CYCLES_TO_TRY \
	{ .type = TALLY_TYPE_HARDWARE, \
	  .size = sizeof(struct tally_attr), \
	  .config = TALLY_HW_CPU_CYCLES, \
	  .sample_period = 1000000, \
	  .flags = TALLY_ATTR_DISABLED | TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV }

/* Chooses the provider's default event, or cycles if the CPU can count them, otherwise
 * cpu-clock. */
static int choose_default_event(struct record_request *request, struct tally_error *err)
{
	const struct tally_attr cycles = CYCLES_TO_TRY;
	struct tally_provider *provider = request->provider;
	if (provider->ops->default_event) {
		request->default_event_note = provider->ops->default_event_note;
		return tally_event_parse(provider->ops->default_event, &request->catalogue,
					 &request->arena, &request->events, err);
	}
	const char *event = "cpu-clock";
	int handle = provider->ops->open(provider, &cycles, 0, -1, -1, 0);
	bool is_refused = handle == -EPERM || handle == -EACCES || handle == -ENOSYS;
	if (handle >= 0) {
		provider->ops->close(provider, handle);
		event = "cycles";
	} else if (!is_refused) { /* otherwise nothing can be sampled; reported later */
		request->default_event_note =
			"this machine has no hardware cycle counter: sampling cpu-clock";
		if (request->target.command && !*tally_simulated_lack())
			request->default_event_note =
				"this machine has no hardware cycle counter: sampling cpu-clock "
				"(--provider simulated samples instructions and "
				"misses: " TALLY_SIMULATED_COST ")";
	}
	return tally_event_parse(event, &request->catalogue, &request->arena, &request->events,
				 err);
}

static int choose_provider(struct record_request *request, struct tally_error *err)
{
	const char *name = request->provider_name;
	const struct tally_provider_ops *ops = request->provider_ops;
	if (!request->choice.ops)
		return tally_provider_unknown(name, err);
	int result = provider_check_target(ops, &request->target, err);
	if (result < 0)
		return result;
	result = tally_provider_make(ops, name, &request->simulated, &request->provider, err);
	if (result < 0)
		return result;
	return ops->catalogue(request->provider, &request->catalogue, err);
}

/* Checks the events, and has the provider mark those that aren't the hardware's: no reader may take
 * them for these. */
static int prepare_events(struct record_request *request, struct tally_error *err)
{
	const struct tally_provider_ops *ops = request->provider_ops;
	int result = provider_check_events(ops, &request->events, err);
	if (result < 0 || !ops->prepare_record)
		return result;
	for (size_t i = 0; i < request->events.count; i++)
		if (ops->prepare_record(&request->events.items[i], &request->arena) < 0)
			return tally_error_set(err, -ENOMEM, "out of memory");
	return 0;
}

/* Returns perf's name of an event that it replaced, which has the modifiers in perf's order; NULL:
 * out of memory. */
static const char *perfs_clock_name(struct tally_arena *arena, const struct tally_event *event)
{
	static const struct {
		uint64_t excluded;
		char letter;
	} modes[] = {
		{ TALLY_ATTR_EXCLUDE_KERNEL, 'k' },
		{ TALLY_ATTR_EXCLUDE_USER, 'u' },
		{ TALLY_ATTR_EXCLUDE_HV, 'h' },
	};
	const uint64_t some_mode = TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_USER |
				   TALLY_ATTR_EXCLUDE_HV;
	uint64_t flags = event->attr.flags;
	char letters[16] = "";
	size_t length = 0;
	unsigned precise = event->precise_max ? 3 : tally_attr_precise(&event->attr);
	for (size_t i = 0; flags & some_mode && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!(flags & modes[i].excluded))
			letters[length++] = modes[i].letter;
	for (unsigned i = 0; i < precise; i++)
		letters[length++] = 'p';
	if (flags & TALLY_ATTR_EXCLUDE_HOST ||
	    !!(flags & TALLY_ATTR_EXCLUDE_GUEST) == (precise || flags & some_mode)) {
		if (!(flags & TALLY_ATTR_EXCLUDE_HOST) && flags & TALLY_ATTR_EXCLUDE_GUEST)
			letters[length++] = 'H';
		if (flags & TALLY_ATTR_EXCLUDE_HOST && !(flags & TALLY_ATTR_EXCLUDE_GUEST))
			letters[length++] = 'G';
	}
	letters[length] = '\0';
	return tally_arena_printf(arena, "cpu-clock%s%s", length ? ":" : "", letters);
}

/* True if the kernel lets this user sample only user mode. */
static bool is_limited_to_user_mode(struct tally_provider *provider)
{
	const struct tally_attr clock = { .type = TALLY_TYPE_SOFTWARE,
					  .size = sizeof(clock),
					  .config = TALLY_SW_CPU_CLOCK,
					  .sample_period = 1000000,
					  .flags = TALLY_ATTR_DISABLED };
	int handle = provider->ops->open(provider, &clock, 0, -1, -1, 0);
	if (handle >= 0)
		provider->ops->close(provider, handle);
	return handle == -EACCES || handle == -EPERM;
}

/* Excludes the modes that perf excludes where the kernel lets this user sample only user mode. */
static void limit_to_user_mode(struct tally_event *event)
{
	if (event->attr.flags & (TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_USER))
		return;
	event->attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL;
	if (!event->precise_max)
		event->attr.flags |= TALLY_ATTR_EXCLUDE_HV | TALLY_ATTR_EXCLUDE_GUEST;
}

/* perf samples cpu-clock where the CPU counts no cycles. */
static int replace_cycles(struct record_request *request, struct tally_error *err)
{
	const struct tally_attr cycles = CYCLES_TO_TRY;
	struct tally_provider *provider = request->provider;
	int handle = provider->ops->open(provider, &cycles, 0, -1, -1, 0);
	bool is_missing = handle == -ENOENT || handle == -ENXIO || handle == -ENODEV ||
			  handle == -EOPNOTSUPP;
	if (handle >= 0)
		provider->ops->close(provider, handle);
	bool is_limited = is_missing && is_limited_to_user_mode(provider);
	for (size_t i = 0; is_missing && i < request->events.count; i++) {
		struct tally_event *event = &request->events.items[i];
		if (event->attr.type != TALLY_TYPE_HARDWARE ||
		    event->attr.config != TALLY_HW_CPU_CYCLES)
			continue;
		if (is_limited)
			limit_to_user_mode(event);
		event->name = perfs_clock_name(&request->arena, event);
		event->kind = TALLY_EVENT_SOFTWARE;
		event->attr.type = TALLY_TYPE_SOFTWARE;
		event->attr.config = TALLY_SW_CPU_CLOCK;
		if (!event->name)
			return tally_error_set(err, -ENOMEM, "out of memory");
	}
	return 0;
}

/* perf's default: the most precise samples of cycles.  The event's name has no modifiers. */
static int choose_perfs_default_event(struct record_request *request, struct tally_error *err)
{
	int result = tally_event_parse("cycles:P", &request->catalogue, &request->arena,
				       &request->events, err);
	if (result < 0)
		return result;
	request->events.items[request->events.count - 1].name = "cycles";
	return 0;
}

static int parse_expressions(struct record_request *request, struct tally_error *err)
{
	size_t turns = 0;
	for (size_t i = 0; i < request->expression_count; i++) {
		const struct record_expression *expression = &request->expressions[i];
		size_t first = request->events.count;
		int result = tally_event_parse(expression->text, &request->catalogue,
					       &request->arena, &request->events, err);
		if (result < 0)
			return result;
		if (expression->filter)
			result = tally_event_filter_assign(&request->events, first,
							   expression->filter, err);
		if (result < 0)
			return result;
		if (expression->cgroups)
			result = tally_event_assign_cgroups(&request->events, expression->cgroups,
							    &request->arena, &turns, err);
		if (result < 0)
			return result;
	}
	return 0;
}

static bool has_event(const struct tally_event_list *events, const char *name)
{
	for (size_t i = 0; i < events->count; i++)
		if (!strcmp(events->items[i].name, name))
			return true;
	return false;
}

/* Only opening an event tells whether the kernel permits it; try it on this process. */
static bool may_sample(const struct record_request *request, const struct tally_event *event)
{
	struct tally_provider *provider = request->provider;
	struct tally_attr attr = event->attr;
	attr.size = sizeof(attr);
	attr.sample_type |= TALLY_SAMPLE_RAW | TALLY_SAMPLE_TIME;
	attr.flags |= TALLY_ATTR_DISABLED;
	int handle = provider->ops->open(provider, &attr, 0, -1, -1, 0);
	if (handle >= 0)
		provider->ops->close(provider, handle);
	return handle >= 0;
}

/* Adds waits, and the tasks that end them if the kernel permits this user to see those. */
static int add_off_cpu(struct record_request *request, struct tally_error *err)
{
	struct tally_error ignored = TALLY_ERROR_NONE;
	int result = tally_event_parse("context-switches/period=1,name=" TALLY_OFF_CPU_NAME "/",
				       &request->catalogue, &request->arena, &request->events, err);
	size_t count = request->events.count;
	if (result < 0 || request->no_wakers || has_event(&request->events, TALLY_WAKING_NAME))
		return result;
	bool is_known = tally_event_parse(TALLY_WAKING_NAME, &request->catalogue, &request->arena,
					  &request->events, &ignored) >= 0;
	if (is_known && request->events.count == count + 1 &&
	    may_sample(request, &request->events.items[count])) {
		struct tally_event *waking = &request->events.items[count];
		waking->has_period = true; /* every hit, whatever the other events' rate is */
		waking->attr.sample_period = 1;
		waking->attr.flags &= ~TALLY_ATTR_FREQ;
		return 0;
	}
	request->events.count = count;
	request->lacks_wakers = true;
	return 0;
}

int record_parse_events(const struct tally_command *command, struct record_request *request)
{
	struct tally_error err = TALLY_ERROR_NONE;
	int result = choose_provider(request, &err);
	if (result < 0) {
		tally_command_fail(command, &err);
		if (result == -EINVAL)
			return TALLY_EXIT_USAGE;
		return TALLY_EXIT_FAILURE;
	}
	bool is_perfs_own = request->is_perf && !request->provider_ops->default_event;
	if (parse_expressions(request, &err) < 0 ||
	    (is_perfs_own && !request->events.count &&
	     choose_perfs_default_event(request, &err) < 0) ||
	    (is_perfs_own && replace_cycles(request, &err) < 0) ||
	    (request->switch_event &&
	     tally_event_parse(request->switch_event, &request->catalogue, &request->arena,
			       &request->switch_events, &err) < 0) ||
	    prepare_events(request, &err) < 0) {
		provider_choice_explain(&request->choice, &err);
		tally_command_fail(command, &err);
		return TALLY_EXIT_USAGE;
	}
	if (!request->events.count &&
	    (choose_default_event(request, &err) < 0 || prepare_events(request, &err) < 0))
		return tally_command_fail(command, &err);
	if (request->off_cpu && add_off_cpu(request, &err) < 0)
		return tally_command_fail(command, &err);
	return -1;
}

void record_request_release(struct record_request *request)
{
	if (request->provider)
		request->provider->ops->release(request->provider);
	tally_event_list_release(&request->events);
	tally_event_list_release(&request->switch_events);
	tally_catalogue_release(&request->catalogue);
	tally_arena_release(&request->arena);
	tally_target_release(&request->target);
}
