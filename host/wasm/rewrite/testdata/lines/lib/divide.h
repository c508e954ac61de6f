__attribute__((noinline)) static int divide(int a, int b) {
	if (b == 0)
		__builtin_trap();
	return a / b;
}
