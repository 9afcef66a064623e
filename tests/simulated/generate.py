"""Random programs, for comparisons instruction by instruction: `program(seed)` is C without a libc.

Each is finite by construction: loops have small constant bounds, calls go to functions made before,
recursion has a limited depth.  It ends with exit_group.  The result does not matter, only the work.
"""
import random

HEAD = """
typedef unsigned long u64; typedef unsigned int u32; typedef unsigned char u8;
static u64 words[4096]; static u8 bytes[8192]; static double reals[256];
static volatile u64 sink;
void *memset(void *p, int c, u64 n) { u8 *b = p; while (n--) { *b++ = (u8)c; __asm__ volatile(""); } return p; }
void *memcpy(void *p, const void *q, u64 n) { u8 *b = p; const u8 *d = q; while (n--) { *b++ = *d++; __asm__ volatile(""); } return p; }
__attribute__((noreturn)) static void leave(void)
{ __asm__ volatile("syscall" : : "a"(231), "D"(0) : "rcx", "r11", "memory"); __builtin_unreachable(); }
static inline void copy_string(void *to, const void *from, u64 n)
{ __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory"); }
static inline void fill_words(void *to, u64 v, u64 n)
{ __asm__ volatile("rep stosq" : "+D"(to), "+c"(n) : "a"(v) : "memory"); }
static inline u64 length_of(const u8 *s)
{ u64 n = ~0ul; __asm__ volatile("xor %%eax, %%eax\\n repne scasb" : "+D"(s), "+c"(n) : : "rax", "cc", "memory"); return ~n - 1; }
"""


class Maker:
    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.functions = 0
        self.names = 0

    def name(self, stem):
        self.names += 1
        return f"{stem}{self.names}"

    def value(self, names, depth=0):
        c = self.chance
        kind = c.randrange(9 if depth < 3 else 3)
        if kind == 0:
            return str(c.choice([0, 1, 2, 3, 7, 8, 63, 100, 255, 4095, 65537])) + "ul"
        if kind in (1, 2):
            return c.choice(names)
        if kind == 3:
            return f"words[({self.value(names, depth + 1)}) & 4095]"
        if kind == 4:
            return f"(u64)bytes[({self.value(names, depth + 1)}) & 8191]"
        if kind == 5:
            return f"(u64)reals[({self.value(names, depth + 1)}) & 255]" if c.randrange(2) else \
                f"(({self.value(names, depth + 1)}) / (({self.value(names, depth + 1)}) | 1))"
        if kind == 6:
            return f"(({self.value(names, depth + 1)}) ? ({self.value(names, depth + 1)}) : ({self.value(names, depth + 1)}))"
        return f"(({self.value(names, depth + 1)}) {c.choice(['+', '-', '*', '^', '|', '&', '>>'])} " \
               f"(({self.value(names, depth + 1)}) & 31))"

    def statement(self, names, depth):
        c = self.chance
        kind = c.randrange(14)
        target = c.choice(names)
        if kind < 4 or depth > 3:
            return f"{target} = {self.value(names)};"
        if kind == 4:
            return f"words[({self.value(names)}) & 4095] = {self.value(names)};"
        if kind == 5:
            return f"bytes[({self.value(names)}) & 8191] ^= (u8){target};"
        if kind == 6:
            return f"reals[{target} & 255] = reals[({self.value(names)}) & 255] * 0.5 + (double)({target} & 1023);"
        if kind == 7:
            return f"if (({self.value(names)}) & {c.choice([1, 3, 8])}) {{ {self.block(names, depth + 1)} }} " \
                   f"else {{ {self.block(names, depth + 1)} }}"
        if kind == 8:
            index = self.name("i")
            return f"for (u64 {index} = 0; {index} < {c.randrange(1, 9)}; {index}++) " \
                   f"{{ {self.block([*names, index], depth + 1, keep=index)} }}"
        if kind == 9:
            cases = " ".join(f"case {i}: {self.block(names, depth + 1)} break;" for i in range(c.randrange(3, 9)))
            return f"switch (({self.value(names)}) & 7) {{ {cases} default: {target}++; }}"
        if kind == 10:
            return c.choice([f"copy_string(bytes + ({target} & 4095), bytes + 4096, {c.choice([0, 1, 5, 64, 200])});",
                             f"fill_words(words + ({target} & 2047), {target}, {c.choice([0, 1, 9, 100])});",
                             f"bytes[8191] = 0; {target} += length_of(bytes + 8000);"])
        if kind == 11 and self.functions:
            callee = c.randrange(self.functions)
            return f"{target} += f{callee}({self.value(names)}, {self.value(names)});"
        if kind == 12 and self.functions:
            return f"{target} += table[({self.value(names)}) % {self.functions}u]({target}, {self.value(names)});" \
                if self.has_table else f"{target} += f{self.functions - 1}({target}, 3);"
        return f"__asm__ volatile(\"lock xadd %0, %1\" : \"+r\"({target}), \"+m\"(words[7]) : : \"cc\");"

    def block(self, names, depth, keep=None):
        usable = [name for name in names if name != keep]
        return " ".join(self.statement(usable if usable else names, depth) for _ in range(self.chance.randrange(1, 4)))

    def function(self):
        number = self.functions
        body = " ".join(self.statement(["a", "b", "x", "y"], 0) for _ in range(self.chance.randrange(3, 8)))
        inline = "" if self.chance.randrange(3) else "__attribute__((noinline)) "
        text = f"static {inline}u64 f{number}(u64 a, u64 b) {{ u64 x = a ^ b, y = a + {number}; {body} return a + b + x + y; }}\n"
        self.functions += 1
        return text

    def program(self):
        self.has_table = False
        parts = [HEAD] + [self.function() for _ in range(self.chance.randrange(2, 5))]
        parts.append("static u64 (*const table[])(u64, u64) = { " +
                     ", ".join(f"f{i}" for i in range(self.functions)) + " };\n")
        depth = self.chance.randrange(2, 40)
        parts.append("static __attribute__((noinline)) u64 deep(u64 n, u64 v) "
                     "{ words[n] = v; return n ? deep(n - 1, v * 3 + n) + words[n] : v; }\n")
        parts.append(f"void start(void) {{ u64 v = 1; for (int i = 0; i < {self.chance.randrange(2, 12)}; i++) "
                     f"{{ v += table[v % {self.functions}u](v, (u64)i); v ^= deep({depth}, v); }} sink = v; leave(); }}\n"
                     '__asm__(".globl _start\\n_start: xor %ebp, %ebp\\n and $-16, %rsp\\n call start\\n");\n')
        return "".join(parts)


def program(seed):
    return Maker(seed).program()


if __name__ == "__main__":
    import sys
    print(program(int(sys.argv[1])))
