/* Which mappings the preloaded object tells, and when: process_maps.c in this process, whose records the
 * test takes. */
#include "process/process_agent.h"

#include "test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = TALLY_PLAN_PAGE, TOLD = 65536, RECORD = 1000, CODE = PROT_READ | PROT_EXEC };

/* --- what process_maps.c uses -------------------------------------------------- */

struct process_agent process_agent;
__thread struct process_thread *process_own;

static struct tally_plan plan;
static struct tally_user_page ring;
static struct process_thread slots[4];
static struct told {
	struct tally_engine_mapping mapping;
	char path[512];
} *told;
static unsigned told_count;
static void (*on_record)(void);

void tally_engine_mmap_record(struct tally_engine_task *task,
			      const struct tally_engine_mapping *mapping)
{
	assert_ptr_equal(task, process_own->task);
	unsigned index = __atomic_fetch_add(&told_count, 1, __ATOMIC_SEQ_CST);
	if (index < TOLD) {
		told[index].mapping = *mapping;
		snprintf(told[index].path, sizeof(told[index].path), "%s", mapping->path);
		told[index].mapping.path = told[index].path;
	}
	if (on_record)
		on_record();
}

struct process_thread *process_self(void)
{
	return process_own;
}

uint64_t process_enter_alone(struct process_thread *thread)
{
	process_enter(thread);
	return 0;
}

void process_leave_alone(struct process_thread *thread, uint64_t mask)
{
	(void)mask;
	process_leave(thread);
}

void process_enter(struct process_thread *thread)
{
	thread->inside++;
}

void process_leave(struct process_thread *thread)
{
	thread->inside--;
}

void process_host_settle(struct process_thread *thread)
{
	assert_int_equal(thread->inside, 1);
}

/* --- helpers --------------------------------------------------------------------- */

static int begin(void **state)
{
	(void)state;
	plan.ring_pages = 64;
	process_agent = (struct process_agent){ .plan = &plan, .pid = getpid(), .wants_maps = true };
	for (unsigned i = 0; i < 4; i++) {
		slots[i] = (struct process_thread){ .ring_page = &ring };
		slots[i].task = (struct tally_engine_task *)&slots[i];
	}
	process_own = &slots[0];
	ring = (struct tally_user_page){ 0 };
	told_count = 0;
	on_record = NULL;
	process_maps_tell(process_own, true);
	return 0;
}

static int make(void **state)
{
	(void)state;
	told = calloc(TOLD, sizeof(*told));
	return told ? 0 : -1;
}

static int release(void **state)
{
	(void)state;
	free(told);
	return 0;
}

/* The number of executable mappings that /proc/self/maps has and that were not told as they are. */
static unsigned count_untold(void)
{
	char line[1024], path[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned untold = 0;
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long long start, end, offset, inode;
		unsigned major, minor;
		char rights[8];
		path[0] = '\0';
		sscanf(line, "%llx-%llx %7s %llx %x:%x %llu %511[^\n]", &start, &end, rights,
		       &offset, &major, &minor, &inode, path);
		if (rights[2] != 'x')
			continue;
		bool found = false;
		for (unsigned i = 0; i < told_count && !found; i++) {
			const struct tally_engine_mapping *mapping = &told[i].mapping;
			found = mapping->address == start && mapping->length == end - start &&
				mapping->inode == inode && mapping->major == major &&
				mapping->minor == minor && mapping->protection & PROT_EXEC &&
				(!path[0] || !strcmp(mapping->path, path)) &&
				(!inode || mapping->file_offset == offset);
		}
		untold += !found;
	}
	fclose(maps);
	return untold;
}

static bool is_told(const void *address)
{
	for (unsigned i = 0; i < told_count; i++)
		if ((uint64_t)(uintptr_t)address - told[i].mapping.address < told[i].mapping.length)
			return true;
	return false;
}

static char *map(size_t size, int protection)
{
	char *memory = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

static void sample(const void *address)
{
	process_own->inside++;
	process_maps_sampled(process_own, (uint64_t)(uintptr_t)address);
	process_own->inside--;
}

/* --- tests ----------------------------------------------------------------------- */

static void a_program_tells_all_its_code_once(void **state)
{
	(void)state;
	assert_int_equal(count_untold(), 0);
	unsigned before = told_count;
	process_maps_tell(process_own, false);
	sample((const void *)(uintptr_t)begin);
	sample((const void *)(uintptr_t)strlen);
	assert_int_equal(told_count, before);
}

static void a_loaded_library_is_told_by_the_next_sample(void **state)
{
	(void)state;
	/* not one that the test program has already */
	void *library = dlopen("libBrokenLocale.so.1", RTLD_NOW);
	if (!library)
		skip();
	const void *own = (const void *)(uintptr_t)begin;
	assert_int_equal(count_untold(), 1);
	sample(own);
	assert_int_equal(count_untold(), 0);
	unsigned before = told_count;
	sample(own);
	dlclose(library);
	sample(own);
	assert_int_equal(told_count, before);
}

static void new_code_is_told_when_it_is_made(void **state)
{
	(void)state;
	unsigned before = told_count;
	char *memory = map(4 * PAGE, CODE);
	process_maps_changed(memory, 4 * PAGE, CODE, MAP_PRIVATE | MAP_ANONYMOUS);
	assert_int_equal(told_count, before + 1);
	assert_string_equal(told[before].path, "//anon");
	assert_int_equal(told[before].mapping.address, (uintptr_t)memory);
	assert_int_equal(told[before].mapping.file_offset, (uintptr_t)memory);
	assert_int_equal(told[before].mapping.length, 4 * PAGE);
	/* a compiler that makes a page writable and executable again tells nothing new */
	mprotect(memory + PAGE, PAGE, PROT_READ | PROT_WRITE);
	mprotect(memory + PAGE, PAGE, CODE);
	process_maps_changed(memory + PAGE, PAGE, CODE, 0);
	sample(memory + PAGE);
	assert_int_equal(told_count, before + 1);
	char *data = map(4 * PAGE, PROT_READ | PROT_WRITE);
	process_maps_changed(data, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
	assert_int_equal(told_count, before + 1);
	mprotect(data, PAGE, CODE);
	process_maps_changed(data, PAGE, CODE, 0);
	assert_true(is_told(data));
	munmap(memory, 4 * PAGE);
	munmap(data, 4 * PAGE);
}

static void new_code_in_the_place_of_a_file_is_told(void **state)
{
	(void)state;
	char path[] = "/tmp/test_process_maps.XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0 && !ftruncate(fd, PAGE));
	char *memory = mmap(NULL, PAGE, CODE, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	sample(memory);
	assert_string_equal(told[told_count - 1].path, path);
	/* as dlclose(3) and a compiler do, the first unseen */
	munmap(memory, PAGE);
	assert_ptr_equal(mmap(memory, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), memory);
	mprotect(memory, PAGE, CODE);
	process_maps_changed(memory, PAGE, CODE, 0);
	assert_string_equal(told[told_count - 1].path, "//anon");
	assert_true(told[told_count - 1].mapping.address <= (uintptr_t)memory);
	munmap(memory, PAGE);
	close(fd);
	unlink(path);
}

static void code_that_no_call_announced_is_told_by_its_sample(void **state)
{
	(void)state;
	char *memory = map(PAGE, CODE);
	assert_false(is_told(memory));
	sample(memory);
	assert_true(is_told(memory));
	unsigned before = told_count;
	sample(memory + 100);
	assert_int_equal(told_count, before);
	munmap(memory, PAGE);
}

static void names_have_newlines_and_blanks(void **state)
{
	(void)state;
	static const char name[] = "/tmp/test process\nmaps \\011.XXXXXX";
	char path[64];
	strcpy(path, name);
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, PAGE), 0);
	char *memory = mmap(NULL, PAGE, CODE, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	sample(memory);
	assert_string_equal(told[told_count - 1].path, path);
	/* the same by reading all */
	told_count = 0;
	process_maps_tell(process_own, true);
	bool found = false;
	for (unsigned i = 0; i < told_count; i++)
		found |= !strcmp(told[i].path, path);
	assert_true(found);
	munmap(memory, PAGE);
	close(fd);
	unlink(path);
}

static void more_mappings_than_there_is_room_for_do_no_harm(void **state)
{
	(void)state;
	enum { MANY = 20000 };
	char *all = map((size_t)MANY * 2 * PAGE, PROT_NONE);
	for (unsigned i = 0; i < MANY; i++)
		if (mprotect(all + (size_t)i * 2 * PAGE, PAGE, CODE))
			break;
	told_count = 0;
	process_maps_tell(process_own, true);
	assert_in_range(told_count, 1000, MANY);
	for (unsigned i = 0; i < MANY; i += 100)
		process_maps_changed(all + (size_t)i * 2 * PAGE, PAGE, CODE, 0);
	sample(all + (size_t)(MANY - 1) * 2 * PAGE);
	munmap(all, (size_t)MANY * 2 * PAGE);
	told_count = 0;
	process_maps_tell(process_own, true);
	assert_int_equal(count_untold(), 0);
}

static void mappings_that_are_gone_make_room(void **state)
{
	(void)state;
	enum { MANY = 20000 };
	char *all = map((size_t)MANY * 2 * PAGE, PROT_NONE);
	for (unsigned i = 0; i < MANY; i++) {
		char *memory = all + (size_t)i * 2 * PAGE;
		mmap(memory, PAGE, CODE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		process_maps_changed(memory, PAGE, CODE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED);
		mprotect(memory, PAGE, PROT_NONE);
	}
	char *last = map(PAGE, CODE);
	sample(last);
	assert_true(is_told(last));
	unsigned before = told_count;
	sample(last);
	sample(last);
	assert_int_equal(told_count, before);
	munmap(last, PAGE);
	munmap(all, (size_t)MANY * 2 * PAGE);
}

static void a_full_ring_gets_its_records_later(void **state)
{
	(void)state;
	char *memory = map(PAGE, CODE);
	ring.data_head = (uint64_t)plan.ring_pages * PAGE;
	process_maps_changed(memory, PAGE, CODE, MAP_PRIVATE | MAP_ANONYMOUS);
	sample(memory);
	assert_false(is_told(memory));
	ring.data_tail = ring.data_head;
	sample(memory);
	assert_true(is_told(memory));
	munmap(memory, PAGE);
}

static void fill_ring(void)
{
	ring.data_head += RECORD;
}

static void a_small_ring_gets_all_records_in_several_rounds(void **state)
{
	(void)state;
	plan.ring_pages = 1;
	on_record = fill_ring;
	told_count = 0;
	process_maps_tell(process_own, true);
	assert_in_range(told_count, 1, PAGE / 2 / RECORD + 1);
	for (unsigned i = 0; i < 20 && count_untold(); i++) {
		ring.data_tail = ring.data_head;
		unsigned before = told_count;
		sample((const void *)(uintptr_t)begin);
		assert_in_range(told_count, before + 1, before + PAGE / 2 / RECORD + 1);
	}
	assert_int_equal(count_untold(), 0);
}

static void fork_here(void)
{
	on_record = NULL;
	pid_t pid = fork();
	if (pid) {
		int status;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		return;
	}
	/* the parent's lock was taken */
	process_agent.pid = getpid();
	char *memory = map(PAGE, CODE);
	sample(memory);
	_exit(!is_told(memory));
}

static void a_child_takes_over_the_lock_of_its_parent(void **state)
{
	(void)state;
	char *memory = map(PAGE, CODE);
	on_record = fork_here;
	sample(memory);
	assert_true(is_told(memory));
	munmap(memory, PAGE);
}

static void *map_and_sample(void *slot)
{
	process_own = slot;
	for (unsigned i = 0; i < 300; i++) {
		char *memory = map(2 * PAGE, CODE);
		if (i % 2)
			process_maps_changed(memory, 2 * PAGE, CODE, MAP_PRIVATE | MAP_ANONYMOUS);
		sample(memory);
		sample((const void *)(uintptr_t)begin);
		munmap(memory, 2 * PAGE);
	}
	return NULL;
}

static void threads_do_not_wait_for_one_another(void **state)
{
	pthread_t threads[4];
	(void)state;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, map_and_sample, &slots[i]), 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	char *memory = map(PAGE, CODE);
	sample(memory);
	assert_true(is_told(memory));
	munmap(memory, PAGE);
}

static void nothing_is_told_where_nothing_asks(void **state)
{
	(void)state;
	char *memory = map(PAGE, CODE);
	unsigned before = told_count;
	process_agent.wants_maps = false;
	process_maps_changed(memory, PAGE, CODE, MAP_PRIVATE | MAP_ANONYMOUS);
	sample(memory);
	process_agent.wants_maps = true;
	process_own->ring_page = NULL;
	process_maps_changed(memory, PAGE, CODE, MAP_PRIVATE | MAP_ANONYMOUS);
	process_maps_moved(memory, memory, PAGE);
	sample(memory);
	process_maps_tell(process_own, true);
	assert_int_equal(told_count, before);
	munmap(memory, PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_program_tells_all_its_code_once, begin),
		cmocka_unit_test_setup(a_loaded_library_is_told_by_the_next_sample, begin),
		cmocka_unit_test_setup(new_code_is_told_when_it_is_made, begin),
		cmocka_unit_test_setup(new_code_in_the_place_of_a_file_is_told, begin),
		cmocka_unit_test_setup(code_that_no_call_announced_is_told_by_its_sample, begin),
		cmocka_unit_test_setup(names_have_newlines_and_blanks, begin),
		cmocka_unit_test_setup(more_mappings_than_there_is_room_for_do_no_harm, begin),
		cmocka_unit_test_setup(mappings_that_are_gone_make_room, begin),
		cmocka_unit_test_setup(a_full_ring_gets_its_records_later, begin),
		cmocka_unit_test_setup(a_small_ring_gets_all_records_in_several_rounds, begin),
		cmocka_unit_test_setup(a_child_takes_over_the_lock_of_its_parent, begin),
		cmocka_unit_test_setup(threads_do_not_wait_for_one_another, begin),
		cmocka_unit_test_setup(nothing_is_told_where_nothing_asks, begin),
	};
	return cmocka_run_group_tests(tests, make, release);
}
