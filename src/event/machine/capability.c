/* Reads this process's effective capabilities with capget(2), and recognises the initial user
 * namespace by its inode number, which is fixed. */
#include "machine/machine.h"

#include <linux/capability.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CAPABILITY_PERFMON = 38 }; /* some systems' headers are older */

static bool in_initial_user_namespace(void)
{
	/* the kernel's PROC_USER_INIT_INO, fixed since Linux 3.8 */
	static const ino_t initial = 0xEFFFFFFDu;
	struct stat status;
	if (stat("/proc/self/ns/user", &status))
		return true; /* a kernel without user namespaces has only the initial one */
	return status.st_ino == initial;
}

void tally_capabilities_read(struct tally_capabilities *out)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	uint64_t bits = 0;
	if (!syscall(SYS_capget, &header, data))
		bits = data[0].effective | (uint64_t)data[1].effective << 32;
	*out = (struct tally_capabilities){
		.perfmon = bits >> CAPABILITY_PERFMON & 1,
		.sys_admin = bits >> CAP_SYS_ADMIN & 1,
		.sys_ptrace = bits >> CAP_SYS_PTRACE & 1,
		.syslog = bits >> CAP_SYSLOG & 1,
		.ipc_lock = bits >> CAP_IPC_LOCK & 1,
		.initial_namespace = in_initial_user_namespace(),
	};
}

bool tally_capabilities_monitor(const struct tally_capabilities *capabilities)
{
	return capabilities->initial_namespace &&
	       (capabilities->perfmon || capabilities->sys_admin);
}
