/* Shared by the simulation's files. */
#ifndef TALLY_SESSION_SIMULATION_STATE_H
#define TALLY_SESSION_SIMULATION_STATE_H

#include "base/buffer.h"
#include "perfdata/perfdata.h"
#include "provider/provider.h"
#include "counting/counting.h"
#include "session/ring.h"
#include "simulation/simulation.h"
#include "sim/sim_watch.h"

/* An event of a sample line, opened on every CPU. */
struct simulation_source {
	const struct tally_event *event;
	struct tally_attr attr, written;
	int *handles; /* by CPU; -1: none */
	uint64_t *ids;
	size_t id_count;
};

struct simulation_part {
	const struct scenario_part *part;
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
	uint64_t next_read_ns, samples, lost, lost_told, throttled;
};

struct simulation {
	const struct tally_simulation_options *options;
	struct tally_simulation_summary *summary;
	const struct scenario *scenario;
	struct sim_machine *machine;
	struct scenario_play play;
	struct tally_provider *provider;
	struct tally_arena arena;
	struct tally_catalogue catalogue;
	bool has_catalogue, is_playing, is_over;
	struct simulation_part *parts; /* in the scenario's order */
	struct sim_watch *watch;
	int code;                      /* the observer's result */
	struct tally_error *err;
	uint64_t end_ns;

	/* The recording. */
	int fd;
	struct tally_perfdata_writer *writer;
	struct tally_recorded_event *recorded;
	size_t recorded_count;
	struct simulation_source side_band;
	struct tally_ring *side_rings;
	uint64_t first_sample_ns, last_sample_ns;
	char object_path[4096];
	bool kernel_is_named;
};

void simulation_tell(struct simulation *simulation, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
int simulation_out_of_memory(struct simulation *simulation);

/* simulation_sampling.c: opens a sample line's events on its task or CPUs, and enables them.  Call
 * it as the observer. */
int simulation_open_samples(struct simulation *simulation, struct simulation_part *part);
int simulation_open_side_band(struct simulation *simulation);
/* Reads the rings of a part and sets when the next read is due. */
int simulation_drain(struct simulation *simulation, struct simulation_part *part);
int simulation_drain_side_band(struct simulation *simulation);
/* Call it after the last drain: reads how many samples the events themselves count as lost. */
void simulation_read_lost(struct simulation *simulation, struct simulation_part *part);
void simulation_close_samples(struct simulation *simulation, struct simulation_part *part);
void simulation_close_side_band(struct simulation *simulation);

/* simulation_recording.c */
/* Makes the files.  Call it before anything runs. */
int simulation_recording_begin(struct simulation *simulation);
int simulation_recording_start(struct simulation *simulation); /* once the events have their ids */
int simulation_recording_write(struct simulation *simulation, const void *records, size_t size);
int simulation_recording_finish(struct simulation *simulation);
void simulation_recording_release(struct simulation *simulation);
/* Maps the program's functions.  Call it as the instance's task. */
void simulation_recording_map(struct simulation *simulation, struct scenario_instance *instance);

/* simulation_object.c: makes an ELF object with the scenario's functions as symbols. */
int simulation_object_write(const struct scenario *scenario, struct tally_buffer *out);

#endif
