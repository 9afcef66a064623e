/* Tasks and processes: the calling task, the owners of descriptors and of events. */
#include "engine/engine_state.h"

enum { DESCRIPTORS_MAX = 1 << 20 }; /* the default of fs.nr_open */

struct tally_engine_task *engine_current(struct tally_engine *engine)
{
	return engine->host.current_task(engine->host.host);
}

struct tally_engine_task *engine_find_task(struct tally_engine *engine, int32_t tid)
{
	if (engine->host.find_task)
		return engine->host.find_task(engine->host.host, tid);
	ENGINE_LIST_EACH(task, &engine->tasks, struct tally_engine_task, link)
		if (task->identity.tid == tid)
			return task;
	return NULL;
}

/* --- processes ------------------------------------------------------------ */

static void process_put(struct tally_engine_process *process)
{
	if (!--process->references)
		engine_release(process->engine, process, sizeof(*process));
}

static struct tally_engine_process *process_new(struct tally_engine *engine, int32_t pid)
{
	struct tally_engine_process *process = engine_allocate(engine, sizeof(*process));
	if (!process)
		return NULL;
	process->engine = engine;
	process->pid = pid;
	process->references = 1;
	process->descriptor_limit = 4096;
	return process;
}

struct tally_engine_process *tally_engine_process_new(struct tally_engine *engine, int32_t pid)
{
	engine_enter(engine);
	struct tally_engine_process *process = process_new(engine, pid);
	engine_leave(engine);
	return process;
}

struct tally_engine_process *tally_engine_process_fork(struct tally_engine_process *parent,
						       int32_t pid)
{
	struct tally_engine *engine = parent->engine;
	engine_enter(engine);
	struct tally_engine_process *process = process_new(engine, pid);
	if (process) {
		process->descriptor_limit = parent->descriptor_limit;
		if (engine_files_fork(parent, process)) {
			process_put(process);
			process = NULL;
		}
	}
	engine_leave(engine);
	return process;
}

void tally_engine_process_limit(struct tally_engine_process *process, unsigned descriptors)
{
	engine_enter(process->engine);
	process->descriptor_limit = descriptors < DESCRIPTORS_MAX ? descriptors : DESCRIPTORS_MAX;
	engine_leave(process->engine);
}

void tally_engine_process_exit(struct tally_engine_process *process)
{
	struct tally_engine *engine = process->engine;
	engine_enter(engine);
	engine_mappings_release(process);
	engine_files_release(process);
	process_put(process);
	engine_leave(engine);
}

/* --- tasks ---------------------------------------------------------------- */

static struct tally_engine_task *task_new(struct tally_engine_process *process,
					  const struct tally_engine_identity *identity,
					  void *host_task)
{
	struct tally_engine *engine = process->engine;
	struct tally_engine_task *task = engine_allocate(engine, sizeof(*task));
	if (!task)
		return NULL;
	task->engine = engine;
	task->process = process;
	task->identity = *identity;
	task->host_task = host_task;
	task->references = 1;
	task->cpu = -1;
	process->references++;
	engine_list_init(&task->owned);
	engine_list_add_tail(&task->link, &engine->tasks);
	return task;
}

struct tally_engine_task *tally_engine_task_new(struct tally_engine_process *process,
						const struct tally_engine_identity *identity,
						void *host_task)
{
	struct tally_engine *engine = process->engine;
	engine_enter(engine);
	struct tally_engine_task *task = task_new(process, identity, host_task);
	engine_leave(engine);
	return task;
}

int tally_engine_task_fork(struct tally_engine_task *parent, struct tally_engine_task *child,
			   bool thread)
{
	struct tally_engine *engine = parent->engine;
	engine_enter(engine);
	int error = engine_inherit_fork(parent, child, thread);
	if (!error)
		engine_output_fork(child, parent);
	engine_leave(engine);
	return error;
}

void tally_engine_task_forked(struct tally_engine_task *task,
			      const struct tally_engine_identity *child)
{
	struct tally_engine *engine = task->engine;
	const struct tally_engine_task copy = { .engine = engine, .identity = *child };
	engine_enter(engine);
	engine_output_fork(&copy, task);
	task->identity = *child;
	engine_leave(engine);
}

/* Mappings and descriptors go first, as in the kernel: events that are closed by that don't see the
 * exec and aren't enabled by it. */
void tally_engine_task_exec(struct tally_engine_task *task, const char *comm)
{
	struct tally_engine *engine = task->engine;
	engine_enter(engine);
	engine_mappings_release(task->process);
	engine_files_exec(task->process);
	engine_inherit_exec(task);
	engine_output_comm(task, comm, true);
	engine_leave(engine);
}

static void disown(struct tally_engine_task *task)
{
	ENGINE_LIST_EACH(event, &task->owned, struct engine_event, owner_link) {
		engine_list_remove(&event->owner_link);
		event->owner = NULL;
	}
}

void tally_engine_task_exit(struct tally_engine_task *task)
{
	struct tally_engine *engine = task->engine;
	engine_enter(engine);
	disown(task);
	engine_output_exit(task);
	engine_inherit_exit(task);
	task->exited = true;
	engine_leave(engine);
}

void engine_task_get(struct tally_engine_task *task)
{
	task->references++;
}

static void task_free(struct tally_engine *engine, struct engine_retired *retired)
{
	struct tally_engine_task *task = ENGINE_CONTAINER(retired, struct tally_engine_task,
							  retired);
	process_put(task->process);
	engine_release(engine, task, sizeof(*task));
}

void engine_task_put(struct tally_engine_task *task)
{
	if (!--task->references)
		engine_retire(task->engine, &task->retired, task_free);
}

/* A task that never exited (a fork that failed) is ended here: its events and those that it opened
 * are released. */
void tally_engine_task_free(struct tally_engine_task *task)
{
	struct tally_engine *engine = task->engine;
	engine_enter(engine);
	disown(task);
	if (!task->exited)
		engine_inherit_exit(task);
	task->exited = true;
	engine_list_remove(&task->link);
	engine_task_put(task);
	engine_leave(engine);
}

void *tally_engine_task_host(struct tally_engine_task *task)
{
	return task->host_task;
}

struct tally_engine_task *tally_engine_task_current(struct tally_engine *engine)
{
	return engine_current(engine);
}

const struct tally_engine_identity *tally_engine_task_identity(const struct tally_engine_task *task)
{
	return &task->identity;
}

struct tally_engine_process *tally_engine_task_process(struct tally_engine_task *task)
{
	return task->process;
}
