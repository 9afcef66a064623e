/* The recorder, composed of its parts, and what concerns several of them; internal to this room.
 *
 * A part is a struct with a header.  Its functions take that struct; a part that needs others has
 * pointers to them or gets them as arguments.  Calls go down this list:
 *
 *     recorder, loop                  what recorder.h declares
 *     drain                           one pass over the rings
 *     files                           where a file ends: rotation, the flight recorder
 *     stacks, synthesis, features     what is written besides the rings' records
 *     output, hotplug, waits
 *     events                          with attributes, copies, inherited
 *     rings, triggers, tasks, outer, excerpt
 *     session
 */
#ifndef TALLY_RECORDER_STATE_H
#define TALLY_RECORDER_STATE_H

#include "recorder/recorder_stacks.h"
#include "recorder/recorder_waits.h"

struct tally_recorder {
	struct tally_recorder_session session;
	struct tally_recorder_events events;
	struct tally_recorder_rings rings;
	struct tally_recorder_triggers triggers;
	struct tally_recorder_tasks tasks;
	struct tally_recorder_stacks stacks;
	struct tally_recorder_output output;
	struct tally_buffer history; /* a flight recorder's side-band records since the tasks */
};

/* recorder.c: lets the parts of a zeroed recorder know each other. */
void tally_recorder_init(struct tally_recorder *recorder);

/* recorder_drain.c: makes one pass over all rings; `last`: take everything.  Returns 0 or an error
 * of writing. */
int tally_recorder_drain(struct tally_recorder *recorder, bool last, struct tally_error *err);

/* recorder_hotplug.c: handles CPUs that go offline and come online, when the whole machine is
 * recorded.  Call it after a pass.  Without a notice that they have changed, it looks once a
 * second.  Returns true when the handles to wait for have changed. */
bool tally_recorder_check_online(struct tally_recorder_events *events,
				 struct tally_recorder_rings *rings, bool have_changed);

/* recorder_synthesis.c: writes records of the state before the first event: kernel, processes,
 * threads, mappings. */
int tally_recorder_synthesize(struct tally_recorder_tasks *tasks,
			      struct tally_recorder_output *output, struct tally_error *err);
/* The same for the known tasks, for the beginning of a further file. */
int tally_recorder_write_tasks(struct tally_recorder_tasks *tasks,
			       struct tally_recorder_output *output, struct tally_error *err);
/* Before a pass reads samples: records the modules that were loaded since. */
int tally_recorder_look_at_modules(struct tally_recorder_tasks *tasks,
				   struct tally_recorder_output *output, uint64_t now_ns,
				   struct tally_error *err);

/* recorder_features.c: writes the features behind the data. */
int tally_recorder_features(struct tally_recorder_tasks *tasks,
			    struct tally_recorder_output *output, struct tally_error *err);

/* recorder_files.c: ends the file, as tally_recorder_finish() does.  _next_file() continues in the
 * next one. */
int tally_recorder_end_file(struct tally_recorder *recorder, struct tally_recorder_status *status,
			    struct tally_error *err);
int tally_recorder_next_file(struct tally_recorder *recorder, struct tally_error *err);
/* Keeps a side-band record of a flight recorder. */
int tally_recorder_keep(struct tally_recorder *recorder, const void *bytes, size_t size,
			struct tally_error *err);
/* Writes the tasks, the kept side-band records, and the rings' records that no dump has yet. */
int tally_recorder_dump_rings(struct tally_recorder *recorder, struct tally_error *err);

#endif
