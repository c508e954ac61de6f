package execbroker

import (
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/judge"
)

// Open makes the kernel allow everything in tree, and reading and executing all files, so that only the rules restrict
// commands.
func (b *Broker) Open(tree string) {
	b.base.Read = append(b.base.Read, "/")
	b.base.Execute = append(b.base.Execute, "/")
	b.base.Write = append(b.base.Write, tree)
}

// AllowAll is a rule that allows every program, so that only the kernel restricts commands.
var AllowAll = judge.Rule{Name: "everything", Action: judge.Allow, Programs: []string{"*"}}

// DecodeRequest is exported for fuzzing, UnconfinableOn for tests of other machines.
var (
	DecodeRequest  = decodeRequest
	UnconfinableOn = unconfinable
)

// Roots are the directories that commands work in.
type Roots struct{ roots }

// NewRoots returns the roots of mounts.
func NewRoots(mounts []grant.Mount) (*Roots, error) {
	r, err := newRoots(mounts)
	return &Roots{r}, err
}

// Dir resolves a working directory.
func (r *Roots) Dir(cwd string) (string, error) {
	dir, err := r.resolveDir(cwd, "")
	if err != nil {
		return "", err
	}
	return dir, nil
}
