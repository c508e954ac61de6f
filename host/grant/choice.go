package grant

import (
	"errors"
	"fmt"

	"github.com/hako-run/hako/host/manifest"
)

// Choices are an operator's choices for one plugin, by the permission names in its manifest. Proposal.Choices returns
// the current ones and Proposal.Settle validates and applies changed ones, so that the same rules hold for every user
// interface.
type Choices struct {
	Mounts map[string]MountChoice `json:"mounts"`
	HTTP   map[string]HTTPMapping `json:"http"`
	// Exec is nil if the plugin asks for no commands.
	Exec *ExecChoice `json:"exec,omitempty"`
	// Note is the operator's comment, at most 500 bytes.
	Note string `json:"note,omitempty"`
}

// MountChoice is the folder for a mount.
type MountChoice struct {
	// Dir is an absolute path. It is empty until one is chosen.
	Dir string `json:"dir"`
	// ReadOnly allows only reading, even if the plugin asks for more.
	ReadOnly bool `json:"readOnly"`
}

// ExecChoice is the choice for commands, as written by people. Empty elements are ignored. Each list has at most 64
// elements.
type ExecChoice struct {
	Programs []string `json:"programs"`
	Env      []string `json:"env"`
	// Connect has elements in the form of ParseConnect.
	Connect    []string `json:"connect"`
	Unconfined bool     `json:"unconfined"`
}

// ChoiceError reports an invalid choice. Several are joined; ChoiceErrors extracts them.
type ChoiceError struct {
	// Field is the invalid field: "mounts.NAME.dir", "http.NAME.url", "http.NAME.credential", "exec.programs",
	// "exec.env", "exec.connect" or "note".
	Field string
	// Text is the error for display beside the field, in English and Japanese.
	Text manifest.Text

	message string
}

func (e *ChoiceError) Error() string { return e.message }

// ChoiceErrors returns the ChoiceErrors in err, in order.
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

// choiceError returns an error about a field of a consent. message is the text for readers who do not see the field.
func choiceError(field string, text manifest.Text, message string) *ChoiceError {
	return &ChoiceError{Field: field, Text: text, message: message}
}

func mountError(plugin, name string, text manifest.Text) *ChoiceError {
	return choiceError("mounts."+name+".dir", text, fmt.Sprintf("plugin %s: mount %s: %s", plugin, name, text["en"]))
}

func httpError(plugin, name, field string, text manifest.Text) *ChoiceError {
	return choiceError("http."+name+"."+field, text, fmt.Sprintf("plugin %s: HTTP permission %s: %s",
		plugin, name, text["en"]))
}

func execError(plugin, field string, text manifest.Text) *ChoiceError {
	return choiceError("exec."+field, text, fmt.Sprintf("plugin %s: exec: %s", plugin, text["en"]))
}

// bilingual formats a text in English and Japanese with the same arguments.
func bilingual(english, japanese string, args ...any) manifest.Text {
	return manifest.Text{"en": fmt.Sprintf(english, args...), "ja": fmt.Sprintf(japanese, args...)}
}
