package install

import (
	"github.com/hako-run/hako/host/registry"
	"github.com/hako-run/hako/host/registry/lock"
	"github.com/hako-run/hako/host/registry/signature"
)

// checkSigner fails if the configuration needs a signature for what came from origin, and its signer is none of those
// who are trusted for it. The signer was verified when it was downloaded, now or when it was recorded.
func (f *Folder) checkSigner(origin lock.Entry) error {
	policy, err := signature.NewPolicy(f.config.Signatures)
	if err != nil {
		return err
	}
	if origin.From == lock.FromFile {
		return policy.CheckUnsigned("a file")
	}
	if !registry.HasScheme(origin.From) {
		return policy.CheckUnsigned(origin.From)
	}
	r, err := registry.ParseReference(origin.From)
	if err != nil {
		return err
	}
	return policy.CheckRecorded(r, signerOf(origin))
}

// lockedSigner returns a signer for the lock file: nil if it is nobody.
func lockedSigner(s signature.Signer) *lock.Signer {
	signer := lock.Signer(s)
	if signer == (lock.Signer{}) {
		return nil
	}
	return &signer
}

// signerOf returns the signer of an entry of the lock file.
func signerOf(e lock.Entry) signature.Signer {
	if e.Signer == nil {
		return signature.Signer{}
	}
	return signature.Signer(*e.Signer)
}

// Signer returns who signed the plugin, as it was verified. The zero value is nobody.
func (a *Addition) Signer() signature.Signer { return signerOf(a.Entry) }
