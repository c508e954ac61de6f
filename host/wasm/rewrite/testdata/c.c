// Prints the results of many small computations; built with zig cc -target wasm32-wasi -O2 -s.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

typedef int (*operation)(int, int);
static int add(int a, int b) { return a + b; }
static int sub(int a, int b) { return a - b; }
static int mul(int a, int b) { return a * b; }
static operation operations[] = {add, sub, mul};

static int classify(int n) {
	switch (n % 9) {
	case 0: return 3;
	case 1: return n;
	case 2: return -n;
	case 3: return n * n;
	case 4: return n >> 1;
	case 7: return 11;
	default: return 0;
	}
}

static uint32_t crc(const unsigned char *data, size_t length) {
	uint32_t c = ~0u;
	for (size_t i = 0; i < length; i++) {
		c ^= data[i];
		for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
	}
	return ~c;
}

int main(void) {
	printf("fib %d\n", fib(22));
	int numbers[1000];
	for (int i = 0; i < 1000; i++) numbers[i] = i * 7919 % 2003;
	qsort(numbers, 1000, sizeof *numbers, compare);
	printf("sorted %d %d %d\n", numbers[0], numbers[500], numbers[999]);
	int total = 0;
	for (int i = 0; i < 3000; i++) total += operations[i % 3](total & 0xff, i) + classify(i);
	printf("total %d\n", total);
	char *text = malloc(100000);
	memset(text, 'x', 100000);
	memmove(text + 1, text + 50000, 40000);
	for (int i = 0; i < 100; i++) snprintf(text + i * 30, 30, "%05d %.3f %g", i, sqrt(i), pow(1.1, i));
	printf("crc %08x\n", crc((unsigned char *)text, 100000));
	text = realloc(text, 3000000);
	memset(text + 100000, 7, 2900000);
	printf("crc %08x\n", crc((unsigned char *)text, 3000000));
	for (double x = -2; x < 2; x += 0.37) printf("%.9g %.9g %.9g %d\n", sin(x), exp(x), floor(x * 10), (int)lround(x * 100));
	uint64_t state = 88172645463325252ull;
	for (int i = 0; i < 10000; i++) { state ^= state << 13; state ^= state >> 7; state ^= state << 17; }
	printf("random %016llx %d\n", (unsigned long long)state, __builtin_popcountll(state));
	free(text);
	volatile int *nowhere = (volatile int *)0xfffffff0u;
	fflush(stdout);
	return *nowhere;
}
