//go:build !unix

package credential

// syncDir does nothing: the system does not support it.
func syncDir(string) error { return nil }
