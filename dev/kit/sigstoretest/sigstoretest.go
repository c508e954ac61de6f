// Package sigstoretest runs a Sigstore instance for tests: that of sigstore-go, whose signatures are written as cosign
// writes them. Start returns an Instance, which signs and writes its trusted root.
package sigstoretest

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"google.golang.org/protobuf/encoding/protojson"
)

// BundleType is the media type of bundles.
const BundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// Instance is a certificate authority, a transparency log and a timestamp authority.
type Instance struct{ *ca.VirtualSigstore }

// Start returns a new instance.
func Start(t testing.TB) *Instance {
	t.Helper()
	virtual, err := ca.NewVirtualSigstore()
	if err != nil {
		t.Fatal(err)
	}
	return &Instance{virtual}
}

// RootFile writes the instance's trusted_root.json, with or without its log of certificates.
func (i *Instance) RootFile(t testing.TB, ctLog bool) string {
	t.Helper()
	binaryIDs := func(logs map[string]*root.TransparencyLog) map[string]*root.TransparencyLog {
		for id, log := range logs {
			var err error
			if log.ID, err = hex.DecodeString(id); err != nil {
				t.Fatal(err)
			}
		}
		return logs
	}
	var ctLogs map[string]*root.TransparencyLog
	if ctLog {
		ctLogs = binaryIDs(i.CTLogs())
	}
	trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01, i.FulcioCertificateAuthorities(), ctLogs,
		i.TimestampingAuthorities(), binaryIDs(i.RekorLogs()))
	if err != nil {
		t.Fatal(err)
	}
	return WriteRoot(t, trusted)
}

func WriteRoot(t testing.TB, trusted *root.TrustedRoot) string {
	t.Helper()
	text, err := trusted.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "trusted_root.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Statement returns the statement that cosign sign signs for a digest.
func Statement(digest string) []byte {
	return []byte(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":"` +
		strings.TrimPrefix(digest, "sha256:") +
		`"}}],"predicateType":"https://sigstore.dev/cosign/sign/v1","predicate":{}}`)
}

// Attest signs a statement with an identity, at a time.
func (i *Instance) Attest(t testing.TB, subject, issuer string, statement []byte, at time.Time) *protobundle.Bundle {
	t.Helper()
	entity, err := i.AttestAtTime(subject, issuer, statement, at, true)
	if err != nil {
		t.Fatal(err)
	}
	return i.Bundle(t, entity)
}

// Bundle returns a signature of the instance as cosign writes it.
func (i *Instance) Bundle(t testing.TB, entity *ca.TestEntity) *protobundle.Bundle {
	t.Helper()
	content, err := entity.VerificationContent()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := entity.TlogEntries()
	if err != nil {
		t.Fatal(err)
	}
	stamps, err := entity.Timestamps()
	if err != nil {
		t.Fatal(err)
	}
	b := &protobundle.Bundle{
		MediaType: BundleType,
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_Certificate{
				Certificate: &protocommon.X509Certificate{RawBytes: content.Certificate().Raw},
			},
			TimestampVerificationData: &protobundle.TimestampVerificationData{},
		},
	}
	for _, entry := range entries {
		e := entry.TransparencyLogEntry()
		if !entry.IsRekorV2() {
			i.complete(t, e)
		}
		b.VerificationMaterial.TlogEntries = append(b.VerificationMaterial.TlogEntries, e)
	}
	for _, stamp := range stamps {
		b.VerificationMaterial.TimestampVerificationData.Rfc3161Timestamps = append(
			b.VerificationMaterial.TimestampVerificationData.Rfc3161Timestamps,
			&protocommon.RFC3161SignedTimestamp{SignedTimestamp: stamp})
	}
	sig, err := entity.SignatureContent()
	if err != nil {
		t.Fatal(err)
	}
	if envelope := sig.EnvelopeContent(); envelope != nil {
		payload, err := envelope.RawEnvelope().DecodeB64Payload()
		if err != nil {
			t.Fatal(err)
		}
		b.Content = &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload: payload, PayloadType: envelope.RawEnvelope().PayloadType,
			Signatures: []*protodsse.Signature{{Sig: sig.Signature()}},
		}}
	}
	return b
}

// complete adds to an entry of the first generation what sigstore-go keeps elsewhere.
func (i *Instance) complete(t testing.TB, e *protorekor.TransparencyLogEntry) {
	t.Helper()
	var body struct{ Kind, APIVersion string }
	if err := json.Unmarshal(e.CanonicalizedBody, &body); err != nil {
		t.Fatal(err)
	}
	e.KindVersion = &protorekor.KindVersion{Kind: body.Kind, Version: body.APIVersion}
	promise, err := i.RekorSignPayload(tlog.RekorPayload{
		Body:           base64.StdEncoding.EncodeToString(e.CanonicalizedBody),
		IntegratedTime: e.IntegratedTime,
		LogIndex:       e.LogIndex,
		LogID:          hex.EncodeToString(e.LogId.KeyId),
	})
	if err != nil {
		t.Fatal(err)
	}
	e.InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: promise}
}

func Encode(t testing.TB, b *protobundle.Bundle) []byte {
	t.Helper()
	text, err := protojson.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
