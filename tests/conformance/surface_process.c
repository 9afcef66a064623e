/* The surface "process": the kernel's, in a program with tally's preloaded object, on a machine
 * whose kernel refuses perf_event_open(2).  So the object's engine answers. */
#include "surface_kernel.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's EPERM for perf_event_open(2), as in a container.  By seccomp(2): the object takes its
 * leave of programs that ask prctl(2) for a filter. */
static int refuse_events(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return -errno;
	return 0;
}

/* Tracepoints and BPF are the kernel's own: the engine in a program has none, though the kernel's
 * files may be readable. */
struct surface *surface_process(void)
{
	if (refuse_events() < 0)
		return NULL;
	struct surface *surface = surface_kernel();
	if (surface)
		surface->features &= ~(unsigned)(SURFACE_TRACEPOINTS | SURFACE_BPF);
	return surface;
}
