"""Writes a C source of many functions, ./made.c, for a compiler to spend a second or two on: made_source.py FUNCTIONS"""
import sys

sys.stdout = open("made.c", "w", encoding="ascii")
print("struct node { struct node *next; int value, others[8]; };")
for number in range(int(sys.argv[1])):
    print(f"int function_{number}(struct node *node, int value)\n{{\n\tint sum = value;")
    for step in range(30):
        seed = number * 31 + step * 17
        print(f"\tfor (int i = 0; i < (value ^ {seed % 97}); i++) {{")
        print(f"\t\tif (node->others[i & 7] > sum * {seed % 13 + 1})\n\t\t\tsum += node->others[(i + {seed % 7}) & 7] << {seed % 5};")
        print(f"\t\telse\n\t\t\tnode->value ^= sum + {seed};\n\t}}")
        print(f"\tswitch (sum % {seed % 5 + 3}) {{ case 0: sum -= {seed}; break; case 1: node = node->next; break; default: sum++; }}")
    print("\treturn sum;\n}")
