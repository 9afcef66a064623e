/* Each sample of a recording by itself, in order of time: for exports and timelines.
 *
 * Unlike profile.h, which sums samples up, this keeps every sample: 32 bytes each, with interned
 * stacks.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_SAMPLES_H
#define TALLY_PROFILE_SAMPLES_H

#include "naming/place_table.h"
#include "recording/recording.h"
#include "profile/row_table.h"

struct tally_one_sample {
	uint64_t time;   /* ns of the recording's clock; 0: not recorded */
	uint64_t period; /* weight of the sample, in the unit of its event */
	uint32_t thread; /* index into the recording's tasks.threads */
	uint32_t stack;  /* row of `stacks` */
	/* index into the recording's events; TALLY_SAMPLE_LEFT_OUT: views skip the sample, whose
	 * time still counts for the recording's span */
	uint32_t event;
	bool is_idle_task; /* tally_tasks_is_idle() at that time */
};

#define TALLY_SAMPLE_LEFT_OUT UINT32_MAX

struct tally_samples {
	struct tally_recording *recording;
	struct { struct tally_one_sample *items; size_t count, capacity; } samples;
	/* stacks of numbers of `places`, leaf first; rows have no class or period */
	struct tally_row_table stacks;
	struct tally_place_table places;
	struct tally_place_name *names; /* by place: its frames in recording->names */
};

struct tally_samples_options {
	struct tally_profile_filter filter;
	/* called from time to time with the share read, 0…1; may be NULL */
	void (*progress)(void *context, double share);
	void *context;
};

/* Reads the whole recording, or the part that passes the filter.  Takes ownership of `recording`,
 * also when it fails; it is closed with the samples.  Returns 0, -ENOENT when no sample is left, or
 * another -errno. */
int tally_samples_new(struct tally_recording *recording,
		      const struct tally_samples_options *options, struct tally_samples **out,
		      struct tally_error *err);
void tally_samples_free(struct tally_samples *samples);

/* Sets `out` to the functions of a stack, root first, with file and line of each.  Returns 0 or
 * -ENOMEM. */
struct tally_place_frames {
	struct tally_place_frame *items;
	uint32_t *places; /* by frame: the place that it belongs to */
	size_t count, capacity;
};
int tally_samples_frames(const struct tally_samples *samples, uint32_t stack,
			 struct tally_place_frames *out);
void tally_place_frames_release(struct tally_place_frames *frames);

#endif
