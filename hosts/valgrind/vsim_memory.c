/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Functions that compilers call implicitly and that Valgrind's core lacks; it has memcpy and
 * memset. */
#include "pub_tool_basics.h"
#include "pub_tool_libcbase.h"

int memcmp(const void *a, const void *b, SizeT size);

int memcmp(const void *a, const void *b, SizeT size) { return VG_(memcmp)(a, b, size); }
