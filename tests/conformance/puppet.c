#include "puppet.h"

static int obey(struct surface *surface, void *puppet_)
{
	struct puppet *puppet = puppet_;
	for (uint32_t done = puppet->answered;; done++) {
		CALL(wait_while, &puppet->asked, done);
		if (!puppet->step)
			return puppet->result;
		puppet->result = puppet->step(surface, puppet->argument);
		CALL(post, &puppet->answered, done + 1);
	}
}

/* The body of the new program after step_become(): reports the step as done, then runs more
 * steps. */
static int obey_again(struct surface *surface, void *puppet_)
{
	struct puppet *puppet = puppet_;
	puppet->result = 0;
	CALL(post, &puppet->answered, puppet->answered + 1);
	return obey(surface, puppet);
}

struct puppet *puppet_new(struct surface *surface, enum surface_task_kind kind)
{
	struct puppet *puppet = CALL(shared, sizeof(*puppet));
	if (!puppet)
		return NULL;
	puppet->task = CALL(spawn, kind, obey, puppet);
	return puppet->task > 0 ? puppet : NULL;
}

int puppet_do(struct surface *surface, struct puppet *puppet, surface_body *step, void *argument)
{
	puppet->step = step;
	puppet->argument = argument;
	CALL(post, &puppet->asked, puppet->asked + 1);
	CALL(wait_while, &puppet->answered, puppet->asked - 1);
	return puppet->result;
}

int puppet_end(struct surface *surface, struct puppet *puppet, int code)
{
	puppet->step = NULL;
	puppet->result = code;
	CALL(post, &puppet->asked, puppet->asked + 1);
	return CALL(wait, puppet->task);
}

int step_fault(struct surface *surface, void *count)
{
	CALL(fault, (unsigned)(uintptr_t)count);
	return 0;
}

int step_hit(struct surface *surface, void *count)
{
	CALL(hit, (unsigned)(uintptr_t)count);
	return 0;
}

int step_touch(struct surface *surface, void *count)
{
	CALL(touch, TALLY_BREAKPOINT_W, (unsigned)(uintptr_t)count);
	return 0;
}

int step_pin(struct surface *surface, void *cpu)
{
	return CALL(pin, (int)(intptr_t)cpu);
}

int step_sleep(struct surface *surface, void *ms)
{
	CALL(sleep, (uint64_t)(uintptr_t)ms * 1000000u);
	return 0;
}

int step_become(struct surface *surface, void *puppet)
{
	return CALL(exec, "again", obey_again, puppet, 0);
}

int step_drop_privileges(struct surface *surface, void *unused)
{
	(void)unused;
	return CALL(drop_privileges);
}
