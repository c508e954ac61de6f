package signature_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/registrytest"
	"github.com/hako-run/hako/host/registry"
	"github.com/hako-run/hako/host/registry/signature"
)

const (
	bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	simpleType = "application/vnd.dev.cosign.simplesigning.v1+json"
	// signed is the digest that the signatures of cosign in testdata are for.
	signed = "sha256:c60b8dafdfbd6bb34335bc38928da412a6ff0a9b05680af0dc91b16d7f50b037"
	other  = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
)

// shelf is a registry in memory that has one repository. Signatures are shown for every digest, as a hostile registry
// can do.
type shelf struct {
	referrers []registry.Referrer
	layers    []registry.Layer
	err       error
}

func (s *shelf) Referrers(context.Context, registry.Reference, string) ([]registry.Referrer, []error, error) {
	return s.referrers, nil, s.err
}

func (s *shelf) Layers(context.Context, registry.Reference) ([]registry.Layer, error) {
	if s.layers == nil {
		return nil, registry.ErrNotFound
	}
	return s.layers, nil
}

func (s *shelf) Attach(_ context.Context, _ registry.Reference, artifactType string, blob []byte, mediaType string,
	annotations map[string]string) error {
	s.referrers = append(s.referrers, registry.Referrer{ArtifactType: artifactType, Annotations: annotations,
		Layers: []registry.Layer{{MediaType: mediaType, Content: blob}}})
	return nil
}

// bundles is a shelf with bundles.
func bundles(texts ...[]byte) *shelf {
	s := &shelf{}
	for _, text := range texts {
		_ = s.Attach(context.Background(), registry.Reference{}, bundleType, text, bundleType, nil)
	}
	return s
}

// simple is a shelf with a signature of the older format.
func simple(payload []byte, annotations map[string]string) *shelf {
	return &shelf{layers: []registry.Layer{{MediaType: simpleType, Content: payload, Annotations: annotations}}}
}

// cosigned returns a file that cosign made.
func cosigned(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "cosign", name))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(text, []byte("\n"))
}

func reference(t testing.TB, text string) registry.Reference {
	t.Helper()
	r, err := registry.ParseReference(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// policyFor trusts the key in a file for the repositories.
func policyFor(t testing.TB, key string, repositories ...string) *signature.Policy {
	t.Helper()
	return policyOf(t, signature.Options{Trusted: map[string]signature.Trusted{"acme": {For: repositories, Key: key}}})
}

func policyOf(t testing.TB, o signature.Options) *signature.Policy {
	t.Helper()
	p, err := signature.NewPolicy(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func testKey(name string) string { return filepath.Join("testdata", "cosign", name) }

// wants fails unless err has all of the texts.
func wants(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want %q in it", err, text)
		}
	}
}

// TestCosign verifies signatures that cosign 3.1.3 made, with keys that it made or imported.
func TestCosign(t *testing.T) {
	t.Parallel()
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	former := publicFile(t, key.Public())
	annotations := func(name string) map[string]string {
		return map[string]string{"dev.cosignproject.cosign/signature": string(cosigned(t, name))}
	}
	for _, test := range []struct {
		name, key string
		shelf     *shelf
	}{
		{"ECDSA", "ecdsa.pub", bundles(cosigned(t, "ecdsa.bundle.json"))},
		{"ECDSA, older format", "ecdsa.pub", simple(cosigned(t, "payload.json"), annotations("ecdsa.sig"))},
		{"Ed25519", "ed25519.pub", bundles(cosigned(t, "ed25519.bundle.json"))},
		{"Ed25519, older format", "ed25519.pub", simple(cosigned(t, "payload2.json"), annotations("ed25519.sig"))},
		{"the first is bad", "ecdsa.pub", bundles([]byte("{}"), cosigned(t, "ed25519.bundle.json"), cosigned(t, "ecdsa.bundle.json"))},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			policy := policyOf(t, signature.Options{Trusted: map[string]signature.Trusted{
				"a-former": {For: []string{"*"}, Key: former},
				"acme":     {For: []string{"registry.example.com/tools/*"}, Key: testKey(test.key)},
			}})
			r := reference(t, "registry.example.com/tools/weather:1")
			signer, err := signature.Verify(t.Context(), test.shelf, r, signed, policy)
			if err != nil || !strings.HasPrefix(signer.Key, "sha256:") || signer.Issuer != "" {
				t.Errorf("signer %+v, %v", signer, err)
			}
			signer, err = signature.Verify(t.Context(), test.shelf, r, other, policy)
			wants(t, err, "registry.example.com/tools/weather@"+other, "no valid signature", "acme")
			if (signer != signature.Signer{}) {
				t.Errorf("signer of another digest: %+v", signer)
			}
		})
	}
}

// TestSignAndVerify signs at a registry as "hako plugin push --sign" does.
func TestSignAndVerify(t *testing.T) {
	t.Parallel()
	server := registrytest.Start(t)
	client, err := registry.New(registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	p256, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p384, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	_, edwards, _ := ed25519.GenerateKey(rand.Reader)
	for name, private := range map[string]crypto.Signer{"p256": p256, "p384": p384, "ed25519": edwards} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			der, err := x509.MarshalPKCS8PrivateKey(private)
			if err != nil {
				t.Fatal(err)
			}
			key, err := signature.ParsePrivateKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil)
			if err != nil {
				t.Fatal(err)
			}
			r := reference(t, server.Reference("tools/"+name, "1"))
			policy := policyFor(t, publicFile(t, private.Public()), server.Host+"/tools/*")
			pushed := pushWasm(t, client, r)
			_, err = signature.Verify(t.Context(), client, r, pushed.Digest, policy)
			wants(t, err, "is not signed", "signers.acme.for", "hako plugin push --sign")
			if err := signature.Attach(t.Context(), client, pushed, key); err != nil {
				t.Fatal(err)
			}
			if _, err := signature.Verify(t.Context(), client, r, pushed.Digest, policy); err != nil {
				t.Error(err)
			}
			_, err = signature.Verify(t.Context(), client, r, pushed.Digest, policyFor(t, testKey("ecdsa.pub"), "*"))
			wants(t, err, "no valid signature")
		})
	}
}

// pushWasm pushes the smallest Wasm file.
func pushWasm(t *testing.T, client *registry.Client, r registry.Reference) registry.Reference {
	t.Helper()
	digest, err := client.Push(t.Context(), r, &registry.Artifact{Wasm: []byte("\x00asm\x01\x00\x00\x00")})
	if err != nil {
		t.Fatal(err)
	}
	return r.WithDigest(digest)
}

// publicFile writes a public key.
func publicFile(t *testing.T, public crypto.PublicKey) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cosign.pub")
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern, repository string
		needed              bool
	}{
		{"registry.example.com/tools/weather", "registry.example.com/tools/weather", true},
		{"registry.example.com/tools/weather", "registry.example.com/tools/weather2", false},
		{"registry.example.com/tools/weather", "registry.example.com/tools/weather/x", false},
		{"registry.example.com/tools/*", "registry.example.com/tools/a/b", true},
		{"registry.example.com/tools/*", "registry.example.com/tools", false},
		{"registry.example.com/tools/*", "registry.example.com/tools-evil/a", false},
		{"registry.example.com/*", "registry.example.com/a", true},
		{"registry.example.com/*", "registry.example.com:5000/a", false},
		{"registry.example.com/*", "other.example.com/a", false},
		{"REGISTRY.example.com/*", "registry.example.com/a", true},
		{"localhost:5000/a", "localhost:5000/a", true},
		{"localhost:5000/a", "127.0.0.1:5000/a", true},
		{"[::1]:5000/*", "oci://LOCALHOST.:5000/a", true},
		{"127.0.0.1:5000/*", "localhost:5001/a", false},
		{"docker.io/tools/a", "registry-1.docker.io/tools/a", true},
		{"index.docker.io:443/tools/*", "OCI://docker.io/tools/a", true},
		{"docker.io/a", "docker.io/library/a", true},
		{"docker.io/library/*", "index.docker.io/a", true},
		{"docker.io/*", "registry-1.docker.io/a", true},
		{"docker.io/*", "docker.io/tools/a", true},
		{"docker.io/a/*", "docker.io/a/b", true},
		{"docker.io/a/*", "docker.io/a", false},
		{"docker.io/a/*", "docker.io/library/a", false},
		{"registry.example.com/a", "registry.example.com/library/a", false},
		{"*", "other.example.com/a", true},
	} {
		policy := policyFor(t, testKey("ecdsa.pub"), test.pattern)
		_, err := signature.Verify(t.Context(), bundles(), reference(t, test.repository+":1"), signed, policy)
		if (err != nil) != test.needed {
			t.Errorf("%s for %s: %v", test.pattern, test.repository, err)
		}
	}
}

func TestRequired(t *testing.T) {
	t.Parallel()
	policy := policyOf(t, signature.Options{Required: true})
	_, err := signature.Verify(t.Context(), bundles(), reference(t, "registry.example.com/a:1"), signed, policy)
	wants(t, err, "registry.example.com/a", "signatures.required", "signers")
	wants(t, policy.CheckUnsigned("weather.wasm"), "weather.wasm", "signatures.required")
	var none *signature.Policy
	signer, err := signature.Verify(t.Context(), bundles(), reference(t, "registry.example.com/a:1"), signed, none)
	if err != nil || signer.String() != "unsigned" || none.CheckUnsigned("weather.wasm") != nil {
		t.Errorf("without policy: %v, %v", signer, err)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	const issuer, subject = "https://accounts.example.com", "release@example.com"
	all := []string{"*"}
	for _, test := range []struct {
		name    string
		trusted signature.Trusted
		want    string
	}{
		{"nothing", signature.Trusted{For: all}, "must have a key"},
		{"both", signature.Trusted{For: all, Key: "x", Issuer: issuer, Subject: subject}, "must have a key, or"},
		{"no repository", signature.Trusted{Key: "x"}, "for must list"},
		{"no issuer", signature.Trusted{For: all, Subject: subject}, "an issuer with a subject"},
		{"no subject", signature.Trusted{For: all, Issuer: issuer}, "an issuer with a subject"},
		{"two subjects", signature.Trusted{For: all, Issuer: issuer, Subject: subject, SubjectRegexp: "x"}, "an issuer with"},
		{"bad regexp", signature.Trusted{For: all, Issuer: issuer, SubjectRegexp: "("}, "subjectRegexp"},
		{"regexp that leaves its group", signature.Trusted{For: all, Issuer: issuer, SubjectRegexp: "a)|(b"}, "subjectRegexp"},
		{"no root", signature.Trusted{For: all, Issuer: issuer, Subject: subject}, "signatures.trustedRoot"},
		{"missing key", signature.Trusted{For: all, Key: "missing.pub"}, "missing.pub"},
		{"private key", signature.Trusted{For: all, Key: testKey("ecdsa.key")}, "is a private key"},
		{"no key", signature.Trusted{For: all, Key: testKey("payload.json")}, "not a PEM file"},
		{"tag", signature.Trusted{For: []string{"registry.example.com/a:1"}, Key: "x"}, "not a repository pattern"},
		{"digest", signature.Trusted{For: []string{"registry.example.com/a@" + signed}, Key: "x"}, "not a repository pattern"},
		{"scheme in upper case", signature.Trusted{For: []string{"OCI://registry.example.com/a"}, Key: "x"}, "not a repository pattern"},
		{"scheme", signature.Trusted{For: []string{"oci://registry.example.com/a"}, Key: "x"}, "not a repository pattern"},
		{"star in the middle", signature.Trusted{For: []string{"registry.example.com/*/a"}, Key: "x"}, "not a repository pattern"},
		{"star at a name", signature.Trusted{For: []string{"registry.example.com/a*"}, Key: "x"}, "not a repository pattern"},
		{"no host", signature.Trusted{For: []string{"tools/*"}, Key: "x"}, "not a repository pattern"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := signature.NewPolicy(signature.Options{Trusted: map[string]signature.Trusted{"acme": test.trusted}})
			wants(t, err, "signers.acme", test.want)
		})
	}
}

func TestPrivateKeys(t *testing.T) {
	t.Parallel()
	key, err := signature.ReadPrivateKey(testKey("ecdsa.key"), []byte("geheim"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := key.Sign(signed)
	if err != nil {
		t.Fatal(err)
	}
	policy := policyFor(t, testKey("ecdsa.pub"), "*")
	if _, err := signature.Verify(t.Context(), bundles(text), reference(t, "registry.example.com/a:1"), signed, policy); err != nil {
		t.Error(err)
	}
	small, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // it must be refused
	if err != nil {
		t.Fatal(err)
	}
	smallPEM := pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&small.PublicKey)})
	for _, test := range []struct {
		name           string
		text, password []byte
		want           string
	}{
		{"wrong password", cosigned(t, "ecdsa.key"), []byte("wrong"), "COSIGN_PASSWORD"},
		{"no password", cosigned(t, "ecdsa.key"), nil, "COSIGN_PASSWORD"},
		{"public key", cosigned(t, "ecdsa.pub"), nil, "is a public key"},
		{"no key", []byte("hello"), nil, "not a PEM file"},
		{"another type", smallPEM, nil, "openssl pkcs8"},
	} {
		if _, err := signature.ParsePrivateKey(test.text, test.password); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if der, err := x509.MarshalPKIXPublicKey(&small.PublicKey); err == nil {
		_, err = signature.ParsePublicKey(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
		wants(t, err, "1024 bits")
	}
}

// TestHostileSignatures shows that a registry can withhold signatures but not make them up.
func TestHostileSignatures(t *testing.T) {
	t.Parallel()
	r := reference(t, "registry.example.com/tools/weather:1")
	policy := policyFor(t, testKey("ecdsa.pub"), "*")
	good := cosigned(t, "ecdsa.bundle.json")
	private, err := signature.ReadPrivateKey(testKey("ecdsa.key"), []byte("geheim"))
	if err != nil {
		t.Fatal(err)
	}
	many := make([][]byte, 65)
	for i := range many {
		many[i] = []byte("{}")
	}
	for _, test := range []struct {
		name  string
		shelf *shelf
		want  string
	}{
		{"none", bundles(), "is not signed"},
		{"no JSON", bundles([]byte("\x1b[2J")), "not a Sigstore bundle"},
		{"null", bundles([]byte("null")), "not a Sigstore bundle"},
		{"deep JSON", bundles([]byte(strings.Repeat(`{"a":`, 60_000))), "larger than"},
		{"too large", bundles(append(bytes.Clone(good), bytes.Repeat([]byte(" "), 1<<20)...)), "larger than 256 KiB"},
		{"another key", bundles(cosigned(t, "ed25519.bundle.json")), "signature"},
		{"another statement", bundles(bytes.Replace(good, []byte("eyJfdHlwZSI6"), []byte("eyJfdHlwZSI7"), 1)), "signature"},
		{"two signatures in one", bundles(bytes.Replace(good, []byte(`"signatures":[`), []byte(`"signatures":[{"sig":"MEUC"},`), 1)),
			"exactly one"},
		{"no key hint, no certificate", bundles(bytes.Replace(good, []byte("publicKey"), []byte("unknown"), 1)), "not a Sigstore bundle"},
		{"a proof of what was built", bundles(statement(t, private, "https://slsa.dev/provenance/v1")), "is the statement"},
		{"more than can be needed", bundles(append(many, good)...), "more than 64"},
		{"no signature", simple(cosigned(t, "payload.json"), nil), "no signature in base64"},
		{"certificate that is none", simple(cosigned(t, "payload.json"), map[string]string{
			"dev.cosignproject.cosign/signature": "MEUC", "dev.sigstore.cosign/certificate": "x"}), "not PEM"},
		{"entry that is none", simple(cosigned(t, "payload.json"), map[string]string{
			"dev.cosignproject.cosign/signature": "MEUC", "dev.sigstore.cosign/bundle": "x"}), "transparency log"},
		{"large annotation", simple(cosigned(t, "payload.json"), map[string]string{"x": strings.Repeat("x", 1<<20)}), "larger"},
		{"unreachable", &shelf{err: errors.New("connection refused")}, "connection refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			signer, err := signature.Verify(t.Context(), test.shelf, r, signed, policy)
			wants(t, err, test.want, r.Repository)
			if (signer != signature.Signer{}) || strings.ContainsAny(err.Error(), "\x1b\n") || len(err.Error()) > 4000 {
				t.Errorf("signer %+v, %v", signer, err)
			}
		})
	}
}

func statement(t *testing.T, key *signature.PrivateKey, predicate string) []byte {
	t.Helper()
	text, err := key.SignAs(signed, predicate)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
