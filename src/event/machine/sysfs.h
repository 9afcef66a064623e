/* PMUs as sysfs shows them: Documentation/ABI/testing/sysfs-bus-event_source-devices-*.
 *
 * All strings are in the caller's arena.  `root` NULL means the machine's own directory. */
#ifndef TALLY_MACHINE_SYSFS_H
#define TALLY_MACHINE_SYSFS_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TALLY_SYSFS_PMUS "/sys/bus/event_source/devices"

struct tally_sysfs_format { /* format/NAME: "config:0-7,32-35" */
	const char *name;
	uint8_t field;
	uint64_t mask;
};

struct tally_sysfs_event { /* events/NAME, NAME.unit, NAME.scale */
	const char *name;
	const char *terms; /* "event=0x3c,umask=0x0", without the newline */
	const char *unit;  /* "" if there is none */
	double scale;      /* 1 if there is none */
};

struct tally_sysfs_pmu {
	const char *name;
	uint32_t type;
	const char *cpus; /* cpumask, or cpus (of a core type), or "" */
	struct tally_sysfs_format *formats; /* sorted by name, like the events */
	size_t format_count;
	struct tally_sysfs_event *events;
	size_t event_count;
};

/* Parses the text of a format file.  Returns false if it isn't one ("config4:0", "config:70"). */
bool tally_sysfs_format_parse(const char *text, uint8_t *field, uint64_t *mask);

/* Reads one PMU.  Leaves out files that can't be parsed.  Returns 0 or -errno: -ENOENT if there is
 * no such PMU. */
int tally_sysfs_pmu_read(const char *root, const char *name, struct tally_arena *arena,
			 struct tally_sysfs_pmu *out);

/* Returns the names of all PMUs, sorted, in *names.  Returns 0 or -errno. */
int tally_sysfs_pmu_names(const char *root, struct tally_arena *arena, const char ***names,
			  size_t *count);

#endif
