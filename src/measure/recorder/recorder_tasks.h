/* The recorded tasks as the side-band describes them: their mappings, the mapped objects, and the
 * kernel's modules. */
#ifndef TALLY_RECORDER_TASKS_H
#define TALLY_RECORDER_TASKS_H

#include "base/strings.h"
#include "machine/machine.h"
#include "recorder/recorder_build_ids.h"
#include "recorder/recorder_session.h"
#include "task/jit.h"
#include "task/task.h"

/* Build-ids of files that the tasks have forgotten. */
struct tally_recorder_forgotten {
	/* the build-id in hexadecimal digits, a blank, the path */
	struct tally_strings files;
	/* indexed by the file's id */
	struct { struct tally_build_id *items; size_t count, capacity; } ids;
};

/* Kernel modules: recorder_synthesis.c. */
struct tally_recorder_modules {
	struct tally_loaded_modules known, now; /* known: recorded; now: as last read */
	int fd;           /* of /sys/module, held open; 0: not opened yet; < 0: there is none */
	uint64_t folders; /* number of folders in it at that time */
	/* look_at: next time to read; pass_ns: start of the last pass, or of the recording */
	uint64_t look_at, pass_ns;
};

struct tally_recorder_tasks {
	struct tally_recorder_session *session;
	struct tally_tasks known;
	struct tally_endings endings;
	struct tally_objects objects;
	/* only for a live recording (objects.is_live) */
	struct tally_perf_maps perf_maps;
	struct tally_jit_files jit_files;
	struct tally_recorder_build_ids build_ids;
	struct tally_recorder_forgotten forgotten;
	struct tally_recorder_modules modules;
	uint64_t gone_at; /* next time to look for tasks whose EXIT was lost */
};

/* Applies a side-band record to the known tasks, and with _apply_task_record() also to the objects
 * and JITs that are live.  Return 0 or -ENOMEM. */
int tally_recorder_take_task(struct tally_recorder_tasks *tasks, const struct tally_record *record,
			     struct tally_error *err);
int tally_recorder_apply_task_record(struct tally_recorder_tasks *tasks,
				     const struct tally_record *record, struct tally_error *err);

/* Around a pass over the rings.  The end forgets ended tasks and unmapped files, and closes
 * objects that were not used lately. */
void tally_recorder_tasks_begin_pass(struct tally_recorder_tasks *tasks);
int tally_recorder_tasks_end_pass(struct tally_recorder_tasks *tasks, uint64_t now_ns, bool last,
				  struct tally_error *err);
/* Once a minute, ends the tasks that no longer exist. */
int tally_recorder_end_gone(struct tally_recorder_tasks *tasks, uint64_t now_ns,
			    struct tally_error *err);

/* Makes the feature BUILD_ID. */
int tally_recorder_build_ids(struct tally_recorder_tasks *tasks, struct tally_buffer *bytes,
			     struct tally_error *err);
void tally_recorder_forgotten_release(struct tally_recorder_forgotten *forgotten);
void tally_recorder_tasks_release(struct tally_recorder_tasks *tasks);

#endif
