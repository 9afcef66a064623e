#include "task/user_stack.h"

struct finder {
	const struct tally_tasks *tasks;
	struct tally_objects *objects;
	uint32_t pid;
};

static bool find_place(void *context, uint64_t address, struct tally_unwind_place *place)
{
	const struct finder *finder = context;
	const struct tally_mapping *mapping = tally_tasks_find(finder->tasks, finder->pid, false, address);
	*place = (struct tally_unwind_place){ 0 };
	if (!mapping)
		return false;
	struct tally_object_entry *entry = tally_objects_get(finder->objects, finder->tasks, mapping->file);
	uint64_t offset = address - mapping->start + mapping->file_offset;
	if (entry && entry->object && tally_object_address_of_offset(entry->object, offset, &place->address))
		place->table = tally_objects_unwind(entry);
	return true;
}

size_t tally_user_stack_unwind(const struct tally_tasks *tasks, struct tally_objects *objects,
			       const struct tally_attr *attr, const struct tally_sample *sample,
			       uint64_t *addresses, size_t limit, enum tally_unwind_end *end)
{
	return tally_user_stack_frames(tasks, objects, attr, sample, addresses, NULL, limit, end);
}

size_t tally_user_stack_frames(const struct tally_tasks *tasks, struct tally_objects *objects,
			       const struct tally_attr *attr, const struct tally_sample *sample,
			       uint64_t *addresses, bool *is_exact, size_t limit, enum tally_unwind_end *end)
{
	struct finder finder = { tasks, objects, sample->pid };
	if (!objects->unwind_cache)
		objects->unwind_cache = tally_unwind_cache_new(); /* without memory it goes without */
	struct tally_unwind_request request = {
		.machine = objects->machine,
		.cache = objects->unwind_interpreted ? NULL : objects->unwind_cache,
		.is_interpreted = objects->unwind_interpreted,
		.space = tally_tasks_generation(tasks, sample->pid),
		.stack = sample->stack,
		.stack_size = sample->stack_dynamic_size,
		.find = find_place,
		.context = &finder,
		.is_exact = is_exact,
	};
	*end = TALLY_UNWIND_NO_RULES;
	const uint64_t abi_64bit = 2; /* PERF_SAMPLE_REGS_ABI_64 */
	if (sample->regs_user.abi != abi_64bit || !sample->regs_user.words ||
	    !tally_unwind_registers(objects->machine, sample->regs_user.words, attr->sample_regs_user, request.registers))
		return 0;
	return tally_unwind(&request, addresses, limit, end);
}
