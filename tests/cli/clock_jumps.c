/* Preloaded, makes the time of day jump at each reading: an hour on, a day back, to 1970, to 2200,
 * as when a machine's clock is set or its battery is empty.  Clocks that the kernel never sets stay
 * as they are. */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time);
int gettimeofday(struct timeval *restrict time, void *restrict zone);
time_t time(time_t *out);

static long jumped(long seconds)
{
	static atomic_uint readings;
	const long hour = 3600, day = 24 * hour, years = 174L * 365 * day;
	switch (atomic_fetch_add(&readings, 1) % 4) {
	case 0: return seconds + hour;
	case 1: return seconds - day;
	case 2: return 0;
	default: return seconds + years;
	}
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	int result = (int)syscall(SYS_clock_gettime, clock, time);
	if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		time->tv_sec = jumped(time->tv_sec);
	return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
	struct timespec now;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	*time = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
	return 0;
}

time_t time(time_t *out)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (out)
		*out = now.tv_sec;
	return now.tv_sec;
}
