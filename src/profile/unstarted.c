/* Finds chains that lost their way along frame pointers.
 *
 * The kernel follows frame pointers as long as they look valid, and doesn't tell why a chain ends.
 * A stack is complete if its outermost function is one in which programs or threads begin.  For
 * chains that the kernel made, this is decided by the function's name.
 */
#include "profile/profile.h"

#include "naming/name_functions.h"

/* True if the kernel made the user chains.  Recorders that unwind stack copies either keep the
 * copies, or say so by a max_stack that the kernel doesn't have. */
bool tally_profile_follows_frame_pointers(const struct tally_profile *profile)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(profile->recording->data,
									  &count);
	for (size_t i = 0; i < count; i++)
		if (events[i].attr.sample_type & TALLY_SAMPLE_CALLCHAIN)
			return !(events[i].attr.sample_type & TALLY_SAMPLE_STACK_USER) &&
			       !(events[i].attr.flags & TALLY_ATTR_EXCLUDE_CALLCHAIN_USER) &&
			       !(events[i].attr.branch_sample_type & TALLY_BRANCH_CALL_STACK) &&
			       events[i].attr.sample_max_stack != UINT16_MAX;
	return false;
}

/* True if a chain that ends in this place lacks callers.  A chain that ends in the kernel belongs
 * to a kernel thread, or to a task without a program, and lacks none.  A function without a name
 * may be the start of a thread, so it counts as one.  An address outside of all mappings does
 * not. */
static bool is_unstarted(const struct tally_profile *profile, uint32_t place)
{
	const struct tally_names *names = &profile->recording->names;
	const struct tally_function *function =
		&names->functions.items[tally_profile_function(profile, place)];
	const struct tally_place *at = &profile->places.places.items[place];
	if (at->file == TALLY_FILE_NONE)
		return at->address != TALLY_PLACE_CUT; /* cut stacks are counted elsewhere */
	bool is_user = function->kind == TALLY_FRAME_PROGRAM ||
		       function->kind == TALLY_FRAME_LIBRARY;
	return is_user && function->name != TALLY_STRING_NONE &&
	       !tally_is_start(tally_strings_text(&names->strings, function->bare));
}

void tally_profile_count_unstarted(struct tally_profile *profile)
{
	uint64_t *unstarted = &profile->recording->counts.chains_unstarted;
	*unstarted = 0;
	const struct tally_recording *recording = profile->recording;
	bool has_whole_chains = !recording->leaves_only && !recording->frames_max;
	if (!has_whole_chains || !tally_profile_follows_frame_pointers(profile))
		return;
	for (size_t i = 0; i < profile->rows.rows.count; i++) {
		const uint8_t *end, *at = tally_row_stack(&profile->rows, i, &end);
		uint32_t outermost = 0, frames = 0;
		for (; at && at < end; frames++)
			outermost = tally_stack_next_place(&at);
		if (frames && is_unstarted(profile, outermost))
			*unstarted += profile->rows.rows.items[i].samples;
	}
}
