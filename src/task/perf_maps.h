/* The perf maps of processes that are recorded, held while they can be had.
 *
 * A map may be gone when names are looked for: its process deletes it at the end, a container's
 * file system goes with the container, a runtime that writes its map anew (by renaming) drops what
 * the old one said.  A file that is open stays whole in all of these.  So maps are opened as they
 * come, looked for where processes map memory executable that is no file's, and read by who needs
 * the names: who has them open reads what was written since, too.
 *
 * Where code was put over other code, the later line is right from then on.  But runtimes make code
 * while they end, over what was hot until then: lines that came in the last moments don't take the
 * name from those before.
 *
 * At most 256 maps are held, eight of a process; of others, what lies at their place in the end is
 * all there is.  Not thread-safe.
 */
#ifndef TALLY_TASK_PERF_MAPS_H
#define TALLY_TASK_PERF_MAPS_H

#include "base/buffer.h"
#include "task/tasks.h"

enum { TALLY_PERF_MAPS_OF_PROCESS = 8 };

struct tally_perf_map_watch {
	uint32_t pid;
	uint32_t count;
	int fds[TALLY_PERF_MAPS_OF_PROCESS]; /* oldest first */
	uint64_t seen[2]; /* bytes of the newest at the last look but one, and at the last */
	bool has_ended;
	/* of the newest, when the leader ended: where it grows, threads live on */
	uint64_t ended_size;
	uint64_t next_ns, pause_ns; /* when to look for it, and how long to wait from then on */
};

/* Zero-initialised is empty. */
struct tally_perf_maps {
	struct { struct tally_perf_map_watch *items; size_t count, capacity; } watches;
	struct tally_map of_process; /* pid → watch */
	size_t held;
	uint64_t next_ns;  /* no watch is due before */
	uint64_t began_ns; /* when the first record was taken, CLOCK_REALTIME */
};

/* Takes MMAP and EXIT, after the tasks have.  0 or -ENOMEM. */
int tally_perf_maps_record(struct tally_perf_maps *maps, const struct tally_tasks *tasks,
			   const struct tally_record *record);

/* Looks for the maps of processes that are due, or of all that live (`last`). */
void tally_perf_maps_look(struct tally_perf_maps *maps, uint64_t now_ns, bool last);

/* Appends what the held maps of a process say, oldest first, but for the lines of the last moments
 * (since the last look but one): these come before the others of their map, so that later lines win
 * where they overlap.  1; 0 where none is held; -errno. */
int tally_perf_maps_text(const struct tally_perf_maps *maps, uint32_t pid, struct tally_buffer *out,
			 size_t maximum);

void tally_perf_maps_release(struct tally_perf_maps *maps);

#endif
