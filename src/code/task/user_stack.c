/* Connects the unwinder to samples: finds the rules for an address, unwinds copied stacks, and
 * tells how large a copy should have been.  Then it repairs the kernel's own chains: their
 * innermost frames, and the frames beyond Go's stack switches. */
#include "task/user_stack.h"

#include "task/jit.h"

#include <string.h>
#include <time.h>

struct finder {
	const struct tally_tasks *tasks;
	struct tally_objects *objects;
	uint32_t pid;
	uint64_t time_ns; /* UINT64_MAX: now */
};

/* Finds code that the process made itself.  Its rules, if the dump has some, apply only to this
 * function. */
static bool find_jit_place(const struct finder *finder, uint64_t address,
			   struct tally_unwind_place *place)
{
	uint32_t number;
	if (!tally_jits_find(finder->tasks, finder->pid, address, &number, &place->address))
		return false;
	const struct tally_jit *jit = &finder->tasks->jits->items.items[number];
	const struct tally_jit_function *function = tally_jit_dump_function(jit->dump,
									    place->address);
	if (function) {
		place->table = tally_jits_unwind(jit, function);
		place->address += TALLY_JIT_RULES_AT - function->base;
	}
	return true;
}

/* True if the process's memory has the code that the dump gives for this address.  Also true when
 * that memory can't be read, as after the process has ended: then the dump's times decide. */
static bool is_code_there(const struct finder *finder, uint64_t address,
			  const struct tally_live_rules *rules)
{
	uint8_t code[sizeof(rules->code)];
	struct tally_made_code *memory = finder->objects->made_code;
	if (!memory)
		return true;
	size_t size = tally_made_code_read(memory, finder->pid, address + 1, code,
					   rules->code_size);
	return !memcmp(code, rules->code, size);
}

/* While recording: finds code that the process made, in the dump that it writes. */
static bool find_live_place(const struct finder *finder, uint64_t address,
			    struct tally_unwind_place *place)
{
	struct tally_live_jits *jits = finder->objects->live_jits;
	struct tally_live_rules rules;
	if (!jits || !tally_live_jits_has(jits, finder->pid))
		return false;
	place->is_brief = true;
	if (!tally_live_jits_find(jits, finder->pid, address, finder->time_ns, &rules) ||
	    !is_code_there(finder, address, &rules))
		return false;
	place->table = rules.table;
	place->address = rules.address;
	return true;
}

/* True for the file that SBCL maps its code from, which is no ELF object. */
static bool is_lisp_core(const char *path)
{
	static const char NAME[] = "/sbcl.core";
	size_t length = strlen(path);
	return length >= sizeof(NAME) - 1 && !strcmp(path + length - (sizeof(NAME) - 1), NAME);
}

static bool find_place(void *context, uint64_t address, struct tally_unwind_place *place)
{
	const struct finder *finder = context;
	const struct tally_mapping *mapping = tally_tasks_find(finder->tasks, finder->pid, false,
							       address);
	*place = (struct tally_unwind_place){ 0 };
	bool is_private = !mapping || finder->tasks->files.items[mapping->file].pid;
	if (is_private && (find_jit_place(finder, address, place) ||
			   find_live_place(finder, address, place)))
		return true;
	if (!mapping)
		return false;
	struct tally_object_entry *entry = tally_objects_get(finder->objects, finder->tasks,
							     mapping->file);
	place->below = address - mapping->start;
	place->above = mapping->end - 1 - address;
	uint64_t offset = address - mapping->start + mapping->file_offset;
	if (entry && entry->object &&
	    tally_object_address_of_offset(entry->object, offset, &place->address))
		place->table = tally_objects_unwind(entry);
	else if (!place->table && !finder->tasks->files.items[mapping->file].pid)
		place->has_links = is_lisp_core(tally_tasks_path(finder->tasks, mapping->file));
	return true;
}

static size_t read_made_code(void *context, uint64_t address, void *out, size_t size)
{
	const struct finder *finder = context;
	return tally_made_code_read(finder->objects->made_code, finder->pid, address, out, size);
}

static struct tally_unwind_request request_of(struct finder *finder)
{
	struct tally_objects *objects = finder->objects;
	if (!objects->unwind_cache)
		/* NULL without memory: the cache is optional */
		objects->unwind_cache = tally_unwind_cache_new();
	return (struct tally_unwind_request){
		.machine = objects->machine,
		.cache = objects->unwind_interpreted ? NULL : objects->unwind_cache,
		.is_interpreted = objects->unwind_interpreted,
		.space = tally_tasks_generation(finder->tasks, finder->pid),
		.find = find_place,
		.read_code = objects->made_code ? read_made_code : NULL,
		.memo = objects->made_code ? tally_made_code_memo(objects->made_code) : NULL,
		.has_hotspot = tally_tasks_has_hotspot(finder->tasks, finder->pid),
		.context = finder,
	};
}

/* Returns the sample's time on the clock of JIT dumps (CLOCK_MONOTONIC), or UINT64_MAX if the event
 * uses another clock or its samples have no time. */
static uint64_t time_of(const struct tally_attr *attr, const struct tally_sample *sample)
{
	bool is_monotonic = attr->flags & TALLY_ATTR_USE_CLOCKID &&
			    attr->clockid == CLOCK_MONOTONIC;
	if (is_monotonic && attr->sample_type & TALLY_SAMPLE_TIME)
		return sample->time;
	return UINT64_MAX;
}

/* A 32-bit process on an x86-64 machine has i386's registers. */
static enum tally_unwind_machine machine_of(const struct tally_objects *objects,
					    const struct tally_sample *sample)
{
	return tally_unwind_machine_of_registers(objects->machine, sample->regs_user.abi);
}

static bool has_registers(const struct tally_sample *sample)
{
	const uint64_t abi_64bit = 2; /* PERF_SAMPLE_REGS_ABI_64 */
	return sample->regs_user.abi == abi_64bit && sample->regs_user.words;
}

size_t tally_user_stack_frames(const struct tally_tasks *tasks, struct tally_objects *objects,
			       const struct tally_attr *attr, const struct tally_sample *sample,
			       uint64_t *addresses, bool *is_exact, size_t limit,
			       enum tally_unwind_end *end, struct tally_unwind_extent *extent)
{
	const struct tally_user_stack_walk walk = { .is_exact = is_exact, .extent = extent };
	return tally_user_stack_walk(tasks, objects, attr, sample, &walk, addresses, limit, end);
}

size_t tally_user_stack_walk(const struct tally_tasks *tasks, struct tally_objects *objects,
			     const struct tally_attr *attr, const struct tally_sample *sample,
			     const struct tally_user_stack_walk *walk, uint64_t *addresses,
			     size_t limit, enum tally_unwind_end *end)
{
	struct finder finder = { tasks, objects, sample->pid, time_of(attr, sample) };
	struct tally_unwind_request request = request_of(&finder);
	request.stack = sample->stack;
	request.stack_size = sample->stack_dynamic_size;
	if (walk->stack) {
		request.stack = walk->stack;
		request.stack_size = walk->stack_size;
	}
	request.other = walk->other;
	request.chain = walk->chain;
	request.skips_c = walk->skips_c;
	request.is_exact = walk->is_exact;
	request.stack_pointers = walk->stack_pointers;
	request.extent = walk->extent;
	request.machine = machine_of(objects, sample);
	*end = TALLY_UNWIND_NO_RULES;
	if (!sample->regs_user.words ||
	    !tally_unwind_registers(request.machine, sample->regs_user.words,
				    attr->sample_regs_user, request.registers))
		return 0;
	return tally_unwind(&request, addresses, limit, end);
}

/* Returns the end of the mapping that contains the stack.  The main thread's stack grows downwards
 * without a record, so it is recognised by its name and by being near. */
static uint64_t stack_mapping_end(const struct tally_tasks *tasks, uint32_t pid, uint64_t sp,
				  uint64_t missed)
{
	const struct tally_mapping *at_sp = tally_tasks_find(tasks, pid, false, sp);
	const struct tally_mapping *mapping = at_sp;
	if (!mapping)
		mapping = tally_tasks_find(tasks, pid, false, missed);
	bool is_stack = mapping &&
			(at_sp || !strcmp(tally_tasks_path(tasks, mapping->file), "[stack]"));
	if (is_stack && mapping->end > missed)
		return mapping->end;
	return 0;
}

struct tally_user_stack_need tally_user_stack_needed(const struct tally_tasks *tasks,
						     const struct tally_objects *objects,
						     const struct tally_attr *attr,
						     const struct tally_sample *sample,
						     const struct tally_unwind_extent *extent,
						     uint64_t top)
{
	enum { WORD = 8 };
	const uint64_t far = (uint64_t)1 << 30;
	uint64_t registers[TALLY_UNWIND_REGISTERS];
	struct tally_user_stack_need need = { 0 };
	if (sample->stack_dynamic_size < sample->stack_size || !extent->missed ||
	    !tally_unwind_registers(machine_of(objects, sample), sample->regs_user.words,
				    attr->sample_regs_user, registers))
		return need;
	uint64_t sp = registers[tally_unwind_stack_pointer(machine_of(objects, sample))];
	if (top <= extent->missed || top - sp > far)
		top = stack_mapping_end(tasks, sample->pid, sp, extent->missed);
	need.is_at_most = top > extent->missed;
	need.bytes = (need.is_at_most ? top : extent->missed + WORD) - sp;
	need.bytes = (need.bytes + WORD - 1) & ~(uint64_t)(WORD - 1);
	return need;
}

/* x86-64: the mask of bp, sp and ip (asm/perf_regs.h), and how many bytes of the stack to copy. */
enum { INNER_REGISTERS = 0x1c0, INNER_BYTES = 512 };

void tally_user_stack_ask_for_inner(enum tally_unwind_machine machine, bool kept,
				    struct tally_attr *attr)
{
	uint64_t mask = tally_unwind_return_mask(machine);
	bool by_stack = !mask && !kept && tally_unwind_regs_mask(machine);
	if (!mask && !by_stack)
		return;
	attr->sample_type |= TALLY_SAMPLE_REGS_USER;
	attr->sample_regs_user = mask;
	attr->sample_stack_user = 0;
	if (by_stack) {
		attr->sample_type |= TALLY_SAMPLE_STACK_USER;
		attr->sample_regs_user = INNER_REGISTERS;
		attr->sample_stack_user = INNER_BYTES;
	}
}

bool tally_user_stack_has_inner(enum tally_unwind_machine machine, const struct tally_attr *attr)
{
	struct tally_attr asking = { .sample_type = TALLY_SAMPLE_CALLCHAIN };
	const uint64_t stack = TALLY_SAMPLE_REGS_USER | TALLY_SAMPLE_STACK_USER |
			       TALLY_SAMPLE_CALLCHAIN;
	tally_user_stack_ask_for_inner(machine, false, &asking);
	return asking.sample_regs_user && attr->sample_regs_user == asking.sample_regs_user &&
	       attr->sample_stack_user == asking.sample_stack_user &&
	       !(attr->flags & TALLY_ATTR_EXCLUDE_CALLCHAIN_USER) &&
	       (attr->sample_type & stack) == asking.sample_type;
}

/* arm64: the chain gives the pc and the sample gives x30.  Without a stack, this register is the
 * only way to the caller. */
static bool mend_by_register(struct tally_unwind_request *request,
			     const struct tally_sample *sample,
			     struct tally_user_stack_inner *inner)
{
	uint64_t addresses[2];
	request->registers[TALLY_UNWIND_ARM64_PC] = sample->chain[inner->at];
	request->registers[TALLY_UNWIND_X30] = sample->regs_user.words[0];
	if (tally_unwind(request, addresses, 2, NULL) != 2)
		return false;
	inner->frames[0] = sample->chain[inner->at];
	inner->frames[1] = addresses[1];
	inner->count = 2;
	inner->resume = inner->at + 1;
	return true;
}

/* x86-64: unwinds frames by rules until one has its return address right above the address in rbp.
 * This frame is the first link of the kernel's chain. */
static bool mend_by_stack(struct tally_unwind_request *request, const struct tally_attr *attr,
			  const struct tally_sample *sample, struct tally_user_stack_inner *inner)
{
	enum { WORD = 8, LINK = 2 * WORD };
	uint64_t stack_pointers[TALLY_USER_STACK_INNER_MAX], fp;
	struct tally_unwind_extent extent;
	enum tally_unwind_end end;
	if (!tally_unwind_registers(request->machine, sample->regs_user.words,
				    attr->sample_regs_user, request->registers))
		return false;
	fp = request->registers[TALLY_UNWIND_RBP];
	request->unknown = ~(1ull << TALLY_UNWIND_RBP | 1ull << TALLY_UNWIND_RSP |
			     1ull << TALLY_UNWIND_RIP);
	request->stack = sample->stack;
	request->stack_size = sample->stack_dynamic_size;
	request->stack_pointers = stack_pointers;
	request->extent = &extent;
	inner->count = tally_unwind(request, inner->frames, TALLY_USER_STACK_INNER_MAX, &end);
	size_t linked = 1;
	while (linked < inner->count && stack_pointers[linked] != fp + LINK)
		linked++;
	/* The same holds when these two words are beyond what was copied. */
	bool is_beyond = end == TALLY_UNWIND_TRUNCATED &&
			 (extent.missed == fp || extent.missed == fp + WORD);
	if (linked < inner->count || is_beyond) {
		inner->count = linked;
		inner->resume = inner->at + 1;
		return linked > 1; /* otherwise the kernel's chain is right */
	}
	inner->resume = sample->chain_length;
	inner->is_cut = end != TALLY_UNWIND_COMPLETE;
	return inner->count > 1 || end == TALLY_UNWIND_TRUNCATED;
}

bool tally_user_stack_mend(const struct tally_tasks *tasks, struct tally_objects *objects,
			   const struct tally_attr *attr, const struct tally_sample *sample,
			   struct tally_user_stack_inner *inner)
{
	struct finder finder = { tasks, objects, sample->pid, time_of(attr, sample) };
	size_t marker = 0;
	while (marker < sample->chain_length && sample->chain[marker] != TALLY_CONTEXT_USER)
		marker++;
	*inner = (struct tally_user_stack_inner){ .at = marker + 1 };
	if (!has_registers(sample) || inner->at >= sample->chain_length)
		return false;
	struct tally_unwind_request request = request_of(&finder);
	if (tally_unwind_return_mask(objects->machine))
		return mend_by_register(&request, sample, inner);
	return mend_by_stack(&request, attr, sample, inner);
}

size_t tally_user_stack_kernel_words(const struct tally_sample *sample)
{
	size_t words = 0;
	while (words < sample->chain_length && sample->chain[words] != TALLY_CONTEXT_USER)
		words++;
	return words;
}

/* Returns the index in the chain of the first caller on the other stack; `length` if there is
 * none.  The chain has the innermost frames, perhaps without the one that switched. */
static size_t find_switch(const uint64_t *chain, size_t length, const uint64_t *frames,
			  size_t count)
{
	size_t at = 0, known = 0;
	while (at < length && known < count) {
		while (known < count && frames[known] != chain[at])
			known++;
		at += known++ < count;
	}
	if (at)
		return at;
	return length;
}

size_t tally_user_stack_cross(const struct tally_tasks *tasks, struct tally_objects *objects,
			      const struct tally_attr *attr, const struct tally_sample *sample,
			      uint64_t *frames, size_t count, size_t room)
{
	struct finder finder = { tasks, objects, sample->pid, time_of(attr, sample) };
	struct tally_unwind_place place;
	size_t marker = tally_user_stack_kernel_words(sample);
	if (marker + 1 >= sample->chain_length)
		return 0;
	const uint64_t *chain = sample->chain + marker + 1;
	size_t length = sample->chain_length - marker - 1;
	size_t first = find_switch(chain, length, frames, count), added = 0;
	if (first == length)
		return 0;
	for (size_t i = first; i < length; i++) {
		uint64_t target;
		if (!find_place(&finder, chain[i] - 1, &place) || !place.table ||
		    !tally_unwind_table_is_go(place.table) ||
		    tally_unwind_table_calls_go(place.table, place.address + 1))
			return 0;
		if (i == first &&
		    tally_unwind_table_call(place.table, place.address + 1, &target)) {
			/* an address in that function: which of its calls it was is not known */
			if (added < room)
				frames[count + added] = chain[i] - (place.address + 1) + target + 1;
			added++;
		}
		if (added < room)
			frames[count + added] = chain[i];
		added++;
	}
	if (tally_unwind_table_function_kind(place.table, place.address) !=
	    TALLY_UNWIND_STACK_START)
		return 0;
	return added;
}

uint64_t tally_user_stack_function(const struct tally_tasks *tasks, struct tally_objects *objects,
				   uint32_t pid, uint64_t address)
{
	struct finder finder = { tasks, objects, pid, UINT64_MAX };
	struct tally_unwind_place place;
	uint64_t start, end;
	if (find_place(&finder, address, &place) && place.table &&
	    tally_unwind_table_function(place.table, place.address, &start, &end))
		return address - (place.address - start);
	return 0;
}

bool tally_user_stack_is_call_of(const struct tally_tasks *tasks, struct tally_objects *objects,
				 uint32_t pid, uint64_t return_address, uint64_t callee)
{
	struct finder finder = { tasks, objects, pid, UINT64_MAX };
	struct tally_unwind_place caller, called;
	uint64_t target, start, end;
	return find_place(&finder, return_address - 1, &caller) &&
	       find_place(&finder, callee - 1, &called) && caller.table &&
	       caller.table == called.table &&
	       tally_unwind_table_call(caller.table, caller.address + 1, &target) &&
	       tally_unwind_table_function(called.table, called.address, &start, &end) &&
	       target == start;
}

bool tally_user_stack_is_same_function(const struct tally_tasks *tasks,
				       struct tally_objects *objects, uint32_t pid, uint64_t one,
				       uint64_t other)
{
	struct finder finder = { tasks, objects, pid, UINT64_MAX };
	struct tally_unwind_place first, second;
	uint64_t start, end;
	return find_place(&finder, one - 1, &first) && find_place(&finder, other - 1, &second) &&
	       first.table && first.table == second.table &&
	       tally_unwind_table_function(first.table, first.address, &start, &end) &&
	       second.address >= start && second.address < end;
}
