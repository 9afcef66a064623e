/* Plays the tool's part of a plan: a process that maps the plan by its path, counts and writes
 * records. */
#ifndef TALLY_SIMULATED_FIXTURE_H
#define TALLY_SIMULATED_FIXTURE_H

#include "test.h"

#include "abi/abi.h"
#include "provider/provider_internal.h"
#include "provider/simulated.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct fake_tool {
	struct vsim_plan *plan;
	size_t bytes;
	int ring;
	struct tally_user_page *page;
};

static inline void fake_tool_open(struct fake_tool *tool, const char *path)
{
	struct stat st;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	tool->bytes = (size_t)st.st_size;
	void *map = mmap(NULL, tool->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	close(fd);
	tool->plan = map;
	tool->ring = -1;
	tool->page = NULL;
	assert_true(tool->plan->shared.magic == TALLY_PLAN_MAGIC &&
		    tool->plan->shared.version == TALLY_PLAN_VERSION);
	assert_int_equal(tool->plan->shared.size, tool->bytes);
	__atomic_fetch_add(&tool->plan->shared.processes, 1, __ATOMIC_SEQ_CST);
}

static inline void fake_tool_close(struct fake_tool *tool)
{
	munmap(tool->plan, tool->bytes);
}

static inline void fake_tool_news(struct fake_tool *tool)
{
	__atomic_fetch_add(&tool->plan->shared.news, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &tool->plan->shared.news, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static inline bool fake_tool_take_ring(struct fake_tool *tool)
{
	for (int i = 0; i < TALLY_PLAN_RINGS; i++) {
		uint32_t is = TALLY_PLAN_RING_FREE;
		if (!__atomic_compare_exchange_n(&tool->plan->shared.rings[i].state, &is,
						 TALLY_PLAN_RING_TAKEN, false, __ATOMIC_SEQ_CST,
						 __ATOMIC_SEQ_CST))
			continue;
		tool->ring = i;
		tool->page = (void *)((char *)tool->plan +
				      tally_plan_ring_offset(&tool->plan->shared, (unsigned)i));
		tool->plan->shared.rings[i].task = getpid();
		return true;
	}
	return false;
}

/* Writes one record when there is room.  Returns false if tally has stopped reading. */
static inline bool fake_tool_write(struct fake_tool *tool, const void *record, size_t size)
{
	struct tally_plan_ring *ring = &tool->plan->shared.rings[tool->ring];
	size_t whole = (size_t)tool->plan->shared.ring_pages * TALLY_PLAN_PAGE, at;
	uint8_t *data = (uint8_t *)tool->page + TALLY_PLAN_PAGE;
	while (tool->page->data_head + size -
		       __atomic_load_n(&tool->page->data_tail, __ATOMIC_ACQUIRE) >
	       whole) {
		if (__atomic_load_n(&tool->plan->shared.closed, __ATOMIC_SEQ_CST))
			return false;
		__atomic_store_n(&ring->room_wanted, 1, __ATOMIC_SEQ_CST);
		if (tool->page->data_head + size -
			    __atomic_load_n(&tool->page->data_tail, __ATOMIC_ACQUIRE) <=
		    whole)
			break;
		fake_tool_news(tool);
		syscall(SYS_futex, &ring->room_wanted, FUTEX_WAIT, 1, NULL, NULL, 0);
	}
	at = tool->page->data_head & (whole - 1);
	for (size_t i = 0; i < size; i++)
		data[(at + i) & (whole - 1)] = ((const uint8_t *)record)[i];
	__atomic_store_n(&tool->page->data_head, tool->page->data_head + size, __ATOMIC_RELEASE);
	return true;
}

static inline void fake_tool_finish(struct fake_tool *tool)
{
	__atomic_store_n(&tool->plan->shared.rings[tool->ring].state, TALLY_PLAN_RING_FINISHED,
			 __ATOMIC_SEQ_CST);
	fake_tool_news(tool);
}

/* A sample with its event's id first, and a word that identifies the sample. */
struct fake_sample {
	struct tally_record_header header;
	uint64_t id, number, padding[14];
};

static inline struct fake_sample fake_sample(uint64_t id, uint64_t number, unsigned words)
{
	return (struct fake_sample){ .header = { TALLY_RECORD_SAMPLE, 0,
						 (uint16_t)(24 + 8 * words) },
				     .id = id,
				     .number = number };
}

/* A COMM record without a name, with the id behind it. */
struct fake_comm {
	struct tally_record_header header;
	uint64_t number, id;
};

static inline struct fake_comm fake_comm(uint64_t id, uint64_t number)
{
	return (struct fake_comm){ { TALLY_RECORD_COMM, 0, sizeof(struct fake_comm) }, number, id };
}

#endif
