package signature

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/hako-run/hako/host/registry"
)

// statementType is the payload of signatures.
const statementType = "application/vnd.in-toto+json"

// Sign returns a Sigstore bundle in which the key signs the digest of a manifest, as cosign sign --key makes it without
// a transparency log.
func (k *PrivateKey) Sign(digest string) ([]byte, error) {
	return k.sign(strings.TrimPrefix(digest, digestPrefix), signPredicate)
}

// sign signs a statement about what has a SHA-256 digest.
func (k *PrivateKey) sign(sum, predicateType string) ([]byte, error) {
	statement, err := json.Marshal(map[string]any{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       []any{map[string]any{"digest": map[string]string{"sha256": sum}}},
		"predicateType": predicateType,
		"predicate":     struct{}{},
	})
	if err != nil {
		return nil, err
	}
	sig, err := k.signer.SignMessage(bytes.NewReader(dsse.PAE(statementType, statement)))
	if err != nil {
		return nil, err
	}
	hint, err := hex.DecodeString(strings.TrimPrefix(k.public.ID, digestPrefix))
	if err != nil {
		return nil, err
	}
	return protojson.Marshal(&protobundle.Bundle{
		MediaType: bundleType,
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{
				Hint: base64.StdEncoding.EncodeToString(hint),
			}},
		},
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload:     statement,
			PayloadType: statementType,
			Signatures:  []*protodsse.Signature{{Sig: sig}},
		}},
	})
}

// Writer is the part of a registry.Client that Attach uses.
type Writer interface {
	Registry
	Attach(ctx context.Context, r registry.Reference, artifactType string, blob []byte, mediaType string,
		annotations map[string]string) error
}

// Attach signs the manifest that r names by its digest, and puts the signature beside it. If there is one of the key
// already, it does nothing.
func Attach(ctx context.Context, client Writer, r registry.Reference, key *PrivateKey) error {
	all := &Policy{signers: []*trustedSigner{{patterns: []pattern{{all: true}}, key: key.public}}}
	if _, err := Verify(ctx, client, r, r.Digest, all); err == nil {
		return nil
	}
	blob, err := key.Sign(r.Digest)
	if err != nil {
		return err
	}
	return client.Attach(ctx, r, bundleType, blob, bundleType, map[string]string{
		"org.opencontainers.image.created":  time.Now().UTC().Format(time.RFC3339),
		"dev.sigstore.bundle.content":       "dsse-envelope",
		"dev.sigstore.bundle.predicateType": signPredicate,
	})
}
