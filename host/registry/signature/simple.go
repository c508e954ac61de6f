package signature

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/hako-run/hako/internal/strictjson"
)

const (
	// simpleType is the type of layers with a payload in the format "simple signing".
	simpleType = "application/vnd.dev.cosign.simplesigning.v1+json"
	// simpleBundle is a version of bundles whose rules are those of the annotations: a promise of the log suffices.
	simpleBundle = "application/vnd.dev.sigstore.bundle+json;version=0.1"
	// payloadType is the type in a payload of cosign.
	payloadType = "cosign container image signature"
)

// Annotations of a layer, with what belongs to its payload.
const (
	signatureAnnotation   = "dev.cosignproject.cosign/signature"
	certificateAnnotation = "dev.sigstore.cosign/certificate"
	logAnnotation         = "dev.sigstore.cosign/bundle"
	timestampAnnotation   = "dev.sigstore.cosign/rfc3161timestamp"
)

// simpleCandidate is a layer under registry.CosignTag: a signed payload that names the digest.
//
// Source: https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md.
type simpleCandidate struct {
	payload     []byte
	annotations map[string]string
}

func (c simpleCandidate) verify(p *Policy, trusted []*trustedSigner, digest string) (Signer, error) {
	size := len(c.payload)
	for _, value := range c.annotations {
		size += len(value)
	}
	if size > maxSignature {
		return Signer{}, errTooLarge
	}
	b, err := c.bundle()
	if err != nil {
		return Signer{}, err
	}
	payload := func() verify.ArtifactPolicyOption { return verify.WithArtifact(bytes.NewReader(c.payload)) }
	signer, _, err := verifyEntity(b, p, trusted, payload)
	if err != nil {
		return Signer{}, err
	}
	if err := checkPayload(c.payload, digest); err != nil {
		return Signer{}, err
	}
	return signer, nil
}

// checkPayload checks that a payload, whose signature holds, is about digest.
func checkPayload(text []byte, digest string) error {
	var payload struct {
		Critical struct {
			Image struct {
				Digest string `json:"docker-manifest-digest"`
			} `json:"image"`
			Type string `json:"type"`
		} `json:"critical"`
	}
	switch err := strictjson.Unmarshal(text, &payload); {
	case err != nil:
		return errors.New("its payload is not JSON as cosign writes it")
	case payload.Critical.Type != payloadType:
		return fmt.Errorf("its payload is a %q, and not a %q", payload.Critical.Type, payloadType)
	case payload.Critical.Image.Digest != digest:
		return fmt.Errorf("it is for %s", payload.Critical.Image.Digest)
	}
	return nil
}

// bundle returns the signature as a Sigstore bundle, which is verified like others.
func (c simpleCandidate) bundle() (*bundle.Bundle, error) {
	sum := sha256.Sum256(c.payload)
	sig, err := base64.StdEncoding.DecodeString(c.annotations[signatureAnnotation])
	if err != nil || len(sig) == 0 {
		return nil, errors.New("its annotations have no signature in base64")
	}
	b := &protobundle.Bundle{
		MediaType: simpleBundle,
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum[:]},
			Signature:     sig,
		}},
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{}},
		},
	}
	material := b.VerificationMaterial
	if text := c.annotations[certificateAnnotation]; text != "" {
		block, _ := pem.Decode([]byte(text))
		if block == nil {
			return nil, errors.New("its certificate is not PEM")
		}
		material.Content = &protobundle.VerificationMaterial_X509CertificateChain{
			X509CertificateChain: &protocommon.X509CertificateChain{
				Certificates: []*protocommon.X509Certificate{{RawBytes: block.Bytes}},
			},
		}
	}
	if text := c.annotations[logAnnotation]; text != "" {
		entry, err := logEntry([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("its entry of the transparency log cannot be read: %w", err)
		}
		material.TlogEntries = []*protorekor.TransparencyLogEntry{entry}
	}
	if text := c.annotations[timestampAnnotation]; text != "" {
		var stamp struct{ SignedRFC3161Timestamp []byte }
		if err := strictjson.Unmarshal([]byte(text), &stamp); err != nil {
			return nil, fmt.Errorf("its timestamp cannot be read: %w", err)
		}
		material.TimestampVerificationData = &protobundle.TimestampVerificationData{
			Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: stamp.SignedRFC3161Timestamp}},
		}
	}
	return bundle.NewBundle(b)
}

// logEntry converts an entry of the transparency log Rekor.
func logEntry(text []byte) (*protorekor.TransparencyLogEntry, error) {
	var entry struct {
		SignedEntryTimestamp []byte
		Payload              struct {
			Body           []byte `json:"body"`
			IntegratedTime int64  `json:"integratedTime"`
			LogIndex       int64  `json:"logIndex"`
			LogID          string `json:"logID"`
		}
	}
	if err := strictjson.Unmarshal(text, &entry); err != nil {
		return nil, err
	}
	var body struct {
		Kind    string `json:"kind"`
		Version string `json:"apiVersion"`
	}
	if err := strictjson.Unmarshal(entry.Payload.Body, &body); err != nil {
		return nil, err
	}
	id, err := hex.DecodeString(entry.Payload.LogID)
	if err != nil {
		return nil, err
	}
	return &protorekor.TransparencyLogEntry{
		LogIndex:          entry.Payload.LogIndex,
		LogId:             &protocommon.LogId{KeyId: id},
		KindVersion:       &protorekor.KindVersion{Kind: body.Kind, Version: body.Version},
		IntegratedTime:    entry.Payload.IntegratedTime,
		InclusionPromise:  &protorekor.InclusionPromise{SignedEntryTimestamp: entry.SignedEntryTimestamp},
		CanonicalizedBody: entry.Payload.Body,
	}, nil
}
