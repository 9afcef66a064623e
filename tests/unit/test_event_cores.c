/* Events on machines with several types of cores: which events they become, and how cpu_core/…/ is
 * parsed. */
#include "test.h"

#include "event/event.h"

#include <errno.h>

enum { CORE = 4, ATOM = 10 };

static struct tally_format_term terms[] = { { "event", 0, 0xff }, { "umask", 0, 0xff00 } };
static struct tally_pmu_alias core_events[] = {
	{ "cpu-cycles", "event=0x3c", "", 1 },
	{ "instructions", "event=0xc0", "", 1 },
	{ "slots", "event=0x00,umask=0x4", "", 1 },
};
static struct tally_pmu_alias atom_events[] = {
	{ "cpu-cycles", "event=0x3c", "", 1 },
	{ "instructions", "event=0xc0", "", 1 },
};

/* Alder Lake: cpu_core has the type RAW. */
static struct tally_pmu pmus[] = {
	{ "cpu_atom", ATOM, "16-23", terms, 2, atom_events, 2, true },
	{ "cpu_core", CORE, "0-15", terms, 2, core_events, 3, true },
	{ "uncore_imc_0", 30, "0", terms, 1, NULL, 0, false },
};

#define ON(type) ((uint64_t)(type) << 32)

struct split {
	struct tally_catalogue catalogue;
	struct tally_arena arena;
	struct tally_event_list list;
};

static void split(struct split *s, const char *text, size_t pmu_count)
{
	struct tally_error err = TALLY_ERROR_NONE;
	*s = (struct split){ 0 };
	assert_int_equal(tally_catalogue_init(&s->catalogue), 0);
	s->catalogue.pmus = pmus;
	s->catalogue.pmu_count = pmu_count;
	if (tally_event_parse(text, &s->catalogue, &s->arena, &s->list, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(tally_event_split_by_core(&s->list, &s->catalogue, &s->arena), 0);
}

static void release(struct split *s)
{
	tally_event_list_release(&s->list);
	tally_arena_release(&s->arena);
	tally_catalogue_release(&s->catalogue);
}

struct wanted {
	const char *name;
	uint32_t type;
	uint64_t config;
	int group;
};

static void gives(const char *text, const struct wanted *wanted)
{
	struct split s;
	size_t count = 0;
	split(&s, text, 3);
	for (; wanted[count].name; count++) {
		assert_true(count < s.list.count);
		assert_string_equal(s.list.items[count].name, wanted[count].name);
		assert_int_equal(s.list.items[count].attr.type, wanted[count].type);
		assert_int_equal(s.list.items[count].attr.config, wanted[count].config);
		assert_int_equal(s.list.items[count].group, wanted[count].group);
	}
	assert_int_equal(s.list.count, count);
	release(&s);
}

static void an_event_without_a_pmu_is_one_event_a_type(void **state)
{
	(void)state;
	gives("cycles:u,task-clock,L1-dcache-loads,r1c0:k",
	      (struct wanted[]){ { "cpu_atom/cycles/u", 0, ON(ATOM), -1 },
				 { "cpu_core/cycles/u", 0, ON(CORE), -1 },
				 { "task-clock", 1, 1, -1 },
				 { "cpu_atom/L1-dcache-loads/", 3, ON(ATOM), -1 },
				 { "cpu_core/L1-dcache-loads/", 3, ON(CORE), -1 },
				 { "cpu_atom/r1c0/k", ATOM, 0x1c0, -1 },
				 { "cpu_core/r1c0/k", CORE, 0x1c0, -1 },
				 { NULL, 0, 0, 0 } });
}

static void a_group_is_one_group_a_type(void **state)
{
	(void)state;
	gives("{cycles,instructions},{branches,page-faults}",
	      (struct wanted[]){ { "cpu_atom/cycles/", 0, ON(ATOM), 0 },
				 { "cpu_atom/instructions/", 0, ON(ATOM) | 1, 0 },
				 { "cpu_core/cycles/", 0, ON(CORE), 2 },
				 { "cpu_core/instructions/", 0, ON(CORE) | 1, 2 },
				 { "page-faults", 1, 2, -1 },
				 { "cpu_atom/branches/", 0, ON(ATOM) | 4, 1 },
				 { "cpu_core/branches/", 0, ON(CORE) | 4, 4 },
				 { NULL, 0, 0, 0 } });
}

static void a_group_never_mixes_types(void **state)
{
	(void)state;
	gives("{cpu_core/cycles/,cpu_atom/cycles/,cpu_core/instructions/}",
	      (struct wanted[]){ { "cpu_atom/cycles/", 0, ON(ATOM), 0 },
				 { "cpu_core/cycles/", 0, ON(CORE), 1 },
				 { "cpu_core/instructions/", 0, ON(CORE) | 1, 1 },
				 { NULL, 0, 0, 0 } });
}

static void events_of_one_type_stay(void **state)
{
	(void)state;
	gives("{cpu_core/cycles/u,cpu_core/LLC-loads/,cpu_core/event=0x3c,umask=1/}",
	      (struct wanted[]){ { "cpu_core/cycles/u", 0, ON(CORE), 0 },
				 { "cpu_core/LLC-loads/", 3, ON(CORE) | 2, 0 },
				 { "cpu_core/event=0x3c,umask=1/", CORE, 0x13c, 0 },
				 { NULL, 0, 0, 0 } });
}

static void an_event_that_one_type_has_is_opened_there(void **state)
{
	(void)state;
	gives("slots:u",
	      (struct wanted[]){ { "cpu_core/slots/u", CORE, 0x400, -1 }, { NULL, 0, 0, 0 } });
}

static void cpus_and_types_are_found_by_event(void **state)
{
	struct split s;
	const char *const *cpus;
	const uint32_t *cores;
	(void)state;
	split(&s, "cycles,task-clock", 3);
	assert_int_equal(tally_event_places(&s.list, &s.catalogue, &s.arena, &cpus, &cores), 0);
	assert_string_equal(cpus[0], "16-23");
	assert_string_equal(cpus[1], "0-15");
	assert_null(cpus[2]);
	assert_int_equal(cores[0], ATOM);
	assert_int_equal(cores[1], CORE);
	assert_int_equal(cores[2], 0);
	release(&s);
}

static void a_machine_with_one_type_keeps_its_events(void **state)
{
	struct split s;
	(void)state;
	split(&s, "cycles", 1);
	assert_int_equal(s.list.count, 1);
	assert_string_equal(s.list.items[0].name, "cycles");
	assert_int_equal(s.list.items[0].attr.config, 0);
	release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_without_a_pmu_is_one_event_a_type),
		cmocka_unit_test(a_group_is_one_group_a_type),
		cmocka_unit_test(a_group_never_mixes_types),
		cmocka_unit_test(events_of_one_type_stay),
		cmocka_unit_test(an_event_that_one_type_has_is_opened_there),
		cmocka_unit_test(cpus_and_types_are_found_by_event),
		cmocka_unit_test(a_machine_with_one_type_keeps_its_events),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
