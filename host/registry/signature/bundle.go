package signature

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/verify"
)

const (
	// bundleType is the type of Sigstore bundles, as artifacts and as layers.
	bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	// signPredicate is the statement of "cosign sign". Other statements about a plugin, such as who built it or what it
	// contains, are no consent to publish it.
	signPredicate = "https://sigstore.dev/cosign/sign/v1"
)

// bundleCandidate is a Sigstore bundle with a signed statement, which cosign 3 makes.
type bundleCandidate []byte

func (c bundleCandidate) verify(p *Policy, trusted []*trustedSigner, digest string) (Signer, error) {
	if len(c) > maxSignature {
		return Signer{}, errTooLarge
	}
	var b bundle.Bundle
	if err := b.UnmarshalJSON(c); err != nil {
		return Signer{}, fmt.Errorf("it is not a Sigstore bundle: %w", err)
	}
	if b.GetDsseEnvelope() == nil {
		return Signer{}, errors.New("it signs bytes and no statement about a plugin")
	}
	sum, err := hex.DecodeString(strings.TrimPrefix(digest, digestPrefix))
	if err != nil {
		return Signer{}, err
	}
	manifest := func() verify.ArtifactPolicyOption { return verify.WithArtifactDigest("sha256", sum) }
	signer, result, err := verifyEntity(&b, p, trusted, manifest)
	if err != nil {
		return Signer{}, err
	}
	if result.Statement == nil || result.Statement.PredicateType != signPredicate {
		return Signer{}, fmt.Errorf("it is the statement %q, and no signature", result.Statement.GetPredicateType())
	}
	return signer, nil
}

// artifact returns what was signed. Each verification needs a new one.
type artifact func() verify.ArtifactPolicyOption

// verifyEntity returns who of trusted signed the artifact.
func verifyEntity(entity verify.SignedEntity, p *Policy, trusted []*trustedSigner,
	signed artifact) (Signer, *verify.VerificationResult, error) {
	content, err := entity.VerificationContent()
	if err != nil {
		return Signer{}, nil, err
	}
	if content.Certificate() == nil {
		return verifyKeys(entity, trusted, signed)
	}
	return verifyIdentities(entity, p, trusted, signed)
}

func verifyKeys(entity verify.SignedEntity, trusted []*trustedSigner,
	signed artifact) (Signer, *verify.VerificationResult, error) {
	err := errors.New("it was made with a key, and no key is trusted for this repository")
	for _, t := range trusted {
		if t.key == nil {
			continue
		}
		for _, verifier := range t.key.verifiers {
			var result *verify.VerificationResult
			result, err = verifier.Verify(entity, verify.NewPolicy(signed(), verify.WithKey()))
			if err == nil {
				return Signer{Key: t.key.ID}, result, nil
			}
		}
	}
	return Signer{}, nil, err
}

func verifyIdentities(entity verify.SignedEntity, p *Policy, trusted []*trustedSigner,
	signed artifact) (Signer, *verify.VerificationResult, error) {
	var identities []verify.PolicyOption
	for _, t := range trusted {
		if t.key == nil {
			identities = append(identities, verify.WithCertificateIdentity(t.identity))
		}
	}
	if len(identities) == 0 {
		return Signer{}, nil, errors.New("it was made with an identity, and no identity is trusted for this repository")
	}
	verifier, err := p.instance()
	if err != nil {
		return Signer{}, nil, err
	}
	result, err := verifier.Verify(entity, verify.NewPolicy(signed(), identities...))
	if err != nil {
		return Signer{}, nil, withIdentity(entity, err)
	}
	c := result.Signature.Certificate
	return Signer{Issuer: c.Issuer, Subject: c.SubjectAlternativeName}, result, nil
}

// withIdentity names who signed in an error that says that nobody who is trusted did.
func withIdentity(entity verify.SignedEntity, err error) error {
	var mismatch *verify.ErrNoMatchingCertificateIdentity
	if !errors.As(err, &mismatch) {
		return err
	}
	content, contentErr := entity.VerificationContent()
	if contentErr != nil {
		return err
	}
	summary, summaryErr := certificate.SummarizeCertificate(content.Certificate())
	if summaryErr != nil {
		return err
	}
	return fmt.Errorf("it is signed by %s, whose issuer is %s", summary.SubjectAlternativeName, summary.Issuer)
}
