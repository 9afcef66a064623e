/* Each sample of a recording for itself, in order of time: what exports and timelines show.
 *
 * Where profile.h adds samples up, this keeps them: 32 bytes each, their stacks interned.  Not
 * thread-safe.
 */
#ifndef TALLY_PROFILE_SAMPLES_H
#define TALLY_PROFILE_SAMPLES_H

#include "profile/place_table.h"
#include "profile/recording.h"
#include "profile/row_table.h"

struct tally_one_sample {
	uint64_t time;   /* ns of the recording's clock; 0 where it has none */
	uint64_t period; /* what the sample stands for, of its event */
	uint32_t thread; /* of the recording's tasks.threads */
	uint32_t stack;  /* a row of `stacks` */
	uint32_t cpu;    /* UINT32_MAX: not recorded */
	uint32_t event;  /* of the recording's events */
};

struct tally_samples {
	struct tally_recording *recording;
	struct { struct tally_one_sample *items; size_t count, capacity; } samples;
	/* of numbers of `places`, leaf first; rows have no class or period */
	struct tally_row_table stacks;
	struct tally_place_table places;
	struct tally_place_name *names; /* by place: frames of recording->names */
};

struct tally_samples_options {
	struct tally_profile_filter filter;
	void (*progress)(void *context, double share); /* now and then, 0…1; NULL: nobody */
	void *context;
};

/* Reads the whole recording, or what of it passes the filter.  Takes it over: released with the
 * samples. -ENOENT where no sample is left. */
int tally_samples_new(struct tally_recording *recording,
		      const struct tally_samples_options *options, struct tally_samples **out,
		      struct tally_error *err);
void tally_samples_free(struct tally_samples *samples);

/* The functions of a stack, root first, with the file and line of each: as place frames.  `out` is
 * emptied before. 0 or -ENOMEM. */
struct tally_place_frames {
	struct tally_place_frame *items;
	uint32_t *places; /* by frame: the place that it is of */
	size_t count, capacity;
};
int tally_samples_frames(const struct tally_samples *samples, uint32_t stack,
			 struct tally_place_frames *out);
void tally_place_frames_release(struct tally_place_frames *frames);

#endif
