// Package signature verifies who signed a plugin in a registry, as cosign signs: with a key, or keyless with an
// identity that a certificate of a Sigstore instance names. It reads Sigstore bundles that refer to the plugin's
// manifest, and the tag "sha256-….sig" of cosign before version 3. A Policy decides whose signatures are needed for
// which repositories.
//
// The cryptography is that of sigstore-go. Nothing is downloaded but the signatures: the keys and certificates that are
// trusted come from the operator's files.
package signature

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hako-run/hako/host/registry"
	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/visible"
)

// Signer is an identity, which is an OpenID Connect issuer with a subject, or a key that signed a plugin. The zero
// value is nobody.
type Signer struct {
	Issuer, Subject string
	// Key is "sha256:" and the SHA-256 digest of the public key in PKIX form.
	Key string
}

// String returns one line about who signed, or that nobody did.
func (s Signer) String() string {
	switch {
	case s == Signer{}:
		return "unsigned"
	case s.Key != "":
		return "signed with the key " + visible.Line(s.Key)
	}
	return "signed by " + visible.Line(s.Subject) + " (" + visible.Line(s.Issuer) + ")"
}

// Registry is the part of a registry.Client that Verify uses.
type Registry interface {
	Referrers(ctx context.Context, r registry.Reference, artifactType string) (list []registry.Referrer, unread []error,
		err error)
	Layers(ctx context.Context, r registry.Reference) ([]registry.Layer, error)
}

var _ Registry = (*registry.Client)(nil)

const (
	// maxSignatures bounds the signatures that are verified for one plugin.
	maxSignatures = 64
	// maxSignature bounds one signature with its certificates and proofs, in bytes. Real ones have 2 to 15 KiB.
	maxSignature = 256 << 10
	// maxReasons bounds the signatures whose faults an error lists.
	maxReasons = 5
)

// Verify returns who signed the manifest with the digest in r's repository. It returns the zero Signer if policy needs
// no signature for the repository. It fails if policy needs one and none is there that holds: no signature of somebody
// else, for something else or from an untrusted instance counts, whatever else is there.
func Verify(ctx context.Context, client Registry, r registry.Reference, digest string, policy *Policy) (Signer, error) {
	trusted, err := policy.trustedFor(r)
	if err != nil || len(trusted) == 0 {
		return Signer{}, err
	}
	r = registry.Reference{Registry: r.Registry, Repository: r.Repository, Digest: digest}
	candidates, faults, err := fetch(ctx, client, r)
	if err != nil {
		return Signer{}, fmt.Errorf("signatures of %s: %w", r, err)
	}
	for i, c := range candidates {
		if i == maxSignatures {
			return Signer{}, fmt.Errorf(
				"%s has more than %d signatures, none of the first ones is valid: ask who may push to the "+
					"repository to remove those that are not needed", r, maxSignatures)
		}
		signer, err := c.verify(policy, trusted, digest)
		if err == nil {
			return signer, nil
		}
		faults = append(faults, err)
	}
	var reasons []string
	for _, err := range faults[:min(len(faults), maxReasons)] {
		reasons = append(reasons, clip.Marked(visible.Line(err.Error()), 500))
	}
	return Signer{}, refusal(r, trusted, len(faults), reasons)
}

// refusal returns which signatures are missing and what to do.
func refusal(r registry.Reference, trusted []*trustedSigner, count int, reasons []string) error {
	var names []string
	for _, t := range trusted {
		names = append(names, t.Name)
	}
	needed := "a signature of " + strings.Join(names, " or ")
	if count == 0 {
		return fmt.Errorf("%s is not signed, and signers in the configuration needs %s for this repository: ask its "+
			"publisher to sign it, with cosign sign or hako plugin push --sign, or remove the repository from "+
			"signers.%s.for if unsigned plugins are right", r, needed, names[0])
	}
	return fmt.Errorf("%s has no valid signature, and signers in the configuration needs %s for this repository. "+
		"Of %d: %s. Ask its publisher to sign it with the right key or identity; if another one is right, add it to signers",
		r, needed, count, strings.Join(reasons, "; "))
}

// candidate is a signature as a registry has it, with nothing verified.
type candidate interface {
	// verify returns the signer if it is one of trusted and signed digest.
	verify(p *Policy, trusted []*trustedSigner, digest string) (Signer, error)
}

// fetch returns the signatures for r, which has a digest, those in the current format first. unread says which could
// not be read.
func fetch(ctx context.Context, client Registry, r registry.Reference) (list []candidate, unread []error, err error) {
	referrers, unread, err := client.Referrers(ctx, r, bundleType)
	if err != nil {
		return nil, nil, err
	}
	for _, referrer := range referrers {
		for _, layer := range referrer.Layers {
			list = append(list, bundleCandidate(layer.Content))
		}
	}
	tagged := registry.Reference{Registry: r.Registry, Repository: r.Repository, Tag: registry.CosignTag(r.Digest)}
	layers, err := client.Layers(ctx, tagged)
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		unread = append(unread, err) // whoever may push to the repository can write the tag
	}
	for _, layer := range layers {
		if layer.MediaType == simpleType {
			list = append(list, simpleCandidate{payload: layer.Content, annotations: layer.Annotations})
		}
	}
	return list, unread, nil
}

var errTooLarge = fmt.Errorf("a signature is larger than %d KiB", maxSignature>>10)
