package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/registrytest"
	"github.com/hako-run/hako/dev/kit/sigstoretest"
	"github.com/hako-run/hako/host/registry"
	"github.com/hako-run/hako/host/registry/lock"
)

// keyPair writes a private and a public key into dir.
func keyPair(t *testing.T, dir string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "cosign.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY",
		Bytes: must(x509.MarshalPKCS8PrivateKey(private))}))
	put(t, filepath.Join(dir, "cosign.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY",
		Bytes: must(x509.MarshalPKIXPublicKey(public))}))
}

// TestSignedPlugin: a plugin is signed when it is pushed, and installed only with the signature that the configuration
// needs; who signed it is shown before it is approved and after.
func TestSignedPlugin(t *testing.T) {
	t.Parallel()
	server := registrytest.Start(t)
	author, user, thief := t.TempDir(), t.TempDir(), t.TempDir()
	keyPair(t, author)
	keyPair(t, thief)
	reference := server.Host + "/tools/probe"
	put(t, filepath.Join(author, "probe.wasm"), probePlugin(t))
	put(t, filepath.Join(user, "acme.pub"), must(os.ReadFile(filepath.Join(author, "cosign.pub"))))
	put(t, filepath.Join(user, "hako.yaml"), []byte("plugins: [plugins]\n"+
		"signatures: {required: true}\nsigners: {acme: {for: ["+server.Host+"/tools/*], key: acme.pub}}\n"))
	put(t, filepath.Join(user, "plugins", "README"), nil)

	invoke(t, author, "plugin", "push", reference).want(t, exitOK, "unsigned")
	add := []string{"plugin", "add", "oci://" + reference + ":1.0.0"}
	invoke(t, user, add...).want(t, exitUsage, "is not signed", "a signature of acme", "hako plugin push --sign")
	invoke(t, author, "plugin", "push", reference, "--sign", filepath.Join(thief, "cosign.key")).
		want(t, exitOK, "signed with the key sha256:")
	invoke(t, user, add...).want(t, exitUsage, "has no valid signature", "acme")
	invoke(t, author, "plugin", "push", reference, "--sign", "cosign.key").want(t, exitOK)
	invoke(t, user, add...).want(t, exitOK, "signed with the key sha256:", "Next: hako plugin approve probe")

	invoke(t, user, "plugin", "list").want(t, exitOK, "signed with the key sha256:")
	invoke(t, user, "plugin", "inspect", "probe").want(t, exitOK, "signature", "signed with the key sha256:")
	approval := invoke(t, user, "plugin", "approve", "probe", "-y")
	approval.want(t, exitOK, "signed with the key sha256:")
	if strings.Contains(approval.stdout, `\n`) {
		t.Errorf("an escaped line break in\n%s", approval.stdout)
	}
	if e := locked(t, user); e.Signer == nil || e.Signer.Key == "" || e.Signer.Issuer != "" {
		t.Errorf("the lock file: %+v", e.Signer)
	}

	if err := os.Remove(filepath.Join(user, "plugins", "probe.wasm")); err != nil {
		t.Fatal(err)
	}
	invoke(t, user, "plugin", "sync").want(t, exitOK)
	put(t, filepath.Join(user, "acme.pub"), must(os.ReadFile(filepath.Join(thief, "cosign.pub"))))
	for _, check := range []string{"--check=true", "--check=false"} { // the file matches the lock file
		o := invoke(t, user, "plugin", "sync", check)
		o.want(t, exitUsage, "needs another signature")
		if strings.Contains(o.stderr, "matches the lock file") {
			t.Errorf("the folder is called right:\n%s", o.stderr)
		}
	}
	if err := os.Remove(filepath.Join(user, "plugins", "probe.wasm")); err != nil {
		t.Fatal(err)
	}
	invoke(t, user, "plugin", "sync").want(t, exitUsage, "needs another signature")

	invoke(t, user, "plugin", "add", filepath.Join(author, "probe.wasm")).
		want(t, exitUsage, "a file has no signature", "signatures.required")
	built := probePlugin(t, "It does little.", "It was built here.")
	put(t, filepath.Join(user, "plugins", "probe.wasm"), built)
	invoke(t, user, "plugin", "list").want(t, exitOK, "unsigned")
	invoke(t, author, "plugin", "push", reference, "--sign", "cosign.pub").want(t, exitUsage, "is a public key")
}

// TestSignersUnderEveryName: signers for a repository are needed under every name of the registry and every spelling of
// the reference, for plugin sync --check and for an installation.
func TestSignersUnderEveryName(t *testing.T) {
	t.Parallel()
	server := registrytest.Start(t)
	// What the mirror does not have is asked of Docker Hub, through a proxy that connects to nothing.
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(proxy.Close)
	_, port, _ := strings.Cut(server.Host, ":")
	author, user := t.TempDir(), t.TempDir()
	keyPair(t, author)
	put(t, filepath.Join(author, "probe.wasm"), probePlugin(t))
	put(t, filepath.Join(user, "acme.pub"), must(os.ReadFile(filepath.Join(author, "cosign.pub"))))
	put(t, filepath.Join(user, "plugins", "README"), nil)
	configure := func(pattern string) {
		text := "plugins: [plugins]\nregistries: {index.docker.io: {mirrors: [" + server.Host + "]}}\n" +
			"outbound: {proxy: '" + proxy.URL + "'}\n"
		if pattern != "" {
			text += "signers: {acme: {for: ['" + pattern + "'], key: acme.pub}}\n"
		}
		put(t, filepath.Join(user, "hako.yaml"), []byte(text))
	}
	invoke(t, author, "plugin", "push", server.Host+"/library/probe").want(t, exitOK, "unsigned")
	configure("")
	added := "oci://" + server.Host + "/library/probe"
	invoke(t, user, "plugin", "add", added+":1.0.0").want(t, exitOK, "unsigned")
	lockFile := filepath.Join(user, "hako.lock.yaml")
	locked := string(must(os.ReadFile(lockFile)))

	const hub = "docker.io/library/probe"
	for _, test := range []struct{ name, pattern, from string }{
		{"the name itself", hub, "oci://docker.io/library/probe"},
		{"the API host of Docker Hub", hub, "oci://registry-1.docker.io/library/probe"},
		{"the older API host of Docker Hub", hub, "oci://index.docker.io/library/probe"},
		{"the web host of Docker Hub", hub, "oci://registry.hub.docker.com/library/probe"},
		{"a rule for the API host", "registry-1.docker.io/library/*", "oci://docker.io/library/probe"},
		{"no namespace", "docker.io/library/*", "oci://docker.io/probe"},
		{"a rule without namespace", "docker.io/probe", "oci://index.docker.io/library/probe"},
		{"a rule for a whole registry", "index.docker.io/*", "oci://docker.io/probe"},
		{"upper case", hub, "oci://Registry-1.DOCKER.io/library/probe"},
		{"a trailing dot", hub, "oci://registry-1.docker.io./library/probe"},
		{"the default port", hub, "oci://index.docker.io:443/library/probe"},
		{"a scheme in upper case", hub, "OCI://registry-1.docker.io/library/probe"},
		{"localhost", server.Host + "/library/*", "oci://localhost:" + port + "/library/probe"},
		{"a rule for localhost", "localhost:" + port + "/*", added},
		{"the IPv6 address", "localhost:" + port + "/*", "oci://[::1]:" + port + "/library/probe"},
	} {
		t.Run(test.name, func(t *testing.T) {
			configure(test.pattern)
			put(t, lockFile, []byte(strings.Replace(locked, added, test.from, 1)))
			o := invoke(t, user, "plugin", "sync", "--check")
			o.want(t, exitUsage, "needs another signature")
			if strings.Contains(o.stderr+o.stdout, "matches the lock file") {
				t.Errorf("the check succeeds:\n%s%s", o.stdout, o.stderr)
			}
			if !strings.Contains(test.from, "[::1]") { // the registry listens at 127.0.0.1
				invoke(t, user, "plugin", "add", "--replace", test.from+":1.0.0").
					want(t, exitUsage, "signers in the configuration needs a signature of acme")
			}
		})
	}
}

// TestSignerChanges: another signer than before is named when a plugin is updated, rolled back or replaced.
func TestSignerChanges(t *testing.T) {
	t.Parallel()
	server := registrytest.Start(t)
	author, user := t.TempDir(), t.TempDir()
	keyPair(t, author)
	configure := func(rest string) {
		put(t, filepath.Join(user, "hako.yaml"), []byte("plugins: [plugins]\n"+rest))
	}
	configure("")
	put(t, filepath.Join(user, "cosign.pub"), must(os.ReadFile(filepath.Join(author, "cosign.pub"))))
	reference := server.Host + "/tools/probe"
	push := func(version string, more ...string) {
		put(t, filepath.Join(author, "probe.wasm"), probePlugin(t, "version: 1.0.0", "version: "+version))
		invoke(t, author, append([]string{"plugin", "push", reference}, more...)...).want(t, exitOK)
	}
	push("1.0.0")
	invoke(t, user, "plugin", "add", "oci://"+reference+":1.0.0").want(t, exitOK, "unsigned")
	push("1.1.0", "--sign", "cosign.key")
	configure("signers: {acme: {for: [" + server.Host + "/tools/*], key: cosign.pub}}\n")
	signed := "! Another signer: signed with the key sha256:"
	invoke(t, user, "plugin", "update", "--dry-run").want(t, exitOK, "probe 1.1.0 instead of 1.0.0", signed, "; before: unsigned")
	invoke(t, user, "plugin", "update").want(t, exitOK, signed)
	configure("")
	unsigned := "! Another signer: unsigned; before: signed with the key sha256:"
	invoke(t, user, "plugin", "rollback", "probe").want(t, exitOK, unsigned, "! It is a downgrade")
	invoke(t, user, "plugin", "rollback", "probe").want(t, exitOK, signed)
	invoke(t, user, "plugin", "add", "--replace", filepath.Join(author, "probe.wasm")).want(t, exitOK, unsigned)
}

// TestKeylessPlugin: a plugin that was signed with an identity is installed if the identity is trusted, and who signed it is
// shown before it is approved.
func TestKeylessPlugin(t *testing.T) {
	t.Parallel()
	server, sigstore, rival := registrytest.Start(t), sigstoretest.Start(t), sigstoretest.Start(t)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "probe.wasm"), probePlugin(t))
	put(t, filepath.Join(dir, "trusted_root.json"), must(os.ReadFile(sigstore.RootFile(t, false))))
	const issuer, subject = "https://accounts.example.com", "release@example.com"
	configure := func(subject string) {
		put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\nsignatures: {trustedRoot: trusted_root.json}\n"+
			"signers: {acme: {for: ["+server.Host+"/tools/*], issuer: '"+issuer+"', subject: '"+subject+"'}}\n"))
	}
	configure(subject)
	put(t, filepath.Join(dir, "plugins", "README"), nil)
	reference := server.Reference("tools/probe", "1.0.0")
	invoke(t, dir, "plugin", "push", reference, "probe.wasm").want(t, exitOK, "unsigned")
	client := must(registry.New(registry.Options{}))
	defer client.Close()
	r := must(registry.ParseReference(reference))
	r.Digest = must(client.Resolve(t.Context(), r))
	sign := func(by *sigstoretest.Instance, subject string) {
		t.Helper()
		bundle := sigstoretest.Encode(t, by.Attest(t, subject, issuer, sigstoretest.Statement(r.Digest), time.Now().Add(time.Minute)))
		if err := client.Attach(t.Context(), r, sigstoretest.BundleType, bundle, sigstoretest.BundleType, nil); err != nil {
			t.Fatal(err)
		}
	}
	add := []string{"plugin", "add", reference}
	invoke(t, dir, add...).want(t, exitUsage, "is not signed", "a signature of acme")
	sign(sigstore, "thief@example.com")
	sign(rival, subject)
	invoke(t, dir, add...).want(t, exitUsage, "has no valid signature", "it is signed by thief@example.com")
	sign(sigstore, subject)
	const signed = "signed by " + subject + " (" + issuer + ")"
	invoke(t, dir, add...).want(t, exitOK, signed, "Next: hako plugin approve probe")
	invoke(t, dir, "plugin", "approve", "probe", "-y").want(t, exitOK, "\n"+signed+", according to the lock file\n\nIt offers:")
	invoke(t, dir, "plugin", "list").want(t, exitOK, "signed by "+subject)
	if e := locked(t, dir); e.Signer == nil || *e.Signer != (lock.Signer{Issuer: issuer, Subject: subject}) {
		t.Errorf("the lock file: %+v", e.Signer)
	}
	configure("somebody@example.com")
	invoke(t, dir, "plugin", "sync").want(t, exitUsage, "is "+signed+", by the lock file", "needs another signature")
}
