#include "test.h"

#include "task/task.h"

#include <malloc.h>
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
			  .flags = MAP_PRIVATE,
			  .has_inode = true,
			  .inode = path[0] == '/' && path[1] != '/',
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

/* Random mappings and forks of a few processes, compared with a model that stores each address. */
static void forks_share_and_part(void **state)
{
	(void)state;
	enum { SPACE = 300, PROCESSES = 5, ROUNDS = 4000 };
	struct tally_tasks tasks = { 0 };
	static int truth[PROCESSES][SPACE];
	char path[32];
	memset(truth, 0, sizeof(truth));
	srand(2);
	for (int round = 1; round < ROUNDS; round++) {
		uint32_t pid = (uint32_t)rand() % PROCESSES, from = (uint32_t)rand() % PROCESSES;
		if (rand() % 8 == 0 && pid != from) {
			feed_fork(&tasks, from + 1, pid + 1, pid + 1);
			memcpy(truth[pid], truth[from], sizeof(truth[pid]));
		} else {
			uint64_t start = (uint64_t)rand() % (SPACE - 1),
				 length = 1 + (uint64_t)rand() % (rand() % 20 ? 5 : SPACE - start);
			length = length < SPACE - start ? length : SPACE - start;
			snprintf(path, sizeof(path), "/lib/%d", round % 90);
			feed_mmap(&tasks, pid + 1, start, length, 0, path);
			for (uint64_t at = start; at < start + length; at++)
				truth[pid][at] = round % 90 + 1;
		}
		for (uint32_t i = 0; i < PROCESSES; i++)
			for (uint64_t at = 0; at < SPACE; at++) {
				const struct tally_mapping *mapping = tally_tasks_find(
					&tasks, i + 1, false, at);
				snprintf(path, sizeof(path), "/lib/%d", truth[i][at] - 1);
				assert_int_equal(!mapping, !truth[i][at]);
				if (mapping)
					assert_string_equal(tally_tasks_path(&tasks, mapping->file),
							    path);
			}
	}
	tally_tasks_release(&tasks);
}

/* 5,000 mappings, inherited by 3,000 processes that change one each: 600 MB if each had a copy.
 * All keep the rest. */
static void forks_without_end_take_memory_by_the_record(void **state)
{
	(void)state;
	struct tally_tasks tasks = { 0 };
	size_t before = mallinfo2().uordblks;
	for (uint64_t i = 0; i < 5000; i++)
		feed_mmap(&tasks, 1, i * 0x2000, 0x1000, 0, "/a");
	for (uint32_t pid = 2; pid < 3000; pid++) {
		feed_fork(&tasks, 1, pid, pid);
		feed_mmap(&tasks, pid, 0x1000, 0x1000, 0, "/b");
		assert_string_equal(path_at(&tasks, pid, 0x1000), "/b");
		assert_string_equal(path_at(&tasks, pid, pid * 0x2000), "/a");
	}
	assert_true(mallinfo2().uordblks - before < 16u << 20);
	tally_tasks_release(&tasks);
}

enum { LARGE = 2 << 20 };

/* A process has a program and a library.  Something is mapped over their code: what is it then? */
static void code_that_is_copied_is_still_the_files(void **state)
{
	static const struct { const char *over; uint64_t start, length; bool is_copy; } cases[] = {
		{ "//anon", 10 * LARGE + 0x3000, 0x1000, true }, /* any part of the program */
		{ "/dev/zero (deleted)", 10 * LARGE, LARGE, true },
		{ "/anon_hugepage (deleted)", 10 * LARGE, LARGE, true },
		{ "/memfd:pages (deleted)", 10 * LARGE, LARGE, true },
		{ "/dev/hugepages/libhugetlbfs.tmp.x (deleted)", 10 * LARGE, LARGE, true },
		{ "/bin/other", 10 * LARGE, LARGE, false },
		{ "//anon", 10 * LARGE, 4 * LARGE, false }, /* more than the code */
		{ "//anon", 20 * LARGE + 0x1000, 3 * LARGE, true }, /* all code of a library */
		{ "//anon", 21 * LARGE, LARGE, true }, /* its large pages */
		{ "//anon", 21 * LARGE, 0x1000, false }, /* a JIT's, where the library was */
		{ "/memfd:lib (deleted)", 20 * LARGE + 0x1000, 3 * LARGE, false },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (unsigned executes = 0; executes < 2; executes++) {
			struct tally_tasks tasks = { 0 };
			feed_comm(&tasks, 10, 10, "program", true);
			feed_mmap(&tasks, 10, 10 * LARGE, 3 * LARGE, 0x5000, "/bin/program");
			feed_mmap(&tasks, 10, 20 * LARGE + 0x1000, 3 * LARGE, 0x1000, "/lib.so");
			if (executes)
				feed_comm(&tasks, 10, 10, "another", true);
			feed_mmap(&tasks, 10, cases[i].start, cases[i].length, 0, cases[i].over);
			bool is_copy = cases[i].is_copy && !executes;
			const struct tally_mapping *mapping = tally_tasks_find(
				&tasks, 10, false, cases[i].start + 0x800);
			bool in_program = cases[i].start < 20 * LARGE;
			const char *file = in_program ? "/bin/program" : "/lib.so";
			uint64_t offset = in_program ? cases[i].start - 10 * LARGE + 0x5000
						     : cases[i].start - 20 * LARGE;
			assert_string_equal(path_at(&tasks, 10, cases[i].start + 0x800),
					    is_copy ? file : cases[i].over);
			if (is_copy)
				assert_int_equal(mapping->file_offset +
							 (cases[i].start - mapping->start),
						 offset);
			tally_tasks_release(&tasks);
		}
}

static void code_that_was_copied_before_lies_between_the_files(void **state)
{
	struct tally_tasks tasks = { 0 };
	(void)state;
	feed_mmap(&tasks, 10, 0x10000, 0x3000, 0x1000, "/lib.so");
	feed_mmap(&tasks, 10, 0x13000, 0x2000, 0, "//anon");
	feed_mmap(&tasks, 10, 0x15000, 0x1000, 0x6000, "/lib.so");
	assert_string_equal(path_at(&tasks, 10, 0x14000), "/lib.so");
	feed_mmap(&tasks, 11, 0x10000, 0x3000, 0x1000, "/lib.so");
	feed_mmap(&tasks, 11, 0x13000, 0x2000, 0, "//anon");
	feed_mmap(&tasks, 11, 0x15000, 0x1000, 0x7000, "/lib.so"); /* other code follows */
	assert_string_equal(path_at(&tasks, 11, 0x14000), "//anon");
	tally_tasks_release(&tasks);
}

static void a_forks_copy_of_made_code_is_the_childs(void **state)
{
	struct tally_tasks tasks = { 0 };
	(void)state;
	feed_mmap(&tasks, 1, 0x1000, 0x3000, 0, "//anon");
	feed_mmap(&tasks, 1, 0x8000, 0x1000, 0, "/a");
	feed_fork(&tasks, 1, 2, 2);
	feed_fork(&tasks, 2, 3, 3);
	uint32_t parents = tally_tasks_find(&tasks, 1, false, 0x1000)->file,
		 childs = tally_tasks_find(&tasks, 2, false, 0x1000)->file,
		 grandchilds = tally_tasks_find(&tasks, 3, false, 0x1000)->file;
	assert_int_equal(tasks.files.items[childs].pid, 2);
	assert_int_equal(tasks.files.items[childs].origin, parents + 1);
	assert_int_equal(tasks.files.items[grandchilds].origin, childs + 1);
	assert_int_equal(tally_tasks_find(&tasks, 2, false, 0x8000)->file,
			 tally_tasks_find(&tasks, 1, false, 0x8000)->file);
	feed_mmap(&tasks, 2, 0x2000, 0x1000, 0, "//anon"); /* it may be mprotect(2) */
	assert_int_equal(tally_tasks_find(&tasks, 2, false, 0x2000)->file, childs);
	feed_mmap(&tasks, 2, 0x2000, 0x4000, 0, "//anon"); /* it is mmap(2) */
	assert_int_equal(tasks.files.items[tally_tasks_find(&tasks, 2, false, 0x2000)->file].origin,
			 0);
	assert_int_equal(tally_tasks_find(&tasks, 3, false, 0x2000)->file, grandchilds);
	tally_tasks_release(&tasks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_later_map_replaces_what_it_covers),
		cmocka_unit_test(a_fork_inherits_maps_and_comm),
		cmocka_unit_test(an_exec_changes_the_comm_and_maps_until_covered),
		cmocka_unit_test(anonymous_memory_belongs_to_its_process),
		cmocka_unit_test(code_that_is_copied_is_still_the_files),
		cmocka_unit_test(code_that_was_copied_before_lies_between_the_files),
		cmocka_unit_test(a_forks_copy_of_made_code_is_the_childs),
		cmocka_unit_test(maps_are_shared_until_one_side_changes),
		cmocka_unit_test(forks_share_and_part),
		cmocka_unit_test(forks_without_end_take_memory_by_the_record),
	};
	return cmocka_run_group_tests_name("tasks", tests, NULL, NULL);
}
