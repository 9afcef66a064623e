/* The functions that only an arm64 kernel's surface has: its exception level, and a guest that runs
 * through /dev/kvm.
 *
 * The guest is one page of code without an MMU: a loop at EL1, a return to EL0, the same loop
 * there, and a store to an unmapped address, which ends KVM_RUN. */
#include "surface_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <unistd.h>

int kernel_level(struct surface *surface)
{
	enum { LOG_READ_ALL = 3, LOG_SIZE = 1 << 18 };
	static const struct {
		const char *says;
		enum surface_level level;
	} lines[] = {
		{ "HYP mode not available", SURFACE_LEVEL_GUEST },
		{ "VHE mode initialized successfully", SURFACE_LEVEL_VHE_HOST },
		{ "Hyp mode initialized successfully", SURFACE_LEVEL_NON_VHE_HOST },
	};
	(void)surface;
	char *log = malloc(LOG_SIZE);
	int length = log ? klogctl(LOG_READ_ALL, log, LOG_SIZE - 1) : -1, level = -EOPNOTSUPP;
	if (length >= 0) {
		log[length] = '\0';
		for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
			if (strstr(log, lines[i].says))
				level = (int)lines[i].level;
	}
	free(log);
	return level;
}

bool kernel_may_run_guests(struct surface *surface)
{
	int level = kernel_level(surface);
	return (level == SURFACE_LEVEL_VHE_HOST || level == SURFACE_LEVEL_NON_VHE_HOST) &&
	       access("/dev/kvm", R_OK | W_OK) == 0;
}

#ifdef __aarch64__
/* x0, x1: iterations at EL1, EL0; x2: address of EL0's part; x3: the unmapped address. */
static const uint32_t guest_code[] = {
	0xf1000400, /* 1: subs x0, x0, #1 */
	0x54ffffe1, /*    b.ne 1b */
	0xd2807804, /*    mov x4, #0x3c0: EL0, interrupts masked */
	0xd5184004, /*    msr spsr_el1, x4 */
	0xd5184022, /*    msr elr_el1, x2 */
	0xd69f03e0, /*    eret */
	0xf1000421, /* 2: subs x1, x1, #1 */
	0x54ffffe1, /*    b.ne 2b */
	0xf9000061, /*    str x1, [x3] */
	0x14000000, /*    b . */
};

enum { GUEST_USER_CODE = 6 * 4 };
enum { GUEST_MEMORY = 0x10000, GUEST_HOLE = 0x20000, CORE_PC = 32 };

static int set_register(int cpu, unsigned number, uint64_t value)
{
	struct kvm_one_reg one = {
		/* An index, in units of 4 bytes, into struct kvm_regs: x0 to x30, sp, pc,
		 * pstate. */
		.id = KVM_REG_ARM64 | KVM_REG_SIZE_U64 | KVM_REG_ARM_CORE | number * 2,
		.addr = (uintptr_t)&value,
	};
	return ioctl(cpu, KVM_SET_ONE_REG, &one);
}

struct guest {
	int kvm, machine, cpu;
	void *memory;
	struct kvm_run *run;
	size_t run_size;
};

static int guest_make(struct guest *guest, size_t page_size)
{
	guest->kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	guest->machine = guest->kvm < 0 ? -1 : ioctl(guest->kvm, KVM_CREATE_VM, 0);
	if (guest->machine < 0)
		return -errno;
	guest->memory = mmap(NULL, page_size, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (guest->memory == MAP_FAILED)
		return -errno;
	memcpy(guest->memory, guest_code, sizeof(guest_code));
	__builtin___clear_cache((char *)guest->memory, (char *)guest->memory + page_size);
	struct kvm_userspace_memory_region region = {
		.guest_phys_addr = GUEST_MEMORY,
		.memory_size = page_size,
		.userspace_addr = (uintptr_t)guest->memory,
	};
	struct kvm_vcpu_init init;
	if (ioctl(guest->machine, KVM_SET_USER_MEMORY_REGION, &region) < 0 ||
	    (guest->cpu = ioctl(guest->machine, KVM_CREATE_VCPU, 0)) < 0 ||
	    ioctl(guest->machine, KVM_ARM_PREFERRED_TARGET, &init) < 0 ||
	    ioctl(guest->cpu, KVM_ARM_VCPU_INIT, &init) < 0)
		return -errno;
	int size = ioctl(guest->kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	if (size < 0)
		return -errno;
	guest->run_size = (size_t)size;
	guest->run = mmap(NULL, guest->run_size, PROT_READ | PROT_WRITE, MAP_SHARED, guest->cpu, 0);
	return guest->run == MAP_FAILED ? -errno : 0;
}

static void guest_drop(struct guest *guest)
{
	if (guest->run != MAP_FAILED)
		munmap(guest->run, guest->run_size);
	if (guest->memory != MAP_FAILED)
		munmap(guest->memory, 1);
	if (guest->cpu >= 0)
		close(guest->cpu);
	if (guest->machine >= 0)
		close(guest->machine);
	if (guest->kvm >= 0)
		close(guest->kvm);
}

int kernel_run_guest(struct surface *surface, uint64_t kernel_iterations, uint64_t user_iterations)
{
	struct guest guest = { -1, -1, -1, MAP_FAILED, MAP_FAILED, 0 };
	int result = guest_make(&guest, surface->page_size);
	if (result == 0) {
		const uint64_t registers[] = { kernel_iterations, user_iterations,
					       GUEST_MEMORY + GUEST_USER_CODE, GUEST_HOLE };
		for (unsigned i = 0; i < 4 && result == 0; i++)
			result = set_register(guest.cpu, i, registers[i]);
		if (result == 0)
			result = set_register(guest.cpu, CORE_PC, GUEST_MEMORY);
		while (result == 0 && (result = ioctl(guest.cpu, KVM_RUN, 0)) < 0 && errno == EINTR)
			result = 0;
		if (result < 0)
			result = -errno;
		else if (guest.run->exit_reason != KVM_EXIT_MMIO)
			result = -EIO;
	}
	guest_drop(&guest);
	return result;
}

int kernel_counter_selector(struct surface *surface, const uint64_t *set, uint64_t *value)
{
	(void)surface;
	if (set)
		__asm__ volatile("msr pmselr_el0, %0\n\tisb" : : "r"(*set));
	__asm__ volatile("mrs %0, pmselr_el0" : "=r"(*value));
	return 0;
}
#else
int kernel_run_guest(struct surface *surface, uint64_t kernel_iterations, uint64_t user_iterations)
{
	(void)surface, (void)kernel_iterations, (void)user_iterations;
	return -EOPNOTSUPP;
}

int kernel_counter_selector(struct surface *surface, const uint64_t *set, uint64_t *value)
{
	(void)surface, (void)set, (void)value;
	return -EOPNOTSUPP;
}
#endif
