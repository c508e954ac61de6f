package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

// proposeWith returns the proposal for a plugin by flags given in dir, where the consents are too.
func proposeWith(t *testing.T, dir string, asked manifest.Permissions, args ...string) (*approveFlags, *grant.Proposal,
	error) {
	t.Helper()
	var f approveFlags
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.add(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	c := &config.Config{Consents: filepath.Join(dir, "hako.consents.yaml")}
	file, err := grant.Load(c.Consents)
	if err != nil {
		t.Fatal(err)
	}
	p := &host.Status{Name: "notes", Digest: "sha256:1",
		Manifest: &manifest.Manifest{Name: "notes", Version: "1.0.0", Permissions: asked}}
	proposal, _, err := f.propose(file, c, grant.Roots{}, p, dir)
	return &f, proposal, err
}

var asksForFiles = manifest.Permissions{Files: []manifest.FilePermission{{Mount: "notes", Write: true}}}

// TestApproveFlagsFolder: a folder that was given relative is stored relative to the consents, so that both can move.
func TestApproveFlagsFolder(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "mine")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for mount, want := range map[string]string{"notes=mine": "mine", "notes=" + folder: folder} {
		_, p, err := proposeWith(t, dir, asksForFiles, "--mount", mount)
		if err != nil || p.Consent.Mounts["notes"].Path != want {
			t.Errorf("--mount %s: %v, %+v, want the path %s", mount, err, p, want)
		}
	}
	if _, _, err := proposeWith(t, dir, asksForFiles); err == nil || !strings.Contains(err.Error(), "--mount notes=DIR") {
		t.Errorf("without a folder: %v, want the remedy", err)
	}
}

func TestApproveFlagsQuestion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, test := range map[string]struct {
		asked   manifest.Permissions
		args    []string
		trivial bool
		want    bool
	}{
		"a question":             {},
		"--yes":                  {args: []string{"--yes"}, want: true},
		"trivial":                {trivial: true, want: true},
		"trivial, asks for more": {asked: asksForFiles, args: []string{"--mount", "notes=."}, trivial: true},
	} {
		f, p, err := proposeWith(t, dir, test.asked, test.args...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		f.trivial = test.trivial
		if got := f.approves(p); got != test.want {
			t.Errorf("%s: approves without a question: %t", name, got)
		}
	}
}
