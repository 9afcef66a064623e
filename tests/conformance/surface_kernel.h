/* The running kernel as a surface: declarations for its files.
 *
 * A test runs in a process of its own.  populate() makes all memory present that the test's body,
 * or the functions that it calls here, will touch.  So fault() causes exactly the faults that it
 * promises. */
#ifndef TALLY_CONFORMANCE_SURFACE_KERNEL_H
#define TALLY_CONFORMANCE_SURFACE_KERNEL_H

#include "surface.h"

#include <pthread.h>
#include <signal.h>

enum {
	THREADS_MAX = 64,
	SAVED_MAX = 16,
	ARENA_SIZE = 1 << 20,
	FAULT_PAGES = 1 << 14,
	SIGNALS_MAX = 65,
	DESCRIPTORS_MAX = 2048,      /* RLIMIT_NOFILE of a test: enough for the largest group */
	PRIVATE_DESCRIPTORS = 2040   /* our own descriptors begin here, out of a test's way */
};

/* A system file that a test changed, and its previous text. */
struct saved_file {
	char path[96], text[32];
};

/* The beginning of the memory that all tasks of a test share.  It has the same address in each,
 * also after an exec. */
struct arena {
	uint32_t used;
	unsigned features, hardware_counters;
	char directory[64]; /* the test's directory, for files and links */
	uint32_t saved_count;
	struct saved_file saved[SAVED_MAX];
};

struct kernel_thread {
	pthread_t handle;
	volatile uint32_t tid; /* 0: free */
};

struct kernel_surface {
	struct surface surface;
	struct arena *arena;
	int arena_fd;
	int tracefs; /* descriptor, or -errno */
	struct kernel_thread threads[THREADS_MAX];
	char path[512]; /* path of this program */
	char *format;
	int program; /* the BPF program of make_ksymbol() */
};

/* State of the calling thread.  It is thread-local, since a signal handler has no argument for
 * it. */
struct kernel_task {
	volatile unsigned signals[SIGNALS_MAX];
	volatile int last_code[SIGNALS_MAX];
	volatile uint64_t last_data[SIGNALS_MAX];
	char *fault_region;
};
extern _Thread_local struct kernel_task kernel_task;

static inline struct kernel_surface *kernel_of(struct surface *surface)
{
	return (struct kernel_surface *)surface;
}

/* Sets up a new task, before its body runs. */
void kernel_task_begin(struct kernel_surface *kernel);
/* Creates a directory and the shared memory for one test.  Returns 0 or -errno. */
int kernel_arena_make(struct kernel_surface *kernel);
void kernel_arena_drop(struct kernel_surface *kernel);
/* Restores all files that a test changed. */
void kernel_restore(struct kernel_surface *kernel);
unsigned kernel_features(struct kernel_surface *kernel);
unsigned kernel_hardware_counters(struct surface *surface);
int kernel_tracefs_open(void);
int kernel_private_descriptor(int fd);

/* surface_kernel_tasks.c */
pid_t kernel_spawn(struct surface *surface, enum surface_task_kind kind, surface_body *body,
		   void *argument);
int kernel_wait(struct surface *surface, pid_t task);
int kernel_exec(struct surface *surface, const char *comm, surface_body *body, const void *argument,
		size_t size);
int kernel_drop_privileges(struct surface *surface);
void kernel_wait_while(struct surface *surface, volatile uint32_t *word, uint32_t value);
void kernel_post(struct surface *surface, volatile uint32_t *word, uint32_t value);
void *kernel_shared(struct surface *surface, size_t size);
int kernel_pin(struct surface *surface, int cpu);
int kernel_watch_signal(struct surface *surface, int signal);
unsigned kernel_signals(struct surface *surface, int signal, int *last_code, uint64_t *last_data);

/* surface_kernel_work.c */
void kernel_burn(struct surface *surface, uint64_t ns);
void kernel_loop(struct surface *surface, uint64_t iterations);
void kernel_fault(struct surface *surface, unsigned count);
uint64_t kernel_fault_address(struct surface *surface, unsigned n);
void kernel_sleep(struct surface *surface, uint64_t ns);
void kernel_map_code(struct surface *surface, bool executable);
void kernel_hit(struct surface *surface, unsigned count);
void kernel_touch(struct surface *surface, unsigned breakpoint_type, unsigned count);
uint64_t kernel_watched_address(struct surface *surface, unsigned breakpoint_type);
int kernel_make(struct surface *surface, enum tally_sw event, unsigned count);
int kernel_read_counter(struct surface *surface, unsigned index, uint64_t *value);

/* surface_kernel_system.c */
long kernel_tracepoint(struct surface *surface, const char *name);
const char *kernel_tracepoint_format(struct surface *surface, const char *name);
int kernel_cgroup(struct surface *surface);
int kernel_bpf_program(struct surface *surface, bool passes);
int kernel_pmu(struct surface *surface, const char *name);
long kernel_sysctl(struct surface *surface, const char *name);
int kernel_set_sysctl(struct surface *surface, const char *name, long value);
int kernel_set_online(struct surface *surface, int cpu, bool online);

/* surface_kernel_made.c */
int kernel_mapped_file(struct surface *surface, struct surface_file *file);
int kernel_cgroup_id(struct surface *surface, int fd, uint64_t *id);
int kernel_make_cgroup(struct surface *surface, const char *name, uint64_t *id);
int kernel_make_ksymbol(struct surface *surface, struct surface_ksymbol *symbol);
int kernel_poke_text(struct surface *surface, struct surface_text_poke *poke);
int kernel_other_file(struct surface *surface);

/* surface_kernel_guest.c */
bool kernel_may_run_guests(struct surface *surface);
int kernel_level(struct surface *surface);
int kernel_run_guest(struct surface *surface, uint64_t kernel_iterations, uint64_t user_iterations);
int kernel_counter_selector(struct surface *surface, const uint64_t *set, uint64_t *value);

#endif
