package main

import (
	"os"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"go.mod":          "module example.test/m\n\ngo 1.24\n",
		"m.go":            "package m\n\nimport \"os\"\n\nvar Signal = os.Interrupt\n",
		"m_test.go":       "package m_test\n\nimport (\n\t\"testing\"\n\n\t\"example.test/m\"\n)\n\nfunc TestSignal(*testing.T) { _ = m.Signal }\n",
		"m_windows.go":    "package m\n\nimport \"syscall\"\n\nfunc stop() { _ = syscall.Kill(1, 9) }\n",
		"m_plan9_test.go": "package m_test\n\nfunc init() { missing() }\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for system, want := range map[string]string{"darwin": "", "windows": "m_windows.go:5:27: undefined: syscall.Kill",
		"plan9": "undefined: missing"} {
		switch err := check(system); {
		case want == "" && err != nil:
			t.Errorf("%s: %v", system, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", system, err, want)
		}
	}
}
