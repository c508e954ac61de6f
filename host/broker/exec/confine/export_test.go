//go:build linux

package confine

// Pretend makes Check say something else until the returned function is called. Nothing else may run commands meanwhile.
func Pretend(s Support) (restore func()) {
	real := check
	check = func() Support { return s }
	return func() { check = real }
}
