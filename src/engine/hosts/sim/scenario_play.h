/* Plays a scenario on a machine: runs its tasks, and takes CPUs offline and online.  An observer
 * measures: a task of the same machine, which calls these functions as the current task. */
#ifndef TALLY_SIM_SCENARIO_PLAY_H
#define TALLY_SIM_SCENARIO_PLAY_H

#include "sim/scenario.h"

#define SCENARIO_MODES (TALLY_MODE_GUEST_USER + 1)

/* A task that runs or has run.  It can be queried until scenario_play_release(). */
struct scenario_instance {
	struct scenario_play *play;
	const struct scenario_program *program;
	struct scenario_instance *parent; /* NULL: started with the scenario */
	struct scenario_instance *next;   /* in order of creation */
	struct sim_task *task;            /* NULL once it has exited */
	int32_t tid, pid;
	bool has_begun;
	unsigned step, depth, children; /* children: number of those alive */
	struct { unsigned first; uint64_t left; } repeats[SCENARIO_DEPTH_MAX];
	uint64_t again;                 /* remaining repetitions of the step */
	bool in_guest;
	uint64_t truth[SIM_METRICS][SCENARIO_MODES]; /* valid once it has exited */
};

struct scenario_play {
	const struct scenario *scenario;
	struct sim_machine *machine;
	struct scenario_instance *first, *last;
	unsigned live, refused; /* refused: number of forks that failed */
	uint64_t start_ns;
	unsigned next_happening, next_cpu;
	struct scenario_chain *chains; /* call chains, by function and caller */
	unsigned chain_count;
	/* Called as the new task when a task begins, so that its mappings can be reported, and when
	 * it is about to exit.  May be NULL. */
	void (*on_begin)(void *context, struct scenario_instance *instance);
	void (*on_exit)(void *context, struct scenario_instance *instance);
	void *context;
	struct sim_task *observer; /* woken when the last task exits; NULL: none */
};

/* Fills *play.  Returns 0 or -12 (ENOMEM). */
int scenario_play_init(struct scenario_play *play, const struct scenario *scenario,
		       struct sim_machine *machine);
/* Starts the tasks: they run as soon as the caller lets time pass.  Returns 0 or -12 (ENOMEM). */
int scenario_play_start(struct scenario_play *play);
/* Takes CPUs offline and online, if the scenario does so at this time.  The caller is the current
 * task, and is moved if its own CPU goes offline. */
void scenario_play_happenings(struct scenario_play *play);
/* Returns the time of the next such switch, in ns; UINT64_MAX: none. */
uint64_t scenario_play_next_happening(const struct scenario_play *play);
/* Returns the task started for a program; NULL if none was. */
struct scenario_instance *scenario_play_find(const struct scenario_play *play, int program);
/* Returns what an instance, with or without its descendants, really did in the modes given as bits
 * 1 << TALLY_MODE_…. */
uint64_t scenario_play_truth(const struct scenario_play *play,
			     const struct scenario_instance *instance, bool with_children,
			     enum sim_metric metric, unsigned modes);
/* Frees everything.  Call it after the machine has been freed. */
void scenario_play_release(struct scenario_play *play);

#endif
