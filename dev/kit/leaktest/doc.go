// Package leaktest finds constructors that fail halfway and leave files, goroutines, processes or temporary files
// behind.
//
// Run makes a constructor fail at each step: it runs it with no file descriptor to spare, then with one, and so on
// until it succeeds, and with a context that ends at its first use, its second, and so on. It works on Linux.
package leaktest
