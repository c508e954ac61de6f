package server

import (
	"errors"
	"io/fs"
	"os"

	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/govern/policy"
)

// shownPolicy is the policy for the console.
type shownPolicy struct {
	server *Server
}

var _ console.Policy = shownPolicy{}

func (s shownPolicy) live() *policy.Live { return s.server.governance.policy }

// Current implements console.Policy.
func (s shownPolicy) Current() *policy.Policy { return s.live().Policy() }

// Err implements console.Policy.
func (s shownPolicy) Err() error { return s.live().Err() }

// File implements console.Policy.
func (s shownPolicy) File() string { return s.live().Path() }

// Text implements console.Policy.
func (s shownPolicy) Text() (string, error) {
	data, err := os.ReadFile(s.File())
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}

// Site implements console.Policy.
func (s shownPolicy) Site() *policy.Site {
	return inspect.PolicySite(s.server.reloader.config(), s.server.plugins.host.Load())
}

// Resolve implements console.Policy.
func (s shownPolicy) Resolve(caller *policy.Caller) error {
	return inspect.ResolveCaller(s.server.reloader.config(), caller, nil)
}
