/* Checks of an attribute that need no PMU: SPEC A2 and the static rules of perf_event_open(2).  The
 * checks are in the kernel's order, since the order decides which errno a caller sees. */
#include "engine/engine_state.h"

#define BRANCH_USER 1u
#define BRANCH_KERNEL 2u
#define BRANCH_HV 4u
#define BRANCH_LEVELS (BRANCH_USER | BRANCH_KERNEL | BRANCH_HV)
#define BRANCH_PRIVILEGED (BRANCH_KERNEL | BRANCH_HV)
#define BRANCH_MAX (1u << 20)
/* 6.18 reserves the flag of deferred call chains */
#define FLAGS_KNOWN (TALLY_ATTR_DEFER_CALLCHAIN - 1)
#define AUX_ACTIONS_KNOWN 7u
#define STACK_USER_MAX 65535u

int engine_allow_kernel(struct tally_engine *engine)
{
	if (engine->settings.paranoid > 1 && !engine_capable(engine, TALLY_CAPABLE_PERFMON))
		return -ENGINE_EACCES;
	return 0;
}

int engine_allow_cpu(struct tally_engine *engine)
{
	if (engine->settings.paranoid > 0 && !engine_capable(engine, TALLY_CAPABLE_PERFMON))
		return -ENGINE_EACCES;
	return 0;
}

static bool attr_has(const struct tally_attr *attr, uint64_t flag)
{
	return (attr->flags & flag) != 0;
}

/* Copies the caller's attribute of `size` bytes, which may be shorter or longer than this engine's.
 * Bytes beyond this engine's attribute must be zero: otherwise -E2BIG. */
static int copy_sized(struct tally_engine *engine, const uint8_t *user, struct tally_attr *attr,
		      uint32_t size)
{
	uint8_t chunk[64];
	for (uint32_t at = sizeof(*attr); at < size;) {
		uint32_t part = sizeof(chunk);
		if (part > size - at)
			part = size - at;
		int error = engine_copy_in(engine, chunk, user + at, part);
		if (error)
			return error;
		for (uint32_t i = 0; i < part; i++)
			if (chunk[i])
				return -ENGINE_E2BIG;
		at += part;
	}
	if (size > sizeof(*attr))
		size = sizeof(*attr);
	return engine_copy_in(engine, attr, user, size);
}

static int check_reserved(const struct tally_attr *attr)
{
	bool reserved = attr->flags & ~FLAGS_KNOWN || attr->reserved_2 ||
			attr->aux_action & ~AUX_ACTIONS_KNOWN;
	bool unknown = attr->sample_type & ~(TALLY_SAMPLE_MAX - 1) ||
		       attr->read_format & ~(TALLY_FORMAT_MAX - 1);
	if (reserved || unknown)
		return -ENGINE_EINVAL;
	return 0;
}

/* A branch stack without levels of its own takes the event's. */
static int check_branches(struct tally_engine *engine, struct tally_attr *attr)
{
	uint64_t mask = attr->branch_sample_type;
	if (!(attr->sample_type & TALLY_SAMPLE_BRANCH_STACK))
		return 0;
	if (mask & ~(uint64_t)(BRANCH_MAX - 1) || !(mask & ~(uint64_t)BRANCH_LEVELS))
		return -ENGINE_EINVAL;
	if (!(mask & BRANCH_LEVELS)) {
		if (!attr_has(attr, TALLY_ATTR_EXCLUDE_KERNEL))
			mask |= BRANCH_KERNEL;
		if (!attr_has(attr, TALLY_ATTR_EXCLUDE_USER))
			mask |= BRANCH_USER;
		if (!attr_has(attr, TALLY_ATTR_EXCLUDE_HV))
			mask |= BRANCH_HV;
		attr->branch_sample_type = mask;
	}
	if (mask & BRANCH_PRIVILEGED)
		return engine_allow_kernel(engine);
	return 0;
}

/* Like the architecture's perf_reg_validate().  A host without registers refuses any with
 * ENOSYS. */
static int check_registers(const struct tally_engine *engine, uint64_t mask)
{
	uint64_t known = engine->host.register_mask;
	if (!known && !mask)
		return 0;
	if (!known)
		return -ENGINE_ENOSYS;
	if (!mask || mask & ~known)
		return -ENGINE_EINVAL;
	return 0;
}

static int check_user_state(const struct tally_engine *engine, const struct tally_attr *attr)
{
	int error = 0;
	if (attr->sample_type & TALLY_SAMPLE_REGS_USER)
		error = check_registers(engine, attr->sample_regs_user);
	if (error || !(attr->sample_type & TALLY_SAMPLE_STACK_USER))
		return error;
	if (!engine->host.user_stack)
		return -ENGINE_ENOSYS;
	if (attr->sample_stack_user >= STACK_USER_MAX || attr->sample_stack_user % 8)
		return -ENGINE_EINVAL;
	return 0;
}

/* Refuses combinations that contradict one another. */
static int check_pairs(const struct tally_attr *attr)
{
	uint64_t both_weights = TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_WEIGHT_STRUCT;
	bool weights = (attr->sample_type & both_weights) == both_weights;
	bool thread = attr_has(attr, TALLY_ATTR_INHERIT_THREAD) &&
		      !attr_has(attr, TALLY_ATTR_INHERIT);
	bool exec = attr_has(attr, TALLY_ATTR_REMOVE_ON_EXEC) &&
		    attr_has(attr, TALLY_ATTR_ENABLE_ON_EXEC);
	bool sigtrap = attr_has(attr, TALLY_ATTR_SIGTRAP) &&
		       !attr_has(attr, TALLY_ATTR_REMOVE_ON_EXEC);
	if (weights || thread || exec || sigtrap)
		return -ENGINE_EINVAL;
	return 0;
}

int engine_attr_copy(struct tally_engine *engine, const void *user, struct tally_attr *attr)
{
	const uint8_t *bytes = user;
	uint32_t size, known = sizeof(*attr);
	*attr = (struct tally_attr){ 0 };
	int error = engine_copy_in(engine, &size, bytes + offsetof(struct tally_attr, size),
				   sizeof(size));
	if (error)
		return error;
	if (!size)
		size = TALLY_ATTR_SIZE_VER0;
	error = -ENGINE_E2BIG;
	if (size >= TALLY_ATTR_SIZE_VER0 && size <= engine->host.page_size)
		error = copy_sized(engine, bytes, attr, size);
	if (error == -ENGINE_E2BIG) /* the result is -E2BIG even if the size can't be written */
		engine_copy_out(engine,
				(uint8_t *)(uintptr_t)bytes + offsetof(struct tally_attr, size),
				&known, sizeof(known));
	if (error)
		return error;
	attr->size = size;
	error = check_reserved(attr);
	if (error)
		return error;
	error = check_branches(engine, attr);
	if (error)
		return error;
	error = check_user_state(engine, attr);
	if (error)
		return error;
	if (!attr->sample_max_stack)
		attr->sample_max_stack = (uint16_t)engine->settings.max_stack;
	if (attr->sample_type & TALLY_SAMPLE_REGS_INTR)
		error = check_registers(engine, attr->sample_regs_intr);
	if (error)
		return error;
	return check_pairs(attr);
}
