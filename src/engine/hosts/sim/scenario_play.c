/* Runs a scenario's tasks: one step after another, until one takes time. */
#define TALLY_TRACE_DEFINE
#include "sim/scenario_tracepoints.h"

#include "sim/scenario_play.h"
#include "sim/sim_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TASKS_MAX = 100000, HIT_INSTRUCTIONS = 200, FAULT_INSTRUCTIONS = 1000, CHAIN_MAX = 128 };
#define KERNEL_ENTRY 0xffffffff81100000u
#define FAULT_BASE 0x7f0000000000u

/* --- call chains ---------------------------------------------------------- */

struct scenario_chain {
	int function, from;
	unsigned count;
	uint64_t *addresses;
};

/* Returns the return address of `callee` in `caller`.  It differs for each callee, as far as there
 * is room. */
static uint64_t return_address(const struct scenario *scenario, int caller, int callee)
{
	const struct scenario_function *function = &scenario->functions[caller];
	return function->address + 8 + (unsigned)callee * 12u % (function->size - 32) / 4 * 4;
}

/* `from` SCENARIO_NONE: use the function's own caller. */
static int make_chain(struct scenario_play *play, int function, int from)
{
	const struct scenario *scenario = play->scenario;
	struct scenario_chain *chain = &play->chains[play->chain_count];
	uint64_t addresses[CHAIN_MAX];
	int callee = function, caller = from >= 0 ? from : scenario->functions[function].caller;
	*chain = (struct scenario_chain){ .function = function, .from = from };
	for (; caller >= 0 && chain->count < CHAIN_MAX;
	     callee = caller, caller = scenario->functions[caller].caller)
		addresses[chain->count++] = return_address(scenario, caller, callee);
	chain->addresses = calloc(chain->count + 1, sizeof(*addresses));
	if (!chain->addresses)
		return -ENOMEM;
	memcpy(chain->addresses, addresses, chain->count * sizeof(*addresses));
	play->chain_count++;
	return 0;
}

static const struct scenario_chain *find_chain(const struct scenario_play *play, int function,
					       int from)
{
	for (unsigned i = 0; i < play->chain_count; i++)
		if (play->chains[i].function == function && play->chains[i].from == from)
			return &play->chains[i];
	return NULL;
}

static int make_chains(struct scenario_play *play)
{
	const struct scenario *scenario = play->scenario;
	size_t steps = 1;
	for (unsigned p = 0; p < scenario->program_count; p++)
		steps += scenario->programs[p].step_count;
	play->chains = calloc(steps, sizeof(*play->chains));
	if (!play->chains)
		return -ENOMEM;
	for (unsigned p = 0; p < scenario->program_count; p++)
		for (unsigned s = 0; s < scenario->programs[p].step_count; s++) {
			const struct scenario_step *step = &scenario->programs[p].steps[s];
			if (step->function < 0 || find_chain(play, step->function, step->from))
				continue;
			int code = make_chain(play, step->function, step->from);
			if (code)
				return code;
		}
	return 0;
}

/* --- work ----------------------------------------------------------------- */

static void work_in(const struct scenario_play *play, int function, int from, struct sim_work *work)
{
	const struct scenario_function *place = &play->scenario->functions[function];
	const struct scenario_chain *chain = find_chain(play, function, from);
	work->address = place->address;
	/* so that a late interrupt is still within the function */
	work->code_size = place->size - 32;
	work->callers = chain->addresses;
	work->caller_count = chain->count;
}

static uint64_t instructions_in(const struct scenario_play *play, uint64_t ns,
				uint32_t cycles_per_kilo)
{
	unsigned __int128 kilocycles = (unsigned __int128)ns * play->machine->config.megahertz;
	uint64_t instructions = (uint64_t)(kilocycles / cycles_per_kilo);
	if (instructions)
		return instructions;
	return 1;
}

static void mixed_work(struct scenario_instance *instance, const struct scenario_step *step,
		       enum tally_engine_mode mode, struct sim_phase *phase)
{
	const struct scenario_play *play = instance->play;
	const struct scenario_mix *mix = &play->scenario->mixes[step->mix];
	*phase = (struct sim_phase){ .kind = SIM_WORK, .work = { .mode = mode } };
	memcpy(phase->work.per_kilo, mix->per_kilo, sizeof(mix->per_kilo));
	phase->work.instructions = step->amount;
	if (step->ns)
		phase->work.instructions = instructions_in(play, step->ns,
							   mix->per_kilo[SIM_CYCLES]);
	work_in(play, step->function, step->from, &phase->work);
}

/* Instructions that accompany other actions of a task: one per cycle, a fifth of them branches. */
static void plain_work(uint64_t instructions, enum tally_engine_mode mode,
		       const struct sim_work *like, struct sim_phase *phase)
{
	*phase = (struct sim_phase){ .kind = SIM_WORK };
	if (like)
		phase->work = *like;
	else
		phase->work = (struct sim_work){ .address = KERNEL_ENTRY };
	memset(phase->work.per_kilo, 0, sizeof(phase->work.per_kilo));
	phase->work.per_kilo[SIM_CYCLES] = 1000;
	phase->work.per_kilo[SIM_BRANCHES] = 200;
	phase->work.instructions = instructions;
	phase->work.mode = mode;
}

/* --- births and deaths ---------------------------------------------------- */

static sim_program play_task;

static struct scenario_instance *spawn(struct scenario_play *play, struct scenario_instance *parent,
				       const struct scenario_program *program, bool thread)
{
	struct scenario_instance *instance = calloc(1, sizeof(*instance));
	if (!instance)
		return NULL;
	*instance = (struct scenario_instance){ .play = play,
						.program = program,
						.parent = parent };
	struct sim_task_spec spec = { .comm = parent ? NULL : program->name,
				      .program = play_task,
				      .data = instance,
				      .cpu = program->cpu,
				      .thread = thread };
	/* tasks start on different CPUs; afterwards the scheduler decides */
	if (!parent && program->cpu < 0)
		spec.cpu = (int)(play->next_cpu++ % play->machine->config.cpus);
	instance->task = sim_spawn(play->machine, parent ? parent->task : NULL, &spec);
	if (!instance->task) {
		free(instance);
		return NULL;
	}
	instance->tid = sim_tid(instance->task);
	instance->pid = sim_pid(instance->task);
	if (program->cpu >= 0)
		sim_pin(play->machine, instance->task, program->cpu);
	if (program->is_unprivileged)
		sim_drop_privileges(instance->task);
	if (play->last)
		play->last->next = instance;
	else
		play->first = instance;
	play->last = instance;
	play->live++;
	if (parent)
		parent->children++;
	return instance;
}

static void start_others(struct scenario_instance *instance, const struct scenario_step *step,
			 bool thread)
{
	struct scenario_play *play = instance->play;
	for (uint64_t i = 0; i < step->amount; i++)
		if (play->live >= TASKS_MAX ||
		    !spawn(play, instance, &play->scenario->programs[step->program], thread)) {
			play->refused++;
			return;
		}
}

static void leave(struct scenario_instance *instance, uint64_t exit_code, struct sim_phase *phase)
{
	struct scenario_play *play = instance->play;
	for (unsigned m = 0; m < SIM_METRICS; m++)
		for (unsigned mode = 0; mode < SCENARIO_MODES; mode++)
			instance->truth[m][mode] = sim_truth(instance->task, m, mode);
	if (play->on_exit)
		play->on_exit(play->context, instance);
	instance->task = NULL;
	if (instance->parent)
		instance->parent->children--;
	if (!--play->live && play->observer)
		sim_wake(play->machine, play->observer);
	*phase = (struct sim_phase){ .kind = SIM_EXIT, .exit_code = (int)exit_code };
}

/* --- steps ---------------------------------------------------------------- */

/* Steps with a repeat count do some work each time.  Returns true while a repetition is left. */
static bool once_more(struct scenario_instance *instance, const struct scenario_step *step)
{
	if (!instance->again) {
		instance->again = step->amount;
		return true;
	}
	return --instance->again > 0;
}

static void hit(struct scenario_instance *instance, const struct scenario_step *step)
{
	struct sim_machine *machine = instance->play->machine;
	if (step->kind == SCENARIO_TOUCH) {
		sim_touch(machine, step->address, 4, step->access);
	} else if (step->kind == SCENARIO_HIT) {
		sim_trace_syscall(machine, 39);
	} else {
		machine->user_hit = true;
		TALLY_TRACE(mark, step->text, (int64_t)step->amount);
		machine->user_hit = false;
		sim_cpu_settle(machine->cpu);
	}
}

/* Returns true if *phase takes time; then the step may be repeated. */
static bool repeated_step(struct scenario_instance *instance, const struct scenario_step *step,
			  struct sim_phase *phase)
{
	if (!once_more(instance, step))
		return false;
	hit(instance, step);
	plain_work(HIT_INSTRUCTIONS, TALLY_MODE_USER, &instance->task->user_work, phase);
	return true;
}

static bool guest(struct scenario_instance *instance, const struct scenario_step *step,
		  struct sim_phase *phase)
{
	instance->in_guest = !instance->in_guest;
	sim_guest_switch(instance->play->machine, instance->in_guest);
	if (!instance->in_guest)
		return false;
	mixed_work(instance, step,
		   step->is_kernel ? TALLY_MODE_GUEST_KERNEL : TALLY_MODE_GUEST_USER, phase);
	return true;
}

static void call(struct scenario_instance *instance, const struct scenario_step *step,
		 struct sim_phase *phase)
{
	sim_trace_syscall(instance->play->machine, 0);
	plain_work(instructions_in(instance->play, step->ns, 1000), TALLY_MODE_KERNEL, NULL, phase);
	if (step->function >= 0)
		work_in(instance->play, step->function, SCENARIO_NONE, &phase->work);
}

static void fault(struct scenario_instance *instance, const struct scenario_step *step,
		  struct sim_phase *phase)
{
	sim_fault(instance->play->machine, step->address ? step->address : FAULT_BASE,
		  (unsigned)step->amount, step->from_disk);
	plain_work(FAULT_INSTRUCTIONS * step->amount, TALLY_MODE_KERNEL, NULL, phase);
}

static void repeat(struct scenario_instance *instance, const struct scenario_step *step)
{
	/* the step behind this one: the loop's first */
	instance->repeats[instance->depth].first = instance->step;
	instance->repeats[instance->depth++].left = step->amount;
}

static void repeat_end(struct scenario_instance *instance)
{
	if (--instance->repeats[instance->depth - 1].left)
		instance->step = instance->repeats[instance->depth - 1].first;
	else
		instance->depth--;
}

/* Does a step that takes no time. */
static void do_at_once(struct scenario_instance *instance, const struct scenario_step *step)
{
	struct sim_machine *machine = instance->play->machine;
	switch (step->kind) {
	case SCENARIO_FORK:
	case SCENARIO_THREAD:
		start_others(instance, step, step->kind == SCENARIO_THREAD);
		break;
	case SCENARIO_MARK:
		hit(instance, step);
		break;
	case SCENARIO_EXEC:
		sim_exec(machine, step->text);
		if (instance->play->on_begin)
			instance->play->on_begin(instance->play->context, instance);
		break;
	case SCENARIO_COMM:
		sim_set_comm(machine, step->text);
		break;
	case SCENARIO_PIN:
		sim_pin(machine, instance->task, step->cpu);
		break;
	case SCENARIO_PRIVILEGES:
		sim_drop_privileges(instance->task);
		break;
	case SCENARIO_REPEAT:
		repeat(instance, step);
		break;
	case SCENARIO_END:
		repeat_end(instance);
		break;
	default:
		break;
	}
}

/* Returns true if *phase is the task's next phase; otherwise the next step follows. */
static bool do_step(struct scenario_instance *instance, const struct scenario_step *step,
		    struct sim_phase *phase)
{
	switch (step->kind) {
	case SCENARIO_RUN:
		mixed_work(instance, step, step->is_kernel ? TALLY_MODE_KERNEL : TALLY_MODE_USER,
			   phase);
		return true;
	case SCENARIO_GUEST:
		if (!guest(instance, step, phase))
			return false;
		instance->step--; /* so that it is called again */
		return true;
	case SCENARIO_HIT:
	case SCENARIO_TOUCH:
		if (!repeated_step(instance, step, phase))
			return false;
		instance->step--;
		return true;
	case SCENARIO_SYSCALL:
		call(instance, step, phase);
		return true;
	case SCENARIO_FAULT:
		fault(instance, step, phase);
		return true;
	case SCENARIO_SLEEP:
		*phase = (struct sim_phase){ .kind = SIM_SLEEP, .ns = step->ns };
		return true;
	case SCENARIO_YIELD:
		*phase = (struct sim_phase){ .kind = SIM_YIELD };
		return true;
	case SCENARIO_WAIT:
		if (!instance->children)
			return false;
		instance->step--;
		*phase = (struct sim_phase){ .kind = SIM_BLOCK };
		return true;
	case SCENARIO_EXIT:
		leave(instance, step->amount, phase);
		return true;
	default:
		do_at_once(instance, step);
		return false;
	}
}

static void begin(struct scenario_instance *instance)
{
	instance->has_begun = true;
	sim_set_comm(instance->play->machine, instance->program->name);
	if (instance->play->on_begin && !instance->parent)
		instance->play->on_begin(instance->play->context, instance);
}

static void play_task(struct sim_machine *machine, struct sim_task *task, void *data,
		      struct sim_phase *phase)
{
	struct scenario_instance *instance = data;
	(void)machine, (void)task;
	if (!instance->has_begun)
		begin(instance);
	while (instance->step < instance->program->step_count)
		if (do_step(instance, &instance->program->steps[instance->step++], phase))
			return;
	leave(instance, 0, phase);
}

/* --- for the observer ----------------------------------------------------- */

int scenario_play_init(struct scenario_play *play, const struct scenario *scenario,
		       struct sim_machine *machine)
{
	*play = (struct scenario_play){ .scenario = scenario, .machine = machine };
	/* EBUSY: another machine of this program has registered it. */
	int code = tally_trace_register(sim_engine(machine), &tally_trace_group_scenario);
	if (code && code != -EBUSY)
		return code;
	return make_chains(play);
}

int scenario_play_start(struct scenario_play *play)
{
	play->start_ns = sim_now(play->machine);
	for (unsigned i = 0; i < play->scenario->program_count; i++)
		if (play->scenario->programs[i].is_task &&
		    !spawn(play, NULL, &play->scenario->programs[i], false))
			return -ENOMEM;
	return 0;
}

static void pass(struct sim_machine *machine)
{
	struct sim_phase phase;
	plain_work(HIT_INSTRUCTIONS, TALLY_MODE_KERNEL, NULL, &phase);
	sim_do(machine, &phase);
}

/* Returns the happening that is first due, of those that have not happened yet.  They happen in
 * order of time, equal ones in the text's order. */
static const struct scenario_happening *due(const struct scenario_play *play, unsigned rank)
{
	const struct scenario *scenario = play->scenario;
	for (unsigned i = 0; i < scenario->happening_count; i++) {
		unsigned before = 0;
		for (unsigned j = 0; j < scenario->happening_count; j++)
			before += scenario->happenings[j].at_ns < scenario->happenings[i].at_ns ||
				  (scenario->happenings[j].at_ns == scenario->happenings[i].at_ns &&
				   j < i);
		if (before == rank)
			return &scenario->happenings[i];
	}
	return NULL;
}

uint64_t scenario_play_next_happening(const struct scenario_play *play)
{
	const struct scenario_happening *happening = due(play, play->next_happening);
	if (happening)
		return play->start_ns + happening->at_ns;
	return UINT64_MAX;
}

void scenario_play_happenings(struct scenario_play *play)
{
	struct sim_machine *machine = play->machine;
	while (scenario_play_next_happening(play) <= sim_now(machine)) {
		const struct scenario_happening *happening = due(play, play->next_happening++);
		struct sim_task *self = sim_current(machine);
		for (unsigned cpu = 0; !happening->online && sim_task_cpu(self) == happening->cpu &&
				       cpu < machine->config.cpus;
		     cpu++)
			if (cpu != happening->cpu && sim_cpu_online(machine, cpu)) {
				sim_pin(machine, self, (int)cpu);
				pass(machine);
				sim_pin(machine, self, SCENARIO_NONE);
			}
		sim_set_online(machine, happening->cpu, happening->online);
	}
}

struct scenario_instance *scenario_play_find(const struct scenario_play *play, int program)
{
	struct scenario_instance *instance = play->first;
	while (instance && instance->program != &play->scenario->programs[program])
		instance = instance->next;
	return instance;
}

static bool descends(const struct scenario_instance *instance, const struct scenario_instance *from)
{
	while (instance && instance != from)
		instance = instance->parent;
	return instance;
}

uint64_t scenario_play_truth(const struct scenario_play *play,
			     const struct scenario_instance *instance, bool with_children,
			     enum sim_metric metric, unsigned modes)
{
	uint64_t total = 0;
	for (unsigned cpu = 0; cpu < play->machine->config.cpus; cpu++)
		sim_cpu_advance(&play->machine->cpus[cpu]); /* some of the tasks still run */
	for (const struct scenario_instance *one = play->first; one; one = one->next) {
		if (one != instance && !(with_children && descends(one, instance)))
			continue;
		for (unsigned mode = 0; mode < SCENARIO_MODES; mode++)
			if (modes >> mode & 1 && one->task)
				total += sim_truth(one->task, metric, mode);
			else if (modes >> mode & 1)
				total += one->truth[metric][mode];
	}
	return total;
}

void scenario_play_release(struct scenario_play *play)
{
	for (unsigned i = 0; i < play->chain_count; i++)
		free(play->chains[i].addresses);
	free(play->chains);
	while (play->first) {
		struct scenario_instance *instance = play->first;
		play->first = instance->next;
		free(instance);
	}
}
