package inspect

import (
	"fmt"
	"slices"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/pluginfile"
	"github.com/hako-run/hako/host/grant"
)

// OtherVersion returns a note if another version of the plugin than the one in the folder serves a tool. It is empty if
// that is not so.
func OtherVersion(plugins []host.Status, tool string) string {
	for _, p := range plugins {
		if p.Serving != "" && p.Serving != p.Digest && slices.Contains(p.Tools, tool) {
			return fmt.Sprintf("another version of plugin %s answers than %s: %s", p.Name, p.Path, p.Reason)
		}
	}
	return ""
}

// OtherApproved returns a note if another version of a plugin is approved than the file that was built, which waits for
// consent. It is empty if that is not so.
func OtherApproved(file *grant.File, wasm []byte, rule grant.UpdateRule) (string, error) {
	m, module, err := pluginfile.Parse(wasm)
	if err != nil {
		return "", err
	}
	approved, ok := file.InForce(m.Name)
	if !ok || file.Decide(m, module.Digest, rule).State == grant.Approved {
		return "", nil
	}
	return fmt.Sprintf("The approved version %s of plugin %s stays in service until you approve this one: "+
		"hako plugin approve %[2]s", approved.Version, m.Name), nil
}
