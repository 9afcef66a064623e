/* System calls without libc: for the signal handler, which must not touch errno or take a lock, and
 * for places where libc's function is one that this object replaces.  Each returns what the kernel
 * returns: a result, or -errno. */
#ifndef TALLY_PROCESS_CALL_H
#define TALLY_PROCESS_CALL_H

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline long process_call6(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	long result;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#elif defined(__riscv) && __riscv_xlen == 64
	register long a7 __asm__("a7") = number;
	register long a0 __asm__("a0") = a;
	register long a1 __asm__("a1") = b;
	register long a2 __asm__("a2") = c;
	register long a3 __asm__("a3") = d;
	register long a4 __asm__("a4") = e;
	register long a5 __asm__("a5") = f;
	__asm__ volatile("ecall"
			 : "+r"(a0)
			 : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5)
			 : "memory");
	return a0;
#else /* the object is not built; tally uses a few of its files */
	long result = syscall(number, a, b, c, d, e, f);
	if (result == -1)
		return -errno;
	return result;
#endif
}

#define PROCESS_CALL_PICK(a, b, c, d, e, f, g, NAME, ...) NAME
#define PROCESS_CALL_0(n) process_call6(n, 0, 0, 0, 0, 0, 0)
#define PROCESS_CALL_1(n, a) process_call6(n, (long)(a), 0, 0, 0, 0, 0)
#define PROCESS_CALL_2(n, a, b) process_call6(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define PROCESS_CALL_3(n, a, b, c) process_call6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define PROCESS_CALL_4(n, a, b, c, d) \
	process_call6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define PROCESS_CALL_5(n, a, b, c, d, e) \
	process_call6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define PROCESS_CALL_6(n, a, b, c, d, e, f) \
	process_call6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
/* process_call(SYS_futex, word, operation, …): up to six arguments, pointers or numbers */
#define process_call(...) \
	PROCESS_CALL_PICK(__VA_ARGS__, PROCESS_CALL_6, PROCESS_CALL_5, PROCESS_CALL_4, \
			  PROCESS_CALL_3, PROCESS_CALL_2, PROCESS_CALL_1, PROCESS_CALL_0)(__VA_ARGS__)

#endif
