package grant

import (
	"errors"
	"fmt"

	"github.com/hako-run/hako/host/manifest"
)

// Choices are what an operator chooses for a plugin, by the names that the plugin's manifest gives its permissions. Proposal.Choices returns
// those that hold so far, and Proposal.Settle takes them changed, so whatever asks the operator, the same rules hold.
type Choices struct {
	Mounts map[string]MountChoice `json:"mounts"`
	HTTP   map[string]HTTPMapping `json:"http"`
	// Exec is nil where the plugin asks for no commands.
	Exec *ExecChoice `json:"exec,omitempty"`
	// Note is for those who read the consents, at most 500 bytes.
	Note string `json:"note,omitempty"`
}

// MountChoice is the folder for a mount.
type MountChoice struct {
	// Dir is an absolute path. Empty means that none is chosen yet.
	Dir string `json:"dir"`
	// ReadOnly allows reading only, where the plugin asks for more.
	ReadOnly bool `json:"readOnly"`
}

// ExecChoice is what Exec has, as people write it. Elements that are empty do not count. Each list has at most 64 elements.
type ExecChoice struct {
	Programs []string `json:"programs"`
	Env      []string `json:"env"`
	// Connect has the form of ParseConnect.
	Connect    []string `json:"connect"`
	Unconfined bool     `json:"unconfined"`
}

// ChoiceError says why an operator cannot choose something. Several come joined; ChoiceErrors finds them.
type ChoiceError struct {
	// Field is what was chosen: "mounts.NAME.dir", "http.NAME.url", "http.NAME.credential", "exec.programs", "exec.env", "exec.connect" or "note".
	Field string
	// Text is for who stands before that field, in English and Japanese.
	Text manifest.Text

	message string
}

func (e *ChoiceError) Error() string { return e.message }

// ChoiceErrors returns those in err, in order.
func ChoiceErrors(err error) []*ChoiceError {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var list []*ChoiceError
		for _, e := range joined.Unwrap() {
			list = append(list, ChoiceErrors(e)...)
		}
		return list
	}
	if wrapped := errors.Unwrap(err); wrapped != nil {
		return ChoiceErrors(wrapped)
	}
	if e, ok := errors.AsType[*ChoiceError](err); ok {
		return []*ChoiceError{e}
	}
	return nil
}

// wrong is an error about a field of a plugin's consent. message is for who does not see the field.
func wrong(field string, text manifest.Text, message string) *ChoiceError {
	return &ChoiceError{Field: field, Text: text, message: message}
}

func wrongMount(plugin, name string, text manifest.Text) *ChoiceError {
	return wrong("mounts."+name+".dir", text, fmt.Sprintf("plugin %s: mount %s: %s", plugin, name, text["en"]))
}

func wrongHTTP(plugin, name, field string, text manifest.Text) *ChoiceError {
	return wrong("http."+name+"."+field, text, fmt.Sprintf("plugin %s: HTTP permission %s: %s", plugin, name, text["en"]))
}

func wrongExec(plugin, field string, text manifest.Text) *ChoiceError {
	return wrong("exec."+field, text, fmt.Sprintf("plugin %s: exec: %s", plugin, text["en"]))
}

// both says something in English and Japanese, of the same arguments.
func both(english, japanese string, args ...any) manifest.Text {
	return manifest.Text{"en": fmt.Sprintf(english, args...), "ja": fmt.Sprintf(japanese, args...)}
}
