package sandbox

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hako-run/hako/host/catalog"
)

// unusable returns the error for a plugin whose code cannot be loaded, which is the guest's fault. It is nil if err is.
func (p *Plugin) unusable(err error) error {
	if err == nil {
		return nil
	}
	return &catalog.GuestError{Plugin: p.spec.Name, Reason: "cannot be used: " + firstLine(err), Err: err}
}

// named adds the name of the plugin to an error, unless that has it.
func (p *Plugin) named(err error) error {
	var guest *catalog.GuestError
	if errors.As(err, &guest) {
		return err
	}
	return fmt.Errorf("plugin %s: %w", p.spec.Name, err)
}

// firstLine drops the stack trace that the runtime appends to a trap.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(line, " (recovered by wazero)")
}
