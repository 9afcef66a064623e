/* Steps of process_torture: threads, coroutines, and libraries that come and go. */
#include "process_torture.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <threads.h>
#include <ucontext.h>

enum { PAGE = 4096 };

static bool work_step(uint64_t *random)
{
	return torture_work(100000 + (unsigned)(torture_random(random) % 20000000));
}

/* --- short threads --------------------------------------------------------- */

static void *one_sum(void *argument)
{
	uint64_t *value = argument;
	*value = torture_sum((unsigned)*value);
	return argument;
}

static bool short_threads_step(uint64_t *random)
{
	enum { AT_ONCE = 8, TIMES = 25 };
	for (unsigned i = 0; i < TIMES; i++) {
		pthread_t threads[AT_ONCE];
		uint64_t values[AT_ONCE], counts[AT_ONCE];
		for (unsigned k = 0; k < AT_ONCE; k++) {
			counts[k] = values[k] = torture_random(random) % 20000;
			errno = pthread_create(&threads[k], NULL, one_sum, &values[k]);
			if (errno)
				return torture_failed("pthread_create");
		}
		for (unsigned k = 0; k < AT_ONCE; k++) {
			void *result;
			errno = pthread_join(threads[k], &result);
			if (errno || result != &values[k] ||
			    values[k] != torture_sum((unsigned)counts[k]))
				return torture_failed("a short thread's result");
		}
	}
	return true;
}

static void *count_down(void *argument)
{
	torture_sum(1000);
	__atomic_fetch_sub((int *)argument, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static int c11_thread(void *argument)
{
	return (int)torture_sum((unsigned)(uintptr_t)argument) & 0xff;
}

static bool other_threads_step(uint64_t *random)
{
	enum { DETACHED = 30 };
	static int left;
	pthread_attr_t attr;
	pthread_t thread;
	thrd_t other;
	int result = -1;
	unsigned count = (unsigned)(torture_random(random) % 1000);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	/* the smallest stack that there is */
	pthread_attr_setstacksize(&attr, (size_t)sysconf(_SC_THREAD_STACK_MIN));
	for (unsigned i = 0; i < DETACHED; i++) {
		__atomic_fetch_add(&left, 1, __ATOMIC_SEQ_CST);
		errno = pthread_create(&thread, &attr, count_down, &left);
		if (errno)
			return torture_failed("a detached thread");
	}
	pthread_attr_destroy(&attr);
	while (__atomic_load_n(&left, __ATOMIC_SEQ_CST))
		sched_yield();
	if (thrd_create(&other, c11_thread, (void *)(uintptr_t)count) != thrd_success ||
	    thrd_join(other, &result) != thrd_success ||
	    result != ((int)torture_sum(count) & 0xff))
		return torture_failed("thrd_create: %d", result);
	return true;
}

/* Deep within a stack of the least size, for some time. */
static void *deep_sum(void *argument)
{
	volatile char room[2048];
	room[0] = 1;
	*(bool *)argument = torture_work(5000000) && room[0];
	return NULL;
}

static bool small_stack_step(uint64_t *random)
{
	pthread_attr_t attr;
	pthread_t thread;
	bool is_well = false;
	(void)random;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, (size_t)sysconf(_SC_THREAD_STACK_MIN));
	errno = pthread_create(&thread, &attr, deep_sum, &is_well);
	if (!errno)
		errno = pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	if (errno || !is_well)
		return torture_failed("a small stack");
	return true;
}

/* --- cancellation, and data of threads ------------------------------------- */

static void *sleep_for_ever(void *argument)
{
	(void)argument;
	for (;;)
		pause();
	return NULL;
}

static void *work_for_ever(void *argument)
{
	int before;
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
	for (;;) {
		*(volatile uint64_t *)argument = torture_sum(10000);
	}
	return NULL;
}

static bool cancel_step(uint64_t *random)
{
	void *(*const functions[])(void *) = { sleep_for_ever, work_for_ever };
	const struct timespec moment = { .tv_nsec = (long)(torture_random(random) % 3000000) };
	for (unsigned i = 0; i < 2; i++) {
		pthread_t thread;
		uint64_t sink;
		void *result = NULL;
		errno = pthread_create(&thread, NULL, functions[i], &sink);
		if (errno)
			return torture_failed("pthread_create");
		nanosleep(&moment, NULL);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		if (result != PTHREAD_CANCELED)
			return torture_failed("a cancelled thread");
	}
	return true;
}

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static void count_end(void *value)
{
	torture_sum(100000);
	__atomic_fetch_add((int *)value, 1, __ATOMIC_SEQ_CST);
}
static void make_key(void)
{
	pthread_key_create(&key, count_end);
}

static void *set_data(void *argument)
{
	pthread_setspecific(key, argument);
	torture_sum(50000);
	pthread_exit(argument);
}

static bool data_step(uint64_t *random)
{
	enum { COUNT = 8 };
	pthread_t threads[COUNT];
	int ended = 0;
	(void)random;
	pthread_once(&key_once, make_key);
	for (unsigned i = 0; i < COUNT; i++)
		if (pthread_create(&threads[i], NULL, set_data, &ended))
			return torture_failed("pthread_create");
	for (unsigned i = 0; i < COUNT; i++)
		pthread_join(threads[i], NULL);
	if (ended != COUNT)
		return torture_failed("%d of %d destructors ran", ended, COUNT);
	return true;
}

/* --- libraries -------------------------------------------------------------- */

pthread_mutex_t torture_exit_lock = PTHREAD_MUTEX_INITIALIZER;

static bool library_step(uint64_t *random)
{
	const char *name = getenv("TORTURE_LIBRARY");
	unsigned count = (unsigned)(torture_random(random) % 100000);
	if (!name)
		return true;
	for (unsigned i = 0; i < 20; i++) {
		void *library = dlopen(name, i % 2 ? RTLD_NOW : RTLD_LAZY);
		if (!library)
			return torture_failed("dlopen: %s", dlerror());
		uint64_t (*sum)(unsigned) = (uint64_t(*)(unsigned))dlsym(library, "library_sum");
		if (!sum || sum(count) != torture_sum(count))
			return torture_failed("a library's function");
		pthread_mutex_lock(&torture_exit_lock);
		int error = dlclose(library);
		pthread_mutex_unlock(&torture_exit_lock);
		if (error)
			return torture_failed("dlclose");
	}
	return true;
}

/* --- coroutines -------------------------------------------------------------- */

struct coroutine {
	ucontext_t context, *back;
	uint64_t sum;
	unsigned switches;
	bool is_done;
};

/* makecontext(3) passes int only */
static void coroutine(unsigned high, unsigned low)
{
	struct coroutine *own = (struct coroutine *)((uintptr_t)high << 32 | low);
	for (unsigned i = 0; i < own->switches; i++) {
		own->sum += torture_sum(20000);
		swapcontext(&own->context, own->back);
	}
	own->is_done = true;
	swapcontext(&own->context, own->back);
}

/* Maps and unmaps what lies above the coroutines' stacks. */
static void *disturb(void *argument)
{
	char *const *area = argument;
	while (__atomic_load_n(&area[1], __ATOMIC_SEQ_CST)) {
		mmap(area[0], 16 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		torture_sum(1000);
		mmap(area[0], 16 * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		memset(area[0], 1, PAGE);
	}
	return NULL;
}

static bool coroutine_step(uint64_t *random)
{
	enum { COUNT = 4, STACK = 8 * PAGE, SWITCHES = 100 };
	struct coroutine all[COUNT];
	ucontext_t own;
	unsigned done = 0;
	bool disturbs = torture_random(random) % 2;
	pthread_t thread;
	char *stacks = mmap(NULL, COUNT * STACK + 16 * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *area[] = { stacks + COUNT * STACK, stacks };
	if (stacks == MAP_FAILED)
		return torture_failed("mmap");
	if (disturbs && pthread_create(&thread, NULL, disturb, area))
		return torture_failed("pthread_create");
	for (unsigned i = 0; i < COUNT; i++) {
		uintptr_t address = (uintptr_t)&all[i];
		all[i] = (struct coroutine){ .back = &own, .switches = SWITCHES };
		getcontext(&all[i].context);
		all[i].context.uc_stack.ss_sp = stacks + i * STACK;
		all[i].context.uc_stack.ss_size = STACK;
		all[i].context.uc_link = &own;
		makecontext(&all[i].context, (void (*)(void))coroutine, 2, (unsigned)(address >> 32),
			    (unsigned)address);
	}
	while (done < COUNT) {
		done = 0;
		for (unsigned i = 0; i < COUNT; i++) {
			if (!all[i].is_done)
				swapcontext(&own, &all[i].context);
			done += all[i].is_done;
		}
	}
	__atomic_store_n(&area[1], NULL, __ATOMIC_SEQ_CST);
	if (disturbs)
		pthread_join(thread, NULL);
	munmap(stacks, COUNT * STACK + 16 * PAGE);
	for (unsigned i = 0; i < COUNT; i++)
		if (all[i].sum != SWITCHES * torture_sum(20000))
			return torture_failed("a coroutine's sum");
	return true;
}

/* --- memory and numbers -------------------------------------------------------- */

static bool heap_step(uint64_t *random)
{
	enum { COUNT = 200 };
	char *pieces[COUNT] = { NULL };
	for (unsigned i = 0; i < 5000; i++) {
		unsigned at = (unsigned)(torture_random(random) % COUNT);
		size_t size = 16 + torture_random(random) % 5000;
		if (pieces[at] && pieces[at][1] != (char)at)
			return torture_failed("the heap");
		free(pieces[at]);
		pieces[at] = malloc(size);
		memset(pieces[at], (int)at, size);
	}
	for (unsigned i = 0; i < COUNT; i++)
		free(pieces[i]);
	return true;
}

static bool float_step(uint64_t *random)
{
	double sum = 0, expected = 0;
	unsigned count = 100000 + (unsigned)(torture_random(random) % 500000);
	for (unsigned i = 0; i < count; i++)
		sum += (double)i * 0.5;
	for (unsigned i = count; i;)
		expected += (double)--i * 0.5; /* exact: halves far below 2^53 */
	if (sum != expected)
		return torture_failed("a sum of floating-point numbers");
	return true;
}

const struct torture_step torture_thread_steps[] = {
	{ "work", work_step, 10 },
	{ "short-threads", short_threads_step, 5 },
	{ "other-threads", other_threads_step, 3 },
	{ "small-stack", small_stack_step, 3 },
	{ "cancel", cancel_step, 3 },
	{ "data", data_step, 3 },
	{ "library", library_step, 5 },
	{ "coroutine", coroutine_step, 5 },
	{ "heap", heap_step, 5 },
	{ "float", float_step, 3 },
	{ 0 },
};
