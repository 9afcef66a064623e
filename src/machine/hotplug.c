#include "machine/hotplug.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FROM_KERNEL = 1 }; /* the same group as udev's */

int tally_hotplug_open(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = FROM_KERNEL };
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			NETLINK_KOBJECT_UEVENT);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int code = -errno;
		close(fd);
		return code;
	}
	return fd;
}

/* A uevent is "offline@/devices/system/cpu/cpu1", followed by strings of variables. */
bool tally_hotplug_has_news(int fd)
{
	char text[4096];
	bool found = false;
	for (;;) {
		ssize_t got = recv(fd, text, sizeof(text) - 1, 0);
		/* some uevents were lost: they may have been about CPUs */
		if (got < 0 && errno == ENOBUFS) {
			found = true;
			continue;
		}
		if (got <= 0)
			return found;
		text[got] = 0;
		found |= strstr(text, "@/devices/system/cpu/cpu") != NULL;
	}
}
