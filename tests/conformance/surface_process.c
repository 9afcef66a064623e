/* The surface "process": the kernel's, in a program with tally's preloaded object, where the kernel
 * refuses perf_event_open(2).  So the object's engine answers:
 *     refuse_perf EPERM tally run -- conformance --surface process */
#include "surface_kernel.h"

/* Tracepoints and BPF are the kernel's own: the engine in a program has none, though the kernel's
 * files may be readable. */
struct surface *surface_process(void)
{
	struct surface *surface = surface_kernel();
	if (surface)
		surface->features &= ~(unsigned)(SURFACE_TRACEPOINTS | SURFACE_BPF);
	return surface;
}
