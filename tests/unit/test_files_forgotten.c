/* A recorder's memory of files: beyond a limit, it forgets files that no process maps any more, and
 * nothing else. */
#include "object_fixture.h"
#include "task/task.h"

#include <string.h>

enum { LIMIT = 256, PROGRAMS = 5000, LIVING_PID = 7, CHILD_PID = 8, FIRST_PID = 1000 };

struct fixture {
	struct tally_tasks tasks;
	struct tally_endings endings;
	struct tally_objects objects;
	size_t told;
	char last[64];
};

static void tell(struct fixture *f, const struct tally_record *record)
{
	assert_int_equal(tally_tasks_record(&f->tasks, record), 0);
	assert_int_equal(tally_endings_record(&f->endings, record), 0);
}

static void task(struct fixture *f, uint32_t type, uint32_t pid, uint32_t parent)
{
	struct tally_record record = { .header.type = type };
	record.task.pid = record.task.tid = pid;
	record.task.parent_pid = record.task.parent_tid = parent;
	tell(f, &record);
}

static void exec(struct fixture *f, uint32_t pid, const char *path, uint64_t start)
{
	struct tally_record record = { .header.type = TALLY_RECORD_COMM };
	record.comm.pid = record.comm.tid = pid;
	record.comm.comm = strrchr(path, '/') + 1;
	tell(f, &record);
	record = (struct tally_record){ .header.type = TALLY_RECORD_MMAP2 };
	record.mmap = (struct tally_record_mmap){ .pid = pid,
						  .tid = pid,
						  .start = start,
						  .length = 0x1000,
						  .protection = 5,
						  .filename = path };
	tell(f, &record);
}

static int count_told(void *context, const char *path, const struct tally_build_id *id)
{
	struct fixture *f = context;
	(void)id;
	f->told++;
	snprintf(f->last, sizeof(f->last), "%s", path);
	return 0;
}

static void forget(struct fixture *f)
{
	tally_endings_pass(&f->endings, &f->tasks);
	assert_int_equal(tally_objects_forget(&f->objects, &f->tasks, LIMIT, count_told, f), 0);
}

/* Runs new programs one after another, with anonymous code like a JIT's. */
static void run_programs(struct fixture *f, const char *name, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		char path[64];
		uint32_t pid = FIRST_PID + i;
		task(f, TALLY_RECORD_FORK, pid, LIVING_PID);
		snprintf(path, sizeof(path), "/nowhere/%s%u", name, i);
		exec(f, pid, path, 0x1000);
		exec(f, pid, "//anon", 0x3000);
		task(f, TALLY_RECORD_EXIT, pid, LIVING_PID);
		forget(f);
	}
}

static void start_living(struct fixture *f, const char *path)
{
	*f = (struct fixture){ .objects.is_live = true };
	task(f, TALLY_RECORD_FORK, LIVING_PID, 1);
	exec(f, LIVING_PID, path, 0x10000);
	task(f, TALLY_RECORD_FORK, CHILD_PID, LIVING_PID); /* the child shares the mappings */
}

static const char *path_at(const struct fixture *f, uint32_t pid, uint64_t address)
{
	const struct tally_mapping *mapping = tally_tasks_find(&f->tasks, pid, false, address);
	return mapping ? tally_tasks_path(&f->tasks, mapping->file) : "";
}

static void release(struct fixture *f)
{
	tally_objects_release(&f->objects);
	tally_endings_release(&f->endings);
	tally_tasks_release(&f->tasks);
}

static void programs_without_end_leave_a_bounded_rest(void **state)
{
	struct fixture f;
	(void)state;
	start_living(&f, "/nowhere/living");
	run_programs(&f, "new", PROGRAMS);
	assert_in_range(f.tasks.files.count, LIMIT - 1, LIMIT + LIMIT / 16 + 2);
	assert_true(f.tasks.strings.count <= 2 * f.tasks.files.count + 4);
	assert_true(f.tasks.file_index.count <= f.tasks.files.count);
	assert_true(f.objects.entries.count <= f.tasks.files.count);
	assert_true(f.tasks.threads.count <= 4 && f.tasks.processes.count <= 4);
	release(&f);
}

static void who_lives_keeps_names_and_mappings(void **state)
{
	struct fixture f;
	char buffer[16];
	(void)state;
	start_living(&f, "/nowhere/living");
	uint64_t generation = tally_tasks_generation(&f.tasks, LIVING_PID);
	run_programs(&f, "new", PROGRAMS);
	assert_string_equal(path_at(&f, LIVING_PID, 0x10800), "/nowhere/living");
	assert_string_equal(path_at(&f, CHILD_PID, 0x10800), "/nowhere/living");
	assert_string_equal(tally_tasks_comm(&f.tasks, LIVING_PID, LIVING_PID, buffer), "living");
	assert_int_equal(tally_tasks_generation(&f.tasks, LIVING_PID), generation);
	/* The same file is still recognized. */
	size_t count = f.tasks.files.count;
	exec(&f, LIVING_PID, "/nowhere/living", 0x20000);
	exec(&f, CHILD_PID, "/nowhere/other", 0x20000);
	assert_int_equal(f.tasks.files.count, count + 1);
	assert_string_equal(path_at(&f, CHILD_PID, 0x10800), "/nowhere/living");
	assert_string_equal(path_at(&f, LIVING_PID, 0x20800), "/nowhere/living");
	assert_string_equal(path_at(&f, CHILD_PID, 0x20800), "/nowhere/other");
	release(&f);
}

static void what_was_mapped_last_is_kept(void **state)
{
	struct fixture f;
	(void)state;
	start_living(&f, "/nowhere/living");
	uint32_t pid = FIRST_PID + PROGRAMS;
	for (uint32_t i = 0; i < PROGRAMS; i += 50) {
		char name[32];
		snprintf(name, sizeof(name), "new%u-", i);
		run_programs(&f, name, 50);
		task(&f, TALLY_RECORD_FORK, pid, LIVING_PID);
		exec(&f, pid, "/nowhere/often", 0x1000);
		task(&f, TALLY_RECORD_EXIT, pid, LIVING_PID);
		forget(&f);
	}
	size_t count = f.tasks.files.count;
	exec(&f, CHILD_PID, "/nowhere/often", 0x40000);
	assert_int_equal(f.tasks.files.count, count);
	release(&f);
}

static void more_living_than_the_limit_all_stay(void **state)
{
	struct fixture f;
	(void)state;
	start_living(&f, "/nowhere/living");
	for (uint32_t i = 0; i < 2 * LIMIT; i++) {
		char path[64];
		snprintf(path, sizeof(path), "/nowhere/library%u", i);
		exec(&f, LIVING_PID, path, 0x100000 + 0x1000 * (uint64_t)i);
		forget(&f);
	}
	run_programs(&f, "new", PROGRAMS);
	for (uint32_t i = 0; i < 2 * LIMIT; i++) {
		char path[64];
		snprintf(path, sizeof(path), "/nowhere/library%u", i);
		assert_string_equal(path_at(&f, LIVING_PID, 0x100000 + 0x1000 * (uint64_t)i), path);
	}
	assert_in_range(f.tasks.files.count, 2 * LIMIT, 3 * LIMIT);
	release(&f);
}

/* Real files: an open object moves with its file, an unused one is closed, and its build-id is
 * kept. */
static void objects_follow_their_files(void **state)
{
	struct fixture f;
	const char *directory = *state;
	char path[64];
	assert_true(run(directory, "cp /bin/true living; cp /bin/true gone"));
	f = (struct fixture){ .objects.is_live = true };
	uint32_t pid = 1u << 30, other = pid + 1; /* numbers that no real process has */
	task(&f, TALLY_RECORD_FORK, other, 1);
	snprintf(path, sizeof(path), "%s/gone", directory);
	exec(&f, other, path, 0x1000);
	assert_non_null(tally_objects_get(&f.objects, &f.tasks, 0)->object);
	task(&f, TALLY_RECORD_EXIT, other, 1);
	task(&f, TALLY_RECORD_FORK, pid, 1);
	snprintf(path, sizeof(path), "%s/living", directory);
	exec(&f, pid, path, 0x1000);
	const struct tally_object *object = tally_objects_get(&f.objects, &f.tasks, 1)->object;
	assert_non_null(object);
	run_programs(&f, "new", 2 * LIMIT);
	const struct tally_mapping *mapping = tally_tasks_find(&f.tasks, pid, false, 0x1800);
	assert_ptr_equal(tally_objects_get(&f.objects, &f.tasks, mapping->file)->object, object);
	assert_int_equal(f.objects.open.count, 1);
	assert_int_equal(f.told, 1);
	assert_string_equal(f.last + strlen(f.last) - 5, "/gone");
	release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_without_end_leave_a_bounded_rest),
		cmocka_unit_test(who_lives_keeps_names_and_mappings),
		cmocka_unit_test(what_was_mapped_last_is_kept),
		cmocka_unit_test(more_living_than_the_limit_all_stay),
		cmocka_unit_test_setup_teardown(objects_follow_their_files, make_directory,
						remove_directory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
