/* Workloads for measuring the simulated PMU, besides real programs: `simulated_work
 * loop|chase|switch [AMOUNT]`.
 *
 *   loop    arithmetic without memory accesses, one predictable branch
 *   chase   pointers through 64 MiB in one cycle of random order, a node per cache line
 *   switch  two threads that pass a token to each other through a pipe: only thread switches */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NODES = 1 << 20 };

struct node {
	struct node *next;
	long padding[7];
};

static uint64_t loop(uint64_t turns)
{
	uint64_t a = 1, b = 7;
	for (uint64_t i = 0; i < turns; i++) {
		a = a * 6364136223846793005u + i;
		b ^= a >> 33;
		b = b << 7 | b >> 57;
		a += b;
	}
	return a ^ b;
}

/* The order is a cyclic permutation by Sattolo's shuffle. */
static uint64_t chase(uint64_t steps)
{
	struct node *nodes = aligned_alloc(4096, NODES * sizeof(*nodes));
	uint32_t *order = malloc(NODES * sizeof(*order));
	uint64_t seed = 88172645463325252u, sum = 0;
	if (!nodes || !order)
		return 0;
	for (uint32_t i = 0; i < NODES; i++)
		order[i] = i;
	for (uint32_t i = NODES - 1; i > 0; i--) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		uint32_t j = (uint32_t)(seed >> 33) % i, keep = order[i];
		order[i] = order[j];
		order[j] = keep;
	}
	for (uint32_t i = 0; i < NODES; i++)
		nodes[order[i]] = (struct node){ .next = &nodes[order[(i + 1) % NODES]],
						 .padding = { i } };
	for (struct node *node = nodes; steps; steps--, node = node->next)
		sum += (uint64_t)node->padding[0];
	free(order);
	free(nodes);
	return sum;
}

struct player {
	int from, to;
	uint64_t turns;
};

static void *play(void *argument)
{
	const struct player *player = argument;
	char token;
	for (uint64_t i = 0; i < player->turns; i++)
		if (read(player->from, &token, 1) != 1 || write(player->to, &token, 1) != 1)
			break;
	return NULL;
}

static uint64_t hand_over(uint64_t turns)
{
	int there[2], back[2];
	pthread_t other;
	if (pipe(there) || pipe(back))
		return 0;
	struct player players[2] = { { there[0], back[1], turns },
				     { back[0], there[1], turns - 1 } };
	if (pthread_create(&other, NULL, play, &players[0]) || write(there[1], "", 1) != 1)
		return 0;
	play(&players[1]);
	pthread_join(other, NULL);
	return turns;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	uint64_t amount = argc > 2 ? strtoull(argv[2], NULL, 10) : 0, result;
	if (!strcmp(what, "loop"))
		result = loop(amount ? amount : 400000000);
	else if (!strcmp(what, "chase"))
		result = chase(amount ? amount : 5000000);
	else if (!strcmp(what, "switch"))
		result = hand_over(amount ? amount : 20000);
	else
		return fprintf(stderr, "usage: simulated_work loop|chase|switch [AMOUNT]\n"), 2;
	printf("%llu\n", (unsigned long long)result);
	return 0;
}
