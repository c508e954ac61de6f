// Package repository tests the repository as a whole: layers, imports, documents and their links, what may skip, and
// how releases are built.
package repository_test

import (
	"os"
	"sync"
	"testing"
)

var chdir = sync.OnceValue(func() error { return os.Chdir("../..") })

// inRoot lets a test run in the root folder. That happens within a test, and not in TestMain, because only then go test
// knows which files the results depend on.
func inRoot(t *testing.T) {
	t.Helper()
	if err := chdir(); err != nil {
		t.Fatal(err)
	}
}
