"""Writes ./made.c, a C source with many functions, which takes a compiler a second or two.

made_source.py FUNCTIONS
"""
import sys

FUNCTION = """int function_%(number)d(struct node *node, int value)
{
	int sum = value;
%(steps)s	return sum;
}
"""
STEP = """	for (int i = 0; i < (value ^ %(a)d); i++) {
		if (node->others[i & 7] > sum * %(b)d)
			sum += node->others[(i + %(c)d) & 7] << %(d)d;
		else
			node->value ^= sum + %(seed)d;
	}
	switch (sum %% %(e)d) {
	case 0: sum -= %(seed)d; break;
	case 1: node = node->next; break;
	default: sum++;
	}
"""


def step(seed):
    a, b, c, d, e = seed % 97, seed % 13 + 1, seed % 7, seed % 5, seed % 5 + 3
    return STEP % {"seed": seed, "a": a, "b": b, "c": c, "d": d, "e": e}


with open("made.c", "w", encoding="ascii") as made:
    made.write("struct node { struct node *next; int value, others[8]; };\n")
    for number in range(int(sys.argv[1])):
        steps = "".join(step(number * 31 + at * 17) for at in range(30))
        made.write(FUNCTION % {"number": number, "steps": steps})
