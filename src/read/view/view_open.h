/* Opens a recording as the options of a view say (view_options.h). */
#ifndef TALLY_VIEW_OPEN_H
#define TALLY_VIEW_OPEN_H

#include "profile/profile.h"
#include "view/view_options.h"

/* Returns `given`; or "-" if standard input is a pipe or a file, as in perf; or the default file. */
const char *tally_view_path(const char *given);
/* Returns "tally.data", or "perf.data" if only that exists in the working directory. */
const char *tally_view_default_file(void);

/* Opens the recording, and prepares its names.  The options and their texts must outlive it.
 * Returns 0, or -errno with a message. */
int tally_view_open(const struct tally_view_options *options, struct tally_recording **out,
		    struct tally_error *err);
/* The same for bytes in memory, which must outlive the recording; `input` is ignored. */
int tally_view_open_memory(const struct tally_view_options *options, const void *bytes, size_t size,
			   struct tally_recording **out, struct tally_error *err);

/* Lets only this user read files that this process creates from now on, if the recording may hold
 * stacks, registers or names of other users' processes: it is another user's file, or records more
 * than a command that it started. */
void tally_view_protect(const struct tally_recording *recording);

/* True if samples of idle CPUs are left out. */
bool tally_view_leaves_out_idle(const struct tally_view_options *options);

/* Returns 0, or -ENOENT with a message if the recording, called `name` there, has no wakers. */
int tally_view_check_wakers(const struct tally_recording *recording, const char *name,
			    struct tally_error *err);

/* Reads a profile, with progress on a terminal; protects the recording.  Sets those members of
 * `samples` that the view's options decide.  Takes ownership of `recording`, also when it fails.
 * Returns 0, or -errno with a message. */
int tally_view_profile(const struct tally_view_options *options, struct tally_recording *recording,
		       struct tally_profile_options *samples, struct tally_profile **out,
		       struct tally_error *err);

#endif
