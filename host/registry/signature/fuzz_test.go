package signature_test

import (
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/sigstoretest"
	"github.com/hako-run/hako/host/registry/signature"
)

// FuzzBundle verifies arbitrary bundles. None but cosign's counts, whatever white space and unknown order it has.
func FuzzBundle(f *testing.F) {
	good := cosigned(f, "ecdsa.bundle.json")
	i := newInstance(f)
	f.Add(good)
	f.Add(cosigned(f, "ed25519.bundle.json"))
	f.Add(sigstoretest.Encode(f, i.sign(f, subject, issuer)))
	r := reference(f, "registry.example.com/a:1")
	policy := policyOf(f, signature.Options{TrustedRoot: i.RootFile(f, false), Trusted: map[string]signature.Trusted{
		"key":      {For: []string{"*"}, Key: testKey("ecdsa.pub")},
		"identity": {For: []string{"*"}, Issuer: issuer, Subject: subject},
	}})
	f.Fuzz(func(t *testing.T, text []byte) {
		signer, err := signature.Verify(t.Context(), bundles(text), r, other, policy)
		if err == nil || (signer != signature.Signer{}) {
			t.Errorf("%s signed for another digest", signer)
		}
		if _, err := signature.Verify(t.Context(), bundles(text), r, signed, policy); err != nil &&
			strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("hidden characters in %q", err)
		}
	})
}

// FuzzSimple verifies arbitrary payloads with arbitrary annotations.
func FuzzSimple(f *testing.F) {
	f.Add(cosigned(f, "payload.json"), string(cosigned(f, "ecdsa.sig")), "", "", "")
	f.Add([]byte("{}"), "MEUC", "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n",
		`{"SignedEntryTimestamp":"MA==","Payload":{"body":"e30=","integratedTime":1,"logIndex":1,"logID":"00"}}`,
		`{"SignedRFC3161Timestamp":"MA=="}`)
	i := newInstance(f)
	r := reference(f, "registry.example.com/a:1")
	policy := policyOf(f, signature.Options{TrustedRoot: i.RootFile(f, false), Trusted: map[string]signature.Trusted{
		"key":      {For: []string{"*"}, Key: testKey("ecdsa.pub")},
		"identity": {For: []string{"*"}, Issuer: issuer, Subject: subject},
	}})
	f.Fuzz(func(t *testing.T, payload []byte, sig, certificate, entry, stamp string) {
		signer, err := signature.Verify(t.Context(), simple(payload, map[string]string{
			"dev.cosignproject.cosign/signature":   sig,
			"dev.sigstore.cosign/certificate":      certificate,
			"dev.sigstore.cosign/bundle":           entry,
			"dev.sigstore.cosign/rfc3161timestamp": stamp,
		}), r, other, policy)
		if err == nil || (signer != signature.Signer{}) {
			t.Errorf("%s signed for another digest", signer)
		}
	})
}

// FuzzKeys reads arbitrary key files.
func FuzzKeys(f *testing.F) {
	f.Add(cosigned(f, "ecdsa.pub"))
	f.Add(cosigned(f, "ed25519.pub"))
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\nMA==\n-----END PRIVATE KEY-----\n"))
	f.Add([]byte("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\ne30=\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if key, err := signature.ParsePublicKey(text); err == nil && len(key.ID) != len(signed) {
			t.Errorf("key %q", key.ID)
		}
		if key, err := signature.ParsePrivateKey(text, nil); err == nil {
			if _, err := key.Sign(signed); err != nil {
				t.Error(err)
			}
		}
	})
}
