/* Shared by the simulation's files.  Calls go down: simulation.c, _sampling, _recording, _stage. */
#ifndef TALLY_SIMULATION_STATE_H
#define TALLY_SIMULATION_STATE_H

#include "base/buffer.h"
#include "counting/counting.h"
#include "perfdata/perfdata.h"
#include "provider/provider.h"
#include "session/ring.h"
#include "sim/sim_watch.h"
#include "simulation/simulation.h"

/* An event of a sample line, opened on every CPU. */
struct simulation_source {
	const struct tally_event *event;
	struct tally_attr attr, written;
	int *handles; /* by CPU; -1: none */
	uint64_t *ids;
	size_t id_count;
};

struct simulation_part {
	const struct scenario_part *line;
	const char *target_text;
	struct tally_event_list events;
	/* For a count. */
	struct tally_target target;
	struct tally_counting_options counting_options;
	struct tally_counting counting;
	bool is_counting;
	/* For samples. */
	struct simulation_source *sources;
	struct tally_ring *rings; /* by CPU; page NULL: none */
	uint64_t next_read_ns, slice_at_ns, samples, lost, lost_reported, throttled;
};

/* The machine and what all parts share. */
struct simulation_stage {
	const struct tally_simulation_options *options;
	const struct scenario *scenario;
	struct sim_machine *machine;
	struct scenario_play play;
	struct tally_provider *provider;
	struct tally_catalogue catalogue;
	struct tally_arena arena;
	struct tally_error *err;
	bool has_catalogue, is_playing;
};

struct simulation_recording {
	struct simulation_stage *stage;
	int fd; /* −1: nothing is recorded */
	struct tally_perfdata_writer *writer;
	struct tally_recorded_event *recorded;
	size_t recorded_count;
	struct simulation_source side_band;
	struct tally_ring *side_rings;
	uint64_t first_sample_ns, last_sample_ns;
	char object_path[4096];
	uint64_t object_loaded_bytes; /* of the object's only segment, in whole pages */
	bool kernel_is_named;
};

struct simulation {
	struct simulation_stage stage;
	struct simulation_recording recording;
	struct simulation_part *parts; /* in the scenario's order */
	struct tally_simulation_summary *summary;
	struct sim_watch *watch;
	bool is_over;
	int code; /* the observer's result */
	uint64_t end_ns;
};

/* ---- simulation_sampling.c ----------------------------------------------- */

/* Opens a sample line's events on its task or CPUs, and enables them.  Call it as the observer. */
int simulation_open_samples(struct simulation_stage *stage, struct simulation_part *part);
int simulation_open_side_band(struct simulation_stage *stage,
			      struct simulation_recording *recording);
/* Reads the rings of a part and sets when the next read is due. */
int simulation_drain(struct simulation_stage *stage, struct simulation_part *part,
		     struct simulation_recording *recording);
int simulation_drain_side_band(struct simulation_stage *stage,
			       struct simulation_recording *recording);
/* Call it after the last drain: reads how many samples the events themselves count as lost. */
void simulation_read_lost(struct simulation_stage *stage, struct simulation_part *part);
void simulation_close_samples(struct simulation_stage *stage, struct simulation_part *part);
void simulation_close_side_band(struct simulation_stage *stage,
				struct simulation_recording *recording);

/* ---- simulation_recording.c ---------------------------------------------- */

/* Makes the files.  Call it before anything runs. */
int simulation_recording_begin(struct simulation_recording *recording);
/* Call it once the events have their ids. */
int simulation_recording_start(struct simulation_recording *recording,
			       const struct simulation_part *parts);
int simulation_recording_write(struct simulation_recording *recording, const void *records,
			       size_t size);
int simulation_recording_finish(struct simulation_recording *recording);
void simulation_recording_release(struct simulation_recording *recording);
/* Maps the program's functions.  Call it as the instance's task. */
void simulation_recording_map(struct simulation_recording *recording,
			      struct scenario_instance *instance);

/* ---- simulation_stage.c -------------------------------------------------- */

/* Makes the machine of `scenario`, and its provider. */
int simulation_stage_init(struct simulation_stage *stage);
void simulation_stage_release(struct simulation_stage *stage);
void simulation_report(struct simulation_stage *stage, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
int simulation_out_of_memory(struct simulation_stage *stage);

#endif
