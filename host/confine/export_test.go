//go:build linux

package confine

// Pretend makes Check return s until restore is called. No other test may run commands meanwhile.
func Pretend(s Support) (restore func()) {
	real := check
	check = func() Support { return s }
	return func() { check = real }
}
