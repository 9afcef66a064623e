/* Vendors' names of events: tally's result equals that of a program that calls libpfm itself. */
#include "test.h"

#include "event/event.h"
#include "provider/provider.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <perfmon/pfmlib_perf_event.h>
#include <unistd.h>

struct vendor_test {
	struct tally_arena arena;
	struct tally_catalogue catalogue;
	struct tally_event_list events;
	struct tally_error err;
};

static int setup(void **state)
{
	struct vendor_test *t = calloc(1, sizeof(*t));
	*state = t;
	return tally_kernel_catalogue(&t->catalogue, &t->err);
}

static int teardown(void **state)
{
	struct vendor_test *t = *state;
	tally_event_list_release(&t->events);
	tally_catalogue_release(&t->catalogue);
	tally_arena_release(&t->arena);
	free(t);
	return 0;
}

static int parse(struct vendor_test *t, const char *text)
{
	t->err = (struct tally_error)TALLY_ERROR_NONE;
	return tally_event_parse(text, &t->catalogue, &t->arena, &t->events, &t->err);
}

/* Compares with libpfm's result for the name. */
static void expect(const struct tally_event *event, const char *name)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	pfm_perf_encode_arg_t argument = { .attr = &attr, .size = sizeof(argument) };
	assert_string_equal(event->name, name);
	if (pfm_get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT_EXT,
				      &argument) != PFM_SUCCESS)
		fail_msg("libpfm refuses '%s'", name);
	assert_int_equal(event->attr.type, attr.type);
	assert_int_equal(event->attr.config, attr.config);
	assert_int_equal(event->attr.config1, attr.config1);
	assert_int_equal(event->attr.config2, attr.config2);
	assert_int_equal(!!(event->attr.flags & TALLY_ATTR_EXCLUDE_USER), attr.exclude_user);
	assert_int_equal(!!(event->attr.flags & TALLY_ATTR_EXCLUDE_KERNEL), attr.exclude_kernel);
	assert_int_equal(!!(event->attr.flags & TALLY_ATTR_EXCLUDE_HV), attr.exclude_hv);
	assert_int_equal(tally_attr_precise(&event->attr), attr.precise_ip);
}

static void a_list_of_names_has_libpfms_encodings(void **state)
{
	struct vendor_test *t = *state;
	static const char *const names[] = { "MEM_LOAD_RETIRED:L3_MISS",
					     "inst_retired.any_p",
					     "skl::UOPS_ISSUED:ANY:c=1:i=1:u",
					     "BR_MISP_RETIRED:ALL_BRANCHES:k",
					     "MEM_TRANS_RETIRED:LOAD_LATENCY:ldlat=4:precise=2",
					     "OFFCORE_RESPONSE_0:DMND_DATA_RD:L3_MISS:SNP_ANY" };
	if (parse(t,
		  "MEM_LOAD_RETIRED:L3_MISS,inst_retired.any_p,skl::UOPS_ISSUED:ANY:c=1:i=1:u,"
		  "{BR_MISP_RETIRED:ALL_BRANCHES:k, "
		  "MEM_TRANS_RETIRED:LOAD_LATENCY:ldlat=4:precise=2},"
		  "OFFCORE_RESPONSE_0:DMND_DATA_RD:L3_MISS:SNP_ANY,cycles:u") < 0)
		fail_msg("%s", t->err.message);
	assert_int_equal(t->events.count, 7);
	for (size_t i = 0; i < 6; i++) {
		expect(&t->events.items[i], names[i]);
		assert_int_equal(t->events.items[i].kind, TALLY_EVENT_VENDOR);
		assert_int_equal(t->events.items[i].attr.type, TALLY_TYPE_RAW);
	}
	/* Intel's manual, vol. 3: D1H, 20H */
	assert_int_equal(t->events.items[0].attr.config & 0xffff, 0x20d1);
	assert_int_equal(t->events.items[2].attr.flags & TALLY_ATTR_EXCLUDE_KERNEL,
			 TALLY_ATTR_EXCLUDE_KERNEL);
	assert_int_equal(t->events.items[3].group, t->events.items[4].group);
	/* names of the kernel keep their meaning */
	assert_int_equal(t->events.items[6].attr.type, TALLY_TYPE_HARDWARE);
}

static void every_listed_name_can_be_counted(void **state)
{
	struct vendor_test *t = *state;
	struct tally_vendor_name *names;
	size_t count, refused = 0;
	if (tally_vendor_events(&t->arena, &names, &count, &t->err) < 0)
		fail_msg("%s", t->err.message);
	assert_true(count > 300);
	for (size_t i = 0; i < count; i++) {
		t->events.count = 0;
		if (parse(t, names[i].name) == 0)
			expect(&t->events.items[0], names[i].name);
		else
			refused++; /* masks that need a second one, such as OFFCORE_RESPONSE's */
	}
	assert_true(refused * 4 < count);
}

static void what_nobody_knows_is_refused_as_ever(void **state)
{
	struct vendor_test *t = *state;
	assert_int_equal(parse(t, "no_such_event_anywhere"), -ENOENT);
	assert_non_null(strstr(t->err.message, "there is no event 'no_such_event_anywhere'"));
	assert_int_equal(parse(t, "MEM_LOAD_RETIRED:NO_SUCH_MASK"), -EINVAL);
	assert_non_null(strstr(t->err.message, "libpfm"));
	/* looks like a tracepoint's, which not every user may look up */
	int code = parse(t, "MEM_LOAD_RETIRED:L3_MISS/foo/");
	assert_true(code == -ENOENT || (code == -EACCES && geteuid()));
	assert_true(parse(t, "MEM_LOAD_*:L3_MISS") < 0);
	t->catalogue.vendor_event = NULL; /* as with providers of other PMUs */
	assert_int_equal(parse(t, "inst_retired.any"), -ENOENT);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_list_of_names_has_libpfms_encodings),
		CASE(every_listed_name_can_be_counted),
		CASE(what_nobody_knows_is_refused_as_ever),
	};
	setenv("LIBPFM_FORCE_PMU", "skl", 1);
	if (pfm_initialize() != PFM_SUCCESS) {
		puts("1..0 # SKIP libpfm has no such PMU");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
