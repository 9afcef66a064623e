/* Makes the kernel's module md4 work: `recorder_md4 PIECES` of 64 KiB. */
#include <linux/if_alg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static const struct sockaddr_alg address = { .salg_family = AF_ALG,
						     .salg_type = "hash",
						     .salg_name = "md4" };
	static char piece[65536];
	unsigned char sum[16];
	int pieces = argc > 1 ? atoi(argv[1]) : 1, fd = socket(AF_ALG, SOCK_SEQPACKET, 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    (fd = accept(fd, NULL, NULL)) < 0) {
		perror("md4");
		return 1;
	}
	for (int i = 1; i <= pieces; i++)
		if (send(fd, piece, sizeof(piece), i < pieces ? MSG_MORE : 0) < 0)
			return 1;
	return read(fd, sum, sizeof(sum)) != sizeof(sum);
}
