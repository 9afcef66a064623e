#include "test.h"

#include "task/tasks.h"

#include <sys/mman.h>

static void feed_mmap(struct tally_tasks *tasks, uint32_t pid, uint64_t start, uint64_t length,
		      uint64_t offset, const char *path)
{
	struct tally_record record = {
		.header = { .type = TALLY_RECORD_MMAP2 },
		.mmap = { .pid = pid,
			  .tid = pid,
			  .start = start,
			  .length = length,
			  .file_offset = offset,
			  .protection = PROT_EXEC,
			  .filename = path },
	};
	assert_int_equal(tally_tasks_record(tasks, &record), 0);
}

static void feed_fork(struct tally_tasks *tasks, uint32_t parent, uint32_t pid, uint32_t tid)
{
	struct tally_record record = {
		.header = { .type = TALLY_RECORD_FORK },
		.task = { .pid = pid, .tid = tid, .parent_pid = parent, .parent_tid = parent },
	};
	assert_int_equal(tally_tasks_record(tasks, &record), 0);
}

static void feed_comm(struct tally_tasks *tasks, uint32_t pid, uint32_t tid, const char *comm,
		      bool exec)
{
	struct tally_record record = {
		.header = { .type = TALLY_RECORD_COMM, .misc = exec ? TALLY_MISC_COMM_EXEC : 0 },
		.comm = { .pid = pid, .tid = tid, .comm = comm },
	};
	assert_int_equal(tally_tasks_record(tasks, &record), 0);
}

/* Random mappings over a small address space, compared with a model that stores each address. */
static void a_later_map_replaces_what_it_covers(void **state)
{
	(void)state;
	enum { SPACE = 200 };
	struct tally_tasks tasks = { 0 };
	struct { int path; uint64_t offset; } truth[SPACE] = { 0 };
	srand(1);
	for (int round = 1; round < 3000; round++) {
		uint64_t start = (uint64_t)rand() % (SPACE - 1),
			 length = 1 + (uint64_t)rand() % (SPACE - start);
		if (length > 30 && rand() % 10)
			length = 1 + length % 30;
		char path[32];
		snprintf(path, sizeof(path), "/lib/%d", round % 50);
		feed_mmap(&tasks, 7, start, length, 1000, path);
		for (uint64_t at = start; at < start + length; at++) {
			truth[at].path = round % 50 + 1;
			truth[at].offset = 1000 + at - start;
		}
		for (uint64_t at = 0; at < SPACE; at++) {
			const struct tally_mapping *mapping = tally_tasks_find(&tasks, 7, false,
									       at);
			assert_int_equal(!mapping, !truth[at].path);
			if (!mapping)
				continue;
			snprintf(path, sizeof(path), "/lib/%d", truth[at].path - 1);
			assert_string_equal(tally_tasks_path(&tasks, mapping->file), path);
			assert_int_equal(at - mapping->start + mapping->file_offset,
					 truth[at].offset);
		}
	}
	assert_int_equal(tasks.files.count, 50);
	tally_tasks_release(&tasks);
}

static void a_fork_inherits_maps_and_comm(void **state)
{
	(void)state;
	struct tally_tasks tasks = { 0 };
	char buffer[16];
	feed_comm(&tasks, 10, 10, "parent", false);
	feed_mmap(&tasks, 10, 0x1000, 0x1000, 0, "/bin/parent");
	feed_fork(&tasks, 10, 11, 11);
	feed_fork(&tasks, 10, 10, 12); /* a thread */
	assert_non_null(tally_tasks_find(&tasks, 11, false, 0x1800));
	assert_string_equal(tally_tasks_comm(&tasks, 11, 11, buffer), "parent");
	assert_string_equal(tally_tasks_comm(&tasks, 10, 12, buffer), "parent");
	/* The child's new mapping is not the parent's. */
	feed_mmap(&tasks, 11, 0x5000, 0x1000, 0, "/lib/child");
	assert_null(tally_tasks_find(&tasks, 10, false, 0x5800));
	tally_tasks_release(&tasks);
}

static void an_exec_changes_the_comm_and_maps_until_covered(void **state)
{
	(void)state;
	struct tally_tasks tasks = { 0 };
	char buffer[16];
	feed_mmap(&tasks, 10, 0x1000, 0x1000, 0, "/bin/old");
	feed_comm(&tasks, 10, 10, "new", true);
	/* execve(2) itself returns to that code */
	assert_non_null(tally_tasks_find(&tasks, 10, false, 0x1800));
	feed_mmap(&tasks, 10, 0x1000, 0x1000, 0, "/bin/new");
	assert_string_equal(
		tally_tasks_path(&tasks, tally_tasks_find(&tasks, 10, false, 0x1800)->file),
		"/bin/new");
	assert_string_equal(tally_tasks_comm(&tasks, 10, 10, buffer), "new");
	assert_string_equal(tally_tasks_comm(&tasks, 99, 99, buffer), ":99");
	/* a task after its exit: perf calls it :-1 */
	feed_comm(&tasks, UINT32_MAX, UINT32_MAX, "other", false);
	assert_string_equal(tally_tasks_comm(&tasks, UINT32_MAX, UINT32_MAX, buffer), ":-1");
	tally_tasks_release(&tasks);
}

static void anonymous_memory_belongs_to_its_process(void **state)
{
	(void)state;
	struct tally_tasks tasks = { 0 };
	feed_mmap(&tasks, 10, 0x1000, 0x1000, 0, "//anon");
	feed_mmap(&tasks, 11, 0x1000, 0x1000, 0, "//anon");
	assert_int_not_equal(tally_tasks_find(&tasks, 10, false, 0x1000)->file,
			     tally_tasks_find(&tasks, 11, false, 0x1000)->file);
	feed_mmap(&tasks, UINT32_MAX, 0xffffffff81000000, 0x1000, 0, "[kernel.kallsyms]_text");
	assert_non_null(tally_tasks_find(&tasks, 10, true, 0xffffffff81000010));
	tally_tasks_release(&tasks);
}

static const char *path_at(const struct tally_tasks *tasks, uint32_t pid, uint64_t address)
{
	const struct tally_mapping *mapping = tally_tasks_find(tasks, pid, false, address);
	return mapping ? tally_tasks_path(tasks, mapping->file) : "";
}

static void maps_are_shared_until_one_side_changes(void **state)
{
	(void)state;
	struct tally_tasks tasks = { 0 };
	feed_mmap(&tasks, 1, 0x1000, 0x1000, 0, "/a");
	feed_fork(&tasks, 1, 2, 2);
	feed_fork(&tasks, 2, 3, 3);
	feed_mmap(&tasks, 2, 0x1000, 0x1000, 0, "/b");
	assert_string_equal(path_at(&tasks, 1, 0x1800), "/a");
	assert_string_equal(path_at(&tasks, 2, 0x1800), "/b");
	assert_string_equal(path_at(&tasks, 3, 0x1800), "/a");
	feed_mmap(&tasks, 1, 0x1000, 0x1000, 0, "/c");
	assert_string_equal(path_at(&tasks, 1, 0x1800), "/c");
	assert_string_equal(path_at(&tasks, 3, 0x1800), "/a");
	feed_fork(&tasks, 3, 2, 2); /* a reused id */
	assert_string_equal(path_at(&tasks, 2, 0x1800), "/a");
	tally_tasks_release(&tasks);
}

/* 5,000 mappings, inherited by 3,000 processes that change one each: 600 MB if each had a copy. */
static void forks_without_end_take_memory_by_the_record(void **state)
{
	(void)state;
	struct tally_tasks tasks = { 0 };
	size_t held = 0;
	for (uint64_t i = 0; i < 5000; i++)
		feed_mmap(&tasks, 1, i * 0x2000, 0x1000, 0, "/a");
	for (uint32_t pid = 2; pid < 3000; pid++) {
		feed_fork(&tasks, 1, pid, pid);
		feed_mmap(&tasks, pid, 0x1000, 0x1000, 0, "/b");
		assert_string_equal(path_at(&tasks, pid, 0x1000), "/b");
	}
	for (size_t i = 0; i < tasks.processes.count; i++)
		held += tasks.processes.items[i].capacity;
	assert_true(held < 4u << 20);
	tally_tasks_release(&tasks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_later_map_replaces_what_it_covers),
		cmocka_unit_test(a_fork_inherits_maps_and_comm),
		cmocka_unit_test(an_exec_changes_the_comm_and_maps_until_covered),
		cmocka_unit_test(anonymous_memory_belongs_to_its_process),
		cmocka_unit_test(maps_are_shared_until_one_side_changes),
		cmocka_unit_test(forks_without_end_take_memory_by_the_record),
	};
	return cmocka_run_group_tests_name("tasks", tests, NULL, NULL);
}
