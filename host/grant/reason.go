package grant

import (
	"slices"
	"strings"

	"github.com/hako-run/hako/host/manifest"
)

// Reason explains why a plugin is not in service, in English and Japanese. The zero value explains nothing.
type Reason struct {
	// Cause is one sentence without a full stop.
	Cause manifest.Text
	// Remedy says what to do. It is empty if the cause says it.
	Remedy manifest.Text
	// Command is the command in Remedy, if there is one.
	Command string
}

// Because returns a reason without a remedy, in both languages with the same arguments.
func Because(english, japanese string, args ...any) Reason {
	return Reason{Cause: bilingual(english, japanese, args...)}
}

// WithRemedy returns the reason with a remedy.
func (r Reason) WithRemedy(english, japanese string, args ...any) Reason {
	r.Remedy = bilingual(english, japanese, args...)
	return r
}

// In returns cause and remedy as two sentences.
func (r Reason) In(language string) string {
	cause, remedy := r.Cause.In(language), r.Remedy.In(language)
	if remedy == "" {
		return cause
	}
	return cause + manifest.Text{"en": ". ", "ja": "。"}.In(language) + remedy
}

// withApproval adds the command that approves the plugin. before is the consent whose choices are kept, or nil.
func (r Reason) withApproval(m *manifest.Manifest, before *Consent) Reason {
	r.Command = ApproveCommand(m.Name, m.Permissions, before)
	return r.WithRemedy("To approve it: %s", "承認するには: %s", r.Command)
}

// ApproveCommand is the command that approves a plugin with these permissions. What the operator has to choose, and has
// not chosen in before, is there with an example: the folder of the mount's name, and the programs that the plugin
// names, or else git and ls. Nil means that nothing was chosen.
func ApproveCommand(plugin string, asked manifest.Permissions, before *Consent) string {
	words := []string{"hako plugin approve", plugin}
	for _, p := range asked.Files {
		if before != nil {
			if _, chosen := before.Mounts[p.Mount]; chosen {
				continue
			}
		}
		words = append(words, "--mount "+p.Mount+"=./"+p.Mount)
	}
	if e := asked.Exec; e != nil && slices.Contains(e.Programs, manifest.AnyProgram) &&
		(before == nil || len(before.Exec.Programs) == 0) {
		words = append(words, "--program git --program ls")
	}
	return strings.Join(words, " ")
}
