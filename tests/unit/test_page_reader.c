/* When libtally reads a counter from its user page, and why not otherwise.  The pages are in memory,
 * and never name a counter: reading one here may trap. */
#include "test.h"

#include "library/page_reader.h"
#include "library/user_counters.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- a provider of pages --------------------------------------------------- */

static struct tally_user_page pages[TALLY_PAGES_MAX];
static unsigned mapped, maps_max;

static struct tally_user_page *map_page(struct tally_provider *provider, int handle,
					size_t data_pages, int read_only)
{
	(void)provider;
	assert_int_equal(data_pages, 0);
	assert_true(read_only);
	if (mapped == maps_max)
		return NULL;
	mapped++;
	return &pages[handle];
}

static void unmap_page(struct tally_provider *provider, struct tally_user_page *page,
		       size_t data_pages)
{
	(void)provider;
	(void)page;
	(void)data_pages;
	mapped--;
}

static const struct tally_provider_ops page_ops = { .map = map_page, .unmap = unmap_page };
static struct tally_provider provider = { .ops = &page_ops };

static void open_reader(struct tally_page_reader *reader, enum tally_event_kind kind, size_t count)
{
	static const int handles[TALLY_PAGES_MAX + 1] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	struct tally_event events[TALLY_PAGES_MAX + 1] = { 0 };
	for (size_t i = 0; i < count; i++)
		events[i].kind = TALLY_EVENT_HARDWARE;
	events[count - 1].kind = kind;
	mapped = 0;
	maps_max = TALLY_PAGES_MAX;
	for (size_t i = 0; i < TALLY_PAGES_MAX; i++)
		pages[i] = (struct tally_user_page){
			.capabilities = TALLY_CAP_BIT0_IS_DEPRECATED | TALLY_CAP_USER_RDPMC,
		};
	tally_page_reader_open(reader, &provider, events, handles, count);
}

static void assert_reason(const struct tally_page_reader *reader, const char *part)
{
	const char *reason = tally_page_reader_why_not(reader, false);
	assert_non_null(reason);
	if (!strstr(reason, part))
		fail_msg("'%s' is not in '%s'", part, reason);
}

/* --- reasons --------------------------------------------------------------- */

static void pages_are_mapped_for_hardware_events_alone(void **state)
{
	static const struct {
		enum tally_event_kind kind;
		bool is_mapped;
	} rows[] = {
		{ TALLY_EVENT_HARDWARE, true },    { TALLY_EVENT_CACHE, true },
		{ TALLY_EVENT_RAW, true },         { TALLY_EVENT_PMU, true },
		{ TALLY_EVENT_SOFTWARE, false },   { TALLY_EVENT_BREAKPOINT, false },
		{ TALLY_EVENT_TRACEPOINT, false }, { TALLY_EVENT_VENDOR, true },
	};
	struct tally_page_reader reader;
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		open_reader(&reader, rows[i].kind, 3);
		assert_int_equal(mapped, rows[i].is_mapped ? 3 : 0);
		assert_int_equal(tally_page_reader_usable(&reader), rows[i].is_mapped);
		if (!rows[i].is_mapped)
			assert_reason(&reader, "the kernel counts this event itself");
		tally_page_reader_close(&reader);
		assert_int_equal(mapped, 0);
	}
}

static void a_large_group_is_read_by_read(void **state)
{
	struct tally_page_reader reader;
	(void)state;
	open_reader(&reader, TALLY_EVENT_HARDWARE, TALLY_PAGES_MAX + 1);
	assert_reason(&reader, "more than 8 events");
	open_reader(&reader, TALLY_EVENT_HARDWARE, TALLY_PAGES_MAX);
	assert_int_equal(mapped, TALLY_PAGES_MAX);
	tally_page_reader_close(&reader);
}

static void a_page_that_cannot_be_mapped_unmaps_the_others(void **state)
{
	static const int handles[] = { 0, 1, 2 };
	static const struct tally_event events[3];
	struct tally_page_reader reader;
	(void)state;
	mapped = 0;
	maps_max = 2;
	tally_page_reader_open(&reader, &provider, events, handles, 3);
	assert_int_equal(mapped, 0);
	assert_false(tally_page_reader_usable(&reader));
	assert_reason(&reader, "ulimit -l");
}

static void what_the_page_says_is_a_reason(void **state)
{
	struct tally_page_reader reader;
	(void)state;
	open_reader(&reader, TALLY_EVENT_HARDWARE, 1);
	assert_non_null(tally_page_reader_why_not(&reader, true)); /* index 0 */
	pages[0].index = 1;
	pages[0].capabilities = TALLY_CAP_BIT0_IS_DEPRECATED;
	assert_non_null(tally_page_reader_why_not(&reader, true));
	pages[0].capabilities |= TALLY_CAP_USER_RDPMC;
	pages[0].pmc_width = 48;
	pages[0].index = (1 << 29) + 1;
	assert_reason(&reader, "topdown");
	pages[0].index = 1;
	pages[0].lock = 1;
	assert_non_null(tally_page_reader_why_not(&reader, false));
	tally_page_reader_close(&reader);
}

/* --- threads and processes ------------------------------------------------- */

static void *reason_in_thread(void *reader)
{
	return (void *)tally_page_reader_why_not(reader, false);
}

static void another_thread_uses_read(void **state)
{
	struct tally_page_reader reader;
	pthread_t thread;
	void *reason;
	(void)state;
	open_reader(&reader, TALLY_EVENT_HARDWARE, 1);
	assert_int_equal(pthread_create(&thread, NULL, reason_in_thread, &reader), 0);
	pthread_join(thread, &reason);
	assert_string_equal(reason, "the counter belongs to another thread");
	tally_page_reader_close(&reader);
}

/* In a child: the parent's counter is not read from its page, nor unmapped; a new one is. */
static bool child_is_right(struct tally_page_reader *parents)
{
	struct tally_page_reader own;
	const char *reason = tally_page_reader_why_not(parents, false);
	if (tally_page_reader_usable(parents) || !reason || !strstr(reason, "forked from"))
		return false;
	unsigned before = mapped;
	tally_page_reader_close(parents);
	if (mapped != before)
		return false;
	open_reader(&own, TALLY_EVENT_HARDWARE, 1);
	return tally_page_reader_usable(&own) && own.process != parents->process;
}

static void check_child(long pid, struct tally_page_reader *reader)
{
	int status;
	assert_true(pid >= 0);
	if (!pid)
		_exit(!child_is_right(reader));
	assert_int_equal(waitpid((pid_t)pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void a_child_uses_read_however_it_was_made(void **state)
{
	struct tally_page_reader reader;
	(void)state;
	open_reader(&reader, TALLY_EVENT_HARDWARE, 1);
	check_child(fork(), &reader);
	/* no handlers of pthread_atfork() */
	check_child(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL), &reader);
	assert_true(tally_page_reader_usable(&reader));
	tally_page_reader_close(&reader);
}

static void a_grandchild_does_not_take_its_ancestors_pages(void **state)
{
	struct tally_page_reader reader;
	int status;
	(void)state;
	open_reader(&reader, TALLY_EVENT_HARDWARE, 1);
	pid_t child = fork();
	if (!child) {
		struct tally_page_reader own;
		open_reader(&own, TALLY_EVENT_HARDWARE, 1);
		pid_t grandchild = fork();
		if (!grandchild) {
			struct tally_page_reader third;
			open_reader(&third, TALLY_EVENT_HARDWARE, 1);
			_exit(tally_page_reader_usable(&reader) || tally_page_reader_usable(&own) ||
			      !tally_page_reader_usable(&third));
		}
		_exit(waitpid(grandchild, &status, 0) != grandchild || status ||
		      !tally_page_reader_usable(&own));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	tally_page_reader_close(&reader);
}

/* --- kinds of cores -------------------------------------------------------- */

static void a_thread_stays_on_one_kind_of_core(void **state)
{
	unsigned large[] = { 0, 1, 2, 3 }, small[] = { 4, 5 };
	const struct tally_cpu_list kinds[] = { { large, 4 }, { small, 2 } };
	cpu_set_t may;
	(void)state;
	CPU_ZERO(&may);
	CPU_SET(1, &may);
	CPU_SET(3, &may);
	assert_true(tally_page_reader_same_kind(kinds, 2, &may));
	CPU_SET(4, &may);
	assert_false(tally_page_reader_same_kind(kinds, 2, &may));
	assert_true(tally_page_reader_same_kind(kinds, 1, &may));
	assert_true(tally_page_reader_same_kind(NULL, 0, &may));
	CPU_ZERO(&may);
	CPU_SET(5, &may);
	assert_true(tally_page_reader_same_kind(kinds, 2, &may));
	CPU_SET(900, &may); /* of no kind */
	assert_false(tally_page_reader_same_kind(kinds, 2, &may));
}

static void put(const char *root, const char *pmu, const char *file, const char *text)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", root, pmu);
	assert_true(!mkdir(path, 0700) || errno == EEXIST);
	snprintf(path, sizeof(path), "%s/%s/%s", root, pmu, file);
	FILE *out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static void kinds_of_cores_are_the_pmus_with_a_list(void **state)
{
	char root[] = "/tmp/tally-cores-XXXXXX", command[64];
	struct tally_arena arena = { 0 };
	const char **lists;
	size_t count;
	(void)state;
	assert_non_null(mkdtemp(root));
	put(root, "cpu_core", "cpus", "0-7\n");
	put(root, "cpu_atom", "cpus", "8-15\n");
	put(root, "uncore_imc", "cpumask", "0\n");
	put(root, "software", "type", "1\n");
	assert_int_equal(tally_sysfs_core_cpus(root, &arena, &lists, &count), 0);
	assert_int_equal(count, 2);
	assert_string_equal(lists[0], "8-15"); /* in the order of the names */
	assert_string_equal(lists[1], "0-7");
	tally_arena_release(&arena);
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

/* --- bits that ask --------------------------------------------------------- */

static void arm64_events_ask_by_their_pmu_s_format(void **state)
{
	static const struct tally_format_term terms[] = { { "event", 0, 0xffff },
							  { "long", 1, 1 << 0 },
							  { "rdpmc", 1, 1 << 1 } };
	static const struct tally_format_term moved[] = { { "rdpmc", 1, 1 << 4 } };
	struct tally_pmu pmus[] = {
		{ .name = "armv8_pmuv3", .type = 8, .terms = terms, .term_count = 3 },
		{ .name = "other", .type = 9, .terms = moved, .term_count = 1 },
		{ .name = "dsu", .type = 10, .terms = terms, .term_count = 1 }
	};
	const struct tally_catalogue catalogue = { .pmus = pmus, .pmu_count = 3 };
	static const struct {
		uint32_t type;
		unsigned strength;
		uint64_t config1, then; /* 0: nothing to ask for */
	} rows[] = {
		{ TALLY_TYPE_HARDWARE, 2, 0, 3 },
		{ TALLY_TYPE_HARDWARE, 1, 0, 2 },
		{ TALLY_TYPE_HW_CACHE, 2, 0, 3 },
		{ TALLY_TYPE_RAW, 1, 0, 2 },
		{ TALLY_TYPE_SOFTWARE, 2, 0, 0 },
		{ TALLY_TYPE_TRACEPOINT, 2, 0, 0 },
		{ 8, 2, 0, 3 },
		{ 8, 1, 0, 2 },
		{ 8, 1, 1, 3 },       /* "long=1" */
		{ 8, 2, 2, 0 },       /* "rdpmc=1": as it is */
		{ 8, 2, 0xf0, 0xf3 }, /* a threshold */
		{ 9, 2, 0, 0x10 },
		{ 10, 2, 0, 0 },
		{ 11, 2, 0, 0 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct tally_attr attr = { .type = rows[i].type, .config1 = rows[i].config1 };
		bool asks = tally_page_reader_set_bits(&attr, &catalogue, rows[i].strength);
		assert_int_equal(asks, rows[i].then != 0);
		assert_int_equal(attr.config1, asks ? rows[i].then : rows[i].config1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_are_mapped_for_hardware_events_alone),
		cmocka_unit_test(a_large_group_is_read_by_read),
		cmocka_unit_test(a_page_that_cannot_be_mapped_unmaps_the_others),
		cmocka_unit_test(what_the_page_says_is_a_reason),
		cmocka_unit_test(another_thread_uses_read),
		cmocka_unit_test(a_child_uses_read_however_it_was_made),
		cmocka_unit_test(a_grandchild_does_not_take_its_ancestors_pages),
		cmocka_unit_test(a_thread_stays_on_one_kind_of_core),
		cmocka_unit_test(kinds_of_cores_are_the_pmus_with_a_list),
		cmocka_unit_test(arm64_events_ask_by_their_pmu_s_format),
	};
	return cmocka_run_group_tests_name("page_reader", tests, NULL, NULL);
}
