package signature_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/testing/data"

	"github.com/hako-run/hako/dev/kit/sigstoretest"
	"github.com/hako-run/hako/host/registry/signature"
)

const (
	issuer  = "https://accounts.example.com"
	subject = "release@example.com"
)

// instance is a Sigstore instance for tests.
type instance struct{ *sigstoretest.Instance }

func newInstance(t testing.TB) instance { return instance{sigstoretest.Start(t)} }

// sign signs a digest as cosign does.
func (i instance) sign(t testing.TB, subject, issuer string) *protobundle.Bundle {
	t.Helper()
	return i.Attest(t, subject, issuer, sigstoretest.Statement(signed), time.Now().Add(time.Minute))
}

// policy trusts an identity of the instance.
func (i instance) policy(t testing.TB, trusted signature.Trusted) *signature.Policy {
	t.Helper()
	trusted.For = []string{"*"}
	return policyOf(t, signature.Options{TrustedRoot: i.RootFile(t, false),
		Trusted: map[string]signature.Trusted{"acme": trusted}})
}

func TestKeyless(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	r := reference(t, "registry.example.com/tools/weather:1")
	b := i.sign(t, subject, issuer)
	for _, trusted := range []signature.Trusted{
		{Issuer: issuer, Subject: subject},
		{Issuer: issuer, SubjectRegexp: `[a-z]+@example\.com`},
	} {
		signer, err := signature.Verify(t.Context(), bundles(sigstoretest.Encode(t, b)), r, signed, i.policy(t, trusted))
		if err != nil || (signer != signature.Signer{Issuer: issuer, Subject: subject}) {
			t.Errorf("%+v: %+v, %v", trusted, signer, err)
		}
	}

	// The second generation of the log has proofs without promises; a timestamp authority says when.
	entity, err := i.AttestHashedRekordV2(subject, issuer, sigstoretest.Statement(signed))
	if err != nil {
		t.Fatal(err)
	}
	second := i.Bundle(t, entity)
	policy := i.policy(t, signature.Trusted{Issuer: issuer, Subject: subject})
	if _, err := signature.Verify(t.Context(), bundles(sigstoretest.Encode(t, second)), r, signed, policy); err != nil {
		t.Errorf("log of the second generation: %v", err)
	}
}

// TestKeylessOlderFormat verifies a payload with the annotations that cosign before version 3 makes.
func TestKeylessOlderFormat(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	payload := cosigned(t, "payload.json")
	entity, err := i.Sign(subject, issuer, payload)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := entity.SignatureContent()
	if err != nil {
		t.Fatal(err)
	}
	b := i.Bundle(t, entity)
	annotations := map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(sig.Signature()),
		"dev.sigstore.cosign/certificate": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
			Bytes: b.VerificationMaterial.GetCertificate().RawBytes})),
		"dev.sigstore.cosign/bundle": logAnnotation(t, b.VerificationMaterial.TlogEntries[0]),
	}
	r := reference(t, "registry.example.com/tools/weather:1")
	policy := i.policy(t, signature.Trusted{Issuer: issuer, Subject: subject})
	signer, err := signature.Verify(t.Context(), simple(payload, annotations), r, signed, policy)
	if err != nil || (signer != signature.Signer{Issuer: issuer, Subject: subject}) {
		t.Errorf("%+v, %v", signer, err)
	}
	_, err = signature.Verify(t.Context(), simple(payload, annotations), r, other, policy)
	wants(t, err, "it is for "+signed)
	delete(annotations, "dev.sigstore.cosign/bundle")
	_, err = signature.Verify(t.Context(), simple(payload, annotations), r, signed, policy)
	wants(t, err, "not enough verified log entries")
}

func logAnnotation(t *testing.T, entry *protorekor.TransparencyLogEntry) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"SignedEntryTimestamp": entry.InclusionPromise.SignedEntryTimestamp,
		"Payload": map[string]any{
			"body":           entry.CanonicalizedBody,
			"integratedTime": entry.IntegratedTime,
			"logIndex":       entry.LogIndex,
			"logID":          hex.EncodeToString(entry.LogId.KeyId),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestHostileIdentities shows that an identity counts only with its issuer, as a whole, from the trusted instance, with
// a proof of the log and at a time when the certificate was valid.
func TestHostileIdentities(t *testing.T) {
	t.Parallel()
	i, stranger := newInstance(t), newInstance(t)
	r := reference(t, "registry.example.com/tools/weather:1")
	exact := signature.Trusted{Issuer: issuer, Subject: subject}
	change := func(change func(*protobundle.VerificationMaterial)) *protobundle.Bundle {
		b := i.sign(t, subject, issuer)
		change(b.VerificationMaterial)
		return b
	}
	for _, test := range []struct {
		name    string
		bundle  *protobundle.Bundle
		trusted signature.Trusted
		want    string
	}{
		{"another issuer", i.sign(t, subject, "https://evil.example.com"), exact,
			"it is signed by release@example.com, whose issuer is https://evil.example.com"},
		{"another subject", i.sign(t, "evil@example.com", issuer), exact, "it is signed by evil@example.com"},
		{"a subject that is no regular expression", i.sign(t, "releaseXexample.com@evil.example", issuer),
			signature.Trusted{Issuer: issuer, Subject: "release.*"}, "it is signed by"},
		{"a subject like it", i.sign(t, "release@exampleXcom", issuer), exact, "it is signed by"},
		{"a regular expression is for all of it", i.sign(t, "evil-release@example.com.evil.example", issuer),
			signature.Trusted{Issuer: issuer, SubjectRegexp: `release@example\.com|x`}, "it is signed by"},
		{"an issuer is no regular expression", i.sign(t, subject, "https://accountsXexample.com"), exact, "it is signed by"},
		{"another instance", stranger.sign(t, subject, issuer), exact, ""},
		{"for something else", i.Attest(t, subject, issuer, sigstoretest.Statement(other), time.Now().Add(time.Minute)), exact,
			"digest"},
		{"a proof of what was built", i.Attest(t, subject, issuer, bytes.Replace(sigstoretest.Statement(signed),
			[]byte("https://sigstore.dev/cosign/sign/v1"), []byte("https://slsa.dev/provenance/v1"), 1),
			time.Now().Add(time.Minute)), exact, "it is the statement"},
		{"no log entry", change(func(m *protobundle.VerificationMaterial) { m.TlogEntries = nil }), exact,
			"not enough verified log entries"},
		{"no proof and no promise", change(func(m *protobundle.VerificationMaterial) {
			m.TlogEntries[0].InclusionProof, m.TlogEntries[0].InclusionPromise = nil, nil
		}), exact, "inclusion proof missing"},
		{"a proof for something else", change(func(m *protobundle.VerificationMaterial) {
			m.TlogEntries[0].InclusionProof.RootHash = make([]byte, 32)
		}), exact, ""},
		{"an entry of another signature", change(func(m *protobundle.VerificationMaterial) {
			m.TlogEntries = i.sign(t, subject, issuer).VerificationMaterial.TlogEntries
		}), exact, "transparency log signature does not match"},
		{"no time", change(func(m *protobundle.VerificationMaterial) {
			m.TlogEntries[0].InclusionPromise, m.TimestampVerificationData = nil, nil
		}), exact, "timestamp"},
		{"logged after the certificate expired",
			i.Attest(t, subject, issuer, sigstoretest.Statement(signed), time.Now().Add(30*time.Minute)), exact, "validity"},
		{"certificate without its key", change(func(m *protobundle.VerificationMaterial) {
			m.Content = stranger.sign(t, subject, issuer).VerificationMaterial.Content
		}), exact, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			signer, err := signature.Verify(t.Context(), bundles(sigstoretest.Encode(t, test.bundle)), r, signed, i.policy(t, test.trusted))
			wants(t, err, "no valid signature", test.want)
			if (signer != signature.Signer{}) {
				t.Errorf("signer %+v", signer)
			}
		})
	}
	t.Run("a key is no identity", func(t *testing.T) {
		t.Parallel()
		_, err := signature.Verify(t.Context(), bundles(cosigned(t, "ecdsa.bundle.json")), r, signed, i.policy(t, exact))
		wants(t, err, "no key is trusted")
		_, err = signature.Verify(t.Context(), bundles(sigstoretest.Encode(t, i.sign(t, subject, issuer))), r, signed,
			policyFor(t, testKey("ecdsa.pub"), "*"))
		wants(t, err, "no identity is trusted")
	})
	t.Run("a log of certificates that does not know it", func(t *testing.T) {
		t.Parallel()
		trusted := exact
		trusted.For = []string{"*"}
		policy := policyOf(t, signature.Options{TrustedRoot: i.RootFile(t, true),
			Trusted: map[string]signature.Trusted{"acme": trusted}})
		_, err := signature.Verify(t.Context(), bundles(sigstoretest.Encode(t, i.sign(t, subject, issuer))), r, signed, policy)
		wants(t, err, "signed certificate timestamp")
	})
}

// TestPublicInstance verifies what npm published with the root of Sigstore's public instance: what a root demands is
// what that instance gives.
func TestPublicInstance(t *testing.T) {
	t.Parallel()
	err := signature.VerifyWithRoot(sigstoretest.WriteRoot(t, data.TrustedRoot(t, "public-good.json")),
		data.Bundle(t, "sigstore.js@2.0.0-provenance.sigstore.json"))
	if err != nil {
		t.Error(err)
	}
}

func TestTrustedRootFile(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	file := filepath.Join(t.TempDir(), "trusted_root.json")
	trusted := map[string]signature.Trusted{"acme": {For: []string{"*"}, Issuer: issuer, Subject: subject}}
	policy := policyOf(t, signature.Options{TrustedRoot: file, Trusted: trusted})
	verify := func() error {
		_, err := signature.Verify(t.Context(), bundles(sigstoretest.Encode(t, i.sign(t, subject, issuer))),
			reference(t, "registry.example.com/a:1"), signed, policy)
		return err
	}
	wants(t, verify(), "signatures.trustedRoot", file)
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	policy = policyOf(t, signature.Options{TrustedRoot: file, Trusted: trusted})
	wants(t, verify(), "not a trusted_root.json of Sigstore")
}

// TestRecorded compares signers of a lock file with a policy, which may have changed since.
func TestRecorded(t *testing.T) {
	t.Parallel()
	key := signature.Signer{Key: keyID(t)}
	policy := policyOf(t, signature.Options{TrustedRoot: "unread.json", Trusted: map[string]signature.Trusted{
		"key":      {For: []string{"registry.example.com/a"}, Key: testKey("ecdsa.pub")},
		"identity": {For: []string{"registry.example.com/b"}, Issuer: issuer, SubjectRegexp: `r.*@example\.com`},
	}})
	for _, test := range []struct {
		repository string
		signer     signature.Signer
		ok         bool
	}{
		{"a", key, true},
		{"a", signature.Signer{}, false},
		{"a", signature.Signer{Key: "sha256:00"}, false},
		{"a", signature.Signer{Issuer: issuer, Subject: subject}, false},
		{"b", signature.Signer{Issuer: issuer, Subject: subject}, true},
		{"b", signature.Signer{Issuer: issuer, Subject: "x" + subject}, false},
		{"b", signature.Signer{Issuer: "https://evil.example.com", Subject: subject}, false},
		{"b", signature.Signer{Subject: subject}, false},
		{"b", key, false},
		{"c", signature.Signer{}, true},
	} {
		err := policy.CheckRecorded(reference(t, "registry.example.com/"+test.repository+":1"), test.signer)
		if (err == nil) != test.ok {
			t.Errorf("%s by %s: %v", test.repository, test.signer, err)
		}
	}
}

// keyID returns the ID of the key in ecdsa.pub, as Verify returns it.
func keyID(t *testing.T) string {
	t.Helper()
	key, err := signature.ReadPublicKey(testKey("ecdsa.pub"))
	if err != nil {
		t.Fatal(err)
	}
	return key.ID
}
