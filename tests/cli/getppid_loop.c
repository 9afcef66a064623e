/* getppid_loop N: makes N getppid(2) calls, a known truth for counters. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	for (long left = argc > 1 ? atol(argv[1]) : 0; left > 0; left--)
		syscall(SYS_getppid);
	return 0;
}
