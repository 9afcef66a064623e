/* What a sample holds of the interrupted thread: registers and the top of its stack.
 *
 * The stack's end is not known: a coroutine's stack, or a handler's, may be anywhere.  Above it there
 * may be another thread's guard page, so reading beyond the end could crash the program.  Each page
 * is tried first by a system call that reads eight bytes of it and does nothing else:
 * rt_sigprocmask() with an invalid operation copies its set before it looks at the operation, so it
 * returns EFAULT for memory that can't be read, and EINVAL otherwise.  It takes some 60 ns, needs no
 * descriptor, and no filter for system calls refuses it.
 *
 * A thread's own stack stays while it runs.  What is above another stack belongs to others, who may
 * unmap it at this very moment.  There only the page of the stack pointer is surely the stack's.  The
 * kernel copies the rest (process_vm_readv(2)); where a filter refuses that, the sample has less. */
#include "process/process_agent.h"
#include "process/process_call.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

/* Copies any part of a stack, that between its variables, too. */
#define COPIES_STACK __attribute__((no_sanitize("address")))

enum { PAGE = 4096, WORD = 8, LARGEST_COPY = 65535 /* bytes; a record's size has 16 bits */ };

/* Numbers of registers: asm/perf_regs.h. */
#if defined(__x86_64__)
static const unsigned char places[] = {
	REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_RIP, REG_EFL,
	REG_CSGSFS, REG_CSGSFS, 0, 0, 0, 0, /* CS and SS; the other segments are left out */
	REG_R8,	 REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
};
#define REGISTERS 0xff0fffull

static uint64_t register_of(const ucontext_t *context, unsigned number)
{
	enum { CS = 10, SS = 11, SELECTOR = 0xffff, SS_SHIFT = 48 };
	uint64_t value = (uint64_t)context->uc_mcontext.gregs[places[number]];
	if (number == CS)
		return value & SELECTOR;
	if (number == SS)
		return value >> SS_SHIFT;
	return value;
}

static uint64_t ip_of(const ucontext_t *context) { return register_of(context, 8); }
static uint64_t sp_of(const ucontext_t *context) { return register_of(context, 7); }
static uint64_t fp_of(const ucontext_t *context) { return register_of(context, 6); }
#elif defined(__aarch64__)
#define REGISTERS 0x1ffffffffull /* x0 to x30, sp, pc */

static uint64_t ip_of(const ucontext_t *context) { return context->uc_mcontext.pc; }
static uint64_t sp_of(const ucontext_t *context) { return context->uc_mcontext.sp; }
static uint64_t fp_of(const ucontext_t *context) { return context->uc_mcontext.regs[29]; }

static uint64_t register_of(const ucontext_t *context, unsigned number)
{
	if (number == 31)
		return sp_of(context);
	if (number == 32)
		return ip_of(context);
	return context->uc_mcontext.regs[number];
}
#elif defined(__riscv)
#define REGISTERS 0xffffffffull /* pc, x1 to x31 */

static uint64_t ip_of(const ucontext_t *context) { return context->uc_mcontext.__gregs[0]; }
static uint64_t sp_of(const ucontext_t *context) { return context->uc_mcontext.__gregs[2]; }
static uint64_t fp_of(const ucontext_t *context) { return context->uc_mcontext.__gregs[8]; }

static uint64_t register_of(const ucontext_t *context, unsigned number)
{
	return context->uc_mcontext.__gregs[number];
}
#endif

uint64_t process_sample_registers(void)
{
	return REGISTERS;
}

void process_sample_regs(struct tally_engine_regs *regs, const ucontext_t *context)
{
	*regs = (struct tally_engine_regs){ .ip = ip_of(context),
					    .sp = sp_of(context),
					    .fp = fp_of(context),
					    .mode = TALLY_MODE_USER,
					    .host = context };
}

uint64_t process_sample_register(void *host, const struct tally_engine_regs *regs, unsigned number,
				 uint64_t *abi)
{
	enum { ABI_NONE = 0, ABI_64 = 2 };
	(void)host;
	*abi = ABI_NONE;
	if (!regs || !regs->host || !(REGISTERS >> number & 1))
		return 0;
	*abi = ABI_64;
	return register_of(regs->host, number);
}

uint64_t process_sample_stack_pointer(void *host, const struct tally_engine_regs *regs)
{
	(void)host;
	if (!regs)
		return 0;
	return regs->sp;
}

static bool is_readable(uint64_t address)
{
	enum { NO_OPERATION = -1 };
	return process_call(SYS_rt_sigprocmask, NO_OPERATION, address & ~(uint64_t)(WORD - 1),
			    NULL, WORD) != -EFAULT;
}

static bool is_on_own_stack(const struct process_thread *thread, uint64_t sp)
{
	return sp < thread->stack_top && thread->stack_top - sp <= thread->stack_size;
}

/* The stack ends where the thread's first function was called.  Beyond it nothing is needed. */
size_t process_sample_stack_size(void *host, const struct tally_engine_regs *regs, size_t most)
{
	struct process_thread *thread = host;
	if (!regs || !regs->host)
		return 0;
	bool is_own = is_on_own_stack(thread, regs->sp);
	if (is_own && thread->stack_top - regs->sp < most)
		most = thread->stack_top - regs->sp;
	uint64_t at = regs->sp, end = regs->sp + most;
	while (at < end && at >= regs->sp && is_readable(at))
		at = (at | (PAGE - 1)) + 1;
	thread->readable_to = at < end ? at : end;
	thread->readable_from = regs->sp;
	thread->surely_to = thread->readable_to;
	if (!is_own)
		thread->surely_to = (regs->sp | (PAGE - 1)) + 1;
	return thread->readable_to - regs->sp;
}

/* Copies this process's own memory, which another thread may be unmapping. */
static size_t copy_carefully(void *to, uint64_t from, size_t size)
{
	const struct iovec here = { .iov_base = to, .iov_len = size },
			   there = { .iov_base = (void *)(uintptr_t)from, .iov_len = size };
	long got = process_call(SYS_process_vm_readv, process_agent.pid, &here, 1, &there, 1, 0);
	return got < 0 ? 0 : (size_t)got;
}

/* An engine without user_stack_size() begins a sample's copy at offset 0. */
COPIES_STACK
size_t process_sample_stack(void *host, const struct tally_engine_regs *regs, size_t offset,
			    void *to, size_t size)
{
	struct process_thread *thread = host;
	if (!regs || !regs->host)
		return 0;
	if (!offset && thread->readable_from != regs->sp)
		process_sample_stack_size(host, regs, LARGEST_COPY);
	thread->readable_from = 0; /* the next sample looks anew */
	if (regs->sp + offset >= thread->readable_to)
		return 0;
	if (size > thread->readable_to - (regs->sp + offset))
		size = thread->readable_to - (regs->sp + offset);
	if (regs->sp + offset + size > thread->surely_to)
		return copy_carefully(to, regs->sp + offset, size);
	memcpy(to, (const void *)(uintptr_t)(regs->sp + offset), size);
	return size;
}

/* tally makes the chain from registers and stack.  Here it is the place alone. */
unsigned process_sample_chain(void *host, const struct tally_engine_regs *regs, bool user,
			      uint64_t *addresses, unsigned max)
{
	(void)host;
	if (!user || !regs || !max)
		return 0;
	addresses[0] = regs->ip;
	return 1;
}

/* The chain by frame pointers, as the kernel makes it.  Frames lie above one another. */
COPIES_STACK
unsigned process_sample_frames(void *host, const struct tally_engine_regs *regs, bool user,
			       uint64_t *addresses, unsigned max)
{
#if defined(__riscv)
	enum { RECORD_BELOW = 16 }; /* the frame pointer points behind the record */
#else
	enum { RECORD_BELOW = 0 };
#endif
	const struct process_thread *thread = host;
	unsigned count = process_sample_chain(host, regs, user, addresses, max);
	if (!count || !regs->host)
		return count;
	uint64_t below = regs->sp, frame = regs->fp;
	while (count < max && frame > below && frame % sizeof(frame) == 0) {
		uint64_t record[2], at = frame - RECORD_BELOW;
		bool is_own = at >= regs->sp && at + sizeof(record) <= thread->stack_top &&
			      is_on_own_stack(thread, at);
		if (is_own)
			memcpy(record, (const void *)(uintptr_t)at, sizeof(record));
		else if (copy_carefully(record, at, sizeof(record)) != sizeof(record))
			break;
		if (!record[1])
			break;
		addresses[count++] = record[1];
		below = frame;
		frame = record[0];
	}
	return count;
}
