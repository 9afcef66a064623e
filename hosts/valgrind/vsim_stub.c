/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What the tool's other half doesn't give yet. */
#include "valgrind/vsim.h"

__attribute__((weak)) void vsim_fold(struct vsim_cpu *cpu) { (void)cpu; }
__attribute__((weak)) void vsim_resume(struct vsim_cpu *cpu) { (void)cpu; }
__attribute__((weak)) int vsim_pmu_register(struct vsim *sim) { (void)sim; return 0; }
