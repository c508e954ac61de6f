package execbroker

import (
	"github.com/hako-run/hako/host/broker/exec/judge"
	"github.com/hako-run/hako/host/grant"
)

// Open lets the kernel allow everything in tree, and reading and starting everything there is, so that a test sees what the rules alone
// hold back.
func (b *Broker) Open(tree string) {
	b.base.Read = append(b.base.Read, "/")
	b.base.Execute = append(b.base.Execute, "/")
	b.base.Write = append(b.base.Write, tree)
}

// AllowAll is a rule by which everything may start, so that a test sees what the kernel alone holds back.
var AllowAll = judge.Rule{Name: "everything", Action: judge.Allow, Programs: []string{"*"}}

// DecodeRequest is for fuzzing, UnconfinableOn for machines of other kinds.
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

// Dir is the cwd resolver.
func (r *Roots) Dir(cwd string) (string, error) {
	dir, err := r.dir(cwd, "")
	if err != nil {
		return "", err
	}
	return dir, nil
}
