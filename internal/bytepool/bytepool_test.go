package bytepool

import "testing"

func TestPut(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, maxKept, maxKept + 1} {
		for range 100 {
			b := Get()
			if len(*b) != 0 || cap(*b) > maxKept {
				t.Fatalf("a slice has %d bytes and room for %d", len(*b), cap(*b))
			}
			*b = make([]byte, size)
			Put(b)
		}
	}
}
