#include "test.h"

#include "../event_fixture.h"

#include <errno.h>

enum {
	U = TALLY_ATTR_EXCLUDE_USER,
	K = TALLY_ATTR_EXCLUDE_KERNEL,
	HV = TALLY_ATTR_EXCLUDE_HV,
	IDLE = TALLY_ATTR_EXCLUDE_IDLE,
	HOST = TALLY_ATTR_EXCLUDE_HOST,
	GUEST = TALLY_ATTR_EXCLUDE_GUEST,
	PIN = TALLY_ATTR_PINNED,
	EXCL = TALLY_ATTR_EXCLUSIVE,
	FREQ = TALLY_ATTR_FREQ,
	P1 = 1 << TALLY_ATTR_PRECISE_IP_SHIFT,
	P2 = 2 << TALLY_ATTR_PRECISE_IP_SHIFT,
	P3 = 3 << TALLY_ATTR_PRECISE_IP_SHIFT,
};

struct parsed {
	struct tally_catalogue catalogue;
	struct tally_arena arena;
	struct tally_event_list list;
	struct tally_error err;
	int code;
};

static struct parsed parse(const char *text)
{
	struct parsed p = { .err = TALLY_ERROR_NONE };
	assert_int_equal(fixture_catalogue(&p.catalogue), 0);
	p.code = tally_event_parse(text, &p.catalogue, &p.arena, &p.list, &p.err);
	return p;
}

static void release(struct parsed *p)
{
	tally_event_list_release(&p->list);
	tally_arena_release(&p->arena);
	tally_catalogue_release(&p->catalogue);
}

static const struct {
	const char *text;
	uint32_t type;
	uint64_t config, config1, config2, flags;
	const char *name; /* NULL: the same as the text */
} single[] = {
	{ "cycles", 0, 0, 0, 0, GUEST },
	{ "cpu-cycles", 0, 0, 0, 0, GUEST },
	{ "branch-instructions", 0, 4, 0, 0, GUEST },
	{ "branches", 0, 4, 0, 0, GUEST },
	{ "branch-misses", 0, 5, 0, 0, GUEST },
	{ "idle-cycles-backend", 0, 8, 0, 0, GUEST },
	{ "ref-cycles", 0, 9, 0, 0, GUEST },
	{ "cycles:u", 0, 0, 0, 0, K | HV | GUEST },
	{ "cycles:k", 0, 0, 0, 0, U | HV },
	{ "cycles:h", 0, 0, 0, 0, U | K },
	{ "cycles:uk", 0, 0, 0, 0, HV | GUEST },
	{ "cycles:ukh", 0, 0, 0, 0, GUEST },
	{ "cycles:H", 0, 0, 0, 0, GUEST },
	{ "cycles:G", 0, 0, 0, 0, HOST },
	{ "cycles:GH", 0, 0, 0, 0, 0 },
	{ "cycles:uG", 0, 0, 0, 0, K | HV | HOST },
	{ "cycles:Gu", 0, 0, 0, 0, K | HV | HOST },
	{ "cycles:I", 0, 0, 0, 0, IDLE },
	{ "cycles:p", 0, 0, 0, 0, P1 | GUEST },
	{ "cycles:ppp", 0, 0, 0, 0, P3 | GUEST },
	{ "cycles:upp", 0, 0, 0, 0, P2 | K | HV | GUEST },
	{ "cycles:P", 0, 0, 0, 0, 0 },
	{ "cycles:D", 0, 0, 0, 0, PIN },
	{ "cycles:e", 0, 0, 0, 0, EXCL },
	{ "cpu-clock:u", 1, 0, 0, 0, K | HV | GUEST },
	{ "cs", 1, 3, 0, 0, GUEST },
	{ "faults:k", 1, 2, 0, 0, U | HV },
	{ "cgroup-switches", 1, 11, 0, 0, GUEST },
	{ "L1-dcache-load-misses", 3, 0x10000, 0, 0, GUEST },
	{ "l1-d", 3, 0, 0, 0, GUEST },
	{ "L1-data-loads", 3, 0, 0, 0, GUEST },
	{ "dtlb-loads", 3, 3, 0, 0, GUEST },
	{ "LLC-speculative-load", 3, 0x202, 0, 0, GUEST },
	{ "LLC-loads-misses:u", 3, 0x10002, 0, 0, K | HV | GUEST },
	{ "L2-miss-store", 3, 0x10102, 0, 0, GUEST },
	{ "branch-load-misses", 3, 0x10005, 0, 0, GUEST },
	{ "branch", 3, 5, 0, 0, GUEST },
	{ "btb-misses", 3, 0x10005, 0, 0, GUEST },
	{ "node-prefetch-misses", 3, 0x10206, 0, 0, GUEST },
	{ "r1a8", 4, 0x1a8, 0, 0, GUEST },
	{ "r0x1a8:u", 4, 0x1a8, 0, 0, K | HV | GUEST },
	{ "rffffffffffffffff", 4, UINT64_MAX, 0, 0, GUEST },
	{ "1:2", 1, 2, 0, 0, GUEST },
	{ "1:0x2:k", 1, 2, 0, 0, U | HV },
	{ "cpu/event=0x3c,umask=1/", 4, 0x13c, 0, 0, GUEST },
	{ "cpu/event=0x13c/", 4, 0x10000003cull, 0, 0, GUEST },
	{ "cpu/event=0x3c,edge/u", 4, 0x4003c, 0, 0, K | HV | GUEST },
	{ "cpu/event=0x3c/:pp", 4, 0x3c, 0, 0, P2 | GUEST },
	{ "cpu/config=1,config1=2,config2=0x3/", 4, 1, 2, 3, GUEST },
	{ "cpu/r1a8/", 4, 0x1a8, 0, 0, GUEST },
	{ "cpu//", 4, 0, 0, 0, GUEST },
	{ "cpu/mem-loads/", 4, 0x1cd, 3, 0, GUEST },
	{ "cpu/mem-loads,ldlat=30/P", 4, 0x1cd, 30, 0, 0 },
	{ "cpu/ldlat=30,mem-loads/", 4, 0x1cd, 3, 0, GUEST },
	{ "cpu/event=mem-loads/", 4, 0x1cd, 3, 0, GUEST },
	{ "cpu/needs-chip,ldlat=7/", 4, 0x10, 7, 0, GUEST },
	{ "cpu/event=0x3c,name=foo/u", 4, 0x3c, 0, 0, K | HV | GUEST, "foo" },
	{ "cpu/event=0x3c,name='a, b'/", 4, 0x3c, 0, 0, GUEST, "a, b" },
	{ "mem-loads:u", 4, 0x1cd, 3, 0, K | HV | GUEST },
	{ "energy-pkg", 20, 2, 0, 0, GUEST },
	{ "mem:0x1000", 5, 0, 0x1000, 4, GUEST },
	{ "mem:4096/8:w", 5, 0, 0x1000, 8, GUEST },
	{ "mem:0x1000:x", 5, 0, 0x1000, 8, GUEST },
	{ "mem:0x1000/2:rw:u", 5, 0, 0x1000, 2, K | HV | GUEST },
	{ "mem:0x1000:wk", 5, 0, 0x1000, 4, U | HV },
	{ "mem:0x1000:u", 5, 0, 0x1000, 4, K | HV | GUEST },
	{ "sched:sched_switch", 2, 100, 0, 0, GUEST },
	{ "sched:sched_switch:u", 2, 100, 0, 0, K | HV | GUEST },
	{ "sched_switch", 2, 100, 0, 0, GUEST, "sched:sched_switch" },
	{ "sched_switch:u", 2, 100, 0, 0, K | HV | GUEST, "sched:sched_switch:u" },
	{ " cycles : u ", 0, 0, 0, 0, K | HV | GUEST, "cycles:u" },
	{ "cpu / event = 0x3c , umask=1 / u", 4, 0x13c, 0, 0, K | HV | GUEST,
	  "cpu/event=0x3c,umask=1/u" },
	{ "cycles/name=foo,freq=99/", 0, 0, 0, 0, FREQ | GUEST, "foo" },
};

static void expression_gives_perfs_attributes(void **state)
{
	(void)state;
	for (size_t i = 0; i < FIXTURE_COUNT(single); i++) {
		struct parsed p = parse(single[i].text);
		if (p.code || p.list.count != 1)
			fail_msg("%s: %d, %zu events: %s", single[i].text, p.code, p.list.count,
				 p.err.message);
		const struct tally_event *e = &p.list.items[0];
		if (e->attr.type != single[i].type || e->attr.config != single[i].config ||
		    e->attr.config1 != single[i].config1 || e->attr.config2 != single[i].config2 ||
		    e->attr.flags != single[i].flags)
			fail_msg("%s: type %u config %#lx %#lx %#lx flags %#lx, expected %#lx",
				 single[i].text, e->attr.type, e->attr.config, e->attr.config1,
				 e->attr.config2, e->attr.flags, single[i].flags);
		assert_string_equal(e->name, single[i].name ? single[i].name : single[i].text);
		assert_int_equal(e->group, TALLY_EVENT_NO_GROUP);
		release(&p);
	}
}

static void breakpoint_access_is_what_was_typed(void **state)
{
	(void)state;
	struct parsed p = parse("mem:1,mem:1:r,mem:1:wx,mem:1/8:rwx");
	const uint32_t expected[] = { 3, 1, 6, 7 };
	assert_int_equal(p.list.count, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(p.list.items[i].attr.bp_type, expected[i]);
	release(&p);
}

static void terms_give_period_frequency_unit_and_scale(void **state)
{
	(void)state;
	struct parsed p = parse(
		"cpu/event=1,period=1000/,cycles/freq=99/,power/energy-pkg/,cpu-clock");
	assert_int_equal(p.list.count, 4);
	struct tally_event *e = p.list.items;
	assert_true(e[0].has_period && !e[0].has_frequency && e[0].attr.sample_period == 1000);
	assert_true(e[1].has_frequency && !e[1].has_period && e[1].attr.sample_period == 99);
	assert_true(e[1].attr.flags & TALLY_ATTR_FREQ);
	assert_string_equal(e[2].unit, "Joules");
	assert_true(e[2].scale > 2.3e-10 && e[2].scale < 2.4e-10);
	assert_string_equal(e[3].unit, "");
	assert_true(e[3].scale == 1 && !e[3].has_period && !e[3].attr.sample_period);
	release(&p);
}

static void group_members_are_adjacent_and_numbered(void **state)
{
	(void)state;
	struct parsed p = parse(
		"cs,{cycles,instructions:k}:S,foo { faults }:uW,{cpu-clock,task-clock}:De");
	assert_int_equal(p.code, 0);
	const int groups[] = { -1, 0, 0, 1, 2, 2 };
	assert_int_equal(p.list.count, 6);
	assert_int_equal(p.list.group_count, 3);
	struct tally_event *e = p.list.items;
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(e[i].group, groups[i]);
	assert_true(e[1].group_read && e[2].group_read && !e[0].group_read);
	assert_int_equal(e[2].attr.flags, U | HV);
	assert_true(e[2].attr.flags & TALLY_ATTR_EXCLUDE_USER &&
		    !(e[1].attr.flags & TALLY_ATTR_EXCLUDE_USER));
	assert_true(e[3].weak_group && e[3].attr.flags & TALLY_ATTR_EXCLUDE_KERNEL);
	assert_int_equal(e[4].attr.flags, PIN | EXCL | GUEST);
	assert_int_equal(e[5].attr.flags, GUEST);
	release(&p);
}

static void lists_grow_over_several_expressions(void **state)
{
	(void)state;
	struct parsed p = parse("{cs,faults}");
	assert_int_equal(
		tally_event_parse("{cycles,branches}", &p.catalogue, &p.arena, &p.list, &p.err), 0);
	assert_int_equal(
		tally_event_parse("cs,{cs,nonsense}", &p.catalogue, &p.arena, &p.list, &p.err),
		-ENOENT);
	assert_int_equal(p.list.count, 4); /* a failed expression adds nothing */
	assert_int_equal(p.list.group_count, 2);
	assert_int_equal(p.list.items[3].group, 1);
	release(&p);
}

static void globs_expand_to_every_tracepoint(void **state)
{
	(void)state;
	static const struct { const char *text, *names;
	} globs[] = {
		{ "sched:*", "sched:sched_process_exec sched:sched_switch sched:sched_wakeup " },
		{ "sched:sched_[sw]*:u", "sched:sched_switch:u sched:sched_wakeup:u " },
		{ "*:sys_enter_open*", "syscalls:sys_enter_open syscalls:sys_enter_openat " },
		{ "s*:*_open", "syscalls:sys_enter_open " },
		{ "imc/cas_count_read/",
		  "uncore_imc_0/cas_count_read/ uncore_imc_1/cas_count_read/ " },
		{ "uncore_imc*/event=4/k", "uncore_imc_0/event=4/k uncore_imc_1/event=4/k " },
	};
	for (size_t i = 0; i < FIXTURE_COUNT(globs); i++) {
		struct parsed p = parse(globs[i].text);
		char names[512] = "";
		assert_int_equal(p.code, 0);
		for (size_t j = 0; j < p.list.count; j++)
			strcat(strcat(names, p.list.items[j].name), " ");
		assert_string_equal(names, globs[i].names);
		release(&p);
	}
}

static const struct {
	const char *text;
	int code, position;
	const char *message, *hint; /* parts of the message and hint */
} mistakes[] = {
	{ "", -EINVAL, 0, "ends where an event", "" },
	{ "cycles,", -EINVAL, 7, "ends where an event", "" },
	{ ",cycles", -EINVAL, 0, "unexpected ',': expected an event", "" },
	{ "cyclse", -ENOENT, 0, "no event 'cyclse'", "did you mean 'cycles'?" },
	{ "cs,instrucions:u", -ENOENT, 3, "no event 'instrucions'",
	  "did you mean 'instructions'?" },
	{ "sched_swich", -ENOENT, 0, "no event 'sched_swich'",
	  "did you mean 'sched:sched_switch'?" },
	{ "cs,sched_*", -ENOENT, 3, "no event 'sched_*'", "'SYSTEM:sched_*'" },
	{ "cs,hit", -EINVAL, 3, "'hit' is a tracepoint of 2 systems",
	  "write which: mine:hit, yours:hit" },
	{ "hit:u", -EINVAL, 0, "'hit' is a tracepoint of 2 systems", "mine:hit, yours:hit" },
	{ "xyzzy_nothing", -ENOENT, 0, "no event", "tally list" },
	{ "cycles:z", -EINVAL, 7, "no modifier 'z'", "u user" },
	{ "cycles:uu", -EINVAL, 8, "'u' is given twice", "" },
	{ "cycles:pppp", -EINVAL, 10, "at most three p", "" },
	{ "cycles:u:k", -EINVAL, 8, "modifiers are given twice", "" },
	{ "cycles:", -EINVAL, 7, "ends where modifiers", "" },
	{ "cycles cs", -EINVAL, 7, "unexpected 'cs': expected ','", "" },
	{ "{cycles", -EINVAL, 7, "ends where ',' or '}'", "" },
	{ "{}", -EINVAL, 1, "unexpected '}'", "" },
	{ "{cs,{faults}}", -EINVAL, 4, "group can't stand inside a group", "" },
	{ "{cs,faults:D}", -EINVAL, 11, "only a group's first event can be pinned", "{a,b}:D" },
	{ "{cs:pp,faults}:pp", -EINVAL, 15, "more precise than ppp", "" },
	{ "iTLB-stores", -EINVAL, 0, "no cache has 'iTLB-stores'", "loads alone" },
	{ "rzz", -ENOENT, 0, "no event 'rzz'", "" },
	{ "cpuu/event=1/", -ENOENT, 0, "no PMU 'cpuu'", "did you mean 'cpu'?" },
	{ "nosuch/event=1/", -ENOENT, 0, "no PMU 'nosuch'", "cpu, power, uncore_imc_0" },
	{ "cpu/evnt=1/", -ENOENT, 4, "no term and no event 'evnt'", "did you mean 'event'?" },
	{ "cpu/event=zz/", -EINVAL, 10, "'zz' is not a value for 'event'", "" },
	{ "cpu/umask=256/", -EINVAL, 10,
	  "256 is too much for 'umask': it has 8 bits, its maximum is 255", "" },
	{ "cpu/edge=2/", -EINVAL, 9, "it has 1 bit, its maximum is 1", "" },
	{ "cpu/event=18446744073709551616/", -EINVAL, 10, "is not a value", "" },
	{ "cpu/event=1", -EINVAL, 11, "ends where ',' or '/'", "" },
	{ "cpu/event=/", -EINVAL, 10, "expected a value", "" },
	{ "cpu/percore/", -EINVAL, 4, "'percore' is perf's", "--per-core" },
	{ "cpu/needs-chip/", -EINVAL, 4, "needs a value for 'ldlat'",
	  "cpu/needs-chip,ldlat=VALUE/" },
	{ "cpu/broken/", -EINVAL, 4, "'nonsense'", "" },
	{ "cpu/name='x/", -EINVAL, 9, "quote", "" },
	{ "cycles/event=1/", -EINVAL, 7, "no term 'event' for this event", "" },
	{ "cycles/period=0/", -EINVAL, 14, "expected period=N", "" },
	{ "mem:", -EINVAL, 4, "ends where an address", "" },
	{ "mem:zz", -EINVAL, 4, "unexpected 'zz': expected an address", "" },
	{ "mem:0x1000/3", -EINVAL, 11, "1, 2, 4 or 8 bytes, not 3", "" },
	{ "mem:0x1000:rr", -EINVAL, 12, "access 'r' is given twice", "" },
	{ "mem:0x1000:q", -EINVAL, 11, "no modifier 'q'", "" },
	{ "sched:nosuch", -ENOENT, 6, "no tracepoint 'nosuch' in 'sched'", "" },
	{ "sched:sched_swich", -ENOENT, 6, "no tracepoint", "did you mean 'sched:sched_switch'?" },
	{ "shced:sched_switch", -ENOENT, 0, "no tracepoint", "did you mean 'sched:sched_switch'?" },
	{ "nosuch:*", -ENOENT, 0, "no tracepoint matches 'nosuch:*'", "tally list tracepoint" },
	{ "1:x", -EINVAL, 2, "expected the event's number", "" },
	{ "#cycles", -EINVAL, 0, "unexpected '#'", "" },
	{ "cycles\xc3\xa9", -EINVAL, 6, "unexpected", "" },
};

/* Checks that the caret in the last line stands below the byte at `position`. */
static void check_caret(const char *text, const struct tally_error *err)
{
	const char *lines = strchr(err->message, '\n');
	assert_non_null(lines);
	const char *caret_line = strchr(lines + 1, '\n');
	assert_non_null(caret_line);
	assert_int_equal(strncmp(lines + 1, "    ", 4), 0);
	assert_int_equal(strncmp(lines + 5, text, strlen(text)), 0);
	assert_int_equal(strspn(caret_line + 1, " "), 4 + err->position);
	assert_string_equal(caret_line + 1 + 4 + err->position, "^");
}

static void mistake_is_pointed_at_and_explained(void **state)
{
	(void)state;
	for (size_t i = 0; i < FIXTURE_COUNT(mistakes); i++) {
		struct parsed p = parse(mistakes[i].text);
		if (p.code != mistakes[i].code || p.err.code != p.code ||
		    p.err.position != mistakes[i].position ||
		    !strstr(p.err.message, mistakes[i].message) ||
		    !strstr(p.err.hint, mistakes[i].hint))
			fail_msg("%s: %d at %d: %s\nhint: %s", mistakes[i].text, p.code,
				 p.err.position, p.err.message, p.err.hint);
		check_caret(mistakes[i].text, &p.err);
		assert_int_equal(p.list.count, 0);
		assert_int_equal(p.list.group_count, 0);
		release(&p);
	}
}

static void caret_stays_near_in_long_and_wide_texts(void **state)
{
	(void)state;
	char text[900] = "";
	for (int i = 0; i < 40; i++)
		strcat(text, "instructions:u,");
	strcat(text, "cycles:q,");
	for (int i = 0; i < 10; i++)
		strcat(text, "branches,");
	struct parsed p = parse(text);
	assert_int_equal(p.err.position, 40 * 15 + 7);
	const char *line = strchr(p.err.message, '\n') + 1, *caret_line = strchr(line, '\n') + 1;
	assert_int_equal(line[strcspn(caret_line, "^")], 'q');
	assert_true(strlen(caret_line) < 80);
	release(&p);

	/* two bytes are one column; the line break in the name is not printed as one */
	p = parse("cpu/name='\xc3\xa9\n'/z");
	line = strchr(p.err.message, '\n') + 1;
	caret_line = strchr(line, '\n') + 1;
	assert_int_equal(strcspn(caret_line, "^"), 4 + 14);
	release(&p);
}

static void every_listed_name_parses_to_itself(void **state)
{
	(void)state;
	struct parsed p = parse("cs");
	size_t count = p.catalogue.named_count;
	assert_true(count > 50);
	for (size_t i = 0; i < count; i++) {
		const struct tally_named_event *named = &p.catalogue.named[i];
		struct parsed one = parse(named->name);
		assert_int_equal(one.code, 0);
		assert_int_equal(one.list.items[0].kind, named->kind);
		assert_int_equal(one.list.items[0].attr.type, named->type);
		assert_int_equal(one.list.items[0].attr.config, named->config);
		const char *said = tally_event_name_of(&one.list.items[0].attr, &p.catalogue,
						       &p.arena);
		assert_true(!strcmp(said, named->name) ||
			    (named->alias && !strcmp(said, named->alias)));
		release(&one);
	}
	release(&p);
}

static void attr_without_a_name_gets_a_telling_one(void **state)
{
	(void)state;
	struct parsed p = parse("cs");
	static const struct { struct tally_attr attr; const char *name;
	} names[] = {
		{ { .type = TALLY_TYPE_HARDWARE, .config = TALLY_HW_CPU_CYCLES }, "cycles" },
		{ { .type = TALLY_TYPE_HARDWARE, .config = TALLY_HW_BRANCH_INSTRUCTIONS },
		  "branches" },
		{ { .type = TALLY_TYPE_HW_CACHE, .config = 0 }, "L1-dcache-loads" },
		{ { .type = TALLY_TYPE_RAW, .config = 0x1a8 }, "r1a8" },
		{ { .type = TALLY_TYPE_TRACEPOINT, .config = 101 }, "sched:sched_wakeup" },
		{ { .type = TALLY_TYPE_BREAKPOINT, .config1 = 16, .config2 = 4, .bp_type = 3 },
		  "mem:0x10/4:rw" },
		{ { .type = 20, .config = 3 }, "power/config=0x3/" },
		{ { .type = 9, .config = 3 }, "type 9 config 0x3" },
	};
	for (size_t i = 0; i < FIXTURE_COUNT(names); i++)
		assert_string_equal(tally_event_name_of(&names[i].attr, &p.catalogue, &p.arena),
				    names[i].name);
	release(&p);
}

/* Returns a field from the output of `perf stat -vv`; "" reads as 0. */
static uint64_t perf_field(const char *output, const char *field)
{
	char line[64];
	snprintf(line, sizeof(line), "\n  %s ", field);
	const char *at = strstr(output, line);
	return at ? strtoull(at + strlen(line), NULL, 0) : 0;
}

static bool run_perf(const char *expression, char *output, size_t size)
{
	char command[256];
	snprintf(command, sizeof(command), "perf stat -vv -e '%s' true 2>&1", expression);
	FILE *pipe = popen(command, "r");
	if (!pipe)
		return false;
	size_t length = fread(output, 1, size - 1, pipe);
	output[length] = '\0';
	pclose(pipe);
	char *first = strstr(output, "perf_event_attr:"),
	     *second = first ? strstr(first + 1, "perf_event_attr:") : NULL;
	if (second) /* if refused, perf tries again with user mode only */
		*second = '\0';
	return first != NULL;
}

static void attributes_are_those_of_perf(void **state)
{
	(void)state;
	static const struct { const char *name; uint64_t flag;
	} flags[] = {
		{ "exclude_user", U },    { "exclude_kernel", K },  { "exclude_hv", HV },
		{ "exclude_idle", IDLE }, { "exclude_host", HOST }, { "exclude_guest", GUEST },
		{ "pinned", PIN },        { "exclusive", EXCL },
	};
	static const char *const expressions[] = {
		"cycles",
		"cycles:u",
		"cycles:k",
		"cycles:uG",
		"cycles:GH",
		"cycles:pp",
		"cpu-clock:u",
		"cycles:I",
		"cycles:D",
		"cs:e",
		"faults:kh",
		"l1-d",
		"LLC-load-refs",
		"branch-loads",
		"node-prefetch-misses",
		"d-tlb-loads",
		"L1-icache-prefetches",
		"r1a8:u",
		"1:2:u",
		"cpu-clock:ukh",
		"mem:0x1000:wu",
		"mem:0x1000/8:rw",
		"btb-misses:ppp",
		"task-clock:HG",
		"bus-cycles:P",
	};
	char *output = malloc(1 << 16);
	if (!run_perf("cs", output, 1 << 16)) {
		free(output);
		print_message("SKIP: perf is not installed or may not count\n");
		skip();
	}
	for (size_t i = 0; i < FIXTURE_COUNT(expressions); i++) {
		struct parsed p = parse(expressions[i]);
		assert_int_equal(p.code, 0);
		assert_true(run_perf(expressions[i], output, 1 << 16));
		const struct tally_attr *attr = &p.list.items[0].attr;
		uint64_t theirs = 0;
		for (size_t j = 0; j < FIXTURE_COUNT(flags); j++)
			theirs |= perf_field(output, flags[j].name) ? flags[j].flag : 0;
		theirs |= perf_field(output, "precise_ip") << TALLY_ATTR_PRECISE_IP_SHIFT;
		if (perf_field(output, "type") != attr->type ||
		    perf_field(output, "config") != attr->config || theirs != attr->flags ||
		    perf_field(output, "bp_type") != attr->bp_type)
			fail_msg("%s: flags %#lx, perf's are %#lx\n%s", expressions[i], attr->flags,
				 theirs, output);
		release(&p);
	}
	free(output);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expression_gives_perfs_attributes),
		cmocka_unit_test(breakpoint_access_is_what_was_typed),
		cmocka_unit_test(terms_give_period_frequency_unit_and_scale),
		cmocka_unit_test(group_members_are_adjacent_and_numbered),
		cmocka_unit_test(lists_grow_over_several_expressions),
		cmocka_unit_test(globs_expand_to_every_tracepoint),
		cmocka_unit_test(mistake_is_pointed_at_and_explained),
		cmocka_unit_test(caret_stays_near_in_long_and_wide_texts),
		cmocka_unit_test(every_listed_name_parses_to_itself),
		cmocka_unit_test(attr_without_a_name_gets_a_telling_one),
		cmocka_unit_test(attributes_are_those_of_perf),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
