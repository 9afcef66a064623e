/* Attributes and filters for random calls.  Most are valid, so that something happens; each of the
 * others has one fault. */
#include "differential.h"

#include <string.h>

/* Fields with the same size everywhere.  Call chains are missing, since their lengths differ. */
#define SAMPLE_BITS \
	(TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | TALLY_SAMPLE_ADDR | \
	 TALLY_SAMPLE_READ | TALLY_SAMPLE_ID | TALLY_SAMPLE_CPU | TALLY_SAMPLE_PERIOD | \
	 TALLY_SAMPLE_STREAM_ID | TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_DATA_SRC | \
	 TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_TRANSACTION | TALLY_SAMPLE_PHYS_ADDR | \
	 TALLY_SAMPLE_RAW)
#define SANE_FLAGS \
	(TALLY_ATTR_DISABLED | TALLY_ATTR_INHERIT | TALLY_ATTR_EXCLUDE_KERNEL | \
	 TALLY_ATTR_EXCLUDE_HV | TALLY_ATTR_ENABLE_ON_EXEC | TALLY_ATTR_TASK | \
	 TALLY_ATTR_WATERMARK | TALLY_ATTR_SAMPLE_ID_ALL | TALLY_ATTR_WRITE_BACKWARD | \
	 TALLY_ATTR_COMM)
/* Flags that would send signals to this process, or write records about the C library's or other
 * programs' work. */
#define LEFT_OUT_FLAGS \
	(TALLY_ATTR_SIGTRAP | TALLY_ATTR_MMAP | TALLY_ATTR_MMAP2 | TALLY_ATTR_MMAP_DATA | \
	 TALLY_ATTR_CONTEXT_SWITCH | TALLY_ATTR_KSYMBOL | TALLY_ATTR_BPF_EVENT | \
	 TALLY_ATTR_TEXT_POKE | TALLY_ATTR_NAMESPACES | TALLY_ATTR_CGROUP | \
	 TALLY_ATTR_DEFER_CALLCHAIN | TALLY_ATTR_DEFER_OUTPUT)

static bool is_clock(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_SOFTWARE &&
	       (attr->config == TALLY_SW_CPU_CLOCK || attr->config == TALLY_SW_TASK_CLOCK);
}

static void choose_event(struct differential *d, struct tally_attr *attr)
{
	static const uint64_t quiet[] = { TALLY_SW_DUMMY, TALLY_SW_BPF_OUTPUT,
					  TALLY_SW_ALIGNMENT_FAULTS };
	static const uint64_t busy[] = { TALLY_SW_CPU_CLOCK,      TALLY_SW_TASK_CLOCK,
					 TALLY_SW_PAGE_FAULTS,    TALLY_SW_CONTEXT_SWITCHES,
					 TALLY_SW_CPU_MIGRATIONS, TALLY_SW_PAGE_FAULTS_MAJ };
	static const uint32_t access[] = { TALLY_BREAKPOINT_W, TALLY_BREAKPOINT_W,
					   TALLY_BREAKPOINT_R | TALLY_BREAKPOINT_W };
	if (d->process) {
		choose_process_event(d, attr);
		return;
	}
	switch (below(d, 8)) {
	case 0: case 1: case 2: case 3:
		attr->type = TALLY_TYPE_TRACEPOINT;
		attr->config = (uint64_t)d->hit_id;
		break;
	case 4: case 5:
		attr->type = TALLY_TYPE_BREAKPOINT;
		attr->bp_type = ONE_OF(d, access);
		attr->config1 = d->surface->ops->watched_address(d->surface, TALLY_BREAKPOINT_W);
		attr->config2 = 4;
		break;
	case 6:
		attr->type = TALLY_TYPE_SOFTWARE;
		attr->config = ONE_OF(d, quiet);
		break;
	default:
		attr->type = TALLY_TYPE_SOFTWARE;
		attr->config = ONE_OF(d, busy);
	}
}

/* A clock stops the machine if its period is shorter than the kernel's work for one tick.  In a
 * virtual machine 10 us, the kernel's minimum, are too short. */
uint64_t choose_period(struct differential *d, const struct tally_attr *attr)
{
	static const uint64_t periods[] = { 0, 1, 1, 2, 3, 7, 100 },
			      slow[] = { 0, 10000000, 30000000, 1ull << 40 };
	if (is_clock(attr))
		return attr->flags & TALLY_ATTR_FREQ ? 1 + below(d, 500) : ONE_OF(d, slow);
	return ONE_OF(d, periods);
}

static void choose_rest(struct differential *d, struct tally_attr *attr)
{
	attr->sample_period = choose_period(d, attr);
	attr->sample_type = d->uniform ? d->sample_type : draw(d) & draw(d) & SAMPLE_BITS;
	attr->read_format = d->uniform ? d->read_format : draw(d) & (TALLY_FORMAT_MAX - 1);
	attr->flags = draw(d) & draw(d) & SANE_FLAGS;
	if (attr->flags & TALLY_ATTR_INHERIT && one_in(d, 4))
		attr->flags |= TALLY_ATTR_INHERIT_THREAD;
	if (attr->flags & TALLY_ATTR_INHERIT && one_in(d, 4))
		attr->flags |= TALLY_ATTR_INHERIT_STAT;
	if (d->uniform)
		attr->flags |= TALLY_ATTR_SAMPLE_ID_ALL;
	if (one_in(d, 3))
		attr->wakeup_events = below(d, 4);
	if (attr->flags & TALLY_ATTR_WATERMARK)
		attr->wakeup_events = below(d, 600);
	if (one_in(d, 10))
		attr->flags |= one_in(d, 2) ? TALLY_ATTR_PINNED : TALLY_ATTR_EXCLUSIVE;
}

/* Makes one thing wrong or odd. */
static void spoil(struct differential *d, struct tally_attr *attr)
{
	static const uint32_t sizes[] = { 0,   8,   63,  64,  65,   72,   80, 96,
					  104, 112, 120, 128, 4096, 4097, ~0u };
	switch (below(d, 21)) {
	case 0: attr->size = ONE_OF(d, sizes); break;
	case 1:
		attr->config ^= 1ull << (attr->type == TALLY_TYPE_TRACEPOINT ? 16 + below(d, 48)
									     : below(d, 64));
		break;
	case 2: attr->sample_type |= 1ull << below(d, 64); break;
	case 3: attr->read_format |= 1ull << below(d, 64); break;
	case 4: attr->flags |= 1ull << (40 + below(d, 24)); break;
	case 5: attr->sample_period |= 1ull << 63; break;
	case 6:
		attr->flags |= TALLY_ATTR_FREQ;
		attr->sample_period = is_clock(attr) ? choose_period(d, attr)
						     : 1ull << below(d, 40);
		break;
	case 7:
		attr->sample_type |= TALLY_SAMPLE_STACK_USER;
		attr->sample_stack_user = below(d, 70000);
		break;
	case 8:
		attr->sample_type |= TALLY_SAMPLE_REGS_USER;
		attr->sample_regs_user = draw(d);
		break;
	case 9:
		attr->sample_type |= TALLY_SAMPLE_WEIGHT_STRUCT | (draw(d) & TALLY_SAMPLE_WEIGHT);
		break;
	case 10: attr->reserved_2 = (uint16_t)below(d, 2); break;
	case 11: attr->bp_type = below(d, 9); break;
	case 12: attr->config2 = below(d, 10); break;
	case 13: attr->sample_max_stack = (uint16_t)below(d, 700); break;
	case 14: attr->flags |= (uint64_t)below(d, 4) << TALLY_ATTR_PRECISE_IP_SHIFT; break;
	case 15:
		attr->flags |= TALLY_ATTR_USE_CLOCKID;
		attr->clockid = (int32_t)below(d, 13) - 1;
		break;
	case 16:
		attr->sample_type |= TALLY_SAMPLE_BRANCH_STACK;
		attr->branch_sample_type = draw(d) & draw(d);
		break;
	case 17: attr->flags |= 1ull << below(d, 40); break;
	case 18: attr->config1 += below(d, 5); break;
	case 19: attr->flags |= TALLY_ATTR_EXCLUDE_USER; break;
	default: attr->flags |= TALLY_ATTR_REMOVE_ON_EXEC; break;
	}
}

void choose_attr(struct differential *d, struct slot *slot)
{
	struct tally_attr *attr = &slot->attr;
	*attr = (struct tally_attr){ .size = sizeof(*attr) };
	do
		choose_event(d, attr);
	/* the machine has four breakpoints for all, including other programs */
	while (attr->type == TALLY_TYPE_BREAKPOINT && slot->target == OF_CPU);
	choose_rest(d, attr);
	if (one_in(d, 6))
		spoil(d, attr);
	attr->flags &= ~LEFT_OUT_FLAGS;
	if (is_clock(attr) && attr->sample_period && attr->sample_period < 1000000 &&
	    !(attr->flags & TALLY_ATTR_FREQ))
		attr->sample_period = 1000000; /* config was made invalid */
	if (is_clock(attr) && attr->flags & TALLY_ATTR_FREQ && attr->sample_period > 500 &&
	    attr->sample_period < 1 << 20)
		attr->sample_period = 500;
	bool busy = attr->type > TALLY_TYPE_BREAKPOINT ||
		    (attr->type == TALLY_TYPE_TRACEPOINT && attr->config != (uint64_t)d->hit_id) ||
		    (attr->type == TALLY_TYPE_SOFTWARE && attr->config != TALLY_SW_DUMMY &&
		     attr->config != TALLY_SW_BPF_OUTPUT &&
		     attr->config != TALLY_SW_ALIGNMENT_FAULTS);
	/* Other tasks' work on the CPU counts too. */
	slot->determined = !busy &&
			   !(slot->target == OF_CPU && attr->type == TALLY_TYPE_TRACEPOINT);
	slot->stream_determined = (slot->determined && !(attr->flags & TALLY_ATTR_FREQ)) ||
				  !attr->sample_period;
	/* CPU-wide side-band records describe all tasks there. */
	if (slot->target == OF_CPU && attr->flags & (TALLY_ATTR_TASK | TALLY_ATTR_COMM))
		slot->stream_determined = false;
	if (attr->sample_type & ~SAMPLE_BITS)
		slot->stream_determined = false;
	if (d->process)
		determine_process_event(slot);
}

void print_attr(struct differential *d, const struct tally_attr *attr)
{
	bool tracepoint = attr->type == TALLY_TYPE_TRACEPOINT;
	fprintf(d->out,
		" type=%u config=%llx period=%llu sample=%llx read=%llx flags=%llx size=%u "
		"wakeup=%u bp=%u,%llu stack=%u regs=%llx clock=%d branch=%llx",
		attr->type,
		(unsigned long long)(tracepoint ? attr->config ^ (uint64_t)d->hit_id
						: attr->config),
		(unsigned long long)attr->sample_period, (unsigned long long)attr->sample_type,
		(unsigned long long)attr->read_format, (unsigned long long)attr->flags, attr->size,
		attr->wakeup_events, attr->bp_type, (unsigned long long)attr->config2,
		attr->sample_stack_user, (unsigned long long)attr->sample_regs_user, attr->clockid,
		(unsigned long long)attr->branch_sample_type);
}

/* --- filters -------------------------------------------------------------- */

static void append(struct filter_text *filter, const char *given, const char *shown)
{
	size_t given_length = strlen(filter->given), shown_length = strlen(filter->shown);
	snprintf(filter->given + given_length, sizeof(filter->given) - given_length, "%s", given);
	snprintf(filter->shown + shown_length, sizeof(filter->shown) - shown_length, "%s", shown);
}

static void append_both(struct filter_text *filter, const char *text)
{
	append(filter, text, text);
}

static void append_number(struct filter_text *filter, long value, const char *shown)
{
	char text[32];
	snprintf(text, sizeof(text), "%ld", value);
	append(filter, text, shown ? shown : text);
}

static void append_pid(struct differential *d, struct filter_text *filter)
{
	bool self = one_in(d, 2);
	append_number(filter, self ? d->self : d->child->task, self ? "SELF" : "CHILD");
}

static void append_term(struct differential *d, struct filter_text *filter)
{
	static const char *const operators[] = { " == ", " == ", "!=",  " < ", ">=",
						 " & ",  "~",    " = ", " > ", "<=" };
	static const long numbers[] = { 110, 110, 0, 1, -1, 39, 111, 109, 0x6e };
	static const char *const odd[] = {
		"110x", "0x6e", "\"110\"", "abc", "", "0156", "99999999999999999999"
	};
	if (one_in(d, 6))
		append_both(filter, "!");
	unsigned field = below(d, 8);
	if (field < 3)
		append_both(filter, "common_pid");
	else if (field == 3)
		append(filter, "common_type", "common_type");
	else if (field == 4)
		append_both(filter, one_in(d, 2) ? "common_flags" : "nobody");
	else
		append(filter, d->field, "FIELD");
	append_both(filter, ONE_OF(d, operators));
	if (field != 3 && one_in(d, 12))
		append_both(filter, ONE_OF(d, odd));
	else if (field < 3)
		append_pid(d, filter);
	else if (field == 3)
		append_number(filter, d->hit_id, "TYPE");
	else
		append_number(filter, ONE_OF(d, numbers), NULL);
}

static void append_expression(struct differential *d, struct filter_text *filter, unsigned depth)
{
	unsigned terms = 1 + below(d, depth ? 3 : 1);
	for (unsigned i = 0; i < terms; i++) {
		if (i && one_in(d, 12))
			append_both(filter, " and ");
		else if (i)
			append_both(filter, one_in(d, 2) ? " && " : "||");
		if (depth && one_in(d, 3)) {
			append_both(filter, one_in(d, 4) ? "!(" : "(");
			append_expression(d, filter, depth - 1);
			append_both(filter, one_in(d, 15) ? "" : ")");
		} else {
			append_term(d, filter);
		}
	}
}

void choose_filter(struct differential *d, struct filter_text *filter)
{
	*filter = (struct filter_text){ .given = "" };
	append_expression(d, filter, 2);
	if (one_in(d, 20))
		append_both(filter, ")"); /* see docs/conformance.md: a trailing operator */
}
