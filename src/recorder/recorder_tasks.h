/* What the recorder knows of the recorded tasks: their mappings, the objects that they map, and the
 * kernel's modules.  Records of the side-band keep it up to date. */
#ifndef TALLY_RECORDER_TASKS_H
#define TALLY_RECORDER_TASKS_H

#include "base/strings.h"
#include "machine/loaded_modules.h"
#include "recorder/recorder_session.h"
#include "task/endings.h"
#include "task/perf_maps.h"

/* Build-ids of files that the tasks have forgotten. */
struct tally_recorder_forgotten {
	struct tally_strings paths;
	/* indexed by the path's id */
	struct { struct tally_build_id *items; size_t count, capacity; } ids;
};

/* Kernel modules: recorder_synthesis.c. */
struct tally_recorder_modules {
	struct tally_loaded_modules known, now; /* known: recorded; now: as last read */
	uint64_t folders; /* number of folders in /sys/module at that time */
	/* look_at: next time to read; pass_ns: start of the last pass, or of the recording */
	uint64_t look_at, pass_ns;
};

struct tally_recorder_tasks {
	struct tally_recorder_session *session;
	struct tally_tasks known;
	struct tally_endings endings;
	struct tally_objects objects;
	struct tally_perf_maps perf_maps; /* only for a live recording (objects.is_live) */
	struct tally_recorder_forgotten forgotten;
	struct tally_recorder_modules modules;
	uint64_t gone_at; /* next time to look for tasks whose EXIT was lost */
};

#endif
