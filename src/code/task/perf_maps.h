/* Holds the perf maps of recorded processes open.
 *
 * A map may be missing by the time names are needed: its process deletes it at the end, a
 * container's file system vanishes with the container, or a runtime replaces the map (by renaming)
 * and so drops the old one's lines.  An open file survives all of these.  So the recorder opens
 * maps early: it looks for them when a process maps executable memory without a file.  The map is
 * read later, when names are needed; an open descriptor also gives the lines written since.
 *
 * When code replaces other code, the later line is right from then on.  But runtimes make code
 * while they end, over code that was hot until then.  So lines of the last moments don't replace
 * the names before them.
 *
 * At most 256 maps are held, eight per process.  For others, only the file at their path in the end
 * is read.  Not thread-safe.
 */
#ifndef TALLY_TASK_PERF_MAPS_H
#define TALLY_TASK_PERF_MAPS_H

#include "base/buffer.h"
#include "task/tasks.h"

#include <stdint.h>

enum { TALLY_PERF_MAPS_OF_PROCESS = 8 };

struct tally_perf_map_watch {
	uint32_t pid;
	uint32_t count;
	int fds[TALLY_PERF_MAPS_OF_PROCESS]; /* oldest first */
	uint64_t seen[2]; /* bytes of the newest map at the last look but one, and at the last */
	bool has_ended;
	/* size of the newest map when the leader ended; if it grows, threads still run */
	uint64_t ended_size;
	uint64_t next_ns, pause_ns; /* time of the next look, and the pause after it */
};

/* Zero-initialised is empty. */
struct tally_perf_maps {
	struct { struct tally_perf_map_watch *items; size_t count, capacity; } watches;
	struct tally_map of_process; /* pid → watch */
	size_t held;
	uint64_t next_ns;  /* no watch is due before this time */
	uint64_t began_ns; /* when the first record was taken, CLOCK_REALTIME */
};

/* Takes MMAP, FORK and EXIT records, after the tasks did.  Returns 0 or -ENOMEM. */
int tally_perf_maps_record(struct tally_perf_maps *maps, const struct tally_tasks *tasks,
			   const struct tally_record *record);

/* Looks for the maps of processes that are due, or of all living ones (`last`). */
void tally_perf_maps_look(struct tally_perf_maps *maps, uint64_t now_ns, bool last);

/* Appends the held maps of a process, oldest first.  In the newest map, the lines of the last
 * moments (since the last look but one) come before the others.  Readers let later lines win, so
 * the older lines keep their names.  Returns 1; 0 when no map is held; -errno: -EFBIG if a map has
 * more than `maximum` bytes. */
int tally_perf_maps_text(const struct tally_perf_maps *maps, uint32_t pid, struct tally_buffer *out,
			 size_t maximum);

void tally_perf_maps_release(struct tally_perf_maps *maps);

/* Returns when a living process began, CLOCK_REALTIME, to a second; 0: it has ended. */
uint64_t tally_process_start_ns(uint32_t pid);

/* A process's perf map: /tmp/perf-PID.map, with /tmp and the pid as the process sees them. */

/* Opens the map.  Returns a descriptor; -ENOENT, also when the map was last written before the
 * process began; -EPERM when the map must not be believed.  When the process has ended, its start
 * is unknown: then the map must be younger than not_before_ns (CLOCK_REALTIME; 0: any age). */
int tally_perf_map_open(uint32_t pid, uint64_t not_before_ns);

#endif
