static volatile unsigned long sink;
__attribute__((noinline)) static void spin(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		sink = sink * 3 + i;
}
__attribute__((noinline)) static void half(unsigned long n) { spin(5 * n); sink++; }
__attribute__((noinline)) static void third(unsigned long n)
{
	for (unsigned long i = 0; i < 3 * n; i++)
		sink = sink * 3 + i;
}
__attribute__((noinline)) static void fifth(unsigned long n) { spin(2 * n); sink++; }
__attribute__((noinline)) static void down(unsigned depth, unsigned long n)
{
	if (depth)
		down(depth - 1, n);
	else
		spin(n);
	sink++;
}
__attribute__((noinline)) static void work(unsigned long n)
{
	half(n);
	third(n);
	fifth(n);
	down(3, n);
}
void _start(void)
{
	for (int i = 0; i < 4; i++)
		work(400000);
	register long status __asm__("x0") = 0, number __asm__("x8") = 93;
	__asm__ volatile("svc 0" ::"r"(status), "r"(number));
	__builtin_unreachable();
}
