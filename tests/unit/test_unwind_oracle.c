/* Leads real processes through real stacks, one instruction at a time.  At each, tally and
 * elfutils' libdwfl unwind the same registers and the same copy of the stack.  Both must find the
 * same chain. */
#include "test.h"

#include "object/object.h"
#include "unwind/unwind_internal.h"
#include "unwind_ways.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* Values that a function has popped are still below rsp, where libdwfl looks for them.  Tally's
 * copy begins at rsp, as the kernel's does, so tally must work without them. */
enum { BELOW = 2048 };

enum { MAPPINGS_MAX = 128, CHAIN_MAX = 256, STACK_MAX = 96 * 1024, STEPS_MAX = 2000000 };

struct mapping {
	uint64_t start, end, offset;
	char path[256];
	struct tally_object *object;
	struct tally_unwind_table *table;
};

/* A stopped process, as both unwinders see it. */
struct target {
	pid_t pid;
	struct mapping mappings[MAPPINGS_MAX];
	size_t mapping_count;
	Dwfl *dwfl;
	struct tally_unwind_request request;
	struct tally_unwind_cache *cache;
	uint8_t below[BELOW]; /* continues into `stack`, in one piece */
	uint8_t stack[STACK_MAX];
	uint64_t root; /* the outermost frame of every chain */
	size_t checks, ends[TALLY_UNWIND_LIMIT + 1], beyond_oracle, deepest;
};

struct chain {
	uint64_t addresses[CHAIN_MAX];
	size_t count;
};

static struct mapping *find_mapping(struct target *target, uint64_t address)
{
	for (size_t i = 0; i < target->mapping_count; i++)
		if (address >= target->mappings[i].start && address < target->mappings[i].end)
			return &target->mappings[i];
	return NULL;
}

static struct tally_object *open_vdso(struct target *target, const struct mapping *mapping)
{
	size_t size = mapping->end - mapping->start;
	uint8_t *bytes = malloc(size);
	assert_non_null(bytes);
	struct iovec local = { bytes, size }, remote = { (void *)mapping->start, size };
	struct tally_object *object = NULL;
	if (process_vm_readv(target->pid, &local, 1, &remote, 1, 0) == (ssize_t)size)
		tally_object_open_memory("[vdso]", bytes, size, &object, NULL);
	free(bytes);
	return object;
}

static void read_mappings(struct target *target)
{
	char path[64], line[512];
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)target->pid);
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) && target->mapping_count < MAPPINGS_MAX) {
		struct mapping *mapping = &target->mappings[target->mapping_count];
		memset(mapping, 0, sizeof(*mapping));
		char access[8];
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %255[^\n]", &mapping->start,
			   &mapping->end, access, &mapping->offset, mapping->path) < 4 ||
		    access[2] != 'x')
			continue;
		target->mapping_count++;
		if (mapping->path[0] == '/')
			tally_object_open(AT_FDCWD, mapping->path, &mapping->object, NULL);
		else if (strcmp(mapping->path, "[vdso]") == 0)
			mapping->object = open_vdso(target, mapping);
		if (mapping->object)
			assert_int_equal(tally_unwind_table_new(mapping->object, NULL,
								&mapping->table, NULL),
					 0);
	}
	fclose(file);
}

static void release_mappings(struct target *target)
{
	for (size_t i = 0; i < target->mapping_count; i++) {
		tally_unwind_table_free(target->mappings[i].table);
		tally_object_unref(target->mappings[i].object);
	}
	target->mapping_count = 0;
}

static bool find_place(void *context, uint64_t address, struct tally_unwind_place *place)
{
	struct mapping *mapping = find_mapping(context, address);
	if (!mapping)
		return false;
	place->table = mapping->table;
	if (mapping->object &&
	    !tally_object_address_of_offset(
		    mapping->object, address - mapping->start + mapping->offset, &place->address))
		place->table = NULL;
	return true;
}

/* The oracle's view: only the copied stack and the registers. */
static pid_t next_thread(Dwfl *dwfl, void *argument, void **thread)
{
	(void)dwfl;
	struct target *target = argument;
	if (*thread)
		return 0;
	*thread = target;
	return target->pid;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *result, void *argument)
{
	(void)dwfl;
	struct target *target = argument;
	uint64_t offset = address - (target->request.registers[TALLY_UNWIND_RSP] - BELOW);
	size_t size = BELOW + target->request.stack_size;
	if (offset > size || size - offset < sizeof(*result))
		return false;
	memcpy(result, (const uint8_t *)target + offsetof(struct target, below) + offset,
	       sizeof(*result));
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *argument)
{
	struct target *target = argument;
	return dwfl_thread_state_registers(thread, 0, TALLY_UNWIND_RIP + 1,
					   target->request.registers);
}

static int no_debug_file(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			 const char *file, const char *link, GElf_Word crc, char **found)
{
	(void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc,
		(void)found;
	return -1;
}

static const Dwfl_Callbacks CALLBACKS = { .find_elf = dwfl_linux_proc_find_elf,
					  .find_debuginfo = no_debug_file };
static const Dwfl_Thread_Callbacks THREAD_CALLBACKS = { .next_thread = next_thread,
							.memory_read = read_memory,
							.set_initial_registers = set_registers };

static void attach_oracle(struct target *target)
{
	target->dwfl = dwfl_begin(&CALLBACKS);
	assert_non_null(target->dwfl);
	assert_int_equal(dwfl_linux_proc_report(target->dwfl, target->pid), 0);
	assert_int_equal(dwfl_report_end(target->dwfl, NULL, NULL), 0);
	assert_true(dwfl_attach_state(target->dwfl, NULL, target->pid, &THREAD_CALLBACKS, target));
}

static int add_frame(Dwfl_Frame *frame, void *argument)
{
	struct chain *chain = argument;
	Dwarf_Addr address;
	if (!dwfl_frame_pc(frame, &address, NULL) || chain->count == CHAIN_MAX)
		return DWARF_CB_ABORT;
	chain->addresses[chain->count++] = address;
	return DWARF_CB_OK;
}

static void print_chain(struct target *target, const char *title, const struct chain *chain)
{
	fprintf(stderr, "%s:\n", title);
	for (size_t i = 0; i < chain->count; i++) {
		struct mapping *mapping = find_mapping(target, chain->addresses[i]);
		fprintf(stderr, "  %#lx %s+%#lx\n", chain->addresses[i],
			mapping ? mapping->path : "?",
			mapping ? chain->addresses[i] - mapping->start + mapping->offset : 0);
	}
}

static void copy_stack(struct target *target, const struct user_regs_struct *r)
{
	const uint64_t registers[] = { r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi,
				       r->rbp, r->rsp, r->r8,  r->r9,  r->r10, r->r11,
				       r->r12, r->r13, r->r14, r->r15, r->rip };
	memcpy(target->request.registers, registers, sizeof(registers));
	struct iovec below = { target->below, BELOW },
		     remote_below = { (void *)(r->rsp - BELOW), BELOW };
	if (process_vm_readv(target->pid, &below, 1, &remote_below, 1, 0) != BELOW)
		memset(target->below, 0, BELOW);
	/* Like the kernel, this copies as much as there is. */
	struct iovec local = { target->stack, STACK_MAX }, remote = { (void *)r->rsp, STACK_MAX };
	ssize_t size = process_vm_readv(target->pid, &local, 1, &remote, 1, 0);
	target->request.stack = target->stack;
	target->request.stack_size = size > 0 ? (size_t)size : 0;
	target->request.find = find_place;
	target->request.context = target;
}

/* True if `whole` contains all frames of `part`, in their order. */
static bool is_part_of(const struct chain *part, const struct chain *whole)
{
	size_t found = 0;
	for (size_t i = 0; i < whole->count && found < part->count; i++)
		found += whole->addresses[i] == part->addresses[found];
	return found == part->count;
}

/* Unwinds the target's present state with both. */
static void check(struct target *target, const struct user_regs_struct *registers)
{
	copy_stack(target, registers);
	struct chain ours, theirs = { .count = 0 };
	enum tally_unwind_end end;
	struct unwind_way way;
	assert_true(unwind_every_way(&target->request, target->cache, CHAIN_MAX, &way));
	memcpy(ours.addresses, way.addresses, way.count * sizeof(*way.addresses));
	ours.count = way.count;
	end = way.end;
	int status = dwfl_getthread_frames(target->dwfl, target->pid, add_frame, &theirs);
	target->checks++;
	target->ends[end]++;
	if (target->checks == 1 && end == TALLY_UNWIND_COMPLETE)
		target->root = ours.addresses[ours.count - 1];
	if (ours.count > target->deepest)
		target->deepest = ours.count;
	size_t same = 0;
	while (same < ours.count && same < theirs.count &&
	       ours.addresses[same] == theirs.addresses[same])
		same++;
	/* Tally does not report an address without a mapping. */
	if (end == TALLY_UNWIND_NO_MAP && theirs.count > 0 &&
	    !find_mapping(target, theirs.addresses[theirs.count - 1] - 1))
		theirs.count--;
	if (same == ours.count && same == theirs.count)
		return;
	/* elfutils 0.188 forgets rbx where no rule names it (its x86-64 defaults list rax instead),
	 * and stops early in the functions that _dl_runtime_resolve calls.  From a static program's
	 * PLT, which has no rules, it loses the caller. */
	if (is_part_of(&theirs, &ours) && end == TALLY_UNWIND_COMPLETE &&
	    ours.addresses[ours.count - 1] == target->root) {
		target->beyond_oracle++;
		return;
	}
	print_chain(target, "tally", &ours);
	print_chain(target, "libdwfl", &theirs);
	fail_msg("chains differ from frame %zu on; tally's end: %s; libdwfl's: %s", same,
		 tally_unwind_end_text(end), status ? dwfl_errmsg(-1) : "complete");
}

static int wait_for(pid_t pid)
{
	int status;
	assert_true(waitpid(pid, &status, __WALL) == pid);
	return status;
}

/* Steps from behind an int3 to the next one, and compares at each `stride`th step. */
static void step_through(struct target *target, unsigned stride)
{
	long signal = 0;
	for (unsigned step = 0; step < STEPS_MAX; step++) {
		struct user_regs_struct registers;
		assert_int_equal(ptrace(PTRACE_GETREGS, target->pid, NULL, &registers), 0);
		if (step % stride == 0)
			check(target, &registers);
		errno = 0;
		long code = ptrace(PTRACE_PEEKTEXT, target->pid, (void *)registers.rip, NULL);
		if (errno == 0 && (code & 0xff) == 0xcc)
			return;
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, target->pid, NULL, signal), 0);
		int status = wait_for(target->pid);
		assert_true(WIFSTOPPED(status));
		signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
	}
	fail_msg("the stretch does not end");
}

static void kill_target(struct target *target, pid_t leader)
{
	kill(leader, SIGKILL);
	for (int status = 0;;) { /* its threads end first */
		pid_t pid = waitpid(-1, &status, __WALL);
		if (pid < 0 || (pid == leader && !WIFSTOPPED(status)))
			break;
	}
	dwfl_end(target->dwfl);
	release_mappings(target);
}

static pid_t start(const char *path)
{
	pid_t pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	int status = wait_for(pid);
	if (!WIFSTOPPED(status))
		return -1;
	assert_int_equal(
		ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL), 0);
	return pid;
}

/* Continues the program until any thread has executed an int3.  Returns the thread, or -1 if the
 * program ended. */
static pid_t run_to_break(pid_t pid)
{
	assert_int_equal(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
	for (;;) {
		int status;
		pid_t stopped = waitpid(-1, &status, __WALL);
		if (stopped < 0 || !WIFSTOPPED(status))
			return -1;
		bool is_clone = status >> 8 == (SIGTRAP | PTRACE_EVENT_CLONE << 8);
		if (WSTOPSIG(status) == SIGTRAP && !is_clone)
			return stopped;
		ptrace(PTRACE_CONT, stopped, NULL,
		       WSTOPSIG(status) == SIGSTOP || is_clone ? 0 : WSTOPSIG(status));
	}
}

static void check_program(const char *path, unsigned stride, bool has_thread)
{
	struct target target = { .pid = start(path), .cache = tally_unwind_cache_new() };
	assert_non_null(target.cache);
	pid_t leader = target.pid;
	if (leader < 0 || run_to_break(leader) != leader) {
		print_message("# %s can't be traced here\n", path);
		skip();
	}
	read_mappings(&target);
	attach_oracle(&target);
	step_through(&target, stride);
	const size_t *ends = target.ends;
	print_message("# %s: %zu chains, %zu longer than libdwfl's, deepest %zu\n", path,
		      target.checks, target.beyond_oracle, target.deepest);
	for (unsigned end = 0; end <= TALLY_UNWIND_LIMIT; end++)
		print_message("# %8zu: %s\n", ends[end], tally_unwind_end_text(end));
	assert_true(target.checks > 500);
	assert_true(target.deepest > 12);
	assert_true(target.beyond_oracle * 100 < target.checks * 2);
	/* A handler runs on its own stack, so the other stack isn't copied. */
	assert_true(ends[TALLY_UNWIND_TRUNCATED] * 100 < target.checks * 5);
	/* At an exception's landing, the C++ unwinder has moved rsp, which no rules describe. */
	assert_true((ends[TALLY_UNWIND_BAD_RULES] + ends[TALLY_UNWIND_NO_MAP]) * 200 <
		    target.checks);
	assert_int_equal(ends[TALLY_UNWIND_NO_RULES] + ends[TALLY_UNWIND_LIMIT], 0);
	if (has_thread) {
		/* the int3 that ended the stretch */
		assert_int_equal(run_to_break(leader), leader);
		pid_t thread = run_to_break(leader);
		assert_true(thread > 0 && thread != leader);
		dwfl_end(target.dwfl);
		release_mappings(&target);
		target.request.space++; /* invalidates the tables in the cache */
		target.pid = thread;
		target.checks = target.ends[TALLY_UNWIND_COMPLETE] = 0;
		read_mappings(&target);
		attach_oracle(&target);
		step_through(&target, stride);
		assert_int_equal(ends[TALLY_UNWIND_COMPLETE], target.checks);
	}
	kill_target(&target, leader);
	tally_unwind_cache_free(target.cache);
}

static void chains_equal_libdwfl_s(void **state)
{
	check_program(*state, 2, true);
}

static void chains_of_a_static_program_equal_libdwfl_s(void **state)
{
	check_program(*state, 5, false);
}

static void chains_of_exceptions_equal_libdwfl_s(void **state)
{
	check_program(*state, 41, false);
}

static size_t function_count(struct tally_object *object)
{
	struct tally_unwind_table *table;
	size_t count = 0;
	assert_int_equal(tally_unwind_table_new(object, NULL, &table, NULL), 0);
	for (unsigned i = 0; i < table->index_count; i++)
		count += table->indexes[i].count;
	tally_unwind_table_free(table);
	return count;
}

/* In an object without section headers, the program headers lead to the rules. */
static void rules_are_found_without_section_headers(void **state)
{
	struct tally_object *object, *bare;
	assert_int_equal(tally_object_open(AT_FDCWD, *state, &object, NULL), 0);
	FILE *file = fopen(*state, "re");
	assert_non_null(file);
	size_t capacity = 1 << 20;
	Elf64_Ehdr *image = malloc(capacity);
	assert_non_null(image);
	size_t size = fread(image, 1, capacity, file);
	fclose(file);
	image->e_shoff = 0;
	image->e_shnum = image->e_shstrndx = 0;
	assert_int_equal(tally_object_open_memory("bare", image, size, &bare, NULL), 0);
	assert_in_range(function_count(object), 10, 1000);
	assert_int_equal(function_count(bare), function_count(object));
	free(image);
	tally_object_unref(bare);
	tally_object_unref(object);
}

/* A sample of a page fault: registers and stack as the kernel copies them. */
struct sampling {
	int fd;
	struct perf_event_mmap_page *ring;
	uint8_t *page;
	void *expected[64];
	int expected_count;
};

__attribute__((noinline)) static void touch(struct sampling *sampling)
{
	sampling->expected_count = backtrace(sampling->expected, 64);
	/* Enabled only here: each fault takes 32 KiB of the ring, and backtrace() loads a
	 * library. */
	ioctl(sampling->fd, PERF_EVENT_IOC_ENABLE, 0);
	*(volatile uint8_t *)sampling->page = 1;
}

__attribute__((noinline)) static void descend(struct sampling *sampling, int depth)
{
	if (depth == 0)
		touch(sampling);
	else
		descend(sampling, depth - 1);
	__asm__ volatile("");
}

static int open_faults(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_ADDR | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = TALLY_UNWIND_REGS_MASK,
		.sample_stack_user = 32768,
		.exclude_kernel = 1,
		.disabled = 1,
	};
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

/* Returns the sample of the fault at `address`: its words from REGS_USER on. */
static const uint64_t *find_sample(const struct sampling *sampling, size_t ring_size,
				   uint64_t address)
{
	uint64_t head = atomic_load_explicit((_Atomic uint64_t *)&sampling->ring->data_head,
					     memory_order_acquire);
	const uint8_t *data = (const uint8_t *)sampling->ring + sysconf(_SC_PAGESIZE);
	for (uint64_t at = 0; at < head && at < ring_size;) {
		const struct perf_event_header *header = (const void *)(data + at);
		const uint64_t *words = (const void *)(header + 1);
		if (header->type == PERF_RECORD_SAMPLE && words[0] == address)
			return words + 1;
		at += header->size;
	}
	return NULL;
}

static void a_kernel_sample_unwinds(void **state)
{
	(void)state;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), ring_size = 128 * page;
	struct sampling sampling = { 0 };
	int fd = sampling.fd = open_faults();
	if (fd < 0)
		skip();
	sampling.ring = mmap(NULL, page + ring_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	sampling.page = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);
	assert_true(sampling.page != MAP_FAILED);
	if (sampling.ring == MAP_FAILED)
		skip(); /* there is no locked memory */
	descend(&sampling, 5);
	close(fd);
	const uint64_t *words = find_sample(&sampling, ring_size, (uint64_t)sampling.page);
	assert_non_null(words);
	assert_int_equal(words[0], PERF_SAMPLE_REGS_ABI_64);
	/* on the heap: too large for a copied stack */
	struct target *target = calloc(1, sizeof(*target));
	assert_non_null(target);
	target->pid = getpid();
	read_mappings(target);
	target->request.find = find_place;
	target->request.context = target;
	assert_true(tally_unwind_registers(TALLY_UNWIND_X86_64, words + 1, TALLY_UNWIND_REGS_MASK,
					   target->request.registers));
	const uint64_t *stack = words + 1 + 20;
	target->request.stack = (const uint8_t *)(stack + 1);
	target->request.stack_size = stack[1 + stack[0] / 8]; /* dyn_size */
	uint64_t addresses[64];
	enum tally_unwind_end end;
	size_t count = tally_unwind(&target->request, addresses, 64, &end);
	assert_int_equal(end, TALLY_UNWIND_COMPLETE);
	/* The leaf is touch(), at another instruction than its call of backtrace(). */
	size_t skipped = (size_t)sampling.expected_count - count;
	for (size_t i = 1; i < count; i++)
		assert_int_equal(addresses[i], (uint64_t)sampling.expected[i + skipped]);
	assert_in_range(count, 8, 64);
	release_mappings(target);
	free(target);
	munmap(sampling.ring, page + ring_size);
	munmap(sampling.page, page);
}

static void chains_by_debug_frame_equal_libdwfl_s(void **state)
{
	struct tally_object *object;
	struct tally_section section;
	assert_int_equal(tally_object_open(AT_FDCWD, *state, &object, NULL), 0);
	assert_true(tally_object_section(object, ".debug_frame", &section));
	tally_object_unref(object);
	check_program(*state, 5, false);
}

/* Arguments: the C program; the same with frame pointers; the same static, with .debug_frame
 * instead of .eh_frame; and the C++ one.  "-" for a missing one. */
int main(int argc, char **argv)
{
	if (argc != 6)
		return 2;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(chains_equal_libdwfl_s, argv[1]),
		cmocka_unit_test_prestate(chains_of_a_static_program_equal_libdwfl_s, argv[3]),
		cmocka_unit_test_prestate(chains_by_debug_frame_equal_libdwfl_s, argv[4]),
		cmocka_unit_test_prestate(chains_of_exceptions_equal_libdwfl_s, argv[5]),
		cmocka_unit_test_prestate(rules_are_found_without_section_headers, argv[1]),
		cmocka_unit_test(a_kernel_sample_unwinds),
	};
	return cmocka_run_group_tests_name("unwind_oracle", tests, NULL, NULL);
}
