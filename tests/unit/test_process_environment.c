/* How the preloaded object takes its variables out of an environment, and lends them to the next program. */
#include "process/process_agent.h"
#include "process/process_environment.h"

#include "test.h"

#define OBJECT "/usr/libexec/libtally-process.so"

struct process_agent process_agent;

/* An environment as the kernel makes it: an array that ends with NULL, strings that may be changed. */
static char text[16][256];
static char *entries[17];

static void set(const char *const *variables)
{
	memset(&process_agent, 0, sizeof(process_agent));
	memset(entries, 0, sizeof(entries));
	for (unsigned i = 0; variables[i]; i++) {
		memset(text[i], 0, sizeof(text[i]));
		strcpy(text[i], variables[i]);
		entries[i] = text[i];
	}
}

static void assert_entries(const char *const *wanted)
{
	unsigned i;
	for (i = 0; wanted[i]; i++)
		assert_string_equal(entries[i], wanted[i]);
	for (; i < 16; i++)
		assert_null(entries[i]);
}

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void variables_are_taken_and_the_others_stay(void **state)
{
	(void)state;
	set(LIST("A=1", "LD_PRELOAD=" OBJECT, "B=", "TALLY_PLAN=/dev/shm/plan|fd:3", "LAST=x"));
	assert_true(process_environment_take(entries));
	assert_entries(LIST("A=1", "B=", "LAST=x"));
	assert_string_equal(process_agent.plan_name, "/dev/shm/plan|fd:3");
	assert_string_equal(process_agent.object, OBJECT);
	/* nothing is left of them in the process's environment block */
	for (unsigned i = 0; i < sizeof(text[1]); i++)
		assert_true(!text[1][i] && !text[3][i]);
}

static void an_environment_without_a_plan_is_not_touched(void **state)
{
	(void)state;
	set(LIST("LD_PRELOAD=" OBJECT, "TALLY_PLANS=x", "A"));
	assert_false(process_environment_take(entries));
	assert_entries(LIST("LD_PRELOAD=" OBJECT, "TALLY_PLANS=x", "A"));
	assert_int_equal(process_environment_room(entries), 0);
	assert_false(process_environment_take(NULL));
}

static void the_users_preloads_stay_as_they_were(void **state)
{
	(void)state;
	static const struct { const char *with, *without; } rows[] = {
		{ OBJECT ":", "" },
		{ OBJECT ":a.so", "a.so" },
		{ OBJECT ":a.so b.so:", "a.so b.so:" },
		{ OBJECT "::a.so", ":a.so" },
		{ "a.so:" OBJECT, "a.so" },
		{ "a.so:" OBJECT ":b.so", "a.so:b.so" },
		{ "a.so " OBJECT " b.so", "a.so b.so" },
		{ ":" OBJECT, "" },
		{ "a.so", "a.so" },
		{ "/x/otherlibtally-process.so", "/x/otherlibtally-process.so" },
		{ "/x/libtally-process.so.1", "/x/libtally-process.so.1" },
		{ "", "" },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char with[128], without[128];
		snprintf(with, sizeof(with), "LD_PRELOAD=%s", rows[i].with);
		snprintf(without, sizeof(without), "LD_PRELOAD=%s", rows[i].without);
		set(LIST("TALLY_PLAN=p", with));
		assert_true(process_environment_take(entries));
		assert_entries(LIST(without));
	}
}

static void a_plan_that_is_too_long_is_taken_and_not_used(void **state)
{
	(void)state;
	static char plan[sizeof(process_agent.plan_name) + 64];
	set(LIST("A=1", "B=2", "LD_PRELOAD=" OBJECT));
	memset(plan, 'x', sizeof(plan) - 1);
	memcpy(plan, "TALLY_PLAN=", 11);
	entries[1] = plan;
	assert_false(process_environment_take(entries));
	assert_entries(LIST("A=1"));
}

/* Lends, and takes as the next program would. */
static void lend_and_take(const char *const *variables)
{
	char *own[17] = { 0 };
	for (unsigned i = 0; variables && variables[i]; i++)
		own[i] = (char *)(uintptr_t)variables[i];
	size_t room = process_environment_room(variables ? own : NULL);
	assert_true(room > 0);
	/* a heap block of this very size, so that sanitizers see a write beyond it */
	void *memory = malloc(room);
	char **lent = process_environment_lend(variables ? own : NULL, memory);
	set((const char *const *)lent);
	free(memory);
	assert_true(process_environment_take(entries));
	assert_entries(variables ? variables : (const char *const[]){ NULL });
	assert_string_equal(process_agent.plan_name, "the plan");
	assert_string_equal(process_agent.object, OBJECT);
}

static void each_program_sees_the_environment_that_it_was_given(void **state)
{
	(void)state;
	set(LIST("TALLY_PLAN=the plan", "LD_PRELOAD=" OBJECT));
	assert_true(process_environment_take(entries));
	lend_and_take(NULL);
	lend_and_take(LIST("A=1"));
	lend_and_take(LIST("A=1", "LD_PRELOAD=", "B=2"));
	lend_and_take(LIST("LD_PRELOAD=a.so:b.so", "A"));
	lend_and_take(LIST("LD_PRELOAD=a.so", "A=1", "LD_PRELOAD=b.so", "A=2"));
	lend_and_take(LIST("", "=", "TALLY_PLA=x"));
	/* a program that sets the variables itself knows better */
	char *own[] = { (char *)(uintptr_t)"TALLY_PLAN=another", NULL };
	assert_int_equal(process_environment_room(own), 0);
	own[0] = (char *)(uintptr_t)("LD_PRELOAD=x:" OBJECT);
	assert_int_equal(process_environment_room(own), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variables_are_taken_and_the_others_stay),
		cmocka_unit_test(an_environment_without_a_plan_is_not_touched),
		cmocka_unit_test(the_users_preloads_stay_as_they_were),
		cmocka_unit_test(a_plan_that_is_too_long_is_taken_and_not_used),
		cmocka_unit_test(each_program_sees_the_environment_that_it_was_given),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
