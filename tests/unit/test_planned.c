/* Providers with a plan (provider/planned.h), with a host that this test plays: the size of writers'
 * rings, writers that are killed, and memory without a name.  test_simulated.c tests the rest. */
#include "test.h"

#include "abi/abi.h"
#include "provider/planned.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PID = 4711, MEGABYTE_PAGES = 256 };

static struct planned planned;

static struct tally_attr as_asked(const struct tally_attr *asked)
{
	return *asked;
}

static int accept_all(const struct planned *provider, const struct tally_attr *attr, int group)
{
	(void)provider, (void)attr, (void)group;
	return 0;
}

static struct planned_host host = {
	.prefix = "tally-test-",
	.plan_bytes = sizeof(struct tally_plan),
	.ring_pages = MEGABYTE_PAGES,
	.max_ring_pages = 4096,
	.may_be_unnamed = true,
	.sample_fields = ~0ull,
	.attr = as_asked,
	.check = accept_all,
};

static const struct tally_provider_ops ops = { .name = "test" };

static void begin(uint64_t room_bytes)
{
	struct tally_error err = TALLY_ERROR_NONE;
	host.room_bytes = room_bytes;
	planned_init(&planned, &ops, &host);
	assert_int_equal(planned_file_make(&planned, NULL, &err), 0);
}

/* Opens a sampling event and maps a ring for it. */
static struct tally_user_page *sample(uint64_t frequency, uint32_t stack, size_t pages)
{
	const struct tally_attr attr = {
		.type = TALLY_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = TALLY_SW_TASK_CLOCK,
		.sample_period = frequency,
		.sample_type = TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_STACK_USER,
		.sample_stack_user = stack,
		.flags = TALLY_ATTR_FREQ | TALLY_ATTR_SAMPLE_ID_ALL,
	};
	int handle = planned_open(&planned.provider, &attr, PID, 0, -1, 0);
	assert_true(handle >= 0);
	return planned_map(&planned.provider, handle, pages, 0);
}

static void rings_hold_what_the_rate_needs(void **state)
{
	static const struct {
		uint64_t frequency;
		size_t mapped;
		uint32_t pages;
	} rows[] = {
		{ 100, 4096, MEGABYTE_PAGES },      /* never less than the host's */
		{ 1000, 4096, 2 * MEGABYTE_PAGES }, /* 32 ms of 65 KiB each */
		{ 4000, 8192, 2048 },
		{ 4000, MEGABYTE_PAGES, MEGABYTE_PAGES }, /* tally's own is no larger */
		{ 1000000, 8192, 4096 },                  /* never more than the host's */
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(UINT64_MAX);
		assert_non_null(sample(rows[i].frequency, 63 << 10, rows[i].mapped));
		assert_int_equal(planned.file.shared->ring_pages, rows[i].pages);
		assert_int_equal(planned.file.shared->size,
				 tally_plan_ring_offset(planned.file.shared, TALLY_PLAN_RINGS));
		planned_release(&planned);
	}
}

/* Takes a ring and writes a record to it, as a process does. */
static void write_record(struct tally_plan *plan, uint32_t namespace)
{
	const struct {
		struct tally_record_header header;
		uint64_t id, number;
	} record = { { TALLY_RECORD_SAMPLE, 0, sizeof(record) }, 1, 7 };
	struct tally_user_page *page = (void *)((char *)plan + tally_plan_ring_offset(plan, 0));
	plan->processes++;
	plan->rings[0].pid_namespace = namespace;
	plan->rings[0].task = getpid();
	plan->rings[0].state = TALLY_PLAN_RING_TAKEN;
	memcpy((char *)page + TALLY_PLAN_PAGE, &record, sizeof(record));
	__atomic_store_n(&page->data_head, sizeof(record), __ATOMIC_RELEASE);
	raise(SIGKILL);
}

/* Returns the state of the ring of a process that was killed. */
static uint32_t state_after_death(uint32_t namespace, struct tally_user_page *page)
{
	size_t size = planned.file.shared->size;
	int status;
	pid_t child = fork();
	if (!child) {
		void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, planned.file.fd,
				 0);
		if (map != MAP_FAILED)
			write_record(map, namespace);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	planned.file.reap_at_ms = 0;
	assert_true(planned_gather(&planned.provider) >= 0);
	assert_int_equal(page->data_head, 24);
	return planned.file.shared->rings[0].state;
}

static void rings_of_killed_writers_are_freed_with_their_records_read(void **state)
{
	struct stat about;
	(void)state;
	if (stat("/proc/self/ns/pid", &about) < 0)
		skip();
	begin(0);
	struct tally_user_page *page = sample(1000, 1024, 16);
	assert_non_null(page);
	assert_int_equal(state_after_death((uint32_t)about.st_ino, page), TALLY_PLAN_RING_FREE);
	const uint64_t *freed = (const uint64_t *)planned.file.rings;
	assert_true(!freed[TALLY_PLAN_PAGE / sizeof(*freed)] &&
		    !planned.file.shared->rings[0].task);
	planned_release(&planned);
}

/* A number of another PID namespace says nothing about the task. */
static void rings_of_unknown_writers_stay(void **state)
{
	struct stat about;
	(void)state;
	if (stat("/proc/self/ns/pid", &about) < 0)
		skip();
	for (int i = 0; i < 2; i++) {
		begin(0);
		struct tally_user_page *page = sample(1000, 1024, 16);
		uint32_t other = i ? (uint32_t)about.st_ino + 1 : 0;
		assert_int_equal(state_after_death(other, page), TALLY_PLAN_RING_TAKEN);
		planned_release(&planned);
	}
}

static void a_small_folder_in_memory_is_not_used(void **state)
{
	(void)state;
	begin(UINT64_MAX);
	assert_string_equal(planned.file.path.path, "");
	assert_true(planned.file.fd >= 0 && fcntl(planned.file.fd, F_GETFD) & FD_CLOEXEC);
	planned_release(&planned);
	assert_int_equal(planned.file.fd, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rings_hold_what_the_rate_needs),
		cmocka_unit_test(rings_of_killed_writers_are_freed_with_their_records_read),
		cmocka_unit_test(rings_of_unknown_writers_stay),
		cmocka_unit_test(a_small_folder_in_memory_is_not_used),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
