//go:build !unix

package credential

// syncDir does nothing: the system has no way to.
func syncDir(string) error { return nil }
