// Package repository tests the repository as a whole: layers, imports, documents and their links, what may skip, and
// how releases are built.
package repository_test

import (
	"fmt"
	"os"
	"testing"
)

// TestMain runs the tests in the root folder.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
