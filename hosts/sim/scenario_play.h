/* Plays a scenario on a machine: its tasks, and what happens to CPUs.  What it wants measured is
 * the observer's matter: a task of the same machine, which calls these functions as the current
 * task. */
#ifndef TALLY_SIM_SCENARIO_PLAY_H
#define TALLY_SIM_SCENARIO_PLAY_H

#include "sim/scenario.h"

#define SCENARIO_MODES (TALLY_MODE_GUEST_USER + 1)

/* A task that runs or ran: it stays to be asked until scenario_play_release(). */
struct scenario_instance {
	struct scenario_play *play;
	const struct scenario_program *program;
	struct scenario_instance *parent; /* NULL: started with the scenario */
	struct scenario_instance *next;   /* in the order of birth */
	struct sim_task *task;            /* NULL once it has exited */
	int32_t tid, pid;
	bool is_thread, has_begun;
	unsigned step, depth, children; /* children: that are alive */
	struct { unsigned first; uint64_t left; } repeats[SCENARIO_DEPTH_MAX];
	uint64_t again;                 /* times that the step is still to be done */
	bool in_guest;
	uint64_t truth[SIM_METRICS][SCENARIO_MODES]; /* once it has exited */
};

struct scenario_play {
	const struct scenario *scenario;
	struct sim_machine *machine;
	struct scenario_instance *first, *last;
	unsigned live, refused; /* refused: forks that failed */
	uint64_t start_ns;
	unsigned next_happening, next_cpu;
	struct scenario_chain *chains; /* of callers, by function and caller */
	unsigned chain_count;
	/* Called when a task begins (as that task: its mappings may be told), and when it is about
	 * to exit. May be NULL. */
	void (*on_begin)(void *context, struct scenario_instance *instance);
	void (*on_exit)(void *context, struct scenario_instance *instance);
	void *context;
	struct sim_task *observer; /* is woken when the last task exits; NULL: nobody */
};

/* Fills *play: 0, or -12. */
int scenario_play_init(struct scenario_play *play, const struct scenario *scenario,
		       struct sim_machine *machine);
/* Starts the tasks: they run as soon as the caller lets time pass. 0 or -12. */
int scenario_play_start(struct scenario_play *play);
/* What is due now happens to CPUs. The caller is the current task, and moves if its own CPU
 * goes. */
void scenario_play_happenings(struct scenario_play *play);
/* When the next of these is due; UINT64_MAX: none. */
uint64_t scenario_play_next_happening(const struct scenario_play *play);
/* The task started for a program; NULL when none was. */
struct scenario_instance *scenario_play_find(const struct scenario_play *play, int program);
/* What an instance, with its descendants or without, really did in the modes given as bits 1 <<
 * TALLY_MODE_…. */
uint64_t scenario_play_truth(const struct scenario_play *play,
			     const struct scenario_instance *instance, bool with_children,
			     enum sim_metric metric, unsigned modes);
/* When the machine is gone. */
void scenario_play_release(struct scenario_play *play);

#endif
