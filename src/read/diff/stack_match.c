/* Takes the frames and commands of all runs into one set of names.  Then it pairs the frames that
 * only one side has: first by name, then by object and plain name.  Names are shortened after that,
 * and commands come last. */
#include "diff/diff.h"

#include "base/buffer.h"
#include "base/vector.h"
#include "base/weight_sum.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = UINT32_MAX };

/* is_old, is_new: by frame of `names`, the sides that have it. same_as: by frame, the new frame
 * that an old one is the same as. */
struct matcher {
	struct tally_match *match;
	bool *is_old, *is_new;
	uint32_t *same_as;
	/* string of an object that only the old side has → the new side's */
	struct tally_map objects;
};

/* Returns the length of a function's name without parameters and what compilers add behind a
 * dot. */
static size_t plain_length(const char *name)
{
	static const char *const endings[] = { ".constprop.", ".isra.",     ".part.",
					       ".cold",       ".lto_priv.", ".llvm.",
					       " [",          " (",         "(" };
	size_t length = strlen(name);
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		const char *at = NULL;
		if (name[0])
			at = strstr(name + 1, endings[i]);
		if (at && (size_t)(at - name) < length)
			length = (size_t)(at - name);
	}
	/* "operator()" and "(anonymous namespace)::f" would lose their names */
	if (length && isalnum((unsigned char)name[length - 1]) &&
	    !(length >= 8 && !strncmp(name + length - 8, "operator", 8)))
		return length;
	return strlen(name);
}

/* By side (old, new) and object's name (an id of `names`): the build that all of the side's runs
 * have. */
struct builds {
	struct tally_map sides[2];
};

static int gather_builds(struct tally_match *match, struct builds *builds)
{
	for (size_t r = 0; r < match->count; r++) {
		const struct tally_stacks *stacks = match->runs[r].stacks;
		for (size_t i = 0; i < stacks->frames.count; i++) {
			const struct tally_frame *frame = &stacks->frames.items[i];
			bool added;
			if (!frame->build)
				continue;
			uint32_t object = tally_strings_intern(
				&match->names.strings,
				tally_strings_text(&stacks->strings, frame->object));
			uint64_t *build = NULL;
			if (object != TALLY_STRING_NONE)
				build = tally_map_put(&builds->sides[match->runs[r].is_new], object,
						      &added);
			if (!build)
				return -ENOMEM;
			if (added)
				*build = frame->build;
			else if (*build != frame->build)
				*build = TALLY_BUILD_UNKNOWN;
		}
	}
	return 0;
}

static bool is_one_build(const struct builds *builds, uint32_t object)
{
	const uint64_t *old = tally_map_get(&builds->sides[0], object),
		       *new = tally_map_get(&builds->sides[1], object);
	return old && new && *old == *new && *old != TALLY_BUILD_UNKNOWN;
}

/* Returns a frame of `names`.  A function without a symbol becomes one with its object, unless both
 * sides have the same build of it. */
static uint32_t take_frame(struct tally_match *match, const struct builds *builds,
			   const struct tally_stacks *stacks, const struct tally_frame *frame)
{
	const struct tally_strings *strings = &stacks->strings;
	const char *object = NULL;
	if (frame->object != TALLY_STRING_NONE)
		object = tally_strings_text(strings, frame->object);
	const char *name = tally_strings_text(strings,
					      match->has_full_names ? frame->full : frame->name);
	struct tally_buffer whole = { 0 };
	/* perf script text has whole paths; recordings have the last parts */
	if (object && object[0] == '/' && object[1] != '/')
		object = tally_object_basename(object);
	if (frame->build &&
	    !is_one_build(builds, tally_strings_intern(&match->names.strings, object))) {
		tally_buffer_printf(&whole, object[0] == '[' ? "%s" : "[%s]", object);
		name = tally_buffer_string(&whole);
	}
	uint32_t taken = NONE;
	if (!whole.failed)
		taken = tally_stacks_frame(&match->names, name, object, frame->kind);
	tally_buffer_release(&whole);
	return taken;
}

static int take_names(struct tally_match *match, const struct builds *builds,
		      struct tally_match_run *run)
{
	const struct tally_stacks *stacks = run->stacks;
	const struct tally_strings *strings = &stacks->strings;
	run->frames = malloc((stacks->frames.count + 1) * sizeof(*run->frames));
	run->comms = malloc((stacks->threads.count + 1) * sizeof(*run->comms));
	if (!run->frames || !run->comms)
		return -ENOMEM;
	for (size_t i = 0; i < stacks->frames.count; i++) {
		run->frames[i] = take_frame(match, builds, stacks, &stacks->frames.items[i]);
		if (run->frames[i] == NONE)
			return -ENOMEM;
	}
	for (size_t i = 0; i < stacks->threads.count; i++) {
		const char *comm = tally_strings_text(strings, stacks->threads.items[i].comm);
		run->comms[i] = tally_stacks_thread(&match->names, comm, 0, 0);
		if (run->comms[i] == NONE)
			return -ENOMEM;
	}
	return 0;
}

/* --- names ----------------------------------------------------------------------------------- */

/* The text to show for a frame of `names`; is_full: only the full name tells it from the others. */
struct shown {
	uint32_t text;
	bool is_full;
};

static int gather_names(struct tally_match *match, const struct tally_match_run *run,
			struct shown *shown)
{
	const struct tally_stacks *stacks = run->stacks;
	for (size_t i = 0; i < stacks->frames.count; i++) {
		const struct tally_frame *frame = &stacks->frames.items[i];
		struct shown *here = &shown[run->frames[i]];
		uint32_t text = tally_strings_intern(
			&match->names.strings, tally_strings_text(&stacks->strings, frame->name));
		if (text == NONE)
			return -ENOMEM;
		here->is_full |= frame->build || (here->text != NONE && here->text != text);
		here->text = text;
	}
	return 0;
}

/* Returns 1 if a name was made longer, so that others may look the same now; 0 or -ENOMEM. */
static int tell_apart(const struct tally_match *match, struct shown *shown)
{
	const struct tally_frame *frames = match->names.frames.items;
	struct tally_map alike = { 0 }; /* text → a frame that is shown with it, + 1 */
	int result = 0;
	for (size_t i = 0; result >= 0 && i < match->names.frames.count; i++) {
		if (shown[i].is_full || shown[i].text == NONE)
			shown[i].text = frames[i].name;
		uint64_t *other = tally_map_put(&alike, shown[i].text, NULL);
		if (other && *other && frames[*other - 1].name != frames[i].name) {
			result |= !shown[i].is_full || !shown[*other - 1].is_full;
			shown[i].is_full = shown[*other - 1].is_full = true;
		}
		if (other)
			*other = i + 1;
		else
			result = -ENOMEM;
	}
	tally_map_release(&alike);
	return result;
}

/* Frames have their whole names up to here.  Gives them the names that the runs show, as far as
 * these mean the same in all runs. */
static int shorten_names(struct tally_match *match)
{
	struct tally_frame *frames = match->names.frames.items;
	struct shown *shown = malloc((match->names.frames.count + 1) * sizeof(*shown));
	int result = 0;
	if (!shown)
		result = -ENOMEM;
	for (size_t i = 0; shown && i < match->names.frames.count; i++)
		shown[i] = (struct shown){ .text = NONE };
	for (size_t r = 0; !result && r < match->count; r++)
		result = gather_names(match, &match->runs[r], shown);
	while (!result && (result = tell_apart(match, shown)) > 0)
		result = 0;
	for (size_t i = 0; !result && i < match->names.frames.count; i++) {
		frames[i].full = frames[i].name;
		frames[i].name = shown[i].text;
	}
	free(shown);
	return result;
}

/* Text only has the names that it shows. */
static bool have_full_names(const struct tally_match *match)
{
	for (size_t r = 0; r < match->count; r++)
		for (size_t i = 0; i < match->runs[r].stacks->frames.count; i++)
			if (match->runs[r].stacks->frames.items[i].full == NONE)
				return false;
	return true;
}

/* --- frames --------------------------------------------------------------- */

static bool is_left(const struct matcher *matcher, uint32_t frame, bool of_new)
{
	if (of_new)
		return matcher->is_new[frame] && !matcher->is_old[frame] &&
		       matcher->match->formerly[frame] == NONE;
	return matcher->is_old[frame] && !matcher->is_new[frame] && matcher->same_as[frame] == NONE;
}

static uint32_t object_of(const struct matcher *matcher, uint32_t frame, bool of_new)
{
	uint32_t object = matcher->match->names.frames.items[frame].object;
	const uint64_t *now = NULL;
	if (!of_new)
		now = tally_map_get(&matcher->objects, object);
	if (now)
		return (uint32_t)*now;
	return object;
}

/* Returns a frame's key for matching: the string of the name, or of the plain name and the
 * object. */
static uint64_t key_of(struct matcher *matcher, uint32_t frame, bool of_new, bool by_plain_name)
{
	struct tally_stacks *names = &matcher->match->names;
	const char *name = tally_strings_text(&names->strings, names->frames.items[frame].name);
	if (!by_plain_name)
		return names->frames.items[frame].name;
	uint32_t plain = tally_strings_add(&names->strings, name, plain_length(name));
	return (uint64_t)object_of(matcher, frame, of_new) << 32 | plain;
}

/* Makes a map of the frames that are left: key → frame + 1; 0 if several frames have the key. */
static int index_left(struct matcher *matcher, bool of_new, bool by_plain_name,
		      struct tally_map *index)
{
	for (uint32_t i = 0; i < matcher->match->names.frames.count; i++) {
		bool added;
		if (!is_left(matcher, i, of_new))
			continue;
		uint64_t *place = tally_map_put(index, key_of(matcher, i, of_new, by_plain_name),
						&added);
		if (!place)
			return -ENOMEM;
		*place = added ? i + 1 : 0;
	}
	return 0;
}

static int pair(struct matcher *matcher, uint32_t old, uint32_t new, bool learns_object)
{
	const struct tally_frame *frames = matcher->match->names.frames.items;
	matcher->same_as[old] = new;
	matcher->match->formerly[new] = old;
	uint64_t *place = NULL;
	if (learns_object)
		place = tally_map_put(&matcher->objects, frames[old].object, NULL);
	if (learns_object && !place)
		return -ENOMEM;
	if (place)
		*place = frames[new].object;
	return 0;
}

static int match_left(struct matcher *matcher, bool by_plain_name)
{
	struct tally_map old = { 0 }, new = { 0 };
	int result = index_left(matcher, false, by_plain_name, &old);
	if (!result)
		result = index_left(matcher, true, by_plain_name, &new);
	for (size_t i = 0; !result && i < old.capacity; i++) {
		if (!old.slots[i].used || !old.slots[i].value)
			continue;
		const uint64_t *there = tally_map_get(&new, old.slots[i].key);
		if (there && *there)
			result = pair(matcher, (uint32_t)old.slots[i].value - 1,
				      (uint32_t)*there - 1, !by_plain_name);
	}
	tally_map_release(&old);
	tally_map_release(&new);
	return result;
}

static int match_frames(struct matcher *matcher)
{
	struct tally_match *match = matcher->match;
	for (size_t r = 0; r < match->count; r++) {
		bool *is_there = matcher->is_old;
		if (match->runs[r].is_new)
			is_there = matcher->is_new;
		for (size_t i = 0; i < match->runs[r].stacks->frames.count; i++)
			is_there[match->runs[r].frames[i]] = true;
	}
	int result = match_left(matcher, false);
	if (result)
		return result;
	result = match_left(matcher, true);
	if (result)
		return result;
	if (match->has_full_names)
		result = shorten_names(match);
	if (result)
		return result;
	for (size_t r = 0; r < match->old_count; r++)
		for (size_t i = 0; i < match->runs[r].stacks->frames.count; i++) {
			uint32_t *frame = &match->runs[r].frames[i];
			if (matcher->same_as[*frame] != NONE)
				*frame = matcher->same_as[*frame];
		}
	return 0;
}

/* --- commands ------------------------------------------------------------- */

/* Sums the weights of one side by command of `names`.  Returns their total. */
static uint64_t weigh_comms(const struct tally_match *match, bool of_new, uint64_t *weights)
{
	uint64_t total = 0;
	for (size_t r = 0; r < match->count; r++) {
		const struct tally_match_run *run = &match->runs[r];
		for (size_t i = 0; run->is_new == of_new && i < run->stacks->rows.rows.count; i++) {
			const struct tally_row *row = &run->stacks->rows.rows.items[i];
			uint64_t *weight = &weights[run->comms[row->class]];
			*weight = tally_sum_capped(*weight, row->period);
			total = tally_sum_capped(total, row->period);
		}
	}
	return total;
}

static uint32_t heaviest_alone(const uint64_t *weights, const uint64_t *others, size_t count,
			       uint64_t total)
{
	uint32_t best = NONE;
	for (uint32_t i = 0; i < count; i++)
		if (!others[i] && weights[i] > total / 2)
			best = i;
	return best;
}

static int match_comms(struct tally_match *match)
{
	size_t count = match->names.threads.count;
	uint64_t *old = calloc(count + 1, sizeof(*old)), *new = calloc(count + 1, sizeof(*new));
	if (old && new) {
		uint64_t old_total = weigh_comms(match, false, old),
			 new_total = weigh_comms(match, true, new);
		match->comm_formerly = heaviest_alone(old, new, count, old_total);
		match->comm_now = heaviest_alone(new, old, count, new_total);
	}
	int result = -ENOMEM;
	if (old && new)
		result = 0;
	free(old);
	free(new);
	if (match->comm_formerly == NONE || match->comm_now == NONE) {
		match->comm_formerly = match->comm_now = NONE;
		return result;
	}
	for (size_t r = 0; r < match->old_count; r++)
		for (size_t i = 0; i < match->runs[r].stacks->threads.count; i++)
			if (match->runs[r].comms[i] == match->comm_formerly)
				match->runs[r].comms[i] = match->comm_now;
	return result;
}

/* -------------------------------------------------------------------------- */

int tally_match_stacks(const struct tally_stacks *old, size_t old_count,
		       const struct tally_stacks *new, size_t new_count, struct tally_match *out)
{
	*out = (struct tally_match){ .count = old_count + new_count,
				     .old_count = old_count,
				     .comm_formerly = NONE,
				     .comm_now = NONE };
	struct matcher matcher = { .match = out };
	struct builds builds = { 0 };
	out->runs = calloc(out->count + 1, sizeof(*out->runs));
	if (!out->runs)
		return -ENOMEM;
	for (size_t i = 0; i < out->count; i++) {
		out->runs[i].is_new = i >= old_count;
		if (i < old_count)
			out->runs[i].stacks = &old[i];
		else
			out->runs[i].stacks = &new[i - old_count];
	}
	out->has_full_names = have_full_names(out);
	int result = gather_builds(out, &builds);
	for (size_t i = 0; !result && i < out->count; i++)
		result = take_names(out, &builds, &out->runs[i]);
	for (size_t i = 0; i < 2; i++)
		tally_map_release(&builds.sides[i]);
	if (result)
		return result;
	size_t frames = out->names.frames.count + 1;
	out->formerly = malloc(frames * sizeof(*out->formerly));
	matcher.same_as = malloc(frames * sizeof(*matcher.same_as));
	matcher.is_old = calloc(frames, sizeof(*matcher.is_old));
	matcher.is_new = calloc(frames, sizeof(*matcher.is_new));
	if (!out->formerly || !matcher.same_as || !matcher.is_old || !matcher.is_new) {
		result = -ENOMEM;
		goto out;
	}
	for (size_t i = 0; i < frames; i++)
		out->formerly[i] = matcher.same_as[i] = NONE;
	result = match_frames(&matcher);
	if (!result)
		result = match_comms(out);
out:
	free(matcher.same_as);
	free(matcher.is_old);
	free(matcher.is_new);
	tally_map_release(&matcher.objects);
	return result;
}

void tally_match_release(struct tally_match *match)
{
	for (size_t i = 0; match->runs && i < match->count; i++) {
		free(match->runs[i].frames);
		free(match->runs[i].comms);
	}
	free(match->runs);
	free(match->formerly);
	tally_stacks_release(&match->names);
	*match = (struct tally_match){ 0 };
}

static int add_run(const struct tally_match_run *run, struct tally_frame_list *frames,
		   struct tally_stacks *out)
{
	for (size_t i = 0; i < run->stacks->rows.rows.count; i++) {
		const struct tally_row *row = &run->stacks->rows.rows.items[i];
		int result = tally_stacks_frames(run->stacks, i, frames);
		for (size_t f = 0; !result && f < frames->count; f++)
			frames->items[f] = run->frames[frames->items[f]];
		if (!result)
			result = tally_stacks_add(out, run->comms[row->class], frames->items,
						  frames->count, row->period, row->samples);
		if (result < 0)
			return result;
	}
	return 0;
}

int tally_match_side(const struct tally_match *match, bool is_new, struct tally_stacks *out)
{
	const struct tally_stacks *names = &match->names;
	struct tally_frame_list frames = { 0 };
	int result = 0;
	/* in the order of `names`, so that the ids are the same */
	for (size_t i = 0; i < names->frames.count; i++) {
		const struct tally_frame *frame = &names->frames.items[i];
		const char *object = NULL;
		if (frame->object != TALLY_STRING_NONE)
			object = tally_strings_text(&names->strings, frame->object);
		if (tally_stacks_frame(out, tally_strings_text(&names->strings, frame->name),
				       object, frame->kind) == NONE)
			return -ENOMEM;
	}
	for (size_t i = 0; i < names->threads.count; i++)
		if (tally_stacks_thread(
			    out, tally_strings_text(&names->strings, names->threads.items[i].comm),
			    0, 0) == NONE)
			return -ENOMEM;
	for (size_t r = 0; !result && r < match->count; r++)
		if (match->runs[r].is_new == is_new) {
			result = add_run(&match->runs[r], &frames, out);
			out->weights_cut += match->runs[r].stacks->weights_cut;
		}
	tally_vector_release(&frames);
	const struct tally_stacks *first = match->runs[is_new ? match->old_count : 0].stacks;
	memcpy(out->event, first->event, sizeof(out->event));
	memcpy(out->unit, first->unit, sizeof(out->unit));
	memcpy(out->title, first->title, sizeof(out->title));
	return result;
}
