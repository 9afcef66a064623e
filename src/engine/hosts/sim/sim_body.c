/* Tasks whose program is a C function: coroutines that the machine resumes when their phase is
 * over. */
#include "sim/sim_state.h"

#include <stdlib.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#define SIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIM_ASAN 1
#endif
#endif
#ifdef SIM_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

struct sim_body {
	sim_body_function *function;
	void *argument;
	struct sim_machine *machine;
	ucontext_t own, machine_context;
	void *stack;
	bool started;
	struct sim_phase *phase; /* place for the next phase */
	void *fake_stack;        /* for the address sanitizer */
	const void *machine_stack;
	size_t machine_stack_size;
};

/* The address sanitizer must know which stack is in use. */
static void before_switch(void **save, const void *stack, size_t size)
{
#ifdef SIM_ASAN
	__sanitizer_start_switch_fiber(save, stack, size);
#else
	(void)save, (void)stack, (void)size;
#endif
}

static void after_switch(void *saved, const void **from, size_t *size)
{
#ifdef SIM_ASAN
	__sanitizer_finish_switch_fiber(saved, from, size);
#else
	(void)saved, (void)from, (void)size;
#endif
}

struct sim_body *sim_body_new(sim_body_function *function, void *argument)
{
	struct sim_body *body = calloc(1, sizeof(*body));
	if (!body)
		return NULL;
	body->function = function;
	body->argument = argument;
	body->stack = malloc(SIM_STACK_SIZE);
	if (!body->stack) {
		free(body);
		return NULL;
	}
	return body;
}

void sim_body_release(void *data)
{
	struct sim_body *body = data;
	free(body->stack);
	free(body);
}

static void entry(unsigned high, unsigned low)
{
	struct sim_body *body = (struct sim_body *)((uintptr_t)high << 32 | low);
	after_switch(NULL, &body->machine_stack, &body->machine_stack_size);
	int code = body->function(body->machine, body->argument);
	*body->phase = (struct sim_phase){ .kind = SIM_EXIT, .exit_code = code };
	/* NULL: this stack is no longer used */
	before_switch(NULL, body->machine_stack, body->machine_stack_size);
	setcontext(&body->machine_context);
}

void sim_body_program(struct sim_machine *machine, struct sim_task *task, void *data,
		      struct sim_phase *phase)
{
	struct sim_body *body = data;
	task->stack_top = (uintptr_t)body->stack + SIM_STACK_SIZE;
	body->machine = machine;
	body->phase = phase;
	if (!body->started) {
		body->started = true;
		getcontext(&body->own);
		body->own.uc_stack.ss_sp = body->stack;
		body->own.uc_stack.ss_size = SIM_STACK_SIZE;
		body->own.uc_link = NULL;
		makecontext(&body->own, (void (*)(void))entry, 2, (unsigned)((uintptr_t)body >> 32),
			    (unsigned)(uintptr_t)body);
	}
	void *fake = NULL;
	before_switch(&fake, body->stack, SIM_STACK_SIZE);
	swapcontext(&body->machine_context, &body->own);
	after_switch(fake, NULL, NULL);
}

void sim_do(struct sim_machine *machine, const struct sim_phase *phase)
{
	struct sim_task *task = sim_current(machine);
	struct sim_body *body = task->data;
	task->stack_pointer = (uintptr_t)__builtin_frame_address(0);
	*body->phase = *phase;
	before_switch(&body->fake_stack, body->machine_stack, body->machine_stack_size);
	swapcontext(&body->own, &body->machine_context);
	after_switch(body->fake_stack, &body->machine_stack, &body->machine_stack_size);
}
