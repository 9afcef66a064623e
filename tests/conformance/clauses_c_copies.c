/* C2: the fields of a sample from RAW on, and then all fields in their order. */
#include "ring_walk.h"

#include <errno.h>
#include <string.h>

static int raw_of_a_software_event_is_four_zeros(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	FAULT_SAMPLES(&ring, ring_faults_attr(1, TALLY_SAMPLE_RAW));
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.header.size, 16);
	CHECK_EQUAL(record.sample.raw_size, 4);
	CHECK_EQUAL(ring.bytes[1] >> 32, 0);
	return 0;
}

static int raw_of_a_tracepoint_is_its_record(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 1, TALLY_SAMPLE_RAW);
	struct ring ring;
	struct tally_record record;
	uint16_t type;
	int32_t pid;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_hits(surface, ring.fd, 1);
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_BETWEEN(record.sample.raw_size, 8, 8192);
	memcpy(&type, record.sample.raw, sizeof(type));
	memcpy(&pid, (const uint8_t *)record.sample.raw + 4, sizeof(pid));
	CHECK_EQUAL(type, attr.config);
	CHECK_EQUAL(pid, CALL(self));
	return 0;
}

static int branch_stack(struct surface *surface, uint64_t branch_type)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_BRANCH_STACK);
	attr.branch_sample_type = branch_type;
	/* without it, branches of the hypervisor are included, which needs privilege */
	attr.flags |= TALLY_ATTR_EXCLUDE_HV;
	return CALL(open, &attr, 0, -1, -1, 0);
}

static int branch_stack_of_a_software_event(struct surface *surface)
{
	CHECK_ERROR(branch_stack(surface, 1u << 3), EOPNOTSUPP); /* ANY */
	return 0;
}

static int branch_stack_without_a_kind(struct surface *surface)
{
	CHECK_ERROR(branch_stack(surface, 0), EINVAL);
	/* USER says in which mode, but not which branches */
	CHECK_ERROR(branch_stack(surface, 1), EINVAL);
	return 0;
}

static int branch_stack_of_an_unknown_kind(struct surface *surface)
{
	CHECK_ERROR(branch_stack(surface, 1ull << 40), EINVAL);
	return 0;
}

static int regs_user_has_a_word_per_bit(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_REGS_USER);
	struct ring ring;
	struct tally_record record;
	attr.sample_regs_user = 1ull << surface->pc_register | 1ull << surface->sp_register | 7;
	FAULT_SAMPLES(&ring, attr);
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.sample.regs_user.abi, 2);
	unsigned words = (unsigned)__builtin_popcountll(attr.sample_regs_user);
	CHECK_EQUAL(record.sample.regs_user.count, words);
	CHECK_EQUAL(record.header.size, 8 + 8 + words * 8);
	return 0;
}

static int regs_user_of_a_kernel_hit_are_the_users(struct surface *surface)
{
	struct tally_attr attr = ring_switch_attr(surface, 1,
						  TALLY_SAMPLE_IP | TALLY_SAMPLE_REGS_USER);
	struct ring ring;
	struct tally_record record;
	attr.sample_regs_user = 1ull << surface->pc_register;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_switch(surface, ring.fd);
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK(record.sample.ip >> 63);
	CHECK(record.sample.regs_user.words[0] != 0);
	CHECK(!(record.sample.regs_user.words[0] >> 63));
	return 0;
}

static int no_registers_einval(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_REGS_USER);
	CHECK_ERROR(CALL(open, &attr, 0, -1, -1, 0), EINVAL);
	attr.sample_type = TALLY_SAMPLE_REGS_INTR;
	CHECK_ERROR(CALL(open, &attr, 0, -1, -1, 0), EINVAL);
	return 0;
}

/* On x86 each high bit names a register (XMM), but not for software events. */
static int unknown_registers_are_refused(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_REGS_USER);
	attr.sample_regs_user = attr.sample_regs_intr = 1ull << 63;
	int user = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(user == -EINVAL || user == -EOPNOTSUPP);
	attr.sample_type = TALLY_SAMPLE_REGS_INTR;
	int interrupted = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(interrupted == -EINVAL || interrupted == -EOPNOTSUPP);
	return 0;
}

static int regs_intr_are_those_of_the_hit(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP | TALLY_SAMPLE_REGS_INTR);
	struct ring ring;
	struct tally_record record;
	attr.sample_regs_intr = 1ull << surface->pc_register;
	FAULT_SAMPLES(&ring, attr);
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.sample.regs_intr.abi, 2);
	CHECK_EQUAL(record.sample.regs_intr.words[0], record.sample.ip);
	return 0;
}

static int stack_fault(struct surface *surface, struct ring *ring, struct tally_record *record,
		       uint32_t size)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_STACK_USER);
	attr.sample_stack_user = size;
	FAULT_SAMPLES(ring, attr);
	CHECK_FOUND(ring, TALLY_RECORD_SAMPLE, record);
	return 0;
}

static int stack_user_is_the_stack(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	volatile uint64_t marks[3] = { 0x7a11c0de5eed0001, 0x7a11c0de5eed0002, 0x7a11c0de5eed0003 };
	enum { SIZE = 8192 }; /* frames are large under a sanitizer */
	CHECK_EQUAL(stack_fault(surface, &ring, &record, SIZE), 0);
	CHECK_EQUAL(record.sample.stack_size, SIZE);
	CHECK_BETWEEN(record.sample.stack_dynamic_size, 64, SIZE);
	CHECK(memmem(record.sample.stack, record.sample.stack_dynamic_size, (const void *)marks,
		     sizeof(marks)));
	return 0;
}

static int stack_user_of_size_zero_is_one_word(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	CHECK_EQUAL(stack_fault(surface, &ring, &record, 0), 0);
	CHECK_EQUAL(record.header.size, 16);
	CHECK_EQUAL(record.sample.stack_size, 0);
	return 0;
}

static int stack_user_is_cut_to_fit_a_record(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	CHECK_EQUAL(stack_fault(surface, &ring, &record, 65528), 0);
	CHECK_BETWEEN(record.sample.stack_size, 1024, 65535 - 24);
	CHECK_EQUAL(record.sample.stack_size % 8, 0);
	CHECK_EQUAL(record.header.size, 24 + record.sample.stack_size);
	CHECK(record.sample.stack_dynamic_size <= record.sample.stack_size);
	return 0;
}

static int stack_user_sizes_einval(struct surface *surface)
{
	static const uint32_t sizes[] = { 4, 4095, 65535, 65536, 1u << 31 };
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_STACK_USER);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		attr.sample_stack_user = sizes[i];
		CHECK_ERROR(CALL(open, &attr, 0, -1, -1, 0), EINVAL);
	}
	return 0;
}

/* Reads the word of a field that has no data for software events. */
static int field_word(struct surface *surface, uint64_t field, uint64_t *word)
{
	struct ring ring;
	struct tally_record record;
	FAULT_SAMPLES(&ring, ring_faults_attr(1, field));
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.header.size, 16);
	*word = ring.bytes[1];
	return 0;
}

static int weight_of_a_software_event_is_zero(struct surface *surface)
{
	uint64_t word = 1;
	CHECK_EQUAL(field_word(surface, TALLY_SAMPLE_WEIGHT, &word), 0);
	CHECK_EQUAL(word, 0);
	return 0;
}

static int weight_struct_is_one_word(struct surface *surface)
{
	uint64_t word = 1;
	CHECK_EQUAL(field_word(surface, TALLY_SAMPLE_WEIGHT_STRUCT, &word), 0);
	CHECK_EQUAL(word, 0);
	return 0;
}

static int both_weights_einval(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1,
						  TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_WEIGHT_STRUCT);
	CHECK_ERROR(CALL(open, &attr, 0, -1, -1, 0), EINVAL);
	return 0;
}

/* OP, LVL, SNOOP, LOCK and DTLB are "not available"; since 6.1, LVL_NUM too. */
static int data_src_of_a_software_event_is_not_available(struct surface *surface)
{
	const uint64_t not_available = 1ull << 0 | 1ull << 5 | 1ull << 19 | 1ull << 24 | 1ull << 26;
	uint64_t word = 0;
	CHECK_EQUAL(field_word(surface, TALLY_SAMPLE_DATA_SRC, &word), 0);
	CHECK_EQUAL(word & ~(0xfull << 33), not_available);
	return 0;
}

static int transaction_of_a_software_event_is_zero(struct surface *surface)
{
	uint64_t word = 1;
	CHECK_EQUAL(field_word(surface, TALLY_SAMPLE_TRANSACTION, &word), 0);
	CHECK_EQUAL(word, 0);
	return 0;
}

/* minor-faults hits when the page is present, page-faults before that. */
static struct tally_attr handled_faults_attr(uint64_t sample_type)
{
	struct tally_attr attr = ring_faults_attr(1, sample_type);
	attr.config = TALLY_SW_PAGE_FAULTS_MIN;
	return attr;
}

static int phys_addr_has_the_addresss_offset(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	FAULT_SAMPLES(&ring, handled_faults_attr(TALLY_SAMPLE_ADDR | TALLY_SAMPLE_PHYS_ADDR));
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK(record.sample.phys_addr != 0);
	CHECK_EQUAL(record.sample.phys_addr % surface->page_size,
		    record.sample.addr % surface->page_size);
	return 0;
}

static int phys_addr_body(struct surface *surface, void *argument)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_PHYS_ADDR);
	(void)argument;
	if (CALL(drop_privileges))
		return 2;
	return CALL(open, &attr, 0, -1, -1, 0) == -EACCES ? 0 : 1;
}

static int phys_addr_needs_privilege(struct surface *surface)
{
	pid_t task = CALL(spawn, SURFACE_PROCESS, phys_addr_body, NULL);
	CHECK(task > 0);
	CHECK_EQUAL(CALL(wait, task), 0);
	return 0;
}

static int cgroup_is_the_tasks(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	uint64_t id = 0;
	int directory = CALL(cgroup);
	if (directory == -EOPNOTSUPP)
		return CLAUSE_NOT_APPLICABLE + NA_NEEDS_VFS;
	CHECK_EQUAL(CALL(cgroup_id, directory, &id), 0);
	FAULT_SAMPLES(&ring, ring_faults_attr(1, TALLY_SAMPLE_CGROUP));
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.sample.cgroup, id);
	return 0;
}

static int data_page_size_is_the_pages(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	FAULT_SAMPLES(&ring, handled_faults_attr(TALLY_SAMPLE_ADDR | TALLY_SAMPLE_DATA_PAGE_SIZE));
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.sample.data_page_size, surface->page_size);
	return 0;
}

static int code_page_size_is_a_page_size(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	FAULT_SAMPLES(&ring, ring_faults_attr(1, TALLY_SAMPLE_CODE_PAGE_SIZE));
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_BETWEEN(record.sample.code_page_size, surface->page_size, 1ull << 30);
	CHECK_EQUAL(record.sample.code_page_size & (record.sample.code_page_size - 1), 0);
	return 0;
}

static int unknown_sample_type_einval(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_MAX);
	CHECK_ERROR(CALL(open, &attr, 0, -1, -1, 0), EINVAL);
	return 0;
}

/* --- The order, by hand: the decoder is not asked. ------------------------ */

struct walk {
	const uint64_t *words;
	unsigned at;
};

static uint64_t next_word(struct walk *walk)
{
	return walk->words[walk->at++];
}

static int words_of_the_first_fields(struct surface *surface, struct ring *ring, struct walk *walk)
{
	uint64_t id = ring_event_id(surface, ring->fd);
	CHECK_EQUAL(next_word(walk), id);                                  /* IDENTIFIER */
	CHECK(next_word(walk) != 0);                                       /* IP */
	/* TID */
	CHECK_EQUAL(next_word(walk), (uint64_t)CALL(self) << 32 | (uint32_t)CALL(process));
	CHECK_BETWEEN(next_word(walk), 1, CALL(now));                      /* TIME */
	CHECK_EQUAL(next_word(walk), CALL(fault_address, 0));              /* ADDR */
	CHECK_EQUAL(next_word(walk), id);                                  /* ID */
	CHECK_EQUAL(next_word(walk), id);                                  /* STREAM_ID */
	CHECK_BETWEEN(next_word(walk), 0, (uint64_t)CALL(cpus) - 1);       /* CPU */
	CHECK_EQUAL(next_word(walk), 1);                                   /* PERIOD */
	CHECK_EQUAL(next_word(walk), 1);                                   /* READ */
	return 0;
}

static int words_of_the_copies(struct walk *walk, uint64_t ip, unsigned stack_words)
{
	uint64_t chain = next_word(walk); /* CALLCHAIN */
	CHECK_BETWEEN(chain, 2, 200);
	CHECK_EQUAL(walk->words[walk->at], TALLY_CONTEXT_USER);
	CHECK_EQUAL(walk->words[walk->at + 1], ip);
	walk->at += (unsigned)chain;
	CHECK_EQUAL(next_word(walk), 4); /* RAW */
	CHECK_EQUAL(next_word(walk), 2); /* REGS_USER */
	CHECK_EQUAL(next_word(walk), ip);
	CHECK_EQUAL(next_word(walk), 8 * stack_words); /* STACK_USER */
	walk->at += stack_words;
	CHECK_BETWEEN(next_word(walk), 0, 8 * stack_words);
	return 0;
}

static int words_of_the_last_fields(struct surface *surface, struct walk *walk, uint64_t ip)
{
	uint64_t phys_addr, page;
	CHECK_EQUAL(next_word(walk), 0);                                /* WEIGHT */
	CHECK_EQUAL(next_word(walk) & 0x3f, 1ull << 0 | 1ull << 5);     /* DATA_SRC */
	CHECK_EQUAL(next_word(walk), 0);                                /* TRANSACTION */
	CHECK_EQUAL(next_word(walk), 2);                                /* REGS_INTR */
	CHECK_EQUAL(next_word(walk), ip);
	phys_addr = next_word(walk); /* PHYS_ADDR */
	CHECK_EQUAL(phys_addr % surface->page_size, CALL(fault_address, 0) % surface->page_size);
	next_word(walk);                                                /* CGROUP */
	CHECK_EQUAL(next_word(walk), surface->page_size);               /* DATA_PAGE_SIZE */
	page = next_word(walk);                                         /* CODE_PAGE_SIZE */
	CHECK_BETWEEN(page, surface->page_size, 1ull << 30);
	return 0;
}

static int fields_stand_in_their_order(struct surface *surface)
{
	struct tally_attr attr = handled_faults_attr(
		TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME |
		TALLY_SAMPLE_ADDR | TALLY_SAMPLE_ID | TALLY_SAMPLE_STREAM_ID | TALLY_SAMPLE_CPU |
		TALLY_SAMPLE_PERIOD | TALLY_SAMPLE_READ | TALLY_SAMPLE_CALLCHAIN |
		TALLY_SAMPLE_RAW | TALLY_SAMPLE_REGS_USER | TALLY_SAMPLE_STACK_USER |
		TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_DATA_SRC | TALLY_SAMPLE_TRANSACTION |
		TALLY_SAMPLE_REGS_INTR | TALLY_SAMPLE_PHYS_ADDR | TALLY_SAMPLE_CGROUP |
		TALLY_SAMPLE_DATA_PAGE_SIZE | TALLY_SAMPLE_CODE_PAGE_SIZE);
	struct ring ring;
	struct tally_record record;
	int failed;
	attr.sample_regs_user = attr.sample_regs_intr = 1ull << surface->pc_register;
	attr.sample_stack_user = 64;
	FAULT_SAMPLES(&ring, attr);
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	struct walk walk = { ring.bytes, 1 };
	uint64_t ip = ring.bytes[2];
	if ((failed = words_of_the_first_fields(surface, &ring, &walk)) ||
	    (failed = words_of_the_copies(&walk, ip, 8)) ||
	    (failed = words_of_the_last_fields(surface, &walk, ip)))
		return failed;
	CHECK_EQUAL(record.header.size, 8 * walk.at);
	return 0;
}

enum { KERNEL_HITS = SURFACE_TRACEPOINTS | SURFACE_PRIVILEGED };

const struct clause clauses_c_copies[] = {
	{ "C2.raw_without_data", "RAW of an event without data is four bytes of zero.", 0,
	  raw_of_a_software_event_is_four_zeros },
	{ "C2.raw_of_a_tracepoint", "RAW of a tracepoint is its record: type and pid are right.",
	  KERNEL_HITS, raw_of_a_tracepoint_is_its_record },
	{ "C2.branch_stack_software_eopnotsupp", "BRANCH_STACK of a software event: EOPNOTSUPP.", 0,
	  branch_stack_of_a_software_event },
	{ "C2.branch_stack_without_kind_einval",
	  "BRANCH_STACK that doesn't tell which branches: EINVAL.", 0,
	  branch_stack_without_a_kind },
	{ "C2.branch_stack_unknown_kind_einval", "BRANCH_STACK of an unknown kind: EINVAL.", 0,
	  branch_stack_of_an_unknown_kind },
	{ "C2.regs_user", "REGS_USER is an ABI and a word for each bit of the mask.", 0,
	  regs_user_has_a_word_per_bit },
	{ "C2.regs_user_of_a_kernel_hit",
	  "REGS_USER of a hit in the kernel are those of user mode.", KERNEL_HITS,
	  regs_user_of_a_kernel_hit_are_the_users },
	{ "C2.no_registers_einval", "REGS_USER or REGS_INTR without a register: EINVAL.", 0,
	  no_registers_einval },
	{ "C2.unknown_registers_are_refused",
	  "Unknown registers: EINVAL, or EOPNOTSUPP for another PMU's.", 0,
	  unknown_registers_are_refused },
	{ "C2.regs_intr", "REGS_INTR are those at the hit.", 0, regs_intr_are_those_of_the_hit },
	{ "C2.stack_user", "STACK_USER is the stack from its pointer up.", 0,
	  stack_user_is_the_stack },
	{ "C2.stack_user_of_size_zero", "STACK_USER of no bytes is a size alone.", 0,
	  stack_user_of_size_zero_is_one_word },
	{ "C2.stack_user_is_cut_to_fit", "STACK_USER is cut so that the record stays below 64 KiB.",
	  0, stack_user_is_cut_to_fit_a_record },
	{ "C2.stack_user_sizes_einval", "STACK_USER of odd sizes or of 64 KiB: EINVAL.", 0,
	  stack_user_sizes_einval },
	{ "C2.weight", "WEIGHT of a software event is 0.", 0, weight_of_a_software_event_is_zero },
	{ "C2.weight_struct", "WEIGHT_STRUCT stands in WEIGHT's place, one word.", 0,
	  weight_struct_is_one_word },
	{ "C2.both_weights_einval", "WEIGHT and WEIGHT_STRUCT together: EINVAL.", 0,
	  both_weights_einval },
	{ "C2.data_src", "DATA_SRC of a software event says that it is not available.", 0,
	  data_src_of_a_software_event_is_not_available },
	{ "C2.transaction", "TRANSACTION of a software event is 0.", 0,
	  transaction_of_a_software_event_is_zero },
	{ "C2.phys_addr", "PHYS_ADDR has ADDR's offset in the page.", SURFACE_PRIVILEGED,
	  phys_addr_has_the_addresss_offset },
	{ "C2.phys_addr_needs_privilege", "PHYS_ADDR without privilege: EACCES.", 0,
	  phys_addr_needs_privilege },
	{ "C2.cgroup", "CGROUP is the id of the task's control group.", 0, cgroup_is_the_tasks },
	{ "C2.data_page_size", "DATA_PAGE_SIZE is that of ADDR's page.", 0,
	  data_page_size_is_the_pages },
	{ "C2.code_page_size", "CODE_PAGE_SIZE is that of IP's page.", 0,
	  code_page_size_is_a_page_size },
	{ "C2.unknown_field_einval", "An unknown bit of sample_type: EINVAL.", 0,
	  unknown_sample_type_einval },
	{ "C2.order", "The fields stand in their order.", SURFACE_PRIVILEGED,
	  fields_stand_in_their_order },
	{ NULL, NULL, 0, NULL },
};
