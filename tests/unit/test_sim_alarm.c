/* The simulated machine's alarms ring in the order that a search through all of them finds. */
#include "test.h"

#include "sim/sim_state.h"

enum { ALARMS = 300, STEPS = 60000 };

struct clock {
	struct sim_alarms alarms;
	struct sim_alarm all[ALARMS];
	uint64_t at[ALARMS], order[ALARMS]; /* the state for the search; SIM_NEVER: not set */
	uint64_t now, orders, random;
};

static uint64_t draw(struct clock *clock, uint64_t below) /* splitmix64 */
{
	uint64_t z = clock->random += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (z ^ z >> 31) % below;
}

static void set(struct clock *clock, unsigned i, uint64_t at)
{
	sim_alarms_set(&clock->alarms, &clock->all[i], at);
	if (clock->at[i] == at)
		return;
	clock->at[i] = at;
	clock->order[i] = clock->orders++;
}

static int search(const struct clock *clock)
{
	int first = -1;
	for (int i = 0; i < ALARMS; i++) {
		bool earlier = first < 0 || clock->at[i] < clock->at[first] ||
			       (clock->at[i] == clock->at[first] &&
				clock->order[i] < clock->order[first]);
		if (clock->at[i] != SIM_NEVER && earlier)
			first = i;
	}
	return first;
}

static void check_first(struct clock *clock)
{
	int first = search(clock);
	assert_ptr_equal(sim_alarms_first(&clock->alarms), first < 0 ? NULL : &clock->all[first]);
}

/* A ringing alarm may set itself and others again before the next one is chosen. */
static void ring(struct clock *clock, uint64_t span)
{
	int first = search(clock);
	assert_ptr_equal(sim_alarms_take(&clock->alarms), first < 0 ? NULL : &clock->all[first]);
	if (first < 0)
		return;
	clock->now = clock->at[first];
	clock->at[first] = SIM_NEVER;
	if (clock->all[first].is_tick)
		set(clock, (unsigned)first, clock->now + (draw(clock, 50) ? 40 : 10));
	for (uint64_t more = draw(clock, 4); more; more--)
		set(clock, (unsigned)draw(clock, ALARMS),
		    draw(clock, 5) ? clock->now + draw(clock, span) : SIM_NEVER);
}

static void alarms_ring_in_order(void **state)
{
	struct clock *clock = calloc(1, sizeof(*clock));
	(void)state;
	for (unsigned i = 0; i < ALARMS; i++) {
		sim_alarm_init(&clock->all[i], NULL);
		clock->all[i].is_tick = i % 5 == 0;
		clock->at[i] = SIM_NEVER;
	}
	for (unsigned step = 0; step < STEPS; step++) {
		uint64_t span = step / 10000 % 2 ? 20 : 1000; /* many equal times, then few */
		switch (draw(clock, 4)) {
		case 0:
			set(clock, (unsigned)draw(clock, ALARMS), clock->now + draw(clock, span));
			break;
		case 1:
			check_first(clock);
			break;
		default:
			ring(clock, span);
		}
	}
	while (search(clock) >= 0)
		set(clock, (unsigned)search(clock), SIM_NEVER);
	check_first(clock);
	sim_alarms_release(&clock->alarms);
	free(clock);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(alarms_ring_in_order) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
