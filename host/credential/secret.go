package credential

import "context"

// Secret is a secret of the host, such as the key of a model's API. It is safe for concurrent use.
type Secret struct{ secret secret }

// NewSecret returns a Secret that is read from source when it is first needed.
func NewSecret(source Source) *Secret { return &Secret{secret{source: source}} }

// Read returns the secret: the current content of a file, or for other sources the value at the first use or after
// Forget. The error names the source and does not contain the secret.
func (s *Secret) Read(ctx context.Context) (string, error) { return s.secret.read(ctx) }

// Forget makes the next Read query the source again, after a server has refused the secret.
func (s *Secret) Forget() { s.secret.forget() }
