#include "recorder/map_eras.h"

#include "base/vector.h"

#include <errno.h>

/* Returns NULL if memory runs out. */
static struct tally_map_era *era_of(struct tally_map_eras *eras, uint32_t pid)
{
	bool added;
	uint64_t *slot = tally_map_put(&eras->processes, pid, &added);
	if (slot && added) {
		*slot = eras->items.count;
		if (tally_vector_push(&eras->items, (struct tally_map_era){ 0 }) < 0) {
			tally_map_remove(&eras->processes, pid);
			return NULL;
		}
	}
	return slot ? &eras->items.items[*slot] : NULL;
}

static int change(struct tally_map_eras *eras, struct tally_map_era *era,
		  const struct tally_record *record)
{
	if (!era)
		return -ENOMEM;
	eras->changes++;
	era->number++;
	if (record->sample_id.time > era->since_ns)
		era->since_ns = record->sample_id.time;
	return 1;
}

static int change_process(struct tally_map_eras *eras, uint32_t pid,
			  const struct tally_record *record)
{
	bool is_kernel = pid == UINT32_MAX;
	return change(eras, is_kernel ? &eras->kernel : era_of(eras, pid), record);
}

int tally_map_eras_see(struct tally_map_eras *eras, const struct tally_record *record)
{
	switch (record->header.type) {
	case TALLY_RECORD_MMAP:
	case TALLY_RECORD_MMAP2:
		return change_process(eras, record->mmap.pid, record);
	case TALLY_RECORD_FORK:
		return record->task.pid == record->task.parent_pid
			       ? 1
			       : change_process(eras, record->task.pid, record);
	case TALLY_RECORD_COMM: /* an exec changes mappings only by the MMAPs that follow */
	case TALLY_RECORD_EXIT:
	case TALLY_RECORD_NAMESPACES:
		return 1;
	case TALLY_RECORD_KSYMBOL:
	case TALLY_RECORD_BPF_EVENT:
	case TALLY_RECORD_TEXT_POKE:
		return change(eras, &eras->kernel, record);
	case TALLY_RECORD_LOST:
	case TALLY_RECORD_LOST_SAMPLES:
	case TALLY_RECORD_THROTTLE:
	case TALLY_RECORD_UNTHROTTLE:
	case TALLY_RECORD_READ:
	case TALLY_RECORD_SWITCH:
	case TALLY_RECORD_SWITCH_CPU_WIDE:
	case TALLY_RECORD_CGROUP:
		return 0;
	}
	return -ENOTSUP;
}

struct tally_map_era tally_map_eras_of(const struct tally_map_eras *eras, uint32_t pid)
{
	const uint64_t *slot = tally_map_get(&eras->processes, pid);
	return slot ? eras->items.items[*slot] : (struct tally_map_era){ 0 };
}

void tally_map_eras_release(struct tally_map_eras *eras)
{
	tally_map_release(&eras->processes);
	tally_vector_release(&eras->items);
	*eras = (struct tally_map_eras){ 0 };
}
