package credential

import "context"

// Secret is a secret of the host's own, such as the key of a model's API. It is safe for concurrent use.
type Secret struct{ secret secret }

// NewSecret returns a Secret that is read from source when it is needed first.
func NewSecret(source Source) *Secret { return &Secret{secret{source: source}} }

// Read returns the secret: a file's as it is now, otherwise what the source gave at the first use or after Forget. The error names
// the source and holds nothing of the secret.
func (s *Secret) Read(ctx context.Context) (string, error) { return s.secret.read(ctx) }

// Forget makes the next Read ask the source again, because a server refused what it gave.
func (s *Secret) Forget() { s.secret.forget() }
